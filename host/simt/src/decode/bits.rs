//! Logic, shifts and bit fields.

use ptx::ast::{Instruction, Operand, Type};

use super::context::{Decoder, Unsupported, last_type, operand};
use super::{Result, compare};
use crate::lanes::{AluFn, Shape, alu};

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    let bytes = ty.bytes();
    match i.opcode.as_str() {
        "and" => cx.compute(i, &[ty, ty], alu!(|a: u64, b: u64| -> u64 { a & b }), 0),
        "or" => cx.compute(i, &[ty, ty], alu!(|a: u64, b: u64| -> u64 { a | b }), 0),
        "xor" => cx.compute(i, &[ty, ty], alu!(|a: u64, b: u64| -> u64 { a ^ b }), 0),
        "not" => {
            let f = match bytes {
                2 => alu!(|a: u16| -> u16 { !a }),
                4 => alu!(|a: u32| -> u32 { !a }),
                _ => alu!(|a: u64| -> u64 { !a }),
            };
            cx.compute(i, &[ty], f, 0)
        }
        "cnot" => cx.compute(i, &[ty], alu!(|a: u64| -> u64 { u64::from(a == 0) }), 0),
        "shl" | "shr" => shift(cx, i, ty),
        "shf" => funnel(cx, i),
        "popc" => cx.compute(i, &[ty], alu!(|a: u64| -> u32 { a.count_ones() }), 0),
        "clz" => {
            let f = match bytes {
                4 => alu!(|a: u32| -> u32 { a.leading_zeros() }),
                _ => alu!(|a: u64| -> u32 { a.leading_zeros() }),
            };
            cx.compute(i, &[ty], f, 0)
        }
        "brev" => {
            let f = match bytes {
                4 => alu!(|a: u32| -> u32 { a.reverse_bits() }),
                _ => alu!(|a: u64| -> u64 { a.reverse_bits() }),
            };
            cx.compute(i, &[ty], f, 0)
        }
        "bfind" => find(cx, i, ty),
        "bfe" => extract(cx, i, ty),
        "bfi" => insert(cx, i, ty),
        "prmt" => permute(cx, i),
        "lop3" => logic3(cx, i),
        "bmsk" => {
            let f = match i.has("wrap") {
                false => alu!(|a: u32, b: u32| -> u32 { mask(a, b) }),
                true => alu!(|a: u32, b: u32| -> u32 { mask(a & 31, b & 31) }),
            };
            cx.compute(i, &[Type::B32, Type::B32], f, 0)
        }
        "szext" => {
            let imm = u32::from(i.has("wrap")) | u32::from(ty.is_signed()) << 1;
            let f = alu!(imm m, |a: u32, b: u32| -> u32 {
                let size = if m & 1 != 0 { b & 31 } else { b };
                match size {
                    0 => 0,
                    32.. => a,
                    _ if m & 2 != 0 => ((a << (32 - size)) as i32 >> (32 - size)) as u32,
                    _ => a & ((1 << size) - 1),
                }
            });
            cx.compute(i, &[ty, Type::U32], f, imm)
        }
        "fns" => {
            let f = alu!(|a: u32, b: u32, c: i32| -> u32 { nth_set(a, b, c) });
            cx.compute(i, &[Type::B32, Type::B32, Type::S32], f, 0)
        }
        _ => Unsupported::because("this instruction"),
    }
}

fn shift(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type) -> Result<()> {
    // Amounts of the width or more shift everything out.
    let f = match (i.opcode == "shl", ty.is_signed(), ty.bytes()) {
        (true, _, 2) => alu!(|a: u16, b: u32| -> u16 { a.checked_shl(b).unwrap_or(0) }),
        (true, _, 4) => alu!(|a: u32, b: u32| -> u32 { if b < 32 { a << b } else { 0 } }),
        (true, _, 8) => alu!(|a: u64, b: u32| -> u64 { if b < 64 { a << b } else { 0 } }),
        (false, false, 2) => alu!(|a: u16, b: u32| -> u16 { a.checked_shr(b).unwrap_or(0) }),
        (false, false, 4) => alu!(|a: u32, b: u32| -> u32 { if b < 32 { a >> b } else { 0 } }),
        (false, false, 8) => alu!(|a: u64, b: u32| -> u64 { if b < 64 { a >> b } else { 0 } }),
        (false, true, 2) => alu!(|a: i16, b: u32| -> i16 { a >> b.min(15) }),
        (false, true, 4) => alu!(|a: i32, b: u32| -> i32 { a >> b.min(31) }),
        (false, true, 8) => alu!(|a: i64, b: u32| -> i64 { a >> b.min(63) }),
        _ => return Unsupported::because("an operation on this type"),
    };
    cx.compute(i, &[ty, Type::U32], f, 0)
}

/// A shift of 64 bits, high half in the second operand, of which one half is kept.
fn funnel(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let imm = u32::from(i.has("wrap"));
    let f = if i.has("l") {
        alu!(imm m, |a: u32, b: u32, c: u32| -> u32 {
            let by = if m == 1 { c & 31 } else { c.min(32) };
            (((u64::from(b) << 32 | u64::from(a)) << by) >> 32) as u32
        })
    } else {
        alu!(imm m, |a: u32, b: u32, c: u32| -> u32 {
            let by = if m == 1 { c & 31 } else { c.min(32) };
            ((u64::from(b) << 32 | u64::from(a)) >> by) as u32
        })
    };
    cx.compute(i, &[Type::B32, Type::B32, Type::U32], f, imm)
}

/// Position of the highest bit that is not a sign bit; all ones when there is none.
fn find(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type) -> Result<()> {
    #[inline(always)]
    fn highest(a: u64, bits: u32, shift: bool) -> u32 {
        match a {
            0 => u32::MAX,
            _ if shift => a.leading_zeros() - (64 - bits),
            _ => 63 - a.leading_zeros(),
        }
    }
    let imm = u32::from(i.has("shiftamt"));
    let f = match (ty.is_signed(), ty.bytes()) {
        (false, 4) => alu!(imm m, |a: u32| -> u32 { highest(u64::from(a), 32, m == 1) }),
        (false, _) => alu!(imm m, |a: u64| -> u32 { highest(a, 64, m == 1) }),
        (true, 4) => alu!(imm m, |a: i32| -> u32 {
            highest(u64::from((a ^ (a >> 31)) as u32), 32, m == 1)
        }),
        (true, _) => alu!(imm m, |a: i64| -> u32 { highest((a ^ (a >> 63)) as u64, 64, m == 1) }),
    };
    cx.compute(i, &[ty], f, imm)
}

fn extract(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type) -> Result<()> {
    #[inline(always)]
    fn field(a: u64, start: u32, length: u32, bits: u32, signed: bool) -> u64 {
        let (start, length) = (start & 255, length & 255);
        if length == 0 {
            return 0;
        }
        let raw = if start < 64 { a >> start } else { 0 };
        let raw = if length < 64 {
            raw & ((1 << length) - 1)
        } else {
            raw
        };
        // The sign stands at the field's last bit, or the value's if that comes first.
        let sign = (start + length - 1).min(bits - 1);
        if !signed || a >> sign & 1 == 0 {
            return raw;
        }
        let have = (sign + 1).saturating_sub(start).min(64);
        if have >= 64 {
            raw
        } else {
            raw | u64::MAX << have
        }
    }
    let imm = u32::from(ty.is_signed());
    let f = match ty.bytes() {
        4 => alu!(imm m, |a: u32, b: u32, c: u32| -> u32 {
            field(u64::from(a), b, c, 32, m == 1) as u32
        }),
        8 => alu!(imm m, |a: u64, b: u32, c: u32| -> u64 { field(a, b, c, 64, m == 1) }),
        _ => return Unsupported::because("an operation on this type"),
    };
    cx.compute(i, &[ty, Type::U32, Type::U32], f, imm)
}

/// `bfi d, field, into, start, length`
fn insert(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type) -> Result<()> {
    // Four sources are one too many for an op: the field and its mask are moved into place first.
    let bits = 8 * ty.bytes();
    let mask_row = cx.new_row();
    let place_row = cx.new_row();
    let d = cx.dst(operand(i, 0)?)?;
    let a = cx.src(operand(i, 1)?, ty)?;
    let b = cx.src(operand(i, 2)?, ty)?;
    let start = cx.src(operand(i, 3)?, Type::U32)?;
    let length = cx.src(operand(i, 4)?, Type::U32)?;
    let args = |d, a, b, c| crate::lanes::Args {
        d,
        e: 0,
        a,
        b,
        c,
        imm: bits,
        shape: Shape::Rows,
    };
    let make_mask: AluFn = alu!(imm bits, |start: u32, length: u32| -> u64 {
        let (start, length) = (start & 255, length & 255);
        let ones = if length < 64 { (1u64 << length) - 1 } else { u64::MAX };
        let value = if start < 64 { ones << start } else { 0 };
        value & (u64::MAX >> (64 - bits))
    });
    let shift: AluFn = alu!(|a: u64, start: u32| -> u64 {
        let start = start & 255;
        if start < 64 { a << start } else { 0 }
    });
    let merge: AluFn =
        alu!(|field: u64, into: u64, mask: u64| -> u64 { into & !mask | field & mask });
    cx.push_alu(make_mask, args(mask_row, start, length, 0))?;
    cx.push_alu(shift, args(place_row, a, start, 0))?;
    cx.push_alu(merge, args(d, place_row, b, mask_row))
}

fn mask(start: u32, length: u32) -> u32 {
    let ones = if length < 32 {
        (1u64 << length) - 1
    } else {
        u64::from(u32::MAX)
    };
    if start < 32 {
        (ones << start) as u32
    } else {
        0
    }
}

fn permute(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    #[inline(always)]
    fn select(bytes: u64, selector: u32) -> u32 {
        let byte = (bytes >> (8 * (selector & 7))) as u8;
        let byte = if selector & 8 != 0 {
            ((byte as i8) >> 7) as u8
        } else {
            byte
        };
        u32::from(byte)
    }
    #[inline(always)]
    fn join(a: u32, b: u32, selectors: [u32; 4]) -> u32 {
        let bytes = u64::from(b) << 32 | u64::from(a);
        let [s0, s1, s2, s3] = selectors.map(|selector| select(bytes, selector));
        s3 << 24 | s2 << 16 | s1 << 8 | s0
    }
    let modes = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
    let mode = modes.iter().position(|mode| i.has(mode));
    let f = match mode {
        None => alu!(|a: u32, b: u32, c: u32| -> u32 {
            join(a, b, [c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15])
        }),
        Some(_) => alu!(imm m, |a: u32, b: u32, c: u32| -> u32 {
            let c = c & 3;
            let selectors = match m {
                0 => [c, c + 1, c + 2, c + 3],
                1 => [c, (c + 7) & 7, (c + 6) & 7, (c + 5) & 7],
                2 => [c; 4],
                3 => [c, c.max(1), c.max(2), 3],
                4 => [0, c.min(1), c.min(2), c],
                _ => [c & 1, c & 1, c & 1, c & 1].map(|half| 2 * half),
            };
            let selectors = match m {
                5 => [selectors[0], selectors[0] + 1, selectors[0], selectors[0] + 1],
                _ => selectors,
            };
            join(a, b, selectors)
        }),
    };
    cx.compute(i, &[Type::B32; 3], f, mode.unwrap_or(0) as u32)
}

fn logic3(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let Some(Operand::Int(table)) = i.operands.get(4) else {
        return Unsupported::because("a lop3 without a constant table");
    };
    let f = alu!(imm table, |a: u32, b: u32, c: u32| -> u32 {
        let mut out = 0;
        for row in 0..8 {
            if table >> row & 1 == 1 {
                let pick = |x: u32, bit: u32| if row >> bit & 1 == 1 { x } else { !x };
                out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
            }
        }
        out
    });
    let Operand::Pair(to, holds) = operand(i, 0)? else {
        return cx.compute(i, &[Type::B32; 3], f, *table as u32);
    };
    // `lop3.op.b32 d|p, a, b, c, table, q;`: whether the result is not zero, combined with `q`.
    let combine = match () {
        () if i.has("and") => compare::AND,
        () if i.has("or") => compare::OR,
        () => compare::XOR,
    };
    let p = cx.dst_pred(holds)?;
    let other = cx.src_pred(operand(i, 5)?)?;
    let d = match **to {
        Operand::Sink => cx.new_row(),
        _ => cx.dst(to)?,
    };
    let mut sources = [0; 3];
    for (index, source) in sources.iter_mut().enumerate() {
        *source = cx.src(operand(i, index + 1)?, Type::B32)?;
    }
    let [a, b, c] = sources;
    let imm = *table as u32;
    cx.push_alu(
        f,
        crate::lanes::Args {
            d,
            a,
            b,
            c,
            imm,
            ..Default::default()
        },
    )?;
    compare::holds(cx, d, p, other, combine)
}

/// Position of the n-th set bit from a base, upwards or downwards; all ones when there is none.
fn nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    if offset == 0 {
        return if mask >> base & 1 == 1 {
            base
        } else {
            u32::MAX
        };
    }
    let mut left = offset.unsigned_abs();
    let mut position = i64::from(base);
    while (0..32).contains(&position) {
        if mask >> position & 1 == 1 {
            left -= 1;
            if left == 0 {
                return position as u32;
            }
        }
        position += i64::from(offset.signum());
    }
    u32::MAX
}
