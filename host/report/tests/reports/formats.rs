//! The formats of other tools: each keeps to its own standard, and says what the text says.

use std::path::{Path, PathBuf};
use std::process::Command;

use quick_junit::TestCaseStatus;
use report::formats::Format;
use report::log::{
    Allocation, Answer, Around, Barrier, Because, Event, Kernel, Launch, Op, Space, Verified,
};
use report::model::{ExitStatus, RunOutcome, Standing, SuppressedBy};
use report::source::Sources;
use report::text::Style;
use report::{Context, Report};

use crate::made::*;

/// A race, a known race, and a kernel without checks.
fn report(sources: &Sources) -> Report {
    let mut log = log(None, vec![race(1, 2, 3, 5), race(1, 2, 2, 4)]);
    for event in &mut log.events {
        if let Event::Module(module) = event {
            module.kernels.push(Kernel {
                name: "closed".into(),
                why_not: Some("its PTX is not there & <gone>".into()),
                ..Kernel::default()
            });
        }
    }
    let mut report = Report::build(&[log], &context(), sources);
    assert_eq!(report.races.len(), 2);
    report.races[1].suppressed_by = Some(SuppressedBy {
        reason: "known for long".into(),
        ..SuppressedBy::default()
    });
    report
}

fn render(format: Format) -> String {
    let (_folder, sources) = sources();
    let report = report(&sources);
    format.render(&report, &sources, Style::default()).unwrap()
}

fn assert_holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\nis missing in\n{text}");
    }
}

/// The folder of a crate that this one is built with.
fn folder_of(name: &str) -> PathBuf {
    // Crates for other systems are not needed. Others of the workspace may have to be fetched first.
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", &host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut all = metadata["packages"].as_array().unwrap().iter();
    let of = all.find(|package| package["name"] == name).unwrap();
    let manifest = Path::new(of["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().to_owned()
}

/// The document of a text that keeps to the schema of SARIF, which excludes something.
fn valid_sarif(text: &str) -> serde_json::Value {
    // The schema of OASIS is in the crate of its types.
    let schema = std::fs::read_to_string(folder_of("serde-sarif").join("src/schema.json")).unwrap();
    let schema = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let mut wrong = value.clone();
    wrong["runs"][0]["results"][0]["level"] = "fatal".into();
    assert!(!validator.is_valid(&wrong), "the schema excludes nothing");
    value
}

#[test]
fn sarif_keeps_to_its_schema() {
    let text = render(Format::Sarif);
    let value = valid_sarif(&text);
    let sarif: serde_sarif::sarif::Sarif = serde_json::from_str(&text).unwrap();
    let run = &sarif.runs[0];
    let [race, known] = &run.results.as_ref().unwrap()[..] else {
        panic!("{text}");
    };
    let rules = run.tool.driver.rules.as_ref().unwrap();
    let index = usize::try_from(race.rule_index.unwrap()).unwrap();
    assert_eq!(rules[index].id, "CR003");
    let region = &value["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(
        (
            &region["startLine"],
            &region["startColumn"],
            &region["endColumn"]
        ),
        (&2.into(), &5.into(), &9.into())
    );
    let related = race.related_locations.as_ref().unwrap();
    assert_eq!(related.len(), 1);
    let flows = race.code_flows.as_ref().unwrap();
    assert_eq!(flows[0].thread_flows.len(), 2);
    let prints = |of: &serde_sarif::sarif::Result| of.partial_fingerprints.clone().unwrap();
    assert_ne!(prints(race), prints(known));
    let why = &known.suppressions.as_ref().unwrap()[0];
    assert_eq!(why.justification.as_deref(), Some("known for long"));
    assert!(race.suppressions.is_none());
}

/// Four verified launches of three kernels: one races and another of it is unknown, one is unknown, one is proved.
fn verified(allow_incomplete: bool, sources: &Sources) -> Report {
    let mut log = log(None, vec![race(1, 2, 3, 5)]);
    let frames = |line| site(1, Op::Load, line).frames;
    let because = |ptx_line| Because {
        text: "where the access goes depends on the order in which threads run".into(),
        ptx_line,
        frames: frames(3),
        from_ptx_line: 12,
        from_frames: frames(2),
    };
    let unplaced = Because {
        text: "a branch depends on a clock".into(),
        ptx_line: 17,
        ..Because::default()
    };
    let launches = [
        ("_Z5countPi", Answer::Race, Vec::new()),
        ("_Z5countPi", Answer::Unknown, vec![because(15)]),
        // The first two are of one line and of one reason.
        (
            "tickets",
            Answer::Unknown,
            vec![
                because(15),
                because(16),
                unplaced,
                Because::of("the launch failed: at all"),
            ],
        ),
        ("ring", Answer::AllData, Vec::new()),
    ];
    let Some(Event::Module(module)) = log.events.get_mut(1) else {
        panic!("{log:?}");
    };
    for name in ["tickets", "ring"] {
        module.kernels.push(Kernel {
            name: name.into(),
            ..kernel()
        });
    }
    log.events.pop();
    for (number, (kernel, answer, because)) in (1..).zip(launches) {
        log.events.push(Event::Launch(Box::new(Launch {
            kernel: kernel.into(),
            verified: Some(Box::new(Verified::of(answer, because))),
            ..launch(number)
        })));
    }
    let context = report::Context {
        allow_incomplete,
        ..context()
    };
    let report = Report::build(&[log], &context, sources);
    assert_valid(&report);
    report
}

#[test]
fn what_is_not_proved_is_a_result_and_what_is_proved_a_property() {
    let (_folder, sources) = sources();
    for (allowed, level) in [(false, "warning"), (true, "note")] {
        let report = verified(allowed, &sources);
        let text = Format::Sarif.render(&report, &sources, Style::default());
        let run = &valid_sarif(&text.unwrap())["runs"][0];
        let results = run["results"].as_array().unwrap();
        let about = |of: &serde_json::Value| {
            let text = |of: &serde_json::Value| of.as_str().unwrap_or_default().to_owned();
            [&of["ruleId"], &of["level"], &of["message"]["text"]].map(text)
        };
        let [race, rest, ticket, clock, failed] = &results[..] else {
            panic!("{results:#?}");
        };
        assert_eq!(about(race)[..2], ["CR003", "error"]);
        assert_eq!(race["relatedLocations"].as_array().unwrap().len(), 1);
        let why =
            "tickets not proved: where the access goes depends on the order in which threads run";
        for (result, message) in [
            (rest, "1 launch of count(int*) not proved".to_owned()),
            (ticket, format!("1 launch of {why}")),
            (
                clock,
                "1 launch of tickets not proved: a branch depends on a clock".to_owned(),
            ),
            (
                failed,
                "1 launch of tickets not proved: the launch failed: at all".to_owned(),
            ),
        ] {
            assert_eq!(about(result), ["not-proved", level, &message]);
            let rule =
                &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], "not-proved");
        }
        let at = |location: &serde_json::Value| {
            let place = &location["physicalLocation"];
            let uri = place["artifactLocation"]["uri"]
                .as_str()
                .unwrap()
                .to_owned();
            (uri, place["region"]["startLine"].as_u64().unwrap())
        };
        let [here, from] = [&ticket["locations"][0], &ticket["relatedLocations"][0]];
        assert_eq!([at(here).1, at(from).1], [3, 2]);
        assert_eq!(here["logicalLocations"][0]["fullyQualifiedName"], "tickets");
        // Without a source, the line of the PTX.
        assert_eq!(at(&clock["locations"][0]), ("count.cu".to_owned(), 17));
        assert!(failed.get("locations").is_none(), "{failed}");
        let verified = run["properties"]["verified"].as_array().unwrap();
        let ring = verified.iter().find(|of| of["kernel"] == "ring").unwrap();
        assert_eq!(ring["answer"], "all-data");
        assert_eq!(ring["launches"]["all_data"], 1);
        // The other formats have them too.
        for (format, part) in [
            (
                Format::Github,
                if allowed {
                    "::notice title=not-proved"
                } else {
                    "::warning title=not-proved"
                },
            ),
            (
                Format::Markdown,
                if allowed {
                    "| ℹ️ | not-proved"
                } else {
                    "| ⚠️ | not-proved"
                },
            ),
            (Format::Html, "launch not proved"),
            (
                Format::Junit,
                "UNKNOWN: tickets\n  count.cu:3: where the access goes",
            ),
        ] {
            let text = format.render(&report, &sources, Style::default());
            assert_holds(&text.unwrap(), &[part]);
        }
    }
    let (_folder, sources) = crate::made::sources();
    let report = report(&sources);
    let text = Format::Sarif.render(&report, &sources, Style::default());
    let run = &valid_sarif(&text.unwrap())["runs"][0];
    assert!(run.get("properties").is_none(), "nothing was verified");
}

#[test]
fn junit_has_a_test_for_each_error_and_each_kernel() {
    let text = render(Format::Junit);
    let document = quick_junit::Report::deserialize_from_str(&text).unwrap();
    let cases = &document.test_suites[0].test_cases;
    let named = |name: &str| {
        let mut found = cases.iter().filter(|case| case.name.as_str() == name);
        found
            .next()
            .unwrap_or_else(|| panic!("{name}\nis missing in\n{text}"))
    };
    let race = named("CR003 inter-block race: count.cu:2, count.cu:3");
    assert_eq!(race.classname.as_ref().unwrap().as_str(), "count(int*)");
    let TestCaseStatus::NonSuccess {
        message,
        description,
        ..
    } = &race.status
    else {
        panic!("{text}");
    };
    assert!(message.as_ref().unwrap().contains("are not ordered"));
    assert!(description.as_ref().unwrap().contains("int y = x[1];"));
    // The known race fails nothing; what could not be checked is skipped; the program has ended well.
    let statuses = |wanted: fn(&TestCaseStatus) -> bool| {
        cases.iter().filter(|case| wanted(&case.status)).count()
    };
    assert_eq!(
        statuses(|of| matches!(of, TestCaseStatus::NonSuccess { .. })),
        1
    );
    assert_eq!(
        statuses(|of| matches!(of, TestCaseStatus::Skipped { .. })),
        1
    );
    assert_eq!(
        statuses(|of| matches!(of, TestCaseStatus::Success { .. })),
        2
    );
}

#[test]
fn in_junit_only_kernels_that_were_checked_and_have_no_races_pass() {
    let (_folder, sources) = crate::made::sources();
    let mut report = report(&sources);
    let racy = report.races[0].kernel.name.clone();
    let passes = |report: &Report| {
        let text = Format::Junit.render(report, &sources, Style::default());
        let document = quick_junit::Report::deserialize_from_str(&text.unwrap()).unwrap();
        let cases = document.test_suites[0].test_cases.iter();
        let races = cases.filter(|case| case.name.as_str() == "races");
        let passing = races.filter(|case| matches!(case.status, TestCaseStatus::Success { .. }));
        let named = passing.map(|case| case.classname.as_ref().unwrap().to_string());
        named.collect::<Vec<_>>()
    };
    assert_eq!(passes(&report), Vec::<String>::new());
    let mut first = report.coverage.kernels.iter();
    let first = first.find(|kernel| kernel.name == racy).cloned().unwrap();
    let mut other = report::model::Kernel {
        name: "other(int*)".to_owned(),
        launches: 2,
        ..first
    };
    let mut with = |other: &report::model::Kernel| {
        report.coverage.kernels.truncate(2);
        report.coverage.kernels.push(other.clone());
        passes(&report)
    };
    assert_eq!(with(&other), ["other(int*)"]);
    other.skipped = 1;
    assert_eq!(with(&other), ["other(int*)"]);
    other.skipped = 2;
    assert_eq!(with(&other), Vec::<String>::new());
    (other.skipped, other.launches) = (0, 0);
    assert_eq!(with(&other), Vec::<String>::new());
    other.launches = 2;
    report.races[0].kernels.push("other".to_owned());
    report.coverage.kernels.push(other.clone());
    assert_eq!(passes(&report), Vec::<String>::new());
    report.races[0].kernels.pop();
    report.coverage.kernels.truncate(2);
    report.coverage.kernels.push(other);
    report.failures.push(report::model::Failure {
        kernel: "other(int*)".to_owned(),
        message: "invalid global write".to_owned(),
        ..report::model::Failure::default()
    });
    assert_eq!(passes(&report), Vec::<String>::new());
}

#[test]
fn all_formats_name_a_launch_that_failed_and_none_takes_it_for_a_race() {
    let (_folder, sources) = crate::made::sources();
    let mut report = report(&sources);
    report.failures.push(report::model::Failure {
        kernel: "closed".to_owned(),
        message: "an illegal memory access by thread (3,0,0)".to_owned(),
        frames: report.races[0].accesses[0].frames.clone(),
        ..report::model::Failure::default()
    });
    let text = |format: Format| format.render(&report, &sources, Style::default()).unwrap();
    for format in [
        Format::Text,
        Format::Json,
        Format::Sarif,
        Format::Github,
        Format::Markdown,
        Format::Html,
    ] {
        assert_holds(
            &text(format),
            &["an illegal memory access by thread (3,0,0)"],
        );
    }
    let github = text(Format::Github);
    let failed = github
        .lines()
        .find(|line| line.contains("illegal"))
        .unwrap();
    assert!(failed.starts_with("::notice title="), "{failed}");
    assert_holds(failed, &["file=", "launch-failed"]);
    assert_holds(&text(Format::Sanitizer), &["(1 error, 0 warnings)"]);
    assert_eq!(failures(&report, &sources).len(), 1);
}

/// Why tests of the JUnit report fail.
fn failures(report: &Report, sources: &Sources) -> Vec<String> {
    let text = Format::Junit.render(report, sources, Style::default());
    let document = quick_junit::Report::deserialize_from_str(&text.unwrap()).unwrap();
    let cases = document.test_suites[0].test_cases.iter();
    let why = |of: &TestCaseStatus| match of {
        TestCaseStatus::NonSuccess { message, .. } => Some(message.as_ref().unwrap().to_string()),
        _ => None,
    };
    cases.filter_map(|case| why(&case.status)).collect()
}

/// `executionSuccessful` of the SARIF report.
fn successful(report: &Report, sources: &Sources) -> bool {
    let text = Format::Sarif.render(report, sources, Style::default());
    let document: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
    document["runs"][0]["invocations"][0]["executionSuccessful"] == true
}

#[test]
fn junit_and_sarif_report_how_the_run_has_ended() {
    let (_folder, sources) = sources();
    let built = |change: fn(&mut Context)| {
        let mut context = context();
        change(&mut context);
        let report = Report::build(&[log(None, Vec::new())], &context, &sources);
        (failures(&report, &sources), successful(&report, &sources))
    };
    let fails = |why: &str| vec![why.to_owned()];
    assert_eq!(built(|_| ()), (vec![], true));
    // A program that fails by itself has been checked to its end.
    assert_eq!(
        built(|of| of.exit.code = Some(3)),
        (fails("the program exited with 3"), true)
    );
    let killed = |of: &mut Context| {
        of.exit = ExitStatus {
            code: None,
            signal: Some(6),
        };
    };
    assert_eq!(
        built(killed),
        (fails("the program was killed by signal 6"), false)
    );
    assert_eq!(
        built(|of| of.timed_out = true),
        (fails("stopped when the time of --timeout was over"), false)
    );
    let not_run = |of: &mut Context| {
        of.exit = ExitStatus::default();
        of.not_run = Some("./app: not found".to_owned());
    };
    assert_eq!(built(not_run), (fails("./app: not found"), false));
}

#[test]
fn warnings_that_fail_the_run_fail_in_junit() {
    let (_folder, sources) = sources();
    let mut warning = race(1, 2, 3, 5);
    if let Event::Race(race) = &mut warning {
        race.decided = false;
    }
    for warnings_fail in [false, true] {
        let context = Context {
            warnings_fail,
            ..context()
        };
        let report = Report::build(&[log(None, vec![warning.clone()])], &context, &sources);
        assert_eq!(report.summary.warnings, 1);
        assert_eq!(
            report.summary.outcome == RunOutcome::Races,
            warnings_fail,
            "{:?}",
            report.summary
        );
        let failures = failures(&report, &sources);
        assert_eq!(failures.len(), usize::from(warnings_fail), "{failures:?}");
    }
    let error = vec![race(1, 2, 3, 5)];
    for findings_pass in [false, true] {
        let context = Context {
            findings_pass,
            ..context()
        };
        let report = Report::build(&[log(None, error.clone())], &context, &sources);
        let failures = failures(&report, &sources);
        let fail = usize::from(!findings_pass);
        assert_eq!(failures.len(), fail, "{failures:?}");
    }
}

#[test]
fn github_has_one_command_for_each_finding_that_counts() {
    let text = render(Format::Github);
    let [race, coverage] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}");
    };
    assert!(race.starts_with(
        "::error title=CR003%3A inter-block race,file=count.cu,line=2,col=5,endColumn=9::inter-block race"
    ), "{race}");
    assert_holds(
        race,
        &[
            "%0Acount.cu:3: thread (7,0,0) block (1,0,0) read",
            "%0Ahelp: ",
        ],
    );
    assert!(
        coverage.starts_with("::notice::COVERAGE: 1/2 kernels"),
        "{coverage}"
    );
}

#[test]
fn markdown_has_a_table_and_the_text() {
    let text = render(Format::Markdown);
    assert_holds(
        &text,
        &[
            "## cudarun-check: races found",
            "| ❌ | CR003 inter-block race | `count.cu:2` | `count.cu:3` | `count(int*)` | 5 |",
            "= seen: 5 times in 1 launch",
            "COVERAGE: 1/2 kernels instrumented",
            "its PTX is not there &amp; &lt;gone&gt;",
        ],
    );
    assert_eq!(text.matches("<details>").count(), 1, "{text}");
}

#[test]
fn the_page_shows_both_sides_and_needs_nothing_else() {
    let text = render(Format::Html);
    assert_holds(
        &text,
        &[
            "<mark>x[0]</mark>",
            "<mark>int y = x[1]</mark>",
            "aria-label=\"byte 4 of 1,024 of allocation #2\"",
            "aria-label=\"block (0,0,0); first: warp 0, lane 7\"",
            "aria-label=\"block (1,0,0); second: warp 0, lane 7\"",
            "Not counted: known for long",
            "its PTX is not there &amp; &lt;gone&gt;",
        ],
    );
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!text.contains(outside), "{outside} is in\n{text}");
    }
}

#[test]
fn variables_and_the_barriers_around_the_accesses_are_named() {
    let (_folder, sources) = sources();
    let Event::Race(mut in_shared) = race(1, 2, 3, 5) else {
        panic!("it is a race");
    };
    in_shared.space = Space::Shared;
    in_shared.address = 0x84;
    in_shared.allocation = Some(Allocation {
        id: 0,
        base: 0,
        bytes: 4224,
        api: "variable _ZZ5countPiE4tile".into(),
        place: Some("tile[1][0]".into()),
    });
    let barrier = Barrier {
        of: "block".into(),
        frames: site(1, Op::Load, 3).frames,
        ptx_line: 12,
    };
    let without_line = Barrier {
        frames: Vec::new(),
        ..barrier.clone()
    };
    in_shared.around = vec![
        Around {
            before: None,
            after: Some(barrier),
        },
        Around {
            before: Some(without_line),
            after: None,
        },
    ];
    let report = Report::build(
        &[log(None, vec![Event::Race(in_shared)])],
        &context(),
        &sources,
    );
    assert_valid(&report);
    assert_holds(
        &crate::made::render(&report, &sources),
        &["address: `tile[1][0]`, offset 0x84 in the shared memory of the block"],
    );
    let page = Format::Html.render(&report, &sources, Style::default());
    assert_holds(
        &page.unwrap(),
        &[
            "tile[1][0]: byte 132 of 4,224 of variable count(int*)::tile",
            "barrier of the block at count.cu:3",
            "barrier of the block at PTX line 12",
            "The barriers are the nearest ones",
        ],
    );
}

#[test]
fn races_of_the_baseline_are_known_in_every_format() {
    let (_folder, sources) = sources();
    let mut report = report(&sources);
    report.races[1].suppressed_by = None;
    let [new, known] = [Standing::New, Standing::Known].map(Some);
    (report.races[0].baseline, report.races[1].baseline) = (new, known);
    let render = |format: Format| format.render(&report, &sources, Style::default()).unwrap();
    let sarif: serde_json::Value = serde_json::from_str(&render(Format::Sarif)).unwrap();
    let results = &sarif["runs"][0]["results"];
    assert_eq!(results[0]["baselineState"], "new");
    assert_eq!(results[1]["baselineState"], "unchanged");
    assert!(results[1].get("suppressions").is_none());
    assert_holds(
        &render(Format::Html),
        &["Not counted: known from the baseline"],
    );
    assert_eq!(render(Format::Github).matches("::error ").count(), 1);
}

#[test]
fn without_its_source_a_side_shows_its_instruction() {
    let nowhere = Sources::new(Vec::new());
    let report = report(&nowhere);
    let page = Format::Html.render(&report, &nowhere, Style::default());
    assert_holds(
        &page.unwrap(),
        &[
            "<code>count.cu:2</code>",
            "st.global.u32 [%rd1], %r1;",
            "<code>count.cu:3</code>",
            "ld.global.u32 %r1, [%rd1];",
        ],
    );
}
