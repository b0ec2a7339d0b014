//! How a split of a warp stands to the others: when it has to stop for one of them.
//!
//! The policy itself is in [`super::step`].

use super::warp::{Split, Warp};

/// Ops that a split which could run waits for others, before it gets a turn.
pub(crate) const MAX_WAIT: u64 = 16384;
/// Ops that such a turn lasts.
const TURN: u64 = 512;

/// How the running split stands to the others of its warp that could run.
pub(crate) struct SplitScheduler {
    /// True when others could run.
    pub(crate) contested: bool,
    /// True when the policy prefers the running split.
    lowest: bool,
    /// Lowest place of those it would join.
    next: u32,
    /// What it may spend before another one has waited too long.
    pub(crate) time_slice: u64,
    /// True when it runs out of the policy's order, or although another one has waited too long.
    has_turn: bool,
}

impl SplitScheduler {
    pub(crate) fn new(warp: &Warp, split: &Split) -> Self {
        let mut scheduler = Self {
            contested: false,
            lowest: true,
            next: u32::MAX,
            time_slice: u64::MAX,
            has_turn: false,
        };
        for other in warp.splits.iter().filter(|other| other.is_ready()) {
            scheduler.contested = true;
            let left = (other.turn + MAX_WAIT).saturating_sub(warp.clock);
            scheduler.time_slice = scheduler.time_slice.min(left);
            if other.callers.len() > split.callers.len() {
                scheduler.lowest = false;
            } else if other.frame == split.frame && other.callers == split.callers {
                scheduler.next = scheduler.next.min(other.pc);
                scheduler.lowest &= split.pc < other.pc;
            }
        }
        if scheduler.contested && (scheduler.time_slice == 0 || !scheduler.lowest) {
            scheduler.time_slice = TURN;
            scheduler.has_turn = true;
        }
        scheduler
    }

    /// The same when the splits, or the running one's stack, have changed. One that ran by the
    /// policy and would now run against it stops: the lanes that it has left behind in a function
    /// go first, so that they meet again.
    pub(crate) fn again(&self, warp: &Warp, split: &Split) -> Self {
        let mut now = Self::new(warp, split);
        if now.has_turn && !self.has_turn {
            now.time_slice = 0;
        }
        now.has_turn = self.has_turn;
        now
    }

    /// True when the split may have met another one, or should let it go first.
    pub(crate) fn reached(&self, warp: &Warp, split: &Split) -> bool {
        if self.lowest || split.pc < self.next {
            return split.pc >= self.next;
        }
        let joins = |other: &Split| {
            other.is_ready() && other.frame == split.frame && other.callers == split.callers
        };
        warp.splits
            .iter()
            .any(|other| other.pc == split.pc && joins(other))
    }
}
