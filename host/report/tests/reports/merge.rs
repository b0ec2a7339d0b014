//! Several reports as one.

use report::formats::Format;
use report::log::Event;
use report::model::{Level, Report, RunOutcome, Standing, SuppressedBy};
use report::text::Style;
use report::{Context, Log};

use crate::made::{assert_valid, context, launch, log, race, render, sources};

fn build(log: Log, context: &Context) -> Report {
    let (_folder, sources) = sources();
    Report::build(&[log], context, &sources)
}

#[test]
fn one_report_stays_as_it_is() {
    let report = build(log(None, vec![race(1, 2, 3, 4)]), &context());
    assert_eq!(Report::merge(vec![report.clone()]), report);
}

#[test]
fn the_same_race_is_one_entry_with_all_counts() {
    let one = build(log(None, vec![race(1, 1, 2, 4)]), &context());
    let two = build(
        log(None, vec![race(1, 1, 2, 5), race(1, 2, 3, 1)]),
        &context(),
    );
    let merged = Report::merge(vec![one.clone(), two.clone()]);
    assert_valid(&merged);
    let seen: Vec<_> = (merged.races.iter())
        .map(|race| (race.id.clone(), race.count, race.launches.len()))
        .collect();
    let [of_one, of_two] = [&one.races[0], &two.races[1]].map(|race| race.id.clone());
    assert_eq!(seen, [(of_one, 9, 2), (of_two, 1, 1)]);
    assert_eq!((merged.summary.races, merged.summary.errors), (2, 2));
    let coverage = &merged.coverage;
    assert_eq!(coverage.launches.checked, 2);
    assert_eq!(coverage.kernels.len(), 1);
    assert_eq!(coverage.kernels[0].launches, 2);
    assert_eq!(coverage.kernels[0].accesses.total, 3);
    assert_eq!(merged.stats.warp_instructions, 200);
    assert_eq!(merged.run.pids, [41, 41]);
    // The two ran the same schedule.
    assert_eq!(merged.tool.schedules, 1);
    let text = render(&merged, &sources().1);
    assert!(text.contains("= seen: 9 times in 2 launches"), "{text}");
    assert!(text.contains("2 launches checked"), "{text}");
}

#[test]
fn all_programs_are_named() {
    let of = |argv: &str| {
        let argv = argv.split(' ').map(str::to_owned).collect();
        let context = Context { argv, ..context() };
        build(log(None, Vec::new()), &context)
    };
    let both = Report::merge(vec![of("./one 1"), of("./two"), of("./one 1")]);
    let merged = Report::merge(vec![of("./two"), both]);
    assert_valid(&merged);
    assert_eq!(merged.run.programs(), ["./two", "./one 1"]);
    let (_folder, sources) = sources();
    for format in [Format::Html, Format::Markdown, Format::Sarif] {
        let text = format.render(&merged, &sources, Style::default()).unwrap();
        for program in ["./two", "./one"] {
            assert!(text.contains(program), "{format:?}: {text}");
        }
    }
}

#[test]
fn seeds_count_once() {
    let of = |seed, schedules| {
        let context = Context {
            seed,
            schedules,
            ..context()
        };
        build(log(Some(seed), vec![race(1, 1, 2, 1)]), &context)
    };
    let merged = Report::merge(vec![of(8, 4), of(0, 4), of(2, 4)]);
    assert_eq!((merged.tool.seed, merged.tool.schedules), (0, 10));
    assert_eq!(merged.races[0].seeds, [8, 0, 2]);
}

#[test]
fn the_worst_outcome_is_the_outcome() {
    let clean = build(log(None, Vec::new()), &context());
    let racy = build(log(None, vec![race(1, 1, 2, 1)]), &context());
    let incomplete = build(Log::default(), &context());
    let mut failed = context();
    failed.exit.code = Some(3);
    let failed = build(log(None, Vec::new()), &failed);
    let of = |reports: &[&Report]| {
        let merged = Report::merge(reports.iter().copied().cloned().collect());
        (merged.summary.outcome, merged.run.exit.code)
    };
    assert_eq!(of(&[&clean, &clean]), (RunOutcome::Clean, Some(0)));
    assert_eq!(
        of(&[&clean, &incomplete]),
        (RunOutcome::Incomplete, Some(0))
    );
    assert_eq!(
        of(&[&incomplete, &failed]),
        (RunOutcome::AppFailed, Some(3))
    );
    assert_eq!(of(&[&failed, &racy, &clean]), (RunOutcome::Races, Some(3)));
}

#[test]
fn a_race_that_counts_in_one_report_counts() {
    let counted = build(log(None, vec![race(1, 1, 2, 1)]), &context());
    let mut known = counted.clone();
    known.races[0].suppressed_by = Some(SuppressedBy::default());
    for reports in [[&counted, &known], [&known, &counted]] {
        let merged = Report::merge(reports.map(Clone::clone).to_vec());
        assert_eq!((merged.summary.races, merged.summary.suppressed), (1, 0));
        assert_eq!(merged.races[0].count, 2);
    }
    let merged = Report::merge(vec![known.clone(), known]);
    assert_eq!((merged.summary.races, merged.summary.suppressed), (0, 1));
}

#[test]
fn an_error_is_not_hidden_behind_a_warning() {
    let always_the_same = |same| {
        let mut race = race(1, 2, 2, 1);
        if let Event::Race(race) = &mut race {
            race.same_value = same;
        }
        build(log(None, vec![race]), &context())
    };
    let (same, other) = (always_the_same(true), always_the_same(false));
    for reports in [[&same, &other], [&other, &same]] {
        let merged = Report::merge(reports.map(Clone::clone).to_vec());
        let [race] = &merged.races[..] else {
            panic!("one race")
        };
        assert_eq!((race.level, race.same_value), (Level::Error, false));
        assert!(!race.message.contains("same value"), "{}", race.message);
    }
}

#[test]
fn a_kernel_that_ran_unchecked_once_is_not_whole() {
    let of = |checked: bool| {
        let mut log = log(None, Vec::new());
        for event in &mut log.events {
            match event {
                Event::Module(module) => module.kernels[0].instrumented = checked,
                Event::Launch(of) => {
                    **of = report::log::Launch {
                        checked,
                        why_not: (!checked).then(|| "no room".to_owned()),
                        ..launch(1)
                    }
                }
                _ => {}
            }
        }
        build(log, &context())
    };
    let merged = Report::merge(vec![of(true), of(false)]);
    assert_valid(&merged);
    let kernel = &merged.coverage.kernels[0];
    assert!(!kernel.instrumented);
    assert_eq!((kernel.launches, kernel.skipped), (2, 1));
    assert_eq!(merged.summary.outcome, RunOutcome::Incomplete);
}

#[test]
fn pairs_of_one_cause_keep_their_counts_whatever_entry_they_are_in() {
    let of = |ids: &[&str], count| {
        let mut report = build(log(None, vec![race(1, 1, 2, count)]), &context());
        let head = report.races.remove(0);
        let mut races = ids.iter().map(|id| {
            let mut race = head.clone();
            race.fingerprint = (*id).to_owned();
            race
        });
        let mut head = races.next().unwrap();
        head.related = races
            .map(|race| report::model::Related {
                fingerprint: race.fingerprint,
                level: race.level,
                count: race.count,
                ..report::model::Related::default()
            })
            .collect();
        report.races = vec![head];
        report
    };
    let counts = |reports: Vec<Report>| {
        let merged = Report::merge(reports);
        let entry = |race: report::model::Race| {
            let related = race.related.into_iter();
            let related = related.map(|of| format!("{}{}", of.fingerprint, of.count));
            format!(
                "{}{}[{}]",
                race.fingerprint,
                race.count,
                related.collect::<String>()
            )
        };
        merged.races.into_iter().map(entry).collect::<Vec<_>>()
    };
    assert_eq!(
        counts(vec![of(&["a", "b"], 1), of(&["b", "a", "c"], 2)]),
        ["a3[b3c2]"]
    );
    assert_eq!(
        counts(vec![of(&["b"], 1), of(&["a", "b"], 2), of(&["d"], 4)]),
        ["b3[]", "a2[]", "d4[]"]
    );
    // An error among warnings becomes an entry.
    let mut warning = of(&["a", "b"], 1);
    warning.races[0].level = Level::Warning;
    warning.races[0].related[0].level = Level::Warning;
    assert_eq!(counts(vec![warning, of(&["b"], 2)]), ["b3[]", "a1[]"]);
}

#[test]
fn a_pair_that_counts_is_not_hidden_in_what_is_known() {
    let counted = build(log(None, vec![race(1, 1, 2, 1)]), &context());
    let head = &counted.races[0];
    let mut other = head.clone();
    other.fingerprint = "other".to_owned();
    let pair = |race: &report::model::Race| report::model::Related {
        fingerprint: race.fingerprint.clone(),
        level: race.level,
        count: race.count,
        ..report::model::Related::default()
    };
    // In one report both pairs are known, in the other they count, in each way to group them.
    let of = |races: [&report::model::Race; 2], standing| {
        let mut report = counted.clone();
        let [head, related] = races;
        report.races = vec![report::model::Race {
            related: vec![pair(related)],
            baseline: Some(standing),
            ..head.clone()
        }];
        report
    };
    for order in [[head, &other], [&other, head]] {
        let known = of([head, &other], Standing::Known);
        let new = of(order, Standing::New);
        for reports in [[&known, &new], [&new, &known]] {
            let merged = Report::merge(reports.map(Clone::clone).to_vec());
            let counting = merged.counted().flat_map(|race| race.pairs());
            let counting: Vec<_> = counting.map(|pair| pair.fingerprint).collect();
            assert_eq!(counting.len(), 2, "{counting:?}");
            let counts = |race: &report::model::Race| {
                race.count + race.related.iter().map(|of| of.count).sum::<u64>()
            };
            assert_eq!(merged.races.iter().map(counts).sum::<u64>(), 4);
        }
    }
}

/// A process with the given number and program that has a race.
fn process(pid: u32, program: &str, seed: Option<u64>, races: Vec<Event>) -> Log {
    let mut log = log(seed, races);
    if let Some(Event::Start { pid: of, argv, .. }) = log.events.first_mut() {
        (*of, *argv) = (pid, vec![program.to_owned(), "-n".to_owned()]);
    }
    log
}

#[test]
fn races_name_their_processes_where_there_are_several() {
    let (_folder, sources) = sources();
    let racy = || vec![race(1, 1, 2, 4)];
    let logs = [
        process(7, "./quiet", None, Vec::new()),
        process(8, "./one", None, racy()),
        process(9, "./two", None, racy()),
    ];
    let report = Report::build(&logs, &context(), &sources);
    assert_valid(&report);
    let [found] = &report.races[..] else {
        panic!("{report:?}")
    };
    assert_eq!(
        (&found.processes[..], found.kernel.process),
        (&[1, 2][..], Some(1))
    );
    let text = render(&report, &sources);
    let named = "= process: 8 (./one -n), 9 (./two -n)";
    assert!(text.contains(named), "{text}");
    for (format, named) in [
        (Format::Github, "%0Aprocess: 8 (./one -n), 9 (./two -n)%0A"),
        (
            Format::Sanitizer,
            "=========     Process 8 (./one -n), 9 (./two -n)\n",
        ),
        (Format::Markdown, "= process: 8 (./one -n), 9 (./two -n)"),
        (Format::Junit, "= process: 8 (./one -n), 9 (./two -n)"),
    ] {
        let text = format.render(&report, &sources, Style::default()).unwrap();
        assert!(text.contains(named), "{text}");
    }
    let sarif = Format::Sarif.render(&report, &sources, Style::default());
    let sarif: serde_json::Value = serde_json::from_str(&sarif.unwrap()).unwrap();
    assert_eq!(
        sarif["runs"][0]["results"][0]["properties"]["processes"],
        serde_json::json!(["8 (./one -n)", "9 (./two -n)"])
    );
    // The indices are those of the sum.
    let other = Report::build(
        &[process(3, "./three", None, racy())],
        &Context::default(),
        &sources,
    );
    let merged = Report::merge(vec![other, report]);
    assert_valid(&merged);
    let pids = |all: &[usize]| all.iter().map(|&of| merged.run.processes[of].pid).collect();
    let pids: Vec<u32> = pids(&merged.races[0].processes);
    assert_eq!(pids, [3, 8, 9]);
}

#[test]
fn one_process_for_each_schedule_is_not_named() {
    let (_folder, sources) = sources();
    let logs = [None, Some(1)].map(|seed| process(7, "./one", seed, vec![race(1, 1, 2, 4)]));
    let report = Report::build(&logs, &context(), &sources);
    let text = render(&report, &sources);
    assert!(!text.contains("= process: "), "{text}");
    let sarif = Format::Sarif.render(&report, &sources, Style::default());
    assert!(!sarif.unwrap().contains("\"processes\""));
}
