//! All tests of this folder, as one program: linking one takes longer than most of them run.

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
