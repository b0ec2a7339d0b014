//! Loads and stores.
//!
//! The usual case, all addresses in one region, is a loop over all lanes without a question in it;
//! the others are taken lane by lane.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use ptx::ast::Space;

use super::address::{Group, aligned, deposit, fetch, illegal, lanes, local_at, sectors};
use super::cta::CtaId;
use super::fault::Fault;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code::Access;
use crate::lanes::{Lanes, WARP};
use crate::observer::{AccessKind, Observer};
use crate::windows;

/// A word of memory, atomic or not.
trait Word {
    fn get(&self) -> u32;
}

impl Word for u32 {
    #[inline(always)]
    fn get(&self) -> u32 {
        *self
    }
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn get(&self) -> u32 {
        self.load(Relaxed)
    }
}

/// Loads an element for all lanes from byte offsets that are known to lie inside of `words`.
#[inline(always)]
fn gather<W: Word>(words: &[W], at: &Lanes, origin: u64, step: u64, size: u32) -> Lanes {
    // Where a later element of a vector starts.
    let origin = origin.wrapping_sub(step);
    let mut out = [0; WARP];
    match size {
        4 => {
            for lane in 0..WARP {
                out[lane] = u64::from(words[(at[lane].wrapping_sub(origin) / 4) as usize].get());
            }
        }
        8 => {
            for lane in 0..WARP {
                let index = (at[lane].wrapping_sub(origin) / 4) as usize;
                let pair = &words[index..index + 2];
                out[lane] = u64::from(pair[0].get()) | u64::from(pair[1].get()) << 32;
            }
        }
        _ => {
            for lane in 0..WARP {
                out[lane] = fetch(size, at[lane].wrapping_sub(origin), |word| {
                    words[word].get()
                });
            }
        }
    }
    out
}

/// Lowest and highest address.
#[inline(always)]
fn range(at: &Lanes) -> (u64, u64) {
    at.iter().fold((u64::MAX, 0), |(low, high), &address| {
        (low.min(address), high.max(address))
    })
}

/// Writes what was loaded for element `index` of an access.
#[inline(always)]
fn receive(
    warp: &mut Warp,
    split: &Split,
    access: &Access,
    (index, row): (usize, u32),
    mask: u32,
    load: impl Fn(u64) -> Lanes,
) {
    let mut value = load(u64::from(access.width.bytes.min(8)) * index as u64);
    if access.width.sign_to != 0 {
        value = value.map(|raw| access.width.extend(raw));
    }
    warp.rows(&split.frame, &[]).put(row, mask, &value);
}

impl<O: Observer> Machine<'_, O> {
    pub(crate) fn load(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        access: &Access,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let mut at = [0; WARP];
        let (first, others) = self.addresses(warp, split, &access.address, exec, &mut at);
        self.load_group(cta, warp, split, access, &first, &at)?;
        self.accessed(cta, first.space);
        for group in &others {
            self.load_group(cta, warp, split, access, group, &at)?;
            self.accessed(cta, group.space);
        }
        Ok(())
    }

    #[inline(always)]
    fn load_group(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        access: &Access,
        group: &Group,
        at: &Lanes,
    ) -> Result<(), Box<Fault>> {
        let (space, mask) = (group.space, group.mask);
        aligned(at, mask, access.bytes)?;
        let who = self.who(cta, warp.index, split.pc, mask);
        self.observer
            .access(who, AccessKind::Load, space, at, access.bytes);
        let first = split.frame.rows as usize;
        let (bytes, width) = (access.bytes, access.width);
        let size = u32::from(width.bytes.min(8));
        // All in one place?
        if group.filled && matches!(space, Space::Shared | Space::Global) {
            let (low, high) = range(at);
            let end = high.saturating_add(u64::from(bytes));
            let write = if mask == warp.live { u32::MAX } else { mask };
            if space == Space::Shared {
                if end <= u64::from(self.shared_bytes) && end <= windows::SHARED_STEP {
                    let words = &self.shared[cta.slot as usize];
                    for (index, &row) in access.rows.iter().enumerate() {
                        receive(warp, split, access, (index, row), write, |step| {
                            gather(words, at, 0, step, size)
                        });
                    }
                    return Ok(());
                }
            } else {
                let window = self.locate(mask.trailing_zeros(), low, bytes, false);
                if let Ok(window) = window
                    && end <= window.end
                {
                    self.stats.global_sectors += sectors(at, mask, bytes);
                    let words = self.memory.words(window.mapping);
                    for (index, &row) in access.rows.iter().enumerate() {
                        receive(warp, split, access, (index, row), write, |step| {
                            gather(words, at, window.origin, step, size)
                        });
                    }
                    return Ok(());
                }
            }
        }
        match space {
            Space::Shared => {
                for lane in lanes(mask) {
                    let (slot, offset) = self.shared_at(cta, lane, at[lane], bytes, false)?;
                    let words = &self.shared[slot];
                    let regs = &mut warp.regs[first..];
                    for (index, &row) in access.rows.iter().enumerate() {
                        let place = offset + u64::from(size) * index as u64;
                        let raw = fetch(size, place, |word| words[word]);
                        regs[row as usize][lane] = width.extend(raw);
                    }
                }
            }
            Space::Local => {
                for lane in lanes(mask) {
                    local_at(warp, lane, at[lane], bytes, false)?;
                    for (index, &row) in access.rows.iter().enumerate() {
                        let place = at[lane] + u64::from(size) * index as u64;
                        let raw = fetch(size, place, |word| warp.local[word * WARP + lane]);
                        warp.regs[first + row as usize][lane] = width.extend(raw);
                    }
                }
            }
            Space::Param => {
                for lane in lanes(mask) {
                    if at[lane].saturating_add(u64::from(bytes)) > self.parameter_bytes() {
                        return Err(illegal(lane, at[lane], bytes, space, false));
                    }
                    for (index, &row) in access.rows.iter().enumerate() {
                        let place = at[lane] as u32 + size * index as u32;
                        let raw = self.parameter(place, size as u8);
                        warp.regs[first + row as usize][lane] = width.extend(raw);
                    }
                }
            }
            _ => {
                self.stats.global_sectors += sectors(at, mask, bytes);
                let mut left = mask;
                while left != 0 {
                    let lane = left.trailing_zeros();
                    let window = self.locate(lane, at[lane as usize], bytes, false)?;
                    let words = self.memory.words(window.mapping);
                    let last = window.end - u64::from(bytes);
                    let regs = &mut warp.regs[first..];
                    while left != 0 {
                        let lane = left.trailing_zeros() as usize;
                        let address = at[lane];
                        if address < window.start || address > last {
                            break;
                        }
                        let offset = address - window.origin;
                        for (index, &row) in access.rows.iter().enumerate() {
                            let place = offset + u64::from(size) * index as u64;
                            let raw = fetch(size, place, |word| words[word].load(Relaxed));
                            regs[row as usize][lane] = width.extend(raw);
                        }
                        left &= left - 1;
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn store(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        access: &Access,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let mut at = [0; WARP];
        let (first, others) = self.addresses(warp, split, &access.address, exec, &mut at);
        self.store_group(cta, warp, split, access, &first, &at)?;
        self.accessed(cta, first.space);
        for group in &others {
            self.store_group(cta, warp, split, access, group, &at)?;
            self.accessed(cta, group.space);
        }
        Ok(())
    }

    #[inline(always)]
    fn store_group(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        access: &Access,
        group: &Group,
        at: &Lanes,
    ) -> Result<(), Box<Fault>> {
        let (space, mask) = (group.space, group.mask);
        aligned(at, mask, access.bytes)?;
        let who = self.who(cta, warp.index, split.pc, mask);
        self.observer
            .access(who, AccessKind::Store, space, at, access.bytes);
        let follows = self.observer.follows(space);
        let bytes = access.bytes;
        let size = u32::from(access.width.bytes.min(8));
        if space == Space::Global {
            self.stats.global_sectors += sectors(at, mask, bytes);
        }
        let consts = &self.setup.program.consts;
        for (index, &row) in access.rows.iter().enumerate() {
            let value = warp.read(&split.frame, row, consts);
            let step = u64::from(size) * index as u64;
            match space {
                Space::Shared => {
                    for lane in lanes(mask) {
                        let (slot, offset) = self.shared_at(cta, lane, at[lane], bytes, true)?;
                        let words = &mut self.shared[slot];
                        deposit(size, offset + step, value[lane], |word, keep, bits| {
                            let old = words[word];
                            words[word] = old & !keep | bits & keep;
                            if follows && words[word] != old {
                                let place = (space, at[lane] - offset + 4 * word as u64);
                                self.observer.changes(who, lane as u32, place, old);
                            }
                        });
                    }
                }
                Space::Local => {
                    for lane in lanes(mask) {
                        local_at(warp, lane, at[lane], bytes, true)?;
                        deposit(size, at[lane] + step, value[lane], |word, keep, bits| {
                            let word = &mut warp.local[word * WARP + lane];
                            *word = *word & !keep | bits & keep;
                        });
                    }
                }
                Space::Param => {
                    let lane = mask.trailing_zeros() as usize;
                    return Err(illegal(lane, at[lane], bytes, space, true));
                }
                _ => {
                    let mut left = mask;
                    while left != 0 {
                        let lane = left.trailing_zeros();
                        let window = self.locate(lane, at[lane as usize], bytes, true)?;
                        let words = self.memory.words(window.mapping);
                        let last = window.end - u64::from(bytes);
                        while left != 0 {
                            let lane = left.trailing_zeros() as usize;
                            let address = at[lane];
                            if address < window.start || address > last {
                                break;
                            }
                            let offset = address - window.origin + step;
                            deposit(size, offset, value[lane], |index, keep, bits| {
                                let word = &words[index];
                                let old = if keep == u32::MAX && !follows {
                                    0
                                } else {
                                    word.load(Relaxed)
                                };
                                let new = old & !keep | bits & keep;
                                word.store(new, Relaxed);
                                if follows && new != old {
                                    let place = (space, window.origin + 4 * index as u64);
                                    self.observer.changes(who, lane as u32, place, old);
                                }
                            });
                            left &= left - 1;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Bytes of the kernel's parameters.
    pub(crate) fn parameter_bytes(&self) -> u64 {
        self.setup.launch.params.len() as u64
    }

    /// A value among the kernel's parameters; zero outside of them.
    pub(crate) fn parameter(&self, offset: u32, bytes: u8) -> u64 {
        let mut value = [0; 8];
        let (start, count) = (offset as usize, usize::from(bytes.min(8)));
        if let Some(given) = self.setup.launch.params.get(start..start + count) {
            value[..count].copy_from_slice(given);
        }
        u64::from_le_bytes(value)
    }
}
