//! What `--save` writes with `--record`: a ZIP archive of the report, the recorded launches, and the sources of the races.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use report::Report;
use report::source::Sources;
use simulated::recorded::Recorded;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::exit::{BAD_INPUT, INTERNAL, Stop};
use crate::output;

const REPORT: &str = "report.json";
const SOURCES: &str = "sources.json";
const LAUNCHES: &str = "launches";
/// The first bytes of a ZIP archive.
const MAGIC: &[u8] = b"PK";

/// An archive that will be written, opened before the run.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    file: File,
}

impl Target {
    /// Opens the file.
    pub(crate) fn open(path: PathBuf) -> Result<Self, Stop> {
        let file = output::create(&path)?;
        Ok(Self { path, file })
    }

    /// Writes a report without launches, of a run that has not ended.
    pub(crate) fn begin(&self, report: &Report) {
        // The report at the end fails with the same error, and says so.
        if (&self.file).write_all(report.to_json().as_bytes()).is_err() {
            let _ = output::emptied(&self.file);
        }
    }

    /// Writes the archive, with the recorded launches that processes have left in folders.
    pub(crate) fn write(
        &self,
        report: &Report,
        sources: &Sources,
        folders: &[PathBuf],
    ) -> Result<(), Stop> {
        let Self { path, file } = self;
        let bad = |error: &dyn std::fmt::Display| cannot(path, error);
        output::emptied(file).map_err(|error| bad(&error))?;
        let mut archive = ZipWriter::new(Remembering { file, error: None });
        let packed = SimpleFileOptions::default().large_file(true);
        let mut put = |name: &str, text: &str| {
            archive.start_file(name, packed)?;
            archive.write_all(text.as_bytes())?;
            Ok::<_, zip::result::ZipError>(())
        };
        put(REPORT, &report.to_json()).map_err(|error| bad(&error))?;
        let texts = serde_json::to_string(&texts(report, sources)).unwrap_or_default();
        put(SOURCES, &texts).map_err(|error| bad(&error))?;
        // They are packed already.
        let plain = packed.compression_method(CompressionMethod::Stored);
        for launch in folders.iter().flat_map(|folder| launches(folder)) {
            let name = launch.file_name().unwrap_or_default().to_string_lossy();
            let mut copy = || {
                archive.start_file(format!("{LAUNCHES}/{name}"), plain)?;
                std::io::copy(&mut File::open(&launch)?, &mut archive)?;
                Ok::<_, zip::result::ZipError>(())
            };
            copy().map_err(|error| bad(&error))?;
        }
        let written = archive.finish().map_err(|error| bad(&error))?;
        match written.error {
            Some(error) => Err(bad(&error)),
            None => Ok(()),
        }
    }
}

/// A file that takes everything, and remembers the first error: a [`ZipWriter`] loses its reason, and prints another
/// one when it is dropped.
struct Remembering<'a> {
    file: &'a File,
    error: Option<std::io::Error>,
}

impl Write for Remembering<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.error.is_none()
            && let Err(error) = self.file.write_all(bytes)
        {
            self.error = Some(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Remembering<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

fn cannot(path: &Path, error: &dyn std::fmt::Display) -> Stop {
    let text = format!("cannot write the recording to {}: {error}", path.display());
    Stop::new(INTERNAL, text)
}

/// The recorded launches in a folder.
fn launches(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is = |path: &PathBuf| {
        path.extension()
            .is_some_and(|end| end == Recorded::EXTENSION)
    };
    let mut all: Vec<PathBuf> = paths.filter(is).collect();
    all.sort();
    all
}

/// The sources that the races of a report name, as far as they are here.
fn texts(report: &Report, sources: &Sources) -> BTreeMap<String, String> {
    let sides = report.races.iter().flat_map(|race| &race.accesses);
    let frames = sides.flat_map(|access| &access.frames);
    let mut texts = BTreeMap::new();
    for frame in frames {
        if !texts.contains_key(&frame.file)
            && let Some(text) = sources.text(&frame.file)
        {
            texts.insert(frame.file.clone(), text.to_string());
        }
    }
    texts
}

/// Whether bytes are an archive, and no report as JSON.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// An archive that was written.
pub(crate) struct Saved<'a> {
    path: &'a Path,
    archive: ZipArchive<Cursor<Vec<u8>>>,
}

impl<'a> Saved<'a> {
    /// Opens an archive.
    pub(crate) fn new(path: &'a Path, bytes: Vec<u8>) -> Result<Self, Stop> {
        match ZipArchive::new(Cursor::new(bytes)) {
            Ok(archive) => Ok(Self { path, archive }),
            Err(error) => Err(damaged(path, &error)),
        }
    }

    /// The report as JSON.
    pub(crate) fn report(&mut self) -> Result<String, Stop> {
        let text = self.entry(REPORT)?;
        String::from_utf8(text).map_err(|error| damaged(self.path, &error))
    }

    /// The sources of its races.
    pub(crate) fn sources(&mut self) -> Result<BTreeMap<String, String>, Stop> {
        let text = self.entry(SOURCES)?;
        serde_json::from_slice(&text).map_err(|error| damaged(self.path, &error))
    }

    /// A recorded launch.
    pub(crate) fn launch(&mut self, name: &str) -> Result<Recorded, Stop> {
        let entry = format!("{LAUNCHES}/{name}.{}", Recorded::EXTENSION);
        let bytes = self.entry(&entry)?;
        Recorded::read(Cursor::new(bytes))
            .map_err(|error| damaged(self.path, &format!("{entry}: {error}")))
    }

    fn entry(&mut self, name: &str) -> Result<Vec<u8>, Stop> {
        let bad = |error: &dyn std::fmt::Display| damaged(self.path, &format!("{name}: {error}"));
        let mut bytes = Vec::new();
        let mut entry = self.archive.by_name(name).map_err(|error| bad(&error))?;
        match entry.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(bad(&error)),
        }
    }
}

/// The archive is not what it should be.
pub(crate) fn damaged(path: &Path, why: &dyn std::fmt::Display) -> Stop {
    let text = format!("{}: damaged, or of another version: {why}", path.display());
    Stop::new(BAD_INPUT, text)
}
