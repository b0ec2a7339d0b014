//! The clocks of a warp: one for all lanes while they do the same things, more as they part.

use alloc::vec::Vec;

use super::clock::{Time, Times};
use super::counted::Counted;
use super::each;
use super::fenced::Fenced;
use super::log::LogId;
use super::mbarrier::Waited;
use super::release::{Fence, Pending};

/// In which of BARRACUDA's formats a warp's clocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// One clock for all lanes, which knows only of the lanes' own warp and CTA.
    Converged,
    /// Two sets of lanes with a clock each.
    Diverged,
    /// More sets of lanes.
    NestedDiverged,
    /// Some lane knows of single threads, or of other CTAs.
    SparseVc,
}

/// All that an engine keeps of a thread, without saying whose it is. Lanes are compared often; what
/// tells them apart at once comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The releases that the thread has last acquired.
    pub(crate) acquired: Option<(LogId, u32)>,
    /// What strong loads observed, and no acquire has made use of.
    pub(crate) pending: Vec<Pending>,
    pub(crate) times: Times,
    /// What relaxed waits for asynchronous barriers have found over, and no fence has acquired.
    pub(crate) waited: Waited,
    /// The last release fence of each scope that no later, wider one makes superfluous.
    pub(crate) fences: Vec<Fence>,
    /// What its last atomic that counts has observed, and it may not have acquired.
    pub(crate) counted: Option<Counted>,
    /// The `fence.sc`s that every run has before what the thread does next.
    pub(crate) fenced: Fenced,
}

/// The views of the lanes of a warp. The masks of the groups are disjoint and cover 32 lanes.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    groups: Vec<(u32, View)>,
}

impl Lanes {
    pub(crate) fn new(view: View) -> Self {
        Self {
            groups: alloc::vec![(u32::MAX, view)],
        }
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (u32, &View)> {
        self.groups.iter().map(|(mask, view)| (*mask, view))
    }

    /// The view of a lane.
    pub(crate) fn view(&self, lane: u32) -> &View {
        let found = self.groups.iter().find(|(mask, _)| mask >> lane & 1 == 1);
        // The masks cover all lanes.
        &found.unwrap_or(&self.groups[0]).1
    }

    /// Changes the views of some lanes; `change` is called once for each group of them.
    pub(crate) fn update(&mut self, lanes: u32, change: impl FnMut(&mut View, u32)) {
        self.part(lanes, change);
        if self.groups.len() > 1 {
            self.merge(lanes);
        }
    }

    /// The same, where another update of these lanes follows soon: leaves groups with equal views apart until then.
    pub(crate) fn part(&mut self, lanes: u32, mut change: impl FnMut(&mut View, u32)) {
        let count = self.groups.len();
        for at in 0..count {
            let (mask, view) = &mut self.groups[at];
            let touched = *mask & lanes;
            if touched == 0 {
                continue;
            }
            if touched == *mask {
                change(view, touched);
            } else {
                *mask &= !touched;
                let mut parted = view.clone();
                change(&mut parted, touched);
                self.groups.push((touched, parted));
            }
        }
    }

    /// The own time of some lanes is at least `now`, which 0 leaves as it is.
    pub(crate) fn raise(&mut self, lanes: u32, now: Time) {
        if now != 0 {
            self.update(lanes, |view, _| view.times.own = view.times.own.max(now));
        }
    }

    /// Puts groups of some lanes with others that have equal views; the others stay as they are.
    fn merge(&mut self, changed: u32) {
        // Most often one lane has changed.
        let mut own = { self.groups.iter().enumerate() }.filter(|(_, of)| of.0 & changed != 0);
        if let (Some((at, (_, mine))), None) = (own.next(), own.next()) {
            let same = |&(other, (_, view)): &(usize, &(u32, View))| other != at && view == mine;
            if let Some((other, _)) = self.groups.iter().enumerate().find(same) {
                let (mask, _) = self.groups.swap_remove(at.max(other));
                self.groups[at.min(other)].0 |= mask;
            }
            return;
        }
        let mut at = 0;
        // The changed ones among those before, one bit each: a warp has 32 lanes, and no more groups.
        let mut before = 0_u32;
        while at < self.groups.len() {
            let (mask, view) = &self.groups[at];
            let own = mask & changed != 0;
            let others = if own {
                (1_u64 << at) as u32 - 1
            } else {
                before
            };
            let same = each(others).find(|&other| self.groups[other as usize].1 == *view);
            match same {
                Some(other) => {
                    let (mask, _) = self.groups.swap_remove(at);
                    self.groups[other as usize].0 |= mask;
                    before |= u32::from(own) << other;
                }
                None => {
                    before |= u32::from(own) << at;
                    at += 1;
                }
            }
        }
    }

    /// `existing` are the lanes that the warp has.
    pub(crate) fn format(&self, existing: u32) -> Format {
        let groups = self.groups.iter().filter(|(mask, _)| mask & existing != 0);
        let mut clocks: [Option<&Times>; 2] = [None; 2];
        let mut format = Format::Converged;
        for (_, View { times, .. }) in groups {
            if !times.rest.is_empty() {
                return Format::SparseVc;
            }
            if clocks.contains(&Some(times)) {
                continue;
            }
            match clocks.iter_mut().position(|clock| clock.is_none()) {
                Some(at) => {
                    clocks[at] = Some(times);
                    format = [Format::Converged, Format::Diverged][at];
                }
                None => format = Format::NestedDiverged,
            }
        }
        format
    }
}
