//! What races are, in words that JSON and text have in common.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::log::{self, Act};

/// The memory that a finding is in. Besides a [`log::Space`] it can be none, as a misuse has no memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Space {
    /// Global memory.
    #[default]
    Global,
    /// Shared memory.
    Shared,
    /// None: a barrier or a warp operation is misused.
    Barrier,
}

impl Space {
    /// The memory, if it is one.
    pub fn memory(self) -> Option<log::Space> {
        match self {
            Self::Global => Some(log::Space::Global),
            Self::Shared => Some(log::Space::Shared),
            Self::Barrier => None,
        }
    }
}

impl From<log::Space> for Space {
    fn from(space: log::Space) -> Self {
        match space {
            log::Space::Global => Self::Global,
            log::Space::Shared => Self::Shared,
        }
    }
}

/// Where kernels ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DeviceKind {
    /// On the simulated device.
    #[default]
    Sim,
    /// On a GPU.
    Gpu,
}

/// Whether PTX of a kernel was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PtxSource {
    /// Not known yet: no report has a kernel like that.
    #[default]
    #[serde(rename = "")]
    Unknown,
    /// It was.
    Ptx,
    /// The program has none for it.
    None,
}

/// How sure it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Certainty {
    /// Nothing has ordered the accesses.
    #[default]
    Certain,
    /// It is not known whether something has.
    Possible,
}

/// Which of the two sides of a race, in the order of this run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, IntoStaticStr, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Role {
    /// The one that came first.
    #[default]
    First,
    /// The other one.
    Second,
}

/// What one side of a race is, as PTX calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Op {
    /// A read.
    #[default]
    Ld,
    /// A write.
    St,
    /// A read-modify-write.
    Atom,
    /// An asynchronous copy.
    Cp,
    /// A barrier or a warp operation.
    Bar,
}

impl From<log::Op> for Op {
    fn from(op: log::Op) -> Self {
        match op {
            log::Op::Load => Self::Ld,
            log::Op::Store => Self::St,
            log::Op::Atomic => Self::Atom,
            log::Op::Copy => Self::Cp,
            log::Op::Barrier => Self::Bar,
        }
    }
}

/// What both sides of an entry do: `write-read` and the like, or how a barrier is misused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum RaceKind {
    /// Two accesses, in the order of this run.
    Accesses([Act; 2]),
    /// A misuse.
    Misuse(Misused),
}

/// How a barrier or a warp operation is misused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumIter, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Misused {
    /// Threads of a warp wait at different barriers.
    Divergent,
    /// Thread counts differ.
    MismatchedCounts,
    /// The thread count is no multiple of 32.
    Count,
    /// A thread arrives too often, or too early.
    ExcessArrival,
    /// Threads exit before it.
    ExitBeforeBarrier,
    /// Threads pass it by.
    SkippedBarrier,
    /// A thread uses it again too early.
    EarlyReuse,
    /// A mask leaves out a thread that takes part.
    NotAMember,
    /// It is no mbarrier, or none any more.
    NotABarrier,
    /// The block whose memory is accessed may not have started.
    UnstartedBlock,
    /// The block whose memory is accessed may have exited.
    ExitedBlock,
}

impl Default for RaceKind {
    fn default() -> Self {
        Self::Accesses(Default::default())
    }
}

impl fmt::Display for RaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accesses([first, second]) => write!(f, "{first}-{second}"),
            Self::Misuse(misused) => misused.fmt(f),
        }
    }
}

impl From<RaceKind> for String {
    fn from(kind: RaceKind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for RaceKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let accesses = text
            .split_once('-')
            .map(|(first, second)| [first, second].map(Act::from_str));
        match accesses {
            Some([Ok(first), Ok(second)]) => Ok(Self::Accesses([first, second])),
            _ => match Misused::from_str(&text) {
                Ok(misused) => Ok(Self::Misuse(misused)),
                Err(_) => Err(format!("`{text}` is no kind of race")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use strum::IntoEnumIterator;

    fn all() -> impl Iterator<Item = RaceKind> {
        let second = |first| Act::iter().map(move |second| RaceKind::Accesses([first, second]));
        let misused = Misused::iter().map(RaceKind::Misuse);
        Act::iter().flat_map(second).chain(misused)
    }

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for kind in all() {
            assert_eq!(RaceKind::try_from(kind.to_string()), Ok(kind));
        }
        let error = RaceKind::try_from("write-nothing".to_owned()).unwrap_err();
        assert!(error.contains("`write-nothing`"), "{error}");
    }

    #[test]
    fn the_schema_has_every_kind() {
        let schema = include_str!("../../../../docs/report.schema.json");
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        for of in ["race", "related"] {
            let pattern = &schema["$defs"][of]["properties"]["kind"]["pattern"];
            let pattern = regex::Regex::new(pattern.as_str().unwrap()).unwrap();
            for kind in all() {
                assert!(pattern.is_match(&kind.to_string()), "{of}: {kind}");
            }
            assert!(!pattern.is_match("write-nothing"), "{of}");
        }
    }
}
