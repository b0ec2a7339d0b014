//! Happens-before over a whole launch: unbounded, byte-accurate, and without a shadow cell.
//!
//! [`Engine`] receives in the order of one execution what the threads of a launch do, and says which
//! accesses race: conflicting, not morally strong, and not in causality order (PTX ISA, "Memory
//! Consistency Model"; docs/memory-model.md for the decisions).
//! It is the reference that all cheaper ways are compared with.
//!
//! Its clocks take room in proportion to the synchronisation that happens, its history in
//! proportion to the memory that is accessed; docs/happens-before.md says how, with figures.
//!
//! What it does not follow:
//! 1. of lanes that execute one `fence.sc` together, none is ordered before another;
//! 2. a thread that has exited counts as having arrived at every later barrier of its whole CTA;
//! 3. in a word with more than 4096 accesses that cannot stand for one another, a thread's last
//!    strong write stands for its earlier ones.

mod access;
mod barrier;
mod cause;
mod clock;
mod copy;
mod counted;
mod crowd;
mod cta;
mod earlier;
mod entry;
mod fence;
mod fenced;
mod generations;
mod guarded;
mod history;
mod lanes;
mod launched;
mod lock_order;
mod lock_word;
mod locks;
mod log;
mod made;
mod mbarrier;
mod memory;
mod observed;
mod phased;
mod proxy;
mod release;
mod row;
mod sc;
mod section;
mod sparse;
mod strong;
mod thread;
mod turns;
mod versions;
mod waits;
mod word;

use hashbrown::HashMap;

pub use barrier::Arrival;
use barrier::Cluster;
pub use cause::{Cause, Flag, LaterAccess};
use clock::Sparse;
pub use clock::Time;
pub use copy::{Completion, Issue, Waited};
use cta::Cta;
pub use entry::{Rule, Strength};
pub use events::{Gap, Scope};
pub use fence::FenceKind;
pub use generations::{Generations, Recycled};
use history::History;
pub use lanes::Format;
use lanes::View;
pub use launched::Launched;
pub use lock_order::{LockOrder, Predicted, Written};
pub use locks::{Swap, Update};
pub use made::Made;
use mbarrier::{Inits, Phases};
use memory::Memory;
use observed::Observed;
pub use phased::{Operation, Unphased};
use release::Releases;
pub use sc::FenceOrder;
pub use section::Held;
pub use strong::{Strong, Unordered, Use};
pub use thread::{Active, LANES, Party, Shape, Thread, Warp};
pub use versions::{Look, SwapValue};

/// What an access does to its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// `atom`: reads and writes at once, and hands out what it read.
    Rmw,
    /// `red`: reads and writes at once. It continues what it observes, and acquires nothing.
    Reduction,
}

/// What atomics are for, as the code around them tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Atomics {
    /// Anything.
    #[default]
    Any,
    /// They count threads, so that the last one can be recognised.
    Count,
    /// A loop waits for what they read.
    Wait,
    /// They write what a loop waits for.
    Signal,
}

/// How an access orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryOrder {
    /// Ordinary.
    Weak,
    /// A load of data that is read-only while the kernel runs.
    ReadOnly,
    /// Strong, without ordering others.
    Relaxed(Scope),
    /// An acquire operation.
    Acquire(Scope),
    /// A release operation.
    Release(Scope),
    /// Both.
    AcqRel(Scope),
}

impl MemoryOrder {
    /// The scope of a strong access; none for a weak one.
    pub fn scope(self) -> Option<Scope> {
        match self {
            MemoryOrder::Weak | MemoryOrder::ReadOnly => None,
            MemoryOrder::Relaxed(scope)
            | MemoryOrder::Acquire(scope)
            | MemoryOrder::Release(scope)
            | MemoryOrder::AcqRel(scope) => Some(scope),
        }
    }
}

impl MemoryOrder {
    fn strength(self) -> Strength {
        match self {
            Self::Weak => Strength::Weak,
            Self::ReadOnly => Strength::ReadOnly,
            Self::Relaxed(scope)
            | Self::Acquire(scope)
            | Self::Release(scope)
            | Self::AcqRel(scope) => Strength::Strong(scope),
        }
    }
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// A byte address in global memory.
    Global(u64),
    /// A byte offset in the shared memory of a CTA.
    Shared {
        /// Whose memory; its linear index.
        cta: u64,
        /// Offset in bytes, below 2^24.
        offset: u32,
    },
}

impl Location {
    /// The address in its memory: an offset in that of a CTA.
    pub fn address(self) -> u64 {
        match self {
            Self::Global(address) => address,
            Self::Shared { offset, .. } => offset.into(),
        }
    }

    /// A number for the byte, the same for no other byte.
    fn key(self) -> u64 {
        match self {
            Self::Global(address) => address & !(1 << 63),
            Self::Shared { cta, offset } => 1 << 63 | cta << 24 | u64::from(offset),
        }
    }

    fn of(key: u64) -> Self {
        match key >> 63 {
            0 => Self::Global(key),
            _ => Self::Shared {
                cta: key << 1 >> 25,
                offset: (key & 0xff_ffff) as u32,
            },
        }
    }
}

/// Bytes from a location on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first.
    pub location: Location,
    /// How many.
    pub bytes: u32,
}

/// An instruction that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What it does.
    pub kind: OpKind,
    /// How it orders others.
    pub order: MemoryOrder,
    /// Bytes of one element, 1 to 16.
    pub bytes: u32,
    /// Elements of a vector, one after the other.
    pub elements: u32,
    /// What to call it in a [`Race`].
    pub site: u32,
}

/// One side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    /// Who.
    pub thread: Thread,
    /// [`Access::site`]
    pub site: u32,
}

/// Further races that the receiver of a race does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enough {
    /// None: each race is to be reported.
    Never,
    /// Races between the two accesses' instructions, in this word and by this later access. Those
    /// with [`Race::of_many`] may be left out.
    OfSite,
}

/// Two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The access that came second in this execution.
    pub later: Side,
    /// The access that came first.
    pub earlier: Side,
    /// First byte of the word they share.
    pub location: Location,
    /// Why.
    pub rule: Rule,
    /// In whose name the earlier access was made: the thread's warp, or the maker of copies that end
    /// with an mbarrier.
    pub by: Warp,
    /// The time of that one when it made its access.
    pub time: Time,
    /// The bytes of the word that both access, one bit each.
    pub bytes: u8,
    /// The lanes of the earlier thread's warp that race by the same access, one bit each.
    pub lanes: u32,
    /// When the earlier access was made.
    pub made: Made,
    /// The earlier access is one of many to the word.
    pub of_many: bool,
    /// The later access is a bulk copy that reads what the earlier one has written. The two need a proxy fence besides an
    /// order.
    pub proxies: bool,
    /// Where it stands in the observation order, if it is a strong write.
    pub(crate) order: Observed,
}

/// What an engine has seen and keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Accesses of single threads.
    pub accesses: u64,
    /// Fences, barriers and the like, by warp.
    pub synchronisations: u64,
    /// Warps that did anything.
    pub warps: u64,
    /// Warps that were in [`Format::Diverged`] at most.
    pub diverged: u64,
    /// Warps that were in [`Format::NestedDiverged`] at most.
    pub nested_diverged: u64,
    /// Warps that were ever in [`Format::SparseVc`].
    pub sparse: u64,
    /// Most CTAs with threads that had not all exited.
    pub live_ctas: u64,
    /// Releases kept for their observers.
    pub releases: u64,
    /// Accesses kept for later ones to race with.
    pub kept: u64,
}

/// Accesses of a location, or releases, after which to look for those that are not needed.
const CROWD: u32 = 128;

/// Decides which accesses of one launch race.
#[derive(Clone, Debug)]
pub struct Engine {
    shape: Shape,
    ctas: HashMap<u64, Cta>,
    clusters: HashMap<u64, Cluster>,
    /// Asynchronous barriers by the key of their location.
    mbarriers: HashMap<u64, Phases>,
    inits: Inits,
    memory: Memory,
    releases: Releases,
    /// Strong stores, [`Atomics::Signal`]s and [`Atomics::Count`]s, by the keys of their locations.
    strong_stores: HashMap<u64, cause::StrongStore>,
    /// The last ones of each thread at a location.
    own_stores: HashMap<(Thread, u64), cause::OwnStores>,
    /// What the `fence.sc`s of gpu scope or wider have published, and those of clusters and CTAs.
    sc_gpu: Sparse,
    sc_cluster: HashMap<u64, Sparse>,
    sc_cta: HashMap<u64, Sparse>,
    copies: copy::Copies,
    proxies: proxy::Proxies,
    crowd: u32,
    stamp: u32,
    stats: Stats,
    /// See [`Engine::at`].
    now: Time,
    /// See [`Engine::atomics`].
    atomics: Atomics,
    /// See [`Engine::following_phases`].
    follows_phases: bool,
}

impl Engine {
    /// An engine for one launch.
    pub fn new(shape: Shape) -> Self {
        Self::with_crowd(shape, CROWD)
    }

    /// An engine that looks, once there are `crowd` accesses of one location or releases at one
    /// location, for those that it need not keep, and does so again when they have doubled.
    /// What it finds does not depend on that.
    pub fn with_crowd(shape: Shape, crowd: u32) -> Self {
        Self {
            shape,
            ctas: HashMap::new(),
            clusters: HashMap::new(),
            mbarriers: HashMap::new(),
            inits: Inits::default(),
            memory: Memory::default(),
            releases: Releases::new(crowd),
            strong_stores: HashMap::new(),
            own_stores: HashMap::new(),
            sc_gpu: Sparse::default(),
            sc_cluster: HashMap::new(),
            sc_cta: HashMap::new(),
            copies: copy::Copies::default(),
            proxies: proxy::Proxies::default(),
            crowd,
            stamp: 0,
            stats: Stats::default(),
            now: 0,
            atomics: Atomics::default(),
            follows_phases: false,
        }
    }

    /// What is received from here on happens at `now`, which must not go down.
    ///
    /// Without this, a thread's own time counts what it has published, and an access is received when
    /// it is made. With it, a thread's time goes on with `now` whenever it publishes anything, so
    /// that an access can be received later: see [`Engine::earlier`].
    pub fn at(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// The launch.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Accesses are made at `stamp` from now on, by a count of the caller's that never goes down.
    /// See [`Race::made`].
    pub fn stamp(&mut self, stamp: u32) {
        self.stamp = stamp;
    }

    /// What it has seen and keeps.
    pub fn stats(&self) -> Stats {
        let shared = self.memory.shared.values().map(History::len);
        Stats {
            releases: self.releases.len() as u64,
            kept: (self.memory.global.len() + shared.sum::<usize>()) as u64,
            ..self.stats
        }
    }

    /// The time of `other` up to which `me` is ordered after it.
    pub fn knows(&mut self, me: Thread, other: Thread) -> Time {
        let cta = self.ctas.entry(me.cta).or_default();
        let times = &cta.lanes(me.warp).view(me.lane).times;
        times.get(me, other)
    }

    /// Whether `me` is ordered after anything that a thread of a CTA has done.
    pub fn knows_cta(&mut self, me: Thread, other: u64) -> bool {
        let cta = self.ctas.entry(me.cta).or_default();
        let times = &cta.lanes(me.warp).view(me.lane).times;
        me.cta == other || times.rest.knows(other)
    }

    /// Bytes of global memory are handed out by an allocator, which orders their former owners
    /// before the new one.
    pub fn allocated(&mut self, address: u64, bytes: u64) {
        if bytes > 0 {
            let last = (address + bytes - 1) / history::WORD;
            self.memory.global.forget(address / history::WORD..=last);
        }
    }
}

/// A listener who wants to hear of each race.
fn all(mut found: impl FnMut(Race)) -> impl FnMut(Race) -> Enough {
    move |race| {
        found(race);
        Enough::Never
    }
}

/// The lanes of a mask, lowest first.
fn each(mut lanes: u32) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let lane = (lanes != 0).then(|| lanes.trailing_zeros())?;
        lanes &= lanes - 1;
        Some(lane)
    })
}
