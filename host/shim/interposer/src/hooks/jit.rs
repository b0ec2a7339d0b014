//! Options for the driver's compiler, and what it says.

use std::ffi::{c_uint, c_void};

use driver::pointer::Ptr;
use driver::sys::*;

use crate::own::CompilerOption;

/// Bytes that the compiler may write about one text.
const LOG_BYTES: usize = 8 << 10;
/// Characters of its first line that are reported.
const LINE_LENGTH: usize = 300;

/// How a text is to be compiled.
#[derive(Clone, Copy, Default)]
pub(super) struct Compile {
    /// How many registers a thread may have, if that is to be limited.
    pub(super) registers: Option<u32>,
    /// Without optimisation, for texts that the compiler fails on otherwise.
    pub(super) plainly: bool,
}

/// Where the driver's compiler says why it refuses a text, unless the program wants to read that itself.
pub(super) struct Log(Vec<u8>);

impl Log {
    pub(super) fn new() -> Log {
        Log(vec![0; LOG_BYTES])
    }

    /// The first line that says something.
    pub(super) fn first_line(&self) -> Option<String> {
        let end = self.0.iter().position(|&byte| byte == 0);
        let text = String::from_utf8_lossy(&self.0[..end.unwrap_or(self.0.len())]);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.map(|line| line.chars().take(LINE_LENGTH).collect())
    }

    /// A driver may compile a library once more where it is next needed, and may not have forgotten by then where to write.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

/// A program's options for the driver's compiler, as it has given them.
#[derive(Clone, Copy)]
pub(super) struct Jit {
    pub(super) count: c_uint,
    pub(super) names: *mut CUjit_option,
    pub(super) values: *mut *mut c_void,
}

/// Copies of such options, for several loads: the driver writes results into the array of values, over what
/// it has read there.
pub(super) struct JitOptions {
    given: Jit,
    /// None where an array is missing, which is for the driver to refuse.
    read: Option<Vec<(CUjit_option, *mut c_void)>>,
}

impl JitOptions {
    /// # Safety
    /// There are `count` options and values, or none, for as long as the result lives.
    pub(super) unsafe fn new(given: Jit) -> JitOptions {
        // SAFETY: by the contract.
        let (of, with) = unsafe { (Ptr::new(given.names), Ptr::new(given.values)) };
        let one = |index| Some((of.at(index).get().ok()?, with.at(index).get().ok()?));
        JitOptions {
            given,
            read: (0..given.count as usize).map(one).collect(),
        }
    }

    /// Those that say how to compile, with their values.
    pub(super) fn numbers(&self) -> Vec<CompilerOption> {
        let how = [
            jit_option::MAX_REGISTERS,
            jit_option::THREADS_PER_BLOCK,
            jit_option::OPTIMIZATION_LEVEL,
        ];
        let given = self.read.iter().flatten();
        let given = given.filter(|(name, _)| how.contains(name));
        let given = given.map(|&(name, value)| CompilerOption {
            name,
            value: value.addr(),
        });
        given.collect()
    }

    /// Asks the driver for a load with these options, and with what `how` says and a log of errors where
    /// the program says nothing of them itself. After success the program finds the results where it looks for
    /// them.
    pub(super) fn load(
        &self,
        how: Compile,
        log: &mut Log,
        ask: impl FnOnce(c_uint, *mut CUjit_option, *mut *mut c_void) -> CUresult,
    ) -> CUresult {
        let Some(read) = &self.read else {
            let Jit {
                count,
                names,
                values,
            } = self.given;
            return ask(count, names, values);
        };
        let mut all = read.clone();
        let says = |options: &[_]| read.iter().any(|(name, _)| options.contains(name));
        // The values of some options are no pointers but the numbers themselves.
        let number = std::ptr::without_provenance_mut::<c_void>;
        let few = [jit_option::MAX_REGISTERS, jit_option::THREADS_PER_BLOCK];
        if let Some(limit) = how.registers
            && !says(&few)
        {
            all.push((jit_option::MAX_REGISTERS, number(limit as usize)));
        }
        if how.plainly && !says(&[jit_option::OPTIMIZATION_LEVEL]) {
            all.push((jit_option::OPTIMIZATION_LEVEL, number(0)));
        }
        let errors = [
            jit_option::ERROR_LOG_BUFFER,
            jit_option::ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        if !says(&errors) {
            let values = [log.0.as_mut_ptr().cast(), number(log.0.len())];
            all.extend(errors.into_iter().zip(values));
        }
        let (mut names, mut values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let count = names.len() as c_uint;
        let result = ask(count, names.as_mut_ptr(), values.as_mut_ptr());
        if result == CUresult::SUCCESS {
            for (index, value) in values.into_iter().take(read.len()).enumerate() {
                // SAFETY: the program's array has as many values as were read of it.
                unsafe { self.given.values.add(index).write(value) };
            }
        }
        result
    }
}
