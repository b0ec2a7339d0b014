//! `replay`: runs the launch of a race again, and shows what its two threads did between their accesses.

use report::escape::printable;
use report::log::Event;
use report::model::{Access, KernelLaunch, Race};
use report::replay::{Replay, render};
use report::source::Sources;
use report::{Context, Log, Report};
use runtime::Model;
use runtime::between::{Steps, Wanted};
use simulated::recorded::{Recorded, Replayed};

use crate::archive::{Saved, damaged, is_archive};
use crate::args::{ReplayArgs, ReplayFormat};
use crate::exit::{BAD_INPUT, INTERNAL, Stop, USAGE};
use crate::{console, output, saved};

/// Replays a race; the exit code is that of races.
pub(crate) fn run(args: &ReplayArgs) -> Result<u8, Stop> {
    let bytes = saved::bytes(&args.run)?;
    if !is_archive(&bytes) {
        let text = format!(
            "{}: no recorded launches; make a file with `cudarun-check --record --save FILE`",
            args.run.display()
        );
        return Err(Stop::new(BAD_INPUT, text));
    }
    let mut archive = Saved::new(&args.run, bytes)?;
    let report = saved::parse(&args.run, &archive.report()?)?;
    let race = choose(&report, args.id.as_deref())?;
    let Some(name) = &race.kernel.recorded else {
        return Err(Stop::new(BAD_INPUT, not_recorded(race)));
    };
    let recorded = archive.launch(name)?;
    let sources = saved::sources(&args.source_root).holding(archive.sources()?);
    let wanted = wanted(race, &recorded);
    let replayed = recorded
        .replay(wanted)
        .map_err(|error| damaged(&args.run, &error))?;
    let seen = compare(race, &report, &recorded, &replayed, &sources)?;
    let replay = replay(race, &seen, replayed, args.trace);
    let color = output::is_colored(args.color, output::Stream::Output);
    match args.format {
        ReplayFormat::Text => {
            let text = render(&replay, &seen.report, &sources, color);
            console::out_as_is(&printable(&text, color));
        }
        ReplayFormat::Json => {
            let text = serde_json::to_string_pretty(&replay).unwrap_or_default();
            console::out_as_is(&format!("{text}\n"));
        }
    }
    match replay.faithful {
        true => Ok(args.error_exitcode),
        false => Err(Stop::new(INTERNAL, unfaithful(race))),
    }
}

/// The race that an id begins, or the first one that can be replayed.
fn choose<'r>(report: &'r Report, id: Option<&str>) -> Result<&'r Race, Stop> {
    let Some(id) = id else {
        let mut races = report.races.iter();
        let found = races.find(|race| race.kernel.recorded.is_some());
        return found.ok_or_else(|| match report.races.first() {
            Some(race) => Stop::new(BAD_INPUT, not_recorded(race)),
            None => Stop::new(BAD_INPUT, "there are no races in it"),
        });
    };
    let (race, whole) = saved::named(report, id)?;
    if race.id != whole {
        let text = format!("{id} is listed under the cause of {}: replay that", race.id);
        return Err(Stop::new(USAGE, text));
    }
    Ok(race)
}

/// Why a race has no recorded launch.
fn not_recorded(race: &Race) -> String {
    let why = match race.work.is_empty() {
        true => "its launch was not recorded; notes of the report say why",
        false => {
            "it is between different launches, copies or fills, or with the host, and single launches are recorded"
        }
    };
    format!("{} cannot be replayed: {why}", race.id)
}

fn unfaithful(race: &Race) -> String {
    format!(
        "{} was not seen again as it was recorded: memory that the host shares with the kernel may have changed while it ran",
        race.id
    )
}

/// The two accesses of a race, if both threads are known.
fn wanted(race: &Race, recorded: &Recorded) -> Option<Wanted> {
    let linear = |[x, y, z]: [u32; 3], size: [u32; 3]| {
        let [x, y, z] = [x, y, z].map(u64::from);
        let [width, height, _] = size.map(u64::from);
        x + width * (y + height * z)
    };
    let of = |access: &Access| {
        let block = linear(access.block?, recorded.arguments.grid);
        let thread = linear(access.thread?, recorded.arguments.block);
        Some((block, u32::try_from(thread).ok()?))
    };
    let [first, second] = &race.accesses;
    Some(Wanted {
        threads: [of(first)?, of(second)?],
        lines: [first.ptx.line, second.ptx.line],
        space: race.space.memory()?,
        address: u64::from_str_radix(race.address.value.strip_prefix("0x")?, 16).ok()?,
    })
}

/// A race that a replay has seen again.
struct Seen {
    race: Race,
    /// What was not as it was recorded.
    differences: Vec<String>,
    /// The report of the replay.
    report: Report,
}

/// What the replay has seen of a race, if it has seen it.
fn compare(
    race: &Race,
    report: &Report,
    recorded: &Recorded,
    replayed: &Replayed,
    sources: &Sources,
) -> Result<Seen, Stop> {
    let context = Context {
        version: report.tool.version.clone(),
        argv: report.run.argv.clone(),
        schedules: 1,
        scoped: recorded.options.model == Some(Model::Scoped),
        ..Context::default()
    };
    let races = replayed.events.iter().filter_map(|event| match event {
        Event::Race(race) => Some(race),
        _ => None,
    });
    let mut differences = replayed.differences.clone();
    for found in races {
        let events = replayed.events.iter();
        let others = events.filter(|event| !matches!(event, Event::Race(_)));
        let log = Log {
            events: others
                .cloned()
                .chain([Event::Race(found.clone())])
                .collect(),
            ..Log::default()
        };
        let report = Report::build(&[log], &context, sources);
        let same = report.races.iter().find(|now| is_same(race, now));
        if let Some(same) = same {
            return Ok(Seen {
                race: same.clone(),
                differences,
                report,
            });
        }
    }
    differences.push(format!("{} was not seen", race.id));
    for what in differences {
        console::say(format_args!("cudarun-check: not the recorded run: {what}"));
    }
    Err(Stop::new(INTERNAL, unfaithful(race)))
}

/// Whether a race is one that was saved: by the same threads at the same address with the same values.
fn is_same(saved: &Race, now: &Race) -> bool {
    let facts = |race: &Race| (race.rule, race.space, race.address.clone());
    // How files are shown, as in where a lock was taken, depends on the options of the run.
    let made = |access: &Access| {
        let (op, by) = (access.op, (access.thread, access.block));
        (op, by, access.value.clone(), access.ptx.clone())
    };
    let all = |race: &Race| race.accesses.each_ref().map(made);
    facts(saved) == facts(now) && all(saved) == all(now)
}

fn replay(saved: &Race, seen: &Seen, replayed: Replayed, trace: bool) -> Replay {
    let now = seen.race.clone();
    let differences = seen.differences.clone();
    let Steps {
        steps,
        left_out,
        accesses,
        more_accesses,
    } = replayed.steps.unwrap_or_default();
    Replay {
        race: Race {
            id: saved.id.clone(),
            fingerprint: saved.fingerprint.clone(),
            kernel: KernelLaunch {
                recorded: saved.kernel.recorded.clone(),
                // The process that replays it is none of the run's.
                process: None,
                ..now.kernel
            },
            processes: Vec::new(),
            ..now
        },
        faithful: differences.is_empty(),
        differences,
        warp_instructions: replayed.stats.warp_instructions,
        steps,
        left_out,
        trace: trace.then_some(accesses),
        trace_left_out: more_accesses,
    }
}
