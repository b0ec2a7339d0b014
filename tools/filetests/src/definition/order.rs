//! What comes before what in a run.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use runtime::Model;
use runtime::traced::{EventKind, TraceEvent};
use shadow::hb::{FenceKind, Location, MemoryOrder, Scope};

use super::asynchronous::{Asynchronous, makes_copies};
use super::strong::{LENIENT, Scalars};
use super::{Launch, MOST, Node, Party, Thread, What, atomic, byte, party, threads, writes};

/// A node with nodes before it.
#[derive(Clone)]
pub(super) struct Set(Vec<u64>);

impl Set {
    pub(super) fn has(&self, node: usize) -> bool {
        self.0
            .get(node / 64)
            .is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// Of one node, with room for all that come before it.
    fn of(node: usize) -> Self {
        let mut words = vec![0; node / 64 + 1];
        words[node / 64] = 1 << (node % 64);
        Self(words)
    }

    fn insert(&mut self, node: usize) {
        self.0[node / 64] |= 1 << (node % 64);
    }

    /// Adds those of a set that an earlier node has.
    fn join(&mut self, other: &Self) {
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
    /// has tried to by a fence or an acquire of too narrow a scope. Two `fence.sc`s are in order only if every run has
    /// them in that order.
    Strong,
    /// The same, where taking a lock acquires nothing.
    Unlocked,
    /// Program order and barriers alone.
    Barriers,
}

impl Under {
    /// Those that a memory model asks for.
    fn of(model: Model) -> &'static [Self] {
        match model {
            Model::Ptx => &[Self::Ptx],
            Model::Scoped => &[Self::Scoped, Self::Strong, Self::Unlocked, Self::Barriers],
        }
    }

    /// Those of them in which an acquire orders.
    fn acquiring(model: Model) -> &'static [Self] {
        match model {
            Model::Ptx => &[Self::Ptx],
            Model::Scoped => &[Self::Scoped, Self::Strong, Self::Unlocked],
        }
    }
}

/// A base causality order.
#[derive(Default)]
struct Base {
    /// What comes before a node, with itself.
    before: Vec<Set>,
    /// The same for reads that acquire, before they do: such a read may as well have come earlier, so that
    /// what it acquires orders what follows it, and not itself (docs/verdicts.md).
    prior: HashMap<usize, Set>,
}

/// A run, and its base causality orders.
pub(super) struct Run {
    pub(super) model: Model,
    pub(super) nodes: Vec<Node>,
    /// By [`Under`]; nothing in those that the model does not ask for.
    bases: [Base; 5],
    /// What the scoped model says of strong accesses.
    pub(super) scalars: Scalars,
    /// Strong writes that precede a strong read or an atomic in observation order.
    pub(super) observed: HashMap<usize, Vec<usize>>,
    pub(super) asynchronous: Asynchronous,
    /// The last node of a thread.
    last: BTreeMap<Thread, usize>,
    /// The last writer of a byte.
    written: HashMap<Location, usize>,
    /// The strong accesses of a thread.
    strong: BTreeMap<Thread, Vec<usize>>,
    /// The nodes of a thread that release patterns begin with, and their scopes.
    starts: BTreeMap<Thread, Vec<(usize, Scope)>>,
    /// All `fence.sc`s.
    sc: Vec<usize>,
    /// What has arrived at a barrier, and who waits there.
    arrived: BTreeMap<(u64, u32), Vec<(usize, bool)>>,
    /// What arrivals at a cluster's barrier make known in a phase, and to whom.
    clusters: BTreeMap<(u64, u64), Vec<(usize, Party)>>,
    /// Sources of what a thread does next.
    before: BTreeMap<Thread, Vec<usize>>,
}

impl Run {
    /// Nothing where accesses of different sizes make it unclear what is observed.
    pub(super) fn new(launch: &Launch<'_>, traced: &[TraceEvent], model: Model) -> Option<Self> {
        let mut run = Self {
            model,
            nodes: Vec::new(),
            bases: Default::default(),
            scalars: Scalars::default(),
            observed: HashMap::new(),
            asynchronous: Asynchronous::default(),
            last: BTreeMap::new(),
            written: HashMap::new(),
            strong: BTreeMap::new(),
            starts: BTreeMap::new(),
            sc: Vec::new(),
            arrived: BTreeMap::new(),
            clusters: BTreeMap::new(),
            before: BTreeMap::new(),
        };
        for event in traced {
            run.event(launch, event)?;
            // A bulk reduction is many accesses.
            if run.nodes.len() > MOST {
                return None;
            }
        }
        Some(run)
    }

    /// What comes before an access, itself included.
    pub(super) fn before(&self, under: Under, node: usize) -> &Set {
        let base = &self.bases[under as usize];
        base.prior.get(&node).unwrap_or(&base.before[node])
    }

    /// Adds a node behind its thread's last one.
    pub(super) fn node(&mut self, thread: Thread, line: u32, what: What) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node { thread, line, what });
        let mut sources = self.before.remove(&thread).unwrap_or_default();
        sources.extend(self.last.insert(thread, number));
        for &under in Under::of(self.model) {
            self.bases[under as usize].before.push(Set::of(number));
            for &source in &sources {
                self.edge(source, under);
            }
        }
        number
    }

    /// What a thread does next comes behind nodes.
    pub(super) fn goes_behind(&mut self, thread: Thread, nodes: &[usize]) {
        self.before.entry(thread).or_default().extend(nodes);
    }

    /// An edge into the node that was added last, if it is one in an order that is asked for.
    pub(super) fn edge(&mut self, from: usize, under: Under) {
        let alone = makes_copies(self.nodes[from].thread);
        if let Some((last, before)) = self.bases[under as usize].before.split_last_mut()
            && !last.has(from)
        {
            match alone {
                true => last.insert(from),
                false => last.join(&before[from]),
            }
        }
    }

    /// The fences of a thread that release patterns begin with.
    pub(super) fn fences(&self, thread: Thread) -> Vec<(usize, Scope)> {
        let starts = self.starts.get(&thread).into_iter().flatten();
        let fences = starts.filter(|(node, _)| matches!(self.nodes[*node].what, What::Fence(..)));
        fences.copied().collect()
    }

    fn event(&mut self, launch: &Launch<'_>, event: &TraceEvent) -> Option<()> {
        let all: Vec<Thread> = threads(event).collect();
        let barrier = |run: &mut Self, thread| {
            let node = run.node(thread, event.line, What::Point);
            run.imply(thread, &LENIENT);
            node
        };
        match &event.what {
            EventKind::Access { access, locations } => {
                for (&thread, &location) in all.iter().zip(locations) {
                    for element in 0..access.elements {
                        let at = byte(location, element * access.bytes);
                        self.access(launch, thread, event.line, *access, at)?;
                    }
                }
            }
            EventKind::Fence { kind, scope } => {
                let first = self.nodes.len();
                for &thread in &all {
                    let fence = What::Fence(*kind, *scope);
                    let node = self.node(thread, event.line, fence);
                    self.fence(launch, party(thread, *scope), node, *kind, first);
                }
            }
            EventKind::Arrive { id, waits, .. } => {
                for &thread in &all {
                    let node = barrier(self, thread);
                    let arrived = self.arrived.entry((event.cta, *id)).or_default();
                    arrived.push((node, *waits));
                }
            }
            EventKind::Complete { id } => {
                let arrived = self.arrived.remove(&(event.cta, *id)).unwrap_or_default();
                let sources: Vec<usize> = arrived.iter().map(|(node, _)| *node).collect();
                for (node, _) in arrived.iter().filter(|(_, waits)| *waits) {
                    let thread = self.nodes[*node].thread;
                    self.before.entry(thread).or_default().extend(&sources);
                }
            }
            EventKind::WarpBarrier => {
                let lanes = launch.threads - event.warp * 32;
                let existing = all.iter().filter(|of| of.lane < lanes);
                let existing: Vec<Thread> = existing.copied().collect();
                let nodes: Vec<usize> = existing.iter().map(|&t| barrier(self, t)).collect();
                for thread in existing {
                    self.before.entry(thread).or_default().extend(&nodes);
                }
            }
            EventKind::ClusterArrive { phase, relaxed } => {
                for &thread in &all {
                    let node = barrier(self, thread);
                    let within = |of: Scope| party(thread, of.min(Scope::Cluster));
                    let known: Vec<(usize, Party)> = match relaxed {
                        false => vec![(node, within(Scope::Cluster))],
                        true => {
                            let fences = self.fences(thread).into_iter();
                            fences.map(|(fence, of)| (fence, within(of))).collect()
                        }
                    };
                    let cluster = (thread.cta / launch.cluster, *phase);
                    self.clusters.entry(cluster).or_default().extend(known);
                }
            }
            EventKind::ClusterWait { phase } => {
                for &thread in &all {
                    let cluster = (thread.cta / launch.cluster, *phase);
                    let known = self.clusters.get(&cluster).into_iter().flatten();
                    let me = party(thread, Scope::Cluster);
                    let known = known.filter(|&&(_, by)| launch.mutual(by, me));
                    let nodes: Vec<usize> = known.map(|&(node, _)| node).collect();
                    self.goes_behind(thread, &nodes);
                }
            }
            _ => self.asynchronous_event(launch, event)?,
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
        let strong = |write: usize| match self.nodes[write].what {
            What::Access(of, _) => of.order.scope().is_some(),
            _ => false,
        };
        if !(0..access.bytes).filter_map(writer).any(strong) {
            // What is weak orders nothing.
            return Some(None);
        }
        let mixed = (1..access.bytes).any(|behind| writer(behind) != first);
        match first.map(|write| self.nodes[write].what) {
            _ if mixed => None,
            Some(What::Access(of, from)) if (of.bytes, from) != (access.bytes, at) => None,
            _ => Some(first),
        }
    }

    pub(super) fn access(
        &mut self,
        launch: &Launch<'_>,
        thread: Thread,
        line: u32,
        access: shadow::hb::Access,
        at: Location,
    ) -> Option<()> {
        let node = self.node(thread, line, What::Access(access, at));
        let scope = access.order.scope();
        if scope.is_some() {
            if matches!(
                access.order,
                MemoryOrder::Release(_) | MemoryOrder::AcqRel(_)
            ) {
                self.imply(thread, &LENIENT);
            }
            self.compare(launch, node, access, at);
        }
        let reads = !matches!(access.kind, shadow::hb::OpKind::Store);
        if let (true, Some(scope)) = (reads, scope) {
            let me = party(thread, scope);
            let observed = self.observed_by(launch, me, node)?;
            self.observed.insert(node, observed);
            // A `red` continues what it observes, and acquires nothing.
            if access.kind != shadow::hb::OpKind::Reduction {
                for &under in Under::of(self.model) {
                    let base = &mut self.bases[under as usize];
                    base.prior.insert(node, base.before[node].clone());
                }
                self.notice(launch, node, at);
                if self.model == Model::Scoped {
                    self.acquire(launch, &[node], me, &[Under::Scoped]);
                }
                if matches!(
                    access.order,
                    MemoryOrder::Acquire(_) | MemoryOrder::AcqRel(_)
                ) {
                    // Of earlier strong reads of the same location, too.
                    let same = |of: &shadow::hb::Access, from: Location| {
                        (of.bytes, from) == (access.bytes, at)
                            && of.kind != shadow::hb::OpKind::Store
                    };
                    let mine = self.strong.get(&thread).into_iter().flatten().copied();
                    let earlier = mine.filter(|&earlier| {
                        matches!(self.nodes[earlier].what, What::Access(of, from) if same(&of, from))
                    });
                    let reads: Vec<usize> = earlier.chain([node]).collect();
                    self.acquire(launch, &reads, me, Under::acquiring(self.model));
                    self.try_to_acquire(thread, Some(at));
                }
            }
        }
        if scope.is_some() {
            self.strong.entry(thread).or_default().push(node);
        }
        if let (true, MemoryOrder::Release(scope) | MemoryOrder::AcqRel(scope)) =
            (writes(access.kind), access.order)
        {
            self.starts.entry(thread).or_default().push((node, scope));
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
    fn observed_by(&self, launch: &Launch<'_>, reader: Party, node: usize) -> Option<Vec<usize>> {
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
        let moral = strong.is_some_and(|theirs| launch.mutual(reader, party(other, theirs)));
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
    fn acquire(&mut self, launch: &Launch<'_>, reads: &[usize], by: Party, under: &[Under]) {
        let mut writes = BTreeSet::new();
        // A `red` continues what it observes, and acquires nothing, by a fence behind it neither.
        let returns = |read: &&usize| match self.nodes[**read].what {
            What::Access(access, _) => access.kind != shadow::hb::OpKind::Reduction,
            _ => false,
        };
        for &read in reads.iter().filter(returns) {
            let takes = launch.takes.contains(&self.nodes[read].line);
            let observed = self.observed.get(&read).into_iter().flatten();
            writes.extend(observed.map(|&write| (write, takes)));
        }
        // The latest first, since it comes after most others.
        for (write, takes) in writes.into_iter().rev() {
            for source in self.releases(launch, write, by) {
                let not_in = |under: &&Under| !(takes && **under == Under::Unlocked);
                under
                    .iter()
                    .filter(not_in)
                    .for_each(|&under| self.edge(source, under));
            }
        }
    }

    /// The first operations of the release patterns that a write ends and that can order a thread, the
    /// latest first.
    pub(super) fn releases(&self, launch: &Launch<'_>, write: usize, by: Party) -> Vec<usize> {
        let Node { thread, what, .. } = self.nodes[write];
        let What::Access(access, at) = what else {
            return Vec::new();
        };
        let starts = self.starts.get(&thread).into_iter().flatten().rev();
        let starts = starts.filter(|&&(node, scope)| {
            let of_write = match self.nodes[node].what {
                What::Access(of, from) => (of.bytes, from) == (access.bytes, at),
                What::Fence(..) | What::Point => true,
            };
            node <= write && of_write && launch.mutual(party(thread, scope), by)
        });
        starts.map(|&(node, _)| node).collect()
    }

    fn fence(
        &mut self,
        launch: &Launch<'_>,
        by: Party,
        node: usize,
        kind: FenceKind,
        first: usize,
    ) {
        let Party { thread, scope } = by;
        if kind == FenceKind::Release {
            self.imply(thread, &LENIENT);
        } else {
            let mine = self.strong.get(&thread).cloned().unwrap_or_default();
            self.acquire(launch, &mine, by, Under::acquiring(self.model));
            self.acquire_phases(launch, by, Under::acquiring(self.model));
            self.try_to_acquire(thread, None);
        }
        if kind != FenceKind::Acquire {
            self.starts.entry(thread).or_default().push((node, scope));
        }
        if kind == FenceKind::Sc {
            let earlier: Vec<usize> = self.sc.clone();
            // Lanes that execute it together are in no order.
            for other in earlier.into_iter().filter(|&other| other < first) {
                let Node {
                    thread: of, what, ..
                } = self.nodes[other];
                if let What::Fence(_, theirs) = what
                    && launch.mutual(by, party(of, theirs))
                {
                    self.edge(other, Under::Ptx);
                    self.edge(other, Under::Scoped);
                }
            }
            if self.model == Model::Scoped && scope >= Scope::Gpu {
                self.force(launch, node, first);
            }
            self.sc.push(node);
        }
    }

    /// Orders a new `fence.sc` behind an earlier one if a read that comes before the new one, by program order and
    /// barriers, has observed a write that comes after the earlier one, by program order and barriers. If the new one
    /// came first, the read would come before the write that it has observed.
    fn force(&mut self, launch: &Launch<'_>, node: usize, first: usize) {
        let met = &self.bases[Under::Barriers as usize].before;
        let returns = |what| match what {
            What::Access(access, _) => access.kind != shadow::hb::OpKind::Reduction,
            _ => false,
        };
        let mut edges = Vec::new();
        for (&read, writes) in &self.observed {
            let Node { what, line, .. } = self.nodes[read];
            if !met[node].has(read) || !returns(what) {
                continue;
            }
            let takes = launch.takes.contains(&line);
            for &fence in self.sc.iter().filter(|&&fence| fence < first) {
                let wide = matches!(self.nodes[fence].what, What::Fence(_, of) if of >= Scope::Gpu);
                if wide && writes.iter().any(|&write| met[write].has(fence)) {
                    edges.push((fence, takes));
                }
            }
        }
        for (fence, takes) in edges {
            self.edge(fence, Under::Strong);
            if !takes {
                self.edge(fence, Under::Unlocked);
            }
        }
    }
}
