//! The order of `fence.sc`s that every run has.
//!
//! Which of two `fence.sc`s comes first differs from run to run, except for this pattern. All threads of a CTA
//! store, execute a `fence.sc`, and wait at a barrier; then one thread sets a flag or counts the CTA. A thread of
//! another CTA observes the flag and waits at a barrier, and then the threads there execute a `fence.sc`. If one of
//! these later fences came before an earlier one, the read of the flag would come before the write that it has
//! observed (PTX ISA, "Fence-SC" and "Coherence"). So the stores are ordered before what follows the later fences,
//! although the thread that sets the flag does not release them.
//!
//! A strong write therefore carries the clocks of the `fence.sc`s before it, a strong read takes them along, and
//! barriers of warps, CTAs and clusters pass them on until the next `fence.sc`, which joins them. Fences of a scope
//! narrower than gpu are left out.

use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::clock::{Sparse, Time, Times};
use super::release::{LINE, Write};
use super::thread::{Party, Shape, Thread, Warp};

/// The `fence.sc`s that a thread knows of by program order, barriers and observed writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fenced {
    /// The thread's clock at its last `fence.sc`, if no barrier has followed.
    own: Option<Times>,
    /// The clocks of other threads' `fence.sc`s that come before the thread, by barriers.
    others: Sparse,
    /// The clocks of the `fence.sc`s that come before the thread's next one, by an observed write.
    observed: Sparse,
}

impl Fenced {
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_none() && self.others.is_empty() && self.observed.is_empty()
    }

    /// The thread's own time at its last `fence.sc`, if no barrier has followed.
    pub(crate) fn time(&self) -> Option<Time> {
        self.own.as_ref().map(|own| own.own)
    }

    /// Adds `fence.sc`s of all threads of a CTA, at one time.
    pub(crate) fn raise_cta(&mut self, cta: u64, time: Time) {
        self.others.raise_cta(cta, time);
    }

    /// The observed clocks with those that a write carries, if that is more than before.
    pub(crate) fn observing(&self, fences: &Sparse) -> Option<Sparse> {
        self.observed.joined(fences)
    }

    /// The thread observes a write that carries these clocks.
    pub(crate) fn observe(&mut self, fences: &Sparse) {
        self.observed.join(fences);
    }

    /// The thread executes a `fence.sc`: its clock learns what it has observed.
    pub(crate) fn order(&self, times: &mut Times, scope: Scope) {
        if scope >= Scope::Gpu {
            times.rest.join(&self.observed);
        }
    }

    /// The thread has executed a `fence.sc`, and this is its clock then. The clock has all that came before: barriers
    /// that pass on fences pass on whole clocks too, and [`order`](Self::order) has added what was observed.
    pub(crate) fn fence(&mut self, times: &Times, scope: Scope) {
        if scope >= Scope::Gpu {
            self.own = Some(times.clone());
            self.others = Sparse::default();
            self.observed = Sparse::default();
        }
    }

    /// Lanes of a warp arrive at the barrier `at`; `whole` as in [`Times::publish`].
    pub(crate) fn arrive(&self, at: &mut Self, of: Warp, lanes: u32, whole: bool) {
        if let Some(own) = &self.own {
            own.publish(&mut at.others, of, lanes, whole);
        }
        at.others.join(&self.others);
        at.observed.join(&self.observed);
    }

    /// The thread has waited at the barrier `at`.
    pub(crate) fn wait(&mut self, at: &Self) {
        self.others.join(&at.others);
        self.observed.join(&at.observed);
    }

    /// Adds what a strong write of the thread `by` carries.
    fn carry(&self, by: Thread, carried: &mut Sparse) {
        if let Some(own) = &self.own
            && carried.get(by) < own.own
        {
            own.publish(carried, by.warp(), 1 << by.lane, false);
        }
        carried.join(&self.others);
    }
}

/// The clocks that the last strong writes carry, by line of memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    lines: HashMap<u64, Vec<Word>>,
}

#[derive(Clone, Debug)]
struct Word {
    address: u64,
    bytes: u32,
    writer: Party,
    /// Of the last write, and of those before it if it is a read-modify-write.
    fences: Sparse,
}

impl Carried {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The clocks carried by the write that a strong read observes.
    pub(crate) fn at(
        &self,
        shape: &Shape,
        reader: Party,
        address: u64,
        bytes: u32,
    ) -> Option<&Sparse> {
        if self.is_empty() {
            return None;
        }
        let mut words = self.lines.get(&(address / LINE))?.iter();
        let word = words.find(|word| (word.address, word.bytes) == (address, bytes))?;
        let observes = word.writer.thread == reader.thread || shape.mutual(word.writer, reader);
        observes.then_some(&word.fences)
    }

    /// Enters a strong write, or with `rmw` a read-modify-write.
    pub(crate) fn write(&mut self, shape: &Shape, write: &Write<'_>, rmw: bool) {
        if self.is_empty() && write.fenced.is_empty() {
            return;
        }
        let (address, bytes) = (write.address, write.bytes);
        let writer = Party {
            thread: write.thread,
            scope: write.scope,
        };
        let before = self.at(shape, writer, address, bytes).filter(|_| rmw);
        let mut fences = before.cloned().unwrap_or_default();
        write.fenced.carry(write.thread, &mut fences);
        self.overwrite(address, bytes);
        if !fences.is_empty() {
            let words = self.lines.entry(address / LINE).or_default();
            words.push(Word {
                address,
                bytes,
                writer,
                fences,
            });
        }
    }

    /// Some bytes are overwritten.
    pub(crate) fn overwrite(&mut self, address: u64, bytes: u32) {
        if self.is_empty() {
            return;
        }
        let end = address + u64::from(bytes);
        for line in address / LINE..=(end - 1) / LINE {
            let Some(words) = self.lines.get_mut(&line) else {
                continue;
            };
            words.retain(|word| {
                word.address >= end || word.address + u64::from(word.bytes) <= address
            });
            if words.is_empty() {
                self.lines.remove(&line);
            }
        }
    }
}
