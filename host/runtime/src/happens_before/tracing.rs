//! Keeps what the engine receives and all that it finds, for comparisons.

use events::Executing;
use shadow::hb::{LANES, Location, Thread};

use super::HappensBefore;
use crate::audit::AuditedRace;
use crate::between::{Between, Steps, Wanted};
use crate::logged;
use crate::pairs::Class;
use crate::traced::{EventKind, TraceEvent};

impl HappensBefore {
    /// Keeps every race instead of the first of each pair of sites, and what the engine receives.
    pub fn keep_all(mut self) -> Self {
        self.pairs.every = Some(Vec::new());
        self.traced = Some(Vec::new());
        self
    }

    /// The races that [`Self::keep_all`] has kept.
    pub(crate) fn every_race(&self) -> Vec<AuditedRace> {
        let line = |site| self.instructions.site(site).map_or(0, |site| site.ptx_line);
        let thread = |of: Thread| of.warp * LANES + of.lane;
        let all = self.pairs.every.iter().flatten();
        all.map(|race| {
            let (shared, address) = match race.location {
                Location::Global(address) => (None, address),
                Location::Shared { cta, offset } => (Some(cta), u64::from(offset)),
            };
            AuditedRace {
                line: line(race.later.site),
                earlier: line(race.earlier.site),
                thread: thread(race.later.thread),
                earlier_thread: Some(thread(race.earlier.thread)),
                shared,
                address,
                possible: !self.doubts.is_sure(&self.instructions, race),
                why: logged::why(Class::Race, race.rule),
            }
        })
        .collect()
    }

    /// What the engine has received since [`Self::keep_all`].
    pub fn traced(&mut self) -> Vec<TraceEvent> {
        self.traced.take().unwrap_or_default()
    }

    /// Keeps what happens between two accesses.
    pub fn follow(mut self, wanted: Wanted) -> Self {
        self.pairs.latest = Some(Vec::new());
        self.between = Some(Box::new(Between::new(wanted)));
        self
    }

    /// What has happened between the accesses that [`Self::follow`] was asked for.
    pub fn followed(&mut self) -> Option<Steps> {
        self.trace_latest();
        Some(self.between.take()?.finish())
    }

    /// Says which races the access before has had.
    fn trace_latest(&mut self) {
        let (Some(between), Some(latest)) = (&mut self.between, &mut self.pairs.latest) else {
            return;
        };
        let line = |site| self.instructions.site(site).map_or(0, |site| site.ptx_line);
        for race in latest.drain(..) {
            between.race(&race, [race.earlier.site, race.later.site].map(line));
        }
    }

    /// Keeps what the engine receives of an instruction.
    pub(super) fn hear(&mut self, threads: Executing, what: impl FnOnce() -> EventKind) {
        if self.traced.is_none() && self.between.is_none() {
            return;
        }
        self.trace_latest();
        let site = self
            .instructions
            .at(threads.offset)
            .map(|meaning| meaning.site);
        let line = site.and_then(|site| self.instructions.site(site));
        let traced = TraceEvent::new(threads, line.map_or(0, |site| site.ptx_line), what());
        if let Some(between) = &mut self.between {
            between.hear(traced.clone());
        }
        if let Some(all) = &mut self.traced {
            all.push(traced);
        }
    }
}
