//! Which accesses of a [`Problem`] cannot conflict with any other.
//!
//! Accesses with a conflicting effect and overlapping ranges are taken in pairs, each with itself too. A pair is
//! impossible if no two different threads can make the two accesses to one byte without a barrier in between
//! ([`pair`]); that is tried first with the differences between the threads alone, then with all that is known of
//! each, by elimination. An access is proved if every pair that it is in is impossible.
//!
//! Everything is decided by counts of steps, so results are the same in every run.

#[cfg(test)]
#[allow(
    clippy::print_stdout,
    reason = "the test says how many systems were compared"
)]
mod against_z3;
mod eliminate;
mod group;
mod integer;
mod pair;
mod search;
mod shape;
mod system;

use crate::Argument;
use crate::interval::Interval;
use crate::problem::{Distance, Effect, Meeting, Problem, Space};
use group::{Group, Groups};
pub(crate) use integer::gcd;
use pair::{Between, Builder, Detail, SYMBOLS};
use search::Found;
use shape::Shape;

/// What was decided about a problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// By access: what proves it, or what is in the way.
    pub accesses: Vec<Result<Argument, Conflict>>,
    /// By access: the first byte that it can touch and the one past the last. `None` if it is never executed.
    pub ranges: Vec<Option<Interval<i128>>>,
    /// How much work it was, in terms looked at.
    pub steps: u64,
}

/// A pair that was not proved impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other access; the access itself if two threads execute it.
    pub against: usize,
    /// Who the two threads are.
    pub between: Threads,
    /// What is known of the pair.
    pub why: Why,
}

/// Two threads by where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// In different blocks.
    OfTwoBlocks,
    /// In one block.
    OfOneBlock,
}

/// Why a pair is not proved impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The addresses may be the same for all that is known.
    Overlap,
    /// The proof would take more steps than allowed.
    Steps,
    /// A number is too large for the arithmetic.
    Large,
}

/// A question about a pair that linear arithmetic leaves open.
pub(crate) struct Asked<'a> {
    /// The accesses of the first and of the second thread.
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// The threads are in different blocks; otherwise they are different threads of one block.
    pub(crate) blocks: bool,
    /// By loop around both accesses: the first thread's counter minus the second's.
    pub(crate) counters: &'a [Distance],
}

/// Says of a pair whether two threads cannot make the two accesses to one byte.
pub(crate) type Judge<'a> = dyn FnMut(&Asked<'_>) -> bool + 'a;

/// Decides a problem, within about so many steps.
pub fn decide(problem: &Problem, budget: u64) -> Decision {
    decide_with(problem, budget, &mut |_| false)
}

/// The same, with a judge of pairs that linear arithmetic leaves open.
pub(crate) fn decide_with(problem: &Problem, budget: u64, judge: &mut Judge<'_>) -> Decision {
    if problem.symbols.len() > SYMBOLS {
        let large = |against| {
            Err(Conflict {
                against,
                between: Threads::OfOneBlock,
                why: Why::Large,
            })
        };
        return Decision {
            accesses: (0..problem.accesses.len()).map(large).collect(),
            ranges: vec![Some(Interval::new(i128::MIN, i128::MAX)); problem.accesses.len()],
            steps: 0,
        };
    }
    let Groups {
        shapes,
        groups,
        ranges,
    } = Groups::new(problem);
    let mut closure = Closure {
        problem,
        shapes: &shapes,
        groups: &groups,
        builder: Builder::new(problem),
        results: vec![Ok(Argument::Private); problem.accesses.len()],
        written: vec![false; problem.accesses.len()],
        steps: 0,
        budget,
        judge,
    };
    closure.run();
    let Closure {
        mut results,
        written,
        steps,
        ..
    } = closure;
    for ((result, access), written) in results.iter_mut().zip(&problem.accesses).zip(written) {
        if access.effect == Effect::Load && !written && result.is_ok() {
            *result = Ok(Argument::ReadOnly);
        }
    }
    Decision {
        accesses: results,
        ranges,
        steps,
    }
}

/// A pair of members of two groups.
#[derive(Clone, Copy)]
struct Pairing {
    /// The second constant minus the first.
    apart: i128,
    first: usize,
    second: usize,
}

struct Closure<'a, 'j> {
    problem: &'a Problem,
    shapes: &'a [Shape<'a>],
    groups: &'a [Group],
    builder: Builder<'a>,
    results: Vec<Result<Argument, Conflict>>,
    /// By access: a write may touch what it touches.
    written: Vec<bool>,
    steps: u64,
    budget: u64,
    judge: &'a mut Judge<'j>,
}

impl Closure<'_, '_> {
    /// Looks at all pairs of groups whose ranges overlap.
    fn run(&mut self) {
        let groups = self.groups;
        for (number, first) in groups.iter().enumerate() {
            for second in &groups[number..] {
                if second.space != first.space || second.range.low >= first.range.high {
                    break;
                }
                self.pair(first, second, std::ptr::eq(first, second));
            }
        }
    }

    /// Looks at the pairs of two groups.
    fn pair(&mut self, first: &Group, second: &Group, same: bool) {
        let reads = |group: &Group| group.effect == Effect::Load;
        if reads(first) && reads(second) {
            return;
        }
        let mut pairings = self.overlapping(first, second, same);
        for pairing in &pairings {
            self.written[pairing.first] |= !reads(second);
            self.written[pairing.second] |= !reads(first);
        }
        let known = &self.problem.known;
        pairings.retain(|&Pairing { first, second, .. }| {
            !known.contains(&(first.min(second), first.max(second)))
        });
        if let (Effect::Atomic { class: a }, Effect::Atomic { class: b }) =
            (first.effect, second.effect)
            && a == b
            && first.bytes == second.bytes
        {
            for pairing in pairings {
                self.improve(pairing.first, Argument::Atomic);
                self.improve(pairing.second, Argument::Atomic);
            }
            return;
        }
        if first.space == Space::Global {
            let between = Between {
                blocks: true,
                counters: &[],
            };
            self.impossible([first, second], &pairings, &between);
        }
        self.within(first, second, pairings);
    }

    /// The pairs of members whose ranges overlap, in ascending order of distance.
    fn overlapping(&self, first: &Group, second: &Group, same: bool) -> Vec<Pairing> {
        let range = |group: &Group| {
            let Interval { low, high } = self.shapes[group.shape].range.unwrap_or_default();
            (low, high + i128::from(group.bytes))
        };
        let (a, b) = (range(first), range(second));
        let mut pairings = Vec::new();
        for (index, one) in first.members.iter().enumerate() {
            let from = if same { index } else { 0 };
            for other in &second.members[from..] {
                let apart = other.0 - one.0;
                if apart > a.0 - b.1 && apart < a.1 - b.0 {
                    pairings.push(Pairing {
                        apart,
                        first: one.1,
                        second: other.1,
                    });
                }
            }
        }
        pairings.sort_unstable_by_key(|pairing| (pairing.apart, pairing.first, pairing.second));
        pairings
    }

    /// Looks at pairs of threads of one block.
    fn within(&mut self, first: &Group, second: &Group, mut pairings: Vec<Pairing>) {
        let anywhere = Between {
            blocks: false,
            counters: &[],
        };
        self.open(&mut pairings);
        if pairings.is_empty()
            || self.test([first, second], &pairings, &anywhere, Detail::Differences)
                == Found::Nothing
        {
            return;
        }
        // By meeting; without one, the pair can meet in any way.
        let mut parts: Vec<(Option<Meeting>, Vec<Pairing>)> = Vec::new();
        let mut add = |meeting: Option<Meeting>, pairing: Pairing| match parts
            .iter_mut()
            .find(|part| part.0 == meeting)
        {
            Some(part) => part.1.push(pairing),
            None => parts.push((meeting, vec![pairing])),
        };
        let mut ordered = Vec::new();
        for &pairing in &pairings {
            let (a, b) = (pairing.first, pairing.second);
            let Some(meetings) = self.problem.meetings.get(&(a.min(b), a.max(b))) else {
                add(None, pairing);
                continue;
            };
            ordered.push(pairing);
            for meeting in meetings {
                // The list counts the access with the higher index from the other; a system, the first from the second.
                let forward = || {
                    meeting.iter().filter_map(|of| {
                        Some(Distance {
                            around: of.around,
                            iterations: of.iterations.checked_neg()?,
                        })
                    })
                };
                if a <= b {
                    add(Some(forward().collect()), pairing);
                }
                if a >= b {
                    add(Some(meeting.clone()), pairing);
                }
            }
        }
        for (meeting, pairings) in parts {
            let between = Between {
                blocks: false,
                counters: meeting.as_deref().unwrap_or_default(),
            };
            self.impossible([first, second], &pairings, &between);
        }
        for pairing in ordered {
            self.improve(pairing.first, Argument::Barriers);
            self.improve(pairing.second, Argument::Barriers);
        }
    }

    /// Tries to prove pairs impossible, all together, then in halves. What is not proved is a conflict.
    fn impossible(&mut self, groups: [&Group; 2], pairings: &[Pairing], between: &Between) {
        let mut pairings = pairings.to_vec();
        self.open(&mut pairings);
        let (Some(from), Some(to)) = (pairings.first(), pairings.last()) else {
            return;
        };
        if self.test(groups, &pairings, between, Detail::Differences) == Found::Nothing {
            return;
        }
        if from.apart != to.apart {
            let middle = pairings.len() / 2;
            // Pairs with the same distance stay together.
            let apart = pairings[middle].apart;
            let mut at = pairings.partition_point(|pairing| pairing.apart < apart);
            if at == 0 {
                at = pairings.partition_point(|pairing| pairing.apart <= apart);
            }
            self.impossible(groups, &pairings[..at], between);
            self.impossible(groups, &pairings[at..], between);
            return;
        }
        let why = match self.test(groups, &pairings, between, Detail::Full) {
            Found::Nothing => return,
            Found::Perhaps => Why::Overlap,
            Found::Stopped => Why::Steps,
        };
        pairings.retain(|pairing| {
            let asked = Asked {
                first: pairing.first,
                second: pairing.second,
                blocks: between.blocks,
                counters: between.counters,
            };
            !(self.judge)(&asked)
        });
        let large = groups.iter().any(|group| self.shapes[group.shape].large);
        for pairing in pairings {
            for (access, against) in [
                (pairing.first, pairing.second),
                (pairing.second, pairing.first),
            ] {
                if self.results[access].is_ok() {
                    self.results[access] = Err(Conflict {
                        against,
                        between: if between.blocks {
                            Threads::OfTwoBlocks
                        } else {
                            Threads::OfOneBlock
                        },
                        why: if large { Why::Large } else { why },
                    });
                }
            }
        }
    }

    /// Drops the pairs about which nothing is left to be found out.
    fn open(&self, pairings: &mut Vec<Pairing>) {
        pairings.retain(|pairing| {
            self.results[pairing.first].is_ok() || self.results[pairing.second].is_ok()
        });
    }

    /// Tests pairs, in ascending order of distance, all at once.
    fn test(
        &mut self,
        groups: [&Group; 2],
        pairings: &[Pairing],
        between: &Between,
        detail: Detail,
    ) -> Found {
        let [first, .., last] = pairings else {
            return match pairings {
                [only] => self.test(groups, &[*only, *only], between, detail),
                _ => Found::Nothing,
            };
        };
        let (shapes, [a, b]) = (self.shapes, groups);
        if shapes[a.shape].large || shapes[b.shape].large {
            return Found::Perhaps;
        }
        if self.steps > self.budget {
            return Found::Stopped;
        }
        let window = Interval::new(
            first.apart - i128::from(a.bytes) + 1,
            last.apart + i128::from(b.bytes) - 1,
        );
        self.builder
            .build(&shapes[a.shape], &shapes[b.shape], between, window, detail);
        search::search(&mut self.builder, detail, &mut self.steps, self.budget)
    }

    /// Notes that an argument is needed for an access.
    fn improve(&mut self, access: usize, argument: Argument) {
        if let Ok(known) = &mut self.results[access] {
            *known = (*known).max(argument);
        }
    }
}
