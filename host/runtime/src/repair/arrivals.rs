//! Barriers at which some threads arrive and others wait: mbarriers, and the numbered barriers of a block.

use ptx::ast::{Instruction, Operand};
use ptx::isa::sync::BarrierKind;
use ptx::isa::{SyncOp, sync};

use super::flow::{Flow, RequiredOrder};
use crate::log::{EarlyArrival, Unwaited};

/// Suffixes of the waits for an mbarrier, and of the arrivals there.
const WAITS: &[&str] = &["try_wait", "test_wait"];
const ARRIVALS: &[&str] = &["arrive", "arrive_drop"];

/// The arrival at an mbarrier after one of two statements, if no wait precedes the other.
pub(super) fn unwaited(flow: &Flow<'_>, [earlier, later]: [usize; 2]) -> Option<Unwaited> {
    if earlier == later {
        return None;
    }
    let free = |way| flow.reaches(way, &[], RequiredOrder::Block);
    let waits: Vec<usize> = on_mbarriers(flow, WAITS).collect();
    let found = |arrival, before_earlier, is_between| {
        let [from, to] = match before_earlier {
            true => [later, earlier],
            false => [earlier, later],
        };
        Unwaited {
            arrival: flow.place(arrival),
            before_earlier,
            is_between,
            is_waited_back: !flow.reaches([to, from], &waits, RequiredOrder::Block),
        }
    };
    let ways = [(later, earlier, true), (earlier, later, false)];
    // All threads arrive between the two, and wait after the second of them, or never.
    let between = ways.iter().find_map(|&(from, to, before_earlier)| {
        let is_between = |&at: &usize| {
            flow.instruction(at).is_some_and(|of| of.guard.is_none())
                && free([from, at])
                && !flow.reaches([from, to], &[at], RequiredOrder::Block)
                && flow.reaches([at, to], &waits, RequiredOrder::Block)
        };
        let arrival = free([from, to]).then(|| on_mbarriers(flow, ARRIVALS).find(is_between));
        Some(found(arrival.flatten()?, before_earlier, true))
    });
    between.or_else(|| {
        ways.into_iter().find_map(|(from, to, before_earlier)| {
            let reached = |at: usize| flow.cfg.dominates(0, flow.cfg.block_of(at));
            if waits.iter().any(|&wait| reached(wait) && free([wait, to])) {
                return None;
            }
            let arrival = on_mbarriers(flow, ARRIVALS).find(|&at| free([from, at]))?;
            Some(found(arrival, before_earlier, false))
        })
    })
}

/// The operations on mbarriers that have one of these suffixes.
fn on_mbarriers(flow: &Flow<'_>, suffixes: &'static [&'static str]) -> impl Iterator<Item = usize> {
    let all = flow.body.instructions();
    let has =
        |of: &Instruction| of.opcode == "mbarrier" && suffixes.iter().any(|suffix| of.has(suffix));
    all.filter(move |(_, of)| has(of)).map(|(at, _)| at)
}

/// An arrival at a numbered barrier of the block that stands in front of one of two statements, and not behind it, while the
/// other one stands behind a wait at that barrier.
pub(super) fn early(flow: &Flow<'_>, [earlier, later]: [usize; 2]) -> Option<EarlyArrival> {
    let all: Vec<Numbered<'_>> = numbered(flow).collect();
    let waits = || all.iter().filter(|of| of.waits);
    let all_waits: Vec<usize> = waits().map(|of| of.at).collect();
    let free = |way| flow.reaches(way, &all_waits, RequiredOrder::Block);
    let sides = [(later, earlier, true), (earlier, later, false)];
    sides.into_iter().find_map(|(early, other, by_later)| {
        let mut arrivals = all.iter().filter(|of| !of.waits);
        let arrival = arrivals.find(|arrival| {
            let mut same = all.iter().filter(|of| of.id == arrival.id);
            let handed_over = same.clone().any(|of| !of.waits && free([early, of.at]));
            let waits = same.any(|of| of.waits && free([of.at, other]));
            free([arrival.at, early]) && !handed_over && waits
        })?;
        Some(EarlyArrival {
            arrival: flow.place(arrival.at),
            by_later,
        })
    })
}

/// An operation on a barrier of the block that only some of its threads wait at.
struct Numbered<'a> {
    at: usize,
    /// The number of the barrier.
    id: Option<&'a Operand>,
    /// Threads wait here; otherwise they arrive and go on.
    waits: bool,
}

fn numbered<'a>(flow: &Flow<'a>) -> impl Iterator<Item = Numbered<'a>> {
    flow.body.instructions().filter_map(|(at, of)| {
        let Some(SyncOp::CtaBarrier {
            kind,
            id,
            count: Some(_),
            ..
        }) = sync(of)
        else {
            return None;
        };
        Some(Numbered {
            at,
            id: of.operands.get(id),
            waits: kind != BarrierKind::Arrive,
        })
    })
}
