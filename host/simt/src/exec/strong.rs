//! Strong loads and stores of global memory that several threads of the host use: nobody sees half of
//! an element, and what was written before it is there for whoever has seen it.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use super::address::{Group, Pattern, fetch, lanes, sectors};
use super::fault::Fault;
use super::listener::Listener;
use super::machine::Machine;
use super::sharing::Locks;
use super::warp::{Split, Warp};
use crate::code::Access;
use crate::lanes::Lanes;

/// Most bytes of each lane of which those of a row lie in two neighbourhoods at most.
const NEAR: u32 = 16;

impl<O: Listener + ?Sized> Machine<'_, O> {
    pub(super) fn load_strong(
        &mut self,
        locks: &Locks,
        warp: &mut Warp,
        split: &Split,
        access: &Access,
        group: &Group,
        at: &Lanes,
    ) -> Result<(), Box<Fault>> {
        let (bytes, size, width) = (access.bytes, access.element(), access.width);
        self.stats.global_sectors += sectors(at, group, bytes);
        let (first, last) = (group.first(), group.last());
        let window = self.locate(first as u32, at[first], bytes, false)?;
        let region = window.start..window.end;
        let regs = &mut warp.regs[split.frame.rows as usize..];
        let near = group.pattern != Pattern::Any && bytes <= NEAR;
        if near && group.lies_in(at, bytes, region) {
            let words = self.memory.words(window.mapping);
            for (step, &row) in access.steps() {
                let offset = |lane: usize| at[lane] - window.origin + step;
                let row = &mut regs[row as usize];
                let mut load = || {
                    for lane in lanes(group.mask) {
                        let raw = fetch(size, offset(lane), |word| words[word].load(Relaxed));
                        row[lane] = width.extend(raw);
                    }
                };
                if size == 8 {
                    let ends = [first, last].map(|lane| &words[(offset(lane) / 4) as usize]);
                    locks.read(ends, load);
                } else {
                    load();
                }
            }
        } else {
            for lane in lanes(group.mask) {
                let window = self.locate(lane as u32, at[lane], bytes, false)?;
                let words = self.memory.words(window.mapping);
                for (step, &row) in access.steps() {
                    let offset = at[lane] - window.origin + step;
                    let load = || fetch(size, offset, |word| words[word].load(Relaxed));
                    let raw = match size {
                        8 => locks.read([&words[(offset / 4) as usize]; 2], load),
                        _ => load(),
                    };
                    regs[row as usize][lane] = width.extend(raw);
                }
            }
        }
        fence(Acquire);
        Ok(())
    }

    pub(super) fn store_strong(
        &mut self,
        locks: &Locks,
        warp: &Warp,
        split: &Split,
        access: &Access,
        group: &Group,
        at: &Lanes,
    ) -> Result<(), Box<Fault>> {
        let (bytes, size) = (access.bytes, access.element());
        let consts = &self.setup.program.consts;
        fence(Release);
        for lane in lanes(group.mask) {
            let window = self.locate(lane as u32, at[lane], bytes, true)?;
            let words = self.memory.words(window.mapping);
            for (step, &row) in access.steps() {
                let value = warp.source(&split.frame, row, consts)[lane];
                locks.store(words, size, at[lane] - window.origin + step, value);
            }
        }
        Ok(())
    }
}
