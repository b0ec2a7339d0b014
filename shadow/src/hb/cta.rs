//! The CTAs that are running, and the warps in them.

use alloc::vec::Vec;

use hashbrown::HashMap;

use super::barrier::Arrivals;
use super::clock::Time;
use super::lanes::{Format, Lanes, View};
use super::thread::{Epoch, Thread, Warp};
use super::waits::Waits;
use super::{Engine, Stats};

/// A CTA with threads that have not exited.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cta {
    /// The clocks of the warps that have none of their own.
    pub(crate) base: View,
    warps: Vec<Member>,
    pub(crate) barriers: HashMap<u32, Arrivals>,
    /// By warp and lane: what a thread's last strong load, or atomic that a loop waits for, has observed.
    pub(crate) heard: HashMap<(u32, u32), Heard>,
    pub(crate) waits: Waits,
    /// By warp and lane: the asynchronous barriers that a thread has arrived at and waited for last.
    pub(crate) met: HashMap<(u32, u32), Met>,
}

/// A strong write that a thread has observed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Whose it was, and the writer's own time.
    pub(crate) writer: Epoch,
    /// The key of its location.
    pub(crate) key: u64,
    /// The reader's own time.
    pub(crate) at: Time,
}

/// The asynchronous barriers that a thread has used last, by their locations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    pub(crate) arrived: Option<u64>,
    /// With the thread's own time when it did.
    pub(crate) waited: Option<(u64, Time)>,
}

/// A warp of a CTA.
#[derive(Clone, Debug, Default)]
struct Member {
    /// None before it does anything.
    lanes: Option<Lanes>,
    /// Lanes that have exited.
    exited: u32,
    /// The worst format that its clocks have been in.
    worst: Option<Format>,
}

impl Cta {
    fn member(&mut self, warp: u32) -> &mut Member {
        let at = warp as usize;
        if self.warps.len() <= at {
            self.warps.resize(at + 1, Member::default());
        }
        &mut self.warps[at]
    }

    /// The clocks of a warp, to be changed.
    pub(crate) fn lanes(&mut self, warp: u32) -> &mut Lanes {
        self.member(warp);
        let base = &self.base;
        let lanes = &mut self.warps[warp as usize].lanes;
        lanes.get_or_insert_with(|| Lanes::new(base.clone()))
    }

    /// The clocks of a warp that has done something.
    pub(crate) fn known(&self, warp: u32) -> Option<&Lanes> {
        self.warps.get(warp as usize)?.lanes.as_ref()
    }

    /// The clocks of all warps that have done something.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Lanes> {
        self.warps.iter_mut().filter_map(|of| of.lanes.as_mut())
    }

    /// The time of a thread of another CTA that some thread knows of.
    pub(crate) fn knows(&self, other: Thread) -> Time {
        let lanes = self.warps.iter().filter_map(|of| of.lanes.as_ref());
        let views = lanes.flat_map(|lanes| lanes.groups().map(|(_, view)| view));
        let times = views.map(|view| view.times.rest.get(other));
        times.max().unwrap_or(0)
    }

    pub(crate) fn exited(&self, warp: u32) -> u32 {
        self.warps.get(warp as usize).map_or(0, |of| of.exited)
    }
}

impl Stats {
    /// Warps that were ever in a format other than [`Format::Converged`].
    pub fn left_converged(&self) -> u64 {
        self.diverged + self.nested_diverged + self.sparse
    }

    /// The warps whose worst format is this one, where they are counted.
    fn of(&mut self, format: Format) -> Option<&mut u64> {
        match format {
            Format::Converged => None,
            Format::Diverged => Some(&mut self.diverged),
            Format::NestedDiverged => Some(&mut self.nested_diverged),
            Format::SparseVc => Some(&mut self.sparse),
        }
    }
}

impl Engine {
    /// Makes sure that a warp is known.
    pub(crate) fn enter(&mut self, warp: Warp) {
        let count = self.ctas.len() as u64 + 1;
        let cta = self.ctas.entry(warp.cta).or_default();
        let member = cta.member(warp.warp);
        if member.worst.is_none() {
            member.worst = Some(Format::Converged);
            self.stats.warps += 1;
            self.stats.live_ctas = self.stats.live_ctas.max(count);
        }
        cta.lanes(warp.warp);
    }

    /// Takes note of a warp's format.
    pub(crate) fn classify(&mut self, warp: Warp) {
        let existing = self.shape.lanes(warp.warp);
        let Some(cta) = self.ctas.get_mut(&warp.cta) else {
            return;
        };
        let Member { lanes, worst, .. } = cta.member(warp.warp);
        let (Some(lanes), false) = (lanes, *worst == Some(Format::SparseVc)) else {
            return;
        };
        let now = Some(lanes.format(existing));
        if now > *worst {
            let before = core::mem::replace(worst, now);
            if let Some(count) = before.and_then(|format| self.stats.of(format)) {
                *count -= 1;
            }
            if let Some(count) = now.and_then(|format| self.stats.of(format)) {
                *count += 1;
            }
        }
    }

    /// The format that a warp's clocks are in.
    pub fn format(&self, warp: Warp) -> Format {
        let cta = self.ctas.get(&warp.cta);
        let lanes = cta.and_then(|cta| cta.known(warp.warp));
        lanes.map_or(Format::Converged, |lanes| {
            lanes.format(self.shape.lanes(warp.warp))
        })
    }

    /// Lanes of a warp end.
    pub fn exit(&mut self, warp: Warp, lanes: u32) {
        self.enter(warp);
        let Some(cta) = self.ctas.get_mut(&warp.cta) else {
            return;
        };
        cta.member(warp.warp).exited |= lanes;
        self.copies.exit(warp, lanes);
        let shape = &self.shape;
        let over = (0..shape.warps()).all(|warp| shape.lanes(warp) & !cta.exited(warp) == 0);
        // The shared memory of a CTA of a cluster must not be used after the CTA has exited.
        if over {
            self.ctas.remove(&warp.cta);
            self.sc_cta.remove(&warp.cta);
            self.proxies.exit(warp.cta);
            self.memory.shared.remove(&warp.cta);
            self.exit_mbarriers(warp.cta);
        }
    }
}
