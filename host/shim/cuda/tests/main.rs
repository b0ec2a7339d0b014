//! All tests of this folder, as one program: linking one takes longer than most of them run.

mod api;
mod c_program;
mod common;
mod graphs;
mod linking;
mod nvcc;
mod textures;
