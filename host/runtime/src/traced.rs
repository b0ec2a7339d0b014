//! What the happens-before engine is given, written down.
//!
//! For tests of the tool itself: whatever lies between the program's text and the engine (the rewriter,
//! the simulated device, and what instructions are taken to mean) has its say in this, and a second
//! opinion can be compared with it, one by one.

use events::Executing;
use shadow::hb::{Access, Completion, FenceKind, Location, MemoryOrder, Scope, Span, Waited};

/// Something that lanes of a warp have done, in the order of the launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Linear index of the CTA in the grid.
    pub cta: u64,
    /// Warp in the CTA; 0 for the end of a barrier.
    pub warp: u32,
    /// The lanes, one bit each; none for the end of a barrier.
    pub lanes: u32,
    /// Line of the instruction in the program's own PTX, from 1; 0 for the end of a barrier or thread.
    pub line: u32,
    /// What it was.
    pub what: EventKind,
}

/// What was done. Sites are named by [`TraceEvent::line`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An access, as the instruction is written, whatever the memory model.
    Access {
        /// What it does.
        access: Access,
        /// Where, by lane, lowest first.
        locations: Vec<Location>,
    },
    /// A fence.
    Fence {
        /// Which.
        kind: FenceKind,
        /// Its scope.
        scope: Scope,
    },
    /// A fence between the async proxy and the others.
    ProxyFence,
    /// `fence.mbarrier_init`
    InitFence,
    /// Arrivals at a barrier of the CTA.
    Arrive {
        /// Which of the CTA's barriers.
        id: u32,
        /// They wait there, too.
        waits: bool,
        /// The barrier has a thread count.
        counted: bool,
    },
    /// The end of a barrier of the CTA.
    Complete {
        /// Which of the CTA's barriers.
        id: u32,
    },
    /// Lanes pass a barrier of their warp together; bits of lanes that have exited may be set.
    WarpBarrier,
    /// Arrivals at the barrier of the cluster.
    ClusterArrive {
        /// The phase, from 0.
        phase: u64,
        /// `.relaxed`
        relaxed: bool,
    },
    /// A wait at the barrier of the cluster is over.
    ClusterWait {
        /// The phase, from 0.
        phase: u64,
    },
    /// An asynchronous copy by one lane.
    Copy {
        /// What it reads.
        from: Span,
        /// What it writes.
        to: Span,
        /// How it ends.
        ends: Completion,
        /// A bulk copy.
        bulk: bool,
        /// What it does to each element of its target, if it reduces.
        reduces: Option<Access>,
    },
    /// The end of a group of copies.
    Commit {
        /// Of bulk copies.
        bulk: bool,
    },
    /// A wait for copies.
    Wait(Waited),
    /// An operation of one lane on an mbarrier.
    Mbarrier {
        /// Where that lies.
        at: Location,
        /// Its access of the object, if it is one.
        access: Option<Access>,
        /// How it orders others; none for what is neither an arrival nor a wait.
        order: Option<MemoryOrder>,
        /// It has ended a phase, or the phase that it waits for is over.
        over: bool,
    },
    /// Bytes have ended a phase of an mbarrier.
    MbarrierComplete {
        /// Where that lies.
        at: Location,
    },
    /// The end of threads.
    Exit,
}

impl TraceEvent {
    pub(crate) fn new(threads: Executing, line: u32, what: EventKind) -> Self {
        Self {
            cta: threads.cta,
            warp: threads.warp,
            lanes: threads.lanes,
            line,
            what,
        }
    }
}
