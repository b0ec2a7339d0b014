//! Falsified runs: what the engine would receive if something on the way were wrong.

use runtime::traced::{EventKind, TraceEvent};
use shadow::hb::{Completion, FenceKind, Location, MemoryOrder, OpKind, Scope};

/// A way to falsify one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It is not sent.
    Dropped,
    /// It is sent twice.
    Twice,
    /// One of several lanes is missing.
    LessLanes,
    /// Another line.
    Line,
    /// Another place: of an access, a copy or an mbarrier.
    Location,
    /// More bytes.
    Bytes,
    /// Another kind of access or fence.
    OpKind,
    /// Another order, as weak or as relaxed.
    MemoryOrder,
    /// Another scope.
    Scope,
    /// Another barrier or phase.
    Barrier,
    /// Waits instead of arriving only, and the other way around; `.relaxed` or not.
    Flag,
    /// A phase is said to be over, or not to be.
    Over,
    /// It is sent before what came before it in the same thread, or what made it happen.
    Early,
}

/// All of them.
pub const FAULTS: [Fault; 13] = [
    Fault::Dropped,
    Fault::Twice,
    Fault::LessLanes,
    Fault::Line,
    Fault::Location,
    Fault::Bytes,
    Fault::OpKind,
    Fault::MemoryOrder,
    Fault::Scope,
    Fault::Barrier,
    Fault::Flag,
    Fault::Over,
    Fault::Early,
];

impl Fault {
    /// Whether a loop that waits may run in this way, too, so that nothing need be noticed.
    pub fn may_be_a_loop(self) -> bool {
        matches!(self, Self::Dropped | Self::Twice | Self::LessLanes)
    }

    /// The run with the event of a number falsified; nothing where that changes nothing.
    pub fn falsify(self, traced: &[TraceEvent], number: usize) -> Option<Vec<TraceEvent>> {
        let event = traced.get(number)?;
        let mut all = traced.to_vec();
        match self {
            Self::Dropped => drop(all.remove(number)),
            Self::Twice => all.insert(number, event.clone()),
            Self::Early => {
                let before = traced.get(number.checked_sub(1)?)?;
                let one = (before.cta, before.warp) == (event.cta, event.warp);
                let ends = matches!(
                    event.what,
                    EventKind::Complete { .. } | EventKind::MbarrierComplete { .. }
                );
                let after = matches!(before.what, EventKind::Complete { .. });
                let together = one && before.lanes & event.lanes != 0;
                // Several barriers may end at once.
                if before == event || after || !(ends || together) {
                    return None;
                }
                all.swap(number - 1, number);
            }
            _ => all[number] = self.falsified(event)?,
        }
        Some(all)
    }

    fn falsified(self, event: &TraceEvent) -> Option<TraceEvent> {
        let mut other = event.clone();
        match (self, &mut other.what) {
            (Self::LessLanes, what) if event.lanes.count_ones() > 1 => {
                other.lanes &= other.lanes - 1;
                if let EventKind::Access { locations, .. } = what {
                    locations.remove(0);
                }
                // Of a whole warp's barrier, lanes that have ended may be named or not.
                if *what == EventKind::WarpBarrier {
                    return None;
                }
            }
            (Self::Line, _) if event.line > 0 => other.line += 1,
            (Self::Location, EventKind::Access { locations, .. }) => beside(locations.first_mut()?),
            (Self::Location, EventKind::Copy { to, .. }) => beside(&mut to.location),
            (
                Self::Location,
                EventKind::Mbarrier { at, .. } | EventKind::MbarrierComplete { at },
            ) => beside(at),
            (Self::Bytes, EventKind::Access { access, .. }) => access.bytes *= 2,
            (Self::Bytes, EventKind::Copy { from, .. }) => from.bytes += 4,
            (Self::OpKind, EventKind::Access { access, .. }) => {
                access.kind = match access.kind {
                    OpKind::Load => OpKind::Store,
                    OpKind::Store => OpKind::Load,
                    OpKind::Rmw => OpKind::Reduction,
                    OpKind::Reduction => OpKind::Rmw,
                };
            }
            (Self::OpKind, EventKind::Fence { kind, .. }) => {
                *kind = match kind {
                    FenceKind::Sc => FenceKind::AcqRel,
                    _ => FenceKind::Sc,
                };
            }
            (Self::OpKind, EventKind::Copy { ends, to, .. }) => {
                *ends = match ends {
                    Completion::Group => Completion::Mbarrier(to.location),
                    Completion::Mbarrier(_) => Completion::Group,
                };
            }
            (Self::MemoryOrder, EventKind::Access { access, .. }) => {
                access.order = weaker(access.order)
            }
            (
                Self::MemoryOrder,
                EventKind::Mbarrier {
                    order: Some(order), ..
                },
            ) => *order = weaker(*order),
            (Self::Scope, EventKind::Access { access, .. }) => {
                access.order = within(access.order, narrower(access.order.scope()?));
            }
            (
                Self::Scope,
                EventKind::Mbarrier {
                    order: Some(order), ..
                },
            ) => *order = within(*order, narrower(order.scope()?)),
            (Self::Scope, EventKind::Fence { scope, .. }) => *scope = narrower(*scope),
            (Self::Barrier, EventKind::Arrive { id, .. } | EventKind::Complete { id }) => *id += 1,
            (
                Self::Barrier,
                EventKind::ClusterArrive { phase, .. } | EventKind::ClusterWait { phase },
            ) => {
                *phase += 1;
            }
            (Self::Flag, EventKind::Arrive { waits, .. }) => *waits = !*waits,
            (Self::Flag, EventKind::ClusterArrive { relaxed, .. }) => *relaxed = !*relaxed,
            (Self::Flag, EventKind::Copy { bulk, .. } | EventKind::Commit { bulk }) => {
                *bulk = !*bulk
            }
            (Self::Flag, EventKind::Wait(wait)) => wait.bulk = !wait.bulk,
            (Self::Over, EventKind::Mbarrier { over, .. }) => *over = !*over,
            _ => return None,
        }
        Some(other)
    }
}

/// Moves a place by a byte.
fn beside(location: &mut Location) {
    match location {
        Location::Global(address) => *address += 1,
        Location::Shared { offset, .. } => *offset += 1,
    }
}

fn narrower(scope: Scope) -> Scope {
    match scope {
        Scope::Cta => Scope::Gpu,
        Scope::Cluster => Scope::Cta,
        Scope::Gpu => Scope::Cluster,
        Scope::Sys => Scope::Gpu,
    }
}

fn weaker(order: MemoryOrder) -> MemoryOrder {
    match order {
        MemoryOrder::Weak => MemoryOrder::Relaxed(Scope::Gpu),
        MemoryOrder::ReadOnly | MemoryOrder::Relaxed(_) => MemoryOrder::Weak,
        MemoryOrder::Acquire(scope) | MemoryOrder::Release(scope) => MemoryOrder::Relaxed(scope),
        MemoryOrder::AcqRel(scope) => MemoryOrder::Acquire(scope),
    }
}

fn within(order: MemoryOrder, scope: Scope) -> MemoryOrder {
    match order {
        MemoryOrder::Relaxed(_) => MemoryOrder::Relaxed(scope),
        MemoryOrder::Acquire(_) => MemoryOrder::Acquire(scope),
        MemoryOrder::Release(_) => MemoryOrder::Release(scope),
        MemoryOrder::AcqRel(_) => MemoryOrder::AcqRel(scope),
        other => other,
    }
}
