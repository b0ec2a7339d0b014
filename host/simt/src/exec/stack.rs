//! `alloca`, `stacksave` and `stackrestore`.
//!
//! What is allocated lies behind the frame, at the same place for all lanes that are together: the
//! largest of their sizes counts. Lanes that have allocated differently stay apart until the function
//! returns, or the stack is as it was.

use super::address::lanes;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::lanes::WARP;

impl<O: Listener + ?Sized> Machine<'_, O> {
    pub(crate) fn allocate(
        &mut self,
        warp: &mut Warp,
        split: &mut Split,
        d: u32,
        bytes: u32,
        align: u32,
    ) -> Result<(), Box<Fault>> {
        let program = self.setup.program;
        let sizes = warp.read(&split.frame, bytes, &program.consts);
        let most = lanes(split.mask).map(|lane| sizes[lane]).max().unwrap_or(0);
        let own = program.functions[split.frame.function as usize].local;
        let base = u64::from(split.frame.local + own);
        let start = (base + u64::from(split.frame.stack)).next_multiple_of(u64::from(align));
        // The frame of a function that is called starts at a multiple of 16.
        let end = start.saturating_add(most).checked_next_multiple_of(16);
        let limit = u64::from(self.setup.config.local_per_thread);
        let Some(end) = end.filter(|&end| end <= limit) else {
            let lane = split.mask.trailing_zeros();
            return Err(Fault::new(lane, FaultKind::StackOverflow));
        };
        split.frame.stack = (end - base) as u32;
        let words = end as usize / 4 * WARP;
        if warp.local.len() < words {
            warp.local.resize(words, 0);
        }
        let mut rows = warp.rows(&split.frame, &program.consts);
        rows.put(d, split.mask, &[start; WARP]);
        Ok(())
    }

    pub(crate) fn save_stack(&self, warp: &mut Warp, split: &Split, d: u32) {
        let value = [u64::from(split.frame.stack); WARP];
        let mut rows = warp.rows(&split.frame, &self.setup.program.consts);
        rows.put(d, split.mask, &value);
    }

    pub(crate) fn restore_stack(&self, warp: &Warp, split: &mut Split, a: u32) {
        let saved = warp.read(&split.frame, a, &self.setup.program.consts);
        let lane = split.mask.trailing_zeros() as usize & 31;
        // Not above what is in use now, whatever the register holds.
        split.frame.stack = split.frame.stack.min(saved[lane] as u32);
    }
}
