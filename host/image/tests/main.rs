//! All tests of this folder, as one program: linking one takes longer than most of them run.

mod fatbin;
mod nvcc;
