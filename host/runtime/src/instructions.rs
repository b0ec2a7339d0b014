//! What the instructions of a module mean to the happens-before engine.

use hashbrown::HashMap;

use ptx::ast::{Instruction, Module, Operand};
use ptx::isa::{self, AtomicOp, MbarrierOp, MemoryKind, MemoryOp, Semantics, SyncOp};
use shadow::hb::{Access, Atomics, Look, MemoryOrder, OpKind, Scope, Waited};

use crate::{grid, log, names};

/// What the instructions of a module mean to the happens-before engine, by their byte offset in the loaded text.
#[derive(Debug, Default)]
pub(crate) struct Instructions {
    by_offset: HashMap<u32, Meaning>,
    /// The accesses, numbered as [`Access::site`] counts them.
    sites: Vec<log::Site>,
    /// Where each begins in the original text.
    offsets: Vec<u32>,
    /// What each does, where it is one scalar or vector per lane.
    accesses: Vec<Option<Access>>,
    /// Some instruction lets dependent launches begin (`griddepcontrol.launch_dependents`).
    pub(crate) lets_others_begin: bool,
    /// Some instruction publishes that mbarriers have been made (`fence.mbarrier_init`).
    pub(crate) fences_inits: bool,
    /// Some instruction looks at a version.
    pub(crate) looks: bool,
    /// Some instruction is a strong load or store, and no atomic.
    pub(crate) stores_strongly: bool,
    /// Some instruction swaps, so that there may be locks.
    pub(crate) swaps: bool,
}

/// What one instruction means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) access: Option<Access>,
    pub(crate) site: u32,
    pub(crate) sync: Option<SyncOp>,
    /// A bulk copy, or a fence between the async proxy and the others.
    pub(crate) proxy: bool,
    /// `fence.mbarrier_init`
    pub(crate) fences_inits: bool,
    /// A barrier of all lanes.
    pub(crate) whole_warp: bool,
    /// An `atom.exch` or `atom.cas` that [`events::Observer::exchanged`] receives more of.
    pub(crate) swaps: bool,
    /// An atomic that [`events::Observer::updated`] receives more of.
    pub(crate) updates: bool,
    /// Bytes of a lane's line, for matrix loads and stores; else 0.
    pub(crate) line: u32,
    /// An operation on an mbarrier that lets it expect bytes.
    pub(crate) expects: bool,
    /// `cp.async.mbarrier.arrive.noinc`: an arrival that the phase expects already.
    pub(crate) noinc: bool,
    /// What it waits for, if it waits for copies.
    pub(crate) waited: Waited,
    /// The part of a barrier of the grid that it is.
    pub(crate) grid: Option<grid::Part>,
    /// It accesses what threads communicate through.
    pub(crate) signal: bool,
    /// A loop waits for what it reads ([`ptx::waits()`]).
    pub(crate) waits: bool,
    /// How it looks at a version ([`ptx::versions()`]).
    pub(crate) look: Look,
    /// It is an atomic that counts threads so that the last one can be recognised ([`ptx::counts()`]).
    pub(crate) counts: bool,
    /// Only the thread that received the final count executes it. Gives the site of the counting atomic.
    pub(crate) found: Option<u32>,
}

impl Meaning {
    /// What it is for, if it is an atomic.
    pub(crate) fn atomics(&self) -> Atomics {
        match self.access {
            Some(access) if matches!(access.kind, OpKind::Rmw | OpKind::Reduction) => match () {
                () if self.counts => Atomics::Count,
                () if self.waits => Atomics::Wait,
                () if self.signal => Atomics::Signal,
                () => Atomics::Any,
            },
            _ => Atomics::Any,
        }
    }

    /// The reduction that a copy makes on each element of its target, if it makes one.
    pub(crate) fn reduces(&self) -> Option<Access> {
        self.access.filter(|access| access.bytes > 0)
    }
}

/// A site of the engine.
pub(crate) struct NumberedSite<'a> {
    pub(crate) number: u32,
    /// None where no instruction has the number.
    pub(crate) site: Option<&'a log::Site>,
}

impl Instructions {
    /// Reads the original module. `loaded` turns a byte offset in its text into one in the text that
    /// was loaded; where that has an instruction twice, `copied` gives the offset of the second one.
    pub(crate) fn new(
        module: &Module,
        loaded: impl Fn(u32) -> u32,
        copied: impl Fn(u32) -> Option<u32>,
    ) -> Self {
        let mut copies = Vec::new();
        let mut all = Self::default();
        for function in module.functions() {
            let Some(body) = &function.body else {
                continue;
            };
            let grid_barriers = grid::Barriers::of(body);
            let signals = ptx::signals(module, function);
            let counts = ptx::counts(module, function);
            let versions = ptx::versions(module, function);
            let narrow = ptx::narrow(module, function);
            all.looks |= !versions.opens.is_empty();
            let mut numbers = HashMap::new();
            let mut behind = Vec::new();
            for (statement, instruction) in body.instructions() {
                let mut memory = isa::memory(instruction);
                if let (Some(op), Some(narrow)) = (&mut memory, narrow.get(&statement)) {
                    op.bytes_per_element = narrow.bytes;
                }
                let sync = isa::sync(instruction);
                // Shuffles, votes and the like can be misused.
                let exchange = instruction.has("sync");
                let fences_inits = sync.is_some() && instruction.has("mbarrier_init");
                all.fences_inits |= fences_inits;
                all.lets_others_begin |= sync == Some(SyncOp::GridDependency { wait: false });
                if memory.is_none() && sync.is_none() && !exchange {
                    continue;
                }
                let site = all.sites.len() as u32;
                if counts.counts.contains(&statement) {
                    numbers.insert(statement, site);
                }
                let text = module.slice(instruction.span);
                let frames = instruction
                    .loc
                    .map(|loc| module.inline_frames(body, loc))
                    .unwrap_or_default();
                all.offsets.push(instruction.span.start);
                all.sites.push(log::Site {
                    id: site,
                    function: function.name.to_string(),
                    text: text.split_whitespace().collect::<Vec<_>>().join(" "),
                    ptx_line: module.line_column(instruction.span.start).0,
                    frames: frames.iter().map(names::frame).collect(),
                    ..match (&memory, sync) {
                        (Some(op), _) => names::operation(op),
                        (
                            None,
                            Some(SyncOp::Mbarrier {
                                op, relaxed, scope, ..
                            }),
                        ) => names::mbarrier(op, relaxed, scope),
                        _ => log::Site::barrier(),
                    }
                });
                all.stores_strongly |= memory.as_ref().is_some_and(|op| {
                    op.is_strong() && matches!(op.kind, MemoryKind::Load | MemoryKind::Store)
                });
                let access = match sync {
                    Some(SyncOp::Mbarrier { op, .. }) => mbarrier(op, site),
                    _ => memory.as_ref().and_then(|op| access(op, site)),
                };
                all.accesses.push(access);
                let meaning = Meaning {
                    access,
                    site,
                    sync,
                    proxy: instruction.has("bulk")
                        || (instruction.has("proxy") && instruction.has("async")),
                    fences_inits,
                    whole_warp: isa::sync::is_full_warp_barrier(instruction),
                    swaps: memory.as_ref().is_some_and(|op| swaps(instruction, op)),
                    updates: memory.as_ref().is_some_and(updates),
                    line: isa::matrix::lines(instruction).map_or(0, |lines| lines.bytes),
                    expects: instruction.has("expect_tx"),
                    noinc: instruction.has("noinc"),
                    waited: waited(instruction),
                    grid: grid_barriers.part(statement),
                    signal: signals.all.contains(&statement),
                    waits: signals.waits.contains(&statement),
                    look: Look {
                        opens: versions.opens.contains(&statement),
                        closes: versions.closes.contains(&statement),
                        blind: versions.blind.contains(&statement),
                        carried: versions.carried.contains(&statement),
                        swap: None,
                    },
                    counts: counts.counts.contains(&statement),
                    found: None,
                };
                all.swaps |= meaning.swaps;
                let offset = loaded(instruction.span.start);
                copies.extend(copied(instruction.span.start).map(|copy| (offset, copy)));
                if let Some(count) = counts.found.get(&statement) {
                    behind.push((offset, *count));
                }
                all.by_offset.insert(offset, meaning);
            }
            for (offset, count) in behind {
                if let Some(meaning) = all.by_offset.get_mut(&offset) {
                    meaning.found = numbers.get(&count).copied();
                }
            }
        }
        for (offset, copy) in copies {
            if let Some(meaning) = all.at(offset) {
                all.by_offset.insert(copy, meaning);
            }
        }
        all
    }

    /// What the instruction at a byte offset of the loaded text means, if it means anything.
    pub(crate) fn at(&self, offset: u32) -> Option<Meaning> {
        self.by_offset.get(&offset).copied()
    }

    /// True when a site is an asynchronous copy.
    pub(crate) fn is_copy(&self, number: u32) -> bool {
        self.site(number)
            .is_some_and(|site| site.op == log::Op::Copy)
    }

    /// True when a site is part of a barrier of the grid.
    pub(crate) fn is_of_grid_barrier(&self, number: u32) -> bool {
        let meaning = self.offset(number).and_then(|offset| self.at(offset));
        meaning.is_some_and(|meaning| meaning.grid.is_some())
    }

    /// An access by its number.
    pub(crate) fn site(&self, number: u32) -> Option<&log::Site> {
        self.sites.get(number as usize)
    }

    /// A site with its number.
    pub(crate) fn numbered(&self, number: u32) -> NumberedSite<'_> {
        let site = self.site(number);
        NumberedSite { number, site }
    }

    /// Where an access begins in the original text, by its number.
    pub(crate) fn offset(&self, number: u32) -> Option<u32> {
        self.offsets.get(number as usize).copied()
    }

    /// What an access does, by its number, where it is one scalar or vector per lane.
    pub(crate) fn access(&self, number: u32) -> Option<Access> {
        self.accesses.get(number as usize).copied().flatten()
    }
}

fn swaps(instruction: &Instruction, op: &MemoryOp) -> bool {
    let swap = instruction.has("exch") || instruction.has("cas");
    swap && op.kind == MemoryKind::Rmw && op.vector <= 1 && op.bytes_per_element <= 8
}

fn updates(op: &MemoryOp) -> bool {
    let counts = matches!(
        op.op,
        Some(
            AtomicOp::Add
                | AtomicOp::Inc
                | AtomicOp::Dec
                | AtomicOp::And
                | AtomicOp::Or
                | AtomicOp::Xor
        )
    );
    let is_atomic = matches!(op.kind, MemoryKind::Rmw | MemoryKind::Reduction);
    counts && is_atomic && op.ty.is_integer() && op.vector <= 1 && op.bytes_per_element <= 8
}

/// `cp.async.wait_group n` leaves `n` groups, `wait_all` none.
fn waited(instruction: &Instruction) -> Waited {
    Waited {
        left: match instruction.operands.first() {
            Some(Operand::Int(count)) if instruction.has("wait_group") => {
                u32::try_from(*count).ok()
            }
            _ => None,
        },
        bulk: instruction.has("bulk"),
        reads: instruction.has("read"),
    }
}

/// What an operation on an mbarrier does to the memory where that lies. Operations on an object are
/// atomic, whichever threads make them; that memory is one is written like any data. That it is none any more is
/// not: libraries invalidate when all have waited, which they need not know of one another, and who
/// still uses the object is reported.
fn mbarrier(op: MbarrierOp, site: u32) -> Option<Access> {
    let (kind, order) = match op {
        MbarrierOp::Init => (OpKind::Store, MemoryOrder::Weak),
        MbarrierOp::TestWait | MbarrierOp::TryWait => {
            (OpKind::Load, MemoryOrder::Relaxed(Scope::Sys))
        }
        MbarrierOp::Inval | MbarrierOp::PendingCount => return None,
        _ => (OpKind::Reduction, MemoryOrder::Relaxed(Scope::Sys)),
    };
    Some(Access {
        kind,
        order,
        bytes: names::MBARRIER_BYTES,
        elements: 1,
        site,
    })
}

/// The access of an instruction that is one scalar or vector per lane. For a texture fetch, a surface and a matrix it
/// has 0 bytes: their number is known when the access is made.
fn access(op: &MemoryOp, site: u32) -> Option<Access> {
    if op.kind == MemoryKind::Texture {
        return Some(Access {
            kind: OpKind::Load,
            order: MemoryOrder::ReadOnly,
            bytes: 0,
            elements: 1,
            site,
        });
    }
    let kind = match op.kind {
        MemoryKind::Load => OpKind::Load,
        MemoryKind::Store => OpKind::Store,
        MemoryKind::Rmw => OpKind::Rmw,
        MemoryKind::Reduction => OpKind::Reduction,
        MemoryKind::MatrixLoad | MemoryKind::SurfaceLoad => OpKind::Load,
        MemoryKind::MatrixStore | MemoryKind::SurfaceStore => OpKind::Store,
        // `cp.reduce.async.bulk` and `red.async`. Observers get them as copies.
        MemoryKind::BulkCopy | MemoryKind::AsyncStore if op.op.is_some() => OpKind::Reduction,
        _ => return None,
    };
    let copied = matches!(op.kind, MemoryKind::BulkCopy | MemoryKind::AsyncStore);
    let observed = !op.is_plain() && !copied;
    let within = op.scope;
    let order = match op.sem {
        Semantics::Weak if op.nc => MemoryOrder::ReadOnly,
        Semantics::Weak => MemoryOrder::Weak,
        Semantics::Relaxed => MemoryOrder::Relaxed(within),
        Semantics::Acquire => MemoryOrder::Acquire(within),
        Semantics::Release => MemoryOrder::Release(within),
        Semantics::AcqRel => MemoryOrder::AcqRel(within),
        Semantics::Volatile | Semantics::Mmio => MemoryOrder::Relaxed(Scope::Sys),
    };
    let bytes = op.atomic_bytes();
    (observed || bytes > 0).then_some(Access {
        kind,
        order,
        bytes: if observed { 0 } else { bytes },
        // What is observed is observed whole.
        elements: if observed {
            1
        } else {
            u32::from(op.vector.max(1)) * op.halves()
        },
        site,
    })
}
