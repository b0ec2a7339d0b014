//! What orders threads in ways that no epoch shows, for the fence rule of `fast` mode
//! ([`shadow::order`]): each such operation is counted by its CTA, in front of it.

use ptx::ast::Instruction;
use ptx::isa::{self, MbarrierOp, Scope, SyncOp};
use shadow::order::{NARROW, WIDE};

use crate::access;
use crate::call::{LAUNCH, Value, call};
use crate::edit::Edits;

/// What an instruction adds to the releases and the acquires of its CTA, if anything.
pub(crate) fn counted(instruction: &Instruction) -> Option<[u64; 2]> {
    let releases = isa::sync::release_capable(instruction);
    let acquires = isa::sync::acquire_capable(instruction);
    let reach = match isa::sync(instruction) {
        Some(SyncOp::CtaBarrier { .. } | SyncOp::WarpBarrier { .. }) => NARROW,
        Some(SyncOp::Fence { scope, .. } | SyncOp::Mbarrier { scope, .. }) => within(scope),
        _ => isa::memory(instruction).map_or(WIDE, |op| within(op.scope)),
    };
    let add = |does| if does { reach } else { 0 };
    (releases || acquires).then_some([add(releases), add(acquires)])
}

/// True of operations on barriers that order nothing by themselves.
pub(crate) fn orders_nothing(instruction: &Instruction) -> bool {
    match isa::sync(instruction) {
        Some(SyncOp::ClusterBarrier { arrive, relaxed }) => arrive && relaxed,
        Some(SyncOp::Mbarrier { op, relaxed, .. }) => {
            let waits = matches!(op, MbarrierOp::TestWait | MbarrierOp::TryWait);
            let arrives = isa::sync::release_capable(instruction);
            relaxed || !(waits || arrives)
        }
        _ => false,
    }
}

fn within(scope: Scope) -> u64 {
    match scope {
        Scope::Cta => NARROW,
        Scope::Cluster | Scope::Gpu | Scope::Sys => WIDE,
    }
}

/// Adds the call that counts; false if there is nothing to count. `label` is unique in its function.
pub(crate) fn insert(instruction: &Instruction, label: u32, edits: &mut Edits) -> bool {
    let Some([releases, acquires]) = counted(instruction) else {
        return false;
    };
    let skip = format!("$crc_counted_{label}");
    let mut text = String::from("\n");
    if let Some(guard) = &instruction.guard {
        text.push_str(&format!("{}bra {skip};\n", access::unless(guard)));
    }
    let (releases, acquires) = (releases.to_string(), acquires.to_string());
    let arguments = [
        LAUNCH,
        Value::new("b64", &releases),
        Value::new("b64", &acquires),
    ];
    text.push_str(&call("order", None, &arguments));
    if instruction.guard.is_some() {
        text.push_str(&format!("{skip}:\n"));
    }
    edits.insert(instruction.span.start, text);
    true
}
