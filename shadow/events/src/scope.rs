//! Which threads an operation can order.

use serde::{Deserialize, Serialize};

/// The threads an operation can order: PTX ISA, "Scope".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The thread's CTA.
    #[default]
    Cta,
    /// The thread's cluster.
    Cluster,
    /// The thread's GPU.
    Gpu,
    /// Every thread of every GPU and the host.
    Sys,
}

impl Scope {
    /// The scope that a suffix without its dot names.
    pub fn from_suffix(suffix: &str) -> Option<Self> {
        match suffix {
            "cta" => Some(Self::Cta),
            "cluster" => Some(Self::Cluster),
            "gpu" | "gl" => Some(Self::Gpu),
            "sys" => Some(Self::Sys),
            _ => None,
        }
    }

    /// Its suffix without the dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Cta => "cta",
            Self::Cluster => "cluster",
            Self::Gpu => "gpu",
            Self::Sys => "sys",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_go_there_and_back() {
        for suffix in ["cta", "cluster", "gpu", "sys"] {
            assert_eq!(Scope::from_suffix(suffix).map(Scope::suffix), Some(suffix));
        }
        assert_eq!(Scope::from_suffix("gl"), Some(Scope::Gpu));
        assert_eq!(Scope::from_suffix("global"), None);
    }
}
