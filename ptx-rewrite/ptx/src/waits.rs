//! Loads that a loop waits for: what they read decides whether the loop goes on.
//!
//! A load decides the exit of a loop when it lies in the loop, and the predicate of a branch out of
//! the loop is computed from what it returns, by instructions of the loop: directly, or by which of
//! several writes of a register is executed. Of the writes of a register those count that reach its
//! use. Loops are the natural ones of the control flow graph,
//! and what is read back from memory or returned by a call is not followed.
//!
//! Loops with one head are one loop. A compiler gives a wait at the beginning of a round the head of the loop around it,
//! so each way back to a head that has several is a loop of its own too, for loads whose address does not change there.

use std::collections::{BTreeSet, HashSet};

use crate::ast::{Body, Instruction, Module, Statement};
use crate::cfg::{BlockId, Cfg};
use crate::dataflow::Dataflow;
use crate::isa::{self, MemoryKind};
use crate::scope::Register;

/// The statements of a body that are strong loads, or atomics that return a value, and decide the
/// exit of a loop around them. Swaps (`atom.exch`, and `atom.cas` unless it writes what it has compared with) are left
/// out: trying to take a lock is no wait for a signal.
pub fn waits(module: &Module, function: &crate::ast::Function) -> BTreeSet<usize> {
    match (function.body.as_ref(), Cfg::of(module, function)) {
        (Some(body), Some(cfg)) => find(body, &cfg, &Dataflow::new(body)),
        _ => BTreeSet::new(),
    }
}

/// Those of them that look at one address again and again: the loop ends when another thread writes there.
pub fn polls(module: &Module, function: &crate::ast::Function) -> BTreeSet<usize> {
    staying(module, function, reads, |_| true)
}

/// The statements of a body that are weak loads and decide the exit of a loop around them that does nothing but read: it
/// can end only if another thread writes there.
pub fn spins(module: &Module, function: &crate::ast::Function) -> BTreeSet<usize> {
    staying(module, function, reads_weakly, only_reads)
}

/// The statements of a body that are swaps and decide the exit of a loop around them, as taking a lock does.
pub fn takes(module: &Module, function: &crate::ast::Function) -> BTreeSet<usize> {
    match (function.body.as_ref(), Cfg::of(module, function)) {
        (Some(body), Some(cfg)) => among(body, &cfg, &Dataflow::new(body), swaps, |_, _| ()),
        _ => BTreeSet::new(),
    }
}

/// Those of the instructions that `is_one` names which decide the exit of a loop around them, and whose address does not
/// change there. The loop has no other instructions than those that `may_have` names.
fn staying(
    module: &Module,
    function: &crate::ast::Function,
    is_one: fn(&Instruction) -> bool,
    may_have: fn(&Instruction) -> bool,
) -> BTreeSet<usize> {
    let (Some(body), Some(cfg)) = (function.body.as_ref(), Cfg::of(module, function)) else {
        return BTreeSet::new();
    };
    let flow = Dataflow::new(body);
    let fits = |inside: &HashSet<BlockId>, loads: &mut Vec<usize>| {
        let mut here = body.instructions();
        match here.all(|(at, of)| !inside.contains(&cfg.block_of(at)) || may_have(of)) {
            true => loads.retain(|&at| stays(body, &cfg, &flow, inside, at)),
            false => loads.clear(),
        }
    };
    among(body, &cfg, &flow, is_one, fits)
}

/// Whether the address of an access does not change in a loop around it.
fn stays(
    body: &Body,
    cfg: &Cfg,
    flow: &Dataflow<'_>,
    inside: &HashSet<BlockId>,
    at: usize,
) -> bool {
    let mut reads = Vec::new();
    if let Statement::Instruction(load) = &body.statements[at] {
        isa::register_reads(load, |name| reads.extend(flow.register(at, name)));
    }
    let mut writes = reads.iter().flat_map(|&of| flow.reaching(cfg, of, at).0);
    writes.all(|write| !inside.contains(&cfg.block_of(write)))
}

/// The same, of a body.
pub(crate) fn find(body: &Body, cfg: &Cfg, flow: &Dataflow<'_>) -> BTreeSet<usize> {
    among(body, cfg, flow, reads, |_, _| ())
}

/// Those of the instructions that `is_one` names which decide the exit of a loop around them. `fits` leaves those of the
/// instructions in a loop that are wanted.
fn among(
    body: &Body,
    cfg: &Cfg,
    flow: &Dataflow<'_>,
    is_one: fn(&Instruction) -> bool,
    fits: impl Fn(&HashSet<BlockId>, &mut Vec<usize>),
) -> BTreeSet<usize> {
    let candidates = body.instructions().filter(|(_, of)| is_one(of));
    let candidates: Vec<usize> = candidates.map(|(at, _)| at).collect();
    let mut found = BTreeSet::new();
    if candidates.is_empty() {
        return found;
    }
    let whole = loops(cfg);
    let parts = ways_back(cfg);
    let all = whole.iter().map(|inside| (inside, true));
    let all = all.chain(parts.iter().map(|inside| (inside, false)));
    for (inside, is_whole) in all {
        let mut here = candidates.clone();
        here.retain(|&at| {
            inside.contains(&cfg.block_of(at)) && (is_whole || stays(body, cfg, flow, inside, at))
        });
        if !here.is_empty() {
            fits(inside, &mut here);
        }
        if !here.is_empty() {
            let decided = deciders(body, cfg, flow, inside);
            found.extend(here.iter().filter(|at| decided.contains(at)));
        }
    }
    found
}

/// True for what may observe a signal.
fn reads(instruction: &Instruction) -> bool {
    isa::memory(instruction).is_some_and(|op| {
        let swap = swaps(instruction);
        op.is_strong() && (op.kind == MemoryKind::Load || op.kind == MemoryKind::Rmw && !swap)
    })
}

/// True for an atomic that writes another value than it has found.
fn swaps(instruction: &Instruction) -> bool {
    instruction.has("cas") && !keeps(instruction) || instruction.has("exch")
}

/// True for a compare-and-swap that writes the value that it has compared with: it only reads.
fn keeps(instruction: &Instruction) -> bool {
    matches!(&instruction.operands[..], [.., compare, new] if compare == new)
}

/// True for a weak load.
fn reads_weakly(instruction: &Instruction) -> bool {
    isa::memory(instruction).is_some_and(|op| op.kind == MemoryKind::Load && !op.is_strong())
}

/// True for what changes no memory, calls nothing and waits for nobody.
fn only_reads(instruction: &Instruction) -> bool {
    let changes = isa::memory(instruction).is_some_and(|op| op.kind != MemoryKind::Load);
    let waits = matches!(
        instruction.opcode.as_str(),
        "call" | "bar" | "barrier" | "mbarrier"
    );
    !changes && !waits
}

/// The blocks of each natural loop; loops with one head are one.
pub(crate) fn loops(cfg: &Cfg) -> Vec<HashSet<BlockId>> {
    let heads = 0..cfg.blocks.len();
    let all = heads.map(|head| (head, latches(cfg, head)));
    let all = all.filter(|(_, latches)| !latches.is_empty());
    all.map(|(head, latches)| body_of(cfg, head, latches))
        .collect()
}

/// Of the loops that have several ways back to their head: the blocks of each way.
fn ways_back(cfg: &Cfg) -> Vec<HashSet<BlockId>> {
    let mut all = Vec::new();
    for head in 0..cfg.blocks.len() {
        let latches = latches(cfg, head);
        if latches.len() > 1 {
            all.extend(latches.iter().map(|&from| body_of(cfg, head, vec![from])));
        }
    }
    all
}

/// The blocks that lead back to a head of a loop.
fn latches(cfg: &Cfg, head: BlockId) -> Vec<BlockId> {
    let before = cfg.blocks[head].predecessors.iter().copied();
    before.filter(|&from| cfg.dominates(head, from)).collect()
}

/// The blocks from a head to those that lead back to it.
fn body_of(cfg: &Cfg, head: BlockId, latches: Vec<BlockId>) -> HashSet<BlockId> {
    let mut inside = HashSet::from([head]);
    let mut work = latches;
    while let Some(block) = work.pop() {
        if inside.insert(block) {
            work.extend(&cfg.blocks[block].predecessors);
        }
    }
    inside
}

/// The statements of a loop that what its exits are decided by is computed from.
fn deciders(
    body: &Body,
    cfg: &Cfg,
    flow: &Dataflow<'_>,
    inside: &HashSet<BlockId>,
) -> HashSet<usize> {
    // Registers, each with a statement that reads it.
    let mut reads: Vec<(Register, usize)> = Vec::new();
    let mut known = HashSet::new();
    let mut note = |reads: &mut Vec<(Register, usize)>, at: usize, instruction: &Instruction| {
        isa::register_reads(instruction, |name| {
            if let Some(register) = flow.register(at, name)
                && known.insert((register, at))
            {
                reads.push((register, at));
            }
        });
    };
    let branch = |block: BlockId| {
        let at = cfg.blocks[block].terminator?;
        match &body.statements[at] {
            Statement::Instruction(instruction) => Some((at, instruction)),
            _ => None,
        }
    };
    let leaves = |block: BlockId| {
        let of = &cfg.blocks[block];
        of.exits || of.successors.iter().any(|to| !inside.contains(to))
    };
    for &block in inside.iter().filter(|&&block| leaves(block)) {
        if let Some((at, instruction)) = branch(block) {
            note(&mut reads, at, instruction);
        }
    }
    let mut found = HashSet::new();
    while let Some((register, read)) = reads.pop() {
        for at in flow.reaching(cfg, register, read).0 {
            let block = cfg.block_of(at);
            let Statement::Instruction(instruction) = &body.statements[at] else {
                continue;
            };
            if !inside.contains(&block) || !found.insert(at) {
                continue;
            }
            if isa::memory(instruction).is_none() {
                note(&mut reads, at, instruction);
            }
            // Which branch leads here decides as well.
            for &from in inside.iter().filter(|&&from| controls(cfg, from, block)) {
                if let Some((at, instruction)) = branch(from) {
                    note(&mut reads, at, instruction);
                }
            }
        }
    }
    found
}

/// True when the branch at the end of a block decides whether control comes to another one.
fn controls(cfg: &Cfg, from: BlockId, block: BlockId) -> bool {
    let to = &cfg.blocks[from].successors;
    to.len() > 1
        && to.iter().any(|&to| cfg.post_dominates(block, to))
        && (from == block || !cfg.post_dominates(block, from))
}
