//! Programs that are ended while they run: by signals to them or to the tool, and by themselves. What
//! was found by then is reported, and the program ends as it would have.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::{self, WAYS, Way, built, command};
use os::signals;
use serde_json::Value;

const INTERRUPT: i32 = 2;
const TERMINATE: i32 = 15;
const KILL: i32 = 9;

/// A program under the tool.
struct Running {
    folder: tempfile::TempDir,
    tool: Child,
    stdout: BufReader<ChildStdout>,
    said: String,
    program: u32,
}

/// What was left of it.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    report: Value,
}

impl Running {
    fn new(way: Way, flags: &[&str], arguments: &[&str]) -> Running {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = command(way, folder.path());
        command.args(flags).arg(&built().program).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut tool = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let stdout = tool.stdout.take().expect("a pipe");
        let mut running = Running {
            folder,
            tool,
            stdout: BufReader::new(stdout),
            said: String::new(),
            program: 0,
        };
        let line = running.wait_for("pid ");
        running.program = line["pid ".len()..].trim().parse().expect("a number");
        running
    }

    /// Waits until the program says a line that begins so.
    fn wait_for(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).expect("text");
            assert_ne!(read, 0, "no `{start}` in\n{}", self.said);
            self.said += &line;
            if line.starts_with(start) {
                return line;
            }
        }
    }

    fn end(mut self) -> Ended {
        self.stdout.read_to_string(&mut self.said).expect("text");
        let output = self.tool.wait_with_output().expect("it ends");
        let report = std::fs::read_to_string(self.folder.path().join("report.json"));
        let report = serde_json::from_str(&report.expect("a report")).expect("JSON");
        Ended {
            code: output.status.code(),
            stdout: self.said,
            stderr: common::text(&output.stderr),
            report,
        }
    }
}

impl Ended {
    #[track_caller]
    fn says(&self, words: &[&str]) {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "no `{word}` in\n{}",
                self.stderr
            );
        }
    }

    #[track_caller]
    fn silent(&self, words: &[&str]) {
        for word in words {
            assert!(!self.stderr.contains(word), "`{word}` in\n{}", self.stderr);
        }
    }

    /// Numbers of the launches that had races.
    fn racing(&self) -> Vec<u64> {
        let races = self.report["races"].as_array().expect("races");
        let launches = races.iter().flat_map(|race| race["launches"].as_array());
        let mut all: Vec<u64> = launches.flatten().filter_map(Value::as_u64).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn signal(&self) -> Option<i64> {
        self.report["run"]["exit"]["signal"].as_i64()
    }
}

#[test]
fn a_launch_that_is_interrupted_reports_what_it_has_found() {
    let modes: [(Way, &[&str]); 5] = [
        (Way::Simulated, &[]),
        (Way::Simulated, &["--mode", "fast"]),
        (Way::Simulated, &["--as-gpu"]),
        (Way::Interposed, &[]),
        (Way::Interposed, &["--mode", "fast"]),
    ];
    for (way, flags) in modes {
        for (signal, to_the_tool) in [(INTERRUPT, false), (TERMINATE, false), (TERMINATE, true)] {
            let what = format!("{way:?} {flags:?} {signal} {to_the_tool}");
            let mut running = Running::new(way, flags, &["in-launch"]);
            running.wait_for("spinning");
            let to = match to_the_tool {
                true => running.tool.id(),
                false => running.program,
            };
            signals::send(to, signal);
            let ended = running.end();
            assert_eq!(ended.code, Some(66), "{what}\n{}", ended.stderr);
            assert_eq!(ended.signal(), Some(signal.into()), "{what}");
            assert_eq!(ended.racing(), [1, 2], "{what}\n{}", ended.stderr);
            let far = match way {
                Way::Simulated => {
                    "launch #2 of spin, after 2 of 3 blocks; races found until then are reported"
                }
                Way::Interposed => "launch #2 of spin; races found until then are reported",
            };
            ended.says(&[
                far,
                &format!("killed by signal {signal}; the run was interrupted"),
                "1 of 2 launches checked, 1 launch incomplete: #2 of spin",
            ]);
            let incomplete = &ended.report["coverage"]["incomplete"][0];
            assert_eq!(incomplete["kernel"], "spin", "{what}");
            assert_eq!(incomplete["launch"], 2, "{what}");
            assert_eq!(incomplete["reported"], true, "{what}");
            // A driver does not say where they are.
            if let Way::Simulated = way {
                ended.says(&[
                    "\n  --> ",
                    ": thread (0,0,0) of block (2,0,0) is running",
                    "= note: on the simulated device",
                ]);
                assert_eq!(incomplete["threads"][0]["kind"], "running", "{what}");
            } else {
                assert_eq!(incomplete["threads"].as_array().map(Vec::len), Some(0));
            }
            assert_eq!(ended.report["run"]["interrupted"], true, "{what}");
        }
    }
}

#[test]
fn a_launch_that_is_killed_is_named() {
    for way in WAYS {
        let mut running = Running::new(way, &[], &["in-launch"]);
        running.wait_for("spinning");
        signals::send(running.program, KILL);
        let ended = running.end();
        assert_eq!((ended.code, ended.signal()), (Some(66), Some(9)), "{way:?}");
        assert_eq!(ended.racing(), [1], "{way:?}\n{}", ended.stderr);
        ended.says(&[
            "launch #2 of spin; whether it had races is not known",
            "1 of 2 launches checked, 1 launch incomplete: #2 of spin",
        ]);
    }
}

#[test]
fn files_of_a_tool_that_is_killed_say_that_the_run_has_not_ended() {
    let files = tempfile::tempdir().expect("a temporary folder");
    let [saved, junit] = ["saved.crr", "junit.xml"].map(|name| files.path().join(name));
    for record in [&[][..], &["--record"]] {
        let format = format!("junit:{}", junit.display());
        let save = saved.to_str().expect("text");
        let flags = [record, &["--save", save, "--format", &format]].concat();
        let mut running = Running::new(Way::Simulated, &flags, &["in-launch"]);
        running.wait_for("spinning");
        signals::send(running.tool.id(), KILL);
        running.tool.wait().expect("it ends");
        signals::send(running.program, KILL);
        let mut report = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
        let report = report.args(["report", save]).output().expect("it starts");
        let said = common::text(&[report.stdout, report.stderr].concat());
        assert_eq!(report.status.code(), Some(75), "{said}");
        assert!(said.contains("incomplete"), "{said}");
        let why = "the report was not written: cudarun-check was killed, or is still running";
        assert!(said.contains(why), "{said}");
        let junit = std::fs::read_to_string(&junit).expect("a report");
        assert!(junit.contains(why), "{junit}");
    }
}

#[test]
fn without_races_that_count_the_exit_code_is_the_signals() {
    for way in WAYS {
        let mut running = Running::new(way, &["--fail-on", "never"], &["in-launch"]);
        running.wait_for("spinning");
        signals::send(running.program, INTERRUPT);
        assert_eq!(running.end().code, Some(128 + INTERRUPT), "{way:?}");
    }
}

#[test]
fn between_launches_a_signal_ends_the_program_as_ever() {
    for way in WAYS {
        let mut running = Running::new(way, &[], &["on-host"]);
        running.wait_for("waiting");
        signals::send(running.program, INTERRUPT);
        let ended = running.end();
        assert_eq!((ended.code, ended.signal()), (Some(66), Some(2)), "{way:?}");
        assert_eq!(ended.racing(), [1], "{way:?}");
        ended.says(&["the run was interrupted", "COVERAGE", ", 1 launch checked"]);
        ended.silent(&["incomplete"]);
    }
}

#[test]
fn a_handler_of_the_program_is_left_alone() {
    for way in WAYS {
        for at in ["on-host", "in-launch"] {
            let mut running = Running::new(way, &["--fail-on", "never"], &[at, "own"]);
            running.wait_for(if at == "on-host" {
                "waiting"
            } else {
                "spinning"
            });
            signals::send(running.program, INTERRUPT);
            let ended = running.end();
            assert_eq!(ended.code, Some(7), "{way:?} {at}\n{}", ended.stderr);
            assert!(ended.stdout.contains("SIGINT is own\n"), "{}", ended.stdout);
            assert!(ended.stdout.ends_with("handled\n"), "{}", ended.stdout);
            ended.silent(&["the run was interrupted"]);
            if at == "in-launch" {
                ended.says(&["launch #2 of spin; whether it had races is not known"]);
            }
        }
    }
}

#[test]
fn a_signal_that_the_program_ignores_is_ignored() {
    for way in WAYS {
        for at in ["on-host", "in-launch"] {
            let mut running = Running::new(way, &[], &[at, "ignore"]);
            running.wait_for(if at == "on-host" {
                "waiting"
            } else {
                "spinning"
            });
            // The system delivers the one with the smaller number first.
            signals::send(running.program, INTERRUPT);
            signals::send(running.program, TERMINATE);
            let ended = running.end();
            assert!(
                ended.stdout.contains("SIGINT is ignored\n"),
                "{}",
                ended.stdout
            );
            assert_eq!(ended.signal(), Some(TERMINATE.into()), "{way:?} {at}");
        }
    }
}

#[test]
fn the_program_sees_its_own_dispositions() {
    let mut running = Running::new(Way::Simulated, &[], &["on-host"]);
    running.wait_for("SIGINT is default");
    signals::send(running.program, TERMINATE);
    running.end();
}

#[test]
fn a_program_that_ends_itself_keeps_what_was_found_before() {
    for way in WAYS {
        for (how, code) in [("abort", 134), ("fault", 139), ("exit", 5)] {
            let mut running = Running::new(way, &["--fail-on", "never"], &["in-launch", how]);
            running.wait_for("spinning");
            let mut input = running.tool.stdin.take().expect("a pipe");
            input.write_all(b"now\n").expect("it reads");
            let ended = running.end();
            assert_eq!(ended.code, Some(code), "{way:?} {how}\n{}", ended.stderr);
            assert_eq!(ended.racing(), [1], "{way:?} {how}");
            ended.says(&[
                "launch #2 of spin; whether it had races is not known",
                "1 of 2 launches checked, 1 launch incomplete: #2 of spin",
            ]);
            ended.silent(&["the run was interrupted"]);
        }
    }
}

#[test]
fn a_kernel_of_a_file_that_is_interrupted_reports_what_it_has_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/ends.ptx");
    let mut command = command(Way::Simulated, folder.path());
    command.arg(file).args(["--kernel", "spin", "--grid", "3"]);
    command.args([
        "--block",
        "1",
        "--arg",
        "u32[1]",
        "--arg",
        "u32[1]",
        "--schedules",
        "3",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("text");
    assert_eq!(line, "spinning\n");
    signals::send(child.id(), INTERRUPT);
    let output = child.wait_with_output().expect("it ends");
    let stderr = common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(66), "{stderr}");
    for word in [
        "launch #1 of spin, after 2 of 3 blocks; races found until then are reported",
        "killed by signal 2; the run was interrupted",
    ] {
        assert!(stderr.contains(word), "{stderr}");
    }
}
