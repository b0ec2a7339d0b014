//! The engine's compressed clocks against plain ones, on random histories.
//!
//! The judge below keeps one number per pair of threads and every event that ever happened, and is
//! written from the definition alone. Engine and judge must agree, for every access and word,
//! whether it races with an earlier access.

mod late;
mod plain;

use late::Late;
use plain::{Judge, Party, index, members, mutual, thread};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use shadow::hb::{
    Access, Arrival, Engine, Enough, FenceKind, LANES, Location, MemoryOrder, OpKind, Scope, Shape,
    Warp,
};

const SCOPES: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
/// Four CTAs in clusters of two; the second warp of a CTA has eight lanes.
const SHAPE: Shape = Shape {
    grid: [4, 1, 1],
    cluster: [2, 1, 1],
    threads: 40,
};
const PER_CTA: usize = 40;
const THREADS: usize = 4 * PER_CTA;

#[derive(Clone, Debug)]
enum Event {
    /// Lanes, the address of lane 0, and the bytes from one lane to the next.
    Access(Warp, u32, Access, (u64, u64)),
    Fence(Warp, u32, FenceKind, Scope),
    WarpBarrier(Warp, u32),
    CtaBarrier(u64),
    /// Warps of a CTA meet at a named barrier: those that wait, those that do not.
    Named(u64, u32, u32),
    /// The warps of a cluster meet, those of the mask with a relaxed arrival; a phase.
    Cluster(u64, u32),
    /// Arrivals that end the phase or not.
    Mbarrier(Warp, u32, MemoryOrder, bool),
    MbarrierWait(Warp, u32, MemoryOrder),
    Exit(Warp, u32),
}

fn sent(late: &mut Option<Late>, threads: &[usize], now: u32) {
    late.iter_mut().for_each(|late| late.sent(threads, now));
}

/// Runs a history through both; with `late`, accesses by a granule's only thread are sent late.
fn agree(events: &[Event], mut late: Option<Late>) -> Result<(), TestCaseError> {
    // It has much to forget if it does so early.
    let crowd = events.len() as u32 % 3 * 4;
    let (mut engine, mut judge) = (Engine::with_crowd(SHAPE, crowd), Judge::new());
    let enough = [Enough::Never, Enough::OfSite][events.len() / 3 % 2];
    for (step, event) in events.iter().enumerate() {
        let now = step as u32 + 1;
        if late.is_some() {
            engine.at(now);
        }
        let alive = |judge: &Judge, warp: Warp, lanes: u32| {
            let live = members(warp, lanes & SHAPE.lanes(warp.warp));
            let live: Vec<usize> = live.into_iter().filter(|&t| !judge.exited[t]).collect();
            let mask = live.iter().fold(0, |all, &t| all | 1 << thread(t).lane);
            (live, mask)
        };
        match event {
            Event::Access(warp, lanes, access, (first, apart)) => {
                let address = |lane: u32| first + u64::from(lane) * apart;
                let (live, mask) = alive(&judge, *warp, *lanes);
                let mut found: Vec<(usize, u64)> = Vec::new();
                let mut send = |engine: &mut Engine, mask| {
                    engine.access_until(
                        *warp,
                        mask,
                        access,
                        |lane| Location::Global(address(lane)),
                        |race| {
                            if let Location::Global(at) = race.location {
                                found.push((index(race.later.thread), at / 4));
                            }
                            enough
                        },
                    );
                };
                match &mut late {
                    None => send(&mut engine, mask),
                    Some(late) => {
                        for lane in (0..LANES).filter(|lane| mask >> lane & 1 == 1) {
                            let me = warp.lane(lane);
                            if late.access(&mut engine, me, access, address(lane)) {
                                send(&mut engine, 1 << lane);
                                late.sent(&[index(me)], now);
                            }
                        }
                    }
                }
                found.sort_unstable();
                found.dedup();
                let mut expected = Vec::new();
                for me in live {
                    let bytes = u64::from(access.bytes);
                    for element in 0..u64::from(access.elements) {
                        let address = address(thread(me).lane) + element * bytes;
                        let words = judge.access(me, access, address);
                        expected.extend(words.into_iter().map(|word| (me, word)));
                    }
                }
                expected.sort_unstable();
                expected.dedup();
                prop_assert_eq!(found, expected, "step {}: {:?}", step, event);
            }
            Event::Fence(warp, lanes, kind, scope) => {
                let (live, mask) = alive(&judge, *warp, *lanes);
                sent(&mut late, &live, now);
                engine.fence(*warp, mask, *kind, *scope);
                judge.fence(&live, *kind, *scope);
            }
            Event::WarpBarrier(warp, lanes) => {
                let (live, mask) = alive(&judge, *warp, *lanes);
                sent(&mut late, &live, now);
                engine.warp_barrier(*warp, mask);
                judge.barrier(&live, &live);
            }
            Event::CtaBarrier(cta) => {
                let mut to = Vec::new();
                for warp in (0..2).map(|warp| Warp { cta: *cta, warp }) {
                    let (live, mask) = alive(&judge, warp, u32::MAX);
                    if mask != 0 {
                        let arrival = Arrival {
                            id: 0,
                            waits: true,
                            counted: false,
                        };
                        engine.arrive(warp, mask, arrival);
                    }
                    to.extend(live);
                }
                sent(&mut late, &to, now);
                engine.complete(*cta, 0);
                if !to.is_empty() {
                    let first = *cta as usize * PER_CTA;
                    judge.barrier(&(first..first + PER_CTA).collect::<Vec<_>>(), &to);
                }
            }
            Event::Named(cta, waiting, passing) => {
                let (mut from, mut to) = (Vec::new(), Vec::new());
                for warp in 0..2 {
                    let warp_of_cta = Warp { cta: *cta, warp };
                    let (live, mask) = alive(&judge, warp_of_cta, u32::MAX);
                    let waits = waiting >> warp & 1 == 1;
                    if mask == 0 || !(waits || passing >> warp & 1 == 1) {
                        continue;
                    }
                    let arrival = Arrival {
                        id: 3,
                        waits,
                        counted: true,
                    };
                    engine.arrive(warp_of_cta, mask, arrival);
                    from.extend(&live);
                    if waits {
                        to.extend(&live);
                    }
                }
                sent(&mut late, &from, now);
                engine.complete(*cta, 3);
                judge.barrier(&from, &to);
            }
            Event::Cluster(cluster, relaxed) => {
                let phase = step as u64;
                let (mut heads, mut near, mut to) = (Vec::new(), Vec::new(), Vec::new());
                let warps = (0..4u32).map(|number| {
                    let (cta, warp) = (2 * cluster + u64::from(number / 2), number % 2);
                    (Warp { cta, warp }, relaxed >> number & 1 == 1)
                });
                for (warp, relaxed) in warps.clone() {
                    let (live, mask) = alive(&judge, warp, u32::MAX);
                    sent(&mut late, &live, now);
                    engine.cluster_arrive(warp, mask, phase, relaxed);
                    let order = match relaxed {
                        true => MemoryOrder::Relaxed(Scope::Cluster),
                        false => MemoryOrder::Release(Scope::Cluster),
                    };
                    for &me in &live {
                        heads.extend(judge.arrive(me, order));
                        near.extend((!relaxed).then(|| judge.near(me)));
                    }
                    to.push((warp, mask, live));
                }
                for (warp, mask, live) in to {
                    engine.cluster_wait(warp, mask, phase);
                    for me in live {
                        judge.join_releases(me, Scope::Cluster, &heads);
                        judge.meet(me, &near);
                    }
                }
            }
            Event::Mbarrier(warp, lanes, order, completes) => {
                for me in alive(&judge, *warp, *lanes).0 {
                    sent(&mut late, &[me], now);
                    let location = Location::Global(64);
                    engine.mbarrier_arrive(thread(me), location, *order, *completes);
                    let heads = judge.arrive(me, *order);
                    judge.arrivals[0].extend(heads);
                    if *completes {
                        let current = std::mem::take(&mut judge.arrivals[0]);
                        judge.arrivals[1].extend(current);
                    }
                }
            }
            Event::MbarrierWait(warp, lanes, order) => {
                for me in alive(&judge, *warp, *lanes).0 {
                    sent(&mut late, &[me], now);
                    engine.mbarrier_wait(thread(me), Location::Global(64), *order);
                    let mut heads = judge.arrivals[1].clone();
                    match order {
                        MemoryOrder::Relaxed(scope) => {
                            heads.retain(|head| {
                                mutual(
                                    head.party(),
                                    Party {
                                        thread: me,
                                        scope: *scope,
                                    },
                                )
                            });
                            // A place that nothing else accesses.
                            judge.observed[me].push((u64::MAX, heads));
                        }
                        _ => judge.join_releases(me, order.scope().expect("a scope"), &heads),
                    }
                }
            }
            Event::Exit(warp, lanes) => {
                let (live, mask) = alive(&judge, *warp, *lanes);
                // A thread of every CTA stays, as its clocks are dropped with its last thread.
                let left = (0..PER_CTA)
                    .filter(|t| !judge.exited[warp.cta as usize * PER_CTA + t])
                    .count();
                if left > live.len() && mask != 0 {
                    engine.exit(*warp, mask);
                    live.iter().for_each(|&t| judge.exited[t] = true);
                }
            }
        }
    }
    Ok(())
}

fn warps() -> impl Strategy<Value = Warp> {
    (0..4u64, 0..2u32).prop_map(|(cta, warp)| Warp { cta, warp })
}

/// Few lanes, so that they meet; sometimes all.
fn lanes() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => (0..3u32).prop_map(|lane| 1 << lane),
        1 => Just(0b11),
        1 => Just(0b110),
        1 => Just(u32::MAX),
    ]
}

fn access() -> impl Strategy<Value = (Access, (u64, u64))> {
    let order = (0..9u32, 0..4usize);
    // Three words, in pieces of two, four and eight bytes.
    let cta_and_warp = prop_oneof![
        6 => (0..3u64).prop_map(|word| (4 * word, 4u32)),
        1 => (0..2u64).prop_map(|half| (2 * half, 2u32)),
        1 => Just((0, 8u32)),
    ];
    // All lanes at the same place, side by side, or with room between them.
    let apart = prop_oneof![4 => Just(0u64), 3 => Just(1), 1 => Just(2), 1 => Just(3)];
    let shape = (cta_and_warp, apart, 1..3u32);
    (0..4u32, order, shape).prop_map(|(kind, (order, scope), shape)| {
        let ((address, bytes), apart, elements) = shape;
        let scope = SCOPES[scope];
        let kind = [OpKind::Load, OpKind::Store, OpKind::Rmw, OpKind::Reduction][kind as usize];
        let atomic = matches!(kind, OpKind::Rmw | OpKind::Reduction);
        let order = match (order, kind) {
            (0..3, _) if !atomic => MemoryOrder::Weak,
            (3, OpKind::Load) => MemoryOrder::ReadOnly,
            (4..6, OpKind::Load) => MemoryOrder::Acquire(scope),
            (4..6, OpKind::Store | OpKind::Reduction) => MemoryOrder::Release(scope),
            (4, OpKind::Rmw) => MemoryOrder::Acquire(scope),
            (5, OpKind::Rmw) => MemoryOrder::Release(scope),
            (6, OpKind::Rmw) => MemoryOrder::AcqRel(scope),
            _ => MemoryOrder::Relaxed(scope),
        };
        let access = Access {
            kind,
            order,
            bytes,
            elements: if order == MemoryOrder::Weak {
                elements
            } else {
                1
            },
            site: 0,
        };
        (access, (address, apart * u64::from(bytes)))
    })
}

fn events() -> impl Strategy<Value = Event> {
    use FenceKind::{AcqRel, Acquire, Release, Sc, ScForced};
    prop_oneof![
        16 => (warps(), lanes(), access()).prop_map(|(warp, lanes, (access, at))| {
            Event::Access(warp, lanes, access, at)
        }),
        4 => (warps(), lanes(), 0..6usize, 0..4usize).prop_map(|(warp, lanes, kind, scope)| {
            let kind = [AcqRel, Sc, Acquire, Release, ScForced, ScForced][kind];
            Event::Fence(warp, lanes, kind, SCOPES[scope])
        }),
        2 => (warps(), lanes()).prop_map(|(warp, lanes)| Event::WarpBarrier(warp, lanes)),
        1 => (0..4u64).prop_map(Event::CtaBarrier),
        1 => (0..4u64, 0..4u32, 0..4u32).prop_map(|(cta, waiting, passing)| {
            Event::Named(cta, waiting, passing & !waiting)
        }),
        // One barrier, used by the first cluster: its scopes are cta and cluster.
        1 => (0..2u64, 0..2u32, lanes(), 0..4usize, any::<bool>()).prop_map(
            |(cta, warp, lanes, order, completes)| {
                let order = [MemoryOrder::Release, MemoryOrder::Relaxed][order / 2](SCOPES[order % 2]);
                Event::Mbarrier(Warp { cta, warp }, lanes, order, completes)
            }
        ),
        1 => (0..2u64, 0..2u32, lanes(), 0..4usize).prop_map(|(cta, warp, lanes, order)| {
            let order = [MemoryOrder::Acquire, MemoryOrder::Relaxed][order / 2](SCOPES[order % 2]);
            Event::MbarrierWait(Warp { cta, warp }, lanes, order)
        }),
        1 => (0..2u64, 0..16u32).prop_map(|(cluster, relaxed)| Event::Cluster(cluster, relaxed)),
        1 => (warps(), lanes()).prop_map(|(warp, lanes)| Event::Exit(warp, lanes)),
    ]
}

/// Events of handovers by `fence.sc`: data of two CTAs, fences, barriers and flags.
fn handed_over() -> impl Strategy<Value = Event> {
    let warps = || (0..2u64, 0..2u32).prop_map(|(cta, warp)| Warp { cta, warp });
    let lanes = || prop_oneof![3 => Just(u32::MAX), 1 => Just(1u32), 1 => Just(2)];
    let access = |kind, order| Access {
        kind,
        order,
        bytes: 4,
        elements: 1,
        site: 0,
    };
    let forced = FenceKind::ScForced;
    let gpu = MemoryOrder::Relaxed(Scope::Gpu);
    prop_oneof![
        2 => (warps(), 0..2u64).prop_map(move |(warp, word)| {
            let warp_of_data = 64 * (2 * warp.cta + u64::from(warp.warp)) + 1024 * word;
            Event::Access(warp, u32::MAX, access(OpKind::Store, MemoryOrder::Weak), (1024 + warp_of_data, 4))
        }),
        2 => (warps(), lanes(), 0..8u64).prop_map(move |(warp, lanes, of)| {
            Event::Access(warp, lanes, access(OpKind::Load, MemoryOrder::Weak), (1024 + 64 * of, 4))
        }),
        4 => (warps(), lanes()).prop_map(move |(warp, lanes)| {
            Event::Fence(warp, lanes, forced, Scope::Gpu)
        }),
        1 => (warps(), lanes(), 0..3usize).prop_map(move |(warp, lanes, scope)| {
            Event::Fence(warp, lanes, forced, SCOPES[scope])
        }),
        3 => (warps(), 0..2u64, 0..4usize).prop_map(move |(warp, word, kind)| {
            let kind = [OpKind::Load, OpKind::Store, OpKind::Rmw, OpKind::Reduction][kind];
            Event::Access(warp, 1, access(kind, gpu), (4 * word, 0))
        }),
        4 => (0..2u64).prop_map(Event::CtaBarrier),
        1 => (0..2u64, 0..4u32, 0..4u32).prop_map(|(cta, waiting, passing)| {
            Event::Named(cta, waiting, passing & !waiting)
        }),
        1 => (warps(), lanes()).prop_map(|(warp, lanes)| Event::WarpBarrier(warp, lanes)),
        1 => (0..1u64, 0..3u32).prop_map(|(cluster, relaxed)| Event::Cluster(cluster, relaxed)),
    ]
}

#[test]
fn forced_fences_agree_with_plain_clocks() {
    histories_agree(handed_over(), 800);
}

#[test]
fn compressed_clocks_agree_with_plain_ones() {
    histories_agree(events(), 3000);
}

fn histories_agree(events: impl Strategy<Value = Event>, cases: u32) {
    let cases = std::env::var("HB_CASES").map_or(cases, |n| n.parse().expect("a number"));
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let histories = prop::collection::vec(events, 1..80);
    runner
        .run(&histories, |events| {
            agree(&events, None)?;
            agree(&events, Some(Late::new(THREADS)))
        })
        .expect("engine and judge agree");
}
