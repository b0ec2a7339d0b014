//! The functions of the C library that start a program, each with a step before it that sees to the environment.
//!
//! A step keeps the registers in which integers and addresses are passed, which is all that these functions take,
//! however many arguments there are, and then jumps to the function itself.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{LinkMap, pass_on, redirect};

/// Registers for arguments.
const ARGUMENTS: usize = 6;

/// The environment that a function hands on.
#[derive(Clone, Copy)]
enum Hands {
    /// The argument with this number, from 0.
    Argument(usize),
    /// That of the process.
    Own,
}

const FUNCTIONS: [(&CStr, Hands); 11] = [
    (c"execve", Hands::Argument(2)),
    (c"execvpe", Hands::Argument(2)),
    (c"fexecve", Hands::Argument(2)),
    (c"posix_spawn", Hands::Argument(5)),
    (c"posix_spawnp", Hands::Argument(5)),
    (c"execv", Hands::Own),
    (c"execvp", Hands::Own),
    (c"execl", Hands::Own),
    (c"execlp", Hands::Own),
    (c"system", Hands::Own),
    (c"popen", Hands::Own),
];

/// The functions themselves.
static FOUND: [AtomicPtr<c_void>; FUNCTIONS.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; FUNCTIONS.len()];

/// The program's own file and its C library, which may both hold the address of the environment.
static HOLDERS: [AtomicPtr<LinkMap>; 2] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 2];

/// Bytes of a step.
const STEP: usize = 16;

unsafe extern "C" {
    /// The first of the steps, in the order of [`FUNCTIONS`].
    safe static cudarun_steps: [[u8; STEP]; FUNCTIONS.len()];
}

/// Notes the program's own file.
pub(crate) fn program(map: *const LinkMap) {
    HOLDERS[0].store(map.cast_mut(), Ordering::Release);
}

/// Notes the program's C library, if that is what this is.
pub(crate) fn is_library(map: *const LinkMap, name: &CStr) -> bool {
    let library = name.to_bytes().ends_with(b"/libc.so.6");
    if library {
        HOLDERS[1].store(map.cast_mut(), Ordering::Release);
    }
    library
}

/// Where a caller shall go for a function of the C library that is at this address.
pub(crate) fn step_before(name: &CStr, found: usize) -> Option<usize> {
    let index = FUNCTIONS.iter().position(|(known, _)| *known == name)?;
    FOUND[index].store(
        std::ptr::with_exposed_provenance_mut(found),
        Ordering::Release,
    );
    Some((&raw const cudarun_steps[index]).expose_provenance())
}

/// Sees to the environment before the function with this number; the function.
extern "C" fn see_to(index: usize, arguments: &mut [*const c_void; ARGUMENTS]) -> *const c_void {
    match FUNCTIONS[index].1 {
        Hands::Argument(number) => {
            let given = &mut arguments[number];
            // SAFETY: the C function takes an environment there.
            *given = unsafe { pass_on::extended(given.cast()) }.cast();
        }
        Hands::Own => {
            if let Some(environ) = environ() {
                // SAFETY: the C library keeps an environment there.
                unsafe { *environ = pass_on::extended(*environ) };
            }
        }
    }
    FOUND[index].load(Ordering::Acquire)
}

/// Where the program and its C library keep the environment: a program that names it has the variable itself.
fn environ() -> Option<*mut pass_on::Environment> {
    HOLDERS.iter().find_map(|holder| {
        // SAFETY: maps of files that are never unloaded.
        let map = unsafe { holder.load(Ordering::Acquire).as_ref()? };
        // SAFETY: as above.
        let find = |name| unsafe { redirect::find(map, name) };
        let found = find(c"environ").or_else(|| find(c"__environ"))?;
        Some(std::ptr::with_exposed_provenance_mut(found))
    })
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.cudarun_steps, \"ax\", @progbits",
    ".p2align 4",
    ".globl cudarun_steps",
    ".hidden cudarun_steps",
    "cudarun_steps:",
    ".set cudarun_step, 0",
    ".rept {count}",
    ".p2align 4",
    "endbr64",
    "mov $cudarun_step, %r11d",
    "jmp cudarun_step_common",
    ".set cudarun_step, cudarun_step + 1",
    ".endr",
    ".p2align 4",
    "cudarun_step_common:",
    ".cfi_startproc",
    "sub $72, %rsp",
    ".cfi_adjust_cfa_offset 72",
    "mov %rdi, 0(%rsp)",
    "mov %rsi, 8(%rsp)",
    "mov %rdx, 16(%rsp)",
    "mov %rcx, 24(%rsp)",
    "mov %r8, 32(%rsp)",
    "mov %r9, 40(%rsp)",
    // The number of vectors of a call with variable arguments.
    "mov %rax, 48(%rsp)",
    "mov %r11, %rdi",
    "mov %rsp, %rsi",
    "call {see_to}",
    "mov %rax, %r11",
    "mov 0(%rsp), %rdi",
    "mov 8(%rsp), %rsi",
    "mov 16(%rsp), %rdx",
    "mov 24(%rsp), %rcx",
    "mov 32(%rsp), %r8",
    "mov 40(%rsp), %r9",
    "mov 48(%rsp), %rax",
    "add $72, %rsp",
    ".cfi_adjust_cfa_offset -72",
    "jmp *%r11",
    ".cfi_endproc",
    ".popsection",
    count = const FUNCTIONS.len(),
    see_to = sym see_to,
    options(att_syntax)
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text.cudarun_steps, \"ax\", @progbits",
    ".p2align 4",
    ".globl cudarun_steps",
    ".hidden cudarun_steps",
    "cudarun_steps:",
    ".set cudarun_step, 0",
    ".rept {count}",
    ".p2align 4",
    // `bti c`, which older processors take for nothing.
    "hint #34",
    "mov w17, #cudarun_step",
    "b cudarun_step_common",
    ".set cudarun_step, cudarun_step + 1",
    ".endr",
    ".p2align 4",
    "cudarun_step_common:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-80]!",
    ".cfi_adjust_cfa_offset 80",
    ".cfi_rel_offset x29, 0",
    ".cfi_rel_offset x30, 8",
    "stp x0, x1, [sp, #16]",
    "stp x2, x3, [sp, #32]",
    "stp x4, x5, [sp, #48]",
    "stp x6, x7, [sp, #64]",
    "mov x0, x17",
    "add x1, sp, #16",
    "bl {see_to}",
    "mov x16, x0",
    "ldp x0, x1, [sp, #16]",
    "ldp x2, x3, [sp, #32]",
    "ldp x4, x5, [sp, #48]",
    "ldp x6, x7, [sp, #64]",
    "ldp x29, x30, [sp], #80",
    ".cfi_restore x29",
    ".cfi_restore x30",
    ".cfi_adjust_cfa_offset -80",
    "br x16",
    ".cfi_endproc",
    ".popsection",
    count = const FUNCTIONS.len(),
    see_to = sym see_to,
);
