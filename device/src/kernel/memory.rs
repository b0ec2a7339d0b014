//! Memory and special registers of the device, one instruction per function.

macro_rules! special {
    ($name:literal) => {{
        let value: u32;
        unsafe { asm!(concat!("mov.u32 {0}, %", $name, ";"), out(reg32) value) };
        value
    }};
}

/// The thread's linear index in its CTA, x fastest.
pub fn thread_in_cta() -> u32 {
    special!("tid.x") + special!("ntid.x") * (special!("tid.y") + special!("ntid.y") * special!("tid.z"))
}

/// The CTA's linear index in the grid, x fastest.
pub fn cta_in_grid() -> u64 {
    let row = special!("ctaid.y") as u64 + special!("nctaid.y") as u64 * special!("ctaid.z") as u64;
    special!("ctaid.x") as u64 + special!("nctaid.x") as u64 * row
}

/// Acquire, so that the witnesses read after it belong to the cell or to a later one.
pub fn load_cell(at: u64) -> u64 {
    let value: u64;
    unsafe { asm!("ld.acquire.gpu.global.u64 {0}, [{1}];", out(reg64) value, in(reg64) at) };
    value
}

/// Release, so that the witnesses written before it are seen with the cell.
pub fn publish_cell(at: u64, value: u64) {
    unsafe { asm!("st.release.gpu.global.u64 [{0}], {1};", in(reg64) at, in(reg64) value) };
}

pub fn compare_and_swap(at: u64, old: u64, new: u64) -> u64 {
    let seen: u64;
    unsafe {
        asm!("atom.acquire.gpu.global.cas.b64 {0}, [{1}], {2}, {3};",
            out(reg64) seen, in(reg64) at, in(reg64) old, in(reg64) new)
    };
    seen
}

pub fn load_relaxed(at: u64) -> u64 {
    let value: u64;
    unsafe { asm!("ld.relaxed.gpu.global.u64 {0}, [{1}];", out(reg64) value, in(reg64) at) };
    value
}

pub fn store_relaxed(at: u64, value: u64) {
    unsafe { asm!("st.relaxed.gpu.global.u64 [{0}], {1};", in(reg64) at, in(reg64) value) };
}

/// Adds 1 and gives the value before.
pub fn fetch_increment(at: *mut u64) -> u64 {
    let value: u64;
    unsafe { asm!("atom.relaxed.gpu.global.add.u64 {0}, [{1}], 1;", out(reg64) value, in(reg64) at as u64) };
    value
}

pub fn count(at: *mut u64) {
    unsafe { asm!("red.relaxed.gpu.global.add.u64 [{0}], 1;", in(reg64) at as u64) };
}
