//! Who does something, and how the threads of a launch are arranged.

use events::Scope;

use super::clock::Time;

/// Threads of a warp.
pub const LANES: u32 = 32;

/// A warp of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Warp {
    /// Linear index of the CTA in the grid, x fastest.
    pub cta: u64,
    /// Warp in the CTA.
    pub warp: u32,
}

impl Warp {
    /// One of its threads; `lane` is below [`LANES`].
    pub fn lane(self, lane: u32) -> Thread {
        Thread {
            cta: self.cta,
            warp: self.warp,
            lane,
        }
    }
}

/// A thread of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// Linear index of the CTA in the grid, x fastest.
    pub cta: u64,
    /// Warp in the CTA.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u32,
}

impl Thread {
    /// Its warp.
    pub fn warp(self) -> Warp {
        Warp {
            cta: self.cta,
            warp: self.warp,
        }
    }
}

/// Lanes of a warp that do something together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Active {
    /// Their warp.
    pub warp: Warp,
    /// One bit each.
    pub lanes: u32,
}

/// A thread that orders others, or is ordered, by operations of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// Who.
    pub thread: Thread,
    /// The threads that the operation can order.
    pub scope: Scope,
}

/// A thread at a time of its own: FastTrack's `c@t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) thread: Thread,
    pub(crate) time: Time,
}

/// A warp in eight bytes: histories hold many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(u64);

impl Id {
    pub(crate) fn of(warp: Warp) -> Self {
        Self(warp.cta << 16 | u64::from(warp.warp))
    }

    pub(crate) fn warp(self) -> Warp {
        Warp {
            cta: self.0 >> 16,
            warp: (self.0 & 0xffff) as u32,
        }
    }

    /// The thread of the lowest of some lanes.
    pub(crate) fn lane_of(self, lanes: u32) -> Thread {
        self.warp().lane(lanes.trailing_zeros())
    }
}

/// The size of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// CTAs of the grid in x, y and z.
    pub grid: [u32; 3],
    /// CTAs of a cluster in x, y and z; `[1, 1, 1]` without clusters.
    pub cluster: [u32; 3],
    /// Threads of a CTA.
    pub threads: u32,
}

impl Shape {
    /// A grid of CTAs without clusters.
    pub fn new(grid: [u32; 3], threads: u32) -> Self {
        Self {
            grid,
            cluster: [1; 3],
            threads,
        }
    }

    /// Warps of a CTA.
    pub fn warps(&self) -> u32 {
        self.threads.div_ceil(LANES)
    }

    /// The lanes that a warp of a CTA has, one bit each.
    pub fn lanes(&self, warp: u32) -> u32 {
        match self.threads.saturating_sub(warp * LANES) {
            0 => 0,
            left if left >= LANES => u32::MAX,
            left => (1 << left) - 1,
        }
    }

    /// True when CTAs are in clusters of more than one.
    pub(crate) fn has_clusters(&self) -> bool {
        self.cluster.iter().any(|&ctas| ctas > 1)
    }

    /// A number for the cluster of a CTA, the same for all its CTAs and for no others.
    pub fn cluster_of(&self, cta: u64) -> u64 {
        let (gx, gy) = (
            u64::from(self.grid[0].max(1)),
            u64::from(self.grid[1].max(1)),
        );
        let at = [cta % gx, cta / gx % gy, cta / gx / gy];
        let size = self.cluster.map(|n| u64::from(n.max(1)));
        let (cx, cy) = (gx.div_ceil(size[0]), gy.div_ceil(size[1]));
        (at[2] / size[2] * cy + at[1] / size[1]) * cx + at[0] / size[0]
    }

    /// The CTA with another rank in the cluster of `cta`; ranks count x fastest.
    pub fn peer(&self, cta: u64, rank: u32) -> u64 {
        let (gx, gy) = (
            u64::from(self.grid[0].max(1)),
            u64::from(self.grid[1].max(1)),
        );
        let size = self.cluster.map(|n| u64::from(n.max(1)));
        let at = [cta % gx, cta / gx % gy, cta / gx / gy];
        let rank = u64::from(rank);
        let inside = [
            rank % size[0],
            rank / size[0] % size[1],
            rank / size[0] / size[1],
        ];
        let [x, y, z] = [0, 1, 2].map(|axis| at[axis] / size[axis] * size[axis] + inside[axis]);
        (z * gy + y) * gx + x
    }

    /// The rank of `peer` in the cluster of `cta`, to which it belongs; 0 if it does not.
    pub fn rank_of(&self, cta: u64, peer: u64) -> u32 {
        let size: u32 = self.cluster.iter().map(|n| n.max(&1)).product();
        let found = (0..size).find(|&rank| self.peer(cta, rank) == peer);
        found.unwrap_or(0)
    }

    /// True when an operation of `of` with scope `scope` can order `other`.
    pub fn includes(&self, scope: Scope, of: Thread, other: Thread) -> bool {
        match scope {
            Scope::Cta => of.cta == other.cta,
            Scope::Cluster => self.cluster_of(of.cta) == self.cluster_of(other.cta),
            Scope::Gpu | Scope::Sys => true,
        }
    }

    /// True when each of two operations has the other's thread in its scope.
    pub fn mutual(&self, a: Party, b: Party) -> bool {
        self.includes(a.scope, a.thread, b.thread) && self.includes(b.scope, b.thread, a.thread)
    }
}
