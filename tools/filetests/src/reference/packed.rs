//! Instructions on packed values: one scalar instruction per part.

use anyhow::{Result, bail};

use super::{Expected, Opcode, eval, width};

/// Some bits of a result.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The lowest of them.
    pub low: u32,
    /// How many they are.
    pub bits: u32,
    /// What they must be.
    pub expected: Expected,
}

/// The type of one part of a packed type.
fn element(ty: &str) -> Option<&str> {
    ty.strip_suffix("x2")
}

/// The parts of what `opcode` gives for the bits of its source operands: one, or both halves of a
/// packed result, the lower one first.
///
/// # Errors
/// When it is not an instruction that is known here.
pub fn parts(opcode: &str, inputs: &[u64]) -> Result<Vec<Part>> {
    let op = Opcode::new(opcode);
    let types: Vec<_> = op.types().collect();
    if !types.iter().any(|ty| element(ty).is_some()) {
        let bits = match types.first().and_then(|ty| width(ty)) {
            Some(_) if matches!(op.name, "setp" | "testp") => 1,
            _ => 64,
        };
        let expected = eval(opcode, inputs)?;
        let low = 0;
        return Ok(vec![Part {
            low,
            bits,
            expected,
        }]);
    }
    let halves = [0, 1].map(|half| half_of(&op, &types, inputs, half));
    halves.into_iter().collect()
}

/// The part of a result that comes of the lower (0) or upper (1) parts of the operands.
fn half_of(op: &Opcode<'_>, types: &[&str], inputs: &[u64], half: u32) -> Result<Part> {
    let scalar = |suffix: &&str| match *suffix {
        // `set.lt.u32.f16x2`: a half of the result for each.
        "u32" | "s32" if op.name == "set" => "u16".to_owned(),
        other => element(other).unwrap_or(other).to_owned(),
    };
    let suffixes: Vec<_> = op.suffixes.iter().map(scalar).collect();
    let opcode = format!("{}.{}", op.name, suffixes.join("."));
    let Some(&from) = types.last() else {
        bail!("`{}` has no type suffix", op.name);
    };
    let of = |input: u64, bits: u32| input >> (half * bits) & (u64::MAX >> (64 - bits));
    let operands: Vec<u64> = match element(from).and_then(width) {
        // Two scalars are packed into one: the first operand is the upper half.
        None => vec![inputs[1 - half as usize]],
        Some(bits) => {
            let cut = |(n, &input)| match (op.name, n) {
                // The predicate is one for both.
                ("set" | "setp", 2) => input,
                _ => of(input, bits),
            };
            inputs.iter().enumerate().map(cut).collect()
        }
    };
    let bits = match (op.name, element(types[0])) {
        ("setp", _) => 1,
        (_, Some(ty)) => width(ty).unwrap_or(16),
        (_, None) => 16,
    };
    Ok(Part {
        low: half * bits,
        bits,
        expected: eval(&opcode, &operands)?,
    })
}
