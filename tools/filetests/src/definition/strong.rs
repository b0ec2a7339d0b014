//! Unordered strong conflicts: strong accesses that include each other in their scopes, one of them a plain
//! load or store and one a write, of a scalar that threads do not communicate through, in no order
//! (docs/memory-model.md, CR011).
//!
//! Who observes a release has acquired it, if nothing else says so: the thread does so when an access of
//! its own is ordered by nothing else, and before it passes on what it knows. A fence or an acquire of too
//! narrow a scope says otherwise, until the thread observes more than it had.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use shadow::hb::{Access, Kind, Order, Place, Scope};

use super::order::{Run, Under};
use super::{Launch, Thread, What, atomic, writes};

/// Releases that a thread has observed in one place.
struct Observed {
    at: Place,
    releases: BTreeSet<usize>,
    /// An acquire has dealt with them, whether its scope was wide enough or not.
    tried: bool,
}

/// A place and the bytes of an access there.
type Scalar = (Place, u32);

/// What is known of the scalars of a run.
#[derive(Default)]
pub(super) struct Scalars {
    accesses: HashMap<Scalar, Vec<usize>>,
    /// Those that threads communicate through.
    signals: BTreeSet<Scalar>,
    observed: BTreeMap<Thread, Vec<Observed>>,
    /// Conflicts, the earlier access first.
    found: Vec<(usize, usize)>,
}

impl Run {
    /// The pairs of accesses that conflict in no order, the earlier one first.
    pub(super) fn unordered(&self) -> impl Iterator<Item = (usize, usize)> {
        let signals = &self.scalars.signals;
        let found = self.scalars.found.iter().copied();
        found.filter(move |&(_, later)| match self.nodes[later].what {
            What::Access(access, at) => !signals.contains(&(at, access.bytes)),
            _ => false,
        })
    }

    /// Compares a strong access, the node added last, with earlier ones of its scalar.
    pub(super) fn compare(
        &mut self,
        launch: &Launch<'_>,
        node: usize,
        (access, at): (Access, Place),
    ) {
        let scalar = (at, access.bytes);
        let line = self.nodes[node].line;
        if is_signal(launch, &access, line) {
            self.scalars.signals.insert(scalar);
        }
        let earlier = self.scalars.accesses.entry(scalar).or_default();
        earlier.push(node);
        if self.scalars.signals.contains(&scalar) {
            return;
        }
        let earlier = earlier.clone();
        for &before in &earlier[..earlier.len() - 1] {
            if !self.conflicts(launch, (before, node)) || self.counted(&earlier, (before, node)) {
                continue;
            }
            let ordered = |run: &Self| run.before(Under::Strong, node).has(before);
            if ordered(self) {
                continue;
            }
            self.imply(self.nodes[node].thread);
            if !ordered(self) {
                self.scalars.found.push((before, node));
            }
        }
    }

    /// Whether two accesses of a scalar are the sides of a conflict.
    fn conflicts(&self, launch: &Launch<'_>, (a, b): (usize, usize)) -> bool {
        let (first, second) = (&self.nodes[a], &self.nodes[b]);
        let (What::Access(one, _), What::Access(other, _)) = (first.what, second.what) else {
            return false;
        };
        let (Some(mine), Some(theirs)) = (one.order.scope(), other.order.scope()) else {
            return false;
        };
        first.thread != second.thread
            && (writes(one.kind) || writes(other.kind))
            && !(atomic(one.kind) && atomic(other.kind))
            && launch.mutual((first.thread, mine), (second.thread, theirs))
    }

    /// Whether a store comes behind an atomic that a later atomic of its own thread has counted.
    fn counted(&self, accesses: &[usize], (a, b): (usize, usize)) -> bool {
        let kind = |node: usize| match self.nodes[node].what {
            What::Access(access, _) => Some(access.kind),
            _ => None,
        };
        let counts = |&node: &usize| {
            let own = self.nodes[node].thread == self.nodes[b].thread;
            node > a && own && kind(node) == Some(Kind::Rmw)
        };
        kind(a).is_some_and(atomic) && kind(b) == Some(Kind::Store) && accesses.iter().any(counts)
    }

    /// A strong read, the node added last, has observed releases.
    pub(super) fn notice(&mut self, launch: &Launch<'_>, node: usize, at: Place) {
        let thread = self.nodes[node].thread;
        let written = self.observed.get(&node).into_iter().flatten();
        let releases: BTreeSet<usize> = written
            .flat_map(|&write| self.releases(launch, write, (thread, Scope::Sys)))
            .collect();
        let all = self.scalars.observed.entry(thread).or_default();
        let known = |of: &&Observed| of.at == at && of.releases.is_superset(&releases);
        if releases.is_empty() || all.iter().any(|of| known(&of)) {
            return;
        }
        all.retain(|of| of.at != at || !of.releases.is_subset(&releases));
        all.push(Observed {
            at,
            releases,
            tried: false,
        });
    }

    /// A thread acquires what it has observed, by a fence or by a read of one place, as far as the scope
    /// goes.
    pub(super) fn try_to_acquire(&mut self, thread: Thread, only: Option<Place>) {
        let all = self.scalars.observed.get_mut(&thread).into_iter().flatten();
        all.filter(|of| only.is_none_or(|at| of.at == at))
            .for_each(|of| of.tried = true);
    }

    /// A thread, whose node was added last, has acquired what it has observed without trying to.
    pub(super) fn imply(&mut self, thread: Thread) {
        let mut releases = Vec::new();
        let all = self.scalars.observed.get_mut(&thread).into_iter().flatten();
        for of in all.filter(|of| !of.tried) {
            of.tried = true;
            releases.extend(of.releases.iter().copied());
        }
        for release in releases {
            self.edge(release, &[Under::Strong]);
        }
    }
}

/// Whether an access shows that its scalar is one that threads communicate through.
fn is_signal(launch: &Launch<'_>, access: &Access, line: u32) -> bool {
    let ordered = !matches!(access.order, Order::Relaxed(_));
    ordered || launch.waits.contains(&line)
}
