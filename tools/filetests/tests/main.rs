//! All tests of this folder in one program, as linking a program takes longer than most tests run.

mod affine;
mod arithmetic;
mod definition;
mod gpu;
mod instructions;
mod phases;
mod random;
mod retrace;
mod specialised;
mod verdicts;
