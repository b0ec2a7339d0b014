//! Asynchronous copies against a judge that knows only which events come before which.
//!
//! The judge makes a copy two events of its own, one that reads and one that writes, between its
//! issue and whatever its completion lets go on, and looks for paths. Engine and judge must agree,
//! for every access and byte, whether it races with an earlier one.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use shadow::hb::{
    Access, Arrival, Completion, Engine, Issue, Location, MemoryOrder, OpKind, Race, Scope, Shape,
    Span, Thread, Waited, Warp,
};

/// Two CTAs in a cluster, of two warps.
const SHAPE: Shape = Shape {
    grid: [2, 1, 1],
    cluster: [2, 1, 1],
    threads: 64,
};
/// The lanes of each warp that do anything.
const LANES: u32 = 3;
const BARRIERS: u32 = 2;
/// Bytes of global memory that are accessed.
const BYTES: u32 = 64;

#[derive(Clone, Debug)]
enum Event {
    /// An access of 4 bytes.
    Access(usize, bool, u32),
    /// Where it reads, where it writes, 16 bytes each, and how it ends.
    Copy(usize, (u32, u32), Ends),
    /// A group is closed: bulk copies, or others.
    Commit(usize, bool),
    Wait(usize, Waited),
    /// The copies of a thread make it arrive when they are complete.
    CopiesArrive(usize, u32, bool),
    /// A thread arrives, and ends the phase or not.
    Arrive(usize, u32, bool),
    /// It waits for the last phase that is over.
    Learn(usize, u32),
    /// All threads of a CTA meet.
    Meet(u64),
}

#[derive(Clone, Copy, Debug)]
enum Ends {
    Group {
        bulk: bool,
    },
    /// A bulk copy, or an asynchronous store.
    Mbarrier {
        at: u32,
        bulk: bool,
    },
}

fn thread(number: usize) -> Thread {
    let number = number as u32;
    Thread {
        cta: u64::from(number / (2 * LANES)),
        warp: number / LANES % 2,
        lane: number % LANES,
    }
}

const THREADS: usize = 4 * LANES as usize;

fn barrier(number: u32) -> Location {
    Location::Shared {
        cta: u64::from(number % 2),
        offset: 1024 + 8 * number,
    }
}

fn global(offset: u32) -> Location {
    Location::Global(0x1000 + u64::from(offset))
}

/// What one event did to memory.
#[derive(Clone, Debug)]
struct Did {
    bytes: std::ops::Range<u32>,
    writes: bool,
}

/// A copy that ends with a group: its two events.
type Made = [usize; 2];

#[derive(Clone, Default)]
struct Groups {
    open: Vec<Made>,
    closed: Vec<Vec<Made>>,
}

/// The phases of a barrier.
#[derive(Clone, Default)]
struct Phases {
    /// What the current phase waits for, and the only CTA that this orders, if not both.
    current: Vec<(usize, Option<u64>)>,
    /// The end of the last one, as each CTA gets to know it.
    over: [Option<usize>; 2],
}

/// The bytes on which an event races.
#[derive(Debug, Default)]
struct Races {
    surely: BTreeSet<u32>,
    /// With something that a copy has written over, and the event comes after the copy. The engine may
    /// forget what is written over.
    maybe: BTreeSet<u32>,
}

/// Events, each with all those that come before it.
#[derive(Default)]
struct Judge {
    before: Vec<BTreeSet<usize>>,
    did: Vec<Option<Did>>,
    /// The last event of each thread.
    last: Vec<Option<usize>>,
    groups: Vec<[Groups; 2]>,
    phases: Vec<Phases>,
}

impl Judge {
    fn new() -> Self {
        Self {
            last: vec![None; THREADS],
            groups: vec![Default::default(); THREADS],
            phases: vec![Default::default(); BARRIERS as usize],
            ..Self::default()
        }
    }

    fn event(&mut self, after: impl IntoIterator<Item = usize>, did: Option<Did>) -> usize {
        let mut before = BTreeSet::new();
        for event in after {
            before.extend(self.before[event].iter().copied());
            before.insert(event);
        }
        self.before.push(before);
        self.did.push(did);
        self.did.len() - 1
    }

    /// Something that a thread does.
    fn step(&mut self, me: usize, after: &[usize], did: Option<Did>) -> usize {
        let after: Vec<usize> = after.iter().copied().chain(self.last[me]).collect();
        let event = self.event(after, did);
        self.last[me] = Some(event);
        event
    }

    /// The bytes on which an event races with an earlier one.
    fn races(&self, event: usize) -> Races {
        let mut races = Races::default();
        let Some(mine) = &self.did[event] else {
            return races;
        };
        for other in (0..event).filter(|other| !self.before[event].contains(other)) {
            let Some(theirs) = &self.did[other] else {
                continue;
            };
            if !theirs.writes && !mine.writes {
                continue;
            }
            let both =
                mine.bytes.start.max(theirs.bytes.start)..mine.bytes.end.min(theirs.bytes.end);
            let between = self.before[event].iter();
            let between = between.filter(|&&write| self.before[write].contains(&other));
            let over: Vec<&Did> = between
                .filter_map(|&write| self.did[write].as_ref())
                .filter(|did| did.writes)
                .collect();
            for byte in both {
                let hidden = over.iter().any(|did| did.bytes.contains(&byte));
                races.maybe.extend(hidden.then_some(byte));
                races.surely.extend((!hidden).then_some(byte));
            }
        }
        races
    }

    /// Accesses of copies, without what comes before them: who gets to know of the copies does not
    /// get to know of what their thread has done before.
    fn alone(&mut self, accesses: impl IntoIterator<Item = usize>) -> usize {
        self.before.push(accesses.into_iter().collect());
        self.did.push(None);
        self.did.len() - 1
    }

    fn end_phase(&mut self, at: u32) {
        let Phases { current, over } = self.phases[at as usize].clone();
        let ends = [0, 1].map(|cta| {
            let mine = current
                .iter()
                .filter(|(_, only)| only.is_none_or(|only| only == cta));
            let mine: Vec<usize> = mine
                .map(|&(event, _)| event)
                .chain(over[cta as usize])
                .collect();
            Some(self.event(mine, None))
        });
        self.phases[at as usize] = Phases {
            current: Vec::new(),
            over: ends,
        };
    }

    fn do_it(&mut self, event: &Event) -> Races {
        match *event {
            Event::Access(me, writes, at) => {
                let did = Did {
                    bytes: at..at + 4,
                    writes,
                };
                let event = self.step(me, &[], Some(did));
                return self.races(event);
            }
            Event::Copy(me, (from, to), ends) => {
                let issue = self.step(me, &[], None);
                let side = |at: u32, writes| {
                    Some(Did {
                        bytes: at..at + 16,
                        writes,
                    })
                };
                let read = self.event([issue], side(from, false));
                let write = self.event([issue, read], side(to, true));
                match ends {
                    Ends::Group { bulk } => {
                        self.groups[me][usize::from(bulk)].open.push([read, write]);
                    }
                    Ends::Mbarrier { at, bulk } => {
                        let end = match bulk {
                            true => self.alone([read, write]),
                            false => write,
                        };
                        self.phases[at as usize].current.push((end, None));
                    }
                }
                let (mut races, more) = (self.races(read), self.races(write));
                races.surely.extend(more.surely);
                races.maybe.extend(more.maybe);
                return races;
            }
            Event::Commit(me, bulk) => {
                let groups = &mut self.groups[me][usize::from(bulk)];
                let open = std::mem::take(&mut groups.open);
                groups.closed.push(open);
            }
            Event::Wait(me, Waited { left, bulk, reads }) => {
                let groups = &mut self.groups[me][usize::from(bulk)];
                let left_over = left.unwrap_or(0) as usize;
                let over = groups.closed.len().saturating_sub(left_over);
                let mut done: Vec<Made> = match reads {
                    true => groups.closed[..over].concat(),
                    false => groups.closed.drain(..over).flatten().collect(),
                };
                if left.is_none() {
                    done.append(&mut groups.open);
                }
                let done: Vec<usize> = done.iter().map(|made| made[usize::from(!reads)]).collect();
                self.step(me, &done, None);
            }
            Event::CopiesArrive(me, at, ends) => {
                let groups = &self.groups[me][0];
                let all = groups.closed.iter().flatten().chain(&groups.open);
                let all: Vec<usize> = all.flatten().copied().collect();
                let arrival = self.alone(all);
                let phase = &mut self.phases[at as usize].current;
                phase.push((arrival, Some(thread(me).cta)));
                if ends {
                    self.end_phase(at);
                }
            }
            Event::Arrive(me, at, ends) => {
                let arrival = self.step(me, &[], None);
                self.phases[at as usize].current.push((arrival, None));
                if ends {
                    self.end_phase(at);
                }
            }
            Event::Learn(me, at) => {
                let over = self.phases[at as usize].over[thread(me).cta as usize];
                self.step(me, over.as_slice(), None);
            }
            Event::Meet(cta) => {
                let all = (0..THREADS).filter(|&number| thread(number).cta == cta);
                let all: Vec<usize> = all.collect();
                let last: Vec<usize> = all.iter().filter_map(|&me| self.last[me]).collect();
                let event = self.event(last, None);
                all.into_iter().for_each(|me| self.last[me] = Some(event));
            }
        }
        Races::default()
    }
}

/// The same for the engine.
fn send(engine: &mut Engine, event: &Event) -> BTreeSet<u32> {
    let mut racing = BTreeSet::new();
    let mut found = |race: Race| {
        let Location::Global(at) = race.location else {
            panic!("nobody accesses shared memory");
        };
        let word = (at - 0x1000) as u32;
        assert!(
            race.earlier.thread.cta < 2,
            "a thread of the launch: {race:?}"
        );
        racing.extend(
            (0..4)
                .filter(|byte| race.bytes >> byte & 1 == 1)
                .map(|byte| word + byte),
        );
    };
    match *event {
        Event::Access(me, writes, at) => {
            let me = thread(me);
            let access = Access {
                kind: if writes { OpKind::Store } else { OpKind::Load },
                order: MemoryOrder::Weak,
                bytes: 4,
                elements: 1,
                site: at,
            };
            engine.access(me.warp(), 1 << me.lane, &access, |_| global(at), &mut found);
        }
        Event::Copy(me, (from, to), ends) => {
            let (ends, bulk) = match ends {
                Ends::Group { bulk } => (Completion::Group, bulk),
                Ends::Mbarrier { at, bulk } => (Completion::Mbarrier(barrier(at)), bulk),
            };
            let [from, to] = [from, to].map(|at| Span {
                location: global(at),
                bytes: 16,
            });
            let proxies = |race: Race| {
                // The fence that a bulk copy wants is not looked at here.
                if race.rule != shadow::hb::Rule::Proxy {
                    found(race);
                }
            };
            let issue = Issue {
                site: 1000,
                ends,
                bulk,
                reduces: None,
            };
            engine.copy(thread(me), from, to, issue, proxies);
        }
        Event::Commit(me, bulk) => engine.commit(thread(me).warp(), 1 << thread(me).lane, bulk),
        Event::Wait(me, waited) => engine.wait(thread(me).warp(), 1 << thread(me).lane, waited),
        Event::CopiesArrive(me, at, ends) => engine.copies_arrive(thread(me), barrier(at), ends),
        Event::Arrive(me, at, ends) => {
            engine.mbarrier_arrive(
                thread(me),
                barrier(at),
                MemoryOrder::Release(Scope::Cluster),
                ends,
            );
        }
        Event::Learn(me, at) => {
            engine.mbarrier_wait(
                thread(me),
                barrier(at),
                MemoryOrder::Acquire(Scope::Cluster),
            );
        }
        Event::Meet(cta) => {
            for warp in 0..2 {
                let arrival = Arrival {
                    id: 0,
                    waits: true,
                    counted: false,
                };
                engine.arrive(Warp { cta, warp }, u32::MAX, arrival);
            }
            engine.complete(cta, 0);
        }
    }
    racing
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let me = 0..THREADS;
    let at = (0..BYTES / 4).prop_map(|at| 4 * at);
    let ends = prop_oneof![
        any::<bool>().prop_map(|bulk| Ends::Group { bulk }),
        (0..BARRIERS, any::<bool>()).prop_map(|(at, bulk)| Ends::Mbarrier { at, bulk }),
    ];
    // A copy over itself is not looked at.
    let pieces = BYTES / 16;
    let sides = (0..pieces, 1..pieces).prop_map(move |(from, further)| {
        let to = (from + further) % pieces;
        (16 * from, 16 * to)
    });
    let waited = (prop::option::of(0..3u32), any::<bool>(), any::<bool>()).prop_map(
        |(left, bulk, reads)| Waited {
            // Only `cp.async.wait_all` waits for what is in no group, and only bulk copies can be
            // waited for in part.
            left: if bulk { left.or(Some(0)) } else { left },
            bulk,
            reads: bulk && reads,
        },
    );
    let event = prop_oneof![
        4 => (me.clone(), any::<bool>(), at).prop_map(|(me, writes, at)| Event::Access(me, writes, at)),
        4 => (me.clone(), sides, ends).prop_map(|(me, sides, ends)| Event::Copy(me, sides, ends)),
        2 => (me.clone(), any::<bool>()).prop_map(|(me, bulk)| Event::Commit(me, bulk)),
        2 => (me.clone(), waited).prop_map(|(me, waited)| Event::Wait(me, waited)),
        1 => (me.clone(), 0..BARRIERS, any::<bool>())
            .prop_map(|(me, at, ends)| Event::CopiesArrive(me, at, ends)),
        2 => (me.clone(), 0..BARRIERS, any::<bool>())
            .prop_map(|(me, at, ends)| Event::Arrive(me, at, ends)),
        3 => (me, 0..BARRIERS).prop_map(|(me, at)| Event::Learn(me, at)),
        1 => (0..2u64).prop_map(Event::Meet),
    ];
    prop::collection::vec(event, 1..60)
}

#[test]
fn copies_race_as_their_own_events() {
    let cases = std::env::var("HB_CASES").map_or(2000, |cases| {
        cases.parse().expect("HB_CASES is a number of histories")
    });
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let judged = runner.run(&events(), |events| {
        let (mut judge, mut engine) = (Judge::new(), Engine::new(SHAPE));
        for (number, event) in events.iter().enumerate() {
            let (right, reported) = (judge.do_it(event), send(&mut engine, event));
            let missed = !right.surely.is_subset(&reported);
            let wrong = reported
                .iter()
                .any(|byte| !right.surely.contains(byte) && !right.maybe.contains(byte));
            prop_assert!(
                !missed && !wrong,
                "{right:?}, told {reported:?}: event {number}: {event:?}"
            );
        }
        Ok(())
    });
    judged.unwrap_or_else(|wrong| panic!("{wrong}"));
}
