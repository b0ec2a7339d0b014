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

    #[inline(never)]
    fn within(most: usize) -> Vec<u64> {
        let found = callers(most);
        std::hint::black_box(found)
    }

    #[test]
    fn the_innermost_call_comes_first() {
        let found = within(64);
        let functions = [callers as *const () as u64, within as *const () as u64];
        let at = |start: u64| {
            let near = |address: &u64| (start..start + 4096).contains(address);
            found.iter().position(near)
        };
        assert!(
            at(functions[0]).or(Some(0)) <= at(functions[1]),
            "{found:x?}"
        );
        assert!(at(functions[1]).is_some(), "{found:x?}");
        assert!(found.len() > 3, "{found:x?}");
        assert_eq!(within(2).len(), 2);
    }
}
