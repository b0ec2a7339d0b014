//! All tests of this folder in one program, as linking a program takes longer than most tests run.

mod api;
mod c_program;
mod common;
mod graphs;
mod linking;
mod nvcc;
mod textures;
