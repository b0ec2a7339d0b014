//! All tests of this folder in one program, as linking a program takes longer than most tests run.

mod barriers;
mod calls;
mod common;
mod divergence;
mod endless;
mod faults;
mod fuzz;
mod groups;
mod halves;
mod matrices;
mod products;
mod spaces;
mod textures;
mod threads;
mod video;
