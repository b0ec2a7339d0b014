//! A small random number generator: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
//!
//! The numbers of a seed never change: schedules and test kernels are named by their seeds.

/// The numbers of a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts the numbers of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
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

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.number() % (high.abs_diff(low) + 1)) as i64
    }

    /// The index of one of `count` things, which must not be none.
    pub fn index(&mut self, count: usize) -> usize {
        (self.number() % count as u64) as usize
    }

    /// True so many times out of a hundred.
    pub fn percent(&mut self, of_hundred: u32) -> bool {
        self.below(100) < of_hundred
    }

    /// True once in so many times on average; not for 0.
    pub fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// One of several, which must not be none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }
}
