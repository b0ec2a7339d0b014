//! The sides of a race: what they access, where they stand, and what they hold.

use events::Scope;
use serde::{Deserialize, Serialize};

use super::{Act, Address, Op, Role};
use crate::log::{self, Semantics};
use crate::side;

/// One side of a race.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Access {
    /// Which.
    pub role: Role,
    /// What it is.
    pub op: Op,
    /// Bytes one thread accesses.
    pub width: u32,
    /// A read-modify-write.
    pub atomic: bool,
    /// PTX semantics.
    pub sem: Semantics,
    /// Scope, when it is not weak.
    pub scope: Option<Scope>,
    /// `threadIdx`, when known.
    pub thread: Option<[u32; 3]>,
    /// `blockIdx`, when known.
    pub block: Option<[u32; 3]>,
    /// What it read or wrote in the element that both sides access, when known.
    pub value: Option<Value>,
    /// The instruction.
    pub ptx: PtxLine,
    /// Demangled name of the kernel or device function it stands in.
    pub function: String,
    /// Source, innermost inlined function first.
    pub frames: Vec<FrameAt>,
    /// Locks that its thread held.
    pub locks: Vec<HeldLock>,
    /// The nearest barriers of the code that every path to it, and every path from it, comes by; none where there
    /// are none or the code is not known.
    #[serde(skip_serializing_if = "Barriers::is_empty")]
    pub barriers: Barriers,
}

/// Barriers around an access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Barriers {
    /// Ahead of it.
    pub before: Option<BarrierAt>,
    /// Behind it.
    pub after: Option<BarrierAt>,
}

impl Barriers {
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }
}

/// A barrier in the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BarrierAt {
    /// Whose threads it orders: `block`, `warp` or `cluster`.
    pub of: String,
    /// Where it stands, as `file:line`.
    pub place: String,
}

/// A lock that a thread held when it accessed memory. Locks are inferred.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldLock {
    /// The memory that it is in.
    pub space: log::Space,
    /// Where it is.
    pub address: Address,
    /// Scope of what took it.
    pub scope: Scope,
    /// What took it, as `file:line`.
    pub taken: String,
    /// It was taken as by a reader: several threads may hold it so at once.
    pub shared: bool,
    /// Scope of the acquire behind taking it, if there is one.
    pub entry: Option<Scope>,
    /// What gave it back, as `file:line`, if that came before the race.
    pub released: Option<String>,
    /// `released` is a plain store, which releases nothing and races with the atomics that take the lock. The help
    /// says so; the JSON has the access itself.
    #[serde(skip)]
    pub(crate) plain: bool,
    /// Scope of the release before giving it back, if there is one.
    pub exit: Option<Scope>,
}

impl Access {
    /// Whether it is a copy or a fill that the host has asked for, and no instruction.
    pub(crate) fn is_call(&self) -> bool {
        self.ptx.module.is_empty() && self.frames.is_empty()
    }

    /// What it does.
    pub(crate) fn act(&self) -> Act {
        match (self.atomic, self.op) {
            (true, _) | (_, Op::Atom) => Act::Atomic,
            (_, Op::St) => Act::Write,
            (_, Op::Cp) => Act::Copy,
            (_, Op::Ld | Op::Bar) => Act::Read,
        }
    }

    /// What it does and where, without folders: such as `write at x.cu:7`.
    pub(crate) fn place(&self) -> String {
        let what = self.act();
        match self.shown() {
            Some(frame) => {
                let file = frame.file.rsplit('/').next().unwrap_or_default();
                format!("{what} at {file}:{}", frame.line)
            }
            None if self.is_call() => self.ptx.text.clone(),
            None => {
                let module = self.ptx.module.rsplit('/').next().unwrap_or_default();
                format!("{what} at {module}:{}", self.ptx.line)
            }
        }
    }

    /// The frame to show: the innermost one outside the CUDA toolkit's own headers and Triton's library, where an
    /// access inside `atomicAdd_block` or `tl.sum` would not tell the user which of his lines it is.
    pub fn shown(&self) -> Option<&FrameAt> {
        side::shown(&self.frames)
    }
}

/// What an access found in memory, and what it left there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Value {
    /// PTX type.
    #[serde(rename = "type")]
    pub ty: String,
    /// What a read or an atomic has read; its bits in hexadecimal.
    #[serde(with = "hexadecimal")]
    pub old: Option<u64>,
    /// What a write or an atomic has written.
    #[serde(with = "hexadecimal")]
    pub new: Option<u64>,
}

/// Bits as text: `0x2a`.
mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(bits: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        bits.map(|bits| format!("{bits:#x}")).serialize(to)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<u64>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else {
            return Ok(None);
        };
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16)
            .map(Some)
            .map_err(D::Error::custom)
    }
}

/// A line of PTX.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PtxLine {
    /// Where the module came from.
    pub module: String,
    /// Line of the original text.
    pub line: u32,
    /// The instruction.
    pub text: String,
}

/// A place in a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrameAt {
    /// Path as the compiler saw it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
    /// Demangled.
    pub function: String,
    /// Whether that function was inlined into the next frame's.
    pub inlined: bool,
}
