//! Races of kernels with what they launch, and of what kernels launch with each other.

use crate::advice::{Advice, kind};
use crate::log;
use crate::model::Access;
use crate::names::demangle;
use crate::rules::RuleId;

/// The kernel that has launched another one, and where.
pub(crate) fn launcher(by: &log::Launcher) -> String {
    let place = by.frames.first().map_or(String::new(), |frame| {
        format!(" at {}:{}", frame.file, frame.line)
    });
    format!("{}{place}", demangle(&by.kernel))
}

/// Describes such a race.
pub(crate) fn describe(race: &log::Race, accesses: &[Access; 2]) -> Advice {
    let [one, other] = accesses.each_ref().map(|access| match access.is_call() {
        true => access.function.as_str(),
        false => access.act().with_article(),
    });
    let what = match one == other {
        true => format!("{one} and another"),
        false => format!("{one} and {other}"),
    };
    let (launches, help) = match race.why {
        log::Why::Child => (
            "a kernel and the work that it launches",
            "make the access of the launching kernel before the launch, with `__syncthreads()` in \
             between if another thread of the block launches; or, if it needs the result of the \
             launched kernel, in a kernel that is launched after that one in the same stream, or into \
             `cudaStreamTailLaunch`: a kernel does not wait for kernels that it launches",
        ),
        _ => (
            "work that kernels launch",
            "launch the second after the first: in the same stream of one block, behind an event \
             (`cudaEventRecord`, `cudaStreamWaitEvent`), or into `cudaStreamTailLaunch`; the \
             default streams of different blocks are different streams",
        ),
    };
    Advice {
        rule: RuleId::Streams,
        kind: kind(accesses),
        message: format!(
            "race between {launches} on global memory: {what} access the same address in kernels that may run at the same time"
        ),
        help: help.to_owned(),
        cause: None,
    }
}
