//! The report for people: races with source excerpts of both sides, then SUMMARY and COVERAGE.

use std::fmt::Write;

use annotate_snippets::Level as Severity;
use annotate_snippets::{Annotation, AnnotationKind, Group, Renderer, Snippet};

use super::model::{Access, FrameAt, Level, Outcome, Race, Report};
use super::source::{Sources, extent};

/// How to render.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Races beyond this many are only counted.
    pub print_limit: Option<usize>,
    /// Only SUMMARY and COVERAGE when there is nothing to report.
    pub quiet: bool,
}

/// The whole report, ending in a newline.
pub fn render(report: &Report, sources: &Sources, style: Style) -> String {
    let mut text = String::new();
    let shown = style.print_limit.unwrap_or(usize::MAX);
    for race in report.races.iter().take(shown) {
        text.push_str(&render_race(race, report, sources, style.color));
        text.push_str("\n\n");
    }
    let hidden = report.races.len().saturating_sub(shown);
    if hidden > 0 {
        put(
            &mut text,
            format_args!(
                "({} more not shown, --print-limit {shown})\n",
                number(hidden as u64)
            ),
        );
    }
    for failure in &report.failures {
        put(&mut text, format_args!("{}", render_failure(failure)));
    }
    if !style.quiet {
        for note in &report.notes {
            put(&mut text, format_args!("note: {note}"));
        }
    }
    put(&mut text, format_args!("{}", summary(report)));
    put(&mut text, format_args!("{}", coverage(report)));
    text
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

/// One race, without the newline at its end.
fn render_race(race: &Race, report: &Report, sources: &Sources, color: bool) -> String {
    let severity = match race.level {
        Level::Error => Severity::ERROR,
        Level::Warning => Severity::WARNING,
    };
    let title = severity.primary_title(&race.message).id(&race.rule);
    let mut group = Group::with_title(title);
    for snippet in snippets(race, sources) {
        group = group.element(snippet);
    }
    for (name, message) in remarks(race, report) {
        group = group.element(Severity::NOTE.with_name(name).message(message));
    }
    group = group.element(Severity::HELP.message(&race.help));
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}

/// One excerpt per file; a side whose source is not there shows its PTX instruction.
fn snippets<'a>(race: &'a Race, sources: &Sources) -> Vec<Snippet<'a, Annotation<'a>>> {
    let [first, second] = &race.accesses;
    let places = [first, second].map(|access| place(access, sources));
    let labels = labels(race);
    let annotation = |n: usize, span: std::ops::Range<usize>| {
        let kind = if n == 0 {
            AnnotationKind::Primary
        } else {
            AnnotationKind::Context
        };
        kind.span(span).label(labels[n].clone())
    };
    let mut found = Vec::new();
    if let [
        Place {
            path,
            text,
            line,
            span,
        },
        other,
    ] = &places
        && (path, text, line) == (&other.path, &other.text, &other.line)
    {
        let snippet = Snippet::source(text.clone())
            .path(path.clone())
            .line_start(*line);
        found.push(match *span == other.span {
            // Two arrows to the same expression would be one under the other.
            true => snippet.annotation(
                AnnotationKind::Primary
                    .span(span.clone())
                    .label(format!("{}; {}", labels[0], labels[1])),
            ),
            false => snippet
                .annotation(annotation(0, span.clone()))
                .annotation(annotation(1, other.span.clone())),
        });
        return found;
    }
    for (n, place) in places.into_iter().enumerate() {
        let snippet = Snippet::source(place.text)
            .path(place.path)
            .line_start(place.line);
        found.push(snippet.annotation(annotation(n, place.span)));
    }
    found
}

/// What an excerpt shows.
#[derive(PartialEq)]
struct Place {
    path: String,
    text: String,
    /// Number of the first line of `text`.
    line: usize,
    span: std::ops::Range<usize>,
}

fn place(access: &Access, sources: &Sources) -> Place {
    if let Some(frame) = access.frames.first()
        && let Some(text) = sources.text(&frame.file)
        && let Some(span) = extent(&text, frame.line, frame.column)
    {
        return Place {
            path: frame.file.clone(),
            text: text.to_string(),
            line: 1,
            span,
        };
    }
    // The source is not here: say where it is, and show what is known of it.
    let (path, line) = match access.frames.first() {
        Some(frame) => (frame.file.clone(), frame.line),
        None => (access.ptx.module.clone(), access.ptx.line),
    };
    Place {
        path,
        text: access.ptx.text.clone(),
        line: line as usize,
        span: 0..access.ptx.text.len(),
    }
}

fn labels(race: &Race) -> [String; 2] {
    let [first, second] = &race.accesses;
    [first, second].map(|access| {
        let did = match (access.atomic, access.op.as_str()) {
            (true, _) => "updated",
            (_, "st") => "wrote",
            _ => "read",
        };
        let how = match access.sem.as_str() {
            "weak" => String::new(),
            sem => format!(
                " ({sem}, {} scope)",
                access.scope.as_deref().map_or("unknown", scope)
            ),
        };
        let bytes = if access.width == 1 { "byte" } else { "bytes" };
        format!(
            "{} {did} {} {bytes}{how} ({})",
            who(access, race),
            access.width,
            access.role
        )
    })
}

/// The scope in CUDA's words.
fn scope(ptx: &str) -> &str {
    match ptx {
        "cta" => "block",
        "gpu" => "device",
        "sys" => "system",
        other => other,
    }
}

fn who(access: &Access, race: &Race) -> String {
    let index = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    match (access.thread, access.block) {
        (Some(thread), Some(block)) => format!("thread {} block {}", index(thread), index(block)),
        (None, Some(block)) => format!("a thread of block {}", index(block)),
        _ if race.rule == "CR003" => "a thread of another block".to_owned(),
        _ => "another thread".to_owned(),
    }
}

/// The lines behind the excerpts.
fn remarks(race: &Race, report: &Report) -> Vec<(&'static str, String)> {
    let index = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    let kernel = &race.kernel;
    let device = report
        .run
        .devices
        .first()
        .map_or("the device", |device| &device.name);
    let mut lines = vec![(
        "kernel",
        format!(
            "{}  launch #{}, grid {} block {}, {device}",
            kernel.name,
            kernel.launch,
            index(kernel.grid),
            index(kernel.block)
        ),
    )];
    for access in &race.accesses {
        match &access.frames[..] {
            [] => {
                let module = &access.ptx.module;
                let what = format!(
                    "the {} access is at line {} of {module}; compile with -lineinfo to see its source",
                    access.role, access.ptx.line
                );
                lines.push(("source", what));
            }
            [_] => {}
            many => lines.push(("inlined", chain(many))),
        }
    }
    lines.dedup();
    lines.push(("address", address(race)));
    let launches = race.launches.len() as u64;
    let mut seen = format!(
        "{} in {}",
        counted(race.count, "time"),
        counted(launches, "launch")
    );
    if report.tool.schedules > 1 {
        put_in(
            &mut seen,
            format_args!(
                " under {} of {} schedules",
                race.seeds.len(),
                report.tool.schedules
            ),
        );
    }
    lines.push(("seen", seen));
    if let [one, ..] = &race.may_order[..] {
        let more = race.may_order.len() - 1;
        let and = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        lines.push((
            "not decided",
            format!("the kernel may order its threads by {one}{and}"),
        ));
    }
    lines.push(("id", race.id.clone()));
    lines
}

fn put_in(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}

fn chain(frames: &[FrameAt]) -> String {
    let part = |frame: &FrameAt| {
        format!(
            "{}:{} {}",
            frame.file,
            frame.line,
            super::function::base(&frame.function)
        )
    };
    frames.iter().map(part).collect::<Vec<_>>().join(" <- ")
}

fn address(race: &Race) -> String {
    let at = &race.address;
    match &at.allocation {
        Some(a) => format!(
            "{}, offset {} in allocation #{} of {}, {}",
            at.value,
            number(a.offset),
            a.id,
            counted(a.size, "byte"),
            match a.api.strip_prefix("variable ") {
                Some(name) => format!("variable `{}`", crate::names::demangle(name)),
                None => format!("made by {}", a.api),
            }
        ),
        None => format!(
            "{}, in memory that the program did not allocate by a call we know",
            at.value
        ),
    }
}

fn render_failure(failure: &super::model::Failure) -> String {
    let level = if failure.unsupported {
        "warning"
    } else {
        "note"
    };
    let at = failure.frames.first().map_or(String::new(), |frame| {
        format!(" ({}:{})", frame.file, frame.line)
    });
    let times = match failure.count {
        1 => String::new(),
        n => format!(" ({})", counted(n, "time")),
    };
    format!(
        "{level}: a launch of {} failed{times}: {}{at}",
        failure.kernel, failure.message
    )
}

fn summary(report: &Report) -> String {
    let numbers = report.summary;
    let mut text = format!(
        "SUMMARY: cudarun-check: {}",
        counted(numbers.races as u64, "race")
    );
    if numbers.races > 0 {
        let possible = match numbers.warnings {
            0 => String::new(),
            n => format!(", {n} possible and not decided"),
        };
        let errors = counted(numbers.errors as u64, "error");
        put_in(&mut text, format_args!(" ({errors}{possible})"));
    }
    if report.tool.schedules > 1 {
        put_in(
            &mut text,
            format_args!(" under {} schedules", report.tool.schedules),
        );
    }
    let exit = report.run.exit;
    match (exit.code, exit.signal) {
        (Some(code), _) if code != 0 => {
            put_in(&mut text, format_args!("; the program exited with {code}"))
        }
        (_, Some(signal)) => put_in(
            &mut text,
            format_args!("; the program was killed by signal {signal}"),
        ),
        _ => {}
    }
    if numbers.outcome == Outcome::Incomplete {
        let why = match report.coverage.launches.checked {
            0 => "nothing was checked",
            _ => "not everything could be run",
        };
        put_in(&mut text, format_args!("; {why}"));
    }
    text
}

/// What was checked and what was not, in one line.
fn coverage(report: &Report) -> String {
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
    let missing: Vec<String> = kernels
        .iter()
        .filter(|kernel| !kernel.instrumented)
        .map(
            |kernel| match (&kernel.why_not, kernel.ptx_source.as_str()) {
                (_, "none") => format!("no PTX for {}", kernel.name),
                (Some(why), _) => format!("{}: {why}", kernel.name),
                (None, _) => match kernel.skipped_because.first() {
                    Some(why) => format!("{}: {why}", kernel.name),
                    None => format!("{}: not loaded through PTX", kernel.name),
                },
            },
        )
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
    let mut reasons: Vec<String> = Vec::new();
    for why in kernels.iter().flat_map(|kernel| &kernel.skipped_because) {
        if !why.is_empty()
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
    let sum = |of: fn(&super::model::Accesses) -> u64| {
        kernels.iter().map(|k| of(&k.accesses)).sum::<u64>()
    };
    let (total, checked, shared) = (sum(|a| a.total), sum(|a| a.checked), sum(|a| a.shared));
    if total > checked {
        parts.push(format!(
            "{} of {} global accesses unchecked",
            number(total - checked),
            number(total)
        ));
    }
    let unsupported: Vec<String> = kernels
        .iter()
        .flat_map(|k| k.unsupported.iter().cloned())
        .collect();
    for (count, what) in [
        (shared, "shared-memory accesses not checked yet"),
        (unsupported.len() as u64, "instructions not understood"),
        (
            coverage.unchecked_functions.len() as u64,
            "device functions unchecked",
        ),
        (coverage.cells.evictions, "granules evicted"),
        (
            coverage.cells.undecided,
            "conflicts undecided after too many barriers",
        ),
        (
            coverage.cells.outside,
            "accesses outside the checked window",
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
    parts.push(format!(
        "{} dropped",
        counted(coverage.records.dropped, "record")
    ));
    format!("COVERAGE: {}", parts.join(", "))
}

/// The first few of a list.
fn listed(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = all
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if all.len() > SHOWN {
        put_in(&mut text, format_args!("; and {} more", all.len() - SHOWN));
    }
    text
}

/// `1 race`, `2 races`, `1,204 launches`.
fn counted(count: u64, noun: &str) -> String {
    let ending = match (count, noun.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", number(count))
}

/// With commas between thousands.
fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_nouns() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_204), "1,204");
        assert_eq!(number(10_000_000), "10,000,000");
        assert_eq!(counted(1, "launch"), "1 launch");
        assert_eq!(counted(2, "launch"), "2 launches");
        assert_eq!(counted(0, "race"), "0 races");
    }
}
