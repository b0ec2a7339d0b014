//! Counts in Prometheus' text format, for the textfile collector of its node exporter.

use crate::model::{Report, RunOutcome};
use crate::words::put_in;

pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    let summary = report.summary;
    let launches = report.coverage.launches;
    let count = |value: usize| value as f64;
    for (name, help, value) in [
        (
            "races",
            "Entries of races and synchronisation errors that count",
            count(summary.races),
        ),
        ("errors", "Those that are errors", count(summary.errors)),
        (
            "warnings",
            "Those that are warnings",
            count(summary.warnings),
        ),
        (
            "suppressed",
            "Those that a suppression hides",
            count(summary.suppressed),
        ),
        (
            "in_baseline",
            "Those that the baseline has",
            count(summary.baseline),
        ),
        ("launches", "Kernel launches seen", launches.total as f64),
        (
            "launches_checked",
            "Kernel launches that were checked",
            launches.checked as f64,
        ),
        (
            "launches_failed",
            "Kernel launches that failed",
            launches.failed as f64,
        ),
        (
            "records_dropped",
            "Race records that were lost",
            report.coverage.records.dropped as f64,
        ),
        (
            "run_seconds",
            "Wall time of all schedules",
            report.run.seconds,
        ),
    ] {
        put_in(
            &mut text,
            format_args!(
                "# HELP cudarun_check_{name} {help}.\n# TYPE cudarun_check_{name} gauge\ncudarun_check_{name} {value}\n"
            ),
        );
    }
    put_in(
        &mut text,
        format_args!(
            "# HELP cudarun_check_outcome How the run came out: 1 for what it is.\n# TYPE cudarun_check_outcome gauge\n"
        ),
    );
    for (outcome, name) in [
        (RunOutcome::Clean, "clean"),
        (RunOutcome::Races, "races"),
        (RunOutcome::Incomplete, "incomplete"),
        (RunOutcome::AppFailed, "app_failed"),
        (RunOutcome::ToolError, "tool_error"),
    ] {
        let value = u8::from(report.summary.outcome == outcome);
        put_in(
            &mut text,
            format_args!("cudarun_check_outcome{{outcome=\"{name}\"}} {value}\n"),
        );
    }
    text
}
