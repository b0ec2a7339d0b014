//! What is wrong with the use of a barrier or a warp operation, and what repairs it.

use crate::advice::Advice;
use crate::causes::Cause;
use crate::log::Misuse;
use crate::model::{Access, Misused, RaceKind};
use crate::rules::RuleId;

/// True when it is reported as a warning: devices do what the program meant, though nothing promises it.
pub(crate) fn is_harmless(misuse: Misuse) -> bool {
    misuse == Misuse::Exited
}

/// Describes a misuse.
pub(crate) fn describe(misuse: Misuse, accesses: &[Access; 2]) -> Advice {
    let (kind, message, help) = match misuse {
        Misuse::Divergent => (
            Misused::Divergent,
            "threads of one warp wait at different barriers",
            "move `__syncthreads()` out of the condition: all threads of a warp must reach the same one",
        ),
        Misuse::Counts => (
            Misused::MismatchedCounts,
            "threads arrive at one barrier with different thread counts",
            "name the same number of threads at every `bar.sync`, `bar.arrive` and `bar.red` of a barrier",
        ),
        Misuse::PartOfWarp => (
            Misused::Count,
            "the thread count of a barrier is not a multiple of 32",
            "round the number of threads up to a multiple of 32: barriers count whole warps",
        ),
        Misuse::Again => (
            Misused::ExcessArrival,
            "a thread arrives at a barrier again before the barrier has completed, or before the thread has waited for it",
            "let the thread wait for the barrier (`bar.sync`, `barrier.cluster.wait`) before it arrives again, or use a second barrier",
        ),
        Misuse::Exited => (
            Misused::ExitBeforeBarrier,
            "threads exit without reaching a barrier at which the rest of the block waits",
            "let every thread of the block reach `__syncthreads()`: move it out of the condition or loop that it is in; if threads return early, put the work into a branch instead, without the barrier",
        ),
        Misuse::Skipped => (
            Misused::SkippedBarrier,
            "threads pass by a barrier that the rest of the block waits at",
            "let every thread of the block reach `__syncthreads()`: move it out of the condition, or out of a loop that threads leave at different times",
        ),
        Misuse::Recycled => (
            Misused::EarlyReuse,
            "a thread uses a barrier again without being ordered after its previous use, so in another run it could join the earlier use",
            "let the thread wait until all threads have arrived at the previous use (by this barrier or another one) before it uses the number again, or use another barrier number",
        ),
        Misuse::NotMember => (
            Misused::NotAMember,
            "a thread takes part in a warp operation whose mask leaves it out",
            "pass a mask that names exactly the threads that execute the operation: 0xffffffff for a whole warp, or for a branch the result of `__ballot_sync` of its condition before it",
        ),
        Misuse::Excess => (
            Misused::ExcessArrival,
            "a thread arrives at an mbarrier more often than its phase still expects",
            "initialise the mbarrier with the number of arrivals of a phase (`init(&bar, n)`), those for copies included, and let no thread arrive again before the phase is over",
        ),
        Misuse::NotMbarrier => (
            Misused::NotABarrier,
            "a thread uses an mbarrier that has not been initialised, or not since it was invalidated",
            "let one thread initialise it (`init(&bar, n)`, `mbarrier.init`), and put `__syncthreads()`, or a barrier of the cluster where other blocks use it, between the initialisation and its first use",
        ),
        Misuse::Unstarted => (
            Misused::UnstartedBlock,
            "a thread accesses shared memory of another block of the cluster, which may not have started by then",
            "put a barrier of the cluster (`cluster.sync()`) between the start of the kernel and the first access to shared memory of another block, in every block",
        ),
        Misuse::Departed => (
            Misused::ExitedBlock,
            "a thread accesses shared memory of another block of the cluster, which may have exited by then",
            "put a barrier of the cluster (`cluster.sync()`) between the last access to shared memory of another block and the end of the kernel, in every block",
        ),
    };
    // One barrier is enough for all accesses of a kernel.
    let end = match misuse {
        Misuse::Unstarted => Some("start"),
        Misuse::Departed => Some("end"),
        _ => None,
    };
    Advice {
        rule: RuleId::Synchronisation,
        kind: RaceKind::Misuse(kind),
        message: format!("synchronisation error: {message}"),
        help: help.to_owned(),
        cause: end.map(|end| Cause {
            what: format!("{end} of blocks in {}", accesses[1].ptx.module),
            places: [accesses[1].function.clone()].into(),
        }),
    }
}
