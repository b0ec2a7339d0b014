//! Barriers of CTAs and warps.

use std::collections::BTreeSet;

use runtime::traced::TraceEvent;

use super::super::lane::ThreadId;
use super::super::want::{Want, What};
use super::super::{Objection, Result};
use super::{Owed, Walk};

impl Walk<'_> {
    /// A barrier of a CTA ends.
    pub(super) fn complete(&mut self, cta: u64, id: u32) -> Result<()> {
        let owed = Owed::Barrier(cta, id);
        let Some(number) = self.owed.iter().position(|other| *other == owed) else {
            return self.differs(format!("barrier {id} of CTA {cta} must not end"));
        };
        self.owed.remove(number);
        let (arrived, waiting) = self.barriers.complete(cta, id);
        let brought: Vec<bool> = arrived
            .iter()
            .filter_map(|thread| self.brought.remove(thread))
            .collect();
        let holding = brought.iter().filter(|&&holds| holds).count();
        for thread in waiting {
            let instruction = self.operands(thread)?;
            let result = match () {
                () if !instruction.has("red") => None,
                () if instruction.has("popc") => Some(holding as u64),
                () if instruction.has("and") => Some(u64::from(holding == brought.len())),
                () => Some(u64::from(holding > 0)),
            };
            if let (Some(result), Some(target)) = (result, instruction.operands.first()) {
                self.set(thread, target, result)?;
            }
            self.done(thread)?;
        }
        Ok(())
    }

    /// The lanes of a mask meet: all of them that have not ended.
    pub(super) fn warp_barrier(&mut self, event: &TraceEvent, all: &[ThreadId]) -> Result<()> {
        let (mut masks, mut lines) = (BTreeSet::new(), BTreeSet::new());
        let live: Vec<ThreadId> = all
            .iter()
            .copied()
            .filter(|thread| self.barriers.is_live(*thread))
            .collect();
        for thread in &live {
            match self.lanes.get(thread) {
                Some((
                    _,
                    Some(Want {
                        what: What::WarpBarrier { mask },
                        line,
                    }),
                )) => {
                    if mask >> thread.lane & 1 == 0 {
                        return Err(Objection::unknown("a mask that leaves the lane out"));
                    }
                    masks.insert(*mask);
                    lines.insert(*line);
                }
                Some((_, want)) => {
                    return self
                        .differs(format!("{thread:?} has come to {want:?}, not to {event:?}"));
                }
                None => return self.differs(format!("there is no {thread:?}")),
            }
        }
        let [mask] = masks.iter().copied().collect::<Vec<u32>>()[..] else {
            return self.differs(format!("lanes with masks {masks:?} meet by {event:?}"));
        };
        // Lanes may meet by different instructions; the line is that of one of them.
        if !lines.contains(&event.line) {
            return self.differs(format!("lanes from lines {lines:?} meet by {event:?}"));
        }
        let met = all.iter().fold(0u32, |met, thread| met | 1 << thread.lane);
        let missing = (0..32).find(|&lane| {
            let thread = ThreadId {
                lane,
                cta: event.cta,
                warp: event.warp,
            };
            mask >> lane & 1 == 1 && met >> lane & 1 == 0 && self.barriers.is_live(thread)
        });
        if let Some(lane) = missing {
            return self.differs(format!("lane {lane} is missing in {event:?}"));
        }
        if met & !mask != 0 {
            return self.differs(format!("lanes beyond {mask:#x} meet by {event:?}"));
        }
        live.into_iter().try_for_each(|thread| self.done(thread))
    }
}
