//! Loops of a launch: how often they go round, and the values that change from one iteration to the next.

use smallvec::smallvec;

use crate::evaluate::Evaluation;
use crate::form::{Form, Uniform};
use crate::graph::{Addend, Advance, Comparison, Node, NodeId, Test};
use crate::interval::{EVERY, Interval};
use crate::problem::{LoopId, SymbolKind, Term};
use crate::value::{
    ALTERNATIVES, Alternative, Alternatives, Memory, Predicate, Rows, Value, both, centered,
    simplified,
};

/// Where the bounds of counters end that nothing bounds.
const FOREVER: i64 = 1 << 62;

/// How a value goes through the iterations of a loop.
struct Advancing {
    /// In the first.
    start: Form,
    /// By how much it grows in each.
    step: i128,
}

/// What a test says about the counter of its loop.
struct Bound {
    /// The greatest value of the counter.
    most: i128,
    /// A form and a factor: with the factor times the counter it is not negative.
    row: Option<(Form, i128)>,
    /// The counter with which the test fails first, if that is known.
    end: Option<Form>,
    /// What holds where this applies.
    when: Rows,
}

impl Evaluation<'_> {
    /// The sum of a test's or a step's addends. None where one is not a single form.
    pub(crate) fn sum(&self, addends: &[Addend]) -> Option<Form> {
        let mut sum = Form::default();
        for &Addend { node, negated } in addends {
            let of = self.value(node)?.single()?;
            if of.memory != Memory::Number {
                return None;
            }
            sum = sum.plus(if negated { -1 } else { 1 }, &of.form)?;
        }
        Some(sum)
    }

    /// By how much a value advances in each iteration.
    pub(crate) fn step(&self, addends: &[Addend], bits: u32) -> Option<i128> {
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
                    .all(|of| self.memory_otherwise(&[of.node]) == Memory::Number);
                let memory = if numbers { memory } else { Memory::Unknown };
                (self.unknown_bits(node, memory, uniform), uniform)
            }
            Advance::Shrinks if complete => {
                let Interval { low, high } = self.hull(&starts, true);
                let range = match low >= 0 && high < 1 << (bits - 1) {
                    true => Interval::new(0, high),
                    false => EVERY,
                };
                (
                    self.unknown(node, range, memory.otherwise(), uniform),
                    uniform,
                )
            }
            &Advance::Numbers(low, high) if complete && memory == Memory::Number => {
                let advance = Interval::new(low, high).into();
                let is_open = |of: &Alternative| {
                    let mut open = self.origin.iter();
                    open.any(|&(symbol, _)| of.form == Form::symbol(symbol))
                };
                if starts.iter().all(is_open) || starts.len() >= ALTERNATIVES {
                    let range = self.hull(&starts, true).hull(advance);
                    return (self.unknown(node, range, memory, uniform), uniform);
                }
                // Those of the first iteration are followed.
                let Value::Integer(mut all) = self.unknown(node, advance, memory, uniform) else {
                    return (Value::Predicate(Predicate::unknown()), uniform);
                };
                all.extend(starts);
                (Value::Integer(all), uniform)
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
        let graph = self.graph;
        let facts = &graph.loops[of as usize];
        // What holds where the loop is entered: all of one of these.
        let mut entry = vec![Rows::new()];
        for &(condition, holds) in &facts.entry {
            entry = both(&self.symbols, &entry, self.predicate(condition).when(holds));
        }
        for outer in graph.around(facts.parent) {
            let outer = outer as usize;
            let steady = [self.steady[outer].clone()];
            entry = both(&self.symbols, &entry, &steady);
            for choice in &self.choices[outer] {
                entry = both(&self.symbols, &entry, choice);
            }
        }
        let mut most = FOREVER;
        let mut bounds: Vec<Vec<Bound>> = Vec::new();
        for test in &facts.tests {
            if let Some(found) = self.bounds(test, &entry) {
                let greatest = found.iter().map(|bound| bound.most).max().unwrap_or(0);
                most = most.min(i64::try_from(greatest).unwrap_or(FOREVER));
                bounds.push(found);
            }
        }
        if most == FOREVER {
            self.endless.push(of);
        }
        let symbol = self.symbols.add(
            SymbolKind::Counter(of),
            Interval::new(0, most.max(0)),
            Some(of),
            Uniform::Iteration,
        );
        self.counters[of as usize] = Some(symbol);
        let counter = Form::symbol(symbol);
        for found in &bounds {
            let mut ways = Vec::new();
            for bound in found {
                let mut rows = bound.when.clone();
                if let Some((form, step)) = &bound.row {
                    rows.extend(form.plus(*step, &counter));
                }
                ways.extend(simplified(&self.symbols, rows));
            }
            match &ways[..] {
                [] => {}
                [only] => self.steady[of as usize].extend(only.iter().cloned()),
                _ if ways.len() > ALTERNATIVES || ways.iter().any(Vec::is_empty) => {}
                _ => self.choices[of as usize].push(ways),
            }
        }
        if let [found] = &bounds[..]
            && facts.single
        {
            let ends = found.iter().map(|bound| {
                Some(Alternative {
                    form: bound.end.clone()?,
                    memory: Memory::Number,
                    when: bound.when.clone(),
                })
            });
            let ends: Option<Alternatives> = ends.collect();
            self.ends[of as usize] = ends.filter(|ends| (1..=ALTERNATIVES).contains(&ends.len()));
        }
        Value::form(counter, Memory::Number)
    }

    /// What a test says about its loop's counter, by alternative of its value and its bound.
    fn bounds(&mut self, test: &Test, entry: &[Rows]) -> Option<Vec<Bound>> {
        let Node::Header {
            first,
            kind: Advance::By(step),
            ..
        } = &self.graph.items[test.header as usize].node
        else {
            return None;
        };
        let step = self.step(step, test.bits)?;
        let addends = self.sum(&test.addends)?;
        let limits = self.integer(test.bound);
        let mut all = Vec::new();
        for &first in first {
            let starts = self.integer(first);
            if starts.is_empty() || limits.is_empty() {
                return None;
            }
            for start in &starts {
                for limit in &limits {
                    let when: Rows = start.when.iter().chain(&limit.when).cloned().collect();
                    let Some(when) = simplified(&self.symbols, when) else {
                        continue;
                    };
                    let contexts = both(&self.symbols, entry, std::slice::from_ref(&when));
                    if contexts.is_empty() {
                        continue;
                    }
                    if all.len() > 2 * ALTERNATIVES {
                        return None;
                    }
                    let start = start.form.plus(1, &addends)?;
                    let mut bound =
                        self.bound(test, Advancing { start, step }, &limit.form, &contexts)?;
                    bound.when = when;
                    all.push(bound);
                }
            }
        }
        Some(all)
    }

    /// The bounds of a form where all rows of one of several lists hold.
    fn between(&self, form: &Form, contexts: &[Rows]) -> Interval<i128> {
        let all = contexts.iter();
        all.map(|rows| self.symbols.narrow_bounds(form, rows))
            .filter(|range| !range.is_empty())
            .reduce(Interval::hull)
            .unwrap_or(Interval::only(0))
    }

    /// What a test says about its loop's counter if its value starts and advances so and is compared with a limit.
    fn bound(
        &mut self,
        test: &Test,
        Advancing { start, step }: Advancing,
        limit: &Form,
        contexts: &[Rows],
    ) -> Option<Bound> {
        let size = 1i128 << test.bits;
        let least = if test.signed { -size / 2 } else { 0 };
        let greatest = least + size - 1;
        // Both as the numbers that the comparison sees.
        let turned = |form: &Form| -> Option<(Form, i128, i128)> {
            let Interval { low, high } = self.between(form, contexts);
            let turn = (low - least).div_euclid(size);
            if (high - least).div_euclid(size) != turn {
                return None;
            }
            let by = turn * size;
            Some((form.shifted(-by)?, low - by, high - by))
        };
        match test.comparison {
            Comparison::NotEqual => {
                // It ends at the latest where the difference has been made up for.
                let mut difference = limit.plus(-1, &start)?;
                if let Some(number) = difference.number() {
                    // In the direction of the step.
                    let ahead = (number * step.signum()).rem_euclid(size);
                    difference = Form::constant(ahead * step.signum());
                }
                let iterations = difference.divided(step)?;
                let Interval { low, high } = self.between(&iterations, contexts);
                if low < 0 || high > FOREVER.into() {
                    return None;
                }
                // Before, no value is the same but for whole turns.
                let exact = high.checked_mul(step.abs())? < size;
                Some(Bound {
                    most: high,
                    end: exact.then(|| iterations.clone()),
                    row: Some((iterations, -1)),
                    when: Rows::new(),
                })
            }
            Comparison::Equal => None,
            comparison => {
                if step == 0 || !crate::classify::bounds(comparison, step > 0) {
                    return None;
                }
                let (start, start_low, start_high) = turned(&start)?;
                let (limit, limit_low, limit_high) = turned(limit)?;
                let strict = matches!(comparison, Comparison::Less | Comparison::Greater);
                let strict = i128::from(strict);
                // The last value with which it goes on, and the most iterations before one.
                let (wraps, distance) = match step > 0 {
                    true => (
                        limit_high - strict + step > greatest,
                        limit_high - strict - start_low,
                    ),
                    false => (
                        limit_low + strict + step < least,
                        start_high - limit_low - strict,
                    ),
                };
                if wraps {
                    return None;
                }
                let size = step.abs();
                // How far the last value with which it goes on is away.
                let ahead = match step > 0 {
                    true => start.below(&limit, strict)?,
                    false => limit.below(&start, strict)?,
                };
                let Interval { low, high } = self.between(&ahead, contexts);
                let distance = distance.min(high);
                let most = if distance < 0 { 0 } else { distance / size + 1 };
                let end = match low >= -size {
                    // It is one more than the steps that lead there, and none if it is less than a step behind.
                    true => {
                        let steps = self.symbols.divide(&ahead.shifted(size)?, size);
                        steps.map(|(steps, _)| steps)
                    }
                    false => None,
                };
                // With counter k >= 1, the test held with k - 1: start + step * (k - 1) is on its side of the limit.
                let row = ahead.shifted(size)?;
                // With counter 0 it is at least this.
                let least = self.between(&row, contexts).low;
                let row = row.shifted((-least).max(0))?;
                Some(Bound {
                    most,
                    end,
                    row: Some((row, -size)),
                    when: Rows::new(),
                })
            }
        }
    }

    /// The counter of a loop when it is left, and what it is between. None if a counter is not known.
    fn leaving(&mut self, of: LoopId, control: Uniform) -> Option<Alternatives> {
        if let Some(ends) = &self.ends[of as usize] {
            return Some(ends.clone());
        }
        let counter = self.counters[of as usize]?;
        let symbol = match self.leaving[of as usize] {
            Some(symbol) => symbol,
            None => {
                let range = self.symbols.symbols[counter as usize].range;
                let uniform = match control <= Uniform::Iteration {
                    true => Uniform::Iteration,
                    false => Uniform::No,
                };
                let home = self.graph.loops[of as usize].parent;
                self.symbols.unknown(range, home, uniform)
            }
        };
        self.leaving[of as usize] = Some(symbol);
        let mut when = Rows::new();
        for row in &self.steady[of as usize] {
            when.extend(self.outside(of, row, &Form::symbol(symbol)));
        }
        Some(smallvec![Alternative {
            form: Form::symbol(symbol),
            memory: Memory::Number,
            when,
        }])
    }

    /// A form of a loop where its counter is another form. None if it has other values of the loop.
    fn outside(&self, of: LoopId, form: &Form, counter: &Form) -> Option<Form> {
        let symbol = self.counters[of as usize];
        let factor = symbol.map_or(0, |symbol| form.coefficient(symbol));
        let form = match symbol {
            Some(symbol) if factor != 0 => form.at(symbol, 0)?.plus(factor.into(), counter)?,
            _ => form.clone(),
        };
        let inside = |term: &Term| {
            self.graph
                .is_inside(self.symbols.home[term.variable as usize], of)
        };
        (!form.terms.iter().any(inside)).then(|| self.symbols.folded(form))
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
        let counter = self.counters[of as usize];
        let mut kept = Alternatives::new();
        let mut complete = !all.is_empty();
        for one in &all {
            let counts = counter.is_some_and(|counter| one.form.coefficient(counter) != 0);
            let ends = match counts {
                true => self.leaving(of, control),
                false => Some(smallvec![Alternative {
                    form: Form::default(),
                    memory: Memory::Number,
                    when: Rows::new(),
                }]),
            };
            complete &= ends.is_some();
            for end in ends.into_iter().flatten() {
                let Some(form) = self.outside(of, &one.form, &end.form) else {
                    complete = false;
                    break;
                };
                let rows = one.when.iter().filter(|row| {
                    counts || counter.is_none_or(|counter| row.coefficient(counter) == 0)
                });
                let rows = rows.chain(&end.when);
                let when = rows.filter_map(|row| self.outside(of, row, &end.form));
                let when = when.collect();
                if let Some(when) = simplified(&self.symbols, when) {
                    kept.push(Alternative {
                        form,
                        memory: one.memory,
                        when,
                    });
                }
            }
        }
        if complete && (1..=ALTERNATIVES).contains(&kept.len()) {
            let forms = kept.iter().map(|of| self.symbols.uniform(&of.form)).max();
            let uniform = match kept.len() {
                1 => forms.unwrap_or(Uniform::No),
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
