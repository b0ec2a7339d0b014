//! Finding test files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Every file below `folder` with this extension, sorted.
///
/// # Errors
/// When a folder cannot be read.
pub fn below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(below(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
