//! What comes before what in a run.

use std::collections::{BTreeMap, HashMap};

use runtime::heard::{Heard, Told};
use shadow::hb::{FenceKind, Order, Place, Scope};

use super::strong::{LENIENT, Scalars};
use super::{Launch, Node, Thread, What, atomic, byte, threads, writes};

/// A set of nodes.
#[derive(Clone, Default)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub(super) fn has(&self, node: usize) -> bool {
        self.0
            .get(node / 64)
            .is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    fn add(&mut self, node: usize) {
        if self.0.len() <= node / 64 {
            self.0.resize(node / 64 + 1, 0);
        }
        self.0[node / 64] |= 1 << (node % 64);
    }

    fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// What counts as base causality order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Under {
    /// As PTX says: acquiring takes an acquire pattern.
    Ptx,
    /// Every strong read acquires what it observes, in its own scope.
    Scoped,
    /// Of unordered strong conflicts: a thread has acquired the releases that it has observed, unless it
    /// has tried to by a fence or an acquire of too narrow a scope, and `fence.sc`s are in no order.
    Strong,
    /// The same, where taking a lock acquires nothing.
    Unlocked,
}

const ALL: [Under; 4] = [Under::Ptx, Under::Scoped, Under::Strong, Under::Unlocked];

/// A run, and its base causality orders.
#[derive(Default)]
pub(super) struct Run {
    pub(super) nodes: Vec<Node>,
    /// What comes before a node, with itself, by each of [`ALL`].
    base: [Vec<Set>; 4],
    /// The same for reads that acquire, before they do: such a read may as well have come earlier, so that
    /// what it acquires orders what follows it, and not itself (docs/verdicts.md).
    prior: HashMap<usize, [Set; 4]>,
    /// What the scoped model says of strong accesses.
    pub(super) scalars: Scalars,
    /// Strong writes that precede a strong read or an atomic in observation order.
    pub(super) observed: HashMap<usize, Vec<usize>>,
    /// The last node of a thread.
    last: BTreeMap<Thread, usize>,
    /// The last writer of a byte.
    written: HashMap<Place, usize>,
    /// All nodes of a thread that others may acquire from, or that acquire later.
    strong: BTreeMap<Thread, Vec<usize>>,
    /// All `fence.sc`s.
    sc: Vec<usize>,
    /// What has arrived at a barrier, and who waits there.
    arrived: BTreeMap<(u64, u32), Vec<(usize, bool)>>,
    /// What has arrived at a cluster's barrier in a phase.
    clusters: BTreeMap<(u64, u64), Vec<usize>>,
    /// Sources of what a thread does next.
    before: BTreeMap<Thread, Vec<usize>>,
}

impl Run {
    /// Nothing where accesses of different sizes make it unclear what is observed.
    pub(super) fn new(launch: &Launch<'_>, heard: &[Heard]) -> Option<Self> {
        let mut run = Self::default();
        for event in heard {
            run.event(launch, event)?;
        }
        Some(run)
    }

    /// What comes before an access, itself included.
    pub(super) fn before(&self, under: Under, node: usize) -> &Set {
        let order = under as usize;
        let prior = self.prior.get(&node).map(|orders| &orders[order]);
        prior.unwrap_or(&self.base[order][node])
    }

    /// Adds a node behind its thread's last one.
    fn node(&mut self, thread: Thread, line: u32, what: What) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node { thread, line, what });
        let mut sources = self.before.remove(&thread).unwrap_or_default();
        sources.extend(self.last.insert(thread, number));
        for orders in &mut self.base {
            let mut set = Set::default();
            for &source in &sources {
                set.join(&orders[source]);
            }
            set.add(number);
            orders.push(set);
        }
        number
    }

    /// An edge into the node that was added last.
    pub(super) fn edge(&mut self, from: usize, under: Under) {
        if let Some((last, before)) = self.base[under as usize].split_last_mut() {
            last.join(&before[from]);
        }
    }

    fn event(&mut self, launch: &Launch<'_>, event: &Heard) -> Option<()> {
        let all: Vec<Thread> = threads(event).collect();
        let barrier = |run: &mut Self, thread| {
            let node = run.node(thread, event.line, What::Barrier);
            run.imply(thread, &LENIENT);
            node
        };
        match &event.what {
            Told::Access { access, places } => {
                for (&thread, &place) in all.iter().zip(places) {
                    for element in 0..access.elements {
                        let at = byte(place, element * access.bytes);
                        self.access(launch, (thread, event.line), (*access, at))?;
                    }
                }
            }
            Told::Fence { kind, scope } => {
                let first = self.nodes.len();
                for &thread in &all {
                    let fence = What::Fence(*kind, *scope);
                    let node = self.node(thread, event.line, fence);
                    self.fence(launch, (thread, node), (*kind, *scope), first);
                }
            }
            Told::Arrive { id, waits, .. } => {
                for &thread in &all {
                    let node = barrier(self, thread);
                    let arrived = self.arrived.entry((event.cta, *id)).or_default();
                    arrived.push((node, *waits));
                }
            }
            Told::Complete { id } => {
                let arrived = self.arrived.remove(&(event.cta, *id)).unwrap_or_default();
                let sources: Vec<usize> = arrived.iter().map(|(node, _)| *node).collect();
                for (node, _) in arrived.iter().filter(|(_, waits)| *waits) {
                    let thread = self.nodes[*node].thread;
                    self.before.entry(thread).or_default().extend(&sources);
                }
            }
            Told::WarpBarrier => {
                let lanes = launch.threads - event.warp * 32;
                let existing = all.iter().filter(|(_, _, lane)| *lane < lanes);
                let existing: Vec<Thread> = existing.copied().collect();
                let nodes: Vec<usize> = existing.iter().map(|&t| barrier(self, t)).collect();
                for thread in existing {
                    self.before.entry(thread).or_default().extend(&nodes);
                }
            }
            Told::ClusterArrive { phase, .. } => {
                for &thread in &all {
                    let node = barrier(self, thread);
                    let cluster = (thread.0 / launch.cluster, *phase);
                    self.clusters.entry(cluster).or_default().push(node);
                }
            }
            Told::ClusterWait { phase } => {
                for &thread in &all {
                    let cluster = (thread.0 / launch.cluster, *phase);
                    let sources = self.clusters.get(&cluster).cloned().unwrap_or_default();
                    self.before.entry(thread).or_default().extend(sources);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// The strong write that a read observes: the one that all its bytes come from.
    fn observes(&self, node: usize) -> Option<Option<usize>> {
        let What::Access(access, at) = self.nodes[node].what else {
            return Some(None);
        };
        let writer = |behind| self.written.get(&byte(at, behind)).copied();
        let first = writer(0);
        let mixed = (1..access.bytes).any(|behind| writer(behind) != first);
        match first.map(|write| self.nodes[write].what) {
            _ if mixed => None,
            Some(What::Access(of, from)) if (of.bytes, from) != (access.bytes, at) => None,
            _ => Some(first),
        }
    }

    fn access(
        &mut self,
        launch: &Launch<'_>,
        (thread, line): (Thread, u32),
        (access, at): (shadow::hb::Access, Place),
    ) -> Option<()> {
        let node = self.node(thread, line, What::Access(access, at));
        let scope = access.order.scope();
        if scope.is_some() {
            if matches!(access.order, Order::Release(_) | Order::AcqRel(_)) {
                self.imply(thread, &LENIENT);
            }
            self.compare(launch, node, (access, at));
        }
        let reads = !matches!(access.kind, shadow::hb::Kind::Store);
        if let (true, Some(scope)) = (reads, scope) {
            let observed = self.observed_by(launch, (thread, scope), node)?;
            self.observed.insert(node, observed);
            // A `red` continues what it observes, and acquires nothing.
            if access.kind != shadow::hb::Kind::Reduction {
                self.prior.insert(
                    node,
                    ALL.map(|under| self.base[under as usize][node].clone()),
                );
                self.notice(launch, node, at);
                self.acquire(launch, &[node], (thread, scope), &[Under::Scoped]);
                if matches!(access.order, Order::Acquire(_) | Order::AcqRel(_)) {
                    // Of earlier strong reads of the same location, too.
                    let same = |of: &shadow::hb::Access, from: Place| {
                        (of.bytes, from) == (access.bytes, at) && of.kind != shadow::hb::Kind::Store
                    };
                    let mine = self.strong.get(&thread).into_iter().flatten().copied();
                    let earlier = mine.filter(|&earlier| {
                        matches!(self.nodes[earlier].what, What::Access(of, from) if same(&of, from))
                    });
                    let reads: Vec<usize> = earlier.chain([node]).collect();
                    self.acquire(launch, &reads, (thread, scope), &ALL);
                    self.try_to_acquire(thread, Some(at));
                }
            }
        }
        if scope.is_some() {
            self.strong.entry(thread).or_default().push(node);
        }
        if writes(access.kind) {
            for behind in 0..access.bytes {
                self.written.insert(byte(at, behind), node);
            }
        }
        Some(())
    }

    /// All strong writes that precede a read in observation order: the one it observes, and, where that
    /// is an atomic, what precedes it.
    fn observed_by(
        &self,
        launch: &Launch<'_>,
        (thread, scope): (Thread, Scope),
        node: usize,
    ) -> Option<Vec<usize>> {
        let Some(write) = self.observes(node)? else {
            return Some(Vec::new());
        };
        let Node {
            thread: other,
            what: What::Access(access, _),
            ..
        } = self.nodes[write]
        else {
            return Some(Vec::new());
        };
        let strong = access.order.scope();
        let moral = strong.is_some_and(|theirs| launch.mutual((thread, scope), (other, theirs)));
        if !moral {
            return Some(Vec::new());
        }
        let mut all = vec![write];
        if atomic(access.kind) {
            all.extend(self.observed.get(&write).into_iter().flatten());
        }
        Some(all)
    }

    /// Acquires, at the node added last, what some reads have observed.
    fn acquire(
        &mut self,
        launch: &Launch<'_>,
        reads: &[usize],
        by: (Thread, Scope),
        under: &[Under],
    ) {
        let mut sources = Vec::new();
        // A `red` continues what it observes, and acquires nothing, by a fence behind it neither.
        let returns = |read: &&usize| match self.nodes[**read].what {
            What::Access(access, _) => access.kind != shadow::hb::Kind::Reduction,
            _ => false,
        };
        for &read in reads.iter().filter(returns) {
            let takes = launch.takes.contains(&self.nodes[read].line);
            for &write in self.observed.get(&read).into_iter().flatten() {
                let releases = self.releases(launch, write, by).into_iter();
                sources.extend(releases.map(|source| (source, takes)));
            }
        }
        for (source, takes) in sources {
            let not_in = |under: &&Under| !(takes && **under == Under::Unlocked);
            under
                .iter()
                .filter(not_in)
                .for_each(|&under| self.edge(source, under));
        }
    }

    /// The first operations of the release patterns that a write ends and that can order a thread.
    pub(super) fn releases(
        &self,
        launch: &Launch<'_>,
        write: usize,
        by: (Thread, Scope),
    ) -> Vec<usize> {
        let Node { thread, what, .. } = self.nodes[write];
        let What::Access(access, at) = what else {
            return Vec::new();
        };
        let mine = self.strong.get(&thread).into_iter().flatten().copied();
        let before = mine.filter(|&node| node < write).chain([write]);
        let starts = before.filter(|&node| {
            let scope = match self.nodes[node].what {
                What::Fence(FenceKind::Acquire, _) | What::Barrier => None,
                What::Fence(_, scope) => Some(scope),
                What::Access(of, from) => match of.order {
                    Order::Release(scope) | Order::AcqRel(scope)
                        if writes(of.kind) && (of.bytes, from) == (access.bytes, at) =>
                    {
                        Some(scope)
                    }
                    _ => None,
                },
            };
            scope.is_some_and(|scope| launch.mutual((thread, scope), by))
        });
        starts.collect()
    }

    fn fence(
        &mut self,
        launch: &Launch<'_>,
        (thread, node): (Thread, usize),
        (kind, scope): (FenceKind, Scope),
        first: usize,
    ) {
        if kind == FenceKind::Release {
            self.imply(thread, &LENIENT);
        } else {
            let mine = self.strong.get(&thread).cloned().unwrap_or_default();
            self.acquire(launch, &mine, (thread, scope), &ALL);
            self.try_to_acquire(thread, None);
        }
        self.strong.entry(thread).or_default().push(node);
        if kind == FenceKind::Sc {
            let earlier: Vec<usize> = self.sc.clone();
            // Lanes that execute it together are in no order.
            for other in earlier.into_iter().filter(|&other| other < first) {
                let Node {
                    thread: of, what, ..
                } = self.nodes[other];
                if let What::Fence(_, theirs) = what
                    && launch.mutual((thread, scope), (of, theirs))
                {
                    self.edge(other, Under::Ptx);
                    self.edge(other, Under::Scoped);
                }
            }
            self.sc.push(node);
        }
    }
}
