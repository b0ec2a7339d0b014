//! The reference oracle: happens-before over what the simulated device does, no shadow cell involved.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ptx::ast::Space;
use ptx::isa::{BarrierKind, FenceSemantics, MbarrierOp, SyncOp};
use shadow::hb::{
    Access, Arrival, Cause, Completion, Engine, FenceKind, Held, Kind, LANES, Luck, Lucky, Order,
    Place, Race, Scope, Shape, Stats, Swap, Thread, Time, Warp,
};
use simt::{AccessKind, Bytes, Exchange, Executing, Observer, SHARED_STEP};

use crate::audit::Conflict;
use crate::instructions::{Instructions, Meaning, scope};
use crate::locking;
use crate::log::{self, Misuse};
use crate::options::Model;
use crate::told;

/// Pairs of sites kept per launch.
const PAIRS: usize = 4096;

/// What the oracle looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scrutiny {
    /// Everything.
    Everything,
    /// Shared memory, and how barriers are used; the cells look after global memory.
    Shared,
    /// How barriers are used.
    Barriers,
}

/// What the oracle has to say about a launch.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) instructions: Arc<Instructions>,
    /// Pairs of sites that raced.
    pub(crate) found: Vec<Found>,
    /// Pairs that found no room.
    pub(crate) dropped: u64,
    /// What barriers were misused by two sites, by whom first, and how often.
    pub(crate) misuses: BTreeMap<(Misuse, u32, u32), (Thread, u64)>,
    /// What the engine has counted.
    stats: Option<Stats>,
}

impl Judged {
    pub(crate) fn clocks(&self) -> Option<log::Clocks> {
        self.stats.map(|stats| log::Clocks {
            accesses: stats.accesses,
            synchronisations: stats.synchronisations,
            warps: stats.warps,
            left_converged: stats.left_converged,
            sparse: stats.sparse,
        })
    }

    /// The sites of everything that is to be told, with their numbers.
    pub(crate) fn sites(&self) -> impl Iterator<Item = (u32, Option<&log::Site>)> {
        let races = self.found.iter().map(|found| &found.race);
        let pairs = races.map(|race| [race.earlier.site, race.later.site]);
        let misused = self.misuses.keys().map(|&(_, a, b)| [a, b]);
        let held = self.found.iter().flat_map(|found| found.locks.iter());
        let locked = held.flatten().flat_map(locking::sites);
        pairs
            .chain(misused)
            .flatten()
            .chain(locked)
            .map(|number| (number, self.instructions.site(number)))
    }
}

/// Judges one launch.
pub(crate) struct Reference {
    instructions: Arc<Instructions>,
    scrutiny: Scrutiny,
    shape: Shape,
    model: Option<Model>,
    /// None where no accesses are looked at.
    engine: Option<Engine>,
    luck: Luck,
    pairs: Pairs,
    misuses: BTreeMap<(Misuse, u32, u32), (Thread, u64)>,
    /// Bytes of a granule of global memory and of shared memory, for [`Self::earlier`].
    pub(crate) granules: [u32; 2],
}

/// What is wrong with two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// A data race.
    Race,
    /// Strong accesses that the program means to order, and does not.
    Strong,
    /// Only the order in which locks were taken has ordered them.
    Luck,
}

/// A pair of sites that raced, with a witness and how often.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) class: Class,
    pub(crate) race: Race,
    pub(crate) count: u64,
    /// What would have ordered the witness.
    pub(crate) cause: Option<Cause>,
    /// What the earlier and the later thread held.
    pub(crate) locks: [Vec<Held>; 2],
}

/// Races by pair of sites.
#[derive(Debug, Default)]
struct Pairs {
    found: Vec<Found>,
    /// Those whose cause has not been looked for.
    fresh: Vec<usize>,
    /// Where in `found` a pair is.
    index: HashMap<(u32, u32, bool, Class), usize>,
    dropped: u64,
    /// All races, for an audit.
    every: Option<Vec<Race>>,
}

impl Pairs {
    /// Counts a race, and keeps it if it is the first of its pair, or says more than that.
    fn keep(&mut self, class: Class, race: Race) -> Option<&mut Found> {
        if let Some(every) = self.every.as_mut().filter(|_| class == Class::Race) {
            every.push(race);
        }
        let (a, b) = (race.earlier.site, race.later.site);
        let key = (a.min(b), a.max(b), is_shared(race.place), class);
        let apart = |race: &Race| {
            let (a, b) = (race.earlier.thread, race.later.thread);
            (a.cta != b.cta, a.warp != b.warp)
        };
        match self.index.get(&key) {
            Some(&at) => {
                self.found[at].count += 1;
                // What orders threads that are further apart orders the others too.
                if apart(&race) <= apart(&self.found[at].race) {
                    return None;
                }
                self.found[at].race = race;
                self.fresh.push(at);
                self.found.get_mut(at)
            }
            None if self.found.len() < PAIRS => {
                self.index.insert(key, self.found.len());
                self.fresh.push(self.found.len());
                self.found.push(Found {
                    class,
                    race,
                    count: 1,
                    cause: None,
                    locks: Default::default(),
                });
                self.found.last_mut()
            }
            None => {
                self.dropped += 1;
                None
            }
        }
    }

    /// Looks for the causes of what was found just now.
    fn explain(&mut self, engine: &Engine, luck: &Luck) {
        for at in self.fresh.drain(..) {
            let found = &mut self.found[at];
            found.cause = engine.cause(&found.race);
            found.locks = luck.locks_of(&found.race);
        }
    }

    /// Keeps what is no data race; its cause and locks are known.
    fn keep_lucky(&mut self, class: Class, lucky: Lucky, cause: Option<Cause>) {
        if let Some(found) = self.keep(class, lucky.race) {
            (found.locks, found.cause) = (lucky.locks, cause);
        }
        self.fresh.clear();
    }
}

fn is_shared(place: Place) -> bool {
    matches!(place, Place::Shared { .. })
}

/// Where an address of a space is, as a thread of `cta` sees it.
fn at(shape: &Shape, cta: u64, space: Space, address: u64) -> Place {
    match space {
        Space::Global => Place::Global(address),
        _ => shared(shape, cta, address),
    }
}

/// Where an address in shared memory is, as a thread of `cta` sees it.
fn shared(shape: &Shape, cta: u64, address: u64) -> Place {
    Place::Shared {
        cta: match address / SHARED_STEP {
            0 => cta,
            rank => shape.peer(cta, rank as u32 - 1),
        },
        offset: (address % SHARED_STEP) as u32,
    }
}

impl Reference {
    pub(crate) fn new(
        instructions: Arc<Instructions>,
        scrutiny: Scrutiny,
        shape: Shape,
        model: Option<Model>,
    ) -> Self {
        Self {
            model,
            luck: Luck::default(),
            instructions,
            scrutiny,
            shape,
            engine: (scrutiny != Scrutiny::Barriers).then(|| Engine::new(shape)),
            pairs: Pairs::default(),
            misuses: BTreeMap::new(),
            granules: [4; 2],
        }
    }

    /// Keeps every race instead of the first of each pair of sites.
    pub(crate) fn keep_all(mut self) -> Self {
        self.pairs.every = Some(Vec::new());
        self
    }

    /// The races that [`Self::keep_all`] has kept.
    pub(crate) fn every_race(&self) -> Vec<Conflict> {
        let line = |site| self.instructions.site(site).map_or(0, |site| site.ptx_line);
        let thread = |of: Thread| of.warp * LANES + of.lane;
        let all = self.pairs.every.iter().flatten();
        all.map(|race| {
            let (shared, address) = match race.place {
                Place::Global(address) => (None, address),
                Place::Shared { cta, offset } => (Some(cta), u64::from(offset)),
            };
            Conflict {
                line: line(race.later.site),
                earlier: line(race.earlier.site),
                thread: thread(race.later.thread),
                earlier_thread: Some(thread(race.earlier.thread)),
                shared,
                address,
                why: told::why(Class::Race, race.rule),
            }
        })
        .collect()
    }

    pub(crate) fn finish(self) -> Judged {
        Judged {
            stats: self.engine.as_ref().map(Engine::stats),
            found: locking::sort_out(self.pairs.found, &self.luck, &self.instructions, self.model),
            dropped: self.pairs.dropped,
            misuses: self.misuses,
            instructions: self.instructions,
        }
    }

    /// So many things were not told.
    pub(crate) fn miss(&mut self, count: u64) {
        self.pairs.dropped += count;
    }

    /// What is told from here on happens at `now`; see [`Engine::at`].
    pub(crate) fn at(&mut self, now: Time) {
        self.with(|engine| engine.at(now));
    }

    /// An access by one lane.
    pub(crate) fn told(&mut self, who: Executing, space: Space, address: u64) {
        let kind = AccessKind::Load;
        self.access(who, kind, space, &[address; LANES as usize], 0);
    }

    /// An access that one lane made at a time before; see [`Engine::earlier`].
    pub(crate) fn earlier(&mut self, who: Executing, space: Space, address: u64, time: Time) {
        let place = match space {
            Space::Global => Place::Global(address),
            _ => self.shared(who, address),
        };
        let bytes = self.granules[usize::from(is_shared(place))];
        let me = warp(who).lane(who.lanes.trailing_zeros());
        if let Some(access) = self.meaning(who).and_then(|meaning| meaning.access) {
            let access = Access {
                bytes,
                elements: 1,
                ..access
            };
            self.with(|engine| engine.earlier(me, time, &access, place));
        }
    }

    /// Whether those who execute a barrier of their CTA wait there.
    pub(crate) fn waits(&self, who: Executing) -> bool {
        let sync = self.meaning(who).and_then(|meaning| meaning.sync);
        !matches!(
            sync,
            Some(SyncOp::CtaBarrier {
                kind: BarrierKind::Arrive,
                ..
            })
        )
    }

    fn with(&mut self, tell: impl Fn(&mut Engine)) {
        if let Some(engine) = &mut self.engine {
            tell(engine);
            self.luck.tell(tell);
        }
    }

    /// Tells of a barrier that lanes come to, or go on after.
    fn barrier(&mut self, who: Executing, lanes: u32, tell: impl Fn(&mut Engine)) {
        if let Some(engine) = &mut self.engine {
            tell(engine);
            self.luck.barrier(warp(who), lanes, tell);
        }
    }

    /// The access that an instruction is, under the model that was asked for.
    fn accesses(&self, who: Executing, bytes: u32) -> Option<Access> {
        let mut access = self.meaning(who)?.access?;
        if access.bytes == 0 {
            access.bytes = bytes;
        }
        if self.model == Some(Model::Scoped) && matches!(access.kind, Kind::Load | Kind::Rmw) {
            // What a strong read observes it acquires.
            access.order = match access.order {
                Order::Relaxed(scope) => Order::Acquire(scope),
                Order::Release(scope) => Order::AcqRel(scope),
                other => other,
            };
        }
        Some(access)
    }

    fn wanted(&self, space: Space) -> bool {
        matches!(
            (self.scrutiny, space),
            (
                Scrutiny::Everything | Scrutiny::Shared,
                Space::Shared | Space::SharedCluster
            ) | (Scrutiny::Everything, Space::Global)
        )
    }

    fn meaning(&self, who: Executing) -> Option<Meaning> {
        self.instructions.at(who.offset)
    }

    fn shared(&self, who: Executing, address: u64) -> Place {
        shared(&self.shape, who.cta, address)
    }

    fn place(&self, who: Executing, at: Bytes) -> Option<Place> {
        match at.space {
            Space::Shared | Space::SharedCluster => Some(self.shared(who, at.address)),
            Space::Global => Some(Place::Global(at.address)),
            _ => None,
        }
    }
}

fn warp(who: Executing) -> Warp {
    Warp {
        cta: who.cta,
        warp: who.warp,
    }
}

impl Observer for Reference {
    fn access(
        &mut self,
        who: Executing,
        _kind: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        if !self.wanted(space) {
            return;
        }
        let Some(access) = self.accesses(who, bytes) else {
            return;
        };
        let swaps = self.meaning(who).is_some_and(|meaning| meaning.swaps);
        let shape = self.shape;
        let place = |lane: u32| at(&shape, who.cta, space, addresses[lane as usize]);
        let (pairs, luck) = (&mut self.pairs, &mut self.luck);
        let Some(engine) = &mut self.engine else {
            return;
        };
        if access.kind == Kind::Load && !matches!(access.order, Order::Weak | Order::ReadOnly) {
            for lane in (0..LANES).filter(|lane| who.lanes >> lane & 1 == 1) {
                let me = warp(who).lane(lane);
                if let Some((lucky, cause)) = luck.handed_over(engine, me, &access, place(lane)) {
                    pairs.keep_lucky(Class::Strong, lucky, cause);
                }
            }
        }
        engine.access(warp(who), who.lanes, &access, place, |race| {
            pairs.keep(Class::Race, race);
        });
        pairs.explain(engine, luck);
        if !swaps {
            let lanes = (warp(who), who.lanes);
            luck.access(engine, lanes, &access, place, |lucky| {
                pairs.keep_lucky(Class::Luck, lucky, None);
            });
        }
    }

    fn exchanged(
        &mut self,
        who: Executing,
        space: Space,
        addresses: &[u64; 32],
        exchange: Exchange<'_>,
    ) {
        if !self.wanted(space) {
            return;
        }
        let Some(access) = self.accesses(who, exchange.bytes) else {
            return;
        };
        let shape = self.shape;
        let place = |lane: u32| at(&shape, who.cta, space, addresses[lane as usize]);
        let swap = |lane: u32| Swap {
            compare: exchange.compare.map(|values| values[lane as usize]),
            new: exchange.new[lane as usize],
            old: exchange.old[lane as usize],
        };
        let (pairs, luck) = (&mut self.pairs, &mut self.luck);
        if let Some(engine) = &mut self.engine {
            let lanes = (warp(who), who.lanes);
            luck.swap(engine, lanes, &access, place, swap, |lucky| {
                pairs.keep_lucky(Class::Luck, lucky, None);
            });
        }
    }

    fn arrive(&mut self, who: Executing, id: u32, waits: bool) {
        let sync = self.meaning(who).and_then(|meaning| meaning.sync);
        let counted = matches!(sync, Some(SyncOp::CtaBarrier { count: Some(_), .. }));
        let arrival = Arrival { id, waits, counted };
        self.barrier(who, who.lanes, |engine| {
            engine.arrive(warp(who), who.lanes, arrival);
        });
    }

    fn complete(&mut self, cta: u64, id: u32) {
        self.with(|engine| engine.complete(cta, id));
    }

    fn warp_barrier(&mut self, who: Executing) {
        // Lanes that have exited count as having arrived where the whole warp is meant.
        let lanes = match self.meaning(who) {
            Some(Meaning {
                whole_warp: true, ..
            }) => u32::MAX,
            _ => who.lanes,
        };
        self.barrier(who, lanes, |engine| engine.warp_barrier(warp(who), lanes));
    }

    fn fence(&mut self, who: Executing) {
        let Some(SyncOp::Fence {
            sem,
            scope: within,
            proxy: false,
        }) = self.meaning(who).and_then(|meaning| meaning.sync)
        else {
            return;
        };
        let kind = match sem {
            FenceSemantics::Sc => FenceKind::Sc,
            FenceSemantics::AcqRel => FenceKind::AcqRel,
            FenceSemantics::Acquire => FenceKind::Acquire,
            FenceSemantics::Release => FenceKind::Release,
        };
        if let Some(engine) = &mut self.engine {
            engine.fence(warp(who), who.lanes, kind, scope(within));
            self.luck.fence(warp(who), who.lanes, kind, scope(within));
        }
    }

    fn copies(&mut self, who: Executing) {
        let Some(meaning) = self.meaning(who) else {
            return;
        };
        match meaning.sync {
            Some(SyncOp::CommitGroup) => self.with(|engine| engine.commit(warp(who), who.lanes)),
            _ => self.with(|engine| engine.wait(warp(who), who.lanes, meaning.left)),
        }
    }

    fn copy(&mut self, who: Executing, from: Bytes, to: Bytes, mbarrier: Option<u64>) {
        let Some(meaning) = self.meaning(who) else {
            return;
        };
        let ends = match mbarrier {
            Some(address) => Completion::Mbarrier(self.shared(who, address)),
            None => Completion::Group,
        };
        let (Some(source), Some(target)) = (self.place(who, from), self.place(who, to)) else {
            return;
        };
        let me = warp(who).lane(who.lanes.trailing_zeros());
        let (pairs, everything) = (&mut self.pairs, self.scrutiny == Scrutiny::Everything);
        let sides = ((source, from.count), (target, to.count));
        if let Some(engine) = &mut self.engine {
            engine.copy(me, sides.0, sides.1, (meaning.site, ends), |race| {
                if everything || is_shared(race.place) {
                    pairs.keep(Class::Race, race);
                }
            });
            pairs.explain(engine, &self.luck);
            self.luck.tell(|engine| {
                engine.copy(me, sides.0, sides.1, (meaning.site, ends), |_| ());
            });
        }
    }

    fn mbarrier(&mut self, who: Executing, address: u64, over: bool) {
        let Some(SyncOp::Mbarrier {
            op,
            relaxed,
            scope: within,
            ..
        }) = self.meaning(who).and_then(|meaning| meaning.sync)
        else {
            return;
        };
        let orders = (!relaxed).then(|| scope(within));
        let at = self.shared(who, address);
        let me = warp(who).lane(who.lanes.trailing_zeros());
        match op {
            MbarrierOp::Init | MbarrierOp::Inval => self.with(|engine| engine.mbarrier_init(at)),
            MbarrierOp::Arrive | MbarrierOp::ArriveDrop => {
                self.barrier(who, who.lanes, |engine| {
                    engine.mbarrier_arrive(me, at, orders, over);
                });
            }
            MbarrierOp::CopyArrive => {
                // It arrives when the thread's copies are complete.
                self.with(|engine| engine.wait(warp(who), who.lanes, None));
                self.with(|engine| engine.mbarrier_arrive(me, at, Some(Scope::Cta), over));
            }
            MbarrierOp::CompleteTx if over => self.with(|engine| engine.mbarrier_complete(at)),
            MbarrierOp::TestWait | MbarrierOp::TryWait if over => {
                self.barrier(who, who.lanes, |engine| {
                    engine.mbarrier_wait(me, at, orders)
                });
            }
            _ => {}
        }
    }

    fn mbarrier_complete(&mut self, who: Executing, address: u64) {
        let at = self.shared(who, address);
        self.with(|engine| engine.mbarrier_complete(at));
    }

    fn cluster_arrive(&mut self, who: Executing, phase: u64) {
        let sync = self.meaning(who).and_then(|meaning| meaning.sync);
        let relaxed = matches!(sync, Some(SyncOp::ClusterBarrier { relaxed: true, .. }));
        self.barrier(who, who.lanes, |engine| {
            engine.cluster_arrive(warp(who), who.lanes, phase, relaxed);
        });
    }

    fn cluster_wait(&mut self, who: Executing, phase: u64) {
        self.barrier(who, who.lanes, |engine| {
            engine.cluster_wait(warp(who), who.lanes, phase);
        });
    }

    fn allocated(&mut self, address: u64, bytes: u64) {
        self.with(|engine| engine.allocated(address, bytes));
    }

    fn misuse(&mut self, who: Executing, misuse: simt::Misuse, offset: u32) {
        let site = |offset| self.instructions.at(offset).map(|meaning| meaning.site);
        let Some(here) = site(who.offset) else {
            return;
        };
        let misuse = match misuse {
            simt::Misuse::Divergent => Misuse::Divergent,
            simt::Misuse::Counts => Misuse::Counts,
            simt::Misuse::PartOfWarp => Misuse::PartOfWarp,
            simt::Misuse::Again => Misuse::Again,
            simt::Misuse::Exited => Misuse::Exited,
            simt::Misuse::NotMember => Misuse::NotMember,
        };
        let key = (misuse, site(offset).unwrap_or(here), here);
        let me = warp(who).lane(who.lanes.trailing_zeros());
        self.misuses.entry(key).or_insert((me, 0)).1 += 1;
    }

    fn exit(&mut self, who: Executing) {
        if let Some(engine) = &mut self.engine {
            engine.exit(warp(who), who.lanes);
            self.luck.exit(warp(who), who.lanes);
        }
    }
}
