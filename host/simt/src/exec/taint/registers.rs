//! What the registers of a warp depend on.

use std::collections::HashMap;

use crate::decode::{CARRY, SINK, SINK_PRED, TRUE};
use crate::exec::warp::Frame;
use crate::lanes::{Args, CONSTANT, Shape};

/// What a register depends on, by lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taint {
    /// Lanes whose value depends on memory that the launch has not written.
    pub(crate) input: u32,
    /// Lanes whose value depends on the order in which threads have run.
    pub(crate) schedule: u32,
    /// Byte offset of an instruction that has brought such a value.
    pub(crate) from: u32,
}

impl Taint {
    /// Lanes whose value depends on something.
    pub(crate) fn any(self) -> u32 {
        self.input | self.schedule
    }

    /// What depends on both.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            input: self.input | other.input,
            schedule: self.schedule | other.schedule,
            from: if self.any() != 0 {
                self.from
            } else {
                other.from
            },
        }
    }

    /// That of some lanes.
    pub(crate) fn of(self, lanes: u32) -> Self {
        Self {
            input: self.input & lanes,
            schedule: self.schedule & lanes,
            ..self
        }
    }

    /// In all of these lanes what it is in any.
    pub(crate) fn spread(self, lanes: u32) -> Self {
        let all = |any: u32| if any == 0 { 0 } else { lanes };
        Self {
            input: all(self.input),
            schedule: all(self.schedule),
            ..self
        }
    }

    fn set(&mut self, lanes: u32, new: Self) {
        let kept = self.of(!lanes);
        *self = new.of(lanes).with(kept);
    }
}

/// What the registers and the local memory of a warp depend on. Empty where nobody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    rows: Vec<Taint>,
    preds: Vec<Taint>,
    /// By word of local memory.
    local: HashMap<u32, Taint>,
    /// Lanes that have tested an mbarrier whose phase was not over, and can only test it again.
    pub(crate) retries: u32,
}

impl Registers {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.preds.clear();
        self.local.clear();
        self.retries = 0;
    }

    /// A source row of a frame.
    pub(crate) fn row(&self, frame: &Frame, row: u32) -> Taint {
        match row & CONSTANT {
            0 => get(&self.rows, frame.rows + row),
            _ => Taint::default(),
        }
    }

    /// What depends on several source rows.
    pub(crate) fn rows<'r>(&self, frame: &Frame, rows: impl IntoIterator<Item = &'r u32>) -> Taint {
        let each = rows.into_iter().map(|&row| self.row(frame, row));
        each.fold(Taint::default(), Taint::with)
    }

    /// A predicate source of a frame.
    pub(crate) fn pred(&self, frame: &Frame, source: u32) -> Taint {
        match source >> 1 {
            TRUE => Taint::default(),
            pred => get(&self.preds, frame.preds + pred),
        }
    }

    pub(crate) fn set_row(&mut self, frame: &Frame, row: u32, lanes: u32, taint: Taint) {
        if row != SINK {
            set(&mut self.rows, frame.rows + row, lanes, taint);
        }
    }

    pub(crate) fn set_pred(&mut self, frame: &Frame, pred: u32, lanes: u32, taint: Taint) {
        if pred != TRUE && pred != SINK_PRED {
            set(&mut self.preds, frame.preds + pred, lanes, taint);
        }
    }

    /// Bytes of local memory, from an offset on.
    pub(crate) fn local(&self, offset: u32, bytes: u32) -> Taint {
        let words = words(offset, bytes).filter_map(|word| self.local.get(&word));
        words.fold(Taint::default(), |all, &one| all.with(one))
    }

    /// Writes bytes of local memory; what else is in their words stays.
    pub(crate) fn set_local(&mut self, offset: u32, bytes: u32, lanes: u32, taint: Taint) {
        let whole = offset.is_multiple_of(4) && bytes.is_multiple_of(4);
        for word in words(offset, bytes) {
            if taint.of(lanes).any() == 0 && !self.local.contains_key(&word) {
                continue;
            }
            let known = self.local.entry(word).or_default();
            match whole {
                true => known.set(lanes, taint),
                false => *known = known.with(taint.of(lanes)),
            }
        }
    }

    /// An operation on registers by the lanes `exec`, under a guard.
    pub(crate) fn compute(&mut self, frame: &Frame, args: &Args, exec: u32, guard: Taint) {
        let from = match args.shape {
            Shape::Rows => self.rows(frame, &[args.a, args.b, args.c]),
            Shape::Carry => {
                let rows = self.rows(frame, &[args.a, args.b, args.c]);
                rows.with(self.pred(frame, 2 * CARRY))
            }
            Shape::Test | Shape::Choose => {
                let rows = self.rows(frame, &[args.a, args.b]);
                rows.with(self.pred(frame, args.c))
            }
            Shape::Preds => self.pred(frame, args.a).with(self.pred(frame, args.b)),
        };
        match args.shape {
            Shape::Rows | Shape::Choose => self.write_row(frame, args.d, exec, from, guard),
            Shape::Carry => {
                self.write_row(frame, args.d, exec, from, guard);
                self.write_pred(frame, CARRY, exec, from, guard);
            }
            Shape::Preds => self.write_pred(frame, args.d, exec, from, guard),
            Shape::Test => {
                self.write_pred(frame, args.d, exec, from, guard);
                self.write_pred(frame, args.e, exec, from, guard);
            }
        }
    }

    /// A row is written by `exec`, and would be by more lanes under another guard.
    pub(crate) fn write_row(
        &mut self,
        frame: &Frame,
        row: u32,
        exec: u32,
        taint: Taint,
        guard: Taint,
    ) {
        self.set_row(frame, row, exec, taint.with(guard));
        let others = guard.any() & !exec;
        if others != 0 {
            let kept = self.row(frame, row);
            self.set_row(frame, row, others, kept.with(guard));
        }
    }

    /// The same of a predicate.
    pub(crate) fn write_pred(
        &mut self,
        frame: &Frame,
        pred: u32,
        exec: u32,
        taint: Taint,
        guard: Taint,
    ) {
        self.set_pred(frame, pred, exec, taint.with(guard));
        let others = guard.any() & !exec;
        if others != 0 {
            let kept = self.pred(frame, 2 * pred);
            self.set_pred(frame, pred, others, kept.with(guard));
        }
    }
}

fn words(offset: u32, bytes: u32) -> impl Iterator<Item = u32> {
    offset / 4..offset.saturating_add(bytes).div_ceil(4)
}

fn get(all: &[Taint], number: u32) -> Taint {
    all.get(number as usize).copied().unwrap_or_default()
}

fn set(all: &mut Vec<Taint>, number: u32, lanes: u32, taint: Taint) {
    let number = number as usize;
    if number >= all.len() {
        if taint.of(lanes).any() == 0 {
            return;
        }
        all.resize(number + 1, Taint::default());
    }
    all[number].set(lanes, taint);
}
