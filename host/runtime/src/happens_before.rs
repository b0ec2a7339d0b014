//! Happens-before over what the simulated device does, or a journal says; no shadow cell involved.

mod barriers;
mod fences;
mod journaled;
mod lifetimes;
mod mbarrier;
mod polls;
mod swaps;
mod tracing;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use events::{AccessKind, Bytes, Exchange, Executing, Observer, Updated};
use ptx::ast::Space;
use ptx::isa::SyncOp;
use shadow::hb::{
    Access, Active, Arrival, Atomics, Completion, Engine, Enough, FenceOrder, Issue, LANES,
    Launched, Location, LockOrder, MemoryOrder, OpKind, Operation, Rule, Shape, Span, Strong,
    Thread, Warp,
};

use self::barriers::Barriers;
pub(crate) use self::barriers::Unordered;
use self::lifetimes::Lifetimes;
use self::polls::{Orders, Polls};
use crate::between::Between;
use crate::findings::{Doubts, Findings, Misused};
use crate::footprint_recorder::FootprintRecorder;
use crate::grid::Arrivals;
use crate::instructions::{Instructions, Meaning};
use crate::locking;
use crate::options::Model;
use crate::pairs::{Class, Open, Pairs};
use crate::sides::{self, Sides, at, in_shared};
use crate::streams::At;
use crate::traced::{EventKind, TraceEvent};
use crate::values::Values;

/// Judges one launch.
pub struct HappensBefore {
    instructions: Arc<Instructions>,
    shape: Shape,
    model: Option<Model>,
    /// It receives `fence.sc`s like other events; `order` takes them in the order of this run.
    engine: Engine,
    order: FenceOrder,
    lock_order: LockOrder,
    /// Looks for unordered strong conflicts, where the model reports them and there may be any.
    strong: Option<Strong>,
    /// Orders threads by barriers alone, where somebody asks.
    barriers: Option<Barriers>,
    /// [`Observer::exchanged`] is called.
    knows_swaps: bool,
    pairs: Pairs,
    values: Values,
    /// Races whose values are not known before the access has been made.
    open: Vec<Open>,
    /// The event received last is the program's own, and not of a check.
    from_program: bool,
    misuses: BTreeMap<Misused, (Thread, u64)>,
    lifetimes: Option<Lifetimes>,
    /// What a journal leaves open, and what it says of looks.
    doubts: Doubts,
    polls: Polls,
    /// The next access is an atomic that has changed nothing.
    idle: bool,
    grid: Arrivals,
    footprints: Option<FootprintRecorder>,
    /// By site: no race of the access is possible, so the engine need not know of it.
    proved: Vec<bool>,
    /// What comes before each request to the device runtime.
    launched: Vec<Launched>,
    /// What the engine has received, for [`Self::keep_all`].
    traced: Option<Vec<TraceEvent>>,
    /// What happens between two accesses, for [`Self::follow`].
    between: Option<Box<Between>>,
    /// Bytes of a granule of global memory and of shared memory, for [`Self::earlier`].
    pub(crate) granules: [u32; 2],
}

impl HappensBefore {
    pub(crate) fn new(instructions: Arc<Instructions>, shape: Shape, model: Option<Model>) -> Self {
        let wanted = model != Some(Model::Ptx) && instructions.stores_strongly;
        Self {
            strong: wanted.then(|| Strong::new(shape, instructions.looks)),
            barriers: None,
            knows_swaps: true,
            instructions,
            shape,
            model,
            engine: Engine::new(shape),
            order: FenceOrder::default(),
            lock_order: LockOrder::new(model == Some(Model::Scoped)),
            pairs: Pairs::default(),
            values: Values::default(),
            open: Vec::new(),
            from_program: false,
            misuses: BTreeMap::new(),
            lifetimes: Lifetimes::of(&shape),
            doubts: Doubts::default(),
            polls: Polls::default(),
            idle: false,
            grid: Arrivals::default(),
            footprints: None,
            proved: Vec::new(),
            launched: Vec::new(),
            traced: None,
            between: None,
            granules: [4; 2],
        }
    }

    /// Keeps what the launch does at its position among the work of all streams, if others may care, or what it does
    /// outside of the device's own memory, if that is given.
    pub fn at_position(mut self, at: &At, device: Option<Range<u64>>) -> Self {
        self.footprints = FootprintRecorder::at_position(at, &self.instructions, device);
        self
    }

    /// Leaves out the weak accesses whose instructions are at these offsets: no race of theirs is possible.
    pub(crate) fn without(mut self, offsets: impl Iterator<Item = u32>) -> Self {
        for offset in offsets {
            let Some(Meaning {
                access: Some(access),
                site,
                ..
            }) = self.instructions.at(offset)
            else {
                continue;
            };
            if access.order.scope().is_none() && access.kind != OpKind::Rmw {
                let site = site as usize;
                let known = self.proved.len().max(site + 1);
                self.proved.resize(known, false);
                self.proved[site] = true;
            }
        }
        self
    }

    /// Whether an instruction is one of the program's that means something to it.
    pub(crate) fn knows(&self, threads: Executing) -> bool {
        self.meaning(threads).is_some()
    }

    /// What it has found.
    pub fn finish(mut self) -> Findings {
        let strong = self.strong.take().map(|of| of.finish(&self.lock_order));
        let (strong, under_versions) = strong.unwrap_or_default();
        for found in strong {
            self.pairs.keep_strong(found);
        }
        let (lock_order, instructions) = (&self.lock_order, &self.instructions);
        let found = locking::sort_out(self.pairs.found, lock_order, instructions, self.model);
        Findings {
            stats: Some(self.engine.stats()),
            instructions: self.instructions,
            found,
            dropped: self.pairs.dropped,
            misuses: self.misuses,
            doubts: self.doubts,
            under_versions,
            unordered_by_barriers: self.barriers.map(Barriers::finish).unwrap_or_default(),
            touched: self.footprints.map(FootprintRecorder::finish),
            explored: Vec::new(),
            launcher: match self.launched.is_empty() {
                true => None,
                false => Some((Box::new(self.engine), self.launched)),
            },
        }
    }

    /// A weak store that has been recorded was made before or after strong accesses to the same bytes,
    /// and who has observed what hangs on it.
    pub(crate) fn overtaken(&mut self, threads: Executing) {
        let meaning = self.meaning(threads);
        self.doubts.overtaken.extend(meaning.map(|of| of.site));
    }

    /// So many events were not recorded.
    pub(crate) fn miss(&mut self, count: u64) {
        self.pairs.dropped += count;
    }

    fn with(&mut self, event: impl Fn(&mut Engine)) {
        event(&mut self.engine);
        self.order.forward(&event);
        if let Some(strong) = &mut self.strong {
            strong.forward(&event);
        }
        if let Some(barriers) = &mut self.barriers {
            event(&mut barriers.engine);
        }
        self.lock_order.forward(event);
    }

    /// Forwards a barrier that lanes come to, or go on after.
    fn barrier(&mut self, threads: Executing, lanes: u32, event: impl Fn(&mut Engine)) {
        self.have_found(threads);
        event(&mut self.engine);
        self.order.forward(&event);
        if let Some(strong) = &mut self.strong {
            strong.barrier(warp(threads), lanes, &event);
        }
        if let Some(barriers) = &mut self.barriers {
            event(&mut barriers.engine);
        }
        self.lock_order.barrier(warp(threads), lanes, event);
    }

    /// The access that an instruction is, as it is written.
    fn written(&self, threads: Executing, bytes: u32) -> Option<Access> {
        let mut access = self.meaning(threads)?.access?;
        if access.bytes == 0 {
            access.bytes = bytes;
        }
        Some(access)
    }

    /// The same access under the model that was asked for.
    fn under_model(&self, mut access: Access) -> Access {
        if self.model == Some(Model::Scoped) && matches!(access.kind, OpKind::Load | OpKind::Rmw) {
            // What a strong read observes it acquires.
            access.order = match access.order {
                MemoryOrder::Relaxed(scope) => MemoryOrder::Acquire(scope),
                MemoryOrder::Release(scope) => MemoryOrder::AcqRel(scope),
                other => other,
            };
        }
        access
    }

    /// What is received now is the program's own.
    fn stamp(&mut self) {
        self.open.clear();
        self.from_program = true;
        self.engine.stamp(self.values.next());
    }

    /// An access has been made: compares what the sides of its races have read or written.
    fn compare_values(&mut self, read: &dyn Fn(Space, u64) -> Option<u32>) {
        let shape = self.shape;
        self.lock_order.made(|of| sides::value(&shape, of, read));
        let Some(Open { race, .. }) = self.open.first() else {
            return;
        };
        let cta = race.later.thread.cta;
        let read = |location| {
            let (space, address) = sides::address(&shape, cta, location)?;
            read(space, address)
        };
        let sides = Sides {
            instructions: &self.instructions,
            values: &self.values,
            stamp: self.values.last(),
            read: &read,
        };
        for open in &self.open {
            self.pairs.settle(open, &sides);
        }
        let mixed = self.open.iter().filter(|open| sides.is_mixed(&open.race));
        let mixed: Vec<Location> = mixed.map(|open| open.race.location).collect();
        for (location, now) in mixed.iter().filter_map(|&at| Some((at, read(at)?))) {
            self.values.mixed(location, now);
        }
        self.open.clear();
        self.pairs
            .explain(&self.engine, &self.lock_order, &self.instructions);
    }

    fn meaning(&self, threads: Executing) -> Option<Meaning> {
        self.instructions.at(threads.offset)
    }

    fn shared(&self, threads: Executing, address: u64) -> Location {
        in_shared(&self.shape, threads.cta, address)
    }

    fn location(&self, threads: Executing, at: Bytes) -> Option<Location> {
        match at.space {
            Space::Shared | Space::SharedCluster => Some(self.shared(threads, at.address)),
            Space::Global => Some(Location::Global(at.address)),
            _ => None,
        }
    }
}

/// The lanes of a mask, lowest first.
pub(crate) fn each(lanes: u32) -> impl Iterator<Item = u32> {
    (0..LANES).filter(move |lane| lanes >> lane & 1 == 1)
}

fn warp(threads: Executing) -> Warp {
    Warp {
        cta: threads.cta,
        warp: threads.warp,
    }
}

fn active(threads: Executing) -> Active {
    Active {
        warp: warp(threads),
        lanes: threads.lanes,
    }
}

impl Observer for HappensBefore {
    fn access(
        &mut self,
        threads: Executing,
        kind: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        let wanted = self.follows(space);
        if !wanted && kind == AccessKind::Load {
            return;
        }
        self.from_program = false;
        let Some(meaning) = self.meaning(threads) else {
            return;
        };
        if let Some(barriers) = &mut self.barriers {
            barriers.together = barriers.warp_synchronous.then_some(threads);
        }
        self.have_found(threads);
        if self.proved.get(meaning.site as usize) == Some(&true) {
            if let (Some(access), Some(footprints)) = (meaning.access, &mut self.footprints) {
                footprints.access(threads, space, &access, addresses);
            }
            return;
        }
        self.stamp();
        let written = self.written(threads, bytes).filter(|_| wanted);
        let Some(written) = written else {
            return;
        };
        let access = self.under_model(written);
        if let Some(footprints) = &mut self.footprints {
            match meaning.grid {
                None => footprints.access(threads, space, &access, addresses),
                Some(_) => footprints.learns(threads),
            }
        }
        let shape = self.shape;
        let step = meaning
            .grid
            .map_or(0, |part| self.grid.step(threads.cta, part));
        let location = |lane: u32| {
            at(
                &shape,
                threads.cta,
                space,
                addresses[lane as usize].wrapping_sub(step),
            )
        };
        self.exists(threads, written.order.scope().is_none(), location);
        let reads = matches!(written.kind, OpKind::Load | OpKind::Rmw);
        if let (Some(lifetimes), true, Some(_)) =
            (&mut self.lifetimes, reads, written.order.scope())
        {
            lifetimes.hear(&mut self.engine, warp(threads), threads.lanes);
        }
        if !self.knows_swaps && reads && written.order.scope().is_some() {
            let first = each(threads.lanes).next().map(location);
            first
                .into_iter()
                .for_each(|at| self.doubts.reads_strongly(at));
        }
        let atomics = meaning.atomics();
        if atomics != Atomics::Any {
            self.atomics(atomics);
        }
        self.hear(threads, || EventKind::Access {
            access: written,
            locations: each(threads.lanes).map(location).collect(),
        });
        if let Some(barriers) = &mut self.barriers {
            barriers.access(active(threads), &written, location);
        }
        let of = self.use_of(&meaning);
        // What becomes of them is received when their values are.
        let values_later = meaning.swaps || self.follows_updates(&meaning);
        let (pairs, lock_order, engine) = (&mut self.pairs, &mut self.lock_order, &mut self.engine);
        if let Some(strong) = &mut self.strong {
            strong.access(engine, lock_order, active(threads), &written, of, location);
        }
        if meaning.swaps {
            lock_order.before(engine, threads.lanes, location);
        }
        let doubts = match self.knows_swaps {
            true => Vec::new(),
            false => {
                let fences = &mut self.order;
                let orders = Orders { engine, fences };
                self.polls.met(orders, active(threads), &written, location)
            }
        };
        let (open, instructions) = (&mut self.open, &self.instructions);
        let mut races = Vec::new();
        engine.access_until(warp(threads), threads.lanes, &access, location, |race| {
            races.push(race);
            match self.order.may_order(&race) {
                true => Enough::Never,
                false => pairs.enough(&race),
            }
        });
        for doubt in doubts {
            let undecided = doubt.is_undecided(&races, |race| self.doubts.doubt(race));
            self.doubts.undecided += u64::from(undecided);
        }
        let loads = |site| {
            let access: Option<Access> = instructions.access(site);
            access.is_some_and(|access| access.kind == OpKind::Load)
        };
        let idle = races.iter().filter(|_| self.idle);
        for race in idle.filter(|race| loads(race.earlier.site)) {
            if self.polls.may_follow(engine, race, &written) {
                self.doubts.doubt(race);
                self.doubts.undecided += 1;
            }
        }
        for mut race in races {
            self.doubts.found(instructions, &race);
            let class = fences::class(&mut self.order, engine, &mut race);
            let stores = sides::are_stores(instructions, &race);
            open.extend(pairs.keep(class, race, stores));
        }
        let looks = !self.knows_swaps && (self.idle || written.kind == OpKind::Load);
        if looks {
            let polls = &mut self.polls;
            polls.look(engine, active(threads), &written, self.idle, location);
        }
        self.order.access(active(threads), &access, location);
        pairs.explain(engine, lock_order, instructions);
        if meaning.waits && meaning.grid.is_none() {
            pairs.waited(engine, warp(threads), threads.lanes);
        }
        if !values_later {
            lock_order.access(engine, active(threads), &access, location, |predicted| {
                pairs.keep_predicted(Class::LockOrder, predicted, None, None);
            });
        }
        if atomics != Atomics::Any {
            self.atomics(Atomics::Any);
        }
    }

    fn exchanged(
        &mut self,
        threads: Executing,
        space: Space,
        addresses: &[u64; 32],
        exchange: Exchange<'_>,
    ) {
        self.swapped(threads, space, addresses, exchange);
    }

    fn updated(
        &mut self,
        threads: Executing,
        space: Space,
        addresses: &[u64; 32],
        updated: Updated<'_>,
    ) {
        self.counted(threads, space, addresses, updated);
    }

    fn follows(&self, space: Space) -> bool {
        matches!(space, Space::Shared | Space::SharedCluster | Space::Global)
    }

    fn changes(&mut self, threads: Executing, lane: u32, space: Space, address: u64, before: u32) {
        let word = Bytes {
            space,
            address,
            count: 4,
        };
        if let Some(location) = self.location(threads, word).filter(|_| self.from_program) {
            self.values.change(location, lane, before);
        }
    }

    fn accessed(&mut self, read: &dyn Fn(Space, u64) -> Option<u32>) {
        self.compare_values(read);
        self.go_on();
    }

    fn arrive(&mut self, threads: Executing, id: u32, waits: bool) {
        self.comes(threads, id);
        let sync = self.meaning(threads).and_then(|meaning| meaning.sync);
        let counted = matches!(sync, Some(SyncOp::CtaBarrier { count: Some(_), .. }));
        let arrival = Arrival { id, waits, counted };
        self.hear(threads, || EventKind::Arrive { id, waits, counted });
        self.barrier(threads, threads.lanes, |engine| {
            engine.arrive(warp(threads), threads.lanes, arrival);
        });
    }

    fn complete(&mut self, cta: u64, id: u32) {
        let nobody = Executing {
            cta,
            warp: 0,
            offset: u32::MAX,
            lanes: 0,
        };
        self.hear(nobody, || EventKind::Complete { id });
        if let Some(footprints) = &mut self.footprints {
            footprints.complete(cta);
        }
        self.with(|engine| engine.complete(cta, id));
        if let Some(barriers) = &mut self.barriers {
            barriers.complete(cta, id);
        }
    }

    fn warp_barrier(&mut self, threads: Executing) {
        // Lanes that have exited count as having arrived where the whole warp is meant.
        let lanes = match self.meaning(threads) {
            Some(Meaning {
                whole_warp: true, ..
            }) => u32::MAX,
            _ => threads.lanes,
        };
        self.hear(Executing { lanes, ..threads }, || EventKind::WarpBarrier);
        if let Some(footprints) = &mut self.footprints {
            footprints.warp_barrier(Executing { lanes, ..threads });
        }
        self.barrier(threads, lanes, |engine| {
            engine.warp_barrier(warp(threads), lanes)
        });
    }

    fn fence(&mut self, threads: Executing) {
        self.fences(threads);
    }

    fn copies(&mut self, threads: Executing) {
        let Some(meaning) = self.meaning(threads) else {
            return;
        };
        match meaning.sync {
            Some(SyncOp::CommitGroup) => {
                self.hear(threads, || EventKind::Commit {
                    bulk: meaning.proxy,
                });
                self.with(|engine| engine.commit(warp(threads), threads.lanes, meaning.proxy));
            }
            _ => {
                self.hear(threads, || EventKind::Wait(meaning.waited));
                self.with(|engine| engine.wait(warp(threads), threads.lanes, meaning.waited));
            }
        }
    }

    fn copy(&mut self, threads: Executing, from: Bytes, to: Bytes, mbarrier: Option<u64>) {
        let Some(meaning) = self.meaning(threads) else {
            return;
        };
        if let Some(footprints) = &mut self.footprints {
            footprints.copy(threads, meaning.site, [from, to], meaning.reduces());
        }
        let ends = match mbarrier {
            Some(address) => Completion::Mbarrier(self.shared(threads, address)),
            None => Completion::Group,
        };
        let (Some(source), Some(target)) =
            (self.location(threads, from), self.location(threads, to))
        else {
            return;
        };
        self.stamp();
        // Whoever waits for the copy waits in that block.
        let me = warp(threads).lane(threads.lanes.trailing_zeros());
        for location in [source, target] {
            let lanes = 1 << me.lane;
            self.exists(Executing { lanes, ..threads }, false, |_| location);
        }
        let [from, to] = [(source, from), (target, to)].map(|(location, of)| Span {
            location,
            bytes: of.count,
        });
        self.hear(threads, || EventKind::Copy {
            from,
            to,
            ends,
            bulk: meaning.proxy,
            reduces: meaning.reduces(),
        });
        let pairs = &mut self.pairs;
        let issue = Issue {
            site: meaning.site,
            ends,
            bulk: meaning.proxy,
            reduces: meaning.reduces(),
        };
        let (engine, instructions) = (&mut self.engine, &self.instructions);
        let mut doubts = Vec::new();
        if !self.knows_swaps {
            self.doubts
                .copies(meaning.site, target, issue.reduces.is_some());
            for (kind, Span { location, bytes }) in [(OpKind::Load, from), (OpKind::Store, to)] {
                let access = Access {
                    kind,
                    order: MemoryOrder::Weak,
                    bytes,
                    elements: 1,
                    site: meaning.site,
                };
                let active = Active {
                    warp: me.warp(),
                    lanes: 1 << me.lane,
                };
                let fences = &mut self.order;
                let orders = Orders { engine, fences };
                doubts.extend(self.polls.met(orders, active, &access, |_| location));
            }
        }
        let mut races = Vec::new();
        engine.copy(me, from, to, issue, |race| races.push(race));
        for doubt in doubts {
            let undecided = doubt.is_undecided(&races, |race| self.doubts.doubt(race));
            self.doubts.undecided += u64::from(undecided);
        }
        for mut race in races {
            self.doubts.found(instructions, &race);
            // What the async proxy has written itself it may read.
            let own = instructions.is_copy(race.earlier.site);
            race.proxies &= !own;
            if race.rule != Rule::Proxy || !own {
                let class = fences::class(&mut self.order, engine, &mut race);
                pairs.keep(class, race, false);
            }
        }
        pairs.explain(engine, &self.lock_order, &self.instructions);
        let event = |engine: &mut Engine| engine.copy(me, from, to, issue, |_| ());
        self.order.forward(event);
        if let Some(barriers) = &mut self.barriers {
            if let Completion::Mbarrier(at) = ends {
                barriers.operates(me, meaning.site, at, Operation::Complete);
            }
            barriers.copy(me, from, to, issue);
        }
        self.lock_order.forward(event);
    }

    fn dependency(&mut self, threads: Executing) {
        let sync = self.meaning(threads).and_then(|meaning| meaning.sync);
        if let (Some(footprints), Some(SyncOp::GridDependency { wait })) =
            (&mut self.footprints, sync)
        {
            footprints.dependency(threads, wait);
        }
    }

    fn mbarrier(&mut self, threads: Executing, address: u64, over: bool) {
        if let Some(footprints) = &mut self.footprints {
            footprints.learns(threads);
        }
        self.operates(threads, address, over);
    }

    fn mbarrier_complete(&mut self, threads: Executing, address: u64) {
        let at = self.shared(threads, address);
        self.hear(threads, || EventKind::MbarrierComplete { at });
        self.with(|engine| engine.mbarrier_complete(at));
        if let Some(barriers) = &mut self.barriers {
            barriers.ends(at);
        }
    }

    fn cluster_arrive(&mut self, threads: Executing, phase: u64) {
        let sync = self.meaning(threads).and_then(|meaning| meaning.sync);
        let relaxed = matches!(sync, Some(SyncOp::ClusterBarrier { relaxed: true, .. }));
        self.hear(threads, || EventKind::ClusterArrive { phase, relaxed });
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.arrive(warp(threads), threads.lanes, phase);
        }
        self.barrier(threads, threads.lanes, |engine| {
            engine.cluster_arrive(warp(threads), threads.lanes, phase, relaxed);
        });
    }

    fn cluster_wait(&mut self, threads: Executing, phase: u64) {
        self.hear(threads, || EventKind::ClusterWait { phase });
        if let Some(footprints) = &mut self.footprints {
            footprints.learns(threads);
        }
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.wait(&mut self.engine, warp(threads), threads.lanes, phase);
        }
        self.barrier(threads, threads.lanes, |engine| {
            engine.cluster_wait(warp(threads), threads.lanes, phase);
        });
    }

    fn allocated(&mut self, address: u64, bytes: u64) {
        if let Some(footprints) = &mut self.footprints {
            footprints.allocated(address, bytes);
        }
        if let Some(strong) = &mut self.strong {
            strong.allocated(address, bytes);
        }
        self.with(|engine| engine.allocated(address, bytes));
    }

    fn released(&mut self, address: u64, bytes: u64) {
        if let Some(footprints) = &mut self.footprints {
            footprints.freed(address, bytes);
        }
    }

    fn requested(&mut self, threads: Executing, number: usize) {
        let me = warp(threads).lane(threads.lanes.trailing_zeros());
        let known = self.engine.launches(me);
        debug_assert_eq!(number, self.launched.len());
        self.launched.push(known);
    }

    fn misuse(&mut self, threads: Executing, misuse: events::Misuse, offset: u32) {
        let site = |offset| self.instructions.at(offset).map(|meaning| meaning.site);
        let Some(here) = site(threads.offset) else {
            return;
        };
        let key = Misused {
            misuse,
            before: site(offset).unwrap_or(here),
            now: here,
        };
        let me = warp(threads).lane(threads.lanes.trailing_zeros());
        self.misuses.entry(key).or_insert((me, 0)).1 += 1;
    }

    fn exit(&mut self, threads: Executing) {
        self.hear(threads, || EventKind::Exit);
        self.departs(threads);
        self.engine.exit(warp(threads), threads.lanes);
        if let Some(strong) = &mut self.strong {
            strong.exit(warp(threads), threads.lanes);
        }
        self.order
            .forward(|engine| engine.exit(warp(threads), threads.lanes));
        if let Some(barriers) = &mut self.barriers {
            barriers.exit(threads, self.shape.threads);
        }
        self.lock_order.exit(warp(threads), threads.lanes);
    }
}
