//! Control flow of a body: basic blocks, edges, dominators and post-dominators.
//!
//! Blocks hold ranges of *statements*, so that every node of the body lies in exactly one.
//! A guarded `bra`, `ret`, `exit`, `trap` or call that does not return may fall through.
//! All ways out of the function lead to one virtual exit, which is what post-dominators are
//! relative to. Source of the dominator algorithm: see [`dominators`].

pub mod dominators;

use crate::ast::{Body, Function, Instruction, Module, Operand, Statement};
use crate::isa::{self, Control};
use crate::scope::Scopes;

/// Number of a block in [`Cfg::blocks`].
pub type BlockId = usize;

/// A basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of its first statement.
    pub start: usize,
    /// One past its last statement.
    pub end: usize,
    /// Statement index of the instruction that ends it by a jump or by leaving; none when it
    /// just runs into the next block.
    pub terminator: Option<usize>,
    /// Where control may go, without repetition.
    pub successors: Vec<BlockId>,
    /// Where control may come from.
    pub predecessors: Vec<BlockId>,
    /// True when the function may be left here.
    pub exits: bool,
}

/// The control flow graph of a body.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// The blocks in text order. The first is where the body starts; there is at least one.
    pub blocks: Vec<Block>,
    /// Block of each statement.
    of_statement: Vec<BlockId>,
    dominators: Vec<Option<BlockId>>,
    post_dominators: Vec<Option<BlockId>>,
}

impl Cfg {
    /// The graph of `body`, every call taken to return.
    pub fn new(body: &Body) -> Self {
        Self::with_calls(body, |_, _| false)
    }

    /// The graph of a function of `module`, calls of functions and prototypes that are declared
    /// `.noreturn` taken not to return. None for a declaration.
    pub fn of(module: &Module, function: &Function) -> Option<Self> {
        let body = function.body.as_ref()?;
        let scopes = Scopes::new(body);
        Some(Self::with_calls(body, |at, call| {
            isa::callee(call).is_some_and(|name| module.noreturn.contains(name))
                || prototype_says_noreturn(body, &scopes, at, call)
        }))
    }

    /// The graph of `body` with a say on which calls, given with their statement index, do not
    /// return.
    pub fn with_calls(body: &Body, never_returns: impl Fn(usize, &Instruction) -> bool) -> Self {
        let scopes = Scopes::new(body);
        let ends = |at: usize, instruction: &Instruction| match control(instruction) {
            Control::Next => false,
            Control::Call => never_returns(at, instruction),
            Control::Branch
            | Control::BranchIndexed
            | Control::Return
            | Control::Exit
            | Control::Trap => true,
        };
        let mut blocks = split(body, ends);
        let mut of_statement = vec![0; body.statements.len()];
        for (id, block) in blocks.iter().enumerate() {
            of_statement[block.start..block.end].fill(id);
        }
        for id in 0..blocks.len() {
            connect(id, &mut blocks, body, &scopes, &of_statement);
        }
        for id in 0..blocks.len() {
            for successor in blocks[id].successors.clone() {
                blocks[successor].predecessors.push(id);
            }
        }
        let (dominators, post_dominators) = trees(&blocks);
        Self {
            blocks,
            of_statement,
            dominators,
            post_dominators,
        }
    }

    /// The block a statement lies in.
    pub fn block_of(&self, statement: usize) -> BlockId {
        self.of_statement[statement]
    }

    /// True when control can reach the block from the start of the body.
    pub fn is_reachable(&self, block: BlockId) -> bool {
        block == 0 || self.dominators[block].is_some()
    }

    /// The closest other block that every path to `block` passes. None for the first block and
    /// for what cannot be reached.
    pub fn immediate_dominator(&self, block: BlockId) -> Option<BlockId> {
        self.dominators[block]
    }

    /// The closest other block that every path from `block` out of the function passes: where
    /// lanes that part at the end of `block` meet again. None when they meet only outside, or
    /// when the function cannot be left from here.
    pub fn immediate_post_dominator(&self, block: BlockId) -> Option<BlockId> {
        self.post_dominators[block]
    }

    /// True when every path from the start to `block` passes `by`. A block dominates itself.
    /// Walks up the tree: as long as the tree is deep.
    pub fn dominates(&self, by: BlockId, block: BlockId) -> bool {
        self.is_reachable(block) && on_path(&self.dominators, block, by)
    }

    /// True when every path from `block` out of the function passes `by`. A block post-dominates
    /// itself.
    pub fn post_dominates(&self, by: BlockId, block: BlockId) -> bool {
        on_path(&self.post_dominators, block, by)
    }

    /// Whether a path leads from behind one statement to another without a statement that `stops` names.
    pub fn reaches(&self, from: usize, to: usize, stops: impl Fn(usize) -> bool) -> bool {
        let mut entered = vec![false; self.blocks.len()];
        let mut work = vec![(self.block_of(from), from + 1)];
        while let Some((block, start)) = work.pop() {
            // Behind the last statement of a block stands what begins the next one.
            match (start..self.blocks[block].end).find(|&at| at == to || stops(at)) {
                Some(at) if !stops(at) => return true,
                Some(_) => {}
                None => {
                    for &next in &self.blocks[block].successors {
                        if !std::mem::replace(&mut entered[next], true) {
                            work.push((next, self.blocks[next].start));
                        }
                    }
                }
            }
        }
        false
    }

    /// The reachable blocks in reverse post-order: a block before its successors, but for loops.
    pub fn reverse_post_order(&self) -> Vec<BlockId> {
        let mut order =
            dominators::post_order(self.blocks.len(), 0, |block| &self.blocks[block].successors);
        order.reverse();
        order
    }
}

fn on_path(parents: &[Option<BlockId>], from: BlockId, to: BlockId) -> bool {
    std::iter::successors(Some(from), |&block| parents[block]).any(|block| block == to)
}

/// True for a call through a prototype that is declared `.noreturn`.
fn prototype_says_noreturn(
    body: &Body,
    scopes: &Scopes<'_>,
    at: usize,
    call: &Instruction,
) -> bool {
    let Some(Operand::Name { name, .. }) = call.operands.last() else {
        return false;
    };
    let prototype = scopes.label(at, name).map(|label| &body.statements[label]);
    matches!(
        prototype,
        Some(Statement::CallPrototype { noreturn: true, .. })
    )
}

fn control(instruction: &Instruction) -> Control {
    isa::lookup(&instruction.opcode).map_or(Control::Next, |row| row.control)
}

/// Cuts the body behind instructions that end a block and in front of labels.
fn split(body: &Body, ends: impl Fn(usize, &Instruction) -> bool) -> Vec<Block> {
    let block = |start, end, terminator| Block {
        start,
        end,
        terminator,
        successors: Vec::new(),
        predecessors: Vec::new(),
        exits: false,
    };
    let mut blocks = Vec::new();
    let mut start = 0;
    for (index, statement) in body.statements.iter().enumerate() {
        match statement {
            Statement::Label { .. } if index > start => {
                blocks.push(block(start, index, None));
                start = index;
            }
            Statement::Instruction(instruction) if ends(index, instruction) => {
                blocks.push(block(start, index + 1, Some(index)));
                start = index + 1;
            }
            _ => {}
        }
    }
    let end = body.statements.len();
    if start < end || blocks.is_empty() {
        blocks.push(block(start, end, None));
    }
    blocks
}

/// Fills in the successors of a block.
fn connect(
    id: BlockId,
    blocks: &mut [Block],
    body: &Body,
    scopes: &Scopes<'_>,
    of_statement: &[BlockId],
) {
    let next = (id + 1 < blocks.len()).then_some(id + 1);
    let terminator = blocks[id].terminator;
    let instruction = terminator.and_then(|at| match &body.statements[at] {
        Statement::Instruction(instruction) => Some(instruction),
        _ => None,
    });
    let (mut successors, mut exits) = (Vec::new(), false);
    let mut falls_through = true;
    if let (Some(at), Some(instruction)) = (terminator, instruction) {
        falls_through = instruction.guard.is_some();
        let targets = match control(instruction) {
            Control::Branch => operand_name(instruction, 0)
                .and_then(|name| scopes.label(at, name))
                .map(|label| vec![label]),
            Control::BranchIndexed => operand_name(instruction, 1)
                .and_then(|name| scopes.label(at, name))
                .and_then(|list| indexed(body, scopes, list)),
            Control::Next | Control::Call | Control::Return | Control::Exit | Control::Trap => None,
        };
        // A jump to a label that is not there leaves, like a return.
        exits = targets.is_none();
        let targets = targets.into_iter().flatten();
        successors.extend(targets.map(|label| of_statement[label]));
    }
    if falls_through {
        match next {
            Some(next) => successors.push(next),
            None => exits = true,
        }
    }
    successors.sort_unstable();
    successors.dedup();
    blocks[id].successors = successors;
    blocks[id].exits = exits;
}

/// Statement indices of the labels in a `.branchtargets`; none if one of them is not there.
fn indexed(body: &Body, scopes: &Scopes<'_>, list: usize) -> Option<Vec<usize>> {
    match &body.statements[list] {
        Statement::BranchTargets { targets, .. } => targets
            .iter()
            .map(|target| scopes.label(list, target))
            .collect(),
        _ => None,
    }
}

fn operand_name(instruction: &Instruction, index: usize) -> Option<&str> {
    match instruction.operands.get(index) {
        Some(Operand::Name { name, .. }) => Some(name),
        _ => None,
    }
}

/// Immediate dominators and post-dominators.
fn trees(blocks: &[Block]) -> (Vec<Option<BlockId>>, Vec<Option<BlockId>>) {
    let forward = dominators::immediate(
        blocks.len(),
        0,
        |block| &blocks[block].successors,
        |block| &blocks[block].predecessors,
    );
    // The same on the graph turned round, from the virtual exit.
    let exit = blocks.len();
    let leaving: Vec<BlockId> = (0..exit).filter(|&id| blocks[id].exits).collect();
    let with_exit: Vec<Vec<BlockId>> = blocks
        .iter()
        .map(|block| {
            let exits = block.exits.then_some(exit);
            block.successors.iter().copied().chain(exits).collect()
        })
        .collect();
    let mut backward = dominators::immediate(
        exit + 1,
        exit,
        |block| {
            if block == exit {
                &leaving
            } else {
                &blocks[block].predecessors
            }
        },
        |block| {
            if block == exit {
                &[]
            } else {
                &with_exit[block]
            }
        },
    );
    backward.truncate(exit);
    for parent in &mut backward {
        *parent = parent.filter(|&parent| parent != exit);
    }
    (forward, backward)
}
