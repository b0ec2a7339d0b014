//! What a machine computes from numbers.

use crate::graph::Op;

/// The result of an operation on numbers, as bits. None where it is undefined or not followed.
pub(crate) fn compute(op: Op, signed: bool, bits: u32, inputs: [u64; 3]) -> Option<u64> {
    let mask = mask(bits);
    let [a, b, c] = inputs;
    let (a, b) = match op {
        Op::MulWide => (a, b),
        _ => (a & mask, b),
    };
    let as_signed = |value: u64, bits: u32| {
        let shift = 64 - bits.min(64);
        (value << shift) as i64 >> shift
    };
    let (x, y) = (
        i128::from(as_signed(a, bits)),
        i128::from(as_signed(b, bits)),
    );
    let (u, v) = (u128::from(a), u128::from(b & mask));
    let result = match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::MulHigh if signed => ((x * y) >> bits) as u64,
        Op::MulHigh => ((u * v) >> bits) as u64,
        Op::MulWide => {
            let half = bits / 2;
            let low = self::mask(half);
            match signed {
                true => as_signed(a, half).wrapping_mul(as_signed(b, half)) as u64,
                false => (a & low).wrapping_mul(b & low),
            }
        }
        Op::Div | Op::Rem if b & mask == 0 => return None,
        Op::Div if signed => (x / y) as u64,
        Op::Div => (u / v) as u64,
        Op::Rem if signed => (x % y) as u64,
        Op::Rem => (u % v) as u64,
        // Amounts are clamped.
        Op::Shl => match b & 0xffff_ffff {
            by if by >= u64::from(bits) => 0,
            by => a << by,
        },
        Op::Shr => {
            let by = (b & 0xffff_ffff).min(127) as u32;
            match signed {
                true => (x >> by.min(bits)) as u64,
                false => u.checked_shr(by).unwrap_or(0) as u64,
            }
        }
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Not => !a,
        Op::Neg => a.wrapping_neg(),
        Op::Abs => x.unsigned_abs() as u64,
        Op::Min if signed => x.min(y) as u64,
        Op::Min => u.min(v) as u64,
        Op::Max if signed => x.max(y) as u64,
        Op::Max => u.max(v) as u64,
        Op::Convert {
            from,
            to,
            to_signed,
        } => {
            let value = match signed {
                true => as_signed(inputs[0], from) as u64,
                false => inputs[0] & self::mask(from),
            };
            match to_signed {
                true => as_signed(value, to) as u64,
                false => value & self::mask(to),
            }
        }
        Op::Field if !signed => {
            let (from, count) = (b & 0xff, c & 0xff);
            let field = if from >= u64::from(bits) {
                0
            } else {
                a >> from
            };
            if count >= 64 {
                field
            } else {
                field & ((1 << count) - 1)
            }
        }
        Op::Field | Op::Generic | Op::FromGeneric => return None,
    };
    Some(result & mask)
}

/// As many ones.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}
