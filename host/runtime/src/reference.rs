//! The reference oracle: happens-before over what the simulated device does, no shadow cell involved.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ptx::ast::{Instruction, Module, Operand, Space};
use ptx::isa::{self, FenceSemantics, MbarrierOp, MemoryKind, MemoryOp, Semantics, SyncOp};
use shadow::hb::{
    Access, Arrival, Completion, Engine, FenceKind, Kind, LANES, Order, Place, Race, Rule, Scope,
    Shape, Stats, Thread, Warp,
};
use simt::{AccessKind, Bytes, Executing, Observer, SHARED_STEP};

use crate::allocations::Allocations;
use crate::log::{self, Misuse};
use crate::{checker, names};

/// Pairs of sites kept per launch.
const PAIRS: usize = 4096;

/// What the instructions of a module mean to the oracle, by their byte offset in the loaded text.
#[derive(Debug, Default)]
pub(crate) struct Instructions {
    by_offset: HashMap<u32, Meaning>,
    /// The accesses, numbered as [`Access::site`] counts them.
    sites: Vec<log::Site>,
}

/// What one instruction means.
#[derive(Clone, Copy, Debug)]
struct Meaning {
    access: Option<Access>,
    site: u32,
    sync: Option<SyncOp>,
    /// A barrier of all lanes.
    whole_warp: bool,
    /// For a wait: how many groups may be left; none for all copies.
    left: Option<u32>,
}

impl Instructions {
    /// Reads the original module. `loaded` turns a byte offset in its text into one in the text that
    /// was loaded.
    pub(crate) fn new(module: &Module, loaded: impl Fn(u32) -> u32) -> Self {
        let mut all = Self::default();
        for function in module.functions() {
            let Some(body) = &function.body else {
                continue;
            };
            for (_, instruction) in body.instructions() {
                let memory = isa::memory(instruction);
                let sync = isa::sync(instruction);
                // Shuffles, votes and the like can be misused.
                let exchange = instruction.has("sync");
                if memory.is_none() && sync.is_none() && !exchange {
                    continue;
                }
                let site = all.sites.len() as u32;
                let text = module.slice(instruction.span);
                let frames = instruction
                    .loc
                    .map(|loc| module.inline_frames(body, loc))
                    .unwrap_or_default();
                all.sites.push(log::Site {
                    id: site,
                    function: function.name.to_string(),
                    text: text.split_whitespace().collect::<Vec<_>>().join(" "),
                    ptx_line: module.line_column(instruction.span.start).0,
                    frames: frames.iter().map(names::frame).collect(),
                    ..memory
                        .as_ref()
                        .map_or_else(names::barrier, names::operation)
                });
                let meaning = Meaning {
                    access: memory.as_ref().and_then(|op| access(op, site)),
                    site,
                    sync,
                    whole_warp: isa::sync::is_full_warp_barrier(instruction),
                    left: left(instruction),
                };
                all.by_offset
                    .insert(loaded(instruction.span.start), meaning);
            }
        }
        all
    }

    /// An access by its number.
    pub(crate) fn site(&self, number: u32) -> Option<&log::Site> {
        self.sites.get(number as usize)
    }
}

/// `cp.async.wait_group n` leaves `n` groups, `wait_all` none.
fn left(instruction: &Instruction) -> Option<u32> {
    match instruction.operands.first() {
        Some(Operand::Int(count)) if instruction.has("wait_group") => u32::try_from(*count).ok(),
        _ => None,
    }
}

fn scope(scope: isa::Scope) -> Scope {
    match scope {
        isa::Scope::Cta => Scope::Cta,
        isa::Scope::Cluster => Scope::Cluster,
        isa::Scope::Gpu => Scope::Gpu,
        isa::Scope::Sys => Scope::Sys,
    }
}

/// The access of an instruction that is one scalar or vector per lane. Of a texture fetch the bytes
/// are not known before it is made, and given as 0.
fn access(op: &MemoryOp, site: u32) -> Option<Access> {
    if op.kind == MemoryKind::Texture {
        return Some(Access {
            kind: Kind::Load,
            order: Order::ReadOnly,
            bytes: 0,
            elements: 1,
            site,
        });
    }
    let kind = match op.kind {
        MemoryKind::Load => Kind::Load,
        MemoryKind::Store => Kind::Store,
        MemoryKind::Rmw => Kind::Rmw,
        MemoryKind::Reduction => Kind::Reduction,
        _ => return None,
    };
    let within = scope(op.scope);
    let order = match op.sem {
        Semantics::Weak if op.nc => Order::ReadOnly,
        Semantics::Weak => Order::Weak,
        Semantics::Relaxed => Order::Relaxed(within),
        Semantics::Acquire => Order::Acquire(within),
        Semantics::Release => Order::Release(within),
        Semantics::AcqRel => Order::AcqRel(within),
        Semantics::Volatile | Semantics::Mmio => Order::Relaxed(Scope::Sys),
    };
    (op.bytes_per_element > 0).then_some(Access {
        kind,
        order,
        bytes: op.bytes_per_element,
        elements: u32::from(op.vector.max(1)),
        site,
    })
}

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
    /// Pairs of sites that raced, with the first witness and how often.
    pub(crate) found: Vec<(Race, u64)>,
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
        let races = self.found.iter().map(|(race, _)| race);
        let pairs = races.map(|race| [race.earlier.site, race.later.site]);
        let misused = self.misuses.keys().map(|&(_, a, b)| [a, b]);
        pairs
            .chain(misused)
            .flatten()
            .map(|number| (number, self.instructions.site(number)))
    }
}

/// Judges one launch.
pub(crate) struct Reference {
    instructions: Arc<Instructions>,
    scrutiny: Scrutiny,
    shape: Shape,
    /// None where no accesses are looked at.
    engine: Option<Engine>,
    pairs: Pairs,
    misuses: BTreeMap<(Misuse, u32, u32), (Thread, u64)>,
}

/// Races by pair of sites.
#[derive(Debug, Default)]
struct Pairs {
    found: Vec<(Race, u64)>,
    /// Where in `found` a pair is.
    index: HashMap<(u32, u32, bool), usize>,
    dropped: u64,
}

impl Pairs {
    /// Counts a race, and keeps it if it is the first of its pair, or says more than that.
    fn keep(&mut self, race: Race) {
        let (a, b) = (race.earlier.site, race.later.site);
        let key = (a.min(b), a.max(b), is_shared(race.place));
        let apart = |race: &Race| {
            let (a, b) = (race.earlier.thread, race.later.thread);
            (a.cta != b.cta, a.warp != b.warp)
        };
        match self.index.get(&key) {
            Some(&at) => {
                self.found[at].1 += 1;
                // What orders threads that are further apart orders the others too.
                if apart(&race) > apart(&self.found[at].0) {
                    self.found[at].0 = race;
                }
            }
            None if self.found.len() < PAIRS => {
                self.index.insert(key, self.found.len());
                self.found.push((race, 1));
            }
            None => self.dropped += 1,
        }
    }
}

fn is_shared(place: Place) -> bool {
    matches!(place, Place::Shared { .. })
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

/// A race in the log's terms; `named` are the log's numbers of the sites.
pub(crate) fn race(
    launch: &log::Launch,
    race: &Race,
    count: u64,
    named: &HashMap<u32, u32>,
    allocations: &Allocations,
) -> log::Race {
    let (now, before) = (race.later.thread, race.earlier.thread);
    let site = |number: u32| named.get(&number).copied().unwrap_or(0);
    let indices = |of: Thread| {
        let cta = u32::try_from(of.cta).unwrap_or(u32::MAX);
        checker::thread(launch, cta, of.warp * LANES + of.lane)
    };
    let (space, address) = match race.place {
        Place::Global(address) => (log::Space::Global, address),
        Place::Shared { offset, .. } => (log::Space::Shared, u64::from(offset)),
    };
    log::Race {
        launch: launch.launch,
        decided: true,
        level: match () {
            () if now.cta != before.cta => log::Level::Grid,
            () if now.warp != before.warp => log::Level::Cta,
            () => log::Level::Warp,
        },
        space,
        why: match race.rule {
            Rule::Unordered | Rule::Scope => log::Why::Unordered,
            Rule::Overlap => log::Why::Overlap,
            Rule::ReadOnly => log::Why::ReadOnly,
            Rule::Asynchronous => log::Why::Asynchronous,
        },
        site: site(race.later.site),
        previous_site: site(race.earlier.site),
        count,
        address,
        allocation: match space {
            log::Space::Global => allocations.find(address).cloned(),
            log::Space::Shared => None,
        },
        thread: indices(now),
        previous_thread: Some(indices(before)),
        previous_block: Some(indices(before).block),
    }
}

/// A misuse in the log's terms.
pub(crate) fn misuse(
    launch: &log::Launch,
    (misuse, before, now): (Misuse, u32, u32),
    (who, count): (Thread, u64),
    named: &HashMap<u32, u32>,
) -> log::Race {
    let site = |number: u32| named.get(&number).copied().unwrap_or(0);
    let cta = u32::try_from(who.cta).unwrap_or(u32::MAX);
    let thread = checker::thread(launch, cta, who.warp * LANES + who.lane);
    log::Race {
        launch: launch.launch,
        decided: true,
        level: log::Level::Cta,
        why: log::Why::Misuse(misuse),
        site: site(now),
        previous_site: site(before),
        count,
        thread,
        previous_block: Some(thread.block),
        ..log::Race::default()
    }
}

impl Reference {
    pub(crate) fn new(instructions: Arc<Instructions>, scrutiny: Scrutiny, shape: Shape) -> Self {
        Self {
            instructions,
            scrutiny,
            shape,
            engine: (scrutiny != Scrutiny::Barriers).then(|| Engine::new(shape)),
            pairs: Pairs::default(),
            misuses: BTreeMap::new(),
        }
    }

    pub(crate) fn finish(self) -> Judged {
        Judged {
            stats: self.engine.as_ref().map(Engine::stats),
            instructions: self.instructions,
            found: self.pairs.found,
            dropped: self.pairs.dropped,
            misuses: self.misuses,
        }
    }

    fn with(&mut self, tell: impl FnOnce(&mut Engine)) {
        if let Some(engine) = &mut self.engine {
            tell(engine);
        }
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
        self.instructions.by_offset.get(&who.offset).copied()
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
        let Some(mut access) = self.meaning(who).and_then(|meaning| meaning.access) else {
            return;
        };
        if access.bytes == 0 {
            access.bytes = bytes;
        }
        let shape = self.shape;
        let place = |lane: u32| match (space, addresses[lane as usize]) {
            (Space::Global, address) => Place::Global(address),
            (_, address) => shared(&shape, who.cta, address),
        };
        let pairs = &mut self.pairs;
        if let Some(engine) = &mut self.engine {
            engine.access(warp(who), who.lanes, &access, place, |race| {
                pairs.keep(race);
            });
        }
    }

    fn arrive(&mut self, who: Executing, id: u32, waits: bool) {
        let sync = self.meaning(who).and_then(|meaning| meaning.sync);
        let counted = matches!(sync, Some(SyncOp::CtaBarrier { count: Some(_), .. }));
        let arrival = Arrival { id, waits, counted };
        self.with(|engine| engine.arrive(warp(who), who.lanes, arrival));
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
        self.with(|engine| engine.warp_barrier(warp(who), lanes));
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
        self.with(|engine| engine.fence(warp(who), who.lanes, kind, scope(within)));
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
                    pairs.keep(race);
                }
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
                self.with(|engine| engine.mbarrier_arrive(me, at, orders, over));
            }
            MbarrierOp::CopyArrive => {
                // It arrives when the thread's copies are complete.
                self.with(|engine| engine.wait(warp(who), who.lanes, None));
                self.with(|engine| engine.mbarrier_arrive(me, at, Some(Scope::Cta), over));
            }
            MbarrierOp::CompleteTx if over => self.with(|engine| engine.mbarrier_complete(at)),
            MbarrierOp::TestWait | MbarrierOp::TryWait if over => {
                self.with(|engine| engine.mbarrier_wait(me, at, orders));
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
        self.with(|engine| engine.cluster_arrive(warp(who), who.lanes, phase, relaxed));
    }

    fn cluster_wait(&mut self, who: Executing, phase: u64) {
        self.with(|engine| engine.cluster_wait(warp(who), who.lanes, phase));
    }

    fn misuse(&mut self, who: Executing, misuse: simt::Misuse, offset: u32) {
        let site = |offset| self.instructions.by_offset.get(&offset).map(|m| m.site);
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
        self.with(|engine| engine.exit(warp(who), who.lanes));
    }
}
