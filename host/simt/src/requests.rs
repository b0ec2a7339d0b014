//! What kernels ask of the device runtime: kernels, copies and fills, which run when the grid has ended.
//!
//! Source: CUDA C++ Programming Guide 13.0, "CUDA Dynamic Parallelism". A grid cannot wait for what it
//! has launched, so running all of that behind it is one of the orders that CUDA allows; who has made
//! the launch runs it. Departure: requests that wait are limited by memory alone, and not by
//! `cudaLimitDevRuntimePendingLaunchCount`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// How many grids may stand between one and the host.
const DEPTH: u32 = 24;

/// A kernel that a kernel has launched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Child {
    /// Its name.
    pub kernel: String,
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The parameter block.
    pub params: Vec<u8>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A kernel.
    Launch(Child),
    /// A copy of bytes within the device's memory.
    Copy {
        /// First byte read.
        from: u64,
        /// First byte written.
        to: u64,
        /// How many.
        bytes: u64,
    },
    /// Bytes of one value.
    Fill {
        /// First byte.
        address: u64,
        /// The value.
        value: u8,
        /// How many.
        bytes: u64,
    },
    /// The event of that handle is recorded.
    Record(u64),
    /// The stream waits for the event of that handle.
    Wait(u64),
}

/// A request of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Linear index of the CTA in the grid.
    pub cta: u64,
    /// Linear index of the thread in its CTA.
    pub thread: u32,
    /// Byte offset of the instruction in the module's text.
    pub offset: u32,
    /// Handle of the stream: 0 is the CTA's own, [`Requests::THREAD`] the thread's,
    /// [`Requests::TAIL`] and [`Requests::FORGET`] are named ones of the grid.
    pub stream: u64,
    /// What.
    pub wanted: Wanted,
}

/// What a launch leaves for when it has ended. Clones share it.
///
/// Without somebody to take them, requests fail.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    kept: Option<Arc<Mutex<Kept>>>,
    depth: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) requests: Vec<Request>,
    /// Launches by the address of their parameters, and how many bytes these have. Those of the
    /// interface without a kernel have no name yet.
    pub(crate) buffers: HashMap<u64, (Child, u32)>,
    /// The last error of each thread, by its CTA and its number there.
    pub(crate) errors: HashMap<(u64, u32), u32>,
    /// Streams and events so far.
    pub(crate) handles: u64,
}

impl Requests {
    /// `cudaStreamPerThread`
    pub const THREAD: u64 = 2;
    /// `cudaStreamTailLaunch`: behind the grid and all else that it has asked for.
    pub const TAIL: u64 = 3;
    /// `cudaStreamFireAndForget`: in no order with anything else.
    pub const FORGET: u64 = 4;

    /// For a launch that has so many grids between itself and the host; 0 for one by the host.
    pub fn new(depth: u32) -> Self {
        Self {
            kept: Some(Arc::default()),
            depth,
        }
    }

    /// Takes what has been asked for, in that order.
    pub fn take(&self) -> Vec<Request> {
        let taken = self.with(|kept| std::mem::take(&mut kept.requests));
        taken.unwrap_or_default()
    }

    /// Whether nothing is there to be taken.
    pub fn is_empty(&self) -> bool {
        self.with(|kept| kept.requests.is_empty()).unwrap_or(true)
    }

    /// How many grids stand between the launch and the host.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether what the launch launches would stand too deep.
    pub(crate) fn is_deepest(&self) -> bool {
        self.depth >= DEPTH
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        let mut kept = self.kept.as_ref()?.lock().ok()?;
        Some(f(&mut kept))
    }
}
