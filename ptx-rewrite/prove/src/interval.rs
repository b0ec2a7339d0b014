//! Ranges of whole numbers.

/// Every number.
pub const EVERY: Interval<i128> = Interval::new(i128::MIN, i128::MAX);

/// All numbers from `low` to `high`, both included; none if `high` is less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval<T> {
    /// The least.
    pub low: T,
    /// The greatest.
    pub high: T,
}

impl<T> Interval<T> {
    /// From one number to another.
    pub const fn new(low: T, high: T) -> Self {
        Self { low, high }
    }
}

impl<T: Copy + Ord> Interval<T> {
    /// One number alone.
    pub fn only(number: T) -> Self {
        Self::new(number, number)
    }

    /// The smallest interval that holds both.
    pub fn hull(self, other: Self) -> Self {
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// What both hold.
    pub fn both(self, other: Self) -> Self {
        Self::new(self.low.max(other.low), self.high.min(other.high))
    }

    /// Whether a number is in it.
    pub fn contains(self, number: T) -> bool {
        self.low <= number && number <= self.high
    }

    /// Whether it holds no number.
    pub fn is_empty(self) -> bool {
        self.high < self.low
    }
}

impl From<Interval<i64>> for Interval<i128> {
    fn from(of: Interval<i64>) -> Self {
        Self::new(of.low.into(), of.high.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_sets_of_numbers() {
        let all = || (-2..=2).flat_map(|low| (-2..=2).map(move |high| Interval::new(low, high)));
        for a in all() {
            let numbers = |of: Interval<i32>| (-3..=3).filter(move |&n| of.contains(n));
            assert_eq!(numbers(a).count() == 0, a.is_empty());
            assert!(numbers(Interval::only(a.low)).eq([a.low]));
            for b in all() {
                assert!(numbers(a.both(b)).eq(numbers(a).filter(|&n| b.contains(n))));
                if a.is_empty() || b.is_empty() {
                    continue;
                }
                let hull = a.hull(b);
                let ends = numbers(a).chain(numbers(b));
                assert_eq!(ends.clone().min(), Some(hull.low));
                assert_eq!(ends.max(), Some(hull.high));
            }
        }
    }
}
