//! All tests of this folder, as one program: linking one takes longer than most of them run.

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
