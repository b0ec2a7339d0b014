//! Integer arithmetic.

use ptx::ast::{Instruction, Type};

use super::Result;
use super::context::{CARRY, Decoder, Unsupported, last_type, operand};
use crate::lanes::{AluFn, Args, Rows, Shape, WARP, alu};

/// Instantiates an expression for the integer type `$ty` as `$T` (and `$W`, twice as wide).
macro_rules! by_type {
    ($ty:expr, $T:ident, $W:ident => $e:expr) => {
        match $ty {
            Type::U16 | Type::B16 => {
                type $T = u16;
                #[allow(dead_code, reason = "not every operation widens")]
                type $W = u32;
                $e
            }
            Type::S16 => {
                type $T = i16;
                #[allow(dead_code, reason = "not every operation widens")]
                type $W = i32;
                $e
            }
            Type::U32 | Type::B32 => {
                type $T = u32;
                #[allow(dead_code, reason = "not every operation widens")]
                type $W = u64;
                $e
            }
            Type::S32 => {
                type $T = i32;
                #[allow(dead_code, reason = "not every operation widens")]
                type $W = i64;
                $e
            }
            Type::U64 | Type::B64 => {
                type $T = u64;
                #[allow(dead_code, reason = "not every operation widens")]
                type $W = u128;
                $e
            }
            Type::S64 => {
                type $T = i64;
                #[allow(dead_code, reason = "not every operation widens")]
                type $W = i128;
                $e
            }
            _ => return Unsupported::because("an operation on this type"),
        }
    };
}

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    let carry_out = i.has("cc");
    match i.opcode.as_str() {
        "add" | "addc" | "sub" | "subc" if carry_out || i.opcode.ends_with('c') => {
            carrying(cx, i, ty)
        }
        "madc" | "mad" if carry_out || i.opcode == "madc" => carrying_mad(cx, i, ty),
        "add" | "sub" if matches!(ty, Type::U16x2 | Type::S16x2) => {
            let f = if i.opcode == "add" {
                alu!(|a: u32, b: u32| -> u32 { pairs(a, b, u16::wrapping_add) })
            } else {
                alu!(|a: u32, b: u32| -> u32 { pairs(a, b, u16::wrapping_sub) })
            };
            cx.compute(i, &[ty, ty], f, 0)
        }
        "min" | "max" if matches!(ty, Type::U16x2 | Type::S16x2) => {
            let f = match (i.opcode == "max", ty == Type::S16x2) {
                (false, true) if i.has("relu") => alu!(|a: u32, b: u32| -> u32 {
                    pairs(a, b, |x, y| (x as i16).min(y as i16).max(0) as u16)
                }),
                (true, true) if i.has("relu") => alu!(|a: u32, b: u32| -> u32 {
                    pairs(a, b, |x, y| (x as i16).max(y as i16).max(0) as u16)
                }),
                (false, false) => alu!(|a: u32, b: u32| -> u32 { pairs(a, b, u16::min) }),
                (true, false) => alu!(|a: u32, b: u32| -> u32 { pairs(a, b, u16::max) }),
                (false, true) => alu!(|a: u32, b: u32| -> u32 {
                    pairs(a, b, |x, y| (x as i16).min(y as i16) as u16)
                }),
                (true, true) => alu!(|a: u32, b: u32| -> u32 {
                    pairs(a, b, |x, y| (x as i16).max(y as i16) as u16)
                }),
            };
            cx.compute(i, &[ty, ty], f, 0)
        }
        "add" if i.has("sat") => cx.compute(
            i,
            &[ty, ty],
            alu!(|a: i32, b: i32| -> i32 { a.saturating_add(b) }),
            0,
        ),
        "sub" if i.has("sat") => cx.compute(
            i,
            &[ty, ty],
            alu!(|a: i32, b: i32| -> i32 { a.saturating_sub(b) }),
            0,
        ),
        "add" => {
            let f = by_type!(ty, T, W => alu!(|a: T, b: T| -> T { a.wrapping_add(b) }));
            cx.compute(i, &[ty, ty], f, 0)
        }
        "sub" => {
            let f = by_type!(ty, T, W => alu!(|a: T, b: T| -> T { a.wrapping_sub(b) }));
            cx.compute(i, &[ty, ty], f, 0)
        }
        "min" | "max" => {
            let f = match (i.opcode == "max", i.has("relu")) {
                (false, false) => by_type!(ty, T, W => alu!(|a: T, b: T| -> T { a.min(b) })),
                (true, false) => by_type!(ty, T, W => alu!(|a: T, b: T| -> T { a.max(b) })),
                (false, true) => alu!(|a: i32, b: i32| -> i32 { a.min(b).max(0) }),
                (true, true) => alu!(|a: i32, b: i32| -> i32 { a.max(b).max(0) }),
            };
            cx.compute(i, &[ty, ty], f, 0)
        }
        "abs" => {
            let f = match ty {
                Type::S16 => alu!(|a: i16| -> i16 { a.wrapping_abs() }),
                Type::S32 => alu!(|a: i32| -> i32 { a.wrapping_abs() }),
                Type::S64 => alu!(|a: i64| -> i64 { a.wrapping_abs() }),
                _ => return Unsupported::because("an operation on this type"),
            };
            cx.compute(i, &[ty], f, 0)
        }
        "neg" => {
            let f = by_type!(ty, T, W => alu!(|a: T| -> T { (0 as T).wrapping_sub(a) }));
            cx.compute(i, &[ty], f, 0)
        }
        "mul" | "mad" => multiply(cx, i, ty),
        "mul24" | "mad24" => multiply24(cx, i, ty),
        "div" => {
            // Division by zero gives all ones, and so does the remainder: the code that ptxas makes
            // of them does.
            let f = by_type!(ty, T, W => alu!(|a: T, b: T| -> T {
                if b == 0 { !0 } else { a.wrapping_div(b) }
            }));
            cx.compute(i, &[ty, ty], f, 0)
        }
        "rem" => {
            let f = by_type!(ty, T, W => alu!(|a: T, b: T| -> T {
                if b == 0 { !0 } else { a.wrapping_rem(b) }
            }));
            cx.compute(i, &[ty, ty], f, 0)
        }
        "sad" => {
            let f = by_type!(ty, T, W => alu!(|a: T, b: T, c: T| -> T {
                c.wrapping_add(a.abs_diff(b) as T)
            }));
            cx.compute(i, &[ty, ty, ty], f, 0)
        }
        "dp4a" | "dp2a" => dot(cx, i),
        _ => Unsupported::because("this instruction"),
    }
}

/// Applies `f` to both halves.
#[inline(always)]
fn pairs(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let high = f((a >> 16) as u16, (b >> 16) as u16);
    u32::from(high) << 16 | u32::from(f(a as u16, b as u16))
}

fn multiply(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type) -> Result<()> {
    let mad = i.opcode == "mad";
    let wide = wider(ty);
    if i.has("wide") {
        let f = match (ty, mad) {
            (Type::U16, false) => alu!(|a: u16, b: u16| -> u32 { u32::from(a) * u32::from(b) }),
            (Type::S16, false) => alu!(|a: i16, b: i16| -> i32 { i32::from(a) * i32::from(b) }),
            (Type::U32, false) => alu!(|a: u32, b: u32| -> u64 { u64::from(a) * u64::from(b) }),
            (Type::S32, false) => alu!(|a: i32, b: i32| -> i64 { i64::from(a) * i64::from(b) }),
            (Type::U16, true) => alu!(|a: u16, b: u16, c: u32| -> u32 {
                (u32::from(a) * u32::from(b)).wrapping_add(c)
            }),
            (Type::S16, true) => alu!(|a: i16, b: i16, c: i32| -> i32 {
                (i32::from(a) * i32::from(b)).wrapping_add(c)
            }),
            (Type::U32, true) => alu!(|a: u32, b: u32, c: u64| -> u64 {
                (u64::from(a) * u64::from(b)).wrapping_add(c)
            }),
            (Type::S32, true) => alu!(|a: i32, b: i32, c: i64| -> i64 {
                (i64::from(a) * i64::from(b)).wrapping_add(c)
            }),
            _ => return Unsupported::because("an operation on this type"),
        };
        let types: &[Type] = if mad { &[ty, ty, wide] } else { &[ty, ty] };
        return cx.compute(i, types, f, 0);
    }
    let f = match (i.has("hi"), mad) {
        (false, false) => by_type!(ty, T, W => alu!(|a: T, b: T| -> T { a.wrapping_mul(b) })),
        (false, true) => by_type!(ty, T, W => alu!(|a: T, b: T, c: T| -> T {
            a.wrapping_mul(b).wrapping_add(c)
        })),
        (true, false) => by_type!(ty, T, W => alu!(|a: T, b: T| -> T {
            ((a as W * b as W) >> T::BITS) as T
        })),
        (true, true) if i.has("sat") => alu!(|a: i32, b: i32, c: i32| -> i32 {
            (((i64::from(a) * i64::from(b)) >> 32) as i32).saturating_add(c)
        }),
        (true, true) => by_type!(ty, T, W => alu!(|a: T, b: T, c: T| -> T {
            (((a as W * b as W) >> T::BITS) as T).wrapping_add(c)
        })),
    };
    let types: &[Type] = if mad { &[ty, ty, ty] } else { &[ty, ty] };
    cx.compute(i, types, f, 0)
}

fn wider(ty: Type) -> Type {
    match ty {
        Type::U16 | Type::S16 => Type::U32,
        _ => Type::U64,
    }
}

/// The lower 24 bits of both factors; the low or the middle 32 bits of the product.
fn multiply24(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type) -> Result<()> {
    const SIGNED: u32 = 1;
    const MIDDLE: u32 = 2;
    const SATURATING: u32 = 4;
    #[inline(always)]
    fn product(a: u32, b: u32, how: u32) -> u32 {
        let cut = |x: u32| match how & SIGNED {
            0 => i64::from(x & 0x00ff_ffff),
            _ => i64::from((x << 8) as i32 >> 8),
        };
        let all = cut(a) * cut(b);
        (if how & MIDDLE != 0 { all >> 16 } else { all }) as u32
    }
    let f = if i.opcode == "mad24" {
        alu!(imm m, |a: u32, b: u32, c: u32| -> u32 {
            let value = product(a, b, m);
            if m & SATURATING != 0 { (value as i32).saturating_add(c as i32) as u32 } else { value.wrapping_add(c) }
        })
    } else {
        alu!(imm m, |a: u32, b: u32| -> u32 { product(a, b, m) })
    };
    let mut imm = if ty.is_signed() { SIGNED } else { 0 };
    imm |= if i.has("hi") { MIDDLE } else { 0 };
    imm |= if i.has("sat") { SATURATING } else { 0 };
    let types: &[Type] = if i.opcode == "mad24" {
        &[ty; 3]
    } else {
        &[ty; 2]
    };
    cx.compute(i, types, f, imm)
}

/// Sum of products of bytes, or of bytes and halves.
fn dot(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    fn byte(x: u32, index: u32, signed: bool) -> i32 {
        let byte = (x >> (8 * index)) as u8;
        if signed {
            i32::from(byte as i8)
        } else {
            i32::from(byte)
        }
    }
    let types = i.types();
    let signed = |index: usize| types.get(index).is_some_and(|ty| ty.is_signed());
    let imm = u32::from(signed(0)) | u32::from(signed(1)) << 1 | u32::from(i.has("hi")) << 2;
    let f: AluFn = if i.opcode == "dp4a" {
        alu!(imm m, |a: u32, b: u32, c: u32| -> u32 {
            let term = |n| byte(a, n, m & 1 != 0) * byte(b, n, m & 2 != 0);
            (0..4).fold(c, |sum, n| sum.wrapping_add(term(n) as u32))
        })
    } else {
        alu!(imm m, |a: u32, b: u32, c: u32| -> u32 {
            let half = |n: u32| match ((a >> (16 * n)) as u16, m & 1 != 0) {
                (half, true) => i32::from(half as i16),
                (half, false) => i32::from(half),
            };
            let first = if m & 4 != 0 { 2 } else { 0 };
            let term = |n| half(n).wrapping_mul(byte(b, first + n, m & 2 != 0));
            (0..2).fold(c, |sum, n| sum.wrapping_add(term(n) as u32))
        })
    };
    cx.compute(i, &[Type::B32; 3], f, imm)
}

/// Reads the carry flag.
const USE: u32 = 1;
/// Writes it.
const SET: u32 = 2;
const SUBTRACT: u32 = 4;
const HIGH: u32 = 8;

/// `a + b + carry`, or `a + !b + carry` for a difference, in 32 or 64 bits.
///
/// A difference that borrows leaves no carry.
/// The ISA calls the flag a borrow there, which is the same as long as only differences follow; but the division of
/// 128-bit integers that nvcc brings reads the flag of a `sub.cc` by an `addc`, and so it is the adder's.
fn add_carry(rows: &mut Rows<'_>, args: &Args, mask: u32, bits: u32) {
    let keep = u64::MAX >> (64 - bits);
    let subtract = args.imm & SUBTRACT != 0;
    let flag = match args.imm & USE != 0 {
        true => rows.preds[CARRY as usize],
        false if subtract => u32::MAX,
        false => 0,
    };
    let (mut out, mut carry) = ([0; WARP], 0);
    let (a, b) = (rows.src(args.a), rows.src(args.b));
    for lane in 0..WARP {
        let y = if subtract { !b[lane] } else { b[lane] } & keep;
        let value = u128::from(a[lane] & keep) + u128::from(y) + u128::from(flag >> lane & 1);
        out[lane] = value as u64 & keep;
        carry |= u32::from(value >> bits & 1 != 0) << lane;
    }
    rows.put(args.d, mask, &out);
    if args.imm & SET != 0 {
        rows.put_pred(CARRY, mask, carry);
    }
}

fn carrying(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type) -> Result<()> {
    let f: AluFn = match ty.bytes() {
        4 => |rows, args, mask| add_carry(rows, args, mask, 32),
        8 => |rows, args, mask| add_carry(rows, args, mask, 64),
        _ => return Unsupported::because("an operation on this type"),
    };
    let mut imm = if i.opcode.ends_with('c') { USE } else { 0 };
    imm |= if i.has("cc") { SET } else { 0 };
    imm |= if i.opcode.starts_with("sub") {
        SUBTRACT
    } else {
        0
    };
    cx.compute_as(i, &[ty, ty], f, imm, Shape::Carry)
}

/// The low or high half of `a * b`, plus `c` and the carry flag.
fn mad_carry(rows: &mut Rows<'_>, args: &Args, mask: u32, bits: u32, signed: bool) {
    let keep = u64::MAX >> (64 - bits);
    let flag = if args.imm & USE != 0 {
        rows.preds[CARRY as usize]
    } else {
        0
    };
    let (mut out, mut carry) = ([0; WARP], 0);
    let (a, b, c) = (rows.src(args.a), rows.src(args.b), rows.src(args.c));
    let widen = |x: u64| match signed {
        true => i128::from((x << (64 - bits)) as i64 >> (64 - bits)),
        false => i128::from(x & keep),
    };
    for lane in 0..WARP {
        let product = widen(a[lane]).wrapping_mul(widen(b[lane]));
        let half = if args.imm & HIGH != 0 {
            product >> bits
        } else {
            product
        } as u64
            & keep;
        let sum = u128::from(half) + u128::from(c[lane] & keep) + u128::from(flag >> lane & 1);
        out[lane] = sum as u64 & keep;
        carry |= u32::from(sum >> bits & 1 != 0) << lane;
    }
    rows.put(args.d, mask, &out);
    if args.imm & SET != 0 {
        rows.put_pred(CARRY, mask, carry);
    }
}

fn carrying_mad(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type) -> Result<()> {
    operand(i, 3)?;
    let f: AluFn = match (ty.bytes(), ty.is_signed()) {
        (4, false) => |rows, args, mask| mad_carry(rows, args, mask, 32, false),
        (4, true) => |rows, args, mask| mad_carry(rows, args, mask, 32, true),
        (8, false) => |rows, args, mask| mad_carry(rows, args, mask, 64, false),
        (8, true) => |rows, args, mask| mad_carry(rows, args, mask, 64, true),
        _ => return Unsupported::because("an operation on this type"),
    };
    let mut imm = if i.opcode == "madc" { USE } else { 0 };
    imm |= if i.has("cc") { SET } else { 0 };
    imm |= if i.has("hi") { HIGH } else { 0 };
    cx.compute_as(i, &[ty, ty, ty], f, imm, Shape::Carry)
}
