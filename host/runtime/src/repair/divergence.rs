//! Code that only some threads of several blocks, of a block, or of a warp, execute: blocks between a branch on a value that differs
//! between them, and the place where the threads meet again.

use std::collections::HashSet;

use ptx::ast::{Body, Instruction, Module, Operand, Statement};
use ptx::cfg::{BlockId, Cfg};
use ptx::isa;
use ptx::scope::{Register, Scopes};

/// Threads that a barrier joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// Those of several blocks: a cluster, or the grid.
    Blocks,
    /// Those of a block.
    Block,
    /// Those of a warp. Warps are taken to lie along x.
    Warp,
}

/// Which branches part the threads of a block or a warp.
pub(super) struct Divergence {
    /// Each such branch with the blocks up to where the threads meet again.
    regions: Vec<(BlockId, Vec<bool>)>,
}

impl Divergence {
    pub(super) fn new(module: &Module, body: &Body, cfg: &Cfg, among: Among) -> Self {
        let scopes = Scopes::new(body);
        let threads = match among {
            Among::Blocks | Among::Block => HashSet::new(),
            Among::Warp => thread_numbers(body, &scopes),
        };
        let mut varying = HashSet::new();
        let mut regions: Vec<(BlockId, Vec<bool>)> = Vec::new();
        loop {
            let before = (varying.len(), regions.len());
            for (at, instruction) in body.instructions() {
                let block = cfg.block_of(at);
                let varies = is_source(module, instruction, among)
                    || regions.iter().any(|(_, blocks)| blocks[block])
                    || reads(&scopes, at, instruction, &varying)
                        && !(among != Among::Blocks && is_agreed(instruction))
                        && !is_of_whole_warps(&scopes, at, instruction, &threads);
                if varies {
                    isa::register_writes(instruction, |name| {
                        varying.extend(scopes.register(at, name));
                    });
                }
            }
            for (id, block) in cfg.blocks.iter().enumerate() {
                let Some(at) = block.terminator else { continue };
                let Some(Statement::Instruction(branch)) = body.statements.get(at) else {
                    continue;
                };
                let parts = branch.guard.is_some() || block.successors.len() > 1;
                let known = regions.iter().any(|(branch, _)| *branch == id);
                if parts && !known && reads(&scopes, at, branch, &varying) {
                    regions.push((id, region(cfg, id)));
                }
            }
            if before == (varying.len(), regions.len()) {
                break;
            }
        }
        Self { regions }
    }

    /// Whether only some threads execute a block.
    pub(super) fn is_inside(&self, block: BlockId) -> bool {
        self.regions.iter().any(|(_, blocks)| blocks[block])
    }

    /// The branches whose code holds one block and not another.
    pub(super) fn between(&self, one: BlockId, other: BlockId) -> impl Iterator<Item = BlockId> {
        let around = self.regions.iter();
        let around = around.filter(move |(_, blocks)| blocks[one] && !blocks[other]);
        around.map(|(branch, _)| *branch)
    }

    /// The branch whose code holds a block, the one with the most code of several.
    pub(super) fn outermost(&self, block: BlockId) -> Option<BlockId> {
        let around = self.regions.iter().filter(|(_, blocks)| blocks[block]);
        around
            .max_by_key(|(_, blocks)| blocks.iter().filter(|&&inside| inside).count())
            .map(|(branch, _)| *branch)
    }
}

/// Whether an instruction gives threads different values whatever it reads.
fn is_source(module: &Module, instruction: &Instruction, among: Among) -> bool {
    let blocks = among == Among::Blocks;
    let own = match instruction.opcode.as_str() {
        // One address has one value for all, unless it may change meanwhile.
        "ld" => {
            let is = |what: &[&str]| {
                let mut suffixes = instruction.suffixes.iter();
                suffixes.any(|suffix| what.contains(&suffix.split(':').next().unwrap_or_default()))
            };
            is(&["volatile", "relaxed", "acquire"])
                || !is(&["param", "const", "shared", "global"])
                || blocks && is(&["shared"])
        }
        "ldu" | "atom" | "tex" | "tld4" | "suld" | "ldmatrix" | "shfl" | "match" | "vote"
        | "activemask" | "elect" | "call" => true,
        _ => false,
    };
    let text = module.slice(instruction.span);
    let among_blocks: &[&str] = match blocks {
        true => &["%ctaid", "%cluster_cta", "%smid"],
        false => &[],
    };
    let threads = ["%tid", "%laneid", "%lanemask", "%warpid", "%clock"];
    let mut all = threads.iter().chain(among_blocks);
    own || all.any(|name| text.contains(name))
}

/// Whether a barrier of the block gives all its threads one value (`__syncthreads_or()`).
fn is_agreed(instruction: &Instruction) -> bool {
    matches!(instruction.opcode.as_str(), "bar" | "barrier")
        && instruction.has("red")
        && isa::sync::is_full_cta_barrier(instruction)
}

/// Registers that hold `%tid.x` and nothing else.
fn thread_numbers(body: &Body, scopes: &Scopes<'_>) -> HashSet<Register> {
    let (mut copies, mut others) = (HashSet::new(), HashSet::new());
    for (at, instruction) in body.instructions() {
        let of = instruction.operands.get(1);
        let copy = instruction.opcode == "mov"
            && matches!(of, Some(Operand::Name { name, component: Some(0), .. }) if name == "%tid");
        let registers = if copy { &mut copies } else { &mut others };
        isa::register_writes(instruction, |name| {
            registers.extend(scopes.register(at, name));
        });
    }
    copies.retain(|register| !others.contains(register));
    copies
}

/// Whether what an instruction computes of a thread's number is the same for all lanes of a warp, as `t < 32` and
/// `t / 32` are.
fn is_of_whole_warps(
    scopes: &Scopes<'_>,
    at: usize,
    instruction: &Instruction,
    threads: &HashSet<Register>,
) -> bool {
    let [_, Operand::Name { name, .. }, Operand::Int(value)] = &instruction.operands[..] else {
        return false;
    };
    let of_thread = scopes.register(at, name);
    if !of_thread.is_some_and(|register| threads.contains(&register)) {
        return false;
    }
    let is = |names: &[&str]| instruction.suffixes.iter().any(|of| names.contains(&&**of));
    match instruction.opcode.as_str() {
        "shr" => (5..32).contains(value),
        "setp" if is(&["lt", "ge", "lo", "hs"]) => value % 32 == 0,
        "setp" if is(&["le", "gt", "ls", "hi"]) => (value + 1) % 32 == 0,
        _ => false,
    }
}

fn reads(
    scopes: &Scopes<'_>,
    at: usize,
    instruction: &Instruction,
    varying: &HashSet<Register>,
) -> bool {
    let mut found = false;
    isa::register_reads(instruction, |name| {
        let register = scopes.register(at, name);
        found |= register.is_some_and(|register| varying.contains(&register));
    });
    found
}

/// What a branch leads to before its threads meet again.
fn region(cfg: &Cfg, branch: BlockId) -> Vec<bool> {
    let meet = cfg.immediate_post_dominator(branch);
    let mut inside = vec![false; cfg.blocks.len()];
    let mut work = cfg.blocks[branch].successors.clone();
    while let Some(at) = work.pop() {
        if Some(at) != meet && !std::mem::replace(&mut inside[at], true) {
            work.extend(&cfg.blocks[at].successors);
        }
    }
    inside
}
