//! Walks one function, and what is computed once at its entry.

use std::collections::BTreeMap;

use device::{Entry, Fast, FastShared, LAUNCH_PARAM};
use ptx::ast::{Body, Function, Instruction, Module};
use ptx::isa;
use shadow::layout::LaunchBlock;
use shadow::rule;

use crate::access::{self, Checked, Located, Shortcuts};
use crate::analysis::{Granules, Plan};
use crate::call::{LAUNCH, ME, call};
use crate::calls::{self, STATE_PARAM};
use crate::cluster;
use crate::copies;
use crate::edit::Edits;
use crate::epoch::{self, Grid};
use crate::grid::{self, Part};
use crate::journal;
use crate::matrix;
use crate::names::Names;
use crate::order;
use crate::proved::{self, Free};
use crate::site::Site;
use crate::{Config, Rewritten};

/// Adds the edits of `function`; false if it stays as it is.
pub(crate) fn rewrite(
    function: &Function,
    names: Option<&Names<'_>>,
    module: &Module,
    plan: &Plan,
    config: &Config,
    rewritten: &mut Rewritten,
    edits: &mut Edits,
) -> bool {
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
            matches!(names.checked(at), Checked::Yes(access) if access.place.may_be_shared())
        });
    let needs = Needs {
        state,
        slot: shared && !granules.clusters,
    };
    let mut prologue = prologue(function, config, granules.global, needs);
    let unwritten = plan.unwritten.get(function.name.as_str());
    prologue.push_str(&free_loads(unwritten));
    let skips = plan.skips.get(function.name.as_str());
    if let Some(skips) = skips.filter(|skips| !skips.is_empty()) {
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
            Some(Part::First | Part::Own) => continue,
            Some(Part::Spin) => epoch::count_grid(instruction, edits),
            Some(Part::Last) | None => {}
        }
        let checked = names.checked(statement);
        let located = Located {
            at: statement,
            instruction,
        };
        if let Checked::Yes(access) = checked
            && (access.place.may_be_global() || granules.shared.is_some())
        {
            let id = config.first_site + rewritten.sites.len() as u32;
            let op = access.op;
            let wide = match access.place.may_be_global() {
                true => access::GLOBAL,
                false => access::SHARED,
            };
            let kind = access::kind(&op, wide);
            let site = Site::new(module, function, body, instruction, id, op, kind);
            rewritten.sites.push(site);
            let shortcuts = Shortcuts {
                sample: config.sample,
                word: is_word(&statement),
                free: free(&statement),
            };
            let text = access::check(names, located, &access, id, granules, shortcuts, label);
            edits.insert(instruction.span.start, text);
            label += 1;
        }
        if let Checked::Copy(copy) = checked {
            let id = config.first_site + rewritten.sites.len() as u32;
            let kind = rule::WEAK_STORE;
            let site = Site::new(module, function, body, instruction, id, copy.op, kind);
            rewritten.sites.push(site);
            let counts = config.count_orders;
            let text = copies::check(names, located, &copy, id, granules, counts, label);
            edits.insert(instruction.span.start, text);
            label += 2;
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

/// What the checks of a function need besides what all need.
#[derive(Clone, Copy)]
struct Needs {
    /// The thread's identity in memory, which functions that are called read.
    state: bool,
    /// The cells of the CTA's shared memory.
    slot: bool,
}

/// Declares the registers and fills them.
fn prologue(function: &Function, config: &Config, granule_log2: u32, needs: Needs) -> String {
    let Needs { state, slot } = needs;
    let mut text = String::from("\n");
    text.push_str(&Fast::declarations());
    if slot {
        text.push_str(&FastShared::declarations());
        text.push_str(".reg .b64 %crc_slot, %crc_slot_mask;\n");
    }
    text.push_str(
        ".reg .pred %crc_global, %crc_settled, %crc_guard;\n.reg .b32 %crc_tag_from, %crc_tag_shift, %crc_index;\n\
         .reg .b64 %crc_launch, %crc_me, %crc_cells, %crc_base, %crc_bytes, %crc_index_mask, %crc_address, %crc_next, %crc_new;\n\
         .reg .b64 %crc_compared, %crc_by_warps;\n",
    );
    if state {
        text.push_str(".reg .b64 %crc_state;\n");
    }
    if function.entry && state {
        text.push_str(".local .align 8 .b8 __cudarun_me[8];\nmov.u64 %crc_state, __cudarun_me;\n");
    }
    text.push_str(&format!("ld.param.u64 %crc_launch, [{LAUNCH_PARAM}];\n"));
    // Before the registers are filled that it works in.
    let entry = Entry {
        launch: LAUNCH.1,
        me: ME.1,
        cta: "%crc_address",
        scratch: ["%crc_next", "%crc_new"],
        words: ["%crc_tag_from", "%crc_tag_shift", "%crc_index"],
    };
    if function.entry {
        text.push_str(&entry.identity());
        if state {
            text.push_str("st.local.u64 [%crc_state], %crc_me;\n");
        }
    } else {
        text.push_str(&format!(
            "ld.param.u64 %crc_state, [{STATE_PARAM}];\nld.local.u64 %crc_me, [%crc_state];\n"
        ));
    }
    let field = |register: &str, ty: &str, offset: usize| {
        format!("ld.global.{ty} {register}, [%crc_launch+{offset}];\n")
    };
    text.push_str(&field(
        "%crc_cells",
        "u64",
        std::mem::offset_of!(LaunchBlock, cells),
    ));
    text.push_str(&field(
        "{%crc_base, %crc_bytes}",
        "v2.u64",
        std::mem::offset_of!(LaunchBlock, window_base),
    ));
    text.push_str(&field(
        "{%crc_compared, %crc_by_warps}",
        "v2.u64",
        std::mem::offset_of!(LaunchBlock, compared),
    ));
    text.push_str(&field(
        "%crc_index_mask",
        "u64",
        std::mem::offset_of!(LaunchBlock, index_mask),
    ));
    text.push_str("shl.b64 %crc_index_mask, %crc_index_mask, 3;\n");
    text.push_str(&field(
        "%crc_tag_from",
        "u32",
        std::mem::offset_of!(LaunchBlock, index_bits),
    ));
    text.push_str(&format!(
        "add.u32 %crc_tag_from, %crc_tag_from, {granule_log2};\n"
    ));
    text.push_str(&field(
        "%crc_tag_shift",
        "u32",
        std::mem::offset_of!(LaunchBlock, tag_shift),
    ));
    if config.sample {
        text.push_str(".reg .b32 %crc_word;\n.reg .b64 %crc_sample_mask;\n");
        text.push_str(&field(
            "%crc_sample_mask",
            "u64",
            std::mem::offset_of!(LaunchBlock, sample_mask),
        ));
    }
    if slot {
        let block = size_of::<LaunchBlock>();
        text.push_str(&field(
            "%crc_slot_mask",
            "u64",
            block + std::mem::offset_of!(LaunchBlock, index_mask),
        ));
        text.push_str("shl.b64 %crc_slot_mask, %crc_slot_mask, 3;\n");
        if function.entry {
            text.push_str(&entry.slot("%crc_slot", "%crc_slot_mask"));
        } else {
            text.push_str(&format!("add.s64 %crc_next, %crc_launch, {block};\n"));
            let shared = ("b64", "%crc_next");
            text.push_str(&call("slot", Some(("b64", "%crc_slot")), &[shared, ME]));
        }
    }
    text
}
