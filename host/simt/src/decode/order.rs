//! What the order of CTAs means to a kernel.

use ptx::ast::Instruction;
use ptx::isa::{self, Scope, Semantics, SyncOp};

use crate::code::{AddressSpace, Callee, CtaOrder, Kind, Op, Rmw, Special};

/// Whether an instruction orders accesses for threads all over the device, or beyond.
pub(super) fn fences_device(instruction: &Instruction) -> bool {
    if let Some(SyncOp::Fence { scope, proxy, .. }) = isa::sync(instruction) {
        return scope >= Scope::Gpu && !proxy;
    }
    isa::memory(instruction).is_some_and(|op| {
        let orders = [Semantics::Acquire, Semantics::Release, Semantics::AcqRel];
        op.scope >= Scope::Gpu && orders.contains(&op.sem)
    })
}

/// What the order means to code.
pub(super) fn of(ops: &[Op]) -> CtaOrder {
    let most = ops.iter().map(|op| of_op(&op.kind)).max();
    // Reductions by one operation commute, by several they need not.
    let mut reductions = ops.iter().filter_map(|op| match &op.kind {
        Kind::Atomic(atomic) if reaches_others(atomic.address.address_space) => Some(atomic.op),
        _ => None,
    });
    let first = reductions.next();
    let alike = reductions.all(|op| Some(op) == first);
    let least = if alike {
        CtaOrder::Free
    } else {
        CtaOrder::Communicating
    };
    most.unwrap_or_default().max(least)
}

fn of_op(kind: &Kind) -> CtaOrder {
    match kind {
        Kind::Special(_, special) => of_special(*special),
        Kind::Call(call) => match call.callee {
            Callee::Vprintf | Callee::Malloc | Callee::Free | Callee::Device { .. } => {
                CtaOrder::Fixed
            }
            // What is called was decoded with the kernel; what ends a launch does so anywhere.
            Callee::Function(_) | Callee::Indirect(_) | Callee::AssertFail | Callee::Missing(_) => {
                CtaOrder::Free
            }
        },
        Kind::Load(access) | Kind::Store(access) => {
            match access.strong && reaches_others(access.address.address_space) {
                // Two rows are an element that no lock keeps together.
                true if access.width.bytes > 8 => CtaOrder::Fixed,
                true => CtaOrder::Communicating,
                false => CtaOrder::Free,
            }
        }
        Kind::Atomic(atomic) if reaches_others(atomic.address.address_space) => {
            match atomic.bytes {
                16.. => CtaOrder::Fixed,
                _ if atomic.results.is_empty() && commutes(atomic.op) => CtaOrder::Free,
                _ => CtaOrder::Communicating,
            }
        }
        Kind::Copy(copy) if copy.reduce.is_some() && reaches_others(copy.to.address_space) => {
            CtaOrder::Fixed
        }
        Kind::AsyncStore(store) if reaches_others(store.to.address_space) => CtaOrder::Fixed,
        // What stays inside a CTA, or, as a fence, orders what is communicated by other means.
        _ => CtaOrder::Free,
    }
}

/// Whether a place may be one that other CTAs reach, clusters aside.
fn reaches_others(address_space: AddressSpace) -> bool {
    match address_space {
        AddressSpace::Global | AddressSpace::Generic => true,
        AddressSpace::Shared | AddressSpace::Local | AddressSpace::Frame | AddressSpace::Param => {
            false
        }
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

fn of_special(special: Special) -> CtaOrder {
    match special {
        Special::SmId
        | Special::Clock
        | Special::ClockHi
        | Special::Clock64
        | Special::GlobalTimer
        | Special::GlobalTimerLo
        | Special::GlobalTimerHi => CtaOrder::Fixed,
        _ => CtaOrder::Free,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Symbols, program};
    use super::*;

    fn order(body: &str) -> CtaOrder {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64
             .extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
             .visible .entry k(.param .u64 out) {{
                .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .shared .b32 word;
                ld.param.u64 %d0, [out]; {body} ret;
             }}"
        );
        let (module, diagnostics) = ptx::parse(&text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        program(&module, &Symbols::default(), "k").unwrap().order
    }

    #[test]
    fn what_keeps_ctas_apart() {
        for (expected, body) in [
            (CtaOrder::Free, "st.global.u32 [%d0], %r0; membar.gl; bar.sync 0;"),
            (CtaOrder::Free, "red.global.add.u32 [%d0], 1; red.global.add.u64 [%d0], 1;"),
            (CtaOrder::Free, "atom.global.add.u32 %r0, [%d0], 1;"),
            (CtaOrder::Free, "atom.global.min.s32 %r0, [%d0], 1; mov.u32 %r0, 1; st.global.u32 [%d0], 1;"),
            (CtaOrder::Free, "atom.shared.exch.b32 %r0, [word], 1; ld.volatile.shared.u32 %r1, [word]; st.global.u32 [%d0], %r0;"),
            (CtaOrder::Free, "mov.u32 %r0, %warpid; mov.u32 %r1, %nsmid;"),
            (CtaOrder::Communicating, "atom.global.add.u32 %r0, [%d0], 1; st.global.u32 [%d0], %r0;"),
            (CtaOrder::Communicating, "atom.shared.exch.b32 %r0, [%d0], 1; atom.exch.b32 %r0, [%d0], 1;"),
            (CtaOrder::Communicating, "atom.global.cas.b32 %r0, [%d0], 1, 2;"),
            (CtaOrder::Communicating, "red.global.add.f32 [%d0], %f0;"),
            (CtaOrder::Communicating, "red.global.add.u32 [%d0], 1; red.global.or.b32 [%d0], 1;"),
            (CtaOrder::Communicating, "red.global.inc.u32 [%d0], 1;"),
            (CtaOrder::Communicating, "ld.volatile.global.u32 %r0, [%d0];"),
            (CtaOrder::Communicating, "st.relaxed.gpu.u32 [%d0], %r0;"),
            (CtaOrder::Fixed, "mov.u32 %r0, %smid;"),
            (CtaOrder::Fixed, "mov.u64 %d1, %clock64; ld.volatile.global.u32 %r0, [%d0];"),
            (CtaOrder::Fixed, "mov.u64 %d1, %globaltimer;"),
            (
                CtaOrder::Fixed,
                "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d0; st.param.b64 [a], %d0;
                 call.uni (r), vprintf, (f, a); }",
            ),
        ] {
            assert_eq!(order(body), expected, "{body}");
        }
    }

    #[test]
    fn what_fences_the_device() {
        let fences = |text: &str| {
            let text = format!(".version 8.0 .target sm_90 .func f() {{ {text} }}");
            let (module, diagnostics) = ptx::parse(&text);
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            let bodies = module
                .functions()
                .filter_map(|function| function.body.as_ref());
            let mut instructions = bodies.flat_map(|body| body.instructions());
            instructions.any(|(_, instruction)| fences_device(instruction))
        };
        for text in [
            "membar.gl;",
            "fence.sc.sys;",
            "fence.acq_rel.gpu;",
            "ld.acquire.gpu.u32 %r0, [%d0];",
            "st.release.sys.u32 [%d0], %r0;",
            "atom.acq_rel.gpu.add.u32 %r0, [%d0], 1;",
            "red.release.gpu.add.u32 [%d0], 1;",
        ] {
            assert!(fences(text), "{text}");
        }
        for text in [
            "membar.cta;",
            "fence.acq_rel.cluster;",
            "fence.proxy.async;",
            "ld.acquire.cta.u32 %r0, [%d0];",
            "ld.relaxed.gpu.u32 %r0, [%d0];",
            "ld.volatile.u32 %r0, [%d0];",
            "st.u32 [%d0], %r0;",
            "atom.add.u32 %r0, [%d0], 1;",
            "bar.sync 0;",
        ] {
            assert!(!fences(text), "{text}");
        }
    }
}
