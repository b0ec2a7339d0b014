//! The race rule: what one access does to a shadow cell.
//!
//! After ScoRD (Kamath et al., ISCA 2020), whose size and place are kept: 8 bytes per granule in a
//! direct-mapped cache.
//! The contents are a three-level summary (grid, CTA, warp) instead of the last accessor, because a
//! last accessor forgets: a reader that is ordered after a writer must not erase it for a third.
//! 1. At each level the cell knows who owns the granule, or that several share it, and the *class*:
//!    which kinds of access there were since the last barrier of that level.
//! 2. Within a level a shared granule is homogeneous (all loads, or all atomics), or else a race has
//!    been reported; so a newcomer is compared with the class alone.
//! 3. An access in a newer epoch of the owner is ordered after everything of that level.
//!
//! A class is a set of three attributes, so that joining is `|` and a conflict is one `&`:
//! *writes*; *weak* (at grid level: weak or narrower than gpu scope); *weak writes* (likewise).
//! With two bits per class, as often proposed, a strong load would have to count as a weak load or
//! as an atomic, and either gives false alarms beside the other.
//! 4. Strong loads also end homogeneity: one thread may update a counter while others watch it, and
//!    then load it weakly, without any race. A shared granule whose accesses differ is *mixed*: a
//!    conflict that depends on whose access it was is left undecided, and counted.
//!    Mixed classes use the three patterns that no set of attributes has.
//! 5. Shared memory is the same with the CTA as the tag: CTAs use one cell in turn, and never race.
//!    What an exited CTA has left is no loss, and nothing says which has exited. So a CTA takes over
//!    silently from one with a smaller id, which mostly was there before; an eviction is counted
//!    where the order is broken. A CTA that lost a cell and comes back finds its followers' (an
//!    eviction), or an eviction has been counted in between: no loss goes uncounted.
//! 6. A barrier of the whole grid orders everything before it, so it voids cells as a new launch
//!    does. Of a thread that does not know its grid epoch, nothing is decided.
//!
//! This file is compiled twice: into this crate, and by `device` with `#![no_core]` into PTX.
//! Hence only `u32`, `u64`, `bool` and plain functions.

use crate::layout::{
    BUSY, CLASS_BITS, CTA_CLASS_MASK, CTA_CLASS_SHIFT, GENERATION_MASK, GRID_CLASS_MASK,
    GRID_CLASS_SHIFT, GRID_MULTI, LANE_MASK, SITE_ID_MASK, SITE_STRONG_CTA, SITE_STRONG_GPU,
    WARP_CLASS_MASK, WARP_CLASS_SHIFT, WARP_EPOCH_SHIFT, WARP_LANE_MULTI, WARP_MASK, WARP_MULTI,
};

/// Kind of access: a weak load (`ld`, `ld.global.nc`).
pub const WEAK_LOAD: u32 = 0;
/// A relaxed, acquire or volatile load of gpu or wider scope.
pub const STRONG_LOAD_GPU: u32 = 1;
/// A strong load of cta scope.
pub const STRONG_LOAD_CTA: u32 = 2;
/// An atomic, reduction or strong store of gpu or wider scope.
pub const STRONG_WRITE_GPU: u32 = 3;
/// An atomic, reduction or strong store of cta scope.
pub const STRONG_WRITE_CTA: u32 = 4;
/// A weak store.
pub const WEAK_STORE: u32 = 5;
/// Number of kinds.
pub const KINDS: u32 = 6;

/// The access is ordered after, or does not conflict with, what the cell remembers.
pub const OK: u32 = 0;
/// Conflict with another CTA.
pub const CONFLICT_GRID: u32 = 1;
/// Conflict with another warp of the same CTA.
pub const CONFLICT_CTA: u32 = 2;
/// Conflict with another lane of the same warp.
pub const CONFLICT_WARP: u32 = 3;
/// The cell belonged to another granule of this launch, or to another CTA's shared memory, which is
/// now forgotten.
pub const EVICTED: u32 = 4;
/// An epoch counter is saturated, or the class is mixed: whether there is a conflict is not known.
/// Not reported.
pub const UNDECIDED: u32 = 5;

// One hexadecimal digit per kind, kind 0 lowest. Bits of a class: 1 writes, 2 weak, 4 weak writes.
/// What a kind adds to the class at grid level, where narrow scope counts as weak.
const ADDS_GRID: u32 = 0x0077_1202;
/// What a kind adds at CTA and warp level.
const ADDS_CTA: u32 = 0x0071_1002;
/// Which attributes a kind conflicts with at grid level; 8 stands for "always".
const CONFLICTS_GRID: u32 = 0x0088_2141;
/// Likewise at CTA and warp level.
const CONFLICTS_CTA: u32 = 0x0082_2441;

/// Where the fields whose width is chosen per launch begin.
pub struct Shifts {
    /// Lowest bit of the barrier epoch, at least 31.
    pub barrier: u32,
    /// Lowest bit of the CTA id, at most 63.
    pub cta: u32,
    /// Lowest bit of the tag, that of the grid epoch when there is none.
    pub tag: u32,
    /// Lowest bit of the grid epoch, 64 when there is none.
    pub grid: u32,
    /// A CTA with the larger tag follows one with the smaller, which is no eviction.
    pub in_turn: bool,
}

/// What an access does.
pub struct Ruling {
    /// The next cell.
    pub next: u64,
    /// [`OK`] to [`UNDECIDED`].
    pub verdict: u32,
}

const fn digit(table: u32, kind: u32) -> u64 {
    (table >> (kind << 2) & 15) as u64
}

const fn conflicts(table: u32, class: u64, kind: u32) -> bool {
    digit(table, kind) & (attributes(class) | 8) != 0
}

/// The attributes of a class that may be mixed: 4, 5 and 6 stand for 1, 3 and 2.
const fn attributes(class: u64) -> u64 {
    if is_mixed(class) {
        (class - 3) ^ ((class - 3) >> 1)
    } else {
        class
    }
}

const fn is_mixed(class: u64) -> bool {
    class >= 4 && class != 7
}

/// The class of a granule that several share, after one more access that does not conflict.
/// `several` says whether it was shared before.
const fn share(class: u64, adds: u64, several: bool) -> u64 {
    let had = attributes(class);
    let has = had | adds;
    let alike = if several {
        !is_mixed(class) & (has == had)
    } else {
        had == adds
    };
    if alike {
        has
    } else if has == 1 {
        4
    } else if has == 3 {
        5
    } else {
        6
    }
}

/// Whether a conflict with a mixed class might be with the thread's own earlier access.
const fn doubtful(table: u32, class: u64, kind: u32) -> bool {
    is_mixed(class) & (digit(table, kind) & 8 == 0)
}

/// A left shift that may be by 64.
pub const fn up(value: u64, shift: u32) -> u64 {
    value << 1u32 << (shift - 1)
}

/// A right shift that may be by 64.
pub const fn above(value: u64, shift: u32) -> u64 {
    value >> 1 >> (shift - 1)
}

/// What [`is_sampled`] multiplies with: 2^32 over the golden ratio, so that neighbours spread evenly.
pub const SAMPLE_FACTOR: u64 = 0x9e37_79b9;
/// Lowest bit of the product that it looks at.
pub const SAMPLE_SHIFT: u32 = 22;
/// log2 of the bytes of the words that it chooses from.
pub const SAMPLE_WORD_LOG2: u32 = 2;

/// Whether the word at `address` is one of the `1 / (mask + 1)` that a sampling run checks: always
/// the same ones, whichever thread accesses them, so that what is reported is a race in any case.
pub const fn is_sampled(address: u64, mask: u64) -> bool {
    ((address >> SAMPLE_WORD_LOG2 & 0xffff_ffff) * SAMPLE_FACTOR) >> SAMPLE_SHIFT & mask == 0
}

/// The class bits of a cell that `kind` alone has touched.
pub const fn classes(kind: u32) -> u64 {
    digit(ADDS_GRID, kind) << GRID_CLASS_SHIFT
        | digit(ADDS_CTA, kind) << CTA_CLASS_SHIFT
        | digit(ADDS_CTA, kind) << WARP_CLASS_SHIFT
}

/// The state of a cell shared by several CTAs that one more access of `kind` leaves as it is.
///
/// For kinds that conflict with everything there, this is a state that no cell has: a granule with
/// a weak write is never shared without a conflict.
pub const fn shared(kind: u32) -> u64 {
    GRID_MULTI | digit(ADDS_GRID, kind) << GRID_CLASS_SHIFT
}

/// Class bits that need not be equal for an access of `kind` by a cell's only owner to leave the
/// cell as it is: it may have done more than that.
pub const fn own(kind: u32) -> u64 {
    (GRID_CLASS_MASK | CTA_CLASS_MASK | WARP_CLASS_MASK) & !classes(kind)
}

/// The bits of a cell that decide on [`shared`].
pub const fn compared(shifts: &Shifts) -> u64 {
    up(!0, shifts.tag) | GENERATION_MASK | BUSY | GRID_MULTI | GRID_CLASS_MASK
}

/// The state of a cell of the thread's CTA alone, shared by several warps in this barrier epoch, that
/// one more access of `kind` leaves as it is. No cell has that of a weak store, as with [`shared`].
///
/// What all have done has also entered the class of the grid, unless the access is narrow and
/// theirs are not; so no cell has that of a strong access of cta scope either.
pub const fn shared_by_warps(kind: u32) -> u64 {
    if is_narrow(kind) {
        return NEVER;
    }
    WARP_MULTI | digit(ADDS_CTA, kind) << CTA_CLASS_SHIFT
}

/// Whether a weak store finds a weak store of another CTA in its cell, by how the cell differs from the thread:
/// a conflict that leaves the cell as it is. `compared` is [`compared`] of the launch, and `least` is
/// [`least_of_other_cta`].
pub const fn meets_store(differs: u64, compared: u64, least: u64) -> bool {
    (differs & compared == classes(WEAK_STORE) & GRID_CLASS_MASK) & (differs >= least)
}

/// The least difference between a cell and a thread's identity with which the cell is another CTA's, if the two have
/// the same tag. Where there is one CTA only, or there are grid epochs, which may be lost, that of no cell is as large.
pub const fn least_of_other_cta(shifts: &Shifts) -> u64 {
    if shifts.grid != 64 || shifts.cta == 64 {
        return !0;
    }
    up(1, shifts.cta)
}

/// The bits of a cell that decide on [`shared_by_warps`].
pub const fn compared_by_warps(shifts: &Shifts) -> u64 {
    let since_barrier = up(!0, shifts.barrier);
    since_barrier | GENERATION_MASK | BUSY | GRID_MULTI | WARP_MULTI | CTA_CLASS_MASK
}

/// Likewise of a cell of the thread's warp alone, shared by several lanes in this warp epoch.
pub const fn shared_by_lanes(kind: u32) -> u64 {
    if is_narrow(kind) {
        return NEVER;
    }
    WARP_LANE_MULTI | digit(ADDS_CTA, kind) << WARP_CLASS_SHIFT
}

/// The bits of a cell that decide on [`shared_by_lanes`].
pub const COMPARED_BY_LANES: u64 = !(LANE_MASK | CTA_CLASS_MASK | GRID_CLASS_MASK);

/// No cell has this state: it is none of the bits that are compared.
const NEVER: u64 = 1;

/// The site number that the device gets for the site `id`, whose accesses are of `kind`.
pub const fn site_of_kind(id: u32, kind: u32) -> u32 {
    let strong = if kind == WEAK_LOAD || kind == WEAK_STORE {
        0
    } else if is_narrow(kind) {
        SITE_STRONG_CTA
    } else {
        SITE_STRONG_CTA | SITE_STRONG_GPU
    };
    id & SITE_ID_MASK | strong
}

/// Whether accesses of `kind` are strong, of cta scope.
pub const fn is_narrow(kind: u32) -> bool {
    kind == STRONG_LOAD_CTA || kind == STRONG_WRITE_CTA
}

/// Whether all that `cell` stands for has expired for `me`: the access claims the cell for itself.
///
/// Of an older launch or grid epoch, or another granule's; and where one CTA only can access the
/// granule, of an older barrier epoch.
pub const fn has_expired(cell: u64, me: u64, shifts: &Shifts) -> bool {
    let differs = cell ^ me;
    let apart = differs & GENERATION_MASK != 0 || above(differs, shifts.tag) != 0;
    apart || (shifts.tag == shifts.cta && above(differs, shifts.barrier) != 0)
}

/// Whether `kind` has classes that no other accesses leave: not those of narrow scope, which look like
/// several accesses, of which the wide ones came last. Only such accesses claim a cell in place.
pub const fn claims(kind: u32) -> bool {
    !is_narrow(kind)
}

/// Whether an access that [claims](claims) a cell in place may have left it so. Then it stands for that
/// one access, however it came about.
pub const fn may_be_claimed(cell: u64) -> bool {
    let several = GRID_MULTI | WARP_MULTI | WARP_LANE_MULTI;
    let state = cell & (several | GRID_CLASS_MASK | CTA_CLASS_MASK | WARP_CLASS_MASK);
    state == classes(WEAK_LOAD)
        || state == classes(STRONG_LOAD_GPU)
        || state == classes(STRONG_WRITE_GPU)
        || state == classes(WEAK_STORE)
}

/// Whether a weak store leaves nothing else to remember of `cell`: its owner is the one that stores, in
/// the same epochs. Whatever conflicts with what the owner did before conflicts with the store.
pub const fn is_covered(cell: u64, me: u64, kind: u32) -> bool {
    kind == WEAK_STORE && (cell ^ me) & !classes(WEAK_STORE) == 0
}

/// The bits of a cell that decide on [`claimed_before_barrier`], beside its epochs and what is above.
pub const fn compared_before_barrier(kind: u32) -> u64 {
    let one_cta = GENERATION_MASK | BUSY | GRID_MULTI;
    if kind == WEAK_LOAD {
        one_cta | GRID_CLASS_MASK
    } else {
        one_cta
    }
}

/// How a cell of the thread's own CTA from before its last barrier differs from the thread when an
/// access of `kind` leaves nothing else to remember: a weak store, or a weak load where the CTA has
/// done nothing but load. Such an access claims the cell for itself; not where grid epochs may be lost.
pub const fn claimed_before_barrier(kind: u32) -> u64 {
    if kind == WEAK_STORE {
        0
    } else if kind == WEAK_LOAD {
        classes(WEAK_LOAD) & GRID_CLASS_MASK
    } else {
        NEVER
    }
}

/// The first cell of a CTA's slot, by its number; slots have `last + 1` cells. `me` is without
/// tag.
pub const fn slot(me: u64, shifts: &Shifts, slot_mask: u64, last: u64) -> u64 {
    (cta(me, shifts) & slot_mask) * (last + 1)
}

/// The CTA of `me`, which is without tag.
pub const fn cta(me: u64, shifts: &Shifts) -> u64 {
    let epoch = up(above(me, shifts.grid), shifts.grid);
    above(me ^ epoch, shifts.cta)
}

/// Whether the field of `me` from `low` to `high` is at its maximum. A field without bits never is.
pub const fn saturated(me: u64, low: u32, high: u32) -> bool {
    let mask = above(!0, 64 - (high - low));
    high != low && me >> low & mask == mask
}

/// Whether the grid epoch is at its maximum, which stands for not knowing it.
const fn lost_grid_barriers(me: u64, shifts: &Shifts) -> bool {
    let most = above(!0, shifts.grid);
    most != 0 && above(me, shifts.grid) == most
}

/// One access by `me` to a granule whose cell is `cell`.
///
/// `me` holds generation, grid epoch, tag, CTA, epochs, warp and lane, and no class or multi bit.
pub const fn access(cell: u64, me: u64, kind: u32, shifts: &Shifts) -> Ruling {
    let fresh = me | classes(kind);
    let differs = cell ^ me;
    if differs & GENERATION_MASK != 0 {
        return Ruling {
            next: fresh,
            verdict: OK,
        };
    }
    if lost_grid_barriers(cell, shifts) || lost_grid_barriers(me, shifts) {
        let mine = differs & !(GRID_CLASS_MASK | CTA_CLASS_MASK | WARP_CLASS_MASK) == 0;
        return Ruling {
            next: if mine { cell | fresh } else { fresh },
            verdict: if mine { OK } else { UNDECIDED },
        };
    }
    if above(differs, shifts.grid) != 0 {
        return Ruling {
            next: fresh,
            verdict: OK,
        };
    }
    if above(differs, shifts.tag) != 0 {
        let follows = shifts.in_turn & (above(cell, shifts.tag) < above(me, shifts.tag));
        return Ruling {
            next: fresh,
            verdict: if follows { OK } else { EVICTED },
        };
    }

    // Grid level: another CTA, or several.
    let adds = digit(ADDS_GRID, kind);
    let class = cell >> GRID_CLASS_SHIFT & CLASS_BITS;
    let several = cell & GRID_MULTI != 0;
    if several || above(differs, shifts.cta) != 0 {
        if conflicts(CONFLICTS_GRID, class, kind) {
            if doubtful(CONFLICTS_GRID, class, kind) {
                return Ruling {
                    next: fresh,
                    verdict: UNDECIDED,
                };
            }
            return conflict(cell, fresh, class, kind, CONFLICT_GRID);
        }
        let class = share(class, adds, several) << GRID_CLASS_SHIFT;
        return Ruling {
            next: cell & !GRID_CLASS_MASK | class | GRID_MULTI,
            verdict: OK,
        };
    }
    // My own CTA. What it did before its last barrier matters to other CTAs only.
    let joined = cell | adds << GRID_CLASS_SHIFT;
    let keep_grid = fresh | joined & GRID_CLASS_MASK;
    if above(differs, shifts.barrier) != 0 {
        let next = match has_expired(cell, me, shifts) {
            true => fresh,
            false => keep_grid,
        };
        return Ruling { next, verdict: OK };
    }

    // CTA level: another warp, or several.
    let lost_barriers = saturated(me, shifts.barrier, shifts.cta);
    let adds = digit(ADDS_CTA, kind);
    let class = cell >> CTA_CLASS_SHIFT & CLASS_BITS;
    let several = cell & WARP_MULTI != 0;
    if several || differs & WARP_MASK != 0 {
        if conflicts(CONFLICTS_CTA, class, kind) {
            if lost_barriers || doubtful(CONFLICTS_CTA, class, kind) {
                return Ruling {
                    next: keep_grid,
                    verdict: UNDECIDED,
                };
            }
            return conflict(cell, fresh, class, kind, CONFLICT_CTA);
        }
        let class = share(class, adds, several) << CTA_CLASS_SHIFT;
        return Ruling {
            next: joined & !CTA_CLASS_MASK | class | WARP_MULTI,
            verdict: OK,
        };
    }
    // My own warp.
    let joined = joined | adds << CTA_CLASS_SHIFT;
    let keep_cta = fresh | joined & (GRID_CLASS_MASK | CTA_CLASS_MASK);
    if differs >> WARP_EPOCH_SHIFT != 0 {
        return Ruling {
            next: keep_cta,
            verdict: OK,
        };
    }

    // Warp level: another lane, or several.
    let class = cell >> WARP_CLASS_SHIFT & CLASS_BITS;
    let several = cell & WARP_LANE_MULTI != 0;
    if several || differs & LANE_MASK != 0 {
        if conflicts(CONFLICTS_CTA, class, kind) {
            let lost = lost_barriers || saturated(me, WARP_EPOCH_SHIFT, shifts.barrier);
            if lost || doubtful(CONFLICTS_CTA, class, kind) {
                return Ruling {
                    next: keep_cta,
                    verdict: UNDECIDED,
                };
            }
            return conflict(cell, fresh, class, kind, CONFLICT_WARP);
        }
        let class = share(class, adds, several) << WARP_CLASS_SHIFT;
        return Ruling {
            next: joined & !WARP_CLASS_MASK | class | WARP_LANE_MULTI,
            verdict: OK,
        };
    }
    Ruling {
        next: joined | adds << WARP_CLASS_SHIFT,
        verdict: OK,
    }
}

/// Whether no thread is changing the cell of a granule, and nothing but weak loads is remembered of it
/// that may happen at the same time as one more: the common case of [`access`] for a weak load. Not where
/// grid epochs may be lost.
pub const fn only_loads(cell: u64, me: u64, shifts: &Shifts) -> bool {
    let differs = cell ^ me;
    if differs & (GENERATION_MASK | BUSY) != 0
        || above(differs, shifts.tag) != 0
        || shifts.grid != 64
    {
        return false;
    }
    let loads = classes(WEAK_LOAD);
    if cell & GRID_MULTI != 0 || above(differs, shifts.cta) != 0 {
        return (differs ^ loads) & GRID_CLASS_MASK == 0;
    }
    let within_cta = CTA_CLASS_MASK | WARP_CLASS_MASK;
    above(differs, shifts.barrier) != 0 || (differs ^ loads) & within_cta == 0
}

/// The next cell then: a thread that comes to it shares it, or begins a newer epoch.
pub const fn join_loads(cell: u64, me: u64, shifts: &Shifts) -> u64 {
    let differs = cell ^ me;
    let fresh = me | classes(WEAK_LOAD);
    // What the CTA has done before matters to other CTAs.
    let joined = cell | classes(WEAK_LOAD) & GRID_CLASS_MASK;
    let fresh_of_cta = fresh | joined & GRID_CLASS_MASK;
    if cell & GRID_MULTI != 0 || above(differs, shifts.cta) != 0 {
        cell | GRID_MULTI
    } else if has_expired(cell, me, shifts) {
        fresh
    } else if above(differs, shifts.barrier) != 0 {
        fresh_of_cta
    } else if cell & WARP_MULTI != 0 || differs & WARP_MASK != 0 {
        joined | WARP_MULTI
    } else if differs >> WARP_EPOCH_SHIFT != 0 {
        fresh_of_cta
    } else if differs & LANE_MASK != 0 {
        joined | WARP_LANE_MULTI
    } else {
        joined
    }
}

/// The bits of a cell that decide on [`added_by_load`]; none in a launch with grid epochs, which may be lost.
pub const fn compared_by_load(shifts: &Shifts) -> u64 {
    if shifts.grid != 64 {
        return 0;
    }
    let classes = CTA_CLASS_MASK | WARP_CLASS_MASK;
    up(!0, shifts.barrier) | GENERATION_MASK | BUSY | GRID_MULTI | classes
}

/// What one more weak load adds to a cell that others of its CTA have only loaded since their last
/// barrier, beside itself, by how the cell differs from the thread: several warps or several lanes. 0
/// where it is not that: the most common case of [`only_loads`], in which [`join_loads`] shares the cell.
pub const fn added_by_load(differs: u64, compared: u64) -> u64 {
    let loads = classes(WEAK_LOAD);
    if differs & compared != loads & (CTA_CLASS_MASK | WARP_CLASS_MASK) {
        return 0;
    }
    let warps = differs & (WARP_MASK | WARP_MULTI) != 0;
    let lanes = differs & (LANE_MASK | WARP_LANE_MULTI) != 0;
    let several = if warps { WARP_MULTI } else { WARP_LANE_MULTI };
    if warps | (lanes & (differs >> WARP_EPOCH_SHIFT == 0)) {
        several | loads & GRID_CLASS_MASK
    } else {
        0
    }
}

/// After a conflict the cell describes a subset of the accesses, so that it never alarms falsely.
/// A load leaves the cell to the writer it raced with, and so does a write where the cell knows a
/// weak write already: nothing conflicts with more, and threads that all store to one granule do
/// not fight over its cell. Any other write takes the cell over.
const fn conflict(cell: u64, fresh: u64, class: u64, kind: u32, verdict: u32) -> Ruling {
    let keep = kind <= STRONG_LOAD_CTA || class == CLASS_BITS;
    let next = if keep { cell } else { fresh };
    Ruling { next, verdict }
}

/// The bits of the warp epoch: they lie between the cell's fixed fields and the barrier epoch.
pub const fn warp_epoch(shifts: &Shifts) -> u64 {
    above(!0, 64 - (shifts.barrier - WARP_EPOCH_SHIFT)) << WARP_EPOCH_SHIFT
}

/// All bits but those of the barrier epoch: with them, an identity whose barrier epoch is at its end,
/// or has no bits, is all ones.
pub const fn besides_barrier(shifts: &Shifts) -> u64 {
    !up(
        above(!0, 64 - (shifts.cta - shifts.barrier)),
        shifts.barrier,
    )
}

/// `me` after a barrier of the whole CTA: next barrier epoch, warp epoch 0.
pub const fn pass_barrier(me: u64, shifts: &Shifts) -> u64 {
    let me = me & !warp_epoch(shifts);
    if shifts.cta == shifts.barrier || saturated(me, shifts.barrier, shifts.cta) {
        return me;
    }
    me + (1 << shifts.barrier)
}

/// `me` after a barrier of the whole CTA that is the end of `more` barriers of the whole grid, 0 or 1,
/// where the CTA has passed `passed` of them by now.
///
/// Those are different when threads of the CTA meet at different instructions; then the grid epoch
/// is lost.
pub const fn pass_barrier_of_grid(me: u64, passed: u64, more: u64, shifts: &Shifts) -> u64 {
    let most = above(!0, shifts.grid);
    let before = above(me, shifts.grid);
    let me = pass_barrier(me, shifts);
    if before == most || (more == 0 && passed == before) {
        return me;
    }
    let now = before + more;
    if passed != now || now == most {
        return me | up(most, shifts.grid);
    }
    let inner = above(!0, 64 - (shifts.cta - WARP_EPOCH_SHIFT)) << WARP_EPOCH_SHIFT;
    (me & !inner) ^ up(before ^ now, shifts.grid)
}

/// `me` after a barrier of the whole warp: next warp epoch.
pub const fn pass_warp_barrier(me: u64, shifts: &Shifts) -> u64 {
    if shifts.barrier == WARP_EPOCH_SHIFT || saturated(me, WARP_EPOCH_SHIFT, shifts.barrier) {
        return me;
    }
    me + (1 << WARP_EPOCH_SHIFT)
}
