//! `--record` and `replay`: launches with races run again in another process, without the program.

use std::process::{Command, Stdio};

use crate::common;
use crate::workdir::{self, RACY, Workdir};
use serde_json::Value;

/// Records the counting kernel; `more` are flags of the run.
fn record(workdir: &Workdir, more: &[&str]) {
    let flags = [&["--record", "--save", "run.crr", "-q"], more].concat();
    workdir.run_kernel(RACY, &flags).ends(66, &[]);
}

fn replay(workdir: &Workdir, more: &[&str]) -> workdir::Ran {
    workdir.tool(&[&["replay", "run.crr"], more].concat())
}

fn json(ran: &workdir::Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {}", ran.stderr))
}

#[test]
fn a_race_is_seen_again_with_its_values_and_steps() {
    for seed in ["0", "1", "2", "3"] {
        let workdir = Workdir::new();
        record(&workdir, &["--seed", seed, "--format", "json:now.json"]);
        let then = workdir.json("now.json");
        // The file is all that is needed.
        std::fs::remove_file(workdir.path("count.ptx")).unwrap();
        let ran = replay(&workdir, &["--format", "json", "--trace"]);
        ran.ends(66, &[]);
        let now = json(&ran);
        assert_eq!(now["faithful"], true);
        let races = then["races"].as_array().unwrap();
        let id = &now["race"]["id"];
        let race = races.iter().find(|race| &race["id"] == id).unwrap();
        for key in [
            "accesses",
            "address",
            "rule",
            "message",
            "help",
            "fingerprint",
        ] {
            assert_eq!(now["race"][key], race[key], "{key} under seed {seed}");
        }
        let instructions = &then["stats"]["warp_instructions"];
        assert_eq!(&now["warp_instructions"], instructions);
        let steps = now["steps"].as_array().unwrap();
        let [first, .., last] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(
            (&first["role"], &last["role"]),
            (&"first".into(), &"second".into())
        );
        let numbers: Vec<u64> = steps
            .iter()
            .map(|s| s["number"].as_u64().unwrap())
            .collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        // Each of two threads reads and writes the word.
        assert_eq!(now["trace"].as_array().unwrap().len(), 4);
        // The second time is as the first.
        assert_eq!(
            json(&replay(&workdir, &["--format", "json", "--trace"])),
            now
        );
    }
}

#[test]
fn people_read_the_race_the_steps_and_the_help() {
    let workdir = Workdir::new();
    record(&workdir, &["--format", "json:now.json"]);
    let id = workdir.json("now.json")["races"][0]["id"].to_string();
    let id = id.trim_matches('"');
    // By its id, by how that begins, and without.
    let all = [&["--id", id][..], &["--id", &id[3..8]], &[]];
    let texts = all.map(|more| {
        let ran = replay(&workdir, more);
        ran.ends(66, &[]);
        ran.stdout
    });
    assert!(texts.iter().all(|text| *text == texts[0]));
    for word in [
        "error[CR003]",
        id,
        "from the first access to the second",
        "first   writes the word that races",
        "second  reads the word that races",
        "help: make the update one atomic operation",
        "replayed launch #1: the same race",
    ] {
        assert!(
            texts[0].contains(word),
            "{word}\nis missing in\n{}",
            texts[0]
        );
    }
    replay(&workdir, &["--error-exitcode", "3"]).ends(3, &[]);
}

#[test]
fn an_archive_is_a_saved_report_too() {
    let workdir = Workdir::new();
    record(&workdir, &[]);
    let shown = workdir.tool(&["report", "run.crr"]);
    shown.ends(66, &[]);
    assert!(shown.stdout.contains("error[CR003]"), "{}", shown.stdout);
    workdir
        .tool(&["baseline", "create", "run.crr"])
        .ends(0, &[]);
    workdir.tool(&["suppress", "run.crr"]).ends(0, &[]);
    workdir.tool(&["diff", "run.crr", "run.crr"]).ends(0, &[]);
}

#[test]
fn each_schedule_has_launches_of_its_own() {
    let workdir = Workdir::new();
    record(&workdir, &["--schedules", "4", "--format", "json:now.json"]);
    for race in workdir.json("now.json")["races"].as_array().unwrap() {
        let id = race["id"].as_str().unwrap();
        let now = json(&replay(&workdir, &["--format", "json", "--id", id]));
        assert_eq!(now["race"]["accesses"], race["accesses"]);
    }
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let workdir = Workdir::new();
    record(&workdir, &[]);
    replay(&workdir, &["--id", "CR-nothing"])
        .ends(64, &["no race has the id `CR-nothing`; there are CR-"]);
    workdir
        .run_kernel(RACY, &["--save", "plain.crr"])
        .ends(66, &[]);
    workdir
        .tool(&["replay", "plain.crr"])
        .ends(65, &["plain.crr: no recorded launches"]);
    workdir
        .tool(&["replay", "nothing.crr"])
        .ends(65, &["nothing.crr: cannot read"]);
    workdir
        .run_kernel(RACY, &["--record", "--save", "run.crr", "--as-gpu"])
        .ends(64, &["--as-gpu records no launches"]);
    workdir
        .run_kernel(RACY, &["--record"])
        .ends(64, &["--save"]);
    workdir
        .tool(&["--device", "gpu", "--record", "--save", "run.crr", "true"])
        .ends(64, &["--record is for the simulated device"]);
    workdir
        .run_kernel(RACY, &["--record=2%", "--save", "run.crr"])
        .ends(64, &["`2%` is not a size"]);
}

#[test]
fn a_limit_that_is_passed_is_said_in_the_report() {
    let workdir = Workdir::new();
    let flags = ["--record=3", "--save", "run.crr", "--arg", "u32:7"];
    let kernel = include_str!("c/count.ptx").replace("${op}", RACY);
    workdir.write("count.ptx", &kernel);
    // Memory that is all zero takes no room.
    let run = |word: &str, flags: &[&str]| {
        let launch = ["count.ptx", "--grid", "2", "--block", "1", "--arg", word];
        workdir.tool(&[&launch, flags].concat())
    };
    run("u32[1]", &flags).ends(66, &[]).lacks(&["not recorded"]);
    run("u32[1]:7", &flags).ends(
        66,
        &["note: launch #1 of count has a race, and is not recorded: device memory holds more than 3 bytes"],
    );
    workdir
        .tool(&["replay", "run.crr"])
        .ends(65, &["cannot be replayed: its launch was not recorded"]);
}

#[test]
fn damaged_files_are_refused() {
    let workdir = Workdir::new();
    record(&workdir, &[]);
    let bytes = std::fs::read(workdir.path("run.crr")).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(workdir.path("bad.crr"), bytes).unwrap();
        let ran = workdir.tool(&["replay", "bad.crr"]);
        // Some bytes say nothing that counts, such as a time.
        assert!([65, 66].contains(&ran.code), "{}: {}", ran.code, ran.stderr);
        assert_eq!(ran.code == 65, !ran.stderr.is_empty(), "{}", ran.stderr);
        ran.code == 65
    };
    assert!(refused(&bytes[..bytes.len() / 2]));
    assert!(refused(b"PK"));
    assert!(refused(b""));
    let step = bytes.len() / 40;
    let changed = (0..bytes.len()).step_by(step).filter(|&at| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0xff;
        refused(&bytes)
    });
    assert!(changed.count() > 20);
}

/// A module that another one is loaded beside, and a kernel that reads a variable, pinned memory of the host, and its
/// neighbour's word of shared memory.
const MODULE: &str = include_str!("c/replay.ptx");

#[test]
fn a_program_with_modules_variables_and_memory_of_the_host_is_not_needed() {
    let program = common::compile("replay", MODULE);
    let workdir = Workdir::new();
    let mut command = common::command(common::Way::Simulated, &workdir.path(""));
    command
        .args(["--record", "--save"])
        .arg(workdir.path("run.crr"));
    let output = command.arg(program).stdin(Stdio::null()).output().unwrap();
    let said = common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(66), "{said}");
    let report = workdir.json("report.json");
    let races = report["races"].as_array().unwrap();
    assert_eq!(races.len(), 2, "{said}");
    for race in races {
        // Of several launches, the first one that had it.
        assert_eq!(race["kernel"]["launch"], 2);
        let id = race["id"].as_str().unwrap();
        // As on another machine: no library of ours, and no driver.
        let mut command = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
        command.args(["replay", "run.crr", "--format", "json", "--id", id]);
        command.env_clear().current_dir(workdir.path(""));
        let ran: workdir::Ran = command.stdin(Stdio::null()).output().unwrap().into();
        ran.ends(66, &[]);
        let now = json(&ran);
        assert_eq!(now["race"]["accesses"], race["accesses"]);
        assert_eq!(now["race"]["address"], race["address"]);
        // The launch is the same, and of no process of the replay.
        let mut kernel = race["kernel"].clone();
        kernel.as_object_mut().unwrap().remove("process").unwrap();
        assert_eq!(now["race"]["kernel"], kernel);
    }
}
