//! What becomes of words that are swapped.

use alloc::vec;

use super::*;

const LOCK: Location = Location::Global(64);
const NOTHING: Step = Step {
    of_lock: false,
    released: None,
};
const TRIED: Step = Step {
    of_lock: true,
    released: None,
};

fn thread(cta: u64) -> Thread {
    Thread {
        cta,
        warp: 0,
        lane: 0,
    }
}

fn writing(cta: u64, site: u32) -> Writing {
    Writing {
        thread: thread(cta),
        location: LOCK,
        site,
        bytes: 4,
        scope: Scope::Gpu,
        acquires: false,
        releases: false,
    }
}

fn touch(cta: u64, memory: u64, writes: bool) -> Touch {
    Touch {
        thread: thread(cta),
        memory,
        site: 10,
        writes,
        bytes: 15,
        scope: None,
        times: [1; 2],
    }
}

fn cas(old: u64) -> Swap {
    Swap {
        compare: Some(0),
        new: 1,
        old,
    }
}

fn exchange(new: u64, old: u64) -> Swap {
    Swap {
        compare: None,
        new,
        old,
    }
}

#[test]
fn a_lock_is_what_its_holder_gives_back() {
    let mut locks = Locks::default();
    assert_eq!(locks.swap(&writing(0, 1), cas(0)), NOTHING);
    assert!(locks.holds(thread(0)) && !locks.is_lock(LOCK));
    assert_eq!(locks.swap(&writing(1, 1), cas(1)), NOTHING);
    let step = locks.swap(&writing(0, 2), exchange(0, 1));
    let lock = step.released.expect("not released");
    assert!(locks.is_lock(LOCK) && !locks.holds(thread(0)));
    assert_eq!(locks.swap(&writing(1, 1), cas(0)), TRIED);
    assert_eq!(locks.swap(&writing(0, 1), cas(1)), TRIED);
    assert_eq!(locks.write(&writing(1, 3), false).released, Some(lock));
    assert!(!locks.is_spoiled());
}

#[test]
fn reading_by_swapping_is_no_attempt() {
    let mut locks = Locks::default();
    locks.swap(&writing(0, 1), exchange(1, 0));
    locks.swap(&writing(0, 2), exchange(0, 1));
    locks.swap(&writing(0, 1), exchange(1, 0));
    let read = Swap {
        compare: Some(1),
        new: 1,
        old: 1,
    };
    assert_eq!(locks.swap(&writing(1, 5), read), NOTHING);
    assert!(locks.is_lock(LOCK));
}

#[test]
fn words_that_others_change_are_none() {
    // By swapping, storing, and adding, while it is held.
    for step in 0..3 {
        let mut locks = Locks::default();
        locks.swap(&writing(0, 1), cas(0));
        let by = writing(1, 2);
        match step {
            0 => locks.swap(&by, exchange(7, 1)),
            1 => locks.write(&by, false),
            _ => locks.write(&by, true),
        };
        assert!(!locks.holds(thread(0)), "{step}");
        assert_eq!(locks.swap(&writing(0, 3), exchange(0, 7)), NOTHING);
        assert!(!locks.is_lock(LOCK) && !locks.is_spoiled());
    }
}

#[test]
fn a_lock_that_proves_to_be_none_spoils_what_was_said() {
    // Its free value changes.
    let mut locks = Locks::default();
    locks.swap(&writing(0, 1), cas(0));
    locks.write(&writing(0, 2), false);
    assert_eq!(locks.swap(&writing(1, 1), exchange(1, 5)), NOTHING);
    assert!(locks.is_spoiled() && !locks.is_lock(LOCK));
    // A counter.
    let mut locks = Locks::default();
    locks.swap(&writing(0, 1), cas(0));
    locks.write(&writing(0, 2), false);
    locks.write(&writing(1, 2), true);
    assert!(locks.is_spoiled());
    // Its holder passes a barrier.
    let mut locks = Locks::default();
    locks.swap(&writing(0, 1), cas(0));
    locks.share(thread(0));
    assert!(!locks.is_spoiled() && !locks.holds(thread(0)));
}

#[test]
fn accesses_remember_their_locks_and_fences() {
    let mut locks = Locks::default();
    locks.swap(&writing(0, 1), cas(0));
    locks.fence(thread(0), Scope::Cta, FenceKind::AcqRel);
    let none = |_, _| panic!("nobody else was there");
    locks.touch(&touch(0, 3, true), none);
    assert_eq!(locks.now(thread(0))[0].entry, Some(Scope::Cta));
    assert_eq!(locks.now(thread(0))[0].exit, None);
    locks.fence(thread(0), Scope::Gpu, FenceKind::AcqRel);
    locks.touch(&touch(0, 5, true), none);
    locks.swap(&writing(0, 2), exchange(0, 1));
    locks.touch(&touch(0, 4, true), none);
    let then = locks.then(thread(0), 3, 10);
    assert_eq!((then.len(), then[0].lock), (1, LOCK));
    assert_eq!((then[0].taken, then[0].released), (1, Some(2)));
    assert_eq!(then[0].exit, Some(Scope::Gpu));
    assert_eq!(locks.then(thread(0), 5, 10)[0].exit, None);
    assert!(locks.then(thread(0), 4, 10).is_empty());
    assert!(locks.then(thread(0), 3, 11).is_empty());
}

#[test]
fn conflicts_under_one_lock_are_learned_once() {
    let mut locks = Locks::default();
    locks.swap(&writing(0, 1), cas(0));
    locks.touch(&touch(0, 3, false), |_, _| ());
    locks.swap(&writing(0, 2), exchange(0, 1));
    locks.swap(&writing(1, 1), cas(0));
    let mut learned = 0;
    // A read of what was only read, then a write, then another.
    for writes in [false, true, true] {
        locks.touch(&touch(1, 3, writes), |_, _| learned += 1);
        assert_eq!(learned, u32::from(writes));
    }
}

#[test]
fn who_accesses_much_has_claimed_and_not_locked() {
    for (known, most) in [(false, MOST_CLAIMED), (true, MOST_TOUCHED)] {
        let mut locks = Locks::default();
        if known {
            locks.swap(&writing(0, 1), cas(0));
            locks.write(&writing(0, 2), false);
        }
        locks.swap(&writing(0, 1), cas(0));
        for word in 0..=most as u64 {
            assert!(locks.holds(thread(0)));
            locks.touch(&touch(0, word, true), |_, _| ());
        }
        assert!(!locks.holds(thread(0)));
        assert_eq!(locks.is_spoiled(), known);
    }
}

#[test]
fn who_holds_many_words_has_no_locks() {
    let mut locks = Locks::default();
    for n in 0..=MOST_HELD as u64 {
        let by = Writing {
            location: Location::Global(64 + 4 * n),
            ..writing(0, 1)
        };
        locks.swap(&by, cas(0));
    }
    assert_eq!(locks.now(thread(0)).len(), MOST_HELD);
}

#[test]
fn exchanges_for_different_values_take_no_lock() {
    let mut locks = Locks::default();
    for (cta, value) in [(0, 1), (1, 1), (0, 2)] {
        locks.swap(&writing(cta, 1), exchange(value, 0));
        locks.swap(&writing(cta, 2), exchange(0, value));
        assert_eq!(locks.is_lock(LOCK), value == 1);
    }
    // Those who compare may say who they are: an attempt that fails changes nothing.
    let mut locks = Locks::default();
    for (cta, new) in [(0, 1), (1, 2)] {
        locks.swap(&writing(cta, 1), Swap { new, ..cas(0) });
        locks.swap(&writing(cta, 2), exchange(0, new));
    }
    assert!(locks.is_lock(LOCK));
}

#[test]
fn a_word_that_is_given_back_with_another_value_is_no_lock() {
    for (value, lock) in [(0, true), (2, false)] {
        let mut locks = Locks::default();
        locks.swap(&writing(0, 1), cas(0));
        let step = locks.write(&writing(0, 2), true);
        assert!(step.released.is_some());
        locks.holds_now(LOCK, value, true);
        assert_eq!(locks.is_lock(LOCK), lock);
        // It has never passed for one.
        assert!(!locks.is_spoiled());
    }
}

#[test]
fn a_free_lock_that_somebody_gives_another_value_is_none() {
    for (value, lock) in [(0, true), (1, false)] {
        let mut locks = Locks::default();
        locks.swap(&writing(0, 1), cas(0));
        locks.swap(&writing(0, 2), exchange(0, 1));
        assert_eq!(locks.write(&writing(1, 3), false), NOTHING);
        locks.holds_now(LOCK, value, false);
        assert_eq!((locks.is_lock(LOCK), locks.is_spoiled()), (lock, !lock));
    }
}

/// A reader adds to a word, or takes away.
fn add(old: u64, change: i64) -> Update {
    Update {
        old,
        new: old.wrapping_add_signed(change) & 0xffff_ffff,
    }
}

/// What threads hold.
fn held(locks: &Locks, cta: u64) -> Vec<bool> {
    let now = locks.now(thread(cta));
    now.iter().map(|held| held.shared).collect()
}

#[test]
fn readers_count_themselves_in_and_out_and_a_writer_swaps() {
    // By numbers of either sign; the first one to come is a reader, or the writer.
    for (step, writer) in [(1, 1000), (-1, 7)] {
        for readers_first in [true, false] {
            let mut locks = Locks::default();
            let read = |locks: &mut Locks| {
                locks.update(&writing(0, 1), add(0, step));
                let one = add(0, step).new;
                locks.update(&writing(1, 1), add(one, step));
                assert_eq!((held(locks, 0), held(locks, 1)), (vec![true], vec![true]));
                let two = add(one, step).new;
                let out = locks.update(&writing(0, 2), add(two, -step));
                assert_eq!(out.released.map(|of| of.shared), Some(true));
                locks.update(&writing(1, 2), add(one, -step));
                assert!(!locks.holds(thread(0)) && !locks.holds(thread(1)));
            };
            if readers_first {
                read(&mut locks);
                assert!(!locks.is_lock(LOCK) && locks.has_had_readers(LOCK));
            }
            let swap = Swap {
                new: writer,
                ..cas(0)
            };
            let taken = locks.swap(&writing(2, 3), swap);
            assert_eq!(taken.of_lock, readers_first);
            assert_eq!(held(&locks, 2), [false]);
            let out = locks.update(&writing(2, 4), add(writer, -(writer as i64)));
            assert_eq!(out.released.map(|of| of.shared), Some(false));
            assert!(locks.is_lock(LOCK));
            read(&mut locks);
            assert!(locks.is_lock(LOCK) && !locks.end_spoiled());
        }
    }
}

#[test]
fn a_reader_that_comes_while_a_writer_holds_a_lock_waits_or_gives_up() {
    for waits in [true, false] {
        let mut locks = Locks::default();
        locks.swap(
            &writing(2, 3),
            Swap {
                new: 1000,
                ..cas(0)
            },
        );
        locks.update(&writing(0, 1), add(1000, 1));
        assert!(held(&locks, 0).is_empty());
        let there = match waits {
            true => 1001,
            false => {
                locks.update(&writing(0, 2), add(1001, -1));
                1000
            }
        };
        let out = locks.update(&writing(2, 4), add(there, -1000));
        assert!(out.released.is_some() && locks.is_lock(LOCK));
        assert_eq!(held(&locks, 0), vec![true; usize::from(waits)]);
        if waits {
            locks.update(&writing(0, 2), add(1, -1));
        }
        assert!(!locks.holds(thread(0)) && !locks.end_spoiled());
    }
    // A writer that forgets about the reader's number leaves no lock.
    let mut locks = Locks::default();
    locks.swap(
        &writing(2, 3),
        Swap {
            new: 1000,
            ..cas(0)
        },
    );
    locks.update(&writing(0, 1), add(1000, 1));
    locks.swap(&writing(2, 4), exchange(0, 1001));
    assert!(!locks.is_lock(LOCK));
}

#[test]
fn swaps_on_top_of_one_another_are_readers() {
    let mut locks = Locks::default();
    let swap = |old: u64, new: u64| Swap {
        compare: Some(old),
        new,
        old,
    };
    locks.swap(&writing(0, 1), swap(0, 1));
    assert_eq!(held(&locks, 0), [false]);
    locks.swap(&writing(1, 1), swap(1, 2));
    assert_eq!((held(&locks, 0), held(&locks, 1)), (vec![true], vec![true]));
    locks.swap(&writing(0, 2), swap(2, 1));
    locks.update(&writing(1, 2), add(1, -1));
    locks.swap(&writing(0, 1), swap(0, 1));
    assert_eq!(held(&locks, 0), [true]);
    locks.swap(&writing(0, 2), swap(1, 0));
    locks.swap(&writing(2, 1), swap(0, 9));
    assert_eq!(held(&locks, 2), [false]);
    locks.swap(&writing(2, 1), exchange(0, 9));
    assert!(locks.is_lock(LOCK) && !locks.end_spoiled());
}

#[test]
fn counters_are_no_locks() {
    // Somebody counts twice, somebody else counts back, another number, a swap on top, or nobody counts back.
    for step in 0..5 {
        for known in [false, true] {
            let mut locks = Locks::default();
            if known {
                locks.swap(&writing(7, 1), cas(0));
                locks.swap(&writing(7, 2), exchange(0, 1));
            }
            locks.update(&writing(0, 1), add(0, 1));
            match step {
                0 => drop(locks.update(&writing(0, 1), add(1, 1))),
                1 => drop(locks.update(&writing(1, 1), add(1, -1))),
                2 => drop(locks.update(&writing(1, 1), add(1, 5))),
                3 => drop(locks.swap(&writing(1, 1), exchange(9, 1))),
                _ => locks.exit(thread(0)),
            }
            assert!(!locks.is_lock(LOCK) && !locks.holds(thread(0)));
            assert_eq!(locks.end_spoiled(), known, "{step}");
        }
    }
}

#[test]
fn what_looked_like_a_lock_of_readers_and_no_writer_spoils_what_was_said() {
    let mut locks = Locks::default();
    locks.update(&writing(0, 1), add(0, 1));
    locks.update(&writing(0, 2), add(1, -1));
    // The order that taking it has given is this run's, if it is a lock.
    let swap = Swap { new: 9, ..cas(0) };
    assert!(locks.swap(&writing(1, 1), swap).of_lock && locks.end_spoiled());
    assert!(!locks.is_spoiled());
    locks.swap(&writing(1, 1), exchange(0, 9));
    assert!(!locks.end_spoiled());
}

#[test]
fn readers_learn_from_writers_alone() {
    let mut locks = Locks::default();
    let access = |locks: &mut Locks, cta: u64, writes: bool| {
        let mut learned = 0;
        locks.touch(&touch(cta, 3, writes), |_, _| learned += 1);
        learned
    };
    let read = |locks: &mut Locks, cta: u64, writes: bool| {
        locks.update(&writing(cta, 1), add(0, 1));
        let learned = access(locks, cta, writes);
        locks.update(&writing(cta, 2), add(1, -1));
        learned
    };
    // One writes although it is a reader.
    assert_eq!(
        (read(&mut locks, 0, true), read(&mut locks, 1, false)),
        (0, 0)
    );
    locks.swap(&writing(2, 3), Swap { new: 9, ..cas(0) });
    assert_eq!(access(&mut locks, 2, true), 1);
    locks.update(&writing(2, 4), add(9, -9));
    assert_eq!(read(&mut locks, 1, false), 1);
}

#[test]
fn counters_do_not_crowd_out_a_lock() {
    let mut locks = Locks::default();
    locks.swap(&writing(0, 1), cas(0));
    locks.write(&writing(0, 2), false);
    locks.swap(&writing(0, 1), cas(0));
    for n in 1..=2 * MOST_HELD as u64 {
        let by = Writing {
            location: Location::Global(64 + 4 * n),
            ..writing(0, 1)
        };
        locks.update(&by, add(0, 1));
    }
    assert_eq!(locks.now(thread(0)).len(), MOST_HELD);
    assert!(locks.now(thread(0)).iter().any(|held| held.lock == LOCK));
    assert!(!locks.end_spoiled());
}
