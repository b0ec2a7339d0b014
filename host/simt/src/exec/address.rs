//! Addresses: where an access of the lanes of a warp goes, and whether it may.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use events::Bytes;
use ptx::ast::Space;

use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code::{Address, AddressSpace};
use crate::lanes::{ALL, Lanes, WARP, only};
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

/// How the addresses of the lanes that take part in an access lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// All at one address.
    Same,
    /// Each lane's bytes right behind those of the lane below, however many of the lanes take part.
    Row,
    Any,
}

/// The number of each lane.
static LANE: Lanes = {
    let mut lanes = [0; WARP];
    let mut lane = 0;
    while lane < WARP {
        lanes[lane] = lane as u64;
        lane += 1;
    }
    lanes
};

/// Computes the addresses of an access, and how they lie. Compiled like the loops of
/// [`crate::lanes`]; written so that the loops have neither shifts by lane nor products, which
/// vectors lack.
struct Survey<'a> {
    base: &'a Lanes,
    /// Added to the base.
    offset: u64,
    /// Bits of an address in its state space.
    keep: u64,
    /// Lanes that take part, at least one. The others get the address of the lowest of them, so that
    /// loops over all lanes find nothing strange.
    mask: u32,
    /// log2 of an access's bytes.
    log2: u32,
    out: &'a mut Lanes,
}

impl pulp::NullaryFnOnce for Survey<'_> {
    type Output = Pattern;

    #[inline(always)]
    fn call(self) -> Pattern {
        let Self {
            base,
            offset,
            keep,
            mask,
            log2,
            out,
        } = self;
        let first = u64::from(mask.trailing_zeros() & 31);
        let low = base[first as usize].wrapping_add(offset) & keep;
        if only(mask).is_some() {
            out.fill(low);
            return Pattern::Same;
        }
        let zero = low.wrapping_sub(first << log2);
        let (mut same, mut row) = (0, 0);
        if mask == ALL {
            for lane in 0..WARP {
                let address = base[lane].wrapping_add(offset) & keep;
                same |= address ^ low;
                row |= address ^ zero.wrapping_add(LANE[lane] << log2);
                out[lane] = address;
            }
        } else {
            let mut takes_part = [0; WARP];
            for lane in lanes(mask) {
                takes_part[lane] = u64::MAX;
            }
            for lane in 0..WARP {
                let address = base[lane].wrapping_add(offset) & keep;
                let expected = zero.wrapping_add(LANE[lane] << log2);
                row |= (address ^ expected) & takes_part[lane];
                let address = address & takes_part[lane] | low & !takes_part[lane];
                same |= address ^ low;
                out[lane] = address;
            }
        }
        match (same, row) {
            (0, _) => Pattern::Same,
            (_, 0) => Pattern::Row,
            _ => Pattern::Any,
        }
    }
}

/// Whether any lane's address, of all 32, is negative or more than `most` when `start` is taken away.
struct Outside<'a> {
    at: &'a Lanes,
    start: u64,
    most: u64,
}

impl pulp::NullaryFnOnce for Outside<'_> {
    type Output = bool;

    #[inline(always)]
    fn call(self) -> bool {
        let any = self.at.iter().fold(0, |any, address| {
            let offset = address.wrapping_sub(self.start);
            any | offset | self.most.wrapping_sub(offset)
        });
        any >> 63 != 0
    }
}

/// The addresses of one access in one state space.
pub(crate) struct Group {
    pub(crate) space: Space,
    pub(crate) mask: u32,
    pub(crate) pattern: Pattern,
}

impl Group {
    /// True when the accesses, of `bytes` bytes each, lie in a region.
    #[inline(always)]
    pub(crate) fn lies_in(&self, at: &Lanes, bytes: u32, region: Range<u64>) -> bool {
        let Range { start, end } = region;
        let Some(most) = (end - start).checked_sub(u64::from(bytes)) else {
            return false;
        };
        // Negative when an address lies before the start, or too far behind.
        let outside = |address: u64| {
            let offset = address.wrapping_sub(start);
            (offset | most.wrapping_sub(offset)) >> 63 != 0
        };
        !match self.pattern {
            Pattern::Same => outside(at[self.first()]),
            Pattern::Row => outside(at[self.first()]) || outside(at[self.last()]),
            Pattern::Any if self.mask == ALL => {
                pulp::Arch::new().dispatch(Outside { at, start, most })
            }
            Pattern::Any => lanes(self.mask).any(|lane| outside(at[lane])),
        }
    }

    /// Bytes that a lane accesses.
    #[inline(always)]
    pub(crate) fn bytes(&self, lane: usize, at: &Lanes, count: u32) -> Bytes {
        Bytes {
            space: self.space,
            address: at[lane],
            count,
        }
    }

    /// The lowest lane.
    #[inline(always)]
    pub(crate) fn first(&self) -> usize {
        self.mask.trailing_zeros() as usize & 31
    }

    /// The highest lane.
    #[inline(always)]
    pub(crate) fn last(&self) -> usize {
        31 - (self.mask.leading_zeros() as usize & 31)
    }
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// The addresses of an access of `bytes` bytes, a power of two, in their state spaces, and the lanes of each
    /// space: first one group, which is all there is unless generic addresses differ, then the
    /// others.
    #[inline(always)]
    pub(crate) fn addresses(
        &self,
        warp: &Warp,
        split: &Split,
        address: &Address,
        bytes: u32,
        exec: u32,
        out: &mut Lanes,
    ) -> (Group, Vec<Group>) {
        let base = warp.source(&split.frame, address.base, &self.setup.program.consts);
        let (offset, keep) = match address.address_space {
            AddressSpace::Shared | AddressSpace::Local => (address.offset, 0xffff_ffff),
            AddressSpace::Frame => (address.offset + i64::from(split.frame.local), u64::MAX),
            AddressSpace::Global | AddressSpace::Param | AddressSpace::Generic => {
                (address.offset, u64::MAX)
            }
        };
        let pattern = pulp::Arch::new().dispatch(Survey {
            base,
            offset: offset as u64,
            keep,
            mask: exec,
            log2: bytes.trailing_zeros(),
            out,
        });
        let space = match address.address_space {
            AddressSpace::Global => Space::Global,
            AddressSpace::Param => Space::Param,
            AddressSpace::Shared => Space::Shared,
            AddressSpace::Local | AddressSpace::Frame => Space::Local,
            AddressSpace::Generic => return generic(out, exec, pattern),
        };
        let group = Group {
            space,
            mask: exec,
            pattern,
        };
        (group, Vec::new())
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
    let offset = address & (events::SHARED_STEP - 1);
    let rank = address / events::SHARED_STEP;
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
#[inline(always)]
fn generic(at: &mut Lanes, exec: u32, pattern: Pattern) -> (Group, Vec<Group>) {
    let space = windows::space(at[0]);
    let alike = match pattern {
        Pattern::Same => true,
        _ => at.iter().all(|&address| windows::space(address) == space),
    };
    if !alike {
        return mixed(at, exec);
    }
    let base = windows::base(space);
    if base != 0 {
        at.iter_mut().for_each(|address| *address -= base);
    }
    let group = Group {
        space,
        mask: exec,
        pattern,
    };
    (group, Vec::new())
}

/// Sorts generic addresses in several spaces.
#[cold]
fn mixed(at: &mut Lanes, exec: u32) -> (Group, Vec<Group>) {
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
        pattern: Pattern::Any,
    };
    let mut groups = masks.into_iter().filter(|&(_, mask)| mask != 0).map(group);
    // There is at least one lane, so there is a first group.
    let none = Group {
        space: Space::Global,
        mask: 0,
        pattern: Pattern::Any,
    };
    (groups.next().unwrap_or(none), groups.collect())
}

/// Checks that the lanes' addresses are multiples of the access size.
#[inline(always)]
pub(crate) fn aligned(at: &Lanes, group: &Group, bytes: u32) -> Result<(), Box<Fault>> {
    let low = u64::from(bytes) - 1;
    // Cheap for all lanes together; who it was only matters when it happened. Inactive lanes may
    // hold anything.
    let any = match group.pattern {
        Pattern::Same | Pattern::Row => at[group.first()],
        Pattern::Any => at.iter().fold(0, |any, address| any | address),
    };
    if any & low != 0 {
        return each_aligned(at, group.mask, bytes);
    }
    Ok(())
}

/// The same lane by lane; blames the first that is wrong.
#[cold]
pub(crate) fn each_aligned(at: &Lanes, mask: u32, bytes: u32) -> Result<(), Box<Fault>> {
    let bad = lanes(mask).find(|&lane| at[lane] & (u64::from(bytes) - 1) != 0);
    match bad {
        Some(lane) => {
            let kind = FaultKind::Misaligned {
                address: at[lane],
                bytes,
            };
            Err(Fault::new(lane as u32, kind))
        }
        None => Ok(()),
    }
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

/// 32-byte sectors that the lanes of a group touch together. Accesses are aligned, so none
/// straddles two unless it is larger than one.
#[inline(always)]
pub(crate) fn sectors(at: &Lanes, group: &Group, bytes: u32) -> u64 {
    match group.pattern {
        _ if group.mask == 0 => 0,
        Pattern::Same => u64::from(bytes.div_ceil(32)),
        Pattern::Row if group.mask == ALL => {
            let end = at[group.last()] + u64::from(bytes);
            end.div_ceil(32) - at[group.first()] / 32
        }
        _ => scattered_sectors(at, group.mask, bytes),
    }
}

/// The same for addresses without a pattern.
pub(crate) fn scattered_sectors(at: &Lanes, mask: u32, bytes: u32) -> u64 {
    /// Twice as many as lanes, so that a free place is near.
    const PLACES: usize = 2 * WARP;
    let mut seen = [u64::MAX; PLACES];
    let (mut count, mut last) = (0, u64::MAX);
    for lane in lanes(mask) {
        let sector = at[lane] / 32;
        if sector == last {
            continue;
        }
        last = sector;
        let hash = sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut entry = hash as usize % PLACES;
        while seen[entry] != sector {
            if seen[entry] == u64::MAX {
                seen[entry] = sector;
                count += 1;
                break;
            }
            entry = (entry + 1) % PLACES;
        }
    }
    count * u64::from(bytes.div_ceil(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surveyed(base: &Lanes, mask: u32, bytes: u32) -> (Lanes, Group) {
        let mut out = [7; WARP];
        let survey = Survey {
            base,
            offset: 0,
            keep: u64::MAX,
            mask,
            log2: bytes.trailing_zeros(),
            out: &mut out,
        };
        let pattern = pulp::Arch::new().dispatch(survey);
        let space = Space::Global;
        let group = Group {
            space,
            mask,
            pattern,
        };
        (out, group)
    }

    #[test]
    fn sectors_are_counted_once() {
        let at = |f: fn(u64) -> u64| std::array::from_fn(|lane| f(lane as u64));
        let sectors = |at: Lanes, mask, bytes| {
            let (at, group) = surveyed(&at, mask, bytes);
            let count = sectors(&at, &group, bytes);
            assert_eq!(count, scattered_sectors(&at, mask, bytes));
            count
        };
        assert_eq!(sectors(at(|lane| 4096 + 4 * lane), ALL, 4), 4);
        assert_eq!(sectors(at(|lane| 4100 + 4 * lane), ALL, 4), 5);
        assert_eq!(sectors(at(|lane| 4096 + 128 * lane), 0xff, 4), 8);
        assert_eq!(sectors(at(|lane| 4096 + 32 * (lane % 2)), ALL, 4), 2);
        assert_eq!(sectors(at(|lane| 8 * (31 - lane)), ALL, 8), 8);
        assert_eq!(sectors(at(|lane| 32 * lane), ALL, 32), 32);
        assert_eq!(sectors(at(|_| 64), ALL, 8), 1);
        assert_eq!(sectors(at(|_| 64), 0, 8), 0);
    }

    #[test]
    fn patterns_are_those_of_the_lanes_that_take_part() {
        let at = |f: fn(u64) -> u64| -> Lanes { std::array::from_fn(|lane| f(lane as u64)) };
        let of = |at: Lanes, mask: u32| {
            let (at, group) = surveyed(&at, mask, 4);
            // The smallest range that it lies in.
            let start = (0..1000)
                .rev()
                .find(|&start| group.lies_in(&at, 4, start..start + 1000));
            let start = start.unwrap();
            let end = (start..1000).find(|&end| group.lies_in(&at, 4, start..end));
            (group.pattern, (start, end.unwrap()))
        };
        assert_eq!(of(at(|lane| 64 + 4 * lane), ALL), (Pattern::Row, (64, 192)));
        assert_eq!(of(at(|lane| 64 + 4 * lane), 0x90), (Pattern::Row, (80, 96)));
        assert_eq!(
            of(at(|lane| 64 + 8 * lane), 0x90),
            (Pattern::Any, (96, 124))
        );
        assert_eq!(
            of(at(|lane| 64 + 8 * lane), 0x10),
            (Pattern::Same, (96, 100))
        );
        assert_eq!(of(at(|_| 64), ALL), (Pattern::Same, (64, 68)));
        assert_eq!(
            of(at(|lane| 188 - 4 * lane), ALL),
            (Pattern::Any, (64, 192))
        );
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
