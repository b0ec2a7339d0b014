//! The device's journal, given to the happens-before engine as if it had listened.

use std::collections::HashMap;

use events::{Bytes, Executing, Observer, SHARED_STEP};
use ptx::ast::Space;
use shadow::hb::{LANES, Shape, Warp};
use shadow::layout::{
    ENTRY_ACCESS, ENTRY_ARRIVE, ENTRY_CLUSTER_ARRIVE, ENTRY_CLUSTER_WAIT, ENTRY_COPIES,
    ENTRY_COPY_BARRIER, ENTRY_COPY_FROM, ENTRY_COPY_TO, ENTRY_EARLIER, ENTRY_EXIT, ENTRY_FENCE,
    ENTRY_LOOK, ENTRY_MBARRIER, ENTRY_MBARRIER_OVER, ENTRY_OVERTAKEN, ENTRY_PASS, ENTRY_SHARED,
    ENTRY_WARP_ARRIVE, ENTRY_WARP_PASS, JournalEntry, PARITY_SHIFT, entry_cta, entry_warp,
};

use crate::happens_before::HappensBefore;
use crate::phases::{Mbarriers, SharedPlace};

/// Reads a journal from its first entry to its last.
pub(crate) struct Replay<'a> {
    engine: HappensBefore,
    /// Turns a byte offset in the module's original text into one in the text that was loaded.
    loaded: &'a dyn Fn(u32) -> u32,
    /// Where an address in shared memory is, as a thread of a CTA has it.
    in_shared: &'a dyn Fn(u64, u64) -> SharedPlace,
    shape: Shape,
    /// The number of the entry, from 1.
    now: u32,
    /// By CTA and barrier.
    barriers: HashMap<(u64, u32), Meeting>,
    /// By warp and mask.
    warp_barriers: HashMap<(Warp, u32), Meeting>,
    /// What has been read so far of the copy that a thread issues.
    copies: HashMap<(Warp, u32), Issued>,
    mbarriers: Mbarriers,
    /// How often each lane of a warp has come to the barrier of its cluster.
    cluster: HashMap<Warp, [u64; LANES as usize]>,
}

/// The threads that come to a barrier. A thread that has passed it may come again before others have recorded
/// that they have passed.
#[derive(Default)]
struct Meeting {
    /// How often it has completed.
    completed: u64,
    /// Those who wait, by warp: lanes, and the completion that they wait for.
    waiting: Vec<(u32, u32, u64)>,
}

impl Meeting {
    fn wait(&mut self, warp: u32, lanes: u32) {
        self.waiting.push((warp, lanes, self.completed));
    }

    /// Lanes of a warp have passed, which need not have come together. True if they are the first.
    fn pass(&mut self, warp: u32, lanes: u32) -> bool {
        let mut first = false;
        for (of, waiting, completion) in &mut self.waiting {
            if *of == warp && *waiting & lanes != 0 {
                first |= *completion == self.completed;
                *waiting &= !lanes;
            }
        }
        self.waiting.retain(|of| of.1 != 0);
        self.completed += u64::from(first);
        first
    }

    /// The lanes of a warp that wait for the current completion.
    fn lanes(&self) -> u32 {
        let current = self.waiting.iter().filter(|of| of.2 == self.completed);
        current.fold(0, |all, of| all | of.1)
    }
}

/// A copy that is being read.
#[derive(Clone, Copy, Default)]
struct Issued {
    from: Option<Bytes>,
    /// The mbarrier that it completes with.
    barrier: Option<u64>,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(
        engine: HappensBefore,
        shape: Shape,
        loaded: &'a dyn Fn(u32) -> u32,
        in_shared: &'a dyn Fn(u64, u64) -> SharedPlace,
    ) -> Self {
        Self {
            engine,
            loaded,
            in_shared,
            shape,
            now: 0,
            barriers: HashMap::new(),
            warp_barriers: HashMap::new(),
            copies: HashMap::new(),
            mbarriers: Mbarriers::default(),
            cluster: HashMap::new(),
        }
    }

    /// The engine; so many entries were not given to it.
    pub(crate) fn finish(mut self, dropped: u64) -> HappensBefore {
        self.engine.miss(dropped);
        self.engine
    }

    /// An address as the simulated device has it.
    fn address(&self, cta: u64, space: Space, address: u64) -> u64 {
        if space == Space::Global {
            return address;
        }
        let SharedPlace { owner, offset } = (self.in_shared)(cta, address);
        let rank = self.shape.rank_of(cta, owner);
        match owner == cta {
            true => offset,
            false => (1 + u64::from(rank)) * SHARED_STEP + offset,
        }
    }

    /// How often lanes have come to the barrier of their cluster, after `more` times; lanes with the
    /// same count together.
    fn phases(&mut self, warp: Warp, lanes: u32, more: u64) -> Vec<(u32, u64)> {
        let counts = self.cluster.entry(warp).or_default();
        let mut phases: Vec<(u32, u64)> = Vec::new();
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
            let count = &mut counts[lane as usize];
            *count += more;
            match phases.iter_mut().find(|phase| phase.1 == *count) {
                Some(phase) => phase.0 |= 1 << lane,
                None => phases.push((1 << lane, *count)),
            }
        }
        phases
    }

    /// The next entry. One that its thread could not finish, because the launch was killed, says
    /// nothing.
    pub(crate) fn entry(&mut self, entry: &JournalEntry) {
        self.now = self.now.saturating_add(1);
        self.engine.at(self.now);
        let warp = entry_warp(entry.who);
        let threads = Executing {
            cta: entry_cta(entry.who),
            warp,
            offset: (self.loaded)(entry.what),
            lanes: entry.lanes,
        };
        let of = Warp {
            cta: threads.cta,
            warp,
        };
        let space = match entry.kind & ENTRY_SHARED {
            0 => Space::Global,
            _ => Space::Shared,
        };
        let about = entry.address as u32;
        let address = self.address(threads.cta, space, entry.address);
        match entry.kind & !ENTRY_SHARED {
            ENTRY_ACCESS => self.engine.journal_access(threads, space, address),
            ENTRY_LOOK => self.engine.looked(threads, space, address),
            ENTRY_EARLIER => {
                self.engine.earlier(threads, space, address, entry.time);
            }
            ENTRY_ARRIVE => {
                let waits = self.engine.waits(threads);
                self.engine.arrive(threads, about, waits);
                if waits {
                    let meeting = self.barriers.entry((threads.cta, about)).or_default();
                    meeting.wait(warp, threads.lanes);
                }
            }
            ENTRY_PASS => {
                let meeting = self.barriers.entry((threads.cta, about)).or_default();
                if meeting.pass(warp, threads.lanes) {
                    self.engine.complete(threads.cta, about);
                }
            }
            ENTRY_FENCE => self.engine.fence(threads),
            ENTRY_WARP_ARRIVE => {
                let meeting = self.warp_barriers.entry((of, about)).or_default();
                meeting.wait(warp, threads.lanes);
            }
            ENTRY_WARP_PASS => {
                let meeting = self.warp_barriers.entry((of, about)).or_default();
                let lanes = meeting.lanes();
                if meeting.pass(warp, threads.lanes) {
                    let lanes = lanes & self.shape.lanes(warp);
                    self.engine.warp_barrier(Executing { lanes, ..threads });
                }
            }
            ENTRY_CLUSTER_ARRIVE => {
                for (lanes, phase) in self.phases(of, threads.lanes, 1) {
                    let threads = Executing { lanes, ..threads };
                    self.engine.cluster_arrive(threads, phase - 1);
                }
            }
            ENTRY_CLUSTER_WAIT => {
                for (lanes, phase) in self.phases(of, threads.lanes, 0) {
                    let threads = Executing { lanes, ..threads };
                    self.engine.cluster_wait(threads, phase.saturating_sub(1));
                }
            }
            kind @ (ENTRY_COPY_FROM | ENTRY_COPY_TO | ENTRY_COPY_BARRIER) => {
                let bytes = Bytes {
                    space,
                    address,
                    count: entry.time,
                };
                self.copy(threads, kind, bytes, entry.address);
            }
            ENTRY_COPIES => self.engine.copies(threads),
            ENTRY_MBARRIER => {
                if let Some((op, expects)) = self.engine.mbarrier_op(threads) {
                    let at = (self.in_shared)(threads.cta, entry.address);
                    let (over, misuse) = self.mbarriers.operate(at, op, expects, entry.time);
                    let address = self.address(threads.cta, Space::Shared, entry.address);
                    self.engine.mbarrier(threads, address, over);
                    if let Some(misuse) = misuse {
                        self.engine.misuse(threads, misuse, threads.offset);
                    }
                }
            }
            ENTRY_MBARRIER_OVER => {
                let recorded = entry.address & ((1 << PARITY_SHIFT) - 1);
                let address = self.address(threads.cta, Space::Shared, recorded);
                let at = (self.in_shared)(threads.cta, recorded);
                let parity = (entry.address >> PARITY_SHIFT).checked_sub(1);
                let late = parity.is_some_and(|parity| self.mbarriers.is_late(at, parity));
                for lane in (0..LANES).filter(|lane| threads.lanes >> lane & 1 == 1) {
                    let lanes = 1 << lane;
                    let threads = Executing { lanes, ..threads };
                    match late {
                        true => self.engine.mbarrier_waited(threads, address),
                        false => self.engine.mbarrier(threads, address, true),
                    }
                }
            }
            ENTRY_EXIT => self.engine.exit(threads),
            ENTRY_OVERTAKEN => self.engine.overtaken(threads),
            _ => {}
        }
    }

    /// A part of a copy; the last part issues it. `recorded` is the address as the journal has it.
    fn copy(&mut self, threads: Executing, kind: u32, part: Bytes, recorded: u64) {
        let warp = Warp {
            cta: threads.cta,
            warp: threads.warp,
        };
        let issued = self.copies.entry((warp, threads.lanes)).or_default();
        match kind {
            ENTRY_COPY_FROM => issued.from = Some(part),
            ENTRY_COPY_BARRIER => issued.barrier = Some(recorded),
            _ => {
                let Issued { from, barrier } = std::mem::take(issued);
                let nothing = Bytes { count: 0, ..part };
                let at = barrier.map(|at| self.address(threads.cta, Space::Shared, at));
                self.engine.copy(threads, from.unwrap_or(nothing), part, at);
                if let (Some(recorded), Some(address)) = (barrier, at) {
                    let located = (self.in_shared)(threads.cta, recorded);
                    if self.mbarriers.complete(located, i64::from(part.count)) {
                        self.engine.mbarrier_complete(threads, address);
                    }
                }
            }
        }
    }
}
