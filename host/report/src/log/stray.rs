//! Accesses outside of all memory that a launch went on after, as a log keeps them.

use serde::{Deserialize, Serialize};
use strum::Display;

use super::{Act, Allocation, Frame};

/// Accesses of one instruction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stray {
    /// What each does.
    pub op: Act,
    /// The memory that it would be in.
    pub space: StraySpace,
    /// Bytes of one thread.
    pub bytes: u64,
    /// Address of the first one, in its space.
    pub address: u64,
    /// The allocation of device memory that is nearest to it.
    pub nearest: Option<Allocation>,
    /// Bytes of that space that a thread has, where it is not global.
    pub size: u64,
    /// Its thread, in its CTA.
    pub thread: [u32; 3],
    /// Index of the CTA.
    pub block: [u32; 3],
    /// How many accesses there were.
    pub count: u64,
    /// Line of the module's PTX.
    pub ptx_line: u32,
    /// Source lines, innermost inlined function first.
    pub frames: Vec<Frame>,
}

/// A memory that a thread can miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StraySpace {
    /// Global memory.
    #[default]
    Global,
    /// Shared memory.
    Shared,
    /// Local memory.
    Local,
}
