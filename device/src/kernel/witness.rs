//! The witnesses beside a cell: which accesses its classes stand for.

use crate::layout::*;
use crate::memory::{load_relaxed, store_relaxed};
use crate::rule::{self, CONFLICT_CTA, CONFLICT_GRID, STRONG_LOAD_CTA, STRONG_WRITE_CTA, STRONG_WRITE_GPU, Shifts, WEAK_LOAD, WEAK_STORE};

/// Where the witnesses of a cell are, and their stamps, if they have any.
pub struct At {
    /// Address of the first.
    pub witnesses: u64,
    /// Likewise of the stamps, or 0.
    pub stamps: u64,
    /// From each to the next, in bytes.
    pub row: u64,
    /// The tag of the granule, in place.
    pub tag: u64,
    /// No thread of another CTA asks for them.
    pub near: bool,
}

impl At {
    /// One of several witnesses.
    #[inline(always)]
    fn witness(&self, row: u64) -> u64 {
        let witness = load_relaxed(self.witnesses + row * self.row);
        if witness & WITNESS_SOLE == 0 { witness } else { 0 }
    }

    #[inline(always)]
    fn stamp(&self, row: u64) -> u64 {
        if self.stamps == 0 { 0 } else { load_relaxed(self.stamps + row * self.row) }
    }

    #[inline(always)]
    fn enter(&self, row: u64, witness: u64, stamp: u64) {
        store_relaxed(self.witnesses + row * self.row, witness);
        if self.stamps != 0 {
            store_relaxed(self.stamps + row * self.row, stamp);
        }
    }

    /// The witness of the only access that `cell` stands for.
    #[inline(always)]
    fn whole(&self, sole: u64, cell: u64, shifts: &Shifts) -> u64 {
        if sole == WITNESS_SOLE {
            return 0;
        }
        of(witness_site(sole), cell ^ self.tag, shifts)
    }

    /// See [`sole`].
    #[inline(always)]
    pub fn sole(&self, cell: u64) -> u64 {
        sole(self.witnesses, cell)
    }
}

/// How often a witness that is on its way is looked for. It comes at once on a GPU, unless launches overlap and
/// have lost it; on the simulated device a thread of the host that was interrupted may have to enter it.
const MOST_LOOKS: u32 = 1 << 20;

/// What the first row, at `first`, holds of the only access that `cell` stands for; 0 if it stands for several,
/// and nothing but [`WITNESS_SOLE`] if that witness is lost.
///
/// A thread that claims a cell in place enters the witness behind the cell, so it may be on its way: then this
/// waits for it.
#[inline(always)]
fn sole(first: u64, cell: u64) -> u64 {
    let witness = load_relaxed(first);
    if is_sole_of(witness, cell) {
        witness
    } else if rule::may_be_claimed(cell) {
        // SAFETY: the address is this function's, that of a witness in the *tables*.
        unsafe { __cudarun_await_witness(first, cell) }
    } else {
        0
    }
}

#[inline(always)]
fn is_sole_of(witness: u64, cell: u64) -> bool {
    (witness & (WITNESS_SOLE | WITNESS_CELL_MASK)) == (WITNESS_SOLE | witness_cell(cell))
}

/// The witness at `first` of the only access that `cell` stands for, once it is there; [`WITNESS_SOLE`] if it
/// does not come.
#[inline(never)]
#[unsafe(no_mangle)]
unsafe extern "C" fn __cudarun_await_witness(first: u64, cell: u64) -> u64 {
    let mut left = MOST_LOOKS;
    while left != 0 {
        let witness = load_relaxed(first);
        if is_sole_of(witness, cell) {
            return witness;
        }
        left = left - 1;
    }
    WITNESS_SOLE
}

/// The other side of a conflict, and its stamp.
pub struct Other {
    pub witness: u64,
    pub stamp: u64,
}

pub const NOBODY: Other = Other { witness: 0, stamp: 0 };

/// The witness of an access by `me`, which is without tag.
#[inline(always)]
pub fn of(site: u32, me: u64, shifts: &Shifts) -> u64 {
    of_cta(site, me, rule::cta(me, shifts))
}

/// Likewise, of a thread of that CTA.
#[inline(always)]
pub fn of_cta(site: u32, me: u64, cta: u64) -> u64 {
    let thread = (me & WARP_MASK) >> (WARP_SHIFT - LANES_LOG2) | me & LANE_MASK;
    // The site's bits above those of a witness say that it is the only one.
    witness(site & SITE_MASK, cta, thread as u32)
}

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

/// A cell before an access.
pub struct Was {
    pub cell: u64,
    /// As [`At::sole`] gives it.
    pub sole: u64,
}

/// The earlier access that `kind` conflicts with; not the asking thread's own if there is another.
pub fn partner(at: &At, shifts: &Shifts, verdict: u32, Was { cell, sole }: Was, kind: u32, mine: u64) -> Other {
    if sole != 0 {
        return Other { witness: at.whole(sole, cell, shifts), stamp: at.stamp(0) };
    }
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
    let first = if write { WITNESS_WRITES } else { WITNESS_LOADS };
    let grid = verdict == CONFLICT_GRID;
    let strong = strong_at(grid);
    // Two strong accesses do not race. If the class has only strong writes, a weak witness is from an earlier epoch.
    let apart = if is_strong(kind, grid) { strong } else { 0 };
    let needed = if class == 1 { strong } else { 0 };
    let last = at.witness(first + WITNESS_LAST);
    let others = last != 0 && (last ^ mine) & WITNESS_THREAD_MASK != 0;
    let row = if others && last & apart == 0 && last & needed == needed { first + WITNESS_LAST } else { first };
    let witness = at.witness(row);
    // Neither witness can race with this access, and others were not kept.
    if witness & apart != 0 || witness & needed != needed {
        return NOBODY;
    }
    Other { witness, stamp: at.stamp(row) }
}

/// The bit of a witness that says that its access is strong at a level.
fn strong_at(grid: bool) -> u64 {
    let strong = if grid { SITE_STRONG_GPU } else { SITE_STRONG_CTA };
    (strong as u64) << WITNESS_SITE_SHIFT
}

/// Whether accesses of `kind` are strong at a level: an access of cta scope counts as weak between CTAs.
fn is_strong(kind: u32, grid: bool) -> bool {
    let weak = kind == WEAK_LOAD || kind == WEAK_STORE;
    !weak && !(grid && rule::is_narrow(kind))
}

/// Enters the one access that `next` stands for.
pub fn remember_alone(at: &At, next: u64, write: bool, mine: u64, stamp: u64) {
    at.enter(0, sole_witness(witness_site(mine), write, next), stamp);
}

/// Enters a load that shares a cell of which only loads are remembered.
#[inline(always)]
pub fn remember_one_more(at: &At, shifts: &Shifts, before: u64, mine: u64) {
    let sole = at.sole(before);
    if sole != 0 {
        remember_loads(at, at.whole(sole, before, shifts), mine);
    } else {
        at.enter(WITNESS_LOADS + WITNESS_LAST, mine, 0);
    }
}

/// Enters a load that shares a cell of its own CTA of which only loads are remembered, where witnesses have
/// no stamps. `at` is the address of the first witness, `row` as in [`At`].
#[inline(always)]
pub fn remember_load_of_cta(at: u64, row: u64, before: u64, mine: u64) {
    let loads = at + row * WITNESS_LOADS;
    if before & (WARP_MULTI | WARP_LANE_MULTI) == 0 {
        let sole = sole(at, before);
        if sole != 0 {
            // Of a lost one that is the thread alone.
            let first = of_cta(witness_site(sole), before, mine);
            store_relaxed(at, 0);
            store_relaxed(at + row, 0);
            store_relaxed(loads, first);
        }
    }
    store_relaxed(loads + row * WITNESS_LAST, mine);
}

/// Enters the first and the last load, where there is nothing else.
#[inline(always)]
pub fn remember_loads(at: &At, first: u64, last: u64) {
    at.enter(WITNESS_LOADS, first, 0);
    at.enter(WITNESS_LOADS + WITNESS_LAST, last, 0);
    at.enter(WITNESS_WRITES, 0, 0);
    at.enter(WITNESS_WRITES + WITNESS_LAST, 0, 0);
}

/// Enters the first and the last load since a barrier, in a cell that knows of a write before it: in the
/// place of all earlier loads.
#[inline(always)]
pub fn begin_loads(at: &At, shifts: &Shifts, before: u64, first: u64, last: u64) {
    let sole = at.sole(before);
    if sole != 0 {
        let write = at.whole(sole, before, shifts);
        at.enter(WITNESS_WRITES, write, 0);
        at.enter(WITNESS_WRITES + WITNESS_LAST, write, 0);
    }
    at.enter(WITNESS_LOADS, first, 0);
    at.enter(WITNESS_LOADS + WITNESS_LAST, last, 0);
}

/// Enters an access that made the cell `next`, where it stood for others before.
pub fn remember(at: &At, shifts: &Shifts, Was { cell: before, sole }: Was, next: u64, write: bool, mine: u64, stamp: u64) {
    if sole != 0 {
        let (witness, stamp) = (at.whole(sole, before, shifts), at.stamp(0));
        let (own, others) = rows(sole & WITNESS_SOLE_WRITE != 0);
        at.enter(own, witness, stamp);
        at.enter(own + WITNESS_LAST, witness, stamp);
        at.enter(others, 0, 0);
        at.enter(others + WITNESS_LAST, 0, 0);
    }
    let (own, _) = rows(write);
    let single = next & (GRID_MULTI | WARP_MULTI | WARP_LANE_MULTI) == 0;
    let first = at.witness(own);
    let strong = strong_at(true);
    // An access that shares the granule becomes the last witness. One that takes the granule over, in a new epoch, becomes
    // the first witness too, unless it is strong and the first one is weak: strong accesses of other CTAs race with that.
    if first == 0 || (single && (mine & strong == 0 || first & strong != 0)) {
        at.enter(own, mine, stamp);
    }
    at.enter(own + WITNESS_LAST, mine, stamp);
}

/// The first rows of writes and of loads, the access's own before the others.
fn rows(write: bool) -> (u64, u64) {
    if write { (WITNESS_WRITES, WITNESS_LOADS) } else { (WITNESS_LOADS, WITNESS_WRITES) }
}
