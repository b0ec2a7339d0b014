//! What is known of a kernel before it runs, callees included; decides what gets which check.

use std::collections::{BTreeMap, BTreeSet};

use ptx::ast::{Function, Instruction, Item, Module, Space};
use ptx::callgraph::CallGraph;
use ptx::isa::{self, MemoryKind, SyncOp};

use crate::access::{self, Checked};
use crate::edit;

/// Largest kernel parameter block before PTX 8.1, in bytes.
const PARAM_LIMIT: u32 = 4096;
/// Largest kernel parameter block from PTX 8.1 on.
const PARAM_LIMIT_LARGE: u32 = 32764;

/// Accesses that are not checked, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Shared memory: not checked yet.
    pub shared: u32,
    /// Local memory, parameters and constants: private or read-only.
    pub private: u32,
}

/// One kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelInfo {
    /// Mangled name.
    pub name: String,
    /// Whether it takes the hidden parameter and checks its accesses.
    pub instrumented: bool,
    /// Why not.
    pub why_not: Option<String>,
    /// It can order its threads in ways a cell does not follow, so its conflicts are candidates.
    pub release_capable: bool,
    /// The first few such instructions, `membar.gl at line 12`.
    pub release_sites: Vec<String>,
    /// log2 of the granule: the smallest checked access, at most 4 bytes.
    pub granule_log2: u32,
    /// It executes barriers of the whole CTA.
    pub barriers: bool,
    /// It executes barriers of the whole warp.
    pub warp_barriers: bool,
    /// Static accesses to global or generic memory, callees included.
    pub accesses: u32,
    /// Those with a check.
    pub checked: u32,
    /// Those that need none, or have none yet.
    pub skipped: Skipped,
    /// Instructions that access or order memory in a way the check does not follow.
    pub not_understood: Vec<String>,
    /// Offset of the hidden parameter, in bytes.
    pub param_bytes: u32,
}

/// What to do with every function of a module.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The kernels, in text order.
    pub kernels: Vec<KernelInfo>,
    /// Instrumented functions, kernels included, with log2 of their granule.
    pub instrumented: BTreeMap<String, u32>,
    /// Device functions left alone, with the reason.
    pub unchecked_functions: Vec<(String, String)>,
}

/// Decides for the whole module.
pub(crate) fn plan(module: &Module) -> Plan {
    let mut plan = Plan::default();
    let graph = CallGraph::new(module);
    let refused = refuse(module);
    let aliased: BTreeSet<&str> = module
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Alias { aliasee, .. } => Some(aliasee.as_str()),
            _ => None,
        })
        .collect();
    let entries: Vec<&Function> = module
        .functions()
        .filter(|f| f.entry && f.body.is_some())
        .collect();

    // A function keeps its signature when somebody calls it through a pointer or another name.
    let mut fixed: BTreeMap<&str, &str> = BTreeMap::new();
    for function in module.functions().filter(|f| !f.entry && f.body.is_some()) {
        if graph.is_address_taken(&function.name) {
            fixed.insert(&function.name, "its address is taken");
        } else if aliased.contains(function.name.as_str()) {
            fixed.insert(&function.name, "it has an alias");
        }
    }
    let why_not = |entry: &Function| refused.clone().or_else(|| no_room(module, entry));

    // Kernels that share a function share its granule.
    let mut granules: BTreeMap<&str, u32> = BTreeMap::new();
    let mut groups: Vec<(&Function, BTreeSet<&str>)> = Vec::new();
    for entry in &entries {
        let mut reached = graph.directly_reachable(&entry.name);
        let defined = |name: &str| module.function(name).is_some_and(|f| f.body.is_some());
        reached.retain(|name| defined(name) && !fixed.contains_key(name));
        let granule = reached
            .iter()
            .filter_map(|name| module.function(name))
            .map(smallest)
            .min();
        for name in &reached {
            let known = granules.entry(name).or_insert(2);
            *known = granule.unwrap_or(2).min(*known);
        }
        groups.push((entry, reached));
    }
    let mut settled = false;
    while !settled {
        settled = true;
        for (_, reached) in &groups {
            let least = reached
                .iter()
                .filter_map(|name| granules.get(name))
                .min()
                .copied();
            for name in reached {
                if let (Some(known), Some(least)) = (granules.get_mut(name), least)
                    && *known > least
                {
                    *known = least;
                    settled = false;
                }
            }
        }
    }

    for (entry, reached) in &groups {
        let mut info = kernel(module, &graph, entry, reached);
        info.why_not = why_not(entry);
        info.instrumented = info.why_not.is_none();
        info.granule_log2 = granules.get(entry.name.as_str()).copied().unwrap_or(2);
        if !info.instrumented {
            info.checked = 0;
        } else {
            for name in reached {
                plan.instrumented
                    .insert((*name).to_owned(), info.granule_log2);
            }
        }
        plan.kernels.push(info);
    }
    plan.unchecked_functions = fixed
        .into_iter()
        .map(|(name, why)| (name.to_owned(), why.to_owned()))
        .collect();
    plan
}

/// Why nothing of this module can be checked.
fn refuse(module: &Module) -> Option<String> {
    if edit::is_rewritten(&module.text) {
        return Some("the module contains checks already".into());
    }
    if module.address_size == Some(32) {
        return Some("32-bit addresses are not supported".into());
    }
    if module.version.is_none_or(|version| version < (6, 0)) {
        return Some("the PTX version is below 6.0".into());
    }
    let sm = module
        .target
        .iter()
        .find_map(|target| target.strip_prefix("sm_"));
    let number = sm.and_then(|sm| sm.trim_end_matches(char::is_alphabetic).parse::<u32>().ok());
    match number {
        Some(number) if number >= 70 => None,
        _ => Some("the target is below sm_70; build for compute_70 or later".into()),
    }
}

fn no_room(module: &Module, entry: &Function) -> Option<String> {
    let large = module.version.is_some_and(|version| version >= (8, 1));
    let limit = if large {
        PARAM_LIMIT_LARGE
    } else {
        PARAM_LIMIT
    };
    (hidden_offset(entry) + 8 > limit)
        .then(|| format!("its parameters leave no room below {limit} bytes for one more"))
}

fn hidden_offset(entry: &Function) -> u32 {
    ptx::param_layout(&entry.params).1.next_multiple_of(8)
}

/// log2 of the smallest element that a function accesses in checked memory, at most 2.
fn smallest(function: &Function) -> u32 {
    let Some(body) = &function.body else { return 2 };
    let checked = body
        .instructions()
        .filter_map(|(_, i)| match access::classify(i) {
            Checked::Yes { op, .. } => Some(op.bytes_per_element.max(1).trailing_zeros()),
            _ => None,
        });
    checked.min().unwrap_or(2).min(2)
}

fn kernel(
    module: &Module,
    graph: &CallGraph<'_>,
    entry: &Function,
    reached: &BTreeSet<&str>,
) -> KernelInfo {
    let mut info = KernelInfo {
        name: entry.name.to_string(),
        param_bytes: hidden_offset(entry),
        ..KernelInfo::default()
    };
    // Orders count wherever control can go; checks only where we can follow.
    for name in graph.reachable(&entry.name) {
        let Some(function) = module.function(name) else {
            continue;
        };
        let place = |i: &Instruction| {
            let text = module
                .slice(i.span)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            format!("{text} at PTX line {}", module.line_column(i.span.start).0)
        };
        let Some(body) = &function.body else {
            // Memory handed from free to malloc is ordered by the allocator.
            if matches!(name, "malloc" | "free") {
                info.release_capable = true;
                info.release_sites.push(format!("a call of {name}"));
            }
            continue;
        };
        let follows = reached.contains(name);
        for (_, instruction) in body.instructions() {
            match access::classify(instruction) {
                Checked::Yes { .. } => {
                    info.accesses += 1;
                    info.checked += u32::from(follows);
                }
                Checked::Shared => info.skipped.shared += 1,
                Checked::Private => info.skipped.private += 1,
                Checked::NotUnderstood => info.not_understood.push(place(instruction)),
                Checked::NoAccess => {}
            }
            info.barriers |= isa::sync::is_full_cta_barrier(instruction);
            info.warp_barriers |= isa::sync::is_full_warp_barrier(instruction);
            if orders(instruction) {
                info.release_capable = true;
                info.release_sites.push(place(instruction));
            }
        }
    }
    if let Some(calls) = graph.calls(&entry.name)
        && calls.open
    {
        info.release_capable = true;
        info.release_sites.push("a call through a pointer".into());
    }
    info.release_sites.truncate(8);
    info
}

/// Whether an instruction may order threads in a way that a cell does not follow.
fn orders(instruction: &Instruction) -> bool {
    if isa::lookup(&instruction.opcode).is_none() || isa::sync::release_capable(instruction) {
        return true;
    }
    // What a full barrier of a function left unchecked orders is not seen either, but such a
    // function is reached by an indirect call, which counts already.
    match isa::sync(instruction) {
        Some(SyncOp::WarpBarrier { .. }) => !isa::sync::is_full_warp_barrier(instruction),
        Some(SyncOp::CtaBarrier { .. }) => !isa::sync::is_full_cta_barrier(instruction),
        Some(SyncOp::ClusterBarrier { .. } | SyncOp::Mbarrier { .. }) => true,
        _ => isa::memory(instruction).is_some_and(|op| {
            op.scope == isa::Scope::Cluster && op.is_strong()
                || matches!(op.kind, MemoryKind::BulkCopy) && op.space != Space::Shared
        }),
    }
}
