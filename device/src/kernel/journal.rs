//! The journal: what the host needs in order to decide by happens-before.
//!
//! Everything that orders threads is recorded, in an order that agrees with that of each thread and of
//! each location. Of the other accesses only those are recorded whose granule a second thread has
//! accessed; the first thread's last accesses are recorded with its first.
//!
//! What a strong access observes depends on the order of the writes, so strong accesses are made and
//! recorded in turns. So are weak stores to granules that have strong accesses: a cell says so from before
//! the first one is made. A weak store that was under way just then is recorded as overtaken.
//!
//! A thread's state lies in its local memory: its identity, whose barrier epoch counts its entries;
//! the number of its last entry; and what it polls, if it does ([`crate::looks`]).
//!
//! A launch block without a journal is one of a launch that is not checked.

use crate::layout::*;
use crate::memory::*;
use crate::rule;
use crate::rule::up;
use crate::{OUTSIDE, shifts};

/// Offsets in a thread's state, of which [`JOURNAL_STATE`] is the size, and which lies at a multiple of 16.
pub const ME: u64 = 0;
const LAST: u64 = 8;
/// The thread's turn at the lock that it waits for, or has; 0 if there is none.
pub const TURN: u64 = 16;
/// How often the thread has looked at memory since its last entry, and found nothing new.
pub const POLLS: u64 = 24;
/// What memory held before an atomic.
pub const FOUND: u64 = 32;
/// The lanes that have a turn together, as those that execute a `fence.sc` do.
pub const TOGETHER: u64 = 40;
/// The turns asked for when a load went ahead; where the thread has a turn, the first turn of those that its warp
/// has asked for together.
pub const SEEN: u64 = 48;
/// One more than the entries that may have published something.
pub const ORDERED: u64 = 56;
/// How often in a row the lock was taken when the thread wanted to look.
pub const TRIES: u64 = 64;
/// CTA and warp, as entries have them.
const WHO: u64 = 72;
/// The bits that count its entries in its identity.
const EPOCH: u64 = 80;
/// The lock of the location that the thread is about to access.
pub const LOCK: u64 = 88;
/// What it has looked at ([`crate::looks`]).
pub const PLACES: u64 = 96;

/// What [`touch`] finds: the access has to be recorded.
pub const RECORD: u32 = 1;
/// The granule has strong accesses.
pub const STRONG: u32 = 2;

/// A witness of a load of read-only data.
const READ_ONLY: u64 = 1 << 63;

/// An access by this thread.
pub struct Access {
    pub address: u64,
    pub what: u32,
    /// The access word: flags, granule and bytes.
    pub word: u32,
    /// It is under way for longer, so that all later accesses have to be recorded.
    pub copies: bool,
}

impl Access {
    pub fn is(&self, flag: u32) -> bool {
        self.word & flag != 0
    }

    pub fn bytes(&self) -> u32 {
        let end = if self.copies { JOURNAL_PIECE_SHIFT } else { JOURNAL_LOOK_SHIFT };
        (self.word & ((1 << end) - 1)) >> ACCESS_BYTES_SHIFT
    }

    pub fn granule_log2(&self) -> u32 {
        self.word >> ACCESS_GRANULE_SHIFT & ACCESS_GRANULE_MASK
    }
}

/// Prepares the state of a thread at the kernel's entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_enter(launch: *const LaunchBlock, state: u64) {
    // SAFETY: the *block* is this function's.
    let me = unsafe { crate::enter(launch) };
    store_local::<{ ME }>(state, me);
    // SAFETY: the *block* is this function's.
    store_local::<{ WHO }>(state, unsafe { who(me, launch) });
    // SAFETY: the *block* is this function's.
    let shifts = unsafe { shifts(launch) };
    store_local::<{ EPOCH }>(state, up(!0u64, shifts.barrier) ^ up(!0u64, shifts.cta));
    store_local::<{ LAST }>(state, 0);
    store_local::<{ TURN }>(state, 0);
    store_local::<{ POLLS }>(state, 0);
    store_local::<{ TRIES }>(state, 0);
    store_local::<{ TOGETHER }>(state, 0);
    store_local::<{ ORDERED }>(state, 1);
    crate::looks::forget(state);
}

/// A weak access that takes no turn, before it is made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_access(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
) {
    let access = Access { address, what, word, copies: false };
    // SAFETY: *block*, *state* and *access* are this function's; there is a journal.
    unsafe {
        if (*launch).journal != 0 && touch(launch, state, &access) & RECORD != 0 {
            record_access(launch, state, &access);
        }
    }
}

/// Something that orders threads, by all lanes that are here and say the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_event(
    launch: *const LaunchBlock,
    state: u64,
    kind: u32,
    what: u32,
    about: u64,
) {
    // SAFETY: *block* and *state* are this function's; there is a journal.
    unsafe {
        if (*launch).journal == 0 {
            return;
        }
        let lanes = peers_of_cell(about, (what as u64) << 32u32 | kind as u64);
        event(launch, state, lanes, kind, Subject { address: about, what, more: 0 });
    }
}

/// What an entry is about.
pub struct Subject {
    pub address: u64,
    /// The instruction.
    pub what: u32,
    /// What the kind of the entry adds: a time, a count, or a number of bytes.
    pub more: u32,
}

/// Something that orders threads, by those lanes: recorded by the first one.
pub unsafe fn event(launch: *const LaunchBlock, state: u64, lanes: u32, kind: u32, about: Subject) {
    // SAFETY: *block* and *state* are this function's. One lane appends for all, which are here together.
    unsafe {
        let mut number = 0;
        if lanes & lanes_below() == 0 {
            number = append(launch, state, kind, lanes, about);
        }
        // Nobody goes on before the entry has its number.
        recorded(state, of_lane(lanes, first(lanes), number));
    }
}

/// The number of the first of some lanes.
pub fn first(lanes: u32) -> u32 {
    lowest(lanes)
}

pub fn is_shared(word: u32) -> bool {
    word & ACCESS_SHARED != 0
}

/// Records an access by one thread that publishes nothing.
pub unsafe fn record_access(launch: *const LaunchBlock, state: u64, access: &Access) {
    // SAFETY: *block*, *state* and *access* are this function's.
    unsafe { record_look(launch, state, access, ENTRY_ACCESS) }
}

/// The same, in an entry of some kind.
pub unsafe fn record_look(launch: *const LaunchBlock, state: u64, access: &Access, kind: u32) {
    // SAFETY: *block*, *state* and *access* are this function's.
    unsafe {
        let number = append_access(launch, state, access, kind);
        goes_on(state, number);
    }
}

/// Records an access by one thread.
pub unsafe fn record(launch: *const LaunchBlock, state: u64, access: &Access) {
    // SAFETY: *block*, *state* and *access* are this function's.
    unsafe { record_as(launch, state, access, ENTRY_ACCESS) }
}

/// Records an access by one thread in an entry of some kind.
pub unsafe fn record_as(launch: *const LaunchBlock, state: u64, access: &Access, kind: u32) {
    // SAFETY: *block*, *state* and *access* are this function's.
    unsafe {
        let number = append_access(launch, state, access, kind);
        recorded(state, number);
    }
}

unsafe fn append_access(launch: *const LaunchBlock, state: u64, access: &Access, kind: u32) -> u32 {
    let kind = of_space(kind, access.word);
    let bytes = if access.copies { access.bytes() } else { 0 };
    // SAFETY: *block* and *state* are this function's.
    unsafe { append(launch, state, kind, own_lane(), Subject { address: access.address, what: access.what, more: bytes }) }
}

/// The kind of an entry about an access.
pub fn of_space(kind: u32, word: u32) -> u32 {
    if is_shared(word) { kind | ENTRY_SHARED } else { kind }
}

/// The thread goes on to its next place in the journal, and may have published something.
pub fn recorded(state: u64, number: u32) {
    store_local::<{ ORDERED }>(state, load_local::<{ ORDERED }>(state) + 1);
    goes_on(state, number)
}

/// The thread goes on to its next place in the journal.
pub fn goes_on(state: u64, number: u32) {
    let me = load_local::<{ ME }>(state);
    let epoch = load_local::<{ EPOCH }>(state);
    // As `rule::pass_barrier`: a saturated count stays.
    if me & epoch != epoch {
        store_local::<{ ME }>(state, me + (epoch & (0 - epoch)));
    }
    store_local::<{ LAST }>(state, number as u64);
}

/// Adds an entry about lanes of this warp; gives its number, from 1.
pub unsafe fn append(
    launch: *const LaunchBlock,
    state: u64,
    kind: u32,
    lanes: u32,
    about: Subject,
) -> u32 {
    // SAFETY: *block* and *state* are this function's.
    unsafe {
        let number = reserve(launch);
        put(launch, state, number, kind, lanes, about)
    }
}

/// The place of an entry, which is void until it is put there.
pub unsafe fn reserve(launch: *const LaunchBlock) -> u64 {
    // SAFETY: the *block* is this function's.
    unsafe { reserve_all(launch, 1) }
}

/// The place of the first of so many entries that follow each other.
pub unsafe fn reserve_all(launch: *const LaunchBlock, entries: u32) -> u64 {
    // SAFETY: the callers have asked whether there is a journal; its count is a *shared word*.
    unsafe { fetch_add(&raw mut (*((*launch).journal as *mut Journal)).count, entries) }
}

/// Puts an entry about lanes of this warp there; gives its number, from 1.
pub unsafe fn put(
    launch: *const LaunchBlock,
    state: u64,
    number: u64,
    kind: u32,
    lanes: u32,
    about: Subject,
) -> u32 {
    // SAFETY: *block* and *state* are this function's.
    unsafe { write(launch, number, load_local::<{ WHO }>(state), kind, lanes, about) }
}

/// CTA and warp of an identity without tag.
unsafe fn who(me: u64, launch: *const LaunchBlock) -> u64 {
    // SAFETY: the *block* is this function's.
    rule::cta(me, &unsafe { shifts(launch) }) << ENTRY_CTA_SHIFT | (me & WARP_MASK) >> WARP_SHIFT
}

/// Adds an entry about what somebody has done.
unsafe fn write(
    launch: *const LaunchBlock,
    number: u64,
    who: u64,
    kind: u32,
    lanes: u32,
    about: Subject,
) -> u32 {
    // SAFETY: the callers have asked whether there is a journal. An entry beyond the capacity of the *table* is
    // not written, and the others are written by one thread each, whose number that is.
    unsafe {
        let journal = (*launch).journal as *mut Journal;
        if number < (*journal).capacity {
            let at = (*journal).entries + (number << ENTRY_LOG2);
            let Subject { address, what, more } = about;
            let about = what as u64 | (more as u64) << 32u32;
            store_entry(at, address, who, about, lanes as u64 | (kind as u64) << 32u32);
        }
        (number + 1) as u32
    }
}

/// Enters an access in the cells of its granules: [`RECORD`], [`STRONG`], both or nothing.
pub unsafe fn touch(launch: *const LaunchBlock, state: u64, access: &Access) -> u32 {
    // SAFETY: *block*, *state* and *access* are this function's; the granule is inside the checked memory.
    unsafe {
        let offset = crate::offset(launch, access.address);
        if offset == OUTSIDE {
            return outside(launch, access);
        }
        let mut found = enter(launch, state, access, access.address, offset >> access.granule_log2());
        if access.is(JOURNAL_FORCED) | access.copies {
            found = found | RECORD;
        }
        // Most accesses are to one granule, and need no loop.
        let next = access.address + (1u64 << access.granule_log2());
        if access.bytes() as u64 + access.address > next {
            let Access { address, what, word, copies } = *access;
            return __cudarun_journal_touch(launch, state, address, what, word, copies as u32, next, found);
        }
        found
    }
}

/// Handles an access beyond the checked memory: it is counted as missing, unless the journal records it anyway, as it
/// does the barrier of the grid.
unsafe fn outside(launch: *const LaunchBlock, access: &Access) -> u32 {
    if access.is(JOURNAL_FORCED) | access.copies {
        return RECORD;
    }
    // SAFETY: the *block* is this function's; counters are *shared words*.
    count(unsafe { &raw mut (*((*launch).counters as *mut Counters)).outside }, 1);
    0
}

/// Enters an access to its granules from `at` on, after what has been found of those before.
#[inline(never)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_touch(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
    copies: u32,
    mut at: u64,
    mut found: u32,
) -> u32 {
    let access = Access { address, what, word, copies: copies != 0 };
    // SAFETY: as in `touch`.
    unsafe {
        let end = address + access.bytes() as u64;
        while at < end {
            let offset = crate::offset(launch, at);
            if offset == OUTSIDE {
                return if found & RECORD == 0 { found | outside(launch, &access) } else { found };
            }
            found = found | enter(launch, state, &access, at, offset >> access.granule_log2());
            at = at + (1u64 << access.granule_log2());
        }
        found
    }
}

/// True if strong accesses are made to a granule of an access that has been entered.
pub unsafe fn has_strong(launch: *const LaunchBlock, state: u64, access: &Access) -> bool {
    // SAFETY: the *block* and the *state* are this function's; the cell is one of the *tables*, and a *shared
    // word*.
    unsafe {
        let granule_log2 = access.granule_log2();
        let end = access.address + access.bytes() as u64;
        let mut at = access.address;
        while at < end {
            let offset = crate::offset(launch, at);
            if offset == OUTSIDE {
                return false;
            }
            let me = load_local::<{ ME }>(state);
            let place = Granule::of(launch, me, offset >> granule_log2);
            let cell = load_cell(place.cell_at);
            let others = cell ^ (me | place.tag);
            let apart = shr(others, (*launch).tag_shift) != 0;
            let stale = others & GENERATION_MASK != 0;
            if cell & JOURNAL_RECORDED != 0 && cell & JOURNAL_STRONG != 0 && !(stale | apart) {
                return true;
            }
            at = at + (1u64 << granule_log2);
        }
        false
    }
}

/// Where a granule is remembered.
struct Granule {
    tag: u64,
    cell_at: u64,
    /// Address of its first witness, and the bytes from there to the next.
    witnesses: u64,
    row: u64,
}

impl Granule {
    unsafe fn of(launch: *const LaunchBlock, me: u64, granule: u64) -> Granule {
        // SAFETY: the *block*; the index is cut by mask and slot to the *tables*.
        unsafe {
            let cells = (*launch).cell_mask >> CELL_LOG2;
            let slots = (*launch).slot_mask;
            let slot = if slots == 0 { 0 } else { rule::slot(me, &shifts(launch), slots, cells) };
            let index = (granule & cells) + slot;
            Granule {
                tag: shl(shr(granule, (*launch).index_bits), (*launch).tag_shift),
                cell_at: (*launch).cells + (index << CELL_LOG2),
                witnesses: (*launch).witnesses + (index << CELL_LOG2),
                row: (*launch).row,
            }
        }
    }
}

/// Enters an access in the cell of one granule, with what [`touch`] gives.
unsafe fn enter(
    launch: *const LaunchBlock,
    state: u64,
    access: &Access,
    address: u64,
    granule: u64,
) -> u32 {
    // SAFETY: *block* and *state* are this function's; cell and witnesses are in the *tables*, and *shared words*.
    unsafe {
        let shifts = shifts(launch);
        let untagged = load_local::<{ ME }>(state);
        let Granule { tag, cell_at, witnesses, row } = Granule::of(launch, untagged, granule);
        let stores_at = witnesses + JOURNAL_STORE_WITNESS * row;
        let loads_at = witnesses + JOURNAL_LOAD_WITNESS * row;
        let me = untagged | tag;
        let writes = access.is(JOURNAL_WRITES);
        let mine = if writes { JOURNAL_STORED } else { JOURNAL_LOADED };
        let mut cell = load_cell(cell_at);
        loop {
            let old = (cell ^ me) & GENERATION_MASK != 0;
            if cell & BUSY != 0 && !old {
                cell = load_cell(cell_at);
                continue;
            }
            let apart = shr(cell ^ me, shifts.tag) != 0;
            let empty = old | apart;
            if !empty && cell & JOURNAL_RECORDED != 0 {
                if cell & JOURNAL_STRONG != 0 {
                    return RECORD | STRONG;
                }
                if !access.is(JOURNAL_FORCED) {
                    return RECORD;
                }
                let seen = compare_and_swap(cell_at, cell, cell | JOURNAL_STRONG);
                if seen == cell {
                    return RECORD | STRONG;
                }
                cell = seen;
                continue;
            }
            let everything = !(JOURNAL_LOADED | JOURNAL_STORED | BUSY);
            let place = load_local::<{ EPOCH }>(state);
            let owned = !empty && (cell ^ me) & everything & !place == 0;
            let lost = place != 0 && me & place == place;
            let same = owned && (cell ^ me) & place == 0 && !lost;
            if same && cell & mine != 0 && !access.copies && !access.is(JOURNAL_FORCED | JOURNAL_READ_ONLY) {
                return 0;
            }
            let seen = compare_and_swap(cell_at, cell, cell & !GENERATION_MASK | me & GENERATION_MASK | BUSY);
            if seen != cell {
                cell = seen;
                continue;
            }
            // Nobody else touches a busy cell.
            if apart && !old && !(shifts.in_turn && shr(cell, shifts.tag) < shr(me, shifts.tag)) {
                count(&raw mut (*((*launch).counters as *mut Counters)).evictions, 1);
            }
            let (stored, loaded) = if empty {
                (0, 0)
            } else {
                (load_relaxed(stores_at), load_relaxed(loads_at))
            };
            // A thread's own write to what it reads as read-only is a race as well.
            let against = if writes {
                loaded & READ_ONLY != 0
            } else {
                access.is(JOURNAL_READ_ONLY) && stored != 0
            };
            if (empty | owned) & !access.copies & !access.is(JOURNAL_FORCED) & !against {
                let mut done = mine;
                if same {
                    done = done | cell & (JOURNAL_LOADED | JOURNAL_STORED);
                }
                let mut witness = (access.what as u64) << 32u32 | load_local::<{ LAST }>(state) + 1;
                if access.is(JOURNAL_READ_ONLY) {
                    witness = witness | READ_ONLY;
                }
                if writes {
                    store_relaxed(stores_at, witness);
                    store_relaxed(loads_at, loaded);
                } else {
                    let keep = loaded & !witness & READ_ONLY != 0;
                    store_relaxed(stores_at, stored);
                    store_relaxed(loads_at, if keep { loaded } else { witness });
                }
                publish_cell(cell_at, me | done);
                return 0;
            }
            if !empty {
                // The cell is its owner's, with the same tag.
                let owner = cell ^ tag;
                let by = who(owner, launch);
                earlier(launch, by, owner, access, address, stored);
                earlier(launch, by, owner, access, address, loaded);
            }
            let (found, strong) = if access.is(JOURNAL_FORCED) {
                (RECORD | STRONG, JOURNAL_STRONG)
            } else {
                (RECORD, 0)
            };
            publish_cell(cell_at, me & !(LANE_MASK | WARP_MASK) | JOURNAL_RECORDED | strong);
            return found;
        }
    }
}

/// Records what the owner of a granule has done there, if it has.
unsafe fn earlier(
    launch: *const LaunchBlock,
    by: u64,
    owner: u64,
    access: &Access,
    address: u64,
    witness: u64,
) {
    if witness == 0 {
        return;
    }
    // SAFETY: the *block* is this function's, and the place has been reserved by this thread.
    unsafe {
        let kind = of_space(ENTRY_EARLIER, access.word);
        let lanes = 1u32 << (owner & LANE_MASK) as u32;
        let what = ((witness & !READ_ONLY) >> 32u32) as u32;
        write(launch, reserve(launch), by, kind, lanes, Subject { address, what, more: witness as u32 });
    }
}
