//! Running other programs, with errors that name the program and show what it said.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Runs to the end with our own output streams, and fails unless it exits with 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    if !status.success() {
        bail!("{} {}", describe(command), ended(status));
    }
    Ok(())
}

/// Runs to the end with our own output streams; true when it exits with 0, false when with 1.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().with_context(|| cannot_start(command))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("{} {}", describe(command), ended(status)),
    }
}

/// Runs to the end and returns its standard output; fails with its standard error unless it exits with 0.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| cannot_start(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} {}\n{}",
            describe(command),
            ended(output.status),
            said.trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a program left behind.
#[derive(Debug)]
pub struct Finished {
    /// As a shell gives it: 128 + the signal's number when a signal ended the program.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// From start to end.
    pub took: Duration,
}

/// Runs with captured output, at most for `limit`.
/// What exceeds the limit is killed with everything it started.
pub fn finish_within(command: &mut Command, limit: Duration) -> Result<Finished> {
    let start = Instant::now();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .process_group(0)
        .spawn()
        .with_context(|| cannot_start(command))?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit {
            // The group is ours alone: it was made for this child.
            Command::new("kill")
                .args(["-KILL", "--", &format!("-{}", child.id())])
                .status()?;
            child.wait()?;
            bail!(
                "{} did not end within {} s",
                describe(command),
                limit.as_secs()
            );
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = start.elapsed();
    let collect = |stream: std::thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&stream.join().unwrap_or_default()).into_owned()
    };
    Ok(Finished {
        code: code(status),
        stdout: collect(stdout),
        stderr: collect(stderr),
        took,
    })
}

/// The command as one would type it, for messages.
pub fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

/// Reads a stream to its end beside us, so that no program stops at a full pipe.
fn drain(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What was read before an error is still worth having.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("failed with exit code {code}"),
        None => format!("was ended by signal {}", status.signal().unwrap_or(0)),
    }
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start `{}`", command.get_program().to_string_lossy())
}
