//! What a journal records that an observer of the device does not receive: times, and accesses of before.

use events::{AccessKind, Executing, Observer};
use ptx::ast::Space;
use ptx::isa::{BarrierKind, SyncOp};
use shadow::hb::{Access, Engine, LANES, Location, Time};

use super::lifetimes::Lifetimes;
use super::{HappensBefore, warp};
use crate::pairs::is_shared;

impl HappensBefore {
    /// Its events come from a journal, which has no values of swaps: what is a lock is not known.
    pub(crate) fn without_values(mut self) -> Self {
        self.knows_swaps = false;
        self.lifetimes = self.lifetimes.map(Lifetimes::without_starts);
        self
    }

    /// What is received from here on happens at `now`; see [`Engine::at`].
    pub(crate) fn at(&mut self, now: Time) {
        self.with(|engine| engine.at(now));
    }

    /// An access by one lane.
    pub(crate) fn journal_access(&mut self, threads: Executing, space: Space, address: u64) {
        let kind = AccessKind::Load;
        let bytes = self.meaning(threads).map_or(0, |meaning| meaning.line);
        self.access(threads, kind, space, &[address; LANES as usize], bytes);
    }

    /// An atomic by one lane that has changed nothing, and that the thread may have made again since without an
    /// entry.
    pub(crate) fn looked(&mut self, threads: Executing, space: Space, address: u64) {
        self.idle = true;
        self.journal_access(threads, space, address);
        self.idle = false;
    }

    /// Conflicts of which the journal does not say whether they are races.
    pub(crate) fn undecided(&self) -> u64 {
        self.doubts.undecided
    }

    /// An access that one lane made at a time before; see [`Engine::earlier`].
    pub(crate) fn earlier(&mut self, threads: Executing, space: Space, address: u64, time: Time) {
        let location = match space {
            Space::Global => Location::Global(address),
            _ => self.shared(threads, address),
        };
        let bytes = self.granules[usize::from(is_shared(location))];
        let me = warp(threads).lane(threads.lanes.trailing_zeros());
        if let Some(access) = self.meaning(threads).and_then(|meaning| meaning.access) {
            let access = Access {
                bytes,
                elements: 1,
                ..access
            };
            let event = |engine: &mut Engine| engine.earlier(me, time, &access, location);
            event(&mut self.engine);
            self.lock_order.forward(event);
        }
    }

    /// Whether those who execute a barrier of their CTA wait there.
    pub(crate) fn waits(&self, threads: Executing) -> bool {
        let sync = self.meaning(threads).and_then(|meaning| meaning.sync);
        !matches!(
            sync,
            Some(SyncOp::CtaBarrier {
                kind: BarrierKind::Arrive,
                ..
            })
        )
    }
}
