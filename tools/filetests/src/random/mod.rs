//! Small random kernels, to hold the cells against happens-before.
//!
//! [`make`] gives a [`kernel::Kernel`] for a seed, [`text`] writes it down as PTX, [`judge`] runs it
//! and compares the verdicts of one and the same run, [`truth`] knows better where barriers alone
//! order, [`shrink`] makes what disagrees small, [`found`] turns it into a test file, and [`tally`]
//! counts.

pub mod found;
pub mod judge;
pub mod kernel;
pub mod make;
pub mod shrink;
pub mod tally;
pub mod text;
pub mod truth;

pub use simt::Random;
