//! Pairs of accesses that linear arithmetic leaves open, bit by bit.
//!
//! Exclusive ors, swizzles, masks that are not of low bits, shifts by variables and conditions that are disjunctions
//! are no linear forms. The values that the two threads compute are written down as clauses about their bits, with the
//! wrap-around of the machine, and a SAT solver looks for two threads that meet. What a loop or a load leaves is any
//! value, so that two accesses which cannot meet here never meet; if it finds two threads, nothing is proved.
//!
//! This takes milliseconds where linear forms take microseconds, so nobody does it at a launch that is only checked.

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
use crate::summary::Plan;
use circuit::{Answer, Circuit, Limit};

/// Decisions and conflicts that a pair may take.
const STEPS_OF_PAIR: u64 = 100_000;

/// The same for all pairs of a launch.
const STEPS: u64 = 1_000_000;

/// Gates of a pair.
const GATES: usize = 400_000;

/// How long a launch may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Answers questions about pairs of a launch.
pub(crate) struct Bits<'a> {
    plan: &'a Plan,
    evaluation: &'a Evaluation<'a>,
    posed: &'a Posed,
    /// By what was asked.
    known: HashMap<Question, bool>,
    steps: u64,
    until: Instant,
}

/// Accesses of the summary, and what is known of the two threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    sites: [usize; 2],
    blocks: bool,
    counters: Vec<(u32, i64)>,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(plan: &'a Plan, evaluation: &'a Evaluation<'a>, posed: &'a Posed) -> Self {
        Self {
            plan,
            evaluation,
            posed,
            known: HashMap::new(),
            steps: STEPS,
            until: Instant::now() + PATIENCE,
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
        let limit = Limit {
            steps: self.steps.min(STEPS_OF_PAIR),
            until: self.until,
        };
        let mut circuit = Circuit::new(limit);
        let pair = encode::Pair::new(self.plan, self.evaluation, &mut circuit, &question.counters);
        let meets = pair.meets(sites, asked.blocks);
        let answer = match meets {
            Some(meets) if circuit.gates() <= GATES && limit.steps > 0 => {
                circuit.require(meets);
                circuit.solve()
            }
            _ => Answer::Stopped,
        };
        self.steps -= circuit.steps().min(self.steps);
        let impossible = answer == Answer::Impossible;
        self.known.insert(question, impossible);
        impossible
    }
}
