//! Turns: strong accesses to a location, and `fence.sc`s, are made and recorded one after the other.
//!
//! Accesses that change nothing need less ([`crate::looks`]). A thread that looks and finds nothing new
//! sleeps, the longer the more often it has done so.

use crate::journal::*;
use crate::layout::*;
use crate::looks;
use crate::looks::Look;
use crate::memory::*;
use crate::rule;
use crate::shifts;

/// log2 of the nanoseconds that a turn takes at least.
const SLEEP_LOG2: u32 = 7;
/// Longest sleep in nanoseconds.
const SLEEP_MOST: u64 = 1 << 13;

/// Looks that find nothing new before one that sleeps.
const AWAKE: u64 = 4;

/// What a store adds to a lock's counts, and what an atomic adds.
const STORE: u64 = 1 << 32 | 1;
const ATOMIC: u64 = 1;

/// log2 of the bytes that one lock is for. Accesses that overlap lie in one such piece, but for large
/// weak stores.
fn piece_log2(access: &Access) -> u32 {
    2 + (access.word >> JOURNAL_PIECE_SHIFT & 3)
}

/// Before a strong access or a weak store is made: 1 when it is this thread's turn at the lock of the
/// location.
///
/// Turns are in the order of asking, so that no thread keeps others away. A load may go ahead without
/// the lock while no other thread has it, and so may a weak store to what has no strong accesses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_lock(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
) -> u32 {
    let access = Access { address, what, word, copies: false };
    // SAFETY: *block*, *state* and *access* are this function's; there is a journal, so the lock is one of its
    // *table*, of *shared words*.
    unsafe {
        if (*launch).journal == 0 {
            return 1;
        }
        let mut turn = load_local::<{ TURN }>(state);
        if turn == 0 && !access.is(JOURNAL_FORCED) {
            let found = touch(launch, state, &access);
            if found & STRONG == 0 || access.bytes() > 1 << piece_log2(&access) {
                if found & RECORD != 0 {
                    record_access(launch, state, &access);
                }
                return 1;
            }
        }
        let lock = lock(launch, state, &access);
        store_local::<{ LOCK }>(state, lock as u64);
        if turn == 0 {
            if access.is(JOURNAL_FORCED) && !access.is(JOURNAL_ONCE | JOURNAL_WRITES) && !looks::gives_up(state) {
                let (free, asked) = looks::begin(lock, state);
                if free {
                    enter_strong(launch, state, &access, lock);
                    store_local::<{ SEEN }>(state, asked);
                }
                return free as u32;
            }
            turn = ask(lock, state);
        }
        let done = load_cell(&raw const (*lock).done as u64);
        if done + 1 != turn {
            // Lanes whose turns follow each other do not sleep meanwhile, and so stay together.
            let first = load_local::<{ SEEN }>(state);
            if done + 1 < first {
                wait(done, first);
            }
            return 0;
        }
        if access.is(JOURNAL_FORCED) {
            enter_strong(launch, state, &access, lock);
        }
        // Whoever sees what is written next sees that the lock is taken.
        fence();
        if access.is(JOURNAL_LOOKS) {
            store_local::<{ FOUND }>(state, load_program(address, access.bytes()));
        }
        1
    }
}

/// After a strong access or a weak store has been made: records it and gives the lock back. 1 when it has
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
    // SAFETY: *block*, *state* and *access* are this function's. The lock is the one that the thread has put into
    // its *state* when it asked for it.
    unsafe {
        if (*launch).journal == 0 {
            return 0;
        }
        let turn = load_local::<{ TURN }>(state);
        if turn == 0 && !access.is(JOURNAL_FORCED) {
            if has_strong(launch, state, &access) {
                count(&raw mut (*((*launch).counters as *mut Counters)).undecided, 1);
                record_as(launch, state, &access, ENTRY_OVERTAKEN);
            }
            return 0;
        }
        let lock = load_local::<{ LOCK }>(state) as *mut Lock;
        if turn == 0 {
            return !looks::end(launch, state, &access, lock, load_local::<{ SEEN }>(state)) as u32;
        }
        store_local::<{ TURN }>(state, 0);
        let looks = access.is(JOURNAL_LOOKS) | !access.is(JOURNAL_WRITES);
        let counts_at = &raw mut (*lock).counts;
        if !looks {
            add(counts_at as u64, if access.is(JOURNAL_UPDATES) { ATOMIC } else { STORE });
            if access.is(JOURNAL_FORCED) {
                record(launch, state, &access);
            } else {
                record_access(launch, state, &access);
            }
            give_back(state, lock, turn);
            return 0;
        }
        let look = Look::of(state, &access);
        let counts = load_relaxed(counts_at as u64);
        let writes = access.is(JOURNAL_WRITES);
        let changed = writes && load_program(address, access.bytes()) != load_local::<{ FOUND }>(state);
        let publishes = writes && (changed || !look.adds_nothing(state, counts));
        // Lanes that have this turn together have made the access in the order of the lanes. Which of them came first
        // their values do not say, since they have changed nothing.
        let lanes = lanes_of_turn(state);
        let publishing = ballot(lanes, publishes);
        let before = publishing & lanes_below();
        let records = publishes | (before != 0) | !look.is_known(counts);
        let recording = ballot(lanes, records);
        let mut number = 0;
        if (lanes & lanes_below() == 0) & (recording != 0) {
            add(counts_at as u64, ATOMIC * ones(publishing) as u64);
            number = reserve_all(launch, ones(recording));
        }
        let number = number_of_lane(lanes, number) + ones(recording & lanes_below()) as u64;
        if !records {
            give_back(state, lock, turn);
            store_local::<{ TRIES }>(state, 0);
            rest(state);
            return 0;
        }
        let kind = of_space(if writes & !changed { ENTRY_LOOK } else { ENTRY_ACCESS }, word);
        let number = put(launch, state, number, kind, own_lane(), Subject { address, what, more: 0 });
        goes_on(state, number);
        // What the lane knows is what those before it and the lane itself have added. An entry of a change does not
        // stand for later ones that change nothing: the first of these gets its own.
        let known = counts + ATOMIC * ones(publishing & (lanes_below() | own_lane())) as u64;
        look.remember(state, &access, known - changed as u64);
        give_back(state, lock, turn);
        if !changed {
            // Who looks may well wait for others.
            sleep(0);
        }
        0
    }
}

/// Asks for a turn, together with the lanes that are here and want one at the same lock: theirs follow each other.
unsafe fn ask(lock: *mut Lock, state: u64) -> u64 {
    let lanes = peers_of(lock as u64);
    let mut asked = 0;
    if lanes & lanes_below() == 0 {
        // SAFETY: the lock is one of the *table*; an address is formed and nothing read.
        asked = fetch_add(unsafe { &raw mut (*lock).asked }, ones(lanes)) as u32;
    }
    let turn = of_lane(lanes, first(lanes), asked) as u64 + 1;
    store_local::<{ SEEN }>(state, turn);
    let turn = turn + ones(lanes & lanes_below()) as u64;
    store_local::<{ TURN }>(state, turn);
    turn
}

/// The lanes that have this lane's turn.
fn lanes_of_turn(state: u64) -> u32 {
    let together = load_local::<{ TOGETHER }>(state) as u32;
    if together == 0 { own_lane() } else { together }
}

/// What the first of some lanes has, once all of them are here.
fn number_of_lane(lanes: u32, number: u64) -> u64 {
    let low = of_lane(lanes, first(lanes), number as u32);
    let high = of_lane(lanes, first(lanes), (number >> 32u32) as u32);
    (high as u64) << 32u32 | low as u64
}

/// Ends a turn, when all lanes that have it together are here.
unsafe fn give_back(state: u64, lock: *const Lock, turn: u64) {
    let lanes = load_local::<{ TOGETHER }>(state) as u32;
    if lanes != 0 {
        store_local::<{ TOGETHER }>(state, 0);
        meet(lanes);
        if lanes & lanes_below() != 0 {
            return;
        }
    }
    // SAFETY: the lock is one of the *table*; an address is formed and nothing read.
    publish_cell(unsafe { &raw const (*lock).done as u64 }, turn);
}

/// Makes sure that the cells say that an access is strong. Where each granule of global memory has a cell of
/// its own, they do since the last such access, which the lock knows.
#[inline(always)]
pub unsafe fn enter_strong(launch: *const LaunchBlock, state: u64, access: &Access, lock: *const Lock) {
    // SAFETY: the *block* is this function's; the lock is one of the *table*, of *shared words*.
    unsafe {
        let place = (access.bytes() as u64) << LOCK_BYTES_SHIFT | access.address;
        // The lock of a location in shared memory never knows one.
        if load_relaxed(&raw const (*lock).entered as u64) != place {
            __cudarun_journal_strong(launch, state, access.address, access.what, access.word, lock);
        }
    }
}

/// Enters the first strong access to a location, with the lock of that.
#[inline(never)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_strong(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
    lock: *const Lock,
) {
    let access = Access { address, what, word, copies: false };
    // SAFETY: *block*, *state* and *access* are this function's; the lock is one of the *table*, of *shared
    // words*.
    unsafe {
        touch(launch, state, &access);
        let bytes = (*launch).window_bytes + (*launch).second_bytes + (*launch).third_bytes;
        let granules = bytes >> access.granule_log2();
        if !is_shared(access.word) & !(granules > ((*launch).cell_mask >> CELL_LOG2) + 1) {
            publish_cell(&raw const (*lock).entered as u64, (access.bytes() as u64) << LOCK_BYTES_SHIFT | access.address);
        }
    }
}

/// Leaves the time to others after a look that has found nothing new.
pub fn rest(state: u64) {
    let polls = load_local::<{ POLLS }>(state);
    store_local::<{ POLLS }>(state, polls + 1);
    // At first its warp alone lets others go first: other lanes of it may wait for this one.
    let time = if polls < AWAKE { 0 } else { shl(1u64 << SLEEP_LOG2, (polls - AWAKE) as u32) };
    sleep((if polls > AWAKE + 6 { SLEEP_MOST } else { time }) as u32);
}

/// Leaves the time to others: the longer, the more turns there are before this one. Whoever is next
/// does not sleep.
pub fn wait(done: u64, turn: u64) {
    let before = turn - done - 2;
    let most = SLEEP_MOST >> SLEEP_LOG2;
    let turns = if before > most { most } else { before };
    sleep((turns << SLEEP_LOG2 | 1) as u32);
}

/// Before `fence.sc`: waits until it is the turn of the lanes that are here. Such fences are in one
/// order, which has to be that of their entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_fence(launch: *const LaunchBlock, state: u64) {
    // SAFETY: *block* and *state* are this function's; there is a journal, so it has the lock of fences.
    unsafe {
        if (*launch).journal == 0 {
            return;
        }
        let lanes = all_peers();
        store_local::<{ TOGETHER }>(state, lanes as u64);
        if lanes & lanes_below() == 0 {
            let lock = fences(launch);
            let turn = fetch_add(&raw mut (*lock).asked, 1) + 1;
            store_local::<{ TURN }>(state, turn);
            let mut done = load_cell(&raw const (*lock).done as u64);
            while done + 1 != turn {
                wait(done, turn);
                done = load_cell(&raw const (*lock).done as u64);
            }
        }
        meet(lanes);
    }
}

/// After `fence.sc`: records it once all of those lanes have executed it, and lets the next ones have
/// their turn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_fenced(
    launch: *const LaunchBlock,
    state: u64,
    kind: u32,
    what: u32,
    about: u64,
) {
    // SAFETY: *block* and *state* are this function's; there is a journal, so it has the lock of fences.
    unsafe {
        if (*launch).journal == 0 {
            return;
        }
        let lanes = load_local::<{ TOGETHER }>(state) as u32;
        store_local::<{ TOGETHER }>(state, 0);
        event(launch, state, lanes, kind, Subject { address: about, what, more: 0 });
        let turn = load_local::<{ TURN }>(state);
        if turn != 0 {
            store_local::<{ TURN }>(state, 0);
            publish_cell(&raw const (*fences(launch)).done as u64, turn);
        }
    }
}

/// The lock of all `fence.sc`.
unsafe fn fences(launch: *const LaunchBlock) -> *mut Lock {
    // SAFETY: the callers have asked whether there is a journal.
    unsafe { (*((*launch).journal as *const Journal)).locks as *mut Lock }
}

/// The address of a location's lock.
pub unsafe fn lock(launch: *const LaunchBlock, state: u64, access: &Access) -> *mut Lock {
    // SAFETY: the callers have asked whether there is a journal. The number is cut by the mask to the *table* of
    // locks.
    unsafe {
        let journal = (*launch).journal as *const Journal;
        let mut place = access.address >> piece_log2(access);
        if is_shared(access.word) {
            let cta = rule::cta(load_local::<{ ME }>(state), &shifts(launch));
            place = place + ((cta & (*launch).slot_mask) << 32u32);
        }
        let number = place * WITNESS_CELL_FACTOR >> 32u32;
        ((*journal).locks + ((number & (*journal).lock_mask) << LOCK_LOG2)) as *mut Lock
    }
}
