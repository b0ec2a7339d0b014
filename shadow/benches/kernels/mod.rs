//! What the threads of well-known kernels do, as an engine receives it.
//!
//! All are free of races, and each takes the number of CTAs to run.

use random::Random;
use shadow::hb::{
    Access, Arrival, Completion, Engine, FenceKind, Issue, LANES, Location, MemoryOrder, OpKind,
    Race, Scope, Shape, Span, Waited, Warp,
};

/// A kernel.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    /// What it is called in tables.
    pub(crate) name: &'static str,
    /// Threads of a CTA.
    pub(crate) threads: u32,
    run: fn(&mut Gpu, u64),
}

impl Kernel {
    /// Runs it with a number of CTAs; the engine afterwards.
    pub(crate) fn run(&self, ctas: u64) -> Engine {
        let shape = Shape::new([ctas as u32, 1, 1], self.threads);
        let mut gpu = Gpu {
            engine: Engine::new(shape),
            warps: shape.warps(),
            lanes: u32::MAX,
        };
        (self.run)(&mut gpu, ctas);
        gpu.engine
    }
}

/// All kernels.
pub(crate) const KERNELS: [Kernel; 21] = [
    kernel("streaming", 256, streaming),
    kernel("tiled", 256, tiled),
    kernel("gather", 256, gather),
    kernel("few-bins", 256, |gpu, ctas| bins(gpu, ctas, 8, false)),
    kernel("many-bins", 256, |gpu, ctas| bins(gpu, ctas, 4096, false)),
    kernel("few-bins-fenced", 256, |gpu, ctas| bins(gpu, ctas, 8, true)),
    kernel("many-bins-fenced", 256, |gpu, ctas| {
        bins(gpu, ctas, 4096, true);
    }),
    kernel("flags", 32, flags),
    kernel("cas-lock", 128, cas_lock),
    kernel("release-lock", 128, release_lock),
    kernel("last-block", 256, last_block),
    kernel("last-block-forced", 256, last_block_forced),
    kernel("last-block-acq-rel", 256, last_block_acq_rel),
    kernel("grid-barrier", 64, grid_barrier),
    kernel("grid-barrier-sc", 64, grid_barrier_sc),
    kernel("grid-barrier-forced", 64, grid_barrier_forced),
    kernel("cp-async", 128, cp_async),
    kernel("producer-consumer", 128, producer_consumer),
    kernel("shared-histogram", 256, shared_histogram),
    kernel("rare-releases", 256, rare_releases),
    kernel("mixed", 32, mixed),
];

const fn kernel(name: &'static str, threads: u32, run: fn(&mut Gpu, u64)) -> Kernel {
    Kernel { name, threads, run }
}

/// An engine, and whose events it receives.
pub(crate) struct Gpu {
    /// The engine.
    pub(crate) engine: Engine,
    warps: u32,
    lanes: u32,
}

fn race(race: Race) {
    panic!("a race where there is none: {race:?}");
}

const fn word(kind: OpKind, order: MemoryOrder) -> Access {
    Access {
        kind,
        order,
        bytes: 4,
        elements: 1,
        site: 0,
    }
}

const LOAD: Access = word(OpKind::Load, MemoryOrder::Weak);
const STORE: Access = word(OpKind::Store, MemoryOrder::Weak);
const RELAXED_LOAD: Access = word(OpKind::Load, MemoryOrder::Relaxed(Scope::Gpu));
const RELAXED_STORE: Access = word(OpKind::Store, MemoryOrder::Relaxed(Scope::Gpu));
const RMW: Access = word(OpKind::Rmw, MemoryOrder::Relaxed(Scope::Gpu));

const fn warp(cta: u64, warp: u32) -> Warp {
    Warp { cta, warp }
}

/// A place in one of several arrays.
fn global(array: u64, word: u64) -> Location {
    Location::Global((array << 36) + 4 * word)
}

impl Gpu {
    /// All lanes of a warp, or those set last, access a word each.
    pub(crate) fn access(
        &mut self,
        warp: Warp,
        what: Access,
        site: u32,
        location: impl Fn(u32) -> Location,
    ) {
        let access = Access { site, ..what };
        self.engine
            .access(warp, self.lanes, &access, location, race);
    }

    /// The first lane alone.
    pub(crate) fn one(&mut self, warp: Warp, what: Access, site: u32, location: Location) {
        self.lanes = 1;
        self.access(warp, what, site, |_| location);
        self.lanes = u32::MAX;
    }

    /// A fence of the first lane.
    pub(crate) fn fence_one(&mut self, warp: Warp, kind: FenceKind) {
        self.engine.fence(warp, 1, kind, Scope::Gpu);
    }

    /// A fence of the whole warp.
    pub(crate) fn fence(&mut self, warp: Warp, kind: FenceKind) {
        self.engine.fence(warp, u32::MAX, kind, Scope::Gpu);
    }

    /// All warps of a CTA pass its barrier.
    pub(crate) fn barrier(&mut self, cta: u64) {
        for of in 0..self.warps {
            let arrival = Arrival {
                id: 0,
                waits: true,
                counted: false,
            };
            self.engine.arrive(warp(cta, of), u32::MAX, arrival);
        }
        self.engine.complete(cta, 0);
    }

    /// All threads of a CTA end.
    pub(crate) fn exit(&mut self, cta: u64) {
        for of in 0..self.warps {
            self.engine.exit(warp(cta, of), u32::MAX);
        }
    }

    fn all(&self, cta: u64) -> impl Iterator<Item = Warp> + use<> {
        (0..self.warps).map(move |of| warp(cta, of))
    }

    /// Number of a thread in the grid.
    fn number(&self, of: Warp, lane: u32) -> u64 {
        (of.cta * u64::from(self.warps) + u64::from(of.warp)) * u64::from(LANES) + u64::from(lane)
    }
}

/// Each thread reads one word and writes another.
pub(crate) fn streaming(gpu: &mut Gpu, ctas: u64) {
    for cta in 0..ctas {
        for of in gpu.all(cta) {
            let first = gpu.number(of, 0);
            gpu.access(of, LOAD, 0, |lane| global(1, first + u64::from(lane)));
            gpu.access(of, STORE, 1, |lane| global(2, first + u64::from(lane)));
        }
        gpu.exit(cta);
    }
}

/// A product of matrices: tiles in shared memory that all threads of the CTA read again and again.
fn tiled(gpu: &mut Gpu, ctas: u64) {
    for cta in 0..ctas {
        let shared = |array: u32, word: u32| Location::Shared {
            cta,
            offset: 4 * (256 * array + word),
        };
        for tile in 0..8 {
            for of in gpu.all(cta) {
                for array in 0..2 {
                    let from = (cta % 64 * 8 + tile) * 256 + u64::from(of.warp * LANES);
                    let source = |lane| global(1 + u64::from(array), from + u64::from(lane));
                    gpu.access(of, LOAD, array, source);
                    let to = |lane| shared(array, of.warp * LANES + lane);
                    gpu.access(of, STORE, 2 + array, to);
                }
            }
            gpu.barrier(cta);
            for of in gpu.all(cta) {
                for k in 0..16 {
                    let (row, column) = (|lane| 2 * of.warp + lane / 16, |lane: u32| lane % 16);
                    gpu.access(of, LOAD, 4, |lane| shared(0, row(lane) * 16 + k));
                    gpu.access(of, LOAD, 5, |lane| shared(1, k * 16 + column(lane)));
                }
            }
            gpu.barrier(cta);
        }
        for of in gpu.all(cta) {
            let first = gpu.number(of, 0);
            gpu.access(of, STORE, 6, |lane| global(3, first + u64::from(lane)));
        }
        gpu.exit(cta);
    }
}

fn scatter(number: u64) -> u64 {
    Random::new(number).number()
}

/// Each thread reads four words anywhere in a megabyte.
fn gather(gpu: &mut Gpu, ctas: u64) {
    for cta in 0..ctas {
        for of in gpu.all(cta) {
            let number = gpu.number(of, 0);
            for again in 0..4 {
                let index = |lane| scatter((number + u64::from(lane)) * 4 + again) % (1 << 18);
                gpu.access(of, LOAD, 0, |lane| global(1, index(lane)));
            }
            gpu.access(of, STORE, 1, |lane| global(2, number + u64::from(lane)));
        }
        gpu.exit(cta);
    }
}

/// Each thread adds to four of some bins; with a fence before, every addition may release.
fn bins(gpu: &mut Gpu, ctas: u64, count: u64, fenced: bool) {
    for cta in 0..ctas {
        for of in gpu.all(cta) {
            if fenced {
                gpu.fence(of, FenceKind::AcqRel);
            }
            let number = gpu.number(of, 0);
            for again in 0..4 {
                let bin = |lane| scatter((number + u64::from(lane)) * 4 + again) % count;
                gpu.access(of, RMW, 0, |lane| global(1, bin(lane)));
            }
        }
        gpu.exit(cta);
    }
}

/// Bins in shared memory: emptied, counted in, read and added to those of the grid.
fn shared_histogram(gpu: &mut Gpu, ctas: u64) {
    for cta in 0..ctas {
        let shared = |bin: u32| Location::Shared {
            cta,
            offset: 4 * bin,
        };
        for of in gpu.all(cta) {
            gpu.access(of, STORE, 0, |lane| shared(of.warp * LANES + lane));
        }
        gpu.barrier(cta);
        for again in 0..16 {
            for of in gpu.all(cta) {
                let number = gpu.number(of, 0);
                let bin = |lane| scatter((number + u64::from(lane)) * 16 + again) % 256;
                gpu.access(of, RMW, 1, |lane| shared(bin(lane) as u32));
            }
        }
        gpu.barrier(cta);
        for of in gpu.all(cta) {
            gpu.access(of, LOAD, 2, |lane| shared(of.warp * LANES + lane));
            let bin = |lane| global(1, u64::from(of.warp * LANES + lane));
            gpu.access(of, RMW, 3, bin);
        }
        gpu.exit(cta);
    }
}

/// Each warp waits for the flag of the one before, reads its data, and sets its own flag.
fn flags(gpu: &mut Gpu, ctas: u64) {
    for cta in 0..ctas {
        let me = warp(cta, 0);
        let data = |of: u64| move |lane: u32| global(1, of * 32 + u64::from(lane));
        if cta > 0 {
            gpu.access(me, RELAXED_LOAD, 0, |_| global(2, cta - 1));
            gpu.fence(me, FenceKind::AcqRel);
            gpu.access(me, LOAD, 1, data(cta - 1));
        }
        gpu.access(me, STORE, 2, data(cta));
        gpu.engine.warp_barrier(me, u32::MAX);
        gpu.fence_one(me, FenceKind::AcqRel);
        gpu.one(me, RELAXED_STORE, 3, global(2, cta));
        gpu.exit(cta);
    }
}

/// The first lane of every warp takes a lock four times, with a compare-and-swap, a fence, and an
/// exchange to let go.
fn cas_lock(gpu: &mut Gpu, ctas: u64) {
    hand_over(gpu, ctas, 4, |gpu, me| {
        gpu.one(me, RMW, 0, global(1, 0));
        gpu.fence_one(me, FenceKind::AcqRel);
        gpu.one(me, LOAD, 1, global(2, 0));
        gpu.one(me, STORE, 2, global(2, 0));
        gpu.fence_one(me, FenceKind::AcqRel);
        gpu.one(me, RMW, 3, global(1, 0));
    });
}

/// The same with an acquire to take it and a release store to let go.
fn release_lock(gpu: &mut Gpu, ctas: u64) {
    hand_over(gpu, ctas, 4, |gpu, me| {
        gpu.one(
            me,
            word(OpKind::Rmw, MemoryOrder::Acquire(Scope::Gpu)),
            0,
            global(1, 0),
        );
        gpu.one(me, LOAD, 1, global(2, 0));
        gpu.one(me, STORE, 2, global(2, 0));
        gpu.one(
            me,
            word(OpKind::Store, MemoryOrder::Release(Scope::Gpu)),
            3,
            global(1, 0),
        );
    });
}

/// All CTAs are resident; their warps take turns.
fn hand_over(gpu: &mut Gpu, ctas: u64, times: u32, section: impl Fn(&mut Gpu, Warp)) {
    for _ in 0..times {
        for cta in 0..ctas {
            for me in gpu.all(cta) {
                section(gpu, me);
            }
        }
    }
    (0..ctas).for_each(|cta| gpu.exit(cta));
}

/// Each thread writes a word, all fence as `__threadfence` does, and the CTA that counts last reads
/// everything.
fn last_block(gpu: &mut Gpu, ctas: u64) {
    last(gpu, ctas, FenceKind::Sc);
}

/// As a launch is checked: only an order that every run has counts.
fn last_block_forced(gpu: &mut Gpu, ctas: u64) {
    last(gpu, ctas, FenceKind::ScForced);
}

fn last_block_acq_rel(gpu: &mut Gpu, ctas: u64) {
    last(gpu, ctas, FenceKind::AcqRel);
}

fn last(gpu: &mut Gpu, ctas: u64, kind: FenceKind) {
    for cta in 0..ctas {
        for of in gpu.all(cta) {
            let first = gpu.number(of, 0);
            gpu.access(of, STORE, 0, |lane| global(1, first + u64::from(lane)));
            gpu.fence(of, kind);
        }
        gpu.barrier(cta);
        gpu.fence_one(warp(cta, 0), kind);
        gpu.one(warp(cta, 0), RMW, 1, global(2, 0));
        if cta + 1 == ctas {
            gpu.fence_one(warp(cta, 0), kind);
        }
        gpu.barrier(cta);
        if cta + 1 == ctas {
            for from in 0..ctas {
                for of in gpu.all(from) {
                    let first = gpu.number(of, 0);
                    let me = warp(cta, of.warp);
                    gpu.access(me, LOAD, 2, |lane| global(1, first + u64::from(lane)));
                }
            }
        }
        gpu.exit(cta);
    }
}

fn grid_barrier_sc(gpu: &mut Gpu, ctas: u64) {
    grid(gpu, ctas, 4, FenceKind::Sc);
}

fn grid_barrier_forced(gpu: &mut Gpu, ctas: u64) {
    grid(gpu, ctas, 4, FenceKind::ScForced);
}

/// All CTAs meet a number of times, and read what their neighbours wrote.
pub(crate) fn grid_barrier(gpu: &mut Gpu, ctas: u64) {
    grid(gpu, ctas, 4, FenceKind::AcqRel);
}

fn grid(gpu: &mut Gpu, ctas: u64, rounds: u64, kind: FenceKind) {
    let buffer = |round: u64| 3 + round % 2;
    for round in 0..rounds {
        for cta in 0..ctas {
            for of in gpu.all(cta) {
                let first = gpu.number(of, 0);
                let to = |lane| global(buffer(round), first + u64::from(lane));
                gpu.access(of, STORE, 0, to);
            }
            gpu.barrier(cta);
            gpu.fence_one(warp(cta, 0), kind);
            gpu.one(warp(cta, 0), RMW, 1, global(2, 0));
        }
        for cta in 0..ctas {
            gpu.one(warp(cta, 0), RELAXED_LOAD, 2, global(2, 0));
            gpu.fence_one(warp(cta, 0), kind);
            gpu.barrier(cta);
            for of in gpu.all(cta) {
                let next = warp((cta + 1) % ctas, of.warp);
                let first = gpu.number(next, 0);
                let from = |lane| global(buffer(round), first + u64::from(lane));
                gpu.access(of, LOAD, 3, from);
            }
        }
    }
    (0..ctas).for_each(|cta| gpu.exit(cta));
}

/// Tiles are copied asynchronously into one of two buffers while the other is read.
fn cp_async(gpu: &mut Gpu, ctas: u64) {
    for cta in 0..ctas {
        let shared = |tile: u64, byte: u32| Location::Shared {
            cta,
            offset: (tile % 2) as u32 * 2048 + byte,
        };
        let issue = |gpu: &mut Gpu, tile: u64| {
            for of in gpu.all(cta) {
                for lane in 0..LANES {
                    let byte = (of.warp * LANES + lane) * 16;
                    let from = Location::Global((1 << 36) + tile * 2048 + u64::from(byte));
                    let [from, to] = [from, shared(tile, byte)].map(|location| Span {
                        location,
                        bytes: 16,
                    });
                    let issue = Issue {
                        site: 0,
                        ends: Completion::Group,
                        bulk: false,
                        reduces: None,
                    };
                    let engine = &mut gpu.engine;
                    engine.copy(of.lane(lane), from, to, issue, race);
                }
                gpu.engine.commit(of, u32::MAX, false);
            }
        };
        issue(gpu, 0);
        for tile in 0..8 {
            issue(gpu, tile + 1);
            for of in gpu.all(cta) {
                let waited = Waited {
                    left: Some(1),
                    bulk: false,
                    reads: false,
                };
                gpu.engine.wait(of, u32::MAX, waited);
            }
            gpu.barrier(cta);
            for of in gpu.all(cta) {
                for row in 0..4 {
                    let from = |lane| shared(tile, (row * LANES + lane) * 16 + of.warp * 4);
                    gpu.access(of, LOAD, 1, from);
                }
            }
            gpu.barrier(cta);
        }
        gpu.exit(cta);
    }
}

/// Half of the warps fill two buffers, the other half empties them; named barriers say which is
/// full and which is free.
fn producer_consumer(gpu: &mut Gpu, ctas: u64) {
    for cta in 0..ctas {
        let half = gpu.warps / 2;
        let arrive = |gpu: &mut Gpu, of: u32, id: u32, waits: bool| {
            let arrival = Arrival {
                id,
                waits,
                counted: true,
            };
            gpu.engine.arrive(warp(cta, of), u32::MAX, arrival);
        };
        for turn in 0..16 {
            let buffer = turn % 2;
            let (full, free) = (1 + buffer, 3 + buffer);
            let at = |of: u32, lane: u32| Location::Shared {
                cta,
                offset: buffer * 4096 + (of * LANES + lane) * 4,
            };
            for of in 0..half {
                if turn >= 2 {
                    arrive(gpu, of, free, true);
                }
            }
            if turn >= 2 {
                gpu.engine.complete(cta, free);
            }
            for of in 0..half {
                gpu.access(warp(cta, of), STORE, 0, |lane| at(of, lane));
                arrive(gpu, of, full, false);
            }
            for of in half..2 * half {
                arrive(gpu, of, full, true);
            }
            gpu.engine.complete(cta, full);
            for of in half..2 * half {
                gpu.access(warp(cta, of), LOAD, 1, |lane| {
                    at(of - half, LANES - 1 - lane)
                });
                arrive(gpu, of, free, false);
            }
        }
        gpu.exit(cta);
    }
}

/// Each CTA does 10 000 accesses, of its own memory and of a table, and one release.
pub(crate) fn rare_releases(gpu: &mut Gpu, ctas: u64) {
    for cta in 0..ctas {
        for again in 0..20 {
            for of in gpu.all(cta) {
                let first = gpu.number(of, 0);
                let table = |lane| global(3, again * 32 + u64::from(lane));
                gpu.access(of, LOAD, 0, table);
                gpu.access(of, STORE, 1, |lane| global(1, first + u64::from(lane)));
            }
        }
        gpu.barrier(cta);
        gpu.fence_one(warp(cta, 0), FenceKind::AcqRel);
        gpu.one(warp(cta, 0), RMW, 2, global(2, 0));
        gpu.exit(cta);
    }
}

/// CTAs of one warp, eight resident at a time: each thread reads and writes a word and counts in
/// one of eight bins, and each warp publishes that.
pub(crate) fn mixed(gpu: &mut Gpu, ctas: u64) {
    for first in (0..ctas).step_by(8) {
        let resident = first..(first + 8).min(ctas);
        for me in resident.clone().map(|cta| warp(cta, 0)) {
            let number = gpu.number(me, 0);
            gpu.access(me, LOAD, 0, |lane| global(1, number + u64::from(lane)));
            gpu.access(me, STORE, 1, |lane| global(2, number + u64::from(lane)));
            gpu.access(me, RMW, 2, |lane| global(3, u64::from(lane % 8)));
        }
        for me in resident.clone().map(|cta| warp(cta, 0)) {
            gpu.engine.warp_barrier(me, u32::MAX);
            gpu.fence_one(me, FenceKind::Sc);
            gpu.one(me, RMW, 3, global(4, 0));
        }
        resident.for_each(|cta| gpu.exit(cta));
    }
}
