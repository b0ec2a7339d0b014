//! How a split of a warp stands to the others: when it has to stop for one of them.
//!
//! The policy itself is in [`super::step`].

use super::warp::{Split, Warp};

/// Ops that a split which could run waits for others, before it gets a turn.
pub(crate) const PATIENCE: u64 = 16384;
/// Ops that such a turn lasts.
const TURN: u64 = 512;

/// How the running split stands to the others of its warp that could run.
pub(crate) struct Contest {
    /// True when others could run.
    pub(crate) contested: bool,
    /// True when the policy prefers the running split.
    lowest: bool,
    /// Lowest place of those it would join.
    next: u32,
    /// What it may spend before another one has waited too long.
    pub(crate) patience: u64,
    /// True when it runs out of the policy's order, or although another one has waited too long.
    has_turn: bool,
}

impl Contest {
    pub(crate) fn new(warp: &Warp, split: &Split) -> Self {
        let mut contest = Self {
            contested: false,
            lowest: true,
            next: u32::MAX,
            patience: u64::MAX,
            has_turn: false,
        };
        for other in warp.splits.iter().filter(|other| other.is_ready()) {
            contest.contested = true;
            let left = (other.turn + PATIENCE).saturating_sub(warp.clock);
            contest.patience = contest.patience.min(left);
            if other.callers.len() > split.callers.len() {
                contest.lowest = false;
            } else if other.frame == split.frame && other.callers == split.callers {
                contest.next = contest.next.min(other.pc);
                contest.lowest &= split.pc < other.pc;
            }
        }
        if contest.contested && (contest.patience == 0 || !contest.lowest) {
            contest.patience = TURN;
            contest.has_turn = true;
        }
        contest
    }

    /// The same when the splits, or the running one's stack, have changed. One that ran by the
    /// policy and would now run against it stops: the lanes that it has left behind in a function
    /// go first, so that they meet again.
    pub(crate) fn again(&self, warp: &Warp, split: &Split) -> Self {
        let mut now = Self::new(warp, split);
        if now.has_turn && !self.has_turn {
            now.patience = 0;
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
