//! `cuGetProcAddress`: entry points by name and version.

use std::ffi::{c_char, c_int, c_void};

use driver::sys::{CUresult, find_symbol, proc_address};

use crate::Answer;
use crate::exports::address;
use crate::pointer::Ptr;

pub(crate) fn cuGetProcAddress(
    symbol: Ptr<c_char>,
    function: Ptr<*mut c_void>,
    version: c_int,
    flags: u64,
    status: Ptr<c_int>,
) -> Answer {
    let found = find_symbol(&symbol.text()?, version, flags);
    // What is missing here is found nowhere.
    let found = found.and_then(|name| address(name).ok_or(proc_address::SYMBOL_NOT_FOUND));
    status.set_if(found.err().unwrap_or(proc_address::SUCCESS));
    let found = found.ok();
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
    use crate::exports::EXPORTS;

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
