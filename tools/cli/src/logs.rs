//! The folders that a run's processes keep their logs in, and what they have left there.

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use os::run;
use report::Log;
use report::log::{self, Event};
use tempfile::TempDir;

use crate::exit::{INTERNAL, Stop};
use crate::program;

/// How long processes that outlive the program are waited for.
const GRACE: Duration = Duration::from_secs(2);
/// How often the system's processes are listed at most, until there are no new ones.
const ROUNDS: u32 = 100;
/// Where a spare folder may be; the first one on another file system is taken.
const SPARE: [&str; 4] = ["/dev/shm", "/var/tmp", "/tmp", "."];

/// The folders of a run; no other user may read them, and they are removed with this.
///
/// A process of the run that was root's may become another user's, and so may what it starts. So others may enter root's
/// folders, and write what is in them, but not list them; only the processes of the run know how they are called.
#[derive(Debug)]
pub(crate) struct Folders {
    main: TempDir,
    spare: Option<TempDir>,
}

/// The folders of one schedule.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) main: PathBuf,
    /// On another file system, for when the first is full.
    pub(crate) spare: Option<PathBuf>,
}

impl Folders {
    /// Makes them.
    pub(crate) fn create() -> Result<Self, Stop> {
        let temporary = std::env::temp_dir();
        let spare = on_other_file_system(&temporary);
        let main = match (folder_in(&temporary), &spare) {
            (Ok(main), _) => main,
            // A folder for temporary files that takes nothing is no reason not to run.
            (Err(_), Some(spare)) => folder_in(spare.path()).map_err(|error| {
                let spare = spare.path().display();
                Stop::new(
                    INTERNAL,
                    format!("cannot make a folder in {spare}: {error}"),
                )
            })?,
            (Err(error), None) => {
                let text = format!(
                    "cannot make a folder for logs in {}: {error}; set TMPDIR",
                    temporary.display()
                );
                return Err(Stop::new(INTERNAL, text));
            }
        };
        Ok(Self { main, spare })
    }

    /// Makes those of a schedule.
    pub(crate) fn schedule(&self, number: u32) -> Result<Schedule, Stop> {
        let make = |folder: &TempDir| -> std::io::Result<PathBuf> {
            let path = folder.path().join(format!("{number}-{}", secret()?));
            std::fs::create_dir(&path)?;
            let mode = if is_root() { 0o733 } else { 0o700 };
            std::fs::set_permissions(&path, Permissions::from_mode(mode))?;
            Ok(path)
        };
        let main = make(&self.main).map_err(|error| {
            let folder = self.main.path().display();
            Stop::new(
                INTERNAL,
                format!("cannot make a folder in {folder}: {error}"),
            )
        })?;
        let spare = self.spare.as_ref().and_then(|spare| make(spare).ok());
        // Where nothing can be said any more, the logs say what they lack.
        let _ = run::make_board(spare.as_ref().unwrap_or(&main));
        Ok(Schedule { main, spare })
    }
}

/// A folder of our own that no other user may enter.
fn folder_in(dir: &Path) -> std::io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("cudarun-check-")
        .permissions(Permissions::from_mode(if is_root() {
            0o711
        } else {
            0o700
        }))
        .tempdir_in(dir)
}

/// Whether this process may let its children be another user's.
fn is_root() -> bool {
    Path::new("/proc/self")
        .metadata()
        .is_ok_and(|own| own.uid() == 0)
}

/// A part of a name that cannot be guessed.
fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A folder on another file system than that of `dir`.
fn on_other_file_system(dir: &Path) -> Option<TempDir> {
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev());
    let own = device(dir).ok();
    let others = SPARE.iter().map(Path::new);
    let mut others = others.filter(|other| device(other).is_ok_and(|device| Some(device) != own));
    others.find_map(|other| folder_in(other).ok())
}

impl Schedule {
    /// Reads what the processes of the schedule have left behind. Those that still run, and have a log or
    /// one of our `libraries`, are waited for a little if there is time; what they do later is lost, and the logs say so.
    pub(crate) fn read(&self, libraries: &Path, patient: bool) -> Result<Vec<Log>, Stop> {
        self.open_up();
        let start = Instant::now();
        let mut running = self.running(libraries);
        while !running.is_empty() && patient && start.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(20));
            running = self.running(libraries);
        }
        let mut logs = Vec::new();
        for name in self.names()? {
            let events = self.events(&name)?;
            let found = events.len();
            let mut folders = self.folders();
            logs.push(Log {
                events,
                lost: folders.find_map(|folder| log::read_lost(&folder.join(&name), found)),
                running: None,
            });
        }
        logs.extend(self.missed().chain(self.messages()).map(|text| Log {
            events: vec![Event::Missed { text }],
            ..Log::default()
        }));
        logs.extend(running.into_iter().map(|process| Log {
            running: Some(process),
            ..Log::default()
        }));
        Ok(logs)
    }

    /// The folders are ours, whatever the program has done to them.
    fn open_up(&self) {
        for folder in self.folders() {
            let _ = folder.metadata().and_then(|metadata| {
                let mode = metadata.permissions().mode() | 0o700;
                std::fs::set_permissions(folder, Permissions::from_mode(mode))
            });
        }
    }

    /// What the processes have written so far of launches that have ended.
    pub(crate) fn so_far(&self) -> Vec<Log> {
        let names = self.names().unwrap_or_default();
        let logs = names.iter().filter_map(|name| {
            let mut events = self.events(name).ok()?;
            // A race is written before the end of its launch, which says more of it.
            let ended = events
                .iter()
                .rposition(|event| matches!(event, Event::Launch(_)));
            events.truncate(ended.map_or(0, |at| at + 1));
            Some(Log {
                events,
                ..Log::default()
            })
        });
        logs.collect()
    }

    /// Bytes of the logs.
    pub(crate) fn bytes(&self) -> u64 {
        let names = self.names().unwrap_or_default();
        let paths = names
            .iter()
            .flat_map(|name| self.folders().map(move |folder| folder.join(name)));
        paths
            .filter_map(|path| Some(path.metadata().ok()?.len()))
            .sum()
    }

    /// Processes of the run that have not ended: their environment names the folder of this schedule.
    fn running(&self, libraries: &Path) -> Vec<u32> {
        let own = self.main.as_os_str().as_bytes();
        let libraries = libraries.as_os_str().as_bytes();
        let of_run = |process: &u32| {
            let has = |file: &str, part: &[u8]| {
                let bytes = std::fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
                bytes.windows(part.len()).any(|bytes| bytes == part)
            };
            let logged = self.main.join(format!("{process}.{}", log::EXTENSION));
            has("environ", own) && (logged.exists() || has("maps", libraries))
        };
        // A process may end before it is looked at, and another one that it has made goes on.
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for _ in 0..ROUNDS {
            let new: Vec<u32> = processes()
                .filter(|process| seen.insert(*process))
                .collect();
            if new.is_empty() {
                break;
            }
            found.extend(new.into_iter().filter(of_run));
        }
        found
    }

    fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.main).chain(&self.spare)
    }

    /// What the folders themselves say.
    fn missed(&self) -> impl Iterator<Item = String> {
        self.folders().filter_map(|folder| {
            let shown = folder.display();
            if log::refused(folder) {
                return Some(format!(
                    "a process could not write its log to {shown}, and was not checked"
                ));
            }
            let gone = !folder.exists();
            gone.then(|| {
                format!("{shown}, which takes the logs of the run, was removed while it ran")
            })
        })
    }

    /// What processes say that the run has missed.
    fn messages(&self) -> impl Iterator<Item = String> {
        let lines = |file: &'static str| move |folder: &PathBuf| run::lines(folder, file);
        let missed = self.folders().flat_map(lines(run::MISSED));
        let lines = missed.chain(self.folders().flat_map(lines(run::BOARD)));
        let lines = lines.map(|text| text.to_string_lossy().into_owned());
        let foreign = run::lines(&self.main, run::FOREIGN).into_iter();
        let foreign = foreign.filter(|path| program::uses_cuda(Path::new(path)));
        let named = foreign.map(|path| {
            let path = path.to_string_lossy();
            format!("{path} is not loaded by the dynamic loader of glibc, and ran unchecked")
        });
        lines.chain(named)
    }

    /// The names of the logs, each once.
    fn names(&self) -> Result<Vec<PathBuf>, Stop> {
        let mut names: Vec<PathBuf> = Vec::new();
        for folder in self.folders() {
            let entries = match std::fs::read_dir(folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(cannot)?,
            };
            for entry in entries {
                let name = PathBuf::from(entry.map_err(cannot)?.file_name());
                names.extend(log::log_of(&name));
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// What a process has written, first to the one folder, then to the other.
    fn events(&self, name: &Path) -> Result<Vec<Event>, Stop> {
        let mut events = Vec::new();
        for path in self.folders().map(|folder| folder.join(name)) {
            if path.exists() {
                events.extend(log::read(&path).map_err(cannot)?);
            }
        }
        Ok(events)
    }
}

/// The numbers of the system's processes.
fn processes() -> impl Iterator<Item = u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn cannot(error: std::io::Error) -> Stop {
    Stop::new(INTERNAL, format!("cannot read the logs: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_reads_the_logs() {
        let folders = Folders::create().unwrap();
        let schedule = folders.schedule(0).unwrap();
        for folder in std::iter::once(&folders.main).chain(&folders.spare) {
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
            // Others may enter root's and write there, if they know how they are called.
            let others = if is_root() { [0o011, 0o033] } else { [0, 0] };
            assert_eq!(mode(folder.path()), 0o700 | others[0], "{folder:?}");
            let mut inside = folder.path().read_dir().unwrap();
            let inside = inside.next().unwrap().unwrap().path();
            assert_eq!(mode(&inside), 0o700 | others[1], "{inside:?}");
            let name = inside.file_name().unwrap().to_string_lossy();
            assert_eq!(name.len(), "0-".len() + 32, "{name}");
        }
        let other = folders.schedule(1).unwrap();
        assert_ne!(schedule.main, other.main);
    }

    #[test]
    fn folders_that_the_program_has_closed_are_read() {
        let folders = Folders::create().unwrap();
        let schedule = folders.schedule(0).unwrap();
        std::fs::write(schedule.main.join("0.jsonl"), "").unwrap();
        for folder in schedule.folders() {
            std::fs::set_permissions(folder, Permissions::from_mode(0o000)).unwrap();
        }
        assert_eq!(schedule.read(Path::new("/nowhere"), true).unwrap().len(), 1);
        let mode = schedule.main.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_log_goes_on_in_the_spare_folder() {
        let folders = Folders::create().unwrap();
        let schedule = folders.schedule(0).unwrap();
        let spare = schedule.spare.clone().unwrap_or(schedule.main.clone());
        let line = |text: &str| format!("{{\"event\":\"note\",\"text\":\"{text}\"}}\n");
        // No process has the number 0.
        std::fs::write(schedule.main.join("0.jsonl"), line("one") + "{\"eve").unwrap();
        if spare != schedule.main {
            std::fs::write(spare.join("0.jsonl"), line("two")).unwrap();
        }
        let logs = schedule.read(Path::new("/nowhere"), true).unwrap();
        assert_eq!(logs.len(), 1);
        assert_eq!(
            logs[0].events.len(),
            if spare == schedule.main { 1 } else { 2 }
        );
        assert!(logs[0].running.is_none() && logs[0].lost.is_none());
    }

    #[test]
    fn processes_of_the_run_are_known_by_their_environment() {
        let folders = Folders::create().unwrap();
        let schedule = folders.schedule(0).unwrap();
        // Every process has the loader or itself in its memory.
        let libraries = Path::new("/");
        assert!(schedule.running(libraries).is_empty());
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("30").env("X", &schedule.main).spawn().unwrap();
        let found = loop {
            // The environment is that of this process until the new program runs.
            let found = schedule.running(libraries);
            if !found.is_empty() {
                break found;
            }
        };
        assert_eq!(found, [child.id()]);
        assert!(schedule.running(Path::new("/nowhere")).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(schedule.running(libraries).is_empty());
    }
}
