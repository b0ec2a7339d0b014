//! Keeps what the engine is told and all that it finds, for comparisons.

use events::Executing;
use shadow::hb::{LANES, Place, Thread};

use super::Reference;
use crate::audit::Conflict;
use crate::heard::{Heard, Told};
use crate::pairs::Class;
use crate::told;

impl Reference {
    /// Keeps every race instead of the first of each pair of sites, and what the engine is told.
    pub fn keep_all(mut self) -> Self {
        self.pairs.every = Some(Vec::new());
        self.heard = Some(Vec::new());
        self
    }

    /// The races that [`Self::keep_all`] has kept.
    pub(crate) fn every_race(&self) -> Vec<Conflict> {
        let line = |site| self.instructions.site(site).map_or(0, |site| site.ptx_line);
        let thread = |of: Thread| of.warp * LANES + of.lane;
        let all = self.pairs.every.iter().flatten();
        all.map(|race| {
            let (shared, address) = match race.place {
                Place::Global(address) => (None, address),
                Place::Shared { cta, offset } => (Some(cta), u64::from(offset)),
            };
            Conflict {
                line: line(race.later.site),
                earlier: line(race.earlier.site),
                thread: thread(race.later.thread),
                earlier_thread: Some(thread(race.earlier.thread)),
                shared,
                address,
                possible: !self.doubts.is_sure(&self.instructions, race),
                why: told::why(Class::Race, race.rule),
            }
        })
        .collect()
    }

    /// What the engine was told since [`Self::keep_all`].
    pub fn heard(&mut self) -> Vec<Heard> {
        self.heard.take().unwrap_or_default()
    }

    /// Keeps what the engine is told of an instruction.
    pub(super) fn hear(&mut self, who: Executing, what: impl FnOnce() -> Told) {
        let site = self.instructions.at(who.offset).map(|meaning| meaning.site);
        if let Some(heard) = &mut self.heard {
            let line = site.and_then(|site| self.instructions.site(site));
            heard.push(Heard::new(
                who,
                line.map_or(0, |site| site.ptx_line),
                what(),
            ));
        }
    }
}
