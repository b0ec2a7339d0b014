//! How strong an access is, and what it orders.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Strength and ordering of an access: PTX ISA, "Memory Consistency Model".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Semantics {
    /// Nothing said, or `.weak`.
    #[default]
    Weak,
    /// `.relaxed`, and atomics that say nothing.
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`
    AcqRel,
    /// `.volatile`, which orders like `.relaxed.sys`.
    Volatile,
    /// `.mmio`, which orders like `.relaxed.sys`.
    Mmio,
}

impl Semantics {
    /// The semantics that a suffix without its dot names.
    pub fn from_suffix(suffix: &str) -> Option<Self> {
        match suffix {
            "weak" => Some(Self::Weak),
            "relaxed" => Some(Self::Relaxed),
            "acquire" => Some(Self::Acquire),
            "release" => Some(Self::Release),
            "acq_rel" => Some(Self::AcqRel),
            "volatile" => Some(Self::Volatile),
            "mmio" => Some(Self::Mmio),
            _ => None,
        }
    }

    /// Their suffix without the dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acq_rel",
            Self::Volatile => "volatile",
            Self::Mmio => "mmio",
        }
    }
}

impl fmt::Display for Semantics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.suffix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantics_go_there_and_back() {
        for suffix in [
            "weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio",
        ] {
            let found = Semantics::from_suffix(suffix);
            assert_eq!(found.map(Semantics::suffix), Some(suffix));
        }
        assert_eq!(Semantics::from_suffix("sc"), None);
    }
}
