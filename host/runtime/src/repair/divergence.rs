//! Code that only some threads of a block execute: blocks between a branch on a value that differs between
//! threads, and the place where the threads meet again.

use std::collections::HashSet;

use ptx::ast::{Body, Instruction, Module, Statement};
use ptx::cfg::{BlockId, Cfg};
use ptx::isa;
use ptx::scope::{Register, Scopes};

/// Which branches part the threads of a block.
pub(super) struct Divergence {
    /// Each such branch with the blocks up to where the threads meet again.
    regions: Vec<(BlockId, Vec<bool>)>,
}

impl Divergence {
    pub(super) fn new(module: &Module, body: &Body, cfg: &Cfg) -> Self {
        let scopes = Scopes::new(body);
        let mut varying = HashSet::new();
        let mut regions: Vec<(BlockId, Vec<bool>)> = Vec::new();
        loop {
            let before = (varying.len(), regions.len());
            for (at, instruction) in body.instructions() {
                let block = cfg.block_of(at);
                let varies = is_source(module, instruction)
                    || regions.iter().any(|(_, blocks)| blocks[block])
                    || reads(&scopes, at, instruction, &varying);
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

    /// The branch whose code holds a block, the one with the most code of several.
    pub(super) fn outermost(&self, block: BlockId) -> Option<BlockId> {
        let around = self.regions.iter().filter(|(_, blocks)| blocks[block]);
        around
            .max_by_key(|(_, blocks)| blocks.iter().filter(|&&inside| inside).count())
            .map(|(branch, _)| *branch)
    }
}

/// Whether an instruction gives threads different values whatever it reads.
fn is_source(module: &Module, instruction: &Instruction) -> bool {
    let own = match instruction.opcode.as_str() {
        "ld" => !["param", "const"].iter().any(|space| {
            let mut suffixes = instruction.suffixes.iter();
            suffixes.any(|suffix| suffix.split(':').next() == Some(space))
        }),
        "ldu" | "atom" | "tex" | "tld4" | "suld" | "ldmatrix" | "shfl" | "match" | "vote"
        | "activemask" | "elect" | "call" => true,
        _ => false,
    };
    let text = module.slice(instruction.span);
    own || ["%tid", "%laneid", "%lanemask", "%warpid", "%clock"]
        .iter()
        .any(|name| text.contains(name))
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
