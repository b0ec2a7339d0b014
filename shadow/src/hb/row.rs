//! What one instruction of a warp did to one line of memory: lanes at a fixed distance of bytes.

use super::clock::{Time, Times};
use super::each;
use super::entry::{Class, Entry, Strength};
use super::history::{LINE, WORD};
use super::made::Made;
use super::thread::{Id, Warp};

/// Which bytes each lane accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Map {
    /// Where lane 0 would be, in bytes from the start of the line.
    pub(crate) first: i16,
    /// Bytes from one lane to the next: none, or at least `bytes`.
    pub(crate) stride: u8,
    /// Bytes of a lane, which all lie in the line.
    pub(crate) bytes: u8,
}

/// Weak accesses of lanes of one warp to one line, by one instruction, at the same time of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) warp: Id,
    pub(crate) lanes: u32,
    pub(crate) time: Time,
    pub(crate) site: u32,
    /// Number of the asynchronous copies that it belongs to while they are under way, else 0.
    pub(crate) copy: u32,
    /// The words of the line that the row speaks for; others have their own entries.
    pub(crate) words: u32,
    pub(crate) map: Map,
    pub(crate) made: Made,
    pub(crate) read_only: bool,
}

impl Map {
    /// First byte that a lane accesses.
    pub(crate) fn start(&self, lane: u32) -> u32 {
        (i32::from(self.first) + (lane * u32::from(self.stride)) as i32) as u32
    }

    /// The words that some lanes access.
    pub(crate) fn words(&self, lanes: u32) -> u32 {
        if lanes == 0 {
            return 0;
        }
        let first = lanes.trailing_zeros();
        let following = (lanes >> first).trailing_ones();
        if self.stride == 0 {
            return self.of_lane(first);
        }
        if self.stride == self.bytes && following == lanes.count_ones() {
            return words(self.start(first), following * u32::from(self.bytes));
        }
        const BYTES: u8 = WORD as u8;
        if (self.stride, self.bytes, self.first % WORD as i16) == (BYTES, BYTES, 0) {
            // A word for each lane, in their order.
            let first = i32::from(self.first) / WORD as i32;
            return match first {
                0.. => lanes << first,
                _ => lanes >> -first,
            };
        }
        each(lanes).fold(0, |all, lane| all | self.of_lane(lane))
    }

    /// Lanes that access some words, and maybe others.
    fn near(&self, words: u32) -> u32 {
        const BYTES: u8 = WORD as u8;
        if (self.stride, self.bytes, self.first % WORD as i16) != (BYTES, BYTES, 0) {
            return u32::MAX;
        }
        match i32::from(self.first) / WORD as i32 {
            first @ 0.. => words >> first,
            first => words << -first,
        }
    }

    fn of_lane(&self, lane: u32) -> u32 {
        words(self.start(lane), u32::from(self.bytes))
    }

    /// True when different lanes access different bytes.
    fn apart(&self) -> bool {
        self.stride != 0
    }

    /// True when every word that is accessed at all is accessed in full, by one lane.
    fn full(&self) -> bool {
        let whole = |bytes: i32| bytes % WORD as i32 == 0;
        whole(self.first.into()) && whole(self.bytes.into()) && whole(self.stride.into())
    }
}

/// The words of a line that hold some of its bytes.
pub(crate) fn words(start: u32, bytes: u32) -> u32 {
    let (first, last) = (start / WORD as u32, (start + bytes - 1) / WORD as u32);
    u32::MAX >> (31 - (last - first)) << first
}

impl Row {
    /// The words that lanes of the row access and the row speaks for.
    fn of_lanes(&self, lanes: u32) -> u32 {
        if lanes == self.lanes {
            return self.words;
        }
        self.map.words(lanes & self.lanes) & self.words
    }

    /// True when a word is accessed by the same thread in both, in all words they share.
    fn alike(&self, other: &Self) -> bool {
        self.warp == other.warp && self.map == other.map && self.map.apart()
    }

    /// The lanes that are not ordered before a thread of the warp `me`, which knows `times`, and of
    /// which the row itself may hold accesses to some words.
    fn unordered(&self, me: Warp, times: &Times, words: u32) -> u32 {
        let lanes = self.lanes & self.map.near(words);
        times.unordered(me, self.warp.warp(), lanes, self.time)
    }

    /// The words in which an access by `other`, which comes later and conflicts, may race. `times`
    /// is what its threads know.
    pub(crate) fn suspects(&self, other: &Self, me: Warp, times: &Times) -> u32 {
        let shared = self.words & other.words;
        if shared == 0 {
            return 0;
        }
        if self.read_only || other.read_only || self.copy != 0 {
            return shared;
        }
        if self.alike(other) {
            return 0;
        }
        let lanes = self.unordered(me, times, shared);
        if self.warp == other.warp && self.map.full() && other.map.full() && other.map.apart() {
            let foreign = |lane| self.map.of_lane(lane) & !other.map.of_lane(lane);
            let words = each(lanes).fold(0, |all, lane| match other.lanes >> lane & 1 {
                1 => all | foreign(lane),
                _ => all | self.map.of_lane(lane),
            });
            return words & shared;
        }
        self.of_lanes(lanes) & shared
    }

    /// The words in which the later write `other` stands for this access. `many`: even if that is by
    /// another instruction.
    pub(crate) fn covered(&self, other: &Self, me: Warp, times: &Times, many: bool) -> u32 {
        let shared = self.words & other.words;
        let kept = self.copy != 0 || self.read_only || (self.site != other.site && !many);
        if shared == 0 || kept {
            return 0;
        }
        if self.alike(other) {
            // A word may hold bytes of several lanes.
            let own = self.lanes & !other.lanes;
            return shared & !self.of_lanes(own);
        }
        if other.map.full() && self.unordered(me, times, shared) == 0 {
            return shared;
        }
        0
    }

    /// Takes an access in that differs in the lanes only, or in a later time at which the same
    /// thread did the same again. True if it could.
    pub(crate) fn absorb(&mut self, other: &Self) -> bool {
        let same = self.warp == other.warp
            && self.site == other.site
            && self.map == other.map
            && self.read_only == other.read_only
            && self.copy == other.copy;
        let again = || {
            self.time < other.time
                && self.copy == 0
                && self.lanes & !other.lanes == 0
                && self.words & !other.words == 0
        };
        if !same || !(self.time == other.time || again()) {
            return false;
        }
        self.made = match self.time == other.time {
            true => self.made.and(other.made),
            false => other.made,
        };
        self.lanes |= other.lanes;
        self.words |= other.words;
        self.time = other.time;
        true
    }

    /// True when `later` does the same again, with no order in between that others could know.
    pub(crate) fn repeats(&self, later: &Self) -> bool {
        (self.warp, self.site, self.time) == (later.warp, later.site, later.time)
    }

    /// The row's accesses of one word, to stand on their own.
    pub(crate) fn entries(&self, word: u32, writes: bool) -> impl Iterator<Item = Entry> + '_ {
        let mut left = match self.words >> word & 1 {
            1 => self.lanes,
            _ => 0,
        };
        core::iter::from_fn(move || {
            while left != 0 {
                let lane = left.trailing_zeros();
                // All lanes are at the same place, or each is alone.
                let lanes = match self.map.apart() {
                    true => 1 << lane,
                    false => left,
                };
                left &= !lanes;
                let mask = mask(self.map.start(lane), self.map.bytes.into(), word);
                if mask != 0 {
                    return Some(Entry {
                        warp: self.warp,
                        lanes,
                        time: self.time,
                        class: Class {
                            writes,
                            strength: match self.read_only {
                                true => Strength::ReadOnly,
                                false => Strength::Weak,
                            },
                            start: (self.map.start(lane) % 16) as u8,
                            bytes: self.map.bytes,
                        },
                        mask,
                        site: self.site,
                        copy: self.copy,
                        made: self.made,
                        order: Default::default(),
                    });
                }
            }
            None
        })
    }
}

/// The bytes of a word of a line that an access touches, one bit each.
pub(crate) fn mask(start: u32, bytes: u32, word: u32) -> u8 {
    let word = word * WORD as u32;
    let first = start.saturating_sub(word).min(WORD as u32);
    let past = (start + bytes).saturating_sub(word).min(WORD as u32);
    ((1u32 << past) - (1 << first)) as u8 & 0xf
}

/// Lanes that access memory at a fixed distance, and the first one's address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) lanes: u32,
    pub(crate) first: u64,
    stride: u64,
    bytes: u64,
}

impl Run {
    /// One lane.
    pub(crate) fn one(lane: u32, first: u64, bytes: u64) -> Self {
        Self {
            lanes: 1 << lane,
            first,
            stride: bytes,
            bytes,
        }
    }

    /// The longest run at the lowest of some lanes. `together`: lanes may be at the same place.
    pub(crate) fn take(
        lanes: &mut u32,
        bytes: u64,
        together: bool,
        addresses: &impl Fn(u32) -> u64,
    ) -> Self {
        let lane = lanes.trailing_zeros();
        let first = addresses(lane);
        *lanes &= *lanes - 1;
        let mut run = Self::one(lane, first, bytes);
        let mut last = lane;
        while *lanes != 0 {
            let next = lanes.trailing_zeros();
            let address = addresses(next);
            if last == lane {
                let (apart, over) = (
                    address.wrapping_sub(first) / u64::from(next - lane),
                    address.wrapping_sub(first) % u64::from(next - lane),
                );
                let fits = over == 0 && apart >= bytes && apart <= LINE / 2;
                if !(fits || together && address == first) {
                    break;
                }
                run.stride = apart;
            } else if address != first.wrapping_add(u64::from(next - lane) * run.stride) {
                break;
            }
            run.lanes |= 1 << next;
            *lanes &= *lanes - 1;
            last = next;
        }
        run
    }

    /// Calls `line` for each line that some lanes of the run access, with the line, the lanes, where
    /// they are in it, and the words. No lane is in two lines.
    pub(crate) fn lines(&self, lanes: u32, mut line: impl FnMut(u64, u32, Map, u32)) {
        let lowest = self.lanes.trailing_zeros();
        let mut left = self.lanes & lanes;
        while left != 0 {
            let lane = left.trailing_zeros();
            let address = self.first + u64::from(lane - lowest) * self.stride;
            let number = address / LINE;
            let start = address % LINE;
            // Lanes that follow in the same line.
            let room = match self.stride {
                0 => 31,
                stride => (LINE - start - self.bytes.min(LINE - start)) / stride,
            };
            let lanes = left & (u32::MAX >> (31 - room.min(u64::from(31 - lane))) << lane);
            left &= !lanes;
            let map = Map {
                first: start as i16 - (u64::from(lane) * self.stride) as i16,
                stride: self.stride as u8,
                bytes: self.bytes as u8,
            };
            line(number, lanes, map, map.words(lanes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_all_bytes() {
        for (stride, bytes) in [(0, 4), (1, 1), (2, 2), (4, 2), (4, 4), (8, 4), (8, 8)] {
            for first in -124..124 {
                let map = Map {
                    first,
                    stride,
                    bytes,
                };
                for lanes in [1, 0b1000, 0b1111_0000, 0xa5a5_5a5a, 0x8000_0001, u32::MAX] {
                    let start = |lane: u32| i64::from(first) + i64::from(lane * u32::from(stride));
                    let end = LINE as i64 - i64::from(bytes);
                    let inside = |lane: &u32| (0..=end).contains(&start(*lane));
                    let lanes = each(lanes).filter(inside);
                    let (mut set, mut touched) = (0, 0_u32);
                    for lane in lanes {
                        set |= 1 << lane;
                        for byte in start(lane)..start(lane) + i64::from(bytes) {
                            touched |= 1 << (byte / WORD as i64);
                        }
                    }
                    assert_eq!(map.words(set), touched, "{map:?} {set:#x}");
                    for lane in each(set) {
                        let near = map.near(map.of_lane(lane));
                        assert_eq!(near >> lane & 1, 1, "{map:?} {lane}");
                    }
                }
            }
        }
    }
}
