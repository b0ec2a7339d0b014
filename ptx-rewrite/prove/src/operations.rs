//! Operations and comparisons of a launch's values.

use smallvec::{SmallVec, smallvec};

use crate::evaluate::Evaluation;
use crate::form::{Form, Uniform};
use crate::graph::{Compared, Comparison, NodeId, Op};
use crate::interval::{EVERY, Interval};
use crate::machine;
use crate::problem::SymbolId;
use crate::value::{
    ALTERNATIVES, Alternative, Alternatives, Memory, Predicate, Rows, Value, centered, simplified,
};

/// What an operation combines.
pub(crate) struct Operands<'o> {
    pub(crate) a: &'o Alternative,
    pub(crate) b: &'o Alternative,
    /// A number, of operations that take three.
    pub(crate) third: Option<i128>,
}

impl Evaluation<'_> {
    pub(crate) fn operation(
        &mut self,
        node: NodeId,
        op: Op,
        signed: bool,
        inputs: [NodeId; 3],
    ) -> (Value, Uniform) {
        let graph = self.graph;
        let mut used: SmallVec<[NodeId; 3]> = smallvec![];
        graph.inputs(node, |input| used.push(input));
        let uniform = self.uniform_of(used.iter().copied());
        let bits = graph.items[node as usize].bits;
        if let Some(value) = self.numbers(op, signed, bits, &used) {
            return (value, uniform);
        }
        let value = self.forms(node, op, signed, inputs, used.len());
        match value {
            Some(all) if !all.is_empty() && all.len() <= ALTERNATIVES => {
                (Value::Integer(all), uniform)
            }
            _ => {
                let memory = self.memory_otherwise(&used);
                let memory = match op {
                    // Rounding an address down leaves it in its allocation by the assumption of all addresses.
                    Op::Add | Op::Sub => self.sum_memory(op, &used),
                    _ => memory,
                };
                let range = self.range_of(node, op, signed, &used);
                (self.unknown(node, range, memory, uniform), uniform)
            }
        }
    }

    pub(crate) fn sum_memory(&self, op: Op, used: &[NodeId]) -> Memory {
        let of = |node: NodeId| {
            let all = self.integer(node);
            let memory = all.iter().map(|of| of.memory).reduce(Memory::either);
            memory.unwrap_or(Memory::Unknown)
        };
        match (op, used) {
            (Op::Add, &[left, right]) => of(left).plus(of(right)),
            (Op::Sub, &[left, right]) => of(left).minus(of(right)),
            _ => Memory::Unknown,
        }
    }

    /// The result for numbers.
    pub(crate) fn numbers(
        &self,
        op: Op,
        signed: bool,
        bits: u32,
        used: &[NodeId],
    ) -> Option<Value> {
        let mut inputs = [0; 3];
        let mut memory = Memory::Number;
        for (input, &node) in inputs.iter_mut().zip(used) {
            let (value, of) = self.value(node)?.number()?;
            *input = value as u64;
            memory = match op {
                Op::Sub if node == used[1] && used[0] != used[1] => match of {
                    Memory::Number => memory,
                    _ if of == memory => Memory::Number,
                    _ => Memory::Unknown,
                },
                Op::Add | Op::Sub | Op::And | Op::Or => memory.plus(of),
                Op::Convert {
                    to: 64, from: 64, ..
                } => memory.plus(of),
                Op::Convert { .. } if matches!(of, Memory::Shared(_)) => memory.plus(of),
                _ => memory.plus(of.otherwise()),
            };
        }
        let result = machine::compute(op, signed, bits, inputs)?;
        Some(Value::form(Form::constant(centered(result, bits)), memory))
    }

    /// What an unknown result is known to be between.
    pub(crate) fn range_of(
        &self,
        node: NodeId,
        op: Op,
        signed: bool,
        used: &[NodeId],
    ) -> Interval<i128> {
        let all = EVERY;
        let range = |position: usize| -> Option<Interval<i128>> {
            let of = self.integer(*used.get(position)?);
            let range = self.hull(&of, !of.is_empty());
            let size = 1i128 << self.graph.items[node as usize].bits;
            (range.low >= 0 && range.high < if signed { size / 2 } else { size }).then_some(range)
        };
        match op {
            Op::And => match (range(0), range(1)) {
                (Some(a), Some(b)) => Interval::new(0, a.high.min(b.high)),
                (Some(a), None) | (None, Some(a)) => Interval::new(0, a.high),
                _ => all,
            },
            Op::Or | Op::Xor => match (range(0), range(1)) {
                (Some(a), Some(b)) => {
                    let most = a.high.max(b.high) as u128;
                    Interval::new(0, (most + 1).next_power_of_two() as i128 - 1)
                }
                _ => all,
            },
            Op::Div | Op::Shr => range(0).map_or(all, |of| Interval::new(0, of.high)),
            Op::Rem => match (range(0), range(1)) {
                (Some(a), Some(b)) if b.low > 0 => Interval::new(0, a.high.min(b.high - 1)),
                _ => all,
            },
            Op::Min => match (range(0), range(1)) {
                (Some(a), Some(b)) => Interval::new(a.low.min(b.low), a.high.min(b.high)),
                _ => all,
            },
            _ => all,
        }
    }

    /// The result for forms, by pair of alternatives.
    pub(crate) fn forms(
        &mut self,
        node: NodeId,
        op: Op,
        signed: bool,
        inputs: [NodeId; 3],
        used: usize,
    ) -> Option<Alternatives> {
        let left = self.integer(inputs[0]);
        let right = match used {
            1 => smallvec![Alternative {
                form: Form::default(),
                memory: Memory::Number,
                when: Rows::new()
            }],
            _ => self.integer(inputs[1]),
        };
        if left.is_empty() || right.is_empty() || left.len() * right.len() > ALTERNATIVES {
            return None;
        }
        let third = match used {
            3 => Some(self.value(inputs[2])?.number()?.0),
            _ => None,
        };
        let mut all = Alternatives::new();
        for a in &left {
            for b in &right {
                let when: Rows = a.when.iter().chain(&b.when).cloned().collect();
                let Some(when) = simplified(&self.symbols, when) else {
                    continue;
                };
                for result in self.combine(node, op, signed, Operands { a, b, third }, when)? {
                    let when = simplified(&self.symbols, result.when);
                    if let Some(when) = when {
                        all.push(Alternative { when, ..result });
                    }
                }
            }
        }
        Some(all)
    }

    pub(crate) fn combine(
        &mut self,
        node: NodeId,
        op: Op,
        signed: bool,
        operands: Operands<'_>,
        when: Rows,
    ) -> Option<Alternatives> {
        let Operands { a, b, third } = operands;
        let bits = self.graph.items[node as usize].bits;
        let one = |form: Form, memory: Memory| -> Option<Alternatives> {
            Some(smallvec![Alternative {
                form,
                memory,
                when: when.clone()
            }])
        };
        let otherwise = a.memory.otherwise().plus(b.memory.otherwise());
        match op {
            Op::Add => {
                let sum = self.symbols.folded(a.form.plus(1, &b.form)?);
                one(sum, a.memory.plus(b.memory))
            }
            Op::Sub => {
                self.are_comparable(a, b).then_some(())?;
                let difference = self.symbols.folded(a.form.plus(-1, &b.form)?);
                one(difference, a.memory.minus(b.memory))
            }
            Op::Neg => one(a.form.times(-1)?, otherwise),
            Op::Not => one(Form::constant(-1).plus(-1, &a.form)?, otherwise),
            Op::Mul => {
                let (form, factor) = match (a.form.number(), b.form.number()) {
                    (_, Some(factor)) => (&a.form, factor),
                    (Some(factor), _) => (&b.form, factor),
                    _ => return None,
                };
                one(form.times(factor)?, otherwise)
            }
            Op::MulWide => {
                let mut all = Alternatives::new();
                let a = Alternative { when, ..a.clone() };
                for x in self.read(node, &a, bits / 2, signed)? {
                    for y in self.read(node, b, bits / 2, signed)? {
                        let form = match (x.form.number(), y.form.number()) {
                            (_, Some(factor)) => x.form.times(factor)?,
                            (Some(factor), _) => y.form.times(factor)?,
                            _ => return None,
                        };
                        let when = x.when.iter().chain(&y.when).cloned().collect();
                        all.push(Alternative {
                            form,
                            memory: otherwise,
                            when,
                        });
                    }
                }
                Some(all)
            }
            Op::Shl => {
                let by = b.form.number()?;
                let by = by.rem_euclid(1 << 32);
                match by {
                    _ if by >= i128::from(bits) => one(Form::constant(0), Memory::Number),
                    _ => one(a.form.times(1 << by)?, otherwise),
                }
            }
            Op::Shr | Op::Div | Op::Rem => {
                let by = b.form.number()?;
                let divisor = match op {
                    Op::Shr => {
                        let by = by.rem_euclid(1 << 32);
                        if by >= i128::from(bits) || by > 40 {
                            return None;
                        }
                        1 << by
                    }
                    _ => by,
                };
                // A negative divisor of an unsigned division is a large number.
                if divisor <= 0 {
                    return None;
                }
                let a = Alternative { when, ..a.clone() };
                let mut all = Alternatives::new();
                for x in self.read(node, &a, bits, signed)? {
                    // Division rounds towards zero, a shift down.
                    let mut parts: SmallVec<[(Form, Rows, i128); 2]> = smallvec![];
                    match op != Op::Shr && self.symbols.range(&x.form).low < 0 {
                        true => {
                            let negative = x.form.times(-1)?;
                            let mut when = x.when.clone();
                            when.push(negative.shifted(-1)?);
                            parts.push((negative, when, -1));
                            let mut when = x.when.clone();
                            when.push(x.form.clone());
                            parts.push((x.form, when, 1));
                        }
                        false => parts.push((x.form, x.when, 1)),
                    }
                    for (form, when, sign) in parts {
                        let Some(when) = simplified(&self.symbols, when) else {
                            continue;
                        };
                        let fraction = match op {
                            Op::Shr => self.fraction(node, &form, divisor, &when),
                            _ => None,
                        };
                        let form = match (fraction, op) {
                            (Some(quotient), _) => quotient,
                            (None, Op::Rem) => self.symbols.divide(&form, divisor)?.1,
                            (None, _) => self.symbols.divide(&form, divisor)?.0,
                        };
                        all.push(Alternative {
                            form: form.times(sign)?,
                            memory: otherwise,
                            when,
                        });
                    }
                }
                Some(all)
            }
            Op::MulHigh => {
                let a = Alternative { when, ..a.clone() };
                let mut all = Alternatives::new();
                for x in self.read(node, &a, bits, signed)? {
                    for y in self.read(node, b, bits, signed)? {
                        let product = match (x.form.number(), y.form.number()) {
                            (_, Some(factor)) => x.form.times(factor)?,
                            (Some(factor), _) => y.form.times(factor)?,
                            _ => return None,
                        };
                        let when: Rows = x.when.iter().chain(&y.when).cloned().collect();
                        let size = 1 << bits;
                        let form = match self.fraction(node, &product, size, &when) {
                            Some(quotient) => quotient,
                            None => self.symbols.divide(&product, size)?.0,
                        };
                        all.push(Alternative {
                            form,
                            memory: otherwise,
                            when,
                        });
                    }
                }
                Some(all)
            }
            Op::And => {
                let (of, mask, memory) = match (a.form.number(), b.form.number()) {
                    (_, Some(mask)) => (&a.form, mask, a.memory),
                    (Some(mask), _) => (&b.form, mask, b.memory),
                    _ => return None,
                };
                let low = mask + 1;
                if mask > 0 && low & mask == 0 && low <= 1 << 40 {
                    // The low bits are the same whatever the reading.
                    let (_, remainder) = self.symbols.divide(of, low)?;
                    return one(remainder, otherwise);
                }
                let step = -mask;
                if mask < 0 && step & (step - 1) == 0 && step <= 1 << 40 {
                    let (quotient, _) = self.symbols.divide(of, step)?;
                    return one(quotient.times(step)?, memory.otherwise());
                }
                None
            }
            Op::Or | Op::Xor => {
                for (x, y) in [(a, b), (b, a)] {
                    let Interval { low, high } = self.symbols.range(&y.form);
                    if low < 0 || high >= 1 << 40 {
                        continue;
                    }
                    let step = (high + 1).max(1) as u128;
                    let step = step.next_power_of_two() as i128;
                    if step <= 1i128 << bits && x.form.is_multiple(step) {
                        return one(x.form.plus(1, &y.form)?, x.memory.plus(y.memory));
                    }
                }
                match (op, b.form.number()) {
                    (Op::Xor, Some(-1)) => one(Form::constant(-1).plus(-1, &a.form)?, otherwise),
                    _ => None,
                }
            }
            Op::Min | Op::Max => {
                let mut all = Alternatives::new();
                let a = Alternative { when, ..a.clone() };
                for x in self.read(node, &a, bits, signed)? {
                    for y in self.read(node, b, bits, signed)? {
                        let when: Rows = x.when.iter().chain(&y.when).cloned().collect();
                        // The first where it is not greater, the second where it is less.
                        let (low, high) = match op {
                            Op::Min => (x.form.below(&y.form, 0)?, y.form.below(&x.form, 1)?),
                            _ => (y.form.below(&x.form, 0)?, x.form.below(&y.form, 1)?),
                        };
                        for (of, row) in [(&x, low), (&y, high)] {
                            let mut when = when.clone();
                            when.push(row);
                            all.push(Alternative { when, ..of.clone() });
                        }
                    }
                }
                Some(all)
            }
            Op::Abs => {
                let mut all = Alternatives::new();
                let a = Alternative { when, ..a.clone() };
                for x in self.read(node, &a, bits, true)? {
                    let negative = x.form.times(-1)?;
                    for (form, row) in [
                        (x.form.clone(), x.form.clone()),
                        (negative.clone(), negative),
                    ] {
                        let mut when = x.when.clone();
                        when.push(row);
                        all.push(Alternative {
                            form,
                            memory: otherwise,
                            when,
                        });
                    }
                }
                Some(all)
            }
            Op::Convert {
                from,
                to,
                to_signed,
            } => {
                let memory = match a.memory {
                    of @ Memory::Shared(_) => of,
                    of if from == 64 && to == 64 => of,
                    of => of.otherwise(),
                };
                if to == bits && to <= from {
                    return one(a.form.clone(), memory);
                }
                let a = Alternative {
                    when,
                    memory,
                    ..a.clone()
                };
                let mut all = Alternatives::new();
                for x in self.read(node, &a, from, signed)? {
                    match to == bits {
                        true => all.push(x),
                        false => all.extend(self.read(node, &x, to, to_signed)?),
                    }
                }
                Some(all)
            }
            Op::Field => {
                let (from, count) = (b.form.number()?, third?);
                if signed || !(0..i128::from(bits)).contains(&from) || !(1..=32).contains(&count) {
                    return None;
                }
                let a = Alternative { when, ..a.clone() };
                let mut all = Alternatives::new();
                for x in self.read(node, &a, bits, false)? {
                    let (quotient, _) = self.symbols.divide(&x.form, 1 << from)?;
                    let (_, remainder) = self.symbols.divide(&quotient, 1 << count)?;
                    all.push(Alternative {
                        form: remainder,
                        memory: otherwise,
                        when: x.when,
                    });
                }
                Some(all)
            }
            Op::Generic => {
                let window = Form::symbol(self.window());
                one(a.form.plus(1, &window)?, a.memory)
            }
            Op::FromGeneric => {
                let window = Form::symbol(self.window());
                one(a.form.plus(-1, &window)?, a.memory)
            }
        }
    }

    /// [`Symbols::fraction`] of a node's operand, with what holds where the node is computed.
    fn fraction(
        &mut self,
        node: NodeId,
        form: &Form,
        divisor: i128,
        when: &[Form],
    ) -> Option<Form> {
        let item = &self.graph.items[node as usize];
        let mut rows = self.rows(item.block, item.home);
        rows.extend(when.iter().cloned());
        self.symbols.fraction(form, divisor, &rows)
    }

    /// Where shared memory lies among generic addresses.
    pub(crate) fn window(&mut self) -> SymbolId {
        match self.window {
            Some(window) => window,
            None => {
                let window =
                    self.symbols
                        .unknown(Interval::new(1 << 24, 1 << 56), None, Uniform::Grid);
                self.window = Some(window);
                window
            }
        }
    }

    pub(crate) fn compare(
        &mut self,
        node: NodeId,
        how: Compared,
        left: NodeId,
        right: NodeId,
    ) -> Predicate {
        let (left, right) = (self.integer(left), self.integer(right));
        let comparison = how.comparison.negated();
        let yes = self.comparison(node, how, &left, &right);
        let no = self.comparison(node, Compared { comparison, ..how }, &left, &right);
        match (yes, no) {
            (Some(yes), Some(no)) => Predicate { yes, no },
            _ => Predicate::unknown(),
        }
    }

    /// What holds where a comparison does: one of these.
    pub(crate) fn comparison(
        &self,
        node: NodeId,
        how: Compared,
        left: &Alternatives,
        right: &Alternatives,
    ) -> Option<Vec<Rows>> {
        let Compared {
            comparison,
            signed,
            bits,
        } = how;
        if left.is_empty() || right.is_empty() {
            return None;
        }
        let mut all = Vec::new();
        for a in left {
            for b in right {
                self.are_comparable(a, b).then_some(())?;
                for x in self.read(node, a, bits, signed)? {
                    for y in self.read(node, b, bits, signed)? {
                        let (x_form, y_form) = (&x.form, &y.form);
                        let ways: SmallVec<[Rows; 2]> = match comparison {
                            Comparison::Less => smallvec![vec![x_form.below(y_form, 1)?]],
                            Comparison::LessEqual => smallvec![vec![x_form.below(y_form, 0)?]],
                            Comparison::Greater => smallvec![vec![y_form.below(x_form, 1)?]],
                            Comparison::GreaterEqual => smallvec![vec![y_form.below(x_form, 0)?]],
                            Comparison::Equal => {
                                smallvec![vec![x_form.below(y_form, 0)?, y_form.below(x_form, 0)?,]]
                            }
                            Comparison::NotEqual => smallvec![
                                vec![x_form.below(y_form, 1)?],
                                vec![y_form.below(x_form, 1)?],
                            ],
                        };
                        for mut rows in ways {
                            rows.extend(x.when.iter().chain(&y.when).cloned());
                            if let Some(rows) = simplified(&self.symbols, rows) {
                                all.push(rows);
                            }
                        }
                    }
                }
            }
        }
        if all.iter().any(Vec::is_empty) || all.len() > ALTERNATIVES {
            return Some(vec![Vec::new()]);
        }
        Some(all)
    }

    /// Whether the order of two values is the same in all launches that are meant: that of pointers into different
    /// allocations is not, if there are several launches.
    fn are_comparable(&self, a: &Alternative, b: &Alternative) -> bool {
        let null = |of: &Alternative| of.memory == Memory::Number && of.form.number() == Some(0);
        match (a.memory, b.memory) {
            _ if self.family.is_none() => true,
            (Memory::Unknown, _) | (_, Memory::Unknown) => false,
            (Memory::Global(..), _) | (_, Memory::Global(..)) => {
                a.memory == b.memory || null(a) || null(b)
            }
            _ => true,
        }
    }
}
