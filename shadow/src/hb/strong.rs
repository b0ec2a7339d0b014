//! Unordered strong conflicts: strong loads and stores that PTX gives a result, and nothing orders.
//!
//! Two strong accesses to one scalar, one a plain load or store and one a write, each in the scope of
//! the other, are such a conflict unless the causality order has them, or the scalar is one that
//! threads communicate through: somewhere a load of it decides the exit of a loop, some access to it is an
//! acquire or a release, or it is a lock. docs/memory-model.md has the definition.
//!
//! The order is kept by clocks of its own, which differ from the [`Engine`]'s in three ways, so that
//! the answer does not depend on who came first:
//! 1. who observes a release has acquired it, unless a fence of too narrow a scope says otherwise;
//! 2. `fence.sc`s are ordered only as in every run (`fenced.rs`);
//! 3. accesses under one lock are ordered if both critical sections have their fences, whichever
//!    came first, and only then.
//!
//! What is read under a version and thrown away if that has changed does no harm (`versions.rs`).
//!
//! Of a scalar, [`MOST`] groups of readers and as many of writers are remembered.

use alloc::vec::Vec;
use core::iter;
use events::Scope;

use hashbrown::{HashMap, HashSet};

use super::guarded::{Conflicts, Guarded};
use super::history::WORD;
use super::made::Made;
use super::observed::Observed;
use super::release::Fence;
use super::section::Held;
use super::thread::{Active, Id, LANES, Party, Shape, Thread, Warp};
use super::versions::{Look, SwapValue, Versions};
use super::{
    Access, Cause, Engine, FenceKind, Flag, Location, LockOrder, MemoryOrder, OpKind, Predicted,
    Race, Rule, Side, Swap, Time, each,
};

/// Groups of lanes that have read, written or changed a scalar and are remembered, each.
const MOST: usize = 1024;
/// With more groups than this, a write replaces earlier accesses that are ordered before it, unless they are of its own
/// thread or of a wider scope.
const MANY: usize = 64;

/// A conflict, with a witness and how often it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unordered {
    /// The accesses, and what their threads held.
    pub predicted: Predicted,
    /// What would have ordered them.
    pub cause: Option<Cause>,
    /// By which flag or counter.
    pub flag: Option<Flag>,
    /// How often.
    pub count: u64,
    /// They were in order, but by a lock whose fences are missing.
    pub(crate) ordered: bool,
}

/// Lanes of a warp that did the same at the same time of theirs.
#[derive(Clone, Copy, Debug)]
struct Group {
    warp: Id,
    lanes: u32,
    time: Time,
    /// The time by the clocks without locks.
    unlocked: Time,
    site: u32,
    scope: Scope,
    /// The thread held something that may be a lock.
    held: bool,
    /// It had looked at a version.
    reading: bool,
    /// Of atomics, the number of the last lane's among all of the scalar.
    turn: u64,
    /// Of atomics, the lanes that made them, one behind the other, though some may have made another since.
    made: u32,
    /// It is an atomic that gives back what it found.
    counts: bool,
}

impl Group {
    /// The number of a lane's atomic among all of the scalar.
    fn turn_of(&self, lane: u32) -> u64 {
        self.turn - u64::from((self.made >> lane >> 1).count_ones())
    }
}

/// Loads, stores, and atomics.
const CLASSES: usize = 3;

/// What is known of a scalar.
#[derive(Clone, Debug, Default)]
struct Scalar {
    /// Threads communicate through it.
    signal: bool,
    groups: [Vec<Group>; CLASSES],
    /// Atomics so far.
    turns: u64,
    found: Vec<Unordered>,
    /// Accesses under one lock whose last critical section is not over, and whether nothing else orders them.
    open: Vec<(Race, bool)>,
    /// Accesses of which one is made under a version.
    guarded: Conflicts,
}

type Scalars = HashMap<(u64, u32), Scalar>;

/// Looks for unordered strong conflicts in one launch.
#[derive(Clone, Debug)]
pub struct Strong {
    engine: Engine,
    /// The same, from the first swap on, but that taking a lock, or failing to, acquires nothing.
    unlocked: Option<Engine>,
    /// Where some access looks at a version.
    versions: Option<Versions>,
    global: Scalars,
    /// By CTA.
    shared: HashMap<u64, Scalars>,
}

/// What else is to be known of an access.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    /// Threads communicate through what it accesses: somewhere a loop waits for that, say.
    pub signal: bool,
    /// It is part of a synchronisation that is known as such, and only orders.
    pub known: bool,
    /// How it looks at a version.
    pub look: Look,
}

impl Strong {
    /// For one launch; `versions` says that some access looks at one.
    pub fn new(shape: Shape, versions: bool) -> Self {
        Self {
            engine: Engine::new(shape),
            unlocked: None,
            versions: versions.then(Versions::default),
            global: HashMap::new(),
            shared: HashMap::new(),
        }
    }

    /// Something happens that is no access, fence or barrier.
    pub fn forward(&mut self, event: impl Fn(&mut Engine)) {
        self.both().for_each(event);
    }

    /// The clocks, with locks and without.
    fn both(&mut self) -> impl Iterator<Item = &mut Engine> {
        iter::once(&mut self.engine).chain(&mut self.unlocked)
    }

    /// Lanes come to a barrier, or go on after it.
    pub fn barrier(&mut self, warp: Warp, lanes: u32, event: impl Fn(&mut Engine)) {
        for engine in self.both() {
            engine.imply(warp, lanes);
            event(engine);
        }
    }

    /// Lanes execute a fence.
    pub fn fence(&mut self, warp: Warp, lanes: u32, kind: FenceKind, scope: Scope) {
        let kind = kind.forced();
        if let Some(versions) = &mut self.versions {
            each(lanes).for_each(|lane| versions.fence(warp.lane(lane), scope, kind));
        }
        for engine in self.both() {
            if kind == FenceKind::Release {
                engine.imply(warp, lanes);
            }
            engine.fence(warp, lanes, kind, scope);
        }
    }

    /// Lanes end.
    pub fn exit(&mut self, warp: Warp, lanes: u32) {
        for engine in self.both() {
            engine.imply(warp, lanes);
            engine.exit(warp, lanes);
        }
        if !self.engine.ctas.contains_key(&warp.cta)
            && let Some(scalars) = self.shared.get_mut(&warp.cta)
        {
            scalars.retain(|_, of| !(of.signal || of.is_clean()));
            for scalar in scalars.values_mut() {
                scalar.groups = Default::default();
            }
        }
    }

    /// Bytes of global memory are handed out by an allocator.
    pub fn allocated(&mut self, address: u64, bytes: u64) {
        let first = Location::Global(address).key();
        let end = first.saturating_add(bytes);
        for (&(key, _), scalar) in &mut self.global {
            if (first..end).contains(&key) {
                scalar.groups = Default::default();
                scalar.open.clear();
                scalar.guarded.clear();
            }
        }
        self.both()
            .for_each(|engine| engine.allocated(address, bytes));
    }

    /// Lanes access memory. `main` and `lock_order` have not received them yet.
    pub fn access(
        &mut self,
        main: &Engine,
        lock_order: &LockOrder,
        Active { warp, lanes }: Active,
        access: &Access,
        of: Use,
        locations: impl Fn(u32) -> Location,
    ) {
        let Some(scope) = access.order.scope() else {
            if access.kind == OpKind::Store {
                for engine in self.both().filter(|of| !of.releases.is_empty()) {
                    for lane in each(lanes) {
                        let bytes = access.bytes * access.elements;
                        engine.releases.weak_write(locations(lane).key(), bytes);
                    }
                }
            }
            return;
        };
        if self.unlocked.is_none() && lock_order.has_swaps() {
            self.unlocked = Some(self.engine.clone());
        }
        let releases = matches!(
            access.order,
            MemoryOrder::Release(_) | MemoryOrder::AcqRel(_)
        );
        for engine in self.both() {
            engine.enter(warp);
            if releases {
                engine.imply(warp, lanes);
            }
        }
        // What a swap acquires without locks, its values decide.
        let values_later = of.look.swap == Some(SwapValue::Later);
        let signal = of.signal || !matches!(access.order, MemoryOrder::Relaxed(_));
        for lane in each(lanes) {
            let me = warp.lane(lane);
            for element in 0..access.elements {
                let key = locations(lane).key() + u64::from(element * access.bytes);
                if let Some(versions) = &mut self.versions {
                    versions.begin(me, access, key, of.look, self.engine.fences(me));
                }
                if !of.known {
                    let party = Party { thread: me, scope };
                    self.look(main, lock_order, party, access, key, signal);
                }
                if let Some(versions) = &mut self.versions {
                    versions.access(me, access, key, of.look, self.engine.own(me));
                }
                if !(of.look.blind && access.kind == OpKind::Load) {
                    self.engine.synchronise(me, access, key);
                    if let (Some(unlocked), false) = (&mut self.unlocked, values_later) {
                        let kind = match access.kind {
                            OpKind::Rmw if lock_order.passes(Location::of(key)) => {
                                OpKind::Reduction
                            }
                            other => other,
                        };
                        unlocked.synchronise(me, &Access { kind, ..*access }, key);
                    }
                }
            }
        }
        self.both().for_each(|engine| engine.classify(warp));
    }

    /// Lanes have swapped values, which [`Self::access`] and `lock_order` have received.
    pub fn swap(
        &mut self,
        lock_order: &LockOrder,
        Active { warp, lanes }: Active,
        access: &Access,
        locations: impl Fn(u32) -> Location,
        swaps: impl Fn(u32) -> Swap,
    ) {
        if let Some(versions) = &mut self.versions {
            let released = match access.order {
                MemoryOrder::Release(scope) | MemoryOrder::AcqRel(scope) => Some(scope),
                _ => None,
            };
            for lane in each(lanes).filter(|&lane| swaps(lane).changes()) {
                let me = warp.lane(lane);
                versions.write(me, locations(lane).key(), released, self.engine.own(me));
            }
        }
        if let Some(unlocked) = &mut self.unlocked {
            unlocked.enter(warp);
            for lane in each(lanes) {
                let location = locations(lane);
                // Who finds a word held acquires nothing, whether or not it has been known for a lock.
                let of_lock =
                    lock_order.passes(location) || lock_order.fails(location, swaps(lane));
                let kind = match of_lock {
                    true => OpKind::Reduction,
                    false => access.kind,
                };
                unlocked.synchronise(warp.lane(lane), &Access { kind, ..*access }, location.key());
            }
            unlocked.classify(warp);
        }
    }

    /// What was found, once the launch is over; and how many conflicts are not judged, with data that is read under
    /// versions of which it is not known when they were written.
    pub fn finish(self, lock_order: &LockOrder) -> (Vec<Unordered>, u64) {
        let shape = self.engine.shape;
        let shared = self.shared.into_values().flatten();
        let mut all: Vec<_> = self.global.into_iter().chain(shared).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        let signals = all.iter().filter(|(_, scalar)| scalar.signal);
        let signals: HashSet<u64> = signals.map(|((key, _), _)| *key).collect();
        let (mut found, mut open) = (Vec::new(), 0);
        for ((key, _), scalar) in all {
            if scalar.signal || lock_order.is_lock(Location::of(key)) {
                continue;
            }
            for mut of in scalar.found {
                // Data that happens to have been read first is no flag.
                let is_data = |flag: Flag| !signals.contains(&flag.location.key());
                if of.cause == Some(Cause::NoRelease) && of.flag.is_some_and(is_data) {
                    (of.cause, of.flag) = (None, None);
                }
                let locks = &of.predicted.locks;
                if !of.ordered || common(lock_order, locks).next().is_some() {
                    found.push(of);
                }
            }
            let versions = self.versions.as_ref();
            found.extend(scalar.guarded.judge(&shape, versions, key, &mut open));
            for (race, unordered) in scalar.open {
                let locks = lock_order.locks_then(&race);
                let fenced = |held| is_fenced(&shape, &race, held);
                let ordered = common(lock_order, &locks).next().is_some();
                // Where it was a lock, its fences decide; where not, whether anything else orders the two.
                let reports = match ordered {
                    true => !common(lock_order, &locks).any(fenced),
                    false => unordered,
                };
                if reports {
                    found.push(Unordered {
                        predicted: Predicted { race, locks },
                        cause: None,
                        flag: None,
                        count: 1,
                        ordered,
                    });
                }
            }
        }
        (found, open)
    }

    /// Compares an access to a scalar with earlier ones, and remembers it.
    fn look(
        &mut self,
        main: &Engine,
        lock_order: &LockOrder,
        party: Party,
        access: &Access,
        key: u64,
        signal: bool,
    ) {
        let Party { thread: me, scope } = party;
        let scalars = match Location::of(key) {
            Location::Global(_) => &mut self.global,
            Location::Shared { cta, .. } => self.shared.entry(cta).or_default(),
        };
        let scalar = scalars.entry((key, access.bytes)).or_default();
        if scalar.signal || signal {
            if !scalar.signal {
                *scalar = Scalar {
                    signal: true,
                    ..Scalar::default()
                };
            }
            return;
        }
        let class = match access.kind {
            OpKind::Load => 0,
            OpKind::Store => 1,
            OpKind::Rmw | OpKind::Reduction => 2,
        };
        // Loads against stores and atomics, stores against all, atomics against plain accesses.
        let against: &[usize] = [&[1, 2][..], &[0, 1, 2], &[0, 1]][class];
        // What an atomic of the same thread has found there is before it, and no accident: the last
        // one to be counted resets the counter.
        let own = scalar.groups[2].iter().filter(|group| {
            let mine = group.warp.warp() == me.warp() && group.lanes >> me.lane & 1 == 1;
            mine && group.counts
        });
        let counted = own.map(|group| group.turn_of(me.lane)).max().unwrap_or(0);
        let held = lock_order.holds(me);
        let reading = self.versions.as_ref().is_some_and(|of| of.is_reading(me));
        let engine = &mut self.engine;
        let mut learned = false;
        for &other in against {
            for at in 0..scalar.groups[other].len() {
                let group = scalar.groups[other][at];
                let them = group.warp.warp();
                let mut others = group.lanes & !(u32::from(them == me.warp()) << me.lane);
                if class == 1 && other == 2 {
                    let later = each(others).filter(|&lane| group.turn_of(lane) > counted);
                    others = later.fold(0, |lanes, lane| lanes | 1 << lane);
                }
                let theirs = Party {
                    thread: them.lane(others.trailing_zeros() % LANES),
                    scope: group.scope,
                };
                if others == 0 || !engine.shape.mutual(theirs, party) {
                    continue;
                }
                let mut behind = engine.behind(me, &group, others);
                if behind != 0 && !learned {
                    learned = true;
                    engine.imply(me.warp(), 1 << me.lane);
                    behind = engine.behind(me, &group, others);
                }
                let lanes = if behind == 0 { others } else { behind };
                let race = race(me, access, &group, lanes, key);
                if held && group.held {
                    // A barrier between the two critical sections, for one.
                    if let Some(unlocked) = &mut self.unlocked {
                        unlocked.imply(me.warp(), 1 << me.lane);
                        let group = Group {
                            time: group.unlocked,
                            ..group
                        };
                        if unlocked.behind(me, &group, others) == 0 {
                            continue;
                        }
                    }
                    let locks = lock_order.locks_of(&race);
                    let passes = |location| lock_order.passes(location);
                    let mut both = common_of(passes, &locks).map(|[before, now]| {
                        covers(&engine.shape, &race, before, true)
                            && covers(&engine.shape, &race, now, false)
                    });
                    let fenced = both.next().map(|first| first || both.any(|fenced| fenced));
                    drop(both);
                    if let Some(fenced) = fenced {
                        match fenced {
                            // How the section under way ends is not known yet.
                            true => scalar.wait_for(&engine.shape, race, behind != 0),
                            false => scalar.keep(Predicted { race, locks }, behind == 0, || None),
                        }
                        continue;
                    }
                }
                if let Some(versions) = &self.versions
                    && (class == 0 && reading || other == 0 && group.reading)
                {
                    let of_lane = |lane: u32| {
                        let race = self::race(me, access, &group, 1 << lane, key);
                        let (reader, writer) = match class {
                            0 => (race.later, race.earlier),
                            _ => (race.earlier, race.later),
                        };
                        let changed = versions.changed(&engine.shape, key, reader, writer);
                        (race, changed)
                    };
                    // A lane for which no version has changed comes first.
                    let all = each(lanes).map(of_lane);
                    let Some((race, changed)) = all.min_by_key(|(_, of)| !of.is_empty()) else {
                        continue;
                    };
                    scalar.guarded.keep(Guarded {
                        race,
                        changed,
                        reads_later: class == 0,
                        unordered: behind != 0,
                        unseen: main.behind(me, &group, others) != 0,
                    });
                    continue;
                }
                if behind != 0 {
                    let locks = lock_order.locks_of(&race);
                    scalar.keep(Predicted { race, locks }, false, || {
                        let by_main = || {
                            main.nearest(&race)
                                .filter(|(cause, _)| *cause == Cause::NoRelease)
                        };
                        let (cause, location) = engine.nearest(&race).or_else(by_main)?;
                        let flag = location.map(|location| main.named(&race, cause, location));
                        Some(Explanation { cause, flag })
                    });
                }
            }
        }
        scalar.turns += u64::from(class == 2);
        let group = Group {
            turn: scalar.turns,
            made: 1 << me.lane,
            counts: access.kind == OpKind::Rmw,
            warp: Id::of(me.warp()),
            lanes: 1 << me.lane,
            time: engine.own(me),
            unlocked: { self.unlocked.as_ref() }.map_or(engine.own(me), |of| of.own(me)),
            site: access.site,
            scope,
            held,
            reading,
        };
        if class == 1 && scalar.groups.iter().map(Vec::len).sum::<usize>() > MANY {
            for groups in &mut scalar.groups {
                groups.retain(|old| {
                    let mine = old.warp.warp() == me.warp() && old.lanes >> me.lane & 1 == 1;
                    let wider = old.scope > scope;
                    mine || wider || old.held || engine.behind(me, old, old.lanes) != 0
                });
            }
        }
        remember(&mut scalar.groups[class], group, class == 2);
    }
}

/// What would have ordered two accesses, and by which flag or counter.
#[derive(Clone, Copy)]
struct Explanation {
    cause: Cause,
    flag: Option<Flag>,
}

impl Scalar {
    /// Nothing is to be reported of it, as far as is known.
    fn is_clean(&self) -> bool {
        self.found.is_empty() && self.open.is_empty() && self.guarded.is_empty()
    }

    /// Enters a conflict, once per pair of sites.
    fn keep(
        &mut self,
        predicted: Predicted,
        ordered: bool,
        explain: impl FnOnce() -> Option<Explanation>,
    ) {
        let sites = |race: &Race| {
            let (a, b) = (race.earlier.site, race.later.site);
            (a.min(b), a.max(b))
        };
        let key = sites(&predicted.race);
        match self
            .found
            .iter_mut()
            .find(|old| sites(&old.predicted.race) == key)
        {
            Some(old) => old.count += 1,
            None => {
                let explanation = explain();
                self.found.push(Unordered {
                    predicted,
                    cause: explanation.map(|of| of.cause),
                    flag: explanation.and_then(|of| of.flag),
                    count: 1,
                    ordered,
                });
            }
        }
    }

    /// Keeps the last pair of accesses of two sites under one lock, for threads that are as near to each other;
    /// nothing else orders it if `unordered`.
    fn wait_for(&mut self, shape: &Shape, race: Race, unordered: bool) {
        let sites = |race: &Race| {
            let (earlier, later) = (race.earlier.thread, race.later.thread);
            let near = [Scope::Cta, Scope::Cluster].map(|of| shape.includes(of, earlier, later));
            (race.earlier.site, race.later.site, later, near)
        };
        self.open.retain(|(old, _)| sites(old) != sites(&race));
        self.open.push((race, unordered));
        if self.open.len() > MOST {
            self.open.remove(0);
        }
    }
}

/// Adds a lane, to a group that says the same of others; it leaves the group of an earlier time. Atomics
/// that were not made one behind the other stay apart.
fn remember(groups: &mut Vec<Group>, new: Group, atomics: bool) {
    let same = |old: &Group| {
        (old.warp, old.site, old.held, old.scope, old.reading)
            == (new.warp, new.site, new.held, new.scope, new.reading)
    };
    let mut joined = false;
    let mut emptied = false;
    for old in groups.iter_mut().filter(|old| same(old)) {
        let next = old.turn + 1 == new.turn && old.made < new.made;
        let times = (old.time, old.unlocked) == (new.time, new.unlocked);
        if times && (next || !atomics) {
            old.lanes |= new.lanes;
            old.made |= new.made;
            old.turn = new.turn;
            joined = true;
        } else {
            old.lanes &= !new.lanes;
            emptied |= old.lanes == 0;
        }
    }
    if emptied {
        groups.retain(|old| old.lanes != 0);
    }
    if !joined {
        if groups.len() >= MOST {
            groups.remove(0);
        }
        groups.push(new);
    }
}

fn race(me: Thread, access: &Access, group: &Group, lanes: u32, key: u64) -> Race {
    let bytes = ((1_u32 << access.bytes.min(WORD as u32)) - 1) << (key % WORD);
    Race {
        later: Side {
            thread: me,
            site: access.site,
        },
        earlier: Side {
            thread: group.warp.lane_of(lanes),
            site: group.site,
        },
        location: Location::of(key / WORD * WORD),
        rule: Rule::Strong,
        by: group.warp.warp(),
        time: group.time,
        bytes: bytes as u8,
        lanes,
        made: Made::default(),
        of_many: false,
        proxies: false,
        order: Observed::default(),
    }
}

/// What both sides held of a lock, for each lock that both did and one of them alone.
fn common<'a>(
    lock_order: &'a LockOrder,
    locks: &'a [Vec<Held>; 2],
) -> impl Iterator<Item = [&'a Held; 2]> {
    common_of(|location| lock_order.is_lock(location), locks)
}

/// The same of words of some kind.
fn common_of(
    is_lock: impl Fn(Location) -> bool,
    [before, now]: &[Vec<Held>; 2],
) -> impl Iterator<Item = [&Held; 2]> {
    { before.iter() }.filter_map(move |held| {
        let other = now.iter().find(|other| other.excludes(held))?;
        is_lock(held.lock).then_some([held, other])
    })
}

/// True when both critical sections have their fences.
fn is_fenced(shape: &Shape, race: &Race, [before, now]: [&Held; 2]) -> bool {
    covers(shape, race, before, true) && covers(shape, race, now, true)
}

/// True when a critical section has been entered, and if `whole` left, in a scope that has both
/// threads.
fn covers(shape: &Shape, race: &Race, held: &Held, whole: bool) -> bool {
    let (a, b) = (race.earlier.thread, race.later.thread);
    let wide = |scope: Option<Scope>| scope.is_some_and(|scope| shape.includes(scope, a, b));
    wide(Some(held.scope)) && wide(held.entry) && (!whole || wide(held.exit))
}

impl Engine {
    /// The lanes of a group that a thread does not come after.
    fn behind(&self, me: Thread, group: &Group, lanes: u32) -> u32 {
        let lanes_of = self.ctas.get(&me.cta).and_then(|cta| cta.known(me.warp));
        let Some(mine) = lanes_of else {
            return lanes;
        };
        let times = &mine.view(me.lane).times;
        let behind = times.unordered(me.warp(), group.warp.warp(), lanes, group.time) & lanes;
        match group.warp.warp() == me.warp() {
            true => behind & !(1 << me.lane),
            false => behind,
        }
    }

    /// The last release fences of a thread.
    fn fences(&self, me: Thread) -> &[Fence] {
        let lanes = self.ctas.get(&me.cta).and_then(|cta| cta.known(me.warp));
        lanes.map_or(&[], |lanes| &lanes.view(me.lane).fences)
    }

    /// A thread's own time.
    fn own(&self, me: Thread) -> Time {
        let lanes = self.ctas.get(&me.cta).and_then(|cta| cta.known(me.warp));
        lanes.map_or(0, |lanes| lanes.view(me.lane).times.own)
    }
}
