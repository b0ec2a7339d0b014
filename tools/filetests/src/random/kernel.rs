//! What a random kernel consists of.
//!
//! All threads walk through the same steps; in most steps only a role acts. Every barrier is met by
//! all whom it waits for, in the same order, and loops that wait for a flag give up, so that no
//! kernel hangs.

use std::collections::BTreeSet;

pub use events::Scope;

/// Lanes of a warp.
pub const LANES: u32 = 32;
/// Bytes of the hot part of either memory: fixed places, and a row for each lane behind them.
pub const HOT: u32 = 512;
/// Distance of places that share a cell of the smallest shadow memory, whatever the granule.
pub const FAR: u32 = 16384;

/// A kernel and its launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Where it came from.
    pub seed: u64,
    /// CTAs of the grid, 1 to 4.
    pub ctas: u32,
    /// Warps of a CTA, 1 to 3.
    pub warps: u32,
    /// Clusters of two CTAs.
    pub clusters: bool,
    /// The smallest shadow memory there is, where places that are [`FAR`] apart share a cell.
    pub small_shadow: bool,
    /// Threads that act together.
    pub roles: Vec<Role>,
    /// Each CTA's mbarriers that go through several phases, two at most.
    pub gates: Vec<Gate>,
    /// What happens.
    pub steps: Vec<Step>,
    /// Nothing orders the first use of mbarriers behind their initialisation.
    pub early: bool,
    /// Kernels that stand in the same module and are not launched.
    pub beside: Vec<Kernel>,
}

/// The threads of some CTAs, warps and lanes; one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// CTAs of the grid.
    pub ctas: u32,
    /// Warps of a CTA.
    pub warps: u32,
    /// Lanes of a warp.
    pub lanes: u32,
}

/// An mbarrier that goes through several phases.
///
/// A thread arrives in a phase only when it knows that the one before is over, so that no phase gets
/// more arrivals than it expects, and nobody waits for one that is long over. Who has waited in vain
/// neither arrives nor waits again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Index of the role whose threads arrive at it.
    pub role: usize,
    /// Arrivals of each of them in a phase: 1 or 2.
    pub share: u32,
    /// Where a thread that has arrived here waits next: at the same one, or at the other one of a
    /// pair, whose threads wait here. Who has waited here arrives there.
    pub then: usize,
    /// Its threads arrive first; else they wait at the other one of the pair first.
    pub begins: bool,
}

/// How a thread does its arrivals in a phase of a [`Gate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// All at once.
    Whole,
    /// One by one.
    OneByOne,
    /// All but the last with `.noComplete`, which cannot end the phase, because the last is missing.
    NoComplete,
    /// For good (`arrive_drop`), but for the first thread, because somebody has to stay.
    Drop,
    /// One when its copies are complete, if that is one of several or nobody needs a state;
    /// otherwise besides.
    Copies,
    /// The first thread issues a bulk copy into shared memory, which the phase waits for too.
    Bulk {
        /// Where it reads.
        from: Target,
        /// Where it writes.
        to: Target,
        /// `expect_tx` alone, in front of the copy; the arrival follows behind.
        apart: bool,
    },
}

/// How an operation on a [`Gate`] orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// Nothing said: release or acquire, of cta scope.
    Plain,
    /// `.release` or `.acquire`, of cluster scope.
    Cluster,
    /// `.relaxed`, of a scope.
    Relaxed(Scope),
}

/// One step of all threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A role acts, and the others do something else or nothing.
    Acts {
        /// Index of the role.
        role: usize,
        /// A branch around the acts, instead of a predicate on each.
        branch: bool,
        /// What the role does.
        acts: Vec<Act>,
        /// What the others do; needs the branch.
        others: Vec<Act>,
        /// Where the role's acts stand.
        call: Call,
    },
    /// A barrier of the whole CTA.
    Barrier(Whole),
    /// A barrier of some warps: those in `sync` wait, those in `arrive` do not.
    Named {
        /// Its number, used nowhere else.
        id: u32,
        /// Warps that wait.
        sync: u32,
        /// Warps that arrive only.
        arrive: u32,
    },
    /// `bar.warp.sync`, by the lanes of the mask of every warp.
    WarpBarrier {
        /// The lanes.
        mask: u32,
        /// The mask stands in a register.
        register: bool,
    },
    /// Arrival at the cluster's barrier.
    ClusterArrive {
        /// It orders nothing.
        relaxed: bool,
    },
    /// The wait for it.
    ClusterWait,
    /// A barrier of the whole grid, as cooperative groups write it.
    Grid,
    /// The same, several times.
    Loop {
        /// How often.
        times: u32,
        /// What.
        steps: Vec<Step>,
    },
}

/// Where acts stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// In the kernel.
    Inline,
    /// In a function that is called by name.
    Direct,
    /// In one that is called through a register that got its address.
    Pointer,
    /// In one whose address stands in a table in global memory.
    Table,
    /// In one whose address stands in a table that an object in global memory names.
    Virtual,
}

/// A way to write a barrier of the whole CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// `bar.sync`
    Bar,
    /// `barrier.cta.sync`, which lanes may come to one by one.
    Unaligned,
    /// `bar.red`
    Reduce,
}

/// What one thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// An access of memory.
    Access(Access),
    /// A fence.
    Fence(&'static str, Scope),
    /// Looks at a flag until it is set, so many times at most; [`Access::after_flag`] depends on it.
    Poll {
        /// The load or atomic that looks.
        access: Access,
        /// How often.
        tries: u32,
        /// It looks once before, and not again if the flag is set then: nobody may ever come to the loop.
        before: bool,
    },
    /// Tries to take a lock, so many times at most; [`Access::after_flag`] depends on it.
    Take {
        /// `atom.cas` or `atom.exch`.
        access: Access,
        /// How often.
        tries: u32,
    },
    /// Gives the lock back that it has taken, if it has.
    Give(Access),
    /// `st.async`, or `red.async` with its operation, into shared memory of the other CTA of the cluster. It
    /// completes with the mbarrier of that CTA; its own one expects as many bytes.
    Send {
        /// Where it writes.
        to: Target,
        /// The operation.
        op: Option<&'static str>,
    },
    /// `cp.async` from global to shared memory.
    Copy {
        /// Where it reads.
        from: Target,
        /// Where it writes.
        to: Target,
    },
    /// `cp.async.commit_group`
    Commit,
    /// `cp.async.wait_group`, until so many are left; none for `wait_all`.
    WaitGroup(Option<u32>),
    /// `cp.async.bulk` between the memories: into shared memory, completing with the mbarrier that
    /// it arrives at in front, or out of it in a bulk group. With an operation it is `cp.reduce.async.bulk` on words, into
    /// global memory.
    Bulk {
        /// Where it reads.
        from: Target,
        /// Where it writes.
        to: Target,
        /// The operation.
        op: Option<&'static str>,
    },
    /// `cp.async.bulk.commit_group`
    BulkCommit,
    /// `cp.async.bulk.wait_group`
    BulkWait {
        /// Until so many are left.
        left: u32,
        /// Only until they have read.
        read: bool,
    },
    /// `fence.proxy.async`
    ProxyFence,
    /// Arrives at the CTA's mbarrier.
    Arrive {
        /// When its copies are complete.
        copies: bool,
        /// `.relaxed`; not of copies.
        relaxed: bool,
    },
    /// Looks at the mbarrier until its first phase is over, so many times at most.
    Pass {
        /// How often.
        tries: u32,
        /// `.relaxed`
        relaxed: bool,
    },
    /// Does its arrivals at one of [`Kernel::gates`], if it may.
    Enter {
        /// Its number.
        gate: usize,
        /// How.
        how: Entry,
        /// Of what is no copy.
        strength: Strength,
    },
    /// Looks at one of [`Kernel::gates`] until the phase is over, so many times at most, if it has
    /// to wait there; [`Access::after_flag`] depends on it.
    Leave {
        /// Its number.
        gate: usize,
        /// By the state that its own arrival gave; else by parity.
        state: bool,
        /// `try_wait`
        suspends: bool,
        /// How it orders others.
        strength: Strength,
        /// How often.
        tries: u32,
    },
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What it does.
    pub kind: AccessKind,
    /// How it orders others.
    pub order: AccessOrder,
    /// Where.
    pub target: Target,
    /// Only if the thread's last poll has seen its flag.
    pub after_flag: bool,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// `ld`
    Load,
    /// `st`
    Store,
    /// `atom`, with its operation.
    Atom(&'static str),
    /// `red`, likewise.
    Red(&'static str),
}

/// How an access orders others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOrder {
    /// Nothing said: weak, or relaxed at gpu scope for an atomic.
    Plain,
    /// `ld.global.nc`
    ReadOnly,
    /// `.volatile`
    Volatile,
    /// `.relaxed`, `.acquire`, `.release` or `.acq_rel` at a scope.
    Strong(&'static str, Scope),
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Shared instead of global memory.
    pub shared: bool,
    /// Shared memory of the other CTA of the cluster.
    pub far: bool,
    /// Through a generic address.
    pub generic: bool,
    /// First byte.
    pub offset: u32,
    /// Bytes of an element: 1, 2, 4 or 8; 16 or 32 of a bulk copy.
    pub bytes: u32,
    /// Elements.
    pub vector: u32,
    /// Every lane has its own element, one behind the other.
    pub by_lane: bool,
}

impl Target {
    /// First byte and bytes of what a lane accesses.
    pub fn range(&self, lane: u32) -> (u32, u32) {
        let bytes = self.bytes * self.vector;
        let row = if self.by_lane { lane * bytes } else { 0 };
        (self.offset + row, bytes)
    }
}

impl Role {
    /// Whether a thread has it.
    pub fn has(&self, cta: u32, warp: u32, lane: u32) -> bool {
        self.ctas >> cta & self.warps >> warp & self.lanes >> lane & 1 == 1
    }
}

impl Act {
    /// The access, if it is one or polls by one.
    pub fn access(&self) -> Option<&Access> {
        match self {
            Self::Access(access) | Self::Give(access) => Some(access),
            Self::Poll { access, .. } | Self::Take { access, .. } => Some(access),
            _ => None,
        }
    }

    /// The targets that it accesses.
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            Self::Copy { from, to }
            | Self::Bulk { from, to, .. }
            | Self::Enter {
                how: Entry::Bulk { from, to, .. },
                ..
            } => vec![from, to],
            Self::Send { to, .. } => vec![to],
            _ => self
                .access()
                .map(|access| &access.target)
                .into_iter()
                .collect(),
        }
    }

    /// Whether it issues a bulk copy.
    pub fn is_bulk(&self) -> bool {
        let enters = |how: &Entry| matches!(how, Entry::Bulk { .. });
        matches!(self, Self::Bulk { .. }) || matches!(self, Self::Enter { how, .. } if enters(how))
    }

    /// The one of [`Kernel::gates`] that it uses.
    pub fn phases(&self) -> Option<usize> {
        match *self {
            Self::Enter { gate, .. } | Self::Leave { gate, .. } => Some(gate),
            _ => None,
        }
    }

    /// Whether it uses the mbarrier of one phase.
    pub fn is_gate(&self) -> bool {
        match self {
            Self::Arrive { .. } | Self::Pass { .. } | Self::Send { .. } => true,
            Self::Bulk { to, .. } => to.shared,
            _ => false,
        }
    }

    /// Cannot be one predicated instruction.
    pub fn needs_branch(&self) -> bool {
        match self {
            Self::Access(access) => access.after_flag,
            Self::Poll { .. } | Self::Pass { .. } | Self::Enter { .. } | Self::Leave { .. } => true,
            Self::Take { .. } | Self::Give(_) => true,
            _ => false,
        }
    }
}

impl Kernel {
    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.warps * LANES
    }

    /// Bytes of global memory.
    pub fn bytes(&self) -> u32 {
        let acts = self.acts();
        let mut targets = acts.iter().flat_map(|act| act.targets());
        match targets.any(|target| target.offset >= FAR) {
            true => 2 * FAR,
            false => HOT,
        }
    }

    /// Whether the CTAs meet at a barrier of the grid, which takes a cooperative launch.
    pub fn cooperative(&self) -> bool {
        fn any(steps: &[Step]) -> bool {
            steps.iter().any(|step| match step {
                Step::Grid => true,
                Step::Loop { steps, .. } => any(steps),
                _ => false,
            })
        }
        any(&self.steps)
    }

    /// Whether CTAs access each other's shared memory, which has to be there until all have ended.
    pub fn reaches_far(&self) -> bool {
        let acts = self.acts();
        let mut targets = acts.iter().flat_map(|act| act.targets());
        targets.any(|target| target.far)
    }

    /// The mbarriers of several phases that anybody uses, by number.
    pub fn used_gates(&self) -> BTreeSet<usize> {
        let acts = self.acts();
        let used = acts.iter().filter_map(|act| act.phases());
        used.flat_map(|gate| [gate, self.gates[gate].then])
            .collect()
    }

    /// Arrivals that a phase of an mbarrier expects, at first.
    pub fn expected(&self, gate: &Gate) -> u32 {
        let Role { warps, lanes, .. } = self.roles[gate.role];
        let warps = warps & ((1 << self.warps) - 1);
        (warps.count_ones() * lanes.count_ones() * gate.share).max(1)
    }

    /// Whether it calls functions through pointers.
    pub fn points(&self) -> bool {
        fn any(steps: &[Step]) -> bool {
            steps.iter().any(|step| match step {
                Step::Acts { call, .. } => !matches!(call, Call::Inline | Call::Direct),
                Step::Loop { steps, .. } => any(steps),
                _ => false,
            })
        }
        any(&self.steps)
    }

    /// Whether a bulk copy of it reduces, or one of a kernel beside it: calls through pointers connect them.
    pub fn reduces(&self) -> bool {
        let reduces = |act: &&Act| matches!(act, Act::Bulk { op: Some(_), .. });
        self.acts().iter().any(reduces) || self.beside.iter().any(Self::reduces)
    }

    /// Whether it has asynchronous stores.
    pub fn sends(&self) -> bool {
        self.acts()
            .iter()
            .any(|act| matches!(act, Act::Send { .. }))
    }

    /// The roles that any step names.
    pub fn used_roles(&self) -> BTreeSet<usize> {
        fn collect(steps: &[Step], into: &mut BTreeSet<usize>) {
            for step in steps {
                match step {
                    Step::Acts { role, .. } => drop(into.insert(*role)),
                    Step::Loop { steps, .. } => collect(steps, into),
                    _ => {}
                }
            }
        }
        let mut used = BTreeSet::new();
        collect(&self.steps, &mut used);
        used.extend(self.used_gates().iter().map(|&gate| self.gates[gate].role));
        used
    }

    /// Every act.
    pub fn acts(&self) -> Vec<&Act> {
        fn collect<'a>(steps: &'a [Step], into: &mut Vec<&'a Act>) {
            for step in steps {
                match step {
                    Step::Acts { acts, others, .. } => into.extend(acts.iter().chain(others)),
                    Step::Loop { steps, .. } => collect(steps, into),
                    _ => {}
                }
            }
        }
        let mut all = Vec::new();
        collect(&self.steps, &mut all);
        all
    }
}
