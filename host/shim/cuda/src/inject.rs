//! Failures on request, for tests of what programs and the tool do about them.
//!
//! `CUDARUN_SIM_FAIL=cuLaunchKernel#3=719,cuMemAlloc_v2#1=2` lets the third call of one exported
//! function return 719, and the first of another 2, without doing anything.
//! See docs/adding-a-test.md.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use driver::sys::{CUresult, ENTRY_POINTS, SYMBOLS};

/// Holds the failures.
const VARIABLE: &str = "CUDARUN_SIM_FAIL";

/// One call that fails.
#[derive(Debug)]
struct Failure {
    symbol: &'static str,
    /// Which call, counted from 1 over all threads of the process.
    nth: u64,
    code: CUresult,
    /// Calls so far.
    calls: AtomicU64,
}

/// The code that this call of an exported function returns instead of doing something.
///
/// Where the variable makes no sense, every call fails, so that no test passes by a misspelling.
pub(crate) fn failure(symbol: &str) -> Option<CUresult> {
    static FAILURES: OnceLock<Option<Vec<Failure>>> = OnceLock::new();
    let failures = FAILURES.get_or_init(|| {
        let text = std::env::var_os(VARIABLE).unwrap_or_default();
        match parse(&text.to_string_lossy()) {
            Ok(failures) => Some(failures),
            Err(why) => {
                say(&format!("{VARIABLE}: {why}"));
                None
            }
        }
    });
    match failures {
        Some(failures) => first(failures, symbol),
        None => Some(CUresult::INVALID_VALUE),
    }
}

/// The code of the one whose turn it is; each of them counts the call.
fn first(failures: &[Failure], symbol: &str) -> Option<CUresult> {
    let codes = failures.iter().map(|failure| failure.now(symbol));
    codes.fold(None, Option::or)
}

impl Failure {
    /// Counts a call; the code if it is the one.
    fn now(&self, symbol: &str) -> Option<CUresult> {
        let counted = self.symbol == symbol;
        (counted && self.calls.fetch_add(1, Ordering::Relaxed) + 1 == self.nth).then_some(self.code)
    }
}

fn parse(text: &str) -> Result<Vec<Failure>, String> {
    let entries = text.split(',').map(str::trim);
    entries
        .filter(|entry| !entry.is_empty())
        .map(|entry| one(entry).map_err(|why| format!("`{entry}`: {why}")))
        .collect()
}

fn one(entry: &str) -> Result<Failure, String> {
    let form = || "expected FUNCTION#CALL=CODE, such as cuMemAlloc_v2#1=2".to_owned();
    let (call, code) = entry.split_once('=').ok_or_else(form)?;
    let (name, nth) = call.split_once('#').ok_or_else(form)?;
    let Some(symbol) = SYMBOLS.iter().find(|symbol| **symbol == name) else {
        return Err(unknown(name));
    };
    let nth = nth.parse().ok().filter(|nth| *nth > 0);
    let nth = nth.ok_or("calls are counted from 1")?;
    let code = code.parse().ok().map(CUresult);
    let code = code.filter(|code| *code != CUresult::SUCCESS && code.name().is_some());
    Ok(Failure {
        symbol,
        nth,
        code: code.ok_or("the code is not the number of an error of cuda.h")?,
        calls: AtomicU64::new(0),
    })
}

/// Says which symbols a name without its version may have meant.
fn unknown(name: &str) -> String {
    let rows = ENTRY_POINTS.iter().filter(|row| row.base == name);
    let symbols: Vec<&str> = rows.flat_map(|row| row.symbols).copied().collect();
    match symbols[..] {
        [] => format!("the simulated driver exports no {name}"),
        _ => format!(
            "the simulated driver exports no {name}, but {}",
            symbols.join(", ")
        ),
    }
}

pub(crate) fn say(text: &str) {
    os::terminal::say(&format!("{text}; every call of the driver fails"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_call_fails_and_no_other() {
        let failures = parse("cuMemAlloc_v2#2=2, cuMemAlloc_v2#3=999,cuInit#1=100").unwrap();
        let call = |symbol| first(&failures, symbol);
        let calls = [(); 4].map(|()| call("cuMemAlloc_v2"));
        let expected = [None, Some(CUresult(2)), Some(CUresult(999)), None];
        assert_eq!(calls, expected);
        assert_eq!(call("cuInit"), Some(CUresult::NO_DEVICE));
        assert_eq!(call("cuMemFree_v2"), None);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (text, why) in [
            ("cuInit", "expected FUNCTION#CALL=CODE"),
            ("cuInit=3", "expected FUNCTION#CALL=CODE"),
            ("cuInit#0=3", "counted from 1"),
            ("cuInit#x=3", "counted from 1"),
            ("cuInit#1=0", "not the number of an error"),
            ("cuInit#1=12345", "not the number of an error"),
            ("cuInit#1=CUDA_ERROR", "not the number of an error"),
            ("cuInit#1=3,cuMemAlloc#1=2", "but cuMemAlloc_v2"),
            ("cudaMalloc#1=2", "exports no cudaMalloc"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
