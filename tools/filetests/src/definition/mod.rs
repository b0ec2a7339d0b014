//! Races by their definition, over everything that happened in a run: the obvious way.
//!
//! Every event of every thread is a node, and of every node the set of all nodes that come before it is
//! kept: no clocks, no compaction, no cells. The words are those of the PTX ISA, "Memory Consistency
//! Model": release and acquire patterns, observation order, base causality order, causality order.
//! It takes room with the square of the run's length, so it is for small kernels.
//! * [`order`]: what comes before what.
//! * [`strong`]: strong accesses that are in no order, though PTX gives them a result.
//! * [`locks`]: critical sections.
//! * [`asynchronous`]: asynchronous copies and mbarriers.
//! * [`conflicts`]: which accesses race.
//!
//! What it leaves alone ([`judge`] gives nothing then): `fence.mbarrier_init`, runs that are too long, and, under the scoped
//! model, asynchronous copies, mbarriers and relaxed arrivals at a cluster's barrier.

mod asynchronous;
mod conflicts;
mod locks;
mod order;
mod strong;

use std::collections::BTreeSet;

use runtime::Model;
use runtime::traced::{EventKind, TraceEvent};
use shadow::hb::{Access, FenceKind, LANES, Location, OpKind, Scope};

/// Nodes of a run, at most.
const MOST: usize = 12_000;

/// What the definition says of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The bytes with a data race.
    pub races: BTreeSet<Location>,
    /// The bytes with an unordered strong conflict (docs of the scoped model: "Two verdict classes"). This and
    /// what follows is for the scoped model alone.
    pub strong: BTreeSet<Location>,
    /// Pairs of lines of those conflicts, the smaller first.
    pub strong_lines: BTreeSet<(u32, u32)>,
    /// Pairs of lines that a lock without its fences does not order, and something else does.
    pub open_lines: BTreeSet<(u32, u32)>,
    /// The word of a lock is written otherwise, so that nothing is known of what is accessed under it.
    pub doubtful: bool,
}

/// A launch, as far as it matters.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// CTAs of a cluster, one behind the other.
    pub cluster: u64,
    /// Threads of a CTA.
    pub threads: u32,
    /// Lines of accesses to what some loop waits for, whether or not the run has come there.
    pub waits: &'a BTreeSet<u32>,
    /// Lines that try to take a lock.
    pub takes: &'a BTreeSet<u32>,
    /// Lines that give one back.
    pub gives: &'a BTreeSet<u32>,
    /// Lines of `cp.async.mbarrier.arrive`.
    pub copies_arrive: &'a BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    cta: u64,
    warp: u32,
    lane: u32,
}

/// A thread that does something strong.
#[derive(Clone, Copy, Debug)]
struct Party {
    thread: Thread,
    scope: Scope,
}

fn party(thread: Thread, scope: Scope) -> Party {
    Party { thread, scope }
}

/// What one thread does.
#[derive(Clone, Copy, Debug)]
struct Node {
    thread: Thread,
    line: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Access(Access, Location),
    Fence(FenceKind, Scope),
    /// A point of the thread's order that is no access: an arrival at a barrier or the way on from one, the issue of a copy,
    /// a fence between proxies.
    Point,
}

impl Launch<'_> {
    /// Whether an operation of a thread can order another thread.
    fn includes(&self, scope: Scope, of: Thread, other: Thread) -> bool {
        match scope {
            Scope::Cta => of.cta == other.cta,
            Scope::Cluster => of.cta / self.cluster == other.cta / self.cluster,
            Scope::Gpu | Scope::Sys => true,
        }
    }

    /// Whether each of two operations includes the other's thread.
    fn mutual(&self, a: Party, b: Party) -> bool {
        self.includes(a.scope, a.thread, b.thread) && self.includes(b.scope, b.thread, a.thread)
    }
}

/// Judges a run under a memory model, by what the engine has received of it.
pub fn judge(launch: &Launch<'_>, traced: &[TraceEvent], model: Model) -> Option<Verdict> {
    let lanes = traced.iter().map(|event| event.lanes.count_ones() as usize);
    if lanes.sum::<usize>() > MOST || !traced.iter().all(|event| understood(event, model)) {
        return None;
    }
    let run = order::Run::new(launch, traced, model)?;
    Some(conflicts::judge(launch, &run))
}

fn understood(event: &TraceEvent, model: Model) -> bool {
    match &event.what {
        EventKind::Access { .. } | EventKind::Fence { .. } => true,
        EventKind::Arrive { .. } | EventKind::Complete { .. } => true,
        EventKind::WarpBarrier | EventKind::ClusterWait { .. } | EventKind::Exit => true,
        EventKind::ClusterArrive { relaxed, .. } => !relaxed || model == Model::Ptx,
        EventKind::ProxyFence => true,
        EventKind::InitFence => false,
        EventKind::Copy { .. }
        | EventKind::Commit { .. }
        | EventKind::Wait(_)
        | EventKind::Mbarrier { .. }
        | EventKind::MbarrierComplete { .. } => model == Model::Ptx,
    }
}

/// The bytes of all mbarriers of a run.
pub fn mbarriers(traced: &[TraceEvent]) -> BTreeSet<Location> {
    let objects = traced.iter().filter_map(|event| match event.what {
        EventKind::Mbarrier { at, .. } => Some(at),
        _ => None,
    });
    objects
        .flat_map(|at| (0..asynchronous::MBARRIER).map(move |behind| byte(at, behind)))
        .collect()
}

/// The threads of an event.
fn threads(event: &TraceEvent) -> impl Iterator<Item = Thread> {
    let (cta, warp, lanes) = (event.cta, event.warp, event.lanes);
    let lanes = (0..LANES).filter(move |lane| lanes >> lane & 1 == 1);
    lanes.map(move |lane| Thread { cta, warp, lane })
}

fn writes(kind: OpKind) -> bool {
    kind != OpKind::Load
}

fn atomic(kind: OpKind) -> bool {
    matches!(kind, OpKind::Rmw | OpKind::Reduction)
}

/// A byte behind a place.
fn byte(location: Location, behind: u32) -> Location {
    match location {
        Location::Global(address) => Location::Global(address + u64::from(behind)),
        Location::Shared { cta, offset } => Location::Shared {
            cta,
            offset: offset + behind,
        },
    }
}
