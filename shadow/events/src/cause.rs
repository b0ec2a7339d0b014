//! What would have ordered two accesses that race.

use serde::{Deserialize, Serialize};

use crate::Scope;

/// What would have ordered the accesses of a race, had it been right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Cause<T> {
    /// The later thread has observed a release that came after the earlier access, but the scope of
    /// the release leaves it out.
    NarrowRelease {
        /// Who released.
        by: T,
        /// In which scope.
        scope: Scope,
        /// Whether the acquire would be enough if the release were.
        #[serde(default)]
        acquire: Acquire,
    },
    /// It has observed such a release, and its acquire is of a scope that leaves the releasing
    /// thread out.
    NarrowAcquire {
        /// Who released.
        by: T,
        /// The acquire's scope.
        scope: Scope,
    },
    /// The later thread has waited for an mbarrier at which somebody arrived after the earlier access, but
    /// the scope of that release leaves it out.
    NarrowArrival {
        /// Who arrived.
        by: T,
        /// In which scope that was a release.
        scope: Scope,
    },
    /// It has waited for such an mbarrier, and acquired in a scope that leaves the arriving thread out.
    NarrowWait {
        /// Who arrived.
        by: T,
        /// The acquire's scope.
        scope: Scope,
    },
    /// It has observed such a release, and has not acquired.
    NoAcquire {
        /// Who released.
        by: T,
    },
    /// It, or a thread of its CTA before it, has observed a later strong write of the earlier thread, or of one of its CTA
    /// behind it, which released nothing.
    NoRelease,
    /// A flag that the later thread's CTA has observed was written by the earlier thread's CTA, before the
    /// earlier access.
    Early,
    /// A flag orders two threads, one of each thread's CTA, but a barrier between one of them and the racing thread of
    /// its CTA is missing.
    NoBarrier {
        /// Between the earlier access and the write of the flag.
        before: bool,
        /// Between the read of the flag and the later access.
        after: bool,
    },
    /// The earlier thread's CTA has read, by another thread and only then, a flag that the later thread's CTA wrote behind
    /// the later access: a barrier is missing that lets the earlier access wait for that.
    Overtaken {
        /// One is missing between the later access and the write of the flag too.
        before: bool,
    },
    /// The earlier thread has arrived at an mbarrier after its access, and the later one has not waited for
    /// that.
    NoWait,
    /// The later thread has waited for an mbarrier at which the earlier one has arrived, but before its
    /// access.
    NoArrival,
    /// Both are under one version, around which a fence is missing.
    Version(Gap),
}

impl<T> Cause<T> {
    /// The same with the thread in other words.
    pub fn map<U>(self, thread: impl Fn(T) -> U) -> Cause<U> {
        match self {
            Self::NarrowRelease { by, scope, acquire } => Cause::NarrowRelease {
                by: thread(by),
                scope,
                acquire,
            },
            Self::NarrowAcquire { by, scope } => Cause::NarrowAcquire {
                by: thread(by),
                scope,
            },
            Self::NarrowArrival { by, scope } => Cause::NarrowArrival {
                by: thread(by),
                scope,
            },
            Self::NarrowWait { by, scope } => Cause::NarrowWait {
                by: thread(by),
                scope,
            },
            Self::NoAcquire { by } => Cause::NoAcquire { by: thread(by) },
            Self::NoRelease => Cause::NoRelease,
            Self::Early => Cause::Early,
            Self::NoBarrier { before, after } => Cause::NoBarrier { before, after },
            Self::Overtaken { before } => Cause::Overtaken { before },
            Self::NoWait => Cause::NoWait,
            Self::NoArrival => Cause::NoArrival,
            Self::Version(gap) => Cause::Version(gap),
        }
    }
}

/// How a thread has acquired a release that it has observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acquire {
    /// In a scope that includes the releasing thread.
    #[default]
    Wide,
    /// In a scope that does not.
    Narrow,
    /// Not at all.
    Missing,
}

/// A fence around data under a version that is not there, or whose scope leaves the other side out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Gap {
    /// The writer's, behind its first write of the version.
    FirstWrite,
    /// The writer's, in front of its second write.
    SecondWrite,
    /// The reader's, behind its first look.
    FirstLook,
    /// The reader's, in front of its second look.
    SecondLook,
}
