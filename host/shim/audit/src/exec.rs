//! The functions of the C library that start a program, each with a step before it that sees to the environment.
//!
//! A step keeps the registers in which integers and addresses are passed, which is all that these functions take,
//! however many arguments there are, and then jumps to the function itself.
//! What the step of a function knows of the program that is started is looked at too ([`outside`]).

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{LinkMap, outside, pass_on, redirect};

/// The environment that a function hands on.
#[derive(Clone, Copy)]
enum Hands {
    /// The argument with this number, from 0.
    Argument(usize),
    /// The argument behind the null pointer that ends a list of arguments.
    Last,
    /// That of the process.
    Own,
    /// That of the system call that the first argument numbers, if it takes one.
    Call,
}

/// How a function names the program that it starts.
#[derive(Clone, Copy)]
enum Names {
    /// By its path, in the argument with this number.
    Path(usize),
    /// By its path, or its name in one of the folders of `PATH`.
    Search(usize),
    /// It is the shell.
    Shell,
    /// By a descriptor, in its first argument, or by what only the system knows.
    Otherwise,
}

const FUNCTIONS: [(&CStr, Hands, Names); 16] = [
    (c"execve", Hands::Argument(2), Names::Path(0)),
    (c"execvpe", Hands::Argument(2), Names::Search(0)),
    (c"fexecve", Hands::Argument(2), Names::Otherwise),
    (c"execveat", Hands::Argument(3), Names::Otherwise),
    (c"posix_spawn", Hands::Argument(5), Names::Path(1)),
    (c"posix_spawnp", Hands::Argument(5), Names::Search(1)),
    (c"pidfd_spawn", Hands::Argument(5), Names::Path(1)),
    (c"pidfd_spawnp", Hands::Argument(5), Names::Search(1)),
    (c"execle", Hands::Last, Names::Path(0)),
    (c"execv", Hands::Own, Names::Path(0)),
    (c"execvp", Hands::Own, Names::Search(0)),
    (c"execl", Hands::Own, Names::Path(0)),
    (c"execlp", Hands::Own, Names::Search(0)),
    (c"system", Hands::Own, Names::Shell),
    (c"popen", Hands::Own, Names::Shell),
    (c"syscall", Hands::Call, Names::Otherwise),
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
    let index = FUNCTIONS.iter().position(|(known, ..)| *known == name)?;
    FOUND[index].store(
        std::ptr::with_exposed_provenance_mut(found),
        Ordering::Release,
    );
    Some((&raw const cudarun_steps[index]).expose_provenance())
}

/// The arguments of a call: those in registers, which a step has kept, and those that the caller has put on the stack.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Arguments(*mut *const c_void);

impl Arguments {
    /// The place of one.
    ///
    /// # Safety
    /// The call has so many.
    unsafe fn at(self, number: usize) -> *mut *const c_void {
        // Between both are what a step keeps besides, and where it returns to.
        #[cfg(target_arch = "x86_64")]
        let number = if number < 6 { number } else { number + 4 };
        // SAFETY: by the contract.
        unsafe { self.0.add(number) }
    }

    /// One that is a string, unless it is null.
    ///
    /// # Safety
    /// The call has it, and it is a string or null.
    unsafe fn text(self, number: usize) -> Option<&'static CStr> {
        // SAFETY: by the contract.
        unsafe {
            let text = *self.at(number);
            (!text.is_null()).then(|| CStr::from_ptr(text.cast()))
        }
    }
}

/// Sees to the environment before the function with this number; the function.
extern "C" fn see_to(index: usize, arguments: Arguments) -> *const c_void {
    let (_, hands, names) = FUNCTIONS[index];
    // SAFETY: the C functions have the arguments that the table says; a list of arguments ends with a null pointer.
    // What is taken for an environment or a path is one.
    unsafe {
        let given = match hands {
            Hands::Argument(number) => Some(number),
            Hands::Last => {
                let end = (1..).find(|&number| (*arguments.at(number)).is_null());
                end.map(|end| end + 1)
            }
            Hands::Call => match (*arguments.at(0)).expose_provenance() as libc::c_long {
                libc::SYS_execve => {
                    arguments.text(1).into_iter().for_each(outside::look_at);
                    Some(3)
                }
                libc::SYS_execveat => Some(4),
                _ => None,
            },
            Hands::Own => {
                if let Some(environ) = environ() {
                    *environ = pass_on::extended(*environ);
                }
                None
            }
        };
        if let Some(number) = given {
            let given = arguments.at(number);
            *given = pass_on::extended((*given).cast()).cast();
        }
        match names {
            Names::Path(number) => {
                arguments
                    .text(number)
                    .into_iter()
                    .for_each(outside::look_at);
            }
            Names::Search(number) => {
                arguments
                    .text(number)
                    .into_iter()
                    .for_each(outside::look_for);
            }
            Names::Shell => outside::look_at(c"/bin/sh"),
            Names::Otherwise => {}
        }
    }
    FOUND[index].load(Ordering::Acquire)
}

/// Puts the steps into the program's own file where it calls functions without a procedure linkage table: the loader
/// tells of no such call. Everything is loaded and found by then, and nothing of it runs.
pub(crate) fn put_steps() {
    let [program, library] = HOLDERS.each_ref().map(|holder| {
        // SAFETY: maps of files that are never unloaded.
        unsafe { holder.load(Ordering::Acquire).as_ref() }
    });
    let (Some(program), Some(library)) = (program, library) else {
        return;
    };
    let put = |name: &CStr, slot: *mut usize| {
        if !FUNCTIONS.iter().any(|(known, ..)| *known == name) {
            return;
        }
        // SAFETY: the file stays loaded, and the loader has filled the slot in.
        let (own, found) = unsafe { (redirect::find(library, name), *slot) };
        // Another library may stand in front of the C library.
        if own != Some(found) {
            return;
        }
        if let Some(step) = step_before(name, found) {
            redirect::overwrite(slot, step);
        }
    };
    // SAFETY: the program stays loaded.
    unsafe { redirect::each_slot(program, put) };
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
