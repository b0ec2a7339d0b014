//! Operations on mbarriers, in kernels that keep a journal.
//!
//! They are made in turns, each recorded before it is made; its bytes are everybody's from then on. A wait
//! takes no turn: it is recorded behind, when it has found its phase over; by then all arrivals of that phase
//! have been recorded.

use ptx::ast::{Instruction, Operand};
use ptx::isa::{self, MbarrierOp, SyncOp};
use shadow::layout::{
    ACCESS_BYTES_SHIFT, ACCESS_GRANULE_SHIFT, ACCESS_SHARED, ENTRY_MBARRIER_OVER, LaunchBlock,
    PARITY_SHIFT,
};

use crate::access::{self, AddressSpace, Located, unless};
use crate::analysis::Granules;
use crate::call::{Value, call};
use crate::copies;
use crate::edit::Edits;
use crate::journal::{self, STATE};
use crate::names::Names;

/// Bytes of an mbarrier.
const BYTES: u32 = 8;

/// The registers that [`record`] uses besides those of all journals.
pub(crate) const DECLARATIONS: &str = "\n.reg .b32 %crc_count;\n.reg .b64 %crc_over;\n";

/// Adds what an operation on an mbarrier has to record; false if the instruction is none.
pub(crate) fn record(
    names: &Names<'_>,
    located: Located<'_>,
    granules: Granules,
    edits: &mut Edits,
) -> bool {
    let Located { at, instruction } = located;
    let Some(SyncOp::Mbarrier { op, address, .. }) = isa::sync(instruction) else {
        return false;
    };
    let operand = instruction.operands.get(address);
    let space = access::space_of(names, at, instruction.space(), operand);
    let address_space = space
        .and_then(AddressSpace::of)
        .unwrap_or(AddressSpace::Generic);
    let mut at_barrier = String::new();
    access::address(&mut at_barrier, names, at, operand, address_space);
    let skip = format!("$crc_barrier_{at}");
    at_barrier.push_str(&copies::in_shared(address_space, granules, &skip));
    match op {
        MbarrierOp::PendingCount => {}
        MbarrierOp::TestWait | MbarrierOp::TryWait => {
            wait(instruction, address, &at_barrier, &skip, edits);
        }
        _ => operation(located, op, address, &at_barrier, &skip, granules, edits),
    }
    true
}

/// What an operation counts: arrivals, or bytes.
fn count(instruction: &Instruction, op: MbarrierOp, address: usize) -> String {
    let operand = match instruction.operands.get(address + 1) {
        Some(Operand::Int(value)) => Some(value.to_string()),
        Some(Operand::Name { name, .. }) => Some(name.to_string()),
        _ => None,
    };
    match op {
        MbarrierOp::CopyArrive if instruction.has("noinc") => "1".to_owned(),
        MbarrierOp::CopyArrive | MbarrierOp::Inval => "0".to_owned(),
        _ => operand.unwrap_or_else(|| "1".to_owned()),
    }
}

fn operation(
    Located { at, instruction }: Located<'_>,
    op: MbarrierOp,
    address: usize,
    at_barrier: &str,
    skip: &str,
    granules: Granules,
    edits: &mut Edits,
) {
    let count = count(instruction, op, address);
    let granule = granules.shared.unwrap_or(2);
    let word = BYTES << ACCESS_BYTES_SHIFT | granule << ACCESS_GRANULE_SHIFT | ACCESS_SHARED;
    let word = word.to_string();
    let what = instruction.span.start.to_string();
    let guard = instruction.guard.as_ref();
    let guard = guard.map_or_else(String::new, |guard| {
        format!("{}bra {skip};\n", unless(guard))
    });
    let arguments = [
        Value::new("b64", "%crc_block"),
        STATE,
        Value::new("b64", "%crc_address"),
        Value::new("b32", &what),
        Value::new("b32", &word),
        Value::new("b32", "%crc_count"),
    ];
    let block = size_of::<LaunchBlock>();
    edits.insert(
        instruction.span.start,
        format!(
            "\nsetp.ne.u32 %crc_todo, 0, 0;\n{guard}{at_barrier}\
             add.s64 %crc_block, %crc_launch, {block};\nmov.b32 %crc_count, {count};\n\
             setp.eq.u32 %crc_todo, 0, 0;\n$crc_try_{at}:\n{}\
             setp.eq.u32 %crc_global, %crc_got, 0;\n@%crc_global bra $crc_again_{at};\n{skip}:\n",
            call(
                "journal_barrier",
                Some(Value::new("b32", "%crc_got")),
                &arguments
            )
        ),
    );
    let made = [arguments[0], STATE, arguments[2], arguments[4]];
    edits.insert(
        instruction.span.end,
        format!(
            "\n@!%crc_todo bra $crc_recorded_{at};\n{}setp.ne.u32 %crc_todo, 0, 0;\n\
             $crc_again_{at}:\n@%crc_todo bra $crc_try_{at};\n$crc_recorded_{at}:\n",
            call("journal_barrier_made", None, &made)
        ),
    );
}

fn wait(
    instruction: &Instruction,
    address: usize,
    at_barrier: &str,
    skip: &str,
    edits: &mut Edits,
) {
    let Some(Operand::Name { name: over, .. }) = instruction.operands.first() else {
        return;
    };
    let mut text = String::from("\n");
    if let Some(guard) = &instruction.guard {
        let mut guard = guard.clone();
        // `@p mbarrier.test_wait p, …` leaves something else in its guard.
        if guard.predicate == *over {
            let save = format!("\nmov.pred %crc_guard, {over};\n");
            edits.insert(instruction.span.start, save);
            guard.predicate = "%crc_guard".into();
        }
        text.push_str(&format!("{}bra {skip};\n", unless(&guard)));
    }
    text.push_str(&format!("@!{over} bra {skip};\n{at_barrier}"));
    if instruction.has("parity") {
        let parity = match instruction.operands.get(address + 1) {
            Some(Operand::Int(value)) => value.to_string(),
            Some(Operand::Name { name, .. }) => name.to_string(),
            _ => "0".to_owned(),
        };
        text.push_str(&format!(
            "mov.b32 %crc_count, {parity};\nand.b32 %crc_count, %crc_count, 1;\n\
             add.u32 %crc_count, %crc_count, 1;\ncvt.u64.u32 %crc_over, %crc_count;\n\
             shl.b64 %crc_over, %crc_over, {PARITY_SHIFT};\n\
             or.b64 %crc_address, %crc_address, %crc_over;\n"
        ));
    }
    let what = instruction.span.start;
    text.push_str(&journal::entry("journal_event", ENTRY_MBARRIER_OVER, what));
    edits.insert(instruction.span.end, text + skip + ":\n");
}
