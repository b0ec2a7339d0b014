//! Every form of the instructions that compute, as the simulated device executes them (sm_90).
//!
//! Source of the forms: PTX ISA 9.0, chapters 9.7.1 to 9.7.8, of atomics
//! 9.7.13, and of video instructions 9.7.18.

mod atomic;
mod compare;
mod convert;
mod float;
mod integer;
mod video;

use super::Form;

/// All of them.
pub fn all() -> Vec<Form> {
    [
        integer::forms(),
        float::forms(),
        compare::forms(),
        convert::forms(),
        atomic::forms(),
        video::forms(),
    ]
    .concat()
}

/// The integer types of 16 bits and more.
const INTEGERS: [&str; 6] = ["u16", "u32", "u64", "s16", "s32", "s64"];

/// The rounding modes of floating-point results.
const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];

/// `name`, with the suffixes that are not empty.
fn opcode(name: &str, suffixes: &[&str]) -> String {
    let words = suffixes.iter().filter(|suffix| !suffix.is_empty());
    words.fold(name.to_owned(), |text, suffix| text + "." + suffix)
}
