//! Several reports as one: those of the ranks, shards or schedules of a program.

use std::collections::{BTreeMap, BTreeSet};

use crate::entries::order;
use crate::executed::Executed;
use crate::judges::Judges;
use crate::model::{
    Bin, Cells, Clocks, Coverage, DeviceName, Failure, Kernel, Latency, Launches, Level, PtxSource,
    Race, Records, Related, Report, RunOutcome, SCHEMA_VERSION, Stats, Suppression, Unchosen,
    Unjudged,
};
use crate::proofs::Proofs;
use crate::stray::Stray;
use crate::verified;

/// Adds the counters of a structure to another one's, and binds its other fields, behind the semicolon. The compiler
/// checks that none is forgotten.
macro_rules! add {
    ($from:expr => $to:expr, $of:ident { $($field:ident),* $(; $($other:ident),*)? }) => {
        let $of { $($field,)* $($($other),*)? } = $from;
        $($to.$field += $field;)*
    };
}

impl Report {
    /// One report of several: the same race, by its fingerprint, is one entry with the counts of all; coverage is added;
    /// the outcome is the worst.
    pub fn merge(reports: Vec<Self>) -> Self {
        let schedules = schedules(&reports);
        let mut reports = reports.into_iter();
        let mut merged = reports.next().unwrap_or_default();
        let mut several = false;
        for report in reports {
            several = true;
            merged.add(report);
        }
        if several {
            merged.schema_version = SCHEMA_VERSION.to_owned();
            merged.tool.schedules = schedules;
            let by = |race: &Race| (race.is_in_baseline(), race.level, order(race.rule));
            merged.races.sort_by_key(by);
            merged.count();
        }
        merged
    }

    fn add(&mut self, other: Self) {
        let Self {
            schema_version: _,
            tool,
            run,
            summary,
            coverage,
            races,
            suppressions,
            failures,
            out_of_bounds,
            verified,
            notes,
            stats,
        } = other;
        self.tool.seed = self.tool.seed.min(tool.seed);
        self.tool.sample = self.tool.sample.max(tool.sample);
        union(&mut self.tool.errors, tool.errors);
        if self.run.exit.code == Some(0) {
            self.run.exit = run.exit;
        }
        for argv in std::iter::once(run.argv).chain(run.others) {
            if argv != self.run.argv && !self.run.others.contains(&argv) {
                self.run.others.push(argv);
            }
        }
        self.run.pids.extend(run.pids);
        let before = self.run.processes.len();
        self.run.processes.extend(run.processes);
        if !self.run.host.split(", ").any(|host| host == run.host) {
            self.run.host = format!("{}, {}", self.run.host, run.host);
        }
        // The format of times sorts as they do.
        if !run.start.is_empty() && (self.run.start.is_empty() || run.start < self.run.start) {
            self.run.start = run.start;
        }
        self.run.seconds += run.seconds;
        self.run.interrupted |= run.interrupted;
        self.run.timed_out |= run.timed_out;
        for DeviceName { name, .. } in run.devices {
            let devices = &mut self.run.devices;
            if !devices.iter().any(|known| known.name == name) {
                let index = devices.len() as u32;
                devices.push(DeviceName { index, name });
            }
        }
        self.summary.warnings_fail |= summary.warnings_fail;
        self.summary.findings_pass &= summary.findings_pass;
        self.summary.suppressions_fail |= summary.suppressions_fail;
        let outcomes = [self.summary.outcome, summary.outcome];
        if let Some(worst) = outcomes.into_iter().max_by_key(|&outcome| badness(outcome)) {
            self.summary.outcome = worst;
        }
        add_coverage(&mut self.coverage, coverage);
        for mut race in races {
            for index in race.process_indices() {
                *index += before;
            }
            add_entry(&mut self.races, race);
        }
        for suppression in suppressions {
            let place = |of: &Suppression| (of.source.clone(), of.line, of.what.clone());
            let same = |known: &&mut Suppression| place(known) == place(&suppression);
            match self.suppressions.iter_mut().find(same) {
                Some(known) => {
                    known.pairs += suppression.pairs;
                    known.expired |= suppression.expired;
                    known.other_kernels &= suppression.other_kernels;
                }
                None => self.suppressions.push(suppression),
            }
        }
        for failure in failures {
            let same = |known: &&mut Failure| {
                let count = known.count;
                let counted = Failure {
                    count,
                    ..failure.clone()
                };
                **known == counted
            };
            match self.failures.iter_mut().find(same) {
                Some(known) => known.count += failure.count,
                None => self.failures.push(failure),
            }
        }
        for of in verified {
            verified::join(&mut self.verified, of);
        }
        for stray in out_of_bounds {
            let key = |stray: &Stray| {
                let Stray { op, space, .. } = stray;
                let place = (stray.kernel.clone(), stray.ptx_line);
                (place, *op, *space)
            };
            let same = |known: &&mut Stray| key(known) == key(&stray);
            match self.out_of_bounds.iter_mut().find(same) {
                Some(known) => known.count += stray.count,
                None => self.out_of_bounds.push(stray),
            }
        }
        union(&mut self.notes, notes);
        add_stats(&mut self.stats, stats);
    }
}

fn badness(outcome: RunOutcome) -> u32 {
    match outcome {
        RunOutcome::Clean => 0,
        RunOutcome::Incomplete => 1,
        RunOutcome::AppFailed => 2,
        RunOutcome::Races => 3,
        RunOutcome::ToolError => 4,
    }
}

/// How many different seeds were run.
fn schedules(reports: &[Report]) -> u32 {
    let tools = reports.iter().map(|report| &report.tool);
    let mut ranges: Vec<(u64, u64)> = tools
        .map(|tool| {
            let end = tool.seed.saturating_add(u64::from(tool.schedules));
            (tool.seed, end)
        })
        .collect();
    ranges.sort_unstable();
    let (mut count, mut reached) = (0, 0);
    for (start, end) in ranges {
        count += end.saturating_sub(start.max(reached));
        reached = reached.max(end);
    }
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Adds what is not there yet.
fn union<T: PartialEq>(to: &mut Vec<T>, from: Vec<T>) {
    for one in from {
        if !to.contains(&one) {
            to.push(one);
        }
    }
}

/// Where a race is among the entries: an entry of its own, or another pair of accesses of one.
fn find(races: &[Race], fingerprint: &str) -> Option<(usize, Option<usize>)> {
    let entry = races
        .iter()
        .position(|race| race.fingerprint == fingerprint);
    entry.map(|entry| (entry, None)).or_else(|| {
        races.iter().enumerate().find_map(|(entry, race)| {
            let mut related = race.related.iter();
            let at = related.position(|related| related.fingerprint == fingerprint)?;
            Some((entry, Some(at)))
        })
    })
}

/// Which of two entries is to be shown: the lesser one, by the first field in which they differ.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_ignored: bool,
    /// The worse one is less.
    level: Level,
    same_value: bool,
}

fn rank(race: &Race) -> Rank {
    Rank {
        is_ignored: !race.counts(),
        level: race.level,
        same_value: race.same_value,
    }
}

fn add_entry(races: &mut Vec<Race>, mut race: Race) {
    let related = std::mem::take(&mut race.related);
    let standing = race.baseline;
    let counts = race.counts();
    let at = match find(races, &race.fingerprint) {
        None => {
            races.push(race);
            races.len() - 1
        }
        Some((entry, None)) => {
            join(&mut races[entry], race);
            entry
        }
        Some((entry, Some(at))) if rank(&race) < rank(&races[entry]) => {
            // What does not count, or is a warning, does not hide an error.
            let related = races[entry].related.remove(at);
            race.count += related.count;
            add_kernels(&mut race.kernels, related.kernels);
            races.push(race);
            races.len() - 1
        }
        Some((entry, Some(at))) => {
            add_pair(
                &mut races[entry].related[at],
                Related {
                    level: race.level,
                    same_value: race.same_value,
                    count: race.count,
                    kernels: race.kernels,
                    ..Related::default()
                },
            );
            entry
        }
    };
    for pair in related {
        match find(races, &pair.fingerprint) {
            None => races[at].related.push(pair),
            // What counts in one report counts.
            Some((entry, Some(of))) if counts && !races[entry].counts() => {
                let mut pair = pair;
                let known = races[entry].related.remove(of);
                pair.count += known.count;
                add_kernels(&mut pair.kernels, known.kernels);
                races[at].related.push(pair);
            }
            Some((entry, None)) => {
                let known = &mut races[entry];
                if counts && !known.counts() {
                    known.suppressed_by = None;
                    known.baseline = standing;
                }
                known.count += pair.count;
                known.same_value &= pair.same_value;
                known.level = known.level.min(pair.level);
                add_kernels(&mut known.kernels, pair.kernels);
            }
            Some((entry, Some(at))) => {
                add_pair(&mut races[entry].related[at], pair);
            }
        }
    }
}

fn add_pair(pair: &mut Related, other: Related) {
    pair.level = pair.level.min(other.level);
    pair.same_value &= other.same_value;
    pair.count += other.count;
    add_kernels(&mut pair.kernels, other.kernels);
}

/// Adds kernels to others, in their order. A report of an older version does not say all, so neither does the sum.
fn add_kernels(to: &mut Vec<String>, from: Vec<String>) {
    union(to, from);
    to.sort_unstable();
}

/// Adds an entry to one of the same race.
fn join(known: &mut Race, mut race: Race) {
    if rank(&race) < rank(known) {
        race.related = std::mem::take(&mut known.related);
        std::mem::swap(known, &mut race);
    }
    known.count += race.count;
    known.at_least |= race.at_least;
    known.launches.extend(race.launches);
    union(&mut known.processes, race.processes);
    union(&mut known.seeds, race.seeds);
    union(&mut known.explored, race.explored);
    add_kernels(&mut known.kernels, race.kernels);
    union(&mut known.may_order, race.may_order);
    if !race.same_value {
        known.values_unknown &= race.values_unknown;
    }
}

fn add_coverage(to: &mut Coverage, from: Coverage) {
    let Coverage {
        kernels,
        unchecked_functions,
        launches,
        incomplete,
        lost,
        running,
        forgotten,
        host_threads,
        unfollowed,
        uncompared,
        host_unwatched,
        host_undecided,
        unordered,
        unchosen,
        spaces,
        unjudged,
        missed,
        incomplete_because,
        records,
        executed,
        cells,
        clocks,
    } = from;
    let mut known: BTreeMap<String, usize> = (to.kernels.iter().enumerate())
        .map(|(at, kernel)| (kernel.mangled.clone(), at))
        .collect();
    for kernel in kernels {
        match known.get(&kernel.mangled) {
            Some(&at) => add_kernel(&mut to.kernels[at], kernel),
            None => {
                known.insert(kernel.mangled.clone(), to.kernels.len());
                to.kernels.push(kernel);
            }
        }
    }
    to.kernels.sort_by(|a, b| a.mangled.cmp(&b.mangled));
    union(&mut to.unchecked_functions, unchecked_functions);
    add!(launches => to.launches, Launches { total, checked, failed, invalid, unchecked });
    to.incomplete.extend(incomplete);
    to.lost.extend(lost);
    to.running.extend(running);
    to.forgotten += forgotten;
    to.host_threads.extend(host_threads);
    to.unfollowed.extend(unfollowed);
    to.uncompared |= uncompared;
    to.host_unwatched |= host_unwatched;
    to.host_undecided += host_undecided;
    to.unordered += unordered;
    add!(unchosen => to.unchosen, Unchosen { kernel_name, exclude_kernel, nvtx_range, launch_skip, launch_count, launch_sample, time_budget });
    union(&mut to.spaces, spaces);
    add!(unjudged => to.unjudged, Unjudged { everything, locks, versions, barriers, copies, sizes, read_only });
    union(&mut to.missed, missed);
    union(&mut to.incomplete_because, incomplete_because);
    add!(records => to.records, Records { conflicts, emitted, dropped });
    Executed::add(&mut to.executed, executed);
    add!(cells => to.cells, Cells { evictions, undecided, outside, unreleased, ordered, cleared, overlapped });
    add!(clocks => to.clocks, Clocks { launches, accesses, synchronisations, warps, left_converged, converged, diverged, nested_diverged, sparse; peak_resident });
    to.clocks.peak_resident = to.clocks.peak_resident.max(peak_resident);
}

/// Adds what another run says of a kernel. It counts as checked only where it is in both.
fn add_kernel(to: &mut Kernel, from: Kernel) {
    let Kernel {
        name: _,
        mangled: _,
        ptx_source,
        module,
        instrumented,
        why_not,
        accesses,
        unsupported,
        may_order,
        launches,
        explored,
        judged_by,
        proofs,
        executed,
        skipped,
        skipped_because,
    } = from;
    if ptx_source == PtxSource::None {
        to.ptx_source = ptx_source;
    }
    if to.module.is_empty() {
        to.module = module;
    }
    to.instrumented &= instrumented;
    to.why_not = to.why_not.take().or(why_not);
    to.accesses.checked = match (to.accesses.total, accesses.total) {
        (0, _) => accesses.checked,
        (_, 0) => to.accesses.checked,
        _ => to.accesses.checked.min(accesses.checked),
    };
    to.accesses.total = to.accesses.total.max(accesses.total);
    to.accesses.shared = to.accesses.shared.max(accesses.shared);
    union(&mut to.unsupported, unsupported);
    union(&mut to.may_order, may_order);
    to.launches += launches;
    to.explored += explored;
    add!(judged_by => to.judged_by, Judges { happens_before, journal, cells, proof, known });
    add!(proofs => to.proofs, Proofs { launches, whole, read_only, private, barriers, atomic, unproved, out_of_steps, new, nanoseconds; longest_nanoseconds, reasons });
    to.proofs.longest_nanoseconds = to.proofs.longest_nanoseconds.max(longest_nanoseconds);
    let known: BTreeSet<u32> = to.proofs.reasons.iter().map(|of| of.ptx_line).collect();
    let new = reasons.into_iter();
    let new = new.filter(|reason| !known.contains(&reason.ptx_line));
    to.proofs.reasons.extend(new);
    Executed::add(&mut to.executed, executed);
    to.skipped += skipped;
    union(&mut to.skipped_because, skipped_because);
}

fn add_stats(to: &mut Stats, from: Stats) {
    add!(from => to, Stats { warp_instructions, thread_instructions, global_sectors, device_fences, launch_seconds, rewrite_seconds; program_bytes, shadow_bytes, latencies });
    to.program_bytes = to.program_bytes.max(program_bytes);
    to.shadow_bytes = to.shadow_bytes.max(shadow_bytes);
    for Latency { kernel, bins } in latencies {
        let known = to.latencies.iter().position(|known| known.kernel == kernel);
        let Some(at) = known else {
            to.latencies.push(Latency { kernel, bins });
            continue;
        };
        let known = &mut to.latencies[at].bins;
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        for bin in known.iter().chain(&bins) {
            *all.entry(bin.nanoseconds).or_default() += bin.launches;
        }
        let bin = |(nanoseconds, launches)| Bin {
            nanoseconds,
            launches,
        };
        *known = all.into_iter().map(bin).collect();
    }
}
