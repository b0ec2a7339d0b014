//! One checked launch: shadow memory, race records, happens-before.
//!
//! [`Checker`] rewrites modules, arms launches and writes what they found to a log;
//! [`sim::CheckedSim`] is the simulated device with a checker in front; a [`session::Session`] checks what
//! a program launches on a real driver.

pub mod allocations;
pub mod audit;
pub mod checker;
mod code;
mod follower;
mod grid;
pub mod heard;
mod instructions;
mod judged;
mod locking;
mod names;
pub mod options;
mod pairs;
mod patience;
mod phases;
mod place;
pub mod progress;
mod proofs;
mod reference;
mod repair;
mod replay;
pub mod session;
pub mod shadow_memory;
mod sides;
pub mod sim;
mod strays;
pub mod streams;
mod stuck;
mod told;
mod values;
mod watch;

use report::log;

pub use checker::{Begun, Checker, Extent, ModuleKey, Outcome, Prepared};
pub use code::{Code, FIRST_SITE};
pub use options::{Mode, Model, Options, Prove, ShadowSize, Show, parse_sample};
