//! The standard input for several runs of a program: each gets all of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileTypeExt;
use std::process::{ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Our own standard input, by a path that opens it again.
const OWN: &str = "/proc/self/fd/0";

/// How the runs get it.
#[derive(Debug)]
pub(crate) enum Input {
    /// As it is: for a single run, and from a terminal.
    Inherited,
    /// A file, which every run opens again at the byte where we found it.
    File(u64),
    /// A pipe: read here once, and written to each run.
    Pipe(Arc<Tape>),
}

impl Input {
    /// That of `runs` runs.
    pub(crate) fn of_runs(runs: u32) -> Self {
        if runs < 2 {
            return Self::Inherited;
        }
        match std::fs::metadata(OWN).map(|metadata| metadata.file_type()) {
            Ok(kind) if kind.is_file() => Self::File(position()),
            Ok(kind) if kind.is_fifo() || kind.is_socket() => Self::Pipe(Tape::record(io::stdin())),
            _ => Self::Inherited,
        }
    }

    /// For the next run.
    pub(crate) fn next(&self) -> io::Result<Stdio> {
        match self {
            Self::Inherited => Ok(Stdio::inherit()),
            Self::File(position) => {
                let mut file = File::open(OWN)?;
                file.seek(SeekFrom::Start(*position))?;
                Ok(file.into())
            }
            Self::Pipe(_) => Ok(Stdio::piped()),
        }
    }

    /// The run has started, with this end of what [`Input::next`] gave it.
    pub(crate) fn feed(&self, run: Option<ChildStdin>) {
        if let (Self::Pipe(tape), Some(run)) = (self, run) {
            Arc::clone(tape).play(run);
        }
    }
}

/// The byte at which we would read next.
fn position() -> u64 {
    let text = std::fs::read_to_string("/proc/self/fdinfo/0").unwrap_or_default();
    let position = text.lines().find_map(|line| line.strip_prefix("pos:"));
    position.and_then(|at| at.trim().parse().ok()).unwrap_or(0)
}

/// What has come through a pipe so far.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    recorded: Mutex<(Vec<u8>, bool)>,
    more: Condvar,
}

impl Tape {
    /// Reads `from` to its end, in a thread of its own: a program that reads nothing is not kept waiting.
    fn record(mut from: impl Read + Send + 'static) -> Arc<Self> {
        let tape = Arc::new(Self::default());
        let to = Arc::clone(&tape);
        thread::spawn(move || {
            let mut piece = vec![0; 1 << 16];
            loop {
                let read = match from.read(&mut piece) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.unwrap_or(0),
                };
                let mut recorded = to.lock();
                recorded.0.extend_from_slice(&piece[..read]);
                recorded.1 = read == 0;
                to.more.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        tape
    }

    /// Writes all of it to a run, until it ends or reads no more.
    fn play(self: Arc<Self>, mut to: impl Write + Send + 'static) {
        thread::spawn(move || {
            let mut at = 0;
            loop {
                let piece = {
                    let waiting =
                        |recorded: &mut (Vec<u8>, bool)| recorded.0.len() == at && !recorded.1;
                    let recorded = self.more.wait_while(self.lock(), waiting);
                    let recorded = recorded.unwrap_or_else(PoisonError::into_inner);
                    recorded.0[at..].to_vec()
                };
                if piece.is_empty() || to.write_all(&piece).is_err() {
                    return;
                }
                at += piece.len();
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<u8>, bool)> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn every_run_gets_all_of_a_pipe() {
        let text = "all of it\n".repeat(50_000);
        let tape = Tape::record(io::Cursor::new(text.clone()));
        let input = Input::Pipe(tape);
        // One that reads nothing is not waited for.
        for (command, wanted) in [("cat", text.as_str()), ("true", ""), ("cat", text.as_str())] {
            let mut run = Command::new(command);
            run.stdin(input.next().unwrap()).stdout(Stdio::piped());
            let mut run = run.spawn().unwrap();
            input.feed(run.stdin.take());
            let output = run.wait_with_output().unwrap();
            assert!(output.stdout == wanted.as_bytes(), "{command}");
        }
    }
}
