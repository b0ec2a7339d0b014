//! Contexts that are known.

use std::collections::btree_map::Entry;

use driver::gpu::{Entered, Gpu};

use super::{SHARED, Session};

impl Session {
    /// Makes sure that a context is known: `open` looks at it.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn attach<E>(
        &mut self,
        context: u64,
        open: impl FnOnce() -> Result<Gpu, E>,
    ) -> Result<(), E> {
        if let Entry::Vacant(entry) = self.gpus.entry(context) {
            let gpu = entry.insert(open()?);
            if gpu.is_shared() {
                self.checker.note(SHARED);
            }
        }
        Ok(())
    }

    /// Whether launches in a context that is known can run with their checks, checked or not: that
    /// takes a little memory.
    pub fn is_ready(&mut self, context: u64) -> bool {
        let gpu = self.gpus.get_mut(&context);
        gpu.is_some_and(|gpu| self.checker.idle(gpu).is_some())
    }

    /// Makes a context that is known the calling thread's current one, and calls allowed that a capture
    /// elsewhere would forbid, while the result lives; none if that fails.
    pub fn enter(&self, context: u64) -> Option<Entered> {
        self.gpus.get(&context)?.enter().ok()
    }
}
