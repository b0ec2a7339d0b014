//! All tests of this folder in one program, as linking a program takes longer than most tests run.

mod any_text;
mod golden;
mod grid;
mod kernels;
mod nvcc;
mod tree;
