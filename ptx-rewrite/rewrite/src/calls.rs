//! Handing a thread's state to device functions and back.
//!
//! A checked function takes two parameters more: the launch block's address, and the address of the
//! identity in the kernel's local memory. A function that passes a barrier stores the new identity
//! there, and every caller reads it again after a call.

use std::mem::offset_of;

use device::LAUNCH_PARAM;
use ptx::ast::{Function, Instruction, Module, Operand};
use ptx::isa;
use ptx::lexer::{self, TokenKind};
use shadow::layout::LaunchBlock;

use crate::analysis::Plan;
use crate::edit::Edits;

/// Name of the parameter with the address of the identity.
pub(crate) const STATE_PARAM: &str = "__cudarun_state";

/// Launch blocks that cover nothing, for callers that have none: the module's own functions that are
/// reached through a pointer, and kernels left alone.
pub(crate) fn no_launch() -> String {
    const CELL: &str = "__cudarun_none_cell";
    let used = [
        offset_of!(LaunchBlock, cells),
        offset_of!(LaunchBlock, witnesses),
        offset_of!(LaunchBlock, counters),
    ];
    let block = (0..size_of::<LaunchBlock>()).step_by(8);
    let block = block.map(|at| if used.contains(&at) { CELL } else { "0" });
    let words: Vec<&str> = block.clone().chain(block).collect();
    let (count, words) = (words.len(), words.join(", "));
    format!(
        "\n.global .align 8 .u64 {CELL}[8];\n\
         .global .align 16 .u64 __cudarun_none[{count}] = {{{words}}};\n"
    )
}

/// Whether this is a call of a function that takes the state, by name or through a pointer.
pub(crate) fn checked_callee(plan: &Plan, instruction: &Instruction) -> bool {
    let named = || isa::callee(instruction).is_some_and(|of| plan.instrumented.contains_key(of));
    plan.pointer_calls.contains(&instruction.span.start) || named()
}

/// Makes an unchecked function call checked ones with a launch block that covers nothing; false if
/// it calls none.
pub(crate) fn pass_nothing(
    module: &Module,
    plan: &Plan,
    function: &Function,
    edits: &mut Edits,
) -> bool {
    let Some(body) = &function.body else {
        return false;
    };
    let calls = body.instructions().filter(|(_, i)| checked_callee(plan, i));
    let mut any = false;
    for (statement, instruction) in calls {
        any = true;
        pass_state(module, instruction, statement, edits);
    }
    if any {
        edits.insert(
            body.span.start + 1,
            "\n.reg .b64 %crc_launch, %crc_me, %crc_state;\n.local .align 8 .b8 __cudarun_me[8];\n\
             mov.u64 %crc_launch, __cudarun_none;\nmov.u64 %crc_state, __cudarun_me;\n",
        );
    }
    any
}

/// Adds parameters to a function's list: the launch block, and the identity's address for a
/// device function.
pub(crate) fn extend_parameters(module: &Module, function: &Function, edits: &mut Edits) {
    let mut parameters = format!(".param .u64 {LAUNCH_PARAM}");
    if !function.entry {
        parameters.push_str(&format!(", .param .u64 {STATE_PARAM}"));
    }
    match function.params_span {
        Some(span) if !module.slice(span).is_empty() => {
            let comma = if function.params.is_empty() { "" } else { ", " };
            edits.insert(span.end - 1, format!("{comma}{parameters}"));
        }
        _ => edits.insert(function.name_span.end, format!("({parameters})")),
    }
}

/// Passes the state to a checked function, and reads the identity back.
pub(crate) fn pass_state(
    module: &Module,
    instruction: &Instruction,
    statement: usize,
    edits: &mut Edits,
) {
    let text = module.slice(instruction.span);
    let (launch, state) = (
        format!("crc_launch_{statement}"),
        format!("crc_state_{statement}"),
    );
    // Stored whether the call happens or not: a guard is not allowed here.
    edits.insert(
        instruction.span.start,
        format!(
            "\n.param .b64 {launch};\n.param .b64 {state};\nst.param.b64 [{launch}], %crc_launch;\nst.param.b64 [{state}], %crc_state;\n"
        ),
    );
    // `call (results), name, (arguments), prototype;` where brackets and prototype may be missing.
    let is_name = |operand: &&Operand| matches!(operand, Operand::Name { .. });
    let operands = &instruction.operands;
    let name = operands.iter().position(|of| is_name(&of));
    let behind = name.map_or(&[][..], |name| &operands[name + 1..]);
    let (place, added) = match behind {
        [Operand::Paren(arguments), ..] => {
            let comma = if arguments.is_empty() { "" } else { ", " };
            (
                last(text, TokenKind::CloseParen),
                format!("{comma}{launch}, {state}"),
            )
        }
        _ => {
            let end = match behind {
                [] => TokenKind::Semicolon,
                _ => TokenKind::Comma,
            };
            (last(text, end), format!(", ({launch}, {state})"))
        }
    };
    if let Some(place) = place {
        edits.insert(instruction.span.start + place, added);
    }
    edits.insert(
        instruction.span.end,
        "\nld.local.u64 %crc_me, [%crc_state];\n",
    );
}

/// Where the last token of a kind begins; comments may hold the same characters.
fn last(text: &str, kind: TokenKind) -> Option<u32> {
    lexer::tokens(text)
        .filter(|token| token.kind == kind)
        .last()
        .map(|token| token.start)
}
