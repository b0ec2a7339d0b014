//! Two threads at two accesses, as clauses.
//!
//! Each value has a literal that says whether its clauses mean anything: a value of a path that was not taken is none.

use std::collections::HashMap;

use batsat::Lit;

use super::GATES;
use super::circuit::{Circuit, Word};
use crate::evaluate::Evaluation;
use crate::graph::{Addend, Advance, Condition, Node, NodeId};
use crate::interval::Interval;
use crate::problem::{Axis, Distance, LoopId};
use crate::summary::{AddressSpace, Plan, Site};
use crate::value::Memory;

/// How deep values may be nested. A deeper one is any.
const DEPTH: u32 = 200;

/// Bits of a coordinate, as the registers of the machine.
const COORDINATE: u32 = 32;

/// A value: its bits, and whether they mean anything.
#[derive(Clone)]
struct Bits {
    word: Word,
    valid: Lit,
}

/// A thread: its coordinates, and the iterations of the loops that it is in.
struct Side {
    thread: [Word; 3],
    block: [Word; 3],
    counters: HashMap<LoopId, Word>,
    values: HashMap<NodeId, Bits>,
}

/// Where an access goes.
struct Located {
    /// In bytes, from the first of its allocation or variable.
    offset: Word,
    memory: Memory,
    /// It is executed.
    made: Lit,
}

/// Two threads.
pub(super) struct Pair<'a> {
    plan: &'a Plan,
    evaluation: &'a Evaluation<'a>,
    circuit: &'a mut Circuit,
    /// By variable in shared memory: where it lies.
    shared: HashMap<u32, Word>,
    sides: [Side; 2],
}

impl<'a> Pair<'a> {
    /// `counters`: by loop around both accesses, the first thread's counter minus the second's.
    pub(super) fn new(
        plan: &'a Plan,
        evaluation: &'a Evaluation<'a>,
        circuit: &'a mut Circuit,
        counters: &[Distance],
    ) -> Self {
        let launch = evaluation.launch;
        let mut coordinates = |counts: [u32; 3]| {
            counts.map(|count| {
                let most = u64::from(count.max(1)) - 1;
                ranged(circuit, COORDINATE, Interval::new(0, most.into()))
            })
        };
        let mut sides = [(); 2].map(|()| Side {
            thread: coordinates(launch.block),
            block: coordinates(launch.grid),
            counters: HashMap::new(),
            values: HashMap::new(),
        });
        for &Distance { around, iterations } in counters {
            let symbol = evaluation.counters[around as usize];
            let range = symbol.map(|symbol| evaluation.symbols.symbols[symbol as usize].range);
            let Interval { low, high } = range.unwrap_or(Interval::new(0, i64::MAX));
            let word = |circuit: &mut Circuit| {
                ranged(
                    circuit,
                    64,
                    Interval {
                        low: low.into(),
                        high: high.into(),
                    },
                )
            };
            let (first, second) = (word(circuit), word(circuit));
            let by = circuit.constant(iterations as u64, 64);
            let sum = circuit.add(&second, &by);
            let same = circuit.equal(&first, &sum);
            circuit.require(same);
            sides[0].counters.insert(around, first);
            sides[1].counters.insert(around, second);
        }
        Self {
            plan,
            evaluation,
            circuit,
            shared: HashMap::new(),
            sides,
        }
    }

    /// Whether the threads, in different blocks or of one, make the two accesses to one byte. None if that is not
    /// followed.
    pub(super) fn meets(mut self, sites: [usize; 2], blocks: bool) -> Option<Lit> {
        if !blocks {
            self.sides[1].block = self.sides[0].block.clone();
        }
        let differ = |side: &Side| match blocks {
            true => side.block.clone(),
            false => side.thread.clone(),
        };
        let [mine, others] = [0, 1].map(|side| differ(&self.sides[side]).concat());
        let same = self.circuit.equal(&mine, &others);
        let plan = self.plan;
        let [a, b] = sites.map(|site| &plan.sites[site]);
        let first = self.located(0, a)?;
        let second = self.located(1, b)?;
        // Accesses of different memories are no question of bits.
        if first.memory != second.memory {
            return None;
        }
        // The second begins inside the first, or the first inside the second.
        let inside = |circuit: &mut Circuit, from: &Word, to: &Word, bytes: u32| {
            let distance = circuit.sub(to, from);
            let bytes = circuit.constant(bytes.into(), distance.len() as u32);
            circuit.below(&distance, &bytes)
        };
        let ahead = inside(self.circuit, &first.offset, &second.offset, a.bytes);
        let behind = inside(self.circuit, &second.offset, &first.offset, b.bytes);
        let overlap = self.circuit.or(ahead, behind);
        Some(self.circuit.all(&[!same, overlap, first.made, second.made]))
    }

    /// Where a thread's access goes.
    fn located(&mut self, side: usize, site: &Site) -> Option<Located> {
        let node = site.address?;
        let all = self.evaluation.integer(node);
        let memory = all.iter().map(|of| of.memory).reduce(Memory::either)?;
        let address = self.value(side, node, 0);
        let bits = address.word.len() as u32;
        let (base, bytes) = match (memory, site.address_space) {
            (Memory::Global(start, bytes), AddressSpace::Global | AddressSpace::Generic)
                if bits == 64 =>
            {
                (self.circuit.constant(start, 64), bytes)
            }
            (Memory::Shared(index), AddressSpace::Shared) => {
                let Interval {
                    low: _,
                    high: bytes,
                } = self.evaluation.shared_range(index);
                let base = self.base(index);
                let base = self.circuit.extended(&base, bits, false);
                (base, u64::try_from(bytes).ok()?)
            }
            _ => return None,
        };
        let offset = self.circuit.sub(&address.word, &base);
        // It stays in its allocation: that is known, or assumed of all indices.
        let most = bytes.checked_sub(site.bytes.into())?;
        let most = self.circuit.constant(most, bits);
        let outside = self.circuit.below(&most, &offset);
        let conditions = &self.plan.graph.holds[site.block];
        let conditions: Vec<Condition> = conditions.iter().copied().chain(site.guard).collect();
        let taken = self.taken(side, &conditions, 0);
        let made = self.circuit.all(&[taken, address.valid, !outside]);
        Some(Located {
            offset,
            memory,
            made,
        })
    }

    /// Where a variable in shared memory lies: somewhere, at its alignment, far from others.
    fn base(&mut self, index: u32) -> Word {
        // Dynamic variables are all one.
        let shared = self.evaluation.shared;
        let dynamic = shared.iter().position(|of| of.bytes.is_none());
        let (index, align) = match (&shared[index as usize].bytes, dynamic) {
            (None, Some(first)) => {
                let dynamic = shared.iter().filter(|of| of.bytes.is_none());
                (first as u32, dynamic.map(|of| of.align).min().unwrap_or(1))
            }
            _ => (index, shared[index as usize].align),
        };
        if let Some(known) = self.shared.get(&index) {
            return known.clone();
        }
        let low = match align.is_power_of_two() {
            true => align.trailing_zeros(),
            false => 0,
        };
        let mut word = self.circuit.constant(0, low.min(20));
        while word.len() < 20 {
            word.push(self.circuit.bit());
        }
        let number = self.circuit.constant(u64::from(index) + 1, 12);
        word.extend(number);
        self.shared.insert(index, word.clone());
        word
    }

    /// Whether conditions hold, and mean something.
    fn taken(&mut self, side: usize, conditions: &[Condition], depth: u32) -> Lit {
        let mut taken = self.circuit.yes();
        for &(condition, holds) in conditions {
            let of = self.value(side, condition, depth + 1);
            let bit = of.word[0];
            let bit = if holds { bit } else { !bit };
            taken = self.circuit.all(&[taken, of.valid, bit]);
        }
        taken
    }

    /// A thread's value.
    fn value(&mut self, side: usize, node: NodeId, depth: u32) -> Bits {
        let node = self.plan.graph.resolve(node);
        if let Some(known) = self.sides[side].values.get(&node) {
            return known.clone();
        }
        let computed = match depth > DEPTH || self.circuit.gates() > GATES {
            true => None,
            false => self.computed(side, node, depth),
        };
        let bits = self.plan.graph.items[node as usize].bits;
        let computed = computed.filter(|of| of.word.len() == bits as usize);
        let value = computed.unwrap_or_else(|| Bits {
            word: self.any(node),
            valid: self.circuit.yes(),
        });
        self.sides[side].values.insert(node, value.clone());
        value
    }

    /// A value of which only the range is known that linear forms have found.
    fn any(&mut self, node: NodeId) -> Word {
        let bits = self.plan.graph.items[node as usize].bits;
        let all = self.evaluation.integer(node);
        // Linear forms place variables in shared memory elsewhere.
        let absolute = |memory| matches!(memory, Memory::Number | Memory::Global(..));
        let known = !all.is_empty() && all.iter().all(|of| absolute(of.memory));
        let range = self.evaluation.hull(&all, known);
        let range = match self.plan.graph.items[node as usize].node {
            Node::Opaque { range: own, .. } => range.both(own.into()),
            _ => range,
        };
        ranged(self.circuit, bits, range)
    }

    fn counter(&mut self, side: usize, of: LoopId) -> Word {
        if let Some(known) = self.sides[side].counters.get(&of) {
            return known.clone();
        }
        let symbol = self.evaluation.counters[of as usize];
        let symbols = &self.evaluation.symbols.symbols;
        let range = symbol.map(|symbol| symbols[symbol as usize].range);
        let range = range.unwrap_or(Interval::new(0, i64::MAX));
        let word = ranged(self.circuit, 64, range.into());
        self.sides[side].counters.insert(of, word.clone());
        word
    }

    /// A value by what it is computed from. None if it is any.
    fn computed(&mut self, side: usize, node: NodeId, depth: u32) -> Option<Bits> {
        let (plan, evaluation) = (self.plan, self.evaluation);
        let item = &plan.graph.items[node as usize];
        let bits = item.bits;
        let yes = self.circuit.yes();
        let certain = |word: Word| Some(Bits { word, valid: yes });
        if let Some((number, _)) = evaluation.value(node).and_then(|of| of.number()) {
            return certain(self.circuit.constant(number as u64, bits));
        }
        let coordinate = |circuit: &Circuit, of: &Word| circuit.extended(of, bits, false);
        match &item.node {
            &Node::Number(value) => certain(self.circuit.constant(value, bits)),
            &Node::Thread(axis) if bits >= COORDINATE => certain(coordinate(
                self.circuit,
                &self.sides[side].thread[number(axis)],
            )),
            &Node::Block(axis) if bits >= COORDINATE => certain(coordinate(
                self.circuit,
                &self.sides[side].block[number(axis)],
            )),
            &Node::Shared(index) => {
                let base = self.base(index);
                certain(self.circuit.extended(&base, bits, false))
            }
            &Node::Operation { op, signed, .. } => {
                let mut inputs = Vec::new();
                plan.graph.inputs(node, |input| inputs.push(input));
                let inputs: Vec<Bits> = inputs
                    .iter()
                    .map(|&input| self.value(side, input, depth + 1))
                    .collect();
                let valid: Vec<Lit> = inputs.iter().map(|of| of.valid).collect();
                let words: Vec<Word> = inputs.into_iter().map(|of| of.word).collect();
                let word = self.circuit.operation(op, signed, bits, &words)?;
                let valid = self.circuit.all(&valid);
                Some(Bits { word, valid })
            }
            &Node::Compare {
                comparison,
                signed,
                bits,
                left,
                right,
            } => {
                let [a, b] = [left, right].map(|input| self.value(side, input, depth + 1));
                if a.word.len() != bits as usize || b.word.len() != bits as usize {
                    return None;
                }
                let bit = self.circuit.compare(comparison, signed, &a.word, &b.word);
                let valid = self.circuit.and(a.valid, b.valid);
                Some(Bits {
                    word: vec![bit],
                    valid,
                })
            }
            &Node::All(left, right) | &Node::Any(left, right) => {
                let [a, b] = [left, right].map(|input| self.value(side, input, depth + 1));
                let bit = match item.node {
                    Node::All(..) => self.circuit.and(a.word[0], b.word[0]),
                    _ => self.circuit.or(a.word[0], b.word[0]),
                };
                let valid = self.circuit.and(a.valid, b.valid);
                Some(Bits {
                    word: vec![bit],
                    valid,
                })
            }
            &Node::Opposite(of) => {
                let of = self.value(side, of, depth + 1);
                Some(Bits {
                    word: vec![!of.word[0]],
                    valid: of.valid,
                })
            }
            &Node::Select { on, yes, no } => {
                let [on, a, b] = [on, yes, no].map(|input| self.value(side, input, depth + 1));
                if a.word.len() != b.word.len() {
                    return None;
                }
                let word = self.circuit.select(on.word[0], &a.word, &b.word);
                let valid = self.circuit.select(on.word[0], &[a.valid], &[b.valid]);
                let valid = self.circuit.and(on.valid, valid[0]);
                Some(Bits { word, valid })
            }
            Node::Join { inputs, .. } => {
                let word = self.any(node);
                let mut valid = self.circuit.no();
                for (input, path) in inputs {
                    let taken = self.taken(side, path, depth + 1);
                    let of = self.value(side, *input, depth + 1);
                    if of.word.len() != word.len() {
                        return None;
                    }
                    let same = self.circuit.equal(&word, &of.word);
                    let way = self.circuit.all(&[taken, of.valid, same]);
                    valid = self.circuit.or(valid, way);
                }
                Some(Bits { word, valid })
            }
            Node::Header {
                of,
                first,
                kind: Advance::By(addends),
                ..
            } => {
                let [first] = first[..] else { return None };
                let first = self.value(side, first, depth + 1);
                let mut step = self.circuit.constant(0, bits);
                let mut valid = first.valid;
                for &Addend { node, negated } in addends {
                    let addend = self.value(side, node, depth + 1);
                    if addend.word.len() != step.len() {
                        return None;
                    }
                    step = match negated {
                        true => self.circuit.sub(&step, &addend.word),
                        false => self.circuit.add(&step, &addend.word),
                    };
                    valid = self.circuit.and(valid, addend.valid);
                }
                let counter = self.counter(side, *of);
                let counter = counter.get(..bits as usize)?.to_vec();
                let advanced = self.circuit.mul(&counter, &step);
                if first.word.len() != advanced.len() {
                    return None;
                }
                let word = self.circuit.add(&first.word, &advanced);
                Some(Bits { word, valid })
            }
            &Node::Counter(of) => {
                let counter = self.counter(side, of);
                certain(counter.get(..bits as usize)?.to_vec())
            }
            // What does not change during the loop is the same behind it.
            &Node::Out { value, of } => {
                let value = plan.graph.resolve(value);
                let home = plan.graph.items[value as usize].home;
                (!plan.graph.is_inside(home, of)).then(|| self.value(side, value, depth + 1))
            }
            _ => None,
        }
    }
}

fn number(axis: Axis) -> usize {
    match axis {
        Axis::X => 0,
        Axis::Y => 1,
        Axis::Z => 2,
    }
}

/// Any word whose value, modulo two to its bits, is in a range.
fn ranged(circuit: &mut Circuit, bits: u32, Interval { low, high }: Interval<i128>) -> Word {
    let size = 1_i128 << bits.min(64);
    let extent = high
        .checked_sub(low)
        .filter(|extent| (0..size - 1).contains(extent));
    let (Some(extent), 2..=64) = (extent, bits) else {
        return circuit.word(bits);
    };
    // Bits that are 0 in all of a range from 0.
    if low == 0 {
        let open = i128::BITS - extent.leading_zeros();
        let mut word = circuit.word(open);
        let most = circuit.constant(extent as u64, open);
        let above = circuit.below(&most, &word);
        circuit.require(!above);
        word.resize(bits as usize, circuit.no());
        return word;
    }
    let word = circuit.word(bits);
    let least = circuit.constant(low as u64, bits);
    let distance = circuit.sub(&word, &least);
    let most = circuit.constant(extent as u64, bits);
    let above = circuit.below(&most, &distance);
    circuit.require(!above);
    word
}
