//! What a launch does that others may run beside: the global memory that it touches, and what it has to
//! do with the launches ahead of it and behind it. The simulated device reports it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use events::{Bytes, Executing};
use ptx::ast::Space;
use shadow::hb::{Access, LANES, MemoryOrder, OpKind, Scope};
use shadow::streams::{Footprint, Touch};

use crate::instructions::Instructions;
use crate::streams::{At, Followed};

/// A footprint names a thread by its CTA, and behind that many bits by its number in the CTA.
pub(crate) const THREADS_LOG2: u32 = 10;

/// Threads of a CTA.
#[derive(Debug)]
enum Threads {
    All,
    /// Lanes, by warp.
    Lanes(HashMap<u32, u32>),
}

/// Threads that have learned of other work, by CTA: themselves, or from threads that have.
#[derive(Debug, Default)]
struct Learned(HashMap<u64, Threads>);

impl Learned {
    /// Those of a warp that have.
    fn lanes(&self, threads: Executing) -> u32 {
        match self.0.get(&threads.cta) {
            Some(Threads::All) => u32::MAX,
            Some(Threads::Lanes(lanes)) => lanes.get(&threads.warp).copied().unwrap_or(0),
            None => 0,
        }
    }

    /// Lanes have.
    fn add(&mut self, threads: Executing) {
        let none = || Threads::Lanes(HashMap::new());
        if let Threads::Lanes(lanes) = self.0.entry(threads.cta).or_insert_with(none) {
            *lanes.entry(threads.warp).or_default() |= threads.lanes;
        }
    }

    /// Lanes pass a barrier of their warp together.
    fn warp_barrier(&mut self, threads: Executing) {
        if self.lanes(threads) & threads.lanes != 0 {
            self.add(threads);
        }
    }

    /// A barrier of a CTA completes. All its threads are taken to take part.
    fn complete(&mut self, cta: u64) {
        if let Some(threads) = self.0.get_mut(&cta) {
            *threads = Threads::All;
        }
    }

    /// Lanes may have learned what threads of any CTA have done.
    fn learns(&mut self, threads: Executing) {
        if !self.0.is_empty() {
            self.add(threads);
        }
    }
}

/// Lanes, by CTA and warp.
type Lanes = HashMap<(u64, u32), u32>;

/// Follows a launch.
#[derive(Debug, Default)]
pub(crate) struct FootprintRecorder {
    touched: Followed,
    /// The launch may begin before the one ahead of it has ended.
    early: bool,
    /// The threads that come after that one, by CTA: they have waited for it, or have synchronised with threads that may
    /// have passed it on to them.
    waited: Learned,
    /// The threads that may come after releases by any launch: they have acquired in device scope or wider what was read
    /// strongly.
    acquired: Learned,
    /// Lanes that have read strongly and not acquired yet, and lanes that have executed a fence, both in such a scope.
    unacquired_reads: Lanes,
    fenced: Lanes,
    /// The CTAs that have let the launch behind begin by a thread that does not come after the one ahead.
    passing_on: HashSet<u64>,
    /// Memory that is nobody's when the launch ends.
    freed: BTreeSet<(u64, u64)>,
    /// The device's own memory, where it matters what the launch does outside of that.
    device: Option<Range<u64>>,
}

impl FootprintRecorder {
    /// Follows a launch at its position among the work of all streams, if others may run beside it, or the host may touch
    /// what it touches outside of the device's own memory.
    pub(crate) fn at_position(
        at: &At,
        instructions: &Instructions,
        device: Option<Range<u64>>,
    ) -> Option<Self> {
        let all = at.may_overlap || at.is_nested() || instructions.lets_others_begin;
        (all || device.is_some()).then(|| Self {
            early: at.is_early(),
            touched: Followed {
                only_host: !all,
                ..Followed::default()
            },
            device,
            ..Self::default()
        })
    }

    pub(crate) fn finish(mut self) -> Followed {
        self.touched.passing_on = self.passing_on.len() as u64;
        for &(address, bytes) in &self.freed {
            for print in self.touched.prints() {
                print.forget(address, bytes);
            }
        }
        self.touched
    }

    /// Memory that `allocated` has reported is given back.
    pub(crate) fn freed(&mut self, address: u64, bytes: u64) {
        self.freed.insert((address, bytes));
    }

    /// The footprints that lanes leave now, and which of them leave each.
    fn prints(&mut self, threads: Executing) -> impl Iterator<Item = (&mut Footprint, u32)> {
        let before = match self.early {
            true => threads.lanes & !self.waited.lanes(threads),
            false => 0,
        };
        let unacquired = threads.lanes & !self.acquired.lanes(threads);
        let touched = &mut self.touched;
        let known = [
            (&mut touched.all, threads.lanes),
            (&mut touched.early, before),
        ];
        let unacquired = touched.unacquired.as_mut().map(|print| (print, unacquired));
        known.into_iter().chain(unacquired)
    }

    /// Lanes execute `griddepcontrol`.
    pub(crate) fn dependency(&mut self, threads: Executing, wait: bool) {
        if wait {
            if self.early {
                self.waited.add(threads);
            }
            return;
        }
        self.touched.lets_others_begin = true;
        if self.early && threads.lanes & !self.waited.lanes(threads) != 0 {
            self.passing_on.insert(threads.cta);
        }
    }

    /// Lanes pass a barrier of their warp together.
    pub(crate) fn warp_barrier(&mut self, threads: Executing) {
        self.waited.warp_barrier(threads);
        self.acquired.warp_barrier(threads);
    }

    /// A barrier of a CTA completes.
    pub(crate) fn complete(&mut self, cta: u64) {
        self.waited.complete(cta);
        self.acquired.complete(cta);
    }

    /// Lanes may have learned what threads of any CTA have done: by a strong read, or at an mbarrier or the barrier of
    /// a cluster.
    pub(crate) fn learns(&mut self, threads: Executing) {
        self.waited.learns(threads);
        self.acquired.learns(threads);
    }

    /// Lanes execute a fence.
    pub(crate) fn fence(&mut self, threads: Executing, scope: Scope) {
        self.touched.signals_host |= scope == Scope::Sys;
        if scope < Scope::Gpu {
            return;
        }
        let warp = (threads.cta, threads.warp);
        *self.fenced.entry(warp).or_default() |= threads.lanes;
        let lanes = self
            .unacquired_reads
            .get(&warp)
            .map_or(0, |unacquired_reads| unacquired_reads & threads.lanes);
        if lanes != 0 {
            self.acquires(Executing { lanes, ..threads });
        }
    }

    /// Lanes may come after a release by another launch.
    fn acquires(&mut self, threads: Executing) {
        let Followed {
            all, unacquired, ..
        } = &mut self.touched;
        unacquired.get_or_insert_with(|| all.clone());
        self.acquired.add(threads);
    }

    /// Lanes access global memory strongly, in device scope or wider: they may set or read flags of other launches.
    fn signals(&mut self, threads: Executing, access: &Access, addresses: &[u64; 32]) {
        let warp = (threads.cta, threads.warp);
        let touch = |writes| Touch {
            writes,
            wide: false,
            bytes: access.bytes * access.elements,
            site: access.site,
        };
        let address = |lane: u32| addresses[lane as usize];
        let fenced = self.fenced.get(&warp).copied().unwrap_or(0);
        let releases = match access.order {
            MemoryOrder::Release(_) | MemoryOrder::AcqRel(_) => threads.lanes,
            _ => threads.lanes & fenced,
        };
        if access.kind != OpKind::Load && releases != 0 {
            let flags = &mut self.touched.released_flags;
            flags.touch_lanes(touch(true), first(threads), releases, address);
        }
        if access.kind != OpKind::Store {
            let flags = &mut self.touched.read_flags;
            flags.touch_lanes(touch(false), first(threads), threads.lanes, address);
            match access.order {
                MemoryOrder::Acquire(_) | MemoryOrder::AcqRel(_) => self.acquires(threads),
                _ => *self.unacquired_reads.entry(warp).or_default() |= threads.lanes,
            }
        }
    }

    /// Lanes of a warp access memory.
    pub(crate) fn access(
        &mut self,
        threads: Executing,
        space: Space,
        access: &Access,
        addresses: &[u64; 32],
    ) {
        let scope = access.order.scope();
        if space == Space::Global {
            self.touch(threads, access, addresses);
            if scope >= Some(Scope::Gpu) {
                self.signals(threads, access, addresses);
            }
        }
        if scope.is_some() && access.kind != OpKind::Store {
            self.learns(threads);
        }
    }

    /// Those of some lanes whose addresses are outside of the device's own memory, where that matters.
    fn outside(&self, lanes: u32, addresses: &[u64; 32]) -> u32 {
        let Some(device) = &self.device else {
            return 0;
        };
        let outside = addresses.iter().enumerate();
        let outside = outside.filter(|(_, address)| !device.contains(address));
        outside.fold(0, |all, (lane, _)| all | 1 << lane) & lanes
    }

    /// Lanes of a warp access global memory.
    fn touch(&mut self, threads: Executing, access: &Access, addresses: &[u64; 32]) {
        let scope = access.order.scope();
        // A weak vector is one access; the size of its elements matters to nobody.
        let (bytes, elements) = match scope.is_some() {
            true => (access.bytes, access.elements),
            false => (access.bytes * access.elements, 1),
        };
        let touch = Touch {
            writes: access.kind != OpKind::Load,
            wide: scope >= Some(Scope::Gpu),
            bytes,
            site: access.site,
        };
        let outside = self.outside(threads.lanes, addresses);
        if outside != 0 && scope == Some(Scope::Sys) {
            self.touched.signals_host |= touch.writes;
        }
        for element in 0..elements {
            let behind = u64::from(element * bytes);
            let address = |lane: u32| addresses[lane as usize].wrapping_add(behind);
            if outside != 0 && scope != Some(Scope::Sys) {
                let host = &mut self.touched.host;
                host.touch_lanes(touch, first(threads), outside, address);
            }
            if self.touched.only_host {
                continue;
            }
            for (print, lanes) in self.prints(threads) {
                print.touch_lanes(touch, first(threads), lanes, address);
            }
        }
    }

    /// A lane copies bytes. With `reduces` it reduces elements into the target, as that access.
    pub(crate) fn copy(
        &mut self,
        threads: Executing,
        site: u32,
        [from, to]: [Bytes; 2],
        reduces: Option<Access>,
    ) {
        let lane = u64::from(threads.lanes.trailing_zeros());
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
                let (by, bytes) = (first(threads) + lane, at.count.into());
                let device = self.device.as_ref();
                if device.is_some_and(|device| !device.contains(&at.address)) {
                    self.touched.host.touch(touch, by, at.address, bytes);
                }
                if self.touched.only_host {
                    continue;
                }
                for (print, lanes) in self.prints(threads) {
                    if lanes != 0 {
                        print.touch(touch, by, at.address, bytes);
                    }
                }
            }
        }
    }

    /// The device's own `malloc` hands out memory.
    pub(crate) fn allocated(&mut self, address: u64, bytes: u64) {
        for print in self.touched.prints() {
            print.got(address, bytes);
        }
    }
}

/// The first lane of a warp.
fn first(threads: Executing) -> u64 {
    threads.cta << THREADS_LOG2 | u64::from(threads.warp * LANES)
}
