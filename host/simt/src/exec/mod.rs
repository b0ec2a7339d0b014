//! Running a decoded kernel.

mod access;
mod address;
mod atomic;
mod barriers;
mod builtin;
mod call;
mod contest;
mod copy;
mod crew;
mod cta;
mod exchange;
mod fault;
mod grid;
mod launching;
mod machine;
mod matrix;
mod mbarrier;
mod printf;
mod queue;
mod random;
mod sharing;
mod special;
mod spin;
mod stack;
mod step;
mod strong;
mod surface;
mod texture;
mod threads;
mod warp;

pub(crate) use crew::Crew;
pub(crate) use grid::{occupancy, run};
pub(crate) use machine::Setup;
pub(crate) use threads::run_unobserved;
