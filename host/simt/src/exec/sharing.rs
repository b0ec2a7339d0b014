//! Memory that several threads of the host use at once: whose it is, and what they do to a word that
//! others may change.
//!
//! Words are atomic anyway. What is larger or smaller than a word is not: a part of a word is written
//! by compare-and-swap, and what has two words by a lock that stands for its neighbourhood. Whoever
//! only reads two words takes no lock, but looks whether anybody has written meanwhile (a sequence
//! lock, after Boehm, "Can seqlocks get along with programming language memory models?", 2012).

use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, fence};

use super::address::{deposit, fetch};
use crate::memory::Memory;

/// Locks; a power of two.
const LOCKS: usize = 4096;
/// log2 of the bytes of a neighbourhood, more than any element has.
const NEIGHBOURHOOD_LOG2: u32 = 9;
/// Looks at a lock before others get a turn on the processor.
const MAX_WAIT: u32 = 64;

/// The memory of a launch, as one of its host threads has it.
pub(crate) enum Held<'a> {
    /// Nobody else uses it.
    Alone(&'a mut Memory),
    /// Others use it, too; what is allocated stays as it is.
    Shared(&'a Memory, &'a Locks),
}

impl Deref for Held<'_> {
    type Target = Memory;

    #[inline(always)]
    fn deref(&self) -> &Memory {
        match self {
            Self::Alone(memory) => memory,
            Self::Shared(memory, _) => memory,
        }
    }
}

impl<'a> Held<'a> {
    /// The memory, to allocate in; none while others use it.
    pub(crate) fn alone(&mut self) -> Option<&mut Memory> {
        match self {
            Self::Alone(memory) => Some(memory),
            Self::Shared(..) => None,
        }
    }

    /// The locks, where others use the memory too.
    #[inline(always)]
    pub(crate) fn locks(&self) -> Option<&'a Locks> {
        match self {
            Self::Alone(_) => None,
            Self::Shared(_, locks) => Some(locks),
        }
    }
}

/// Locks for what has more than one word. Each counts how often it was taken and given back, so it is
/// odd while somebody has it.
pub(crate) struct Locks(Box<[AtomicU32]>);

impl Locks {
    pub(crate) fn new() -> Self {
        Self((0..LOCKS).map(|_| AtomicU32::new(0)).collect())
    }

    /// The lock of a word.
    #[inline(always)]
    fn of(&self, word: &AtomicU32) -> &AtomicU32 {
        let neighbourhood = (std::ptr::from_ref(word).addr() as u64) >> NEIGHBOURHOOD_LOG2;
        let hash = neighbourhood.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.0[hash as usize % LOCKS]
    }

    /// Does something to the words of an element that no other holder of the lock sees half of.
    #[inline(always)]
    fn update<R>(&self, word: &AtomicU32, f: impl FnOnce() -> R) -> R {
        let lock = self.of(word);
        let mut looks = 0;
        let taken = loop {
            let count = lock.load(Relaxed);
            if count & 1 == 0
                && lock
                    .compare_exchange_weak(count, count.wrapping_add(1), Acquire, Relaxed)
                    .is_ok()
            {
                break count;
            }
            wait(&mut looks);
        };
        fence(Release);
        let result = f();
        lock.store(taken.wrapping_add(2), Release);
        result
    }

    /// Reads words of the neighbourhoods of two words as nobody has them half written.
    #[inline(always)]
    pub(crate) fn read<R>(&self, [a, b]: [&AtomicU32; 2], mut f: impl FnMut() -> R) -> R {
        let (a, b) = (self.of(a), self.of(b));
        let mut looks = 0;
        loop {
            let before = (a.load(Acquire), b.load(Acquire));
            if (before.0 | before.1) & 1 == 0 {
                let result = f();
                fence(Acquire);
                if (a.load(Relaxed), b.load(Relaxed)) == before {
                    return result;
                }
            }
            wait(&mut looks);
        }
    }

    /// Replaces an element of 1 to 8 bytes at once by what `f` makes of it. Returns what was there.
    pub(crate) fn replace(
        &self,
        words: &[AtomicU32],
        bytes: u32,
        offset: u64,
        f: impl Fn(u64) -> u64,
    ) -> u64 {
        let index = (offset / 4) as usize;
        // Its bytes come and go with the caller's weak accesses before and after.
        fence(Release);
        let old = if bytes == 8 {
            self.update(&words[index], || {
                let old = fetch(bytes, offset, |word| words[word].load(Relaxed));
                deposit(bytes, offset, f(old), |word, _, bits| {
                    words[word].store(bits, Relaxed);
                });
                old
            })
        } else {
            // The word as it was, seen from the element.
            let element = |word: u32| fetch(bytes, offset, |_| word);
            let word = &words[index];
            let mut was = word.load(Relaxed);
            loop {
                let mut now = was;
                deposit(bytes, offset, f(element(was)), |_, keep, bits| {
                    now = was & !keep | bits & keep;
                });
                match word.compare_exchange_weak(was, now, Relaxed, Relaxed) {
                    Ok(_) => break element(was),
                    Err(other) => was = other,
                }
            }
        };
        fence(Acquire);
        old
    }

    /// Writes an element of 1 to 8 bytes at once.
    pub(crate) fn store(&self, words: &[AtomicU32], bytes: u32, offset: u64, value: u64) {
        let put = || {
            deposit(bytes, offset, value, |word, keep, bits| {
                set(&words[word], true, keep, bits);
            });
        };
        match bytes {
            8 => self.update(&words[(offset / 4) as usize], put),
            _ => put(),
        }
    }
}

/// Replaces the bits in a mask of a word, whose other bits somebody else may change where several
/// threads run.
#[inline(always)]
pub(crate) fn set(word: &AtomicU32, several: bool, keep: u32, bits: u32) {
    if keep == u32::MAX {
        word.store(bits, Relaxed);
    } else if several {
        merge(word, keep, bits);
    } else {
        word.store(word.load(Relaxed) & !keep | bits & keep, Relaxed);
    }
}

fn merge(word: &AtomicU32, keep: u32, bits: u32) {
    let mut was = word.load(Relaxed);
    while let Err(other) =
        word.compare_exchange_weak(was, was & !keep | bits & keep, Relaxed, Relaxed)
    {
        was = other;
    }
}

#[inline(always)]
fn wait(looks: &mut u32) {
    *looks += 1;
    if looks.is_multiple_of(MAX_WAIT) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads do something to the same words.
    fn twice(words: &[AtomicU32], f: impl Fn(&Locks, &[AtomicU32]) + Sync) {
        let locks = Locks::new();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| f(&locks, words));
            }
        });
    }

    fn word(words: &[AtomicU32], index: usize) -> u32 {
        words[index].load(Relaxed)
    }

    #[test]
    fn no_addition_is_lost() {
        const COUNT: u32 = 20_000;
        let words: Vec<_> = [0, u32::MAX, 7, 0].map(AtomicU32::new).into();
        twice(&words, |locks, words| {
            for _ in 0..COUNT {
                locks.replace(words, 8, 0, |old| old.wrapping_add(1));
                locks.replace(words, 4, 8, |old| old + 1);
                locks.replace(words, 2, 12, |old| old.wrapping_add(3));
                locks.replace(words, 1, 15, |old| old.wrapping_add(1));
            }
        });
        let low = 2 * u64::from(COUNT) + (u64::from(u32::MAX) << 32);
        assert_eq!((word(&words, 0), word(&words, 1)), (low as u32, u32::MAX));
        assert_eq!(word(&words, 2), 7 + 2 * COUNT);
        let (half, byte) = ((6 * COUNT) & 0xffff, (2 * COUNT) & 0xff);
        assert_eq!(word(&words, 3), byte << 24 | half);
    }

    #[test]
    fn both_words_are_of_one_update() {
        let words: Vec<_> = [0, 0].map(AtomicU32::new).into();
        twice(&words, |locks, words| {
            for _ in 0..20_000 {
                locks.replace(words, 8, 0, |old| {
                    assert_eq!(old as u32, (old >> 32) as u32);
                    (old & 0xffff_ffff).wrapping_add(1) * 0x1_0000_0001
                });
                let seen = locks.read([&words[0]; 2], || (word(words, 0), word(words, 1)));
                assert_eq!(seen.0, seen.1);
            }
        });
    }

    #[test]
    fn neighbours_in_a_word_stay() {
        let words = [AtomicU32::new(0)];
        let next = AtomicU32::new(0);
        twice(&words, |_, words| {
            let shift = 8 * next.fetch_add(1, Relaxed);
            for value in 0..20_000u32 {
                merge(&words[0], 0xff << shift, (value & 0xff) << shift);
                assert_eq!(word(words, 0) >> shift & 0xff, value & 0xff);
            }
        });
    }
}
