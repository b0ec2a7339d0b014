//! The command with a tool that only looks like one: a shell script that writes the report it is told to.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Knows programs that are named for what becomes of them.
const TOOL: &str = r#"#!/bin/sh
check=$2
for word; do
    case $word in json:*) report=${word#json:} ;; esac
    program=$word
done
echo "${program##*/} $check" >> "${0%/*}/log"
case $program in
    */hangs) sleep 60 ;;
    */sleepy) [ "$(grep -c "sleepy on" "${0%/*}/log")" = 2 ] && sleep 60 ;;
esac
case $program in
    */silent) echo "no way"; exit 70 ;;
    */seven) code=7 ;;
    */worse) code=0; [ $check = on ] && code=3 ;;
    *) code=0 ;;
esac
case $program in
    */restless) instructions=$$ ;;
    *) instructions=100; [ $check = on ] && instructions=400 ;;
esac
cat > "$report" <<END
{ "schema_version": "1.0", "tool": { "name": "cudarun-check", "version": "1", "device": "sim" }, "run": { "exit": { "code": $code, "signal": null } },
  "summary": { "errors": 1, "warnings": 0 }, "coverage": { "launches": { "total": 2, "checked": 2 } }, "failures": [],
  "stats": { "warp_instructions": $instructions, "thread_instructions": 3200, "global_sectors": 8, "device_fences": 2,
    "launch_seconds": 0.5, "rewrite_seconds": 0.25, "program_bytes": 4096, "shadow_bytes": 65536,
    "latencies": [{ "kernel": "k", "bins": [{ "nanoseconds": 250000000, "launches": 2 }] }] } }
END
exit 66
"#;

/// Measures programs of a folder, of which only the names matter; what was written as JSON and CSV comes too.
fn measure(programs: &str) -> (Output, serde_json::Value, String) {
    let folder = tempfile::tempdir().unwrap();
    measure_in(&folder, programs, &[])
}

fn measure_in(
    folder: &tempfile::TempDir,
    programs: &str,
    further: &[&str],
) -> (Output, serde_json::Value, String) {
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("tool"), TOOL).unwrap();
    std::fs::set_permissions(at("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    let manifest = format!(r#"{{ "tool": "tool", "folder": ".", "programs": {programs} }}"#);
    std::fs::write(at("manifest.json"), manifest).unwrap();
    let output = Command::new(Path::new(env!("CARGO_BIN_EXE_bench-rodinia")))
        .arg(at("manifest.json"))
        .arg("--json")
        .arg(at("out.json"))
        .arg("--csv")
        .arg(at("out.csv"))
        .arg("--plot")
        .arg(at("out.svg"))
        .args(further)
        .output()
        .unwrap();
    let read = |name| std::fs::read_to_string(at(name)).unwrap();
    assert!(read("out.svg").starts_with("<svg"));
    let json = serde_json::from_str(&read("out.json")).unwrap();
    (output, json, read("out.csv"))
}

#[test]
fn a_program_with_races_is_measured() {
    let (output, json, csv) = measure(r#"{ "steady": [], "seven": { "exit": 7 } }"#);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("4.00 x"), "{said}");
    let mean = &json["geometric_means"]["warp_instructions"];
    assert!((mean[0].as_f64().unwrap() - 4.0).abs() < 1e-9);
    assert_eq!(mean[1], 2);
    let figures = &json["programs"][1];
    assert_eq!(json["programs"][1]["name"], "steady");
    assert_eq!(figures["checked"]["races"], 1);
    assert_eq!(figures["checked"]["counts"]["warp_instructions"], 400);
    // Three runs of two launches.
    assert_eq!(
        figures["checked"]["latencies"]["kernels"]["k"]["launches"],
        6
    );
    assert!(figures["unchecked"]["resident_bytes"].as_u64().unwrap() > 0);
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn what_cannot_be_measured_does_not_stop_the_others() {
    let programs = r#"{ "seven": [], "silent": [], "restless": [], "steady": [], "worse": [] }"#;
    let (output, json, csv) = measure(programs);
    assert_eq!(output.status.code(), Some(1));
    let why = |index: usize| json["programs"][index]["not_measured"].as_str();
    let all: Vec<Option<&str>> = (0..5).map(why).collect();
    assert!(
        all[0]
            .unwrap()
            .contains("two runs did not execute the same number")
    );
    assert!(all[1].unwrap().contains("exit code 7"));
    assert!(all[2].unwrap().contains("the tool made no report: no way"));
    assert_eq!(all[3], None);
    assert_eq!(all[4], Some("with --check on: exit code 3"));
    let worse = &json["programs"][4];
    assert!(worse["unchecked"]["wall_seconds"].is_number() && worse["checked"].is_null());
    assert!(csv.lines().nth(4).unwrap().starts_with("steady,sim,2,"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("not measured"));
}

#[test]
fn every_program_runs_once_before_any_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let (output, ..) = measure_in(&folder, r#"{ "a": [], "b": [] }"#, &["--runs", "2"]);
    assert!(output.status.success());
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log, "a off\na on\nb off\nb on\n".repeat(2));
}

#[test]
fn what_has_been_measured_when_the_time_is_up_counts() {
    // The second checked run of the first program would take longer.
    let folder = tempfile::tempdir().unwrap();
    let programs = r#"{ "sleepy": [], "steady": [] }"#;
    let (output, json, csv) = measure_in(&folder, programs, &["--budget", "5"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let runs = |program: usize, way| &json["programs"][program][way]["runs"];
    assert_eq!(
        (runs(0, "unchecked"), runs(0, "checked")),
        (&2.into(), &1.into())
    );
    assert_eq!(
        (runs(1, "unchecked"), runs(1, "checked")),
        (&1.into(), &1.into())
    );
    let line = |start: &str| said.lines().find(|line| line.starts_with(start)).unwrap();
    let cell = |start: &str| line(start).split('|').nth(2).unwrap().trim().to_owned();
    assert_eq!(cell("| sleepy"), "2, 1 checked");
    assert_eq!(cell("| steady"), "1");
    assert!(csv.lines().next().unwrap().contains(",unchecked_runs,"));
    let (output, json, _) = measure_in(&folder, programs, &["--budget", "0"]);
    assert_eq!(output.status.code(), Some(1));
    let why = json["programs"][1]["not_measured"].as_str().unwrap();
    assert!(why.contains("there was no time left"), "{why}");
}

#[test]
fn a_run_that_hangs_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let programs = r#"{ "hangs": [], "steady": [] }"#;
    let (output, json, _) = measure_in(&folder, programs, &["--limit", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let why = json["programs"][0]["not_measured"].as_str().unwrap();
    let of = |check| format!("with --check {check}: it did not end within 1 s");
    assert_eq!(why, format!("{}; {}", of("off"), of("on")));
    assert_eq!(json["programs"][1]["checked"]["runs"], 3);
}
