//! PTX that the driver's compiler shall not take, for tests.
//!
//! `CUDARUN_SIM_REFUSE=218:TEXT,222:.version 9.1` lets every load of PTX with `TEXT` in it return 218, and every load
//! of another text 222, and say so in the log of errors as ptxas does. With `optimised 218:TEXT` only loads that do not
//! ask for level 0 do so. See docs/adding-a-test.md.

use driver::load::Refusal;
use driver::sys::CUresult;

/// Names codes and texts.
const VARIABLE: &str = "CUDARUN_SIM_REFUSE";

/// Why a text is refused, if it is; `plainly` when it is not to be optimised. Of a variable that makes no sense, everything is.
pub(crate) fn refusal(text: &str, plainly: bool) -> Option<Refusal> {
    let wanted = std::env::var(VARIABLE).ok()?;
    wanted.split(',').find_map(|one| {
        let (one, always) = match one.strip_prefix("optimised ") {
            Some(one) => (one, false),
            None => (one, true),
        };
        let parsed = one.split_once(':');
        let parsed = parsed.and_then(|(code, of)| Some((code.parse().ok()?, of)));
        let Some((code, of)) = parsed else {
            return Some(Refusal::new(
                CUresult::INVALID_VALUE,
                format!("{VARIABLE}: `{one}`: expected CODE:TEXT, such as 222:.version 9.1"),
            ));
        };
        if plainly && !always {
            return None;
        }
        let line = text[..text.find(of)?].matches('\n').count() + 1;
        Some(Refusal::new(
            CUresult(code),
            format!(
                "ptxas application ptx input, line {line}; error   : `{of}` is refused\nptxas fatal   : Ptx assembly aborted due to errors"
            ),
        ))
    })
}
