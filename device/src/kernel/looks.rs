//! Looks: strong loads, and atomics that change nothing.
//!
//! A load is made without a turn while no other thread has one. Its entry must stand where it was made
//! among the writes. The thread reserves the entry's place when it has loaded, and then asks whether the
//! lock is as it was before: if so, no write has been made meanwhile, and all later ones come behind. If
//! not, the place stays void, and the load is made again.
//!
//! So is an atomic that cannot change anything whatever memory holds, such as `atomicAdd(p, 0)`, if it
//! publishes nothing either ([`Look::adds_nothing`]): it can be made again like a load. It is a write, which others may
//! observe; the host does not trust the order of its entries (`host/runtime/src/happens_before/polls.rs`).
//!
//! Other lanes whose atomics would change nothing take one turn together. They, and a compare-and-swap, do not
//! ask for a turn while another thread has one, but look again, since that may have settled it.
//!
//! A thread that looks again and finds no write since writes no entry, unless it may have published
//! something in between. It remembers the last looks of a few sites.

use crate::journal::*;
use crate::layout::*;
use crate::memory::*;
use crate::turns::{enter_strong, lock, rest, wait};

/// Offsets from the first word of one of them, its site with the count of what had been published then: its address,
/// behind the sites of all, and what the lock counted.
const SITE: u64 = 0;
const ADDRESS: u64 = 8 * JOURNAL_LOOK_PLACES as u64;
const COUNTS: u64 = 2 * ADDRESS;

/// After so many times in a row that a lock was taken, a look asks for a turn like other accesses.
const MOST_TRIES: u64 = 64;

/// Forgets all looks.
pub fn forget(state: u64) {
    clear_local::<{ PLACES }>(state);
    clear_local::<{ PLACES + 64 }>(state);
}

/// What a thread remembers of a look.
pub struct Look {
    at: u64,
    site: u64,
    /// What the lock counted then, or something that it does not count if the thread has not made this
    /// look before, or may have published something since.
    counts: u64,
}

impl Look {
    pub fn of(state: u64, access: &Access) -> Look {
        // The rewriter gives each instruction its place.
        let place = access.word >> JOURNAL_LOOK_SHIFT & (JOURNAL_LOOK_PLACES - 1);
        let at = state + PLACES + ((place as u64) << 3u32);
        let site = load_local::<{ ORDERED }>(state) << 32u32 | access.what as u64;
        let repeated = (load_local::<{ SITE }>(at) == site) & (load_local::<{ ADDRESS }>(at) == access.address);
        Look { at, site, counts: if repeated { load_local::<{ COUNTS }>(at) } else { !0 } }
    }

    /// No write has been made since.
    pub fn is_known(&self, counts: u64) -> bool {
        self.counts == counts
    }

    /// An atomic that changes nothing publishes nothing: the thread has had nothing to publish, or has
    /// done so with the same atomic, and no store has made an end of that.
    pub fn adds_nothing(&self, state: u64, counts: u64) -> bool {
        self.counts >> 32u32 == counts >> 32u32 || load_local::<{ ORDERED }>(state) == 1
    }

    pub fn remember(&self, state: u64, access: &Access, counts: u64) {
        store_local::<{ ADDRESS }>(self.at, access.address);
        store_local::<{ SITE }>(self.at, self.site);
        store_local::<{ COUNTS }>(self.at, counts);
        store_local::<{ POLLS }>(state, 0);
        store_local::<{ TRIES }>(state, 0);
    }
}

/// Whether a look may go ahead, because no thread has the lock, and the turns asked for. If not, the
/// thread has waited a little.
pub unsafe fn begin(lock: *const Lock, state: u64) -> (bool, u64) {
    // SAFETY: the lock is one of the *table*; its turns are *shared words*.
    unsafe {
        let done = load_cell(&raw const (*lock).done as u64);
        let asked = load_cell(&raw const (*lock).asked as u64);
        if asked == done {
            return (true, asked);
        }
        has_tried(state);
        wait(done, asked + 2);
        (false, asked)
    }
}

fn has_tried(state: u64) {
    store_local::<{ TRIES }>(state, load_local::<{ TRIES }>(state) + 1);
}

/// True when looks have failed so often that one should ask for a turn.
pub fn gives_up(state: u64) -> bool {
    load_local::<{ TRIES }>(state) > MOST_TRIES
}

/// Ends a load, or an atomic that cannot change anything, that was made while no thread had the lock: false if one
/// had.
pub unsafe fn end(
    launch: *const LaunchBlock,
    state: u64,
    access: &Access,
    lock: *const Lock,
    asked: u64,
) -> bool {
    // SAFETY: *block*, *state* and *access* are this function's; the lock is one of the *table*, of *shared
    // words*.
    unsafe {
        let asked_at = &raw const (*lock).asked as u64;
        let look = Look::of(state, access);
        // Before the place is reserved: whatever is written later must be seen as new.
        let counts = load_relaxed(&raw const (*lock).counts as u64);
        fence();
        if look.is_known(counts) {
            let free = load_relaxed(asked_at) == asked;
            if free {
                store_local::<{ TRIES }>(state, 0);
                rest(state);
            }
            return free;
        }
        let number = reserve(launch);
        fence();
        if load_relaxed(asked_at) != asked {
            has_tried(state);
            return false;
        }
        let kind = of_space(if access.is(JOURNAL_WRITES) { ENTRY_LOOK } else { ENTRY_ACCESS }, access.word);
        let number = put(launch, state, number, kind, own_lane(), Subject { address: access.address, what: access.what, more: 0 });
        goes_on(state, number);
        look.remember(state, access, counts);
        true
    }
}

/// Before an atomic of global memory that may change nothing, as `idle` says with its operand: 2 when the
/// thread has its turn or needs none, 1 when it has to ask for one, 0 when it should look again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_look(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
    idle: u32,
    operand: u64,
) -> u32 {
    let access = Access { address, what, word, copies: false };
    // SAFETY: *block*, *state* and *access* are this function's; there is a journal, so the lock is one of its
    // *table*. The *access* is to global memory, and of at most 8 bytes.
    unsafe {
        // A generic address may be one of shared memory.
        if (*launch).journal == 0 || !access.is(JOURNAL_LOOKS) {
            return 1;
        }
        if load_local::<{ TURN }>(state) != 0 || gives_up(state) {
            return 1;
        }
        let lock = lock(launch, state, &access);
        store_local::<{ LOCK }>(state, lock as u64);
        let compares = idle == IDLE_IF_OTHER;
        let always = is_always_idle(idle, operand);
        let (free, asked) = begin(lock, state);
        if !free {
            return (!compares & !always) as u32;
        }
        enter_strong(launch, state, &access, lock);
        if always && !access.is(JOURNAL_ONCE) {
            let counts = load_relaxed(&raw const (*lock).counts as u64);
            if Look::of(state, &access).adds_nothing(state, counts) {
                store_local::<{ SEEN }>(state, asked);
                return 2;
            }
        }
        let found = load_program(address, access.bytes());
        let is_idle = is_idle(idle, operand, found);
        let lanes = peers(lock as u64 & 0xffff_ffff | (what as u64) << 32u32, asked, is_idle as u64);
        let below = lanes & lanes_below();
        // Those whose atomics change something have turns that follow each other. Of compare-and-swaps the first may
        // settle the others.
        let each = !(is_idle | compares);
        let turns = if each { ones(lanes) } else { 1 };
        let mut taken = 0;
        if below == 0 {
            let seen = compare_and_swap(&raw mut (*lock).asked as u64, asked, asked + turns as u64);
            taken = (seen == asked) as u32;
        }
        if of_lane(lanes, first(lanes), taken) == 0 {
            if !(is_idle | compares) {
                return 1;
            }
            has_tried(state);
            sleep(1);
            return 0;
        }
        if !is_idle & (below != 0) {
            if each {
                store_local::<{ SEEN }>(state, asked + 1);
                store_local::<{ TURN }>(state, asked + 1 + ones(below) as u64);
            }
            return each as u32;
        }
        fence();
        store_local::<{ TURN }>(state, asked + 1);
        store_local::<{ TOGETHER }>(state, if is_idle { lanes as u64 } else { 0 });
        store_local::<{ FOUND }>(state, found);
        2
    }
}

/// True of an atomic that changes nothing, whatever memory holds.
fn is_always_idle(idle: u32, operand: u64) -> bool {
    idle == IDLE_ALWAYS || (idle == IDLE_IF_ZERO) | (idle == IDLE_IF_SET) && operand == 0
}

/// True of an atomic that changes nothing.
fn is_idle(idle: u32, operand: u64, found: u64) -> bool {
    if is_always_idle(idle, operand) {
        return true;
    }
    if idle == IDLE_IF_ZERO {
        return false;
    }
    if idle == IDLE_IF_OTHER {
        return operand != found;
    }
    if idle == IDLE_IF_SET {
        return operand & found == operand;
    }
    if idle == IDLE_IF_CLEAR {
        return operand & found == found;
    }
    operand == found
}
