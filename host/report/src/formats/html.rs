//! One self-contained page: both sides with source and values, who raced, where, what orders the two, and what was
//! checked. It needs no network, and is readable without scripts; a script adds the filter and keys.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::finding::{Finding, Level, Spot};
use super::map;
use crate::coverage;
use crate::escape::printable;
use crate::excerpt;
use crate::model::{Access, Allocation, BarrierAt, Kernel, Race, Report, RunOutcome};
use crate::names;
use crate::source::Sources;
use crate::words::{counted, number};

/// Lines of source above and below an access.
const AROUND: usize = 4;

pub(super) fn render(report: &Report, sources: &Sources, findings: &[Finding<'_>]) -> String {
    let (outcome, class) = match report.summary.outcome {
        RunOutcome::Races => ("races found", "error"),
        RunOutcome::Clean if report.summary.warnings > 0 => ("warnings", "warning"),
        RunOutcome::Clean => ("no races found", "fine"),
        RunOutcome::Incomplete => ("incomplete", "warning"),
        RunOutcome::AppFailed => ("the program failed", "error"),
        RunOutcome::ToolError => ("internal error of cudarun-check", "error"),
    };
    let programs = report.run.programs();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
                title { "cudarun-check: " (programs.join(", ")) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { "cudarun-check " span class={"badge " (class)} { (outcome) } }
                    @for program in &programs { p { code { (program) } } }
                    p.quiet { (about(report)) }
                    p { (coverage::summary(report)) }
                }
                @if !findings.is_empty() { (toolbar(findings)) }
                main {
                    @for (n, finding) in findings.iter().enumerate() {
                        (one(n, finding, report, sources))
                    }
                    p #nothing hidden[true] { "No finding matches the filter." }
                }
                section aria-labelledby="checked" {
                    h2 #checked { "What was checked" }
                    p { (coverage::coverage(report)) }
                    (kernels(&report.coverage.kernels))
                    @if !report.notes.is_empty() {
                        h3 { "Notes" }
                        ul { @for note in &report.notes { li { (note) } } }
                    }
                }
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    };
    // HTML does not allow control characters either.
    printable(&page.into_string(), false).into_owned() + "\n"
}

/// When, where and how long.
fn about(report: &Report) -> String {
    let run = &report.run;
    let devices: Vec<&str> = run.devices.iter().map(|of| of.name.as_str()).collect();
    let mut parts = vec![
        format!("version {}", report.tool.version),
        devices.join(", "),
        run.host.clone(),
        run.start.clone(),
        format!("{:.1} s", run.seconds),
    ];
    if report.tool.schedules > 1 {
        parts.push(counted(report.tool.schedules.into(), "schedule"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

fn toolbar(findings: &[Finding<'_>]) -> Markup {
    let count = |of: &str| findings.iter().filter(|it| class(it) == of).count();
    html! {
        form.toolbar role="search" {
            label { "Filter " input #filter type="search" placeholder="file, function, kernel, rule, id" autocomplete="off"; }
            @for of in ["error", "warning", "note", "known"] {
                @let found = count(of);
                @if found > 0 {
                    label { input type="checkbox" name=(of) checked[of != "known"]; " " (of) " (" (found) ")" }
                }
            }
            span.quiet { kbd { "/" } " filter, " kbd { "j" } " next, " kbd { "k" } " previous" }
        }
    }
}

/// What the filter knows a finding by.
fn class(finding: &Finding<'_>) -> &'static str {
    match (finding.suppressed(), finding.level) {
        (Some(_), _) => "known",
        (None, Level::Error) => "error",
        (None, Level::Warning) => "warning",
        (None, Level::Note) => "note",
    }
}

fn one(n: usize, finding: &Finding<'_>, report: &Report, sources: &Sources) -> Markup {
    let class = class(finding);
    let race = finding.race;
    let id = race.map_or_else(|| format!("finding-{n}"), |race| format!("{}-{n}", race.id));
    html! {
        article id=(id) class=(class) tabindex="-1" hidden[class == "known"] {
            h2 {
                span class={"badge " (class)} { (class) }
                " " (finding.rule) " " (finding.title()) " "
                @if let Some(race) = race { a.quiet href={"#" (id)} { (race.id) } }
            }
            p.message { (finding.message) }
            @if let Some(why) = finding.suppressed() { p.quiet { "Not counted: " (why) } }
            div.sides { @for (n, spot) in finding.spots.iter().enumerate() { (side(n, spot)) } }
            @if !finding.help.is_empty() { p.help { strong { "help: " } (finding.help) } }
            @if let Some(race) = race { (facts(race, report, sources)) }
            details { summary { "As text" } pre { (finding.text) } }
        }
    }
}

/// One side: its source, and what the thread did.
fn side(n: usize, spot: &Spot<'_>) -> Markup {
    let which = if n == 0 { "first" } else { "second" };
    html! {
        section class={"side " (which)} {
            h3 { code { (spot.path) ":" (spot.line) } " " span.quiet { (spot.function) } }
            pre {
                @match &spot.source {
                    Some(text) => (lines(text, spot)),
                    None => { span.line.here { (spot.shown) } }
                }
            }
            p { (spot.label) }
        }
    }
}

fn lines(text: &str, spot: &Spot<'_>) -> Markup {
    let first = spot.line.saturating_sub(AROUND).max(1);
    let shown = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    let shown = shown.skip(first - 1).take(spot.line + AROUND + 1 - first);
    html! {
        @for (number, line) in shown {
            @let here = number == spot.line;
            span.line.here[here] {
                span.number { (number) }
                @match (&spot.columns, here) {
                    (Some(columns), true) => {
                        @let part = |from: usize, to: usize| line.chars().skip(from).take(to - from).collect::<String>();
                        (part(0, columns.start - 1))
                        mark { (part(columns.start - 1, columns.end - 1)) }
                        (part(columns.end - 1, usize::MAX))
                    }
                    _ => (line),
                }
                "\n"
            }
        }
    }
}

fn facts(race: &Race, report: &Report, sources: &Sources) -> Markup {
    let map = map::render(race);
    html! {
        div.facts {
            dl {
                @for (name, what) in excerpt::remarks(race, report, sources) {
                    dt { (name) } dd { (what) }
                }
            }
            @if let Some(of) = &race.address.allocation { (allocation(of, race)) }
            @if let Some(map) = map { (map) }
            @if race.accesses.iter().any(|of| !of.locks.is_empty() || !of.barriers.is_empty()) { (timeline(race)) }
        }
    }
}

/// Where in its allocation the address lies.
fn allocation(of: &Allocation, race: &Race) -> Markup {
    let width = race.accesses.iter().map(|access| access.width).max();
    let share = |bytes: u64| bytes as f64 / of.size.max(1) as f64 * 400.0;
    let (at, wide) = (share(of.offset), share(width.unwrap_or(1).max(1).into()));
    let whole = match of.api.starts_with(names::VARIABLE) {
        true => of.api.clone(),
        false => format!("allocation #{}", of.id),
    };
    let element = { race.address.element.as_ref() }.map(|of| format!("{of}: "));
    let label = format!(
        "{}byte {} of {} of {whole}",
        element.unwrap_or_default(),
        number(of.offset),
        number(of.size)
    );
    html! {
        figure {
            svg role="img" aria-label=(label) width="402" height="16" viewBox="0 0 402 16" {
                rect x="1" y="4" width="400" height="8" class="none" {}
                rect x=(format!("{:.2}", 1.0 + at.min(398.0))) y="1" height="14" class="both"
                    width=(format!("{:.2}", wide.clamp(2.0, 400.0))) {}
            }
            figcaption { (label) }
        }
    }
}

/// What is known of the two threads around their accesses: the first one came first, and each column is in the order of
/// its thread.
fn timeline(race: &Race) -> Markup {
    let [first, second] = &race.accesses;
    let taken = |of: &Access| -> Vec<String> {
        let locks = of.locks.iter();
        locks
            .map(|lock| format!("takes the lock {} at {}", lock.address.value, lock.taken))
            .collect()
    };
    let given = |of: &Access| -> Vec<String> {
        let locks = of
            .locks
            .iter()
            .filter_map(|lock| Some((lock, lock.released.as_ref()?)));
        locks
            .map(|(lock, at)| format!("gives the lock {} back at {at}", lock.address.value))
            .collect()
    };
    let [did, then] = excerpt::labels(race);
    let barrier = |at: &Option<BarrierAt>| {
        at.as_ref()
            .map(|at| format!("barrier of the {} at {}", at.of, at.place))
    };
    let alone = |of_first: bool, what: Option<String>| -> Vec<(bool, String)> {
        what.into_iter().map(|what| (of_first, what)).collect()
    };
    let known = race.accesses.iter().any(|of| !of.barriers.is_empty());
    let has_locks = race.accesses.iter().any(|of| !of.locks.is_empty());
    let rows: Vec<(bool, String)> = [
        alone(true, barrier(&first.barriers.before)),
        taken(first)
            .into_iter()
            .map(|what| (true, what))
            .collect::<Vec<_>>(),
        vec![(true, did)],
        given(first).into_iter().map(|what| (true, what)).collect(),
        alone(true, barrier(&first.barriers.after)),
        alone(false, barrier(&second.barriers.before)),
        taken(second)
            .into_iter()
            .map(|what| (false, what))
            .collect(),
        vec![(false, then)],
        alone(false, barrier(&second.barriers.after)),
    ]
    .concat();
    html! {
        table.timeline {
            caption {
                "The first access came first; each column is in the order of its thread. "
                @if has_locks { "The locks do not order the two accesses, or not in every run. " }
                @if known { "The barriers are the nearest ones that every path of the code comes by." }
            }
            thead { tr { th scope="col" { "first thread" } th scope="col" { "second thread" } } }
            tbody {
                @for (of_first, what) in rows {
                    tr {
                        td { @if of_first { (what) } }
                        td { @if !of_first { (what) } }
                    }
                }
            }
        }
    }
}

fn kernels(all: &[Kernel]) -> Markup {
    let share = |of: &Kernel| {
        let executed = of.executed?;
        let [global, shared] = [executed.global, executed.shared];
        let proved = global.proved() + shared.proved();
        let all = proved + global.checked + shared.checked + global.unchecked + shared.unchecked;
        (all > 0).then(|| format!("{:.1} %", proved as f64 / all as f64 * 100.0))
    };
    html! {
        table {
            thead { tr {
                th scope="col" { "kernel" } th.number scope="col" { "launches" } th scope="col" { "checked" }
                th.number scope="col" { "accesses proved" }
            } }
            tbody {
                @for kernel in all {
                    tr {
                        td { code { (kernel.name) } }
                        td.number { (number(kernel.launches)) }
                        td {
                            @if kernel.instrumented { "yes" }
                            @else { (kernel.why_not.as_deref().unwrap_or("no")) }
                        }
                        td.number { (share(kernel).unwrap_or_default()) }
                    }
                }
            }
        }
    }
}
