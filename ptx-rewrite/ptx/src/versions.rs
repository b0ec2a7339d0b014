//! Looks at a version before and after what it guards: what was read in between is used only if both
//! looks have found the same (sequence locks, and swaps that expect what was found).
//!
//! Two strong reads of one place are such a pair when a comparison depends on both, or the second one is
//! an `atom.cas` that compares with what the first one returned, and they are made in the same round of
//! a loop: a loop that waits until a word is no longer what it was makes its second look alone.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::ast::{Body, Function, Instruction, Module, Operand, Statement};
use crate::cfg::{BlockId, Cfg};
use crate::dataflow::Dataflow;
use crate::isa::{self, MemoryKind};
use crate::values::Values;
use crate::waits::loops;

/// The accesses of a function that look at versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Statements that look before.
    pub opens: BTreeSet<usize>,
    /// Those of them whose value decides nothing until the second look: whatever they have found, what is
    /// in between is executed.
    pub blind: BTreeSet<usize>,
    /// Statements that look after.
    pub closes: BTreeSet<usize>,
    /// Loads whose value a swap that looks after writes: they are made before it.
    pub carried: BTreeSet<usize>,
}

/// The looks at versions of a function.
pub fn versions(module: &Module, function: &Function) -> Versions {
    match (function.body.as_ref(), Cfg::of(module, function)) {
        (Some(body), Some(cfg)) => find(body, &cfg, &Dataflow::new(body)),
        _ => Versions::default(),
    }
}

/// The same, of a body.
pub(crate) fn find(body: &Body, cfg: &Cfg, flow: &Dataflow<'_>) -> Versions {
    let mut all = Versions::default();
    let candidates: Vec<_> = body
        .instructions()
        .filter_map(|(at, instruction)| Some((at, instruction, look(instruction)?)))
        .collect();
    if candidates.len() < 2 {
        return all;
    }
    let mut values = Values::new(body, cfg, flow);
    let mut by_location: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, instruction, op) in candidates {
        let operand = instruction.operands.get(op.address);
        if let Some(address) = operand.and_then(|operand| values.address(at, operand)) {
            let location = (address, op.bytes_per_element);
            by_location.entry(location).or_default().push(at);
        }
    }
    let mut locations = HashMap::new();
    for (location, several) in by_location.iter().filter(|(_, of)| of.len() > 1) {
        locations.extend(several.iter().map(|&at| (at, *location)));
    }
    if locations.is_empty() {
        return all;
    }
    let slices = Slices { body, cfg, flow };
    let looks = |mut of: BTreeSet<usize>| {
        of.retain(|at| locations.contains_key(at));
        of
    };
    let mut pairs = BTreeSet::new();
    for (at, instruction) in body.instructions() {
        let compares = instruction.has("eq") || instruction.has("ne");
        if instruction.opcode == "setp" && compares {
            let seen = looks(slices.of(at, instruction.operands.iter().skip(1)));
            for &first in &seen {
                pairs.extend(seen.iter().map(|&second| (first, second)));
            }
        } else if is_swap(instruction) {
            let seen = looks(slices.of(at, instruction.operands.get(2).into_iter()));
            pairs.extend(seen.into_iter().map(|first| (first, at)));
        }
    }
    let rounds: Vec<HashSet<BlockId>> = loops(cfg);
    let round = |at: usize| {
        let block = cfg.block_of(at);
        let around = rounds.iter().filter(|inside| inside.contains(&block));
        around.min_by_key(|inside| inside.len())
    };
    for (first, second) in pairs {
        let (from, to) = (cfg.block_of(first), cfg.block_of(second));
        let ordered = first != second
            && cfg.dominates(from, to)
            && (from != to || first < second)
            && round(second).is_none_or(|inside| inside.contains(&from));
        if !ordered || locations.get(&first) != locations.get(&second) {
            continue;
        }
        all.opens.extend([first, second]);
        all.closes.insert(second);
        if !slices.decides(first, second) {
            all.blind.insert(first);
        }
        if let Some(swap) = slices.instruction(second).filter(|of| is_swap(of)) {
            all.carried
                .extend(slices.of(second, swap.operands.get(3).into_iter()));
        }
    }
    let closes = &all.closes;
    all.blind.retain(|at| !closes.contains(at));
    all
}

fn is_swap(instruction: &Instruction) -> bool {
    instruction.opcode == "atom" && instruction.has("cas")
}

/// A strong load, or a swap, of one scalar.
fn look(instruction: &Instruction) -> Option<isa::MemoryOp> {
    isa::memory(instruction).filter(|op| {
        let read = op.kind == MemoryKind::Load || is_swap(instruction);
        op.is_strong() && read && op.vector <= 1
    })
}

/// A register that a statement reads.
struct Use {
    at: usize,
    name: String,
}

impl Use {
    fn new(at: usize, name: &str) -> Self {
        let name = name.to_owned();
        Self { at, name }
    }
}

struct Slices<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    flow: &'a Dataflow<'a>,
}

impl Slices<'_> {
    fn instruction(&self, at: usize) -> Option<&Instruction> {
        match self.body.statements.get(at) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }

    /// The accesses whose results operands of a statement are computed from.
    fn of<'o>(&self, at: usize, operands: impl Iterator<Item = &'o Operand>) -> BTreeSet<usize> {
        let mut work = Vec::new();
        for operand in operands {
            if let Operand::Name { name, .. } = operand {
                work.push(Use::new(at, name));
            }
        }
        self.seen(work)
    }

    /// The accesses whose results uses of registers are computed from.
    fn seen(&self, mut work: Vec<Use>) -> BTreeSet<usize> {
        let (mut seen, mut known) = (BTreeSet::new(), HashSet::new());
        while let Some(Use { at, name }) = work.pop() {
            let Some(register) = self.flow.register(at, &name) else {
                continue;
            };
            for write in self.flow.reaching(self.cfg, register, at).0 {
                let Some(instruction) = self.instruction(write) else {
                    continue;
                };
                if isa::memory(instruction).is_some() {
                    seen.insert(write);
                } else if known.insert(write) {
                    isa::register_reads(instruction, |name| work.push(Use::new(write, name)));
                }
            }
        }
        seen
    }

    /// Whether a branch between two statements depends on what the first one returns.
    fn decides(&self, first: usize, second: usize) -> bool {
        let (from, to) = (self.cfg.block_of(first), self.cfg.block_of(second));
        let reach = |start: BlockId, forward: bool, stop: BlockId| {
            let mut seen = HashSet::from([start]);
            let mut work = vec![start];
            while let Some(block) = work.pop() {
                let of = &self.cfg.blocks[block];
                let next = match forward {
                    true => &of.successors,
                    false => &of.predecessors,
                };
                for &next in next.iter().filter(|_| block != stop || start == stop) {
                    if seen.insert(next) {
                        work.push(next);
                    }
                }
            }
            seen
        };
        if from == to {
            return false;
        }
        let behind = reach(from, true, to);
        let ahead = reach(to, false, from);
        let between = behind.intersection(&ahead).filter(|&&block| block != to);
        let mut branches = between.filter_map(|&block| self.cfg.blocks[block].terminator);
        branches.any(|branch| {
            let guard = self.instruction(branch).and_then(|of| of.guard.as_ref());
            guard.is_some_and(|guard| {
                let seen = self.seen(vec![Use::new(branch, &guard.predicate)]);
                seen.contains(&first)
            })
        })
    }
}
