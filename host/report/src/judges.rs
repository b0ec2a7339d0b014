//! What has judged the launches of a kernel.

use serde::{Deserialize, Serialize};

use crate::log::Judge;

/// Launches by what decided which of their accesses race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Judges {
    /// Happens-before, which listened to the simulated device.
    pub happens_before: u64,
    /// Happens-before, which read the journal that the device has kept.
    pub journal: u64,
    /// The cells on the device.
    pub cells: u64,
    /// The launch's own arguments, which prove that no accesses race.
    pub proof: u64,
    /// The same, but for pairs of accesses that have raced in earlier launches of the kernel.
    pub known: u64,
}

impl Judges {
    pub(crate) fn add(&mut self, judge: Judge) {
        match judge {
            Judge::Nobody => {}
            Judge::HappensBefore => self.happens_before += 1,
            Judge::Journal => self.journal += 1,
            Judge::Cells => self.cells += 1,
            Judge::Proof => self.proof += 1,
            Judge::Known => self.known += 1,
        }
    }
}
