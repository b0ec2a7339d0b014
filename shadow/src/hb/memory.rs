//! The memories of which a history is kept.

use hashbrown::HashMap;

use super::Location;
use super::history::History;

/// Who has accessed what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) global: History,
    /// The shared memory of each CTA.
    pub(crate) shared: HashMap<u64, History>,
}

impl Memory {
    pub(crate) fn of(&mut self, location: Location) -> &mut History {
        match location {
            Location::Global(_) => &mut self.global,
            Location::Shared { cta, .. } => self.shared.entry(cta).or_default(),
        }
    }

    /// The same, where there is one.
    pub(crate) fn known(&self, location: Location) -> Option<&History> {
        match location {
            Location::Global(_) => Some(&self.global),
            Location::Shared { cta, .. } => self.shared.get(&cta),
        }
    }
}
