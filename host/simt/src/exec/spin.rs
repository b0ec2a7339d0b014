//! Which ops are part of a spin loop.
//!
//! A loop that waits makes one strong load, atomic or test again and again: at the same addresses,
//! by the same lanes, with the same outcome. A loop that gets on does not, so it costs what its ops
//! cost, however many of them are atomic or ordered.

use random::Random;

use super::address::lanes;
use super::warp::{Split, Warp};
use crate::lanes::{ALL, Lanes, WARP};

/// Places that are remembered, a power of two: a loop may look at several.
const PLACES: usize = 16;

/// What a warp's last strong loads, atomics and tests have seen, by their place in the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spins {
    seen: [Seen; PLACES],
}

/// Where, by which lanes, and a digest of addresses and outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    pc: u32,
    /// Not 0 where something has been seen.
    lanes: u32,
    digest: u64,
}

impl Spins {
    /// Remembers what the op at `pc` has seen. True when that is what it saw the last time, unless
    /// another op has taken its place meanwhile.
    fn repeats(&mut self, pc: u32, lanes: u32, digest: u64) -> bool {
        let seen = Seen { pc, lanes, digest };
        let place = &mut self.seen[pc as usize % PLACES];
        std::mem::replace(place, seen) == seen
    }
}

impl Warp {
    /// A digest of a source row: of the addresses at which an op will look.
    pub(crate) fn digest(&self, split: &Split, row: u32, consts: &[Lanes], exec: u32) -> u64 {
        digest(self.source(&split.frame, row, consts), exec)
    }

    /// True when the op that a split has just executed looked where it looked the last time, and
    /// saw the same. `at` is the digest of the addresses, and `rows` are those of the outcome.
    pub(crate) fn repeats(&mut self, split: &Split, exec: u32, at: u64, rows: &[u32]) -> bool {
        let saw = rows.iter().fold(at, |saw, row| {
            let row = &self.regs[(split.frame.rows + row) as usize];
            saw.rotate_left(7) ^ digest(row, exec)
        });
        self.spins.repeats(split.pc, exec, saw)
    }
}

/// A number that tells the values of some lanes apart from others, nearly always.
fn digest(row: &Lanes, mask: u32) -> u64 {
    let term = |lane: usize| row[lane].wrapping_mul(WEIGHTS[lane]);
    if mask == ALL {
        return (0..WARP).map(term).fold(0, u64::wrapping_add);
    }
    lanes(mask).map(term).fold(0, u64::wrapping_add)
}

/// An odd number for each lane, so that no change of one lane goes unseen; a random one, so that
/// changes of several do not cancel out by habit.
const WEIGHTS: Lanes = {
    let mut random = Random::new(0);
    let mut weights = [0; WARP];
    let mut lane = 0;
    while lane < WARP {
        weights[lane] = random.number() | 1;
        lane += 1;
    }
    weights
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_again_repeats_until_something_differs() {
        let mut spins = Spins::default();
        assert!(!spins.repeats(7, 1, 5), "nothing was seen before");
        assert!(spins.repeats(7, 1, 5));
        assert!(!spins.repeats(7, 3, 5), "other lanes");
        assert!(!spins.repeats(7, 3, 6), "another outcome");
        assert!(!spins.repeats(8, 3, 6), "another op");
        assert!(spins.repeats(7, 3, 6), "both are remembered");
        assert!(
            !spins.repeats(7 + PLACES as u32, 3, 6),
            "another op in the same place"
        );
        assert!(!spins.repeats(7, 3, 6), "which has driven this one out");
    }

    #[test]
    fn the_digest_sees_the_lanes_of_the_mask_and_no_others() {
        let row: Lanes = std::array::from_fn(|lane| lane as u64 * 3);
        for lane in 0..WARP {
            let mut changed = row;
            changed[lane] += 1;
            assert_ne!(digest(&row, ALL), digest(&changed, ALL));
            assert_ne!(digest(&row, 1 << lane), digest(&changed, 1 << lane));
            assert_eq!(digest(&row, !(1 << lane)), digest(&changed, !(1 << lane)));
        }
        let mut exchanged = row;
        exchanged.swap(3, 4);
        assert_ne!(digest(&row, ALL), digest(&exchanged, ALL));
    }
}
