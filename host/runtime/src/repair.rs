//! What the text of a module says of two accesses that raced: where a barrier would order them if they are of one block,
//! whether both belong to updates that commute, and whether both store the same constant.
//!
//! The answer comes from the control flow of the function that holds both accesses.
//! A barrier must stand on every path from the one access to the other that passes none, and outside of
//! code that only some threads of the block execute.

mod divergence;
mod stored;
mod update;

use std::collections::HashMap;

use ptx::ast::{Body, Function, Instruction, Module, Statement};
use ptx::cfg::{BlockId, Cfg};
use ptx::isa::sync::is_full_cta_barrier;

use self::divergence::Divergence;
use crate::log::{self, Frame, Outside, Point, Repair};

/// Larger functions are not looked at.
const STATEMENTS: usize = 20_000;

/// The functions of a module that had races.
#[derive(Debug)]
pub(crate) struct Repairs {
    module: Module,
    /// By the lines of the earlier and the later access.
    known: HashMap<[u32; 2], Known>,
}

/// What the text says of two accesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// What orders them; none when they stand in different functions.
    pub(crate) repair: Option<Repair>,
    /// They are stores of the same constant.
    pub(crate) same_value: bool,
}

impl Known {
    /// Adds it to a race of the two.
    pub(crate) fn put_in(self, race: &mut log::Race) {
        race.repair = self.repair;
        race.same_value |= self.same_value && race.why == log::Why::Unordered;
    }
}

impl Repairs {
    /// Of a module's own text, without checks.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            module: ptx::parse(text).0,
            known: HashMap::new(),
        }
    }

    /// What there is to know of the accesses on two lines, the earlier one's first.
    pub(crate) fn of(&mut self, lines: [u32; 2]) -> Known {
        let module = &self.module;
        let known = self.known.entry(lines).or_insert_with(|| Known {
            repair: repair(module, lines),
            same_value: stored::same(module, lines),
        });
        known.clone()
    }
}

fn repair(module: &Module, lines: [u32; 2]) -> Option<Repair> {
    let (function, body, sites) = module.functions().find_map(|function| {
        let body = function.body.as_ref()?;
        let at = |line| {
            let mut all = body.instructions();
            let found = all.find(|(_, of)| module.line_column(of.span.start).0 == line)?;
            Some(found.0)
        };
        Some((function, body, [at(lines[0])?, at(lines[1])?]))
    })?;
    if body.statements.len() > STATEMENTS {
        return None;
    }
    Flow::new(module, function, body).map(|flow| flow.repair(sites))
}

/// A function as this module looks at it.
struct Flow<'a> {
    module: &'a Module,
    body: &'a Body,
    cfg: Cfg,
    divergence: Divergence,
    /// Headers of loops with their blocks.
    loops: Vec<(BlockId, Vec<bool>)>,
}

/// A place for a barrier: before a statement; and the code it had to be moved out of.
struct Candidate {
    before: usize,
    point: Point,
}

impl<'a> Flow<'a> {
    fn new(module: &'a Module, function: &'a Function, body: &'a Body) -> Option<Self> {
        let cfg = Cfg::of(module, function)?;
        let divergence = Divergence::new(module, body, &cfg);
        let loops = loops(&cfg);
        Some(Self {
            module,
            body,
            cfg,
            divergence,
            loops,
        })
    }

    fn repair(&self, sites: [usize; 2]) -> Repair {
        let mut all = self.body.instructions();
        let barriers = all.any(|(_, of)| is_full_cta_barrier(of));
        let ways = match sites[0] == sites[1] {
            true => vec![[0, 1]],
            false => vec![[0, 1], [1, 0]],
        };
        let open: Vec<[usize; 2]> = ways
            .into_iter()
            .filter(|&[from, to]| self.reaches(sites[from], sites[to], None))
            .collect();
        let mut points: Vec<Point> = Vec::new();
        let mut cut: Vec<usize> = Vec::new();
        for &[from, to] in &open {
            let done = |at: &&usize| !self.reaches(sites[from], sites[to], Some(**at));
            if cut.iter().any(|at| done(&at)) {
                continue;
            }
            let candidates = [
                self.behind(sites, [from, to]),
                self.ahead(sites, [from, to]),
            ];
            let cuts = |candidate: &Candidate| {
                let closed =
                    |[a, b]: [usize; 2]| !self.reaches(sites[a], sites[b], Some(candidate.before));
                let closes = open.iter().filter(|&&way| closed(way)).count();
                closed([from, to]).then_some(closes)
            };
            let mut best: Option<(usize, Candidate)> = None;
            for candidate in candidates.into_iter().flatten() {
                if let Some(closes) = cuts(&candidate)
                    && best.as_ref().is_none_or(|(most, _)| closes > *most)
                {
                    best = Some((closes, candidate));
                }
            }
            if let Some((_, candidate)) = best {
                cut.push(candidate.before);
                points.push(candidate.point);
            }
        }
        Repair {
            update: update::common(self.body, sites),
            points,
            barriers,
            connected: !open.is_empty(),
            conditional: self
                .divergent(sites[0])
                .or_else(|| self.divergent(sites[1])),
            relaxed_arrival: self.relaxed_arrival(),
        }
    }

    fn relaxed_arrival(&self) -> Option<Vec<Frame>> {
        let relaxed = |of: &Instruction| {
            let suffixes = ["cluster", "arrive", "relaxed"];
            of.opcode == "barrier" && suffixes.iter().all(|suffix| of.has(suffix))
        };
        let (at, _) = self.body.instructions().find(|(_, of)| relaxed(of))?;
        Some(self.source(at))
    }

    /// The branch that lets only some threads come to a statement.
    fn divergent(&self, at: usize) -> Option<Vec<Frame>> {
        let branch = self.divergence.outermost(self.cfg.block_of(at))?;
        Some(self.source_of_end(branch))
    }

    /// Behind the access `from`, outside of divergent code and of loops that do not hold the other.
    fn behind(&self, sites: [usize; 2], [from, to]: [usize; 2]) -> Option<Candidate> {
        let mut before = sites[from] + 1;
        let mut block = self.cfg.block_of(sites[from]);
        let mut outside = None;
        let target = self.cfg.block_of(sites[to]);
        let mut steps = 0;
        loop {
            steps += 1;
            if steps > self.cfg.blocks.len() {
                return None;
            }
            if let Some(branch) = self.divergence.outermost(block) {
                let next = self.cfg.immediate_post_dominator(branch)?;
                outside = Some(Outside {
                    is_loop: self.is_header(branch),
                    frames: self.source_of_end(branch),
                });
                (block, before) = (next, self.cfg.blocks[next].start);
                continue;
            }
            let around = self
                .loops
                .iter()
                .find(|(_, blocks)| blocks[block] && !blocks[target]);
            let Some((header, blocks)) = around else {
                break;
            };
            let mut next = Some(*header);
            while let Some(at) = next.filter(|&at| blocks[at]) {
                next = self.cfg.immediate_post_dominator(at);
            }
            outside = Some(Outside {
                is_loop: true,
                frames: self.source_of_end(*header),
            });
            (block, before) = (next?, self.cfg.blocks[next?].start);
        }
        Some(Candidate {
            before,
            point: Point {
                after: true,
                later: from == 1,
                outside,
            },
        })
    }

    /// Ahead of the access `to`, outside of divergent code and of loops that do not hold the other.
    fn ahead(&self, sites: [usize; 2], [from, to]: [usize; 2]) -> Option<Candidate> {
        let mut before = sites[to];
        let mut block = self.cfg.block_of(sites[to]);
        let mut outside = None;
        let source = self.cfg.block_of(sites[from]);
        let mut steps = 0;
        loop {
            steps += 1;
            if steps > self.cfg.blocks.len() {
                return None;
            }
            if let Some(branch) = self.divergence.outermost(block) {
                outside = Some(Outside {
                    is_loop: self.is_header(branch),
                    frames: self.source_of_end(branch),
                });
                // A branch stands in its own region when it closes a loop.
                block = match self.divergence.is_inside(branch) {
                    true => self.cfg.immediate_dominator(branch)?,
                    false => branch,
                };
                before = self.end(block);
                continue;
            }
            let around = self
                .loops
                .iter()
                .find(|(_, blocks)| blocks[block] && !blocks[source]);
            let Some((header, blocks)) = around else {
                break;
            };
            let mut next = Some(*header);
            while let Some(at) = next.filter(|&at| blocks[at]) {
                next = self.cfg.immediate_dominator(at);
            }
            outside = Some(Outside {
                is_loop: true,
                frames: self.source_of_end(*header),
            });
            block = next?;
            before = self.end(block);
        }
        Some(Candidate {
            before,
            point: Point {
                after: false,
                later: to == 1,
                outside,
            },
        })
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
    fn source(&self, at: usize) -> Vec<Frame> {
        let Some(loc) = self.instruction(at).and_then(|of| of.loc) else {
            return Vec::new();
        };
        let frames = self.module.inline_frames(self.body, loc);
        frames.iter().map(crate::names::frame).collect()
    }

    fn instruction(&self, at: usize) -> Option<&'a Instruction> {
        match self.body.statements.get(at) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }

    /// Whether a path leads from behind one statement to another without a barrier of the block, also
    /// with one more in front of `extra`.
    fn reaches(&self, from: usize, to: usize, extra: Option<usize>) -> bool {
        let mut entered = vec![false; self.cfg.blocks.len()];
        let mut work = vec![(self.cfg.block_of(from), from + 1)];
        while let Some((block, start)) = work.pop() {
            let end = self.cfg.blocks[block].end;
            let stops = |at: usize| {
                extra == Some(at) || self.instruction(at).is_some_and(is_full_cta_barrier)
            };
            let mut open = true;
            for at in start..end {
                if stops(at) {
                    open = false;
                    break;
                }
                if at == to {
                    return true;
                }
            }
            // Behind the last statement of a block stands what begins the next one.
            if !open {
                continue;
            }
            for &next in &self.cfg.blocks[block].successors {
                if !entered[next] {
                    entered[next] = true;
                    work.push((next, self.cfg.blocks[next].start));
                }
            }
        }
        false
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
