//! The memory of the device's journal. There is one, so one launch at a time can keep it.

use bytemuck::Zeroable;
use driver::{Device, DeviceError};
use shadow::layout::{Journal, JournalEntry, Lock};

use super::area::Area;

/// Entries of a journal, at most.
const MOST_ENTRIES: u64 = 1 << 28;
/// At least, or there is none.
const LEAST_ENTRIES: u64 = 1 << 16;
/// A journal gets this part of the device's memory that is free when it is first needed.
const PART: u64 = 8;
/// Locks of a journal; a power of two.
const LOCKS: u64 = 1 << 12;
/// Entries that are read at once.
const PIECE: u64 = 1 << 15;

/// Bytes of an entry.
const ENTRY: u64 = size_of::<JournalEntry>() as u64;

/// The journal, its entries and its locks.
#[derive(Debug)]
pub(super) struct JournalMemory {
    journal: Area,
    /// What the next launch finds in it, as the host sees it; 0 before there is one.
    sent: u64,
    entries: Area,
    locks: Area,
    capacity: u64,
    /// Most that may be asked for, since the program has needed the memory itself.
    most: u64,
    /// How many entries the last launch has left.
    used: u64,
    /// The launch that keeps it.
    pub(super) keeper: Option<usize>,
}

impl Default for JournalMemory {
    fn default() -> Self {
        Self {
            journal: Area::default(),
            sent: 0,
            entries: Area::default(),
            locks: Area::default(),
            capacity: 0,
            most: MOST_ENTRIES,
            used: 0,
            keeper: None,
        }
    }
}

impl JournalMemory {
    /// Makes a journal ready, and gives its address.
    pub(super) fn set_up(&mut self, device: &mut dyn Device) -> Result<u64, String> {
        let entries = self.entries(device)?;
        // Whoever was killed may have left a lock taken.
        let locks = LOCKS * size_of::<Lock>() as u64;
        let locks = self.locks.reserve_zeroed(device, locks)?;
        let at = self.journal.reserve(device, size_of::<Journal>() as u64)?;
        let journal = Journal {
            entries,
            capacity: self.capacity,
            count: 0,
            locks,
            lock_mask: LOCKS - 1,
        };
        let mut set_up = |device: &mut dyn Device| {
            if self.sent == 0 {
                self.sent = device.alloc_visible(size_of::<Journal>() as u64)?;
            }
            device.wipe(entries, ENTRY * self.used)?;
            device.write(self.sent, bytemuck::bytes_of(&journal))?;
            device.send(at, self.sent, size_of::<Journal>() as u64)
        };
        set_up(device).map_err(|error| error.to_string())?;
        Ok(at)
    }

    /// Room for entries: as much as there is, within reason.
    fn entries(&mut self, device: &mut dyn Device) -> Result<u64, String> {
        if self.capacity == 0 {
            let part = device.free_memory() / PART / ENTRY;
            let mut wanted = part.clamp(LEAST_ENTRIES, self.most);
            loop {
                match self.entries.reserve(device, ENTRY * wanted) {
                    Ok(_) => break,
                    Err(why) if wanted / 2 < LEAST_ENTRIES => return Err(why),
                    Err(_) => wanted /= 2,
                }
            }
            self.capacity = wanted;
        }
        Ok(self.entries.0)
    }

    /// Gives the entries back to a program that has no memory left; half of them come back, if they can, with the
    /// next journal. False when there are none, or a launch keeps them.
    pub(super) fn yield_entries(&mut self, device: &mut dyn Device) -> bool {
        let has = self.capacity != 0 && self.keeper.is_none();
        if has {
            self.entries.give_back(device);
            self.most = (self.capacity / 2).max(LEAST_ENTRIES);
            (self.capacity, self.used) = (0, 0);
        }
        has
    }

    /// Bytes of the entries that the last launch has left.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used * ENTRY
    }

    /// Calls `each` with the entries of the last launch's journal, in order, until it wants no more;
    /// gives how many were dropped or not wanted.
    pub(super) fn read(
        &mut self,
        device: &dyn Device,
        mut each: impl FnMut(&JournalEntry) -> bool,
    ) -> Result<u64, DeviceError> {
        let mut journal = Journal::zeroed();
        device.read(self.journal.0, bytemuck::bytes_of_mut(&mut journal))?;
        let kept = journal.count.min(journal.capacity);
        self.used = kept;
        let mut piece = vec![JournalEntry::zeroed(); kept.min(PIECE) as usize];
        for first in (0..kept).step_by(PIECE as usize) {
            let count = (kept - first).min(PIECE) as usize;
            let at = self.entries.0 + first * ENTRY;
            device.read(at, bytemuck::cast_slice_mut(&mut piece[..count]))?;
            if let Some(left) = piece[..count].iter().position(|entry| !each(entry)) {
                return Ok(journal.count - first - left as u64);
            }
        }
        Ok(journal.count - kept)
    }
}
