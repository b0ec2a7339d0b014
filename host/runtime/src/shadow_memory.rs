//! The reserved device memory: cells, witnesses, pair table, records, counters, launch block.

use bytemuck::Zeroable;
use driver::{Device, DeviceError};
use shadow::layout::{
    ACCESS_POSSIBLE, Counters, Journal, JournalEntry, LaunchBlock, Lock, MAX_GENERATION, PairSlot,
    Record, WITNESS_BYTES, pair_key,
};
use shadow::order::COUNTS_BYTES;
use shadow::plan::{self, Shape};

use crate::log;
use crate::options::ShadowSize;

/// Slots of the pair table; a power of two.
const PAIRS: u64 = 1 << 13;
/// Bytes of a cell and its witnesses.
const BYTES_PER_CELL: u64 = 8 + WITNESS_BYTES;
/// Fewer cells are not worth having.
const MIN_INDEX_BITS: u32 = 12;
/// Granules of 2^35 bytes at most in exact mode.
const MAX_INDEX_BITS: u32 = 33;

/// Slots for shared memory get this part of the cells that global memory has.
const SHARED_PART: u64 = 4;
/// As many cells, but no more, has shared memory at least in exact mode.
const MAX_SHARED_CELLS: u64 = 1 << 26;

/// Entries of a journal. Memory of the simulated device costs nothing before it is used.
const JOURNAL_ENTRIES: u64 = 1 << 28;
/// Locks of a journal; a power of two.
const LOCKS: u64 = 1 << 12;

/// The shadow of one device.
#[derive(Debug)]
pub struct ShadowMemory {
    size: ShadowSize,
    records: u32,
    sample_mask: u64,
    cells: u64,
    witnesses: u64,
    index_bits: u32,
    /// Pairs, records, counters and the block, in one allocation each.
    pairs: u64,
    record_area: u64,
    counters: u64,
    block: u64,
    /// The cells of shared memory, how many there are, and their witnesses.
    shared: (u64, u64),
    shared_witnesses: u64,
    /// The journal, its entries and its locks, and how many entries the last launch has left.
    journal: Area,
    entries: Area,
    locks: Area,
    used_entries: u64,
    /// The grid barriers that each CTA has passed.
    grid_epochs: Area,
    /// What each CTA has counted for the fence rule, and the stamps of both kinds of witnesses.
    orders: Area,
    stamps: [Area; 2],
    /// A block that covers nothing, for launches that are not to be checked.
    idle: u64,
    generation: u32,
    /// What was asked for, as log2 of the number of cells, so that it is tried once.
    wanted: u32,
    /// Records of the last launch, to be wiped before the next.
    used_records: u64,
    /// The last launch left something in the pair table.
    conflicts: bool,
    /// What to tell about a shadow that is smaller than asked for.
    shrunk: Option<String>,
}

/// Who follows the order of threads that cells do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nobody.
    Barriers,
    /// The fence rule, on the device.
    FenceRule,
    /// Happens-before, from a journal.
    Journal,
}

/// The shared memory of a launch.
#[derive(Clone, Copy, Debug)]
pub struct SharedShape {
    /// Bytes of a CTA, from the beginning of its window.
    pub bytes: u64,
    /// log2 of the granule's bytes: 0, 1 or 2.
    pub granule_log2: u32,
}

/// How the cells of shared memory are divided.
#[derive(Clone, Copy, Debug, Default)]
struct Slots {
    /// log2 of the cells in a slot.
    index_bits: u32,
    /// log2 of the number of slots.
    slot_bits: u32,
}

/// Memory that only some launches need: its address, and its bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Area(u64, u64);

impl Area {
    /// Makes sure that there are so many bytes, and gives the address.
    fn reserve(&mut self, device: &mut dyn Device, bytes: u64) -> Result<u64, String> {
        if self.1 < bytes {
            release(device, [self.0, 0]);
            *self = Self::default();
            let at = device.alloc(bytes);
            *self = Self(
                at.map_err(|error| format!("no shadow memory: {error}"))?,
                bytes,
            );
        }
        Ok(self.0)
    }

    /// The same, all zero.
    fn reserve_zeroed(&mut self, device: &mut dyn Device, bytes: u64) -> Result<u64, String> {
        let at = self.reserve(device, bytes)?;
        let filled = device.fill(at, 0, bytes);
        filled.map_err(|error| error.to_string())?;
        Ok(at)
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
    /// The counts, in the log's terms.
    pub(crate) fn counted(&self, cleared: bool) -> log::Counters {
        log::Counters {
            conflicts: self.counters.conflicts,
            evictions: self.counters.evictions,
            undecided: self.counters.undecided,
            outside: self.counters.outside,
            unreleased: self.counters.unreleased,
            ordered: self.counters.ordered,
            dropped: self.dropped,
            cleared,
        }
    }
}

/// A launch was prepared.
#[derive(Clone, Copy, Debug)]
pub struct Armed {
    /// Value of the hidden parameter.
    pub parameter: u64,
    /// The cells were cleared because the generations had run out.
    pub cleared: bool,
}

impl ShadowMemory {
    /// Reserves nothing yet. One word of `sample`, a power of two, is to be checked.
    pub fn new(size: ShadowSize, records: u32, sample: u32) -> Self {
        Self {
            size,
            records,
            sample_mask: u64::from(sample.max(1) - 1),
            cells: 0,
            witnesses: 0,
            index_bits: 0,
            pairs: 0,
            record_area: 0,
            counters: 0,
            block: 0,
            shared: (0, 0),
            shared_witnesses: 0,
            journal: Area::default(),
            entries: Area::default(),
            locks: Area::default(),
            used_entries: 0,
            grid_epochs: Area::default(),
            orders: Area::default(),
            stamps: [Area::default(); 2],
            idle: 0,
            generation: 0,
            wanted: 0,
            used_records: 0,
            conflicts: false,
            shrunk: None,
        }
    }

    /// One line, once, when the shadow is smaller than asked for.
    pub fn shrunk(&mut self) -> Option<String> {
        self.shrunk.take()
    }

    /// Bytes of cells and witnesses.
    pub fn bytes(&self) -> u64 {
        let global = match self.cells {
            0 => 0,
            _ => BYTES_PER_CELL << self.index_bits,
        };
        global + BYTES_PER_CELL * self.shared.1
    }

    /// The hidden parameter of a launch that is not checked.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn idle(&mut self, device: &mut dyn Device) -> Result<u64, DeviceError> {
        if self.idle == 0 {
            // The fast path reads a cell before it knows that nothing is covered, and what lies
            // outside is counted.
            let blocks = size_of::<[LaunchBlock; 2]>();
            let bytes = blocks + size_of::<Counters>() + 8;
            let at = device.alloc(bytes as u64)?;
            let counters = at + blocks as u64;
            let cells = counters + size_of::<Counters>() as u64;
            let block = LaunchBlock {
                cells,
                counters,
                index_bits: 0,
                barrier_shift: 31,
                cta_shift: 31,
                tag_shift: 64,
                grid_shift: 64,
                ..LaunchBlock::zeroed()
            };
            device.write(at, bytemuck::bytes_of(&[block, block]))?;
            self.idle = at;
        }
        Ok(self.idle)
    }

    /// Sets up a checked launch over the window `(base, bytes)`, and over `shared` if the kernel
    /// accesses shared memory; `order` says who follows what the cells do not.
    ///
    /// # Errors
    /// Why it cannot be checked.
    pub fn arm(
        &mut self,
        device: &mut dyn Device,
        window: (u64, u64),
        (shared, order): (Option<SharedShape>, Order),
        mut shape: Shape,
    ) -> Result<Armed, String> {
        shape.window_bytes = window.1;
        let generations_ran_out = self.generation == MAX_GENERATION;
        self.reserve(device, &shape, generations_ran_out)?;
        shape.index_bits = self.index_bits;
        let widths = plan::widths(&shape).map_err(|error| error.to_string())?;
        let shifts = widths.shifts();
        let slots = match shared {
            Some(shared) => self.reserve_slots(device, &shape, shared)?,
            None => Slots::default(),
        };
        let journal = match order {
            Order::Journal => self.reserve_journal(device)?,
            _ => 0,
        };
        let grid_epochs = match shape.grid_barriers {
            true => self.grid_epochs.reserve_zeroed(device, 8 * shape.ctas)?,
            false => 0,
        };
        let (orders, stamps) = match order {
            Order::FenceRule => self.reserve_orders(device, &shape)?,
            _ => (0, [0, 0]),
        };
        self.generation = self.generation % MAX_GENERATION + 1;
        let block = LaunchBlock {
            cells: self.cells,
            witnesses: self.witnesses,
            window_base: window.0,
            window_bytes: window.1,
            index_mask: (1 << self.index_bits) - 1,
            index_bits: self.index_bits,
            barrier_shift: shifts.barrier,
            cta_shift: shifts.cta,
            tag_shift: shifts.tag,
            generation: self.generation,
            pair_mask: (PAIRS - 1) as u32,
            pairs: self.pairs,
            records: self.record_area,
            record_capacity: u64::from(self.records),
            counters: self.counters,
            slot_mask: 0,
            in_turn: 0,
            journal,
            grid_shift: shifts.grid,
            grid_epochs,
            orders,
            stamps: stamps[0],
            sample_mask: self.sample_mask,
        };
        let shifts = widths.shared_shifts();
        let behind = LaunchBlock {
            cells: self.shared.0,
            witnesses: self.shared_witnesses,
            stamps: stamps[1],
            window_base: 0,
            window_bytes: shared.map_or(0, |shared| shared.bytes),
            index_mask: (1 << slots.index_bits) - 1,
            index_bits: slots.index_bits,
            tag_shift: shifts.tag,
            slot_mask: (1 << slots.slot_bits) - 1,
            in_turn: u32::from(shifts.in_turn),
            ..block
        };
        let set_up = |device: &mut dyn Device| {
            if self.conflicts {
                device.fill(self.pairs, 0, PAIRS * size_of::<PairSlot>() as u64)?;
            }
            device.fill(self.counters, 0, size_of::<Counters>() as u64)?;
            let used = self.used_records * size_of::<Record>() as u64;
            device.fill(self.record_area, 0, used)?;
            device.write(self.block, bytemuck::bytes_of(&[block, behind]))
        };
        set_up(device).map_err(|error| error.to_string())?;
        Ok(Armed {
            parameter: self.block,
            cleared: generations_ran_out,
        })
    }

    /// Reads what the launch found.
    ///
    /// # Errors
    /// When the device cannot be read.
    pub fn drain(&mut self, device: &dyn Device) -> Result<Drained, DeviceError> {
        let mut counters = Counters::zeroed();
        self.conflicts = true;
        device.read(self.counters, bytemuck::bytes_of_mut(&mut counters))?;
        self.conflicts = counters.conflicts > 0;
        if counters.records == 0 {
            return Ok(Drained {
                counters,
                ..Drained::default()
            });
        }
        let kept = counters.records.min(u64::from(self.records));
        self.used_records = kept;
        let mut records = vec![Record::zeroed(); kept as usize];
        device.read(self.record_area, bytemuck::cast_slice_mut(&mut records))?;
        let mut pairs = vec![PairSlot::zeroed(); PAIRS as usize];
        device.read(self.pairs, bytemuck::cast_slice_mut(&mut pairs))?;
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
        Ok(Drained {
            counters,
            records: complete.map(|record| (record, count(&record))).collect(),
            dropped: counters.records - kept,
        })
    }

    /// Makes a journal ready, and gives its address.
    fn reserve_journal(&mut self, device: &mut dyn Device) -> Result<u64, String> {
        let size = size_of::<JournalEntry>() as u64;
        let entries = self.entries.reserve(device, size * JOURNAL_ENTRIES)?;
        // Whoever was killed may have left a lock taken.
        let locks = LOCKS * size_of::<Lock>() as u64;
        let locks = self.locks.reserve_zeroed(device, locks)?;
        let at = self.journal.reserve(device, size_of::<Journal>() as u64)?;
        let journal = Journal {
            entries,
            capacity: JOURNAL_ENTRIES,
            count: 0,
            locks,
            lock_mask: LOCKS - 1,
        };
        let set_up = |device: &mut dyn Device| {
            device.fill(entries, 0, size * self.used_entries)?;
            device.write(at, bytemuck::bytes_of(&journal))
        };
        set_up(device).map_err(|error| error.to_string())?;
        Ok(at)
    }

    /// Calls `each` with the entries of the last launch's journal, in order; gives how many were
    /// dropped.
    ///
    /// # Errors
    /// When the device cannot be read.
    pub fn read_journal(
        &mut self,
        device: &dyn Device,
        mut each: impl FnMut(&JournalEntry),
    ) -> Result<u64, DeviceError> {
        let mut journal = Journal::zeroed();
        device.read(self.journal.0, bytemuck::bytes_of_mut(&mut journal))?;
        let kept = journal.count.min(journal.capacity);
        self.used_entries = kept;
        let size = size_of::<JournalEntry>() as u64;
        let mut piece = [JournalEntry::zeroed(); 1024];
        for first in (0..kept).step_by(piece.len()) {
            let count = (kept - first).min(piece.len() as u64) as usize;
            let at = self.entries.0 + first * size;
            device.read(at, bytemuck::cast_slice_mut(&mut piece[..count]))?;
            piece[..count].iter().for_each(&mut each);
        }
        Ok(journal.count - kept)
    }

    /// Makes sure that there are cells. Fresh ones are zero, which clears old generations.
    fn reserve(
        &mut self,
        device: &mut dyn Device,
        shape: &Shape,
        renew: bool,
    ) -> Result<(), String> {
        if self.block == 0 {
            let bytes = |n: u64, size: usize| n * size as u64;
            let small = |device: &mut dyn Device, bytes| {
                device
                    .alloc(bytes)
                    .map_err(|error| format!("no memory for race records: {error}"))
            };
            self.pairs = small(device, bytes(PAIRS, size_of::<PairSlot>()))?;
            self.record_area = small(device, bytes(u64::from(self.records), size_of::<Record>()))?;
            self.counters = small(device, size_of::<Counters>() as u64)?;
            self.block = small(device, size_of::<[LaunchBlock; 2]>() as u64)?;
        }
        let wanted = match self.size {
            ShadowSize::Exact => {
                let granules = shape.window_bytes.div_ceil(1 << shape.granule_log2);
                let bits = granules.max(1).next_power_of_two().trailing_zeros();
                // Memory that grows would renew the cells at every launch; round up.
                bits.max(self.index_bits).max(MIN_INDEX_BITS)
            }
            ShadowSize::Fraction(part) => fitting((device.total_memory() as f64 * part) as u64),
            ShadowSize::Bytes(bytes) => fitting(bytes),
        };
        let enough = self.cells != 0 && (self.index_bits >= wanted || self.wanted >= wanted);
        if enough && !renew {
            return Ok(());
        }
        self.release_cells(device);
        self.generation = 0;
        self.wanted = wanted;
        let mut last = String::new();
        for bits in (MIN_INDEX_BITS..=wanted.min(MAX_INDEX_BITS)).rev() {
            match allocate(device, 1 << bits) {
                Ok((cells, witnesses)) => {
                    (self.cells, self.witnesses, self.index_bits) = (cells, witnesses, bits);
                    if bits < wanted {
                        self.shrunk = Some(format!(
                            "the shadow memory has {} MiB instead of {} MiB, so granules share cells",
                            (BYTES_PER_CELL << bits) >> 20,
                            (u128::from(BYTES_PER_CELL) << wanted) >> 20,
                        ));
                    }
                    return Ok(());
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(format!("no shadow memory: {last}"))
    }

    /// Makes sure that there are cells for shared memory: a slot per CTA, or as many as may be.
    fn reserve_slots(
        &mut self,
        device: &mut dyn Device,
        shape: &Shape,
        shared: SharedShape,
    ) -> Result<Slots, String> {
        let granules = shared.bytes.max(1).div_ceil(1 << shared.granule_log2);
        let index_bits = granules.next_power_of_two().trailing_zeros();
        let part = (1 << self.index_bits) / SHARED_PART;
        let most = match self.size {
            ShadowSize::Exact => MAX_SHARED_CELLS.max(part),
            ShadowSize::Fraction(_) | ShadowSize::Bytes(_) => part,
        };
        let mut slot_bits = shape.ctas.max(1).next_power_of_two().trailing_zeros();
        slot_bits = slot_bits.min(most.max(1).ilog2().saturating_sub(index_bits));
        loop {
            let cells = 1 << (index_bits + slot_bits);
            if cells <= self.shared.1 {
                break;
            }
            self.release_slots(device);
            match allocate(device, cells) {
                Ok((at, witnesses)) => {
                    (self.shared, self.shared_witnesses) = ((at, cells), witnesses);
                    break;
                }
                Err(error) if slot_bits == 0 => {
                    return Err(format!("no shadow memory for shared memory: {error}"));
                }
                Err(_) => slot_bits -= 1,
            }
        }
        Ok(Slots {
            index_bits,
            slot_bits,
        })
    }

    /// What the fence rule needs: zeroed counts, and a stamp beside each witness. A stamp is never
    /// older than its witness.
    fn reserve_orders(
        &mut self,
        device: &mut dyn Device,
        shape: &Shape,
    ) -> Result<(u64, [u64; 2]), String> {
        let counts = COUNTS_BYTES * shape.ctas;
        let orders = self.orders.reserve_zeroed(device, counts)?;
        let [global, shared] = &mut self.stamps;
        let global = global.reserve(device, WITNESS_BYTES << self.index_bits)?;
        let shared = shared.reserve(device, WITNESS_BYTES * self.shared.1)?;
        Ok((orders, [global, shared]))
    }

    fn release_cells(&mut self, device: &mut dyn Device) {
        release(device, [self.cells, self.witnesses]);
        (self.cells, self.witnesses) = (0, 0);
        // Their generations start anew as well.
        self.release_slots(device);
    }

    fn release_slots(&mut self, device: &mut dyn Device) {
        release(device, [self.shared.0, self.shared_witnesses]);
        (self.shared, self.shared_witnesses) = ((0, 0), 0);
    }
}

/// log2 of the number of cells that fit `bytes`, within reason.
fn fitting(bytes: u64) -> u32 {
    (bytes / BYTES_PER_CELL)
        .max(1)
        .ilog2()
        .clamp(MIN_INDEX_BITS, MAX_INDEX_BITS)
}

fn release(device: &mut dyn Device, addresses: [u64; 2]) {
    for address in addresses.into_iter().filter(|&a| a != 0) {
        // A failing free costs memory, not correctness.
        let _ = device.free(address);
    }
}

/// That many cells, and their witnesses.
fn allocate(device: &mut dyn Device, count: u64) -> Result<(u64, u64), DeviceError> {
    let cells = device.alloc(8 * count)?;
    match device.alloc(WITNESS_BYTES * count) {
        Ok(witnesses) => Ok((cells, witnesses)),
        Err(error) => {
            let _ = device.free(cells);
            Err(error)
        }
    }
}
