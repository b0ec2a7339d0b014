//! Reports of constructed logs: what is merged, what is said, and that the JSON keeps to its schema.
//!
//! No race was found to make these logs; they are the reader's test, not the checker's.

use std::path::Path;

use runtime::log::{
    Allocation, Clocks, Counters, Event, Frame, Kernel, Launch, Level, Misuse, Module, Point, Race,
    Repair, Site, Thread, Value, Why, Work,
};
use runtime::report::model::{ExitStatus, Outcome};
use runtime::report::source::Sources;
use runtime::report::text::{self, Style};
use runtime::report::{Context, Log, Report};

const SOURCE: &str = "__global__ void count(int *x) {\n    x[0]++;\n    int y = x[1];\n}\n";

/// A folder with the source file that the logs speak of.
fn sources() -> (tempfile::TempDir, Sources) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("count.cu"), SOURCE).unwrap();
    let sources = Sources::new(vec![folder.path().to_owned()]);
    (folder, sources)
}

fn site(id: u32, op: &str, line: u32) -> Site {
    Site {
        id,
        function: "_Z5countPi".into(),
        text: if op == "load" {
            "ld.global.u32 %r1, [%rd1];"
        } else {
            "st.global.u32 [%rd1], %r1;"
        }
        .into(),
        ptx_line: 10 + id,
        op: op.into(),
        bytes: 4,
        ty: "u32".into(),
        sem: "weak".into(),
        frames: vec![Frame {
            file: "count.cu".into(),
            line,
            column: 5,
            function: None,
        }],
        ..Site::default()
    }
}

fn kernel() -> Kernel {
    Kernel {
        name: "_Z5countPi".into(),
        instrumented: true,
        accesses: 3,
        checked: 3,
        shared: 2,
        ..Kernel::default()
    }
}

fn race(launch: u64, previous_site: u32, site: u32, count: u64) -> Event {
    let thread = |x| Thread {
        block: [x, 0, 0],
        thread: [7, 0, 0],
    };
    Event::Race(Box::new(Race {
        launch,
        decided: true,
        level: Level::Grid,
        site,
        previous_site,
        count,
        address: 0x2000_0000_0104,
        allocation: Some(Allocation {
            id: 2,
            base: 0x2000_0000_0100,
            bytes: 1024,
            api: "cudaMalloc".into(),
        }),
        thread: thread(1),
        previous_thread: Some(thread(0)),
        ..Race::default()
    }))
}

fn launch(number: u64) -> Launch {
    Launch {
        launch: number,
        module: 1,
        kernel: "_Z5countPi".into(),
        grid: [2, 1, 1],
        block: [32, 1, 1],
        checked: true,
        warp_instructions: 100,
        thread_instructions: 3200,
        sectors: 8,
        seconds: 0.5,
        ..Launch::default()
    }
}

/// One process with the given races in its only launch.
fn log(seed: Option<u64>, races: Vec<Event>) -> Log {
    let mut events = vec![
        Event::Start {
            pid: 41,
            device: "simulated sm_90".into(),
            seed,
            checking: true,
        },
        Event::Module(Box::new(Module {
            module: 1,
            origin: "count.cu".into(),
            kernels: vec![kernel()],
            sites: vec![site(1, "load", 2), site(2, "store", 2), site(3, "load", 3)],
            ..Module::default()
        })),
    ];
    events.extend(races);
    events.push(Event::Launch(Box::new(launch(1))));
    Log {
        events,
        ..Log::default()
    }
}

fn context() -> Context {
    Context {
        version: "0.1.0".into(),
        argv: vec!["./count".into()],
        exit: ExitStatus {
            code: Some(0),
            signal: None,
        },
        schedules: 1,
        ..Context::default()
    }
}

fn render(report: &Report, sources: &Sources) -> String {
    text::render(report, sources, Style::default())
}

fn assert_valid(report: &Report) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

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
        "help: blocks are not ordered within a launch",
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
    assert_eq!(report.summary.outcome, Outcome::Races);
    assert_valid(&report);
}

#[test]
fn one_statement_that_races_with_itself_names_the_atomic() {
    let (_folder, sources) = sources();
    let report = Report::build(&[log(None, vec![race(1, 2, 1, 1)])], &context(), &sources);
    let text = render(&report, &sources);
    assert!(
        text.contains("make it one operation: `atomicAdd(&x[0], 1)`"),
        "{text}"
    );
    assert_eq!(text.matches("x[0]++;").count(), 1, "one excerpt:\n{text}");
}

/// A log whose accesses stand at the given columns and are inlined by the given lines of the kernel.
fn inlined(races: Vec<Event>, columns: [u32; 3], callers: [u32; 3]) -> Log {
    let mut log = log(None, races);
    for event in &mut log.events {
        let Event::Module(module) = event else {
            continue;
        };
        for ((site, column), caller) in module.sites.iter_mut().zip(columns).zip(callers) {
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
        if let Event::Module(module) = event {
            module.sites[2].op = "store".into();
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
        if let Event::Module(module) = event {
            module.sites[2].op = "store".into();
        }
    }
    let report = Report::build(&[log], &context(), &sources);
    assert_eq!(report.races.len(), 2);
    assert_ne!(report.races[0].id, report.races[1].id);
    assert_eq!(report.races[0].fingerprint, report.races[1].fingerprint);
    assert_valid(&report);
}

#[test]
fn long_chains_of_inlined_calls_are_shortened() {
    let (_folder, sources) = sources();
    let mut log = log(None, vec![race(1, 2, 3, 1)]);
    for event in &mut log.events {
        let Event::Module(module) = event else {
            continue;
        };
        let inner = module.sites[1].frames[0].clone();
        let frames = (1..=20).map(|line| Frame {
            line,
            ..inner.clone()
        });
        module.sites[1].frames = frames.collect();
    }
    let text = render(&Report::build(&[log], &context(), &sources), &sources);
    assert!(
        text.contains("count.cu:3 count <- 16 more <- count.cu:20 count"),
        "{text}"
    );
}

#[test]
fn the_barrier_of_the_block_comes_before_what_happens_in_a_warp() {
    let (_folder, sources) = sources();
    let at = |level, previous, site, later| {
        let Event::Race(mut race) = race(1, previous, site, 1) else {
            unreachable!("a race is one");
        };
        race.level = level;
        race.repair = Some(Repair {
            barriers: true,
            connected: true,
            points: vec![Point {
                after: true,
                later,
                outside: None,
            }],
            ..Repair::default()
        });
        Event::Race(race)
    };
    let races = vec![at(Level::Warp, 2, 3, false), at(Level::Cta, 1, 2, true)];
    let report = Report::build(&[log(None, races)], &context(), &sources);
    let rules: Vec<&str> = report.races.iter().map(|race| race.rule.as_str()).collect();
    assert_eq!(rules, ["CR002", "CR001"]);
    let helps: Vec<&str> = report.races.iter().map(|race| race.help.as_str()).collect();
    assert!(
        helps[0].ends_with("put `__syncthreads()` after the statement at count.cu:2"),
        "{helps:?}"
    );
    assert!(
        helps[1].ends_with("put `__syncthreads()` after the write at count.cu:2"),
        "{helps:?}"
    );
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
        "does not wait for the default stream",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
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
            if let Event::Module(module) = event {
                module
                    .sites
                    .iter_mut()
                    .for_each(|s| s.frames[0].line += moved);
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
    assert_eq!(report.summary.outcome, Outcome::Clean);
    let text = render(&report, &sources);
    assert!(
        text.contains("warning[CR003]: possible inter-block race"),
        "{text}"
    );
    assert!(
        text.contains("not decided: the kernel may order its threads by membar.gl at PTX line 12"),
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
        Outcome::Races
    );
    assert_valid(&report);
}

#[test]
fn without_line_information_the_ptx_is_shown() {
    let (_folder, sources) = sources();
    let mut log = log(None, vec![race(1, 2, 3, 1)]);
    for event in &mut log.events {
        if let Event::Module(module) = event {
            module.sites.iter_mut().for_each(|site| site.frames.clear());
        }
    }
    let text = render(&Report::build(&[log], &context(), &sources), &sources);
    assert!(text.contains("12 | st.global.u32 [%rd1], %r1;"), "{text}");
    assert!(text.contains("compile with -lineinfo"), "{text}");
}

#[test]
fn what_was_not_checked_is_said() {
    let sources = Sources::default();
    let mut unchecked = launch(2);
    unchecked.checked = false;
    unchecked.why_not = Some("not selected by --kernel-name".into());
    let mut failed = launch(3);
    failed.error =
        Some("_Z5countPi, ptx line 9: vavrg4 is not supported by the simulated device".into());
    failed.unsupported = true;
    failed.error_frames = vec![Frame {
        file: "count.cu".into(),
        line: 3,
        ..Frame::default()
    }];
    failed.counters = Counters {
        evictions: 1234,
        undecided: 2,
        outside: 3,
        dropped: 4,
        unreleased: 5,
        ordered: 6,
        ..Counters::default()
    };
    let mut log = log(None, Vec::new());
    log.events.push(Event::Launch(Box::new(unchecked)));
    log.events.push(Event::Launch(Box::new(failed)));
    log.events.push(Event::Note {
        text: "something of note".into(),
    });
    let context = Context {
        without_ptx: vec!["_Z6sealedPi".into()],
        sample: 8,
        ..context()
    };
    let report = Report::build(&[log], &context, &sources);
    let text = render(&report, &sources);
    for part in [
        "1/2 kernels instrumented (no PTX for sealed(int*))",
        "1 of 3 launches checked (not selected by --kernel-name)",
        "1,234 granules evicted",
        "2 conflicts undecided,",
        "3 accesses outside the checked window",
        "4 records dropped",
        "1 of 8 granules checked",
        "5 conflicts taken for races for want of a release or an acquire",
        "6 conflicts taken for ordered by a release and an acquire",
        "vavrg4 is not supported by the simulated device (count.cu:3)",
        "note: something of note",
        "incomplete: 1 launch could not be run on this device",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
    assert_eq!(report.summary.outcome, Outcome::Incomplete);
    assert_valid(&report);
}

#[test]
fn nothing_at_all_is_incomplete_and_a_failing_program_is_named() {
    let sources = Sources::default();
    let report = Report::build(&[], &context(), &sources);
    assert_eq!(report.summary.outcome, Outcome::Incomplete);
    let text = render(&report, &sources);
    assert!(
        text.contains("0 races; incomplete: nothing was checked"),
        "{text}"
    );
    assert!(
        text.contains("COVERAGE: no kernels seen, 0 launches checked, 0 records dropped"),
        "{text}"
    );
    assert_valid(&report);
    let killed = Context {
        exit: ExitStatus {
            code: None,
            signal: Some(9),
        },
        ..context()
    };
    let report = Report::build(&[log(None, Vec::new())], &killed, &sources);
    assert_eq!(report.summary.outcome, Outcome::AppFailed);
    assert!(render(&report, &sources).contains("killed by signal 9"));
    assert_valid(&report);
}

#[test]
fn a_print_limit_hides_races_but_counts_them() {
    let (_folder, sources) = sources();
    let races = vec![race(1, 1, 2, 1), race(1, 2, 2, 1), race(1, 2, 3, 1)];
    let report = Report::build(&[log(None, races)], &context(), &sources);
    let style = Style {
        print_limit: Some(1),
        ..Style::default()
    };
    let text = text::render(&report, &sources, style);
    assert_eq!(text.matches("error[CR003]").count(), 1, "{text}");
    assert!(
        text.contains("(2 more not shown, --print-limit 1)"),
        "{text}"
    );
    assert!(text.contains("3 races (3 errors)"), "{text}");
}

#[test]
fn the_summary_tells_races_from_synchronisation_errors() {
    let (_folder, sources) = sources();
    let misuse = |site, misuse| {
        let Event::Race(mut of) = race(1, site, site, 1) else {
            unreachable!()
        };
        of.why = Why::Misuse(misuse);
        Event::Race(of)
    };
    let excess = || misuse(2, Misuse::Excess);
    let exited = || misuse(3, Misuse::Exited);
    for (found, summary, counts) in [
        (vec![race(1, 1, 2, 1)], "1 race (1 error)", [1, 0]),
        (
            vec![excess()],
            "0 races, 1 synchronisation error (1 error)",
            [1, 1],
        ),
        (
            vec![race(1, 1, 2, 1), excess(), exited()],
            "1 race, 2 synchronisation errors (2 errors, 1 warning)",
            [3, 2],
        ),
    ] {
        let report = Report::build(&[log(None, found)], &context(), &sources);
        let text = render(&report, &sources);
        let line = format!("SUMMARY: cudarun-check: {summary}\n");
        assert!(text.contains(&line), "{line}is missing in\n{text}");
        let of = report.summary;
        assert_eq!([of.races, of.synchronisation_errors], counts);
        assert_eq!(of.outcome, Outcome::Races);
        assert_valid(&report);
    }
}

#[test]
fn warps_are_counted_by_the_formats_of_their_clocks() {
    let (_folder, sources) = sources();
    let clocks = |warps, diverged, nested_diverged, sparse| Clocks {
        warps,
        left_converged: diverged + nested_diverged + sparse,
        diverged,
        nested_diverged,
        sparse,
        ..Clocks::default()
    };
    let mut log = log(None, Vec::new());
    for (number, of) in [(2, clocks(16, 1, 2, 4)), (3, clocks(8, 0, 1, 0))] {
        log.events.push(Event::Launch(Box::new(Launch {
            clocks: Some(of),
            ..launch(number)
        })));
    }
    let report = Report::build(&[log], &context(), &sources);
    let of = report.coverage.clocks;
    let formats = [of.converged, of.diverged, of.nested_diverged, of.sparse];
    assert_eq!((of.warps, of.left_converged), (24, 8));
    assert_eq!(formats, [16, 1, 3, 4]);
    assert_valid(&report);
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
        "same value: a data race is undefined by the memory model whatever it writes",
        "SUMMARY: cudarun-check: 1 race (0 errors, 1 warning)",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
    assert_eq!(report.summary.outcome, Outcome::Clean);
    let counting = Context {
        warnings_fail: true,
        ..context()
    };
    assert_eq!(
        Report::build(&[log], &counting, &sources).summary.outcome,
        Outcome::Races
    );
    assert_valid(&report);
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
