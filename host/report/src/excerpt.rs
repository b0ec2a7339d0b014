//! One race as text: excerpts of both sides, and what is known besides.

use std::path::Path;
use std::rc::Rc;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level as Severity, Renderer, Snippet};

use crate::advice::{line as line_of, place as place_of};
use crate::log::{self, HostFrame};
use crate::model::{
    Access, Act, Address, FrameAt, KernelLaunch, Level, Misused, Op, Race, RaceKind, Report,
    Semantics, Space, Standing,
};
use crate::names;
use crate::rules::RuleId;
use crate::side::in_library;
use crate::source::{Sources, extent};
use crate::text::{Style, wrapped};
use crate::value;
use crate::words::{counted, number, put_in, scope};

/// Frames of the host that are shown for a launch, innermost first.
const HOST_FRAMES: usize = 3;

/// One race, without the newline at its end.
pub(crate) fn render(race: &Race, report: &Report, sources: &Sources, style: Style) -> String {
    let help = wrapped(&race.help, beside("help", style), "");
    let group = group(race, report, sources, style);
    draw(group.element(Severity::HELP.message(help)), style.color)
}

/// Columns for a remark behind its name.
fn beside(name: &str, style: Style) -> Option<usize> {
    let before = "123456 = : ".len() + name.len();
    style.width.map(|width| width.saturating_sub(before))
}

/// The same without what would order the accesses.
pub(crate) fn render_without_help(
    race: &Race,
    report: &Report,
    sources: &Sources,
    color: bool,
) -> String {
    let style = Style {
        color,
        ..Style::default()
    };
    draw(group(race, report, sources, style), color)
}

fn draw(group: Group<'_>, color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}

fn group<'a>(race: &'a Race, report: &Report, sources: &Sources, style: Style) -> Group<'a> {
    let severity = match race.level {
        Level::Error => Severity::ERROR,
        Level::Warning => Severity::WARNING,
    };
    let message = wrapped(&race.message, beside("warning[CR000]", style), "");
    let title = severity.primary_title(message).id(race.rule.as_str());
    let mut group = Group::with_title(title);
    for snippet in snippets(race, sources) {
        group = group.element(snippet);
    }
    for (name, message) in remarks(race, report, sources) {
        let message = wrapped(&message, beside(name, style), "").into_owned();
        group = group.element(Severity::NOTE.with_name(name).message(message));
    }
    group
}

/// One excerpt per file; a side whose source is not there shows its PTX instruction.
fn snippets<'a>(race: &'a Race, sources: &Sources) -> Vec<Snippet<'a, Annotation<'a>>> {
    let [first, second] = &race.accesses;
    let excerpts = [first, second].map(|access| of_access(access, sources));
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
        Excerpt {
            path,
            text,
            line,
            span,
            ..
        },
        other,
    ] = &excerpts
        && (path, text, line) == (&other.path, &other.text, &other.line)
        && !first.is_call()
    {
        let snippet = Snippet::source(text.to_string())
            .path(path.clone())
            .line_start(*line);
        found.push(match *span == other.span {
            // Two arrows to the same expression would be one under the other.
            true => {
                let label = match race.space {
                    // One instruction is one side.
                    Space::Barrier => labels[1].replace(" (second)", ""),
                    _ => format!("{}; {}", labels[0], labels[1]),
                };
                snippet.annotation(AnnotationKind::Primary.span(span.clone()).label(label))
            }
            false => snippet
                .annotation(annotation(0, span.clone()))
                .annotation(annotation(1, other.span.clone())),
        });
        return found;
    }
    let sides = excerpts.into_iter().zip(&race.accesses).enumerate();
    for (n, (excerpt, _)) in sides.filter(|(_, (_, access))| !access.is_call()) {
        let snippet = Snippet::source(excerpt.text.to_string())
            .path(excerpt.path)
            .line_start(excerpt.line);
        found.push(snippet.annotation(annotation(n, excerpt.span)));
    }
    found
}

/// What an excerpt shows.
#[derive(PartialEq)]
pub(crate) struct Excerpt {
    pub(crate) path: String,
    pub(crate) text: Rc<str>,
    /// Number of the first line of `text`.
    pub(crate) line: usize,
    pub(crate) span: std::ops::Range<usize>,
    pub(crate) shows: Shows,
}

/// What the text of an excerpt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The whole source file.
    Source,
    /// The instruction, or nothing.
    Ptx,
    /// Likewise, for a source that was not found.
    PtxForSource,
}

pub(crate) fn of_access(access: &Access, sources: &Sources) -> Excerpt {
    match access.shown() {
        Some(frame) => of_frame(frame, &access.ptx.text, access.op == Op::Ld, sources),
        None => of_ptx(access.ptx.module.clone(), access.ptx.line, &access.ptx.text),
    }
}

/// The excerpt of a frame; `ptx` stands for a source that is not here. `whole` is as for [`extent`].
pub(crate) fn of_frame(frame: &FrameAt, ptx: &str, whole: bool, sources: &Sources) -> Excerpt {
    let path = sources.shown(&frame.file);
    if let Some(text) = sources.text(&frame.file)
        && let Some(span) = extent(&text, frame.line, frame.column, whole)
    {
        return Excerpt {
            path,
            text,
            line: 1,
            span,
            shows: Shows::Source,
        };
    }
    Excerpt {
        shows: Shows::PtxForSource,
        ..of_ptx(path, frame.line, ptx)
    }
}

/// An excerpt of PTX; `ptx` is the instruction.
pub(crate) fn of_ptx(path: String, line: u32, ptx: &str) -> Excerpt {
    Excerpt {
        path,
        text: ptx.into(),
        line: line as usize,
        span: 0..ptx.len(),
        shows: Shows::Ptx,
    }
}

/// What the thread of each side did.
pub(crate) fn labels(race: &Race) -> [String; 2] {
    let [first, second] = &race.accesses;
    [first, second].map(|access| {
        let did = match access.act() {
            _ if access.op == Op::Bar => {
                let did = match race.kind {
                    RaceKind::Misuse(Misused::ExitBeforeBarrier | Misused::SkippedBarrier) => {
                        "waited here, and other threads of the block never came"
                    }
                    _ => "came here",
                };
                return format!("{} {did} ({})", thread_text(access, race), access.role);
            }
            Act::Atomic => "updated",
            Act::Write => "wrote",
            Act::Copy => "copied",
            Act::Read => "read",
        };
        let how = match access.sem {
            Semantics::Weak => String::new(),
            sem => format!(" ({sem}, {} scope)", access.scope.map_or("unknown", scope)),
        };
        let bytes = match access.width {
            // A fetch through a texture, whose size its instruction does not say.
            0 => String::new(),
            1 => " 1 byte".to_owned(),
            width => format!(" {width} bytes"),
        };
        let value = access.value.as_ref().map(value::shown);
        format!(
            "{} {did}{bytes}{how}{} ({})",
            thread_text(access, race),
            value.map_or(String::new(), |value| format!(": {value}")),
            access.role
        )
    })
}

fn thread_text(access: &Access, race: &Race) -> String {
    let index = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    match (access.thread, access.block) {
        (Some(thread), Some(block)) => format!("thread {} block {}", index(thread), index(block)),
        (None, Some(block)) => format!("a thread of block {}", index(block)),
        _ if race.rule == RuleId::InterBlock => "a thread of another block".to_owned(),
        _ => "another thread".to_owned(),
    }
}

/// The lines behind the excerpts.
pub(crate) fn remarks(
    race: &Race,
    report: &Report,
    sources: &Sources,
) -> Vec<(&'static str, String)> {
    let index = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    // A program that launches nothing has none.
    let device = report.run.devices.first();
    let device = device.map_or(String::new(), |device| format!(", {}", device.name));
    let host = |done: &str, stack: &[HostFrame]| {
        let frames = stack.iter().take(HOST_FRAMES).map(|at| {
            let file = sources.shown(&at.file);
            format!("{file}:{} {}", at.line, at.function)
        });
        let frames: Vec<String> = frames.collect();
        match frames.is_empty() {
            true => String::new(),
            false => format!(", {done} at {}", frames.join(" <- ")),
        }
    };
    let launched = |kernel: &KernelLaunch| {
        let by = kernel.launched_by.as_ref();
        let at = match by {
            None => host("launched", &kernel.host_stack),
            Some(_) => String::new(),
        };
        format!(
            "{}  launch #{}, grid {} block {}{}{at}",
            kernel.name,
            kernel.launch,
            index(kernel.grid),
            index(kernel.block),
            by.map_or(String::new(), |by| format!(", launched by {by}"))
        )
    };
    let mut lines = Vec::new();
    if race.work.is_empty() {
        lines.push(("kernel", format!("{}{device}", launched(&race.kernel))));
    }
    for work in &race.work {
        let what = match (&work.kernel, &work.call) {
            (Some(kernel), _) => launched(kernel),
            (None, Some(call)) if race.rule == RuleId::Host && work.stream == log::HOST => {
                match host("somewhere before its call", &work.host_stack) {
                    at if at.is_empty() => {
                        format!("{call}, somewhere before its next call of CUDA, or before its end")
                    }
                    at => format!("{call}{at}"),
                }
            }
            (None, Some(call)) => format!("{call}{}", host("called", &work.host_stack)),
            (None, None) => "a launch".to_owned(),
        };
        let name = work.role.into();
        let place = match work.stream.as_str() {
            log::HOST => format!("on {}", log::HOST),
            stream => format!("in {stream}{device}"),
        };
        lines.push((name, format!("{what}, {place}")));
    }
    for access in &race.accesses {
        match &access.frames[..] {
            [] if access.is_call() => {}
            [] => {
                let module = &access.ptx.module;
                let what = format!(
                    "the {} access is at line {} of {module}; compile with -lineinfo (numba: `lineinfo=True`) to see its source",
                    access.role, access.ptx.line
                );
                lines.push(("source", what));
            }
            [_] => {}
            many => lines.push(("inlined", chain(many, sources))),
        }
    }
    lines.dedup();
    if let Some(space) = race.space.memory() {
        lines.push(("address", address(&race.address, space)));
    }
    for access in &race.accesses {
        for held in &access.locks {
            let what = format!(
                "the {} thread holds the lock at {}{}; taken at {}",
                access.role,
                address(&held.address, held.space),
                if held.shared { " as a reader" } else { "" },
                held.taken
            );
            lines.push(("lock", what));
        }
    }
    lines.extend(listed(&processes(race, report)).map(|of| ("process", of)));
    let launches = race.launches.len() as u64;
    let mut seen = format!(
        "{}{}",
        if race.at_least { "at least " } else { "" },
        counted(race.count, "time"),
    );
    let of_launches = race.work.is_empty() || race.work.iter().any(|of| of.kernel.is_some());
    if of_launches {
        seen += &format!(" in {}", counted(launches, "launch"));
    }
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
    if let (true, [seed, ..]) = (race.seeds.is_empty(), &race.explored[..]) {
        put_in(
            &mut seen,
            format_args!(", when it ran again under another schedule (--seed {seed})"),
        );
    }
    lines.push(("seen", seen));
    lines.extend(also(race, sources).map(|line| ("same cause", line)));
    if race.same_value {
        let undefined = "a data race is undefined by the memory model, whatever the writes store";
        lines.push(("same value", undefined.to_owned()));
    }
    if race.values_unknown {
        let which = match race.accesses.iter().any(|access| access.value.is_some()) {
            true => "not all are known",
            false => "not compared; `--device sim --mode precise` does so",
        };
        let text = format!("{which}: writes that always store the same value are a warning");
        lines.push(("values", text));
    }
    if let [one, ..] = &race.may_order[..] {
        let more = race.may_order.len() - 1;
        let and = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        lines.push((
            "not decided",
            format!("{one}{and} may order the threads of the kernel"),
        ));
    }
    match race.baseline {
        None => {}
        Some(Standing::New) => lines.push(("baseline", "new".to_owned())),
        Some(Standing::Known) => lines.push(("baseline", "known, does not count".to_owned())),
    }
    lines.extend(not_found(race, sources).map(|what| ("source", what)));
    lines.push(("id", race.id.clone()));
    lines
}

/// Says which files are not shown although their lines are known.
fn not_found(race: &Race, sources: &Sources) -> Option<String> {
    let accesses = race.accesses.iter().filter(|access| !access.is_call());
    let excerpts = accesses.map(|access| of_access(access, sources));
    let missing = excerpts.filter(|excerpt| excerpt.shows == Shows::PtxForSource);
    let mut files: Vec<String> = missing.map(|excerpt| excerpt.path).collect();
    files.dedup();
    (!files.is_empty()).then(|| {
        format!(
            "not found: {}; the PTX instruction is shown instead. `--source-root FOLDER` says where else to look",
            files.join(", ")
        )
    })
}

/// Other pairs of accesses of an entry, and processes, that are shown.
const RELATED: usize = 5;

/// The processes that had a race; none is named where a report is of one process alone.
pub(crate) fn processes(race: &Race, report: &Report) -> Vec<String> {
    let all = race.processes.iter();
    match report.run.has_several_processes() {
        true => all.filter_map(|&of| report.run.process(of)).collect(),
        false => Vec::new(),
    }
}

/// The first few processes, and how many more there are; nothing if there are none.
pub(crate) fn listed(processes: &[String]) -> Option<String> {
    let more = processes.len().saturating_sub(RELATED) as u64;
    let mut shown = processes[..processes.len().min(RELATED)].join(", ");
    if more > 0 {
        put_in(&mut shown, format_args!(" and {} more", number(more)));
    }
    (!processes.is_empty()).then_some(shown)
}

/// The other pairs of accesses that the help repairs.
fn also(race: &Race, sources: &Sources) -> impl Iterator<Item = String> {
    let shown = race.related.iter().take(RELATED).map(move |related| {
        let [first, second] = &related.accesses;
        let times = counted(related.count, "time");
        match related.kind {
            // It has one place, and is no access.
            RaceKind::Misuse(_) => {
                format!("{} at {}, {times}", related.rule, line_of(second, sources))
            }
            _ => format!(
                "{} and {}, {times}",
                place_of(first, sources),
                place_of(second, sources)
            ),
        }
    });
    let more = race.related.len().saturating_sub(RELATED);
    let more = (more > 0).then(|| format!("{more} more pairs of accesses"));
    shown.chain(more)
}

/// Frames of a chain of inlined calls that are shown at its inner end.
const INNER: usize = 3;

/// A header of a library as programs include it; other files as a person here would write them.
fn header(file: &str, sources: &Sources) -> String {
    match file.rsplit_once("/include/") {
        Some((_, name)) if in_library(Path::new(file)) => name.to_owned(),
        _ => sources.shown(file),
    }
}

fn chain(frames: &[FrameAt], sources: &Sources) -> String {
    let part = |frame: &FrameAt| {
        format!(
            "{}:{} {}",
            header(&frame.file, sources),
            frame.line,
            names::base(&frame.function)
        )
    };
    let parts = |frames: &[FrameAt]| frames.iter().map(part).collect::<Vec<_>>().join(" <- ");
    match frames {
        // Chains of library code are long; where they begin and end says enough.
        [_, .., last] if frames.len() > INNER + 2 => format!(
            "{} <- {} more <- {}",
            parts(&frames[..INNER]),
            frames.len() - INNER - 1,
            part(last)
        ),
        _ => parts(frames),
    }
}

pub(crate) fn address(at: &Address, space: log::Space) -> String {
    match (&at.element, &at.allocation) {
        (Some(element), _) => format!("`{element}`, {}", bare_address(at, space)),
        (None, _) => bare_address(at, space),
    }
}

/// The same without the element of a variable.
fn bare_address(at: &Address, space: log::Space) -> String {
    match &at.allocation {
        Some(_) if space == log::Space::Shared => {
            format!("offset {} in the shared memory of the block", at.value)
        }
        Some(a) => format!(
            "{}, offset {} in allocation #{} of {}, {}",
            at.value,
            number(a.offset),
            a.id,
            counted(a.size, "byte"),
            match a.api.strip_prefix(names::VARIABLE) {
                Some(name) => format!("variable `{name}`"),
                None => format!("made by {}", a.api),
            }
        ),
        None if space == log::Space::Shared => {
            format!("offset {} in the shared memory of the block", at.value)
        }
        None => format!(
            "{}, in memory that no allocation call known to the checker has made",
            at.value
        ),
    }
}
