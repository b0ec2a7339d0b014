//! Barrier intervals: from which barriers two accesses can be reached without another one in between.
//!
//! Where the control of all barriers is uniform in a block, all its threads execute the same sequence of them. Two
//! accesses can then be in one interval only if one barrier (or the start of the kernel) reaches both without
//! another. The threads agree on the counters of the loops around that barrier; the path from it to an access says
//! how often each of these has been advanced since.

use std::collections::BTreeMap;

use ptx::cfg::{BlockId, Cfg};

use crate::loops::Loops;
use crate::problem::{Distance, LoopId, Meeting};

/// A loop whose counter a path has advanced an unknown number of times.
const LOST: u8 = 2;

/// A place where an interval starts, and what it reaches: by place of an access, the advances of the loops around the
/// start.
type Reached = Vec<Vec<Advances>>;

/// By loop around the start, outermost first: 0 or 1 iterations, or [`LOST`].
type Advances = Vec<u8>;

/// Where an interval starts.
#[derive(Clone, Copy)]
struct Start {
    block: BlockId,
    segment: usize,
}

/// The intervals of a body.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    /// By start: the loops around it, outermost first, and by segment what is reached.
    starts: Vec<(Vec<LoopId>, Reached)>,
    /// By block: its barriers in text order.
    barriers: Vec<Vec<usize>>,
    /// By block: its first segment. A barrier ends a segment.
    first: Vec<usize>,
}

impl Phases {
    pub(crate) fn new(cfg: &Cfg, loops: &Loops, barriers: &[usize]) -> Self {
        let mut of = vec![Vec::new(); cfg.blocks.len()];
        for &barrier in barriers {
            of[cfg.block_of(barrier)].push(barrier);
        }
        let mut first = Vec::with_capacity(cfg.blocks.len());
        let mut segments = 0;
        for barriers in &of {
            first.push(segments);
            segments += barriers.len() + 1;
        }
        let mut phases = Self {
            starts: Vec::new(),
            barriers: of,
            first,
        };
        let mut starts = vec![Start {
            block: 0,
            segment: phases.first[0],
        }];
        for block in 0..cfg.blocks.len() {
            for n in 0..phases.barriers[block].len() {
                if cfg.is_reachable(block) {
                    let segment = phases.first[block] + n + 1;
                    starts.push(Start { block, segment });
                }
            }
        }
        for start in starts {
            let mut around: Vec<LoopId> = loops.around(loops.of[start.block]).collect();
            around.reverse();
            let reached = phases.walk(cfg, loops, start, &around, segments);
            phases.starts.push((around, reached));
        }
        phases
    }

    /// The segment of a statement.
    pub(crate) fn segment(&self, cfg: &Cfg, statement: usize) -> usize {
        let block = cfg.block_of(statement);
        let before = self.barriers[block].partition_point(|&barrier| barrier < statement);
        self.first[block] + before
    }

    /// Everything that can be reached without a barrier.
    fn walk(
        &self,
        cfg: &Cfg,
        loops: &Loops,
        start: Start,
        around: &[LoopId],
        segments: usize,
    ) -> Reached {
        let mut reached: Reached = vec![Vec::new(); segments];
        reached[start.segment].push(vec![0; around.len()]);
        let mut work = vec![(start.block, start.segment, vec![0; around.len()])];
        while let Some((block, segment, advances)) = work.pop() {
            // A barrier ends the path.
            if segment != self.first[block] + self.barriers[block].len() {
                continue;
            }
            for &to in &cfg.blocks[block].successors {
                let mut next = advances.clone();
                for (position, &of) in around.iter().enumerate() {
                    let of = &loops.loops[of as usize];
                    if !of.contains[to] {
                        next[position] = LOST;
                    } else if to == of.header && of.contains[block] && next[position] != LOST {
                        next[position] += 1;
                    }
                }
                let segment = self.first[to];
                if !reached[segment].contains(&next) {
                    reached[segment].push(next.clone());
                    work.push((to, segment, next));
                }
            }
        }
        reached
    }

    /// How accesses of two segments can be in one interval, the second counted from the first.
    pub(crate) fn meetings(&self, first: usize, second: usize) -> Vec<Meeting> {
        let mut all: BTreeMap<Meeting, ()> = BTreeMap::new();
        for (around, reached) in &self.starts {
            for a in &reached[first] {
                for b in &reached[second] {
                    let counters = around.iter().zip(a.iter().zip(b));
                    let known = counters.filter(|(_, (a, b))| **a != LOST && **b != LOST);
                    let meeting: Meeting = known
                        .map(|(&around, (a, b))| Distance {
                            around,
                            iterations: i64::from(*b) - i64::from(*a),
                        })
                        .collect();
                    all.insert(meeting, ());
                }
            }
        }
        all.into_keys().collect()
    }
}
