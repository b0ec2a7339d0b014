//! `mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`: what the lanes of a warp do with matrices.
//!
//! Not here: sparse products (`mma.sp`), scaled ones (`.block_scale`), and the matrices of bytes
//! that sm_100 loads.

use ptx::ast::{Instruction, Operand, Space, Type};

use super::Result;
use super::context::{Decoder, Unsupported, operand};
use crate::code::{Exchange, ExchangeKind, Kind};
use crate::matrix::{Bits, Element, Layout, Matrix, MatrixKind, Multiply, Part, Shape};
use crate::values::mods;

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let first = i.suffixes.first().map_or("", |suffix| suffix.as_str());
    let matrix = match (i.opcode.as_str(), first) {
        ("mma", "sync") | ("wmma", "mma") => multiply(cx, i)?,
        ("wmma", "load" | "store") => fragment(cx, i, first == "store")?,
        ("ldmatrix", _) => rows(cx, i, false)?,
        ("stmatrix", _) => rows(cx, i, true)?,
        ("movmatrix", _) => Matrix {
            d: vec![cx.dst(operand(i, 0)?)?],
            a: vec![cx.src(operand(i, 1)?, Type::B32)?],
            ..new(MatrixKind::Transpose)
        },
        _ => return Unsupported::because("this instruction"),
    };
    together(cx)?;
    cx.push(Kind::Matrix(Box::new(matrix)))
}

/// All lanes of a warp come to an `.aligned` operation before any goes on.
fn together(cx: &mut Decoder<'_, '_>) -> Result<()> {
    let all = cx.builder.constant(u64::from(u32::MAX));
    cx.push(Kind::Exchange(Box::new(Exchange {
        kind: ExchangeKind::Together,
        members: Some(all),
        d: None,
        p: None,
        a: super::context::SINK,
        b: super::context::SINK,
        c: super::context::SINK,
    })))
}

fn new(kind: MatrixKind) -> Matrix {
    Matrix {
        kind,
        d: Vec::new(),
        a: Vec::new(),
        b: Vec::new(),
        c: Vec::new(),
        address: None,
        stride: None,
    }
}

fn parts(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

fn written(cx: &mut Decoder<'_, '_>, operand: &Operand) -> Result<Vec<u32>> {
    parts(operand).iter().map(|part| cx.dst(part)).collect()
}

fn read(cx: &mut Decoder<'_, '_>, operand: &Operand, element: Element) -> Result<Vec<u32>> {
    let ty = match element {
        Element::F64 => Type::F64,
        Element::F32 => Type::F32,
        _ => Type::B32,
    };
    parts(operand).iter().map(|part| cx.src(part, ty)).collect()
}

fn shape(i: &Instruction) -> Result<Shape> {
    match i.suffixes.iter().find_map(|s| Shape::from_suffix(s)) {
        Some(shape) => Ok(shape),
        None => Unsupported::because("a matrix of this shape"),
    }
}

/// The fragment of a matrix, if a warp has one.
fn layout(part: Part, shape: Shape, element: Element, quarters: Option<bool>) -> Result<Layout> {
    let Shape { m, n, k } = shape;
    let inner = 4 * element.per_register();
    let fits = matches!(m, 8 | 16 | 32)
        && matches!(n, 8 | 16 | 32)
        && (part == Part::C || k.is_multiple_of(inner) || quarters.is_some());
    if fits {
        Ok(Layout {
            part,
            shape,
            element,
            quarters,
        })
    } else {
        Unsupported::because("a matrix of this shape")
    }
}

/// Checks that an operand has the registers of its fragment, or a multiple of them for `wmma`.
fn sized(layout: Layout, registers: &[u32], many: bool) -> Result<()> {
    let want = layout.registers();
    if registers.len() == want || many && registers.len().is_multiple_of(want.max(1)) {
        Ok(())
    } else {
        Unsupported::because("a fragment of another size")
    }
}

/// `mma.sync… d, a, b, c;` and `wmma.mma… d, a, b, c;`
fn multiply(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<Matrix> {
    const KNOWN: [&str; 13] = [
        "mma",
        "sync",
        "aligned",
        "row",
        "col",
        "satfinite",
        "xor",
        "and",
        "popc",
        "rn",
        "rz",
        "rm",
        "rp",
    ];
    let shape = shape(i)?;
    let known = |s: &str| {
        KNOWN.contains(&s) || Shape::from_suffix(s).is_some() || Element::from_suffix(s).is_some()
    };
    if !i.suffixes.iter().all(|suffix| known(suffix)) {
        return Unsupported::because("this instruction");
    }
    let elements = i.suffixes.iter().filter_map(|s| Element::from_suffix(s));
    let (d, a, b, c) = match elements.collect::<Vec<_>>()[..] {
        [d, a, b, c] => (d, a, b, c),
        [d, c] if i.opcode == "wmma" => (d, Element::F16, Element::F16, c),
        _ => return Unsupported::because("a product of these types"),
    };
    let quarters = i.opcode == "mma" && a == Element::F16 && shape == (Shape { m: 8, n: 8, k: 4 });
    let mut orders = i
        .suffixes
        .iter()
        .filter(|s| matches!(s.as_str(), "row" | "col"));
    let mut by_columns = || quarters.then_some(orders.next().is_some_and(|order| order == "col"));
    let product = Multiply {
        a: layout(Part::A, shape, a, by_columns())?,
        b: layout(Part::B, shape, b, by_columns())?,
        c: layout(Part::C, shape, c, quarters.then_some(false))?,
        d: layout(Part::C, shape, d, quarters.then_some(false))?,
        saturate: i.has("satfinite"),
        bits: if i.has("and") { Bits::And } else { Bits::Xor },
        round: mods::round_of(mods::of(i)),
    };
    check_types(&product)?;
    let wmma = i.opcode == "wmma";
    let matrix = Matrix {
        d: written(cx, operand(i, 0)?)?,
        a: read(cx, operand(i, 1)?, a)?,
        b: read(cx, operand(i, 2)?, b)?,
        c: read(cx, operand(i, 3)?, c)?,
        ..new(MatrixKind::Multiply(Box::new(product)))
    };
    sized(product.d, &matrix.d, false)?;
    sized(product.a, &matrix.a, wmma)?;
    sized(product.b, &matrix.b, wmma)?;
    sized(product.c, &matrix.c, false)?;
    Ok(matrix)
}

fn check_types(product: &Multiply) -> Result<()> {
    use Element::{B1, Bf16, E4m3, E5m2, F16, F32, F64, S4, S8, S32, Tf32, U4, U8};
    let result = |e: Element| match (product.a.element, product.b.element) {
        (F16, F16) | (E4m3 | E5m2, E4m3 | E5m2) => matches!(e, F16 | F32),
        (Bf16, Bf16) | (Tf32, Tf32) => e == F32,
        (F64, F64) => e == F64,
        (S8 | U8, S8 | U8) | (S4 | U4, S4 | U4) | (B1, B1) => e == S32,
        _ => false,
    };
    if result(product.c.element) && result(product.d.element) {
        Ok(())
    } else {
        Unsupported::because("a product of these types")
    }
}

/// `wmma.load.a… r, [p]{, stride};` and `wmma.store.d… [p], r{, stride};`
fn fragment(cx: &mut Decoder<'_, '_>, i: &Instruction, store: bool) -> Result<Matrix> {
    let part = match i.suffixes.get(1).map_or("", |suffix| suffix.as_str()) {
        "a" => Part::A,
        "b" => Part::B,
        "c" | "d" => Part::C,
        _ => return Unsupported::because("this instruction"),
    };
    let Some(element) = i.suffixes.last().and_then(|s| Element::from_suffix(s)) else {
        return Unsupported::because("a matrix of this type");
    };
    let layout = layout(part, shape(i)?, element, None)?;
    let by_columns = i.has("col");
    if element.bits() < 8 && part != Part::C && by_columns != (part == Part::B) {
        return Unsupported::because("parts of bytes that lie apart");
    }
    let (address, fragment) = if store { (0, 1) } else { (1, 0) };
    let mut matrix = new(MatrixKind::Fragment { layout, by_columns });
    if store {
        matrix.a = read(cx, operand(i, fragment)?, element)?;
        sized(layout, &matrix.a, true)?;
    } else {
        matrix.d = written(cx, operand(i, fragment)?)?;
        sized(layout, &matrix.d, true)?;
    }
    matrix.address = Some(cx.address(operand(i, address)?, i.space())?);
    let (rows, columns) = layout.size();
    matrix.stride = Some(match i.operands.get(2) {
        Some(stride) => cx.src(stride, Type::U32)?,
        None => cx
            .builder
            .constant(if by_columns { rows } else { columns } as u64),
    });
    Ok(matrix)
}

/// `ldmatrix… r, [p];` and `stmatrix… [p], r;` of 8 by 8 elements of 16 bits.
fn rows(cx: &mut Decoder<'_, '_>, i: &Instruction, store: bool) -> Result<Matrix> {
    if !i.has("m8n8") || !i.has("b16") {
        return Unsupported::because("this instruction");
    }
    let mut matrix = new(MatrixKind::Rows {
        transposed: i.has("trans"),
    });
    let (address, fragment) = if store { (0, 1) } else { (1, 0) };
    let space = match i.space() {
        Space::Generic => Space::Generic,
        _ => Space::Shared,
    };
    matrix.address = Some(cx.address(operand(i, address)?, space)?);
    let count = if store {
        matrix.a = read(cx, operand(i, fragment)?, Element::F16)?;
        matrix.a.len()
    } else {
        matrix.d = written(cx, operand(i, fragment)?)?;
        matrix.d.len()
    };
    if matches!(count, 1 | 2 | 4) && i.has(&format!("x{count}")) {
        Ok(matrix)
    } else {
        Unsupported::because("a fragment of another size")
    }
}
