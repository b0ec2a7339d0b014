//! What the hooked functions do. The table is in [`crate::hooked`].

use std::ffi::{CStr, c_char, c_int, c_void};

use driver::sys::*;

use crate::resolve::{self, Hooked};
use runtime::progress;

/// `cuGetProcAddress` before CUDA 12.
pub(crate) unsafe fn cuGetProcAddress_v1(
    real: &'static Api,
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    driver_version: c_int,
    flags: u64,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuGetProcAddress_v1(symbol, pfn, driver_version, flags) };
    // SAFETY: the driver has read the name and written the address.
    unsafe { replace(real, result, symbol, pfn, driver_version, flags) }
    result
}

/// Finds what the driver finds, and hands out our function where there is one.
pub(crate) unsafe fn cuGetProcAddress(
    real: &'static Api,
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    driver_version: c_int,
    flags: u64,
    status_out: *mut CUdriverProcAddressQueryResult,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuGetProcAddress(symbol, pfn, driver_version, flags, status_out) };
    // SAFETY: the driver has read the name and written the address.
    unsafe { replace(real, result, symbol, pfn, driver_version, flags) }
    result
}

/// Puts our function in place of the driver's.
///
/// # Safety
/// After success `symbol` is a C string, and `pfn` may be read and written.
unsafe fn replace(
    real: &Api,
    result: CUresult,
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: u64,
) {
    if result != CUresult::SUCCESS || symbol.is_null() || pfn.is_null() {
        return;
    }
    // SAFETY: the driver has succeeded with this name and this place for the answer.
    let (name, answer) = unsafe { (CStr::from_ptr(symbol), *pfn) };
    let (Ok(name), Some(behind)) = (name.to_str(), resolve::real()) else {
        return;
    };
    let asked = Asked {
        name,
        version,
        flags,
    };
    let exported = |address| behind.exports(address);
    match asked.of(answer.addr(), &behind.hooked, exported, || version_of(real)) {
        Answer::Theirs => {}
        Answer::Ours(address) => {
            // SAFETY: as above.
            unsafe { *pfn = std::ptr::with_exposed_provenance_mut(address) }
        }
        Answer::Unknown => progress::say_once(&format!(
            "the driver's {name} of CUDA {}.{} is not known: calls of it are not watched",
            version / 1000,
            version % 1000 / 10,
        )),
    }
}

/// 1000 * major + 10 * minor; the largest number where the driver does not say.
fn version_of(real: &Api) -> c_int {
    let mut version = 0;
    // SAFETY: `version` outlives the call.
    match unsafe { real.cuDriverGetVersion(&mut version) } {
        CUresult::SUCCESS => version,
        _ => c_int::MAX,
    }
}

/// What `cuGetProcAddress` was asked for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    name: &'a str,
    version: c_int,
    flags: u64,
}

/// Which function a program gets.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The driver's: we have no hook for it.
    Theirs,
    /// Ours, at this address.
    Ours(usize),
    /// The driver's, although it may be one that we should hook.
    Unknown,
}

impl Asked<'_> {
    /// Judges the address that the driver has answered.
    ///
    /// An address that the driver exports says which symbol it is. A driver that answers with others
    /// is understood by name and version, unless that may mean a signature that we do not know:
    /// because our table lacks it, or because both the program and the driver are newer.
    fn of(
        self,
        answer: usize,
        hooked: &[Hooked],
        exported: impl FnOnce(usize) -> bool,
        driver_version: impl FnOnce() -> c_int,
    ) -> Answer {
        // Another function of the same address, for want of a better one, is none of ours.
        let named = |hooked: &&Hooked| hooked.base == self.name || hooked.symbol == self.name;
        let mut candidates = hooked.iter().filter(named).peekable();
        if answer == 0 || candidates.peek().is_none() {
            return Answer::Theirs;
        }
        let expected = find_known_symbol(self.name, self.version, self.flags);
        let same: Vec<&Hooked> = candidates.filter(|hooked| hooked.real == answer).collect();
        let best = same.iter().find(|hooked| Some(hooked.symbol) == expected);
        if let Some(hooked) = best.or(same.first()) {
            return Answer::Ours(hooked.ours);
        }
        if exported(answer) {
            return Answer::Theirs;
        }
        // A driver has nothing newer than itself.
        let version = self.version.min(driver_version());
        let expected = find_known_symbol(self.name, version, self.flags);
        let by_name = hooked.iter().find(|hooked| Some(hooked.symbol) == expected);
        match by_name {
            Some(hooked) if version <= CUDA_VERSION => Answer::Ours(hooked.ours),
            _ => Answer::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOKED: [Hooked; 5] = [
        hooked("cuCtxSynchronize", "cuCtxSynchronize", 5, 105),
        hooked("cuMemAdvise", "cuMemAdvise", 10, 110),
        hooked("cuMemAdvise_v2", "cuMemAdvise", 20, 120),
        // As where a linker has folded equal functions.
        hooked("cuMemcpy", "cuMemcpy", 30, 130),
        hooked("cuMemcpy_ptds", "cuMemcpy", 30, 131),
    ];

    const fn hooked(symbol: &'static str, base: &'static str, real: usize, ours: usize) -> Hooked {
        Hooked {
            symbol,
            base,
            real,
            ours,
        }
    }

    fn ask(name: &str, version: c_int, flags: u64, answer: usize, driver: c_int) -> Answer {
        let asked = Asked {
            name,
            version,
            flags,
        };
        asked.of(answer, &HOOKED, |address| address == 40, || driver)
    }

    #[test]
    fn the_drivers_address_decides() {
        assert_eq!(ask("cuMemAdvise", 13000, 0, 20, 13000), Answer::Ours(120));
        // Whatever our table says of versions.
        assert_eq!(ask("cuMemAdvise", 13000, 0, 10, 99000), Answer::Ours(110));
        assert_eq!(
            ask("cuMemAdvise_v2", 13000, 0, 20, 99000),
            Answer::Ours(120)
        );
        // The table tells folded functions apart.
        assert_eq!(ask("cuMemcpy", 13000, 0, 30, 13000), Answer::Ours(130));
        assert_eq!(ask("cuMemcpy", 13000, 2, 30, 13000), Answer::Ours(131));
        // The same address under another name is another function.
        assert_eq!(ask("cuInit", 13000, 0, 20, 13000), Answer::Theirs);
        assert_eq!(ask("cuMemAdvise", 13000, 0, 0, 13000), Answer::Theirs);
    }

    #[test]
    fn other_addresses_are_known_by_name_and_version() {
        assert_eq!(ask("cuMemAdvise", 12010, 0, 1, 13000), Answer::Ours(110));
        assert_eq!(ask("cuMemAdvise", 12020, 0, 1, 13000), Answer::Ours(120));
        assert_eq!(ask("cuMemcpy", 12020, 2, 1, 13000), Answer::Ours(131));
        // A newer driver still gives a program of our time what it was compiled for.
        assert_eq!(ask("cuMemAdvise", 13000, 0, 1, 14000), Answer::Ours(120));
        assert_eq!(ask("cuMemAdvise", 14000, 0, 1, 13000), Answer::Ours(120));
        assert_eq!(ask("cuMemAdvise", 14000, 0, 1, 14000), Answer::Unknown);
        assert_eq!(ask("cuMemAdvise", 14000, 0, 1, c_int::MAX), Answer::Unknown);
        assert_eq!(ask("cuMemAdvise", 13000, 0, 1, 12010), Answer::Ours(110));
        // Older than anything that we know under this name, and newer than what our table has.
        assert_eq!(ask("cuMemAdvise", 2000, 0, 1, 13000), Answer::Unknown);
        assert_eq!(
            ask("cuCtxSynchronize", 12000, 0, 1, 13000),
            Answer::Ours(105)
        );
        assert_eq!(ask("cuCtxSynchronize", 13000, 0, 1, 13000), Answer::Unknown);
        // An exported function that is not hooked is certainly another one.
        assert_eq!(ask("cuCtxSynchronize", 12000, 0, 40, 13000), Answer::Theirs);
    }
}
