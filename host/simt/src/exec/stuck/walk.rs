//! Where lanes that run on their own can get to, as long as memory stays as it is.
//!
//! A split is followed op by op until it comes back to a state that it was in before. Its state is its place, its
//! registers and its local memory; nothing else decides what its lanes do, so they go round for ever.
//!
//! Where that does not happen because a register counts, or reads a clock, it is followed again by abstract
//! interpretation (Cousot and Cousot, POPL 1977): what differs when the head of a loop is reached again is not known
//! from there on ([`Unknown`]), and a branch on what is not known is followed both ways. Lanes are followed both ways
//! all together. That covers each of them whichever way the others go, since no lane looks at another one: an
//! operation of the whole warp ends the attempt.

use std::collections::HashMap;

use events::Unobserved;

use super::super::step::Budget;
use super::effect::{At, Effect, Look};
use super::unknown::Unknown;
use crate::exec::barriers::Barriers;
use crate::exec::cta::CtaId;
use crate::exec::machine::Machine;
use crate::exec::step::{Ran, Stop};
use crate::exec::warp::{Frame, Split, State, Warp};
use crate::lanes::Lanes;

/// Why nothing is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Its lanes do something that others may see.
    Acts,
    /// It needs lanes of other splits.
    Others,
    /// What it does depends on the clock or on the host, or was not looked into.
    Unsure,
}

/// Where lanes are, and what their warp holds there.
struct Followed {
    warp: Warp,
    unknown: Unknown,
    looks: Vec<Look>,
    /// What was seen at the heads of loops on the way here.
    heads: HashMap<Head, Seen>,
}

/// A place that a loop comes back to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Head {
    pc: u32,
    frame: [u32; 5],
    callers: Vec<([u32; 5], u32)>,
    mask: u32,
}

impl Head {
    fn of(split: &Split) -> Self {
        let fields = |of: &Frame| [of.function, of.rows, of.preds, of.local, of.stack];
        let callers = split.callers.iter();
        Self {
            pc: split.pc,
            frame: fields(&split.frame),
            callers: callers.map(|(frame, pc)| (fields(frame), *pc)).collect(),
            mask: split.mask,
        }
    }
}

/// The state of a warp at a head.
struct Seen {
    warp: Warp,
    unknown: Unknown,
    /// How often it has been reached, and when the state is taken anew.
    times: u64,
    anew: u64,
    /// Looks at memory before it.
    looks: usize,
}

/// Follows splits in a copy of their warp.
pub(super) struct Walker<'m, 'a> {
    pub(super) machine: &'m mut Machine<'a, Unobserved>,
    pub(super) cta: &'m CtaId,
    pub(super) barriers: Barriers,
    /// Ops executed.
    pub(super) steps: u64,
    /// Ops that a split is followed for, each time.
    pub(super) most: u64,
}

impl Walker<'_, '_> {
    /// Follows the only split of a warp. Returns where its lanes look while they go round.
    pub(super) fn follow(&mut self, warp: &Warp) -> Result<Vec<Look>, Why> {
        match self.follow_as(warp, false) {
            Err(Why::Unsure) => self.follow_as(warp, true),
            other => other,
        }
    }

    /// `guess` when registers may be unknown.
    fn follow_as(&mut self, warp: &Warp, guess: bool) -> Result<Vec<Look>, Why> {
        let last = self.steps + self.most;
        let mut left = vec![Followed {
            warp: warp.clone(),
            unknown: Unknown::default(),
            looks: Vec::new(),
            heads: HashMap::new(),
        }];
        let mut heads = HashMap::new();
        let mut looks = Vec::new();
        while let Some(mut now) = left.pop() {
            loop {
                if self.steps >= last {
                    return Err(Why::Unsure);
                }
                let Some(mut split) = now.warp.splits.pop() else {
                    break;
                };
                let from = split.pc;
                if guess && let Some(other) = self.guess(&mut now, &split) {
                    left.push(other);
                }
                let Followed {
                    warp,
                    unknown,
                    looks: seen,
                    ..
                } = &mut now;
                self.advance(warp, &mut split, unknown, guess, seen)?;
                for parted in std::mem::take(&mut now.warp.splits) {
                    left.push(Followed {
                        warp: now.warp.with_only(parted),
                        unknown: now.unknown.clone(),
                        looks: now.looks.clone(),
                        heads: HashMap::new(),
                    });
                }
                let back = split.pc <= from;
                let head = back.then(|| Head::of(&split));
                now.warp.splits.push(split);
                let Some(head) = head else {
                    continue;
                };
                let closed = match guess {
                    true => closes(&mut heads, head, &mut now)?,
                    false => repeats(head, &mut now),
                };
                if let Some(from) = closed {
                    looks.extend(now.looks.drain(from..));
                    break;
                }
            }
        }
        Ok(looks)
    }

    /// Where the guard of the next op is not known: lets it hold, and returns the other way.
    fn guess(&self, now: &mut Followed, split: &Split) -> Option<Followed> {
        let setup = &self.machine.setup;
        if setup.is_inserted(split.pc) {
            return None;
        }
        let guard = setup.program.ops.get(split.pc as usize)?.guard;
        let lanes = now.unknown.pred(&split.frame, guard) & split.mask;
        if lanes == 0 {
            return None;
        }
        let row = (split.frame.preds + (guard >> 1)) as usize;
        now.unknown.settle(&split.frame, guard, lanes);
        now.warp.preds[row] |= lanes;
        let mut other = Followed {
            warp: now.warp.clone(),
            unknown: now.unknown.clone(),
            looks: now.looks.clone(),
            heads: HashMap::new(),
        };
        other.warp.preds[row] &= !lanes;
        other.warp.splits.push(split.clone());
        Some(other)
    }

    /// Executes the next op of a split, which has been taken out of its warp, if that is its own affair.
    pub(super) fn advance(
        &mut self,
        warp: &mut Warp,
        split: &mut Split,
        unknown: &mut Unknown,
        guess: bool,
        looks: &mut Vec<Look>,
    ) -> Result<(), Why> {
        self.steps += 1;
        let program = self.machine.setup.program;
        let Some(op) = program.ops.get(split.pc as usize) else {
            return Err(Why::Unsure);
        };
        let exec = split.mask & warp.pred(&split.frame, op.guard);
        if exec == 0 || self.machine.setup.is_inserted(split.pc) {
            split.pc += 1;
            return Ok(());
        }
        if !unknown.suffices(&split.frame, op, exec) {
            return Err(Why::Unsure);
        }
        let takes_part = Split {
            mask: exec,
            ..split.clone()
        };
        let at = At {
            cta: self.cta,
            warp,
            split: &takes_part,
            exec,
        };
        match self.machine.effect(at, op, looks) {
            Effect::Acts => return Err(Why::Acts),
            Effect::Others => return Err(Why::Others),
            Effect::Unsure => return Err(Why::Unsure),
            Effect::Own(1..) if !guess => return Err(Why::Unsure),
            Effect::None => {
                split.pc += 1;
                return Ok(());
            }
            Effect::Own(result) => unknown.pass(&split.frame, op, exec, result),
        }
        let mut ran = Ran::default();
        let mut budget = Budget { fuel: 1, spent: 0 };
        let Self {
            machine,
            cta,
            barriers,
            ..
        } = self;
        let stop = machine.run_split(cta, barriers, warp, split, &mut budget, &mut ran);
        warp.clock += budget.spent;
        split.turn = warp.clock;
        match stop {
            Ok(Stop::Pause) => Ok(()),
            _ => Err(Why::Acts),
        }
    }
}

/// Whether the lanes have been in this very state before on their way. If so, the number of looks before that.
fn repeats(head: Head, now: &mut Followed) -> Option<usize> {
    let mask = head.mask;
    match now.heads.get_mut(&head) {
        Some(seen) => {
            if is_same(&seen.warp, &now.warp, mask) {
                return Some(seen.looks);
            }
            seen.times += 1;
            if seen.times == seen.anew {
                seen.warp = now.warp.clone();
                seen.looks = now.looks.len();
                seen.anew *= 2;
            }
        }
        None => {
            let seen = Seen {
                warp: now.warp.clone(),
                unknown: Unknown::default(),
                times: 0,
                anew: 1,
                looks: now.looks.len(),
            };
            now.heads.insert(head, seen);
        }
    }
    None
}

/// Whether a state is one of those that have been seen at the head of a loop. If not, what differs is not known
/// from here on.
fn closes(
    heads: &mut HashMap<Head, Seen>,
    head: Head,
    now: &mut Followed,
) -> Result<Option<usize>, Why> {
    let mask = head.mask;
    let Some(seen) = heads.get_mut(&head) else {
        let seen = Seen {
            warp: now.warp.clone(),
            unknown: now.unknown.clone(),
            times: 0,
            anew: 0,
            looks: 0,
        };
        heads.insert(head, seen);
        return Ok(None);
    };
    if differs_local(&seen.warp, &now.warp, mask) {
        return Err(Why::Unsure);
    }
    let mut new = false;
    let rows = seen.warp.regs.len().max(now.warp.regs.len());
    for row in 0..rows {
        let known = mask & !seen.unknown.row_at(row);
        let differ = match (seen.warp.regs.get(row), now.warp.regs.get(row)) {
            (Some(before), Some(after)) => differing(before, after, known),
            // A deeper call has made room since.
            _ => known,
        };
        let lanes = differ | known & now.unknown.row_at(row);
        if lanes != 0 {
            new = true;
            seen.unknown.forget_row(row, lanes);
        }
    }
    let preds = seen.warp.preds.len().max(now.warp.preds.len());
    for pred in 0..preds {
        let known = mask & !seen.unknown.pred_at(pred);
        let differ = match (seen.warp.preds.get(pred), now.warp.preds.get(pred)) {
            (Some(before), Some(after)) => (before ^ after) & known,
            _ => known,
        };
        let lanes = differ | known & now.unknown.pred_at(pred);
        if lanes != 0 {
            new = true;
            seen.unknown.forget_pred(pred, lanes);
        }
    }
    if !new {
        return Ok(Some(0));
    }
    now.unknown.join(&seen.unknown);
    Ok(None)
}

/// Whether the registers and the local memory of some lanes are the same.
pub(super) fn is_same(a: &Warp, b: &Warp, mask: u32) -> bool {
    let rows = |a: &Lanes, b: &Lanes| differing(a, b, mask) == 0;
    a.regs.len() == b.regs.len()
        && a.preds.len() == b.preds.len()
        && a.preds
            .iter()
            .zip(&b.preds)
            .all(|(a, b)| (a ^ b) & mask == 0)
        && a.regs.iter().zip(&b.regs).all(|(a, b)| rows(a, b))
        && !differs_local(a, b, mask)
}

/// The lanes of a mask in which two rows differ.
fn differing(a: &Lanes, b: &Lanes, mask: u32) -> u32 {
    let differ = |lane: &usize| mask >> lane & 1 == 1 && a[*lane] != b[*lane];
    (0..a.len())
        .filter(differ)
        .fold(0, |all, lane| all | 1 << lane)
}

fn differs_local(a: &Warp, b: &Warp, mask: u32) -> bool {
    let differ = |(at, (a, b)): (usize, (&u32, &u32))| mask >> (at % 32) & 1 == 1 && a != b;
    a.local.len() != b.local.len() || a.local.iter().zip(&b.local).enumerate().any(differ)
}

/// Whether all splits of a warp are where they were, with the same registers.
pub(super) fn is_same_warp(a: &Warp, b: &Warp) -> bool {
    let at = |split: &Split, other: &Split| split.mask == other.mask && split.meets(other);
    let has = |split: &Split| b.splits.iter().any(|other| at(split, other));
    a.splits.len() == b.splits.len() && a.splits.iter().all(has) && is_same(a, b, a.live)
}

/// The lanes of a warp that can run.
pub(super) fn ready(warp: &Warp) -> u32 {
    let ready = warp
        .splits
        .iter()
        .filter(|split| split.state == State::Ready);
    ready.fold(0, |all, split| all | split.mask)
}
