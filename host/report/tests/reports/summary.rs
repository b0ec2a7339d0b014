//! What is said of a run as a whole: coverage, outcome, counts.

use report::choice::NotChosen;
use report::formats::Format;
use report::log::{Clocks, Counters, Event, Frame, Launch, Misuse, Why};
use report::model::{ExitStatus, RunOutcome};
use report::source::Sources;
use report::text::{self, Style};
use report::{Context, Report};

use crate::made::*;

#[test]
fn what_was_not_checked_is_said() {
    let sources = Sources::default();
    let mut unchecked = launch(2);
    unchecked.checked = false;
    unchecked.why_not = Some(NotChosen::KernelName.text().into());
    unchecked.not_chosen = Some(NotChosen::KernelName);
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
        "1 of 3 launches checked (1 not selected by --kernel-name)",
        "1,234 granules (1 to 4 bytes) forgotten because the shadow memory is too small",
        "2 conflicts undecided,",
        "3 accesses outside the checked window",
        "4 records dropped",
        "1 of 8 granules checked",
        "5 conflicts reported because no release or acquire orders them",
        "6 conflicts assumed to be ordered by a release and an acquire or by a barrier of part of the block",
        "vavrg4 is not supported by the simulated device (count.cu:3)",
        "note: something of note",
        "incomplete: 1 launch could not be run on this device",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
    assert_eq!(report.summary.outcome, RunOutcome::Incomplete);
    assert_valid(&report);
}

#[test]
fn launches_of_kernels_without_ptx_are_counted() {
    let sources = Sources::default();
    let mut log = log(None, Vec::new());
    let long = "f".repeat(200);
    for (kernel, launches) in [("_Z6sealedPi", 1), ("_Z6sealedPi", 2), (&long, 40)] {
        log.events.push(Event::WithoutPtx {
            kernel: kernel.into(),
            why: "a cubin without PTX".into(),
            launches,
        });
    }
    let report = Report::build(std::slice::from_ref(&log), &context(), &sources);
    let text = render(&report, &sources);
    let coverage = format!(
        "1/3 kernels instrumented (no PTX for {}…, 40 launches; no PTX for sealed(int*), 3 launches), 1 of 44 launches checked",
        &long[..100]
    );
    assert!(text.contains(&coverage), "{text}");
    assert_eq!(report.summary.outcome, RunOutcome::Clean);
    assert_valid(&report);
    let strict = Context {
        strict: true,
        ..context()
    };
    let report = Report::build(&[log], &strict, &sources);
    let text = render(&report, &sources);
    let said = "--strict: 43 launches of kernels without PTX ran unchecked";
    assert!(text.contains(said), "{text}");
}

#[test]
fn nothing_at_all_is_incomplete_and_a_failing_program_is_named() {
    let sources = Sources::default();
    let report = Report::build(&[], &context(), &sources);
    assert_eq!(report.summary.outcome, RunOutcome::Incomplete);
    let text = render(&report, &sources);
    assert!(
        text.contains("0 races; incomplete: no launch of a kernel was seen"),
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
    assert_eq!(report.summary.outcome, RunOutcome::AppFailed);
    assert!(render(&report, &sources).contains("killed by signal 9"));
    assert_valid(&report);
}

#[test]
fn an_error_of_the_tool_comes_before_all_else() {
    let (_folder, sources) = sources();
    let error = Event::ToolError {
        text: "launch #1 of k: lines 2 and 3 race".into(),
    };
    let log = log(None, vec![race(1, 1, 2, 1), error.clone(), error]);
    let report = Report::build(&[log], &context(), &sources);
    assert_eq!(report.summary.outcome, RunOutcome::ToolError);
    let text = render(&report, &sources);
    for part in [
        "internal error of cudarun-check: launch #1 of k: lines 2 and 3 race; please report it",
        "1 race (1 error); 1 error of cudarun-check itself\n",
    ] {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
    assert_valid(&report);
}

#[test]
fn lines_are_wrapped_to_the_terminal() {
    let (_folder, sources) = sources();
    let report = Report::build(&[log(None, vec![race(1, 1, 2, 1)])], &context(), &sources);
    let wide = text::render(&report, &sources, Style::default());
    let style = Style {
        width: Some(60),
        ..Style::default()
    };
    let narrow = text::render(&report, &sources, style);
    let too_wide = |line: &&str| line.chars().count() > 60;
    assert!(wide.lines().any(|line| too_wide(&line)), "{wide}");
    // Source code, its labels and names of files stay in one piece.
    let whole = |line: &&str| line.contains(" | ") || line.contains("-->") || line.contains(":::");
    let wrong = narrow.lines().filter(|line| !whole(line)).find(too_wide);
    assert_eq!(wrong, None, "{narrow}");
    assert!(narrow.contains("\nCOVERAGE: "), "{narrow}");
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(words(&narrow), words(&wide));
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
        assert_eq!(of.outcome, RunOutcome::Races);
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

#[test]
fn reports_of_the_same_major_version_are_read() {
    let read = |text: &str| Report::from_json(text).map_err(|error| error.to_string());
    let old = read(
        r#"{"schema_version": "1.0", "tool": {"name": "cudarun-check"}, "summary": {"races": 3}}"#,
    )
    .unwrap();
    assert_eq!((old.summary.races, old.races.len()), (3, 0));
    assert!(
        read(r#"{"schema_version": "0.9", "tool": {"name": "cudarun-check"}}"#)
            .unwrap_err()
            .contains("\"0.9\"")
    );
    let foreign = read(r#"{"schema_version": "1.0"}"#).unwrap_err();
    assert!(foreign.contains("tool.name"), "{foreign}");
    assert!(read("{}").is_err() && read("[]").is_err() && read("").is_err());
}

#[test]
fn the_schema_describes_every_field() {
    fn walk(of: &serde_json::Value, place: &str, bare: &mut Vec<String>) {
        let properties = of["properties"].as_object().into_iter().flatten();
        for (name, property) in properties {
            if property["description"].as_str().is_none_or(str::is_empty) {
                bare.push(format!("{place}.{name}"));
            }
        }
        let inner: Vec<(String, &serde_json::Value)> = match of {
            serde_json::Value::Object(all) => { all.iter() }
                .map(|(key, value)| (key.clone(), value))
                .collect(),
            serde_json::Value::Array(all) => { all.iter().enumerate() }
                .map(|(n, value)| (n.to_string(), value))
                .collect(),
            _ => Vec::new(),
        };
        for (key, value) in inner {
            walk(value, &format!("{place}.{key}"), bare);
        }
    }
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/report.schema.json")).unwrap();
    let mut bare = Vec::new();
    walk(&schema, "", &mut bare);
    assert!(bare.is_empty(), "{bare:#?}");
}

#[test]
fn misuse_of_barriers_is_no_race_for_scripts_of_compute_sanitizer() {
    let (_folder, sources) = sources();
    let Event::Race(mut misuse) = race(1, 2, 2, 1) else {
        unreachable!()
    };
    misuse.why = Why::Misuse(Misuse::Excess);
    let events = vec![Event::Race(misuse), race(1, 1, 2, 4)];
    let report = Report::build(&[log(None, events)], &context(), &sources);
    let text = Format::Sanitizer.render(&report, &sources, Style::default());
    let text = text.unwrap();
    assert_eq!(text.matches("Race reported between").count(), 1, "{text}");
    let misused = "=========     CR007 ";
    assert!(text.contains(misused), "{text}");
    assert!(
        text.contains("2 hazards displayed (2 errors, 0 warnings)"),
        "{text}"
    );
}
