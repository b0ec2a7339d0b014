//! The run of cudarun-check that a process belongs to, by the environment that it was started with.
//!
//! The folder of the run takes the logs of its processes, and a file of lines in which anybody says what the run has
//! missed: code that has no log, or holds locks that keep it from writing one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Names the folder of the run.
pub const DIRECTORY_VARIABLE: &str = "CUDARUN_CHECK_DIR";
/// Names its folder on another file system.
pub const SPARE_VARIABLE: &str = "CUDARUN_CHECK_SPARE_DIR";
/// The file of what the run has missed, in either folder. The audit library knows this name too.
pub const MISSED: &str = "missed";

/// The file of programs that were started and that no loader brings us into, in the first folder. The audit library writes
/// it, and knows this name too.
pub const FOREIGN: &str = "foreign";

/// A variable of the environment; where the program has removed it since, as it was when the process began.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).or_else(|| {
        let first = std::fs::read("/proc/self/environ").ok()?;
        find(&first, name)
    })
}

/// The value of a variable in an environment of strings that end in zero bytes.
fn find(environment: &[u8], name: &str) -> Option<OsString> {
    let mut texts = environment.split(|byte| *byte == 0);
    let value = texts.find_map(|text| text.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsString::from_vec(value.to_owned()))
}

/// Says what the run has missed, in one line, unless this process has said the same before. Nothing if this process is
/// not checked.
pub fn missed(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.insert(text.to_owned()) {
        return;
    }
    let folders = [DIRECTORY_VARIABLE, SPARE_VARIABLE].map(variable);
    let folders = folders.into_iter().flatten();
    // What neither folder takes is lost, and so are the logs.
    let _ = folders
        .map(PathBuf::from)
        .find(|folder| append(folder, text).is_ok());
}

/// One write for each line keeps those of several processes whole.
fn append(folder: &Path, text: &str) -> io::Result<()> {
    let line = format!("{}\n", text.replace('\n', " "));
    let options = File::options().append(true).create(true).to_owned();
    options
        .open(folder.join(MISSED))?
        .write_all(line.as_bytes())
}

/// The lines of such a file, each once; none without the file.
pub fn lines(folder: &Path, file: &str) -> BTreeSet<OsString> {
    let bytes = std::fs::read(folder.join(file)).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| OsString::from_vec(line.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"AB=1\0A=x=y\0A=2\0";
        assert_eq!(find(environment, "A"), Some("x=y".into()));
        assert_eq!(find(environment, "B"), None);
        assert_eq!(variable("CUDARUN_CHECK_NO_SUCH"), None);
    }
}
