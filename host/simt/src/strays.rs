//! Accesses outside of all memory that a launch went on after, because it was asked to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use events::AccessKind;
use ptx::ast::Space;

use crate::error::ExecutionPoint;

/// Accesses of one instruction to one space that lay outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The instruction and the first thread.
    pub at: ExecutionPoint,
    /// What it does.
    pub kind: AccessKind,
    /// Where; never generic.
    pub space: Space,
    /// The first thread's address in that space.
    pub address: u64,
    /// Bytes of one thread.
    pub bytes: u64,
    /// Bytes of that space that a thread has, where it is not global.
    pub size: u64,
    /// How many accesses of threads there were.
    pub count: u64,
}

/// Place of an instruction in its program, and which of its accesses.
type Key = (u32, AccessKind);

/// Where a launch leaves them. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Strays(Arc<Mutex<BTreeMap<Key, Stray>>>);

impl Strays {
    /// Those that have been left, in the order of the code.
    pub fn take(&self) -> Vec<Stray> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all).into_values().collect()
    }

    /// Adds accesses; `first` describes them when they are the first of their instruction.
    pub(crate) fn add(&self, key: Key, count: u64, first: impl FnOnce() -> Stray) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key).or_insert_with(first).count += count;
    }
}
