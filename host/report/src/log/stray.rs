//! Accesses outside of all memory that a launch went on after, as a log keeps them.

use serde::{Deserialize, Serialize};

use super::{Allocation, Frame};

/// Accesses of one instruction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stray {
    /// `read`, `write` or `atomic`.
    pub op: String,
    /// `global`, `shared` or `local`.
    pub space: String,
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
