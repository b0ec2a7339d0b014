//! One checked launch: shadow memory, race records, happens-before.
//!
//! [`Checker`] rewrites modules, arms launches and writes what they found to a log;
//! a [`session::Session`] checks what a program launches on a real driver. The simulated device with a checker in front is
//! the crate `simulated`; this one knows no simulator.

pub mod allocations;
pub mod audit;
pub mod between;
pub mod checker;
pub mod choice;
mod code;
mod executed;
mod follower;
mod grid;
pub mod heard;
mod host_calls;
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
pub mod streams;
mod told;
mod used;
mod values;
mod verify;
mod watch;

use report::log;

pub use checker::{Ancestor, Checker, Extent, ModuleKey, Outcome, PendingLaunch, Prepared, thread};
pub use choice::Choice;
pub use code::{Code, FIRST_SITE};
pub use judged::Judged;
pub use options::{Mode, Model, Options, Prove, ShadowSize, Show, parse_sample};
pub use reference::Reference;
pub use used::Used;
pub use verify::Obstacles;
pub use watch::Watch;
