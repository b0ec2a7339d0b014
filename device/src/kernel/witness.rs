//! The witnesses beside a cell: which accesses its classes stand for.

use crate::layout::*;
use crate::memory::{load_relaxed, store_relaxed};
use crate::rule::{CONFLICT_CTA, CONFLICT_GRID, STRONG_LOAD_CTA, STRONG_WRITE_CTA, STRONG_WRITE_GPU};

const FIRST: u64 = 0;
const LAST: u64 = 8;
const WRITES: u64 = 0;
const LOADS: u64 = 16;

/// Where the witnesses of a cell are, and their stamps, if they have any.
pub struct At {
    pub witnesses: u64,
    pub stamps: u64,
}

/// The other side of a conflict, and its stamp.
pub struct Other {
    pub witness: u64,
    pub stamp: u64,
}

pub const NOBODY: Other = Other { witness: 0, stamp: 0 };

/// The class of the level at which `verdict` conflicted.
pub fn class(verdict: u32, cell: u64) -> u64 {
    let shift = if verdict == CONFLICT_GRID {
        GRID_CLASS_SHIFT
    } else if verdict == CONFLICT_CTA {
        CTA_CLASS_SHIFT
    } else {
        WARP_CLASS_SHIFT
    };
    cell >> shift & CLASS_BITS
}

/// The earlier access that `kind` conflicts with; not the asking thread's own if there is another.
pub fn partner(at: &At, verdict: u32, cell: u64, kind: u32, mine: u64) -> Other {
    let class = class(verdict, cell);
    // Bits of a class: 1 writes, 2 weak, 4 weak writes.
    let write = if kind <= STRONG_LOAD_CTA || class & 4 != 0 {
        true
    } else if kind == STRONG_WRITE_GPU || (kind == STRONG_WRITE_CTA && verdict != CONFLICT_GRID) {
        // A strong write conflicts with what is weak, and no write is.
        false
    } else {
        class & 1 != 0
    };
    let kind = if write { WRITES } else { LOADS };
    let last = load_relaxed(at.witnesses + kind + LAST);
    let slot = if last != 0 && (last ^ mine) & WITNESS_THREAD_MASK != 0 { LAST } else { FIRST };
    Other {
        witness: load_relaxed(at.witnesses + kind + slot),
        stamp: if at.stamps == 0 { 0 } else { load_relaxed(at.stamps + kind + slot) },
    }
}

/// Enters an access that made the cell `next`; `alone` when the cell stands for it alone.
pub fn remember(at: &At, next: u64, kind: u32, mine: u64, stamp: u64, alone: bool) {
    let load = kind <= STRONG_LOAD_CTA;
    let (own, others) = if load { (LOADS, WRITES) } else { (WRITES, LOADS) };
    if alone {
        store_relaxed(at.witnesses + others + FIRST, 0);
        store_relaxed(at.witnesses + others + LAST, 0);
    }
    let single = next & (GRID_MULTI | WARP_MULTI | WARP_LANE_MULTI) == 0;
    // Who shares a granule comes last; whoever takes it over, in a new epoch, is the first as well.
    if alone || single || load_relaxed(at.witnesses + own + FIRST) == 0 {
        enter(at, own + FIRST, mine, stamp);
    }
    enter(at, own + LAST, mine, stamp);
}

fn enter(at: &At, slot: u64, mine: u64, stamp: u64) {
    store_relaxed(at.witnesses + slot, mine);
    if at.stamps != 0 {
        store_relaxed(at.stamps + slot, stamp);
    }
}
