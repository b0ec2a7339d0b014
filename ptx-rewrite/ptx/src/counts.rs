//! Atomics that count threads so that the last one can be recognised.
//!
//! `if (atomicAdd(&count, 1) == n - 1)` is true for the last thread only. The other threads may have been
//! counted in any order: which threads were counted before one of them differs from run to run.
//! An atomic counts in this sense when it adds the same in every thread, and its result is only
//! compared for equality with what is the same in every thread, by one branch. Only the thread that
//! has found the value executes the statements behind one side of that branch.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{AddressBase, Body, Function, Instruction, Module, Operand, Statement};
use crate::cfg::{BlockId, Cfg};
use crate::dataflow::Dataflow;
use crate::isa::{self, MemoryKind};

/// The atomics of a function that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The statements that count.
    pub counts: BTreeSet<usize>,
    /// Statements that only the thread with the final count executes, with the counting statement.
    pub found: BTreeMap<usize, usize>,
}

/// Opcodes whose results are the same in every thread if their operands are.
const PURE: [&str; 8] = ["add", "cvt", "mad", "mov", "mul", "shl", "shr", "sub"];

/// The atomics of a function that count.
pub fn counts(module: &Module, function: &Function) -> Counts {
    let mut all = Counts::default();
    let Some(body) = &function.body else {
        return all;
    };
    let candidates: Vec<_> = body
        .instructions()
        .filter(|(_, instruction)| adds(instruction))
        .collect();
    if candidates.is_empty() {
        return all;
    }
    let Some(cfg) = Cfg::of(module, function) else {
        return all;
    };
    let flow = Dataflow::new(body);
    let search = Search {
        body,
        cfg: &cfg,
        flow: &flow,
        entry: function.entry,
    };
    // The innermost side stands.
    let mut sides: Vec<(BlockId, usize)> = candidates
        .into_iter()
        .filter_map(|(at, instruction)| Some((search.side(at, instruction)?, at)))
        .collect();
    all.counts = sides.iter().map(|&(_, at)| at).collect();
    let around = |side: BlockId| {
        (0..cfg.blocks.len())
            .filter(|&by| cfg.dominates(by, side))
            .count()
    };
    sides.sort_by_key(|&(side, _)| around(side));
    for (side, at) in sides {
        let inside = (0..cfg.blocks.len()).filter(|&block| cfg.dominates(side, block));
        let statements = inside.flat_map(|block| cfg.blocks[block].start..cfg.blocks[block].end);
        all.found
            .extend(statements.map(|statement| (statement, at)));
    }
    all
}

fn adds(instruction: &Instruction) -> bool {
    let counts = ["add", "inc", "dec"].iter().any(|of| instruction.has(of));
    let whole = |op: isa::MemoryOp| op.kind == MemoryKind::Rmw && op.vector <= 1;
    counts && instruction.guard.is_none() && isa::memory(instruction).is_some_and(whole)
}

struct Search<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    flow: &'a Dataflow<'a>,
    /// The parameters are the same in every thread.
    entry: bool,
}

impl Search<'_> {
    /// The block that a thread comes to if an atomic has returned the value.
    fn side(&self, at: usize, atomic: &Instruction) -> Option<BlockId> {
        let [result, _, added, ..] = &atomic.operands[..] else {
            return None;
        };
        if !self.is_uniform(at, added) {
            return None;
        }
        let (compare, equal) = self.comparison(at, result)?;
        let Some(Operand::Name { name, .. }) = self.instruction(compare)?.operands.first() else {
            return None;
        };
        let [branch] = self.readers(compare, name)?[..] else {
            return None;
        };
        let block = self.cfg.block_of(branch);
        let ends = self.cfg.blocks[block].terminator == Some(branch);
        let jump = self.instruction(branch)?;
        let guard = jump.guard.as_ref().filter(|_| ends)?;
        let behind = block + 1;
        let side = match equal != guard.negated {
            false => behind,
            true if jump.opcode != "bra" => return None,
            true => {
                let mut to = self.cfg.blocks[block].successors.iter();
                *to.find(|&&to| to != behind)?
            }
        };
        let only = side < self.cfg.blocks.len() && self.follows(side, block);
        (only && side != 0 && (self.shows(side) || self.stays(side))).then_some(side)
    }

    /// The one comparison of a value, and whether it asks for equality; nothing if the value is put to any
    /// other use.
    fn comparison(&self, at: usize, result: &Operand) -> Option<(usize, bool)> {
        let Operand::Name { name, .. } = result else {
            return None;
        };
        let mut work = vec![(at, name)];
        let mut found = None;
        while let Some((write, name)) = work.pop() {
            let register = self.flow.register(write, name);
            for read in self.readers(write, name)? {
                let instruction = self.instruction(read)?;
                let mine = |operand: &&Operand| match operand {
                    Operand::Name { name, .. } => self.flow.register(read, name) == register,
                    _ => false,
                };
                let (to, from) = instruction.operands.split_first()?;
                let others = from.iter().filter(|operand| !mine(operand));
                let once = from.iter().filter(mine).count() == 1;
                let uniform = others.clone().all(|other| self.is_uniform(read, other));
                if !once || !uniform || instruction.guard.is_some() {
                    return None;
                }
                match (instruction.opcode.as_str(), to) {
                    ("mov" | "add" | "sub", Operand::Name { name, .. }) => {
                        work.push((read, name));
                    }
                    ("setp", _) if from.len() == 2 && found.is_none() => {
                        let equal = instruction.has("eq");
                        (equal || instruction.has("ne")).then_some(())?;
                        found = Some((read, equal));
                    }
                    _ => return None,
                }
            }
        }
        found
    }

    /// The statements that read what one writes to a register; nothing if some of them may as well read
    /// something else.
    fn readers(&self, write: usize, name: &str) -> Option<Vec<usize>> {
        let register = self.flow.register(write, name)?;
        let reads = self.flow.reached(self.cfg, register, write);
        let alone =
            |&read: &usize| self.flow.reaching(self.cfg, register, read) == (vec![write], false);
        reads.iter().all(alone).then_some(reads)
    }

    /// Whether an operand has one value in all threads of a launch.
    fn is_uniform(&self, at: usize, operand: &Operand) -> bool {
        let name = match operand {
            Operand::Int(_) => return true,
            Operand::Name { name, .. } => name,
            Operand::Address {
                base: AddressBase::Name(name),
                ..
            } => name,
            _ => return false,
        };
        if self.flow.register(at, name).is_none() {
            let size = ["%nctaid", "%ntid", "%cluster_nctaid", "%nclusterid"];
            return size.contains(&name.as_str()) || !name.starts_with('%');
        }
        let Some((write, instruction)) = self.flow.only_write(at, name) else {
            return false;
        };
        let parameter = self.entry && instruction.opcode == "ld" && instruction.has("param");
        // A value cannot depend on itself here: it has one write, and is there before it is read.
        let pure = PURE.contains(&instruction.opcode.as_str()) && write < at;
        let operands = instruction.operands.iter().skip(1);
        (parameter || pure) && { operands }.all(|operand| self.is_uniform(write, operand))
    }

    /// Whether control comes to a block from one other only.
    fn follows(&self, block: BlockId, from: BlockId) -> bool {
        let before = self.cfg.blocks[block].predecessors.iter();
        { before }.all(|&of| of == from || !self.cfg.is_reachable(of))
    }

    /// Whether all who come to a block are heard there, or further on before anybody else comes by.
    fn shows(&self, block: BlockId) -> bool {
        let heard = |instruction: &Instruction| {
            let strong = isa::memory(instruction).is_some_and(|op| op.is_strong());
            instruction.guard.is_none() && (strong || isa::sync(instruction).is_some())
        };
        let of = &self.cfg.blocks[block];
        let mut instructions = (of.start..of.end).filter_map(|at| self.instruction(at));
        let next = match of.successors[..] {
            [next] if next > block && self.follows(next, block) => Some(next),
            _ => None,
        };
        instructions.any(heard) || next.is_some_and(|next| self.shows(next))
    }

    /// Whether who has come to a block never leaves what only that block leads to.
    fn stays(&self, block: BlockId) -> bool {
        let mut seen = BTreeSet::from([block]);
        let mut work = vec![block];
        while let Some(at) = work.pop() {
            for &to in &self.cfg.blocks[at].successors {
                if !self.cfg.dominates(block, to) {
                    return false;
                }
                if seen.insert(to) {
                    work.push(to);
                }
            }
        }
        true
    }

    fn instruction(&self, at: usize) -> Option<&Instruction> {
        match self.body.statements.get(at) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }
}
