//! A function's control flow, as far as barriers are concerned: which accesses are reached from which without one, and
//! where one would stand.

use std::collections::HashMap;

use ptx::ast::{Body, Function, Instruction, Module, Operand, Statement};
use ptx::cfg::{BlockId, Cfg};
use ptx::isa::sync::is_full_cta_barrier;
use ptx::isa::{MemoryKind, MemoryOp, SyncOp, memory, sync};

use super::divergence::{Among, Divergence};
use crate::grid::Barriers;
use crate::log::{Around, Barrier, CodeLocation, Frame, Level, Neighbour, Outside, Passed, Point};

/// Most barriers for which a path that skips them is looked for.
const BARRIERS: usize = 32;

/// What is to order two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequiredOrder {
    /// None: any path counts.
    Nothing,
    /// A barrier of the block.
    Block,
    /// A barrier of the warp.
    Warp,
    /// A barrier of the cluster.
    Cluster,
    /// A barrier of the grid, or the end of a launch and the beginning of another.
    Grid,
    /// A fence of gpu scope or wider.
    Fence,
    /// A fence of any scope, or a barrier of the block.
    BlockFence,
    /// A wait for all asynchronous copies of groups, by the thread that has issued them.
    Wait {
        /// Bulk copies; otherwise others.
        bulk: bool,
    },
}

/// A function as this module looks at it.
pub(super) struct Flow<'a> {
    module: &'a Module,
    pub(super) body: &'a Body,
    pub(super) cfg: Cfg,
    /// Of several blocks, of blocks, and of warps.
    divergence: [Divergence; 3],
    /// Headers of loops with their blocks.
    loops: Vec<(BlockId, Vec<bool>)>,
    grid_barriers: Barriers,
}

/// A place for a barrier: one of the source, and so before several statements where code has been copied; and the code it had to
/// be moved out of.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) before: Vec<usize>,
    pub(super) point: Point,
}

impl<'a> Flow<'a> {
    pub(super) fn new(module: &'a Module, function: &'a Function, body: &'a Body) -> Option<Self> {
        let cfg = Cfg::of(module, function)?;
        let among = [Among::Blocks, Among::Block, Among::Warp];
        let divergence = among.map(|among| Divergence::new(module, body, &cfg, among));
        let loops = loops(&cfg);
        Some(Self {
            module,
            body,
            cfg,
            divergence,
            loops,
            grid_barriers: Barriers::of(body),
        })
    }

    /// Places in front of or behind the two ends of a way from one access to another, that one first.
    pub(super) fn candidates(
        &self,
        way: [usize; 2],
        order: RequiredOrder,
    ) -> impl Iterator<Item = Candidate> {
        let both = [self.behind(way, order), self.ahead(way, order)];
        both.into_iter().flatten()
    }

    /// The wait that ends the asynchronous copy of a statement; none if that is no copy, or completes at an mbarrier.
    pub(super) fn awaited(&self, at: usize) -> Option<RequiredOrder> {
        let copy = self.instruction(at)?;
        let bulk = match memory(copy)?.kind {
            MemoryKind::AsyncCopy => false,
            MemoryKind::BulkCopy => true,
            _ => return None,
        };
        let of_group = !copy.has("mbarrier::complete_tx::bytes");
        of_group.then_some(RequiredOrder::Wait { bulk })
    }

    /// The line of the wait that follows a copy, or else of the copy.
    pub(super) fn line_of_wait(&self, copy: usize) -> u32 {
        self.line(self.waited(copy))
    }

    pub(super) fn has_barriers(&self) -> bool {
        self.body
            .instructions()
            .any(|(_, of)| is_full_cta_barrier(of))
    }

    /// Source of a relaxed arrival at the cluster's barrier.
    pub(super) fn relaxed_arrival(&self) -> Option<Vec<Frame>> {
        let relaxed = |of: &Instruction| {
            let suffixes = ["cluster", "arrive", "relaxed"];
            of.opcode == "barrier" && suffixes.iter().all(|suffix| of.has(suffix))
        };
        let (at, _) = self.body.instructions().find(|(_, of)| relaxed(of))?;
        Some(self.source(at))
    }

    /// The branch that lets only some threads come to a statement, of those that something is to order.
    pub(super) fn divergent(&self, at: usize, order: RequiredOrder) -> Option<Vec<Frame>> {
        let branch = self.divergence(order).outermost(self.cfg.block_of(at))?;
        Some(self.source_of_end(branch))
    }

    /// The branches that let only some threads of a block come to one statement, of those that come to another.
    pub(super) fn parting(&self, one: usize, other: usize) -> impl Iterator<Item = usize> {
        let [one, other] = [one, other].map(|at| self.cfg.block_of(at));
        let branches = self.divergence(RequiredOrder::Block).between(one, other);
        branches.filter_map(|block| self.cfg.blocks[block].terminator)
    }

    /// A barrier of the block on one path between two statements, and the branch that skips it on another path, of those
    /// branches that `may_skip` names.
    pub(super) fn passed(
        &self,
        [from, to]: [usize; 2],
        may_skip: impl Fn(usize) -> bool,
    ) -> Option<Passed> {
        let free = RequiredOrder::Nothing;
        let barriers = self.body.instructions();
        let barriers = barriers.filter(|(_, of)| of.guard.is_none() && is_full_cta_barrier(of));
        barriers.take(BARRIERS).find_map(|(barrier, _)| {
            let between = self.reaches([from, barrier], &[to], free)
                && self.reaches([barrier, to], &[from], free);
            let mut branches = self.branches_around(barrier).filter(|_| between);
            let branch = branches.find(|&branch| {
                may_skip(branch)
                    && self.reaches([from, branch], &[to], free)
                    && self.reaches([branch, to], &[from], RequiredOrder::Block)
            })?;
            Some(Passed {
                barrier: self.place(barrier),
                branch: self.place(branch),
            })
        })
    }

    /// The arrival at an mbarrier behind an asynchronous copy, if no commit of a group is behind it.
    pub(super) fn completes(&self, copy: usize) -> Option<CodeLocation> {
        let Some(RequiredOrder::Wait { bulk: false }) = self.awaited(copy) else {
            return None;
        };
        let behind = |what: &[&str]| {
            let mut all = self.body.instructions().filter(|(_, of)| {
                of.opcode == "cp" && !of.has("bulk") && what.iter().all(|what| of.has(what))
            });
            let found = all.find(|&(at, _)| self.reaches([copy, at], &[], RequiredOrder::Nothing));
            found.map(|(at, _)| at)
        };
        match behind(&["commit_group"]) {
            Some(_) => None,
            None => behind(&["mbarrier", "arrive"]).map(|at| self.place(at)),
        }
    }

    /// Whether there is a path without a barrier of the block from the later of two statements to the earlier one, and
    /// none from the earlier to the later one.
    pub(super) fn only_back(&self, [earlier, later]: [usize; 2]) -> bool {
        let open = |way| self.reaches(way, &[], RequiredOrder::Block);
        open([later, earlier]) && !open([earlier, later])
    }

    /// Whether the later of two statements is an asynchronous copy, and there is a path to the earlier one that does not
    /// wait for it.
    pub(super) fn unfinished(&self, [earlier, later]: [usize; 2]) -> bool {
        let wait = self.awaited(later);
        wait.is_some_and(|wait| self.reaches([later, earlier], &[], wait))
    }

    /// Whether no acquire of device scope, or within a block of any scope, stands between the read of a flag at a line and
    /// a later statement.
    pub(super) fn unacquired(&self, line: u32, to: usize, level: Level) -> bool {
        let order = match level {
            Level::Grid => RequiredOrder::Fence,
            Level::Cta | Level::Warp => RequiredOrder::BlockFence,
        };
        let read = self.on_line(line);
        let read = read.and_then(|at| Some((at, self.instruction(at)?)));
        read.is_some_and(|(at, of)| {
            let acquires = of.has("acquire") || of.has("acq_rel");
            !acquires && self.reaches([at, to], &[], order)
        })
    }

    /// What a statement does to memory, if it is a store.
    pub(super) fn store(&self, at: usize) -> Option<MemoryOp> {
        let op = self.instruction(at).and_then(memory);
        op.filter(|op| op.kind == MemoryKind::Store)
    }

    /// The operand with the address of a statement's access.
    pub(super) fn address(&self, at: usize) -> Option<&'a Operand> {
        let instruction = self.instruction(at)?;
        instruction.operands.get(memory(instruction)?.address)
    }

    /// Whether a statement comes before another one, and never after it.
    pub(super) fn precedes(&self, one: usize, other: usize) -> bool {
        let reaches = |way| self.reaches(way, &[], RequiredOrder::Nothing);
        reaches([one, other]) && !reaches([other, one])
    }

    /// The statement at a line.
    pub(super) fn on_line(&self, line: u32) -> Option<usize> {
        let mut all = self.body.instructions();
        let found = all.find(|(_, of)| self.module.line_column(of.span.start).0 == line);
        found.map(|(at, _)| at)
    }

    /// Where a statement is.
    pub(super) fn place(&self, at: usize) -> CodeLocation {
        CodeLocation {
            frames: self.source(at),
            line: self.line(at),
        }
    }

    /// The nearest barriers that every path to and from a statement comes by.
    pub(super) fn around(&self, at: usize) -> Around {
        let home = self.cfg.block_of(at);
        let blocks = |next: fn(&Cfg, BlockId) -> Option<BlockId>| {
            std::iter::successors(next(&self.cfg, home), move |&block| next(&self.cfg, block))
                .take(self.cfg.blocks.len())
                .map(|block| self.cfg.blocks[block].start..self.cfg.blocks[block].end)
        };
        let mut before = (self.cfg.blocks[home].start..at)
            .rev()
            .chain(blocks(Cfg::immediate_dominator).flat_map(Iterator::rev));
        let mut after = (at + 1..self.cfg.blocks[home].end)
            .chain(blocks(Cfg::immediate_post_dominator).flatten());
        Around {
            before: before.find_map(|at| self.barrier(at)),
            after: after.find_map(|at| self.barrier(at)),
        }
    }

    /// The barrier that a statement is for all threads that come to it.
    fn barrier(&self, at: usize) -> Option<Barrier> {
        let instruction = self.instruction(at).filter(|of| of.guard.is_none())?;
        let of = match sync(instruction) {
            _ if is_full_cta_barrier(instruction) => "block",
            Some(SyncOp::WarpBarrier { .. }) => "warp",
            Some(SyncOp::ClusterBarrier { arrive: false, .. }) => "cluster",
            _ => return None,
        };
        Some(Barrier {
            of: of.to_owned(),
            frames: self.source(at),
            ptx_line: self.line(at),
        })
    }

    /// Behind the access `from`, outside of divergent code and of loops that do not hold the other.
    fn behind(&self, [from, to]: [usize; 2], order: RequiredOrder) -> Option<Candidate> {
        let access = match order {
            RequiredOrder::Wait { .. } => from,
            _ => self.waited(from),
        };
        let next = |block| self.cfg.immediate_post_dominator(block);
        let ends = [access, to].map(|at| self.cfg.block_of(at));
        let (block, outside) = self.moved_out(ends, order, next, next)?;
        let before = match outside {
            Some(_) => self.cfg.blocks[block].start,
            None => access + 1,
        };
        Some(self.candidate(before, true, [access, to], outside))
    }

    /// Ahead of the access `to`, outside of divergent code and of loops that do not hold the other.
    fn ahead(&self, [from, to]: [usize; 2], order: RequiredOrder) -> Option<Candidate> {
        let last = |block| self.cfg.immediate_dominator(block);
        // A branch stands in its own region when it closes a loop.
        let divergence = self.divergence(order);
        let in_front = |branch| match divergence.is_inside(branch) {
            true => last(branch),
            false => Some(branch),
        };
        let ends = [to, from].map(|at| self.cfg.block_of(at));
        let (block, outside) = self.moved_out(ends, order, in_front, last)?;
        let before = match outside {
            Some(_) => self.end(block),
            None => to,
        };
        Some(self.candidate(before, false, [to, from], outside))
    }

    /// The nearest block to `block` that is outside of divergent code and of loops that do not hold `other`, with the
    /// code that it had to leave, if any. `past` gives the block beyond a branch, `step` the next one on the way out of a
    /// loop.
    fn moved_out(
        &self,
        [mut block, other]: [BlockId; 2],
        order: RequiredOrder,
        past: impl Fn(BlockId) -> Option<BlockId>,
        step: impl Fn(BlockId) -> Option<BlockId>,
    ) -> Option<(BlockId, Option<Outside>)> {
        let divergence = self.divergence(order);
        let mut outside = None;
        // Each step leaves code that it does not enter again; the bound holds where the graph has no structure.
        for _ in 0..self.cfg.blocks.len() {
            // Each thread waits for its own copies.
            let of_thread = matches!(order, RequiredOrder::Wait { .. });
            let branch = divergence.outermost(block).filter(|_| !of_thread);
            if let Some(branch) = branch {
                outside = Some(Outside {
                    is_loop: self.is_header(branch),
                    frames: self.source_of_end(branch),
                });
                block = past(branch)?;
                continue;
            }
            let mut loops = self.loops.iter();
            let Some((header, blocks)) = loops.find(|(_, of)| of[block] && !of[other]) else {
                return Some((block, outside));
            };
            let mut next = Some(*header);
            while let Some(at) = next.filter(|&at| blocks[at]) {
                next = step(at);
            }
            outside = Some(Outside {
                is_loop: true,
                frames: self.source_of_end(*header),
            });
            block = next?;
        }
        None
    }

    /// The wait for an asynchronous copy, if one follows it; otherwise the access.
    fn waited(&self, access: usize) -> usize {
        let is = |at: usize, what: &[&str]| {
            let instruction = self.instruction(at).filter(|of| of.opcode == "cp");
            instruction.is_some_and(|of| {
                let bulk = of.has("bulk");
                !bulk && what.iter().any(|what| of.has(what))
            })
        };
        if !is(access, &["async"]) {
            return access;
        }
        let from = self.cfg.block_of(access);
        let mut waits =
            (access..self.body.statements.len()).filter(|&at| is(at, &["wait_group", "wait_all"]));
        let found = waits.find(|&at| {
            let block = self.cfg.block_of(at);
            block == from || self.cfg.dominates(from, block)
        });
        found.unwrap_or(access)
    }

    /// A place by the first of two accesses.
    fn candidate(
        &self,
        before: usize,
        after: bool,
        [access, other]: [usize; 2],
        outside: Option<Outside>,
    ) -> Candidate {
        let opcode = self.instruction(access).map_or("", |of| &of.opcode);
        let op = match opcode {
            "st" => Neighbour::Write,
            "atom" | "red" => Neighbour::Atomic,
            "cp" if self
                .instruction(access)
                .is_some_and(|of| ["wait_group", "wait_all"].iter().any(|what| of.has(what))) =>
            {
                Neighbour::Wait
            }
            "cp" => Neighbour::Copy,
            "mbarrier" => Neighbour::Initialisation,
            _ => Neighbour::Read,
        };
        Candidate {
            before: vec![before],
            point: Point {
                after,
                op,
                frames: self.source(access),
                other: self.source(other),
                ptx_line: self.line(access),
                outside,
                place: self.line(before),
            },
        }
    }

    /// The line of the first instruction from a statement on.
    pub(super) fn line(&self, at: usize) -> u32 {
        let mut behind = (at..self.body.statements.len()).filter_map(|at| self.instruction(at));
        let next = behind.next();
        next.map_or(0, |of| self.module.line_column(of.span.start).0)
    }

    fn divergence(&self, order: RequiredOrder) -> &Divergence {
        let [blocks, block, warp] = &self.divergence;
        match order {
            RequiredOrder::Nothing | RequiredOrder::Grid | RequiredOrder::Cluster => blocks,
            RequiredOrder::Block | RequiredOrder::Fence | RequiredOrder::BlockFence => block,
            RequiredOrder::Warp | RequiredOrder::Wait { .. } => warp,
        }
    }

    /// The last place in a block before it is left.
    fn end(&self, block: BlockId) -> usize {
        let block = &self.cfg.blocks[block];
        block.terminator.unwrap_or(block.end.saturating_sub(1))
    }

    fn is_header(&self, block: BlockId) -> bool {
        self.loops.iter().any(|(header, blocks)| {
            // A loop that is tested at its end is left from there.
            *header == block || blocks[block] && self.cfg.blocks[block].successors.contains(header)
        })
    }

    /// The source of the instruction that ends a block, innermost inlined function first.
    fn source_of_end(&self, block: BlockId) -> Vec<Frame> {
        self.source(self.end(block))
    }

    /// The source of an instruction, innermost inlined function first.
    pub(super) fn source(&self, at: usize) -> Vec<Frame> {
        let Some(loc) = self.instruction(at).and_then(|of| of.loc) else {
            return Vec::new();
        };
        let frames = self.module.inline_frames(self.body, loc);
        frames.iter().map(crate::names::frame).collect()
    }

    /// Branches that decide whether a statement is executed.
    pub(super) fn branches_around(&self, at: usize) -> impl Iterator<Item = usize> {
        let home = self.cfg.block_of(at);
        let mut block = self.cfg.immediate_dominator(home);
        let blocks = std::iter::from_fn(move || {
            let this = block?;
            block = self.cfg.immediate_dominator(this);
            Some(this)
        });
        let parting = blocks.filter(move |&block| !self.cfg.post_dominates(home, block));
        parting.filter_map(|block| self.cfg.blocks[block].terminator)
    }

    pub(super) fn instruction(&self, at: usize) -> Option<&'a Instruction> {
        match self.body.statements.get(at) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }

    /// Whether a path leads from behind one statement to another without what orders them, also with one more of that
    /// in front of each of `extra`.
    pub(super) fn reaches(
        &self,
        [from, to]: [usize; 2],
        extra: &[usize],
        order: RequiredOrder,
    ) -> bool {
        self.cfg
            .reaches(from, to, |at| extra.contains(&at) || self.orders(at, order))
    }

    fn orders(&self, at: usize, order: RequiredOrder) -> bool {
        match order {
            RequiredOrder::Nothing => false,
            RequiredOrder::Grid => self.grid_barriers.has_end(at),
            _ => self.instruction(at).is_some_and(|of| orders(of, order)),
        }
    }
}

/// Whether an instruction by itself orders what is before it with what is behind it.
fn orders(instruction: &Instruction, order: RequiredOrder) -> bool {
    match order {
        RequiredOrder::Nothing | RequiredOrder::Grid => false,
        RequiredOrder::Fence => match instruction.opcode.as_str() {
            // One that only some execute is none.
            _ if instruction.guard.is_some() => false,
            "fence" => !instruction.has("cta") && !instruction.has("proxy"),
            "membar" => !instruction.has("cta"),
            _ => false,
        },
        RequiredOrder::BlockFence => {
            let fences = matches!(instruction.opcode.as_str(), "fence" | "membar")
                && !instruction.has("proxy");
            instruction.guard.is_none() && (fences || is_full_cta_barrier(instruction))
        }
        RequiredOrder::Cluster => {
            let waits = instruction.has("cluster") && instruction.has("wait");
            instruction.opcode == "barrier" && waits && instruction.guard.is_none()
        }
        RequiredOrder::Block => is_full_cta_barrier(instruction),
        RequiredOrder::Wait { bulk } => {
            let all = instruction.has("wait_all")
                || instruction.has("wait_group")
                    && instruction.operands.first() == Some(&Operand::Int(0));
            let of_kind = instruction.opcode == "cp" && instruction.has("bulk") == bulk;
            all && of_kind && instruction.guard.is_none()
        }
        RequiredOrder::Warp => {
            is_full_cta_barrier(instruction)
                || matches!(sync(instruction), Some(SyncOp::WarpBarrier { .. }))
        }
    }
}

/// Natural loops, by header, the inner ones of one header joined.
fn loops(cfg: &Cfg) -> Vec<(BlockId, Vec<bool>)> {
    let mut found: HashMap<BlockId, Vec<bool>> = HashMap::new();
    for (end, block) in cfg.blocks.iter().enumerate() {
        for &header in &block.successors {
            if !cfg.dominates(header, end) {
                continue;
            }
            let inside = found
                .entry(header)
                .or_insert_with(|| vec![false; cfg.blocks.len()]);
            inside[header] = true;
            let mut work = vec![end];
            while let Some(at) = work.pop() {
                if !std::mem::replace(&mut inside[at], true) {
                    work.extend(&cfg.blocks[at].predecessors);
                }
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(header, _)| *header);
    found
}
