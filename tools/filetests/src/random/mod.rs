//! Small random kernels, to hold the cells against happens-before.
//!
//! [`make`] gives a [`kernel::Kernel`] for a seed, [`text`] writes it down as PTX, [`judge`] runs it
//! and compares the verdicts of one and the same run, [`truth`] knows better where barriers alone
//! order, [`shrink`] makes what disagrees small, [`found`] turns it into a test file, and [`tally`]
//! counts.

pub mod found;
pub mod judge;
pub mod kernel;
pub mod make;
pub mod shrink;
pub mod tally;
pub mod text;
pub mod truth;

/// A small random number generator: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        (self.number() % u64::from(limit)) as u32
    }

    /// True so many times out of a hundred.
    pub fn percent(&mut self, of_hundred: u32) -> bool {
        self.below(100) < of_hundred
    }

    /// One of several, which must not be none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }
}
