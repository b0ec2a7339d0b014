//! Unordered strong conflicts: strong accesses that include each other in their scopes, one of them a plain
//! load or store and one a write, of a scalar that threads do not communicate through, in no order
//! (docs/memory-model.md, CR011).
//!
//! Who observes a release has acquired it, if nothing else says so: the thread does so when an access of
//! its own is ordered by nothing else, and before it passes on what it knows. A fence or an acquire of too
//! narrow a scope says otherwise, until the thread observes more than it had.
//!
//! Accesses under one lock are ordered if both critical sections have their fences, and by what orders them
//! besides the lock ([`super::locks`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use runtime::Model;
use shadow::hb::{Access, Location, MemoryOrder, OpKind, Scope};

use super::locks::Locks;
use super::order::{Run, Under};
use super::{Launch, Thread, What, atomic, party, writes};

/// Releases that a thread has observed in one place.
struct Observed {
    at: Location,
    releases: BTreeSet<usize>,
    /// An acquire has dealt with them, whether its scope was wide enough or not.
    tried: bool,
}

/// A place and the bytes of an access there.
type Scalar = (Location, u32);

/// What is known of the scalars of a run.
#[derive(Default)]
pub(super) struct Scalars {
    accesses: HashMap<Scalar, Vec<usize>>,
    /// Those that threads communicate through.
    signals: BTreeSet<Scalar>,
    observed: [BTreeMap<Thread, Vec<Observed>>; 2],
    /// Conflicts that are not ordered in one of [`LENIENT`].
    found: Vec<Conflict>,
}

/// The orders in which who observes a release has acquired it.
pub(super) const LENIENT: [Under; 2] = [Under::Strong, Under::Unlocked];

/// Two accesses, by their nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessPair {
    pub(super) earlier: usize,
    pub(super) later: usize,
}

/// Two accesses that conflict.
#[derive(Debug)]
struct Conflict {
    pair: AccessPair,
    /// In each of the [orders](LENIENT): nothing orders them.
    unordered: [bool; 2],
}

/// The pairs of accesses that conflict in no order.
pub(super) struct Conflicts {
    pub(super) all: Vec<AccessPair>,
    /// It is left open whether they are to be reported: something else orders them than a lock without its fences, or one
    /// may be under a lock that nothing gives back.
    pub(super) open: Vec<AccessPair>,
}

impl Run {
    /// The pairs of accesses that conflict in no order.
    pub(super) fn unordered(&self, launch: &Launch<'_>, locks: &Locks) -> Conflicts {
        let (mut all, mut open) = (Vec::new(), Vec::new());
        for conflict in &self.scalars.found {
            let pair @ AccessPair { earlier, later } = conflict.pair;
            let [strong, unlocked] = conflict.unordered;
            let What::Access(access, at) = self.nodes[later].what else {
                continue;
            };
            if self.scalars.signals.contains(&(at, access.bytes)) || locks.is_lock(at) {
                continue;
            }
            if locks.is_doubtful(earlier) || locks.is_doubtful(later) {
                open.push(pair);
                continue;
            }
            match locks.fenced(launch, earlier, later) {
                None if strong => all.push(pair),
                Some(false) if unlocked => all.push(pair),
                Some(false) => open.push(pair),
                None | Some(true) => {}
            }
        }
        Conflicts { all, open }
    }

    /// Compares a strong access, the node added last, with earlier ones of its scalar.
    pub(super) fn compare(
        &mut self,
        launch: &Launch<'_>,
        node: usize,
        access: Access,
        at: Location,
    ) {
        let scalar = (at, access.bytes);
        let line = self.nodes[node].line;
        if is_signal(launch, &access, line) {
            self.scalars.signals.insert(scalar);
        }
        let earlier = self.scalars.accesses.entry(scalar).or_default();
        earlier.push(node);
        if self.model == Model::Ptx || self.scalars.signals.contains(&scalar) {
            return;
        }
        let earlier = earlier.clone();
        for &before in &earlier[..earlier.len() - 1] {
            if !self.conflicts(launch, before, node) || self.counted(&earlier, before, node) {
                continue;
            }
            let unordered = LENIENT.map(|under| {
                let ordered = |run: &Self| run.before(under, node).has(before);
                if !ordered(self) {
                    self.imply(self.nodes[node].thread, &[under]);
                }
                !ordered(self)
            });
            self.scalars.found.push(Conflict {
                pair: AccessPair {
                    earlier: before,
                    later: node,
                },
                unordered,
            });
        }
    }

    /// Whether two accesses of a scalar are the sides of a conflict.
    fn conflicts(&self, launch: &Launch<'_>, a: usize, b: usize) -> bool {
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
            && launch.mutual(party(first.thread, mine), party(second.thread, theirs))
    }

    /// Whether a store comes behind an atomic that a later atomic of its own thread has counted.
    fn counted(&self, accesses: &[usize], a: usize, b: usize) -> bool {
        let kind = |node: usize| match self.nodes[node].what {
            What::Access(access, _) => Some(access.kind),
            _ => None,
        };
        let counts = |&node: &usize| {
            let own = self.nodes[node].thread == self.nodes[b].thread;
            node > a && own && kind(node) == Some(OpKind::Rmw)
        };
        kind(a).is_some_and(atomic) && kind(b) == Some(OpKind::Store) && accesses.iter().any(counts)
    }

    /// A strong read, the node added last, has observed releases.
    pub(super) fn notice(&mut self, launch: &Launch<'_>, node: usize, at: Location) {
        if self.model == Model::Ptx {
            return;
        }
        let thread = self.nodes[node].thread;
        let written = self.observed.get(&node).into_iter().flatten();
        let releases: BTreeSet<usize> = written
            .flat_map(|&write| self.releases(launch, write, party(thread, Scope::Sys)))
            .collect();
        let takes = launch.takes.contains(&self.nodes[node].line);
        for (under, observed) in LENIENT.iter().zip(&mut self.scalars.observed) {
            let all = observed.entry(thread).or_default();
            let known = |of: &Observed| of.at == at && of.releases.is_superset(&releases);
            let nothing = takes && *under == Under::Unlocked;
            if nothing || releases.is_empty() || all.iter().any(known) {
                continue;
            }
            all.retain(|of| of.at != at || !of.releases.is_subset(&releases));
            all.push(Observed {
                at,
                releases: releases.clone(),
                tried: false,
            });
        }
    }

    /// A thread acquires what it has observed, by a fence or by a read of one place, as far as the scope
    /// goes.
    pub(super) fn try_to_acquire(&mut self, thread: Thread, only: Option<Location>) {
        let both = self.scalars.observed.iter_mut();
        let all = both.filter_map(|observed| observed.get_mut(&thread));
        all.flatten()
            .filter(|of| only.is_none_or(|at| of.at == at))
            .for_each(|of| of.tried = true);
    }

    /// A thread, whose node was added last, has acquired what it has observed without trying to.
    pub(super) fn imply(&mut self, thread: Thread, orders: &[Under]) {
        let mut releases = Vec::new();
        for (under, observed) in LENIENT.iter().zip(&mut self.scalars.observed) {
            let all = observed.get_mut(&thread).into_iter().flatten();
            for of in all.filter(|of| !of.tried && orders.contains(under)) {
                of.tried = true;
                releases.extend(of.releases.iter().map(|&release| (release, *under)));
            }
        }
        for (release, under) in releases {
            self.edge(release, under);
        }
    }
}

/// Whether an access shows that its scalar is one that threads communicate through.
fn is_signal(launch: &Launch<'_>, access: &Access, line: u32) -> bool {
    let ordered = !matches!(access.order, MemoryOrder::Relaxed(_));
    ordered || launch.waits.contains(&line)
}
