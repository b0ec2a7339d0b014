//! What is wrong with the use of a barrier or a warp operation, and what repairs it.

use super::advice::Advice;
use crate::log::Misuse;

/// The rule of all of them.
pub(super) const RULE: &str = "CR007";

/// True when it is told as a warning: devices do what the program meant, though nothing promises it.
pub(super) fn is_harmless(misuse: Misuse) -> bool {
    misuse == Misuse::Exited
}

/// Describes a misuse.
pub(super) fn describe(misuse: Misuse) -> Advice {
    let (kind, message, help) = match misuse {
        Misuse::Divergent => (
            "divergent",
            "threads of one warp wait at different barriers",
            "every thread of a warp must come to the same `__syncthreads()`: move it out of the condition",
        ),
        Misuse::Counts => (
            "mismatched-counts",
            "threads come to one barrier with different thread counts",
            "name the same number of threads at every `bar.sync`, `bar.arrive` and `bar.red` of a barrier",
        ),
        Misuse::PartOfWarp => (
            "count",
            "the thread count of a barrier is not a multiple of 32",
            "barriers count whole warps: round the number of threads up to a multiple of 32",
        ),
        Misuse::Again => (
            "excess-arrival",
            "a thread comes to a barrier again before it has completed, or before the thread has waited",
            "wait for the barrier (`bar.sync`, `barrier.cluster.wait`) before the same threads arrive at it again, or use another one",
        ),
        Misuse::Exited => (
            "exit-before-barrier",
            "threads exit without coming to a barrier that the rest of the block waits at",
            "let every thread reach `__syncthreads()`: put the early `return` behind the last barrier, or guard the work instead",
        ),
        Misuse::Skipped => (
            "skipped-barrier",
            "threads pass by a barrier that the rest of the block waits at",
            "let every thread of the block reach `__syncthreads()`: move it out of the condition, or out of a loop that threads leave at different times",
        ),
        Misuse::NotMember => (
            "not-a-member",
            "a thread takes part in a warp operation whose mask leaves it out",
            "pass a mask that names every thread that calls, such as `__activemask()` taken where they agreed to meet, or 0xffffffff for a whole warp",
        ),
        Misuse::Excess => (
            "excess-arrival",
            "a thread arrives at an mbarrier more often than its phase still expects",
            "initialise the barrier with as many arrivals as come in a phase (`init(&bar, n)`), and let nobody arrive again before the phase is over, its copies included",
        ),
        Misuse::NotMbarrier => (
            "not-a-barrier",
            "a thread uses an mbarrier that has not been initialised, or not since it was invalidated",
            "initialise it by one thread (`init(&bar, n)`, `mbarrier.init`), and put `__syncthreads()` between that and its first use",
        ),
        Misuse::Departed => (
            "exited-block",
            "a thread accesses shared memory of another block of the cluster, which may have exited by then",
            "a block has to exist for as long as others access its shared memory: put a barrier of the cluster (`cluster.sync()`, or `barrier.cluster.arrive` and `wait`) between the last such access and the end of the kernel, in every block",
        ),
    };
    Advice {
        rule: RULE,
        kind: kind.to_owned(),
        message: format!("synchronisation error: {message}"),
        help: help.to_owned(),
    }
}
