//! Race records: one per pair of sites and launch, with the first witness.

use crate::layout::*;
use crate::memory::*;
use crate::rule::{CONFLICT_CTA, CONFLICT_GRID};

/// Slots looked at before a pair goes unshared.
const PROBES: u64 = 16;

/// Counts the pair; true for its first conflict in this launch, and when the table is full.
pub unsafe fn first_of_pair(launch: *const LaunchBlock, site: u32, previous_site: u32) -> bool {
    unsafe {
        let key = ((site as u64) << 32u32 | previous_site as u64) + 1;
        let mask = (*launch).pair_mask as u64;
        let mut slot = key * 0x9e37_79b9_7f4a_7c15 >> 40u32;
        let end = slot + PROBES;
        while slot < end {
            let at = (*launch).pairs + ((slot & mask) << 4u32);
            let mut seen = load_relaxed(at);
            if seen == 0 {
                seen = compare_and_swap(at, 0, key);
            }
            if seen == 0 || seen == key {
                return fetch_increment(&raw mut (*(at as *mut PairSlot)).count) == 0;
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
    site: u32,
    previous_site: u32,
    access: u32,
) {
    unsafe {
        let counters = (*launch).counters as *mut Counters;
        let number = fetch_increment(&raw mut (*counters).records);
        if number >= (*launch).record_capacity {
            return;
        }
        let record = ((*launch).records + (number << 6u32)) as *mut Record;
        let several_ctas = verdict == CONFLICT_GRID && cell & GRID_MULTI != 0;
        let several_warps = verdict <= CONFLICT_CTA && cell & WARP_MULTI != 0;
        let several_lanes = cell & WARP_LANE_MULTI != 0;
        let class_shift = if verdict == CONFLICT_GRID {
            GRID_CLASS_SHIFT
        } else if verdict == CONFLICT_CTA {
            CTA_CLASS_SHIFT
        } else {
            WARP_CLASS_SHIFT
        };
        // The CTA field lies between the barrier epoch and the tag.
        let cta_width = (*launch).tag_shift - (*launch).cta_shift;
        let cta_mask = (1u64 << cta_width) - 1;
        (*record).address = address;
        (*record).cell = cell;
        (*record).me = me;
        (*record).site = site;
        (*record).previous_site = previous_site;
        (*record).cta = cta_in_grid() as u32;
        (*record).thread = thread_in_cta();
        (*record).previous_cta = if several_ctas {
            UNKNOWN
        } else {
            (cell >> 1u32 >> ((*launch).cta_shift - 1) & cta_mask) as u32
        };
        (*record).previous_thread = if several_ctas || several_warps || several_lanes {
            UNKNOWN
        } else {
            (cell >> 4u32 & 0x3e0 | cell & LANE_MASK) as u32
        };
        (*record).access = access;
        (*record).verdict = verdict;
        (*record).class = (cell >> class_shift & CLASS_BITS) as u32;
        (*record).ready = 1;
    }
}
