//! Launches in which races or misuse of some kind were not judged, because the mode does not know enough of them.

use serde::{Deserialize, Serialize};

use crate::log;
use crate::words::counted;

/// Launches with something that is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unjudged {
    /// Those of which nothing of the kind was judged.
    pub everything: u64,
    /// Those of which accesses under locks were not.
    pub locks: u64,
    /// Those of which accesses under versions that are written by swaps were not.
    pub versions: u64,
    /// Those with barriers of which misuse was not.
    pub barriers: u64,
    /// Those with asynchronous copies of which it was not judged whether threads wait for them.
    pub copies: u64,
    /// Those with strong accesses of several sizes of which it was not judged whether they overlap.
    pub sizes: u64,
    /// Those that may write what they load through the read-only path, where that was not judged.
    pub read_only: u64,
}

impl Unjudged {
    pub(crate) fn add(&mut self, of: log::Unjudged) {
        match of {
            log::Unjudged::Nothing => {}
            log::Unjudged::Locks => self.locks += 1,
            log::Unjudged::LocksAndVersions => {
                self.locks += 1;
                self.versions += 1;
            }
            log::Unjudged::Everything => self.everything += 1,
        }
    }

    /// As COVERAGE has it.
    pub(crate) fn texts(self) -> impl Iterator<Item = String> {
        let parts = [
            (
                self.everything,
                "unordered strong conflicts (CR011) and lock-order-dependent accesses (CR012)",
            ),
            (self.locks, "order by locks (CR012, CR011 under locks)"),
            (
                self.versions,
                "data read under versions that `atom.cas` or `atom.exch` writes (CR011)",
            ),
            (self.barriers, "misuse of barriers (CR007)"),
            (self.copies, "waits for asynchronous copies (CR010)"),
            (self.sizes, "strong accesses that overlap in part (CR008)"),
            (self.read_only, "writes to read-only data (CR009)"),
        ];
        let parts = parts.into_iter().filter(|(launches, _)| *launches > 0);
        parts
            .map(|(launches, what)| format!("{what} not judged in {}", counted(launches, "launch")))
    }

    /// What `--strict` asks for: all but misuse of barriers, which checks on a GPU judge for mbarriers only.
    pub(crate) fn of_races(self) -> Self {
        Self {
            barriers: 0,
            ..self
        }
    }

    /// What `--model scoped` asks for, of these.
    pub(crate) fn of_scoped_model(self) -> Self {
        Self {
            everything: self.everything,
            locks: self.locks,
            versions: self.versions,
            ..Self::default()
        }
    }
}
