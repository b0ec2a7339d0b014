//! Which registers of a split may hold anything.
//!
//! A value that depends on the clock, on memory that the host may write, or on how often a loop has run is not
//! known; neither is what is computed from it. What is kept per lane is computed per lane, so one bit per lane and
//! register is enough.

use crate::code::{Kind, Op};
use crate::decode::{CARRY, SINK, SINK_PRED, TRUE, visit_rows};
use crate::exec::warp::Frame;
use crate::lanes::{Args, CONSTANT, Shape};

/// The lanes of which each register is not known, by row and by predicate of the warp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unknown {
    rows: Vec<u32>,
    preds: Vec<u32>,
    /// Whether there ever was one.
    any: bool,
}

impl Unknown {
    /// Whether all registers are known.
    pub(super) fn is_empty(&self) -> bool {
        !self.any || self.rows.iter().chain(&self.preds).all(|&lanes| lanes == 0)
    }

    /// The lanes of which a source row of a frame is not known.
    pub(super) fn row(&self, frame: &Frame, row: u32) -> u32 {
        match row & CONSTANT {
            0 => self.row_at((frame.rows + row) as usize),
            _ => 0,
        }
    }

    /// The same of a predicate source.
    pub(super) fn pred(&self, frame: &Frame, source: u32) -> u32 {
        self.pred_at((frame.preds + (source >> 1)) as usize)
    }

    /// Says of the lanes in `mask` which of them a row of a frame is not known of.
    fn set_row(&mut self, frame: &Frame, row: u32, mask: u32, lanes: u32) {
        if row != SINK {
            self.any |= lanes != 0;
            set(&mut self.rows, frame.rows + row, mask, lanes);
        }
    }

    fn set_pred(&mut self, frame: &Frame, pred: u32, mask: u32, lanes: u32) {
        if pred != TRUE && pred != SINK_PRED {
            self.any |= lanes != 0;
            set(&mut self.preds, frame.preds + pred, mask, lanes);
        }
    }

    /// A predicate source has become known for some lanes.
    pub(super) fn settle(&mut self, frame: &Frame, source: u32, lanes: u32) {
        self.set_pred(frame, source >> 1, lanes, 0);
    }

    /// A row that a loop leaves different each time is not known in these lanes.
    pub(super) fn forget_row(&mut self, row: usize, lanes: u32) {
        self.any = true;
        set(&mut self.rows, row as u32, lanes, lanes);
    }

    /// The same of a predicate.
    pub(super) fn forget_pred(&mut self, pred: usize, lanes: u32) {
        self.any = true;
        set(&mut self.preds, pred as u32, lanes, lanes);
    }

    /// Adds what another one does not know.
    pub(super) fn join(&mut self, other: &Self) {
        self.any |= other.any;
        for (mine, theirs) in [
            (&mut self.rows, &other.rows),
            (&mut self.preds, &other.preds),
        ] {
            mine.resize(mine.len().max(theirs.len()), 0);
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine |= theirs;
            }
        }
    }

    /// The lanes of which a row of the warp is not known.
    pub(super) fn row_at(&self, row: usize) -> u32 {
        self.rows.get(row).copied().unwrap_or(0)
    }

    /// The same of a predicate of the warp.
    pub(super) fn pred_at(&self, pred: usize) -> u32 {
        self.preds.get(pred).copied().unwrap_or(0)
    }

    /// Whether an op of the lanes `exec` reads nothing but what is known, as far as it has to be.
    pub(super) fn suffices(&self, frame: &Frame, op: &Op, exec: u32) -> bool {
        if !self.any {
            return true;
        }
        match &op.kind {
            Kind::Alu(..)
            | Kind::Branch(_)
            | Kind::Fence
            | Kind::Copies
            | Kind::Dependency
            | Kind::Nop
            | Kind::Sleep(_) => true,
            Kind::Special(..)
            | Kind::FrameAddress { .. }
            | Kind::Param { .. }
            | Kind::Load(_)
            | Kind::Store(_)
            | Kind::Atomic(_)
            | Kind::Mbarrier(_)
            | Kind::Map(_)
            | Kind::Rank(_) => {
                let mut known = true;
                visit_rows(&mut op.kind.clone(), &mut |row, write| {
                    known &= write || self.row(frame, *row) & exec == 0;
                });
                known
            }
            _ => self.is_empty(),
        }
    }

    /// What is known when an op has been executed by `exec`, whose result is not known itself in the lanes `result`.
    pub(super) fn pass(&mut self, frame: &Frame, op: &Op, exec: u32, result: u32) {
        if !self.any && result == 0 {
            return;
        }
        match &op.kind {
            Kind::Alu(_, args) => self.compute(frame, args, exec),
            Kind::Mbarrier(mbarrier) => {
                if let Some(d) = mbarrier.d {
                    self.set_pred(frame, d, exec, 0);
                }
            }
            _ => visit_rows(&mut op.kind.clone(), &mut |row, write| {
                if write {
                    self.set_row(frame, *row, exec, result & exec);
                }
            }),
        }
    }

    fn compute(&mut self, frame: &Frame, args: &Args, exec: u32) {
        let rows = |rows: &[u32]| rows.iter().fold(0, |all, &row| all | self.row(frame, row));
        let pred = |source| self.pred(frame, source);
        let from = match args.shape {
            Shape::Rows => rows(&[args.a, args.b, args.c]),
            Shape::Carry => rows(&[args.a, args.b, args.c]) | pred(2 * CARRY),
            Shape::Test | Shape::Choose => rows(&[args.a, args.b]) | pred(args.c),
            Shape::Preds => pred(args.a) | pred(args.b),
        };
        let lanes = from & exec;
        match args.shape {
            Shape::Rows | Shape::Choose => self.set_row(frame, args.d, exec, lanes),
            Shape::Carry => {
                self.set_row(frame, args.d, exec, lanes);
                self.set_pred(frame, CARRY, exec, lanes);
            }
            Shape::Preds => self.set_pred(frame, args.d, exec, lanes),
            Shape::Test => {
                self.set_pred(frame, args.d, exec, lanes);
                self.set_pred(frame, args.e, exec, lanes);
            }
        }
    }
}

fn set(all: &mut Vec<u32>, number: u32, mask: u32, lanes: u32) {
    let number = number as usize;
    if lanes == 0 && number >= all.len() {
        return;
    }
    all.resize(all.len().max(number + 1), 0);
    all[number] = all[number] & !mask | lanes & mask;
}
