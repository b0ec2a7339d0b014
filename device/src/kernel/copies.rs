//! Asynchronous copies and mbarriers in the journal.
//!
//! A copy is recorded before it is issued. From then on its granules are everybody's, so that whatever is
//! accessed while it is under way is recorded. So are those of an mbarrier from its first operation on: what
//! one thread alone does there like data may race with any of them.

use crate::journal::{Access, Subject, TURN, append, record_as, recorded, touch};
use crate::layout::*;
use crate::memory::*;
use crate::turns::lock;

/// A side of an asynchronous copy, before that is issued, or the mbarrier that it completes with.
/// The entry is of that kind, and has the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_copy(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
    kind: u32,
) {
    let access = Access { address, what, word, copies: true };
    // SAFETY: *block*, *state* and *access* are this function's; there is a journal.
    unsafe {
        if (*launch).journal == 0 {
            return;
        }
        if kind != ENTRY_COPY_BARRIER {
            touch(launch, state, &access);
        }
        record_as(launch, state, &access, kind);
    }
}

/// Before an operation on an mbarrier: 1, and recorded, when it is this thread's turn there. `count` is what
/// the operation counts, `word` has the bytes of an mbarrier.
///
/// It is recorded before it is made: so no wait for its phase can be recorded before it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_barrier(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    what: u32,
    word: u32,
    count: u32,
) -> u32 {
    let access = Access { address, what, word, copies: true };
    // SAFETY: *block*, *state* and *access* are this function's; there is a journal, so the lock is one of its
    // *table*. Its turns are *shared words*.
    unsafe {
        if (*launch).journal == 0 {
            return 1;
        }
        let lock = lock(launch, state, &access);
        let mut turn = load_local::<{ TURN }>(state);
        if turn == 0 {
            turn = fetch_add(&raw mut (*lock).asked, 1) + 1;
            store_local::<{ TURN }>(state, turn);
        }
        if load_cell(&raw const (*lock).done as u64) + 1 != turn {
            return 0;
        }
        touch(launch, state, &access);
        let number = append(launch, state, ENTRY_MBARRIER, own_lane(), Subject { address, what, more: count });
        recorded(state, number);
        1
    }
}

/// After the operation: gives the lock back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudarun_journal_barrier_made(
    launch: *const LaunchBlock,
    state: u64,
    address: u64,
    word: u32,
) {
    let access = Access { address, what: 0, word, copies: false };
    // SAFETY: *block* and *state* are this function's; the lock is asked for if there is a journal, and then of its *table*.
    unsafe {
        let turn = load_local::<{ TURN }>(state);
        if (*launch).journal != 0 && turn != 0 {
            store_local::<{ TURN }>(state, 0);
            publish_cell(&raw const (*lock(launch, state, &access)).done as u64, turn);
        }
    }
}
