//! The memories of which a history is kept.

use hashbrown::HashMap;

use super::Place;
use super::history::History;

/// Who has accessed what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) global: History,
    /// The shared memory of each CTA.
    pub(crate) shared: HashMap<u64, History>,
}

impl Memory {
    pub(crate) fn of(&mut self, place: Place) -> &mut History {
        match place {
            Place::Global(_) => &mut self.global,
            Place::Shared { cta, .. } => self.shared.entry(cta).or_default(),
        }
    }

    /// The same, where there is one.
    pub(crate) fn known(&self, place: Place) -> Option<&History> {
        match place {
            Place::Global(_) => Some(&self.global),
            Place::Shared { cta, .. } => self.shared.get(&cta),
        }
    }
}
