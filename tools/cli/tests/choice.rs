//! Choosing what is checked: kernels, launches, memory and time, in every mode and on both ways to a device.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::common::{self, Way};
use crate::kernel;
use serde_json::Value;

/// A kernel that cells can judge, and one that keeps a journal as on a GPU.
const FIRST: &str = "first_sum";
const SECOND: &str = "_Z10second_sumPj";

/// Options, and how many launches each of them leaves out.
type Case = (&'static [&'static str], &'static [(&'static str, u64)]);

const MODES: [(Way, &[&str]); 4] = [
    (Way::Simulated, &[]),
    (Way::Simulated, &["--mode", "fast"]),
    (Way::Simulated, &["--as-gpu"]),
    (Way::Interposed, &[]),
];

fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| common::compile("choice", include_str!("c/choice.ptx")))
}

/// Runs three launches of each kernel in turns; exit code, text and report.
fn run(way: Way, options: &[&str]) -> (i32, String, Value) {
    run_with(way, options, &[FIRST, SECOND, FIRST, SECOND, FIRST, SECOND])
}

/// Runs the program with these arguments.
fn run_with(way: Way, options: &[&str], arguments: &[&str]) -> (i32, String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = common::command(way, folder.path());
    command.args(options).arg(program());
    command.args(arguments);
    let output = command.output().unwrap();
    let text = common::text(&output.stderr);
    let json = std::fs::read_to_string(folder.path().join("report.json"));
    let json = serde_json::from_str(&json.expect(&text)).unwrap();
    kernel::assert_valid(&json);
    (output.status.code().unwrap(), text, json)
}

/// Later launches are checked for races that are known too.
const ALL_RACES: &[&str] = &["--prove", "off"];

#[test]
fn suppressions_of_memory_have_every_launch_look_for_every_race() {
    let folder = tempfile::tempdir().unwrap();
    let list = |key: &str| {
        let path = folder.path().join(format!("{key}.toml"));
        let text = format!("[[suppress]]\n{key} = 'no such'\nreason = 'a test'\n");
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    for (way, mode) in [MODES[1], MODES[3]] {
        let known = |key: &str| {
            let list = list(key);
            let (code, text, json) = run(way, &[mode, &["--suppressions", &list]].concat());
            assert_eq!(code, 66, "{text}");
            let kernels = json["coverage"]["kernels"].as_array().unwrap();
            let known = |of: &Value| of["judged_by"]["known"].as_u64();
            kernels.iter().filter_map(known).sum::<u64>()
        };
        assert!(known("kernel") > 0, "{way:?}");
        assert_eq!(known("allocation"), 0, "{way:?}");
    }
}

#[test]
fn launches_are_chosen_by_name_number_and_time() {
    let cases: [Case; 9] = [
        (&[], &[]),
        (&["--kernel-name", "first_s"], &[("kernel_name", 3)]),
        (
            &["--kernel-name", "regex:^second_sum\\(unsigned"],
            &[("kernel_name", 3)],
        ),
        (
            &["--exclude-kernel", "kne=second_sum"],
            &[("exclude_kernel", 3)],
        ),
        (&["--kernel-name-exclude", FIRST], &[("exclude_kernel", 3)]),
        (
            &["--kernel-name", FIRST, "-s", "1", "-c", "1"],
            &[("kernel_name", 3), ("launch_skip", 1), ("launch_count", 1)],
        ),
        (&["--launch-skip", "4"], &[("launch_skip", 4)]),
        (&["--launch-sample", "1/4"], &[("launch_sample", 4)]),
        (&["--time-budget", "0.000000001"], &[("time_budget", 5)]),
    ];
    for (way, mode) in MODES {
        for (options, unchosen) in cases {
            let options = [mode, ALL_RACES, options].concat();
            let (code, text, json) = run(way, &options);
            assert_eq!(code, 66, "{way:?} {options:?}: {text}");
            let coverage = &json["coverage"];
            for (option, count) in coverage["unchosen"].as_object().unwrap() {
                let expected = unchosen.iter().find(|(known, _)| known == option);
                let expected = expected.map_or(0, |(_, count)| *count);
                assert_eq!(count, expected, "{way:?} {options:?} {option}: {text}");
            }
            let left: u64 = unchosen.iter().map(|(_, count)| count).sum();
            assert_eq!(coverage["launches"]["total"], 6, "{text}");
            assert_eq!(coverage["launches"]["checked"], 6 - left, "{text}");
            assert_eq!(coverage["incomplete_because"], serde_json::json!([]));
            if left > 0 {
                let part = format!("{} of 6 launches checked (", 6 - left);
                assert!(text.contains(&part), "{text}");
            }
        }
    }
}

#[test]
fn launches_are_chosen_by_ranges_of_nvtx() {
    let program = [
        FIRST, "+outer", FIRST, "+inner", SECOND, "-", FIRST, "-", "*step", SECOND,
    ];
    for (way, mode) in MODES {
        for (options, left) in [
            (&["--nvtx-include", "outer"][..], 2),
            (&["--nvtx-include", "inner", "--nvtx-include", "@step"], 3),
            (
                &[
                    "--nvtx-include",
                    "regex:^(outer|step)$",
                    "--nvtx-exclude",
                    "inner",
                ],
                2,
            ),
            (&["--nvtx-exclude", "outer"], 3),
            (&["--nvtx-exclude", "other@outer"], 0),
        ] {
            let options = [mode, options].concat();
            let (code, text, json) = run_with(way, &options, &program);
            assert_eq!(code, 66, "{way:?} {options:?}: {text}");
            let coverage = &json["coverage"];
            assert_eq!(
                coverage["unchosen"]["nvtx_range"], left,
                "{options:?} {text}"
            );
            assert_eq!(
                coverage["launches"]["checked"],
                5 - left,
                "{options:?} {text}"
            );
        }
    }
}

#[test]
fn streams_have_the_names_that_nvtx_gives_them() {
    // The fill in the default stream comes before it.
    let program = ["=upload", FIRST];
    let (code, text, json) = run_with(Way::Simulated, &[], &program);
    assert_eq!(code, 66, "{text}");
    let races = json["races"].as_array().unwrap();
    let between = races.iter().find(|race| race["rule"] == "CR014");
    let between = between.unwrap_or_else(|| panic!("{text}"));
    let streams = [0, 1].map(|n: usize| between["work"][n]["stream"].as_str().unwrap());
    assert_eq!(streams, ["the default stream", "stream #1 \"upload\""]);
    assert!(
        text.contains("let stream #1 \"upload\" wait for it"),
        "{text}"
    );
}

#[test]
fn only_chosen_launches_have_races() {
    for (way, mode) in MODES {
        let options = [mode, ALL_RACES, &["--launch-sample", "1/4"]].concat();
        let (_, text, json) = run(way, &options);
        let races = json["races"].as_array().unwrap();
        assert!(!races.is_empty(), "{text}");
        for race in races {
            let launches: Vec<u64> = serde_json::from_value(race["launches"].clone()).unwrap();
            assert_eq!(launches, [1, 5], "{way:?} {options:?}: {text}");
        }
    }
}

#[test]
fn a_choice_is_complete_unless_it_leaves_nothing() {
    for (way, mode) in MODES {
        let more = [
            "--strict",
            "--require-coverage",
            "100%",
            "--fail-on",
            "never",
        ];
        let options = [mode, &more, &["--launch-count", "1"]].concat();
        let (code, text, _) = run(way, &options);
        assert_eq!(code, 0, "{way:?} {options:?}: {text}");
        let options = [mode, &["--kernel-name", "third_sum"]].concat();
        let (code, text, json) = run(way, &options);
        assert_eq!(code, 75, "{way:?} {options:?}: {text}");
        assert_eq!(json["coverage"]["unchosen"]["kernel_name"], 6);
        let why = "incomplete: nothing was checked: the options select no launch";
        assert!(text.contains(why), "{text}");
        assert!(text.contains("6 not selected by --kernel-name"), "{text}");
    }
}

/// The warps of a block store to shared memory, and both blocks to global memory.
const BOTH: &str = ".shared .align 4 .b32 word; .reg .b32 %t; mov.u32 %t, %tid.x;\n\
     add.u32 %n, %n, %t; st.shared.u32 [word], %n;\n     st.global.u32 [%data], %n;";

#[test]
fn races_are_reported_in_the_memory_that_is_asked_for() {
    for mode in [&[][..], &["--mode", "fast"], &["--as-gpu"]] {
        for (space, spaces) in [
            ("global,shared", &["global", "shared"][..]),
            ("global", &["global"]),
            ("shared", &["shared"]),
        ] {
            let options = [mode, &["--space", space]].concat();
            let ran = kernel::run_as("--grid 2 --block 64", BOTH, &options);
            ran.ends(66, &[]);
            let races = ran.json["races"].as_array().unwrap().iter();
            let mut found: Vec<&str> = races.map(|race| race["space"].as_str().unwrap()).collect();
            found.sort();
            found.dedup();
            assert_eq!(found, spaces, "{options:?}: {}", ran.text);
            assert_eq!(ran.json["coverage"]["spaces"], serde_json::json!(spaces));
            let only = format!("races in {space} memory only (--space)");
            assert_eq!(ran.text.contains(&only), spaces.len() == 1, "{}", ran.text);
        }
    }
}

#[test]
fn what_makes_no_sense_is_named() {
    for (options, word) in [
        (["--kernel-name", "regex:("], "is no regular expression"),
        (["--launch-sample", "1/0"], "is not 1/N"),
        (["--space", "local"], "global, shared"),
        (["--time-budget", "soon"], "is not a time"),
        (["--fail-on", "info"], "error, warning, never"),
    ] {
        let mut tool = std::process::Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
        let output = tool.args(options).arg("true").output().unwrap();
        let said = common::text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains(word), "{word} is missing in {said}");
    }
}
