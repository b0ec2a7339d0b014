//! One exported function per name of the driver API, which jumps to where its slot points.
//!
//! Nothing but a scratch register is touched, so a function needs no signature here.
//! A slot points at first to code that has all slots filled ([`crate::resolve`]) and then jumps
//! again. That code keeps every register in which the System V and the AArch64 calling conventions
//! pass arguments: integers, 16 bytes of each of eight vectors, the address for a result in memory,
//! and on x86-64 the number of vectors of a call with variable arguments. No function of the driver
//! API has wider vectors.
//!
//! The scratch registers are those that the conventions leave to a linker's own stubs: r11 on
//! x86-64, x16 and x17 on AArch64.

use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

use driver::sys::FUNCTION_NAMES;

/// Where a function jumps to.
pub(crate) type Slot = AtomicPtr<c_void>;

unsafe extern "C" {
    /// The slots, in the order of [`FUNCTION_NAMES`].
    safe static cudarun_slots: [Slot; FUNCTION_NAMES.len()];
}

/// Every function's name with its slot.
pub(crate) fn slots() -> impl Iterator<Item = (&'static str, &'static Slot)> {
    FUNCTION_NAMES.iter().copied().zip(&cudarun_slots)
}

#[cfg(target_arch = "x86_64")]
macro_rules! trampolines {
    ($($name:ident)*) => { std::arch::global_asm!(
        ".pushsection .data.cudarun_slots, \"aw\", @progbits",
        ".p2align 3",
        ".globl cudarun_slots",
        ".hidden cudarun_slots",
        "cudarun_slots:",
        ".popsection",

        ".macro cudarun_trampoline name",
        ".pushsection .data.cudarun_slots, \"aw\", @progbits",
        "cudarun_slot_\\name: .quad cudarun_first_\\name",
        ".popsection",
        ".globl \\name",
        ".type \\name, @function",
        ".p2align 4",
        "\\name:",
        ".cfi_startproc",
        "endbr64",
        "jmp *cudarun_slot_\\name(%rip)",
        "cudarun_first_\\name:",
        "endbr64",
        "lea cudarun_slot_\\name(%rip), %r11",
        "jmp cudarun_first_call",
        ".cfi_endproc",
        ".size \\name, . - \\name",
        ".endm",

        ".pushsection .text.cudarun_trampolines, \"ax\", @progbits",
        // r11: the slot. On the stack, from below: vectors, integers, and 8 bytes that align it.
        ".type cudarun_first_call, @function",
        ".p2align 4",
        "cudarun_first_call:",
        ".cfi_startproc",
        "sub $200, %rsp",
        ".cfi_adjust_cfa_offset 200",
        "movaps %xmm0, 0(%rsp)",
        "movaps %xmm1, 16(%rsp)",
        "movaps %xmm2, 32(%rsp)",
        "movaps %xmm3, 48(%rsp)",
        "movaps %xmm4, 64(%rsp)",
        "movaps %xmm5, 80(%rsp)",
        "movaps %xmm6, 96(%rsp)",
        "movaps %xmm7, 112(%rsp)",
        "mov %rdi, 128(%rsp)",
        "mov %rsi, 136(%rsp)",
        "mov %rdx, 144(%rsp)",
        "mov %rcx, 152(%rsp)",
        "mov %r8, 160(%rsp)",
        "mov %r9, 168(%rsp)",
        "mov %rax, 176(%rsp)",
        "mov %r10, 184(%rsp)",
        "mov %r11, %rdi",
        "call {first_call}",
        "mov %rax, %r11",
        "movaps 0(%rsp), %xmm0",
        "movaps 16(%rsp), %xmm1",
        "movaps 32(%rsp), %xmm2",
        "movaps 48(%rsp), %xmm3",
        "movaps 64(%rsp), %xmm4",
        "movaps 80(%rsp), %xmm5",
        "movaps 96(%rsp), %xmm6",
        "movaps 112(%rsp), %xmm7",
        "mov 128(%rsp), %rdi",
        "mov 136(%rsp), %rsi",
        "mov 144(%rsp), %rdx",
        "mov 152(%rsp), %rcx",
        "mov 160(%rsp), %r8",
        "mov 168(%rsp), %r9",
        "mov 176(%rsp), %rax",
        "mov 184(%rsp), %r10",
        "add $200, %rsp",
        ".cfi_adjust_cfa_offset -200",
        "jmp *%r11",
        ".cfi_endproc",
        ".size cudarun_first_call, . - cudarun_first_call",

        $(concat!("cudarun_trampoline ", stringify!($name)),)*
        ".popsection",
        first_call = sym first_call,
        options(att_syntax)
    ); };
}

#[cfg(target_arch = "aarch64")]
macro_rules! trampolines {
    ($($name:ident)*) => { std::arch::global_asm!(
        ".pushsection .data.cudarun_slots, \"aw\", @progbits",
        ".p2align 3",
        ".globl cudarun_slots",
        ".hidden cudarun_slots",
        "cudarun_slots:",
        ".popsection",

        ".macro cudarun_trampoline name",
        ".pushsection .data.cudarun_slots, \"aw\", @progbits",
        "cudarun_slot_\\name: .quad cudarun_first_\\name",
        ".popsection",
        ".globl \\name",
        ".type \\name, @function",
        ".p2align 2",
        "\\name:",
        ".cfi_startproc",
        // `bti c`, which older processors take for nothing.
        "hint #34",
        "adrp x16, cudarun_slot_\\name",
        "ldr x16, [x16, :lo12:cudarun_slot_\\name]",
        "br x16",
        "cudarun_first_\\name:",
        "hint #34",
        "adrp x17, cudarun_slot_\\name",
        "add x17, x17, :lo12:cudarun_slot_\\name",
        "b cudarun_first_call",
        ".cfi_endproc",
        ".size \\name, . - \\name",
        ".endm",

        ".pushsection .text.cudarun_trampolines, \"ax\", @progbits",
        // x17: the slot. x8 is the address for a result in memory.
        ".type cudarun_first_call, @function",
        ".p2align 2",
        "cudarun_first_call:",
        ".cfi_startproc",
        "stp x29, x30, [sp, #-224]!",
        ".cfi_adjust_cfa_offset 224",
        ".cfi_rel_offset x29, 0",
        ".cfi_rel_offset x30, 8",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x8, [sp, #80]",
        "stp q0, q1, [sp, #96]",
        "stp q2, q3, [sp, #128]",
        "stp q4, q5, [sp, #160]",
        "stp q6, q7, [sp, #192]",
        "mov x0, x17",
        "bl {first_call}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldr x8, [sp, #80]",
        "ldp q0, q1, [sp, #96]",
        "ldp q2, q3, [sp, #128]",
        "ldp q4, q5, [sp, #160]",
        "ldp q6, q7, [sp, #192]",
        "ldp x29, x30, [sp], #224",
        ".cfi_restore x29",
        ".cfi_restore x30",
        ".cfi_adjust_cfa_offset -224",
        "br x16",
        ".cfi_endproc",
        ".size cudarun_first_call, . - cudarun_first_call",

        $(concat!("cudarun_trampoline ", stringify!($name)),)*
        ".popsection",
        first_call = sym first_call,
    ); };
}

driver::function_names!(trampolines);

/// Has the slots filled; where to jump from the one that was called through.
extern "C" fn first_call(slot: &'static Slot) -> *const c_void {
    crate::resolve::target(slot)
}
