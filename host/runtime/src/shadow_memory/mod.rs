//! The reserved device memory: cells, witnesses, pair table, records, counters, launch block.
//!
//! Several launches can be in flight. They share the cells, in which each has a generation of its own,
//! and have a [`LaunchMemory`] each.

mod area;
mod journal;
mod launch;
mod slots;

use bytemuck::Zeroable;
use driver::{Device, DeviceError};
use shadow::layout::{
    CELL_BYTES, Counters, GENERATION_SHIFT, JournalEntry, LaunchBlock, MAX_GENERATION,
    WITNESS_BYTES,
};
use shadow::order::COUNTS_BYTES;
use shadow::plan::{self, Shape};
use shadow::rule;

use self::area::{Area, release};
use self::journal::JournalMemory;
use self::launch::LaunchMemory;
pub use self::launch::{Conflict, Drained};
pub use self::slots::SharedShape;
use self::slots::Slots;
use crate::allocations::WINDOWS;
use crate::options::ShadowSize;

/// Slots of the pair table; a power of two.
const PAIRS: u64 = 1 << 13;
/// Bytes of a cell and its witnesses.
const BYTES_PER_CELL: u64 = CELL_BYTES + WITNESS_BYTES;
/// Fewer cells are not worth having.
const MIN_INDEX_BITS: u32 = 12;
/// Granules of 2^35 bytes at most in exact mode.
const MAX_INDEX_BITS: u32 = 33;

/// Launches that may be in flight at once, those of graphs aside.
const MOST_LAUNCHES: usize = 64;
/// Nodes of graphs that may be checked.
const MOST_NODES: usize = 256;

/// What a launch is checked for.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// The windows of global memory: base and bytes of each. The inlined fast path handles the first one only.
    pub windows: [(u64, u64); WINDOWS],
    /// Shared memory, if the kernel accesses it.
    pub shared: Option<SharedShape>,
    /// What follows the order that the cells do not know.
    pub order: OrderJudge,
    /// Which accesses need no check: [`LaunchBlock::unwritten`].
    pub unwritten: u64,
    /// Of which accesses all races with writes are known: [`LaunchBlock::known`].
    pub known: u64,
    /// The launch is [flat](LaunchBlock::flat).
    pub flat: bool,
}

/// The shadow of one device.
#[derive(Debug)]
pub struct ShadowMemory {
    size: ShadowSize,
    records: u32,
    sample_mask: u64,
    cells: u64,
    witnesses: u64,
    index_bits: u32,
    launches: Vec<LaunchMemory>,
    /// The cells of shared memory, how many there are, and their witnesses.
    shared: (u64, u64),
    shared_witnesses: u64,
    journal: JournalMemory,
    /// The stamps of both kinds of witnesses, for the fence rule.
    stamps: [Area; 2],
    /// A block that covers nothing, for launches that are not to be checked.
    idle: u64,
    generation: u32,
    /// What was asked for, as log2 of the number of cells, so that it is tried once.
    wanted: u32,
    /// Most that may be asked for, since the program has needed the memory itself.
    most: u32,
    /// What to report about a shadow that is smaller than asked for.
    shrunk: Option<String>,
}

/// Who follows the order of threads that cells do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderJudge {
    /// None.
    Barriers,
    /// The fence rule, on the device.
    FenceRule,
    /// Happens-before, from a journal.
    Journal,
}

/// A launch was prepared.
#[derive(Clone, Copy, Debug)]
pub struct Armed {
    /// Value of the hidden parameter.
    pub parameter: u64,
    /// Its record slot among the launches in flight.
    pub record_slot: usize,
    /// Where addresses in shared memory say whose it is; see [`LaunchBlock::owner_shift`].
    pub owner_shift: Option<u32>,
    /// The cells were cleared because the generations had run out.
    pub cleared: bool,
}

/// Why a launch was not prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Not while other launches are in flight.
    Busy,
    /// For the reason said.
    Cannot(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Cannot(why)
    }
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
            launches: Vec::new(),
            shared: (0, 0),
            shared_witnesses: 0,
            journal: JournalMemory::default(),
            stamps: [Area::default(); 2],
            idle: 0,
            generation: 0,
            wanted: 0,
            most: MAX_INDEX_BITS,
            shrunk: None,
        }
    }

    /// One line, once, when the shadow is smaller than asked for.
    pub fn shrunk(&mut self) -> Option<String> {
        self.shrunk.take()
    }

    /// Bytes of cells and witnesses, of what the fence rule and grid barriers add, and of the entries that
    /// the last journal had.
    pub fn bytes(&self) -> u64 {
        let global = match self.cells {
            0 => 0,
            _ => BYTES_PER_CELL << self.index_bits,
        };
        let journal = self.journal.used_bytes();
        let stamps: u64 = self.stamps.iter().map(Area::bytes).sum();
        let orders = self.launches.iter().map(LaunchMemory::counted_bytes);
        let more = stamps + orders.sum::<u64>();
        global + BYTES_PER_CELL * self.shared.1 + more + journal
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
            let block = idle_block(counters, counters + size_of::<Counters>() as u64);
            device.write(at, bytemuck::bytes_of(&[block, block]))?;
            self.idle = at;
        }
        Ok(self.idle)
    }

    /// A record slot that the node of a graph keeps, and the hidden parameter of all its launches. Nothing
    /// is checked before the record slot is armed.
    ///
    /// # Errors
    /// Why there is none.
    pub fn keep_slot(&mut self, device: &mut dyn Device) -> Result<(usize, u64), String> {
        let spare = |of: &LaunchMemory| of.spare && !of.busy;
        let record_slot = match self.launches.iter().position(spare) {
            Some(record_slot) => record_slot,
            None if self.launches.iter().filter(|of| of.kept).count() >= MOST_NODES => {
                return Err(format!("more than {MOST_NODES} nodes of graphs"));
            }
            None => {
                let mut memory = LaunchMemory::new(device, self.records)?;
                (memory.kept, memory.spare) = (true, true);
                self.launches.push(memory);
                self.launches.len() - 1
            }
        };
        let memory = &mut self.launches[record_slot];
        // The counters are followed by nothing that could pass for a cell, and are wiped anyway.
        let block = idle_block(memory.counters, memory.counters);
        let written = device.write(memory.block, bytemuck::bytes_of(&[block, block]));
        written.map_err(|error| error.to_string())?;
        memory.spare = false;
        Ok((record_slot, memory.block))
    }

    /// The node of a graph does not need its record slot any more, and will not be launched.
    pub fn free_slot(&mut self, record_slot: usize) {
        if let Some(memory) = self.launches.get_mut(record_slot).filter(|of| of.kept) {
            memory.spare = true;
        }
    }

    /// The next launch in a record slot that was kept is not checked.
    pub fn disarm(&mut self, device: &mut dyn Device, record_slot: usize) {
        let found = self.launches.get(record_slot).filter(|of| !of.busy);
        if let Some(memory) = found {
            let block = idle_block(memory.counters, memory.counters);
            // Where this fails, what the launch records counts for the one before.
            let _ = device.write(memory.block, bytemuck::bytes_of(&[block, block]));
        }
    }

    /// Whether launches are in flight.
    pub fn is_busy(&self) -> bool {
        self.launches.iter().any(|of| of.busy)
    }

    /// Whether a record slot is free, those of graphs aside.
    pub fn has_slot(&self) -> bool {
        self.launches.iter().any(LaunchMemory::is_free)
    }

    /// A launch has ended, and was drained.
    pub fn release(&mut self, record_slot: usize) {
        if let Some(memory) = self.launches.get_mut(record_slot) {
            memory.busy = false;
        }
        if self.journal.keeper == Some(record_slot) {
            self.journal.keeper = None;
        }
    }

    /// So many launches are going to be armed in a row, none of which ends before the last is armed: if
    /// the cells have to be renewed, that is done before the first.
    pub fn expect(&mut self, launches: usize) {
        let last = self.generation as usize + launches;
        if self.cells != 0 && last > MAX_GENERATION as usize {
            self.generation = MAX_GENERATION;
        }
    }

    /// Gives cells and journal back to a program that has no memory left, and says which. They come back, if
    /// they can, when a launch next needs them, with half of what they had. None when there is nothing to give, or
    /// launches in flight need it.
    pub fn yield_cells(&mut self, device: &mut dyn Device) -> Option<&'static str> {
        let cells = self.cells != 0 && !self.is_busy();
        if cells {
            self.release_cells(device);
            self.generation = 0;
            // Half of it next time.
            self.most = self.index_bits.saturating_sub(1).max(MIN_INDEX_BITS);
        }
        match (cells, self.journal.yield_entries(device)) {
            (false, false) => None,
            (true, false) => Some("the shadow memory"),
            (false, true) => Some("the journal"),
            (true, true) => Some("the shadow memory and of the journal"),
        }
    }

    /// Sets up a checked launch.
    ///
    /// # Errors
    /// Why it cannot be checked.
    pub fn arm(
        &mut self,
        device: &mut dyn Device,
        kept: Option<usize>,
        watched: Watched,
        mut shape: Shape,
    ) -> Result<Armed, Refused> {
        let Watched { shared, order, .. } = watched;
        let mut windows = watched.windows;
        shape.window_bytes = windows.iter().map(|(_, bytes)| bytes).sum();
        let generations_ran_out = self.generation == MAX_GENERATION;
        let record_slot = self.record_slot(device, kept)?;
        self.reserve(device, &shape, generations_ran_out)?;
        shape.index_bits = self.index_bits;
        let slots = match shared {
            Some(shared) => self.reserve_slots(device, &shape, shared)?,
            None => Slots::default(),
        };
        if shared.is_some_and(|shared| shared.clusters) {
            let ids = shape.ctas.max(1).next_power_of_two().trailing_zeros();
            shape.shared_tag = ids.saturating_sub(slots.slot_bits);
        }
        let widths = match plan::widths(&shape) {
            Ok(widths) => widths,
            // A cell may have too few tag bits for all windows, and enough for the first one.
            Err(_) => {
                windows[1..].fill((0, 0));
                shape.window_bytes = windows[0].1;
                plan::widths(&shape).map_err(|error| error.to_string())?
            }
        };
        let shifts = widths.shifts();
        let stamps = match order {
            OrderJudge::FenceRule => self.reserve_stamps(device)?,
            _ => [0, 0],
        };
        let journal = match order {
            OrderJudge::Journal if self.journal.keeper.is_some() => return Err(Refused::Busy),
            OrderJudge::Journal => self.journal.set_up(device)?,
            _ => 0,
        };
        let launch = &mut self.launches[record_slot];
        let grid_epochs = match shape.grid_barriers {
            true => launch
                .grid_epochs
                .reserve_zeroed(device, CELL_BYTES * shape.ctas)?,
            false => 0,
        };
        let orders = match order {
            OrderJudge::FenceRule => {
                let counts = COUNTS_BYTES * shape.ctas;
                launch.orders.reserve_zeroed(device, counts)?
            }
            _ => 0,
        };
        self.generation = self.generation % MAX_GENERATION + 1;
        let (over_from, over_span) = widths.over();
        let block = LaunchBlock {
            cells: self.cells,
            cell_mask: cell_mask(self.index_bits),
            window_base: windows[0].0,
            window_bytes: windows[0].1,
            witnesses: self.witnesses,
            index_bits: self.index_bits,
            barrier_shift: shifts.barrier,
            tag_from: self.index_bits + shape.granule_log2,
            tag_shift: shifts.tag,
            cta_shift: shifts.cta,
            generation: self.generation,
            pair_mask: (PAIRS - 1) as u32,
            flat: u32::from(watched.flat),
            pairs: launch.pairs,
            records: launch.records,
            record_capacity: u64::from(self.records),
            counters: launch.counters,
            slot_mask: 0,
            in_turn: 0,
            journal,
            grid_shift: shifts.grid,
            grid_epochs,
            orders,
            stamps: stamps[0],
            sample_mask: self.sample_mask,
            to_witness: self.witnesses.wrapping_sub(self.cells),
            over_from,
            over_span,
            compared: rule::compared(&shifts),
            compared_by_warps: rule::compared_by_warps(&shifts),
            owner_shift: 0,
            unwritten: watched.unwritten,
            besides_barrier: rule::besides_barrier(&shifts),
            warp_epoch: rule::warp_epoch(&shifts),
            compared_by_load: rule::compared_by_load(&shifts),
            row: CELL_BYTES << self.index_bits,
            generation_in_place: u64::from(self.generation) << GENERATION_SHIFT,
            cta_step: rule::up(1, shifts.cta),
            over_bits: 0,
            known: watched.known,
            least_of_other_cta: rule::least_of_other_cta(&shifts),
            second_base: windows[1].0,
            second_bytes: windows[1].1,
            third_base: windows[2].0,
            third_bytes: windows[2].1,
        };
        let shared_block = LaunchBlock {
            cells: self.shared.0,
            witnesses: self.shared_witnesses,
            stamps: stamps[1],
            window_base: 0,
            second_bytes: 0,
            third_bytes: 0,
            in_turn: 1,
            to_witness: self.shared_witnesses.wrapping_sub(self.shared.0),
            ..block
        };
        let behind = slots.divide(shared_block, shared, &widths, shape.ctas);
        let owner_shift = shared.filter(|shared| shared.clusters);
        let owner_shift = owner_shift.map(|_| behind.owner_shift as u32);
        let set_up = launch.set_up(device, [block, behind]);
        set_up.map_err(|error| error.to_string())?;
        launch.busy = true;
        if order == OrderJudge::Journal {
            self.journal.keeper = Some(record_slot);
        }
        Ok(Armed {
            parameter: launch.block,
            record_slot,
            owner_shift,
            cleared: generations_ran_out,
        })
    }

    /// A launch has been asked for: asks for what it will have counted, so that nothing has to wait for
    /// that later.
    pub fn fetch(&self, device: &mut dyn Device, record_slot: usize) {
        if let Some(memory) = self.launches.get(record_slot) {
            // Otherwise it is read in the end.
            let _ = memory.fetch(device);
        }
    }

    /// Reads what the launch found.
    ///
    /// # Errors
    /// When the device cannot be read.
    pub fn drain(
        &mut self,
        device: &dyn Device,
        record_slot: usize,
    ) -> Result<Drained, DeviceError> {
        let capacity = u64::from(self.records);
        match self.launches.get_mut(record_slot) {
            Some(memory) => memory.drain(device, capacity),
            None => Ok(Drained::default()),
        }
    }

    /// Reads what a launch has found that may still run, as far as it lies in memory of the host.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn look(&self, device: &dyn Device, record_slot: usize) -> Result<Drained, DeviceError> {
        match self.launches.get(record_slot) {
            Some(memory) => memory.look(device, u64::from(self.records)),
            None => Ok(Drained::default()),
        }
    }

    /// Calls `each` with the entries of the last launch's journal, in order; gives how many were
    /// dropped.
    ///
    /// # Errors
    /// When the device cannot be read.
    pub fn read_journal(
        &mut self,
        device: &dyn Device,
        each: impl FnMut(&JournalEntry) -> bool,
    ) -> Result<u64, DeviceError> {
        self.journal.read(device, each)
    }

    /// The record slot that a graph's node has kept, or a free one.
    fn record_slot(
        &mut self,
        device: &mut dyn Device,
        kept: Option<usize>,
    ) -> Result<usize, Refused> {
        if let Some(record_slot) = kept {
            return match self.launches.get(record_slot) {
                Some(memory) if !memory.busy => Ok(record_slot),
                Some(_) => Err(Refused::Busy),
                None => Err(Refused::Cannot("its graph's context is gone".to_owned())),
            };
        }
        if let Some(record_slot) = self.launches.iter().position(LaunchMemory::is_free) {
            return Ok(record_slot);
        }
        if self.launches.iter().filter(|of| !of.kept).count() >= MOST_LAUNCHES {
            return Err(Refused::Busy);
        }
        let memory = LaunchMemory::new(device, self.records)?;
        self.launches.push(memory);
        Ok(self.launches.len() - 1)
    }

    /// Makes sure that there are cells. Fresh ones are zero, which clears old generations.
    fn reserve(
        &mut self,
        device: &mut dyn Device,
        shape: &Shape,
        renew: bool,
    ) -> Result<(), Refused> {
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
        let wanted = wanted.min(self.most);
        let enough = self.cells != 0 && (self.index_bits >= wanted || self.wanted >= wanted);
        if enough && !renew {
            return Ok(());
        }
        if self.is_busy() {
            return Err(Refused::Busy);
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
        Err(Refused::Cannot(format!("no shadow memory: {last}")))
    }

    /// What the fence rule needs: a stamp beside each witness, never older than it.
    fn reserve_stamps(&mut self, device: &mut dyn Device) -> Result<[u64; 2], Refused> {
        let bytes = [
            WITNESS_BYTES << self.index_bits,
            WITNESS_BYTES * self.shared.1,
        ];
        let enough = self
            .stamps
            .iter()
            .zip(bytes)
            .all(|(area, bytes)| area.has(bytes));
        if !enough && self.is_busy() {
            return Err(Refused::Busy);
        }
        let [global, shared] = &mut self.stamps;
        let global = global.reserve(device, bytes[0])?;
        Ok([global, shared.reserve(device, bytes[1])?])
    }

    fn release_cells(&mut self, device: &mut dyn Device) {
        release(device, [self.cells, self.witnesses]);
        (self.cells, self.witnesses) = (0, 0);
        // Their generations start anew as well.
        self.release_slots(device);
    }
}

/// A block that covers nothing.
fn idle_block(counters: u64, cells: u64) -> LaunchBlock {
    LaunchBlock {
        cells,
        counters,
        index_bits: 0,
        barrier_shift: 31,
        cta_shift: 31,
        tag_shift: 64,
        grid_shift: 64,
        ..LaunchBlock::zeroed()
    }
}

/// [`LaunchBlock::cell_mask`] of that many cells.
fn cell_mask(index_bits: u32) -> u64 {
    (CELL_BYTES << index_bits) - CELL_BYTES
}

/// log2 of the number of cells that fit `bytes`, within reason.
fn fitting(bytes: u64) -> u32 {
    (bytes / BYTES_PER_CELL)
        .max(1)
        .ilog2()
        .clamp(MIN_INDEX_BITS, MAX_INDEX_BITS)
}

/// That many cells, and their witnesses.
fn allocate(device: &mut dyn Device, count: u64) -> Result<(u64, u64), DeviceError> {
    let cells = device.alloc(CELL_BYTES * count)?;
    match device.alloc(WITNESS_BYTES * count) {
        Ok(witnesses) => Ok((cells, witnesses)),
        Err(error) => {
            let _ = device.free(cells);
            Err(error)
        }
    }
}
