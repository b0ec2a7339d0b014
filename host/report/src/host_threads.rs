//! Work that only threads of the host order.

use serde::{Deserialize, Serialize};

use crate::words::number;

/// Pieces of work that touch the same memory, and that are ordered only if one thread of the host, which has waited for the
/// first, told another one, which has then given the second: that is not seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostThreads {
    /// Such pairs.
    pub pairs: u64,
    /// The kernels of the first one.
    pub kernels: Vec<String>,
}

impl HostThreads {
    /// Adds a pair of which these are the kernels, where it is no call on the host.
    pub(crate) fn add(&mut self, kernels: [Option<String>; 2]) {
        self.pairs += 1;
        if self.kernels.is_empty() {
            let named = |kernel: Option<String>| kernel.unwrap_or("a call on the host".to_owned());
            self.kernels = kernels.map(named).to_vec();
        }
    }

    /// What SUMMARY says of them.
    pub(crate) fn assumed(&self) -> Option<String> {
        let pairs = match self.pairs {
            0 => return None,
            1 => "1 pair of conflicting launches".to_owned(),
            pairs => format!("{} pairs of conflicting launches", number(pairs)),
        };
        Some(format!(
            "{pairs} assumed to be ordered by threads of the host"
        ))
    }

    /// What COVERAGE says of them.
    pub(crate) fn line(&self) -> Option<String> {
        let kernels = self.kernels.join(" and ");
        let assumed = self.assumed()?;
        Some(format!(
            "{assumed}, which the checker does not see (such as {kernels})"
        ))
    }
}
