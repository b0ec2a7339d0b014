//! Race records: one per pair of sites and launch, with the first witness.

use crate::layout::*;
use crate::memory::*;
use crate::witness::class;

/// Slots looked at before a pair goes unshared.
const PROBES: u64 = 16;

/// Counts the pair at the level of its conflict; true for the first such conflict in this launch,
/// and when the table is full.
pub unsafe fn first_of_pair(
    launch: *const LaunchBlock,
    verdict: u32,
    mine: u64,
    other: u64,
    possible: bool,
    address: u64,
    times: u32,
) -> bool {
    // SAFETY: the *block*; the slot is cut by the mask to the *table* of pairs, which are *shared words*.
    unsafe {
        let key = pair_key(verdict, witness_site(mine), witness_site(other), possible);
        let mask = (*launch).pair_mask as u64;
        let mut slot = key * WITNESS_CELL_FACTOR >> 40u32;
        let end = slot + PROBES;
        while slot < end {
            let at = (*launch).pairs + ((slot & mask) << PAIR_SLOT_LOG2);
            let mut seen = load_relaxed(at);
            if seen == 0 {
                seen = compare_and_swap(at, 0, key);
            }
            if seen == 0 || seen == key {
                let slot = at as *mut PairSlot;
                raise(&raw mut (*slot).highest, address);
                raise(&raw mut (*slot).not_lowest, !address);
                return fetch_add(&raw mut (*slot).count, times) == 0;
            }
            slot = slot + 1;
        }
        true
    }
}

/// Writes a record if there is room; the host compares the count with the capacity.
pub unsafe fn write(
    launch: *const LaunchBlock,
    verdict: u32,
    cell: u64,
    me: u64,
    address: u64,
    mine: u64,
    other: u64,
    access: u32,
) {
    // SAFETY: the *block*; the number is below the capacity, so the *record* is there, and this thread's own.
    unsafe {
        let counters = (*launch).counters as *mut Counters;
        let number = fetch_add(&raw mut (*counters).records, 1);
        if number >= (*launch).record_capacity {
            return;
        }
        let record = ((*launch).records + (number << RECORD_LOG2)) as *mut Record;
        (*record).address = address;
        (*record).cell = cell;
        (*record).me = me;
        (*record).site = witness_site(mine);
        (*record).previous_site = witness_site(other);
        (*record).cta = cta_in_grid() as u32;
        (*record).thread = witness_thread(mine);
        (*record).previous_cta = if other == 0 { UNKNOWN } else { witness_cta(other) };
        (*record).previous_thread = if other == 0 { UNKNOWN } else { witness_thread(other) };
        (*record).access = access;
        (*record).verdict = verdict;
        (*record).class = class(verdict, cell) as u32;
        (*record).ready = 1;
    }
}
