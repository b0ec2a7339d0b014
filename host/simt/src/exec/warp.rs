//! A warp: registers of its lanes, and the groups its lanes have split into.
//!
//! Lanes that are together form a *split*: one program counter, one call stack. A branch that the
//! lanes do not agree on makes two splits; splits that meet at the same place with the same call
//! stack become one again. Every split makes progress (independent thread scheduling), see
//! [`super::step`].
//!
//! Registers are columns of the lanes, so the frames of different splits may overlap in rows.

use super::spin::Spins;
use super::taint::Registers;
use crate::code::Func;
use crate::lanes::{Lanes, Rows, WARP};

/// Most rows of registers a warp may have; deeper recursion is a stack overflow.
const MAX_ROWS: usize = 1 << 18;

/// A warp of a resident CTA.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warp {
    pub(crate) regs: Vec<Lanes>,
    pub(crate) preds: Vec<u32>,
    /// Local memory, word by word of all lanes: word w of lane l stands at `32 * w + l`.
    pub(crate) local: Vec<u32>,
    pub(crate) splits: Vec<Split>,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    /// Number in the CTA.
    pub(crate) index: u32,
    /// `%tid` of every lane, in x, y and z.
    pub(crate) tid: Box<[Lanes; 3]>,
    /// The number and the CTA's shape that `tid` is right for.
    placed: Option<(u32, [u32; 3])>,
    /// True when nothing in it could run when it was last looked at.
    pub(crate) blocked: bool,
    /// Ops its splits have run, more for those that repeat in spin loops.
    pub(crate) clock: u64,
    /// What its strong loads and atomics have seen.
    pub(crate) spins: Spins,
    /// Phase of the cluster's barrier in which each lane arrived last.
    pub(crate) cluster_phase: Box<[u64; WARP]>,
    /// Lanes that have arrived there and not waited since.
    pub(crate) cluster_arrived: u32,
    /// What registers depend on, where somebody asks.
    pub(crate) taint: Registers,
}

/// Lanes that are at the same place.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    pub(crate) frame: Frame,
    /// Frames of the callers, outermost first, with the place to return to.
    pub(crate) callers: Vec<(Frame, u32)>,
    pub(crate) state: State,
    /// The warp's clock when it last ran, or became ready.
    pub(crate) turn: u64,
    /// Turns of the warp that it sleeps on, the current one included.
    pub(crate) asleep: u32,
    /// Where its last jump went.
    pub(crate) came: u32,
}

/// Where the registers and the local memory of a function's execution start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) rows: u32,
    pub(crate) preds: u32,
    /// Offset in local memory.
    pub(crate) local: u32,
    /// Bytes that `alloca` has put behind the function's own.
    pub(crate) stack: u32,
}

/// What a split waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// Other lanes of the warp, to execute the op at `pc` with them.
    Warp,
    /// Completion of a CTA barrier: number, and the generation it arrived in.
    Cta {
        id: u8,
        generation: u64,
    },
    /// Completion of the cluster's barrier.
    Cluster {
        phase: u64,
    },
}

impl Split {
    /// True when it can run.
    pub(crate) fn is_ready(&self) -> bool {
        self.state == State::Ready && self.asleep == 0
    }

    /// True when both are at the same place and wait for the same.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.pc == other.pc
            && self.state == other.state
            && self.frame == other.frame
            && self.callers == other.callers
    }
}

impl Warp {
    /// Makes it the warp of new threads at the start of `kernel`.
    pub(crate) fn start(&mut self, index: u32, live: u32, block: [u32; 3], kernel: &Func) {
        self.index = index;
        self.live = live;
        self.blocked = false;
        self.clock = 0;
        self.spins = Spins::default();
        self.cluster_phase.fill(0);
        self.cluster_arrived = 0;
        self.taint.clear();
        self.regs.resize(kernel.rows as usize, [0; WARP]);
        self.preds.clear();
        self.preds.resize(kernel.preds as usize, 0);
        self.preds[0] = u32::MAX;
        // New threads find zeroes: a simulator should not depend on who ran before.
        self.local.clear();
        self.local.resize(kernel.local as usize / 4 * WARP, 0);
        self.place(block);
        self.splits.clear();
        self.splits.push(Split {
            mask: live,
            pc: kernel.entry,
            frame: Frame::default(),
            callers: Vec::new(),
            state: State::Ready,
            turn: 0,
            asleep: 0,
            came: kernel.entry,
        });
    }

    /// Fills in `%tid`.
    fn place(&mut self, block: [u32; 3]) {
        let index = self.index;
        if self.placed == Some((index, block)) {
            return;
        }
        self.placed = Some((index, block));
        let [x, y, _] = block.map(u64::from);
        for lane in 0..WARP {
            let linear = u64::from(index) * WARP as u64 + lane as u64;
            self.tid[0][lane] = linear % x;
            self.tid[1][lane] = linear / x % y;
            self.tid[2][lane] = linear / (x * y);
        }
    }

    /// The registers of a frame.
    #[inline(always)]
    pub(crate) fn rows<'a>(&'a mut self, frame: &Frame, consts: &'a [Lanes]) -> Rows<'a> {
        Rows {
            regs: &mut self.regs[frame.rows as usize..],
            preds: &mut self.preds[frame.preds as usize..],
            consts,
        }
    }

    /// A source row of a frame.
    #[inline(always)]
    pub(crate) fn source<'a>(&'a self, frame: &Frame, row: u32, consts: &'a [Lanes]) -> &'a Lanes {
        if row & crate::lanes::CONSTANT == 0 {
            &self.regs[(frame.rows + row) as usize]
        } else {
            &consts[(row & !crate::lanes::CONSTANT) as usize]
        }
    }

    /// A copy of a source row of a frame.
    #[inline(always)]
    pub(crate) fn read(&self, frame: &Frame, row: u32, consts: &[Lanes]) -> Lanes {
        *self.source(frame, row, consts)
    }

    /// A source predicate of a frame.
    #[inline(always)]
    pub(crate) fn pred(&self, frame: &Frame, source: u32) -> u32 {
        let flip = if source & 1 == 1 { u32::MAX } else { 0 };
        self.preds[(frame.preds + (source >> 1)) as usize] ^ flip
    }

    /// The frame of a function called from `frame` of function `caller`; none when the stack is
    /// full.
    pub(crate) fn enter(
        &mut self,
        frame: &Frame,
        caller: &Func,
        function: u32,
        callee: &Func,
        mask: u32,
        limit: u32,
    ) -> Option<Frame> {
        let new = Frame {
            function,
            rows: frame.rows + caller.rows,
            preds: frame.preds + caller.preds,
            local: frame.local + caller.local + frame.stack,
            stack: 0,
        };
        let local = new
            .local
            .checked_add(callee.local)
            .filter(|&local| local <= limit)?;
        let rows = (new.rows + callee.rows) as usize;
        if rows > MAX_ROWS {
            return None;
        }
        if self.regs.len() < rows {
            self.regs.resize(rows, [0; WARP]);
        }
        let preds = (new.preds + callee.preds) as usize;
        if self.preds.len() < preds {
            self.preds.resize(preds, 0);
        }
        // The predicate that always holds; other lanes may use this row for something else.
        self.preds[new.preds as usize] |= mask;
        let words = local as usize / 4 * WARP;
        if self.local.len() < words {
            self.local.resize(words, 0);
        }
        Some(new)
    }

    /// A copy of which one split is left.
    pub(crate) fn with_only(&self, split: Split) -> Self {
        let mut copy = self.clone();
        copy.splits.clear();
        copy.splits.push(split);
        copy
    }

    /// Joins splits that have met.
    pub(crate) fn join(&mut self) {
        let mut index = 0;
        while index < self.splits.len() {
            let mut other = index + 1;
            while other < self.splits.len() {
                if self.splits[index].meets(&self.splits[other]) {
                    let gone = self.splits.swap_remove(other);
                    let split = &mut self.splits[index];
                    split.mask |= gone.mask;
                    split.asleep = split.asleep.min(gone.asleep);
                    split.came = split.came.max(gone.came);
                } else {
                    other += 1;
                }
            }
            index += 1;
        }
    }
}
