//! What people who come from compute-sanitizer and from ThreadSanitizer use.

use crate::channel;
use crate::common::{Way, command, text};
use crate::workdir::{RACY, Workdir};

/// Both blocks write the same value, which is a warning.
const SAME: &str = "st.global.u32 [%word], %step;";

#[test]
fn racecheck_is_the_tool() {
    let workdir = Workdir::new();
    let with = |tool| workdir.run_kernel(RACY, &["--tool", tool]);
    with("racecheck").ends(66, &["error[CR003]"]);
    with("memcheck").ends(64, &["what compute-sanitizer's `racecheck` is"]);
    let ran = workdir.tool(&["--check-exit-code", "yes", "./app"]);
    ran.ends(
        64,
        &["--check-exit-code is an option of compute-sanitizer: "],
    );
}

#[test]
fn its_text_has_both_sides_and_a_summary() {
    let ran = Workdir::new().run_kernel(RACY, &["-q", "--format", "sanitizer"]);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let workdir = " in count.ptx:";
    let access = |line: &str, start: &str| line.starts_with(start) && line.contains(workdir);
    assert_eq!(lines[0], "========= COMPUTE-SANITIZER", "{}", ran.stderr);
    let one = "========= Error: Race reported between ";
    assert!(access(lines[1], one), "{}", ran.stderr);
    let other = "=========     and ";
    assert!(
        access(lines[2], other) && lines[2].ends_with(" hazards]"),
        "{}",
        ran.stderr
    );
    ran.ends(
        66,
        &["========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"],
    );
    assert!(
        lines.iter().all(|line| line.starts_with("=========")),
        "{}",
        ran.stderr
    );
}

#[test]
fn warnings_may_be_left_out_of_the_text_but_count() {
    let workdir = Workdir::new();
    for (level, shown) in [("error", false), ("warning", true), ("warn", true)] {
        let ran = workdir.run_kernel(SAME, &["--print-level", level]);
        ran.ends(0, &["1 race (0 errors, 1 warning)"]);
        let hidden = "(1 warning not shown, --print-level error)";
        assert_eq!(
            ran.stderr.contains(hidden),
            !shown,
            "{level}: {}",
            ran.stderr
        );
        assert_eq!(
            ran.stderr.contains("warning[CR003]"),
            shown,
            "{level}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_gpu_may_be_required() {
    let workdir = Workdir::new();
    let required = workdir.tool(&["--require-gpu", "/bin/true"]);
    let asked = workdir.tool(&["--device", "gpu", "/bin/true"]);
    assert_eq!((required.code, &required.stderr), (69, &asked.stderr));
    workdir
        .tool(&["--require-gpu", "--device", "sim", "/bin/true"])
        .ends(64, &["cannot be used with"]);
}

#[test]
fn counts_for_prometheus_are_in_a_file_beside_the_report() {
    let workdir = Workdir::new();
    let ran = workdir.run_kernel(RACY, &["--metrics-file", "race.prom"]);
    ran.ends(66, &["error[CR003]"]);
    let written = workdir.read("race.prom");
    let value = |name: &str| {
        let mut lines = written.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(|value| value.parse::<f64>().unwrap())
    };
    for (name, expected) in [
        ("cudarun_check_races", 1.0),
        ("cudarun_check_warnings", 0.0),
        ("cudarun_check_launches", 1.0),
        ("cudarun_check_launches_checked", 1.0),
        ("cudarun_check_outcome{outcome=\"races\"}", 1.0),
        ("cudarun_check_outcome{outcome=\"clean\"}", 0.0),
    ] {
        assert_eq!(value(name), Some(expected), "{name}: {written}");
    }
    for line in written.lines() {
        let metric = line
            .strip_prefix("# HELP ")
            .or(line.strip_prefix("# TYPE "))
            .unwrap_or(line);
        assert!(metric.starts_with("cudarun_check_"), "{line}");
    }
}

#[test]
fn the_programs_own_code_may_win() {
    let program = channel::program();
    let run = |policy: &[&str], script: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(Way::Simulated, folder.path());
        command
            .args(policy)
            .args(["sh", "-c", script, "sh"])
            .arg(program);
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert!(said.contains("1 race (1 error)"), "{said}");
        output.status.code()
    };
    let (fails, works) = ("\"$1\" plain; exit 7", "\"$1\" plain");
    assert_eq!(run(&[], fails), Some(66));
    assert_eq!(run(&["--exit-policy", "races-first"], fails), Some(66));
    assert_eq!(run(&["--exit-policy", "app-first"], fails), Some(7));
    assert_eq!(run(&["--exit-policy", "app-first"], works), Some(66));
}

#[test]
fn a_race_names_its_process_when_there_are_several() {
    let program = channel::program();
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(Way::Simulated, folder.path());
    let script = "echo 2 | \"$1\" input; exec \"$1\" plain";
    command.args(["sh", "-c", script, "sh"]).arg(program);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(66));
    let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let processes = report["run"]["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "{report:#}");
    let racy = processes
        .iter()
        .position(|of| of["argv"][1] == "plain")
        .unwrap();
    assert_eq!(report["races"][0]["kernel"]["process"], racy);
    let pid = &processes[racy]["pid"];
    let named = format!("= process: {pid} ({} plain)", program.display());
    assert!(
        text(&output.stderr).contains(&named),
        "{}",
        text(&output.stderr)
    );
}
