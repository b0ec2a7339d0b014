//! The next epoch, after a barrier of the whole CTA, warp or grid.

use device::BarrierEpilogue;
use ptx::ast::{Instruction, Operand};
use ptx::isa::{self, SyncOp};

use crate::access;
use crate::call::{LAUNCH, ME, call};
use crate::edit::Edits;

/// A barrier that the epochs count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Counted<'a> {
    /// Every thread of the CTA takes part and waits.
    Cta,
    /// Every lane of the warp does.
    Warp,
    /// The same if this register holds the full mask, as it mostly does in unoptimised code.
    WarpIfFull(&'a str),
}

/// Which epoch an instruction ends, if any.
pub(crate) fn counted(instruction: &Instruction) -> Option<Counted<'_>> {
    if isa::sync::is_full_cta_barrier(instruction) {
        return Some(Counted::Cta);
    }
    if isa::sync::is_full_warp_barrier(instruction) {
        return Some(Counted::Warp);
    }
    match isa::sync(instruction)? {
        SyncOp::WarpBarrier { mask } => match instruction.operands.get(mask)? {
            Operand::Name {
                name,
                component: None,
                offset: 0,
            } => Some(Counted::WarpIfFull(name)),
            _ => None,
        },
        _ => None,
    }
}

/// Adds the call that counts a barrier of the grid, where the CTA's first thread has waited for it.
/// All threads see the count after the barrier of the CTA that follows.
pub(crate) fn count_grid(instruction: &Instruction, edits: &mut Edits) {
    let text = call("grid_barrier", None, &[LAUNCH]);
    edits.insert(instruction.span.end, format!("\n{text}"));
}

/// Barriers of the whole grid, of which a barrier of the CTA may be a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// The module has none.
    None,
    /// The module has some.
    Somewhere,
    /// This is the last part of one.
    Ends,
}

/// Adds what gives the next epoch; false if there is none. `label` is unique in its function, `state`
/// says that the identity is kept in memory as well.
pub(crate) fn insert(
    instruction: &Instruction,
    grid: Grid,
    state: bool,
    label: u32,
    edits: &mut Edits,
) -> bool {
    let Some(counted) = counted(instruction) else {
        return false;
    };
    let skip = format!("$crc_passed_{label}");
    let mut text = String::from("\n");
    if let Some(guard) = &instruction.guard {
        let mut guard = guard.clone();
        // `@p bar.red.or.pred p, …` leaves something else in its guard.
        let mut overwritten = false;
        isa::register_writes(instruction, |name| overwritten |= name == guard.predicate);
        if overwritten {
            let save = format!("\nmov.pred %crc_guard, {};\n", guard.predicate);
            edits.insert(instruction.span.start, save);
            guard.predicate = "%crc_guard".into();
        }
        text.push_str(&format!("{}bra {skip};\n", access::unless(&guard)));
    }
    if let Counted::WarpIfFull(mask) = counted {
        text.push_str(&format!(
            "setp.ne.b32 %crc_global, {mask}, -1;\n@%crc_global bra {skip};\n"
        ));
    }
    let epilogue = BarrierEpilogue {
        launch: LAUNCH.text,
        me: ME.text,
        scratch: ["%crc_next", "%crc_new"],
        predicate: "%crc_settled",
    };
    let called = |function| call(function, Some(ME), &[LAUNCH, ME]);
    text.push_str(&match (counted, grid) {
        (Counted::Cta, Grid::Ends) => called("barrier_of_grid"),
        (Counted::Cta, Grid::Somewhere) => called("barrier"),
        (Counted::Cta, Grid::None) => epilogue.barrier(),
        (Counted::Warp | Counted::WarpIfFull(_), _) => epilogue.warp_barrier(),
    });
    if state {
        text.push_str("st.local.u64 [%crc_state], %crc_me;\n");
    }
    if instruction.guard.is_some() || matches!(counted, Counted::WarpIfFull(_)) {
        text.push_str(&format!("{skip}:\n"));
    }
    edits.insert(instruction.span.end, text);
    true
}
