//! A second opinion on the way from PTX over the simulated device to the happens-before engine.
//!
//! A small interpreter walks through the program's own text, one thread at a time and without warps,
//! masks or convergence. Whenever a thread comes to an instruction that others may notice, it waits
//! until the engine receives it ([`runtime::traced`]); then kind, order, scope, bytes, place, line and
//! lanes must be what the text says, and the thread goes on. So the order of the run is the device's,
//! and everything else is found out again: which threads execute what, which addresses they compute,
//! what they read, when barriers and mbarriers are over, and what memory holds in the end.
//!
//! It shares the parser with the rest and nothing else: neither the table of what instructions mean
//! (`ptx::isa`), nor the device's decoder, nor its execution. What it does not know it says
//! ([`Objection::NotUnderstood`]).
//! * [`code`]: functions as lists of instructions; [`layout`]: where variables in shared memory lie.
//! * [`lane`]: one thread's registers and what an instruction computes; [`alu`] has the arithmetic.
//! * [`want`]: what an instruction must be heard as.
//! * [`memory`], [`barriers`], [`mbarriers`]: what threads share.
//! * [`follow`]: the comparison.
//! * [`faults`]: falsified runs, which it must notice.

mod alu;
mod barriers;
mod code;
pub mod faults;
mod follow;
mod lane;
mod layout;
mod mbarriers;
mod memory;
mod want;

use std::collections::BTreeMap;
use std::fmt;

use ptx::ast::Module;

pub use follow::follow;

/// A launch, as the text and the host say.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The program as it was written.
    pub module: &'a Module,
    /// The kernel.
    pub entry: &'a str,
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// CTAs of a cluster, one behind the other in x.
    pub cluster: u32,
    /// The kernel's parameters.
    pub params: &'a [u8],
    /// Where the module's variables in global memory lie.
    pub variables: &'a BTreeMap<String, u64>,
    /// Global memory before the launch, by address; the module's variables come on top.
    pub memory: &'a [(u64, Vec<u8>)],
    /// What every word of shared memory holds before.
    pub shared_content: u32,
    /// Where a cooperative launch's barrier of the grid lies: its size, and the word that is counted in.
    pub workspace: Option<u64>,
}

/// Why a run is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The program does something that this interpreter does not know, or that PTX leaves undefined.
    NotUnderstood(String),
    /// The engine has received something else.
    Differs {
        /// How many events agree before that.
        after: usize,
        /// What differs.
        what: String,
    },
}

impl Objection {
    fn unknown(what: impl Into<String>) -> Self {
        Self::NotUnderstood(what.into())
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUnderstood(what) => write!(f, "not understood: {what}"),
            Self::Differs { after, what } => write!(f, "after {after} events: {what}"),
        }
    }
}

type Result<T> = std::result::Result<T, Objection>;
