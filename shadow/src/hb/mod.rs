//! Happens-before over a whole launch: unbounded, byte-accurate, and without a shadow cell.
//!
//! [`Engine`] is told in the order of one execution what the threads of a launch do, and says which
//! accesses race: conflicting, not morally strong, and not in causality order (PTX ISA, "Memory
//! Consistency Model"; docs/memory-model.md for the decisions).
//! It is the reference that all cheaper ways are compared with.
//!
//! Its clocks take room in proportion to the synchronisation that happens, its history in
//! proportion to the memory that is accessed.
//!
//! What it does not follow:
//! 1. the accesses of a bulk copy after its completion count as its issuing thread's own;
//! 2. of lanes that execute one `fence.sc` together, none is ordered before another;
//! 3. a thread that has exited counts as having arrived at every later barrier of its whole CTA.

mod barrier;
mod cause;
mod clock;
mod copy;
mod fence;
mod history;
mod lanes;
mod memory;
mod observed;
mod place;
mod release;
mod sparse;

use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::vec::Vec;

use hashbrown::HashMap;

pub use barrier::Arrival;
use barrier::{Arrivals, Cluster, Phases};
pub use cause::Cause;
use clock::Sparse;
pub use clock::Time;
pub use copy::Completion;
pub use fence::FenceKind;
use fence::acquire;
use history::{Class, History, WORD};
pub use history::{Rule, Strength};
pub use lanes::Format;
use lanes::{Lanes, View};
use memory::Memory;
use observed::{Observations, Observed};
pub use place::{LANES, Scope, Shape, Thread, Warp};
use release::{Pending, Releases, Write};

/// What an access does to its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// `atom`: reads and writes at once, and hands out what it read.
    Rmw,
    /// `red`: reads and writes at once. It continues what it observes, and acquires nothing.
    Reduction,
}

/// How an access orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
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

impl Order {
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
pub enum Place {
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

impl Place {
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

/// An instruction that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What it does.
    pub kind: Kind,
    /// How it orders others.
    pub order: Order,
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

/// Two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The access that came second in this execution.
    pub later: Side,
    /// The access that came first.
    pub earlier: Side,
    /// First byte of the word they share.
    pub place: Place,
    /// Why.
    pub rule: Rule,
    /// The earlier thread's own time when it made its access.
    pub time: Time,
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
    /// Warps that were ever in a format other than [`Format::Converged`].
    pub left_converged: u64,
    /// Warps that were ever in [`Format::SparseVc`].
    pub sparse: u64,
    /// Most CTAs with threads that had not all exited.
    pub live_ctas: u64,
    /// Releases kept for their observers.
    pub releases: u64,
    /// Accesses kept for later ones to race with.
    pub kept: u64,
}

/// A CTA with threads that have not exited.
#[derive(Clone, Debug, Default)]
struct Cta {
    /// The clocks of the warps that `warps` does not have.
    base: View,
    warps: BTreeMap<u32, Lanes>,
    /// Lanes that have exited, by warp.
    exited: BTreeMap<u32, u32>,
    barriers: HashMap<u32, Arrivals>,
    observed: Observations,
    /// Worst format that each warp has been in.
    formats: BTreeMap<u32, Format>,
}

impl Cta {
    fn lanes(&mut self, warp: u32) -> &mut Lanes {
        let base = &self.base;
        self.warps
            .entry(warp)
            .or_insert_with(|| Lanes::new(base.clone()))
    }
}

/// Decides which accesses of one launch race.
#[derive(Clone, Debug)]
pub struct Engine {
    shape: Shape,
    ctas: HashMap<u64, Cta>,
    clusters: HashMap<u64, Cluster>,
    /// Asynchronous barriers by the key of their place.
    mbarriers: HashMap<u64, Phases>,
    memory: Memory,
    releases: Releases,
    /// What the `fence.sc`s of gpu scope or wider have published, and those of clusters and CTAs.
    sc_gpu: Sparse,
    sc_cluster: HashMap<u64, Sparse>,
    sc_cta: HashMap<u64, Sparse>,
    copies: copy::Copies,
    stats: Stats,
}

impl Engine {
    /// An engine for one launch.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            ctas: HashMap::new(),
            clusters: HashMap::new(),
            mbarriers: HashMap::new(),
            memory: Memory::default(),
            releases: Releases::default(),
            sc_gpu: Sparse::default(),
            sc_cluster: HashMap::new(),
            sc_cta: HashMap::new(),
            copies: copy::Copies::default(),
            stats: Stats::default(),
        }
    }

    /// The launch.
    pub fn shape(&self) -> &Shape {
        &self.shape
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

    /// The lanes `lanes` of a warp access memory, each at its own place; calls `found` for each
    /// race with an earlier access, which may be one of an earlier lane.
    pub fn access(
        &mut self,
        warp: Warp,
        lanes: u32,
        access: &Access,
        places: impl Fn(u32) -> Place,
        mut found: impl FnMut(Race),
    ) {
        self.stats.accesses += u64::from(lanes.count_ones());
        self.enter(warp);
        // Whether a lane's access changes what the next one knows.
        let orders = access.order != Order::Weak || !self.releases.is_empty();
        let unit = if orders { 1 } else { LANES };
        let mut left = lanes;
        while left != 0 {
            let first = left.trailing_zeros();
            let some = match unit {
                1 => 1 << first,
                _ => left,
            };
            left &= !some;
            let key = |lane, element| places(lane).key() + u64::from(element * access.bytes);
            for element in 0..access.elements {
                self.check(warp, some, access, |lane| key(lane, element), 0, &mut found);
                if orders {
                    self.synchronise(warp.lane(first), access, key(first, element));
                }
            }
        }
    }

    /// Checks accesses of some lanes to `access.bytes` bytes each against the history, and enters
    /// them there.
    fn check(
        &mut self,
        warp: Warp,
        some: u32,
        access: &Access,
        keys: impl Fn(u32) -> u64,
        copy: u32,
        found: &mut impl FnMut(Race),
    ) {
        let Self {
            shape,
            ctas,
            memory,
            ..
        } = self;
        let Some(Cta {
            warps, observed, ..
        }) = ctas.get_mut(&warp.cta)
        else {
            return;
        };
        let Some(lanes) = warps.get(&warp.warp) else {
            return;
        };
        let reads = access.kind != Kind::Store;
        for lane in each(some) {
            let (me, key) = (warp.lane(lane), keys(lane));
            let class = Class {
                writes: access.kind != Kind::Load,
                strength: access.order.strength(),
                start: (key % 16) as u8,
                bytes: access.bytes.min(255) as u8,
            };
            // Shared memory of another CTA of the cluster belongs to that CTA.
            let history = memory.of(Place::of(key));
            let end = key + u64::from(access.bytes);
            let words = key / WORD..=(end - 1) / WORD;
            let mut writer = None;
            let continues = reads
                && matches!(class.strength, Strength::Strong(_))
                && words.clone().all(|word| {
                    writer = history.observes(shape, me, word, &class);
                    writer.is_some()
                });
            if let Some(writer) = writer.filter(|_| continues) {
                observed.hear(me, writer);
            }
            for word in words {
                let first = key.saturating_sub(word * WORD).min(WORD) as u32;
                let past = (end - word * WORD).min(WORD) as u32;
                let entry = history::Entry {
                    warp,
                    lanes: 1 << lane,
                    time: lanes.view(lane).times.own,
                    class,
                    mask: ((1 << past) - (1 << first)) as u8,
                    site: access.site,
                    copy,
                    order: Observed::default(),
                };
                let by = (me, lanes);
                let knows = |chain| observed.get(me, chain);
                let at = (word, continues);
                let seen = history.access(shape, by, at, entry, knows, |rule, old, of| {
                    found(Race {
                        later: Side {
                            thread: me,
                            site: access.site,
                        },
                        earlier: Side {
                            thread: old.warp.lane(of),
                            site: old.site,
                        },
                        place: Place::of(word * WORD),
                        rule,
                        time: old.time,
                    });
                });
                if let Some(seen) = seen.filter(|_| matches!(access.kind, Kind::Load | Kind::Rmw)) {
                    observed.enter(me, seen);
                }
            }
        }
    }

    /// The part of an access that orders others, or is ordered.
    fn synchronise(&mut self, me: Thread, access: &Access, key: u64) {
        let (scope, acquires, releases) = match access.order {
            Order::Weak | Order::ReadOnly => {
                if access.kind != Kind::Load {
                    self.releases.weak_write(key, access.bytes);
                }
                return;
            }
            Order::Relaxed(scope) => (scope, false, false),
            Order::Acquire(scope) => (scope, true, false),
            Order::Release(scope) => (scope, false, true),
            Order::AcqRel(scope) => (scope, true, true),
        };
        let Self {
            shape,
            ctas,
            releases: log,
            ..
        } = self;
        let lanes = ctas.entry(me.cta).or_default().lanes(me.warp);
        let reads = matches!(access.kind, Kind::Load | Kind::Rmw);
        if reads {
            let seen = log.observe(shape, (me, scope), key, access.bytes);
            // An acquire ends the patterns of earlier strong reads of the same location as well.
            let earlier = acquires
                && lanes
                    .view(me.lane)
                    .pending
                    .iter()
                    .any(|pending| pending.address == key);
            if seen.is_some() || earlier {
                lanes.update(1 << me.lane, |view, _| {
                    if let Some(seen) = seen {
                        note(&mut view.pending, seen, view.acquired);
                    }
                    if acquires {
                        acquire(shape, log, (me, scope), view, |pending| {
                            pending.address == key
                        });
                    }
                });
            }
        }
        if access.kind != Kind::Load {
            let view = lanes.view(me.lane);
            let times = releases.then(|| view.times.clone());
            let write = Write {
                thread: me,
                address: key,
                bytes: access.bytes,
                scope,
                operation: times.as_ref(),
                fences: &view.fences,
                acquired: view.acquired,
            };
            log.strong_write(shape, &write, access.kind != Kind::Store);
            if releases {
                lanes.update(1 << me.lane, |view, _| view.times.own += 1);
            }
        }
        self.classify(me.warp());
    }

    /// Bytes of global memory are handed out by an allocator, which orders their former owners
    /// before the new one.
    pub fn allocated(&mut self, address: u64, bytes: u64) {
        if bytes > 0 {
            let last = (address + bytes - 1) / WORD;
            self.memory.global.forget(address / WORD, last);
        }
    }

    /// Makes sure that a warp is known.
    fn enter(&mut self, warp: Warp) {
        let count = self.ctas.len() as u64 + 1;
        let cta = self.ctas.entry(warp.cta).or_default();
        if let Entry::Vacant(new) = cta.formats.entry(warp.warp) {
            new.insert(Format::Converged);
            self.stats.warps += 1;
            self.stats.live_ctas = self.stats.live_ctas.max(count);
        }
        cta.lanes(warp.warp);
    }

    /// Takes note of a warp's format.
    fn classify(&mut self, warp: Warp) {
        let existing = self.shape.lanes(warp.warp);
        let Some(cta) = self.ctas.get_mut(&warp.cta) else {
            return;
        };
        let Some(lanes) = cta.warps.get(&warp.warp) else {
            return;
        };
        let now = lanes.format(existing);
        let worst = cta.formats.entry(warp.warp).or_insert(Format::Converged);
        if now > *worst {
            self.stats.left_converged += u64::from(*worst == Format::Converged);
            self.stats.sparse += u64::from(now == Format::SparseVc);
            *worst = now;
        }
    }

    /// Lanes of a warp end.
    pub fn exit(&mut self, warp: Warp, lanes: u32) {
        self.enter(warp);
        let Some(cta) = self.ctas.get_mut(&warp.cta) else {
            return;
        };
        *cta.exited.entry(warp.warp).or_default() |= lanes;
        let shape = &self.shape;
        let over = (0..shape.warps()).all(|warp| {
            let exited = cta.exited.get(&warp).copied().unwrap_or(0);
            shape.lanes(warp) & !exited == 0
        });
        // The shared memory of a CTA of a cluster must not be used after the CTA has exited.
        if over {
            self.ctas.remove(&warp.cta);
            self.memory.shared.remove(&warp.cta);
        }
    }
}

/// The lanes of a mask, lowest first.
fn each(lanes: u32) -> impl Iterator<Item = u32> {
    (0..LANES).filter(move |lane| lanes >> lane & 1 == 1)
}

/// Enters what a strong read has observed, once per log.
fn note(pending: &mut Vec<Pending>, seen: Pending, acquired: Option<(u32, u32)>) {
    if acquired.is_some_and(|(log, count)| log == seen.log && count >= seen.count) {
        return;
    }
    match pending
        .iter_mut()
        .find(|old| (old.log, old.address) == (seen.log, seen.address))
    {
        Some(old) if old.count < seen.count => *old = seen,
        Some(_) => {}
        None => pending.push(seen),
    }
}
