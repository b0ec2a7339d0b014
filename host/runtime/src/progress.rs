//! A launch that takes long: whether it is to go on, and a line on the terminal that says how far it is.
//!
//! The checked process draws the line itself, so that it is gone before a launch returns and before the
//! device prints. It stands below the cursor, which stays where the program has left it. When a process
//! ends with a line on the terminal, a file beside its log asks the command line to [`wipe`] it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use os::{interrupts, run, terminal};

use crate::options::Show;
use report::names::demangle;
use report::words::{counted, number};

/// Launches that take no longer are not shown.
pub const AFTER: Duration = Duration::from_secs(2);
/// Between two drawings.
const BETWEEN: Duration = Duration::from_millis(250);
/// What a file beside the log is called that says that a line is drawn.
const EXTENSION: &str = "line";
/// Makes room below the cursor, goes there, and comes back to where the program has left it.
const BELOW: &str = "\x1bD\x1b[A\x1b7\x1b[B\r";
const BACK: &str = "\x1b[K\x1b8";

/// Whether a line is to be drawn at all.
static ENABLED: AtomicBool = AtomicBool::new(false);
/// Races that happens-before has found in the launch under way.
static FOUND: AtomicU64 = AtomicU64::new(0);
/// When the line is to be drawn next, in milliseconds since [`started`]; the launch has not begun at 0.
static NEXT: AtomicU64 = AtomicU64::new(0);
static LINE: Mutex<Line> = Mutex::new(Line {
    marker: None,
    kernel: String::new(),
    launch: 0,
    races: 0,
    drawn: false,
});

/// What the line says, besides how far the launch is.
struct Line {
    /// Is there while the line is.
    marker: Option<PathBuf>,
    kernel: String,
    launch: u64,
    races: u64,
    drawn: bool,
}

/// Draws from now on, if there is a terminal or the user insists; `logs` is the folder of the log.
pub fn enable(show: Show, logs: Option<&Path>) {
    let wanted = match show {
        Show::Never => false,
        Show::Terminal => terminal::is_there(),
        Show::Always => true,
    };
    let name = format!("{}.{EXTENSION}", std::process::id());
    line().marker = logs.map(|folder| folder.join(name));
    ENABLED.store(wanted, Ordering::Relaxed);
}

/// A launch begins, after so many races.
pub fn begin(kernel: &str, launch: u64, races: u64) {
    if !is_enabled() {
        return;
    }
    let mut line = line();
    line.kernel = demangle(kernel);
    (line.launch, line.races) = (launch, races);
    FOUND.store(0, Ordering::Relaxed);
    NEXT.store(now() + AFTER.as_millis() as u64, Ordering::Relaxed);
}

/// The launch has ended.
pub fn end() {
    NEXT.store(0, Ordering::Relaxed);
    erase();
}

/// Happens-before has found a race.
pub(crate) fn found() {
    FOUND.fetch_add(1, Ordering::Relaxed);
}

/// Shows that so many of the launch's CTAs have ended; false once a signal wants the process to end that it
/// [holds](interrupts::hold).
pub fn go_on(done: u64, ctas: u64) -> bool {
    if is_enabled() && is_due() {
        let found = FOUND.load(Ordering::Relaxed);
        draw(Some(Progress { done, ctas }), found);
    }
    interrupts::caught().is_none()
}

/// Draws the line of the launch that has [begun](begin), with the races that it has had, if it is time.
pub(crate) fn show(found: impl FnOnce() -> u64) {
    if is_enabled() && is_due() {
        draw(None, found());
    }
}

/// Takes the line away, because something else is written.
pub fn erase() {
    if is_enabled() {
        let mut line = line();
        if std::mem::take(&mut line.drawn) {
            terminal::write(&format!("{BELOW}{BACK}"));
            // The command line erases what is not there, at worst.
            let _ = line.marker.as_ref().map(fs::remove_file);
        }
    }
}

/// Writes a line for the user on standard error in the place of ours, unless this process has said the same before.
pub fn say_once(text: &str) {
    erase();
    terminal::say_once(text);
}

/// Likewise of something that the run has missed, which makes it incomplete.
pub fn say_missed(text: &str) {
    say_once(text);
    run::missed(text);
}

/// Takes away the lines that processes have left whose logs are in a folder.
pub fn wipe(logs: &Path) {
    let entries = fs::read_dir(logs).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.path());
    if names.any(|path| path.extension().is_some_and(|end| end == EXTENSION)) {
        terminal::write(&format!("{BELOW}{BACK}"));
    }
}

/// Whether a line may be drawn in this process.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

fn is_due() -> bool {
    let (next, now) = (NEXT.load(Ordering::Relaxed), now());
    let then = now + BETWEEN.as_millis() as u64;
    let mine = |()| NEXT.compare_exchange(next, then, Ordering::Relaxed, Ordering::Relaxed);
    next != 0 && now >= next && mine(()).is_ok()
}

/// How far a launch is: CTAs that have ended, of all.
struct Progress {
    done: u64,
    ctas: u64,
}

fn draw(progress: Option<Progress>, found: u64) {
    let mut line = line();
    let far = match progress {
        Some(Progress { done, ctas }) => {
            format!(": {} of {}", number(done), counted(ctas, "block"))
        }
        None => String::new(),
    };
    let races = counted(line.races + found, "race");
    let rest = format!("{far}, launch #{}, {races} so far", line.launch);
    let text = cut(&line.kernel, &rest, terminal::columns());
    if !std::mem::replace(&mut line.drawn, true) {
        let _ = line.marker.as_ref().map(|path| fs::write(path, ""));
    }
    terminal::write(&format!("{BELOW}{text}{BACK}"));
}

/// A line that fits: of what does not, the kernel's name is cut first.
fn cut(kernel: &str, rest: &str, columns: usize) -> String {
    const START: &str = "cudarun-check: ";
    // In the last column a terminal may begin a new line.
    let room = columns.saturating_sub(1);
    let for_name = room.saturating_sub(START.len() + rest.len());
    // Whatever is not ASCII may take any number of columns.
    let plain = |c: char| if (' '..='~').contains(&c) { c } else { '?' };
    let mut name: String = kernel.chars().map(plain).collect();
    if name.len() > for_name {
        name.truncate(for_name.saturating_sub(2));
        name += "..";
    }
    let mut line = format!("{START}{name}{rest}");
    line.truncate(room);
    line
}

fn line() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds since the first call; at least 1.
fn now() -> u64 {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let started = STARTED.get_or_init(Instant::now);
    started.elapsed().as_millis() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_cut_before_the_numbers() {
        let rest = ": 1 of 2 blocks, launch #1, 0 races so far";
        let whole = format!("cudarun-check: kernel(int){rest}");
        assert_eq!(cut("kernel(int)", rest, 80), whole);
        let short = cut("kernel(int)", rest, 64);
        assert_eq!(short, format!("cudarun-check: kern..{rest}"));
        assert_eq!(short.len(), 63);
        assert_eq!(cut("kernel", rest, 20).len(), 19);
        assert_eq!(cut("kernel", rest, 0), "");
        assert!(cut("größe\n\x1b[2J", "", 80).ends_with("gr??e??[2J"));
    }
}
