//! `--format jsonl`: a line for each race while the program runs, and one for the run in the end.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{self, WAYS, built, command};
use crate::workdir::{RACY, Workdir};
use serde_json::Value;

/// More than enough for a program that is checked.
const LONG: Duration = Duration::from_secs(60);

/// The whole lines of a file.
fn lines(text: &str) -> Vec<Value> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

#[test]
fn a_race_is_reported_while_the_program_runs() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.jsonl");
        let mut tool = command(way, folder.path());
        tool.arg("--format")
            .arg(format!("jsonl:{}", file.display()));
        // It launches a kernel that races, and then waits for ever.
        tool.arg(&built().program).args(["on-host", "default"]);
        let mut tool = tool
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let read = || lines(&std::fs::read_to_string(&file).unwrap_or_default());
        let started = Instant::now();
        while read().is_empty() {
            assert!(started.elapsed() < LONG, "{way:?}: no race is told");
            assert!(tool.try_wait().unwrap().is_none(), "{way:?}: it has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        let reported = read();
        assert_eq!(reported[0]["type"], "race", "{way:?}");
        assert_eq!(reported[0]["race"]["kernel"]["name"], "count");
        os::signals::send(tool.id(), 15);
        let output = tool.wait_with_output().unwrap();
        let text = common::text(&output.stderr);
        let all = read();
        let (last, races) = all.split_last().unwrap();
        assert_eq!(last["type"], "summary", "{text}");
        assert_eq!(last["summary"]["outcome"], "races", "{text}");
        // The report in JSON has the same races, each once.
        let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let of = |all: &[Value], field: fn(&Value) -> &Value| -> Vec<Value> {
            all.iter()
                .map(|race| field(race)["fingerprint"].clone())
                .collect()
        };
        let in_lines = of(races, |line| &line["race"]);
        assert_eq!(
            in_lines,
            of(report["races"].as_array().unwrap(), |race| race)
        );
        assert_eq!(last["coverage"], report["coverage"]);
    }
}

#[test]
fn a_kernel_and_a_saved_report_are_reported_in_the_end() {
    let workdir = Workdir::new();
    let ran = workdir.run_kernel(RACY, &["--format", "jsonl", "--save", "r.crr"]);
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    // Nothing else is on the stream of the lines.
    let first = lines(&ran.stderr);
    let again = workdir.tool(&["report", "r.crr", "--format", "jsonl"]);
    assert_eq!(lines(&again.stdout), first);
    let types: Vec<&Value> = first.iter().map(|line| &line["type"]).collect();
    let races = workdir.json("r.crr")["races"].as_array().unwrap().len();
    assert_eq!(types.len(), races + 1, "{types:?}");
    assert_eq!(types.last().unwrap().as_str(), Some("summary"));
    assert!(races > 0);
}
