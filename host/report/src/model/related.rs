//! What an entry stands for besides itself.

use serde::{Deserialize, Serialize};

use super::{Access, Level};

/// Another pair of accesses with the cause of an entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Related {
    /// As an entry's.
    pub id: String,
    /// As an entry's.
    pub fingerprint: String,
    /// As an entry's.
    pub rule: String,
    /// As an entry's.
    pub level: Level,
    /// As an entry's.
    pub same_value: bool,
    /// As an entry's.
    pub kind: String,
    /// As an entry's.
    pub count: u64,
    /// First and second access.
    pub accesses: [Access; 2],
}
