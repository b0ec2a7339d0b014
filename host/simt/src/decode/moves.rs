//! `mov` with packing and unpacking, and conversions of addresses.

use ptx::ast::{Instruction, Operand, Space, Type};

use super::context::{Decoder, SINK, Unsupported, last_type, operand};
use super::{Result, compare, special};
use crate::code::{Kind, Map, Rank};
use crate::lanes::{Args, Shape, alu};
use crate::windows;

pub(super) fn mov(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    if ty == Type::Pred {
        return compare::move_pred(cx, i);
    }
    let (to, from) = (operand(i, 0)?, operand(i, 1)?);
    match (to, from) {
        (Operand::Vector(parts), _) => unpack(cx, ty, parts, from),
        (_, Operand::Vector(parts)) => pack(cx, ty, to, parts),
        (
            _,
            Operand::Name {
                name, component, ..
            },
        ) if cx.register(name).is_none() && special::lookup(name, *component).is_some() => {
            let d = cx.dst(to)?;
            match special::lookup(name, *component) {
                Some(special) => cx.push(Kind::Special(d, special)),
                None => Ok(()),
            }
        }
        _ => {
            let d = cx.dst(to)?;
            let a = cx.src(from, ty)?;
            let copy = alu!(|a: u64| -> u64 { a });
            if ty == Type::B128 {
                // The high half stands in the row behind.
                cx.push_alu(
                    copy,
                    Args {
                        d: d + 1,
                        a: a + 1,
                        ..Args::default()
                    },
                )?;
            }
            cx.push_alu(
                copy,
                Args {
                    d,
                    a,
                    ..Args::default()
                },
            )
        }
    }
}

fn unpack(cx: &mut Decoder<'_, '_>, ty: Type, parts: &[Operand], from: &Operand) -> Result<()> {
    let a = cx.src(from, ty)?;
    let bits = element_bits(ty, parts.len())?;
    for (index, part) in parts.iter().enumerate() {
        if *part == Operand::Sink {
            continue;
        }
        let d = cx.dst(part)?;
        let start = bits * index as u32;
        let f = alu!(imm m, |a: u64| -> u64 { (a >> (m & 63)) & (u64::MAX >> (64 - (m >> 8))) });
        let source = if start >= 64 { a + 1 } else { a };
        cx.push_alu(
            f,
            Args {
                d,
                a: source,
                imm: (start % 64) | bits << 8,
                ..Args::default()
            },
        )?;
    }
    // At least one op carries the count.
    if parts.iter().all(|part| *part == Operand::Sink) {
        cx.push(Kind::Nop)?;
    }
    Ok(())
}

fn pack(cx: &mut Decoder<'_, '_>, ty: Type, to: &Operand, parts: &[Operand]) -> Result<()> {
    let bits = element_bits(ty, parts.len())?;
    let part_type = match bits {
        8 => Type::B8,
        16 => Type::B16,
        32 => Type::B32,
        _ => Type::B64,
    };
    let mut sources = Vec::new();
    for part in parts {
        sources.push(cx.src(part, part_type)?);
    }
    let d = cx.dst(to)?;
    if ty == Type::B128 {
        let copy = alu!(|a: u64| -> u64 { a });
        if let [low, high] = sources[..] {
            cx.push_alu(
                copy,
                Args {
                    d: d + 1,
                    a: high,
                    ..Args::default()
                },
            )?;
            return cx.push_alu(
                copy,
                Args {
                    d,
                    a: low,
                    ..Args::default()
                },
            );
        }
        return Unsupported::because("a vector of this width");
    }
    // Joined two by two; a temporary row in between, because the result may be a source.
    let join = alu!(imm m, |a: u64, b: u64| -> u64 {
        let keep = u64::MAX >> (64 - m);
        a & keep | (b & keep) << m
    });
    let args = |d, a, b, imm| Args {
        d,
        e: 0,
        a,
        b,
        c: 0,
        imm,
        shape: Shape::Rows,
    };
    match sources[..] {
        [a, b] => cx.push_alu(join, args(d, a, b, bits)),
        [a, b, c, e] => {
            let (low, high) = (cx.new_row(), cx.new_row());
            cx.push_alu(join, args(low, a, b, bits))?;
            cx.push_alu(join, args(high, c, e, bits))?;
            cx.push_alu(join, args(d, low, high, 2 * bits))
        }
        _ => Unsupported::because("a vector of this width"),
    }
}

fn element_bits(ty: Type, count: usize) -> Result<u32> {
    let bits = (8 * ty.bytes()).checked_div(count as u32).unwrap_or(0);
    if matches!(bits, 8 | 16 | 32 | 64) && matches!(count, 2 | 4) {
        Ok(bits)
    } else {
        Unsupported::because("a vector of this width")
    }
}

/// `cvta.space` makes an address generic, `cvta.to.space` the reverse.
pub(super) fn cvta(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    let base = windows::base(i.space());
    let f = if i.has("to") {
        alu!(|a: u64, base: u64| -> u64 { a.wrapping_sub(base) })
    } else {
        alu!(|a: u64, base: u64| -> u64 { a.wrapping_add(base) })
    };
    let d = cx.dst(operand(i, 0)?)?;
    let a = cx.src(operand(i, 1)?, ty)?;
    let b = cx.builder.constant(base);
    cx.push_alu(
        f,
        Args {
            d,
            e: 0,
            a,
            b,
            c: SINK,
            imm: 0,
            shape: Shape::Rows,
        },
    )
}

pub(super) fn isspacep(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let d = cx.dst_pred(operand(i, 0)?)?;
    let address = cx.src(operand(i, 1)?, Type::U64)?;
    let variables = cx.builder.symbols.variables.values();
    let constants = variables.filter(|symbol| symbol.space == Space::Const && symbol.bytes > 0);
    cx.builder.program.constants = constants
        .map(|symbol| (symbol.address, symbol.address + symbol.bytes - 1))
        .collect();
    cx.push(Kind::IsSpace {
        d,
        address,
        space: i.space(),
    })
}

pub(super) fn mapa(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    let d = cx.dst(operand(i, 0)?)?;
    let address = cx.src(operand(i, 1)?, ty)?;
    let rank = cx.src(operand(i, 2)?, Type::U32)?;
    cx.push(Kind::Map(Map {
        d,
        address,
        rank,
        generic: i.space() == Space::Generic,
    }))
}

pub(super) fn getctarank(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    let address_ty = match i.space() {
        Space::Generic => Type::U64,
        _ => ty,
    };
    let d = cx.dst(operand(i, 0)?)?;
    let address = cx.src(operand(i, 1)?, address_ty)?;
    cx.push(Kind::Rank(Rank {
        d,
        address,
        generic: i.space() == Space::Generic,
    }))
}

/// `createpolicy`: a policy that says nothing.
pub(super) fn policy(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let d = cx.dst(operand(i, 0)?)?;
    let a = cx.builder.constant(0);
    cx.push_alu(
        alu!(|a: u64| -> u64 { a }),
        Args {
            d,
            a,
            ..Args::default()
        },
    )
}
