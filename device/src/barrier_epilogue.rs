//! What follows a barrier: the thread's next identity, inlined behind it.

use std::mem::offset_of;

use shadow::layout::{LaunchBlock, WARP_EPOCH_SHIFT};

use crate::inline::literal;

/// The code behind one barrier.
#[derive(Clone, Debug)]
pub struct BarrierEpilogue<'a> {
    /// Register: the address of the first launch block.
    pub launch: &'a str,
    /// Register: the thread's identity.
    pub me: &'a str,
    /// Two 64-bit registers.
    pub scratch: [&'a str; 2],
    /// A predicate.
    pub predicate: &'a str,
}

impl BarrierEpilogue<'_> {
    /// Behind a barrier of the whole CTA (`rule::pass_barrier`), in kernels without barriers of the
    /// whole grid.
    ///
    /// With all bits of the warp epoch set, one more makes it 0, and goes into the barrier epoch.
    pub fn barrier(&self) -> String {
        let Self {
            launch,
            me,
            scratch: [a, b],
            predicate: p,
        } = self;
        let next = literal(1 << WARP_EPOCH_SHIFT);
        let besides = offset_of!(LaunchBlock, besides_barrier);
        format!(
            "ld.global.v2.u64 {{{a}, {b}}}, [{launch}+{besides}];\n\
             or.b64 {a}, {a}, {me};\n\
             setp.eq.s64 {p}, {a}, -1;\n\
             or.b64 {me}, {me}, {b};\n\
             @{p} sub.s64 {me}, {me}, {b};\n\
             @!{p} add.s64 {me}, {me}, {next};\n"
        )
    }

    /// Behind a barrier of the whole warp (`rule::pass_warp_barrier`).
    pub fn warp_barrier(&self) -> String {
        let Self {
            launch,
            me,
            scratch: [a, _],
            predicate: p,
        } = self;
        let next = literal(1 << WARP_EPOCH_SHIFT);
        let epoch = offset_of!(LaunchBlock, warp_epoch);
        format!(
            "ld.global.u64 {a}, [{launch}+{epoch}];\n\
             not.b64 {a}, {a};\n\
             or.b64 {a}, {a}, {me};\n\
             setp.ne.s64 {p}, {a}, -1;\n\
             @{p} add.s64 {me}, {me}, {next};\n"
        )
    }
}
