//! All tests of this folder, as one program: linking one takes longer than most of them run.

mod kernels;
mod machine;
mod random;
mod random_kernels;
mod shapes;
