//! Instructions that a log names, and what they do.

use events::{Scope, Semantics};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use super::Frame;

/// A checked access.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Unique in the process.
    pub id: u32,
    /// Mangled name of the function it stands in.
    pub function: String,
    /// The instruction.
    pub text: String,
    /// Line in the module's PTX.
    pub ptx_line: u32,
    /// What it does to memory.
    pub op: Op,
    /// Bytes one thread accesses.
    pub bytes: u32,
    /// PTX type of its elements, such as `u32`.
    #[serde(default)]
    pub ty: String,
    /// Its semantics.
    pub sem: Semantics,
    /// Scope of a strong access.
    pub scope: Option<Scope>,
    /// Source lines, innermost inlined function first.
    pub frames: Vec<Frame>,
}

impl Site {
    /// A barrier or another operation that accesses no memory.
    pub fn barrier() -> Self {
        Self {
            op: Op::Barrier,
            ..Self::default()
        }
    }
}

/// What an instruction does to memory.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Display,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Op {
    /// Reads it.
    #[default]
    Load,
    /// Writes it.
    Store,
    /// Reads and writes it in one step.
    Atomic,
    /// Copies it asynchronously.
    Copy,
    /// Nothing: a barrier or another operation of threads.
    Barrier,
}

/// What an access does.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Display,
    EnumIter,
    EnumString,
    IntoStaticStr,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Act {
    /// Reads; a barrier counts as this.
    #[default]
    Read,
    /// Writes.
    Write,
    /// Reads and writes in one step.
    Atomic,
    /// Copies asynchronously.
    Copy,
}

impl Act {
    /// Such as `write`.
    pub(crate) fn noun(self) -> &'static str {
        self.into()
    }

    /// Such as `a write`.
    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Self::Read => "a read",
            Self::Write => "a write",
            Self::Atomic => "an atomic",
            Self::Copy => "an asynchronous copy",
        }
    }

    /// Such as `writes`.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Read => "accesses",
            Self::Write => "writes",
            Self::Atomic => "atomics",
            Self::Copy => "asynchronous copies",
        }
    }
}
