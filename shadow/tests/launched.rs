//! What comes before work that a thread launches, and what does not.
//!
//! The reference is the engine itself: a thread of another CTA that acquires what the launching thread
//! releases when it launches, and makes the accesses of the launched work when everything else is over.

use std::collections::BTreeSet;

use proptest::prelude::*;
use shadow::hb::{
    Access, Arrival, Engine, FenceKind, Launched, Location, MemoryOrder, OpKind, Race, Scope,
    Shape, Side, Warp,
};

const THREADS: u32 = 40;
const WORDS: u64 = 3;
/// Where the reference hands over; one word for each launch.
const FLAGS: u64 = 1 << 20;

fn access(kind: OpKind, order: MemoryOrder, site: u32) -> Access {
    Access {
        kind,
        order,
        bytes: 4,
        elements: 1,
        site,
    }
}

fn word(number: u64) -> Location {
    Location::Global(4096 + 4 * number)
}

/// The first CTA runs; the other one is there for the reference.
fn engine() -> Engine {
    Engine::new(Shape::new([2, 1, 1], THREADS))
}

fn warp(thread: u32) -> Warp {
    Warp {
        cta: 0,
        warp: thread / 32,
    }
}

/// What one thread of the first CTA does, or all of them.
#[derive(Clone, Copy, Debug)]
enum Op {
    Access(u32, u64, OpKind, MemoryOrder),
    Fence(u32),
    Barrier,
    Launch(u32),
}

fn op() -> impl Strategy<Value = Op> {
    // Two lanes of a warp, and one of another.
    let thread = prop::sample::select(vec![0u32, 1, 33]);
    let kind = prop::sample::select(vec![OpKind::Load, OpKind::Store, OpKind::Rmw]);
    let order = prop::sample::select(vec![
        MemoryOrder::Weak,
        MemoryOrder::Weak,
        MemoryOrder::Relaxed(Scope::Gpu),
        MemoryOrder::Acquire(Scope::Gpu),
        MemoryOrder::Release(Scope::Gpu),
        MemoryOrder::Relaxed(Scope::Cta),
    ]);
    prop_oneof![
        6 => (thread.clone(), 0..WORDS, kind, order).prop_map(|(thread, word, kind, order)| {
            let order = match (kind, order) {
                // What is no read cannot acquire, and what is no write cannot release.
                (OpKind::Store, MemoryOrder::Acquire(scope)) | (OpKind::Load, MemoryOrder::Release(scope)) => {
                    MemoryOrder::Relaxed(scope)
                }
                (OpKind::Rmw, MemoryOrder::Weak) => MemoryOrder::Relaxed(Scope::Gpu),
                _ => order,
            };
            Op::Access(thread, word, kind, order)
        }),
        1 => thread.clone().prop_map(Op::Fence),
        1 => Just(Op::Barrier),
        2 => thread.prop_map(Op::Launch),
    ]
}

/// Does the same to both engines; gives what the first knew at each launch.
fn run(ops: &[Op], engine: &mut Engine, reference: &mut Engine) -> Vec<Launched> {
    let mut launches = Vec::new();
    for (site, op) in ops.iter().enumerate() {
        match *op {
            Op::Access(thread, number, kind, order) => {
                let access = access(kind, order, site as u32);
                for engine in [&mut *engine, &mut *reference] {
                    engine.access(
                        warp(thread),
                        1 << (thread % 32),
                        &access,
                        |_| word(number),
                        |_| (),
                    );
                }
            }
            Op::Fence(thread) => {
                for engine in [&mut *engine, &mut *reference] {
                    engine.fence(
                        warp(thread),
                        1 << (thread % 32),
                        FenceKind::AcqRel,
                        Scope::Gpu,
                    );
                }
            }
            Op::Barrier => {
                for engine in [&mut *engine, &mut *reference] {
                    let arrival = Arrival {
                        id: 0,
                        waits: true,
                        counted: false,
                    };
                    engine.arrive(Warp { cta: 0, warp: 0 }, u32::MAX, arrival);
                    engine.arrive(Warp { cta: 0, warp: 1 }, 0xff, arrival);
                    engine.complete(0, 0);
                }
            }
            Op::Launch(thread) => {
                let flag = Location::Global(FLAGS + 4 * launches.len() as u64);
                let child = launches.len() as u32;
                launches.push(engine.launches(warp(thread).lane(thread % 32)));
                let release = access(OpKind::Store, MemoryOrder::Release(Scope::Gpu), 1000);
                let acquire = access(OpKind::Load, MemoryOrder::Acquire(Scope::Gpu), 1001);
                reference.access(warp(thread), 1 << (thread % 32), &release, |_| flag, |_| ());
                let other = Warp {
                    cta: 1,
                    warp: child / 32,
                };
                reference.access(other, 1 << (child % 32), &acquire, |_| flag, |_| ());
            }
        }
    }
    launches
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Each launched access races with what that of the reference races with. The reference makes them on copies: they
    /// are no business of each other.
    #[test]
    fn launched_work_comes_after_what_its_thread_knew(
        ops in prop::collection::vec(op(), 1..24),
        weak in any::<bool>(),
    ) {
        let (mut engine, mut reference) = (engine(), self::engine());
        let launches = run(&ops, &mut engine, &mut reference);
        for (child, launched) in launches.iter().enumerate() {
            for number in 0..WORDS {
                for kind in [OpKind::Load, OpKind::Store] {
                    let order = if weak { MemoryOrder::Weak } else { MemoryOrder::Relaxed(Scope::Gpu) };
                    let access = access(kind, order, 2000);
                    let mut expected: BTreeSet<(u32, u32, u32)> = BTreeSet::new();
                    let add = |all: &mut BTreeSet<(u32, u32, u32)>, race: Race| {
                        let Side { thread, site } = race.earlier;
                        all.insert((thread.warp, thread.lane, site));
                    };
                    let other = Warp { cta: 1, warp: child as u32 / 32 };
                    let mut copy = reference.clone();
                    copy.access(other, 1 << (child % 32), &access, |_| word(number), |race| {
                        add(&mut expected, race);
                    });
                    let mut found = BTreeSet::new();
                    let Location::Global(start) = word(number) else { unreachable!() };
                    engine.concurrent(launched, start..start + 4, &access, |race| add(&mut found, race));
                    prop_assert_eq!(found, expected, "launch {} of {:?}", child, ops);
                }
            }
        }
    }
}

#[test]
fn what_a_thread_reads_as_read_only_may_be_written_by_what_it_launches_then() {
    let mut engine = engine();
    let load = access(OpKind::Load, MemoryOrder::ReadOnly, 1);
    let read = |engine: &mut Engine| engine.access(warp(0), 1, &load, |_| word(0), |_| ());
    let store = access(OpKind::Store, MemoryOrder::Weak, 2);
    let races = |engine: &Engine, launched: &Launched| {
        let mut count = 0;
        engine.concurrent(launched, 4096..4100, &store, |_| count += 1);
        count
    };
    read(&mut engine);
    let launched = engine.launches(warp(0).lane(0));
    assert_eq!(races(&engine, &launched), 0);
    read(&mut engine);
    assert_eq!(races(&engine, &launched), 1);
}

#[test]
fn bytes_beside_each_other_do_not_meet() {
    let mut engine = engine();
    let launched = engine.launches(warp(0).lane(0));
    let byte = Access {
        bytes: 1,
        ..access(OpKind::Store, MemoryOrder::Weak, 1)
    };
    engine.access(warp(0), 1, &byte, |_| Location::Global(4097), |_| ());
    let load = access(OpKind::Load, MemoryOrder::Weak, 2);
    let mut found = Vec::new();
    for (range, meets) in [(4000..4097, 0), (4098..9000, 0), (4000..9000, 1)] {
        let before = found.len();
        engine.concurrent(&launched, range, &load, |race| found.push(race.bytes));
        assert_eq!(found.len() - before, meets);
    }
    assert_eq!(found, [0b10]);
}
