//! Integer, logic, shift and comparison instructions (PTX ISA 9.0, chapters 9.7.1, 9.7.7, 9.7.8).

use anyhow::{Result, bail};

use super::Opcode;
use crate::header::bits;

/// The low `width` bits.
fn cut(value: i128, width: u32) -> u64 {
    (value as u128 & ((1 << width) - 1)) as u64
}

/// `bits` read as `ty`: sign-extended when signed.
pub(super) fn read(value: u64, ty: &str) -> i128 {
    let width = bits(ty).unwrap_or(64);
    let low = i128::from(cut(i128::from(value), width));
    if ty.starts_with('s') && low >> (width - 1) != 0 {
        low - (1 << width)
    } else {
        low
    }
}

/// Smallest and largest value of `ty`.
pub(super) fn range(ty: &str) -> (i128, i128) {
    let width = bits(ty).unwrap_or(64);
    if ty.starts_with('s') {
        (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        (0, (1 << width) - 1)
    }
}

pub(super) fn eval(op: &Opcode<'_>, ty: &str, inputs: &[u64]) -> Result<u64> {
    let width = bits(ty).unwrap_or(64);
    let arg = |n: usize| read(inputs[n], ty);
    let raw = |n: usize| cut(i128::from(inputs[n]), width);
    let product = |n: usize| {
        if ty.starts_with('s') {
            let full = arg(n) * arg(n + 1);
            return if op.has("hi") { full >> width } else { full };
        }
        // The product of two unsigned 64-bit values needs all 128 bits.
        let full = u128::from(raw(n)) * u128::from(raw(n + 1));
        (if op.has("hi") { full >> width } else { full }) as i128
    };
    let out = if op.has("wide") { width * 2 } else { width };
    let saturate = |v: i128| {
        if op.has("sat") {
            v.clamp(range(ty).0, range(ty).1)
        } else {
            v
        }
    };
    let value = match op.name {
        "add" => saturate(arg(0) + arg(1)),
        "sub" => saturate(arg(0) - arg(1)),
        "mul" => product(0),
        "mad" => saturate(product(0).wrapping_add(read_as(inputs[2], ty, out))),
        "mul24" | "mad24" => {
            let a = low24(inputs[0], ty) * low24(inputs[1], ty);
            let a = if op.has("hi") {
                a >> 16
            } else {
                cut_signed(a, 32, ty)
            };
            if op.name == "mad24" { a + arg(2) } else { a }
        }
        "sad" => arg(2) + (arg(0) - arg(1)).abs(),
        // Division by zero is left open by the ISA; the inputs avoid it.
        "div" => arg(0) / arg(1),
        "rem" => arg(0) % arg(1),
        "abs" => arg(0).abs(),
        "neg" => -arg(0),
        "min" => arg(0).min(arg(1)),
        "max" => arg(0).max(arg(1)),
        "and" => i128::from(raw(0) & raw(1)),
        "or" => i128::from(raw(0) | raw(1)),
        "xor" => i128::from(raw(0) ^ raw(1)),
        "not" => i128::from(!raw(0)),
        "cnot" => i128::from(raw(0) == 0),
        "shl" => shift(raw(0).into(), inputs[1] as u32, width, |v, n| v << n),
        // An arithmetic shift by the width or more leaves copies of the sign.
        "shr" => arg(0) >> (inputs[1] as u32).min(width).min(127),
        "popc" => return Ok(u64::from(raw(0).count_ones())),
        "clz" => return Ok(u64::from(raw(0).leading_zeros() - (64 - width))),
        "brev" => i128::from(raw(0).reverse_bits() >> (64 - width)),
        "bfind" => return Ok(bfind(arg(0), width, op.has("shiftamt"))),
        "bfe" => bfe(arg(0), inputs[1], inputs[2], ty, width),
        "bfi" => bfi(raw(0), raw(1), inputs[2], inputs[3], width),
        "shf" => shf(op, raw(0), raw(1), inputs[2] as u32),
        "bmsk" => bmsk(op, inputs[0] as u32, inputs[1] as u32),
        "prmt" => prmt(raw(0), raw(1), raw(2)),
        "dp4a" => dp4a(op, inputs),
        "selp" => {
            if inputs[2] & 1 != 0 {
                arg(0)
            } else {
                arg(1)
            }
        }
        "setp" => return Ok(u64::from(compare(op, arg(0), arg(1))?)),
        "set" => {
            return Ok(if compare(op, arg(0), arg(1))? {
                0xffff_ffff
            } else {
                0
            });
        }
        name => bail!("no CPU reference for integer `{name}`"),
    };
    Ok(cut(value, out))
}

fn read_as(value: u64, ty: &str, width: u32) -> i128 {
    read(value, &format!("{}{width}", &ty[..1]))
}

fn low24(value: u64, ty: &str) -> i128 {
    cut_signed(i128::from(value), 24, ty)
}

fn cut_signed(value: i128, width: u32, ty: &str) -> i128 {
    let low = i128::from(cut(value, width));
    if ty.starts_with('s') && low >> (width - 1) != 0 {
        low - (1 << width)
    } else {
        low
    }
}

fn shift(value: i128, by: u32, width: u32, f: impl Fn(i128, u32) -> i128) -> i128 {
    if by >= width { 0 } else { f(value, by) }
}

/// Position of the most significant non-sign bit, or all ones when there is none.
fn bfind(value: i128, width: u32, shiftamt: bool) -> u64 {
    let value = if value < 0 { !value } else { value };
    match (0..width).rev().find(|&bit| value >> bit & 1 == 1) {
        None => 0xffff_ffff,
        Some(bit) if shiftamt => u64::from(width - 1 - bit),
        Some(bit) => u64::from(bit),
    }
}

/// Bit by bit, as the ISA's pseudo-code has it.
fn bfe(a: i128, pos: u64, len: u64, ty: &str, width: u32) -> i128 {
    let (pos, len) = ((pos & 0xff) as u32, (len & 0xff) as u32);
    let msb = width - 1;
    let bit = |n: u32| a >> n & 1;
    let sign = match ty.starts_with('s') && len > 0 {
        true => bit((pos + len - 1).min(msb)),
        false => 0,
    };
    (0..width).fold(0, |d, i| {
        let b = if i < len && pos + i <= msb {
            bit(pos + i)
        } else {
            sign
        };
        d | b << i
    })
}

fn bfi(a: u64, b: u64, pos: u64, len: u64, width: u32) -> i128 {
    let (pos, len) = ((pos & 0xff) as u32, (len & 0xff) as u32);
    let mut f = b;
    for i in 0..len.min(width) {
        if pos + i < width {
            f = f & !(1 << (pos + i)) | (a >> i & 1) << (pos + i);
        }
    }
    i128::from(f)
}

/// `d = {b, a} << n` (upper half) or `{b, a} >> n` (lower half).
fn shf(op: &Opcode<'_>, a: u64, b: u64, n: u32) -> i128 {
    let n = if op.has("clamp") { n.min(32) } else { n & 31 };
    let both = i128::from(b) << 32 | i128::from(a);
    if op.has("l") {
        both << n >> 32
    } else {
        both >> n
    }
}

fn bmsk(op: &Opcode<'_>, start: u32, length: u32) -> i128 {
    let limit = |v: u32| if op.has("clamp") { v.min(32) } else { v & 31 };
    let (start, length) = (limit(start), limit(length));
    (0..32)
        .filter(|&bit| bit >= start && bit < start + length)
        .fold(0, |mask, bit| mask | 1 << bit)
}

fn prmt(a: u64, b: u64, selector: u64) -> i128 {
    let bytes = (b << 32 | a).to_le_bytes();
    (0..4).fold(0, |result, n| {
        let control = selector >> (4 * n);
        let byte = bytes[(control & 7) as usize];
        let sign = if byte & 0x80 != 0 { 0xff } else { 0 };
        let byte = if control & 8 != 0 { sign } else { byte };
        result | i128::from(byte) << (8 * n)
    })
}

/// `dp4a.atype.btype`: four byte products added to `c`.
fn dp4a(op: &Opcode<'_>, inputs: &[u64]) -> i128 {
    let signed: Vec<bool> = op.types().map(|ty| ty.starts_with('s')).collect();
    let byte = |n: usize, lane: u32| {
        let byte = (inputs[n] >> (8 * lane)) as u8;
        if signed[n] {
            i128::from(byte as i8)
        } else {
            i128::from(byte)
        }
    };
    (0..4).fold(i128::from(inputs[2] as u32), |sum, lane| {
        sum + byte(0, lane) * byte(1, lane)
    })
}

fn compare(op: &Opcode<'_>, a: i128, b: i128) -> Result<bool> {
    Ok(match op.suffixes[0] {
        "eq" => a == b,
        "ne" => a != b,
        "lt" | "lo" => a < b,
        "le" | "ls" => a <= b,
        "gt" | "hi" => a > b,
        "ge" | "hs" => a >= b,
        other => bail!("unknown integer comparison `.{other}`"),
    })
}
