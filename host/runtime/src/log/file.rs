//! Where a log is kept while the program runs.
//!
//! The log shares its process with the program, which may close descriptors that are not its own, open files under
//! their numbers, or fill the disk. So every write makes sure that the descriptor still is the log's and opens the
//! file again if it is not; what the log's folder does not take goes to a spare folder on another file system; and what
//! neither takes is counted in a file whose room was taken at the start ([`Lost`]).

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::Event;
use super::fault::Faults;

/// How the name of a log ends.
pub const EXTENSION: &str = "jsonl";
/// How the name of the file ends that says what a log lacks.
const LOST: &str = "lost";
/// Bytes of that file.
const LOST_BYTES: usize = 256;

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
    /// When no file can be made.
    pub fn create(folder: &Path, spare: Option<&Path>) -> io::Result<Self> {
        Ok(Self::File(Box::new(LogFile::create(folder, spare)?)))
    }

    /// Adds an event; it is on its way to the disk when this returns. What cannot be written is counted.
    pub fn write(&mut self, event: Event) {
        match self {
            Writer::Memory(events) => events.push(event),
            Writer::File(file) => file.write(&event),
        }
    }
}

/// A log on disk.
#[derive(Debug)]
pub struct LogFile {
    open: Open,
    /// Where to go on when the file takes no more.
    spare: Option<PathBuf>,
    /// The file that says what is lacking.
    mark: PathBuf,
    lost: u64,
    faults: Faults,
}

impl LogFile {
    fn create(folder: &Path, spare: Option<&Path>) -> io::Result<Self> {
        let process = std::process::id();
        let [name, mark] = [EXTENSION, LOST].map(|end| format!("{process}.{end}"));
        let make = |folder: &Path| -> io::Result<(Open, PathBuf)> {
            let mark = folder.join(&mark);
            std::fs::write(&mark, [b' '; LOST_BYTES])?;
            Ok((Open::append(folder.join(&name))?, mark))
        };
        let (open, mark) = match (make(folder), spare) {
            (Err(_), Some(spare)) => make(spare),
            (made, _) => made,
        }?;
        let spare = spare.map(|folder| folder.join(name));
        Ok(Self {
            spare: spare.filter(|path| *path != open.path),
            open,
            mark,
            lost: 0,
            faults: Faults::from_environment(),
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
        if let Err(error) = written {
            self.lost += 1;
            self.mark(&error);
        }
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
        match Open::append(path.clone()).and_then(|mut open| {
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

    /// Says how much is lacking, in room that the file has already.
    fn mark(&self, error: &io::Error) {
        let mut text = format!("{} {error}", self.lost).into_bytes();
        text.resize(LOST_BYTES, b' ');
        // The next event tries again.
        if let Ok(file) = File::options().write(true).open(&self.mark) {
            let _ = file.write_all_at(&text, 0);
        }
    }
}

/// A file that is open, unless the program has closed it.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
}

impl Open {
    fn append(path: PathBuf) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(&path)?;
        let identity = identity(&file.metadata()?);
        Ok(Self {
            path,
            file,
            identity,
        })
    }

    fn append_line(&mut self, line: &[u8]) -> io::Result<()> {
        let length = match self.file.metadata() {
            Ok(metadata) if identity(&metadata) == self.identity => metadata.len(),
            _ => {
                let opened = Self::append(self.path.clone())?;
                let length = opened.file.metadata()?.len();
                // Its number is another file's by now, or nobody's: not ours to close.
                let _ = std::mem::replace(self, opened).file.into_raw_fd();
                length
            }
        };
        self.file.write_all(line).inspect_err(|_| {
            // Half a line would make the next one unreadable.
            let _ = self.file.set_len(length);
        })
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Reads a log. A last line that a crash cut short is left out.
///
/// # Errors
/// When the file cannot be read, or a line that is not the last makes no sense.
pub fn read(path: &Path) -> io::Result<Vec<Event>> {
    let text = std::fs::read_to_string(path)?;
    let mut events = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        match serde_json::from_str(line) {
            Ok(event) => events.push(event),
            Err(_) if lines.peek().is_none() && !text.ends_with('\n') => {}
            Err(error) => {
                let what = format!("{}:{}: {error}", path.display(), number + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
    }
    Ok(events)
}

/// What the log at `path` lacks, as far as its process could say.
pub fn read_lost(path: &Path) -> Option<Lost> {
    let text = std::fs::read_to_string(path.with_extension(LOST)).ok()?;
    let (events, why) = text.trim_end().split_once(' ')?;
    Some(Lost {
        events: events.parse().ok()?,
        why: why.to_owned(),
    })
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
        assert_eq!(read_lost(&path), None);
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
        assert_eq!(read_lost(&path(&folder)), None);
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
        let lost = read_lost(&path(&folder)).unwrap();
        assert_eq!(lost.events, 2);
        assert!(lost.why.contains("No space left on device"), "{lost:?}");
    }

    #[test]
    fn half_a_line_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut open = Open::append(folder.path().join("1.jsonl")).unwrap();
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
}
