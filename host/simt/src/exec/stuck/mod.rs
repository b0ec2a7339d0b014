//! Waits that nobody can end: lanes that go round in a loop, or wait at a barrier, and would do so for ever.
//!
//! A launch is stuck when that holds for all of its lanes that have not exited. Nobody is left then who could change
//! what they look at, so it is enough to follow each of them with memory as it is ([`walk`]): lanes that come back to
//! where they were without having changed anything ([`effect`]) stay there. Only what neither the clock nor the host
//! nor other work can change counts as standing still. What is not proved is not reported; the launch goes on.
//!
//! Code that a tool has inserted into the module changes nothing that the rest of it computes, so it is passed over.

mod effect;
mod unknown;
mod walk;

pub(crate) use effect::Look;

use events::Unobserved;

use super::barriers::Barriers;
use super::cta::CtaId;
use super::machine::{Machine, Setup};
use super::warp::{Split, State, Warp};
use crate::code::Kind;
use unknown::Unknown;
use walk::{Walker, Why, is_same_warp, ready};

/// Lanes of a warp that go round for ever.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) warp: u32,
    pub(crate) lanes: u32,
    /// Where they are.
    pub(crate) pc: u32,
    /// What they look at, if they look at anything.
    pub(crate) look: Option<Look>,
}

impl Setup<'_> {
    /// Whether an op comes from code that a tool has inserted.
    pub(crate) fn is_inserted(&self, pc: u32) -> bool {
        let inserted = self.loaded.inserted();
        let Some(&offset) = self.program.offsets.get(pc as usize) else {
            return false;
        };
        let behind = inserted.partition_point(|range| range.start <= offset);
        behind > 0 && offset < inserted[behind - 1].end
    }
}

/// How far lanes are followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Ops that each split is followed for, at most; a warp a few times as far.
    pub(crate) most: u64,
    /// Ops that were followed.
    pub(crate) steps: u64,
}

/// Whether all lanes of a warp wait for what only others can change. If so, which of them go round.
pub(crate) fn rounds(
    machine: &mut Machine<'_, Unobserved>,
    cta: &CtaId,
    barriers: &Barriers,
    warp: &Warp,
    effort: &mut Effort,
) -> Option<Vec<Round>> {
    let mut walker = Walker {
        machine,
        cta,
        barriers: barriers.clone(),
        steps: 0,
        most: effort.most,
    };
    let rounds = walker.rounds(warp);
    effort.steps += walker.steps + 1;
    rounds.ok()
}

impl Walker<'_, '_> {
    fn rounds(&mut self, warp: &Warp) -> Result<Vec<Round>, Why> {
        let mut warp = warp.clone();
        let mut again = Vec::new();
        for split in &mut warp.splits {
            split.asleep = 0;
            again.push(self.leave_inserted(split));
        }
        for index in 0..warp.splits.len() {
            let Self {
                machine,
                cta,
                barriers,
                ..
            } = self;
            machine.resume(cta, barriers, &mut warp, index);
        }
        if warp.splits.iter().any(|split| split.state == State::Warp) {
            if again.iter().any(Option::is_some) {
                return Err(Why::Unsure);
            }
            self.machine.exchange_waiting(self.cta, &mut warp);
            again = vec![None; warp.splits.len()];
        }
        let mut found = Vec::new();
        for (split, again) in warp.splits.iter().zip(&again) {
            if split.state != State::Ready {
                continue;
            }
            let mut look = None;
            for pc in std::iter::once(split.pc).chain(*again) {
                let alone = warp.with_only(Split {
                    pc,
                    ..split.clone()
                });
                match self.follow(&alone) {
                    Ok(looks) => look = look.or_else(|| awaited(&looks)),
                    // What a place of two leads to is not what the lanes of several splits meet with.
                    Err(Why::Others) if again.is_none() => return self.together(warp.clone()),
                    Err(why) => return Err(why),
                }
            }
            found.push(Round {
                warp: warp.index,
                lanes: split.mask,
                pc: look.map_or(split.pc, |look| look.pc),
                look,
            });
        }
        Ok(found)
    }

    /// Takes a split out of inserted code, to the op that it will execute next. Where that code would go back to the
    /// op in front of it, because the split may not have executed that yet, returns its place.
    fn leave_inserted(&self, split: &mut Split) -> Option<u32> {
        let setup = &self.machine.setup;
        let mut callers = split.callers.iter();
        if let Some(depth) = callers.position(|&(_, back)| setup.is_inserted(back - 1)) {
            (split.frame, split.pc) = split.callers[depth];
            split.callers.truncate(depth);
            split.state = State::Ready;
        } else if !setup.is_inserted(split.pc) {
            return None;
        }
        split.state = State::Ready;
        let ops = &setup.program.ops;
        let last = ops.len() as u32;
        let next = (split.pc..last).find(|&pc| !setup.is_inserted(pc));
        let next = next.unwrap_or(last);
        let before = (0..split.pc).rev().find(|&pc| !setup.is_inserted(pc));
        let before = before.unwrap_or(0);
        let goes_back = |pc: &u32| match &ops[*pc as usize].kind {
            Kind::Branch(target) => *target <= before,
            _ => false,
        };
        let again = (split.pc.saturating_sub(1)..next).find(goes_back);
        split.pc = next;
        again.map(|_| before)
    }

    /// Follows all splits of a warp, which need each other.
    fn together(&mut self, mut warp: Warp) -> Result<Vec<Round>, Why> {
        let (first, last) = (self.steps, self.steps + 4 * self.most);
        let mut looks = Vec::new();
        let (mut known, mut times, mut anew) = (None::<(Warp, usize)>, 0, 1);
        let mut moved = 0;
        while self.steps < last {
            let Self {
                machine,
                cta,
                barriers,
                ..
            } = self;
            let Some(index) = machine.pick(cta, barriers, &mut warp, &mut None) else {
                // Lanes that would come to wait do so before long, and are reported where they wait.
                return match self.steps == first {
                    true => Ok(Vec::new()),
                    false => Err(Why::Unsure),
                };
            };
            let mut split = warp.splits.swap_remove(index);
            moved |= split.mask;
            let from = split.pc;
            let mut unknown = Unknown::default();
            match self.advance(&mut warp, &mut split, &mut unknown, false, &mut looks) {
                Ok(()) => {}
                Err(Why::Others) => split.state = State::Warp,
                Err(why) => return Err(why),
            }
            let back = split.pc <= from && split.state == State::Ready;
            let mask = split.mask;
            warp.splits.push(split);
            if !back {
                continue;
            }
            if let Some((before, seen)) = &known
                && is_same_warp(before, &warp)
                && ready(before) & !moved == 0
            {
                let look = awaited(&looks[*seen..]);
                let round = Round {
                    warp: warp.index,
                    lanes: ready(&warp) | mask,
                    pc: look.map_or(from, |look| look.pc),
                    look,
                };
                return Ok(vec![round]);
            }
            times += 1;
            if times == anew {
                known = Some((warp.clone(), looks.len()));
                anew *= 2;
                moved = 0;
            }
        }
        Err(Why::Unsure)
    }
}

/// The look at memory that a person would call what a loop waits for.
fn awaited(looks: &[Look]) -> Option<Look> {
    let strong = looks.iter().rev().find(|look| look.strong);
    strong.or(looks.last()).copied()
}
