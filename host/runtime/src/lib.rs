//! One checked launch: shadow memory, race records, happens-before.
//!
//! [`Checker`] rewrites modules, arms launches and writes what they found to a log;
//! a [`session::Session`] checks what a program launches on a real driver. The simulated device with a checker in front is
//! the crate `simulated`; this one knows no simulator.

pub mod aliases;
pub mod allocations;
pub mod audit;
pub mod backend;
pub mod between;
pub mod checker;
pub mod choice;
mod code;
mod executed;
mod findings;
mod footprint_observer;
mod footprint_recorder;
mod grace_period;
mod grid;
mod happens_before;
pub mod host_calls;
mod instructions;
mod locking;
mod logged;
mod names;
pub mod options;
mod pairs;
mod phases;
pub mod progress;
mod proofs;
mod repair;
mod replay;
pub mod session;
pub mod shadow_memory;
mod sides;
mod source_position;
pub mod streams;
pub mod traced;
mod used;
mod values;
pub mod variables;
mod verify;

use report::log;

pub use checker::{
    Ancestor, Checker, Extent, LaunchOutcome, ModuleKey, PendingLaunch, Prepared, thread,
};
pub use choice::Choice;
pub use code::{Code, FIRST_SITE};
pub use findings::{Explored, Findings};
pub use footprint_observer::FootprintObserver;
pub use happens_before::HappensBefore;
pub use options::{Mode, Model, Options, Prove, ShadowSize, Show, parse_sample};
pub use used::Used;
pub use verify::Obstacles;
