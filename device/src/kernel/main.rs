//! The race rule on the device: compiled to PTX by `cargo xtask device`, into `device/check.ptx`.
//!
//! Nothing is decided here: `rule`, `order` and `layout` are the very files of the `shadow` crate.
//! This file fetches the cell, calls the rule and puts the next cell back; memory and special
//! registers are reached through `asm!`.
//! `no_core`, because no core library exists for this target on a stable toolchain; [`lang`] holds
//! the few operators that are needed.
//!
//! A cell and its witnesses are several words. A thread that changes a cell marks it busy, writes the
//! witnesses, and then publishes the cell; others wait for that, so a report never names an access
//! that the cell does not stand for. The waiting is short and holds nothing, so independent thread scheduling
//! (sm_70 and later) ends it even inside a warp.
//!
//! # Safety
//!
//! Every `unsafe fn` here asks for what is true of each argument with one of these names. Rewritten code gives them,
//! and functions pass them on as they got them; so the lines that say `SAFETY` name what they rely on.
//!
//! - **Block.** `launch` is the address of a [`LaunchBlock`], or of the second one behind it. The host
//!   fills both in before the launch starts, leaves them alone until it has ended, and nothing on the device writes
//!   them. Of a [`Journal`] that is true of all fields but `count`. So these are the only words read by plain loads.
//! - **Tables.** An address in the block, or in its journal, is that of an array which lives as long as the block and
//!   is used by no other launch in flight, apart from cells, witnesses and stamps. It is 0 where the launch has no such array, and
//!   then asked for before use. An index is cut to the array: cells, slots, pairs and locks by a mask, records and
//!   entries by a capacity, counts and grid epochs by the number of a CTA of the grid. Arrays beside the cells
//!   (witnesses, stamps) have a place for each cell in each row.
//! - **Shared words.** What several threads change is an aligned word of 8 bytes and is reached by the instructions of
//!   [`memory`] alone, which are at least relaxed and of gpu scope: it is never read in halves, Rust takes no reference to
//!   it, only addresses (`&raw`), and no plain load or store meets it. So threads may race for it as they like; which of
//!   them may enter the witnesses of a cell is settled by its bit [`BUSY`].
//! - **Record.** A number that [`fetch_add`] has given to one thread is given to no other in this launch: the record of that
//!   number is the thread's own, and is the only memory written by plain stores. The host reads it when the launch has ended.
//! - **State.** `state` is the address of [`JOURNAL_STATE`] bytes, at a multiple of 16, in the local memory of
//!   this thread, which the rewriter has declared in the kernel. No other thread reaches them, and
//!   no plain access does.
//! - **Access.** `address` with the bytes in `word` or `access` is what the program accesses next, or has just accessed.
//!   Only where the program's own access would fail as well does reading it fail.
//!
//! Nothing here could see a broken promise. cargo knows nothing of this program, so clippy does not see it, and
//! `cargo xtask tidy` asks for the `SAFETY` lines instead.

#![no_std]
#![no_core]
#![feature(no_core, lang_items, intrinsics, rustc_attrs, asm_experimental_arch, prelude_import, const_trait_impl, decl_macro, auto_traits)]
#![allow(internal_features, dead_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

mod lang;
#[prelude_import]
#[allow(unused_imports)]
use lang::*;

macro_rules! pod {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $ty:ty,)* }) => {
        #[repr(C)]
        pub struct $name { $(pub $field: $ty,)* }
    };
}

#[path = "../../../shadow/src/layout.rs"]
mod layout;
#[path = "../../../shadow/src/order.rs"]
mod order;
#[path = "../../../shadow/src/rule.rs"]
mod rule;

#[macro_use]
mod memory;

mod cluster;
mod copies;
mod journal;
mod looks;
mod record;
mod turns;
mod witness;

use layout::*;
use memory::*;
use rule::{Shifts, up};

unsafe fn shifts(launch: *const LaunchBlock) -> Shifts {
    // SAFETY: fields of the *block*.
    unsafe {
        Shifts {
            barrier: (*launch).barrier_shift,
            cta: (*launch).cta_shift,
            tag: (*launch).tag_shift,
            grid: (*launch).grid_shift,
            in_turn: (*launch).in_turn != 0,
        }
    }
}

/// What [`offset`] returns for an address outside all windows.
const OUTSIDE: u64 = !0;

/// The offset of an address in the windows of a launch, counted as if they were adjacent, or [`OUTSIDE`].
#[inline(always)]
unsafe fn offset(launch: *const LaunchBlock, address: u64) -> u64 {
    // SAFETY: a field of the *block*.
    unsafe {
        let offset = address - (*launch).window_base;
        if offset < (*launch).window_bytes { offset } else { __cudarun_further(launch, address) }
    }
}

/// The same for an address outside the first window.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudarun_further(launch: *const LaunchBlock, address: u64) -> u64 {
    // SAFETY: fields of the *block*.
    unsafe {
        let (first, second) = ((*launch).window_bytes, (*launch).second_bytes);
        let offset = address - (*launch).second_base;
        if offset < second {
            return first + offset;
        }
        let offset = address - (*launch).third_base;
        if offset < (*launch).third_bytes { first + second + offset } else { OUTSIDE }
    }
}

/// The identity of this thread at the entry of a kernel that keeps a journal; others compute it in place
/// (`Entry` of the `device` crate).
#[inline(always)]
unsafe fn enter(launch: *const LaunchBlock) -> u64 {
    // SAFETY: fields of the *block*.
    unsafe {
        let thread = thread_in_cta();
        up(cta_in_grid(), (*launch).cta_shift)
            | ((*launch).generation as u64) << GENERATION_SHIFT
            | ((thread >> LANES_LOG2) as u64) << WARP_SHIFT
            | (thread & LANE_MASK as u32) as u64
    }
}

/// The identity after a barrier of the whole CTA, where there may be barriers of the whole grid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_barrier(launch: *const LaunchBlock, me: u64) -> u64 {
    // SAFETY: the arguments are this function's.
    unsafe { pass_barrier(launch, me, 0) }
}

/// The identity after the barrier of the CTA that ends one of the whole grid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_barrier_of_grid(launch: *const LaunchBlock, me: u64) -> u64 {
    // SAFETY: the arguments are this function's.
    unsafe { pass_barrier(launch, me, 1) }
}

unsafe fn pass_barrier(launch: *const LaunchBlock, me: u64, more: u64) -> u64 {
    // SAFETY: the *block*; grid epochs are a *table* with a word for each CTA, asked for first.
    unsafe {
        let epochs = (*launch).grid_epochs;
        if epochs == 0 {
            return rule::pass_barrier(me, &shifts(launch));
        }
        let passed = load_relaxed(epochs + (cta_in_grid() << CELL_LOG2));
        rule::pass_barrier_of_grid(me, passed, more, &shifts(launch))
    }
}

/// Counts a barrier of the whole grid. One thread of each CTA calls it, when it knows that all CTAs
/// have arrived, and before the barrier at which the other threads wait for it; so they see the
/// count there, and not before the barrier that precedes the arrival.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_grid_barrier(launch: *const LaunchBlock) {
    // SAFETY: the *block*; grid epochs are a *table*, asked for first, and one thread of a CTA writes its *shared word*.
    unsafe {
        let epochs = (*launch).grid_epochs;
        if epochs != 0 {
            let at = epochs + (cta_in_grid() << CELL_LOG2);
            store_relaxed(at, load_relaxed(at) + 1);
        }
    }
}

/// Counts an operation that may order threads, in front of it: a release and an acquire each add
/// `order::NARROW` or `order::WIDE`, or nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_order(launch: *const LaunchBlock, releases: u64, acquires: u64) {
    // SAFETY: the *block*; its counts are a *table*, asked for first, and two *shared words* for each CTA.
    unsafe {
        if (*launch).orders == 0 {
            return;
        }
        let at = counts(launch, cta_in_grid());
        if releases != 0 {
            add(at, releases);
        }
        // Whether there was one is all that is asked.
        if load_relaxed(at + order::ACQUIRES) & acquires != acquires {
            set(at + order::ACQUIRES, acquires);
        }
    }
}

/// The address of what a CTA has counted.
unsafe fn counts(launch: *const LaunchBlock, cta: u64) -> u64 {
    // SAFETY: a field of the *block*; an address is formed and nothing read.
    unsafe { (*launch).orders + cta * order::COUNTS_BYTES }
}

/// Says in which register a value of inlined code is: what stands behind reads `%crc_` and the name.
macro_rules! name {
    ($name:literal, $value:expr) => {
        asm!(concat!("//= ", $name, " {0}"), in(reg64) $value)
    };
}

/// 1 when the access leaves the cell as it is and there is nothing to report. Straight-line, so
/// that it can be inlined in front of the access.
///
/// `spread` is 3 minus log2 of the granule's bytes. `fresh`, `others` and what the cell is compared with
/// are `classes`, `!own`, `shared` and so on, of the access's kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_fast(
    cells: u64,
    base: u64,
    bytes: u64,
    cell_mask: u64,
    tag_from: u32,
    tag_shift: u32,
    compared: u64,
    compared_by_warps: u64,
    me: u64,
    address: u64,
    spread: u32,
    fresh: u64,
    others: u64,
    shared: u64,
    by_warps: u64,
    by_lanes: u64,
) -> u32 {
    // SAFETY: `cells` and `cell_mask` are those of the *block*, so the cell is one of the *table*, and a *shared
    // word*.
    unsafe {
        let offset = address - base;
        let at = cells + (shl(offset, spread) & cell_mask);
        let cell = load_relaxed(at);
        let me = me | shl(shr(offset, tag_from), tag_shift);
        let differs = cell ^ me;
        name!("offset", offset);
        name!("at", at);
        name!("cell", cell);
        name!("who", me);
        name!("differs", differs);
        let settled = settles(differs, fresh, others, by_lanes, compared_by_warps, by_warps);
        ((offset < bytes) & (settled | (differs & compared == shared))) as u32
    }
}

/// Whether a cell of the thread's own CTA stays as it is: it is the thread's own, with these classes or
/// more, or shared by accesses of the same kind. The constants have no bits that are not compared.
#[inline(always)]
fn settles(differs: u64, fresh: u64, others: u64, by_lanes: u64, compared_by_warps: u64, by_warps: u64) -> bool {
    (differs & others == fresh)
        | (differs & rule::COMPARED_BY_LANES == by_lanes)
        | (differs & compared_by_warps == by_warps)
}

/// The address of the first cell of this CTA's shared memory, as [`rule::slot`]. Here and below, the launch block is
/// that of shared memory.
#[inline(never)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_slot(launch: *const LaunchBlock) -> u64 {
    // SAFETY: fields of the *block*; the slot is cut by its mask.
    unsafe {
        (*launch).cells + (cta_in_grid() & (*launch).slot_mask) * ((*launch).cell_mask + CELL_BYTES)
    }
}

/// [`__cudarun_fast`] for shared memory, over the cells of the CTA's slot. An address outside of it
/// is one where the access fails, so it does not matter which cell is looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_fast_shared(
    cells: u64,
    cell_mask: u64,
    compared_by_warps: u64,
    me: u64,
    address: u64,
    spread: u32,
    fresh: u64,
    others: u64,
    by_warps: u64,
    by_lanes: u64,
) -> u32 {
    // SAFETY: as in `__cudarun_fast`.
    unsafe {
        let at = cells + (shl(address, spread) & cell_mask);
        let cell = load_relaxed(at);
        let differs = cell ^ me;
        name!("at", at);
        name!("cell", cell);
        name!("differs", differs);
        settles(differs, fresh, others, by_lanes, compared_by_warps, by_warps) as u32
    }
}

/// One access to one granule, by the rule. Not inlined: it is the slow path, and large.
///
/// `access` holds the kind, log2 of the granule's bytes and the access's bytes (`layout::ACCESS_*`).
#[inline(never)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_slow(
    launch: *const LaunchBlock,
    me: u64,
    address: u64,
    site: u32,
    access: u32,
) {
    // SAFETY: the *block*. The index of the cell is cut by mask and slot to the *tables*. Counters are *shared
    // words*.
    unsafe {
        let counters = (*launch).counters as *mut Counters;
        let offset = offset(launch, address);
        if offset == OUTSIDE {
            count(&raw mut (*counters).outside, 1);
            return;
        }
        let sample = (*launch).sample_mask;
        if sample != 0 && !rule::is_sampled(address, sample) {
            return;
        }
        let shifts = shifts(launch);
        let granule = offset >> (access >> ACCESS_GRANULE_SHIFT & ACCESS_GRANULE_MASK);
        let (slots, cells) = ((*launch).slot_mask, (*launch).cell_mask >> CELL_LOG2);
        let slot = if slots == 0 { 0 } else { rule::slot(me, &shifts, slots, cells) };
        let index = (granule & cells) + slot;
        let untagged = me;
        let tag = up(granule >> (*launch).index_bits, (*launch).tag_shift);
        let me = untagged | tag;
        let cell_at = (*launch).cells + (index << CELL_LOG2);
        let witnesses = witness::At {
            witnesses: (*launch).witnesses + (index << CELL_LOG2),
            stamps: if (*launch).stamps == 0 { 0 } else { (*launch).stamps + (index << CELL_LOG2) },
            row: (*launch).row,
            tag,
            // One slot is a grid of one CTA, or memory that CTAs of clusters reach.
            near: slots != 0,
        };
        // Lanes that do the same to the same granule do not fight over its cell: the first goes
        // ahead and enters itself, and one other that stands for all the others: unless that one
        // finds something, the rule changes nothing for a third. Whatever the others do next, a
        // barrier waits for the first too.
        let what = (site as u64) << 32u32 | access as u64;
        let lanes = peers(cell_at, me & !LANE_MASK, what);
        if lanes & lanes_below() != 0 {
            return;
        }
        let mine = witness::of(site, untagged, &shifts);
        let stamp = if (*launch).stamps == 0 {
            0
        } else {
            order::stamp(access & ACCESS_KIND_MASK, load_relaxed(counts(launch, cta_in_grid())))
        };
        let mut by = Access { me, mine, stamp, address, access, times: 1 };
        let mut others = lanes & (lanes - 1);
        loop {
            update(launch, &shifts, cell_at, &witnesses, &by);
            if others == 0 {
                return;
            }
            let lane = ones((others & (0 - others)) - 1) as u64;
            by.me = me & !LANE_MASK | lane;
            by.mine = mine & !(LANE_MASK << WITNESS_LANE_SHIFT) | lane << WITNESS_LANE_SHIFT;
            by.times = ones(others);
            others = 0;
        }
    }
}

/// One weak load of one granule, where witnesses have no stamps: enters the cell in few steps where
/// nothing but loads may happen at the same time (`rule::only_loads`), and else asks
/// [`__cudarun_slow`]. Fewest are needed beside loads of the same CTA, since its last barrier
/// (`rule::added_by_load`): of those who come at once, one enters itself.
///
/// `cell_at` is the address of the cell, `who` is `me` with the granule's tag.
#[inline(never)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_load(
    launch: *const LaunchBlock,
    me: u64,
    address: u64,
    site: u32,
    access: u32,
    cell_at: u64,
    who: u64,
) {
    // SAFETY: the *block*; `cell_at` is the address of a cell of the *tables*, as the fast path found it, and a
    // *shared word*.
    unsafe {
        let cell = load_relaxed(cell_at);
        // There are no clusters where this is called.
        let near = access & ACCESS_SHARED != 0;
        let inside = address - (*launch).window_base < (*launch).window_bytes;
        let adds = rule::added_by_load(cell ^ who, (*launch).compared_by_load);
        if inside & (adds != 0) {
            let next = cell | adds;
            if next == cell {
                return;
            }
            let seen = swap_near(cell_at, cell, next | BUSY);
            if seen != cell {
                // Another warp of the CTA, or lane of the warp, was as far, and enters itself: for a third
                // the rule changes nothing. A barrier waits for that thread too.
                if seen & !BUSY != next {
                    __cudarun_slow(launch, me, address, site, access);
                }
                return;
            }
            // There are no grid epochs, so the CTA is what is above the others.
            let cta = shr(me, (*launch).cta_shift);
            let at = cell_at + (*launch).to_witness;
            witness::remember_load_of_cta(at, (*launch).row, cell, witness::of_cta(site, me, cta));
            publish(cell_at, next, near);
            return;
        }
        let shifts = shifts(launch);
        if !(inside & rule::only_loads(cell, who, &shifts)) {
            __cudarun_slow(launch, me, address, site, access);
            return;
        }
        // As in the called check: one lane for all that load the granule, which enters itself and
        // one other.
        let lanes = peers_of_cell(cell_at, who & !LANE_MASK);
        if lanes & lanes_below() != 0 {
            return;
        }
        let others = lanes & (lanes - 1);
        let other = ones((others & (0 - others)) - 1) as u64;
        let mut next = rule::join_loads(cell, who, &shifts);
        let begins = next & (GRID_MULTI | WARP_MULTI | WARP_LANE_MULTI) == 0;
        if begins & (others != 0) {
            next = next | WARP_LANE_MULTI;
        }
        let seen = if next == cell { !cell } else { swap_cell(cell_at, cell, next | BUSY, near) };
        if seen != cell {
            __cudarun_slow(launch, me, address, site, access);
            if others != 0 {
                __cudarun_slow(launch, me & !LANE_MASK | other, address, site, access);
            }
            return;
        }
        let mine = witness::of(site, me, &shifts);
        let at = witness::At {
            witnesses: cell_at + (*launch).to_witness,
            stamps: 0,
            row: (*launch).row,
            tag: who ^ me,
            near,
        };
        let last = mine & !(LANE_MASK << WITNESS_LANE_SHIFT) | other << WITNESS_LANE_SHIFT;
        if !begins {
            witness::remember_one_more(&at, &shifts, cell, mine);
        } else if next & GRID_CLASS_MASK != rule::classes(rule::WEAK_LOAD) & GRID_CLASS_MASK {
            // Other CTAs may still conflict with what this one wrote before its last barrier.
            witness::begin_loads(&at, &shifts, cell, mine, if others == 0 { mine } else { last });
        } else if others == 0 {
            witness::remember_alone(&at, next, false, mine, 0);
        } else {
            witness::remember_loads(&at, mine, last);
        }
        publish(cell_at, next, near);
    }
}

/// One access, or several alike, to one granule.
struct Access {
    /// The thread's identity, tag included.
    me: u64,
    /// Its witness.
    mine: u64,
    /// The witness's stamp.
    stamp: u64,
    address: u64,
    /// The access word.
    access: u32,
    /// How many it stands for.
    times: u32,
}

/// Changes the cell, and its witnesses, as the rule says.
#[inline(always)]
unsafe fn update(launch: *const LaunchBlock, shifts: &Shifts, cell_at: u64, witnesses: &witness::At, by: &Access) {
    // SAFETY: the *block*; cell and witnesses are those that the callers found in the *tables*, and *shared
    // words*.
    unsafe {
        let (me, kind) = (by.me, by.access & ACCESS_KIND_MASK);
        let mut cell = load_relaxed(cell_at);
        loop {
            // A busy cell of an earlier launch belongs to a thread that was killed.
            if cell & BUSY != 0 && (cell ^ me) & GENERATION_MASK == 0 {
                cell = load_relaxed(cell_at);
                continue;
            }
            let outcome = rule::access(cell & !BUSY, me, kind, shifts);
            if outcome.next == cell {
                if outcome.verdict == rule::OK {
                    return;
                }
                // The witnesses are the cell's own unless it changes meanwhile.
                let mut seen = load_cell(cell_at);
                if seen == cell {
                    let was = witness::Was { cell, sole: witnesses.sole(cell) };
                    let other = witness::partner(witnesses, shifts, outcome.verdict, was, kind, by.mine);
                    seen = load_cell(cell_at);
                    if seen == cell {
                        settle(launch, outcome.verdict, cell, other, by);
                        return;
                    }
                }
                cell = seen;
                continue;
            }
            let seen = swap_cell(cell_at, cell, outcome.next | BUSY, witnesses.near);
            if seen != cell {
                cell = seen;
                continue;
            }
            let alone = outcome.next == me | rule::classes(kind);
            // No other thread touches the witnesses of a busy cell, once one that is on its way is there. That of
            // what is over was entered before, but for another CTA's in a slot that this one takes over.
            let over = alone & (outcome.verdict == rule::OK);
            let sole = if over { 0 } else { witnesses.sole(cell) };
            let other = if outcome.verdict == rule::OK {
                witness::NOBODY
            } else {
                witness::partner(witnesses, shifts, outcome.verdict, witness::Was { cell, sole }, kind, by.mine)
            };
            let write = kind > rule::STRONG_LOAD_CTA;
            // A cell that is not decided on may still stand for what other CTAs can conflict with.
            if alone {
                witness::remember_alone(witnesses, outcome.next, write, by.mine, by.stamp);
            } else {
                witness::remember(witnesses, shifts, witness::Was { cell, sole }, outcome.next, write, by.mine, by.stamp);
            }
            publish(cell_at, outcome.next, witnesses.near);
            settle(launch, outcome.verdict, cell, other, by);
            return;
        }
    }
}

/// The granules of one access, one after the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_range(
    launch: *const LaunchBlock,
    me: u64,
    address: u64,
    site: u32,
    access: u32,
) {
    let step = 1u64 << (access >> ACCESS_GRANULE_SHIFT & ACCESS_GRANULE_MASK);
    let end = address + (access >> ACCESS_BYTES_SHIFT) as u64;
    let mut at = address;
    while at < end {
        // SAFETY: `at` is inside the *access*; the other arguments are this function's.
        unsafe { __cudarun_slow(launch, me, at, site, access) };
        at = at + step;
    }
}

/// Counts and records what the rule said.
unsafe fn settle(launch: *const LaunchBlock, verdict: u32, cell: u64, other: witness::Other, by: &Access) {
    // SAFETY: the *block*; counters are *shared words*. Records are written by what it calls.
    unsafe {
        let counters = (*launch).counters as *mut Counters;
        if verdict == rule::OK {
            return;
        }
        if verdict == rule::EVICTED {
            count(&raw mut (*counters).evictions, by.times);
            return;
        }
        if verdict == rule::UNDECIDED {
            count(&raw mut (*counters).undecided, by.times);
            return;
        }
        count(&raw mut (*counters).conflicts, by.times);
        let mut access = by.access;
        if (*launch).orders != 0 {
            let says = fence_rule(launch, verdict, &other, by);
            if says == order::ORDERED {
                count(&raw mut (*counters).ordered, by.times);
                return;
            }
            if says == order::POSSIBLE {
                access = access | ACCESS_POSSIBLE;
            } else {
                count(&raw mut (*counters).unreleased, by.times);
            }
        }
        let possible = access & ACCESS_POSSIBLE != 0;
        let other = other.witness;
        if record::first_of_pair(launch, verdict, by.mine, other, possible, by.address, by.times) {
            record::write(launch, verdict, cell, by.me, by.address, by.mine, other, access);
        }
    }
}

/// What the fence rule makes of a conflict.
unsafe fn fence_rule(launch: *const LaunchBlock, verdict: u32, other: &witness::Other, by: &Access) -> u32 {
    // SAFETY: the *block*. Counts are a *table*, and the caller has asked for them; a witness has the id of a CTA
    // of the grid.
    unsafe {
        if other.witness == 0 || !order::apart(verdict, by.mine, other.witness) {
            return order::POSSIBLE;
        }
        let releases = load_relaxed(counts(launch, other.witness & WITNESS_CTA_MASK));
        let acquires = load_relaxed(counts(launch, cta_in_grid()) + order::ACQUIRES);
        order::settle(verdict, other.stamp, releases, acquires)
    }
}
