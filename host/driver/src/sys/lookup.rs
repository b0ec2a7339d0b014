//! Entry points by name and version, as `cuGetProcAddress` is asked for them.

use std::ffi::c_int;

use super::{ENTRY_POINTS, FUNCTION_VERSIONS, SYMBOLS, proc_address};

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const PER_THREAD: u64 = 2;

/// The symbol with the newest signature that a caller compiled for `version` may expect.
///
/// `version` is 1000 * major + 10 * minor, `flags` are those of `cuGetProcAddress`.
///
/// # Errors
/// The [`proc_address`] status that says why there is none.
pub fn find_symbol(name: &str, version: c_int, flags: u64) -> Result<&'static str, c_int> {
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
        // A versioned name is not what the call is for, but says all there is to know.
        None => SYMBOLS
            .iter()
            .find(|&&symbol| symbol == name)
            .copied()
            .ok_or(proc_address::SYMBOL_NOT_FOUND),
    }
}

/// As [`find_symbol`], but nothing where the headers know a signature that the table does not.
///
/// [`find_symbol`] answers with an older function then, as the simulated driver has no other.
pub fn find_known_symbol(name: &str, version: c_int, flags: u64) -> Option<&'static str> {
    let symbol = find_symbol(name, version, flags).ok()?;
    let row = ENTRY_POINTS
        .iter()
        .find(|entry| entry.symbols.contains(&symbol))?;
    let newest = FUNCTION_VERSIONS
        .iter()
        .filter(|(base, since)| *base == name && *since <= version)
        .map(|(_, since)| *since)
        .max();
    newest
        .is_none_or(|newest| newest == row.since)
        .then_some(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_that_only_the_headers_know_is_nobodys() {
        for (name, version, symbol) in [
            ("cuStreamGetCtx", 12000, Some("cuStreamGetCtx")),
            ("cuStreamGetCtx", 12050, None),
            ("cuCtxSynchronize", 12080, Some("cuCtxSynchronize")),
            ("cuCtxSynchronize", 13000, Some("cuCtxSynchronize_v2")),
            ("cuCtxGetDevice", 12080, Some("cuCtxGetDevice")),
            ("cuCtxGetDevice", 13000, None),
            ("cuMemAdvise", 13000, Some("cuMemAdvise_v2")),
            ("cuMemAlloc_v2", 13000, Some("cuMemAlloc_v2")),
            ("cuMemAlloc", 2000, None),
            ("cuLaunchKernel", 13000, Some("cuLaunchKernel")),
        ] {
            assert_eq!(
                find_known_symbol(name, version, 0),
                symbol,
                "{name} {version}"
            );
        }
    }

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
                find_symbol(name, version, flags),
                symbol,
                "{name} {version} {flags}"
            );
        }
    }
}
