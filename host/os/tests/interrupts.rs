//! Signals that are held, in processes of their own: this file is their program too.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use os::{interrupts, signals};

/// Says what the process is to do.
const ROLE: &str = "CUDARUN_CHECK_TEST_ROLE";
const TERMINATE: i32 = 15;

/// What a process of these tests does; nothing in the tests' own process.
#[test]
fn role() {
    let say = |word: &str| {
        // Whoever reads it may be gone.
        let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("\n{word}\n").as_bytes());
    };
    let pause = || std::thread::sleep(Duration::from_millis(1));
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let held = interrupts::hold();
    if role == "given-back" {
        drop(held);
        say("ready");
        loop {
            pause();
        }
    }
    say("ready");
    while interrupts::caught().is_none() {
        pause();
    }
    drop(held);
    say("caught");
    if role == "ends" {
        interrupts::end(interrupts::caught().unwrap_or(0));
    }
    loop {
        pause();
    }
}

fn start(role: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().expect("a running test"));
    command
        .args(["--exact", "role", "--nocapture"])
        .env(ROLE, role);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    wait_for(&mut stdout, "ready");
    (child, stdout)
}

fn wait_for(stdout: &mut BufReader<ChildStdout>, word: &str) {
    let mut line = String::new();
    while line.trim() != word {
        line.clear();
        let read = stdout.read_line(&mut line).expect("text");
        assert_ne!(read, 0, "it has ended before `{word}`");
    }
}

#[test]
fn the_process_ends_by_the_signal_that_was_held() {
    let (mut child, mut stdout) = start("ends");
    signals::send(child.id(), TERMINATE);
    wait_for(&mut stdout, "caught");
    assert_eq!(child.wait().expect("it ends").signal(), Some(TERMINATE));
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let (mut child, mut stdout) = start("goes-on");
    signals::send(child.id(), TERMINATE);
    wait_for(&mut stdout, "caught");
    // Until then it counts as the first one.
    std::thread::sleep(Duration::from_nanos(interrupts::SAME));
    assert_eq!(child.try_wait().expect("a child"), None);
    signals::send(child.id(), TERMINATE);
    assert_eq!(child.wait().expect("it ends").signal(), Some(TERMINATE));
}

#[test]
fn a_signal_that_is_held_no_longer_has_its_default() {
    let (mut child, _stdout) = start("given-back");
    signals::send(child.id(), TERMINATE);
    assert_eq!(child.wait().expect("it ends").signal(), Some(TERMINATE));
}
