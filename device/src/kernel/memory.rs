//! Memory and special registers of the device, one instruction per function.
//!
//! # Safety
//!
//! All `asm!` of the program, but for the names of inlined code, is in [`instructions`], and the functions around it are
//! not marked `unsafe`. Their operands and results are values, and none of them jumps or touches the stack. The memory
//! that they reach is that of *tables* and *state*, as the safety section of the crate names them, and of the program
//! that is checked: the compiler knows of no reference into it and makes no access to it, so `nomem` is true of all the
//! memory that it knows of. That an address is one of these is left to the callers, which form none but from the
//! launch block, `state`, and the address of an access that the program makes.
//!
//! `pure` stands only where the result depends on the operands alone. Everything else is executed as often, and in the
//! order, as it is written.

/// Instructions in one piece, with operands as `asm!` has them.
macro_rules! instructions {
    ($($piece:tt)*) => {
        // SAFETY: as the safety section of `memory` says, values go in and out, and no memory that the compiler knows of
        // is reached.
        unsafe { asm!($($piece)*) }
    };
}

macro_rules! special {
    ($name:literal) => {{
        let value: u32;
        instructions!(concat!("mov.u32 {0}, %", $name, ";"), out(reg32) value, options(pure, nomem));
        value
    }};
}

/// The thread's linear index in its CTA, x fastest.
pub fn thread_in_cta() -> u32 {
    special!("tid.x") + special!("ntid.x") * (special!("tid.y") + special!("ntid.y") * special!("tid.z"))
}

/// The lanes that are here with this one, and have the same three values.
pub fn peers(a: u64, b: u64, c: u64) -> u32 {
    let (by_a, by_b, by_c): (u32, u32, u32);
    // In one piece, so that nothing comes between the mask and those who wait for each other by it.
    instructions!("{{ .reg .b32 %active; activemask.b32 %active;",
        "match.any.sync.b64 {0}, {3}, %active;",
        "match.any.sync.b64 {1}, {4}, %active;",
        "match.any.sync.b64 {2}, {5}, %active; }}",
        out(reg32) by_a, out(reg32) by_b, out(reg32) by_c, in(reg64) a, in(reg64) b, in(reg64) c, options(nomem));
    by_a & by_b & by_c
}

/// Likewise, and the same two values.
pub fn peers_of_cell(a: u64, b: u64) -> u32 {
    let (by_a, by_b): (u32, u32);
    instructions!("{{ .reg .b32 %active; activemask.b32 %active;",
        "match.any.sync.b64 {0}, {2}, %active;",
        "match.any.sync.b64 {1}, {3}, %active; }}",
        out(reg32) by_a, out(reg32) by_b, in(reg64) a, in(reg64) b, options(nomem));
    by_a & by_b
}

/// The lanes that are here with this one, and have the same value.
pub fn peers_of(a: u64) -> u32 {
    let by_a: u32;
    instructions!("{{ .reg .b32 %active; activemask.b32 %active;", "match.any.sync.b64 {0}, {1}, %active; }}",
        out(reg32) by_a, in(reg64) a, options(nomem));
    by_a
}

/// The lanes that are here with this one.
pub fn all_peers() -> u32 {
    let active: u32;
    instructions!("activemask.b32 {0};", out(reg32) active, options(nomem));
    active
}

/// The lanes below this one, one bit each.
pub fn lanes_below() -> u32 {
    special!("lanemask_lt")
}

/// This lane, as a bit.
pub fn own_lane() -> u32 {
    special!("lanemask_eq")
}

/// Shifts as PTX has them: by 64 or more gives 0.
pub fn shl(value: u64, by: u32) -> u64 {
    let shifted: u64;
    instructions!("shl.b64 {0}, {1}, {2};", out(reg64) shifted, in(reg64) value, in(reg32) by, options(pure, nomem));
    shifted
}

pub fn shr(value: u64, by: u32) -> u64 {
    let shifted: u64;
    instructions!("shr.u64 {0}, {1}, {2};", out(reg64) shifted, in(reg64) value, in(reg32) by, options(pure, nomem));
    shifted
}

/// How many bits are set.
pub fn ones(bits: u32) -> u32 {
    let count: u32;
    instructions!("popc.b32 {0}, {1};", out(reg32) count, in(reg32) bits, options(pure, nomem));
    count
}

/// The CTA's linear index in the grid, x fastest.
pub fn cta_in_grid() -> u64 {
    let row = special!("ctaid.y") as u64 + special!("nctaid.y") as u64 * special!("ctaid.z") as u64;
    special!("ctaid.x") as u64 + special!("nctaid.x") as u64 * row
}

/// Acquire, so that the witnesses read after it belong to the cell or to a later one.
pub fn load_cell(at: u64) -> u64 {
    let value: u64;
    instructions!("ld.acquire.gpu.global.u64 {0}, [{1}];", out(reg64) value, in(reg64) at, options(nomem));
    value
}

/// [`compare_and_swap`] of a cell whose witnesses only threads of the CTA have entered.
#[inline(always)]
pub fn swap_near(at: u64, old: u64, new: u64) -> u64 {
    let seen: u64;
    instructions!("atom.relaxed.gpu.global.cas.b64 {0}, [{1}], {2}, {3};", "fence.acq_rel.cta;",
        out(reg64) seen, in(reg64) at, in(reg64) old, in(reg64) new, options(nomem));
    seen
}

/// Either of these; `near` where no thread of another CTA asks for the cell's witnesses.
#[inline(always)]
pub fn swap_cell(at: u64, old: u64, new: u64, near: bool) -> u64 {
    if near { swap_near(at, old, new) } else { compare_and_swap(at, old, new) }
}

/// [`publish_cell`]; `near` where no thread of another CTA asks for its witnesses.
#[inline(always)]
pub fn publish(at: u64, value: u64, near: bool) {
    if !near {
        return publish_cell(at, value);
    }
    instructions!("fence.acq_rel.cta;", "st.relaxed.gpu.global.u64 [{0}], {1};", in(reg64) at, in(reg64) value, options(nomem));
}

/// Release, so that the witnesses written before it are seen with the cell.
pub fn publish_cell(at: u64, value: u64) {
    instructions!("st.release.gpu.global.u64 [{0}], {1};", in(reg64) at, in(reg64) value, options(nomem));
}

/// Orders what the thread has done before what it does from here on.
pub fn fence() {
    instructions!("fence.acq_rel.gpu;", options(nomem));
}

pub fn compare_and_swap(at: u64, old: u64, new: u64) -> u64 {
    let seen: u64;
    instructions!("atom.acquire.gpu.global.cas.b64 {0}, [{1}], {2}, {3};",
        out(reg64) seen, in(reg64) at, in(reg64) old, in(reg64) new, options(nomem));
    seen
}

pub fn load_relaxed(at: u64) -> u64 {
    let value: u64;
    instructions!("ld.relaxed.gpu.global.u64 {0}, [{1}];", out(reg64) value, in(reg64) at, options(nomem));
    value
}

pub fn store_relaxed(at: u64, value: u64) {
    instructions!("st.relaxed.gpu.global.u64 [{0}], {1};", in(reg64) at, in(reg64) value, options(nomem));
}

/// Adds `more` and gives the value before.
pub fn fetch_add(at: *mut u64, more: u32) -> u64 {
    let value: u64;
    instructions!("atom.relaxed.gpu.global.add.u64 {0}, [{1}], {2};",
        out(reg64) value, in(reg64) at as u64, in(reg64) more as u64, options(nomem));
    value
}

/// Adds `more`.
pub fn add(at: u64, more: u64) {
    instructions!("red.relaxed.gpu.global.add.u64 [{0}], {1};", in(reg64) at, in(reg64) more, options(nomem));
}

/// Makes it `least` where it is less.
pub fn raise(at: *mut u64, least: u64) {
    instructions!("red.relaxed.gpu.global.max.u64 [{0}], {1};", in(reg64) at as u64, in(reg64) least, options(nomem));
}

/// Sets `bits`.
pub fn set(at: u64, bits: u64) {
    instructions!("red.relaxed.gpu.global.or.b64 [{0}], {1};", in(reg64) at, in(reg64) bits, options(nomem));
}

pub fn count(at: *mut u64, more: u32) {
    instructions!("red.relaxed.gpu.global.add.u64 [{0}], {1};", in(reg64) at as u64, in(reg64) more as u64, options(nomem));
}

/// Leaves the time to others, for up to twice so many nanoseconds.
pub fn sleep(nanoseconds: u32) {
    instructions!("nanosleep.u32 {0};", in(reg32) nanoseconds, options(nomem));
}

/// What the lane `lane` of `lanes` has, once all of them are here.
pub fn of_lane(lanes: u32, lane: u32, value: u32) -> u32 {
    let theirs: u32;
    instructions!("shfl.sync.idx.b32 {0}, {1}, {2}, 31, {3};",
        out(reg32) theirs, in(reg32) value, in(reg32) lane, in(reg32) lanes, options(nomem));
    theirs
}

/// Those of `lanes` that say yes, once all of them are here.
pub fn ballot(lanes: u32, yes: bool) -> u32 {
    let said: u32;
    instructions!("{{ .reg .pred %yes; setp.ne.u32 %yes, {1}, 0; vote.sync.ballot.b32 {0}, %yes, {2}; }}",
        out(reg32) said, in(reg32) yes as u32, in(reg32) lanes, options(nomem));
    said
}

/// Waits until all of `lanes` are here.
pub fn meet(lanes: u32) {
    instructions!("{{ .reg .b32 %own; shfl.sync.bfly.b32 %own, 0, 0, 31, {0}; }}", in(reg32) lanes, options(nomem));
}

/// The number of the lowest bit that is set.
pub fn lowest(bits: u32) -> u32 {
    let number: u32;
    instructions!("{{ .reg .b32 %turned; brev.b32 %turned, {1}; clz.b32 {0}, %turned; }}",
        out(reg32) number, in(reg32) bits, options(pure, nomem));
    number
}

/// What 1, 2, 4 or 8 bytes of the program's global memory hold, where the program itself makes an access.
pub fn load_program(at: u64, bytes: u32) -> u64 {
    let narrow: u32;
    if bytes == 4 {
        instructions!("ld.relaxed.gpu.global.u32 {0}, [{1}];", out(reg32) narrow, in(reg64) at, options(nomem));
    } else if bytes == 8 {
        return load_relaxed(at);
    } else if bytes == 2 {
        instructions!("ld.relaxed.gpu.global.u16 {0}, [{1}];", out(reg32) narrow, in(reg64) at, options(nomem));
    } else {
        instructions!("ld.relaxed.gpu.global.u8 {0}, [{1}];", out(reg32) narrow, in(reg64) at, options(nomem));
    }
    narrow as u64
}

/// Memory of the thread's own: what lies so many bytes from there.
pub fn load_local<const OFFSET: u64>(from: u64) -> u64 {
    let value: u64;
    instructions!("ld.local.u64 {0}, [{1}+{2}];", out(reg64) value, in(reg64) from, const OFFSET, options(nomem));
    value
}

pub fn store_local<const OFFSET: u64>(from: u64, value: u64) {
    instructions!("st.local.u64 [{0}+{2}], {1};", in(reg64) from, in(reg64) value, const OFFSET, options(nomem));
}

/// Clears 64 bytes of it, which lie at a multiple of 16.
pub fn clear_local<const OFFSET: u64>(from: u64) {
    instructions!("st.local.v2.u64 [{0}+{1}], {{0, 0}};", "st.local.v2.u64 [{0}+{2}], {{0, 0}};",
        "st.local.v2.u64 [{0}+{3}], {{0, 0}};", "st.local.v2.u64 [{0}+{4}], {{0, 0}};",
        in(reg64) from, const OFFSET, const OFFSET + 16, const OFFSET + 32, const OFFSET + 48, options(nomem));
}

/// An entry of a journal, the last of its words so that the others are seen with it.
pub fn store_entry(at: u64, first: u64, second: u64, third: u64, last: u64) {
    instructions!("st.relaxed.gpu.global.u64 [{0}], {1};", "st.relaxed.gpu.global.u64 [{0}+8], {2};",
        "st.relaxed.gpu.global.u64 [{0}+16], {3};", "st.release.gpu.global.u64 [{0}+24], {4};",
        in(reg64) at, in(reg64) first, in(reg64) second, in(reg64) third, in(reg64) last, options(nomem));
}
