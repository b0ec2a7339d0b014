//! What the order of CTAs means to a kernel.

use crate::code::{Callee, Kind, Op, Order, Place, Rmw, Special};

/// What the order means to code.
pub(super) fn of(ops: &[Op]) -> Order {
    let most = ops.iter().map(|op| of_op(&op.kind)).max();
    // Reductions by one operation commute, by several they need not.
    let mut reductions = ops.iter().filter_map(|op| match &op.kind {
        Kind::Atomic(atomic) if reaches_others(atomic.address.place) => Some(atomic.op),
        _ => None,
    });
    let first = reductions.next();
    let alike = reductions.all(|op| Some(op) == first);
    let least = if alike { Order::Free } else { Order::Told };
    most.unwrap_or_default().max(least)
}

fn of_op(kind: &Kind) -> Order {
    match kind {
        Kind::Special(_, special) => of_special(*special),
        Kind::Call(call) => match call.callee {
            Callee::Vprintf | Callee::Malloc | Callee::Free => Order::Fixed,
            // What is called was decoded with the kernel; what ends a launch does so anywhere.
            Callee::Function(_) | Callee::Indirect(_) | Callee::AssertFail | Callee::Missing(_) => {
                Order::Free
            }
        },
        Kind::Load(access) | Kind::Store(access) => {
            match access.strong && reaches_others(access.address.place) {
                // Two rows are an element that no lock keeps together.
                true if access.width.bytes > 8 => Order::Fixed,
                true => Order::Told,
                false => Order::Free,
            }
        }
        Kind::Atomic(atomic) if reaches_others(atomic.address.place) => match atomic.bytes {
            16.. => Order::Fixed,
            _ if atomic.results.is_empty() && commutes(atomic.op) => Order::Free,
            _ => Order::Told,
        },
        Kind::Copy(copy) if copy.reduce.is_some() && reaches_others(copy.to.place) => Order::Fixed,
        Kind::AsyncStore(store) if reaches_others(store.to.place) => Order::Fixed,
        // What stays inside a CTA, or, as a fence, orders what is told by other means.
        _ => Order::Free,
    }
}

/// Whether a place may be one that other CTAs reach, clusters aside.
fn reaches_others(place: Place) -> bool {
    match place {
        Place::Global | Place::Generic => true,
        Place::Shared | Place::Local | Place::Frame | Place::Param => false,
    }
}

/// Whether any order of these operations leaves the same.
fn commutes(op: Rmw) -> bool {
    match op {
        Rmw::And | Rmw::Or | Rmw::Xor | Rmw::Add => true,
        Rmw::MinU | Rmw::MaxU | Rmw::MinS | Rmw::MaxS => true,
        // Sums of floats are rounded; wrapping counters with different limits are no sums.
        Rmw::AddF32 | Rmw::AddF64 | Rmw::Half { .. } | Rmw::Inc | Rmw::Dec => false,
        Rmw::Exch | Rmw::Cas => false,
    }
}

fn of_special(special: Special) -> Order {
    match special {
        Special::SmId
        | Special::Clock
        | Special::ClockHi
        | Special::Clock64
        | Special::GlobalTimer
        | Special::GlobalTimerLo
        | Special::GlobalTimerHi => Order::Fixed,
        _ => Order::Free,
    }
}
