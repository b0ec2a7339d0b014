//! `cuGetProcAddress`: entry points by name and version.

use std::ffi::{c_char, c_int, c_void};

use driver::sys::{CUresult, ENTRY_POINTS, proc_address};

use crate::Answer;
use crate::exports::{EXPORTS, address};
use crate::pointer::Ptr;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const PER_THREAD: u64 = 2;

/// The newest signature that a caller compiled for `version` may expect, or why there is none.
fn find(name: &str, version: c_int, flags: u64) -> Result<&'static str, c_int> {
    let rows = ENTRY_POINTS.iter().filter(|entry| entry.base == name);
    let known = rows.clone().filter(|entry| entry.since <= version);
    match known.max_by_key(|entry| entry.since) {
        Some(entry) if flags & PER_THREAD != 0 => entry
            .symbols
            .last()
            .copied()
            .ok_or(proc_address::SYMBOL_NOT_FOUND),
        Some(entry) => entry
            .symbols
            .first()
            .copied()
            .ok_or(proc_address::SYMBOL_NOT_FOUND),
        None if rows.clone().next().is_some() => Err(proc_address::VERSION_NOT_SUFFICIENT),
        // A versioned name is not what this call is for, but says all there is to know.
        None => EXPORTS
            .iter()
            .find(|&&symbol| symbol == name)
            .copied()
            .ok_or(proc_address::SYMBOL_NOT_FOUND),
    }
}

pub(crate) fn cuGetProcAddress(
    symbol: Ptr<c_char>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: u64,
    status: Ptr<c_int>,
) -> Answer {
    let found = find(&symbol.text()?, version, flags);
    status.set_if(found.err().unwrap_or(proc_address::SUCCESS));
    let found = found.ok().and_then(address);
    function.set(found.unwrap_or(std::ptr::null_mut()))?;
    found.map(drop).ok_or(CUresult::NOT_FOUND)
}

pub(crate) fn cuGetProcAddress_v1(
    symbol: Ptr<c_char>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: u64,
) -> Answer {
    cuGetProcAddress(symbol, function, version, flags, Ptr::NULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_and_the_flag_choose_the_symbol() {
        for (name, version, flags, symbol) in [
            ("cuMemAlloc", 12000, 0, Ok("cuMemAlloc_v2")),
            (
                "cuMemAlloc",
                2000,
                0,
                Err(proc_address::VERSION_NOT_SUFFICIENT),
            ),
            ("cuMemAdvise", 12010, 0, Ok("cuMemAdvise")),
            ("cuMemAdvise", 13000, 0, Ok("cuMemAdvise_v2")),
            ("cuGetProcAddress", 11030, 0, Ok("cuGetProcAddress")),
            ("cuGetProcAddress", 12000, 0, Ok("cuGetProcAddress_v2")),
            ("cuLaunchKernel", 13000, 2, Ok("cuLaunchKernel_ptsz")),
            ("cuMemcpy", 13000, 2, Ok("cuMemcpy_ptds")),
            ("cuInit", 13000, 2, Ok("cuInit")),
            ("cuCtxCreate", 12040, 0, Ok("cuCtxCreate_v3")),
            ("cuMemAlloc_v2", 13000, 0, Ok("cuMemAlloc_v2")),
            (
                "cuNoSuchThing",
                13000,
                0,
                Err(proc_address::SYMBOL_NOT_FOUND),
            ),
        ] {
            assert_eq!(
                find(name, version, flags),
                symbol,
                "{name} {version} {flags}"
            );
        }
    }

    #[test]
    fn every_symbol_has_an_address_of_its_own() {
        let mut seen = std::collections::BTreeMap::new();
        for symbol in EXPORTS
            .iter()
            .filter(|&&symbol| symbol != driver::sys::MARKER)
        {
            let address = address(symbol).expect(symbol);
            assert!(!address.is_null());
            seen.insert(*symbol, address);
        }
        assert_eq!(seen.len() + 1, EXPORTS.len());
    }
}
