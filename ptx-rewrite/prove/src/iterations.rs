//! Loops of a launch: how often they go round, and the values that change from one iteration to the next.

use crate::evaluate::Evaluation;
use crate::form::{Form, Uniform};
use crate::graph::{Advance, Comparison, Node, NodeId, Test};
use crate::problem::{Kind, LoopId};
use crate::value::{
    ALTERNATIVES, Alternative, Alternatives, Memory, Predicate, Rows, Value, centered, simplified,
};

/// Where the bounds of counters end that nothing bounds.
const FOREVER: i64 = 1 << 62;

/// What a test says about the counter of its loop.
struct Bound {
    /// The greatest value of the counter.
    most: i128,
    /// A form and a factor: with the factor times the counter it is not negative.
    row: Option<(Form, i128)>,
    /// The counter is exactly `most` when the test fails first.
    exact: bool,
}

impl Evaluation<'_> {
    /// The sum of a test's or a step's addends. None where one is not a single form.
    pub(crate) fn sum(&self, addends: &[(NodeId, bool)]) -> Option<Form> {
        let mut sum = Form::default();
        for &(node, negated) in addends {
            let of = self.value(node)?.single()?;
            if of.memory != Memory::Number {
                return None;
            }
            sum = sum.plus(if negated { -1 } else { 1 }, &of.form)?;
        }
        Some(sum)
    }

    /// By how much a value advances in each iteration.
    pub(crate) fn step(&self, addends: &[(NodeId, bool)], bits: u32) -> Option<i128> {
        let sum = self.sum(addends)?.number()?;
        Some(centered(sum.rem_euclid(1 << bits) as u64, bits))
    }

    pub(crate) fn header(
        &mut self,
        node: NodeId,
        of: LoopId,
        first: &[NodeId],
        kind: &Advance,
        leaves: Option<&[NodeId]>,
    ) -> (Value, Uniform) {
        let bits = self.graph.items[node as usize].bits;
        let mut uniform = match (first, leaves) {
            (&[first], Some(leaves)) => self
                .uniform_of([first])
                .max(self.uniform_of(leaves.iter().copied())),
            _ => Uniform::No,
        };
        uniform = uniform.max(Uniform::Iteration);
        let mut memory: Option<Memory> = None;
        let mut starts = Alternatives::new();
        let mut complete = !first.is_empty();
        for &first in first {
            let all = self.integer(first);
            complete &= !all.is_empty();
            for one in all {
                memory = Some(memory.map_or(one.memory, |known| known.either(one.memory)));
                if !starts.contains(&one) {
                    starts.push(one);
                }
            }
        }
        let memory = memory.unwrap_or(Memory::Unknown);
        if bits == 1 {
            return (Value::Predicate(Predicate::unknown()), uniform);
        }
        match kind {
            Advance::By(addends) => {
                let counter = self.counters[of as usize];
                if let (Some(step), Some(counter)) = (self.step(addends, bits), counter)
                    && complete
                    && starts.len() <= ALTERNATIVES
                {
                    let counter = Form::symbol(counter);
                    let mut all = Alternatives::new();
                    for start in &starts {
                        if let Some(form) = start.form.plus(step, &counter) {
                            all.push(Alternative {
                                form,
                                ..start.clone()
                            });
                        }
                    }
                    if all.len() == starts.len() {
                        return (Value::Integer(all), uniform);
                    }
                }
                let numbers = addends
                    .iter()
                    .all(|&(of, _)| self.memory_otherwise(&[of]) == Memory::Number);
                let memory = if numbers { memory } else { Memory::Unknown };
                (self.unknown_bits(node, memory, uniform), uniform)
            }
            Advance::Shrinks if complete => {
                let (low, high) = self.hull(&starts, true);
                let range = match low >= 0 && high < 1 << (bits - 1) {
                    true => (0, high),
                    false => (i128::MIN, i128::MAX),
                };
                (
                    self.unknown(node, range, memory.otherwise(), uniform),
                    uniform,
                )
            }
            _ => {
                let memory = match (memory, bits) {
                    (Memory::Number, ..=32) => Memory::Number,
                    _ => Memory::Unknown,
                };
                (self.unknown_bits(node, memory, uniform), uniform)
            }
        }
    }

    /// A loop's counter, with all that its tests say about it.
    pub(crate) fn counter(&mut self, of: LoopId) -> Value {
        let facts = &self.graph.loops[of as usize];
        let mut most = FOREVER;
        let mut end = None;
        let mut entry = Rows::new();
        for &(condition, holds) in &facts.entry {
            if let [only] = self.predicate(condition).when(holds) {
                entry.extend(only.iter().cloned());
            }
        }
        for outer in self.graph.around(facts.parent) {
            entry.extend(self.steady[outer as usize].iter().cloned());
        }
        // Bounds as forms: the iterations before one are at most this many.
        let mut rows: Vec<(Form, i128)> = Vec::new();
        for test in &facts.tests {
            let Some(bound) = self.bound(test, &entry) else {
                continue;
            };
            let iterations = i64::try_from(bound.most).unwrap_or(FOREVER).min(FOREVER);
            most = most.min(iterations);
            rows.extend(bound.row);
            if facts.single && bound.exact {
                end = Some(bound.most);
            }
        }
        if most == FOREVER {
            self.endless.push(of);
        }
        let home = Some(of);
        let symbol = self.symbols.add(
            Kind::Counter(of),
            (0, most.max(0)),
            home,
            Uniform::Iteration,
        );
        self.counters[of as usize] = Some(symbol);
        self.ends[of as usize] = end;
        for (form, step) in rows {
            if let Some(row) = form.plus(step, &Form::symbol(symbol))
                && let Some(row) = simplified(&self.symbols, vec![row])
            {
                self.steady[of as usize].extend(row);
            }
        }
        Value::form(Form::symbol(symbol), Memory::Number)
    }

    /// What a test says about its loop's counter.
    fn bound(&self, test: &Test, entry: &[Form]) -> Option<Bound> {
        let Node::Header {
            first,
            kind: Advance::By(step),
            ..
        } = &self.graph.items[test.header as usize].node
        else {
            return None;
        };
        let &[first] = &first[..] else { return None };
        let step = self.step(step, test.bits)?;
        let start = self
            .value(first)?
            .single()?
            .form
            .plus(1, &self.sum(&test.addends)?)?;
        let bound = &self.value(test.bound)?.single()?.form;
        let size = 1i128 << test.bits;
        let least = if test.signed { -size / 2 } else { 0 };
        let greatest = least + size - 1;
        // Both as the numbers that the comparison sees.
        let turned = |form: &Form| -> Option<(Form, i128, i128)> {
            let (low, high) = self.symbols.bounds(form, entry);
            let turn = (low - least).div_euclid(size);
            ((high - least).div_euclid(size) == turn && low <= high).then(|| {
                let by = turn * size;
                form.shifted(-by).map(|form| (form, low - by, high - by))
            })?
        };
        match test.comparison {
            Comparison::NotEqual => {
                // It ends at the latest where the difference has been made up for.
                let mut difference = bound.plus(-1, &start)?;
                if let Some(number) = difference.number() {
                    // In the direction of the step.
                    let ahead = (number * step.signum()).rem_euclid(size);
                    difference = Form::constant(ahead * step.signum());
                }
                let iterations = difference.divided(step)?;
                let (low, high) = self.symbols.bounds(&iterations, entry);
                if low < 0 || high > FOREVER.into() {
                    return None;
                }
                let exact = iterations.number().is_some();
                Some(Bound {
                    most: high,
                    row: Some((iterations, -1)),
                    exact,
                })
            }
            Comparison::Equal => None,
            comparison => {
                if step == 0 || !crate::classify::bounds(comparison, step > 0) {
                    return None;
                }
                let (start, start_low, start_high) = turned(&start)?;
                let (bound, bound_low, bound_high) = turned(bound)?;
                let strict = matches!(comparison, Comparison::Less | Comparison::Greater);
                let strict = i128::from(strict);
                // The last value with which it goes on, and the most iterations before one.
                let (wraps, distance) = match step > 0 {
                    true => (
                        bound_high - strict + step > greatest,
                        bound_high - strict - start_low,
                    ),
                    false => (
                        bound_low + strict + step < least,
                        start_high - bound_low - strict,
                    ),
                };
                if wraps {
                    return None;
                }
                let most = if distance < 0 {
                    0
                } else {
                    distance / step.abs() + 1
                };
                // With counter k >= 1, the test held with k - 1: start + step * (k - 1) is on its side of the bound.
                let row = match step > 0 {
                    true => start.below(&bound, strict)?.shifted(step)?,
                    false => bound.below(&start, strict)?.shifted(-step)?,
                };
                // With counter 0 it is at least this.
                let slack = (-self.symbols.low(&row, entry)).max(0);
                let row = row.shifted(slack)?;
                let exact = start.number().is_some() && bound.number().is_some();
                Some(Bound {
                    most,
                    row: Some((row, -step.abs())),
                    exact,
                })
            }
        }
    }

    /// What a value is after its loop.
    pub(crate) fn out(&mut self, node: NodeId, value: NodeId, of: LoopId) -> (Value, Uniform) {
        let facts = &self.graph.loops[of as usize];
        let control = self.uniform_of(facts.branches.iter().copied());
        let uniform = match control <= Uniform::Iteration {
            true => self.uniform[value as usize],
            false => Uniform::No,
        };
        if self.graph.items[node as usize].bits == 1 {
            return (Value::Predicate(Predicate::unknown()), uniform);
        }
        let all = self.integer(value);
        let inside = |form: &Form| {
            let terms = form.terms.iter();
            terms
                .filter(|&&(symbol, _)| {
                    self.graph.is_inside(self.symbols.home[symbol as usize], of)
                })
                .count()
        };
        let mut kept = Alternatives::new();
        let (mut independent, mut complete) = (true, !all.is_empty());
        for one in &all {
            let mut form = one.form.clone();
            if inside(&form) > 0 {
                independent = false;
                let (Some(counter), Some(end)) =
                    (self.counters[of as usize], self.ends[of as usize])
                else {
                    complete = false;
                    break;
                };
                let Some(last) = form.at(counter, end) else {
                    complete = false;
                    break;
                };
                form = last;
            }
            complete &= inside(&form) == 0;
            let mut when = one.when.clone();
            when.retain(|row| inside(row) == 0);
            kept.push(Alternative {
                form,
                memory: one.memory,
                when,
            });
        }
        if complete {
            let forms = kept.iter().map(|of| self.symbols.uniform(&of.form)).max();
            let uniform = match (independent, kept.len()) {
                (_, 1) => forms.unwrap_or(Uniform::No),
                _ => uniform,
            };
            return (Value::Integer(kept), uniform);
        }
        let memory = all.iter().map(|of| of.memory).reduce(Memory::either);
        let range = self.hull(&all, !all.is_empty());
        (
            self.unknown(node, range, memory.unwrap_or(Memory::Unknown), uniform),
            uniform,
        )
    }
}
