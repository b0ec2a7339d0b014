//! What a launch does that others may run beside: the global memory that it touches, and what it has to
//! do with the launches ahead of it and behind it. The simulated device tells it.

use std::collections::{BTreeSet, HashMap, HashSet};

use events::{Bytes, Executing};
use ptx::ast::Space;
use shadow::hb::{Access, Kind, LANES, Scope};
use shadow::streams::{Footprint, Touch};

use crate::instructions::Instructions;
use crate::streams::{At, Followed};

/// A footprint names a thread by its CTA, and behind that many bits by its number in the CTA.
pub(crate) const THREADS_LOG2: u32 = 10;

/// The threads of a CTA that come after the launch ahead.
#[derive(Debug)]
enum Waited {
    All,
    /// Lanes, by warp.
    Lanes(HashMap<u32, u32>),
}

/// Follows a launch.
#[derive(Debug, Default)]
pub(crate) struct FootprintRecorder {
    touched: Followed,
    /// The launch may begin before the one ahead of it has ended.
    early: bool,
    /// The threads that come after that one, by CTA: they have waited for it, or have synchronised with threads that may
    /// have told them of it.
    waited: HashMap<u64, Waited>,
    /// The CTAs that have let the launch behind begin by a thread that does not come after the one ahead.
    passing_on: HashSet<u64>,
    /// Memory that is nobody's when the launch ends.
    released: BTreeSet<(u64, u64)>,
}

impl FootprintRecorder {
    /// Follows a launch at its place among the work of all streams, if others may run beside it.
    pub(crate) fn at_place(at: &At, instructions: &Instructions) -> Option<Self> {
        let wanted = at.may_overlap || at.is_nested() || instructions.lets_others_begin;
        wanted.then(|| Self {
            early: at.is_early(),
            ..Self::default()
        })
    }

    pub(crate) fn finish(mut self) -> Followed {
        self.touched.passing_on = self.passing_on.len() as u64;
        let Followed { all, early, .. } = &mut self.touched;
        for &(address, bytes) in &self.released {
            all.forget(address, bytes);
            early.forget(address, bytes);
        }
        self.touched
    }

    /// Memory that `allocated` has told of is given back.
    pub(crate) fn released(&mut self, address: u64, bytes: u64) {
        self.released.insert((address, bytes));
    }

    /// The footprints that lanes leave now, and which of them leave each.
    fn prints(&mut self, who: Executing) -> [(&mut Footprint, u32); 2] {
        let before = match self.early {
            true => who.lanes & !self.after(who),
            false => 0,
        };
        let Followed { all, early, .. } = &mut self.touched;
        [(all, who.lanes), (early, before)]
    }

    /// The lanes of a warp that come after the launch ahead.
    fn after(&self, who: Executing) -> u32 {
        match self.waited.get(&who.cta) {
            Some(Waited::All) => u32::MAX,
            Some(Waited::Lanes(lanes)) => lanes.get(&who.warp).copied().unwrap_or(0),
            None => 0,
        }
    }

    /// Lanes execute `griddepcontrol`.
    pub(crate) fn dependency(&mut self, who: Executing, wait: bool) {
        if wait {
            self.comes_after(who);
            return;
        }
        self.touched.lets_others_begin = true;
        if self.early && who.lanes & !self.after(who) != 0 {
            self.passing_on.insert(who.cta);
        }
    }

    /// Lanes come after the launch ahead.
    fn comes_after(&mut self, who: Executing) {
        let none = || Waited::Lanes(HashMap::new());
        if self.early
            && let Waited::Lanes(lanes) = self.waited.entry(who.cta).or_insert_with(none)
        {
            *lanes.entry(who.warp).or_default() |= who.lanes;
        }
    }

    /// Lanes pass a barrier of their warp together.
    pub(crate) fn warp_barrier(&mut self, who: Executing) {
        if self.after(who) & who.lanes != 0 {
            self.comes_after(who);
        }
    }

    /// A barrier of a CTA completes. All its threads are taken to take part.
    pub(crate) fn complete(&mut self, cta: u64) {
        if let Some(waited) = self.waited.get_mut(&cta) {
            *waited = Waited::All;
        }
    }

    /// Lanes may have learned what threads of any CTA have done: by a strong read, or at an mbarrier or the barrier of
    /// a cluster.
    pub(crate) fn learns(&mut self, who: Executing) {
        if !self.waited.is_empty() {
            self.comes_after(who);
        }
    }

    /// Lanes of a warp access memory.
    pub(crate) fn access(
        &mut self,
        who: Executing,
        space: Space,
        access: &Access,
        addresses: &[u64; 32],
    ) {
        let scope = access.order.scope();
        if space == Space::Global {
            self.touch(who, access, addresses);
        }
        if scope.is_some() && access.kind != Kind::Store {
            self.learns(who);
        }
    }

    /// Lanes of a warp access global memory.
    fn touch(&mut self, who: Executing, access: &Access, addresses: &[u64; 32]) {
        let scope = access.order.scope();
        // A weak vector is one access; the size of its elements matters to nobody.
        let (bytes, elements) = match scope.is_some() {
            true => (access.bytes, access.elements),
            false => (access.bytes * access.elements, 1),
        };
        let touch = Touch {
            writes: access.kind != Kind::Load,
            wide: scope >= Some(Scope::Gpu),
            bytes,
            site: access.site,
        };
        for element in 0..elements {
            let behind = u64::from(element * bytes);
            let address = |lane: u32| addresses[lane as usize].wrapping_add(behind);
            for (print, lanes) in self.prints(who) {
                print.touch_lanes(touch, first(who), lanes, address);
            }
        }
    }

    /// A lane copies bytes. With `reduces` it reduces elements into the target, as that access.
    pub(crate) fn copy(
        &mut self,
        who: Executing,
        site: u32,
        [from, to]: [Bytes; 2],
        reduces: Option<Access>,
    ) {
        let lane = u64::from(who.lanes.trailing_zeros());
        for (at, writes) in [(from, false), (to, true)] {
            let reduces = reduces.filter(|_| writes);
            let scope = reduces.and_then(|access| access.order.scope());
            let touch = Touch {
                writes,
                wide: scope >= Some(Scope::Gpu),
                bytes: reduces.map_or(at.count, |access| access.bytes),
                site,
            };
            if at.space == Space::Global {
                let (by, bytes) = (first(who) + lane, at.count.into());
                for (print, lanes) in self.prints(who) {
                    if lanes != 0 {
                        print.touch(touch, by, at.address, bytes);
                    }
                }
            }
        }
    }

    /// The device's own `malloc` hands out memory.
    pub(crate) fn allocated(&mut self, address: u64, bytes: u64) {
        self.touched.all.got(address, bytes);
        self.touched.early.got(address, bytes);
    }
}

/// The first lane of a warp.
fn first(who: Executing) -> u64 {
    who.cta << THREADS_LOG2 | u64::from(who.warp * LANES)
}
