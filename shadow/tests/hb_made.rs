//! When the engine says that the earlier access of a race was made.

use shadow::hb::{
    Access, Engine, FenceKind, Location, MemoryOrder, OpKind, Race, Scope, Shape, Warp,
};

const DATA: Location = Location::Global(0x1000);
const ONE: Warp = Warp { cta: 0, warp: 0 };
const OTHER: Warp = Warp { cta: 1, warp: 0 };

/// Lanes store to one word at a time; the races.
fn store(engine: &mut Engine, warp: Warp, lanes: u32, at: u32, site: u32) -> Vec<Race> {
    let access = Access {
        kind: OpKind::Store,
        order: MemoryOrder::Weak,
        bytes: 4,
        elements: 1,
        site,
    };
    engine.stamp(at);
    let mut races = Vec::new();
    engine.access(warp, lanes, &access, |_| DATA, |race| races.push(race));
    races
}

fn engine() -> Engine {
    Engine::new(Shape::new([2, 1, 1], 32))
}

/// Stamp of the earlier access, and whether it stands for several, of the only race with it.
fn only(races: &[Race]) -> (u32, bool) {
    let [race] = races else {
        panic!("one race, and not {races:?}");
    };
    (race.made.stamp(), race.made.is_of_several())
}

#[test]
fn an_access_keeps_its_stamp() {
    let mut engine = engine();
    assert_eq!(store(&mut engine, ONE, 1, 5, 0), []);
    assert_eq!(only(&store(&mut engine, OTHER, 1, 9, 1)), (5, false));
}

#[test]
fn one_that_stands_for_several_has_the_stamp_of_the_first() {
    let mut engine = engine();
    for at in [5, 6, 7] {
        assert_eq!(store(&mut engine, ONE, 1, at, 0), []);
    }
    assert_eq!(only(&store(&mut engine, OTHER, 1, 9, 1)), (5, true));
}

#[test]
fn what_was_published_in_between_is_another() {
    let mut engine = engine();
    store(&mut engine, ONE, 1, 5, 0);
    engine.fence(ONE, 1, FenceKind::AcqRel, Scope::Gpu);
    store(&mut engine, ONE, 1, 7, 0);
    assert_eq!(only(&store(&mut engine, OTHER, 1, 9, 1)), (7, false));
}

#[test]
fn lanes_of_one_instruction_share_a_stamp_and_race_with_it() {
    let mut engine = engine();
    let together = store(&mut engine, ONE, 0b11, 5, 0);
    assert_eq!(only(&together), (5, false));
    let races = store(&mut engine, OTHER, 1, 9, 1);
    assert_eq!(only(&races), (5, false));
    assert_eq!((races[0].lanes, races[0].bytes), (0b11, 0xf));
    // Other lanes, later, by the same instruction.
    let mut engine = self::engine();
    store(&mut engine, ONE, 1, 5, 0);
    store(&mut engine, ONE, 2, 6, 0);
    assert_eq!(only(&store(&mut engine, OTHER, 1, 9, 1)), (5, true));
}
