//! The reference oracle: happens-before over what the simulated device does, no shadow cell involved.

use std::collections::HashMap;
use std::sync::Arc;

use ptx::ast::{Instruction, Module, Operand, Space};
use ptx::isa::{self, FenceSemantics, MbarrierOp, MemoryKind, MemoryOp, Semantics, SyncOp};
use shadow::hb::{
    Access, Arrival, Completion, Engine, FenceKind, Kind, LANES, Order, Place, Race, Rule, Scope,
    Shape, Stats, Thread, Warp,
};
use simt::{AccessKind, Bytes, Executing, Observer, SHARED_STEP};

use crate::allocations::Allocations;
use crate::{checker, log, names};

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
                if memory.is_none() && sync.is_none() {
                    continue;
                }
                let site = all.sites.len() as u32;
                if let Some(op) = &memory {
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
                        ..names::operation(op)
                    });
                }
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

/// The access of an instruction that is one scalar or vector per lane.
fn access(op: &MemoryOp, site: u32) -> Option<Access> {
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

/// Which spaces the oracle looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scrutiny {
    /// Everything.
    Everything,
    /// Shared memory; the cells look after global memory.
    SharedOnly,
}

/// What the oracle has to say about a launch.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) instructions: Arc<Instructions>,
    /// Pairs of sites that raced, with the first witness and how often.
    pub(crate) found: Vec<(Race, u64)>,
    /// Pairs that found no room.
    pub(crate) dropped: u64,
    /// What the engine has counted.
    stats: Stats,
}

impl Judged {
    pub(crate) fn clocks(&self) -> log::Clocks {
        log::Clocks {
            accesses: self.stats.accesses,
            synchronisations: self.stats.synchronisations,
            warps: self.stats.warps,
            left_converged: self.stats.left_converged,
            sparse: self.stats.sparse,
        }
    }
}

/// Judges one launch.
pub(crate) struct Reference {
    instructions: Arc<Instructions>,
    scrutiny: Scrutiny,
    engine: Engine,
    pairs: Pairs,
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

impl Reference {
    pub(crate) fn new(instructions: Arc<Instructions>, scrutiny: Scrutiny, shape: Shape) -> Self {
        Self {
            instructions,
            scrutiny,
            engine: Engine::new(shape),
            pairs: Pairs::default(),
        }
    }

    pub(crate) fn finish(self) -> Judged {
        Judged {
            stats: self.engine.stats(),
            instructions: self.instructions,
            found: self.pairs.found,
            dropped: self.pairs.dropped,
        }
    }

    fn wanted(&self, space: Space) -> bool {
        matches!(
            (self.scrutiny, space),
            (_, Space::Shared | Space::SharedCluster) | (Scrutiny::Everything, Space::Global)
        )
    }

    fn meaning(&self, who: Executing) -> Option<Meaning> {
        self.instructions.by_offset.get(&who.offset).copied()
    }

    fn shared(&self, who: Executing, address: u64) -> Place {
        shared(self.engine.shape(), who.cta, address)
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
        _bytes: u32,
    ) {
        if !self.wanted(space) {
            return;
        }
        let Some(access) = self.meaning(who).and_then(|meaning| meaning.access) else {
            return;
        };
        let shape = *self.engine.shape();
        let place = |lane: u32| match (space, addresses[lane as usize]) {
            (Space::Global, address) => Place::Global(address),
            (_, address) => shared(&shape, who.cta, address),
        };
        let pairs = &mut self.pairs;
        self.engine
            .access(warp(who), who.lanes, &access, place, |race| {
                pairs.keep(race);
            });
    }

    fn arrive(&mut self, who: Executing, id: u32, waits: bool) {
        let sync = self.meaning(who).and_then(|meaning| meaning.sync);
        let counted = matches!(sync, Some(SyncOp::CtaBarrier { count: Some(_), .. }));
        let arrival = Arrival { id, waits, counted };
        self.engine.arrive(warp(who), who.lanes, arrival);
    }

    fn complete(&mut self, cta: u64, id: u32) {
        self.engine.complete(cta, id);
    }

    fn warp_barrier(&mut self, who: Executing) {
        // Lanes that have exited count as having arrived where the whole warp is meant.
        let lanes = match self.meaning(who) {
            Some(Meaning {
                whole_warp: true, ..
            }) => u32::MAX,
            _ => who.lanes,
        };
        self.engine.warp_barrier(warp(who), lanes);
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
        self.engine.fence(warp(who), who.lanes, kind, scope(within));
    }

    fn copies(&mut self, who: Executing) {
        let Some(meaning) = self.meaning(who) else {
            return;
        };
        match meaning.sync {
            Some(SyncOp::CommitGroup) => self.engine.commit(warp(who), who.lanes),
            _ => self.engine.wait(warp(who), who.lanes, meaning.left),
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
        self.engine
            .copy(me, sides.0, sides.1, (meaning.site, ends), |race| {
                if everything || is_shared(race.place) {
                    pairs.keep(race);
                }
            });
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
            MbarrierOp::Init | MbarrierOp::Inval => self.engine.mbarrier_init(at),
            MbarrierOp::Arrive | MbarrierOp::ArriveDrop => {
                self.engine.mbarrier_arrive(me, at, orders, over);
            }
            MbarrierOp::CopyArrive => {
                // It arrives when the thread's copies are complete.
                self.engine.wait(warp(who), who.lanes, None);
                self.engine.mbarrier_arrive(me, at, Some(Scope::Cta), over);
            }
            MbarrierOp::CompleteTx if over => self.engine.mbarrier_complete(at),
            MbarrierOp::TestWait | MbarrierOp::TryWait if over => {
                self.engine.mbarrier_wait(me, at, orders);
            }
            _ => {}
        }
    }

    fn mbarrier_complete(&mut self, who: Executing, address: u64) {
        let at = self.shared(who, address);
        self.engine.mbarrier_complete(at);
    }

    fn cluster_arrive(&mut self, who: Executing, phase: u64) {
        let sync = self.meaning(who).and_then(|meaning| meaning.sync);
        let relaxed = matches!(sync, Some(SyncOp::ClusterBarrier { relaxed: true, .. }));
        self.engine
            .cluster_arrive(warp(who), who.lanes, phase, relaxed);
    }

    fn cluster_wait(&mut self, who: Executing, phase: u64) {
        self.engine.cluster_wait(warp(who), who.lanes, phase);
    }

    fn exit(&mut self, who: Executing) {
        self.engine.exit(warp(who), who.lanes);
    }
}
