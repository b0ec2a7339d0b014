//! Layouts that cross host and device, each written once.
//!
//! The cell, from bit 0:
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0-4 | lane | owner's lane |
//! | 5 | lane multi | several lanes of the owner warp in this warp epoch |
//! | 6-8 | warp class | attributes of the accesses of this warp epoch |
//! | 9-13 | warp | owner's warp in its CTA |
//! | 14 | warp multi | several warps of the owner CTA in this barrier epoch |
//! | 15-17 | CTA class | attributes of the accesses of this barrier epoch |
//! | 18 | grid multi | several CTAs in this launch |
//! | 19-21 | grid class | attributes of the accesses of this launch |
//! | 22 | busy | a thread that changed the cell is writing its witnesses |
//! | 23-30 | generation | launch modulo 255, plus 1; 0 is an empty cell |
//! | 31-63 | who | grid epoch, tag, CTA, barrier epoch, warp epoch from high to low, with widths per launch |
//!
//! Like [`rule`](crate::rule), this file is compiled twice: here, where `pod!` makes a struct
//! `bytemuck::Pod`, and by `device` without any library.

/// log2 of the bytes of a cell, of a witness, of its stamp, and of a CTA's grid epoch.
pub const CELL_LOG2: u32 = 3;
/// Bytes of a cell.
pub const CELL_BYTES: u64 = 1 << CELL_LOG2;
/// log2 of the lanes of a warp.
pub const LANES_LOG2: u32 = 5;
/// Bits of a class.
pub const CLASS_BITS: u64 = 7;
/// The owner's lane.
pub const LANE_MASK: u64 = 31;
/// Several lanes.
pub const WARP_LANE_MULTI: u64 = 1 << 5;
/// Class of the warp epoch.
pub const WARP_CLASS_SHIFT: u32 = 6;
/// Class of the warp epoch, in place.
pub const WARP_CLASS_MASK: u64 = CLASS_BITS << WARP_CLASS_SHIFT;
/// Lowest bit of the owner's warp.
pub const WARP_SHIFT: u32 = 9;
/// The owner's warp.
pub const WARP_MASK: u64 = 31 << WARP_SHIFT;
/// Several warps.
pub const WARP_MULTI: u64 = 1 << 14;
/// Class of the barrier epoch.
pub const CTA_CLASS_SHIFT: u32 = 15;
/// Class of the barrier epoch, in place.
pub const CTA_CLASS_MASK: u64 = CLASS_BITS << CTA_CLASS_SHIFT;
/// Several CTAs.
pub const GRID_MULTI: u64 = 1 << 18;
/// Class of the launch.
pub const GRID_CLASS_SHIFT: u32 = 19;
/// Class of the launch, in place.
pub const GRID_CLASS_MASK: u64 = CLASS_BITS << GRID_CLASS_SHIFT;
/// The thread that changed the cell is still writing the witnesses that belong to it. The device waits
/// for it; the rule never sees it. Cells that are claimed in place are never busy.
pub const BUSY: u64 = 1 << 22;
/// Lowest bit of the generation.
pub const GENERATION_SHIFT: u32 = 23;
/// The generation, in place.
pub const GENERATION_MASK: u64 = 255 << GENERATION_SHIFT;
/// Lowest bit of the warp epoch, the first of the fields with a width per launch.
pub const WARP_EPOCH_SHIFT: u32 = 31;
/// Bits for grid epoch, tag, CTA, barrier epoch and warp epoch together.
pub const WHO_BITS: u32 = 64 - WARP_EPOCH_SHIFT;

/// Largest generation; the next launch needs cleared cells and starts at 1 again.
pub const MAX_GENERATION: u32 = 255;

/// An access word holds the kind in its lowest bits.
pub const ACCESS_KIND_MASK: u32 = 15;
/// Lowest bit of log2 of the granule's bytes.
pub const ACCESS_GRANULE_SHIFT: u32 = 4;
/// log2 of the granule's bytes, shifted down.
pub const ACCESS_GRANULE_MASK: u32 = 7;
/// The access is to shared memory, and its address an offset there.
pub const ACCESS_SHARED: u32 = 1 << 7;
/// In a record: the fence rule could not say whether the conflict is a race.
pub const ACCESS_POSSIBLE: u32 = 1 << 31;
/// Lowest bit of the number of bytes the thread accesses.
pub const ACCESS_BYTES_SHIFT: u32 = 8;

/// Bytes of the [witnesses](witness) beside each cell: the first and the last write, the first and
/// the last load that its class stands for.
///
/// A cell has no room for sites. One site per cell would not do: when a load follows a store, a
/// third thread races with the store and not with the load, although the load came last. And when
/// several threads share a granule, the one to name is not the one that asks.
pub const WITNESS_BYTES: u64 = 32;
/// Their order: all first writes stand in one row, as the cells do, and so on, so that neighbouring
/// cells have neighbouring witnesses. Here, the first write.
pub const WITNESS_WRITES: u64 = 0;
/// The first load.
pub const WITNESS_LOADS: u64 = 2;
/// From the first to the last.
pub const WITNESS_LAST: u64 = 1;
/// In the first row: the cell stands for one access. Its thread is the cell's owner, of the witness
/// there are only the site, [`WITNESS_SOLE_WRITE`] and [`witness_cell`], and the other rows hold nothing
/// that counts.
pub const WITNESS_SOLE: u64 = 1 << 63;
/// That access writes.
pub const WITNESS_SOLE_WRITE: u64 = 1 << 33;
/// The bits of [`witness_cell`].
pub const WITNESS_CELL_MASK: u64 = 0xffff_ffff;
/// What [`witness_cell`] multiplies with: 2^64 over the golden ratio, which spreads every bit upwards.
pub const WITNESS_CELL_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Where a witness's site begins.
pub const WITNESS_SITE_SHIFT: u32 = 34;
/// Lowest bit of a witness's thread, and so of its lane.
pub const WITNESS_LANE_SHIFT: u32 = 24;
/// The thread of a witness: its index in the CTA, and the lowest 24 bits of the CTA's.
pub const WITNESS_THREAD_MASK: u64 = (1 << WITNESS_SITE_SHIFT) - 1;
/// The CTA of a witness.
pub const WITNESS_CTA_MASK: u64 = (1 << WITNESS_LANE_SHIFT) - 1;
/// The thread's index in its CTA, shifted down.
pub const WITNESS_INDEX_MASK: u64 = WITNESS_THREAD_MASK >> WITNESS_LANE_SHIFT;

/// Who accessed a granule, and where: site, thread in its CTA, CTA. Site ids start at 1, so 0 is
/// none.
pub const fn witness(site: u32, cta: u64, thread: u32) -> u64 {
    (site as u64) << WITNESS_SITE_SHIFT
        | (thread as u64 & WITNESS_INDEX_MASK) << WITNESS_LANE_SHIFT
        | (cta & WITNESS_CTA_MASK)
}

/// The site number of a witness.
pub const fn witness_site(witness: u64) -> u32 {
    (witness >> WITNESS_SITE_SHIFT) as u32
}

/// The index in its CTA of a witness's thread.
pub const fn witness_thread(witness: u64) -> u32 {
    (witness >> WITNESS_LANE_SHIFT & WITNESS_INDEX_MASK) as u32
}

/// The CTA of a witness, modulo 2^24.
pub const fn witness_cta(witness: u64) -> u32 {
    (witness & WITNESS_CTA_MASK) as u32
}

/// The id in a site number of the device. The bits above it say how strong the site's accesses are.
pub const SITE_ID_MASK: u32 = (1 << 27) - 1;
/// In a site number of the device: the accesses are strong, of gpu or wider scope.
pub const SITE_STRONG_GPU: u32 = 1 << 27;
/// In a site number of the device: the accesses are strong, of any scope.
pub const SITE_STRONG_CTA: u32 = 1 << 28;
/// All bits of a site number of the device.
pub const SITE_MASK: u32 = SITE_ID_MASK | SITE_STRONG_GPU | SITE_STRONG_CTA;

/// The witness of the only access that `cell` stands for.
///
/// Code that claims a cell in place enters it behind the cell, without a fence between the two; so it
/// says which cell it belongs to, and what reads it waits until it is there.
pub const fn sole_witness(site: u32, writes: bool, cell: u64) -> u64 {
    sole_witness_of_any(site, writes) | witness_cell(cell)
}

/// Likewise, without the bits that identify the cell.
pub const fn sole_witness_of_any(site: u32, writes: bool) -> u64 {
    let does = if writes { WITNESS_SOLE_WRITE } else { 0 };
    WITNESS_SOLE | (site as u64) << WITNESS_SITE_SHIFT | does
}

/// 32 bits that distinguish a cell from those that its place has held before: the upper half of the product with
/// [`WITNESS_CELL_FACTOR`], modulo 2^64.
pub const fn witness_cell(cell: u64) -> u64 {
    ((cell as u128 * WITNESS_CELL_FACTOR as u128) >> 32u32) as u64 & WITNESS_CELL_MASK
}

/// What a pair of sites that conflicted at the level of `verdict` is called in the pair table.
/// Conflicts that are only [possible](ACCESS_POSSIBLE) are another pair. Site numbers are those of the device, below 2^29.
pub const fn pair_key(verdict: u32, site: u32, previous_site: u32, possible: bool) -> u64 {
    let sites = (site as u64) << 34u32 | (previous_site as u64) << 2u32;
    (possible as u64) << 63u32 | sites | verdict as u64
}

/// [`Record::previous_thread`] when the cell no longer knew it.
pub const UNKNOWN: u32 = 0xffff_ffff;

pod! {
/// One launch's state, in device memory; its address is the hidden last kernel parameter.
///
/// A second one follows it at once: the same for shared memory, whose cells every CTA has in a slot
/// of its own while there are as many slots as CTAs.
pub struct LaunchBlock {
    /// Address of the cells, 8 bytes each; read together with the next.
    pub cells: u64,
    /// Bytes of the cells (of a slot) minus 8: a power of two minus 1, times 8.
    pub cell_mask: u64,
    /// First address of the first window; read together with the next.
    pub window_base: u64,
    /// Bytes of the first window.
    pub window_bytes: u64,
    /// Address of the witnesses, [`WITNESS_BYTES`] per cell.
    pub witnesses: u64,
    /// log2 of the number of cells (of a slot).
    pub index_bits: u32,
    /// Lowest bit of the barrier epoch.
    pub barrier_shift: u32,
    /// `index_bits` plus log2 of the granule's bytes: the lowest bit, of an offset in the window, that enters the tag;
    /// read together with the next three.
    pub tag_from: u32,
    /// Lowest bit of the tag; the grid epoch's when the cells cover the window, the CTA id's for
    /// shared memory.
    pub tag_shift: u32,
    /// 1 when grid and CTAs extend along x only.
    pub flat: u32,
    /// Lowest bit of the CTA id.
    pub cta_shift: u32,
    /// 1 to [`MAX_GENERATION`].
    pub generation: u32,
    /// Number of [`PairSlot`]s minus 1; a power of two minus 1.
    pub pair_mask: u32,
    /// Address of the [`PairSlot`]s.
    pub pairs: u64,
    /// Address of the [`Record`]s.
    pub records: u64,
    /// Number of [`Record`]s there is room for.
    pub record_capacity: u64,
    /// Address of the [`Counters`].
    pub counters: u64,
    /// Number of slots minus 1, a power of two minus 1; a CTA's slot is its id modulo the number.
    pub slot_mask: u64,
    /// 1 when the CTAs that share a slot are to start in the order of their ids, as
    /// [`Shifts::in_turn`](crate::rule::Shifts::in_turn) says.
    pub in_turn: u32,
    /// Lowest bit of the grid epoch; 64 when the kernel has no grid barriers.
    pub grid_shift: u32,
    /// Address of the grid barriers that each CTA has passed, a `u64` per CTA; 0 without any.
    pub grid_epochs: u64,
    /// Address of what each CTA has counted for the [fence rule](crate::order), two words per CTA; 0
    /// when that rule is not asked.
    pub orders: u64,
    /// Address of the stamps of the witnesses, in the same order.
    pub stamps: u64,
    /// One less than the words of which one is checked, a power of two minus 1; see
    /// [`is_sampled`](crate::rule::is_sampled).
    pub sample_mask: u64,
    /// Address of the [`Journal`], for kernels that keep one.
    pub journal: u64,
    /// From a cell to its first witness: `witnesses - cells`.
    pub to_witness: u64,
    /// From a witness to the next of the same cell, in bytes: 8 for each cell (of all slots).
    pub row: u64,
    /// Where the CTA of a cell is the thread's own, the least difference between the cell and the
    /// thread's identity with which the cell is of an older barrier epoch;
    /// at an even multiple of 8 bytes, as it is read together with the next.
    pub over_from: u64,
    /// How many such differences there are from there on; 0 when there are none.
    pub over_span: u64,
    /// [`rule::compared`](crate::rule::compared) of the launch, read together with the next as well.
    pub compared: u64,
    /// [`rule::compared_by_warps`](crate::rule::compared_by_warps).
    pub compared_by_warps: u64,
    /// Where CTAs reach each other's shared memory: log2 of the bytes of a CTA's window in the range of
    /// addresses that all of them have together, by CTA id. Then there is one slot, for all of it.
    pub owner_shift: u64,
    /// Which loads of the kernel need no check, because the launch never writes what they load: a bit
    /// for each set of parameters that loads go through, as the rewriter numbers them; or for each group of accesses
    /// that are proved or such loads. And [`UNWRITTEN_WORDS`].
    pub unwritten: u64,
    /// [`rule::besides_barrier`](crate::rule::besides_barrier) of the launch, read together with the
    /// next. Two blocks lie behind one another, so their size has to be an even multiple of 8 bytes.
    pub besides_barrier: u64,
    /// [`rule::warp_epoch`](crate::rule::warp_epoch).
    pub warp_epoch: u64,
    /// [`rule::compared_by_load`](crate::rule::compared_by_load) of the launch.
    pub compared_by_load: u64,
    /// Of shared memory: a cell that differs from the thread's identity in one of these bits has expired
    /// ([`Widths::over_bits`](crate::plan::Widths::over_bits)).
    pub over_bits: u64,
    /// The generation, in its place in a cell; read together with the next.
    pub generation_in_place: u64,
    /// What one CTA id is worth in a cell: a one at `cta_shift`.
    pub cta_step: u64,
    /// Accesses whose races with writes are all known, from earlier launches: a bit for each group of accesses, as in
    /// [`unwritten`](Self::unwritten); read together with the next.
    pub known: u64,
    /// [`rule::least_of_other_cta`](crate::rule::least_of_other_cta) of the launch.
    pub least_of_other_cta: u64,
    /// First address of the second window. Its granules are numbered behind those of the first window.
    pub second_base: u64,
    /// Bytes of the second window, or 0.
    pub second_bytes: u64,
    /// First address of the third window, whose granules are numbered behind those of the second.
    pub third_base: u64,
    /// Bytes of the third window, or 0.
    pub third_bytes: u64,
}
}

/// In [`LaunchBlock::unwritten`]: what the accesses of words go through that may be checked as one granule, though the
/// kernel's granules are smaller, is accessed by whole words only.
pub const UNWRITTEN_WORDS: u64 = 1 << 63;

// Kernels whose order the rule does not follow keep a journal instead: of what orders threads, and
// of the accesses to granules that more than one thread has accessed. Their cells say who alone has
// accessed a granule: identity and generation as always, the owner's place in the journal for the
// barrier epoch, and these bits.

/// The owner has loaded the granule at its place in the journal.
pub const JOURNAL_LOADED: u64 = 1 << 6;
/// Likewise, stored.
pub const JOURNAL_STORED: u64 = 1 << 7;
/// Several threads have accessed the granule: every access goes to the journal.
pub const JOURNAL_RECORDED: u64 = 1 << 18;
/// With [`JOURNAL_RECORDED`]: a strong access has been made to the granule, or is about to be.
pub const JOURNAL_STRONG: u64 = 1 << 19;
/// The witnesses of such a cell, site and time of the owner's last store and load, by their row.
pub const JOURNAL_STORE_WITNESS: u64 = 0;
/// See [`JOURNAL_STORE_WITNESS`]. A load of read-only data has the highest bit, and gives way to
/// none without: no order makes up for it.
pub const JOURNAL_LOAD_WITNESS: u64 = 1;

/// An access word of the journal: the access writes.
pub const JOURNAL_WRITES: u32 = 1;
/// The access is strong. It must be recorded even if its thread owns the granule.
pub const JOURNAL_FORCED: u32 = 2;
/// It loads data that is read-only while the kernel runs.
pub const JOURNAL_READ_ONLY: u32 = 4;
/// It cannot be made twice.
pub const JOURNAL_ONCE: u32 = 8;
/// Where four bits say which of a thread's looks is for a strong load or update. They stand behind twelve bits with
/// the number of bytes; copies have more of these in their place.
pub const JOURNAL_LOOK_SHIFT: u32 = 20;
/// Looks that a thread remembers, in 24 bytes each.
pub const JOURNAL_LOOK_PLACES: u32 = 16;
/// Where two bits say how large the pieces of memory are that have a lock each: 4 bytes, 8 or 16. All
/// accesses of a launch say the same. They and the flags below stand behind the number of bytes.
pub const JOURNAL_PIECE_SHIFT: u32 = 28;
/// It writes what it makes of what it reads.
pub const JOURNAL_UPDATES: u32 = 1 << 30;
/// It is an update of at most 8 bytes of global memory that gives back what it read, and releases
/// nothing itself.
pub const JOURNAL_LOOKS: u32 = 1 << 31;

/// Bytes of a thread's state in its local memory.
pub const JOURNAL_STATE: u64 = 96 + 24 * JOURNAL_LOOK_PLACES as u64;

/// When an update with [`JOURNAL_LOOKS`] changes nothing: when its operand is 0.
pub const IDLE_IF_ZERO: u32 = 0;
/// When its operand, which it compares, is not what memory holds.
pub const IDLE_IF_OTHER: u32 = 1;
/// When all bits of its operand are set in memory.
pub const IDLE_IF_SET: u32 = 2;
/// When no bits are set in memory but those of its operand.
pub const IDLE_IF_CLEAR: u32 = 3;
/// When its operand is what memory holds.
pub const IDLE_IF_SAME: u32 = 4;
/// Whatever its operand and memory are.
pub const IDLE_ALWAYS: u32 = 5;

/// Kinds of a [`JournalEntry`]: a lane has accessed memory.
pub const ENTRY_ACCESS: u32 = 1;
/// A lane had accessed memory at a time before.
pub const ENTRY_EARLIER: u32 = 2;
/// Lanes come to a barrier of their CTA, `address`.
pub const ENTRY_ARRIVE: u32 = 3;
/// They have passed it.
pub const ENTRY_PASS: u32 = 4;
/// Lanes execute a fence.
pub const ENTRY_FENCE: u32 = 5;
/// Lanes come to a barrier of the lanes `address`.
pub const ENTRY_WARP_ARRIVE: u32 = 6;
/// They have passed it.
pub const ENTRY_WARP_PASS: u32 = 7;
/// Lanes end.
pub const ENTRY_EXIT: u32 = 8;
/// Lanes come to the barrier of their cluster.
pub const ENTRY_CLUSTER_ARRIVE: u32 = 9;
/// They have waited for it.
pub const ENTRY_CLUSTER_WAIT: u32 = 10;
/// Between the entry of a lane's weak store and the store itself, another thread began with strong accesses to the
/// granule. Which came first is not known.
pub const ENTRY_OVERTAKEN: u32 = 11;
/// What a copy that a lane issues reads, from `address`, as many bytes as `time` says. All that is recorded of a
/// copy comes before [`ENTRY_COPY_TO`].
pub const ENTRY_COPY_FROM: u32 = 12;
/// What it writes.
pub const ENTRY_COPY_TO: u32 = 13;
/// The mbarrier that it completes with, if it does not complete with a group.
pub const ENTRY_COPY_BARRIER: u32 = 14;
/// Lanes close a group of copies, or have waited for some.
pub const ENTRY_COPIES: u32 = 15;
/// A lane operates on an mbarrier in shared memory; `time` is what it counts.
pub const ENTRY_MBARRIER: u32 = 16;
/// Lanes have found that a phase of an mbarrier is over.
pub const ENTRY_MBARRIER_OVER: u32 = 17;
/// A lane has made an atomic that has changed nothing. It may do so again without an entry, as long as the word
/// is not written.
pub const ENTRY_LOOK: u32 = 18;
/// Lowest bit, in the address of [`ENTRY_MBARRIER_OVER`], of one more than the parity of the phase; 0 where
/// the program has given a state instead.
pub const PARITY_SHIFT: u32 = 60;

pod! {
/// A launch's journal, in device memory.
pub struct Journal {
    /// Address of the [`JournalEntry`]s.
    pub entries: u64,
    /// Number of entries there is room for.
    pub capacity: u64,
    /// Entries wanted; those beyond the capacity were dropped.
    pub count: u64,
    /// Address of the [`Lock`]s.
    pub locks: u64,
    /// Number of locks minus 1; a power of two minus 1.
    pub lock_mask: u64,
}
}

pod! {
/// Strong accesses to one location, and weak stores to what has strong ones, are made, and enter the
/// journal, one after the other.
pub struct Lock {
    /// Turns that were asked for.
    pub asked: u64,
    /// Turns that are over.
    pub done: u64,
    /// Writes that were made, but for atomics that have changed nothing and publish nothing new. From
    /// bit 32 on, those among them that were no atomics.
    pub counts: u64,
    /// Address of the last strong access to global memory, and its bytes from [`LOCK_BYTES_SHIFT`] on: the cells say
    /// that it is strong.
    pub entered: u64,
}
}

pod! {
/// Something that a lane or lanes of a warp have done. Entries of one thread are in its order.
pub struct JournalEntry {
    /// What was accessed, or which barrier.
    pub address: u64,
    /// CTA and warp: `cta << ENTRY_CTA_SHIFT | warp`.
    pub who: u64,
    /// The instruction, by its byte offset in the module's original text.
    pub what: u32,
    /// Of an earlier access: one more than the number of its thread's last entry before it, counted
    /// from 1. Of copies and mbarriers: bytes, or a count.
    pub time: u32,
    /// The lanes, one bit each.
    pub lanes: u32,
    /// `ENTRY_ACCESS` and on, 0 while it is incomplete; with [`ENTRY_SHARED`] for shared memory.
    pub kind: u32,
}
}

/// log2 of the bytes of a [`JournalEntry`].
pub const ENTRY_LOG2: u32 = 5;
/// log2 of the bytes of a [`Lock`].
pub const LOCK_LOG2: u32 = 5;

/// Lowest bit of the number of bytes in [`Lock::entered`].
pub const LOCK_BYTES_SHIFT: u32 = 56;

/// Lowest bit of the CTA in [`JournalEntry::who`]; the warp's index in it is below.
pub const ENTRY_CTA_SHIFT: u32 = 5;

/// The CTA of [`JournalEntry::who`].
pub const fn entry_cta(who: u64) -> u64 {
    who >> ENTRY_CTA_SHIFT
}

/// The warp of [`JournalEntry::who`].
pub const fn entry_warp(who: u64) -> u32 {
    (who & ((1 << ENTRY_CTA_SHIFT) - 1)) as u32
}

/// The address is an offset in the shared memory of the thread's CTA.
pub const ENTRY_SHARED: u32 = 1 << 31;

/// log2 of the bytes of a [`PairSlot`].
pub const PAIR_SLOT_LOG2: u32 = 5;
/// log2 of the bytes of a [`Record`].
pub const RECORD_LOG2: u32 = 6;

pod! {
/// What a launch counts, in device memory.
pub struct Counters {
    /// Records wanted; those beyond the capacity were dropped.
    pub records: u64,
    /// Conflicting accesses.
    pub conflicts: u64,
    /// Granules that lost their cell to another granule.
    pub evictions: u64,
    /// Conflicts left undecided: a saturated epoch, a mixed class, or [`ENTRY_OVERTAKEN`].
    pub undecided: u64,
    /// Accesses outside the window.
    pub outside: u64,
    /// Conflicts that the fence rule calls races.
    pub unreleased: u64,
    /// Conflicts that it takes for ordered.
    pub ordered: u64,
}
}

pod! {
/// A pair of sites that raced in this launch.
pub struct PairSlot {
    /// [`pair_key`]; 0 when free.
    pub key: u64,
    /// How often.
    pub count: u64,
    /// The highest address, or offset in shared memory, at which it was.
    pub highest: u64,
    /// The lowest one, all bits inverted.
    pub not_lowest: u64,
}
}

pod! {
/// The first conflict of a pair of sites, in device memory.
pub struct Record {
    /// Address of the granule; its offset where `access` has [`ACCESS_SHARED`].
    pub address: u64,
    /// The cell before the access.
    pub cell: u64,
    /// The accessing thread's identity, tag included.
    pub me: u64,
    /// Site number of this access.
    pub site: u32,
    /// Site number of the earlier access; 0 if it is not known.
    pub previous_site: u32,
    /// CTA of this access, linear, x fastest.
    pub cta: u32,
    /// Thread in its CTA, linear.
    pub thread: u32,
    /// CTA of the earlier access, modulo 2^24, or [`UNKNOWN`].
    pub previous_cta: u32,
    /// Thread of the earlier access in its CTA, or [`UNKNOWN`].
    pub previous_thread: u32,
    /// The access word: kind, granule, bytes, and whether it is to shared memory.
    pub access: u32,
    /// `CONFLICT_GRID`, `CONFLICT_CTA` or `CONFLICT_WARP`.
    pub verdict: u32,
    /// The earlier kinds: the cell's class at the level of the conflict.
    pub class: u32,
    /// 1 once the record is complete.
    pub ready: u32,
}
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::{offset_of, size_of};

    /// The device code reads these structs by the same definitions; what must not move without a
    /// thought is their size and that no padding hides in them.
    #[test]
    fn structs_have_no_padding_and_keep_their_size() {
        assert_eq!(size_of::<LaunchBlock>(), 320);
        assert_eq!(size_of::<Counters>(), 56);
        assert_eq!(size_of::<PairSlot>(), 1 << PAIR_SLOT_LOG2);
        assert_eq!(size_of::<Record>(), 1 << RECORD_LOG2);
        assert_eq!(size_of::<Journal>(), 40);
        assert_eq!(size_of::<JournalEntry>(), 1 << ENTRY_LOG2);
        assert_eq!(size_of::<Lock>(), 1 << LOCK_LOG2);
        assert_eq!(size_of::<u64>(), 1 << CELL_LOG2);
        assert_eq!(offset_of!(LaunchBlock, pairs), 72);
        for read_together in [
            offset_of!(LaunchBlock, cells),
            offset_of!(LaunchBlock, window_base),
            offset_of!(LaunchBlock, tag_from),
            offset_of!(LaunchBlock, over_from),
            offset_of!(LaunchBlock, compared),
            offset_of!(LaunchBlock, besides_barrier),
            offset_of!(LaunchBlock, generation_in_place),
            offset_of!(LaunchBlock, known),
        ] {
            assert_eq!(read_together % 16, 0);
        }
        assert_eq!(offset_of!(Record, site), 24);
    }

    #[test]
    fn what_is_put_together_comes_apart_again() {
        let whole = witness(SITE_MASK, WITNESS_CTA_MASK, 1023);
        assert_eq!(whole, !WITNESS_SOLE);
        for (site, cta, thread) in [(SITE_MASK, 0, 0), (0, WITNESS_CTA_MASK, 0), (1, 2, 1023)] {
            let of = witness(site, cta, thread);
            assert_eq!(witness_site(of), site);
            assert_eq!(u64::from(witness_cta(of)), cta);
            assert_eq!(witness_thread(of), thread);
        }
        for (cta, warp) in [(0, 31), (1 << 40, 0), (3, 4)] {
            let of = cta << ENTRY_CTA_SHIFT | warp;
            assert_eq!((entry_cta(of), u64::from(entry_warp(of))), (cta, warp));
        }
        assert_eq!(WARP_MASK >> WARP_SHIFT, (1 << ENTRY_CTA_SHIFT) - 1);
        assert_eq!(LANE_MASK, (1 << LANES_LOG2) - 1);
    }

    #[test]
    fn a_sole_witness_tells_its_cell() {
        let cells = (0..64).flat_map(|bit| [1u64 << bit, !0 >> bit, 0x0123_4567_89ab_cdef << bit]);
        for cell in cells {
            let product = cell.wrapping_mul(WITNESS_CELL_FACTOR);
            assert_eq!(witness_cell(cell), product >> 32, "{cell:#x}");
            // Nor do its bits meet those of site and kind.
            let witness = sole_witness(SITE_MASK, true, cell);
            assert_eq!(witness_site(witness) & SITE_MASK, SITE_MASK);
            assert_eq!(
                witness ^ witness_cell(cell),
                sole_witness_of_any(SITE_MASK, true)
            );
        }
    }

    #[test]
    fn the_fields_of_a_cell_tile_it() {
        let fields = [
            LANE_MASK,
            WARP_LANE_MULTI,
            CLASS_BITS << WARP_CLASS_SHIFT,
            WARP_MASK,
            WARP_MULTI,
            CTA_CLASS_MASK,
            GRID_MULTI,
            GRID_CLASS_MASK,
            BUSY,
            GENERATION_MASK,
            !0 << WARP_EPOCH_SHIFT,
        ];
        assert_eq!(fields.iter().fold(0, |all, f| all ^ f), !0);
        assert_eq!(fields.iter().map(|f| f.count_ones()).sum::<u32>(), 64);
    }
}
