//! Loads and stores.
//!
//! The usual case, all addresses in one region, is a loop over all lanes without a question in it;
//! the others are taken lane by lane.

use std::cell::Cell;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use events::AccessKind;
use ptx::ast::Space;

use super::address::{Group, Pattern, aligned, deposit, fetch, illegal, lanes, local_at, sectors};
use super::cta::CtaId;
use super::fault::Fault;
use super::listener::Listener;
use super::machine::Machine;
use super::outside::Reach;
use super::sharing;
use super::warp::{Split, Warp};
use crate::code::{Access, Narrow};
use crate::lanes::{ALL, Lanes, WARP, only, splat};

/// A word of memory, atomic or not.
trait Word {
    fn get(&self) -> u32;
    /// Replaces the bits in a mask; `several` when other threads of the host may change the others.
    fn set(&self, several: bool, keep: u32, bits: u32);
}

impl Word for Cell<u32> {
    #[inline(always)]
    fn get(&self) -> u32 {
        self.get()
    }

    #[inline(always)]
    fn set(&self, _: bool, keep: u32, bits: u32) {
        // The old value need not be known when all of it goes.
        let old = if keep == u32::MAX { 0 } else { self.get() };
        self.set(old & !keep | bits & keep);
    }
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn get(&self) -> u32 {
        self.load(Relaxed)
    }

    #[inline(always)]
    fn set(&self, several: bool, keep: u32, bits: u32) {
        sharing::set(self, several, keep, bits);
    }
}

/// Memory that all accesses of a group lie in.
struct Inside<'a, W> {
    words: &'a [W],
    /// Address of its first byte.
    origin: u64,
    /// Other threads of the host use it too.
    several: bool,
}

impl<W: Word> Inside<'_, W> {
    /// Makes a load; `regs` are those of its frame, and `write` the lanes that may be overwritten.
    #[inline(always)]
    fn load(&self, at: &Lanes, group: &Group, access: &Access, regs: &mut [Lanes], write: u32) {
        for (step, &row) in access.steps() {
            self.load_element(at, group, access, step, &mut regs[row as usize], write);
        }
    }

    /// Makes a store; `source` gives the rows.
    #[inline(always)]
    fn store<'s>(
        &self,
        at: &Lanes,
        group: &Group,
        access: &Access,
        source: impl Fn(u32) -> &'s Lanes,
    ) {
        let size = access.element();
        let same = group.pattern == Pattern::Same;
        // Of lanes at one address the last one counts.
        let mask = match same {
            true => 1 << group.mask.ilog2(),
            false => group.mask,
        };
        // Many set a flag that is set already. If they leave it, its cache line stays with all of them.
        let flag = same && self.several;
        for (step, &row) in access.steps() {
            let value = source(row);
            let origin = self.origin.wrapping_sub(step);
            for lane in lanes(mask) {
                let offset = at[lane].wrapping_sub(origin);
                deposit(size, offset, value[lane], |word, keep, bits| {
                    let word = &self.words[word];
                    if !flag || (word.get() ^ bits) & keep != 0 {
                        word.set(self.several, keep, bits);
                    }
                });
            }
        }
    }

    /// Loads the element that lies `step` bytes behind the lanes' addresses.
    #[inline(always)]
    fn load_element(
        &self,
        at: &Lanes,
        group: &Group,
        access: &Access,
        step: u64,
        row: &mut Lanes,
        write: u32,
    ) {
        let origin = self.origin.wrapping_sub(step);
        let (size, width) = (access.element(), access.width);
        let offset_of = |lane: usize| at[lane].wrapping_sub(origin);
        let one = |lane| width.extend(fetch(size, offset_of(lane), |word| self.words[word].get()));
        let plain = width.sign_to == 0 && group.mask == ALL;
        match group.pattern {
            Pattern::Same => splat(row, write, one(group.first())),
            Pattern::Row if plain && size == 4 => {
                let each = access.bytes as usize / 4;
                let first = (offset_of(0) / 4) as usize;
                let words = &self.words[first..=first + (WARP - 1) * each];
                if each == 1 {
                    for (out, word) in row.iter_mut().zip(words) {
                        *out = u64::from(word.get());
                    }
                } else {
                    for (out, word) in row.iter_mut().zip(words.iter().step_by(each)) {
                        *out = u64::from(word.get());
                    }
                }
            }
            _ if plain && size == 4 => {
                for (lane, out) in row.iter_mut().enumerate() {
                    *out = u64::from(self.words[(offset_of(lane) / 4) as usize].get());
                }
            }
            _ if plain && size == 8 => {
                for (lane, out) in row.iter_mut().enumerate() {
                    let index = (offset_of(lane) / 4) as usize;
                    let pair = &self.words[index..index + 2];
                    *out = u64::from(pair[0].get()) | u64::from(pair[1].get()) << 32;
                }
            }
            _ => {
                for lane in lanes(group.mask) {
                    row[lane] = one(lane);
                }
            }
        }
    }
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// The shared memory of the CTA, when all accesses of a group lie in it.
    #[inline(always)]
    fn own_shared(
        &mut self,
        cta: &CtaId,
        group: &Group,
        at: &Lanes,
        bytes: u32,
    ) -> Option<Inside<'_, Cell<u32>>> {
        let size = u64::from(self.shared_bytes).min(events::SHARED_STEP);
        if group.space != Space::Shared || !group.lies_in(at, bytes, 0..size) {
            return None;
        }
        let words = Cell::from_mut(&mut *self.shared[cta.slot as usize]).as_slice_of_cells();
        Some(Inside {
            words,
            origin: 0,
            several: false,
        })
    }

    /// The region of global memory that all accesses of a group lie in, if they do.
    #[inline(always)]
    fn one_region(
        &mut self,
        group: &Group,
        at: &Lanes,
        bytes: u32,
        write: bool,
    ) -> Option<Inside<'_, AtomicU32>> {
        if group.space != Space::Global {
            return None;
        }
        let first = group.first();
        let window = self.locate(first as u32, at[first], bytes, write).ok()?;
        let region = window.start..window.end;
        group.lies_in(at, bytes, region).then(|| Inside {
            words: self.memory.words(window.mapping),
            origin: window.origin,
            several: self.memory.locks().is_some(),
        })
    }

    pub(crate) fn load(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        access: &Access,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let mut at = [0; WARP];
        let (first, others) =
            self.addresses(warp, split, &access.address, access.bytes, exec, &mut at);
        self.load_group(cta, warp, split, access, &first, &at)?;
        self.accessed(cta, first.space);
        for group in &others {
            self.load_group(cta, warp, split, access, group, &at)?;
            self.accessed(cta, group.space);
        }
        Ok(())
    }

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
        aligned(at, group, access.bytes)?;
        let reach = Reach {
            group,
            at,
            bytes: access.bytes.into(),
            kind: AccessKind::Load,
        };
        let stray = self.stray_lanes(cta, warp, split, reach)?;
        let first = split.frame.rows as usize;
        if stray != 0 {
            for &row in &access.rows {
                splat(&mut warp.regs[first + row as usize], stray, 0);
            }
            return match group.without(stray) {
                Some(rest) => self.load_group(cta, warp, split, access, &rest, at),
                None => Ok(()),
            };
        }
        let threads = self.executing(cta, warp.index, split.pc, mask);
        match &access.narrow {
            None => self
                .observer
                .access(threads, AccessKind::Load, space, at, access.bytes),
            Some(narrow) => {
                let at = self.elements(warp, split, narrow, at);
                self.observer
                    .access(threads, AccessKind::Load, space, &at, narrow.bytes);
            }
        }
        let (bytes, width) = (access.bytes, access.width);
        if access.strong
            && space == Space::Global
            && let Some(locks) = self.memory.locks()
        {
            return self.load_strong(locks, warp, split, access, group, at);
        }
        let all = mask == warp.live && only(mask).is_none();
        let write = if all { ALL } else { mask };
        if let Some(inside) = self.own_shared(cta, group, at, bytes) {
            inside.load(at, group, access, &mut warp.regs[first..], write);
            return Ok(());
        }
        if let Some(inside) = self.one_region(group, at, bytes, false) {
            inside.load(at, group, access, &mut warp.regs[first..], write);
            self.stats.global_sectors += sectors(at, group, bytes);
            return Ok(());
        }
        let size = access.element();
        match space {
            Space::Shared => {
                for lane in lanes(mask) {
                    let (slot, offset) = self.shared_at(cta, lane, at[lane], bytes, false)?;
                    let words = &self.shared[slot];
                    let regs = &mut warp.regs[first..];
                    for (index, &row) in access.rows.iter().enumerate() {
                        let element_at = offset + u64::from(size) * index as u64;
                        let raw = fetch(size, element_at, |word| words[word]);
                        regs[row as usize][lane] = width.extend(raw);
                    }
                }
            }
            Space::Local => {
                for lane in lanes(mask) {
                    local_at(warp, lane, at[lane], bytes, false)?;
                    for (index, &row) in access.rows.iter().enumerate() {
                        let element_at = at[lane] + u64::from(size) * index as u64;
                        let raw = fetch(size, element_at, |word| warp.local[word * WARP + lane]);
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
                        let element_at = at[lane] as u32 + size * index as u32;
                        let raw = self.parameter(element_at, size as u8);
                        warp.regs[first + row as usize][lane] = width.extend(raw);
                    }
                }
            }
            _ => {
                self.stats.global_sectors += sectors(at, group, bytes);
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
                            let element_at = offset + u64::from(size) * index as u64;
                            let raw = fetch(size, element_at, |word| words[word].load(Relaxed));
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
        let (first, others) =
            self.addresses(warp, split, &access.address, access.bytes, exec, &mut at);
        self.store_group(cta, warp, split, access, &first, &at)?;
        self.accessed(cta, first.space);
        for group in &others {
            self.store_group(cta, warp, split, access, group, &at)?;
            self.accessed(cta, group.space);
        }
        Ok(())
    }

    /// Where the elements are that an access at these addresses stands for.
    pub(crate) fn elements(
        &self,
        warp: &Warp,
        split: &Split,
        narrow: &Narrow,
        at: &Lanes,
    ) -> Lanes {
        let pointers = warp.source(&split.frame, narrow.pointer, &self.setup.program.consts);
        let mut elements = *at;
        for (element, pointer) in elements.iter_mut().zip(pointers) {
            *element = element.wrapping_add(pointer & u64::from(narrow.around - 1));
        }
        elements
    }

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
        aligned(at, group, access.bytes)?;
        let reach = Reach {
            group,
            at,
            bytes: access.bytes.into(),
            kind: AccessKind::Store,
        };
        let stray = self.stray_lanes(cta, warp, split, reach)?;
        if stray != 0 {
            return match group.without(stray) {
                Some(rest) => self.store_group(cta, warp, split, access, &rest, at),
                None => Ok(()),
            };
        }
        let threads = self.executing(cta, warp.index, split.pc, mask);
        self.observer
            .access(threads, AccessKind::Store, space, at, access.bytes);
        let follows = self.observer.follows(space);
        let bytes = access.bytes;
        let size = access.element();
        if space == Space::Global {
            self.stats.global_sectors += sectors(at, group, bytes);
            if access.strong
                && let Some(locks) = self.memory.locks()
            {
                return self.store_strong(locks, warp, split, access, group, at);
            }
        }
        let consts = &self.setup.program.consts;
        // Nobody asks what was there?
        if !follows {
            let source = |row| warp.source(&split.frame, row, consts);
            if let Some(inside) = self.own_shared(cta, group, at, bytes) {
                inside.store(at, group, access, source);
                return Ok(());
            }
            if let Some(inside) = self.one_region(group, at, bytes, true) {
                inside.store(at, group, access, source);
                return Ok(());
            }
        }
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
                                let address = at[lane] - offset + 4 * word as u64;
                                let lane = lane as u32;
                                self.observer.changes(threads, lane, space, address, old);
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
                        let several = self.memory.locks().is_some();
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
                                if !follows {
                                    return sharing::set(word, several, keep, bits);
                                }
                                let old = word.load(Relaxed);
                                let new = old & !keep | bits & keep;
                                word.store(new, Relaxed);
                                if new != old {
                                    let address = window.origin + 4 * index as u64;
                                    let lane = lane as u32;
                                    self.observer.changes(threads, lane, space, address, old);
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
