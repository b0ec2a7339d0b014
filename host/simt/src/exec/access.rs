//! Loads and stores.

use std::sync::atomic::Ordering::Relaxed;

use ptx::ast::Space;

use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code::{Access, Address, Place};
use crate::lanes::{Lanes, WARP};
use crate::observer::{AccessKind, Observer};
use crate::windows;

/// The lanes of a mask, lowest first.
#[inline(always)]
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}

/// Reads an element of 1 to 8 bytes at a byte offset from words.
#[inline(always)]
pub(crate) fn fetch(bytes: u32, offset: u64, word: impl Fn(usize) -> u32) -> u64 {
    let index = (offset / 4) as usize;
    match bytes {
        4 => u64::from(word(index)),
        8 => u64::from(word(index)) | u64::from(word(index + 1)) << 32,
        2 => u64::from((word(index) >> (8 * (offset & 2))) as u16),
        _ => u64::from((word(index) >> (8 * (offset & 3))) as u8),
    }
}

/// Writes an element of 1 to 8 bytes; `put(index, mask, value)` replaces the bits in the mask.
#[inline(always)]
pub(crate) fn deposit(bytes: u32, offset: u64, value: u64, mut put: impl FnMut(usize, u32, u32)) {
    let index = (offset / 4) as usize;
    match bytes {
        4 => put(index, u32::MAX, value as u32),
        8 => {
            put(index, u32::MAX, value as u32);
            put(index + 1, u32::MAX, (value >> 32) as u32);
        }
        2 => {
            let shift = 8 * (offset & 2) as u32;
            put(index, 0xffff << shift, (value as u32) << shift);
        }
        _ => {
            let shift = 8 * (offset & 3) as u32;
            put(index, 0xff << shift, (value as u32) << shift);
        }
    }
}

/// The addresses of one access in one state space.
pub(crate) struct Group {
    pub(crate) space: Space,
    pub(crate) mask: u32,
}

impl<O: Observer> Machine<'_, O> {
    /// The addresses of an access in their state spaces, and the lanes of each space: first one
    /// group, which is all there is unless generic addresses differ, then the others.
    #[inline(always)]
    pub(crate) fn addresses(
        &self,
        warp: &Warp,
        split: &Split,
        address: &Address,
        exec: u32,
        out: &mut Lanes,
    ) -> (Group, Vec<Group>) {
        let consts = &self.setup.program.consts;
        let base = warp.read(&split.frame, address.base, consts);
        for lane in 0..WARP {
            out[lane] = base[lane].wrapping_add_signed(address.offset);
        }
        let one = |space| (Group { space, mask: exec }, Vec::new());
        match address.place {
            Place::Global => one(Space::Global),
            Place::Param => one(Space::Param),
            Place::Shared => {
                out.iter_mut().for_each(|address| *address &= 0xffff_ffff);
                one(Space::Shared)
            }
            Place::Local => {
                out.iter_mut().for_each(|address| *address &= 0xffff_ffff);
                one(Space::Local)
            }
            Place::Frame => {
                let frame = u64::from(split.frame.local);
                out.iter_mut()
                    .for_each(|address| *address = address.wrapping_add(frame));
                one(Space::Local)
            }
            Place::Generic => generic(out, exec),
        }
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
        let (first, others) = self.addresses(warp, split, &access.address, exec, &mut at);
        self.load_group(cta, warp, split, access, &first, &at)?;
        for group in &others {
            self.load_group(cta, warp, split, access, group, &at)?;
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
        match space {
            Space::Shared => {
                let limit = u64::from(self.shared_bytes);
                for lane in lanes(mask) {
                    let (slot, offset) =
                        self.shared_at(cta, lane, at[lane], bytes, false, limit)?;
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
        for group in &others {
            self.store_group(cta, warp, split, access, group, &at)?;
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
                    let limit = u64::from(self.shared_bytes);
                    for lane in lanes(mask) {
                        let (slot, offset) =
                            self.shared_at(cta, lane, at[lane], bytes, true, limit)?;
                        let words = &mut self.shared[slot];
                        deposit(size, offset + step, value[lane], |word, keep, bits| {
                            words[word] = words[word] & !keep | bits & keep;
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
                            deposit(size, offset, value[lane], |word, keep, bits| {
                                let word = &words[word];
                                let old = if keep == u32::MAX {
                                    0
                                } else {
                                    word.load(Relaxed)
                                };
                                word.store(old & !keep | bits & keep, Relaxed);
                            });
                            left &= left - 1;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Slot and offset of a shared address: that of the CTA itself, or of one of its cluster.
    #[inline(always)]
    pub(crate) fn shared_at(
        &self,
        cta: &CtaId,
        lane: usize,
        address: u64,
        bytes: u32,
        write: bool,
        limit: u64,
    ) -> Result<(usize, u64), Box<Fault>> {
        let offset = address & (windows::SHARED_STEP - 1);
        let rank = address / windows::SHARED_STEP;
        let size: u32 = cta.cluster.iter().product();
        if offset + u64::from(bytes) > limit || rank > u64::from(size) {
            return Err(illegal(lane, address, bytes, Space::Shared, write));
        }
        let slot = match rank {
            0 => cta.slot,
            rank => cta.first_slot + rank as u32 - 1,
        };
        Ok((slot as usize, offset))
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

/// Sorts generic addresses by space, and makes them addresses in it.
fn generic(at: &mut Lanes, exec: u32) -> (Group, Vec<Group>) {
    if lanes(exec).all(|lane| windows::space(at[lane]) == Space::Global) {
        return (
            Group {
                space: Space::Global,
                mask: exec,
            },
            Vec::new(),
        );
    }
    let mut masks = [
        (Space::Global, 0),
        (Space::Shared, 0),
        (Space::Local, 0),
        (Space::Param, 0),
    ];
    for lane in lanes(exec) {
        let space = windows::space(at[lane]);
        at[lane] -= windows::base(space);
        for (of, mask) in &mut masks {
            *mask |= u32::from(*of == space) << lane;
        }
    }
    let mut groups = masks.into_iter().filter(|&(_, mask)| mask != 0);
    let group = |(space, mask)| Group { space, mask };
    let first = groups.next().map_or(
        Group {
            space: Space::Global,
            mask: 0,
        },
        group,
    );
    (first, groups.map(group).collect())
}

/// Checks that the lanes' addresses are multiples of the access size.
#[inline(always)]
pub(crate) fn aligned(at: &Lanes, mask: u32, bytes: u32) -> Result<(), Box<Fault>> {
    let low = u64::from(bytes) - 1;
    // Cheap for all lanes together; who it was only matters when it happened. Inactive lanes may
    // hold anything.
    let any = at.iter().fold(0, |any, address| any | address) & low;
    if any != 0 {
        for lane in lanes(mask) {
            if at[lane] & low != 0 {
                let kind = FaultKind::Misaligned {
                    address: at[lane],
                    bytes,
                };
                return Err(Fault::new(lane as u32, kind));
            }
        }
    }
    Ok(())
}

#[cold]
pub(crate) fn illegal(
    lane: usize,
    address: u64,
    bytes: u32,
    space: Space,
    write: bool,
) -> Box<Fault> {
    // Reported as the program sees it when it came through a generic address.
    Fault::new(
        lane as u32,
        FaultKind::Illegal {
            address,
            bytes,
            space,
            write,
        },
    )
}

/// Checks an address in local memory.
#[inline(always)]
pub(crate) fn local_at(
    warp: &Warp,
    lane: usize,
    address: u64,
    bytes: u32,
    write: bool,
) -> Result<(), Box<Fault>> {
    let size = (warp.local.len() / WARP * 4) as u64;
    if address.saturating_add(u64::from(bytes)) > size {
        return Err(illegal(lane, address, bytes, Space::Local, write));
    }
    Ok(())
}

/// 32-byte sectors that the lanes touch together. Accesses are aligned, so none straddles two
/// unless it is larger than one.
pub(crate) fn sectors(at: &Lanes, mask: u32, bytes: u32) -> u64 {
    let each = u64::from(bytes.div_ceil(32));
    let mut count = 0;
    let mut seen = [u64::MAX; WARP];
    let mut last = u64::MAX;
    let mut ordered = true;
    for lane in lanes(mask) {
        let sector = at[lane] / 32;
        if sector != last {
            ordered &= last == u64::MAX || sector > last;
            seen[count] = sector;
            count += 1;
            last = sector;
        }
    }
    if !ordered {
        let seen = &mut seen[..count];
        seen.sort_unstable();
        count = 1 + seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
    }
    count as u64 * each
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_counted_once() {
        let at = |f: fn(u64) -> u64| std::array::from_fn(|lane| f(lane as u64));
        assert_eq!(sectors(&at(|lane| 4096 + 4 * lane), u32::MAX, 4), 4);
        assert_eq!(sectors(&at(|lane| 4096 + 128 * lane), 0xff, 4), 8);
        assert_eq!(sectors(&at(|lane| 4096 + 32 * (lane % 2)), u32::MAX, 4), 2);
        assert_eq!(sectors(&at(|lane| 8 * (31 - lane)), u32::MAX, 8), 8);
        assert_eq!(sectors(&at(|_| 64), 0, 8), 0);
    }

    #[test]
    fn parts_of_words() {
        let words = std::cell::RefCell::new(vec![0x4433_2211u32, 0x8877_6655]);
        let read = |bytes, offset| fetch(bytes, offset, |word| words.borrow()[word]);
        assert_eq!(read(8, 0), 0x8877_6655_4433_2211);
        assert_eq!(
            (read(1, 3), read(2, 6), read(4, 4)),
            (0x44, 0x8877, 0x8877_6655)
        );
        deposit(1, 5, 0xffee, |word, keep, bits| {
            let mut words = words.borrow_mut();
            words[word] = words[word] & !keep | bits & keep;
        });
        assert_eq!(words.borrow()[1], 0x8877_ee55);
    }
}
