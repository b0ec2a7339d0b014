//! Integer, logic and shift instructions (PTX ISA 9.0, chapters 9.7.1 and 9.7.8).

use anyhow::{Context, Result, bail};

use super::{Opcode, width as bits};

/// The low `width` bits.
pub(super) fn cut(value: i128, width: u32) -> u64 {
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
            if op.name == "mad24" {
                saturate(a + arg(2))
            } else {
                a
            }
        }
        "sad" => arg(2) + (arg(0) - arg(1)).abs(),
        // The ISA leaves division by zero open; all ones is what GPUs give.
        "div" | "rem" if arg(1) == 0 => -1,
        "div" => arg(0) / arg(1),
        "rem" => arg(0) % arg(1),
        "abs" => arg(0).abs(),
        "neg" => -arg(0),
        "min" | "max" => {
            let value = match op.name {
                "min" => arg(0).min(arg(1)),
                _ => arg(0).max(arg(1)),
            };
            if op.has("relu") { value.max(0) } else { value }
        }
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
        "prmt" => prmt(op, raw(0), raw(1), raw(2)),
        "lop3" => return lop3(op, inputs),
        "szext" => szext(op, arg(0), inputs[1] as u32),
        "fns" => fns(raw(0), inputs[1] as u32, inputs[2] as i32),
        "dp4a" => dot(op, inputs, 8),
        "dp2a" => dot(op, inputs, 16),
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

/// Bytes picked by the four nibbles of the selector, or by a mode and its two lowest bits.
fn prmt(op: &Opcode<'_>, a: u64, b: u64, selector: u64) -> i128 {
    let bytes = (b << 32 | a).to_le_bytes();
    // Rows by the selector; in each the bytes of the result, the highest first, as in the ISA's table.
    let table = match op.suffixes.last() {
        Some(&"f4e") => [0x3210, 0x4321, 0x5432, 0x6543],
        Some(&"b4e") => [0x5670, 0x6701, 0x7012, 0x0123],
        Some(&"rc8") => [0x0000, 0x1111, 0x2222, 0x3333],
        Some(&"ecl") => [0x3210, 0x3211, 0x3222, 0x3333],
        Some(&"ecr") => [0x0000, 0x1110, 0x2210, 0x3210],
        Some(&"rc16") => [0x1010, 0x3232, 0x1010, 0x3232],
        _ => [selector; 4],
    };
    let control = table[(selector & 3) as usize];
    (0..4).fold(0, |result, n| {
        let control = control >> (4 * n);
        let byte = bytes[(control & 7) as usize];
        let sign = if byte & 0x80 != 0 { 0xff } else { 0 };
        let byte = if control & 8 != 0 { sign } else { byte };
        result | i128::from(byte) << (8 * n)
    })
}

/// Bit by bit from the table in the last operand; with `.or` or `.and` the predicate of the result
/// and the one in the fourth.
fn lop3(op: &Opcode<'_>, inputs: &[u64]) -> Result<u64> {
    let table = *inputs.last().context("`lop3` without a table")?;
    let given = inputs[3] & 1 != 0;
    let bit = |bit: u32| {
        let row = (0..3).fold(0, |row, n| row << 1 | (inputs[n] >> bit & 1));
        (table >> row & 1) << bit
    };
    let value: u64 = (0..32).map(bit).sum();
    Ok(match op.suffixes[0] {
        "or" => u64::from(value != 0 || given),
        "and" => u64::from(value != 0 && given),
        _ => value,
    })
}

/// As the ISA's pseudo-code has it, with the operand as a number.
fn szext(op: &Opcode<'_>, a: i128, size: u32) -> i128 {
    let size = match op.has("clamp") {
        true => size.min(32),
        false => size & 31,
    };
    let low = i128::from(cut(a, size));
    match size {
        0 => 0,
        _ if op.has("s32") && low >> (size - 1) != 0 => low - (1 << size),
        _ => low,
    }
}

/// Position of the n-th set bit from `base`, as the ISA's pseudo-code finds it.
fn fns(mask: u64, base: u32, offset: i32) -> i128 {
    let set = |position: i64| mask >> position & 1 == 1;
    let base = i64::from(base);
    if offset == 0 {
        return if set(base) { base.into() } else { -1 };
    }
    let step = i64::from(offset.signum());
    let nth = offset.unsigned_abs() as usize - 1;
    let positions = (0..32).map(|n| base + step * n);
    let mut found = positions.filter(|position| (0..32).contains(position) && set(*position));
    found.nth(nth).map_or(-1, i128::from)
}

/// `dp4a` and `dp2a`: products of parts of the first operand with bytes of the second, added to the
/// third.
fn dot(op: &Opcode<'_>, inputs: &[u64], part: u32) -> i128 {
    let signed: Vec<bool> = op.types().map(|ty| ty.starts_with('s')).collect();
    let field = |n: usize, low: u32, bits: u32| {
        let field = i128::from(inputs[n] >> low & ((1 << bits) - 1));
        if signed[n] && field >> (bits - 1) != 0 {
            field - (1 << bits)
        } else {
            field
        }
    };
    let first = if op.has("hi") { 16 } else { 0 };
    (0..32 / part).fold(i128::from(inputs[2] as u32), |sum, n| {
        sum + field(0, part * n, part) * field(1, first + 8 * n, 8)
    })
}

/// Logic on predicates.
pub(super) fn predicate(op: &Opcode<'_>, inputs: &[u64]) -> Result<u64> {
    Ok(match op.name {
        "and" => inputs[0] & inputs[1],
        "or" => inputs[0] | inputs[1],
        "xor" => inputs[0] ^ inputs[1],
        "not" => inputs[0] ^ 1,
        name => bail!("no CPU reference for `{name}` of predicates"),
    } & 1)
}

/// `cvt.pack.sat.type.s32{.b32}`: both at the ends of the type's range at most, the second lowest,
/// and below the third.
pub(super) fn pack(op: &Opcode<'_>, inputs: &[u64]) -> Result<u64> {
    let ty = *op.suffixes.get(2).context("`cvt.pack` without a type")?;
    let bits: u32 = ty[1..].parse()?;
    let (low, high) = match ty.starts_with('s') {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let part = |n: usize| cut(read(inputs[n], "s32").clamp(low, high), bits);
    let above = inputs.get(2).copied().unwrap_or(0);
    let all = u128::from(above) << (2 * bits) | u128::from(part(0) << bits | part(1));
    Ok(all as u32 as u64)
}
