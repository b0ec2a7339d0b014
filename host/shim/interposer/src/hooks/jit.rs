//! Options for the driver's compiler.

use std::ffi::{c_uint, c_void};

use driver::pointer::Ptr;
use driver::sys::*;

/// A program's options for the driver's compiler, as it has given them: count, options and values.
pub(super) type Jit = (c_uint, *mut CUjit_option, *mut *mut c_void);

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
        let (count, names, values) = given;
        // SAFETY: by the contract.
        let (of, with) = unsafe { (Ptr::new(names), Ptr::new(values)) };
        let one = |index| Some((of.at(index).get().ok()?, with.at(index).get().ok()?));
        JitOptions {
            given,
            read: (0..count as usize).map(one).collect(),
        }
    }

    /// Asks the driver for a load with these options, and with a limit of registers where the program
    /// says nothing of them itself. After success the program finds the results where it looks for them.
    pub(super) fn load(
        &self,
        limit: Option<u32>,
        ask: impl FnOnce(c_uint, *mut CUjit_option, *mut *mut c_void) -> CUresult,
    ) -> CUresult {
        let Some(read) = &self.read else {
            let (count, names, values) = self.given;
            return ask(count, names, values);
        };
        let mut all = read.clone();
        let said = [jit_option::MAX_REGISTERS, jit_option::THREADS_PER_BLOCK];
        if let Some(limit) = limit
            && !all.iter().any(|(name, _)| said.contains(name))
        {
            // The value of this option is no pointer but the number itself.
            let value = std::ptr::without_provenance_mut(limit as usize);
            all.push((jit_option::MAX_REGISTERS, value));
        }
        let (mut names, mut values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let count = names.len() as c_uint;
        let result = ask(count, names.as_mut_ptr(), values.as_mut_ptr());
        if result == CUresult::SUCCESS {
            for (index, value) in values.into_iter().take(read.len()).enumerate() {
                // SAFETY: the program's array has as many values as were read of it.
                unsafe { self.given.2.add(index).write(value) };
            }
        }
        result
    }
}
