//! The programs of `tests/apps` and `bench-rodinia/programs`: what they say about themselves, how they are built, and a run under the tool.
//!
//! What a program is and what is expected of it stands in its own header and on its own lines
//! (docs/adding-a-test.md); nothing here knows any of them by name.

pub mod ahead;
pub mod build;
pub mod header;
pub mod judge;
pub mod report;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

pub use self::header::{Expect, Program, Variant};

/// The folder of the programs that are there to be measured; they are tests too, at their smallest size.
pub const MEASURED: &str = "bench-rodinia/programs";

/// All programs in a folder and its subfolders, by path, and the complaint about each that has a wrong header.
pub fn discover(folder: &Path) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for path in sources(folder)? {
        if is_main_file(&path) {
            programs.push(Program::read(&path)?);
        }
    }
    if programs.is_empty() {
        bail!("no .cu file in {}", folder.display());
    }
    Ok(programs)
}

/// The files of `folder` that no program uses.
pub fn unclaimed(folder: &Path) -> Result<Vec<PathBuf>> {
    let programs = discover(folder)?;
    let mut claimed: BTreeSet<PathBuf> = BTreeSet::new();
    for program in &programs {
        for file in program.files() {
            claimed.extend(includes(&file)?);
            claimed.insert(file);
        }
    }
    Ok(sources(folder)?
        .into_iter()
        .filter(|path| !claimed.contains(path))
        .collect())
}

/// The files that this one includes by a quoted name, as far as they exist.
pub fn includes(file: &Path) -> Result<Vec<PathBuf>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#include \"")?.strip_suffix('"'));
    Ok(names
        .filter_map(|name| folder.join(name).canonicalize().ok())
        .collect())
}

/// A second file of a program ends in `.inc.cu`.
fn is_main_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".cu") && !name.ends_with(".inc.cu")
}

/// Every file under `folder`, sorted.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path().canonicalize()?;
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
