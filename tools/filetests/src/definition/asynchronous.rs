//! Asynchronous copies and asynchronous barriers (mbarriers).
//!
//! PTX ISA, "Asynchronous Operations": a thread does not make its copy itself. The copy comes behind what the thread has
//! done before, and before what follows a wait for it: of the thread for its group, or of any thread for the phase of the
//! mbarrier that it completes with. A thread that waits for the phase learns of the copy, and not of what the issuing thread
//! has done besides; of `st.async` and `red.async` it learns that too, because the ISA says so of bulk copies alone.
//!
//! PTX ISA, "mbarrier": an arrival is a release, and a wait that finds its phase over an acquire. Where one is `.relaxed`, a
//! fence in front of the arrival or behind the wait takes its place, within the scopes of both.

use std::collections::BTreeMap;

use runtime::traced::{EventKind, TraceEvent};
use shadow::hb::{Access, Completion, LANES, Location, MemoryOrder, OpKind, Scope, Span, Waited};

use super::order::{Run, Under};
use super::{Launch, Party, Thread, What, byte, party, threads};

/// Bytes of an mbarrier.
pub(super) const MBARRIER: u32 = 8;

/// The nodes of one copy.
#[derive(Clone, Default)]
struct Copy {
    reads: Vec<usize>,
    writes: Vec<usize>,
}

/// Copies of a thread that end with groups.
#[derive(Default)]
struct Groups {
    open: Vec<Copy>,
    /// Oldest first.
    closed: Vec<Vec<Copy>>,
}

/// A node that the end of a phase makes known to threads that `by` includes, and that include it.
#[derive(Clone, Copy)]
struct Arrival {
    node: usize,
    by: Party,
}

/// An mbarrier.
#[derive(Default)]
struct Phases {
    current: Vec<Arrival>,
    over: Vec<Arrival>,
}

/// An operation of one thread on an mbarrier.
struct Operation {
    thread: Thread,
    line: u32,
    at: Location,
    access: Access,
    order: Option<MemoryOrder>,
    over: bool,
}

/// A copy that one thread issues.
struct Issue {
    thread: Thread,
    line: u32,
    from: Span,
    to: Span,
    ends: Completion,
    bulk: bool,
    reduces: Option<Access>,
}

/// The copies and mbarriers of a run.
#[derive(Default)]
pub(super) struct Asynchronous {
    copies: u32,
    /// By thread; bulk copies have groups of their own.
    groups: BTreeMap<(Thread, bool), Groups>,
    mbarriers: BTreeMap<Location, Phases>,
    /// What relaxed waits of a thread have found over, and their scope.
    found_over: BTreeMap<Thread, Vec<(Arrival, Scope)>>,
    /// Reads of bulk copies.
    pub(super) bulk_reads: Vec<usize>,
    /// Fences between the async proxy and the others.
    pub(super) proxy_fences: Vec<usize>,
}

/// Whether a thread stands for what makes a copy.
pub(super) fn makes_copies(thread: Thread) -> bool {
    thread.lane >= LANES
}

impl Asynchronous {
    /// What a wait for groups of a thread waits for.
    fn done(&self, thread: Thread, waited: Waited) -> Vec<usize> {
        let Some(groups) = self.groups.get(&(thread, waited.bulk)) else {
            return Vec::new();
        };
        let left = waited.left.unwrap_or(0) as usize;
        let over = groups.closed.len().saturating_sub(left);
        let open = groups.open.iter().filter(|_| waited.left.is_none());
        let copies = groups.closed[..over].iter().flatten().chain(open);
        let nodes = copies.flat_map(|copy| {
            let writes = copy.writes.iter().filter(|_| !waited.reads);
            copy.reads.iter().chain(writes)
        });
        nodes.copied().collect()
    }

    /// The nodes of all copies of a thread but the bulk copies, in groups or not.
    fn copied(&self, thread: Thread) -> Vec<usize> {
        let groups = self.groups.get(&(thread, false)).into_iter();
        let copies = groups.flat_map(|groups| groups.closed.iter().flatten().chain(&groups.open));
        let nodes = copies.flat_map(|copy| copy.reads.iter().chain(&copy.writes));
        nodes.copied().collect()
    }

    fn arrive(&mut self, at: Location, node: usize, by: Party) {
        let phases = self.mbarriers.entry(at).or_default();
        phases.current.push(Arrival { node, by });
    }

    fn end_phase(&mut self, at: Location) {
        let phases = self.mbarriers.entry(at).or_default();
        let current = std::mem::take(&mut phases.current);
        phases.over.extend(current);
    }
}

impl Run {
    /// A copy, a wait for copies, or an operation on an mbarrier.
    pub(super) fn asynchronous_event(
        &mut self,
        launch: &Launch<'_>,
        event: &TraceEvent,
    ) -> Option<()> {
        let line = event.line;
        for thread in threads(event) {
            match event.what {
                EventKind::Copy {
                    from,
                    to,
                    ends,
                    bulk,
                    reduces,
                } => {
                    let issue = Issue {
                        thread,
                        line,
                        from,
                        to,
                        ends,
                        bulk,
                        reduces,
                    };
                    self.copy(launch, issue)?;
                }
                EventKind::Commit { bulk } => {
                    let groups = self.asynchronous.groups.entry((thread, bulk)).or_default();
                    let group = std::mem::take(&mut groups.open);
                    groups.closed.push(group);
                }
                EventKind::Wait(waited) => {
                    let done = self.asynchronous.done(thread, waited);
                    self.goes_behind(thread, &done);
                }
                EventKind::Mbarrier {
                    at, access: None, ..
                } => {
                    self.asynchronous.mbarriers.remove(&at);
                }
                EventKind::Mbarrier {
                    at,
                    access: Some(access),
                    order,
                    over,
                } => {
                    let operation = Operation {
                        thread,
                        line,
                        at,
                        access,
                        order,
                        over,
                    };
                    self.operate(launch, &operation);
                }
                EventKind::ProxyFence => {
                    let node = self.node(thread, line, What::Point);
                    self.asynchronous.proxy_fences.push(node);
                }
                _ => {}
            }
        }
        if let EventKind::MbarrierComplete { at } = event.what {
            self.asynchronous.end_phase(at);
        }
        Some(())
    }

    fn copy(&mut self, launch: &Launch<'_>, issue: Issue) -> Option<()> {
        let (thread, line) = (issue.thread, issue.line);
        let (from, to) = (issue.from, issue.to);
        let issued = self.node(thread, line, What::Point);
        let maker = Thread {
            lane: LANES + self.asynchronous.copies,
            ..thread
        };
        self.asynchronous.copies += 1;
        let mut copy = Copy::default();
        let weak = |kind, bytes| Access {
            kind,
            order: MemoryOrder::Weak,
            bytes,
            elements: 1,
            site: 0,
        };
        let makes = |run: &mut Self, access: Access, at| {
            run.goes_behind(maker, &[issued]);
            let node = run.nodes.len();
            run.access(launch, maker, line, access, at).map(|()| node)
        };
        if from.bytes > 0 {
            let node = makes(self, weak(OpKind::Load, from.bytes), from.location)?;
            copy.reads.push(node);
            if issue.bulk {
                self.asynchronous.bulk_reads.push(node);
            }
        }
        let access = match issue.reduces {
            Some(access) => Access {
                elements: 1,
                ..access
            },
            None => weak(OpKind::Store, to.bytes),
        };
        for behind in (0..to.bytes).step_by(access.bytes.max(1) as usize) {
            let node = makes(self, access, byte(to.location, behind))?;
            copy.writes.push(node);
        }
        let Completion::Mbarrier(at) = issue.ends else {
            let groups = self.asynchronous.groups.entry((thread, issue.bulk));
            groups.or_default().open.push(copy);
            return Some(());
        };
        // Its bytes are counted there.
        self.goes_behind(maker, &[issued]);
        let counted = self.node(maker, line, What::Access(object(OpKind::Reduction), at));
        copy.writes.push(counted);
        if !issue.bulk {
            // `st.async` and `red.async` are arrivals of their threads, too.
            let by = party(thread, Scope::Cluster);
            self.asynchronous.arrive(at, issued, by);
        }
        // A wait by the block that the mbarrier belongs to learns of the copy, whichever block has issued it.
        let owner = match at {
            Location::Shared { cta, .. } => Thread {
                cta,
                warp: 0,
                lane: 0,
            },
            Location::Global(_) => thread,
        };
        for node in copy.reads.into_iter().chain(copy.writes) {
            let by = party(owner, Scope::Cluster);
            self.asynchronous.arrive(at, node, by);
        }
        Some(())
    }

    fn operate(&mut self, launch: &Launch<'_>, operation: &Operation) {
        let (thread, at, access) = (operation.thread, operation.at, operation.access);
        if access.kind == OpKind::Load && !operation.over {
            // It looks again.
            return;
        }
        let node = self.node(thread, operation.line, What::Access(access, at));
        match (access.kind, operation.order) {
            (OpKind::Store, _) => {
                self.asynchronous.mbarriers.insert(at, Phases::default());
                return;
            }
            (OpKind::Load, Some(order)) => {
                self.find_over(launch, thread, at, order);
                return;
            }
            (_, Some(MemoryOrder::Release(scope))) => {
                self.asynchronous.arrive(at, node, party(thread, scope));
            }
            (_, Some(MemoryOrder::Relaxed(scope))) => {
                for (fence, of) in self.fences(thread) {
                    let by = party(thread, scope.min(of));
                    self.asynchronous.arrive(at, fence, by);
                }
            }
            _ if launch.copies_arrive.contains(&operation.line) => {
                for node in self.asynchronous.copied(thread) {
                    let by = party(thread, Scope::Cta);
                    self.asynchronous.arrive(at, node, by);
                }
            }
            _ => {}
        }
        if operation.over {
            self.asynchronous.end_phase(at);
        }
    }

    /// A wait finds a phase of an mbarrier over.
    fn find_over(&mut self, launch: &Launch<'_>, thread: Thread, at: Location, order: MemoryOrder) {
        let (scope, acquires) = match order {
            MemoryOrder::Acquire(scope) => (scope, true),
            MemoryOrder::Relaxed(scope) => (scope, false),
            _ => return,
        };
        let phases = self.asynchronous.mbarriers.get(&at);
        let over = phases.map_or(&[][..], |phases| &phases.over);
        let me = party(thread, scope);
        let over: Vec<Arrival> = over
            .iter()
            .filter(|arrival| launch.mutual(arrival.by, me))
            .copied()
            .collect();
        if acquires {
            let nodes: Vec<usize> = over.iter().map(|arrival| arrival.node).collect();
            self.goes_behind(thread, &nodes);
        } else {
            let found = self.asynchronous.found_over.entry(thread).or_default();
            found.extend(over.into_iter().map(|arrival| (arrival, scope)));
        }
    }

    /// A fence of a thread, the node added last, acquires what relaxed waits have found over.
    pub(super) fn acquire_phases(&mut self, launch: &Launch<'_>, fence: Party, under: &[Under]) {
        let found = self.asynchronous.found_over.get(&fence.thread);
        let found = found.cloned().unwrap_or_default();
        for (arrival, scope) in found {
            let me = party(fence.thread, scope.min(fence.scope));
            if launch.mutual(arrival.by, me) {
                under
                    .iter()
                    .for_each(|&under| self.edge(arrival.node, under));
            }
        }
    }
}

/// An access of an mbarrier, atomic with all others of it but those that make it one.
fn object(kind: OpKind) -> Access {
    Access {
        kind,
        order: MemoryOrder::Relaxed(Scope::Sys),
        bytes: MBARRIER,
        elements: 1,
        site: 0,
    }
}
