//! Which CTA of a launch starts next, and on which thread of the host.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::Progress;

/// The CTAs of a launch that have not been started.
///
/// They start in their order, or, once [`Self::divide`]d, each thread has a piece of the grid, in order,
/// and then helps with what others have left.
pub(crate) struct Queue {
    /// One for each thread; all but the first are empty until they are divided.
    pieces: Vec<Piece>,
    /// Where to stop.
    end: AtomicU64,
    total: u64,
    /// CTAs that have ended.
    ended: AtomicU64,
}

/// CTAs that stand in a row.
struct Piece {
    next: AtomicU64,
    end: AtomicU64,
}

impl Piece {
    fn new([next, end]: [u64; 2]) -> Self {
        Self {
            next: AtomicU64::new(next),
            end: AtomicU64::new(end),
        }
    }

    /// CTAs that are left, of those before `end`.
    fn left(&self, end: u64) -> u64 {
        let end = self.end.load(Relaxed).min(end);
        end.saturating_sub(self.next.load(Relaxed))
    }
}

impl Queue {
    /// `total` CTAs for a number of threads.
    pub(crate) fn new(total: u64, threads: usize) -> Self {
        let empty = (1..threads).map(|_| Piece::new([total; 2]));
        Self {
            pieces: std::iter::once(Piece::new([0, total]))
                .chain(empty)
                .collect(),
            end: AtomicU64::new(total),
            total,
            ended: AtomicU64::new(0),
        }
    }

    /// Gives each thread a piece of its own of what is left. Whoever launches the same grid again has
    /// the same pieces then, and finds in its processor's cache what it has left there.
    ///
    /// To be called while one thread alone takes CTAs.
    pub(crate) fn divide(&self) {
        let from = self.taken();
        let left = u128::from(self.total - from);
        let count = self.pieces.len() as u128;
        let start = |number: usize| from + (left * number as u128 / count) as u64;
        for (number, piece) in self.pieces.iter().enumerate() {
            piece.next.store(start(number), Relaxed);
            piece.end.store(start(number + 1), Relaxed);
        }
    }

    /// The first of the next `count` CTAs, which are the caller's: thread `thread`, counted from zero.
    pub(crate) fn take(&self, count: u64, thread: usize) -> Option<u64> {
        let (before, from) = self.pieces.split_at(thread);
        let mut pieces = from.iter().chain(before);
        pieces.find_map(|piece| {
            let end = self.end.load(Relaxed);
            if piece.left(end) == 0 {
                return None;
            }
            let first = piece.next.fetch_add(count, Relaxed);
            (first < piece.end.load(Relaxed).min(end)).then_some(first)
        })
    }

    /// How far the launch is.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            done: self.ended.load(Relaxed),
            ctas: self.total,
        }
    }

    /// Counts CTAs that have ended.
    pub(crate) fn end(&self, count: u64) {
        self.ended.fetch_add(count, Relaxed);
    }

    /// CTAs that have been taken, before they are divided.
    pub(crate) fn taken(&self) -> u64 {
        self.pieces[0].next.load(Relaxed).min(self.total)
    }

    /// CTAs that are left.
    pub(crate) fn left(&self) -> u64 {
        let end = self.end.load(Relaxed);
        self.pieces.iter().map(|piece| piece.left(end)).sum()
    }

    /// Starts no CTA from `end` on.
    pub(crate) fn cut(&self, end: u64) {
        self.end.fetch_min(end, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(queue: &Queue, thread: usize) -> Vec<u64> {
        std::iter::from_fn(|| queue.take(1, thread)).collect()
    }

    #[test]
    fn in_order_until_divided() {
        let queue = Queue::new(10, 3);
        assert_eq!(
            [2, 0, 1].map(|thread| queue.take(1, thread)),
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!((queue.taken(), queue.left()), (3, 7));
        queue.divide();
        assert_eq!(queue.left(), 7);
        // Pieces from 3, 5 and 7.
        assert_eq!(
            [2, 0, 1].map(|thread| queue.take(1, thread)),
            [Some(7), Some(3), Some(5)]
        );
        assert_eq!(all(&queue, 1), [6, 8, 9, 4]);
        assert_eq!((queue.left(), queue.take(1, 0)), (0, None));
    }

    #[test]
    fn nothing_starts_behind_the_cut() {
        let queue = Queue::new(100, 2);
        queue.divide();
        assert_eq!(queue.take(1, 1), Some(50));
        queue.cut(3);
        assert_eq!(queue.left(), 3);
        assert_eq!(all(&queue, 1), [0, 1, 2]);
    }

    #[test]
    fn clusters_stay_together() {
        let queue = Queue::new(8, 1);
        assert_eq!([0; 3].map(|_| queue.take(4, 0)), [Some(0), Some(4), None]);
    }
}
