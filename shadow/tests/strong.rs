//! Unordered strong conflicts do not depend on who came first.

use shadow::hb::{
    Access, Active, Engine, FenceKind, Location, LockOrder, Look, MemoryOrder, OpKind, Scope,
    Shape, Strong, Swap, SwapValue, Use, Warp,
};

const LOCK: Location = Location::Global(64);
const DATA: Location = Location::Global(128);
const FLAG: Location = Location::Global(192);

struct Run {
    engine: Engine,
    lock_order: LockOrder,
    strong: Strong,
}

impl Run {
    fn new() -> Self {
        let shape = Shape::new([4, 1, 1], 1);
        Self {
            engine: Engine::new(shape),
            lock_order: LockOrder::default(),
            strong: Strong::new(shape, false),
        }
    }

    /// A volatile access of the only thread of a CTA; its site is its CTA's number.
    fn access(&mut self, cta: u64, kind: OpKind, location: Location, waits: bool) {
        let warp = Warp { cta, warp: 0 };
        let access = access(cta, kind);
        let of = Use {
            signal: waits,
            known: false,
            ..Use::default()
        };
        let (main, lock_order) = (&self.engine, &self.lock_order);
        self.strong.access(
            main,
            lock_order,
            Active { warp, lanes: 1 },
            &access,
            of,
            |_| location,
        );
        self.engine.access(warp, 1, &access, |_| location, |_| ());
        let main = &mut self.engine;
        self.lock_order.access(
            main,
            Active { warp, lanes: 1 },
            &access,
            |_| location,
            |_| (),
        );
    }

    /// A strong access to the data by the only thread of a CTA.
    fn relaxed(&mut self, cta: u64, kind: OpKind, site: u32, scope: Scope) {
        let access = Access {
            order: MemoryOrder::Relaxed(scope),
            site,
            ..access(cta, kind)
        };
        self.strong.access(
            &self.engine,
            &self.lock_order,
            Active {
                warp: Warp { cta, warp: 0 },
                lanes: 1,
            },
            &access,
            Use::default(),
            |_| DATA,
        );
    }

    fn fence(&mut self, cta: u64, scope: Scope) {
        let warp = Warp { cta, warp: 0 };
        self.engine.fence(warp, 1, FenceKind::Sc, scope);
        self.strong.fence(warp, 1, FenceKind::Sc, scope);
        self.lock_order.fence(warp, 1, FenceKind::Sc, scope);
    }

    /// Takes the lock or gives it back.
    fn swap(&mut self, cta: u64, new: u64) {
        let warp = Warp { cta, warp: 0 };
        let access = access(cta, OpKind::Rmw);
        let (main, lock_order) = (&self.engine, &self.lock_order);
        let of = Use {
            look: Look {
                swap: Some(SwapValue::Later),
                ..Look::default()
            },
            ..Use::default()
        };
        self.strong.access(
            main,
            lock_order,
            Active { warp, lanes: 1 },
            &access,
            of,
            |_| LOCK,
        );
        self.engine.access(warp, 1, &access, |_| LOCK, |_| ());
        let swap = Swap {
            compare: None,
            new,
            old: 1 - new,
        };
        self.lock_order.swap(
            &mut self.engine,
            Active { warp, lanes: 1 },
            &access,
            |_| LOCK,
            |_| swap,
            |_| (),
        );
        self.strong.swap(
            &self.lock_order,
            Active { warp, lanes: 1 },
            &access,
            |_| LOCK,
            |_| swap,
        );
    }

    /// A critical section that writes the data, with or without its two fences.
    fn section(&mut self, cta: u64, [enter, leave]: [bool; 2]) {
        self.swap(cta, 1);
        if enter {
            self.fence(cta, Scope::Gpu);
        }
        self.access(cta, OpKind::Store, DATA, false);
        if leave {
            self.fence(cta, Scope::Gpu);
        }
        self.swap(cta, 0);
    }

    fn found(self) -> usize {
        self.strong.finish(&self.lock_order).0.len()
    }
}

fn access(cta: u64, kind: OpKind) -> Access {
    Access {
        kind,
        order: MemoryOrder::Relaxed(Scope::Sys),
        bytes: 4,
        elements: 1,
        site: u32::try_from(cta).unwrap(),
    }
}

#[test]
fn a_narrow_write_does_not_stand_for_a_wide_one_before_it() {
    let mut run = Run::new();
    run.relaxed(0, OpKind::Store, 0, Scope::Sys);
    // Enough accesses that the engine drops some that are ordered before a write.
    for site in 1..=100 {
        run.relaxed(1, OpKind::Load, site, Scope::Sys);
    }
    run.relaxed(0, OpKind::Store, 101, Scope::Cta);
    run.relaxed(2, OpKind::Store, 102, Scope::Sys);
    let (found, _) = run.strong.finish(&run.lock_order);
    let pairs = found.iter().map(|of| of.predicted.race);
    let pairs: Vec<_> = pairs
        .map(|race| (race.earlier.site, race.later.site))
        .collect();
    assert!(pairs.contains(&(0, 102)), "{pairs:?}");
    assert!(!pairs.contains(&(101, 102)), "{pairs:?}");
}

#[test]
fn a_missing_fence_of_a_lock_shows_whoever_comes_first() {
    for fences in [[true, true], [false, true], [true, false], [false, false]] {
        for faulty_first in [false, true] {
            let mut run = Run::new();
            let sections = [fences, [true, true]];
            let order = if faulty_first { [0, 1] } else { [1, 0] };
            for at in order {
                run.section(at as u64, sections[at]);
            }
            let expected = usize::from(fences != [true, true]);
            assert_eq!(run.found(), expected, "{fences:?}, {faulty_first}");
        }
    }
}

/// CTA 0 writes the data and sets the flag, CTA 1 waits for it and reads.
fn hand_over(release: Option<Scope>, acquire: Option<Scope>, waits: bool) -> usize {
    let mut run = Run::new();
    run.access(0, OpKind::Store, DATA, false);
    if let Some(scope) = release {
        run.fence(0, scope);
    }
    run.access(0, OpKind::Store, FLAG, false);
    run.access(1, OpKind::Load, FLAG, waits);
    if let Some(scope) = acquire {
        run.fence(1, scope);
    }
    run.access(1, OpKind::Load, DATA, false);
    run.found()
}

#[test]
fn a_release_orders_and_its_observer_need_not_acquire_but_not_too_narrowly() {
    let (wide, narrow) = (Some(Scope::Gpu), Some(Scope::Cta));
    assert_eq!(hand_over(wide, wide, true), 0);
    assert_eq!(hand_over(wide, None, true), 0);
    assert_eq!(hand_over(None, wide, true), 1);
    assert_eq!(hand_over(narrow, wide, true), 1);
    assert_eq!(hand_over(wide, narrow, true), 1);
}

#[test]
fn a_flag_that_nobody_waits_for_is_data() {
    assert_eq!(hand_over(Some(Scope::Gpu), None, false), 1);
}

#[test]
fn the_last_to_count_resets_the_counter() {
    let mut run = Run::new();
    for cta in 0..3 {
        run.access(cta, OpKind::Rmw, DATA, false);
    }
    run.access(2, OpKind::Store, DATA, false);
    assert_eq!(run.found(), 0);
    // Who has counted before others may not.
    let mut run = Run::new();
    run.access(0, OpKind::Rmw, DATA, false);
    run.access(1, OpKind::Rmw, DATA, false);
    run.access(0, OpKind::Store, DATA, false);
    assert_eq!(run.found(), 1);
}

#[test]
fn the_order_of_sequentially_consistent_fences_is_none() {
    let mut run = Run::new();
    run.access(0, OpKind::Store, DATA, false);
    run.fence(0, Scope::Gpu);
    run.fence(1, Scope::Gpu);
    run.access(1, OpKind::Store, DATA, false);
    assert_eq!(run.found(), 1);
}
