//! Many accesses to one word that race with one another: what a listener hears who has had enough of
//! the pairs, and that it takes time in proportion to the accesses.

use std::collections::BTreeSet;

use shadow::hb::{
    Access, Engine, Enough, FenceKind, Location, MemoryOrder, OpKind, Race, Scope, Shape, Thread,
    Warp,
};

const LOAD: Access = word(OpKind::Load, MemoryOrder::Weak);
const STORE: Access = word(OpKind::Store, MemoryOrder::Weak);
const NARROW: Access = word(OpKind::Rmw, MemoryOrder::Relaxed(Scope::Cta));
const RMW: Access = word(OpKind::Rmw, MemoryOrder::Relaxed(Scope::Gpu));

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

fn warp(cta: u64) -> Warp {
    Warp { cta, warp: 0 }
}

fn engine(ctas: u32) -> Engine {
    Engine::new(Shape::new([ctas, 1, 1], 32))
}

/// The first lane of a warp accesses a place; the races, to somebody who has had enough of each site at
/// once.
fn access(engine: &mut Engine, cta: u64, of: Access, site: u32, at: Location) -> Vec<Race> {
    let access = Access { site, ..of };
    let mut races = Vec::new();
    engine.access_until(
        warp(cta),
        1,
        &access,
        |_| at,
        |race| {
            races.push(race);
            Enough::OfSite
        },
    );
    races
}

fn fence(engine: &mut Engine, cta: u64) {
    engine.fence(warp(cta), 1, FenceKind::AcqRel, Scope::Gpu);
}

/// Each of so many CTAs accesses the word once, by one of two instructions; how often a race was heard
/// of.
fn heard(ctas: u32, of: Access) -> usize {
    let mut engine = engine(ctas);
    let mut count = 0;
    for cta in 0..ctas {
        let races = access(&mut engine, cta.into(), of, cta % 2, DATA);
        let sites: BTreeSet<u32> = races.iter().map(|race| race.earlier.site).collect();
        assert_eq!(sites.len(), 2.min(cta as usize), "{of:?} by {cta}");
        count += races.len();
    }
    count
}

#[test]
fn each_access_of_a_crowd_races_with_each_site_and_not_with_each_access() {
    for of in [STORE, NARROW] {
        let (some, more) = (heard(2_000, of), heard(20_000, of));
        assert!(more <= 11 * some, "{of:?}: {some}, {more}");
    }
}

#[test]
fn the_one_access_of_a_crowd_that_is_not_ordered_is_found() {
    for of in [LOAD, STORE] {
        for exception in [0, 77, 500, 998] {
            let mut engine = engine(1000);
            for cta in 0..999 {
                access(&mut engine, cta, of, 0, DATA);
            }
            for cta in (0..999).filter(|&cta| cta != exception) {
                fence(&mut engine, cta);
                access(&mut engine, cta, RMW, 1, FLAG);
            }
            access(&mut engine, 999, RMW, 2, FLAG);
            fence(&mut engine, 999);
            let races = access(&mut engine, 999, STORE, 3, DATA);
            let earlier: Vec<Thread> = races.iter().map(|race| race.earlier.thread).collect();
            assert_eq!(earlier, [warp(exception).lane(0)], "{of:?}");
        }
    }
}

#[test]
fn whoever_wants_to_hear_of_all_does() {
    let mut engine = engine(1001);
    for cta in 0..1000 {
        access(&mut engine, cta, STORE, 0, DATA);
    }
    let store = Access {
        kind: OpKind::Store,
        order: MemoryOrder::Weak,
        bytes: 4,
        elements: 1,
        site: 1,
    };
    let mut racing = BTreeSet::new();
    engine.access(
        warp(1000),
        1,
        &store,
        |_| DATA,
        |race| {
            assert!(race.of_many);
            racing.insert(race.earlier.thread.cta);
        },
    );
    assert_eq!(racing.len(), 1000);
}

#[test]
fn a_crowd_that_is_ordered_before_a_store_is_forgotten() {
    let mut engine = engine(1000);
    for cta in 0..999 {
        access(&mut engine, cta, STORE, 0, DATA);
        fence(&mut engine, cta);
        access(&mut engine, cta, RMW, 1, FLAG);
    }
    let before = engine.stats().kept;
    access(&mut engine, 999, RMW, 2, FLAG);
    fence(&mut engine, 999);
    assert!(access(&mut engine, 999, STORE, 3, DATA).is_empty());
    assert!(engine.stats().kept + 900 < before, "{before}");
}
