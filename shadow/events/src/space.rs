//! The state spaces of PTX, and those two that threads share.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A memory that threads share, and so race in.
///
/// Of all the [state spaces](Space) it is what an access turns out to reach: a generic address is of one of
/// these, or of memory of the thread's own.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Global memory: one for the grid.
    #[default]
    Global,
    /// Shared memory: one for each CTA; addresses are offsets in it.
    Shared,
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Global => "global",
            Self::Shared => "shared",
        })
    }
}

/// The state spaces of PTX text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// `.reg`
    Reg,
    /// `.sreg`
    Sreg,
    /// `.const`
    Const,
    /// `.global`
    Global,
    /// `.local`
    Local,
    /// `.param`
    Param,
    /// `.shared` and `.shared::cta`
    Shared,
    /// `.shared::cluster`
    SharedCluster,
    /// `.tex`
    Tex,
    /// No state space given: a generic address.
    Generic,
}

impl Space {
    /// The space a suffix without its dot names.
    pub fn from_suffix(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "reg" => Self::Reg,
            "sreg" => Self::Sreg,
            "const" => Self::Const,
            "global" => Self::Global,
            "local" => Self::Local,
            "param" | "param::entry" | "param::func" => Self::Param,
            "shared" | "shared::cta" => Self::Shared,
            "shared::cluster" => Self::SharedCluster,
            "tex" => Self::Tex,
            _ => return None,
        })
    }

    /// Its suffix without the dot; empty for a generic address.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Reg => "reg",
            Self::Sreg => "sreg",
            Self::Const => "const",
            Self::Global => "global",
            Self::Local => "local",
            Self::Param => "param",
            Self::Shared => "shared",
            Self::SharedCluster => "shared::cluster",
            Self::Tex => "tex",
            Self::Generic => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_go_there_and_back() {
        for suffix in [
            "reg",
            "const",
            "global",
            "local",
            "param",
            "shared",
            "shared::cluster",
        ] {
            assert_eq!(Space::from_suffix(suffix).map(Space::suffix), Some(suffix));
        }
        assert_eq!(Space::from_suffix("shared::cta"), Some(Space::Shared));
        assert_eq!(Space::from_suffix("u32"), None);
    }
}
