//! Runs the files under `tests/` through every oracle.
//!
//! A test is one file: a PTX kernel whose header lines `//@ key: value` say how to run it and what
//! to expect (docs/adding-a-test.md).
//! * [`exec`]: what a kernel computes, against [`reference`] or an expression, on the original and
//!   on the rewritten text.
//! * [`arithmetic`]: every instruction that computes, on random operands, against [`reference`].
//! * [`race`]: which accesses race, against the `//~ race` marks in the file.
//! * [`definition`]: races by their definition, over all that happened in a run.
//! * [`gpu`]: both of them on a driver, in processes of their own.
//! * [`affine`]: kernels made from seeds, on which proofs at the launch are held against what threads do.
//! * [`random`]: kernels made from seeds, on which the oracles are held against each other.
//! * [`retrace`]: a second opinion on what the engine receives of a run.
//! * [`table`]: the verdicts of [`race`], counted.
//! * [`merged`]: several texts as one module for an assembler.
//! * [`syntax`]: every `.ptx` in the tree prints back and erases back to itself.

pub mod advised;
pub mod affine;
pub mod args;
pub mod arithmetic;
pub mod definition;
mod events;
pub mod exec;
pub mod expr;
pub mod files;
pub mod gpu;
pub mod header;
pub mod inputs;
pub mod instructions;
pub mod interference;
pub mod machine;
pub mod merged;
pub mod mutate;
pub mod race;
pub mod random;
pub mod reference;
pub mod retrace;
pub mod syntax;
pub mod table;
