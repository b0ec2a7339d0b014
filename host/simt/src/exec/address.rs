//! Addresses: where an access of the lanes of a warp goes, and whether it may.

use std::sync::atomic::Ordering::Relaxed;

use ptx::ast::Space;

use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code::{Address, Place};
use crate::lanes::{ALL, Lanes, WARP};
use crate::observer::Observer;
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
    /// True when the addresses of the lanes outside of the mask are those of a lane inside.
    pub(crate) filled: bool,
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
        // Lanes that take no part repeat the address of one that does, so that loops over all
        // lanes find nothing strange.
        if exec != ALL {
            let fill = out[exec.trailing_zeros() as usize & 31];
            for (lane, address) in out.iter_mut().enumerate() {
                *address = if exec >> lane & 1 == 1 {
                    *address
                } else {
                    fill
                };
            }
        }
        let one = |space| {
            (
                Group {
                    space,
                    mask: exec,
                    filled: true,
                },
                Vec::new(),
            )
        };
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

    /// Slot and offset of a shared address: that of the CTA itself, or of one of its cluster.
    #[inline(always)]
    pub(crate) fn shared_at(
        &self,
        cta: &CtaId,
        lane: usize,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Result<(usize, u64), Box<Fault>> {
        shared_in(self.shared_bytes, cta, address, bytes)
            .ok_or_else(|| illegal(lane, address, bytes, Space::Shared, write))
    }

    /// Lets an observer look at memory after an access of a CTA to a space.
    #[inline(always)]
    pub(crate) fn accessed(&mut self, cta: &CtaId, space: Space) {
        if !self.observer.follows(space) {
            return;
        }
        let Self {
            observer,
            memory,
            shared,
            shared_bytes,
            ..
        } = self;
        observer.accessed(&|space, address| match space {
            Space::Shared | Space::SharedCluster => {
                let (slot, offset) = shared_in(*shared_bytes, cta, address, 4)?;
                shared[slot].get((offset / 4) as usize).copied()
            }
            _ => {
                let window = memory.window(address)?;
                let words = memory.words(window.mapping);
                let word = words.get(((address - window.origin) / 4) as usize)?;
                Some(word.load(Relaxed))
            }
        });
    }
}

/// Slot and offset of bytes at an address in shared memory, of which a CTA has `size`.
#[inline(always)]
fn shared_in(size: u32, cta: &CtaId, address: u64, bytes: u32) -> Option<(usize, u64)> {
    let offset = address & (windows::SHARED_STEP - 1);
    let rank = address / windows::SHARED_STEP;
    let ctas: u32 = cta.cluster.iter().product();
    if offset + u64::from(bytes) > u64::from(size) || rank > u64::from(ctas) {
        return None;
    }
    let slot = match rank {
        0 => cta.slot,
        rank => cta.first_slot + rank as u32 - 1,
    };
    Some((slot as usize, offset))
}

/// Sorts generic addresses by space, and makes them addresses in it.
fn generic(at: &mut Lanes, exec: u32) -> (Group, Vec<Group>) {
    let space = windows::space(at[0]);
    if at.iter().all(|&address| windows::space(address) == space) {
        let base = windows::base(space);
        at.iter_mut().for_each(|address| *address -= base);
        let group = Group {
            space,
            mask: exec,
            filled: true,
        };
        return (group, Vec::new());
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
    let group = |(space, mask)| Group {
        space,
        mask,
        filled: false,
    };
    let mut groups = masks.into_iter().filter(|&(_, mask)| mask != 0).map(group);
    // There is at least one lane, so there is a first group.
    let none = Group {
        space: Space::Global,
        mask: 0,
        filled: false,
    };
    (groups.next().unwrap_or(none), groups.collect())
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
