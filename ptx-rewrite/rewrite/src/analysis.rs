//! What is known of a kernel before it runs, callees included; decides what gets which check.

use std::collections::{BTreeMap, BTreeSet};

use ptx::ast::{Diagnostic, Function, Item, Module, Space, Span};
use ptx::callgraph::CallGraph;

use crate::Config;
use crate::edit;
use crate::function_summary::{self, Features, FunctionSummary, UnsupportedOperation};
use crate::names::Bodies;
use crate::pointers::{self, Pointers};
use crate::proved::{Grouped, Skip};
use crate::target::{self, Reach};
use crate::through;

/// How many of a kernel's release-capable instructions are reported.
const RELEASES_KEPT: usize = 8;

/// Largest kernel parameter block before PTX 8.1, in bytes.
const PARAM_LIMIT: u32 = 4096;
/// Largest kernel parameter block from PTX 8.1 on.
const PARAM_LIMIT_LARGE: u32 = 32764;

/// Accesses that are not checked, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Shared memory: a matrix at once, or everything where the kernel has no such checks.
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
    /// It is, and all that makes it so can be counted for the fence rule.
    pub orders_counted: bool,
    /// It has accesses whose races a cell can take for none, or none for races: strong ones that
    /// observe others or differ in size, and writes beside loads through the read-only path.
    pub beyond_cells: bool,
    /// Strong accesses of several sizes to global memory, which cells do not distinguish.
    pub strong_sizes_differ: bool,
    /// It writes global memory beside loads through the read-only path, which cells take for other loads.
    pub writes_read_only: bool,
    /// It makes asynchronous copies, which cells take for made when they are issued.
    pub copies: bool,
    /// Its CTAs may run in any order, or at once, and compute the same, as far as global memory shows:
    /// what it does there are weak accesses, and reductions of integers by one operation.
    pub order_free: bool,
    /// The first few release-capable instructions, `membar.gl at line 12`.
    pub release_sites: Vec<String>,
    /// It may access the shared memory of other CTAs of its cluster.
    pub clusters: bool,
    /// log2 of the granule: the smallest checked access, at most 4 bytes.
    pub granule_log2: u32,
    /// Likewise of shared memory; none when nothing there is checked.
    pub shared_granule_log2: Option<u32>,
    /// It makes strong accesses that are no atomics.
    pub stores_strongly: bool,
    /// It swaps values, as locks do.
    pub swaps: bool,
    /// It executes barriers of the whole CTA.
    pub barriers: bool,
    /// It executes barriers of the whole warp.
    pub warp_barriers: bool,
    /// It executes barriers of the whole grid: `grid.sync()` of cooperative groups.
    pub grid_barriers: bool,
    /// It executes barriers that can be misused (CR007): of a CTA, a warp or a cluster.
    pub misusable: bool,
    /// It operates on mbarriers.
    pub mbarriers: bool,
    /// It reaches functions that call themselves, or others through a pointer, so that it is not known how much stack its
    /// threads need.
    pub stack_unknown: bool,
    /// Static accesses to global or generic memory, callees included.
    pub accesses: u32,
    /// Those with a check.
    pub checked: u32,
    /// Static accesses to shared memory, callees included.
    pub shared_accesses: u32,
    /// Those that need none, or have none yet.
    pub skipped: Skipped,
    /// What accesses or orders memory in a way the check does not follow, one line each.
    pub not_understood: Vec<String>,
    /// Those of them that an observer of the simulated device does not receive either.
    pub not_observable: Vec<String>,
    /// Which parameters its accesses go through, where loads may do without a check.
    pub pointers: Option<Pointers>,
    /// It has the program's [own](crate::own) code beside the one with checks.
    pub own: bool,
    /// Its accesses that a launch may prove, in groups: the n-th has the n-th bit of
    /// [`shadow::layout::LaunchBlock::unwritten`], which says that none of them needs its check.
    pub groups: Vec<Vec<Grouped>>,
    /// It keeps a journal, from which happens-before decides.
    pub journaled: bool,
    /// Offset of the hidden parameter, in bytes.
    pub param_bytes: u32,
}

/// What to do with every function of a module.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The kernels, in text order.
    pub kernels: Vec<KernelInfo>,
    /// Instrumented functions, kernels included, with their granules.
    pub instrumented: BTreeMap<String, Granules>,
    /// Those of them that keep a journal.
    pub journaled: BTreeSet<String>,
    /// Calls through pointers that pass the state, by the offsets of their bytes.
    pub pointer_calls: BTreeSet<u32>,
    /// The loads of kernels that may need no check, by statement: their place in
    /// [`Pointers::loads`].
    pub unwritten: BTreeMap<String, BTreeMap<usize, usize>>,
    /// The accesses of kernels, by statement, that may be checked as one word: with
    /// [`shadow::layout::UNWRITTEN_WORDS`].
    pub words: BTreeMap<String, BTreeSet<usize>>,
    /// Of kernels whose accesses may be proved, those that a launch can spare their checks, by statement.
    pub skips: BTreeMap<String, BTreeMap<usize, Skip>>,
    /// One of these makes strong accesses.
    pub journals_strong: bool,
    /// log2 of the bytes that have a lock in a journal: as many as an access has that takes turns, if it
    /// can be.
    pub piece_log2: u32,
    /// Device functions left alone, with the reason.
    pub unchecked_functions: Vec<(String, String)>,
    /// Why the module is left alone, if it is.
    pub diagnostics: Vec<Diagnostic>,
}

/// log2 of the granules that a function's accesses are divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granules {
    /// Of global memory.
    pub global: u32,
    /// Of shared memory, if there is any to access.
    pub shared: Option<u32>,
    /// Cells that are over are claimed in place; not where witnesses have stamps, which only the
    /// called check writes.
    pub claims: bool,
    /// Shared memory may be that of another CTA.
    pub clusters: bool,
}

/// Decides for the whole module.
pub(crate) fn plan(module: &Module, bodies: &Bodies<'_>, config: &Config) -> Plan {
    let mut plan = Plan::default();
    let graph = CallGraph::new(module);
    let refused = refuse(module);
    plan.diagnostics
        .extend(refused.iter().map(|why| Diagnostic {
            span: Span::default(),
            message: why.clone(),
            unknown: false,
        }));
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

    // A function keeps its signature when it is called in a way that cannot be followed.
    let mut fixed: BTreeMap<&str, &str> = BTreeMap::new();
    for function in module.functions().filter(|f| !f.entry && f.body.is_some()) {
        let formals = || function.params.iter().chain(&function.returns);
        let why = if aliased.contains(function.name.as_str()) {
            "it has an alias"
        } else if formals().any(|formal| formal.space == Space::Reg) {
            "its parameters are registers"
        } else if formals().any(|formal| formal.dims.as_deref().is_some_and(|d| d.contains(&0))) {
            "it takes a variable number of arguments"
        } else {
            continue;
        };
        fixed.insert(&function.name, why);
    }
    let why_not = |entry: &Function| refused.clone().or_else(|| no_room(module, entry));
    // A kernel that is left alone passes no state to what it calls through pointers.
    let alone = { entries.iter() }.any(|entry| {
        let mut reached = graph.reachable(&entry.name).into_iter();
        why_not(entry).is_some() && reached.any(|name| calls_through_pointer(&graph, name))
    });
    let pointer_calls = through::calls(module, &graph, |name| fixed.contains_key(name));
    match pointer_calls.filter(|_| !alone) {
        Some(calls) => plan.pointer_calls = calls,
        None => {
            let taken = module
                .functions()
                .filter(|f| !f.entry && f.body.is_some() && graph.is_address_taken(&f.name));
            fixed.extend(taken.map(|f| (f.name.as_str(), "its address is taken")));
        }
    }
    let followed = !plan.pointer_calls.is_empty();
    let mut facts: BTreeMap<&str, FunctionSummary> = BTreeMap::new();
    for function in module.functions() {
        // The definition counts, wherever declarations stand.
        if function.body.is_some() || !facts.contains_key(function.name.as_str()) {
            facts.insert(
                &function.name,
                function_summary::read(module, function, bodies.of(function)),
            );
        }
    }
    let defined: BTreeSet<&str> = module
        .functions()
        .filter(|f| f.body.is_some())
        .map(|f| f.name.as_str())
        .collect();

    // Kernels that share a function share its granules: global, shared, and 0 there once shared
    // memory is known to be accessed, and once more when it is that of other CTAs.
    let mut granules: BTreeMap<&str, [u32; 4]> = BTreeMap::new();
    let mut groups: Vec<KernelFunctions<'_>> = Vec::new();
    for entry in &entries {
        let mut reached = match followed {
            true => graph.reachable(&entry.name),
            false => graph.directly_reachable(&entry.name),
        };
        reached.retain(|name| defined.contains(name) && !fixed.contains_key(name));
        for name in &reached {
            if let Some(facts) = facts.get(name) {
                let (global, shared) = (facts.granule_log2, facts.shared_granule_log2);
                let without = [!facts.names_shared, !facts.clusters].map(u32::from);
                granules.insert(name, [global, shared, without[0], without[1]]);
            }
        }
        groups.push(KernelFunctions { entry, reached });
    }
    let mut settled = false;
    while !settled {
        settled = true;
        for KernelFunctions { reached, .. } in &groups {
            let all = reached.iter().filter_map(|name| granules.get(name));
            let least = all.fold([2, 2, 1, 1], |a, b| std::array::from_fn(|n| a[n].min(b[n])));
            for name in reached {
                if let Some(known) = granules.get_mut(name)
                    && *known != least
                {
                    *known = least;
                    settled = false;
                }
            }
        }
    }

    let mut refused_journals = BTreeMap::new();
    if config.journal {
        // No state is passed to what is left alone, nor journals to what it calls.
        let refused = entries.iter().filter(|entry| why_not(entry).is_some());
        let refused = refused.map(|entry| entry.name.as_str());
        let roots = fixed.keys().copied().chain(refused);
        let stateless = roots.flat_map(|name| graph.reachable(name)).collect();
        let journals = Journals::of(&graph, &facts, &groups, &stateless, followed);
        (plan.journaled, refused_journals) = (journals.kept, journals.refused);
        let journaled = plan.journaled.iter();
        let journaled: Vec<&FunctionSummary> =
            journaled.filter_map(|name| facts.get(&**name)).collect();
        plan.journals_strong = journaled.iter().any(|facts| facts.strong);
        let in_turns = journaled.iter().map(|f| f.strong_bytes.max(f.stored_bytes));
        let most = in_turns.max().unwrap_or(0).clamp(4, 16);
        plan.piece_log2 = most.next_power_of_two().trailing_zeros();
    }
    let deep: BTreeSet<&str> = module
        .functions()
        .filter(|f| f.body.is_some())
        // No function calls a kernel.
        .filter(|f| {
            calls_through_pointer(&graph, &f.name) || !f.entry && graph.is_recursive(&f.name)
        })
        .map(|f| f.name.as_str())
        .collect();
    for KernelFunctions { entry, reached } in &groups {
        let journaled = plan.journaled.contains(entry.name.as_str());
        let mut info = kernel(&graph, &facts, entry, config, &plan, reached, &fixed);
        info.journaled = journaled;
        info.stack_unknown = !graph.reachable(&entry.name).is_disjoint(&deep);
        info.why_not = why_not(entry);
        info.instrumented = info.why_not.is_none();
        let ordered = info.release_capable || info.beyond_cells;
        if ordered
            && info.instrumented
            && let Some(why) = refused_journals.get(entry.name.as_str())
        {
            info.not_understood.push(format!(
                "order beyond barriers: the kernel keeps no journal, because of {why}"
            ));
        }
        let known = granules.get(entry.name.as_str());
        let [global, shared, none, own] = known.copied().unwrap_or([2, 2, 1, 1]);
        let granules = Granules {
            global,
            shared: (none == 0).then_some(shared),
            claims: true,
            clusters: own == 0,
        };
        (info.granule_log2, info.shared_granule_log2) = (granules.global, granules.shared);
        info.clusters = granules.clusters;
        if !info.instrumented {
            info.checked = 0;
            info.skipped.shared = info.shared_accesses;
        } else {
            if !info.journaled
                && let Some((pointers, spared)) = pointers::read(entry, bodies.of(entry))
            {
                plan.unwritten.insert(entry.name.to_string(), spared.loads);
                if !config.sample && !spared.words.is_empty() {
                    plan.words.insert(entry.name.to_string(), spared.words);
                }
                info.pointers = Some(pointers);
            }
            for name in reached {
                plan.instrumented.insert((*name).to_owned(), granules);
            }
        }
        plan.kernels.push(info);
    }
    for (info, KernelFunctions { reached, .. }) in plan.kernels.iter().zip(&groups) {
        for name in reached
            .iter()
            .filter(|_| config.count_orders && info.orders_counted)
        {
            if let Some(granules) = plan.instrumented.get_mut(*name) {
                granules.claims = false;
            }
        }
    }
    plan.unchecked_functions = fixed
        .into_iter()
        .map(|(name, why)| (name.to_owned(), why.to_owned()))
        .collect();
    plan
}

/// Whether a function calls others through pointers.
fn calls_through_pointer(graph: &CallGraph<'_>, name: &str) -> bool {
    let calls = graph.calls(name);
    calls.is_some_and(|calls| !calls.indirect.is_empty())
}

/// The functions that keep journals, and those that should but cannot.
#[derive(Default)]
struct Journals {
    /// The functions that keep a journal: those of kernels whose order the cells do not follow, and of kernels that share
    /// functions with these.
    kept: BTreeSet<String>,
    /// The functions that should and cannot, with the reason.
    refused: BTreeMap<String, String>,
}

/// A kernel, and the functions that it reaches.
struct KernelFunctions<'a> {
    entry: &'a Function,
    reached: BTreeSet<&'a str>,
}

impl Journals {
    /// A group of connected functions keeps a journal, unless one of them has an operation that no journal records, or can
    /// reach a function that may run without a journal's state.
    fn of(
        graph: &CallGraph<'_>,
        facts: &BTreeMap<&str, FunctionSummary>,
        groups: &[KernelFunctions<'_>],
        stateless: &BTreeSet<&str>,
        followed: bool,
    ) -> Self {
        let mut connected: Vec<BTreeSet<&str>> = Vec::new();
        for KernelFunctions { reached, .. } in groups {
            let (with, apart) = connected
                .into_iter()
                .partition::<Vec<_>, _>(|other| !other.is_disjoint(reached));
            connected = apart;
            connected.push(
                with.into_iter()
                    .flatten()
                    .chain(reached.iter().copied())
                    .collect(),
            );
        }
        let obstacle = |name: &&str| {
            let called = graph.reachable(name);
            if !followed && calls_through_pointer(graph, name) {
                return Some("a call through a pointer".to_owned());
            }
            if !called.is_disjoint(stateless) {
                return Some("a call of a function that is left unchecked".to_owned());
            }
            let mut facts = called.iter().filter_map(|name| facts.get(name));
            facts.find_map(|facts| facts.beyond_journal.clone())
        };
        let mut journals = Self::default();
        for functions in connected {
            let mut features = Features::default();
            let mut releases = false;
            let called = functions.iter().flat_map(|name| graph.reachable(name));
            for facts in called.filter_map(|name| facts.get(name)) {
                features.join(facts.features);
                releases |= !facts.releases.is_empty();
            }
            if !releases && !features.beyond_cells() {
                continue;
            }
            let names = functions.iter().map(|&name| name.to_owned());
            match functions.iter().find_map(obstacle) {
                Some(why) => journals
                    .refused
                    .extend(names.map(|name| (name, why.clone()))),
                None => journals.kept.extend(names),
            }
        }
        journals
    }
}

/// Why nothing of this module can be checked.
fn refuse(module: &Module) -> Option<String> {
    if edit::is_rewritten(&module.text) {
        return Some("the module contains checks already".into());
    }
    if module.address_size == Some(32) {
        return Some("32-bit addresses are not supported".into());
    }
    if module.version.is_none_or(|version| version < (6, 2)) {
        return Some("the PTX version is below 6.2".into());
    }
    // A kernel that launches another one on the device hands it its parameters, and knows of no hidden one.
    if let Some(call) = module.functions().find(|f| is_device_launch(&f.name)) {
        let why = "kernels launched from the device are not checked";
        return Some(format!("the module uses {}: {why}", call.name));
    }
    match target::reach(module) {
        Reach::Refused(why) => Some(why),
        Reach::Far | Reach::Raised(_) => None,
    }
}

/// Whether a function of the device runtime starts kernels, or makes room for their parameters.
/// Source: CUDA Programming Guide, "Device-side Launch from PTX".
fn is_device_launch(name: &str) -> bool {
    let calls = ["cudaLaunchDevice", "cudaGetParameterBuffer"];
    calls.iter().any(|call| name.starts_with(call))
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

/// Puts together what is known of the functions that `entry` can reach.
fn kernel(
    graph: &CallGraph<'_>,
    facts: &BTreeMap<&str, FunctionSummary>,
    entry: &Function,
    config: &Config,
    plan: &Plan,
    reached: &BTreeSet<&str>,
    fixed: &BTreeMap<&str, &str>,
) -> KernelInfo {
    let mut info = KernelInfo {
        name: entry.name.to_string(),
        param_bytes: hidden_offset(entry),
        ..KernelInfo::default()
    };
    let mut releases = Vec::new();
    let mut uncounted = false;
    let journaled = plan.journaled.contains(entry.name.as_str());
    let mut features = Features::default();
    let mut unsupported_operations: BTreeMap<&str, UnsupportedOperation> = BTreeMap::new();
    // Orders count wherever control can go; checks only where we can follow.
    let reachable = graph.reachable(&entry.name);
    for name in &reachable {
        let Some(facts) = facts.get(name) else {
            continue;
        };
        info.accesses += facts.checkable;
        features.join(facts.features);
        info.shared_accesses += facts.shared + facts.checkable_shared;
        info.skipped.shared += facts.shared;
        if !reached.contains(name) {
            info.skipped.shared += facts.checkable_shared;
        }
        if reached.contains(name) {
            info.checked += facts.checkable;
        }
        info.skipped.private += facts.private;
        info.stores_strongly |= facts.stores_strongly;
        info.swaps |= facts.swaps;
        info.barriers |= facts.barriers;
        info.warp_barriers |= facts.warp_barriers;
        info.grid_barriers |= facts.grid_barriers;
        info.misusable |= facts.misusable;
        info.mbarriers |= facts.mbarriers;
        releases.extend(facts.releases.iter().cloned());
        uncounted |= facts.uncounted || (facts.orders && !reached.contains(name));
        // In fast mode cells judge them as they can.
        let copies = facts
            .copies
            .iter()
            .filter(|_| !config.count_orders && !journaled);
        for (what, unsupported) in facts.not_understood.iter().chain(copies) {
            let known = unsupported_operations
                .entry(what)
                .or_insert(UnsupportedOperation {
                    count: 0,
                    ..*unsupported
                });
            known.count += unsupported.count;
            known.line = known.line.min(unsupported.line);
        }
        if plan.pointer_calls.is_empty() && calls_through_pointer(graph, name) {
            uncounted = true;
            releases.push(format!("a call through a pointer in {name}"));
        }
    }
    // Nothing counts the barriers passed below a function that does not take the identity.
    for name in graph.directly_reachable(&entry.name) {
        let counts_none = |name| {
            let facts = facts.get(name);
            facts.is_some_and(|facts| facts.barriers || facts.warp_barriers)
        };
        if fixed.contains_key(name) && graph.reachable(name).into_iter().any(counts_none) {
            uncounted = true;
            releases.push(format!("a barrier below {name}, which is left unchecked"));
        }
    }
    info.release_capable = !releases.is_empty();
    info.orders_counted = info.release_capable && !uncounted;
    info.beyond_cells = features.beyond_cells();
    info.strong_sizes_differ = features.strong_sizes_differ();
    info.writes_read_only = features.writes_read_only();
    info.copies = features.asynchronous;
    info.order_free = features.commute() && unsupported_operations.is_empty();
    releases.truncate(RELEASES_KEPT);
    info.release_sites = releases;
    for (what, UnsupportedOperation { count, line, .. }) in &unsupported_operations {
        info.not_understood.push(match (count, line) {
            (_, 0) => (*what).to_owned(),
            (1, line) => format!("{what} at PTX line {line}"),
            (count, line) => format!("{what}, {count} times, first at PTX line {line}"),
        });
    }
    let all = info
        .not_understood
        .iter()
        .zip(unsupported_operations.values());
    info.not_observable = all
        .filter(|(_, unsupported)| !unsupported.observable)
        .map(|(line, _)| line.clone())
        .collect();
    for name in reachable {
        if let Some(why) = fixed.get(name)
            && facts.get(name).is_some_and(|facts| facts.checkable > 0)
        {
            let line = format!("the accesses of {name} are not checked: {why}");
            info.not_understood.push(line);
        }
    }
    info
}
