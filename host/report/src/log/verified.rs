//! What a run of a launch proves of all its runs.

use serde::{Deserialize, Serialize};

use super::Frame;

/// An answer of `verify`, best last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Accesses race, or a barrier is misused.
    Race,
    /// Nothing is proved.
    #[default]
    Unknown,
    /// No schedule makes accesses race, with what memory contained.
    ThisData,
    /// No schedule does, whatever memory contains.
    AllData,
}

/// What is in the way of a better answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Because {
    /// What it is.
    pub text: String,
    /// Line in the program's own PTX, 0 for none.
    pub ptx_line: u32,
    /// Source lines, innermost inlined function first.
    pub frames: Vec<Frame>,
    /// The line of the instruction that has brought the value, or of the access before, 0 for none.
    pub from_ptx_line: u32,
    /// Its source lines.
    pub from_frames: Vec<Frame>,
}

impl Because {
    /// A reason without a place.
    pub fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// What `verify` says of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// The answer.
    pub answer: Answer,
    /// What is in the way of a better one.
    pub because: Vec<Because>,
    /// The user's assumptions.
    #[serde(default)]
    pub assumptions: Vec<Assumption>,
    /// What is proved of all launches that fulfil them, if this one does.
    #[serde(default)]
    pub family: Option<Family>,
}

/// An assumption of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumption {
    /// As the user has written it.
    pub text: String,
    /// What it is in the launch.
    pub standing: Standing,
}

/// What an assumption is in a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It holds.
    Holds,
    /// It does not hold, with these values.
    Broken(String),
    /// It names something that the kernel does not have.
    Unfit(String),
}

/// What is proved of all launches of a kernel that fulfil assumptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// That they have no races, for all schedules and all data, under these conditions.
    Proved(Vec<String>),
    /// Nothing, for this reason.
    Open(String),
}

impl Verified {
    /// An answer with what is in the way of a better one.
    pub fn of(answer: Answer, because: Vec<Because>) -> Self {
        Self {
            answer,
            because,
            ..Self::default()
        }
    }
}
