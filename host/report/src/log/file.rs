//! Where a log is kept while the program runs.
//!
//! The log shares its process with the program, which may close descriptors that are not its own, open files under
//! their numbers, fill the disk, become another user's, or remove what it takes for its own. So every write makes sure
//! that the descriptor still is the log's and opens the file again if it is not; what the log's folder does not take goes
//! to a spare folder on another file system; a log that was removed is written again; and how much was kept and lost
//! stands in a file of its own, whose room was taken at the start ([`Lost`]), and which is in memory too, for when no
//! path leads to it any more.
//!
//! A program that another one executes in its place, or that runs in another namespace of process numbers, has the number
//! of a process that has a log: each has a log of its own.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use os::shared::Shared;
use os::{run, signals};

use super::Event;
use super::fault::Faults;

/// How the name of a log ends.
pub const EXTENSION: &str = "jsonl";
/// How the name of the file ends that says what a log has and lacks.
const MARK: &str = "lost";
/// Bytes of that file.
const MARK_BYTES: usize = 256;
/// A folder with this bit has refused a process its log.
const REFUSED: u32 = 0o1000;
/// EMFILE on every Linux.
const NO_DESCRIPTORS: i32 = 24;
/// Who may open a file is a matter of its folder: a process that becomes another user's goes on with its log.
const MODE: u32 = 0o666;

/// What a log lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Events that could not be written; at least 1.
    pub events: u64,
    /// The last error, as the system words it.
    pub why: String,
}

/// Where events go.
#[derive(Debug)]
pub enum Writer {
    /// A file.
    File(Box<LogFile>),
    /// Memory, for callers in the same process.
    Memory(Vec<Event>),
}

impl Writer {
    /// Opens the log of this process in `folder`; in `spare`, if there is one, where that fails or fills up.
    ///
    /// # Errors
    /// When no file can be made; [`refused`] is true of the folder then.
    pub fn create(folder: &Path, spare: Option<&Path>) -> io::Result<Self> {
        let made = signals::without_size_signal(|| LogFile::create(folder, spare));
        let made = made.inspect_err(|error| {
            let process = std::process::id();
            let why = why(error);
            let text =
                format!("process {process} could not make its log, and was not checked: {why}");
            if !run::missed(&text) {
                // A full disk takes no line, but a bit.
                let _ = std::fs::metadata(folder).and_then(|metadata| {
                    let mode = metadata.permissions().mode() | REFUSED;
                    std::fs::set_permissions(folder, Permissions::from_mode(mode))
                });
            }
        });
        Ok(Self::File(Box::new(made?)))
    }

    /// Adds an event; it is on its way to the disk when this returns. What cannot be written is counted.
    pub fn write(&mut self, event: Event) {
        match self {
            Writer::Memory(events) => events.push(event),
            Writer::File(file) => signals::without_size_signal(|| file.write(&event)),
        }
    }
}

/// A log on disk.
#[derive(Debug)]
pub struct LogFile {
    open: Open,
    /// Where to go on when the file takes no more.
    spare: Option<PathBuf>,
    /// The file that says how much there is, and what is lacking: on the other file system, where there is one, so
    /// that whoever removes the log leaves it.
    mark: Mark,
    kept: u64,
    lost: u64,
    /// The last error.
    why: String,
    faults: Faults,
}

impl LogFile {
    fn create(folder: &Path, spare: Option<&Path>) -> io::Result<Self> {
        let faults = Faults::from_environment();
        if let Some(error) = faults.first() {
            return Err(error);
        }
        let folders = [Some(folder), spare];
        let stem = free(folders.into_iter().flatten());
        let [name, mark] = [EXTENSION, MARK].map(|end| format!("{stem}.{end}"));
        let open = first_of(folders, |folder| Open::at(folder.join(&name)))?;
        let mark = first_of([spare, Some(folder)], |folder| Mark::at(folder.join(&mark)))?;
        let spare = spare.map(|folder| folder.join(name));
        Ok(Self {
            spare: spare.filter(|path| *path != open.path),
            open,
            mark,
            kept: 0,
            lost: 0,
            why: String::new(),
            faults,
        })
    }

    fn write(&mut self, event: &Event) {
        let written = match serde_json::to_vec(event) {
            Ok(mut line) => {
                line.push(b'\n');
                self.append(&line)
            }
            Err(error) => Err(error.into()),
        };
        match written {
            Ok(()) => self.kept += 1,
            Err(error) => {
                self.lost += 1;
                self.why = why(&error);
            }
        }
        let text = format!("{} {} {}", self.kept, self.lost, self.why);
        self.mark.put(text.into_bytes());
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.faults.next();
        let first = match self.faults.first() {
            Some(error) => Err(error),
            None => self.open.append_line(line),
        };
        let Err(error) = first else {
            return Ok(());
        };
        if let Some(error) = self.faults.every() {
            return Err(error);
        }
        let Some(path) = self.spare.take() else {
            return Err(error);
        };
        // The file system that has no room for this may have room for what is shorter. One log is in the order of its
        // events all the same: from here on everything goes to the spare folder.
        match self.open.moved_to(path.clone()).and_then(|mut open| {
            open.append_line(line)?;
            Ok(open)
        }) {
            Ok(open) => self.open = open,
            Err(_) => {
                self.spare = Some(path);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// What can be made in the first folder that takes it.
fn first_of<T>(
    folders: [Option<&Path>; 2],
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let mut result = Err(io::Error::from(io::ErrorKind::NotFound));
    for folder in folders.into_iter().flatten() {
        result = make(folder);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// The first name for the log of this process that no log has.
fn free<'a>(folders: impl Iterator<Item = &'a Path> + Clone) -> String {
    let process = std::process::id();
    let names = (0..).map(|before: u32| match before {
        0 => process.to_string(),
        before => format!("{process}-{before}"),
    });
    let is_taken = |name: &str| {
        let mut all = folders.clone();
        all.any(|folder| {
            [EXTENSION, MARK].iter().any(|end| {
                let path = folder.join(format!("{name}.{end}"));
                path.symlink_metadata().is_ok()
            })
        })
    };
    let mut names = names.skip_while(|name| is_taken(name));
    names.next().unwrap_or_else(|| process.to_string())
}

/// What the system says of a failure, and what the user can do about it.
fn why(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space, or set TMPDIR to a folder that has some"
        }
        io::ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f)",
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => {
            "the program has changed its user or its root folder: run it without, or check it as that user"
        }
        _ if error.raw_os_error() == Some(NO_DESCRIPTORS) => {
            "raise the limit on open files (ulimit -n)"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {remedy}")
}

/// The file that says how much there is of a log.
#[derive(Debug)]
struct Mark {
    path: PathBuf,
    /// None where the system lends no memory for it.
    shared: Option<Shared>,
}

impl Mark {
    /// Makes it, blank.
    fn at(path: PathBuf) -> io::Result<Self> {
        let file = Self::open(&path)?;
        file.write_all_at(&[b' '; MARK_BYTES], 0)?;
        let shared = Shared::of(&file, MARK_BYTES).ok();
        Ok(Self { path, shared })
    }

    fn open(path: &Path) -> io::Result<File> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).open(path)?;
        // Whoever has made it lets others open it; others may not.
        let _ = file.set_permissions(Permissions::from_mode(MODE));
        Ok(file)
    }

    /// Writes it anew, in the room that it has. The program may close all descriptors, so none is kept; it may remove the
    /// file, so the path comes first.
    fn put(&self, mut text: Vec<u8>) {
        text.resize(MARK_BYTES, b' ');
        let by_path = Self::open(&self.path).and_then(|file| file.write_all_at(&text, 0));
        if let (Err(_), Some(shared)) = (by_path, &self.shared) {
            // The next event tries again.
            let _ = shared.put(&text);
        }
    }
}

/// A file that is open, unless the program has closed it.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
    /// Its length, unless somebody else has changed it.
    length: u64,
}

/// What has become of a file.
enum Now {
    /// It is ours, and so long.
    Ours(u64),
    /// It is ours, and in no folder any more.
    Removed,
    /// Its number is another file's, or nobody's.
    Closed,
}

impl Open {
    fn at(path: PathBuf) -> io::Result<Self> {
        let options = File::options()
            .create(true)
            .read(true)
            .append(true)
            .to_owned();
        let file = options.open(&path)?;
        // As for a mark.
        let _ = file.set_permissions(Permissions::from_mode(MODE));
        let metadata = file.metadata()?;
        Ok(Self {
            path,
            file,
            identity: identity(&metadata),
            length: metadata.len(),
        })
    }

    fn now(&self) -> Now {
        match self.file.metadata() {
            Ok(metadata) if identity(&metadata) != self.identity => Now::Closed,
            Ok(metadata) if metadata.nlink() == 0 => Now::Removed,
            Ok(metadata) => Now::Ours(metadata.len()),
            Err(_) => Now::Closed,
        }
    }

    /// Opens another file that goes on from here. What nobody can read any more goes with it.
    fn moved_to(&self, path: PathBuf) -> io::Result<Self> {
        let mut opened = Self::at(path)?;
        if let Now::Removed = self.now() {
            let mut rest = vec![0; usize::try_from(self.length).unwrap_or(0)];
            self.file.read_exact_at(&mut rest, 0)?;
            opened.file.write_all(&rest)?;
            opened.length += self.length;
        }
        Ok(opened)
    }

    fn append_line(&mut self, line: &[u8]) -> io::Result<()> {
        let length = match self.now() {
            Now::Ours(length) => length,
            Now::Removed => {
                *self = self.moved_to(self.path.clone())?;
                self.length
            }
            Now::Closed => {
                let opened = Self::at(self.path.clone())?;
                // Its number is another file's by now, or nobody's: not ours to close.
                let _ = std::mem::replace(self, opened).file.into_raw_fd();
                self.length
            }
        };
        // Somebody else may have cut a line in two.
        let cut: &[u8] = if length == self.length { b"" } else { b"\n" };
        let all = [cut, line].concat();
        self.file.write_all(&all).inspect_err(|_| {
            // Half a line would make the next one unreadable.
            let _ = self.file.set_len(length);
        })?;
        self.length = length + all.len() as u64;
        Ok(())
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Reads a log. What is no event is left out: a last line that a crash cut short, or what others have made of it.
///
/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<Event>> {
    let bytes = std::fs::read(path)?;
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// What the log at `path` lacks, of which so many events were found, as far as its process could say.
pub fn read_lost(path: &Path, found: usize) -> Option<Lost> {
    let text = std::fs::read_to_string(path.with_extension(MARK)).ok()?;
    let mut words = text.trim_end().splitn(3, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (kept, lost) = (number()?, number()?);
    let gone = kept.saturating_sub(found as u64);
    let why = match gone {
        0 => words.next().unwrap_or_default(),
        _ => "its log was removed or cut short by another process",
    };
    (gone + lost > 0).then(|| Lost {
        events: gone + lost,
        why: why.to_owned(),
    })
}

/// Whether a file in a folder of logs belongs to a process: the name of that process's log.
pub fn log_of(name: &Path) -> Option<PathBuf> {
    let end = name.extension()?;
    (end == EXTENSION || end == MARK).then(|| name.with_extension(EXTENSION))
}

/// Whether a folder has refused a process its log.
pub fn refused(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & REFUSED != 0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn note(text: &str) -> Event {
        Event::Note { text: text.into() }
    }

    fn path(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().join(format!("{}.jsonl", std::process::id()))
    }

    fn file(writer: &mut Writer) -> &mut LogFile {
        match writer {
            Writer::File(file) => file,
            Writer::Memory(_) => panic!("not a file"),
        }
    }

    #[test]
    fn a_log_survives_a_crash_in_its_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(folder.path(), None).unwrap();
        writer.write(note("one"));
        writer.write(Event::Race(Box::default()));
        let path = path(&folder);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(
            read(&path).unwrap(),
            [note("one"), Event::Race(Box::default())]
        );
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        assert_eq!(read(&path).unwrap(), [note("one")]);
        assert_eq!(read_lost(&path, 2), None);
        // The mark counts the event that the crash was in.
        assert_eq!(read_lost(&path, 1).unwrap().events, 1);
    }

    #[test]
    fn a_log_whose_descriptor_is_another_file_by_now_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(folder.path(), None).unwrap();
        writer.write(note("one"));
        // As a program does that closes all descriptors and opens a file of its own.
        let other = folder.path().join("other");
        let open = &mut file(&mut writer).open;
        let own = open.file.as_raw_fd();
        let stolen = std::mem::replace(&mut open.file, File::create(&other).unwrap());
        let number = open.file.as_raw_fd();
        drop(stolen);
        writer.write(note("two"));
        assert_eq!(read(&path(&folder)).unwrap(), [note("one"), note("two")]);
        assert_eq!(std::fs::read(&other).unwrap(), b"");
        // The other file is still open, because it is not the log's to close.
        assert_ne!(own, number);
        assert!(Path::new(&format!("/proc/self/fd/{number}")).exists());
    }

    #[test]
    fn what_a_full_disk_does_not_take_goes_to_the_spare_folder() {
        let [folder, spare] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut writer = Writer::create(folder.path(), Some(spare.path())).unwrap();
        file(&mut writer).faults = Faults::parse("2=28").unwrap();
        for text in ["one", "two", "three"] {
            writer.write(note(text));
        }
        assert_eq!(read(&path(&folder)).unwrap(), [note("one")]);
        assert_eq!(read(&path(&spare)).unwrap(), [note("two"), note("three")]);
        assert_eq!(read_lost(&path(&spare), 3), None);
    }

    #[test]
    fn what_nothing_takes_is_counted() {
        let [folder, spare] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut writer = Writer::create(folder.path(), Some(spare.path())).unwrap();
        file(&mut writer).faults = Faults::parse("2..=28").unwrap();
        for text in ["one", "two", "three"] {
            writer.write(note(text));
        }
        assert_eq!(read(&path(&folder)).unwrap(), [note("one")]);
        let lost = read_lost(&path(&spare), 1).unwrap();
        assert_eq!(lost.events, 2);
        assert!(lost.why.contains("No space left on device"), "{lost:?}");
    }

    #[test]
    fn half_a_line_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = Open::at(folder.path().join("1.jsonl")).unwrap();
        open.append_line(b"whole\n").unwrap();
        // A file that is open for reading takes nothing.
        open.file = File::open(&open.path).unwrap();
        assert!(open.append_line(b"more\n").is_err());
        assert_eq!(std::fs::read(&open.path).unwrap(), b"whole\n");
    }

    #[test]
    fn a_folder_that_is_gone_is_left_for_the_spare_one() {
        let spare = tempfile::tempdir().unwrap();
        let gone = spare.path().join("gone");
        let mut writer = Writer::create(&gone, Some(spare.path())).unwrap();
        writer.write(note("one"));
        assert_eq!(read(&path(&spare)).unwrap(), [note("one")]);
        assert!(Writer::create(&gone, None).is_err());
    }

    #[test]
    fn a_log_that_is_removed_is_written_again() {
        for whole_folder in [false, true] {
            let [folder, spare] = [(); 2].map(|()| tempfile::tempdir().unwrap());
            let log_folder = folder.path().join("0");
            std::fs::create_dir_all(&log_folder).unwrap();
            let mut writer = Writer::create(&log_folder, Some(spare.path())).unwrap();
            writer.write(note("one"));
            match whole_folder {
                false => std::fs::remove_file(file(&mut writer).open.path.clone()).unwrap(),
                true => std::fs::remove_dir_all(&log_folder).unwrap(),
            }
            writer.write(note("two"));
            writer.write(note("three"));
            let now = file(&mut writer).open.path.clone();
            assert_eq!(now.starts_with(spare.path()), whole_folder);
            assert_eq!(read(&now).unwrap().len(), 3, "{now:?}");
            assert_eq!(read_lost(&path(&spare), 3), None);
        }
    }

    #[test]
    fn what_somebody_else_cuts_off_is_counted() {
        let [folder, spare] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut writer = Writer::create(folder.path(), Some(spare.path())).unwrap();
        writer.write(note("one"));
        writer.write(note("two"));
        let file = File::options().write(true).open(path(&folder)).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length - 3).unwrap();
        writer.write(note("three"));
        let events = read(&path(&folder)).unwrap();
        assert_eq!(events, [note("one"), note("three")]);
        let lost = read_lost(&path(&spare), events.len()).unwrap();
        assert_eq!(lost.events, 1);
        assert!(lost.why.contains("another process"), "{lost:?}");
    }

    #[test]
    fn a_program_in_the_place_of_another_has_a_log_of_its_own() {
        let [folder, spare] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let create = || Writer::create(folder.path(), Some(spare.path())).unwrap();
        let mut first = create();
        file(&mut first).faults = Faults::parse("1..=28").unwrap();
        first.write(note("one"));
        create().write(note("two"));
        let own = |number: u32| {
            let process = std::process::id();
            let name = format!("{process}-{number}.{EXTENSION}");
            folder.path().join(name)
        };
        assert_eq!(read(&path(&folder)).unwrap(), []);
        assert_eq!(read_lost(&path(&spare), 0).unwrap().events, 1);
        assert_eq!(read(&own(1)).unwrap(), [note("two")]);
        // A name that is taken in the other folder only is taken.
        std::fs::write(spare.path().join(own(2).file_name().unwrap()), "").unwrap();
        create().write(note("three"));
        assert_eq!(read(&own(3)).unwrap(), [note("three")]);
    }

    #[test]
    fn what_is_lost_is_counted_where_no_path_leads() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(folder.path(), None).unwrap();
        writer.write(note("one"));
        let log = file(&mut writer);
        log.mark.path = PathBuf::from("/nowhere/mark");
        log.faults = Faults::parse("1..=13").unwrap();
        writer.write(note("two"));
        let lost = read_lost(&path(&folder), 1).unwrap();
        assert_eq!(lost.events, 1);
        assert!(lost.why.contains("changed its user"), "{lost:?}");
    }

    #[test]
    fn a_folder_that_takes_no_log_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let log_folder = folder.path().join("0");
        // A file in its place.
        std::fs::write(&log_folder, "").unwrap();
        assert!(!refused(&log_folder));
        assert!(Writer::create(&log_folder, None).is_err());
        assert!(refused(&log_folder));
    }
}
