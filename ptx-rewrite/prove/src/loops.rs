//! The natural loops of a body.

use ptx::cfg::{BlockId, Cfg};

use crate::problem::LoopId;

/// A natural loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) header: BlockId,
    /// The loop around it.
    pub(crate) parent: Option<LoopId>,
    /// By block: whether it belongs to the loop.
    pub(crate) contains: Vec<bool>,
    /// Blocks from which control goes back to the header.
    pub(crate) latches: Vec<BlockId>,
    /// Edges that leave the loop, and blocks of it in which the function may end.
    pub(crate) exits: Vec<(BlockId, Option<BlockId>)>,
}

/// The loops of a body, outer ones before those inside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loops {
    pub(crate) loops: Vec<Loop>,
    /// By block: the innermost loop around it.
    pub(crate) of: Vec<Option<LoopId>>,
}

impl Loops {
    /// None if control enters a loop other than through one header.
    pub(crate) fn new(cfg: &Cfg) -> Option<Self> {
        let order = cfg.reverse_post_order();
        let mut number = vec![usize::MAX; cfg.blocks.len()];
        for (position, &block) in order.iter().enumerate() {
            number[block] = position;
        }
        let mut loops: Vec<Loop> = Vec::new();
        for &from in &order {
            for &to in &cfg.blocks[from].successors {
                if number[to] > number[from] {
                    continue;
                }
                if !cfg.dominates(to, from) {
                    return None;
                }
                let known = loops.iter().position(|known| known.header == to);
                let index = known.unwrap_or(loops.len());
                if known.is_none() {
                    let mut contains = vec![false; cfg.blocks.len()];
                    contains[to] = true;
                    loops.push(Loop {
                        header: to,
                        parent: None,
                        contains,
                        latches: Vec::new(),
                        exits: Vec::new(),
                    });
                }
                let of = &mut loops[index];
                of.latches.push(from);
                let mut work = vec![from];
                while let Some(block) = work.pop() {
                    if !std::mem::replace(&mut of.contains[block], true) {
                        let from = cfg.blocks[block].predecessors.iter();
                        work.extend(from.filter(|&&from| cfg.is_reachable(from)));
                    }
                }
            }
        }
        let size = |of: &Loop| of.contains.iter().filter(|&&inside| inside).count();
        loops.sort_by_key(|of| (std::cmp::Reverse(size(of)), number[of.header]));
        let mut of = vec![None; cfg.blocks.len()];
        for index in 0..loops.len() {
            let header = loops[index].header;
            loops[index].parent = (0..index)
                .rev()
                .find(|&outer| loops[outer].contains[header])
                .map(|outer| outer as LoopId);
            let mut exits = Vec::new();
            for (block, inside) in loops[index].contains.iter().enumerate() {
                if !inside {
                    continue;
                }
                of[block] = Some(index as LoopId);
                let to = cfg.blocks[block].successors.iter();
                exits.extend(
                    to.filter(|&&to| !loops[index].contains[to])
                        .map(|&to| (block, Some(to))),
                );
                if cfg.blocks[block].exits {
                    exits.push((block, None));
                }
            }
            loops[index].exits = exits;
        }
        Some(Self { loops, of })
    }

    /// Whether a loop is another one or inside it. Outside of all loops is inside of none.
    pub(crate) fn is_inside(&self, inner: Option<LoopId>, outer: LoopId) -> bool {
        self.around(inner).any(|around| around == outer)
    }

    /// A loop and those around it, innermost first.
    pub(crate) fn around(&self, inner: Option<LoopId>) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(inner, |&of| self.loops[of as usize].parent)
    }
}
