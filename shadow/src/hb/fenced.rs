//! The order of `fence.sc`s that no run could turn around.
//!
//! All threads of a CTA store, execute a `fence.sc` each, and meet at a barrier; then one of them
//! counts the CTA, or sets a flag. Whoever observes that, and meets others at a barrier that then execute a
//! `fence.sc`, has put those fences behind the first ones: were one of them earlier, what has been
//! observed would come before the write that it has observed (PTX ISA, "Fence-SC" and "Coherence").
//! No release and no acquire of one thread orders the two sides.
//!
//! So a strong write carries what came before the `fence.sc`s that it comes after, and a strong read
//! takes it along. Both pass through barriers of warps, CTAs and clusters, and end at the next
//! `fence.sc`. Only fences of gpu scope or wider are followed.

use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::clock::{Sparse, Time, Times};
use super::place::{Party, Shape, Thread, Warp};
use super::release::Write;

/// What a thread knows of `fence.sc`s by program order and barriers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fenced {
    /// Its clock at its last `fence.sc`, while no barrier has passed it on.
    own: Option<Times>,
    /// What precedes the `fence.sc`s of other threads that it comes after.
    others: Sparse,
    /// What precedes the `fence.sc`s that its next one must come after.
    observed: Sparse,
}

impl Fenced {
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_none() && self.others.is_empty() && self.observed.is_empty()
    }

    /// Its thread's own time at its last `fence.sc`, while no barrier has passed it on.
    pub(crate) fn time(&self) -> Option<Time> {
        self.own.as_ref().map(|own| own.own)
    }

    /// It comes after `fence.sc`s of all threads of a CTA, at a time of theirs.
    pub(crate) fn raise_cta(&mut self, cta: u64, time: Time) {
        self.others.raise_cta(cta, time);
    }

    /// What a strong read of a write that carries `fences` adds up to, if it adds anything.
    pub(crate) fn observing(&self, fences: &Sparse) -> Option<Sparse> {
        self.observed.joined(fences)
    }

    /// A strong read has observed a write that carries `fences`.
    pub(crate) fn observe(&mut self, fences: &Sparse) {
        self.observed.join(fences);
    }

    /// Its thread, with the clock `times`, executes a `fence.sc`.
    pub(crate) fn order(&self, times: &mut Times, scope: Scope) {
        if scope >= Scope::Gpu {
            times.rest.join(&self.observed);
        }
    }

    /// Its thread has executed a `fence.sc`, with this clock.
    pub(crate) fn fence(&mut self, times: &Times, scope: Scope) {
        if scope >= Scope::Gpu {
            self.own = Some(times.clone());
        }
    }

    /// Some lanes of a warp arrive at a barrier; `whole` as in [`Times::publish`].
    pub(crate) fn arrive(&self, at: &mut Self, of: Warp, lanes: u32, whole: bool) {
        if let Some(own) = &self.own {
            own.publish(&mut at.others, of, lanes, whole);
        }
        at.others.join(&self.others);
        at.observed.join(&self.observed);
    }

    /// Its thread has waited at a barrier.
    pub(crate) fn wait(&mut self, at: &Self) {
        self.others.join(&at.others);
        self.observed.join(&at.observed);
    }

    /// Adds what a strong write of its thread carries.
    fn carry(&self, by: Thread, carried: &mut Sparse) {
        if let Some(own) = &self.own
            && carried.get(by) < own.own
        {
            own.publish(carried, by.warp(), 1 << by.lane, false);
        }
        carried.join(&self.others);
    }
}

/// Bytes that no aligned scalar access crosses.
const LINE: u64 = 16;

/// What the last strong writes carry, where they carry anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    lines: HashMap<u64, Vec<Word>>,
}

#[derive(Clone, Debug)]
struct Word {
    address: u64,
    bytes: u32,
    writer: Party,
    /// By all writes that the last one continues.
    fences: Sparse,
}

impl Carried {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// What the write that a strong read of some bytes observes carries.
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

    /// A strong write, or with `rmw` a read-modify-write.
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

    /// Something is written over some bytes.
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
