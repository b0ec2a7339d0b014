//! Races: what is merged, and what is said of each.

use report::log::{
    Apart, Event, Frame, Level, Neighbour, Op, Point, Race, Repair, Space, Value, Why, Work,
};
use report::model::RunOutcome;
use report::source::Sources;
use report::text::{self, Style};
use report::{Context, Log, Report};

use crate::made::*;

#[test]
fn both_sides_are_shown_with_what_there_is_to_know() {
    let (_folder, sources) = sources();
    let report = Report::build(&[log(None, vec![race(1, 2, 3, 5)])], &context(), &sources);
    let text = render(&report, &sources);
    for part in [
        "error[CR003]: inter-block race on global memory: a write and a read of the same address are not ordered",
        " --> count.cu:2:5",
        "x[0]++;",
        "^^^^ thread (7,0,0) block (0,0,0) wrote 4 bytes (first)",
        "int y = x[1];",
        "thread (7,0,0) block (1,0,0) read 4 bytes (second)",
        "kernel: count(int*)  launch #1, grid (2,1,1) block (32,1,1), simulated sm_90",
        "0x200000000104, offset 4 in allocation #2 of 1,024 bytes, made by cudaMalloc",
        "5 times in 1 launch",
        "help: put a barrier of the grid between the two accesses (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there",
        "SUMMARY: cudarun-check: 1 race (1 error)",
        "COVERAGE: 1/1 kernel instrumented, 1 launch checked, 2 shared-memory accesses not checked, 0 records dropped",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colours without being asked");
    let colored = text::render(
        &report,
        &sources,
        Style {
            color: true,
            ..Style::default()
        },
    );
    assert!(colored.contains('\u{1b}'));
    assert_eq!(report.summary.outcome, RunOutcome::Races);
    assert_valid(&report);
}

#[test]
fn one_statement_that_races_with_itself_names_the_atomic() {
    let (_folder, sources) = sources();
    let report = Report::build(&[log(None, vec![race(1, 2, 1, 1)])], &context(), &sources);
    let text = render(&report, &sources);
    assert!(
        text.contains("make the update at count.cu:2 one atomic operation: `atomicAdd(&x[0], 1)`"),
        "{text}"
    );
    assert_eq!(text.matches("x[0]++;").count(), 1, "one excerpt:\n{text}");
}

/// A log whose accesses stand at the given columns and are inlined by the given lines of the kernel.
fn inlined(races: Vec<Event>, columns: [u32; 3], callers: [u32; 3]) -> Log {
    let mut log = log(None, races);
    for event in &mut log.events {
        let Event::Sites { sites, .. } = event else {
            continue;
        };
        for ((site, column), caller) in sites.iter_mut().zip(columns).zip(callers) {
            site.frames[0].line = 2;
            site.frames[0].column = column;
            site.frames[0].function = Some("_Z3putPi".into());
            site.frames.push(Frame {
                file: "count.cu".into(),
                line: caller,
                column: 1,
                function: None,
            });
        }
    }
    log
}

#[test]
fn one_line_inlined_at_several_places_is_one_entry() {
    let (_folder, sources) = sources();
    let mut log = inlined(vec![race(1, 2, 2, 3), race(1, 3, 3, 4)], [5; 3], [2, 3, 4]);
    for event in &mut log.events {
        if let Event::Sites { sites, .. } = event {
            sites[2].op = Op::Store;
        }
    }
    let report = Report::build(&[log], &context(), &sources);
    assert_eq!(report.races.len(), 1);
    assert_eq!(report.races[0].count, 7);
}

#[test]
fn two_races_of_one_line_are_two_entries_with_ids_of_their_own() {
    let (_folder, sources) = sources();
    let mut log = inlined(vec![race(1, 2, 2, 3), race(1, 3, 3, 4)], [5, 5, 7], [2; 3]);
    for event in &mut log.events {
        if let Event::Sites { sites, .. } = event {
            sites[2].op = Op::Store;
        }
    }
    let report = Report::build(&[log], &context(), &sources);
    assert_eq!(report.races.len(), 2);
    assert_ne!(report.races[0].id, report.races[1].id);
    assert_ne!(report.races[0].fingerprint, report.races[1].fingerprint);
    assert_valid(&report);
}

#[test]
fn races_of_one_line_in_both_memories_are_two_entries() {
    let (_folder, sources) = sources();
    let mut events = vec![race(1, 2, 2, 3), race(1, 2, 2, 4)];
    if let Event::Race(race) = &mut events[1] {
        race.space = Space::Shared;
        race.level = Level::Cta;
    }
    let report = Report::build(&[log(None, events)], &context(), &sources);
    let entries = report
        .races
        .iter()
        .map(|race| (race.rule.as_str(), race.count));
    assert_eq!(entries.collect::<Vec<_>>(), [("CR003", 3), ("CR002", 4)]);
    assert_ne!(report.races[0].id, report.races[1].id);
    assert_valid(&report);
}

#[test]
fn long_chains_of_inlined_calls_are_shortened() {
    let (_folder, sources) = sources();
    let mut log = log(None, vec![race(1, 2, 3, 1)]);
    for event in &mut log.events {
        let Event::Sites { sites, .. } = event else {
            continue;
        };
        let inner = sites[1].frames[0].clone();
        let frames = (1..=20).map(|line| Frame {
            line,
            ..inner.clone()
        });
        sites[1].frames = frames.collect();
    }
    let text = render(&Report::build(&[log], &context(), &sources), &sources);
    assert!(
        text.contains("count.cu:3 count <- 16 more <- count.cu:20 count"),
        "{text}"
    );
}

#[test]
fn files_of_inlined_calls_are_shown_as_those_of_excerpts() {
    let (folder, sources) = sources();
    let mut log = inlined(vec![race(1, 2, 3, 1)], [5; 3], [3; 3]);
    for event in &mut log.events {
        let Event::Sites { sites, .. } = event else {
            continue;
        };
        for frame in sites.iter_mut().flat_map(|site| &mut site.frames) {
            frame.file = folder.path().join("count.cu").display().to_string();
        }
    }
    let text = render(&Report::build(&[log], &context(), &sources), &sources);
    assert!(
        text.contains("inlined: count.cu:2 put <- count.cu:3 count"),
        "{text}"
    );
    assert!(
        !text.contains(&folder.path().display().to_string()),
        "{text}"
    );
}

#[test]
fn a_race_with_an_unknown_access_makes_the_run_incomplete() {
    let (_folder, sources) = sources();
    let report = Report::build(&[log(None, vec![race(1, 0, 2, 1)])], &context(), &sources);
    assert!(report.races.is_empty());
    assert_eq!(report.summary.outcome, RunOutcome::Incomplete);
    assert_eq!(
        report.coverage.incomplete_because,
        ["the access at count.cu:2 races with another access, which is not known"]
    );
}

#[test]
fn the_barrier_of_the_block_comes_before_what_happens_in_a_warp() {
    let (_folder, sources) = sources();
    let at = |level, previous, site, (place, line)| {
        let Event::Race(mut race) = race(1, previous, site, 1) else {
            unreachable!("a race is one");
        };
        race.level = level;
        race.repair = Some(Repair {
            points: vec![Point {
                after: true,
                op: Neighbour::Write,
                frames: crate::made::site(2, Op::Store, line).frames,
                place,
                ..Point::default()
            }],
            ..Repair::default()
        });
        Event::Race(race)
    };
    let of = |places: [(u32, u32); 2]| {
        let races = vec![
            at(Level::Warp, 2, 3, places[0]),
            at(Level::Cta, 1, 2, places[1]),
        ];
        Report::build(&[log(None, races)], &context(), &sources)
    };
    let report = of([(7, 1), (8, 2)]);
    let rules: Vec<&str> = report.races.iter().map(|race| race.rule.as_str()).collect();
    assert_eq!(rules, ["CR002", "CR001"]);
    for (race, line) in report.races.iter().zip([2, 1]) {
        assert_eq!(
            race.help,
            format!("put `__syncthreads()` after the write at count.cu:{line}")
        );
    }
    // One barrier for both is one entry, also if the compiler has copied the code before it.
    assert_eq!(of([(7, 2), (8, 2)]).races.len(), 1);
    let report = of([(8, 2), (8, 2)]);
    assert_eq!(report.races.len(), 1);
    let [related] = &report.races[0].related[..] else {
        panic!("{:?}", report.races);
    };
    assert_eq!(
        (report.races[0].rule.as_str(), related.rule.as_str()),
        ("CR002", "CR001")
    );
    let text = render(&report, &sources);
    assert!(text.contains("same cause: "), "{text}");
    assert_valid(&report);
}

#[test]
fn pairs_are_merged_over_directions_launches_and_schedules() {
    let (_folder, sources) = sources();
    let logs = [
        log(None, vec![race(1, 1, 2, 5), race(1, 2, 1, 4)]),
        log(Some(9), vec![race(1, 1, 2, 1), race(1, 2, 2, 1)]),
    ];
    let mut both = context();
    both.schedules = 2;
    let report = Report::build(&logs, &both, &sources);
    let counts: Vec<(u64, &[u64])> = report
        .races
        .iter()
        .map(|r| (r.count, &r.seeds[..]))
        .collect();
    assert_eq!(counts, [(10, &[0, 9][..]), (1, &[9][..])]);
    assert!(render(&report, &sources).contains("under 2 of 2 schedules"));
    assert_eq!(
        (report.stats.warp_instructions, report.stats.global_sectors),
        (200, 16)
    );
    assert_eq!(report.stats.latencies[0].bins[0].launches, 2);
    assert_ne!(report.races[0].id, report.races[1].id);
    assert_valid(&report);
}

#[test]
fn a_race_between_streams_is_not_one_of_the_launch() {
    let (_folder, sources) = sources();
    let between = || {
        let Event::Race(within) = race(2, 2, 1, 3) else {
            unreachable!("a race is one");
        };
        let work = |launch, stream: &str| Work {
            launch,
            stream: stream.into(),
            ..Work::default()
        };
        Event::Race(Box::new(Race {
            why: Why::Streams,
            work: vec![
                work(Some(1), "the default stream"),
                work(Some(2), "stream #1"),
            ],
            ..*within
        }))
    };
    let mut log = log(None, vec![race(2, 2, 1, 3), between(), between()]);
    log.events.push(Event::Launch(Box::new(launch(2))));
    let logs = [log];
    let report = Report::build(&logs, &context(), &sources);
    assert_valid(&report);
    let rules: Vec<&str> = report.races.iter().map(|race| race.rule.as_str()).collect();
    assert_eq!(rules, ["CR003", "CR014"]);
    assert_eq!((report.races[0].count, report.races[1].count), (3, 6));
    let text = render(&report, &sources);
    for line in [
        "first: count(int*)  launch #1, grid",
        "second: count(int*)  launch #2, grid",
        "in the default stream",
        "let stream #1 wait for it",
        "a stream made with `cudaStreamNonBlocking` and the default stream do not wait for each other",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// The message and the help of a race between launches in two streams.
fn between_streams(apart: Apart, streams: [&str; 2]) -> [String; 2] {
    let (_folder, sources) = sources();
    let Event::Race(within) = race(2, 2, 1, 3) else {
        unreachable!("a race is one");
    };
    let work = [Some(1), Some(2)].into_iter().zip(streams);
    let work = work.map(|(launch, stream)| Work {
        launch,
        stream: stream.into(),
        ..Work::default()
    });
    let race = Race {
        why: Why::Streams,
        apart,
        work: work.collect(),
        ..*within
    };
    let mut log = log(None, vec![Event::Race(Box::new(race))]);
    log.events.push(Event::Launch(Box::new(launch(2))));
    let report = Report::build(&[log], &context(), &sources);
    let [race] = &report.races[..] else {
        panic!("{:?}", report.races);
    };
    [race.message.clone(), race.help.clone()]
}

#[test]
fn help_for_streams_follows_why_nothing_orders_them() {
    let default = "the default stream";
    let event = "record an event after the first operation in its stream (`cudaEventRecord`) and let the stream of the second operation wait for it before that (`cudaStreamWaitEvent`)";
    let [_, help] = between_streams(Apart::Devices, [default; 2]);
    let host = ", or let the host wait between them (`cudaStreamSynchronize`); streams of two devices do not wait for each other";
    assert_eq!(help, format!("{event}{host}"));
    let [_, help] = between_streams(Apart::Streams, ["the thread's default stream"; 2]);
    assert_eq!(help, event);
    let [_, help] = between_streams(Apart::Devices, [default, "stream #1"]);
    assert!(help.starts_with("record an event in the default stream"));
    for wrong in ["graph", "cudaStreamNonBlocking", "use one stream"] {
        assert!(!help.contains(wrong), "{help}");
    }
    let [_, help] = between_streams(Apart::Nodes, ["a graph in stream #1"; 2]);
    assert!(help.starts_with("add an edge"));
    let [_, help] = between_streams(Apart::Streams, ["a graph in stream #1", "stream #2"]);
    assert!(help.starts_with(
        "record an event in stream #1 after the launch of the graph (`cudaEventRecord`) and let stream #2 wait for it before the second operation"
    ));
    let [message, help] = between_streams(Apart::Early, ["stream #1"; 2]);
    assert!(message.starts_with("race between dependent launches"));
    assert!(help.starts_with("call `cudaGridDependencySynchronize()`"));
}

#[test]
fn the_witness_furthest_apart_is_shown() {
    let (_folder, sources) = sources();
    let near = |level| {
        let Event::Race(mut near) = race(1, 2, 2, 3) else {
            unreachable!()
        };
        near.level = level;
        Event::Race(near)
    };
    let races = vec![near(Level::Warp), near(Level::Grid), near(Level::Cta)];
    let report = Report::build(&[log(None, races)], &context(), &sources);
    let found: Vec<_> = report
        .races
        .iter()
        .map(|r| (r.rule.as_str(), r.count))
        .collect();
    assert_eq!(found, [("CR003", 9)]);
}

#[test]
fn a_fingerprint_does_not_follow_line_numbers() {
    let id = |above: &str| {
        let (folder, _) = sources();
        std::fs::write(folder.path().join("count.cu"), format!("{above}{SOURCE}")).unwrap();
        let moved = above.matches('\n').count() as u32;
        let mut log = log(None, vec![race(1, 2, 3, 1)]);
        for event in &mut log.events {
            if let Event::Sites { sites, .. } = event {
                sites.iter_mut().for_each(|s| s.frames[0].line += moved);
            }
        }
        let sources = Sources::new(vec![folder.path().to_owned()]);
        Report::build(&[log], &context(), &sources).races[0]
            .id
            .clone()
    };
    assert_eq!(id(""), id("// a line\n// and another\n"));
}

#[test]
fn an_undecided_conflict_is_no_error() {
    let (_folder, sources) = sources();
    let mut log = log(None, vec![race(1, 2, 3, 1)]);
    for event in &mut log.events {
        match event {
            Event::Race(race) => race.decided = false,
            Event::Module(module) => module.kernels[0]
                .release_sites
                .push("membar.gl at PTX line 12".into()),
            _ => {}
        }
    }
    let report = Report::build(std::slice::from_ref(&log), &context(), &sources);
    assert_eq!((report.summary.errors, report.summary.warnings), (0, 1));
    assert_eq!(report.summary.outcome, RunOutcome::Clean);
    let text = render(&report, &sources);
    assert!(
        text.contains("warning[CR003]: possible inter-block race"),
        "{text}"
    );
    assert!(
        text.contains("not decided: membar.gl at PTX line 12 may order the threads of the kernel"),
        "{text}"
    );
    assert!(
        text.contains("SUMMARY: cudarun-check: 1 race (0 errors, 1 warning)"),
        "{text}"
    );
    let counting = Context {
        warnings_fail: true,
        ..context()
    };
    assert_eq!(
        Report::build(&[log], &counting, &sources).summary.outcome,
        RunOutcome::Races
    );
    assert_valid(&report);
}

#[test]
fn without_line_information_the_ptx_is_shown() {
    let (_folder, sources) = sources();
    let mut log = log(None, vec![race(1, 2, 3, 1)]);
    for event in &mut log.events {
        if let Event::Sites { sites, .. } = event {
            sites.iter_mut().for_each(|site| site.frames.clear());
        }
    }
    let text = render(&Report::build(&[log], &context(), &sources), &sources);
    assert!(text.contains("12 | st.global.u32 [%rd1], %r1;"), "{text}");
    assert!(text.contains("compile with -lineinfo"), "{text}");
}

/// A race of two stores that have written the given words.
fn stores(launch: u64, same_value: bool, values: [u64; 2]) -> Event {
    let Event::Race(mut stores) = race(launch, 2, 2, 3) else {
        unreachable!()
    };
    let [before, now] = values.map(|new| Value {
        old: None,
        new: Some(new),
    });
    stores.same_value = same_value;
    (stores.previous_value, stores.value) = (before, now);
    Event::Race(stores)
}

#[test]
fn writes_of_the_same_value_are_a_warning_with_both_values() {
    let (_folder, sources) = sources();
    let log = log(None, vec![stores(1, true, [7, 7])]);
    let report = Report::build(std::slice::from_ref(&log), &context(), &sources);
    let text = render(&report, &sources);
    for part in [
        "warning[CR003]: inter-block race on global memory: two writes to the same address are not ordered, but have always written the same value",
        "thread (7,0,0) block (0,0,0) wrote 4 bytes: 7 (first)",
        "thread (7,0,0) block (1,0,0) wrote 4 bytes: 7 (second)",
        "same value: a data race is undefined by the memory model, whatever the writes store",
        "SUMMARY: cudarun-check: 1 race (0 errors, 1 warning)",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
    assert_eq!(report.summary.outcome, RunOutcome::Clean);
    let counting = Context {
        warnings_fail: true,
        ..context()
    };
    assert_eq!(
        Report::build(&[log], &counting, &sources).summary.outcome,
        RunOutcome::Races
    );
    assert_valid(&report);
}

#[test]
fn writes_of_which_one_is_unknown_are_unknown() {
    let (_folder, sources) = sources();
    // Two pairs of instructions have the same two lines. The values of one pair are not known.
    let unknown = || {
        let Event::Race(mut race) = stores(1, false, [0, 0]) else {
            unreachable!()
        };
        (race.previous_value, race.value) = Default::default();
        Event::Race(race)
    };
    let same = || stores(1, true, [7, 7]);
    let differing = || stores(1, false, [7, 8]);
    for (races, same_value, values_unknown) in [
        (vec![same(), unknown()], false, true),
        (vec![unknown(), same()], false, true),
        (vec![unknown(), differing()], false, false),
        (vec![differing(), unknown(), same()], false, false),
        (vec![same(), same()], true, false),
    ] {
        let report = Report::build(&[log(None, races)], &context(), &sources);
        let race = &report.races[0];
        assert_eq!(
            (race.same_value, race.values_unknown),
            (same_value, values_unknown)
        );
    }
}

#[test]
fn writes_that_once_differed_are_an_error_and_show_it() {
    let (_folder, sources) = sources();
    let logs = [
        log(None, vec![stores(1, true, [7, 7])]),
        log(Some(1), vec![stores(1, false, [7, 8])]),
        log(Some(2), vec![stores(1, true, [8, 8])]),
    ];
    let report = Report::build(&logs, &context(), &sources);
    let text = render(&report, &sources);
    assert!(text.contains("error[CR003]"), "{text}");
    assert!(text.contains("wrote 4 bytes: 7 (first)"), "{text}");
    assert!(text.contains("wrote 4 bytes: 8 (second)"), "{text}");
    assert!(!text.contains("same value"), "{text}");
    assert_eq!(
        (report.races[0].count, report.races[0].same_value),
        (9, false)
    );
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(
        json["races"][0]["accesses"][1]["value"],
        serde_json::json!({ "type": "u32", "old": null, "new": "0x8" })
    );
    assert_valid(&report);
}
