//! What every launch in flight has for itself, and what it leaves there.

use bytemuck::Zeroable;
use driver::{Device, DeviceError};
use shadow::layout::{ACCESS_POSSIBLE, Counters, LaunchBlock, PairSlot, Record, pair_key};

use super::PAIRS;
use super::area::Area;
use crate::log;

/// Pair table, records, counters and launch block of one launch.
#[derive(Debug)]
pub(super) struct LaunchMemory {
    pub(super) pairs: u64,
    pub(super) records: u64,
    pub(super) counters: u64,
    pub(super) block: u64,
    /// The grid barriers that each CTA has passed.
    pub(super) grid_epochs: Area,
    /// What each CTA has counted for the fence rule.
    pub(super) orders: Area,
    /// A launch uses it.
    pub(super) busy: bool,
    /// It belongs to the node of a graph, and to no other launch.
    pub(super) kept: bool,
    /// That node is gone, and another may have it.
    pub(super) spare: bool,
    /// Records of the last launch, to be wiped before the next.
    used_records: u64,
    /// The last launch left something in the pair table.
    conflicts: bool,
}

impl LaunchMemory {
    /// Reserves room for so many records.
    pub(super) fn new(device: &mut dyn Device, records: u32) -> Result<Self, String> {
        let failed = |error| format!("no memory for race records: {error}");
        let bytes = |n: u64, size: usize| n * size as u64;
        let pairs = bytes(PAIRS, size_of::<PairSlot>());
        // What was recorded is to outlive a device that fails.
        let records = bytes(u64::from(records), size_of::<Record>());
        Ok(Self {
            pairs: device.alloc(pairs).map_err(failed)?,
            records: device.alloc_visible(records).map_err(failed)?,
            counters: device.alloc(size_of::<Counters>() as u64).map_err(failed)?,
            block: device
                .alloc(size_of::<[LaunchBlock; 2]>() as u64)
                .map_err(failed)?,
            grid_epochs: Area::default(),
            orders: Area::default(),
            busy: false,
            kept: false,
            spare: false,
            used_records: 0,
            conflicts: false,
        })
    }

    /// Bytes for what CTAs count.
    pub(super) fn counted_bytes(&self) -> u64 {
        self.orders.bytes() + self.grid_epochs.bytes()
    }

    /// Wipes what the last launch has left, and writes the block of the next.
    pub(super) fn set_up(
        &mut self,
        device: &mut dyn Device,
        blocks: [LaunchBlock; 2],
    ) -> Result<(), DeviceError> {
        if self.conflicts {
            device.fill(self.pairs, 0, PAIRS * size_of::<PairSlot>() as u64)?;
        }
        device.fill(self.counters, 0, size_of::<Counters>() as u64)?;
        let used = self.used_records * size_of::<Record>() as u64;
        if used > 0 {
            device.fill(self.records, 0, used)?;
        }
        device.write(self.block, bytemuck::bytes_of(&blocks))
    }

    /// Reads what the launch found; there is room for `capacity` records.
    pub(super) fn drain(
        &mut self,
        device: &dyn Device,
        capacity: u64,
    ) -> Result<Drained, DeviceError> {
        let mut counters = Counters::zeroed();
        self.conflicts = true;
        // A device that has failed cannot be read, but for the records.
        let counted = device.read(self.counters, bytemuck::bytes_of_mut(&mut counters));
        let lost = counted.is_err();
        if lost {
            counters.records = capacity;
        }
        self.conflicts = counters.conflicts > 0 || lost;
        if counters.records == 0 {
            return Ok(Drained {
                counters,
                ..Drained::default()
            });
        }
        let kept = counters.records.min(capacity);
        self.used_records = kept;
        let mut records = vec![Record::zeroed(); kept as usize];
        device.read(self.records, bytemuck::cast_slice_mut(&mut records))?;
        let mut pairs = vec![PairSlot::zeroed(); PAIRS as usize];
        if !lost {
            device.read(self.pairs, bytemuck::cast_slice_mut(&mut pairs))?;
        }
        let key = |r: &Record| {
            let possible = r.access & ACCESS_POSSIBLE != 0;
            pair_key(r.verdict, r.site, r.previous_site, possible)
        };
        let count = |r: &Record| {
            pairs
                .iter()
                .find(|p| p.key == key(r))
                .map_or(1, |p| p.count)
        };
        // A record that its thread could not finish, because the launch was killed, says nothing.
        let complete = records.into_iter().filter(|record| record.ready == 1);
        let records: Vec<_> = complete.map(|record| (record, count(&record))).collect();
        if lost {
            counters.records = records.len() as u64;
            counters.conflicts = counters.records;
        }
        Ok(Drained {
            counters,
            records,
            dropped: counters.records.saturating_sub(kept),
        })
    }
}

/// What a launch found.
#[derive(Clone, Debug, Default)]
pub struct Drained {
    /// What was counted.
    pub counters: Counters,
    /// The first conflict of every pair of witnesses, and how often the pair conflicted.
    pub records: Vec<(Record, u64)>,
    /// Records that found no room.
    pub dropped: u64,
}

impl Drained {
    /// The counts, in the log's terms; what was known before stays.
    pub(crate) fn counted(&self, before: log::Counters) -> log::Counters {
        log::Counters {
            conflicts: self.counters.conflicts,
            evictions: self.counters.evictions,
            undecided: self.counters.undecided,
            outside: self.counters.outside,
            unreleased: self.counters.unreleased,
            ordered: self.counters.ordered,
            dropped: self.dropped,
            ..before
        }
    }
}
