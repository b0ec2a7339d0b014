//! The line that says how far a long launch is: on a terminal, and nowhere else; and Ctrl-C there.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use crate::common::{self, WAYS, Way, built};
use os::signals;
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

const KILL: i32 = 9;
/// Goes below the cursor, clears what is there, and comes back.
const ERASED: &str = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[K\x1b8";

/// The tool with a program on a terminal of its own.
struct OnTerminal {
    _folder: tempfile::TempDir,
    terminal: Pty,
    tool: Child,
    seen: String,
}

impl OnTerminal {
    fn new(way: Way, flags: &[&str], how: &str) -> OnTerminal {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (variables, arguments) = common::tool(way, folder.path());
        let (terminal, other_side) = open().expect("a terminal");
        terminal.resize(Size::new(24, 70)).expect("a size");
        let tool = Command::new(env!("CARGO_BIN_EXE_cudarun-check"))
            .envs(variables)
            .env("TERM", "xterm")
            .args(arguments)
            .args(flags)
            .arg(&built().program)
            .args(["in-launch", how])
            .spawn(other_side)
            .expect("it starts");
        OnTerminal {
            _folder: folder,
            terminal,
            tool,
            seen: String::new(),
        }
    }

    /// Reads until a text has come, and gives what came before it.
    fn wait_for(&mut self, text: &str) -> usize {
        loop {
            if let Some(at) = self.seen.find(text) {
                return at;
            }
            assert!(self.read(), "no `{text}` in\n{:?}", self.seen);
        }
    }

    /// False when nobody has the terminal any more.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        match self.terminal.read(&mut bytes) {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.seen += &common::text(&bytes[..count]);
                true
            }
        }
    }

    fn type_in(&mut self, text: &str) {
        self.terminal
            .write_all(text.as_bytes())
            .expect("it is open");
    }

    /// The exit code, when everything has been read.
    fn end(&mut self) -> Option<i32> {
        while self.read() {}
        self.tool.wait().expect("it ends").code()
    }

    /// What came behind the last line that was drawn.
    #[track_caller]
    fn behind_the_last_line(&self) -> &str {
        let at = self.seen.rfind(" so far").expect("a line");
        &self.seen[at..]
    }
}

#[test]
fn a_long_launch_shows_how_far_it_is_until_it_returns() {
    for way in WAYS {
        let mut on = OnTerminal::new(way, &[], "go-on");
        on.wait_for(" so far");
        let line = match way {
            Way::Simulated => "cudarun-check: spin: 2 of 3 blocks, launch #2, ",
            Way::Interposed => "cudarun-check: spin, launch #2, ",
        };
        on.wait_for(line);
        assert!(!on.seen.contains("#2, 0 races"), "{:?}", on.seen);
        on.type_in("now\n");
        assert_eq!(on.end(), Some(66), "{way:?}");
        let behind = on.behind_the_last_line();
        let erased = behind.find(ERASED).expect("it is taken away");
        let done = behind.find("done\r\n").expect("the program's output");
        assert!(erased < done, "{behind:?}");
        assert!(behind.contains("COVERAGE"), "{behind:?}");
    }
}

#[test]
fn ctrl_c_takes_the_line_away_and_reports() {
    for way in WAYS {
        let mut on = OnTerminal::new(way, &[], "default");
        on.wait_for(" so far");
        on.type_in("\x03");
        assert_eq!(on.end(), Some(66), "{way:?} {:?}", on.seen);
        let behind = on.behind_the_last_line();
        let erased = behind.find(ERASED).expect("it is taken away");
        let report = behind.find("error[CR").expect("the report");
        assert!(erased < report, "{behind:?}");
        // It is wrapped to the terminal.
        let behind = behind.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            behind.contains("killed by signal 2; the run was interrupted"),
            "{behind:?}"
        );
        assert!(
            behind.contains("1 launch incomplete: #2 of spin"),
            "{behind:?}"
        );
    }
}

#[test]
fn the_line_of_a_process_that_was_killed_is_taken_away() {
    let mut on = OnTerminal::new(Way::Simulated, &[], "default");
    on.wait_for(" so far");
    let at = on.wait_for("pid ") + "pid ".len();
    let digits = on.seen[at..].chars().take_while(char::is_ascii_digit);
    let pid = digits.collect::<String>().parse().expect("a number");
    signals::send(pid, KILL);
    assert_eq!(on.end(), Some(66));
    let behind = on.behind_the_last_line();
    let erased = behind.find(ERASED).expect("it is taken away");
    assert!(
        erased < behind.find("error[CR").expect("the report"),
        "{behind:?}"
    );
}

#[test]
fn nothing_is_shown_to_those_who_want_nothing() {
    // Beside them, one that is shown: when its line is there, theirs would be.
    let mut shown = OnTerminal::new(Way::Simulated, &["-q", "--progress"], "go-on");
    let flags: [&[&str]; 2] = [&["--no-progress"], &["-q"]];
    let mut silent = flags.map(|flags| OnTerminal::new(Way::Simulated, flags, "go-on"));
    for on in &mut silent {
        on.wait_for("spinning");
    }
    shown.wait_for(" so far");
    let shown_at = shown.seen.len();
    shown.wait_for("spinning");
    // Twice, so that those which began later have had their time.
    let again = shown.seen[shown_at..].matches(" so far").count();
    while shown.seen.matches(" so far").count() < again + 12 {
        assert!(shown.read(), "{:?}", shown.seen);
    }
    for on in silent.iter_mut().chain([&mut shown]) {
        on.type_in("now\n");
        assert_eq!(on.end(), Some(66));
    }
    for on in silent {
        assert!(!on.seen.contains("so far"), "{:?}", on.seen);
    }
}

#[test]
fn what_is_no_terminal_gets_nothing_unless_asked_for() {
    for way in WAYS {
        let start = |flags: &[&str]| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let mut command = common::command(way, folder.path());
            command.args(flags).arg(&built().program);
            command.args(["in-launch", "go-on"]).stdin(Stdio::piped());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            (command.spawn().expect("it starts"), folder)
        };
        let (mut silent, _folder) = start(&[]);
        let (mut shown, _other) = start(&["--progress"]);
        let mut stderr = shown.stderr.take().expect("a pipe");
        let mut seen = String::new();
        while seen.matches(" so far").count() < 12 {
            let mut bytes = [0; 4096];
            let count = stderr.read(&mut bytes).expect("a pipe");
            assert_ne!(count, 0, "{way:?} {seen:?}");
            seen += &common::text(&bytes[..count]);
        }
        for child in [&mut silent, &mut shown] {
            let mut input = child.stdin.take().expect("a pipe");
            input.write_all(b"now\n").expect("it reads");
        }
        let output = silent.wait_with_output().expect("it ends");
        for bytes in [&output.stdout, &output.stderr] {
            let text = common::text(bytes);
            assert!(
                !text.contains("so far") && !text.contains('\x1b'),
                "{text:?}"
            );
        }
        assert_eq!(output.status.code(), Some(66), "{way:?}");
        shown.wait().expect("it ends");
    }
}
