//! `tests/race` and `tests/exec` on a driver: a real GPU, or the simulated driver in its place.
//!
//! A *unit* is one case in one way: as written, in `precise` mode (with a journal, as on a GPU), or in
//! `fast` mode. A kernel that hangs or faults takes its process down, so units run in worker
//! processes ([`worker`]), which [`pool`] starts, feeds and kills.
//! What orders threads on a GPU is chance: a race that is not reported under the schedules of three
//! launches counts as not seen, and not as a mistake, unless only barriers can order the kernel's
//! threads ([`judge`]).

pub mod costs;
pub mod judge;
mod machine;
pub mod pool;
pub mod table;
pub mod worker;

use std::path::Path;

use anyhow::{Context, Result};
use runtime::Mode;

use crate::header::{self, Case};
use crate::machine::Checks;
use crate::{exec, files, race};

use machine::How;

/// How a case is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The text of the file.
    AsWritten,
    /// With cells and a journal.
    Precise,
    /// With cells.
    Fast,
}

impl Way {
    /// As it is named in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsWritten => "as-written",
            Self::Precise => "precise",
            Self::Fast => "fast",
        }
    }

    fn checks(self) -> Option<Checks> {
        match self {
            Self::AsWritten => None,
            Self::Precise => Some(Checks {
                as_gpu: true,
                ..Checks::by(Mode::Precise)
            }),
            Self::Fast => Some(Checks::by(Mode::Fast)),
        }
    }
}

/// One case in one way.
#[derive(Clone, Debug)]
pub struct Unit {
    /// `race/gpu` or `exec`.
    pub folder: String,
    /// The file below `tests` without its extension, and its revision.
    pub name: String,
    /// How it is run.
    pub way: Way,
    /// How its launches are checked. All that a worker runs is checked in one way.
    how: Option<How>,
    case: Case,
}

impl Unit {
    fn is_race(&self) -> bool {
        self.folder.starts_with("race")
    }
}

/// Every unit of the files below `tests` whose name contains one of `filters`; all without filters.
///
/// # Errors
/// When a file cannot be read, or its header makes no sense.
pub fn units(tests: &Path, filters: &[String]) -> Result<Vec<Unit>> {
    let mut units = Vec::new();
    for top in ["race", "exec"] {
        for path in files::below(&tests.join(top), "ptx")? {
            let inside = path.strip_prefix(tests)?.with_extension("");
            let folder = inside.parent().unwrap_or(&inside).display().to_string();
            let text = std::fs::read_to_string(&path)?;
            for case in header::cases(&text).with_context(|| path.display().to_string())? {
                let name = match case.revision.as_str() {
                    "" => inside.display().to_string(),
                    revision => format!("{}[{revision}]", inside.display()),
                };
                if !filters.is_empty() && !filters.iter().any(|part| name.contains(part)) {
                    continue;
                }
                let model = race::model(&case).with_context(|| name.clone())?;
                units.extend(ways(top, &case).iter().map(|&way| Unit {
                    folder: folder.clone(),
                    name: name.clone(),
                    way,
                    how: way.checks().map(|checks| (checks, model)),
                    case: case.clone(),
                }));
            }
        }
    }
    // Workers last longest when what is checked in one way stands together. A kernel that spins takes
    // its turns on the GPU from those of all other processes, so these stand at the end.
    units.sort_by_key(|unit| (judge::may_hang(unit), unit.way, format!("{:?}", unit.how)));
    Ok(units)
}

fn ways(top: &str, case: &Case) -> &'static [Way] {
    match top {
        "race" => &[Way::Precise, Way::Fast],
        // A journal has no entries of a single thread's arithmetic. Other cases run with a journal, which covers the cells as
        // well.
        _ if exec::is_scalar(case) => &[Way::AsWritten, Way::Fast],
        _ => &[Way::AsWritten, Way::Precise],
    }
}
