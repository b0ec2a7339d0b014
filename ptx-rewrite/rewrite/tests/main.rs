//! All tests of this folder, as one program: linking one takes longer than most of them run.

mod any_text;
mod golden;
mod kernels;
mod nvcc;
mod tree;
