//! Walks one function, and what is computed once at its entry.

use std::collections::BTreeMap;

use ptx::ast::{Body, Function, Instruction, Module};
use ptx::isa;
use shadow::layout::LaunchBlock;

use crate::Config;
use crate::access::{self, Checked, Form, Located, Shortcuts};
use crate::analysis::{Granules, Plan};
use crate::calls;
use crate::cluster;
use crate::copies;
use crate::edit::Edits;
use crate::epoch::{self, Grid};
use crate::grid::{self, Part};
use crate::journal;
use crate::matrix;
use crate::names::Names;
use crate::order;
use crate::outlined::{MOST_INLINED, Outlined};
use crate::prologue::Prologue;
use crate::proved::{self, Free};
use crate::site::{Entered, Sites};

/// Enters the accesses of `function` that checks would stand in front of, in the order of [`rewrite`].
pub(crate) fn list(
    function: &Function,
    names: Option<&Names<'_>>,
    module: &Module,
    plan: &Plan,
    sites: &mut Sites,
) {
    let name = function.name.as_str();
    let (Some(&granules), Some(names)) = (plan.instrumented.get(name), names) else {
        return;
    };
    if plan.journaled.contains(name) {
        return;
    }
    let body = names.body();
    let grid_barriers = grid::barriers(body);
    for (statement, instruction) in body.instructions() {
        if !is_of_barrier(grid::part(&grid_barriers, statement)) {
            let located = Located {
                at: statement,
                instruction,
            };
            sites.enter(module, function, names, granules, located);
        }
    }
}

/// Whether an instruction is a barrier of the grid's own doing, which is not checked.
fn is_of_barrier(part: Option<Part>) -> bool {
    matches!(part, Some(Part::First | Part::Own))
}

/// What is made of a module.
pub(crate) struct Text<'a> {
    pub(crate) sites: &'a mut Sites,
    pub(crate) edits: &'a mut Edits,
    /// The checks that are called.
    pub(crate) outlined: &'a mut Outlined,
}

/// Adds the edits of `function`; false if it stays as it is.
pub(crate) fn rewrite(
    function: &Function,
    names: Option<&Names<'_>>,
    module: &Module,
    plan: &Plan,
    config: &Config,
    text: Text<'_>,
) -> bool {
    let Text {
        sites,
        edits,
        outlined,
    } = text;
    let Some(&granules) = plan.instrumented.get(function.name.as_str()) else {
        return calls::pass_nothing(module, plan, function, edits);
    };
    if plan.journaled.contains(function.name.as_str()) {
        journal::rewrite(function, names, module, plan, granules, edits);
        return true;
    }
    calls::extend_parameters(module, function, edits);
    let Some(names) = names else {
        return true;
    };
    let body = names.body();
    // Only a kernel whose callees are checked keeps its identity in memory.
    let callee = |instruction: &Instruction| calls::checked_callee(plan, instruction);
    let state = !function.entry || body.instructions().any(|(_, i)| callee(i));
    let shared = granules.shared.is_some()
        && body.instructions().any(|(at, _)| {
            matches!(names.checked(at), Checked::Yes(access) if access.address_space.may_be_shared())
        });
    let inlined = body.instructions().map(|(at, _)| match names.checked(at) {
        Checked::Yes(access) => access::inlined(&access, granules),
        _ => 0,
    });
    let most = config.most_inlined.unwrap_or(MOST_INLINED);
    let mut outlined = (inlined.sum::<u32>() > most).then_some(outlined);
    let skips = plan.skips.get(function.name.as_str());
    let skips = skips.filter(|skips| !skips.is_empty());
    let needs = Prologue {
        kernel: function.entry,
        state,
        slot: shared && !granules.clusters,
        sample: config.sample,
    };
    let mut prologue = needs.text();
    let unwritten = plan.unwritten.get(function.name.as_str());
    prologue.push_str(&free_loads(unwritten));
    if let Some(skips) = skips {
        prologue.push_str(&proved::read(skips));
    }
    let words = plan.words.get(function.name.as_str());
    if words.is_some() {
        prologue.push_str(&access::read_words());
    }
    let is_word = |statement: &usize| words.is_some_and(|words| words.contains(statement));
    let free = |statement: &usize| {
        let bit = skips.and_then(|of| of.get(statement)).copied();
        let set = unwritten.and_then(|of| of.get(statement)).copied();
        bit.map(Free::Bit).or(set.map(Free::Set))
    };
    edits.insert(body.span.start + 1, prologue);
    for declarations in more_registers(body, granules) {
        edits.insert(body.span.start + 1, declarations);
    }
    let grid_barriers = grid::barriers(body);
    let elsewhere = match plan.kernels.iter().any(|kernel| kernel.grid_barriers) {
        true => Grid::Somewhere,
        false => Grid::None,
    };
    let mut label = 0;
    for (statement, instruction) in body.instructions() {
        let part = grid::part(&grid_barriers, statement);
        match part {
            of if is_of_barrier(of) => continue,
            Some(Part::Spin) => epoch::count_grid(instruction, edits),
            _ => {}
        }
        let located = Located {
            at: statement,
            instruction,
        };
        match sites.enter(module, function, names, granules, located) {
            Some(Entered::Access(access, id)) => {
                let shortcuts = Shortcuts {
                    sample: config.sample,
                    word: is_word(&statement),
                    free: free(&statement),
                };
                let form = Form {
                    granules,
                    outlined: outlined.as_deref_mut(),
                };
                let text = access::check(names, located, &access, id, form, shortcuts, label);
                edits.insert(instruction.span.start, text);
                label += 1;
            }
            Some(Entered::Copy(copy, id)) => {
                let counts = config.count_orders;
                let text = copies::check(names, located, &copy, id, granules, counts, label);
                edits.insert(instruction.span.start, text);
                label += 2;
            }
            None => {}
        }
        if config.count_orders && order::insert(instruction, label, edits) {
            label += 1;
        }
        let grid = match part {
            Some(Part::Last) => Grid::Ends,
            _ => elsewhere,
        };
        if epoch::insert(instruction, grid, state, label, edits) {
            label += 1;
        }
        if callee(instruction) {
            calls::pass_state(module, instruction, statement, edits);
        }
    }
    true
}

/// The registers that only some functions need.
pub(crate) fn more_registers(body: &Body, granules: Granules) -> Vec<&'static str> {
    let mut all = Vec::new();
    if granules.clusters {
        all.push(cluster::DECLARATIONS);
    }
    let is_matrix = |instruction: &Instruction| isa::matrix::lines(instruction).is_some();
    if body.instructions().any(|(_, i)| is_matrix(i)) {
        all.push(matrix::DECLARATIONS);
    }
    if body.instructions().any(|(_, i)| copies::is_copy(i)) {
        all.push(copies::DECLARATIONS);
    }
    all
}

/// Fills a predicate for each set of loads that the launch may know to need no check.
fn free_loads(unwritten: Option<&BTreeMap<usize, usize>>) -> String {
    let mut text = String::new();
    let Some(sets) = unwritten.and_then(|loads| loads.values().max()) else {
        return text;
    };
    let offset = std::mem::offset_of!(LaunchBlock, unwritten);
    text.push_str(&format!(
        "ld.global.u64 %crc_next, [%crc_launch+{offset}];\n"
    ));
    for set in 0..=*sets {
        text.push_str(&format!(
            ".reg .pred %crc_free_{set};\nand.b64 %crc_new, %crc_next, {};\n\
             setp.ne.u64 %crc_free_{set}, %crc_new, 0;\n",
            1u64 << set
        ));
    }
    text
}
