//! Accesses to the word around an element of 8 or 16 bits that stand for accesses to the element.
//!
//! PTX has no compare-and-swap of 8 bits. `cuda::atomic_ref` makes its atomics of accesses to the
//! aligned word: a loop of compare-and-swaps puts the element into the word, and a load of 16 bits takes
//! it out. Such an access is narrow when the function uses and changes nothing of the word but the element:
//!
//! 1. Its address is the element's, rounded down to the size of the access.
//! 2. What it reads is shifted down by the element's place in the word and cut to the element's bits;
//!    or a narrow compare-and-swap expects it.
//! 3. A compare-and-swap writes what it expects, but for the element's bits.
//!
//! A comparison of what a compare-and-swap has found with what it has expected says that it has failed. It may
//! have failed because another byte of the word has changed. C++ calls that a spurious failure.
//!
//! Only accesses that say `.relaxed`, `.acquire` and the like count, and only in modules with such accesses of
//! 16 bits: elsewhere all accesses to the words may be of 32 bits, and PTX gives them their meaning.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use smol_str::SmolStr;

use crate::ast::{AddressBase, Body, Function, Instruction, Module, Operand, Statement, Type};
use crate::cfg::Cfg;
use crate::dataflow::Dataflow;
use crate::isa::{self, MemoryKind};
use crate::scope::Register;

/// What a narrow access stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// The register that holds the element's address, in the same space as the access.
    pub pointer: SmolStr,
    /// Bytes of the element.
    pub bytes: u32,
}

/// The narrow accesses of a function, by statement.
pub fn narrow(module: &Module, function: &Function) -> BTreeMap<usize, Narrow> {
    let mut all = BTreeMap::new();
    let Some(body) = &function.body else {
        return all;
    };
    if !body.instructions().any(|(_, of)| around(of).is_some()) || !has_halves(module) {
        return all;
    }
    let Some(cfg) = Cfg::of(module, function) else {
        return all;
    };
    let flow = Dataflow::new(body);
    let candidates: BTreeMap<usize, Candidate> = body
        .instructions()
        .filter_map(|(at, of)| Some((at, candidate(&flow, at, of)?)))
        .collect();
    for bits in [8, 16] {
        let fits = candidates.iter().filter(|(_, of)| 8 * of.around > bits);
        let mut search = Search {
            body,
            cfg: &cfg,
            flow: &flow,
            candidates: &candidates,
            narrow: fits.map(|(&at, _)| at).collect(),
            bits,
        };
        // A load is narrow if the swaps that expect it are.
        loop {
            let wide = |at: &&usize| !search.is_narrow(**at);
            let wide: Vec<usize> = search.narrow.iter().filter(wide).copied().collect();
            if wide.is_empty() {
                break;
            }
            wide.iter().for_each(|at| {
                search.narrow.remove(at);
            });
        }
        for at in search.narrow {
            all.entry(at).or_insert_with(|| Narrow {
                pointer: candidates[&at].pointer.clone(),
                bytes: bits / 8,
            });
        }
    }
    all
}

/// An access that may be narrow.
struct Candidate {
    /// The register that its address is rounded from, and the one statement that writes it.
    pointer: SmolStr,
    register: Register,
    written: usize,
    /// Bytes of the access.
    around: u32,
    /// The register that it reads into, if any.
    result: Option<Register>,
    swap: bool,
}

/// Bytes of an access that may be narrow.
fn around(instruction: &Instruction) -> Option<u32> {
    let op = isa::memory(instruction)?;
    let kind = op.kind == MemoryKind::Load || is_swap(instruction);
    let plain = kind && op.vector == 1 && instruction.guard.is_none() && says_order(instruction);
    let bytes = Some(op.bytes_per_element).filter(|_| plain && op.ty.is_integer())?;
    match (is_swap(instruction), bytes) {
        (true, 4) | (false, 2 | 4) => Some(bytes),
        _ => None,
    }
}

fn is_swap(instruction: &Instruction) -> bool {
    instruction.opcode == "atom" && instruction.has("cas")
}

fn says_order(instruction: &Instruction) -> bool {
    let orders = ["relaxed", "acquire", "release", "acq_rel"];
    orders.iter().any(|of| instruction.has(of))
}

/// Whether a module has strong loads or stores of 16 bits.
fn has_halves(module: &Module) -> bool {
    let bodies = module.functions().filter_map(|of| of.body.as_ref());
    let mut all = bodies.flat_map(|body| body.instructions());
    all.any(|(_, of)| {
        says_order(of)
            && isa::memory(of).is_some_and(|op| {
                let moves = matches!(op.kind, MemoryKind::Load | MemoryKind::Store);
                moves && op.bytes() == 2
            })
    })
}

fn candidate(flow: &Dataflow<'_>, at: usize, instruction: &Instruction) -> Option<Candidate> {
    let around = around(instruction)?;
    let [result, Operand::Address { base, offset: 0 }, ..] = &instruction.operands[..] else {
        return None;
    };
    let AddressBase::Name(address) = base else {
        return None;
    };
    let (_, rounds) = flow.only_write(at, address)?;
    let [_, Operand::Name { name: pointer, .. }, Operand::Int(mask)] = &rounds.operands[..] else {
        return None;
    };
    let down = (-i128::from(around)) as u64;
    let wide = rounds.has("b64") && *mask as u64 == down;
    if rounds.opcode != "and" || !wide {
        return None;
    }
    let register = flow.register(at, pointer)?;
    let [written] = *flow.writes(register) else {
        return None;
    };
    let result = match result {
        Operand::Name { name, .. } => Some(flow.register(at, name)?),
        Operand::Sink => None,
        _ => return None,
    };
    Some(Candidate {
        pointer: pointer.clone(),
        register,
        written,
        around,
        result,
        swap: is_swap(instruction),
    })
}

/// What a register holds of a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// All of it, in place.
    Whole,
    /// The element in its lowest bits; those above come from anywhere.
    Lowest,
}

struct Search<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    flow: &'a Dataflow<'a>,
    candidates: &'a BTreeMap<usize, Candidate>,
    /// What is taken to be narrow.
    narrow: BTreeSet<usize>,
    /// Bits of the element.
    bits: u32,
}

/// How many steps back a value is followed.
const STEPS: u32 = 12;

impl<'a> Search<'a> {
    fn ones(&self) -> i128 {
        (1 << self.bits) - 1
    }

    fn instruction(&self, at: usize) -> Option<&'a Instruction> {
        match self.body.statements.get(at) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }

    fn is_narrow(&self, at: usize) -> bool {
        let of = &self.candidates[&at];
        let Some(instruction) = self.instruction(at) else {
            return false;
        };
        let address = match &instruction.operands[1] {
            Operand::Address {
                base: AddressBase::Name(name),
                ..
            } => name,
            _ => return false,
        };
        let rounds = self.define(of, at, address);
        rounds.is_some_and(|(rounds, and)| self.is_pointer(of, rounds, &and.operands[1]))
            && (!of.swap || self.keeps_the_rest(of, at, instruction))
            && self.uses_the_element(of, at)
    }

    /// The one instruction that computes a register, if the pointer is the same where it does and at `at`.
    fn define(&self, of: &Candidate, at: usize, name: &str) -> Option<(usize, &'a Instruction)> {
        let (write, instruction) = self.flow.only_write(at, name)?;
        self.same_pointer(of, write, at)
            .then_some((write, instruction))
    }

    /// Whether the pointer is not written between two statements, of which the first comes on every path to the
    /// second.
    fn same_pointer(&self, of: &Candidate, from: usize, to: usize) -> bool {
        let mut entered = vec![false; self.cfg.blocks.len()];
        let mut work = vec![(self.cfg.block_of(to), to)];
        while let Some((block, end)) = work.pop() {
            let start = self.cfg.blocks[block].start;
            let inside = |at: usize| start <= at && at < end;
            if inside(of.written) && !(inside(from) && from >= of.written) {
                return false;
            }
            if inside(from) {
                continue;
            }
            if block == 0 {
                return false;
            }
            for &before in &self.cfg.blocks[block].predecessors {
                if !std::mem::replace(&mut entered[before], true) {
                    work.push((before, self.cfg.blocks[before].end));
                }
            }
        }
        true
    }

    fn register(&self, at: usize, operand: &Operand) -> Option<Register> {
        match operand {
            Operand::Name {
                name,
                component: None,
                offset: 0,
            } => self.flow.register(at, name),
            _ => None,
        }
    }

    fn is_pointer(&self, of: &Candidate, at: usize, operand: &Operand) -> bool {
        self.register(at, operand) == Some(of.register)
    }

    fn constant(&self, at: usize, operand: &Operand) -> Option<i128> {
        match operand {
            Operand::Int(value) => Some(*value),
            Operand::Name { name, .. } => match self.flow.only_write(at, name)?.1 {
                of if of.opcode == "mov" => match of.operands.get(1)? {
                    Operand::Int(value) => Some(*value),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// What computes an operand, behind instructions that hand it on.
    fn computed(
        &self,
        of: &Candidate,
        mut at: usize,
        mut operand: &'a Operand,
        hands_on: fn(&Instruction) -> bool,
    ) -> Option<(usize, &'a Instruction)> {
        for _ in 0..STEPS {
            let Operand::Name { name, .. } = operand else {
                return None;
            };
            let (write, instruction) = self.define(of, at, name)?;
            if !hands_on(instruction) {
                return Some((write, instruction));
            }
            (at, operand) = (write, instruction.operands.get(1)?);
            if self.is_pointer(of, at, operand) {
                return None;
            }
        }
        None
    }

    /// Whether an operand has the lowest bits of the pointer.
    fn has_low_bits(&self, of: &Candidate, mut at: usize, mut operand: &'a Operand) -> bool {
        for _ in 0..STEPS {
            if self.is_pointer(of, at, operand) {
                return true;
            }
            let Operand::Name { name, .. } = operand else {
                return false;
            };
            let step = self.define(of, at, name);
            let Some((write, instruction)) = step.filter(|(_, by)| keeps_low_bits(by)) else {
                return false;
            };
            let Some(next) = instruction.operands.get(1) else {
                return false;
            };
            (at, operand) = (write, next);
        }
        false
    }

    /// Whether an operand is the number of bits that the element lies above the rounded address.
    fn is_place(&self, of: &Candidate, at: usize, operand: &'a Operand) -> bool {
        let inside = i128::from(of.around - 1);
        let Some((at, instruction)) = self.computed(of, at, operand, keeps_low_bits) else {
            return false;
        };
        let [_, value, by] = &instruction.operands[..] else {
            return false;
        };
        let inner = |at, value| self.computed(of, at, value, keeps_low_bits);
        match (instruction.opcode.as_str(), self.constant(at, by)) {
            ("and", Some(mask)) if mask == 8 * inside => {
                inner(at, value).is_some_and(|(at, shl)| match &shl.operands[..] {
                    [_, value, by] if shl.opcode == "shl" => {
                        self.constant(at, by) == Some(3) && self.has_low_bits(of, at, value)
                    }
                    _ => false,
                })
            }
            ("shl", Some(3)) => inner(at, value).is_some_and(|(at, and)| match &and.operands[..] {
                [_, value, mask] if and.opcode == "and" => {
                    self.constant(at, mask) == Some(inside) && self.has_low_bits(of, at, value)
                }
                _ => false,
            }),
            _ => false,
        }
    }

    /// Whether an operand has ones where the element is, and nowhere else.
    fn is_mask(&self, of: &Candidate, at: usize, operand: &'a Operand) -> bool {
        let Some((at, shl)) = self.computed(of, at, operand, moves_word) else {
            return false;
        };
        match &shl.operands[..] {
            [_, value, by] if shl.opcode == "shl" && shl.has("b32") => {
                self.constant(at, value) == Some(self.ones()) && self.is_place(of, at, by)
            }
            _ => false,
        }
    }

    /// Whether an operand has zeros where the element is, and nowhere else.
    fn is_inverse(&self, of: &Candidate, at: usize, operand: &'a Operand) -> bool {
        let Some((at, not)) = self.computed(of, at, operand, moves_word) else {
            return false;
        };
        match &not.operands[..] {
            [_, mask] if not.opcode == "not" && not.has("b32") => self.is_mask(of, at, mask),
            _ => false,
        }
    }

    /// Whether an operand is zero above the bits of an element.
    fn is_small(&self, at: usize, operand: &Operand, steps: u32) -> bool {
        let within = |value: i128| (0..=self.ones()).contains(&value);
        let (Operand::Name { name, .. }, 1..) = (operand, steps) else {
            return matches!(operand, Operand::Int(value) if within(*value));
        };
        let Some((at, by)) = self.flow.only_write(at, name) else {
            return false;
        };
        let small = |index: usize| {
            let operand = by.operands.get(index);
            operand.is_some_and(|operand| self.is_small(at, operand, steps - 1))
        };
        let types = by.types();
        let unsigned =
            |ty: &Type| 8 * ty.bytes() <= self.bits && ty.is_integer() && !ty.is_signed();
        match by.opcode.as_str() {
            "mov" => small(1),
            "and" => small(1) || small(2),
            "or" | "xor" | "selp" => small(1) && small(2),
            "cvt" if types.get(1).is_some_and(unsigned) => types[0].is_integer(),
            "cvt" => self.bits == 8 && keeps_low_bits(by) && small(1),
            "ld" => by.vector() == 1 && types.last().is_some_and(unsigned),
            _ => false,
        }
    }

    /// Whether two reads of a register in one block see the same value.
    fn same_value(&self, register: Register, first: usize, second: usize) -> bool {
        let writes = self.flow.writes(register);
        first < second
            && self.cfg.block_of(first) == self.cfg.block_of(second)
            && !writes.iter().any(|write| (first..second).contains(write))
    }

    /// Whether a swap writes what it expects outside of the element.
    fn keeps_the_rest(&self, of: &Candidate, at: usize, swap: &'a Instruction) -> bool {
        let [_, _, expected, new] = &swap.operands[..] else {
            return false;
        };
        let Some(expected) = self.register(at, expected) else {
            return false;
        };
        // Computed in this round of the loop.
        let here = |before: usize, operand: &Operand| match operand {
            Operand::Name { name, .. } => {
                let (write, by) = self.flow.only_write(before, name)?;
                let block = self.cfg.block_of(at);
                (write < before && self.cfg.block_of(write) == block).then_some((write, by))
            }
            _ => None,
        };
        let rest = |before: usize, operand: &Operand| {
            let Some((and, by)) = here(before, operand).filter(|(_, by)| by.opcode == "and") else {
                return false;
            };
            let [_, one, other] = &by.operands[..] else {
                return false;
            };
            let kept = |value: &'a Operand, mask: &'a Operand| {
                self.register(and, value) == Some(expected)
                    && self.same_value(expected, and, at)
                    && self.is_inverse(of, and, mask)
            };
            kept(one, other) || kept(other, one)
        };
        let element = |at: usize, operand: &'a Operand| {
            let Some((at, by)) = self.computed(of, at, operand, moves_word) else {
                return false;
            };
            match (&by.operands[..], by.opcode.as_str()) {
                ([_, value, place], "shl") => {
                    self.is_small(at, value, STEPS) && self.is_place(of, at, place)
                }
                ([_, one, other], "and") => {
                    self.is_mask(of, at, one) || self.is_mask(of, at, other)
                }
                _ => false,
            }
        };
        if rest(at, new) {
            return true;
        }
        let Some((or, by)) = here(at, new).filter(|(_, by)| by.opcode == "or") else {
            return false;
        };
        match &by.operands[..] {
            [_, one, other] => {
                rest(or, one) && element(or, other) || rest(or, other) && element(or, one)
            }
            _ => false,
        }
    }

    /// Whether nothing but the element is used of what an access reads.
    fn uses_the_element(&self, of: &Candidate, at: usize) -> bool {
        let mut seen = HashSet::new();
        let mut work: Vec<_> = of
            .result
            .map(|of| (at, of, Part::Whole))
            .into_iter()
            .collect();
        while let Some(next @ (write, register, part)) = work.pop() {
            if !seen.insert(next) {
                continue;
            }
            for read in self.flow.reached(self.cfg, register, write) {
                let Some(by) = self.instruction(read) else {
                    return false;
                };
                let used = match part {
                    Part::Whole => self.use_of_whole(of, read, by, register),
                    Part::Lowest => self.use_of_lowest(read, by, register),
                };
                match used {
                    Some(None) => {}
                    Some(Some(part)) => match by.operands.first() {
                        Some(to) if self.register(read, to).is_some() => {
                            work.extend(self.register(read, to).map(|to| (read, to, part)));
                        }
                        _ => return false,
                    },
                    None => return false,
                }
            }
        }
        true
    }

    /// What an instruction makes of a whole word: nothing more to look at, or a part of it in its result. None: it
    /// uses more than the element.
    fn use_of_whole(
        &self,
        of: &Candidate,
        at: usize,
        by: &'a Instruction,
        register: Register,
    ) -> Option<Option<Part>> {
        let is = |operand: &Operand| self.register(at, operand) == Some(register);
        match (by.opcode.as_str(), &by.operands[..]) {
            ("mov", [_, from]) if is(from) => Some(Some(Part::Whole)),
            ("cvt", [_, from]) if is(from) => {
                let types = by.types();
                let widens = |ty: &Type| ty.bytes() == of.around && !ty.is_signed();
                let widens = types.get(1).is_some_and(widens) && keeps_low_bits(by);
                let to = types.first().is_some_and(|ty| ty.bytes() >= of.around);
                (widens && to).then_some(Some(Part::Whole))
            }
            ("shr", [_, value, place]) if is(value) && !is(place) => {
                self.is_place(of, at, place).then_some(Some(Part::Lowest))
            }
            ("and", [to, one, other]) if is(one) != is(other) => {
                let mask = if is(one) { other } else { one };
                let rest = || self.is_inverse(of, at, mask) && self.goes_to_swaps(of, at, to);
                (self.is_mask(of, at, mask) || rest()).then_some(None)
            }
            ("setp", [Operand::Name { .. }, one, other]) if by.has("eq") || by.has("ne") => {
                self.asks_for_failure(of, at, [one, other]).then_some(None)
            }
            ("atom", [_, _, expected, new]) if is(expected) && !is(new) => {
                self.is_swap_of(of, at).then_some(None)
            }
            _ => None,
        }
    }

    fn is_swap_of(&self, of: &Candidate, at: usize) -> bool {
        let swap = self.candidates.get(&at).filter(|swap| swap.swap);
        self.narrow.contains(&at) && swap.is_some_and(|swap| swap.register == of.register)
    }

    /// Whether the rest of a word ends in what narrow swaps write.
    fn goes_to_swaps(&self, of: &Candidate, at: usize, to: &Operand) -> bool {
        let reads = |at: usize, to: &Operand| {
            let register = self.register(at, to);
            let reached = |register| self.flow.reached(self.cfg, register, at);
            register.map(|register| (register, reached(register)))
        };
        let written = |at: usize, register: Register| {
            let by = self.instruction(at).filter(|_| self.is_swap_of(of, at));
            by.is_some_and(|by| match &by.operands[..] {
                [_, _, expected, new] => {
                    self.register(at, new) == Some(register)
                        && self.register(at, expected) != Some(register)
                }
                _ => false,
            })
        };
        let Some((register, all)) = reads(at, to) else {
            return false;
        };
        all.into_iter().all(|read| {
            let or = self.instruction(read).filter(|by| by.opcode == "or");
            let sum = or.and_then(|or| reads(read, or.operands.first()?));
            written(read, register)
                || sum.is_some_and(|(sum, all)| all.into_iter().all(|read| written(read, sum)))
        })
    }

    /// Whether a comparison holds what a narrow swap has found against what it has expected.
    fn asks_for_failure(&self, of: &Candidate, at: usize, [one, other]: [&Operand; 2]) -> bool {
        let swaps = self
            .narrow
            .iter()
            .filter(|&&swap| self.is_swap_of(of, swap));
        let (one, other) = (self.register(at, one), self.register(at, other));
        swaps.into_iter().any(|&swap| {
            let Some(expected) = self.instruction(swap).and_then(|of| of.operands.get(2)) else {
                return false;
            };
            let expected = self.register(swap, expected);
            let found = self.candidates[&swap].result;
            let both = (one, other) == (found, expected) || (other, one) == (found, expected);
            let (Some(found), Some(expected)) = (found, expected) else {
                return false;
            };
            let rewritten = self.flow.writes(found);
            both && self.same_value(expected, swap, at)
                && !rewritten.iter().any(|write| (swap + 1..at).contains(write))
        })
    }

    /// The same for a register that holds the element in its lowest bits.
    fn use_of_lowest(
        &self,
        at: usize,
        by: &Instruction,
        register: Register,
    ) -> Option<Option<Part>> {
        let is = |operand: &Operand| self.register(at, operand) == Some(register);
        let types = by.types();
        let fits = |ty: &Type| 8 * ty.bytes() <= self.bits;
        let exact = !["sat", "cc", "hi", "wide"].iter().any(|of| by.has(of));
        if !exact || !types.iter().all(|ty| ty.is_integer()) {
            return None;
        }
        match (by.opcode.as_str(), &by.operands[..]) {
            ("and", [_, one, other]) => {
                let cut = |by: &Operand| !is(by) && self.is_small(at, by, STEPS);
                Some((!cut(one) && !cut(other)).then_some(Part::Lowest))
            }
            ("mov" | "not" | "neg", [_, _])
            | ("add" | "sub" | "or" | "xor" | "mul", [_, _, _])
            | ("selp", [_, _, _, _]) => Some(Some(Part::Lowest)),
            ("shl", [_, _, by]) if !is(by) => Some(Some(Part::Lowest)),
            ("cvt", [_, _]) => Some((!types.iter().any(fits)).then_some(Part::Lowest)),
            ("st", [_, value]) if is(value) => types.last().is_some_and(fits).then_some(None),
            _ => None,
        }
    }
}

/// A move of 32 bits.
fn moves_word(instruction: &Instruction) -> bool {
    let types = instruction.types();
    instruction.opcode == "mov" && types.iter().all(|ty| ty.is_integer() && ty.bytes() == 4)
}

/// A move or a conversion of integers that keeps the lowest 16 bits.
fn keeps_low_bits(instruction: &Instruction) -> bool {
    let types = instruction.types();
    let whole = |ty: &Type| ty.is_integer() && ty.bytes() >= 2;
    let one = matches!(
        &instruction.operands[..],
        [
            _,
            Operand::Name {
                component: None,
                offset: 0,
                ..
            }
        ]
    );
    let moves = matches!(instruction.opcode.as_str(), "mov" | "cvt");
    one && moves && !instruction.has("sat") && types.iter().all(whole)
}
