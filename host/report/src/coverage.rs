//! The last two lines of a text report: SUMMARY and COVERAGE.

use std::cmp::Reverse;

use crate::model::{Accesses, Coverage, Incomplete, Kernel, PtxSource, Report, RunOutcome};
use crate::words::{counted, listed, number, put_in, shortened};

pub(crate) fn summary(report: &Report) -> String {
    let numbers = report.summary;
    let misuses = numbers.synchronisation_errors;
    let races = (numbers.races - misuses) as u64;
    let mut text = format!("SUMMARY: cudarun-check: {}", counted(races, "race"));
    if misuses > 0 {
        let misuses = counted(misuses as u64, "synchronisation error");
        put_in(&mut text, format_args!(", {misuses}"));
    }
    if numbers.races > 0 {
        let possible = match numbers.warnings {
            0 => String::new(),
            n => format!(", {}", counted(n as u64, "warning")),
        };
        let errors = counted(numbers.errors as u64, "error");
        put_in(&mut text, format_args!(" ({errors}{possible})"));
    }
    if numbers.suppressed > 0 {
        let known = number(numbers.suppressed as u64);
        put_in(&mut text, format_args!(", {known} suppressed"));
    }
    if numbers.baseline > 0 {
        let known = number(numbers.baseline as u64);
        put_in(&mut text, format_args!(", {known} in baseline"));
    }
    let deadlocks = report.failures.iter().filter(|failure| failure.deadlock);
    let deadlocks: u64 = deadlocks.map(|failure| failure.count).sum();
    if deadlocks > 0 {
        put_in(
            &mut text,
            format_args!(", {}", counted(deadlocks, "deadlock")),
        );
    }
    let strays: u64 = report.out_of_bounds.iter().map(|stray| stray.count).sum();
    if strays > 0 {
        let strays = counted(strays, "access");
        put_in(&mut text, format_args!(", {strays} out of bounds"));
    }
    if report.tool.schedules > 1 {
        put_in(
            &mut text,
            format_args!(" under {} schedules", report.tool.schedules),
        );
    }
    let exit = report.run.exit;
    match (exit.code, exit.signal) {
        _ if report.run.timed_out => text.push_str("; stopped when the time of --timeout was over"),
        (Some(code), _) if code != 0 => {
            put_in(&mut text, format_args!("; the program exited with {code}"))
        }
        (_, Some(signal)) => put_in(
            &mut text,
            format_args!("; the program was killed by signal {signal}"),
        ),
        _ => {}
    }
    if report.run.interrupted {
        text.push_str("; the run was interrupted");
    }
    if !report.tool.errors.is_empty() {
        let errors = counted(report.tool.errors.len() as u64, "error");
        put_in(
            &mut text,
            format_args!("; {errors} of cudarun-check itself"),
        );
    }
    // Races decide the exit code unless the user lets them pass.
    let incomplete = match numbers.outcome {
        RunOutcome::Incomplete => true,
        RunOutcome::Races => !report.coverage.incomplete_because.is_empty(),
        RunOutcome::Clean | RunOutcome::AppFailed | RunOutcome::ToolError => false,
    };
    let why = match incomplete {
        true => report.coverage.incomplete_because.join("; "),
        false => String::new(),
    };
    // A number of races that rests on an assumption does not stand alone.
    if let Some(assumed) = report.coverage.host_threads.assumed()
        && !why.contains(&assumed)
    {
        put_in(&mut text, format_args!("; {assumed}"));
    }
    if incomplete {
        put_in(&mut text, format_args!("; incomplete: {why}"));
    }
    text
}

/// What was checked and what was not, in one line.
pub(crate) fn coverage(report: &Report) -> String {
    let coverage = &report.coverage;
    let kernels = &coverage.kernels;
    let instrumented = kernels.iter().filter(|kernel| kernel.instrumented).count();
    let mut parts = vec![match kernels.len() {
        0 => "no kernels seen".to_owned(),
        all => format!(
            "{instrumented}/{} instrumented",
            counted(all as u64, "kernel")
        ),
    }];
    let missing = kernels.iter().filter(|kernel| !kernel.instrumented);
    let mut missing: Vec<&Kernel> = missing.collect();
    missing.sort_by_key(|kernel| Reverse(kernel.launches));
    let missing: Vec<String> = missing
        .into_iter()
        .map(|kernel| {
            let name = shortened(&kernel.name);
            match (&kernel.why_not, kernel.ptx_source) {
                (_, PtxSource::None) if kernel.launches > 0 => {
                    let launches = counted(kernel.launches, "launch");
                    format!("no PTX for {name}, {launches}")
                }
                (_, PtxSource::None) => format!("no PTX for {name}"),
                (Some(why), _) => format!("{name}: {why}"),
                (None, _) => match kernel.skipped_because.first() {
                    Some(why) => format!("{name}: {why}"),
                    None => format!("{name}: not loaded through PTX"),
                },
            }
        })
        .collect();
    if !missing.is_empty() {
        parts[0] += &format!(" ({})", listed(&missing));
    }
    let launches = coverage.launches;
    parts.push(match launches.total - launches.checked {
        0 => format!("{} checked", counted(launches.checked, "launch")),
        _ => format!(
            "{} of {} checked",
            number(launches.checked),
            counted(launches.total, "launch")
        ),
    });
    let proved: u64 = kernels.iter().map(|kernel| kernel.judged_by.proof).sum();
    if proved > 0 {
        let last = parts.len() - 1;
        parts[last] += &format!(", {} by proof", number(proved));
    }
    let known: u64 = kernels.iter().map(|kernel| kernel.judged_by.known).sum();
    if known > 0 {
        let last = parts.len() - 1;
        parts[last] += &format!(", {} with only known races", number(known));
    }
    let out_of_steps: u64 = kernels.iter().map(|of| of.proofs.out_of_steps).sum();
    if out_of_steps > 0 {
        let last = parts.len() - 1;
        let launches = counted(out_of_steps, "launch");
        parts[last] += &format!(", {launches} whose proof was given up");
    }
    let mut reasons: Vec<String> = coverage.unchosen.texts().collect();
    for why in kernels.iter().flat_map(|kernel| &kernel.skipped_because) {
        if !why.is_empty()
            && !coverage.unchosen.has(why)
            && !reasons.contains(why)
            && !missing.iter().any(|m| m.contains(why.as_str()))
        {
            reasons.push(why.clone());
        }
    }
    if !reasons.is_empty() {
        let last = parts.len() - 1;
        parts[last] += &format!(" ({})", listed(&reasons));
    }
    let explored: u64 = kernels.iter().map(|kernel| kernel.explored).sum();
    if explored > 0 {
        parts.push(format!(
            "{} also run under other schedules",
            number(explored)
        ));
    }
    if !coverage.incomplete.is_empty() {
        let named: Vec<String> = coverage.incomplete.iter().map(incomplete).collect();
        let count = counted(named.len() as u64, "launch");
        parts.push(format!("{count} incomplete: {}", named.join(", ")));
    }
    if launches.failed > 0 {
        parts.push(format!("{} failed", counted(launches.failed, "launch")));
    }
    if launches.invalid > 0 {
        parts.push(format!("{} refused", counted(launches.invalid, "launch")));
    }
    let strays: u64 = report.out_of_bounds.iter().map(|stray| stray.count).sum();
    if strays > 0 {
        let strays = counted(strays, "access");
        parts.push(format!("{strays} out of bounds skipped"));
    }
    for lost in &coverage.lost {
        let events = counted(lost.events, "event");
        parts.push(format!("{events} lost ({})", lost.why));
    }
    if !coverage.missed.is_empty() {
        let parts_of_run = counted(coverage.missed.len() as u64, "part");
        parts.push(format!("{parts_of_run} of the run missed"));
    }
    for pid in &coverage.running {
        parts.push(format!("process {pid} not seen to its end"));
    }
    if coverage.forgotten > 0 {
        let work = number(coverage.forgotten);
        parts.push(format!(
            "{work} launches and copies not compared with all other streams"
        ));
    }
    parts.extend(coverage.host_threads.assumed_line());
    parts.extend(coverage.unfollowed.unfollowed());
    if coverage.unordered > 0 {
        let work = counted(coverage.unordered, "piece");
        parts.push(format!(
            "order between kernels and the work that they launch not checked ({work} of work)"
        ));
    }
    parts.extend(only_space(coverage));
    parts.extend(coverage.unjudged.texts());
    if coverage.uncompared {
        parts.push("launches of different streams not compared everywhere".to_owned());
    }
    if coverage.host_unwatched {
        let text =
            "accesses by the host to managed or page-locked memory not looked for everywhere";
        parts.push(text.to_owned());
    }
    parts.extend(host_undecided(coverage));
    if report.tool.sample > 1 {
        parts.push(format!("1 of {} granules checked", report.tool.sample));
    }
    let sum = |of: fn(&Accesses) -> u64| kernels.iter().map(|k| of(&k.accesses)).sum::<u64>();
    let (total, checked, shared) = (sum(|a| a.total), sum(|a| a.checked), sum(|a| a.shared));
    if total > checked {
        parts.push(format!(
            "{} of {} global accesses unchecked",
            number(total - checked),
            number(total)
        ));
    }
    let mut unsupported: Vec<String> = Vec::new();
    for what in kernels.iter().flat_map(|k| &k.unsupported) {
        if !unsupported.contains(what) {
            unsupported.push(what.clone());
        }
    }
    for (count, what) in [
        (shared, "shared-memory accesses not checked"),
        (unsupported.len() as u64, "instructions not understood"),
        (
            coverage.unchecked_functions.len() as u64,
            "device functions unchecked",
        ),
        (
            coverage.cells.evictions,
            "granules (1 to 4 bytes) forgotten because the shadow memory is too small",
        ),
        (coverage.cells.undecided, "conflicts undecided"),
        (
            coverage.cells.outside,
            "accesses outside the checked window",
        ),
        (
            coverage.cells.overlapped,
            "launches that shared cells with others running at the same time",
        ),
        (
            coverage.cells.unreleased,
            "conflicts reported because no release or acquire orders them",
        ),
        (
            coverage.cells.ordered,
            "conflicts assumed to be ordered by a release and an acquire or by a barrier of part of the block",
        ),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", number(count)));
        }
    }
    if !unsupported.is_empty()
        && let Some(part) = parts
            .iter_mut()
            .find(|part| part.ends_with("not understood"))
    {
        *part += &format!(" ({})", listed(&unsupported));
    }
    parts.extend(coverage.executed.and_then(|executed| executed.text()));
    parts.push(format!(
        "{} dropped",
        counted(coverage.records.dropped, "record")
    ));
    format!("COVERAGE: {}", parts.join(", "))
}

/// How many pages the host may have used that work in flight wrote a part of.
pub(crate) fn host_undecided(coverage: &Coverage) -> Option<String> {
    let pages = counted(coverage.host_undecided, "page");
    let text = format!("host touched {pages} that work in flight wrote in part, not decided");
    (coverage.host_undecided > 0).then_some(text)
}

/// The memory that `--space` has chosen.
fn only_space(coverage: &Coverage) -> Option<String> {
    match &coverage.spaces[..] {
        [only] => Some(format!("races in {only} memory only (--space)")),
        _ => None,
    }
}

/// What the options of a run have left out, and where it may therefore lack races.
pub fn left_out(report: &Report) -> Vec<String> {
    let coverage = &report.coverage;
    let mut parts = Vec::new();
    if coverage.launches.checked == 0 {
        parts.push("nothing was checked".to_owned());
    } else {
        let unchosen = coverage.unchosen.texts();
        parts.extend(unchosen.map(|why| format!("launches {why}")));
    }
    parts.extend(only_space(coverage));
    if report.tool.sample > 1 {
        parts.push(format!("1 of {} granules checked", report.tool.sample));
    }
    parts
}

/// Which launch had not ended, and how far it had come.
pub(crate) fn incomplete(of: &Incomplete) -> String {
    let far = match of.ended {
        Some(ended) => format!(
            ", after {} of {}",
            number(ended),
            counted(of.blocks, "block")
        ),
        None => String::new(),
    };
    format!("#{} of {}{far}", of.launch, of.kernel)
}
