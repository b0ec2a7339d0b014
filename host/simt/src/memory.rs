//! Device memory: one arena of allocations, and ranges of host memory the device may use.
//!
//! Every allocation is a region with exact bounds; an access must lie inside one region.
//! Departure from a real device: bounds are exact to the byte, where hardware protects whole pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driver::DeviceError;
use os::mem::Mapping;
use serde::{Deserialize, Serialize};

/// First address of the device's own memory.
pub const ARENA: u64 = 0x2000_0000_0000;
/// Allocations start at multiples of this, which is what a texture in linear memory needs.
const ALIGNMENT: u64 = 512;

/// Bytes that an allocation occupies in the arena. The address behind its last byte belongs to no other memory, so that a
/// pointer to its end is no pointer to what comes next.
fn occupied(bytes: u64) -> Option<u64> {
    bytes
        .max(1)
        .checked_add(1)?
        .checked_next_multiple_of(ALIGNMENT)
}

/// The memory of a device.
#[derive(Debug)]
pub struct Memory {
    /// The arena is number 0. Numbers are reused.
    mappings: Vec<Option<Arc<Mapping>>>,
    regions: BTreeMap<u64, Part>,
    /// Holes of the arena below `top`: offset to length.
    holes: BTreeMap<u64, u64>,
    /// Offset up to which the arena has ever been handed out.
    top: u64,
    size: u64,
    used: u64,
    /// Mappings that are nobody else's memory.
    placed: BTreeSet<u32>,
    /// What the device's own malloc has handed out: address to bytes.
    heap: BTreeMap<u64, u64>,
    /// Host memory is made so that the system tells what of it the host touches.
    shares: bool,
    /// There has been such memory.
    has_shared: bool,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    bytes: u64,
    mapping: u32,
    /// Address of the first byte of the mapping.
    origin: u64,
}

/// A region, for another memory to have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Region {
    /// Its first address.
    pub address: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// Number of the memory that it shows, the same for regions that show the same; 0 is the device's own.
    pub shows: u32,
    /// Offset in that memory, unless it is the device's own.
    pub offset: u64,
    /// No thread of the host reaches it while a launch runs.
    pub own: bool,
    /// Bytes that the device's own malloc was asked for, if it has handed out the region.
    pub heap: Option<u64>,
}

/// A region as the interpreter caches it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) origin: u64,
    pub(crate) mapping: u32,
}

impl Window {
    /// Contains nothing.
    pub(crate) const NONE: Self = Self {
        start: u64::MAX,
        end: 0,
        origin: 0,
        mapping: 0,
    };
}

impl Memory {
    pub(crate) fn new(bytes: u64) -> Result<Self, DeviceError> {
        let arena = Mapping::zeroed(bytes).map_err(|_| DeviceError::OutOfMemory { bytes })?;
        Ok(Self {
            mappings: vec![Some(Arc::new(arena))],
            regions: BTreeMap::new(),
            holes: BTreeMap::new(),
            top: 0,
            size: bytes,
            used: 0,
            placed: BTreeSet::new(),
            heap: BTreeMap::new(),
            shares: false,
            has_shared: false,
        })
    }

    /// Its regions, ascending.
    pub fn regions(&self) -> impl Iterator<Item = Region> {
        self.regions.iter().map(|(&address, part)| Region {
            address,
            bytes: part.bytes,
            shows: part.mapping,
            offset: match part.mapping {
                0 => 0,
                _ => address - part.origin,
            },
            own: self.is_own(part.mapping),
            heap: self.heap.get(&address).copied(),
        })
    }

    /// Makes regions, all of them zero, in a memory that has none.
    pub(crate) fn restore(&mut self, regions: &[Region]) -> Result<(), DeviceError> {
        let mut shown: BTreeMap<u32, u64> = BTreeMap::new();
        for region in regions.iter().filter(|region| region.shows != 0) {
            let end = region.offset.saturating_add(region.bytes);
            let bytes = shown.entry(region.shows).or_insert(0);
            *bytes = end.max(*bytes);
        }
        let mut mappings: BTreeMap<u32, Arc<Mapping>> = BTreeMap::new();
        for (number, bytes) in shown {
            let mapping = Mapping::zeroed(bytes).map_err(|_| DeviceError::OutOfMemory { bytes })?;
            mappings.insert(number, Arc::new(mapping));
        }
        for region in regions {
            let (address, bytes) = (region.address, region.bytes);
            let bad = DeviceError::InvalidRange { address, bytes };
            match mappings.get(&region.shows) {
                None => self.take(address, bytes).ok_or(bad)?,
                Some(mapping) => {
                    let origin = address.checked_sub(region.offset).ok_or(bad)?;
                    let slot = self.add(Arc::clone(mapping), origin, address, bytes)?;
                    if region.own {
                        self.placed.insert(slot);
                    }
                }
            }
            self.heap.extend(region.heap.map(|bytes| (address, bytes)));
        }
        Ok(())
    }

    /// Hands out bytes of the arena at an address, behind all that has been handed out.
    fn take(&mut self, address: u64, bytes: u64) -> Option<()> {
        let offset = address.checked_sub(ARENA)?;
        let room = occupied(bytes)?;
        let end = offset.checked_add(room).filter(|&end| end <= self.size)?;
        let gap = offset.checked_sub(self.top)?;
        if !offset.is_multiple_of(ALIGNMENT) || bytes == 0 {
            return None;
        }
        if gap > 0 {
            self.holes.insert(self.top, gap);
        }
        self.top = end;
        self.used += room;
        let part = Part {
            bytes,
            mapping: 0,
            origin: ARENA,
        };
        self.regions.insert(address, part);
        Some(())
    }

    /// Bytes of the arena.
    pub fn total(&self) -> u64 {
        self.size
    }

    /// Bytes of the arena that are handed out.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Hands out zeroed memory; zero bytes count as one.
    ///
    /// # Errors
    /// When there is no room.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        let bytes = bytes.max(1);
        let full = DeviceError::OutOfMemory { bytes };
        let Some(room) = occupied(bytes) else {
            return Err(full);
        };
        let hole = self.holes.iter().find(|&(_, &length)| length >= room);
        let offset = match hole.map(|(&offset, &length)| (offset, length)) {
            Some((offset, length)) => {
                self.holes.remove(&offset);
                if length > room {
                    self.holes.insert(offset + room, length - room);
                }
                offset
            }
            None => {
                let offset = self.top;
                self.top = offset
                    .checked_add(room)
                    .filter(|&top| top <= self.size)
                    .ok_or(full)?;
                offset
            }
        };
        self.used += room;
        let region = Part {
            bytes,
            mapping: 0,
            origin: ARENA,
        };
        self.regions.insert(ARENA + offset, region);
        Ok(ARENA + offset)
    }

    /// Takes back what [`Memory::alloc`] handed out.
    ///
    /// # Errors
    /// When `address` is not the start of such an allocation.
    pub fn free(&mut self, address: u64) -> Result<(), DeviceError> {
        let region = self.regions.get(&address).copied();
        let Some(region) = region.filter(|region| region.mapping == 0) else {
            return Err(DeviceError::InvalidRange { address, bytes: 0 });
        };
        self.regions.remove(&address);
        let offset = address - ARENA;
        let room = occupied(region.bytes).unwrap_or(region.bytes);
        // Memory is handed out zeroed, so it is cleaned on its way back.
        if let Some(arena) = &self.mappings[0] {
            arena.discard(offset, room);
        }
        self.used -= room;
        self.add_hole(offset, room);
        Ok(())
    }

    fn add_hole(&mut self, mut offset: u64, mut length: u64) {
        let before = self
            .holes
            .range(..offset)
            .next_back()
            .map(|(&at, &len)| (at, len));
        if let Some((at, len)) = before.filter(|&(at, len)| at + len == offset) {
            self.holes.remove(&at);
            offset = at;
            length += len;
        }
        if let Some(len) = self.holes.remove(&(offset + length)) {
            length += len;
        }
        if offset + length == self.top {
            self.top = offset;
        } else {
            self.holes.insert(offset, length);
        }
    }

    /// Bytes that the device's own malloc has handed out.
    pub(crate) fn heap_used(&self) -> u64 {
        self.heap.values().sum()
    }

    /// `malloc` on the device.
    pub(crate) fn alloc_heap(&mut self, bytes: u64) -> Option<u64> {
        let address = self.alloc(bytes).ok()?;
        self.heap.insert(address, bytes);
        Some(address)
    }

    /// `free` on the device; none for what its malloc has not handed out.
    pub(crate) fn free_heap(&mut self, address: u64) -> Option<()> {
        self.heap.remove(&address)?;
        self.free(address).ok()
    }

    /// Lets the device use `bytes` bytes of a mapping, from an offset on, at any address.
    ///
    /// # Errors
    /// When the range is not inside the mapping, or overlaps another region.
    pub fn place(
        &mut self,
        mapping: Arc<Mapping>,
        offset: u64,
        address: u64,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let bad = DeviceError::InvalidRange { address, bytes };
        let last = offset.checked_add(bytes).ok_or(bad.clone())?;
        let origin = address.checked_sub(offset).ok_or(bad.clone())?;
        if last > mapping.bytes() {
            return Err(bad);
        }
        let slot = self.add(mapping, origin, address, bytes)?;
        self.placed.insert(slot);
        Ok(())
    }

    /// The first address behind the arena.
    pub fn end(&self) -> u64 {
        ARENA + self.size
    }

    /// Lets the device use `bytes` bytes of host memory at their host address.
    ///
    /// # Errors
    /// When the range is not inside the mapping, or overlaps another region.
    pub fn attach(
        &mut self,
        mapping: Arc<Mapping>,
        address: u64,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let bad = DeviceError::InvalidRange { address, bytes };
        let end = address.checked_add(bytes).ok_or(bad.clone())?;
        let inside = address >= mapping.address() && end <= mapping.address() + mapping.bytes();
        if !inside {
            return Err(bad);
        }
        let origin = mapping.address();
        self.add(mapping, origin, address, bytes).map(drop)
    }

    /// Adds a region of a mapping whose first byte is at `origin` for the device.
    fn add(
        &mut self,
        mapping: Arc<Mapping>,
        origin: u64,
        address: u64,
        bytes: u64,
    ) -> Result<u32, DeviceError> {
        let bad = DeviceError::InvalidRange { address, bytes };
        let end = address.checked_add(bytes).ok_or(bad.clone())?;
        let before = self.regions.range(..end).next_back();
        let free = before.is_none_or(|(&at, region)| at + region.bytes <= address);
        if !free || bytes == 0 {
            return Err(bad);
        }
        let slot = match self.mappings.iter().position(Option::is_none) {
            Some(slot) => slot,
            None => {
                self.mappings.push(None);
                self.mappings.len() - 1
            }
        };
        self.mappings[slot] = Some(mapping);
        let region = Part {
            bytes,
            mapping: slot as u32,
            origin,
        };
        self.regions.insert(address, region);
        Ok(slot as u32)
    }

    /// Takes away what [`Memory::attach`] gave.
    ///
    /// # Errors
    /// When `address` is not the start of an attached range.
    pub fn detach(&mut self, address: u64) -> Result<Arc<Mapping>, DeviceError> {
        let bad = DeviceError::InvalidRange { address, bytes: 0 };
        let region = self.regions.get(&address).copied();
        let region = region
            .filter(|region| region.mapping != 0)
            .ok_or(bad.clone())?;
        self.regions.remove(&address);
        self.placed.remove(&region.mapping);
        self.mappings[region.mapping as usize].take().ok_or(bad)
    }

    /// Addresses of the device's own memory, handed out or not.
    pub fn arena(&self) -> Range<u64> {
        ARENA..ARENA + self.size
    }

    /// From now on host memory is made so that [`os::touches::PageTable`] tells what of it the host touches, as far as the
    /// system has such memory.
    pub fn show_touches(&mut self) {
        self.shares = true;
    }

    /// Whether there has been host memory of which the system tells that.
    pub fn has_shown_touches(&self) -> bool {
        self.has_shared
    }

    /// Whether an address lies in such memory.
    pub fn shows_touches(&self, address: u64) -> bool {
        let found = self.mapping_at(address);
        found.is_some_and(|(mapping, _)| mapping.is_shared())
    }

    /// The system forgets which pages of a range of host memory the host has touched. False where it never tells.
    pub fn untouch(&self, range: Range<u64>) -> bool {
        let found = self.mapping_at(range.start);
        found.is_some_and(|(mapping, origin)| {
            mapping.untouch(range.start - origin..range.end.saturating_sub(origin))
        })
    }

    /// The mapping that an address lies in, and the address of its first byte.
    fn mapping_at(&self, address: u64) -> Option<(&Mapping, u64)> {
        let window = self.window(address)?;
        let mapping = self.mappings.get(window.mapping as usize)?;
        Some((mapping.as_deref()?, window.origin))
    }

    /// Makes zeroed host memory that host and device both reach at the returned host address.
    ///
    /// # Errors
    /// When there is no room.
    pub fn alloc_host(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        let bytes = bytes.max(1);
        let floor = self.arena().end;
        let shared = match self.shares {
            true => Mapping::shared_above(bytes, floor).ok(),
            false => None,
        };
        self.has_shared |= shared.is_some();
        let mapping = shared
            .map_or_else(|| Mapping::zeroed_above(bytes, floor), Ok)
            .map_err(|_| DeviceError::OutOfMemory { bytes })?;
        let address = mapping.address();
        self.attach(Arc::new(mapping), address, bytes)?;
        Ok(address)
    }

    /// Start and size of the allocation or attached range that contains `address`.
    pub fn containing(&self, address: u64) -> Option<(u64, u64)> {
        let window = self.window(address)?;
        Some((window.start, window.end - window.start))
    }

    /// True for addresses of the arena, handed out or not.
    pub fn is_arena(&self, address: u64) -> bool {
        self.arena().contains(&address)
    }

    /// Copies from the device.
    ///
    /// # Errors
    /// When some of the range is in no region.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut rest = into;
        for (at, count) in self.pieces(address, rest.len() as u64)? {
            let (now, later) = rest.split_at_mut(count as usize);
            self.read_piece(at, now)?;
            rest = later;
        }
        Ok(())
    }

    /// The parts of a range that lie in one region each.
    fn pieces(&self, address: u64, bytes: u64) -> Result<Vec<(u64, u64)>, DeviceError> {
        let bad = || DeviceError::InvalidRange { address, bytes };
        let end = address.checked_add(bytes).ok_or_else(bad)?;
        let mut pieces = Vec::new();
        let mut at = address;
        while at < end {
            let window = self.window(at).ok_or_else(bad)?;
            let count = end.min(window.end) - at;
            pieces.push((at, count));
            at += count;
        }
        Ok(pieces)
    }

    fn read_piece(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let (words, mut at) = self.range(address, into.len() as u64)?;
        let mut rest = into;
        if at.is_multiple_of(4) {
            let whole = rest.len() / 4 * 4;
            let (now, later) = rest.split_at_mut(whole);
            for (bytes, word) in now.chunks_exact_mut(4).zip(&words[(at / 4) as usize..]) {
                bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            at += whole as u64;
            rest = later;
        }
        while !rest.is_empty() {
            let skip = (at % 4) as usize;
            let count = (4 - skip).min(rest.len());
            let bytes = words[(at / 4) as usize]
                .load(Ordering::Relaxed)
                .to_le_bytes();
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&bytes[skip..skip + count]);
            at += count as u64;
            rest = later;
        }
        Ok(())
    }

    /// Copies to the device.
    ///
    /// # Errors
    /// When some of the range is in no region.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        let mut rest = from;
        for (at, count) in self.pieces(address, rest.len() as u64)? {
            let (now, later) = rest.split_at(count as usize);
            self.write_piece(at, now)?;
            rest = later;
        }
        Ok(())
    }

    fn write_piece(&mut self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        let (words, mut at) = self.range(address, from.len() as u64)?;
        let mut rest = from;
        if at.is_multiple_of(4) {
            let (now, later) = rest.as_chunks::<4>();
            for (bytes, word) in now.iter().zip(&words[(at / 4) as usize..]) {
                word.store(u32::from_le_bytes(*bytes), Ordering::Relaxed);
            }
            at += 4 * now.len() as u64;
            rest = later;
        }
        while !rest.is_empty() {
            let skip = (at % 4) as usize;
            let count = (4 - skip).min(rest.len());
            let word = &words[(at / 4) as usize];
            let mut bytes = word.load(Ordering::Relaxed).to_le_bytes();
            bytes[skip..skip + count].copy_from_slice(&rest[..count]);
            word.store(u32::from_le_bytes(bytes), Ordering::Relaxed);
            at += count as u64;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Sets `bytes` bytes to `value`.
    ///
    /// # Errors
    /// When some of the range is in no region.
    pub fn fill(&mut self, address: u64, value: u8, bytes: u64) -> Result<(), DeviceError> {
        for (at, count) in self.pieces(address, bytes)? {
            self.fill_piece(at, value, count)?;
        }
        Ok(())
    }

    fn fill_piece(&mut self, address: u64, value: u8, bytes: u64) -> Result<(), DeviceError> {
        let window = self.window(address).filter(|_| bytes > 0);
        // Zeroing whole device allocations is how programs start; keep their pages uncommitted.
        if let Some(window) = window.filter(|w| {
            let own = w.mapping == 0 || self.placed.contains(&w.mapping);
            value == 0 && own && bytes >= 1 << 16
        }) {
            if let Some(mapping) = &self.mappings[window.mapping as usize] {
                mapping.discard(address - window.origin, bytes);
            }
            return Ok(());
        }
        let chunk = [value; 4096];
        let mut done = 0;
        while done < bytes {
            let count = (bytes - done).min(chunk.len() as u64);
            self.write_piece(address + done, &chunk[..count as usize])?;
            done += count;
        }
        Ok(())
    }

    /// The words of the mapping that holds a range, and the byte offset of the range in it.
    fn range(&self, address: u64, bytes: u64) -> Result<(&[AtomicU32], u64), DeviceError> {
        if bytes == 0 {
            return Ok((&[], 0));
        }
        match self.window(address) {
            Some(window) if bytes <= window.end - address => {
                Ok((self.words(window.mapping), address - window.origin))
            }
            _ => Err(DeviceError::InvalidRange { address, bytes }),
        }
    }

    /// The region that contains `address`.
    pub(crate) fn window(&self, address: u64) -> Option<Window> {
        let (&start, region) = self.regions.range(..=address).next_back()?;
        let end = start + region.bytes;
        (address < end).then_some(Window {
            start,
            end,
            origin: region.origin,
            mapping: region.mapping,
        })
    }

    /// Whether only the device reaches a mapping while a launch runs.
    pub(crate) fn is_own(&self, mapping: u32) -> bool {
        mapping == 0 || self.placed.contains(&mapping)
    }

    /// The words of a mapping.
    pub(crate) fn words(&self, mapping: u32) -> &[AtomicU32] {
        match self.mappings.get(mapping as usize) {
            Some(Some(mapping)) => mapping.words(),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_is_reused_and_zeroed() {
        let mut memory = Memory::new(1 << 20).unwrap();
        let a = memory.alloc(100).unwrap();
        let b = memory.alloc(1000).unwrap();
        assert_eq!((a % ALIGNMENT, b - a), (0, ALIGNMENT));
        memory.write(a, &[7; 100]).unwrap();
        memory.free(a).unwrap();
        assert!(memory.read(a, &mut [0]).is_err() && memory.free(a).is_err());
        let again = memory.alloc(100).unwrap();
        assert_eq!(again, a);
        let mut bytes = [1; 100];
        memory.read(a, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 100]);
        memory.free(b).unwrap();
        memory.free(a).unwrap();
        assert_eq!((memory.used(), memory.top), (0, 0));
    }

    #[test]
    fn bounds_are_exact() {
        let mut memory = Memory::new(1 << 20).unwrap();
        let a = memory.alloc(10).unwrap();
        memory.write(a + 3, &[1, 2, 3, 4, 5, 6, 7]).unwrap();
        assert!(memory.write(a + 4, &[0; 7]).is_err());
        assert!(memory.fill(a, 9, 11).is_err());
        let mut bytes = [0; 10];
        memory.read(a, &mut bytes).unwrap();
        assert_eq!(bytes, [0, 0, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(memory.alloc(2 << 20).is_err());
    }

    #[test]
    fn host_memory_keeps_its_address() {
        let mut memory = Memory::new(4096).unwrap();
        let mapping = Arc::new(Mapping::zeroed(4096).unwrap());
        let address = mapping.address() + 8;
        memory.attach(Arc::clone(&mapping), address, 100).unwrap();
        assert!(
            memory
                .attach(Arc::clone(&mapping), address + 50, 100)
                .is_err()
        );
        memory.write(address, &[1, 0, 0, 0]).unwrap();
        assert_eq!(mapping.words()[2].load(Ordering::Relaxed), 1);
        memory.detach(address).unwrap();
        assert!(memory.read(address, &mut [0]).is_err());
    }
}
