//! What instructions on registers compute, for the integer part of PTX.

use ptx::ast::{Instruction, Type};

use super::{Objection, Result};

/// The lowest bytes of a value, extended as a type wants it.
pub(super) fn extend(value: u64, ty: Type) -> u64 {
    let bits = 8 * ty.bytes();
    if bits == 0 || bits >= 64 {
        return value;
    }
    let low = value & ((1 << bits) - 1);
    match ty.is_signed() && low >> (bits - 1) & 1 == 1 {
        true => low | u64::MAX << bits,
        false => low,
    }
}

/// What the last type of an instruction is.
pub(super) fn ty(instruction: &Instruction) -> Result<Type> {
    let last = instruction.types().pop();
    last.ok_or_else(|| Objection::unknown(format!("{} without a type", instruction.opcode)))
}

/// The result of an instruction that computes, from its sources.
pub(super) fn compute(instruction: &Instruction, sources: &[u64]) -> Result<u64> {
    let name = instruction.opcode.as_str();
    let unknown = || {
        let suffixes = instruction.suffixes.join(".");
        Objection::unknown(format!("{name}.{suffixes}"))
    };
    let ty = ty(instruction)?;
    let types = instruction.types();
    if types.iter().any(|ty| ty.is_float()) {
        return Err(unknown());
    }
    if instruction.has("sat") || instruction.has("cc") {
        return Err(unknown());
    }
    let bits = 8 * ty.bytes();
    let value = |number: usize| sources.get(number).copied().ok_or_else(unknown);
    let of = |number: usize| Ok::<u64, Objection>(extend(value(number)?, ty));
    let predicates = ty == Type::Pred;
    let result = match name {
        "mov" | "cvta" => return value(0),
        // The source has the second type.
        "cvt" => {
            let [to, from] = types[..] else {
                return Err(unknown());
            };
            return Ok(extend(extend(value(0)?, from), to));
        }
        "add" => of(0)?.wrapping_add(of(1)?),
        "sub" => of(0)?.wrapping_sub(of(1)?),
        "mul" | "mad" => {
            let product = match () {
                () if instruction.has("wide") => {
                    let wide = of(0)?.wrapping_mul(of(1)?);
                    let sum = match name {
                        "mad" => wide.wrapping_add(value(2)?),
                        _ => wide,
                    };
                    return Ok(match bits {
                        16 => sum & 0xffff_ffff,
                        _ => sum,
                    });
                }
                () if instruction.has("lo") => of(0)?.wrapping_mul(of(1)?),
                () => return Err(unknown()),
            };
            match name {
                "mad" => product.wrapping_add(of(2)?),
                _ => product,
            }
        }
        "and" => of(0)? & of(1)?,
        "or" => of(0)? | of(1)?,
        "xor" => of(0)? ^ of(1)?,
        "not" if predicates => u64::from(value(0)? == 0),
        "not" => !of(0)?,
        "neg" => of(0)?.wrapping_neg(),
        "shl" => match value(1)? & 0xffff_ffff {
            by if by >= u64::from(bits) => 0,
            by => of(0)? << by,
        },
        "shr" => {
            let by = (value(1)? & 0xffff_ffff).min(63);
            match ty.is_signed() {
                true => (of(0)? as i64 >> by) as u64,
                false if by >= u64::from(bits) => 0,
                false => of(0)? >> by,
            }
        }
        "min" | "max" => {
            let (a, b) = (of(0)?, of(1)?);
            let less = match ty.is_signed() {
                true => (a as i64) < b as i64,
                false => a < b,
            };
            if less == (name == "min") { a } else { b }
        }
        "selp" => match value(2)? {
            0 => of(1)?,
            _ => of(0)?,
        },
        "bfi" => {
            let (start, length) = (value(2)? & 0xff, value(3)? & 0xff);
            let mask = match length {
                0 => 0,
                1..64 => (1 << length) - 1,
                _ => u64::MAX,
            };
            let mask = mask.checked_shl(start as u32).unwrap_or(0);
            let inserted = of(0)?.checked_shl(start as u32).unwrap_or(0);
            of(1)? & !mask | inserted & mask
        }
        "popc" => return Ok(extend(value(0)?, ty).count_ones().into()),
        "div" | "rem" => {
            let (a, b) = (of(0)?, of(1)?);
            if b == 0 || ty.is_signed() {
                return Err(unknown());
            }
            if name == "div" { a / b } else { a % b }
        }
        "setp" => return compare(instruction, of(0)?, of(1)?, ty).ok_or_else(unknown),
        _ => return Err(unknown()),
    };
    Ok(match predicates {
        true => u64::from(result & 1 != 0),
        false => extend(result, ty),
    })
}

fn compare(instruction: &Instruction, a: u64, b: u64, ty: Type) -> Option<u64> {
    // With two predicates combined, there are more suffixes.
    if instruction.suffixes.len() != 2 {
        return None;
    }
    let order = match ty.is_signed() {
        true => (a as i64).cmp(&(b as i64)),
        false => a.cmp(&b),
    };
    let holds = match instruction.suffixes.first()?.as_str() {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "lt" | "lo" => order.is_lt(),
        "le" | "ls" => order.is_le(),
        "gt" | "hi" => order.is_gt(),
        "ge" | "hs" => order.is_ge(),
        _ => return None,
    };
    Some(u64::from(holds))
}

/// What an atomic leaves in memory.
pub(super) fn update(instruction: &Instruction, ty: Type, old: u64, a: u64, b: u64) -> Result<u64> {
    if ty.is_float() {
        return Err(Objection::unknown("a floating-point atomic"));
    }
    let (old, a, b) = (extend(old, ty), extend(a, ty), extend(b, ty));
    let less = match ty.is_signed() {
        true => (a as i64) < old as i64,
        false => a < old,
    };
    let has = |name| instruction.has(name);
    Ok(match () {
        () if has("add") => old.wrapping_add(a),
        () if has("exch") => a,
        () if has("cas") => match old == a {
            true => b,
            false => old,
        },
        () if has("and") => old & a,
        () if has("or") => old | a,
        () if has("xor") => old ^ a,
        () if has("min") => match less {
            true => a,
            false => old,
        },
        () if has("max") => match less {
            true => old,
            false => a,
        },
        () if has("inc") => match old >= a {
            true => 0,
            false => old + 1,
        },
        () if has("dec") => match old == 0 || old > a {
            true => a,
            false => old - 1,
        },
        () => return Err(Objection::unknown("an atomic")),
    })
}
