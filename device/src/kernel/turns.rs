//! Turns: strong accesses to a location, and `fence.sc`s, are made and told one after the other.
//!
//! A thread that polls, by a load or an atomic that changes nothing, tells it once per value and
//! sleeps between two looks, the longer the more of them have found nothing new.

use crate::journal::*;
use crate::layout::*;
use crate::memory::*;
use crate::rule;
use crate::shifts;

/// log2 of the bytes that one lock is for. Accesses that overlap lie in one such piece, but for large
/// weak stores.
const PIECE_LOG2: u32 = 4;

/// log2 of the nanoseconds that a turn takes at least.
const SLEEP_LOG2: u32 = 7;
/// Longest sleep in nanoseconds.
const SLEEP_MOST: u64 = 1 << 13;

/// Before a strong access or a weak store is made: 1 when it is this thread's turn at the lock of the
/// location.
///
/// Turns are in the order of asking, so that nobody who polls keeps others away. Who polls what has
/// not been written since by a load may go ahead without the lock, and so may a weak store to what has
/// no strong accesses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_lock(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
) -> u32 {
    let access = Access { address, what, word, copies: false };
    unsafe {
        if (*launch).journal == 0 {
            return 1;
        }
        let mut turn = load_local(state + TURN);
        if turn == 0 && !access.is(JOURNAL_FORCED) {
            let found = touch(launch, state, &access);
            if found & STRONG == 0 || access.bytes() > 1 << PIECE_LOG2 {
                if found & TELL != 0 {
                    tell(launch, state, &access);
                }
                return 1;
            }
        }
        let lock = lock(launch, state, &access);
        if turn == 0 {
            if access.is(JOURNAL_FORCED) && polls(lock, state, &access) {
                return 1;
            }
            turn = fetch_add(&raw mut (*lock).asked, 1) + 1;
            store_local(state + TURN, turn);
        }
        let done = load_cell(&raw const (*lock).done as u64);
        if done + 1 != turn {
            wait(done, turn);
            return 0;
        }
        if access.is(JOURNAL_FORCED) {
            touch(launch, state, &access);
        }
        // Made before, so that the place is known to be there.
        if access.is(JOURNAL_LOOKS) && is_repeated(state, &access) {
            store_local(state + FOUND, load_program(address, access.bytes()));
        }
        1
    }
}

/// After a strong access or a weak store has been made: tells it and gives the lock back. 1 when it has
/// to be made again, because the thread went ahead and cannot know what it has seen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_made(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
) -> u32 {
    let access = Access { address, what, word, copies: false };
    unsafe {
        if (*launch).journal == 0 {
            return 0;
        }
        let turn = load_local(state + TURN);
        if turn == 0 && !access.is(JOURNAL_FORCED) {
            if has_strong(launch, state, &access) {
                count(&raw mut (*((*launch).counters as *mut Counters)).undecided, 1);
                tell_as(launch, state, &access, ENTRY_OVERTAKEN);
            }
            return 0;
        }
        let lock = lock(launch, state, &access);
        if turn == 0 {
            if polls(lock, state, &access) {
                rest(state);
                return 0;
            }
            // From now on it is no poll.
            store_local(state + POLLED_WHAT, 0);
            return 1;
        }
        store_local(state + TURN, 0);
        let writes = &raw const (*lock).writes as u64;
        let stores = &raw const (*lock).stores as u64;
        let repeated = is_repeated(state, &access);
        let known = repeated && load_local(state + POLLED_WRITES) == load_relaxed(writes);
        let mut looks = !access.is(JOURNAL_WRITES);
        if access.is(JOURNAL_WRITES) {
            // What it adds for those who observe it, the one before has added, unless a store has made
            // an end of that.
            let told = repeated && load_local(state + POLLED_STORES) == load_relaxed(stores);
            looks = access.is(JOURNAL_LOOKS)
                && told
                && load_program(address, access.bytes()) == load_local(state + FOUND);
            if !looks {
                store_relaxed(writes, load_relaxed(writes) + 1);
            }
            if !access.is(JOURNAL_UPDATES) {
                store_relaxed(stores, load_relaxed(stores) + 1);
            }
        }
        if known && looks {
            publish_cell(&raw const (*lock).done as u64, turn);
            rest(state);
            return 0;
        }
        tell(launch, state, &access);
        if !access.is(JOURNAL_WRITES) || access.is(JOURNAL_LOOKS) {
            store_local(state + POLLED, address);
            store_local(state + POLLED_WHAT, what as u64);
            store_local(state + POLLED_WRITES, load_relaxed(writes));
            store_local(state + POLLED_STORES, load_relaxed(stores));
            store_local(state + POLLS, 0);
        }
        publish_cell(&raw const (*lock).done as u64, turn);
        0
    }
}

/// The thread's last entry told the same load or atomic.
fn is_repeated(state: u64, access: &Access) -> bool {
    load_local(state + POLLED_WHAT) == access.what as u64 && load_local(state + POLLED) == access.address
}

/// It is a load, has been told of the same value, and nobody who may write has the lock.
unsafe fn polls(lock: *const Lock, state: u64, access: &Access) -> bool {
    unsafe {
        let done = load_cell(&raw const (*lock).done as u64);
        !access.is(JOURNAL_ONCE | JOURNAL_WRITES)
            && load_cell(&raw const (*lock).asked as u64) == done
            && is_repeated(state, access)
            && load_local(state + POLLED_WRITES) == load_relaxed(&raw const (*lock).writes as u64)
    }
}

/// Leaves the time to others after a poll that has found nothing new.
fn rest(state: u64) {
    let polls = load_local(state + POLLS);
    store_local(state + POLLS, polls + 1);
    let time = shl(1u64 << SLEEP_LOG2, polls as u32);
    sleep((if polls > 6 { SLEEP_MOST } else { time }) as u32);
}

/// Leaves the time to others: the longer, the more turns there are before this one. Whoever is next
/// does not sleep.
fn wait(done: u64, turn: u64) {
    let before = turn - done - 2;
    let most = SLEEP_MOST >> SLEEP_LOG2;
    let turns = if before > most { most } else { before };
    sleep((turns << SLEEP_LOG2) as u32);
}

/// Before `fence.sc`: waits until it is the turn of the lanes that are here. Such fences are in one
/// order, which has to be that of their entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_fence(launch: *const LaunchBlock, state: u64) {
    unsafe {
        if (*launch).journal == 0 {
            return;
        }
        let lanes = peers(0, 0, 0);
        store_local(state + FENCED, lanes as u64);
        if lanes & lanes_below() == 0 {
            let lock = fences(launch);
            let turn = fetch_add(&raw mut (*lock).asked, 1) + 1;
            store_local(state + TURN, turn);
            let mut done = load_cell(&raw const (*lock).done as u64);
            while done + 1 != turn {
                wait(done, turn);
                done = load_cell(&raw const (*lock).done as u64);
            }
        }
        of_lane(lanes, first(lanes), 0);
    }
}

/// After `fence.sc`: tells it once all of those lanes have executed it, and lets the next ones have
/// their turn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_fenced(
    launch: *const LaunchBlock,
    state: u64,
    kind: u32,
    what: u32,
    about: u64,
) {
    unsafe {
        if (*launch).journal == 0 {
            return;
        }
        event(launch, state, load_local(state + FENCED) as u32, kind, (about, what, 0));
        let turn = load_local(state + TURN);
        if turn != 0 {
            store_local(state + TURN, 0);
            publish_cell(&raw const (*fences(launch)).done as u64, turn);
        }
    }
}

/// The lock of all `fence.sc`.
unsafe fn fences(launch: *const LaunchBlock) -> *mut Lock {
    unsafe { (*((*launch).journal as *const Journal)).locks as *mut Lock }
}

/// The address of a location's lock.
pub unsafe fn lock(launch: *const LaunchBlock, state: u64, access: &Access) -> *mut Lock {
    unsafe {
        let journal = (*launch).journal as *const Journal;
        let mut place = access.address >> PIECE_LOG2;
        if is_shared(access.word) {
            let cta = rule::cta(load_local(state + ME), &shifts(launch));
            place = place + ((cta & (*launch).slot_mask) << 32u32);
        }
        let number = place * 0x9e37_79b9_7f4a_7c15 >> 32u32;
        ((*journal).locks + ((number & (*journal).lock_mask) << 5u32)) as *mut Lock
    }
}
