//! Puts the race checks into a PTX module, and takes them out again.
//!
//! [`rewrite`] only ever inserts text, each piece between [`edit::OPEN`] and [`edit::CLOSE`], so that
//! [`erase`] gives the original back byte for byte.
//!
//! What is inserted: the device's functions once per module; a hidden last parameter with the
//! launch block's address per kernel; at a kernel's entry the thread's identity, in registers; in
//! front of every access to global or shared memory the check, under the access's predicate; after every full barrier
//! the next epoch; in front of what else orders threads, if asked for, a count.
//! One pass per file: [`analysis`] decides per kernel, [`access`] per instruction, [`function`] walks
//! a body, [`epoch`] counts barriers, [`grid`] knows those of the whole grid, [`pointers`]
//! finds loads that may need no check, [`proved`] groups accesses that a launch may prove, [`order`] counts
//! what else orders threads, [`calls`] hands the state to device functions and back.
//! [`outlined`] has the checks of functions that call them instead.
//! [`own`] puts the program's own code of a kernel beside the one with checks.
//! [`journal`] does for kernels that keep a journal what the others do for cells, [`cluster`] says
//! whose shared memory it is.

mod access;
mod analysis;
mod call;
mod calls;
mod cluster;
mod copies;
pub mod edit;
mod epoch;
mod function;
mod function_summary;
pub mod grid;
mod journal;
mod matrix;
mod mbarrier;
mod names;
mod order;
mod outlined;
pub mod own;
mod pointers;
mod prologue;
pub mod proved;
mod site;
pub mod stats;
mod target;
mod through;

use ptx::ast::{Diagnostic, Item, Module};

pub use analysis::{KernelInfo, Skipped};
pub use edit::erase;
pub use journal::{Again, again};
pub use outlined::MOST_INLINED;
pub use pointers::Pointers;
pub use site::Site;

/// How to rewrite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Id of the module's first site; ids go up by one from there.
    pub first_site: u32,
    /// Kernels whose order the cells do not follow keep a journal, if it can record all there is to
    /// know.
    pub journal: bool,
    /// Count what may order threads besides full barriers, for the fence rule.
    pub count_orders: bool,
    /// Leave out, in front of all else, the words that a sampling run does not check.
    pub sample: bool,
    /// Only say what would be checked: [`Rewritten::text`] stays empty.
    pub list: bool,
    /// Checks are called in functions with more of them than this, and inlined in others; none for [`MOST_INLINED`].
    pub most_inlined: Option<u32>,
}

/// A module with its checks.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// The text to load; the original's when nothing could be checked.
    pub text: String,
    /// The checked accesses, by ascending id.
    pub sites: Vec<Site>,
    /// Every kernel of the module, checked or not.
    pub kernels: Vec<KernelInfo>,
    /// Device functions that stay unchecked, with the reason.
    pub unchecked_functions: Vec<(String, String)>,
    /// The target that the module was for, where its checks need a newer one: it is for sm_70 now, whose
    /// warps do not run in step.
    pub raised: Option<String>,
    /// Remarks about places in the original text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Rewrites `module`.
///
/// Never fails: what cannot be checked stays as it is, and [`KernelInfo::why_not`] says why.
pub fn rewrite(module: &Module, config: &Config) -> Rewritten {
    rewrite_provable(module, config, &|_| None)
}

/// Statements of accesses that may be proved at a launch; see [`rewrite_provable`].
pub type Provable<'a> = &'a dyn Fn(&str) -> Option<Vec<usize>>;

/// Rewrites `module`, of some of whose kernels launches may prove that accesses do not race: `provable` gives the
/// accesses of a kernel, by statement. Such a kernel has its [own](own) code beside the one with checks, and a launch
/// says of its accesses which need no check ([`KernelInfo::groups`]).
pub fn rewrite_provable(module: &Module, config: &Config, provable: Provable) -> Rewritten {
    let bodies = names::Bodies::new(module);
    let mut plan = analysis::plan(module, &bodies, config);
    proved::plan(module, &bodies, &mut plan, provable);
    let mut rewritten = Rewritten {
        unchecked_functions: plan.unchecked_functions.clone(),
        diagnostics: plan.diagnostics.clone(),
        ..Rewritten::default()
    };
    let mut sites = site::Sites::new(config.first_site);
    if config.list {
        for of in module.functions() {
            function::list(of, bodies.of(of), module, &plan, &mut sites);
        }
        rewritten.sites = sites.into_all();
        rewritten.kernels = plan.kernels;
        return rewritten;
    }
    let mut edits = edit::Edits::default();
    let mut outlined = outlined::Outlined::default();
    let mut inserted = false;
    for function in module.functions() {
        let names = bodies.of(function);
        if let (Some(body), false) = (&function.body, plan.pointer_calls.is_empty()) {
            through::extend_prototypes(module, body, &mut edits);
        }
        inserted |= function::rewrite(
            function,
            names,
            module,
            &plan,
            config,
            function::Text {
                sites: &mut sites,
                edits: &mut edits,
                outlined: &mut outlined,
            },
        );
        if plan.skips.contains_key(function.name.as_str()) && function.body.is_some() {
            own::insert(module, function, &mut edits);
        }
    }
    if inserted && let Some(at) = first_definition(module) {
        let checks = outlined.text();
        let mut functions = device::functions(edits.pieces().chain([checks.as_str()]));
        if module.version.is_none_or(|version| version < (6, 3)) {
            functions = device::without_sleep(&functions);
        }
        edits.insert(at, functions + &checks + &calls::no_launch());
        rewritten.raised = target::raise(module, &mut edits);
    }
    rewritten.sites = sites.into_all();
    rewritten.kernels = plan.kernels;
    rewritten.text = edits.apply(&module.text);
    rewritten
}

/// Where the first function or variable begins: everything before it is header.
fn first_definition(module: &Module) -> Option<u32> {
    module.items.iter().find_map(|item| match item {
        Item::Function(function) => Some(function.span.start),
        Item::Variable(variable) => Some(variable.span.start),
        _ => None,
    })
}
