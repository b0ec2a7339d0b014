//! Instructions that hand a carry flag on (PTX ISA 9.0, chapter 9.7.2).

use anyhow::{Result, bail};

use super::Opcode;
use super::integer::{cut, read};

/// The results of instructions one after the other, each on its own operands.
///
/// A difference is `a + !b + 1`, or with the flag in place of the one, so that the flag is set where
/// nothing is borrowed.
///
/// # Errors
/// When one of them is no addition, subtraction or multiplication.
pub fn chain(opcodes: &[String], operands: &[Vec<u64>]) -> Result<Vec<u64>> {
    let mut flag = false;
    let mut results = Vec::new();
    for (opcode, inputs) in opcodes.iter().zip(operands) {
        let op = Opcode::new(opcode);
        let ty = op.ty()?;
        let bits = super::width(ty).unwrap_or(64);
        let raw = |n: usize| u128::from(cut(i128::from(inputs[n]), bits));
        let takes = op.name.ends_with('c');
        let all = (1u128 << bits) - 1;
        let sum = match op.name {
            "add" | "addc" => raw(0) + raw(1) + u128::from(takes && flag),
            "sub" | "subc" => raw(0) + (all - raw(1)) + u128::from(!takes || flag),
            "mad" | "madc" => {
                let product = match ty.starts_with('s') {
                    true => read(inputs[0], ty).wrapping_mul(read(inputs[1], ty)) as u128,
                    false => raw(0) * raw(1),
                };
                let product = match op.has("hi") {
                    // The sign above the product does not matter: it is cut off.
                    true => product >> bits,
                    false => product,
                };
                (product & all) + raw(2) + u128::from(takes && flag)
            }
            name => bail!("`{name}` hands no carry on"),
        };
        if op.has("cc") {
            flag = sum > all;
        }
        results.push((sum & all) as u64);
    }
    Ok(results)
}
