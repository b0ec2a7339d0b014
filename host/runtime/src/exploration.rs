//! Which launches are run again under other schedules, and how much of that a run can afford.
//!
//! A race that depends on the order of threads, such as a missing acquire behind a flag, is not there in every run. The
//! simulated device can run a launch again from a copy of its memory, with another seed. Budgets are counted in
//! instructions and not in time, so that the same program has the same report every time.

use std::collections::HashMap;

/// Warp instructions of runs that are affordable in any case.
const FREE: u64 = 2_000_000;
/// One warp instruction more is affordable for so many of the program's own.
const SHARE: u64 = 4;
/// Warp instructions that a run may execute for each one of the program's own run of the launch, and on top of that. A
/// thread that polls a flag executes more or fewer of them under another schedule.
const LONGER: u64 = 8;
const LONGER_AT_LEAST: u64 = 100_000;

/// Copying so many bytes takes about as long as a warp instruction with happens-before listening.
const COPIED: u64 = 256;

/// What has been launched and run again so far.
#[derive(Debug, Default)]
pub(crate) struct Exploration {
    /// By kernel.
    kernels: HashMap<String, Launched>,
    /// Warp instructions of the program's own runs.
    executed: u64,
    /// What the others have cost.
    spent: u64,
    /// How much that was when the latest launch began that may run again, and how much it may become by its runs. The
    /// first run may cost more, so that a launch is not left out because half of what is left is not enough.
    begun: u64,
    most: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Launched {
    count: u64,
    /// Warp instructions of the latest one.
    cost: u64,
}

impl Exploration {
    /// A kernel is launched whose order of threads matters; whether this launch is to run again. It is for the 1st, 2nd,
    /// 4th, 8th and so on of a kernel, as far as that is affordable.
    pub(crate) fn begins(&mut self, kernel: &str) -> bool {
        let launched = match self.kernels.get_mut(kernel) {
            Some(launched) => launched,
            None => self.kernels.entry(kernel.to_owned()).or_default(),
        };
        launched.count += 1;
        let Launched { count, cost } = *launched;
        self.begun = self.spent;
        self.most = self.spent + self.left() / 2;
        count.is_power_of_two() && self.affords(cost)
    }

    /// What may still be spent.
    fn left(&self) -> u64 {
        let all = FREE.saturating_add(self.executed / SHARE);
        all.saturating_sub(self.spent)
    }

    /// A launch has executed so many warp instructions.
    pub(crate) fn ended(&mut self, kernel: &str, instructions: u64) {
        self.executed = self.executed.saturating_add(instructions);
        if let Some(launched) = self.kernels.get_mut(kernel) {
            launched.cost = instructions;
        }
    }

    /// Whether the launch can run once more at this cost.
    pub(crate) fn affords(&self, cost: u64) -> bool {
        let is_first = self.spent == self.begun;
        cost <= self.left() && (is_first || self.spent.saturating_add(cost) <= self.most)
    }

    /// The launch has run again, at this cost.
    pub(crate) fn spend(&mut self, cost: u64) {
        self.spent = self.spent.saturating_add(cost);
    }

    /// Memory has been copied, for whatever runs there will be.
    pub(crate) fn copies(&mut self, bytes: u64) {
        self.spend(cost(0, bytes));
        self.begun = self.spent;
    }
}

/// What another run of a launch costs, in warp instructions.
pub(crate) fn cost(instructions: u64, copied: u64) -> u64 {
    instructions.saturating_add(copied / COPIED)
}

/// Warp instructions after which another run of a launch is given up.
pub(crate) fn limit(instructions: u64) -> u64 {
    let longer = instructions.saturating_mul(LONGER);
    longer.max(instructions.saturating_add(LONGER_AT_LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_a_share_of_the_program() {
        let mut exploration = Exploration::default();
        let mut begins = || exploration.begins("k");
        let launches = [begins(), begins(), begins(), begins(), begins()];
        assert_eq!(launches, [true, true, false, true, false]);
        // Another kernel. It may take all in one run, and half of it in several.
        assert!(exploration.begins("l"));
        assert!(exploration.affords(FREE) && !exploration.affords(FREE + 1));
        exploration.spend(FREE / 2);
        assert!(exploration.affords(0) && !exploration.affords(1));
        exploration.ended("l", FREE);
        // It costs as much as the launch before, which is too much by now.
        assert!(!exploration.begins("l") && !exploration.begins("l"));
        exploration.ended("k", SHARE * FREE);
        assert!(exploration.begins("l") && exploration.affords(FREE));
    }

    #[test]
    fn copies_are_paid() {
        let mut exploration = Exploration::default();
        assert!(exploration.begins("k"));
        exploration.copies(COPIED * (FREE - 1));
        assert!(exploration.affords(1) && !exploration.affords(2));
    }

    #[test]
    fn a_run_may_take_longer_than_the_first() {
        assert_eq!(limit(0), LONGER_AT_LEAST);
        assert_eq!(limit(LONGER_AT_LEAST), LONGER * LONGER_AT_LEAST);
        assert_eq!(limit(u64::MAX), u64::MAX);
    }
}
