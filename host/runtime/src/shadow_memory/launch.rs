//! What every launch in flight has for itself, and what it leaves there.

use bytemuck::Zeroable;
use driver::{Device, DeviceError};
use shadow::layout::{
    ACCESS_POSSIBLE, Counters, LaunchBlock, PairSlot, Record, SITE_ID_MASK, pair_key,
};

use super::PAIRS;
use super::area::{Area, release};
use crate::log;

/// More records than any launch counts.
const UNFETCHED: u64 = u64::MAX;

/// Pair table, records, counters and launch block of one launch.
#[derive(Debug)]
pub(super) struct LaunchMemory {
    pub(super) pairs: u64,
    pub(super) records: u64,
    pub(super) block: u64,
    /// Behind the block.
    pub(super) counters: u64,
    /// What the next launch finds in both, as the host sees it, behind the records.
    sent: u64,
    /// The counters of the last launch, as the host sees them; [`UNFETCHED`] until they are there.
    fetched: u64,
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
        let failed = |error: DeviceError| format!("no memory for race records: {error}");
        let bytes = |n: u64, size: usize| n * size as u64;
        let pairs = bytes(PAIRS, size_of::<PairSlot>());
        // What was recorded is to outlive a device that fails.
        let (blocks, counters) = (size_of::<[LaunchBlock; 2]>(), size_of::<Counters>());
        let (sent, block) = (
            bytes(u64::from(records), size_of::<Record>()),
            (blocks + counters) as u64,
        );
        let visible = sent + block + counters as u64;
        let mut places = [0; 3];
        let reserved = (|| {
            places[0] = device.alloc(pairs)?;
            places[1] = device.alloc_visible(visible)?;
            places[2] = device.alloc(block)?;
            Ok(())
        })();
        if let Err(error) = reserved {
            release(device, places);
            return Err(failed(error));
        }
        let [pairs, records, at] = places;
        Ok(Self {
            pairs,
            records,
            block: at,
            counters: at + blocks as u64,
            sent: records + sent,
            fetched: records + sent + block,
            grid_epochs: Area::default(),
            orders: Area::default(),
            busy: false,
            kept: false,
            spare: false,
            used_records: 0,
            conflicts: false,
        })
    }

    /// Any launch may have it.
    pub(super) fn is_free(&self) -> bool {
        !self.busy && !self.kept
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
            device.wipe(self.pairs, PAIRS * size_of::<PairSlot>() as u64)?;
        }
        let used = self.used_records * size_of::<Record>() as u64;
        if used > 0 {
            device.fill(self.records, 0, used)?;
        }
        let unfetched = Counters {
            records: UNFETCHED,
            ..Counters::zeroed()
        };
        device.write(self.fetched, bytemuck::bytes_of(&unfetched))?;
        device.write(self.sent, bytemuck::bytes_of(&blocks))?;
        // The counters behind them are always zero here.
        let bytes = size_of_val(&blocks) + size_of::<Counters>();
        device.send(self.block, self.sent, bytes as u64)
    }

    /// Asks for what the launch will have counted.
    pub(super) fn fetch(&self, device: &mut dyn Device) -> Result<(), DeviceError> {
        device.fetch(self.fetched, self.counters, size_of::<Counters>() as u64)
    }

    /// Reads what a launch has found that may still run, as far as it lies in memory of the host.
    pub(super) fn look(&self, device: &dyn Device, capacity: u64) -> Result<Drained, DeviceError> {
        let mut records = vec![Record::zeroed(); capacity as usize];
        device.read(self.records, bytemuck::cast_slice_mut(&mut records))?;
        let complete = records.into_iter().filter(|record| record.ready == 1);
        let records: Vec<_> = complete.map(Conflict::once).collect();
        let mut counters = Counters::zeroed();
        counters.records = records.len() as u64;
        counters.conflicts = counters.records;
        Ok(Drained {
            counters,
            records,
            dropped: 0,
        })
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
        let mut counted = device.read(self.fetched, bytemuck::bytes_of_mut(&mut counters));
        if counters.records == UNFETCHED {
            counters = Counters::zeroed();
            counted = device.read(self.counters, bytemuck::bytes_of_mut(&mut counters));
        }
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
        // A record that its thread could not finish, because the launch was killed, says nothing.
        let complete = records.into_iter().filter(|record| record.ready == 1);
        let records = complete.map(|first| {
            let pair = pairs.iter().find(|pair| pair.key == key(&first));
            pair.map_or_else(
                || Conflict::once(first),
                |pair| Conflict {
                    first,
                    count: pair.count,
                    span: [!pair.not_lowest, pair.highest],
                },
            )
        });
        let mut records: Vec<_> = records.collect();
        for Conflict { first, .. } in &mut records {
            first.site &= SITE_ID_MASK;
            first.previous_site &= SITE_ID_MASK;
        }
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

/// The conflicts of a pair of witnesses.
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    /// The first.
    pub first: Record,
    /// How many.
    pub count: u64,
    /// The lowest and the highest address, or offset in shared memory, at which they were.
    pub span: [u64; 2],
}

impl Conflict {
    fn once(first: Record) -> Self {
        Self {
            first,
            count: 1,
            span: [first.address; 2],
        }
    }
}

/// What a launch found.
#[derive(Clone, Debug, Default)]
pub struct Drained {
    /// What was counted.
    pub counters: Counters,
    /// The conflicts of every pair of witnesses.
    pub records: Vec<Conflict>,
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
