//! The scoped model: what precise mode reports of the program is what the definition says.

use std::collections::BTreeSet;

use anyhow::Result;
use report::log;
use runtime::{Mode, Model};

use super::super::kernel::{AccessKind, AccessOrder, Act, Kernel};
use super::super::tally::Tally;
use super::super::text::Text;
use super::bench::{Bench, Run};
use super::{Disagreement, Wrong, second};
use crate::machine::Checks;

/// Whether there may be anything to say of a kernel that the other models do not: it has strong accesses
/// besides reductions.
pub(super) fn wanted(kernel: &Kernel) -> bool {
    let strong = |act: &&Act| match act.access() {
        Some(access) => match access.kind {
            AccessKind::Load | AccessKind::Store => {
                !matches!(access.order, AccessOrder::Plain | AccessOrder::ReadOnly)
            }
            AccessKind::Atom(_) => true,
            AccessKind::Red(_) => false,
        },
        None => false,
    };
    !kernel.cooperative() && kernel.acts().iter().any(strong)
}

/// A kernel on a device, judged under the scoped model.
pub(super) fn bench(kernel: &Kernel, text: &Text) -> Result<Bench> {
    Bench::under(Some(Model::Scoped), kernel, text, Checks::by(Mode::Precise))
}

impl Run {
    /// Compares a run under the scoped model with the definition.
    pub(super) fn scoped(
        &mut self,
        kernel: &Kernel,
        text: &Text,
        tally: &mut Tally,
    ) -> Result<(), Disagreement> {
        let recorded = self.recorded(kernel);
        if let Some(verdict) = recorded.judge(text, Model::Scoped) {
            tally.scoped += 1;
            tally.strong += u64::from(!verdict.strong.is_empty());
            let races = self.locations(&verdict.races);
            let found = self.racing(text);
            if let Some(what) = super::differ(&races, &found) {
                return Err((Wrong::Scoped, what));
            }
            let pair = |a: u32, b: u32| (a.min(b), a.max(b));
            // What is a data race is reported as one.
            let raced = self.audit.happens_before.iter();
            let raced: BTreeSet<_> = raced.map(|race| pair(race.line, race.earlier)).collect();
            let line = |site| self.lines.get(&site).copied().unwrap_or(0);
            let reported = self.races.iter();
            let reported: BTreeSet<_> = reported
                .filter(|race| race.why == log::Why::Strong)
                .map(|race| pair(line(race.site), line(race.previous_site)))
                .collect();
            let defined: BTreeSet<_> = verdict.strong_lines.difference(&raced).copied().collect();
            let alarm =
                |pair: &&(u32, u32)| !defined.contains(pair) && !verdict.open_lines.contains(pair);
            let alarms: Vec<_> = reported.iter().filter(alarm).collect();
            let missed: Vec<_> = defined.difference(&reported).collect();
            let agrees = alarms.is_empty() && missed.is_empty();
            if !(agrees || verdict.doubtful) {
                let what = format!(
                    "strong conflicts reported and not by definition: {alarms:?}; the other way: {missed:?}"
                );
                return Err((Wrong::Scoped, what));
            }
        }
        second::confirm(&recorded, tally)
    }
}
