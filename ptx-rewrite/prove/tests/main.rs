//! All tests of this folder in one program, as linking a program takes longer than most tests run.

mod kernels;
mod machine;
mod random;
mod random_kernels;
mod shapes;
