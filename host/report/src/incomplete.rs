//! Why a run that has found nothing may have missed something.
//!
//! A run is complete if every launch that the tool saw ran to its end, all its accesses were checked, and all findings
//! were kept. COVERAGE names kernels without PTX, which cannot be checked. They make a run incomplete only if the user asks
//! for that. The same holds for accesses that cells forget, and conflicts that are not decided or only assumed to be
//! ordered.

use crate::build::Context;
use crate::coverage::host_undecided;
use crate::model::{Coverage, Failure, PtxSource};
use crate::words::{counted, listed, number, shortened};

/// The reasons, for people: what and how much. None for a complete run.
pub(crate) fn reasons(coverage: &Coverage, failures: &[Failure], context: &Context) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(why) = &context.not_run {
        reasons.push(why.clone());
        return reasons;
    }
    if context.unchecked {
        let asking = [
            (context.strict, "--strict"),
            (context.require_coverage.is_some(), "--require-coverage"),
        ];
        let asking = asking.into_iter().filter(|(asks, _)| *asks);
        reasons.extend(asking.map(|(_, option)| format!("{option}: nothing was checked")));
        return reasons;
    }
    if coverage.launches.checked == 0 {
        let unchosen = coverage.unchosen.total();
        reasons.push(match unchosen > 0 && unchosen == coverage.launches.total {
            true => {
                let names = coverage
                    .kernels
                    .iter()
                    .map(|kernel| shortened(&kernel.name));
                let names: Vec<String> = names.collect();
                format!(
                    "nothing was checked: the options select no launch of {}",
                    listed(&names)
                )
            }
            // The order of copies and fills may have been checked.
            false if coverage.launches.total == 0 => "no launch of a kernel was seen".to_owned(),
            false => "nothing was checked".to_owned(),
        });
    }
    for lost in &coverage.lost {
        let by = lost
            .pid
            .map_or(String::new(), |pid| format!(" of process {pid}"));
        let events = counted(lost.events, "event");
        reasons.push(format!("{events}{by} could not be written: {}", lost.why));
    }
    for pid in &coverage.running {
        reasons.push(format!(
            "process {pid} was still running when the program ended"
        ));
    }
    reasons.extend(coverage.missed.iter().cloned());
    if coverage.forgotten > 0 {
        let work = number(coverage.forgotten);
        reasons.push(format!(
            "{work} launches and copies were not compared with all work of other streams, because memory for that ran out"
        ));
    }
    reasons.extend(coverage.unfollowed.unfollowed());
    if coverage.unordered > 0 {
        let work = counted(coverage.unordered, "piece");
        reasons.push(format!(
            "{work} of work that kernels launch not compared with those kernels, as `precise` mode does on the simulated device"
        ));
    }
    if !coverage.incomplete.is_empty() {
        let launches = counted(coverage.incomplete.len() as u64, "launch");
        reasons.push(format!("{launches} had not ended"));
    }
    // A launch that was refused for what it asked has run nothing, and the program knows.
    let ran = failures.iter().filter(|failure| !failure.invalid);
    let of = |unsupported: bool| {
        let those = ran
            .clone()
            .filter(|failure| failure.unsupported == unsupported);
        those.map(|failure| failure.count).sum::<u64>()
    };
    let (failed, unsupported) = (of(false), of(true));
    if failed > 0 {
        let launches = counted(failed, "launch");
        reasons.push(format!(
            "{launches} failed, and later ones may not have run"
        ));
    }
    if unsupported > 0 {
        let launches = counted(unsupported, "launch");
        reasons.push(format!("{launches} could not be run on this device"));
    }
    for (count, one, what) in [
        (
            coverage.launches.unchecked,
            "launch",
            "ran unchecked although the kernel has PTX",
        ),
        (
            coverage.records.dropped,
            "race record",
            "lost because the buffer was full",
        ),
        (
            coverage.cells.outside,
            "access",
            "to memory that the checks do not cover",
        ),
    ] {
        if count > 0 {
            reasons.push(format!("{} {what}", counted(count, one)));
        }
    }
    asked_for(coverage, context, &mut reasons);
    reasons
}

/// What counts under `--strict`, `--require-coverage` and `--model scoped` only.
fn asked_for(coverage: &Coverage, context: &Context, reasons: &mut Vec<String>) {
    let launches = coverage.launches;
    // What the user does not want checked is not missing.
    let unchosen = coverage.unchosen.total();
    let ran = launches.total.saturating_sub(launches.invalid + unchosen);
    let share = 100.0 * launches.checked as f64 / ran.max(1) as f64;
    if let Some(least) = context.require_coverage
        && share < least
    {
        reasons.push(format!(
            "{} of {} checked, {share:.1} %, and --require-coverage asks for {least} %",
            number(launches.checked),
            counted(ran, "launch")
        ));
    }
    if !context.strict {
        if context.scoped {
            let unjudged = coverage.unjudged.of_scoped_model().texts();
            reasons.extend(unjudged.map(|text| format!("--model scoped: {text}")));
        }
        return;
    }
    let without_ptx = coverage.kernels.iter();
    let without_ptx = without_ptx.filter(|kernel| kernel.ptx_source == PtxSource::None);
    let without_ptx = without_ptx.map(|kernel| kernel.launches).sum::<u64>();
    let unknown = coverage
        .kernels
        .iter()
        .map(|kernel| kernel.unsupported.len());
    for (count, one, what) in [
        (
            without_ptx,
            "launch",
            "of kernels without PTX ran unchecked",
        ),
        (
            unknown.sum::<usize>() as u64,
            "instruction",
            "not understood",
        ),
        (
            coverage.cells.evictions,
            "granule",
            "forgotten because the shadow memory is too small",
        ),
        (coverage.cells.undecided, "conflict", "undecided"),
        (
            coverage.cells.ordered,
            "conflict",
            "assumed to be ordered by a release and an acquire or by a barrier of part of the block",
        ),
        (
            coverage.cells.overlapped,
            "launch",
            "shared cells with others running at the same time",
        ),
    ] {
        if count > 0 {
            reasons.push(format!("--strict: {} {what}", counted(count, one)));
        }
    }
    let unjudged = coverage.unjudged.of_races().texts();
    let undecided = host_undecided(coverage);
    reasons.extend(undecided.map(|text| format!("--strict: {text}")));
    reasons.extend(unjudged.map(|text| format!("--strict: {text}")));
    if coverage.uncompared {
        let text = "--strict: launches of different streams were not compared everywhere";
        reasons.push(text.to_owned());
    }
    let assumed = coverage.host_threads.assumed();
    reasons.extend(assumed.map(|assumed| format!("--strict: {assumed}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kernel, LostEvents};

    fn checked(checked: u64, total: u64) -> Coverage {
        let mut coverage = Coverage::default();
        (coverage.launches.checked, coverage.launches.total) = (checked, total);
        coverage
    }

    /// The reasons of a run with what the user asks for.
    fn asked(coverage: &Coverage, strict: bool, require_coverage: Option<f64>) -> String {
        let context = Context {
            strict,
            require_coverage,
            ..Context::default()
        };
        reasons(coverage, &[], &context).join("; ")
    }

    #[test]
    fn a_run_is_complete_unless_something_is_missing() {
        let context = Context::default();
        assert!(reasons(&checked(3, 3), &[], &context).is_empty());
        // A kernel without PTX is no reason by itself.
        assert!(reasons(&checked(1, 3), &[], &context).is_empty());
        let of = |coverage: &Coverage| reasons(coverage, &[], &context).join("; ");
        assert_eq!(of(&checked(0, 0)), "no launch of a kernel was seen");
        assert_eq!(of(&checked(0, 1)), "nothing was checked");
        let mut coverage = checked(1, 1);
        coverage.lost.push(LostEvents {
            pid: Some(7),
            events: 2,
            why: "disk full".to_owned(),
        });
        coverage.running.push(8);
        assert_eq!(
            of(&coverage),
            "2 events of process 7 could not be written: disk full; process 8 was still running when the program ended"
        );
        let failure = |unsupported| Failure {
            unsupported,
            count: 2,
            ..Failure::default()
        };
        let both = reasons(&checked(4, 4), &[failure(false), failure(true)], &context);
        assert_eq!(both.len(), 2, "{both:?}");
        // A launch that was refused for what it asked has missed nothing.
        let refused = Failure {
            invalid: true,
            ..failure(false)
        };
        assert!(reasons(&checked(4, 5), &[refused], &context).is_empty());
    }

    #[test]
    fn a_run_is_incomplete_when_launches_by_kernels_were_not_compared() {
        let mut coverage = checked(2, 2);
        coverage.unordered = 1;
        assert_eq!(
            reasons(&coverage, &[], &Context::default()).join("; "),
            "1 piece of work that kernels launch not compared with those kernels, as `precise` mode does on the simulated device"
        );
    }

    #[test]
    fn a_program_that_is_not_to_be_checked_lacks_nothing() {
        let context = Context {
            unchecked: true,
            ..Context::default()
        };
        assert!(reasons(&checked(0, 3), &[], &context).is_empty());
        let context = Context {
            strict: true,
            require_coverage: Some(50.0),
            ..context
        };
        assert_eq!(
            reasons(&checked(0, 3), &[], &context).join("; "),
            "--strict: nothing was checked; --require-coverage: nothing was checked"
        );
    }

    #[test]
    fn more_can_be_asked_for() {
        let mut coverage = checked(1, 4);
        coverage.kernels.push(Kernel {
            ptx_source: PtxSource::None,
            launches: 3,
            ..Kernel::default()
        });
        let with = |strict, require_coverage| asked(&coverage, strict, require_coverage);
        let without = "--strict: 3 launches of kernels without PTX ran unchecked";
        assert_eq!(with(true, None), without);
        assert_eq!(with(false, Some(25.0)), "");
        assert_eq!(
            with(false, Some(90.0)),
            "1 of 4 launches checked, 25.0 %, and --require-coverage asks for 90 %"
        );
    }

    #[test]
    fn what_was_not_looked_at_or_not_kept_is_missing() {
        let mut coverage = checked(3, 4);
        coverage.launches.unchecked = 1;
        coverage.records.dropped = 1200;
        coverage.cells.outside = 1;
        assert_eq!(
            reasons(&coverage, &[], &Context::default()),
            [
                "1 launch ran unchecked although the kernel has PTX",
                "1,200 race records lost because the buffer was full",
                "1 access to memory that the checks do not cover",
            ]
        );
    }

    #[test]
    fn what_is_forgotten_or_assumed_counts_under_strict() {
        let mut coverage = checked(4, 4);
        coverage.cells.evictions = 5;
        coverage.cells.undecided = 1;
        coverage.cells.ordered = 3;
        coverage.cells.overlapped = 2;
        coverage.uncompared = true;
        coverage.host_threads.pairs = 4;
        assert_eq!(asked(&coverage, false, None), "");
        assert_eq!(
            asked(&coverage, true, None),
            "--strict: 5 granules forgotten because the shadow memory is too small; --strict: 1 conflict undecided; \
             --strict: 3 conflicts assumed to be ordered by a release and an acquire or by a barrier of part of the block; \
             --strict: 2 launches shared cells with others running at the same time; \
             --strict: launches of different streams were not compared everywhere; \
             --strict: 4 pairs of conflicting launches assumed to be ordered by threads of the host"
        );
    }

    #[test]
    fn what_the_user_has_left_out_is_not_missing() {
        let mut coverage = checked(1, 4);
        coverage.unchosen.launch_skip = 2;
        coverage.unchosen.kernel_name = 1;
        coverage.kernels.push(Kernel {
            name: "k(int*)".to_owned(),
            skipped: 3,
            ..Kernel::default()
        });
        let context = Context {
            strict: true,
            require_coverage: Some(100.0),
            ..Context::default()
        };
        assert_eq!(reasons(&coverage, &[], &context), Vec::<String>::new());
        coverage.launches.checked = 0;
        coverage.unchosen.launch_skip = 3;
        assert_eq!(
            reasons(&coverage, &[], &Context::default()).join("; "),
            "nothing was checked: the options select no launch of k(int*)"
        );
    }
}
