//! The way from a checked process to the report: whatever happens to it, a race that was seen is reported, or the run
//! does not end with 0.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use crate::common::{WAYS, Way, command, compile, in_shell, text};
use report::log::FAULT_VARIABLE;
use serde_json::Value;

/// What ENOSPC and EIO are on every Linux.
const NO_SPACE: u32 = 28;
const INPUT_OUTPUT: u32 = 5;

pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("channel", include_str!("c/channel.ptx")))
}

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    report: Value,
}

/// Runs the program under the tool.
fn run(way: Way, flags: &[&str], arguments: &[&str], fail: &str) -> Ended {
    fed(way, flags, arguments, fail, "")
}

/// Likewise, with a standard input.
fn fed(way: Way, flags: &[&str], arguments: &[&str], fail: &str, input: &str) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(way, folder.path());
    command.env(FAULT_VARIABLE, fail).args(flags);
    command.arg(program()).args(arguments);
    command.current_dir(folder.path()).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = command.spawn().unwrap();
    let _ = tool.stdin.take().unwrap().write_all(input.as_bytes());
    let Output {
        status,
        stdout,
        stderr,
    } = tool.wait_with_output().unwrap();
    let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap_or_default();
    Ended {
        code: status.code(),
        stdout: text(&stdout),
        stderr: text(&stderr),
        report: serde_json::from_str(&report).unwrap_or_default(),
    }
}

impl Ended {
    #[track_caller]
    fn is(&self, code: i32, outcome: &str) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert_eq!(
            self.report["summary"]["outcome"], outcome,
            "{}",
            self.stderr
        );
    }

    #[track_caller]
    fn says(&self, words: &str) {
        assert!(
            self.stderr.contains(words),
            "no `{words}` in\n{}",
            self.stderr
        );
    }
}

#[test]
fn a_log_that_fails_anywhere_hides_no_race() {
    for way in WAYS {
        let whole = run(way, &[], &["plain"], "");
        whole.is(66, "races");
        let mut without = 0;
        // More writes than the program's log has.
        for write in 1..=16 {
            for how in [
                format!("{write}={NO_SPACE}"),
                format!("{write}={INPUT_OUTPUT}"),
                format!("{write}..={NO_SPACE}"),
                format!("{write}=abort"),
                format!("{write}=kill"),
            ] {
                let ended = run(way, &[], &["plain"], &how);
                assert_ne!(ended.code, Some(0), "{way:?} {how}: {}", ended.stderr);
                without += u32::from(ended.code != Some(66));
                // A single write that fails goes to the spare folder.
                if !how.contains("..") && how.ends_with(|c: char| c.is_ascii_digit()) {
                    ended.is(66, "races");
                }
            }
        }
        assert!(without > 4, "{way:?}: the failures did not reach the race");
    }
}

#[test]
fn what_is_lost_is_counted_and_named() {
    for way in WAYS {
        // From behind the start and the module on nothing is kept.
        let ended = run(way, &[], &["plain"], &format!("4..={NO_SPACE}"));
        ended.is(75, "incomplete");
        ended.says("could not be written: No space left on device");
        ended.says(" lost (No space left on device");
        assert!(
            !ended.stderr.contains("ended in launch"),
            "{}",
            ended.stderr
        );
        assert!(ended.report["coverage"]["lost"][0]["events"].as_u64() > Some(2));
        let ended = run(
            way,
            &["--allow-incomplete"],
            &["plain"],
            &format!("4..={NO_SPACE}"),
        );
        ended.is(0, "incomplete");
    }
}

#[test]
fn a_child_that_is_killed_hides_no_race() {
    for way in WAYS {
        run(way, &[], &["child"], "").is(66, "races");
        let mut incomplete = 0;
        for write in 1..=16 {
            for how in ["kill", "abort"] {
                let ended = run(way, &[], &["child"], &format!("{write}={how}"));
                incomplete += u32::from(ended.code == Some(75));
                if ended.code == Some(0) {
                    // It ended before it raced.
                    let kernels = ended.report["coverage"]["kernels"].as_array();
                    let mut kernels = kernels.into_iter().flatten();
                    let racing = kernels.find(|kernel| kernel["name"] == "count");
                    let launches = racing.map(|kernel| kernel["launches"].clone());
                    assert_eq!(launches, Some(Value::from(0)), "{way:?} {write}={how}");
                }
            }
        }
        assert!(
            incomplete > 2,
            "{way:?}: the failures did not reach the race"
        );
    }
}

#[test]
fn logs_that_the_program_removes_or_cuts_hide_no_race() {
    for way in WAYS {
        for what in ["file", "folder"] {
            let ended = run(way, &[], &["remove", what], "");
            ended.is(66, "races");
            assert_eq!(ended.stdout, "");
        }
        for arguments in [
            &["remove", "both"][..],
            &["remove-late", "file"],
            &["remove-late", "folder"],
            &["remove-late", "both"],
            &["cut"],
            &["cut-late"],
        ] {
            let ended = run(way, &[], arguments, "");
            assert_eq!(ended.stdout, "", "{way:?} {arguments:?}");
            // On a GPU more may be written when the process exits, and then all of it.
            match (ended.code, way) {
                (Some(75), _) => ended.says("removed"),
                (Some(66), _) if arguments.len() == 1 || arguments[0] == "remove" => {}
                (Some(66), Way::Interposed) => {}
                _ => panic!("{way:?} {arguments:?}: {}", ended.stderr),
            }
        }
    }
}

#[test]
fn a_process_that_can_make_no_log_is_not_passed_over() {
    for way in WAYS {
        let ended = run(way, &[], &["child"], &format!("0={NO_SPACE}"));
        ended.is(75, "incomplete");
        ended.says("could not make its log, and was not checked: No space left on device");
        ended.says("free space, or set TMPDIR");
    }
}

/// Says on the standard error of the test command, which captures `eprintln!` of tests that pass, why one is skipped.
fn skipped(why: &str) {
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "{test} is skipped: {why}");
}

/// Runs a shell script before the tool, in a mount namespace of its own, with the full folder as `$FULL`.
const FULL: &str = "set -e; mount -t tmpfs -o size=$SIZE none \"$FULL\"; mount -t tmpfs -o size=$SPARE none /dev/shm
                    export TMPDIR=\"$FULL\"; exec \"$@\"";

#[test]
fn file_systems_that_are_full_hide_no_race() {
    let namespace = || {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--map-root-user", "--mount"]);
        unshare
    };
    let mounts = "mount -t tmpfs -o size=4k none /dev/shm";
    let refused = match namespace().args(["sh", "-c", mounts]).output() {
        Ok(tried) if tried.status.success() => None,
        Ok(tried) => Some(text(&tried.stderr)),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = refused {
        skipped(&format!(
            "`unshare --map-root-user --mount` may mount no file system of a given size here: {}",
            why.trim()
        ));
        return;
    }
    let mut codes = Vec::new();
    for way in WAYS {
        // Room for temporary files, and in the memory that a log goes on in, which the board fills at 16 KiB.
        for (size, spare) in [1, 2, 3, 4]
            .into_iter()
            .flat_map(|pages| [(pages, 4), (pages, 256)])
        {
            let folder = tempfile::tempdir().unwrap();
            let full = tempfile::tempdir().unwrap();
            let mut tool = command(way, folder.path());
            tool.arg(program()).arg("plain");
            let mut outer = namespace();
            let inner = in_shell(&tool, FULL);
            outer.arg(inner.get_program()).args(inner.get_args());
            let variables = inner.get_envs();
            outer.envs(variables.filter_map(|(name, value)| Some((name, value?))));
            outer.env("FULL", full.path()).current_dir(folder.path());
            outer.env("SIZE", format!("{}k", 4 * size));
            outer.env("SPARE", format!("{}k", 4 * spare));
            let Output { status, stderr, .. } = outer.output().unwrap();
            let code = status.code();
            let room = spare > 4;
            let kept = code == Some(66) || code == Some(75) && !room;
            assert!(kept, "{way:?} {size} {spare}: {}", text(&stderr));
            codes.push(code);
        }
    }
    // Some have lost the race and said so.
    assert!(codes.contains(&Some(75)), "{codes:?}");
}

#[test]
fn closed_and_full_outputs_change_no_exit_code() {
    for way in WAYS {
        for redirection in [
            ">&-",
            "2>&-",
            ">&- 2>&-",
            "<&-",
            "2>/dev/full",
            ">/dev/full",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut tool = command(way, folder.path());
            tool.arg(program()).arg("plain");
            let mut shell = in_shell(&tool, &format!("\"$@\" {redirection}"));
            shell.current_dir(folder.path()).stdin(Stdio::null());
            let output = shell.output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(66),
                "{way:?} {redirection}: {}",
                text(&output.stderr)
            );
            assert!(folder.path().join("report.json").metadata().unwrap().len() > 100);
        }
        let ended = run(way, &["--log-file", "/dev/full"], &["plain"], "");
        ended.is(66, "races");
        ended.says("SUMMARY: ");
    }
}

#[test]
fn a_program_may_close_all_descriptors() {
    for way in WAYS {
        let ended = run(way, &[], &["close"], "");
        ended.is(66, "races");
        assert_eq!(
            ended.stdout, "own 0\n",
            "the log went into the program's file"
        );
        assert_eq!(ended.report["coverage"]["launches"]["checked"], 2);
    }
}

#[test]
fn processes_that_outlive_the_program_are_waited_for_or_named() {
    for way in WAYS {
        run(way, &[], &["late", "1"], "").is(66, "races");
        let ended = run(way, &[], &["late", "5"], "");
        ended.is(75, "incomplete");
        ended.says("was still running when the program ended");
    }
}

#[test]
fn a_launch_that_fails_is_not_passed_over() {
    for way in WAYS {
        let ended = run(way, &[], &["fails"], "");
        ended.is(75, "incomplete");
        ended.says("1 launch failed, and later ones may not have run");
        run(way, &["--allow-incomplete"], &["fails"], "").is(0, "incomplete");
    }
}

#[test]
fn a_launch_of_a_kernel_that_is_not_loaded_is_not_passed_over() {
    let ended = run(Way::Simulated, &[], &["unloaded"], "");
    ended.is(75, "incomplete");
    ended.says("a launch was refused, as its kernel is not loaded");
}

#[test]
fn a_program_that_falls_back_on_another_kernel_is_not_complete() {
    for (arguments, why) in [
        (
            &["refused", "ptx"][..],
            "has not loaded a module that a GPU may load: ",
        ),
        (
            &["refused", "cubin"],
            "has not loaded a module that a GPU may load: ",
        ),
        (
            &["refused", "link"],
            "has not loaded a module that a GPU may load: only PTX is linked",
        ),
        (
            &["lacks"],
            "mipmapped arrays are not available on the simulated device",
        ),
    ] {
        let ended = run(Way::Simulated, &[], arguments, "");
        ended.is(75, "incomplete");
        ended.says(why);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert_eq!(
            ended.report["coverage"]["missed"].as_array().unwrap().len(),
            1
        );
        run(Way::Simulated, &["--allow-incomplete"], arguments, "").is(0, "incomplete");
        // What a GPU refuses, it refuses without us too.
        run(Way::Interposed, &[], arguments, "").is(0, "clean");
    }
}

/// Each program has a race that cells do not see.
#[test]
fn what_a_gpu_cannot_check_of_a_kernel_with_ptx_makes_the_run_incomplete() {
    for (argument, why, in_json) in [
        (
            "crowded",
            "incomplete: 1 launch ran unchecked although the kernel has PTX",
            "/coverage/launches/unchecked",
        ),
        (
            "apart",
            "incomplete: 2 accesses to memory that the checks do not cover",
            "/coverage/cells/outside",
        ),
    ] {
        run(Way::Simulated, &[], &[argument], "").is(66, "races");
        for (way, mode) in [
            (Way::Simulated, &["--as-gpu"][..]),
            (Way::Simulated, &["--mode", "fast"]),
            (Way::Interposed, &[]),
        ] {
            let ended = run(way, mode, &[argument], "");
            ended.is(75, "incomplete");
            ended.says(why);
            let count = ended.report.pointer(in_json).and_then(Value::as_u64);
            assert!(count > Some(0), "{way:?} {argument}");
            let allowed = [mode, &["--allow-incomplete"]].concat();
            run(way, &allowed, &[argument], "").is(0, "incomplete");
            let chosen = [mode, &["--kernel-name", "own"]].concat();
            if argument == "crowded" {
                run(way, &chosen, &[argument], "").is(0, "clean");
            }
        }
    }
}

#[test]
fn a_launch_that_is_refused_for_what_it_asks_is_named() {
    let ended = run(Way::Simulated, &[], &["asks"], "");
    ended.is(0, "clean");
    assert_eq!(ended.stdout, "");
    ended.says("a launch of count was refused: invalid argument (CUDA_ERROR_INVALID_VALUE), with grid (2,1,1), block (2048,1,1) and 0 bytes of dynamic shared memory");
    ended.says("1 launch refused");
}

#[test]
fn a_process_that_empties_its_environment_is_checked() {
    run(Way::Simulated, &[], &["cleared"], "").is(66, "races");
}

#[test]
fn every_schedule_has_the_standard_input() {
    let ended = fed(Way::Simulated, &["--schedules", "3"], &["input"], "", "2\n");
    ended.is(0, "clean");
    assert_eq!(ended.stdout, "2 blocks\n".repeat(3));
}

#[test]
fn a_program_that_runs_unchecked_ends_as_it_would() {
    for way in WAYS {
        run(way, &["--check", "off"], &["plain"], "").is(0, "clean");
    }
}
