//! Keeps what the engine is told.

use simt::Executing;

use super::Reference;
use crate::heard::{Heard, Told};

impl Reference {
    /// What the engine was told since [`Self::keep_all`].
    pub(crate) fn heard(&mut self) -> Vec<Heard> {
        self.heard.take().unwrap_or_default()
    }

    /// Keeps what the engine is told of an instruction.
    pub(super) fn hear(&mut self, who: Executing, what: impl FnOnce() -> Told) {
        let site = self.instructions.at(who.offset).map(|meaning| meaning.site);
        if let Some(heard) = &mut self.heard {
            let line = site.and_then(|site| self.instructions.site(site));
            heard.push(Heard::new(
                who,
                line.map_or(0, |site| site.ptx_line),
                what(),
            ));
        }
    }
}
