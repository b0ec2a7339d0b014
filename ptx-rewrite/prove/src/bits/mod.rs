//! Pairs of accesses that linear arithmetic leaves open, bit by bit.
//!
//! Exclusive ors, swizzles, masks that are not of low bits, shifts by variables and conditions that are disjunctions
//! are no linear forms. The values that the two threads compute are written down as clauses about their bits, with the
//! wrap-around of the machine, and a SAT solver looks for two threads that meet. What a loop or a load leaves is any
//! value, so that two accesses which cannot meet here never meet; if it finds two threads, nothing is proved.
//!
//! This takes milliseconds where linear forms take microseconds, so launches that are only checked do without it.

mod circuit;
mod encode;
#[cfg(test)]
#[allow(
    clippy::print_stdout,
    reason = "the test says how many formulas were compared"
)]
mod tests;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::decide::Asked;
use crate::evaluate::Evaluation;
use crate::launch::Posed;
use crate::problem::Distance;
use crate::summary::Plan;
use circuit::{Answer, Circuit, Limit};

/// Decisions and conflicts that a pair may take.
const STEPS_OF_PAIR: u64 = 100_000;

/// The same for all pairs of a kernel, in all its launches: pairs that depend on data stay open in each of them, and take
/// what a pair may take.
const STEPS: u64 = 200_000;

/// Gates of a pair.
const GATES: usize = 400_000;

/// How long a kernel may take, in all its launches.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What the proofs of a kernel's launches may still cost, bit by bit.
#[derive(Debug)]
pub struct Effort {
    /// Decisions and conflicts.
    steps: u64,
    time: Duration,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            steps: STEPS,
            time: TIMEOUT,
        }
    }
}

/// Answers questions about pairs of a launch.
pub(crate) struct Bits<'a> {
    plan: &'a Plan,
    evaluation: &'a Evaluation<'a>,
    posed: &'a Posed,
    /// By what was asked.
    known: HashMap<Question, bool>,
    effort: &'a mut Effort,
}

/// Accesses of the summary, and what is known of the two threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    sites: [usize; 2],
    blocks: bool,
    counters: Vec<Distance>,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        evaluation: &'a Evaluation<'a>,
        posed: &'a Posed,
        effort: &'a mut Effort,
    ) -> Self {
        Self {
            plan,
            evaluation,
            posed,
            known: HashMap::new(),
            effort,
        }
    }

    /// Whether two threads cannot make the two accesses to one byte.
    pub(crate) fn is_impossible(&mut self, asked: &Asked<'_>) -> bool {
        let sites = [asked.first, asked.second].map(|piece| self.posed.site[piece]);
        // Where an access goes must be its address.
        if sites.iter().any(|&site| self.posed.refused[site].is_some()) {
            return false;
        }
        let question = Question {
            sites,
            blocks: asked.blocks,
            counters: asked.counters.to_vec(),
        };
        if let Some(&known) = self.known.get(&question) {
            return known;
        }
        if self.effort.steps == 0 || self.effort.time.is_zero() {
            return false;
        }
        let started = Instant::now();
        let limit = Limit {
            steps: self.effort.steps.min(STEPS_OF_PAIR),
            until: started + self.effort.time,
        };
        let mut circuit = Circuit::new(limit);
        let pair = encode::Pair::new(self.plan, self.evaluation, &mut circuit, &question.counters);
        let meets = pair.meets(sites, asked.blocks);
        let answer = match meets {
            Some(meets) if circuit.gates() <= GATES => {
                circuit.require(meets);
                circuit.solve()
            }
            _ => Answer::Stopped,
        };
        self.effort.steps = self.effort.steps.saturating_sub(circuit.steps());
        self.effort.time = self.effort.time.saturating_sub(started.elapsed());
        let impossible = answer == Answer::Impossible;
        self.known.insert(question, impossible);
        impossible
    }
}
