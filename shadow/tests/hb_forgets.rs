//! What the happens-before engine forgets, and what it must not.

use shadow::hb::{
    Access, Arrival, Engine, FenceKind, Format, Location, MemoryOrder, OpKind, Race, Scope, Shape,
    Warp,
};

const LOAD: Access = word(OpKind::Load, MemoryOrder::Weak);
const STORE: Access = word(OpKind::Store, MemoryOrder::Weak);
const RMW: Access = word(OpKind::Rmw, MemoryOrder::Relaxed(Scope::Gpu));
const RELAXED_LOAD: Access = word(OpKind::Load, MemoryOrder::Relaxed(Scope::Gpu));
const RELAXED_STORE: Access = word(OpKind::Store, MemoryOrder::Relaxed(Scope::Gpu));

const fn word(kind: OpKind, order: MemoryOrder) -> Access {
    Access {
        kind,
        order,
        bytes: 4,
        elements: 1,
        site: 0,
    }
}

const DATA: Location = Location::Global(0x1000);
const FLAG: Location = Location::Global(0x2000);

fn warp(cta: u64, warp: u32) -> Warp {
    Warp { cta, warp }
}

fn engine(ctas: u32, threads: u32) -> Engine {
    Engine::new(Shape::new([ctas, 1, 1], threads))
}

/// Lanes access one place; the races.
fn all(
    engine: &mut Engine,
    warp: Warp,
    lanes: u32,
    what: Access,
    site: u32,
    at: Location,
) -> Vec<Race> {
    let access = Access { site, ..what };
    let mut races = Vec::new();
    engine.access(warp, lanes, &access, |_| at, |race| races.push(race));
    races
}

/// The first lane of a warp accesses a place; whether that races.
fn one(engine: &mut Engine, warp: Warp, what: Access, site: u32, at: Location) -> bool {
    !all(engine, warp, 1, what, site, at).is_empty()
}

fn barrier(engine: &mut Engine, cta: u64, warps: u32) {
    for of in 0..warps {
        let arrival = Arrival {
            id: 0,
            waits: true,
            counted: false,
        };
        engine.arrive(warp(cta, of), u32::MAX, arrival);
    }
    engine.complete(cta, 0);
}

fn fence(engine: &mut Engine, warp: Warp) {
    engine.fence(warp, 1, FenceKind::AcqRel, Scope::Gpu);
}

#[test]
fn loads_again_and_again_still_race_with_a_later_store() {
    for what in [LOAD, RELAXED_LOAD] {
        let mut engine = engine(9, 64);
        let mut kept = Vec::new();
        for round in 0..400 {
            for cta in 0..8 {
                // The last one reads in the first half only.
                if cta == 7 && round >= 200 {
                    continue;
                }
                for of in 0..2 {
                    // By several instructions, which makes them many.
                    all(&mut engine, warp(cta, of), u32::MAX, what, round % 8, DATA);
                }
                barrier(&mut engine, cta, 2);
            }
            kept.push(engine.stats().kept);
        }
        assert!(kept[399] <= 2 * kept[99], "{what:?}: {kept:?}");
        let races = all(&mut engine, warp(8, 0), 1, STORE, 99, DATA);
        let racing = |cta| races.iter().any(|race| race.earlier.thread.cta == cta);
        assert!((0..8).all(racing), "{what:?}: all eight CTAs race");
    }
}

#[test]
fn barriers_alone_keep_clocks_converged() {
    let mut engine = engine(4, 128);
    for _ in 0..50 {
        for cta in 0..4 {
            for of in 0..4 {
                let location = Location::Shared { cta, offset: 0 };
                all(&mut engine, warp(cta, of), u32::MAX, LOAD, 0, location);
                engine.warp_barrier(warp(cta, of), u32::MAX);
            }
            barrier(&mut engine, cta, 4);
        }
    }
    let stats = engine.stats();
    assert_eq!((stats.warps, stats.left_converged()), (16, 0));
}

#[test]
fn warps_are_counted_by_the_furthest_format_of_their_clocks() {
    let mut engine = engine(1, 128);
    let fence_by = |engine: &mut Engine, of: Warp, lanes: u32| {
        engine.fence(of, lanes, FenceKind::AcqRel, Scope::Gpu);
    };
    for of in 0..4 {
        engine.fence(warp(0, of), u32::MAX, FenceKind::AcqRel, Scope::Gpu);
    }
    // Two sets of lanes, again and again; three; and one that two have become.
    fence_by(&mut engine, warp(0, 1), 1);
    fence_by(&mut engine, warp(0, 1), !1);
    fence_by(&mut engine, warp(0, 1), 1);
    fence_by(&mut engine, warp(0, 2), 1);
    fence_by(&mut engine, warp(0, 2), 3);
    assert_eq!(engine.format(warp(0, 1)), Format::Diverged);
    assert_eq!(engine.format(warp(0, 2)), Format::NestedDiverged);
    let counts = |engine: &Engine| {
        let of = engine.stats();
        [
            of.left_converged(),
            of.diverged,
            of.nested_diverged,
            of.sparse,
        ]
    };
    assert_eq!(counts(&engine), [2, 1, 1, 0]);
    // What a warp leaves behind at a barrier still counts.
    barrier(&mut engine, 0, 4);
    assert_eq!(engine.format(warp(0, 2)), Format::Converged);
    assert_eq!(counts(&engine), [2, 1, 1, 0]);
    // And it is counted once, wherever it goes from there.
    hand_over(&mut engine, warp(0, 0), warp(0, 1));
    hand_over(&mut engine, warp(0, 0), warp(0, 2));
    assert_eq!(counts(&engine)[2..], [0, 2]);
    assert_eq!(engine.stats().warps, 4);
}

/// `from` hands over to `to` by a flag.
fn hand_over(engine: &mut Engine, from: Warp, to: Warp) {
    fence(engine, from);
    one(engine, from, RELAXED_STORE, 10, FLAG);
    one(engine, to, RELAXED_LOAD, 11, FLAG);
    fence(engine, to);
}

#[test]
fn a_flag_makes_clocks_sparse_and_a_barrier_makes_them_short_again() {
    let mut engine = engine(2, 64);
    let (a, b, far) = (warp(0, 0), warp(0, 1), warp(1, 0));
    one(&mut engine, a, STORE, 0, DATA);
    let then = engine.knows(a.lane(0), a.lane(0));
    hand_over(&mut engine, a, b);
    assert_eq!(engine.format(b), Format::SparseVc);
    assert!(!one(&mut engine, b, LOAD, 1, DATA));
    assert_eq!(engine.knows(b.lane(0), a.lane(0)), then);
    assert_eq!(
        engine.knows(b.lane(1), a.lane(0)),
        0,
        "other lanes know nothing"
    );
    // What is known of the own CTA needs no clock of its own after its barrier.
    barrier(&mut engine, 0, 2);
    assert_eq!(engine.format(a), Format::Converged);
    assert_eq!(engine.format(b), Format::Converged);
    assert!(engine.knows(b.lane(1), a.lane(0)) >= then);
    // What is known of another CTA stays, for all of the CTA.
    hand_over(&mut engine, b, far);
    barrier(&mut engine, 1, 2);
    assert_eq!(engine.format(far), Format::SparseVc);
    assert_eq!(engine.format(warp(1, 1)), Format::SparseVc);
    assert!(engine.knows(warp(1, 1).lane(9), a.lane(0)) >= then);
    assert!(!one(&mut engine, warp(1, 1), STORE, 2, DATA));
}

/// Threads of 16 CTAs take a lock in turn; others try to, in vain. `section` is one hand-over.
fn lock(section: impl Fn(&mut Engine, Warp), trying: bool) {
    let mut engine = engine(16, 64);
    let (mut releases, mut kept) = (0, 0);
    for turn in 0..100_000u64 {
        let me = warp(turn * 7 % 16, (turn / 16 % 2) as u32);
        section(&mut engine, me);
        if trying {
            let other = warp(turn * 3 % 16, (turn / 5 % 2) as u32);
            one(&mut engine, other, RMW, 4, FLAG);
        }
        let stats = engine.stats();
        (releases, kept) = (releases.max(stats.releases), kept.max(stats.kept));
    }
    assert!(releases < 600, "{releases} releases");
    assert!(kept < 10_000, "{kept} accesses");
    // Nobody has forgotten what the lock protects.
    let other = Warp { cta: 3, warp: 1 };
    section(&mut engine, other);
    assert!(
        !all(&mut engine, other, 2, STORE, 9, DATA).is_empty(),
        "without the lock"
    );
}

fn critical(engine: &mut Engine, me: Warp) {
    assert!(!one(engine, me, LOAD, 1, DATA));
    assert!(!one(engine, me, STORE, 2, DATA));
}

#[test]
fn a_lock_keeps_few_releases() {
    let cas = |engine: &mut Engine, me: Warp| {
        one(engine, me, RMW, 0, FLAG);
        fence(engine, me);
        critical(engine, me);
        fence(engine, me);
        one(engine, me, RMW, 3, FLAG);
    };
    lock(cas, false);
    lock(cas, true);
}

#[test]
fn a_lock_by_release_stores_keeps_few_releases() {
    let acquire = word(OpKind::Rmw, MemoryOrder::Acquire(Scope::Gpu));
    let release = word(OpKind::Store, MemoryOrder::Release(Scope::Gpu));
    let stores = |engine: &mut Engine, me: Warp| {
        one(engine, me, acquire, 0, FLAG);
        critical(engine, me);
        one(engine, me, release, 3, FLAG);
    };
    lock(stores, false);
    lock(stores, true);
}

#[test]
fn observing_a_flag_says_nothing_about_another_memory() {
    let mut engine = engine(1, 96);
    let shared = Location::Shared { cta: 0, offset: 0 };
    let (a, b, c) = (warp(0, 0), warp(0, 1), warp(0, 2));
    one(&mut engine, a, RELAXED_STORE, 0, shared);
    one(&mut engine, b, RELAXED_STORE, 1, FLAG);
    one(&mut engine, c, RELAXED_LOAD, 2, FLAG);
    assert!(
        one(&mut engine, c, LOAD, 3, shared),
        "it has seen another flag"
    );
    one(&mut engine, c, RELAXED_LOAD, 4, shared);
    assert!(!one(&mut engine, c, LOAD, 3, shared), "now it has seen it");
}

#[test]
fn a_reduction_of_one_lane_does_not_hide_what_it_has_seen_of_others() {
    let mut engine = engine(1, 32);
    let me = warp(0, 0);
    let reduction = word(OpKind::Reduction, MemoryOrder::Relaxed(Scope::Gpu));
    all(&mut engine, me, 0b11, RMW, 0, FLAG);
    all(&mut engine, me, 0b10, reduction, 0, FLAG);
    // Lane 1 comes after lane 0's addition, and its own; lane 0 after neither of lane 1's.
    assert!(all(&mut engine, me, 0b10, LOAD, 1, FLAG).is_empty());
    assert!(one(&mut engine, me, LOAD, 1, FLAG));
}

#[test]
fn new_memory_has_no_history_and_its_neighbours_keep_theirs() {
    let mut engine = engine(2, 32);
    let access = |site| Access {
        kind: OpKind::Store,
        order: MemoryOrder::Weak,
        bytes: 4,
        elements: 1,
        site,
    };
    let location = |lane: u32| Location::Global(0x1000 + u64::from(lane) * 4);
    engine.access(warp(0, 0), u32::MAX, &access(0), location, |_| ());
    one(&mut engine, warp(0, 0), RMW, 1, location(9));
    engine.allocated(0x1000 + 4 * 4, 4 * 8);
    let mut racy = Vec::new();
    engine.access(warp(1, 0), u32::MAX, &access(2), location, |race| {
        racy.push(race.later.thread.lane);
    });
    racy.dedup();
    let expected: Vec<u32> = (0..4).chain(12..32).collect();
    assert_eq!(racy, expected);
}
