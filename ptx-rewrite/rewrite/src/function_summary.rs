//! What one function does, its callees left aside.

use std::collections::BTreeMap;

use ptx::ast::{Function, Instruction, Module, Space, Statement};
use ptx::isa::{self, AtomicOp, MemoryKind, MemoryOp, SyncOp};
use ptx::link::is_device_runtime;

use crate::access::{Access, AddressSpace, Checked};
use crate::epoch::{self, Counted};
use crate::grid::{self, Part};
use crate::journal;
use crate::names::Names;
use crate::order;

/// The facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionSummary {
    /// Accesses of global or generic memory that can be checked.
    pub checkable: u32,
    /// Accesses of shared memory that can be checked.
    pub checkable_shared: u32,
    /// Accesses whose address says whether they are of shared memory.
    pub generic: u32,
    /// log2 of the smallest element among those that may be of global memory, at most 2.
    pub granule_log2: u32,
    /// Likewise, of shared memory.
    pub shared_granule_log2: u32,
    /// It knows shared memory: without, a generic address is none.
    pub names_shared: bool,
    /// It reaches the shared memory of other CTAs of its cluster.
    pub clusters: bool,
    /// Accesses of shared memory that are not checked.
    pub shared: u32,
    /// Accesses of private or constant memory.
    pub private: u32,
    /// It executes barriers of the whole CTA.
    pub barriers: bool,
    /// It executes barriers of the whole warp, or may.
    pub warp_barriers: bool,
    /// It executes barriers of the whole grid.
    pub grid_barriers: bool,
    /// It executes barriers that can be misused (CR007): of a CTA, a warp or a cluster.
    pub misusable: bool,
    /// It operates on mbarriers.
    pub mbarriers: bool,
    /// Accesses whose races a cell gets wrong, as `rule::access` says; by what is special about them.
    pub features: Features,
    /// It makes strong accesses that can be checked.
    pub strong: bool,
    /// Most bytes of one of them.
    pub strong_bytes: u32,
    /// Most bytes of a weak store.
    pub stored_bytes: u32,
    /// Some of them are no atomics.
    pub stores_strongly: bool,
    /// It swaps values, as locks do: `atom.cas` or `atom.exch`.
    pub swaps: bool,
    /// What may order threads unseen by the epochs.
    pub releases: Vec<String>,
    /// Operations that the fence rule counts, where the function is rewritten.
    pub orders: bool,
    /// What may order threads, but cannot be counted for the fence rule.
    pub uncounted: bool,
    /// What the check does not follow.
    pub not_understood: BTreeMap<String, UnsupportedOperation>,
    /// Asynchronous copies and stores, which cells judge as if they were made at once.
    pub copies: BTreeMap<String, UnsupportedOperation>,
    /// Its first operation that no journal records.
    pub beyond_journal: Option<String>,
}

/// Accesses of global memory that are more than ordinary loads and stores, and reductions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    /// Loads through the read-only path.
    pub read_only: bool,
    /// Writes of any kind.
    pub writes: bool,
    /// Operations that observe what other threads have written: strong loads, `atom`.
    pub observes: bool,
    /// Sizes of the strong ones, in bytes, one bit each.
    pub strong_sizes: u32,
    /// Copies that complete later; in shared memory as well.
    pub asynchronous: bool,
    /// Writes of which the last counts, or that round what they add up.
    pub last_counts: bool,
    /// What reductions compute, one bit each.
    pub reductions: u32,
}

impl Features {
    fn add(&mut self, op: &MemoryOp) {
        self.read_only |= op.nc;
        self.writes |= op.is_write();
        if op.is_strong() {
            self.observes |= matches!(op.kind, MemoryKind::Load | MemoryKind::Rmw);
            self.strong_sizes |= op.atomic_bytes();
            match op.op {
                Some(computes) if commutes(computes) && !op.ty.is_float() => {
                    let signed = 16 * u32::from(op.ty.is_signed());
                    self.reductions |= 1 << (computes as u32 + signed);
                }
                _ => self.last_counts |= op.is_write(),
            }
        }
    }

    /// What both do.
    pub(crate) fn join(&mut self, other: Self) {
        self.read_only |= other.read_only;
        self.writes |= other.writes;
        self.observes |= other.observes;
        self.strong_sizes |= other.strong_sizes;
        self.asynchronous |= other.asynchronous;
        self.last_counts |= other.last_counts;
        self.reductions |= other.reductions;
    }

    /// True when such accesses leave the same, and read the same, in whatever order they come, unless
    /// they race.
    pub(crate) fn commute(self) -> bool {
        !self.observes && !self.last_counts && self.reductions.count_ones() <= 1
    }

    /// True when a cell cannot tell all races of such accesses from what is none: writes to
    /// read-only data race in spite of barriers, strong accesses of different sizes race with each
    /// other, what has been observed is ordered, and a copy is under way until it is waited for.
    pub(crate) fn beyond_cells(self) -> bool {
        self.writes_read_only() || self.observes || self.strong_sizes_differ() || self.asynchronous
    }

    /// Whether some may write what others load through the read-only path.
    pub(crate) fn writes_read_only(self) -> bool {
        self.read_only && self.writes
    }

    /// Whether strong accesses of several sizes may overlap in part.
    pub(crate) fn strong_sizes_differ(self) -> bool {
        self.strong_sizes.count_ones() > 1
    }
}

/// Whether values that are put in by this operation, and no other, leave the same in any order.
fn commutes(op: AtomicOp) -> bool {
    match op {
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Add => true,
        AtomicOp::Min | AtomicOp::Max => true,
        AtomicOp::Cas | AtomicOp::Exch | AtomicOp::Inc | AtomicOp::Dec => false,
    }
}

/// What a check does not follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsupportedOperation {
    /// How often it stands in the text.
    pub count: u32,
    /// The first line, 0 when it has none.
    pub line: u32,
    /// An observer of the simulated device receives all that it accesses.
    pub observable: bool,
}

/// Reads a function. One that is only declared has no facts but its name.
pub(crate) fn read(
    module: &Module,
    function: &Function,
    names: Option<&Names<'_>>,
) -> FunctionSummary {
    let mut summary = FunctionSummary {
        granule_log2: 2,
        shared_granule_log2: 2,
        ..FunctionSummary::default()
    };
    let Some(names) = names else {
        declared(function, &mut summary);
        return summary;
    };
    let body = names.body();
    let text = module.slice(body.span);
    let mut variables = module.variables().filter(|v| v.space == Space::Shared);
    summary.names_shared = variables.any(|variable| text.contains(variable.name.as_str()));
    let grid_barriers = grid::barriers(body);
    summary.grid_barriers = !grid_barriers.is_empty();
    for (at, statement) in body.statements.iter().enumerate() {
        let instruction = match statement {
            Statement::Instruction(instruction) => instruction,
            Statement::Unknown(span) => {
                let line = module.line_column(span.start).0;
                summary.add_unsupported("a statement", line, false);
                summary.uncounted = true;
                summary.releases.push(format!(
                    "a statement that is not understood at PTX line {line}"
                ));
                continue;
            }
            Statement::Variable(variable) => {
                summary.names_shared |= variable.space == Space::Shared;
                continue;
            }
            _ => continue,
        };
        if grid::part(&grid_barriers, at) == Some(Part::Own) {
            continue;
        }
        match isa::sync(instruction) {
            Some(
                SyncOp::CtaBarrier { .. }
                | SyncOp::WarpBarrier { .. }
                | SyncOp::ClusterBarrier { .. },
            ) => summary.misusable = true,
            Some(SyncOp::Mbarrier { .. }) => summary.mbarriers = true,
            _ => {}
        }
        summary.names_shared |= instruction.suffixes.iter().any(|s| s.starts_with("shared"));
        let line = module.line_column(instruction.span.start).0;
        let checked = names.checked(at);
        // What it completes with is counted with its check.
        let copies = matches!(checked, Checked::Copy(_));
        match checked {
            Checked::Yes(Access {
                op, address_space, ..
            }) => {
                let element = op.bytes_per_element.max(1).trailing_zeros();
                summary.generic += u32::from(address_space == AddressSpace::Generic);
                summary.strong |= op.is_strong();
                let most = match op.is_strong() {
                    true => &mut summary.strong_bytes,
                    false => &mut summary.stored_bytes,
                };
                if op.is_strong() || op.is_write() {
                    *most = op.bytes().max(*most);
                }
                let plain = matches!(op.kind, MemoryKind::Load | MemoryKind::Store);
                summary.stores_strongly |= op.is_strong() && plain;
                let swap = matches!(op.op, Some(AtomicOp::Cas | AtomicOp::Exch));
                summary.swaps |= swap && op.kind == MemoryKind::Rmw;
                if address_space.may_be_global() {
                    summary.checkable += 1;
                    summary.features.add(&op);
                    summary.granule_log2 = summary.granule_log2.min(element);
                }
                summary.clusters |= address_space == AddressSpace::Cluster;
                summary.checkable_shared += u32::from(!address_space.may_be_global());
                if address_space.may_be_shared() {
                    summary.shared_granule_log2 = summary.shared_granule_log2.min(element);
                }
            }
            Checked::Copy(copy) => {
                for ((_, address_space), writes, _) in copy.sides() {
                    summary.generic += u32::from(address_space == AddressSpace::Generic);
                    summary.checkable += u32::from(address_space.may_be_global());
                    summary.checkable_shared += u32::from(!address_space.may_be_global());
                    summary.features.writes |= writes && address_space.may_be_global();
                }
                summary.features.asynchronous = true;
                summary.orders |= copy.mbarrier.is_some();
                if copy.reduces() && copy.from.is_some() {
                    summary.keeps_no_journal(&opcode(instruction), line);
                }
                let unsupported = UnsupportedOperation {
                    count: 0,
                    line,
                    observable: observable(instruction),
                };
                let known = summary.copies.entry(opcode(instruction));
                known.or_insert(unsupported).count += 1;
            }
            Checked::Shared => {
                summary.shared += 1;
                summary.keeps_no_journal(&opcode(instruction), line);
            }
            Checked::Private => summary.private += 1,
            Checked::NotUnderstood => {
                summary.add_unsupported(&opcode(instruction), line, observable(instruction));
            }
            // The address of another CTA's shared memory.
            Checked::NoAccess if instruction.opcode == "mapa" => {
                summary.clusters = true;
                summary.names_shared = true;
            }
            Checked::NoAccess if isa::lookup(&instruction.opcode).is_none() => {
                summary.add_unsupported(&opcode(instruction), line, false);
            }
            Checked::NoAccess => {}
        }
        match epoch::counted(instruction) {
            Some(Counted::Cta) => summary.barriers = true,
            Some(Counted::Warp | Counted::WarpIfFull(_)) => summary.warp_barriers = true,
            None => {}
        }
        if journal::is_beyond(instruction) {
            summary.keeps_no_journal(&opcode(instruction), line);
        }
        let counted = order::counted(instruction).is_some();
        summary.orders |= counted;
        if orders(instruction) {
            let known = isa::memory(instruction).is_some_and(|op| op.is_plain()) || copies;
            summary.uncounted |= !counted && !known && !order::orders_nothing(instruction);
            let text = module.slice(instruction.span);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            summary.releases.push(format!("{text} at PTX line {line}"));
        }
    }
    summary
}

impl FunctionSummary {
    fn keeps_no_journal(&mut self, what: &str, line: u32) {
        let locate = || match line {
            0 => what.to_owned(),
            line => format!("{what} at PTX line {line}"),
        };
        self.beyond_journal.get_or_insert_with(locate);
    }

    fn add_unsupported(&mut self, what: &str, line: u32, observable: bool) {
        self.keeps_no_journal(what, line);
        let known = self.not_understood.entry(what.to_owned());
        let unsupported = UnsupportedOperation {
            count: 0,
            line,
            observable,
        };
        known.or_insert(unsupported).count += 1;
    }
}

/// What the code of a function that is elsewhere may do.
fn declared(function: &Function, summary: &mut FunctionSummary) {
    summary.uncounted = !matches!(&*function.name, "vprintf" | "__assertfail");
    match function.name.as_str() {
        "vprintf" | "__assertfail" => {}
        // Memory handed from free to malloc is ordered by the allocator.
        "malloc" | "free" => {
            let call = format!("a call of {}", function.name);
            summary.keeps_no_journal(&call, 0);
            summary.releases.push(call);
        }
        // What cannot be called ends the launch.
        name if is_device_runtime(name) => {
            let call = format!("a call of {name}, of the device runtime");
            summary.keeps_no_journal(&call, 0);
            summary.releases.push(call);
        }
        name => {
            summary.add_unsupported(&format!("{name}, a function defined elsewhere"), 0, false);
            summary
                .releases
                .push(format!("a call of {name}, which is defined elsewhere"));
        }
    }
}

/// Whether the simulated device reports which bytes an instruction accesses.
fn observable(instruction: &Instruction) -> bool {
    isa::memory(instruction).is_some_and(|op| {
        use MemoryKind::{AsyncCopy, AsyncStore, BulkCopy, MatrixLoad, MatrixStore};
        use MemoryKind::{SurfaceLoad, SurfaceStore, Texture};
        let copies = matches!(op.kind, AsyncCopy | AsyncStore | BulkCopy);
        let matrix = matches!(op.kind, MatrixLoad | MatrixStore);
        let observed = (copies && !instruction.has("tensor")) || matrix;
        let image = matches!(op.kind, SurfaceLoad | SurfaceStore | Texture);
        op.is_plain() || image || observed
    })
}

fn opcode(instruction: &Instruction) -> String {
    let mut text = instruction.opcode.to_string();
    for suffix in &instruction.suffixes {
        text.push('.');
        text.push_str(suffix);
    }
    text
}

/// Whether an instruction may order threads in a way that a cell does not follow.
fn orders(instruction: &Instruction) -> bool {
    if isa::lookup(&instruction.opcode).is_none() || isa::sync::release_capable(instruction) {
        return true;
    }
    match isa::sync(instruction) {
        Some(SyncOp::WarpBarrier { .. }) => !isa::sync::is_full_warp_barrier(instruction),
        Some(SyncOp::CtaBarrier { .. }) => !isa::sync::is_full_cta_barrier(instruction),
        Some(SyncOp::Mbarrier { .. }) => true,
        _ => isa::memory(instruction).is_some_and(|op| {
            op.scope == isa::Scope::Cluster && op.is_strong()
                || matches!(op.kind, MemoryKind::BulkCopy) && op.space != Space::Shared
        }),
    }
}
