//! The run of cudarun-check that a process belongs to, by the environment that it was started with.
//!
//! The folder of the run takes the logs of its processes, and a file of lines in which processes say what the run has
//! missed: code that has no log, or holds locks that keep it from writing one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::shared::Shared;
use crate::signals;

/// The names of the environment variables that the tool sets begin with this.
const PREFIX: &[u8] = b"CUDARUN_";
/// Names the folder of the run.
pub const DIRECTORY_VARIABLE: &str = "CUDARUN_CHECK_DIR";
/// Names its folder on another file system.
pub const SPARE_VARIABLE: &str = "CUDARUN_CHECK_SPARE_DIR";
/// The file of what the run has missed, in either folder. The audit library knows this name too.
pub const MISSED: &str = "missed";

/// Access to a run's files is limited by their folder, as processes of one run may belong to different users.
const MODE: u32 = 0o666;

/// The file of programs that were started and that no loader brings us into, in the first folder. The audit library writes
/// it, and knows this name too.
pub const FOREIGN: &str = "foreign";

/// A file for processes that cannot open the others any more. It is mapped into the memory of each process when that
/// starts, and has room for one line of each. It lies in the spare folder if there is one. The audit library knows this
/// name, too.
pub const BOARD: &str = "board";
/// Bytes of one line, and number of lines. A process writes the line of its process number modulo their number.
const PLACE: usize = 256;
const PLACES: usize = 64;

/// A variable of the environment.
#[derive(Debug)]
struct Variable {
    name: OsString,
    value: OsString,
}

/// The tool's variables and files as they were when the process started or loaded this library. The program may change
/// its environment, its user and its root folder before it uses the device.
#[derive(Debug, Default)]
struct Started {
    variables: Vec<Variable>,
    board: Option<Shared>,
}

static STARTED: OnceLock<Started> = OnceLock::new();

/// The loader calls it.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    STARTED.get_or_init(|| {
        let all = std::env::vars_os().map(|(name, value)| Variable { name, value });
        let ours = all.filter(|of| of.name.as_bytes().starts_with(PREFIX));
        let variables: Vec<_> = ours.collect();
        let board = first_board(&variables);
        Started { variables, board }
    });
}

/// The board in the first folder that has one.
fn first_board(variables: &[Variable]) -> Option<Shared> {
    let folder = |name: &str| variables.iter().find(|of| of.name == name);
    let folders = [SPARE_VARIABLE, DIRECTORY_VARIABLE].map(folder);
    folders.into_iter().flatten().find_map(|folder| {
        let path = Path::new(&folder.value).join(BOARD);
        let file = File::options().read(true).write(true).open(path).ok()?;
        Shared::of(&file, PLACE * PLACES).ok()
    })
}

/// A variable of the environment; where the program has removed it since, as it was when the process began.
pub fn variable(name: &str) -> Option<OsString> {
    let started = || {
        let mut all = STARTED.get()?.variables.iter();
        let found = all.find(|of| of.name == name)?;
        Some(found.value.clone())
    };
    std::env::var_os(name).or_else(started).or_else(|| {
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

/// Writes a line about what the run has missed, unless this process has written the same before. True if the line is
/// written. Does nothing if this process is not checked.
pub fn missed(text: &str) -> bool {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    if reported.contains(text) {
        return true;
    }
    let folders = [DIRECTORY_VARIABLE, SPARE_VARIABLE].map(variable);
    let folders = folders.into_iter().flatten();
    let mut folders = folders.map(PathBuf::from);
    let taken =
        signals::without_size_signal(|| folders.any(|folder| append(&folder, text).is_ok()));
    let board = STARTED.get().and_then(|started| started.board.as_ref());
    // Only the last line of a process is kept there; one is enough to make the run incomplete.
    let line = || {
        board?
            .put_at(place(std::process::id()), &on_board(text))
            .ok()
    };
    let done = taken || line().is_some();
    if done {
        reported.insert(text.to_owned());
    }
    done
}

/// Where the line of a process begins on the board.
const fn place(process: u32) -> usize {
    process as usize % PLACES * PLACE
}

/// A text as a line of the board, filled up with spaces.
fn on_board(text: &str) -> Vec<u8> {
    let mut line = text.replace('\n', " ").into_bytes();
    line.resize(PLACE - 1, b' ');
    line.push(b'\n');
    line
}

/// Makes the board of a run in a folder, blank.
///
/// # Errors
/// When the file cannot be made.
pub fn make_board(folder: &Path) -> io::Result<()> {
    let path = folder.join(BOARD);
    std::fs::write(&path, on_board("").repeat(PLACES))?;
    std::fs::set_permissions(path, Permissions::from_mode(MODE))
}

/// One write for each line keeps those of several processes whole.
fn append(folder: &Path, text: &str) -> io::Result<()> {
    let line = format!("{}\n", text.replace('\n', " "));
    let options = File::options().append(true).create(true).to_owned();
    let mut file = options.open(folder.join(MISSED))?;
    // Only the owner of the file can do this, and other users of the run have to add lines.
    let _ = file.set_permissions(Permissions::from_mode(MODE));
    file.write_all(line.as_bytes())
}

/// The lines of such a file, each once; none without the file.
pub fn lines(folder: &Path, file: &str) -> BTreeSet<OsString> {
    let bytes = std::fs::read(folder.join(file)).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(<[u8]>::trim_ascii_end);
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| OsString::from_vec(line.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_on_the_board_are_read_as_others_are() {
        let folder = std::env::temp_dir().join(format!("cudarun-board-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        make_board(&folder).unwrap();
        assert!(lines(&folder, BOARD).is_empty());
        let file = File::options()
            .read(true)
            .write(true)
            .open(folder.join(BOARD));
        let board = Shared::of(&file.unwrap(), PLACE * PLACES).unwrap();
        for (process, text) in [(1, "one"), (PLACES as u32 - 1, "two\nlines"), (1, "three")] {
            board.put_at(place(process), &on_board(text)).unwrap();
        }
        board
            .put_at(place(2), &on_board(&"long ".repeat(100)))
            .unwrap();
        let found = lines(&folder, BOARD);
        std::fs::remove_dir_all(folder).unwrap();
        let found: Vec<String> = found
            .iter()
            .map(|line| line.to_string_lossy().into())
            .collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("long long"));
        assert_eq!(found[1..], ["three", "two lines"]);
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"AB=1\0A=x=y\0A=2\0";
        assert_eq!(find(environment, "A"), Some("x=y".into()));
        assert_eq!(find(environment, "B"), None);
        assert_eq!(variable("CUDARUN_CHECK_NO_SUCH"), None);
    }
}
