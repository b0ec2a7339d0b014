//! Pairs of pieces of work that were not decided to race or not to race.

use serde::{Deserialize, Serialize};

use crate::words::number;

/// Pairs of launches, copies and the like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkPairs {
    /// How many.
    pub pairs: u64,
    /// The kernels of the first one.
    pub kernels: Vec<String>,
}

impl WorkPairs {
    /// Adds a pair of which these are the kernels, where it is no call on the host.
    pub(crate) fn add(&mut self, kernels: [Option<String>; 2]) {
        self.pairs += 1;
        if self.kernels.is_empty() {
            let named = |kernel: Option<String>| kernel.unwrap_or("a call on the host".to_owned());
            self.kernels = kernels.map(named).to_vec();
        }
    }

    /// Adds those of another run.
    pub(crate) fn extend(&mut self, other: WorkPairs) {
        self.pairs += other.pairs;
        if self.kernels.is_empty() {
            self.kernels = other.kernels;
        }
    }

    fn counted(&self, what: &str) -> Option<String> {
        match self.pairs {
            0 => None,
            1 => Some(format!("1 pair of {what}")),
            pairs => Some(format!("{} pairs of {what}", number(pairs))),
        }
    }

    /// What SUMMARY says of pairs that touch the same memory, and that are ordered only if one thread of the host, which
    /// has waited for the first, told another one, which has then given the second: that is not seen.
    pub(crate) fn assumed(&self) -> Option<String> {
        let pairs = self.counted("conflicting launches")?;
        Some(format!(
            "{pairs} assumed to be ordered by threads of the host"
        ))
    }

    /// What COVERAGE says of them.
    pub(crate) fn assumed_line(&self) -> Option<String> {
        let kernels = self.kernels.join(" and ");
        let assumed = self.assumed()?;
        Some(format!(
            "{assumed}, which the checker does not see (such as {kernels})"
        ))
    }

    /// What is said of pairs in different streams of which it is not known exactly what they touch, or whether flags order
    /// them.
    pub(crate) fn unfollowed(&self) -> Option<String> {
        let kernels = self.kernels.join(" and ");
        let pairs = self.counted("launches or copies")?;
        Some(format!(
            "{pairs} in different streams may race (such as {kernels}): not decided, because one reads flags that the other sets, or because not all of their accesses were recorded (`--prove off` records those in the default stream too)"
        ))
    }
}
