//! A resident CTA.

use super::barriers::Barriers;
use super::grid::TURNS_ALONE;
use super::threads::Rank;
use super::warp::Warp;
use crate::code::Func;

/// Which CTA it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CtaId {
    /// Place among the resident CTAs.
    pub(crate) slot: u32,
    pub(crate) index: [u32; 3],
    /// Linear index in the grid.
    pub(crate) linear: u64,
    /// Rank in its cluster, and the slot of the cluster's first CTA.
    pub(crate) rank: u32,
    pub(crate) first_slot: u32,
    pub(crate) cluster: [u32; 3],
    pub(crate) in_cluster: [u32; 3],
}

/// A resident CTA: its warps and barriers. Its shared memory stands in the machine, because the
/// other CTAs of a cluster may use it.
#[derive(Debug, Default)]
pub(crate) struct Cta {
    pub(crate) id: CtaId,
    pub(crate) warps: Vec<Warp>,
    pub(crate) barriers: Barriers,
    /// False for an empty slot.
    pub(crate) active: bool,
    /// Turns that it has had, where CTAs do not keep pace.
    pub(crate) turns: u64,
}

impl Cta {
    /// Makes it the CTA `id` with new threads.
    pub(crate) fn start(&mut self, id: CtaId, block: [u32; 3], kernel: &Func) {
        let threads: u32 = block.iter().product();
        let warps = threads.div_ceil(32);
        self.id = id;
        self.active = true;
        self.turns = 0;
        self.warps.resize_with(warps as usize, Warp::default);
        let mut live = Vec::with_capacity(self.warps.len());
        for (index, warp) in self.warps.iter_mut().enumerate() {
            let left = threads - 32 * index as u32;
            let mask = if left >= 32 {
                u32::MAX
            } else {
                (1 << left) - 1
            };
            warp.start(index as u32, mask, block, kernel);
            live.push(mask);
        }
        self.barriers.start(&live);
    }

    /// How early one thread alone would come to what it does now.
    pub(crate) fn rank(&self) -> Rank {
        Rank {
            round: self.turns / TURNS_ALONE,
            cta: self.id.linear,
        }
    }

    /// Lets every warp look again at what it waits for.
    pub(crate) fn wake(&mut self) {
        for warp in &mut self.warps {
            warp.blocked = false;
        }
    }
}
