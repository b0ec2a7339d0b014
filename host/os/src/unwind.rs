//! The calls that the calling thread is in, as addresses of code.
//!
//! The compiler's own unwinder finds them, which is in every Rust program; what the addresses mean is for others to find
//! out, later and in another process.

use std::ffi::{c_int, c_void};

/// What the unwinder knows of a call.
#[repr(C)]
struct Context {
    _private: [u8; 0],
}

/// `_URC_NO_REASON`: go on.
const GO_ON: c_int = 0;
/// `_URC_END_OF_STACK`: do not.
const END: c_int = 5;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut Context, *mut c_void) -> c_int,
        into: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut Context, before: *mut c_int) -> usize;
}

/// The addresses so far, at most so many.
struct Callers {
    found: Vec<u64>,
    most: usize,
}

/// Addresses inside of the calls that the thread is in, innermost first, `most` of them.
pub fn callers(most: usize) -> Vec<u64> {
    let mut callers = Callers {
        found: Vec::with_capacity(most),
        most,
    };
    let into: *mut Callers = &mut callers;
    // SAFETY: the unwinder calls `visit` with this pointer before it returns, and not afterwards.
    unsafe { _Unwind_Backtrace(visit, into.cast()) };
    callers.found
}

extern "C" fn visit(context: *mut Context, into: *mut c_void) -> c_int {
    // SAFETY: it is the pointer that `callers` has given, and nobody else uses it meanwhile.
    let callers = unsafe { &mut *into.cast::<Callers>() };
    let mut before = 0;
    // SAFETY: the unwinder gives a context that is valid during this call.
    let address = unsafe { _Unwind_GetIPInfo(context, &mut before) } as u64;
    if address == 0 || callers.found.len() == callers.most {
        return END;
    }
    // A call returns behind itself, which may be another line.
    callers.found.push(match before {
        0 => address - 1,
        _ => address,
    });
    GO_ON
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The callers, seen from so many calls of this function within each other.
    #[inline(never)]
    fn nested(calls: usize, most: usize) -> Vec<u64> {
        std::hint::black_box(match calls {
            1 => callers(most),
            _ => nested(calls - 1, most),
        })
    }

    /// What calls `nested`, from one place whatever it asks for.
    #[inline(never)]
    fn outside(calls: usize, most: usize) -> Vec<u64> {
        std::hint::black_box(nested(calls, most))
    }

    #[test]
    fn the_innermost_call_comes_first() {
        let (few, many) = (outside(2, 64), outside(6, 64));
        let repeated = (1..many.len()).find(|&at| many[at - 1] == many[at]);
        let first = repeated.map(|at| at - 1).unwrap_or_default();
        let shown = format!("{few:x?}, {many:x?}");
        assert_eq!(many.len(), few.len() + 4, "{shown}");
        assert_eq!(many[..=first], few[..=first], "{shown}");
        assert_eq!(many[first..first + 5], [few[first]; 5], "{shown}");
        assert_eq!(many[first + 5], few[first + 1], "{shown}");
        assert_ne!(many[first + 4], many[first + 5], "{shown}");
        assert_eq!(outside(6, 2), many[..2]);
    }
}
