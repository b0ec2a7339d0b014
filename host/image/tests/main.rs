//! All tests of this folder in one program, as linking a program takes longer than most tests run.

mod fatbin;
mod nvcc;
