//! Random kernels whose addresses are mostly linear, to hold proofs at the launch against what threads do.
//!
//! [`make`] writes a kernel and a launch for a seed, [`run`] runs it on the simulated device and notes who accesses
//! what between which barriers, and [`judge`] compares every pair of accesses with what [`prove`] says of the launch.

pub mod judge;
pub mod make;
pub mod run;
