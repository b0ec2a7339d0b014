//! Where the state spaces lie among generic addresses.
//!
//! Shared and local windows are relative to whoever uses them: every CTA sees its own shared
//! memory at the window's start, every thread its own local memory. The shared memory of the other
//! CTAs of a cluster follows in steps of [`events::SHARED_STEP`], own first, then by rank.

use ptx::ast::Space;

/// Shared memory.
pub(crate) const SHARED: u64 = 0x1000_0000_0000;
/// Local memory.
pub(crate) const LOCAL: u64 = 0x1100_0000_0000;
/// Kernel parameters.
pub(crate) const PARAM: u64 = 0x1200_0000_0000;
/// Functions have addresses here, one every [`FUNCTION_STEP`].
pub(crate) const FUNCTIONS: u64 = 0x3000_0000_0000;
/// Distance between functions.
pub(crate) const FUNCTION_STEP: u64 = 16;

/// What is added to an address of `space` to make it generic.
pub(crate) fn base(space: Space) -> u64 {
    match space {
        Space::Shared | Space::SharedCluster => SHARED,
        Space::Local => LOCAL,
        Space::Param => PARAM,
        _ => 0,
    }
}

/// The space a generic address lies in.
#[inline(always)]
pub(crate) fn space(address: u64) -> Space {
    match address >> 32 {
        high if high == SHARED >> 32 => Space::Shared,
        high if high == LOCAL >> 32 => Space::Local,
        high if high == PARAM >> 32 => Space::Param,
        _ => Space::Global,
    }
}
