//! The file of a recorded launch: a ZIP archive of its facts as JSON, its module's PTX, and what memory holds.

use std::fmt;
use std::io::{self, BufWriter, Read, Seek, Write};

use serde::{Deserialize, Serialize};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::{Contents, Recorded};

const FACTS: &str = "launch.json";
const PTX: &str = "module.ptx";
const MEMORY: &str = "memory.bin";
/// Version of the format; others are not read.
const VERSION: u32 = 2;

/// Why a file is no recorded launch, or its parts do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged(String);

impl Damaged {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damaged {}

#[derive(Serialize, Deserialize)]
struct Facts<T> {
    version: u32,
    launch: T,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Recorded {
    /// How names of files end that hold a recorded launch.
    pub const EXTENSION: &str = super::recorder::EXTENSION;

    /// Writes the launch to a file.
    ///
    /// # Errors
    /// When the file takes no more.
    pub fn write(&self, to: impl Write + Seek) -> io::Result<()> {
        let mut archive = ZipWriter::new(to);
        let options = SimpleFileOptions::default()
            .large_file(true)
            .compression_level(Some(1));
        archive.start_file(FACTS, options)?;
        let facts = Facts {
            version: VERSION,
            launch: self,
        };
        serde_json::to_writer(BufWriter::new(&mut archive), &facts)?;
        archive.start_file(PTX, options)?;
        archive.write_all(self.ptx.as_bytes())?;
        archive.start_file(MEMORY, options)?;
        self.contents.write(BufWriter::new(&mut archive))?;
        archive.finish()?.flush()
    }

    /// Reads a launch that [`Self::write`] has written.
    ///
    /// # Errors
    /// When the file is damaged, or of another version.
    pub fn read(from: impl Read + Seek) -> Result<Self, Damaged> {
        let bad = |what: &str, error: &dyn fmt::Display| Damaged(format!("{what}: {error}"));
        let mut archive =
            ZipArchive::new(from).map_err(|error| bad("no recorded launch", &error))?;
        let mut text = |name: &str| {
            let mut text = String::new();
            let mut entry = archive.by_name(name).map_err(|error| bad(name, &error))?;
            let read = entry.read_to_string(&mut text);
            read.map_err(|error| bad(name, &error))?;
            Ok::<_, Damaged>(text)
        };
        let (facts, ptx) = (text(FACTS)?, text(PTX)?);
        let found: Version = serde_json::from_str(&facts).map_err(|error| bad(FACTS, &error))?;
        if found.version != VERSION {
            let found = found.version;
            return Err(Damaged(format!(
                "a recorded launch of version {found}, and {VERSION} is read"
            )));
        }
        let facts: Facts<Self> =
            serde_json::from_str(&facts).map_err(|error| bad(FACTS, &error))?;
        let memory = archive
            .by_name(MEMORY)
            .map_err(|error| bad(MEMORY, &error))?;
        let contents = Contents::read(memory).map_err(|error| bad(MEMORY, &error))?;
        Ok(Self {
            ptx,
            contents,
            ..facts.launch
        })
    }
}
