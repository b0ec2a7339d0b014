//! How often the threads of a launch have executed each instruction that accesses memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a launch leaves the counts. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tallies(Arc<Mutex<BTreeMap<u32, u64>>>);

impl Tallies {
    /// Those that have been left, by the byte offset of an instruction in the module's text: how many threads have
    /// executed it, each as often as it has.
    pub fn take(&self) -> BTreeMap<u32, u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }
}

/// What one thread of the host has counted; leaves it when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Tally<'a> {
    /// By op; empty where it is not asked for.
    counts: Vec<u64>,
    /// Where to leave them, and the byte offset of each op's instruction.
    to: Option<(&'a Tallies, &'a [u32])>,
}

impl<'a> Tally<'a> {
    /// For a program whose ops have these byte offsets.
    pub(crate) fn new(to: Option<&'a Tallies>, offsets: &'a [u32]) -> Self {
        Self {
            counts: vec![0; to.map_or(0, |_| offsets.len())],
            to: to.map(|to| (to, offsets)),
        }
    }

    /// Counts that the threads `exec` execute an op.
    #[inline(always)]
    pub(crate) fn add(&mut self, pc: u32, exec: u32) {
        if let Some(count) = self.counts.get_mut(pc as usize) {
            *count += u64::from(exec.count_ones());
        }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        let Some((to, offsets)) = self.to else {
            return;
        };
        let mut all = to.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = offsets.iter().zip(&self.counts);
        for (offset, count) in counts.filter(|(_, count)| **count > 0) {
            *all.entry(*offset).or_default() += count;
        }
    }
}
