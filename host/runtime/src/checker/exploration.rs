//! Which launches run again under other schedules, and how much of that a run can afford.
//!
//! A race that depends on the order of threads, such as a missing acquire behind a flag, is not there in every run. The
//! simulated device can run a launch again from a copy of its memory, with another seed. Costs are counted in steps and
//! not in time, so that the same program has the same report every time.

use std::collections::HashMap;

use super::{Checker, ModuleKey, PendingLaunch};
use crate::findings::{Explored, Findings};

/// Steps that other runs may take in any case.
const FREE: u64 = 1_000_000;
/// They may take one more for so many of the program's own.
const SHARE: u64 = 4;
/// Warp instructions of another run for each one of the program's own run of the launch, at most; or so many more than
/// that has. A thread that polls a flag executes more or fewer of them under another schedule.
const LONGER: u64 = 8;
const LONGER_AT_LEAST: u64 = 100_000;
/// Copying so many bytes is a step.
const COPIED: u64 = 256;

/// What a run costs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Warp instructions.
    pub instructions: u64,
    /// Accesses of single threads that happens-before has received.
    pub accesses: u64,
    /// Bytes of memory that are copied for it.
    pub copied: u64,
}

impl Cost {
    fn steps(self) -> u64 {
        let executed = self.instructions.saturating_add(self.accesses);
        executed.saturating_add(self.copied / COPIED)
    }
}

/// What has been launched and run again so far, in steps.
#[derive(Debug, Default)]
pub(super) struct Exploration {
    /// By kernel.
    kernels: HashMap<String, Launched>,
    /// Those of the program's own runs.
    own: u64,
    /// Those of the others.
    spent: u64,
    /// How much that was before the other runs of the latest launch.
    spent_before: u64,
    /// How much it may become by these; the first of them may take all that is left.
    most: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Launched {
    count: u64,
    /// Steps of the latest one.
    steps: u64,
}

impl Exploration {
    /// A kernel is launched whose order of threads matters; whether this launch is to run again. It is for the 1st, 2nd,
    /// 4th, 8th and so on of a kernel, as long as there is enough left.
    fn begins(&mut self, kernel: &str) -> bool {
        let launched = self.kernels.entry(kernel.to_owned()).or_default();
        launched.count += 1;
        let Launched { count, steps } = *launched;
        self.spent_before = self.spent;
        self.most = self.spent + self.left() / 2;
        count.is_power_of_two() && steps <= self.left()
    }

    /// What may still be spent.
    fn left(&self) -> u64 {
        let all = FREE.saturating_add(self.own / SHARE);
        all.saturating_sub(self.spent)
    }

    /// The program's own run of a launch has ended.
    pub(super) fn ended(&mut self, kernel: &str, cost: Cost) {
        let steps = cost.steps();
        self.own = self.own.saturating_add(steps);
        if let Some(launched) = self.kernels.get_mut(kernel) {
            launched.steps = steps;
        }
    }

    /// Memory has been copied, whether there will be other runs or not.
    fn copies(&mut self, bytes: u64) {
        self.spend(Cost {
            copied: bytes,
            ..Cost::default()
        });
        self.spent_before = self.spent;
    }

    /// How many warp instructions another run of the launch may execute, if there is enough left for the cost of the
    /// program's own run.
    fn limit(&self, own: Cost) -> Option<u64> {
        let is_first = self.spent == self.spent_before;
        let steps = own.steps();
        let affordable = steps <= self.left() && (is_first || self.spent + steps <= self.most);
        let longer = own.instructions.saturating_mul(LONGER);
        affordable.then(|| longer.max(own.instructions.saturating_add(LONGER_AT_LEAST)))
    }

    /// The launch has run again, at this cost.
    fn spend(&mut self, cost: Cost) {
        self.spent = self.spent.saturating_add(cost.steps());
    }
}

impl Checker {
    /// Whether a launch is to run again under other schedules: happens-before listens, and the order of threads matters.
    pub fn explores(&mut self, key: ModuleKey, pending: &PendingLaunch) -> bool {
        let kernel = &pending.launch.kernel;
        self.options.explore > 0
            && pending.is_listened()
            && !self.aliases.exist()
            && !self.is_order_free(key, kernel)
            && self.exploration.begins(kernel)
    }

    /// So many bytes have been copied for a launch that may run again.
    pub fn exploring_copies(&mut self, bytes: u64) {
        self.exploration.copies(bytes);
    }

    /// The other schedules, by their seeds.
    pub fn other_schedules(&self) -> impl Iterator<Item = u64> + use<> {
        let seed = self.options.seed.unwrap_or(0);
        (1..=u64::from(self.options.explore)).map(move |n| seed.wrapping_add(n))
    }

    /// How many warp instructions another run of a launch may execute, of which the program's own run has cost so much.
    /// None if that is more than is left.
    pub fn exploring_limit(&self, own: Cost) -> Option<u64> {
        self.exploration.limit(own)
    }

    /// A launch has run again, at this cost.
    pub fn explored(
        &mut self,
        pending: &PendingLaunch,
        findings: &mut Findings,
        explored: Explored,
        cost: Cost,
    ) {
        self.exploration.spend(cost);
        if explored.deadlock {
            let (number, seed) = (pending.number(), explored.seed);
            let kernel = report::names::demangle(&pending.launch.kernel);
            self.missed(format!(
                "launch #{number} ({kernel}) never ended when it ran again under another schedule: run with --seed {seed} to see which threads wait"
            ));
        }
        findings.explored(explored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(instructions: u64) -> Cost {
        Cost {
            instructions,
            ..Cost::default()
        }
    }

    #[test]
    fn runs_are_a_share_of_the_program() {
        let mut exploration = Exploration::default();
        let mut begins = || exploration.begins("k");
        let launches = [begins(), begins(), begins(), begins(), begins()];
        assert_eq!(launches, [true, true, false, true, false]);
        // Another kernel. It may take all in one run, and half of it in several.
        assert!(exploration.begins("l"));
        assert!(exploration.limit(executed(FREE)).is_some());
        assert!(exploration.limit(executed(FREE + 1)).is_none());
        exploration.spend(executed(FREE / 2 - 1));
        assert!(exploration.limit(executed(1)).is_some());
        assert!(exploration.limit(executed(2)).is_none());
        exploration.ended("l", executed(FREE));
        // It takes as much as the launch before, which is too much by now.
        assert!(!exploration.begins("l") && !exploration.begins("l"));
        exploration.ended("k", executed(SHARE * FREE));
        assert!(exploration.begins("l"));
    }

    #[test]
    fn accesses_and_copies_count() {
        let mut exploration = Exploration::default();
        assert!(exploration.begins("k"));
        exploration.copies(COPIED * (FREE - 3));
        let mut cost = Cost {
            instructions: 1,
            accesses: 1,
            copied: COPIED,
        };
        assert!(exploration.limit(cost).is_some());
        cost.accesses += 1;
        assert!(exploration.limit(cost).is_none());
    }

    #[test]
    fn a_run_may_take_longer_than_the_programs_own() {
        let mut exploration = Exploration::default();
        assert!(exploration.begins("k"));
        let few = exploration.limit(executed(1));
        assert_eq!(few, Some(1 + LONGER_AT_LEAST));
        let many = exploration.limit(executed(LONGER_AT_LEAST));
        assert_eq!(many, Some(LONGER * LONGER_AT_LEAST));
    }
}
