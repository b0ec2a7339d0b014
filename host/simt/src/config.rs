//! What a device is, what a launch asks for, and what it reports.
//!
//! The limits are those of an sm_90 with 132 multiprocessors (cuda-facts: "Simulated sm_90").

use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use ptx::ParamLayout;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::requests::Requests;
use crate::strays::Strays;
use crate::tallies::Tallies;

/// The simulated device's size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceConfig {
    /// Device memory in bytes. It is reserved, and committed only where it is touched.
    pub memory: u64,
    /// Multiprocessors; with the occupancy of a kernel they say how many CTAs are resident.
    pub sm_count: u32,
    /// Shared memory a CTA may have in bytes, static and dynamic together.
    pub shared_per_cta: u32,
    /// Shared memory of a multiprocessor in bytes.
    pub shared_per_sm: u32,
    /// What every word of shared memory holds when a CTA starts. A GPU leaves there what was there before.
    #[serde(default)]
    pub shared_content: u32,
    /// Bytes a device-side `malloc` may hand out in all.
    pub malloc_heap: u64,
    /// Bytes of stack and local memory of one thread.
    pub local_per_thread: u32,
    /// Name reported to programs.
    pub name: String,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self {
            memory: 16 << 30,
            sm_count: 132,
            shared_per_cta: 232_448,
            shared_per_sm: 233_472,
            shared_content: 0,
            malloc_heap: 8 << 20,
            local_per_thread: 512 << 10,
            name: "simulated sm_90".to_owned(),
        }
    }
}

/// One execution of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y and z; `[1, 1, 1]` leaves it to `.reqnctapercluster`.
    pub cluster: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// Parameter values laid out as [`KernelInfo::params`] says.
    pub params: Vec<u8>,
    /// All CTAs must be resident at once, and may use grid-wide barriers.
    pub cooperative: bool,
    /// It may begin before what is ahead of it in its stream has ended
    /// (`CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`). Here it never does.
    pub programmatic: bool,
    /// Who runs when.
    pub schedule: Schedule,
    /// When to give up.
    pub limits: Limits,
    /// Where `printf` goes.
    pub printf: Sink,
    /// Host threads that run it.
    pub threads: Threads,
    /// Where it leaves what it asks of the device runtime.
    pub requests: Requests,
    /// Goes on after loads, stores, atomics and copies outside of all memory, and leaves them here: what they read is
    /// zero, and what they write goes nowhere. None ends the launch at the first one.
    pub strays: Option<Strays>,
    /// Where it leaves how often its instructions have accessed memory, if somebody wants to know.
    pub tallies: Option<Tallies>,
    /// What errors call the kernel, if it stands for one of another name.
    pub called: Option<String>,
}

impl Launch {
    /// A launch of `grid` CTAs of `block` threads with nothing else asked for.
    pub fn new(grid: [u32; 3], block: [u32; 3], params: Vec<u8>) -> Self {
        Self {
            grid,
            block,
            cluster: [1; 3],
            dynamic_shared: 0,
            params,
            cooperative: false,
            programmatic: false,
            schedule: Schedule::RoundRobin,
            limits: Limits::default(),
            printf: Sink::default(),
            threads: Threads::default(),
            requests: Requests::default(),
            strays: None,
            tallies: None,
            called: None,
        }
    }
}

/// How many threads of the host run the CTAs of a launch.
///
/// Several do only where results do not depend on it: under [`Schedule::RoundRobin`], unobserved,
/// without clusters, cooperation or a limit of instructions, and if CTAs of the kernel neither tell
/// each other anything nor ask where or when they run. Only what a racy program computes, and what
/// a launch that fails leaves in memory, depends on the number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// At most so many; 0 counts as 1.
    pub most: u32,
    /// What the CTAs communicate by atomics and strong accesses decides nothing that counts, so
    /// it is no reason against several threads.
    pub unordered: bool,
    /// Warp instructions that one thread executes before others join it. They do not join it for less
    /// than that either, if the CTAs that are left are like those before. So launches that take no
    /// longer than it takes to wake a thread have one.
    pub after: u64,
}

impl Default for Threads {
    /// One thread.
    fn default() -> Self {
        Self {
            most: 1,
            unordered: false,
            after: 1 << 11,
        }
    }
}

/// Who runs when. Both are deterministic and fair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schedule {
    /// Resident warps in turn.
    #[default]
    RoundRobin,
    /// Warps at random, for random times; the same seed gives the same run.
    Seeded(u64),
}

/// When to give up on a launch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Warp instructions in all.
    pub max_warp_instructions: Option<u64>,
    /// Wall-clock time.
    pub timeout: Option<Duration>,
    /// Asked before every turn of a warp; false ends the launch.
    pub go_on: Option<fn(Progress) -> bool>,
    /// Whether to look for loops that nobody can end: a launch all of whose threads are in such a one, or wait, fails.
    pub endless: bool,
    /// Whether other work waits for the device that might end such a loop.
    pub others_wait: Option<fn() -> bool>,
}

/// How far a launch has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// CTAs that have ended.
    pub done: u64,
    /// CTAs of the launch.
    pub ctas: u64,
}

type Write = dyn FnMut(&[u8]) + Send;

/// Where the device's `printf` writes to. Cheap to clone; clones write to the same place.
#[derive(Clone, Default)]
pub struct Sink(Option<Arc<Mutex<Write>>>);

impl Sink {
    /// Hands every formatted piece of text to `write`.
    pub fn new(write: impl FnMut(&[u8]) + Send + 'static) -> Self {
        Self(Some(Arc::new(Mutex::new(write))))
    }

    /// Collects the text in a buffer that the caller keeps a handle of.
    pub fn buffer() -> (Self, Arc<Mutex<Vec<u8>>>) {
        let buffer = Arc::new(Mutex::new(Vec::new()));
        let inner = Arc::clone(&buffer);
        let sink = Self::new(move |text| {
            if let Ok(mut buffer) = inner.lock() {
                buffer.extend_from_slice(text);
            }
        });
        (sink, buffer)
    }

    pub(crate) fn write(&self, text: &[u8]) {
        if let Some(Ok(mut write)) = self.0.as_ref().map(|write| write.lock()) {
            write(text);
        }
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "Sink(..)"
        } else {
            "Sink(discard)"
        })
    }
}

/// What a launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchStats {
    /// Instructions issued, each for the lanes of a warp that were together.
    pub warp_instructions: u64,
    /// Instructions executed by single threads: predicated-off lanes do not count.
    pub thread_instructions: u64,
    /// 32-byte sectors of global memory touched, per warp instruction.
    pub global_sectors: u64,
    /// Instructions that order accesses for threads all over the device: fences, acquires and releases of
    /// gpu or sys scope, each for the lanes of a warp that were together (PTX ISA, "Memory Consistency
    /// Model"). ptxas makes `MEMBAR` or `CCTL.IVALL` of them for sm_90.
    pub device_fences: u64,
    /// CTAs that were resident at once, at most.
    pub resident_ctas: u64,
}

/// A variable in the shared memory of a CTA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedVariable {
    /// Its name, mangled.
    pub name: SmolStr,
    /// Offset of its first byte.
    pub offset: u32,
    /// Its size; none for dynamic shared memory, whose size the launch gives.
    pub bytes: Option<u32>,
}

/// What a host may ask about a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// Where each parameter lies.
    pub params: Vec<ParamLayout>,
    /// Size of the parameter block in bytes.
    pub param_bytes: u32,
    /// Static shared memory in bytes.
    pub static_shared: u32,
    /// Local memory of one thread in bytes, callees not counted.
    pub local_bytes: u32,
    /// Constant memory of the module in bytes.
    pub const_bytes: u32,
    /// Largest CTA in threads: `.maxntid`, `.reqntid` or 1024.
    pub max_threads: u32,
    /// 32-bit registers of one thread, as far as they can be told from the PTX.
    pub registers: u32,
    /// The architecture that its PTX is for, such as 80.
    pub architecture: u32,
    /// `.reqntid`, if given.
    pub required_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`, if given.
    pub cluster: Option<[u32; 3]>,
    /// Variables in shared memory, by their offset.
    pub shared: Arc<[SharedVariable]>,
}
