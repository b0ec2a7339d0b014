//! Runs a random kernel and compares the verdicts of one and the same run.
//!
//! 1. As on a GPU, where a kernel is left to the cells, a granule of global memory is reported if and
//!    only if happens-before knows a race on it; a miss must show in a count. Shared memory is judged as
//!    in 3.
//! 2. What precise mode reports is what happens-before finds.
//! 3. Fast mode misses without a count only what races by size, as read-only data or with a copy, and
//!    what it calls a race by the fence rule is one.
//! 4. Where a kernel keeps a journal, happens-before finds the same bytes in it as by listening to
//!    the same run; a miss must show in a count.
//! 5. Where full barriers alone order, happens-before finds exactly the races that [`truth`] knows, on
//!    the program as it was written and on that with checks.
//! 6. What is defined of mbarriers is called no misuse of theirs.
//! 7. What happens-before receives of a run is what [`crate::retrace`] says of the text, with checks and
//!    without.
//! 8. What races by happens-before is what races by [`crate::definition`].
//! 9. So it is under the scoped model, unordered strong conflicts included.
//! 10. What `verify` proves of all schedules races under none, and what it proves for all data races with no other
//!     contents of memory either.

mod bench;
mod orders;
mod scoped;
mod second;

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Result;
use report::log::{self, Answer};
use runtime::Mode;
use runtime::audit::AuditedRace;
use simt::LaunchError;

use crate::machine::Checks;

use super::kernel::{AccessKind, AccessOrder, Act, Kernel, LANES};
use super::tally::Tally;
use super::text::{self, Text};
use super::truth::{self, Byte};
use bench::{Bench, Run};
pub use orders::{Orders, Report, orders};
pub use second::{Recorded, record};

/// Precise mode as on a GPU.
const AS_GPU: Checks = Checks {
    as_gpu: true,
    ..Checks::by(Mode::Precise)
};

/// What memory contains in runs that are compared with those on zeroes.
const OTHER_INPUT: u8 = 1;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// The kernel does not load, or faults.
    Run,
    /// It does not end.
    Hang,
    /// The cells report a granule without a race.
    FalseAlarm,
    /// The cells do not report a granule with a race, and nothing is counted.
    Miss,
    /// What precise mode reports and all that happens-before has found differ.
    Precise,
    /// What the journal of a run records and what a listener hears of it differ.
    Journal,
    /// Something that PTX defines is called a misuse of an mbarrier.
    Misuse,
    /// Happens-before receives something else than the text says.
    TraceEvent,
    /// What races by happens-before does not by definition, or the other way around.
    Definition,
    /// The same, or an unordered strong conflict, under the scoped model.
    Scoped,
    /// A run has a race that `verify` excludes.
    Verify,
    /// Happens-before and the obvious truth differ, on the text with checks.
    Truth,
    /// The same on the program as it was written.
    Original,
}

/// Whose verdict the cells' records are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    Precise,
    Fast,
}

/// A disagreement.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which.
    pub wrong: Wrong,
    /// Seed of the schedule, 0 for round robin.
    pub schedule: u64,
    /// Where.
    pub what: String,
}

impl Wrong {
    /// As a file name has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Hang => "hang",
            Self::FalseAlarm => "false_alarm",
            Self::Miss => "miss",
            Self::Precise => "precise",
            Self::Journal => "journal",
            Self::Misuse => "misuse",
            Self::TraceEvent => "heard",
            Self::Definition => "definition",
            Self::Scoped => "scoped",
            Self::Verify => "verify",
            Self::Truth => "truth",
            Self::Original => "original",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, schedule) = (self.wrong.name(), self.schedule);
        write!(f, "{name} under schedule {schedule}: {}", self.what)
    }
}

/// Schedules for a kernel: round robin, and seeds that differ from kernel to kernel.
pub fn schedules(kernel: &Kernel, count: u64) -> Vec<u64> {
    let seeds = (1..count).map(|number| 1 + kernel.seed.wrapping_add(number * 331) % 1009);
    std::iter::once(0).chain(seeds).collect()
}

/// Judges a kernel under some schedules.
///
/// # Errors
/// The first disagreement.
pub fn judge(kernel: &Kernel, schedules: &[u64]) -> Result<Tally, Finding> {
    let text = text::write(kernel);
    let failed = |schedule, error: anyhow::Error| Finding {
        wrong: match error.downcast_ref() {
            Some(LaunchError::Deadlock { .. } | LaunchError::Timeout { .. }) => Wrong::Hang,
            _ => Wrong::Run,
        },
        schedule,
        what: format!("{error:#}"),
    };
    let mut total = Tally {
        kernels: 1,
        ..Tally::default()
    };
    let bench = |checks| Bench::new(kernel, &text, checks).map_err(|error| failed(0, error));
    let mut written = bench(Checks::by(Mode::Precise))?;
    // Where a bulk copy reduces, only happens-before on the simulated device judges, and the others say so.
    let mut device = match kernel.reduces() {
        true => None,
        false => Some(bench(AS_GPU)?),
    };
    let mut fast: Option<Bench> = None;
    let mut scoped: Option<Bench> = None;
    let observed = kernel.acts().into_iter().any(observes);
    let mut known = None;
    let verified = bench(Checks::verify())?
        .verify()
        .map_err(|error| failed(0, error))?;
    let proved = matches!(verified.answer, Answer::ThisData | Answer::AllData);
    let for_all_data = verified.answer == Answer::AllData;
    total.proved += u64::from(proved);
    total.proved_for_all_data += u64::from(for_all_data);
    for &schedule in schedules {
        let finding = |(wrong, what)| Finding {
            wrong,
            schedule,
            what,
        };
        let fails = |error| failed(schedule, error);
        let mut run = written.run(schedule).map_err(fails)?;
        total.runs += 1;
        total.racy_runs += u64::from(!run.audit.happens_before.is_empty());
        run.precise(&mut total).map_err(finding)?;
        if proved {
            run.is_free(&verified).map_err(finding)?;
        }
        if for_all_data {
            let other = written.run_on(schedule, OTHER_INPUT).map_err(fails)?;
            other.is_free(&verified).map_err(finding)?;
        }
        run.misuse(kernel).map_err(finding)?;
        run.second(kernel, &text, &mut total).map_err(finding)?;
        if scoped::wanted(kernel) {
            let scoped = match &mut scoped {
                Some(scoped) => scoped,
                None => scoped.insert(scoped::bench(kernel, &text).map_err(fails)?),
            };
            let mut run = scoped.run(schedule).map_err(fails)?;
            run.scoped(kernel, &text, &mut total).map_err(finding)?;
        }
        let Some(device) = &mut device else {
            continue;
        };
        let mut checked = device.run(schedule).map_err(fails)?;
        let by_cells = checked.audit.cells_decide;
        if by_cells && checked.unchecked {
            let what = "left to cells that do not know of all accesses".to_owned();
            return Err(finding((Wrong::Miss, what)));
        }
        let mut by_fast = match by_cells {
            true => {
                checked
                    .cells(&text, Judge::Precise, &mut total)
                    .map_err(finding)?;
                None
            }
            false => {
                total.no_journal += u64::from(checked.audit.journal.is_none());
                checked.journal(&text, &mut total).map_err(finding)?;
                checked.misuse(kernel).map_err(finding)?;
                let fast = match &mut fast {
                    Some(fast) => fast,
                    None => fast
                        .insert(Bench::new(kernel, &text, Checks::by(Mode::Fast)).map_err(fails)?),
                };
                Some(fast.run(schedule).map_err(fails)?)
            }
        };
        if by_cells && !observed {
            let truth = known.get_or_insert_with(|| truth::races(kernel));
            total.known += 1;
            for (run, wrong) in [(&run, Wrong::Original), (&checked, Wrong::Truth)] {
                let found = run.racing(&text);
                differ(truth, &found).map_or(Ok(()), |what| Err(finding((wrong, what))))?;
            }
        }
        let cells = by_fast.as_mut().unwrap_or(&mut checked);
        match cells.unchecked {
            true => total.unchecked += 1,
            false => cells
                .cells(&text, Judge::Fast, &mut total)
                .map_err(finding)?,
        }
        // Checks change nothing that the program does. Where there is a journal, a thread may have to make a
        // load again.
        let cells = cells.recorded(kernel);
        second::confirm(&cells, &mut total).map_err(finding)?;
    }
    Ok(total)
}

/// Pairs of lines that race by happens-before on the program as it was written.
///
/// # Errors
/// When the kernel does not run.
pub fn racing_lines(kernel: &Kernel, schedules: &[u64]) -> Result<BTreeSet<(u32, u32)>> {
    let mut bench = Bench::new(kernel, &text::write(kernel), Checks::by(Mode::Precise))?;
    let mut pairs = BTreeSet::new();
    for &schedule in schedules {
        let run = bench.run(schedule)?;
        let found = run.audit.happens_before.iter();
        pairs.extend(found.map(|race| (race.line.min(race.earlier), race.line.max(race.earlier))));
    }
    Ok(pairs)
}

/// Whether an act may see what another thread wrote, in either memory, and so be ordered after it.
fn observes(act: &Act) -> bool {
    let strong = |order| !matches!(order, AccessOrder::Plain | AccessOrder::ReadOnly);
    match act {
        Act::Access(access) => match access.kind {
            AccessKind::Load => strong(access.order),
            AccessKind::Atom(_) => true,
            AccessKind::Store | AccessKind::Red(_) => false,
        },
        Act::Poll { .. } | Act::Pass { .. } | Act::Leave { .. } | Act::Take { .. } => true,
        _ => false,
    }
}

fn differ(truth: &BTreeSet<Byte>, found: &BTreeSet<Byte>) -> Option<String> {
    let missed = truth.difference(found).next();
    let false_alarm = found.difference(truth).next();
    (missed.is_some() || false_alarm.is_some()).then(|| {
        format!(
            "bytes that race, but not by happens-before: {missed:?}; the other way: {false_alarm:?}"
        )
    })
}

type Disagreement = (Wrong, String);

impl Run {
    /// The bytes that happens-before knows a race on.
    fn racing(&self, text: &Text) -> BTreeSet<Byte> {
        self.bytes(text, &self.audit.happens_before)
    }

    fn bytes<'a>(
        &self,
        text: &Text,
        conflicts: impl IntoIterator<Item = &'a AuditedRace>,
    ) -> BTreeSet<Byte> {
        let mut bytes = BTreeSet::new();
        for conflict in conflicts {
            let overlap = self.overlap(text, conflict);
            bytes.extend(overlap.map(|byte| (conflict.shared, byte)));
        }
        bytes
    }

    /// The mbarriers of several phases are used as PTX wants it, if they are initialised first. That of
    /// one phase is not: threads arrive at it as often as they like.
    fn misuse(&self, kernel: &Kernel) -> Result<(), Disagreement> {
        match self.misused.first() {
            Some(race) if !kernel.early && !kernel.acts().iter().any(|act| act.is_gate()) => {
                Err((Wrong::Misuse, format!("{race:?}")))
            }
            _ => Ok(()),
        }
    }

    /// What the journal records is what happens-before has heard.
    fn journal(&self, text: &Text, total: &mut Tally) -> Result<(), Disagreement> {
        let Some(journal) = &self.audit.journal else {
            return Ok(());
        };
        let recorded = self.bytes(text, journal);
        let heard = self.racing(text);
        let sure = self.bytes(text, journal.iter().filter(|race| !race.possible));
        total.journals += 1;
        total.journal_racy += heard.len() as u64;
        let counters = self.audit.counters;
        let counted = counters.evictions + counters.undecided > 0;
        total.journal_unsure += u64::from(counters.undecided > 0);
        let gone = heard.difference(&recorded).count() as u64;
        total.journal_counted += if counted { gone } else { 0 };
        let missed: Vec<_> = heard.difference(&recorded).take(4).collect();
        let alarms: Vec<_> = sure.difference(&heard).take(4).collect();
        match (missed.is_empty() || counted) && alarms.is_empty() {
            true => Ok(()),
            false => Err((
                Wrong::Journal,
                format!(
                    "bytes that race, but not by the journal: {missed:?}; the other way: {alarms:?}"
                ),
            )),
        }
    }

    /// The run has no race, as `verify` says.
    fn is_free(&self, verified: &log::Verified) -> Result<(), Disagreement> {
        match self.audit.happens_before.first() {
            None => Ok(()),
            Some(race) => {
                let (answer, lines) = (verified.answer, (race.earlier, race.line));
                Err((
                    Wrong::Verify,
                    format!("{answer:?}, but lines {lines:?} race"),
                ))
            }
        }
    }

    /// What was reported is what happens-before says.
    fn precise(&self, tally: &mut Tally) -> Result<(), Disagreement> {
        let shared = self.audit.happens_before.iter().filter_map(|race| {
            let cta = race.shared?;
            Some((cta, race.address))
        });
        tally.shared += shared.collect::<BTreeSet<_>>().len() as u64;
        let line = |site| self.lines.get(&site).copied().unwrap_or(0);
        let pair = |a: u32, b: u32, shared: bool| (shared, a.min(b), a.max(b));
        let reported: BTreeSet<_> = self
            .races
            .iter()
            .map(|race| {
                let shared = race.space == log::Space::Shared;
                pair(line(race.site), line(race.previous_site), shared)
            })
            .collect();
        let found: BTreeSet<_> = self
            .audit
            .happens_before
            .iter()
            .map(|race| pair(race.line, race.earlier, race.shared.is_some()))
            .collect();
        tally.pairs += found.len() as u64;
        let undecided = self.races.iter().find(|race| !race.decided);
        match (reported == found, undecided) {
            (true, None) => Ok(()),
            (false, _) => Err((
                Wrong::Precise,
                format!("reported {reported:?}, happens-before says {found:?}"),
            )),
            (_, Some(race)) => Err((Wrong::Precise, format!("undecided: {race:?}"))),
        }
    }

    /// What the cells recorded, against happens-before, granule by granule.
    fn cells(&self, text: &Text, judge: Judge, tally: &mut Tally) -> Result<(), Disagreement> {
        let audit = &self.audit;
        // Of several races on one granule of shared memory a cell may report the first only.
        let wanted = |shared: bool| judge == Judge::Fast || !shared;
        let bytes = |shared: bool| match shared {
            true => audit.granules.1,
            false => audit.granules.0,
        };
        let granule = |(shared, byte): Byte| (shared, byte / bytes(shared.is_some()));
        let racy_by = |counts: &dyn Fn(&AuditedRace) -> bool| -> BTreeSet<Byte> {
            let conflicts = audit
                .happens_before
                .iter()
                .filter(|conflict| counts(conflict));
            conflicts
                .filter(|conflict| wanted(conflict.shared.is_some()))
                .flat_map(|conflict| {
                    let overlap = self.overlap(text, conflict);
                    overlap.map(|byte| granule((conflict.shared, byte)))
                })
                .collect()
        };
        let racy = racy_by(&|_| true);
        let records = || {
            let all = audit.cells.iter();
            all.filter(|conflict| wanted(conflict.shared.is_some()))
        };
        let reported: BTreeSet<Byte> = records()
            .map(|conflict| granule((conflict.shared, self.offset(conflict))))
            .collect();
        // Of a pair of accesses only the first granule is recorded.
        let missing = |reported: &BTreeSet<Byte>, counts: &dyn Fn(&AuditedRace) -> bool| {
            let pairs: BTreeSet<(bool, u32)> = records()
                .filter(|conflict| counts(conflict))
                .flat_map(|conflict| {
                    let possible = self.possible(text, conflict).into_iter();
                    possible.map(|byte| granule((conflict.shared, byte)))
                })
                .map(|(shared, granule)| (shared.is_some(), granule))
                .collect();
            racy.difference(reported)
                .filter(|(shared, granule)| !pairs.contains(&(shared.is_some(), *granule)))
                .copied()
                .collect::<BTreeSet<Byte>>()
        };
        let missed = missing(&reported, &|_| true);
        let false_alarms: BTreeSet<Byte> = reported.difference(&racy).copied().collect();
        let decided: BTreeSet<Byte> = records()
            .filter(|conflict| !conflict.possible)
            .map(|conflict| granule((conflict.shared, self.offset(conflict))))
            .collect();
        let counters = audit.counters;
        let counted = counters.undecided + counters.evictions + counters.ordered > 0;
        let at = |(shared, granule): Byte| {
            let first = granule * bytes(shared.is_some());
            format!(
                "{judge:?}: byte {first} of {shared:?}, {:?}",
                audit.counters
            )
        };
        let count = |set: &BTreeSet<Byte>| set.len() as u64;
        let (missed_counted, missed_silently) = match counted {
            true => (count(&missed), 0),
            false => (0, count(&missed)),
        };
        let found = count(&racy) - count(&missed);
        match judge {
            Judge::Precise => {
                tally.cells += 1;
                tally.cells_racy += count(&racy);
                tally.cells_found += found;
                tally.cells_counted += missed_counted;
                if let Some(&granule) = false_alarms.first() {
                    return Err((Wrong::FalseAlarm, at(granule)));
                }
                match missed.first() {
                    Some(&granule) if !counted => Err((Wrong::Miss, at(granule))),
                    _ => Ok(()),
                }
            }
            Judge::Fast => {
                tally.fast_racy += count(&racy);
                tally.fast_counted += missed_counted;
                tally.fast_missed += missed_silently;
                let not_sure = missing(&decided, &|conflict| !conflict.possible);
                let surely = count(&racy) - count(&not_sure);
                tally.fast_found += surely;
                tally.fast_possible += found - surely;
                let doubtful = false_alarms.difference(&decided).count() as u64;
                tally.fast_doubtful += doubtful;
                tally.fast_false += count(&false_alarms) - doubtful;
                tally.fast_ordered += audit.counters.ordered;
                if let Some(&granule) = false_alarms.intersection(&decided).next()
                    && audit.release_capable
                {
                    return Err((Wrong::FalseAlarm, at(granule)));
                }
                // Cells know nothing of read-only data and of sizes, nor when a copy ends.
                let plain = racy_by(&|race| {
                    let copies = [race.line, race.earlier].map(|line| text.is_copy(line));
                    race.why == log::Why::Unordered && copies == [false; 2]
                });
                match missed.intersection(&plain).next() {
                    Some(&granule) if !counted => Err((Wrong::Miss, at(granule))),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Offset of a conflict in its memory.
    fn offset(&self, conflict: &AuditedRace) -> u32 {
        match conflict.shared {
            Some(_) => conflict.address as u32,
            None => (conflict.address - self.memory) as u32,
        }
    }

    /// The bytes that two lines both access, by whatever lane.
    fn possible(&self, text: &Text, conflict: &AuditedRace) -> BTreeSet<u32> {
        let shared = conflict.shared.is_some();
        let bytes = |line: u32| -> BTreeSet<u32> {
            let Some(target) = text.target_at(line, shared) else {
                return BTreeSet::new();
            };
            let ranges = (0..LANES).map(|lane| target.range(lane));
            ranges
                .flat_map(|(first, count)| first..first + count)
                .collect()
        };
        let a = bytes(conflict.line);
        match conflict.earlier {
            // A cell may have lost the earlier access; then any will do.
            0 => a,
            earlier => a.intersection(&bytes(earlier)).copied().collect(),
        }
    }

    /// The bytes of the conflict's word that both accesses touch.
    fn overlap(&self, text: &Text, conflict: &AuditedRace) -> std::ops::Range<u32> {
        let shared = conflict.shared.is_some();
        let range = |line, thread: u32| match text.target_at(line, shared) {
            Some(target) => {
                let (first, bytes) = target.range(thread % LANES);
                (first, first + bytes)
            }
            None => (0, 0),
        };
        let a = range(conflict.line, conflict.thread);
        let b = range(conflict.earlier, conflict.earlier_thread.unwrap_or(0));
        let word = self.offset(conflict);
        a.0.max(b.0).max(word)..a.1.min(b.1).min(word + 4)
    }
}
