//! ScoRD's fence rule (Kamath et al., ISCA 2020, section IV): has whoever came first released what it
//! did, since then, at a scope that reaches the other?
//!
//! Used in `fast` mode, for kernels whose threads may be ordered by more than full barriers. Departures:
//! 1. Releases are counted by CTA instead of by warp: behind a barrier, another warp may release what
//!    this one did. So what is called a race is one.
//! 2. So are acquires: without any in its CTA, nobody there is behind another's release.
//! 3. An earlier strong access is never called a race. Who has observed a strong write is behind it
//!    without any release.
//!
//! Its misses: a release since then need not be observed, nor an acquire be of the same flag; and an
//! access that leaves its cell as it is, is dated by the one before it.
//!
//! Like [`rule`](crate::rule), this file is compiled twice.

use crate::layout::{LANES_LOG2, WITNESS_CTA_MASK, WITNESS_LANE_SHIFT, WITNESS_THREAD_MASK};
use crate::rule::{CONFLICT_CTA, CONFLICT_GRID, WEAK_LOAD, WEAK_STORE};

/// One operation of cta scope, in a word of counts.
pub const NARROW: u64 = 1 << 32;
/// One operation of wider scope: it reaches the CTA as well.
pub const WIDE: u64 = NARROW | 1;
/// Bytes of the counts of a CTA: a word of releases, a word of acquires.
pub const COUNTS_BYTES: u64 = 16;
/// From the first of them to the second.
pub const ACQUIRES: u64 = 8;

/// Nothing that could order the two has happened: a race.
pub const UNRELEASED: u32 = 0;
/// Something may have.
pub const POSSIBLE: u32 = 1;
/// There was a release and an acquire: taken for ordered.
pub const ORDERED: u32 = 2;

/// Counts larger than this are not told apart.
const MOST: u64 = (1 << 30) - 1;
const KIND_BITS: u32 = 4;

/// When an access happened: its kind, and the releases of its CTA so far.
pub const fn stamp(kind: u32, releases: u64) -> u64 {
    kind as u64 | least(releases & 0xffff_ffff) << KIND_BITS | least(releases >> 32u32) << 34u32
}

const fn least(count: u64) -> u64 {
    if count < MOST { count } else { MOST }
}

/// Whether two [witnesses](crate::layout::witness) are as far from each other as a conflict at the
/// level of `verdict` is. Else the cell no longer knows which access the conflict was with.
pub const fn apart(verdict: u32, mine: u64, other: u64) -> bool {
    let differ = (mine ^ other) & WITNESS_THREAD_MASK;
    let ctas = differ & WITNESS_CTA_MASK != 0;
    let warps = differ >> (WITNESS_LANE_SHIFT + LANES_LOG2) != 0;
    if verdict == CONFLICT_GRID {
        ctas
    } else if verdict == CONFLICT_CTA {
        warps && !ctas
    } else {
        differ != 0 && !warps && !ctas
    }
}

/// What to make of a conflict, at the level of `verdict`, with an access of that stamp.
///
/// `releases` is what the CTA of that access has counted by now, `acquires` whether the CTA of the
/// later one has any, in the same two places.
pub const fn settle(verdict: u32, stamp: u64, releases: u64, acquires: u64) -> u32 {
    // Between CTAs, only wide ones matter.
    let (before, now, acquired) = if verdict == CONFLICT_GRID {
        let now = least(releases & 0xffff_ffff);
        (stamp >> KIND_BITS & MOST, now, acquires & 0xffff_ffff != 0)
    } else {
        (stamp >> 34u32, least(releases >> 32u32), acquires != 0)
    };
    let released = before != now || now == MOST;
    let kind = (stamp & 15) as u32;
    let weak = kind == WEAK_LOAD || kind == WEAK_STORE;
    if acquired && (released || !weak) {
        ORDERED
    } else if weak {
        UNRELEASED
    } else {
        POSSIBLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::witness;
    use crate::rule::{CONFLICT_WARP, STRONG_WRITE_GPU};

    #[test]
    fn a_release_counts_where_its_scope_reaches_and_somebody_acquires() {
        let before = 3 * WIDE;
        let at = stamp(WEAK_STORE, before);
        for (verdict, more, acquires, says) in [
            (CONFLICT_GRID, 0, WIDE, UNRELEASED),
            (CONFLICT_GRID, NARROW, WIDE, UNRELEASED),
            (CONFLICT_GRID, WIDE, WIDE, ORDERED),
            (CONFLICT_GRID, WIDE, NARROW, UNRELEASED),
            (CONFLICT_GRID, WIDE, 0, UNRELEASED),
            (CONFLICT_CTA, 0, WIDE, UNRELEASED),
            (CONFLICT_CTA, NARROW, NARROW, ORDERED),
            (CONFLICT_CTA, WIDE, WIDE, ORDERED),
            (CONFLICT_CTA, WIDE, 0, UNRELEASED),
        ] {
            assert_eq!(settle(verdict, at, before + more, acquires), says);
        }
    }

    #[test]
    fn a_strong_access_may_have_been_observed() {
        let at = stamp(STRONG_WRITE_GPU, 0);
        assert_eq!(settle(CONFLICT_GRID, at, 0, 0), POSSIBLE);
        assert_eq!(settle(CONFLICT_GRID, at, 0, WIDE), ORDERED);
        assert_eq!(settle(CONFLICT_GRID, at, WIDE, 0), POSSIBLE);
    }

    #[test]
    fn the_other_side_is_as_far_away_as_the_conflict() {
        let mine = witness(1, 5, 40);
        for (other, level) in [
            (witness(2, 6, 40), Some(CONFLICT_GRID)),
            (witness(2, 5, 8), Some(CONFLICT_CTA)),
            (witness(2, 5, 41), Some(CONFLICT_WARP)),
            (witness(2, 5, 40), None),
        ] {
            for verdict in [CONFLICT_GRID, CONFLICT_CTA, CONFLICT_WARP] {
                assert_eq!(apart(verdict, mine, other), level == Some(verdict));
            }
        }
    }

    #[test]
    fn counts_that_are_too_large_are_taken_for_different() {
        let many = MOST * WIDE;
        let at = stamp(WEAK_STORE, many);
        assert_eq!(settle(CONFLICT_GRID, at, many, WIDE), ORDERED);
        assert_eq!(settle(CONFLICT_CTA, at, many + WIDE, WIDE), ORDERED);
    }
}
