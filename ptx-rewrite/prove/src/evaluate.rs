//! The values of a kernel at a launch.
//!
//! A form is equal to its value modulo two to the number of the value's bits, so sums and products by numbers need no
//! check. Where a value is read as a signed or an unsigned number (comparisons, divisions, extensions, addresses), its
//! form's range must lie within one such reading, or it is split by readings, or it becomes unknown.

use smallvec::smallvec;

use crate::Launch;
use crate::form::{Form, Symbols, Uniform};
use crate::graph::{Advance, Comparison, Condition, Graph, Node, NodeId, Op, Origin};
use crate::machine;
use crate::problem::{Axis, Kind, LoopId, SymbolId};
use crate::ssa::SharedVariable;
use crate::value::{
    ALTERNATIVES, Alternative, Alternatives, Memory, Predicate, Rows, Value, any, both, centered,
    simplified,
};

/// Where the bounds of counters end that nothing bounds.
const FOREVER: i64 = 1 << 62;

/// A launch while its values are computed.
pub(crate) struct Evaluation<'a> {
    pub(crate) graph: &'a Graph,
    launch: &'a Launch<'a>,
    globals: &'a [String],
    pub(crate) shared: &'a [SharedVariable],
    pub(crate) symbols: Symbols,
    pub(crate) values: Vec<Option<Value>>,
    uniform: Vec<Uniform>,
    /// By symbol that stands for an unknown value: the value.
    pub(crate) origin: Vec<(SymbolId, NodeId)>,
    counters: Vec<Option<SymbolId>>,
    /// By loop: what holds at the start of each iteration.
    pub(crate) steady: Vec<Rows>,
    /// By loop: its counter when it ends.
    ends: Vec<Option<i128>>,
    /// Loops without a bound.
    pub(crate) endless: Vec<LoopId>,
    /// Where shared memory lies among generic addresses.
    window: Option<SymbolId>,
    /// By variable in shared memory: where it lies, in multiples of its alignment.
    bases: Vec<Option<SymbolId>>,
}

fn axis(of: Axis) -> usize {
    match of {
        Axis::X => 0,
        Axis::Y => 1,
        Axis::Z => 2,
    }
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(
        graph: &'a Graph,
        (globals, shared): (&'a [String], &'a [SharedVariable]),
        launch: &'a Launch<'a>,
    ) -> Self {
        let mut symbols = Symbols::default();
        let axes = [Axis::X, Axis::Y, Axis::Z];
        for of in axes {
            let count = i64::from(launch.block[axis(of)].max(1));
            let uniform = if count == 1 { Uniform::Grid } else { Uniform::No };
            symbols.add(Kind::Thread(of), (0, count - 1), None, uniform);
        }
        for of in axes {
            let count = i64::from(launch.grid[axis(of)].max(1));
            let uniform = if count == 1 { Uniform::Grid } else { Uniform::Block };
            symbols.add(Kind::Block(of), (0, count - 1), None, uniform);
        }
        let mut evaluation = Self {
            graph,
            launch,
            globals,
            shared,
            symbols,
            values: vec![None; graph.items.len()],
            uniform: vec![Uniform::No; graph.items.len()],
            origin: Vec::new(),
            counters: vec![None; graph.loops.len()],
            steady: vec![Vec::new(); graph.loops.len()],
            ends: vec![None; graph.loops.len()],
            endless: Vec::new(),
            window: None,
            bases: vec![None; shared.len()],
        };
        for &node in &graph.order {
            let (value, uniform) = evaluation.compute(node);
            evaluation.values[node as usize] = Some(value);
            evaluation.uniform[node as usize] = uniform;
        }
        evaluation
    }

    /// Whether all threads of a block have the same value, in the same iteration of the loops around.
    pub(crate) fn is_uniform(&self, node: NodeId) -> bool {
        self.uniform[node as usize] <= Uniform::Iteration
    }

    fn value(&self, node: NodeId) -> Option<&Value> {
        self.values[node as usize].as_ref()
    }

    fn integer(&self, node: NodeId) -> Alternatives {
        match self.value(node) {
            Some(Value::Integer(all)) => all.clone(),
            _ => Alternatives::new(),
        }
    }

    pub(crate) fn predicate(&self, node: NodeId) -> Predicate {
        match self.value(node) {
            Some(Value::Predicate(predicate)) => predicate.clone(),
            _ => Predicate::unknown(),
        }
    }

    fn uniform_of(&self, nodes: impl IntoIterator<Item = NodeId>) -> Uniform {
        let uniform = nodes.into_iter().map(|node| self.uniform[node as usize]);
        uniform.max().unwrap_or(Uniform::Grid)
    }

    /// What certainly holds in a block.
    pub(crate) fn rows(&self, block: usize, home: Option<LoopId>) -> Rows {
        let mut rows = Rows::new();
        for &(condition, holds) in &self.graph.holds[block] {
            if let [only] = self.predicate(condition).when(holds) {
                rows.extend(only.iter().cloned());
            }
        }
        for of in self.graph.around(home) {
            rows.extend(self.steady[of as usize].iter().cloned());
        }
        rows
    }

    /// A value of which only the range is known.
    fn unknown(&mut self, node: NodeId, range: (i128, i128), memory: Memory, uniform: Uniform) -> Value {
        let item = &self.graph.items[node as usize];
        if item.bits == 1 {
            return Value::Predicate(Predicate::unknown());
        }
        let full = crate::ssa::full_range(item.bits);
        let range = match (i64::try_from(range.0), i64::try_from(range.1)) {
            (Ok(low), Ok(high)) if low <= high => (low, high),
            _ => full,
        };
        let symbol = self.symbols.unknown(range, item.home, uniform);
        self.origin.push((symbol, node));
        Value::form(Form::symbol(symbol), memory)
    }

    fn unknown_bits(&mut self, node: NodeId, memory: Memory, uniform: Uniform) -> Value {
        let (low, high) = crate::ssa::full_range(self.graph.items[node as usize].bits);
        self.unknown(node, (low.into(), high.into()), memory, uniform)
    }

    fn compute(&mut self, node: NodeId) -> (Value, Uniform) {
        let graph = self.graph;
        let item = &graph.items[node as usize];
        let bits = item.bits;
        let number = |value: u64, memory| {
            let form = Form::constant(centered(value, bits));
            (Value::form(form, memory), Uniform::Grid)
        };
        match &item.node {
            Node::Pending => (self.unknown_bits(node, Memory::Unknown, Uniform::No), Uniform::No),
            &Node::Number(value) if bits == 1 => {
                let always = Predicate { yes: vec![Vec::new()], no: Vec::new() };
                let value = if value & 1 == 1 { always } else { always.negated() };
                (Value::Predicate(value), Uniform::Grid)
            }
            &Node::Number(value) => number(value, Memory::Number),
            &Node::Thread(of) => self.axis(axis(of)),
            &Node::Block(of) => self.axis(3 + axis(of)),
            &Node::Threads(of) => number(self.launch.block[axis(of)].into(), Memory::Number),
            &Node::Blocks(of) => number(self.launch.grid[axis(of)].into(), Memory::Number),
            &Node::Parameter { offset, bytes, signed } => {
                let start = offset as usize;
                let found = self.launch.parameters.get(start..start + bytes as usize);
                let Some(found) = found else {
                    return (self.unknown_bits(node, Memory::Unknown, Uniform::Grid), Uniform::Grid);
                };
                let mut value = [0; 8];
                value[..found.len()].copy_from_slice(found);
                let value = u64::from_le_bytes(value);
                let memory = match bytes {
                    8 => self.allocation(value),
                    _ => Memory::Number,
                };
                match signed {
                    true => number(centered(value, bytes * 8) as u64, memory),
                    false => number(value, memory),
                }
            }
            &Node::Global(index) => {
                let name = &self.globals[index as usize];
                match (self.launch.variable)(name) {
                    Some((start, bytes)) => number(start, Memory::Global(start, bytes)),
                    None => (self.unknown_bits(node, Memory::Unknown, Uniform::Grid), Uniform::Grid),
                }
            }
            &Node::Shared(index) => {
                let form = self.shared_base(index);
                (Value::form(form, Memory::Shared(index)), Uniform::Grid)
            }
            Node::Opaque { inputs, range, origin, pure } => {
                let uniform = match pure {
                    true => self.uniform_of(inputs.iter().copied()),
                    false => Uniform::No,
                };
                let memory = match origin {
                    Origin::Private => Memory::Private,
                    Origin::Unknown => Memory::Unknown,
                    Origin::Number => self.memory_otherwise(inputs),
                };
                let range = (range.0.into(), range.1.into());
                (self.unknown(node, range, memory, uniform), uniform)
            }
            &Node::Operation { op, signed, inputs } => self.operation(node, op, signed, inputs),
            &Node::Compare { comparison, signed, bits, left, right } => {
                let uniform = self.uniform_of([left, right]);
                let value = self.compare(node, (comparison, signed, bits), left, right);
                (Value::Predicate(value), uniform)
            }
            &Node::All(left, right) => {
                let (a, b) = (self.predicate(left), self.predicate(right));
                let yes = both(&self.symbols, &a.yes, &b.yes);
                let no = any(&a.no, &b.no);
                (Value::Predicate(Predicate { yes, no }), self.uniform_of([left, right]))
            }
            &Node::Any(left, right) => {
                let (a, b) = (self.predicate(left), self.predicate(right));
                let yes = any(&a.yes, &b.yes);
                let no = both(&self.symbols, &a.no, &b.no);
                (Value::Predicate(Predicate { yes, no }), self.uniform_of([left, right]))
            }
            &Node::Opposite(of) => {
                let value = Value::Predicate(self.predicate(of).negated());
                (value, self.uniform[of as usize])
            }
            &Node::Select { on, yes, no } => {
                let uniform = self.uniform_of([on, yes, no]);
                let condition = self.predicate(on);
                let ways = vec![(yes, condition.yes), (no, condition.no)];
                (self.merge(node, ways, uniform), uniform)
            }
            Node::Join { inputs, control } => {
                let control = self.uniform_of(control.iter().copied());
                let mut uniform = self.uniform_of(inputs.iter().map(|&(input, _)| input));
                uniform = match control <= Uniform::Iteration {
                    true => uniform.max(control),
                    false => Uniform::No,
                };
                let ways = inputs.iter();
                let ways = ways.map(|(input, path)| (*input, self.path(path))).collect();
                (self.merge(node, ways, uniform), uniform)
            }
            Node::Header { of, first, kind, leaves, .. } => {
                self.header(node, *of, first, kind, leaves.as_deref())
            }
            &Node::Counter(of) => {
                let value = self.counter(node, of);
                (value, Uniform::Iteration)
            }
            &Node::Out { value, of } => self.out(node, value, of),
            &Node::Copy(of) => match self.values[of as usize].clone() {
                Some(value) => (value, self.uniform[of as usize]),
                None => (self.unknown_bits(node, Memory::Unknown, Uniform::No), Uniform::No),
            },
        }
    }

    fn axis(&self, symbol: usize) -> (Value, Uniform) {
        let form = match self.symbols.symbols[symbol].range {
            (0, 0) => Form::constant(0),
            _ => Form::symbol(symbol as SymbolId),
        };
        (Value::form(form, Memory::Number), self.symbols.uniform[symbol])
    }

    fn allocation(&self, address: u64) -> Memory {
        match (self.launch.allocation)(address) {
            Some((start, bytes)) => Memory::Global(start, bytes),
            None => Memory::Number,
        }
    }

    /// The address of a variable in shared memory. Where it is, and in which order variables are, is not assumed.
    pub(crate) fn shared_base(&mut self, index: u32) -> Form {
        // Dynamic variables are all one.
        let is_dynamic = |of: &SharedVariable| of.bytes.is_none();
        let mut index = index as usize;
        let mut align = self.shared[index].align;
        if is_dynamic(&self.shared[index]) {
            let all = || self.shared.iter().filter(|of| is_dynamic(of));
            index = self.shared.iter().position(is_dynamic).unwrap_or(index);
            align = all().map(|of| of.align).min().unwrap_or(align);
        }
        let align = i64::from(align.max(1));
        let symbol = match self.bases[index] {
            Some(symbol) => symbol,
            None => {
                let symbol = self.symbols.unknown((0, (1 << 24) / align), None, Uniform::Grid);
                self.bases[index] = Some(symbol);
                symbol
            }
        };
        Form { terms: smallvec![(symbol, align)], constant: 0 }
    }

    /// Start and size of a variable in shared memory, with all far apart.
    pub(crate) fn shared_range(&self, index: u32) -> (i128, i128) {
        match self.shared[index as usize].bytes {
            Some(bytes) => (i128::from(index + 1) << 24, bytes.into()),
            None => (0, self.launch.dynamic_shared.into()),
        }
    }

    fn memory_otherwise(&self, inputs: &[NodeId]) -> Memory {
        let mut memory = Memory::Number;
        for &input in inputs {
            for of in &self.integer(input) {
                memory = memory.plus(of.memory.otherwise());
            }
        }
        memory
    }

    /// What holds on a path, one of several.
    fn path(&self, path: &[Condition]) -> Vec<Rows> {
        let mut all = vec![Vec::new()];
        for &(condition, holds) in path {
            all = both(&self.symbols, &all, self.predicate(condition).when(holds));
        }
        all
    }

    /// One of several values, each under conditions.
    fn merge(&mut self, node: NodeId, ways: Vec<(NodeId, Vec<Rows>)>, uniform: Uniform) -> Value {
        if self.graph.items[node as usize].bits == 1 {
            let mut merged = Predicate { yes: Vec::new(), no: Vec::new() };
            for (value, when) in ways {
                let value = self.predicate(value);
                merged.yes = any(&merged.yes, &both(&self.symbols, &when, &value.yes));
                merged.no = any(&merged.no, &both(&self.symbols, &when, &value.no));
            }
            return Value::Predicate(merged);
        }
        let mut all: Alternatives = Alternatives::new();
        let mut memory: Option<Memory> = None;
        let mut complete = true;
        for (value, when) in ways {
            if when.is_empty() {
                continue;
            }
            let value = self.integer(value);
            complete &= !value.is_empty();
            for of in value {
                memory = Some(memory.map_or(of.memory, |known| known.either(of.memory)));
                for rows in &when {
                    let rows = of.when.iter().chain(rows).cloned().collect();
                    let Some(rows) = simplified(&self.symbols, rows) else {
                        continue;
                    };
                    let same = |known: &&mut Alternative| {
                        known.form == of.form && known.memory == of.memory
                    };
                    match all.iter_mut().find(same) {
                        // Under other conditions, too: those that are common remain.
                        Some(known) => known.when.retain(|row| rows.contains(row)),
                        None => all.push(Alternative { when: rows, ..of.clone() }),
                    }
                }
            }
        }
        match complete && all.len() <= ALTERNATIVES {
            true if !all.is_empty() => Value::Integer(all),
            _ => {
                let range = self.hull(&all, complete && !all.is_empty());
                self.unknown(node, range, memory.unwrap_or(Memory::Unknown), uniform)
            }
        }
    }

    /// The range of all alternatives; every number if they are not known to be all.
    fn hull(&self, all: &Alternatives, complete: bool) -> (i128, i128) {
        if !complete {
            return (i128::MIN, i128::MAX);
        }
        let ranges = all.iter().map(|of| self.symbols.range(&of.form));
        ranges
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .unwrap_or((i128::MIN, i128::MAX))
    }

    /// An alternative read as a signed or an unsigned number of so many bits: one or two alternatives that are equal
    /// to it as numbers. None if the form does not say.
    fn read(&self, node: NodeId, of: &Alternative, bits: u32, signed: bool) -> Option<Alternatives> {
        let size = 1i128 << bits;
        let least = if signed { -size / 2 } else { 0 };
        let turns = |(low, high): (i128, i128)| {
            ((low - least).div_euclid(size), (high - least).div_euclid(size))
        };
        let (mut first, mut last) = turns(self.symbols.range(&of.form));
        if first != last {
            let item = &self.graph.items[node as usize];
            let mut rows = self.rows(item.block, item.home);
            rows.extend(of.when.iter().cloned());
            (first, last) = turns(self.symbols.bounds(&of.form, &rows));
        }
        if first > last {
            // It is never computed.
            return Some(Alternatives::new());
        }
        if last - first > 1 {
            return None;
        }
        let mut all = Alternatives::new();
        for turn in first..=last {
            let form = of.form.shifted(-(turn * size))?;
            let mut when = of.when.clone();
            if first != last {
                when.push(match turn == first {
                    // Less than the start of the next turn, and not less than it.
                    true => Form::constant(least + size - 1).plus(-1, &form)?,
                    false => form.shifted(-least)?,
                });
            }
            if let Some(when) = simplified(&self.symbols, when) {
                all.push(Alternative { form, when, ..of.clone() });
            }
        }
        Some(all)
    }

    fn operation(
        &mut self,
        node: NodeId,
        op: Op,
        signed: bool,
        inputs: [NodeId; 3],
    ) -> (Value, Uniform) {
        let graph = self.graph;
        let mut used: smallvec::SmallVec<[NodeId; 3]> = smallvec![];
        graph.inputs(node, |input| used.push(input));
        let uniform = self.uniform_of(used.iter().copied());
        let bits = graph.items[node as usize].bits;
        if let Some(value) = self.numbers(op, signed, bits, &used) {
            return (value, uniform);
        }
        let value = self.forms(node, op, signed, inputs, used.len());
        match value {
            Some(all) if !all.is_empty() && all.len() <= ALTERNATIVES => (Value::Integer(all), uniform),
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

    fn sum_memory(&self, op: Op, used: &[NodeId]) -> Memory {
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
    fn numbers(&self, op: Op, signed: bool, bits: u32, used: &[NodeId]) -> Option<Value> {
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
                Op::Convert { to: 64, from: 64, .. } => memory.plus(of),
                Op::Convert { .. } if matches!(of, Memory::Shared(_)) => memory.plus(of),
                _ => memory.plus(of.otherwise()),
            };
        }
        let result = machine::compute(op, signed, bits, inputs)?;
        Some(Value::form(Form::constant(centered(result, bits)), memory))
    }

    /// What an unknown result is known to be between.
    fn range_of(&self, node: NodeId, op: Op, signed: bool, used: &[NodeId]) -> (i128, i128) {
        let all = (i128::MIN, i128::MAX);
        let range = |position: usize| -> Option<(i128, i128)> {
            let of = self.integer(*used.get(position)?);
            let range = self.hull(&of, !of.is_empty());
            let size = 1i128 << self.graph.items[node as usize].bits;
            (range.0 >= 0 && range.1 < if signed { size / 2 } else { size }).then_some(range)
        };
        match op {
            Op::And => match (range(0), range(1)) {
                (Some(a), Some(b)) => (0, a.1.min(b.1)),
                (Some(a), None) | (None, Some(a)) => (0, a.1),
                _ => all,
            },
            Op::Or | Op::Xor => match (range(0), range(1)) {
                (Some(a), Some(b)) => {
                    let most = a.1.max(b.1) as u128;
                    (0, (most + 1).next_power_of_two() as i128 - 1)
                }
                _ => all,
            },
            Op::Div | Op::Shr => range(0).map_or(all, |(_, high)| (0, high)),
            Op::Rem => match (range(0), range(1)) {
                (Some(a), Some(b)) if b.0 > 0 => (0, a.1.min(b.1 - 1)),
                _ => all,
            },
            Op::Min => match (range(0), range(1)) {
                (Some(a), Some(b)) => (a.0.min(b.0), a.1.min(b.1)),
                _ => all,
            },
            _ => all,
        }
    }

    /// The result for forms, by pair of alternatives.
    fn forms(
        &mut self,
        node: NodeId,
        op: Op,
        signed: bool,
        inputs: [NodeId; 3],
        used: usize,
    ) -> Option<Alternatives> {
        let left = self.integer(inputs[0]);
        let right = match used {
            1 => smallvec![Alternative { form: Form::default(), memory: Memory::Number, when: Rows::new() }],
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
                for result in self.combine(node, op, signed, (a, b, third), when)? {
                    let when = simplified(&self.symbols, result.when);
                    if let Some(when) = when {
                        all.push(Alternative { when, ..result });
                    }
                }
            }
        }
        Some(all)
    }

    fn combine(
        &mut self,
        node: NodeId,
        op: Op,
        signed: bool,
        (a, b, third): (&Alternative, &Alternative, Option<i128>),
        when: Rows,
    ) -> Option<Alternatives> {
        let bits = self.graph.items[node as usize].bits;
        let one = |form: Form, memory: Memory| -> Option<Alternatives> {
            Some(smallvec![Alternative { form, memory, when: when.clone() }])
        };
        let otherwise = a.memory.otherwise().plus(b.memory.otherwise());
        match op {
            Op::Add => one(a.form.plus(1, &b.form)?, a.memory.plus(b.memory)),
            Op::Sub => one(a.form.plus(-1, &b.form)?, a.memory.minus(b.memory)),
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
                        all.push(Alternative { form, memory: otherwise, when });
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
                    if op != Op::Shr && self.symbols.range(&x.form).0 < 0 {
                        return None;
                    }
                    let (quotient, remainder) = self.symbols.divide(&x.form, divisor)?;
                    let form = if op == Op::Rem { remainder } else { quotient };
                    all.push(Alternative { form, memory: otherwise, when: x.when });
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
                    let (_, remainder) = self.symbols.divide(of, step)?;
                    return one(of.plus(-1, &remainder)?, memory.otherwise());
                }
                None
            }
            Op::Or | Op::Xor => {
                for (x, y) in [(a, b), (b, a)] {
                    let (low, high) = self.symbols.range(&y.form);
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
                    for (form, row) in [(x.form.clone(), x.form.clone()), (negative.clone(), negative)] {
                        let mut when = x.when.clone();
                        when.push(row);
                        all.push(Alternative { form, memory: otherwise, when });
                    }
                }
                Some(all)
            }
            Op::Convert { from, to, to_signed } => {
                let memory = match a.memory {
                    of @ Memory::Shared(_) => of,
                    of if from == 64 && to == 64 => of,
                    of => of.otherwise(),
                };
                if to == bits && to <= from {
                    return one(a.form.clone(), memory);
                }
                let a = Alternative { when, memory, ..a.clone() };
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
                    all.push(Alternative { form: remainder, memory: otherwise, when: x.when });
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
            Op::MulHigh => None,
        }
    }

    /// Where shared memory lies among generic addresses.
    pub(crate) fn window(&mut self) -> SymbolId {
        match self.window {
            Some(window) => window,
            None => {
                let window = self.symbols.unknown((1 << 24, 1 << 56), None, Uniform::Grid);
                self.window = Some(window);
                window
            }
        }
    }

    fn compare(
        &mut self,
        node: NodeId,
        (comparison, signed, bits): (Comparison, bool, u32),
        left: NodeId,
        right: NodeId,
    ) -> Predicate {
        let (left, right) = (self.integer(left), self.integer(right));
        let yes = self.comparison(node, (comparison, signed, bits), &left, &right);
        let no = self.comparison(node, (comparison.negated(), signed, bits), &left, &right);
        match (yes, no) {
            (Some(yes), Some(no)) => Predicate { yes, no },
            _ => Predicate::unknown(),
        }
    }

    /// What holds where a comparison does: one of these.
    fn comparison(
        &self,
        node: NodeId,
        (comparison, signed, bits): (Comparison, bool, u32),
        left: &Alternatives,
        right: &Alternatives,
    ) -> Option<Vec<Rows>> {
        if left.is_empty() || right.is_empty() {
            return None;
        }
        let mut all = Vec::new();
        for a in left {
            for b in right {
                for x in self.read(node, a, bits, signed)? {
                    for y in self.read(node, b, bits, signed)? {
                        let (x_form, y_form) = (&x.form, &y.form);
                        let ways: smallvec::SmallVec<[Rows; 2]> = match comparison {
                            Comparison::Less => smallvec![vec![x_form.below(y_form, 1)?]],
                            Comparison::LessEqual => smallvec![vec![x_form.below(y_form, 0)?]],
                            Comparison::Greater => smallvec![vec![y_form.below(x_form, 1)?]],
                            Comparison::GreaterEqual => smallvec![vec![y_form.below(x_form, 0)?]],
                            Comparison::Equal => smallvec![vec![
                                x_form.below(y_form, 0)?,
                                y_form.below(x_form, 0)?,
                            ]],
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

    /// The sum of a test's or a step's addends. None where one is not a single form.
    fn sum(&self, addends: &[(NodeId, bool)]) -> Option<Form> {
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
    fn step(&self, addends: &[(NodeId, bool)], bits: u32) -> Option<i128> {
        let sum = self.sum(addends)?.number()?;
        Some(centered(sum.rem_euclid(1 << bits) as u64, bits))
    }

    fn header(
        &mut self,
        node: NodeId,
        of: LoopId,
        first: &[NodeId],
        kind: &Advance,
        leaves: Option<&[NodeId]>,
    ) -> (Value, Uniform) {
        let bits = self.graph.items[node as usize].bits;
        let mut uniform = match (first, leaves) {
            (&[first], Some(leaves)) => self.uniform_of([first]).max(self.uniform_of(leaves.iter().copied())),
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
                            all.push(Alternative { form, ..start.clone() });
                        }
                    }
                    if all.len() == starts.len() {
                        return (Value::Integer(all), uniform);
                    }
                }
                let numbers = addends.iter().all(|&(of, _)| self.memory_otherwise(&[of]) == Memory::Number);
                let memory = if numbers { memory } else { Memory::Unknown };
                (self.unknown_bits(node, memory, uniform), uniform)
            }
            Advance::Shrinks if complete => {
                let (low, high) = self.hull(&starts, true);
                let range = match low >= 0 && high < 1 << (bits - 1) {
                    true => (0, high),
                    false => (i128::MIN, i128::MAX),
                };
                (self.unknown(node, range, memory.otherwise(), uniform), uniform)
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
    fn counter(&mut self, node: NodeId, of: LoopId) -> Value {
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
            let Some(bound) = self.bound(test, &entry) else { continue };
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
        let symbol = self.symbols.add(Kind::Counter(of), (0, most.max(0)), home, Uniform::Iteration);
        self.counters[of as usize] = Some(symbol);
        self.ends[of as usize] = end;
        for (form, step) in rows {
            if let Some(row) = form.plus(step, &Form::symbol(symbol))
                && let Some(row) = simplified(&self.symbols, vec![row])
            {
                self.steady[of as usize].extend(row);
            }
        }
        let _ = node;
        Value::form(Form::symbol(symbol), Memory::Number)
    }

    /// What a test says about its loop's counter.
    fn bound(&self, test: &crate::graph::Test, entry: &[Form]) -> Option<Bound> {
        let Node::Header { first, kind: Advance::By(step), .. } =
            &self.graph.items[test.header as usize].node
        else {
            return None;
        };
        let &[first] = &first[..] else { return None };
        let step = self.step(step, test.bits)?;
        let start = self.value(first)?.single()?.form.plus(1, &self.sum(&test.addends)?)?;
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
                Some(Bound { most: high, row: Some((iterations, -1)), exact })
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
                    true => (bound_high - strict + step > greatest, bound_high - strict - start_low),
                    false => (bound_low + strict + step < least, start_high - bound_low - strict),
                };
                if wraps {
                    return None;
                }
                let most = if distance < 0 { 0 } else { distance / step.abs() + 1 };
                // With counter k >= 1, the test held with k - 1: start + step * (k - 1) is on its side of the bound.
                let row = match step > 0 {
                    true => start.below(&bound, strict)?.shifted(step)?,
                    false => bound.below(&start, strict)?.shifted(-step)?,
                };
                // With counter 0 it is at least this.
                let slack = (-self.symbols.low(&row, entry)).max(0);
                let row = row.shifted(slack)?;
                let exact = start.number().is_some() && bound.number().is_some();
                Some(Bound { most, row: Some((row, -step.abs())), exact })
            }
        }
    }

    /// What a value is after its loop.
    fn out(&mut self, node: NodeId, value: NodeId, of: LoopId) -> (Value, Uniform) {
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
                let (Some(counter), Some(end)) = (self.counters[of as usize], self.ends[of as usize]) else {
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
            kept.push(Alternative { form, memory: one.memory, when });
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
        (self.unknown(node, range, memory.unwrap_or(Memory::Unknown), uniform), uniform)
    }
}

/// What a test says about the counter of its loop.
struct Bound {
    /// The greatest value of the counter.
    most: i128,
    /// A form and a factor: with the factor times the counter it is not negative.
    row: Option<(Form, i128)>,
    /// The counter is exactly `most` when the test fails first.
    exact: bool,
}
