//! The program's own code of a kernel, beside the one with checks, for launches that need none.
//!
//! The kernel's name stays with the checked entry, so that whatever launches it without asking gets checks. The copy
//! has a reserved name, the parameters that the program gives, and the registers that the program's compiler would
//! give it. Both entries are of one module, so they share its variables.

use ptx::ast::{Function, Module};

use crate::analysis::Plan;
use crate::calls;
use crate::edit::{self, Edits};

/// What the name of a copy begins with; the name of the kernel follows.
pub const PREFIX: &str = "__cudarun_own_";

/// The largest number of registers of a thread, which is none to the compiler; a limit from outside yields to it
/// (ptxas 13.0: "Overriding global maxrregcount").
const MOST_REGISTERS: &str = ".maxnreg 255 ";

/// Directives that bound the registers of a kernel, and that the compiler heeds before a limit from outside.
const BOUNDS: [&str; 4] = ["maxnreg", "maxntid", "reqntid", "minnctapersm"];

/// The name of the copy of a kernel.
pub fn name(kernel: &str) -> String {
    format!("{PREFIX}{kernel}")
}

/// Whether a kernel can have a copy: nothing that it calls has checks, which would ask for what only the checked
/// entry knows. Debug information names labels of bodies, so they cannot be there twice.
pub(crate) fn is_possible(module: &Module, plan: &Plan, function: &Function) -> bool {
    let mut calls = function.body.iter().flat_map(|body| body.instructions());
    !calls.any(|(_, instruction)| calls::checked_callee(plan, instruction))
        && !module.text.contains(".debug_info")
}

/// Adds the copy of a kernel behind it.
pub(crate) fn insert(module: &Module, function: &Function, edits: &mut Edits) {
    let Some(body) = &function.body else {
        return;
    };
    let text = &module.text;
    let (span, named) = (function.span.range(), function.name_span.range());
    let bounded = BOUNDS
        .iter()
        .any(|bound| function.directive(bound).is_some());
    let registers = if bounded { "" } else { MOST_REGISTERS };
    let at = body.span.range().start;
    let piece = format!(
        "\n{}{}{PREFIX}{}{registers}{}",
        edit::copied(function.span.start),
        &text[span.start..named.start],
        &text[named.start..at],
        &text[at..span.end],
    );
    edits.insert(function.span.end, piece);
}
