//! Races of kernels with what they launch, and of what kernels launch with each other.

use super::advice::{Advice, kind, verb};
use super::model::Access;
use crate::log;
use crate::names::demangle;

const RULE: &str = "CR014";

/// The kernel that has launched another one, and where.
pub(super) fn launcher(by: &log::Launcher) -> String {
    let place = by.frames.first().map_or(String::new(), |frame| {
        format!(" at {}:{}", frame.file, frame.line)
    });
    format!("{}{place}", demangle(&by.kernel))
}

/// Describes such a race.
pub(super) fn describe(race: &log::Race, accesses: &[Access; 2]) -> Advice {
    let [one, other] = accesses.each_ref().map(|access| match access.is_call() {
        true => access.function.as_str(),
        false => verb(access),
    });
    let what = match one == other {
        true => format!("{one} and another"),
        false => format!("{one} and {other}"),
    };
    let (who, help) = match race.why {
        log::Why::Child => (
            "a kernel and what it launches",
            "a kernel never waits for what it launches: let the first access come before the launch, \
             behind `__syncthreads()` if another thread of the block launches; what needs the \
             results of the launched kernel goes into a launch behind it in the same stream, or into \
             `cudaStreamTailLaunch`",
        ),
        _ => (
            "what kernels launch",
            "launch the second behind the first: in the same stream of one block, behind an event \
             (`cudaEventRecord`, `cudaStreamWaitEvent`), or into `cudaStreamTailLaunch`; the \
             default streams of different blocks are different streams",
        ),
    };
    Advice {
        rule: RULE,
        kind: kind(accesses),
        message: format!(
            "race between {who} on global memory: {what} touch the same address in kernels that may run at the same time"
        ),
        help: help.to_owned(),
    }
}
