//! A launch that is stuck, as a log keeps it.

use serde::{Deserialize, Serialize};

use super::{Allocation, Frame, Space};

/// Who waits for what, and who does not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stuck {
    /// One for each place and reason.
    pub waits: Vec<Wait>,
    /// Places and reasons that are left out.
    pub more: u64,
    /// CTAs that have ended.
    pub exited: u64,
    /// Indices of the first of them, where they are known.
    pub first_exited: Vec<[u32; 3]>,
    /// CTAs that have not started, because the waiting CTAs occupy the device.
    pub unstarted: u64,
    /// Threads that have exited, of CTAs that have not ended.
    pub exited_threads: u64,
}

/// Threads that wait at one place for one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// What they wait for.
    pub on: On,
    /// How many.
    pub threads: u64,
    /// Of how many CTAs.
    pub blocks: u64,
    /// Index of the first of them in its CTA.
    pub thread: [u32; 3],
    /// Index of its CTA.
    pub block: [u32; 3],
    /// Line of the module's PTX.
    pub ptx_line: u32,
    /// Source lines, innermost inlined function first.
    pub frames: Vec<Frame>,
}

/// What threads wait for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// Nothing: they can go on, in a launch that was interrupted.
    Running,
    /// Other threads of their warp.
    Lanes,
    /// A barrier of their CTA.
    Barrier {
        /// Which.
        id: u32,
        /// Threads that have come to it.
        arrived: u32,
        /// Threads that it waits for.
        expected: u32,
    },
    /// The barrier of their cluster.
    Cluster {
        /// Threads that have come to it.
        arrived: u32,
        /// Threads of the cluster that have not exited.
        expected: u32,
    },
    /// The barrier of a cooperative launch.
    Grid,
    /// Another value in memory.
    Memory {
        /// Which.
        space: Space,
        /// Address in that space.
        address: u64,
        /// Bytes that they look at.
        bytes: u32,
        /// What is there.
        value: u64,
        /// What the memory belongs to.
        allocation: Option<Allocation>,
    },
    /// The phase of an mbarrier.
    Mbarrier {
        /// Address in shared memory.
        address: u64,
        /// Arrivals that are outstanding.
        arrivals: u64,
        /// Bytes that are outstanding; negative when more have come than were expected.
        bytes: i64,
    },
    /// Nothing: they are in a loop that looks at no memory.
    #[default]
    Nothing,
}
