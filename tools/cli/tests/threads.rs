//! Threads of the host: those of the simulated device (`--sim-threads`), and those of the program.

use std::process::{Command, Output, Stdio};

use crate::common;

/// Every thread adds to one word, by `${op}`.
const KERNEL: &str = include_str!("c/count.ptx");
const ATOMIC: &str = "red.global.add.u32 [%word], %step;";

/// Enough blocks for several threads to start: each executes six instructions at least.
const BLOCKS: &str = "4000";

fn tool(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
    command.env("CUDARUN_CHECK_DRIVER", "/nowhere/libcuda.so.1");
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

fn count(op: &str, more: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("count.ptx");
    std::fs::write(&file, KERNEL.replace("${op}", op)).unwrap();
    let launch = [
        "--grid", BLOCKS, "--block", "32", "--arg", "u32[1]", "--arg", "u32:5", "--dump", "0",
    ];
    let output = tool(&[&[file.to_str().unwrap()], &launch[..], more].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().expect("the tool is not killed");
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn sums_are_whole() {
    for how in [
        &["--check", "off"][..],
        &["--mode", "fast"],
        &["--as-gpu"],
        &[],
    ] {
        for threads in ["1", "2", "5"] {
            let more = [how, &["--sim-threads", threads]].concat();
            let (code, out, err) = count(ATOMIC, &more);
            assert_eq!(code, 0, "{more:?}: {err}");
            assert_eq!(out, "arg 0: u32[1] = 640000\n", "{more:?}");
        }
    }
}

#[test]
fn only_the_simulated_device_has_them() {
    let usage = |arguments: &[&str], words: &str| {
        let output = tool(&[arguments, &["true"]].concat());
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{err}");
        assert!(err.contains(words), "{err}");
    };
    usage(&["--sim-threads", "0"], "--sim-threads");
    usage(
        &["--device", "gpu", "--sim-threads", "2"],
        "--sim-threads is for the simulated device",
    );
}

#[test]
fn programs_live_beside_the_threads() {
    let program = common::compile("threads", &KERNEL.replace("${op}", ATOMIC));
    for how in [&["--check", "off"][..], &["--mode", "fast"]] {
        let (_folder, output) = common::checked(&program, &[how, &["--sim-threads", "3"]].concat());
        assert_eq!(
            common::text(&output.stdout),
            "threads 2, sum 640000\nchild 6\nsignal came\nsum 1280000\n",
            "{how:?}: {}",
            common::text(&output.stderr)
        );
    }
}

#[test]
fn order_that_is_only_assumed_is_no_strict_pass() {
    let store = "st.global.u32 [%word], %step;";
    let program = common::compile_with(
        "hosts",
        "hosts",
        &KERNEL.replace("${op}", store),
        &["-pthread"],
    );
    let assumed = "1 pair of conflicting launches assumed to be ordered by threads of the host";
    for (flags, code, outcome, summary) in [
        (&[][..], 0, "clean", "0 races; "),
        (
            &["--strict"],
            75,
            "incomplete",
            "0 races; incomplete: --strict: ",
        ),
    ] {
        let (folder, output) = common::checked(&program, flags);
        let err = common::text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {err}");
        let line = format!("SUMMARY: cudarun-check: {summary}{assumed}\n");
        assert!(err.contains(&line), "no {line} in {err}");
        let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["summary"]["outcome"], outcome, "{flags:?}");
    }
}

#[test]
fn launches_run_where_the_system_has_no_more_threads() {
    // A stack that has no room anywhere; the tool itself starts threads only for its program.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("count.ptx");
    std::fs::write(&file, KERNEL.replace("${op}", ATOMIC)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
    command.env("RUST_MIN_STACK", (1u64 << 47).to_string());
    command.args([file.to_str().unwrap(), "--grid", BLOCKS, "--block", "32"]);
    command.args(["--arg", "u32[1]", "--arg", "u32:5", "--dump", "0"]);
    command.args(["--check", "off", "--sim-threads", "4"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(out, "arg 0: u32[1] = 640000\n", "{err}");
}
