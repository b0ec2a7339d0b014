//! What becomes of words that are swapped.

use super::*;

const LOCK: Place = Place::Global(64);

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
        place: LOCK,
        site,
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
    assert_eq!(locks.swap(&writing(0, 1), cas(0)), Step::None);
    assert!(locks.holds(thread(0)) && !locks.is_lock(LOCK));
    assert_eq!(locks.swap(&writing(1, 1), cas(1)), Step::None);
    let Step::Released(lock) = locks.swap(&writing(0, 2), exchange(0, 1)) else {
        panic!("not released");
    };
    assert!(locks.is_lock(LOCK) && !locks.holds(thread(0)));
    assert_eq!(locks.swap(&writing(1, 1), cas(0)), Step::Tried);
    assert_eq!(locks.swap(&writing(0, 1), cas(1)), Step::Tried);
    assert_eq!(locks.write(&writing(1, 3), false), Step::Released(lock));
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
    assert_eq!(locks.swap(&writing(1, 5), read), Step::None);
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
        assert_eq!(locks.swap(&writing(0, 3), exchange(0, 7)), Step::None);
        assert!(!locks.is_lock(LOCK) && !locks.is_spoiled());
    }
}

#[test]
fn a_lock_that_proves_to_be_none_spoils_what_was_said() {
    // Its free value changes.
    let mut locks = Locks::default();
    locks.swap(&writing(0, 1), cas(0));
    locks.write(&writing(0, 2), false);
    assert_eq!(locks.swap(&writing(1, 1), exchange(1, 5)), Step::None);
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
    locks.fence(thread(0), Scope::Cta, (true, true));
    let none = |_| panic!("nobody else was there");
    locks.touch(&touch(0, 3, true), none);
    assert_eq!(locks.now(thread(0))[0].entry, Some(Scope::Cta));
    assert_eq!(locks.now(thread(0))[0].exit, None);
    locks.fence(thread(0), Scope::Gpu, (true, true));
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
    locks.touch(&touch(0, 3, false), |_| ());
    locks.swap(&writing(0, 2), exchange(0, 1));
    locks.swap(&writing(1, 1), cas(0));
    let mut learned = 0;
    // A read of what was only read, then a write, then another.
    for writes in [false, true, true] {
        locks.touch(&touch(1, 3, writes), |_| learned += 1);
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
            locks.touch(&touch(0, word, true), |_| ());
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
            place: Place::Global(64 + 4 * n),
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
        assert!(matches!(
            locks.write(&writing(0, 2), true),
            Step::Released(_)
        ));
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
        assert_eq!(locks.write(&writing(1, 3), false), Step::None);
        locks.holds_now(LOCK, value, false);
        assert_eq!((locks.is_lock(LOCK), locks.is_spoiled()), (lock, !lock));
    }
}
