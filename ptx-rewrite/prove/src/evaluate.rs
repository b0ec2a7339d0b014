//! The values of a kernel at a launch.
//!
//! A form is equal to its value modulo two to the number of the value's bits, so sums and products by numbers need no
//! check. Where a value is read as a signed or an unsigned number (comparisons, divisions, extensions, addresses), its
//! form's range must lie within one such reading, or it is split by readings, or it becomes unknown.

use smallvec::smallvec;

use crate::Launch;
use crate::assume::Quantity;
use crate::family::{Family, Members};
use crate::form::{Form, Symbols, Uniform};
use crate::graph::{Compared, Condition, Graph, Node, NodeId, Origin};
use crate::interval::{EVERY, Interval};
use crate::problem::{Axis, LoopId, SymbolId, SymbolKind, Term};
use crate::ssa::SharedVariable;
use crate::value::{
    ALTERNATIVES, Alternative, Alternatives, Memory, Predicate, Rows, Value, any, both, centered,
    simplified,
};

/// A value that a joined value can have.
pub(crate) struct Way {
    node: NodeId,
    /// What holds where it is this one.
    when: Vec<Rows>,
}

/// A launch while its values are computed.
pub(crate) struct Evaluation<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) globals: &'a [String],
    pub(crate) shared: &'a [SharedVariable],
    pub(crate) symbols: Symbols,
    pub(crate) values: Vec<Option<Value>>,
    pub(crate) uniform: Vec<Uniform>,
    /// By symbol that stands for an unknown value: the value.
    pub(crate) origin: Vec<(SymbolId, NodeId)>,
    pub(crate) counters: Vec<Option<SymbolId>>,
    /// By loop: what holds at the start of each iteration.
    pub(crate) steady: Vec<Rows>,
    /// By loop: lists of which one holds at the start of each iteration.
    pub(crate) choices: Vec<Vec<Vec<Rows>>>,
    /// By loop: its counter when it ends. None if that is not followed.
    pub(crate) ends: Vec<Option<Alternatives>>,
    /// By loop: the symbol of its counter when it ends, whatever that is.
    pub(crate) leaving: Vec<Option<SymbolId>>,
    /// Loops without a bound.
    pub(crate) endless: Vec<LoopId>,
    /// Where shared memory lies among generic addresses.
    pub(crate) window: Option<SymbolId>,
    /// By variable in shared memory: where it lies, in multiples of its alignment.
    pub(crate) bases: Vec<Option<SymbolId>>,
    /// The launches that are meant, if more than one.
    pub(crate) family: Option<Family>,
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
        globals: &'a [String],
        shared: &'a [SharedVariable],
        launch: &'a Launch<'a>,
        family: Option<Members<'_>>,
    ) -> Self {
        let mut symbols = Symbols::default();
        let axes = [Axis::X, Axis::Y, Axis::Z];
        for of in axes {
            let count = i64::from(launch.block[axis(of)].max(1));
            let uniform = if count == 1 {
                Uniform::Grid
            } else {
                Uniform::No
            };
            symbols.add(
                SymbolKind::Thread(of),
                Interval::new(0, count - 1),
                None,
                uniform,
            );
        }
        for of in axes {
            let count = i64::from(launch.grid[axis(of)].max(1));
            let uniform = if count == 1 {
                Uniform::Grid
            } else {
                Uniform::Block
            };
            symbols.add(
                SymbolKind::Block(of),
                Interval::new(0, count - 1),
                None,
                uniform,
            );
        }
        let family = family.map(|members| Family::new(&mut symbols, launch, members));
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
            choices: vec![Vec::new(); graph.loops.len()],
            ends: vec![None; graph.loops.len()],
            leaving: vec![None; graph.loops.len()],
            endless: Vec::new(),
            window: None,
            bases: vec![None; shared.len()],
            family,
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

    pub(crate) fn value(&self, node: NodeId) -> Option<&Value> {
        self.values[node as usize].as_ref()
    }

    pub(crate) fn integer(&self, node: NodeId) -> Alternatives {
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

    pub(crate) fn uniform_of(&self, nodes: impl IntoIterator<Item = NodeId>) -> Uniform {
        let uniform = nodes.into_iter().map(|node| self.uniform[node as usize]);
        uniform.max().unwrap_or(Uniform::Grid)
    }

    /// What is assumed of the launches that are meant.
    pub(crate) fn assumed(&self) -> &[Form] {
        self.family.as_ref().map_or(&[], |family| &family.rows)
    }

    /// What certainly holds in a block.
    pub(crate) fn rows(&self, block: usize, home: Option<LoopId>) -> Rows {
        let mut rows = self.assumed().to_vec();
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
    pub(crate) fn unknown(
        &mut self,
        node: NodeId,
        range: Interval<i128>,
        memory: Memory,
        uniform: Uniform,
    ) -> Value {
        let item = &self.graph.items[node as usize];
        if item.bits == 1 {
            return Value::Predicate(Predicate::unknown());
        }
        let full = crate::ssa::full_range(item.bits);
        let range = match (i64::try_from(range.low), i64::try_from(range.high)) {
            (Ok(low), Ok(high)) if low <= high => Interval::new(low, high),
            _ => full,
        };
        let symbol = self.symbols.unknown(range, item.home, uniform);
        self.origin.push((symbol, node));
        Value::form(Form::symbol(symbol), memory)
    }

    pub(crate) fn unknown_bits(&mut self, node: NodeId, memory: Memory, uniform: Uniform) -> Value {
        let Interval { low, high } = crate::ssa::full_range(self.graph.items[node as usize].bits);
        self.unknown(
            node,
            Interval {
                low: low.into(),
                high: high.into(),
            },
            memory,
            uniform,
        )
    }

    pub(crate) fn compute(&mut self, node: NodeId) -> (Value, Uniform) {
        let graph = self.graph;
        let item = &graph.items[node as usize];
        let bits = item.bits;
        let number = |value: u64, memory| {
            let form = Form::constant(centered(value, bits));
            (Value::form(form, memory), Uniform::Grid)
        };
        match &item.node {
            Node::Pending => (
                self.unknown_bits(node, Memory::Unknown, Uniform::No),
                Uniform::No,
            ),
            &Node::Number(value) if bits == 1 => {
                let always = Predicate {
                    yes: vec![Vec::new()],
                    no: Vec::new(),
                };
                let value = if value & 1 == 1 {
                    always
                } else {
                    always.negated()
                };
                (Value::Predicate(value), Uniform::Grid)
            }
            &Node::Number(value) => number(value, Memory::Number),
            &Node::Thread(of) => self.axis(axis(of)),
            &Node::Block(of) => self.axis(3 + axis(of)),
            &Node::Threads(of) => number(self.launch.block[axis(of)].into(), Memory::Number),
            &Node::Blocks(of) => match &self.family {
                Some(family) => {
                    let form = family.grid(axis(of));
                    (Value::form(form, Memory::Number), Uniform::Grid)
                }
                None => number(self.launch.grid[axis(of)].into(), Memory::Number),
            },
            &Node::Parameter {
                offset,
                bytes,
                signed,
            } => {
                let start = offset as usize;
                let found = self.launch.parameters.get(start..start + bytes as usize);
                let Some(found) = found else {
                    return (
                        self.unknown_bits(node, Memory::Unknown, Uniform::Grid),
                        Uniform::Grid,
                    );
                };
                let mut value = [0; 8];
                value[..found.len()].copy_from_slice(found);
                let value = u64::from_le_bytes(value);
                let memory = match bytes {
                    8 => self.allocation(value),
                    _ => Memory::Number,
                };
                if let Some(family) = &mut self.family {
                    let of = match memory {
                        Memory::Global(start, _) => {
                            let found = family.pointer(&mut self.symbols, value, start, offset);
                            found.map(|(form, memory)| Value::form(form, memory))
                        }
                        _ => family
                            .parameter(
                                &self.symbols,
                                Quantity::Parameter(offset, bytes),
                                signed || bytes * 8 == bits,
                            )
                            .map(|form| Value::form(form, Memory::Number)),
                    };
                    let of = of.unwrap_or_else(|| {
                        let range = match (bytes, signed) {
                            (1 | 2 | 4, false) => Interval::new(0, (1 << (bytes * 8)) - 1),
                            _ => EVERY,
                        };
                        let memory = match memory {
                            Memory::Number => Memory::Number,
                            _ => Memory::Unknown,
                        };
                        self.unknown(node, range, memory, Uniform::Grid)
                    });
                    return (of, Uniform::Grid);
                }
                match signed {
                    true => number(centered(value, bytes * 8) as u64, memory),
                    false => number(value, memory),
                }
            }
            &Node::Global(index) => {
                let name = &self.globals[index as usize];
                match ((self.launch.variable)(name), &mut self.family) {
                    (Some((start, _)), Some(family)) => {
                        let (form, memory) = family.variable(&mut self.symbols, start);
                        (Value::form(form, memory), Uniform::Grid)
                    }
                    (Some((start, bytes)), None) => number(start, Memory::Global(start, bytes)),
                    (None, _) => (
                        self.unknown_bits(node, Memory::Unknown, Uniform::Grid),
                        Uniform::Grid,
                    ),
                }
            }
            &Node::Shared(index) => {
                let form = self.shared_base(index);
                (Value::form(form, Memory::Shared(index)), Uniform::Grid)
            }
            Node::Opaque {
                inputs,
                range,
                origin,
                pure,
            } => {
                let uniform = match pure {
                    true => self.uniform_of(inputs.iter().copied()),
                    false => Uniform::No,
                };
                let memory = match origin {
                    Origin::Private => Memory::Private,
                    Origin::Unknown => Memory::Unknown,
                    Origin::Number => self.memory_otherwise(inputs),
                };
                (
                    self.unknown(node, (*range).into(), memory, uniform),
                    uniform,
                )
            }
            &Node::Operation { op, signed, inputs } => self.operation(node, op, signed, inputs),
            &Node::Compare {
                comparison,
                signed,
                bits,
                left,
                right,
            } => {
                let uniform = self.uniform_of([left, right]);
                let how = Compared {
                    comparison,
                    signed,
                    bits,
                };
                let value = self.compare(node, how, left, right);
                (Value::Predicate(value), uniform)
            }
            &Node::All(left, right) => {
                let (a, b) = (self.predicate(left), self.predicate(right));
                let yes = both(&self.symbols, &a.yes, &b.yes);
                let no = any(&a.no, &b.no);
                (
                    Value::Predicate(Predicate { yes, no }),
                    self.uniform_of([left, right]),
                )
            }
            &Node::Any(left, right) => {
                let (a, b) = (self.predicate(left), self.predicate(right));
                let yes = any(&a.yes, &b.yes);
                let no = both(&self.symbols, &a.no, &b.no);
                (
                    Value::Predicate(Predicate { yes, no }),
                    self.uniform_of([left, right]),
                )
            }
            &Node::Opposite(of) => {
                let value = Value::Predicate(self.predicate(of).negated());
                (value, self.uniform[of as usize])
            }
            &Node::Select { on, yes, no } => {
                let uniform = self.uniform_of([on, yes, no]);
                let condition = self.predicate(on);
                let way = |node, when| Way { node, when };
                let ways = vec![way(yes, condition.yes), way(no, condition.no)];
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
                let ways = ways
                    .map(|(input, path)| Way {
                        node: *input,
                        when: self.path(path),
                    })
                    .collect();
                (self.merge(node, ways, uniform), uniform)
            }
            Node::Header {
                of,
                first,
                kind,
                leaves,
                ..
            } => self.header(node, *of, first, kind, leaves.as_deref()),
            &Node::Counter(of) => {
                let value = self.counter(of);
                (value, Uniform::Iteration)
            }
            &Node::Out { value, of } => self.out(node, value, of),
            &Node::Copy(of) => match self.values[of as usize].clone() {
                Some(value) => (value, self.uniform[of as usize]),
                None => (
                    self.unknown_bits(node, Memory::Unknown, Uniform::No),
                    Uniform::No,
                ),
            },
        }
    }

    pub(crate) fn axis(&self, symbol: usize) -> (Value, Uniform) {
        let form = match self.symbols.symbols[symbol].range {
            Interval { low: 0, high: 0 } => Form::constant(0),
            _ => Form::symbol(symbol as SymbolId),
        };
        (
            Value::form(form, Memory::Number),
            self.symbols.uniform[symbol],
        )
    }

    pub(crate) fn allocation(&self, address: u64) -> Memory {
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
                let symbol =
                    self.symbols
                        .unknown(Interval::new(0, (1 << 24) / align), None, Uniform::Grid);
                self.bases[index] = Some(symbol);
                symbol
            }
        };
        Form {
            terms: smallvec![Term::new(symbol, align)],
            constant: 0,
        }
    }

    /// Start and size of a variable in shared memory, with all far apart.
    pub(crate) fn shared_range(&self, index: u32) -> Interval<i128> {
        match self.shared[index as usize].bytes {
            Some(bytes) => Interval::new(i128::from(index + 1) << 24, bytes.into()),
            None => Interval::new(0, self.launch.dynamic_shared.into()),
        }
    }

    pub(crate) fn memory_otherwise(&self, inputs: &[NodeId]) -> Memory {
        let mut memory = Memory::Number;
        for &input in inputs {
            for of in &self.integer(input) {
                memory = memory.plus(of.memory.otherwise());
            }
        }
        memory
    }

    /// What holds on a path, one of several.
    pub(crate) fn path(&self, path: &[Condition]) -> Vec<Rows> {
        let mut all = vec![Vec::new()];
        for &(condition, holds) in path {
            all = both(&self.symbols, &all, self.predicate(condition).when(holds));
        }
        all
    }

    /// One of several values, each under conditions.
    pub(crate) fn merge(&mut self, node: NodeId, ways: Vec<Way>, uniform: Uniform) -> Value {
        if self.graph.items[node as usize].bits == 1 {
            let mut merged = Predicate {
                yes: Vec::new(),
                no: Vec::new(),
            };
            for Way { node, when } in ways {
                let value = self.predicate(node);
                merged.yes = any(&merged.yes, &both(&self.symbols, &when, &value.yes));
                merged.no = any(&merged.no, &both(&self.symbols, &when, &value.no));
            }
            return Value::Predicate(merged);
        }
        let mut all: Alternatives = Alternatives::new();
        let mut memory: Option<Memory> = None;
        let mut complete = true;
        for Way { node, when } in ways {
            if when.is_empty() {
                continue;
            }
            let value = self.integer(node);
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
                        Some(known) => known.when.retain_mut(|row| {
                            let other = rows.iter().find(|other| other.terms == row.terms);
                            row.constant = other.map_or(0, |of| of.constant.max(row.constant));
                            other.is_some()
                        }),
                        None => all.push(Alternative {
                            when: rows,
                            ..of.clone()
                        }),
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
    pub(crate) fn hull(&self, all: &Alternatives, complete: bool) -> Interval<i128> {
        if !complete {
            return EVERY;
        }
        let ranges = all.iter().map(|of| self.symbols.range(&of.form));
        ranges.reduce(Interval::hull).unwrap_or(EVERY)
    }

    /// An alternative read as a signed or an unsigned number of so many bits: one or two alternatives that are equal
    /// to it as numbers. None if the form does not say.
    pub(crate) fn read(
        &self,
        node: NodeId,
        of: &Alternative,
        bits: u32,
        signed: bool,
    ) -> Option<Alternatives> {
        let size = 1i128 << bits;
        let least = if signed { -size / 2 } else { 0 };
        let turns = |Interval { low, high }: Interval<i128>| {
            (
                (low - least).div_euclid(size),
                (high - least).div_euclid(size),
            )
        };
        let (mut first, mut last) = turns(self.symbols.range(&of.form));
        if first != last {
            let item = &self.graph.items[node as usize];
            let mut rows = self.rows(item.block, item.home);
            rows.extend(of.when.iter().cloned());
            (first, last) = turns(self.symbols.bounds(&of.form, &rows));
            if first != last {
                (first, last) = turns(self.symbols.narrow_bounds(&of.form, &rows));
            }
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
                all.push(Alternative {
                    form,
                    when,
                    ..of.clone()
                });
            }
        }
        Some(all)
    }
}
