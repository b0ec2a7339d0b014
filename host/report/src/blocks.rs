//! Advice for accesses by different blocks that a barrier of the cluster or a flag would order, and for copies that read
//! what was written without a proxy fence.

use crate::advice::place;
use crate::causes::Cause;
use crate::log::{self, Level, Space, Why};
use crate::model::{Access, Op, Semantics};
use crate::remedy;
use crate::source::Sources;

/// Shared memory is shared by the blocks of one cluster.
pub(crate) fn of_cluster(race: &log::Race) -> bool {
    race.level == Level::Grid && race.space == Space::Shared
}

/// The access initialises an mbarrier.
pub(crate) fn is_initialisation(access: &Access) -> bool {
    access.ptx.text.contains("mbarrier.init")
}

/// One of the accesses initialises an mbarrier, and the other is by another block of the cluster.
pub(crate) fn initialises(race: &log::Race, accesses: &[Access; 2]) -> bool {
    of_cluster(race) && accesses.iter().any(is_initialisation)
}

/// The barrier of the cluster or the flag that is missing, and what else it repairs; none if it is something else.
pub(crate) fn help(
    race: &log::Race,
    accesses: &[Access; 2],
    sources: &Sources,
) -> Option<(String, Option<Cause>)> {
    let strong = accesses.iter().all(|access| access.sem != Semantics::Weak);
    let known = race.repair.as_ref();
    let counted = known.is_some_and(|known| known.counted.is_some());
    let updates = known.is_some_and(|known| known.update.is_some());
    match race.why {
        _ if initialises(race, accesses) => {}
        Why::Unordered if of_cluster(race) && !strong && !updates => {}
        Why::Strong | Why::Fences if of_cluster(race) => {}
        // A counter hands the data over, and needs fences.
        Why::Strong if race.level == Level::Grid && counted => return None,
        Why::Strong if race.level == Level::Grid => {
            return Some((flag(accesses, sources), common("flag", race, accesses)));
        }
        _ => return None,
    }
    let points = race.repair.as_ref().map_or(&[][..], |known| &known.points);
    let places = remedy::places(points, sources);
    let between = match &places[..] {
        [] if initialises(race, accesses) => {
            "between the initialisation of the mbarrier and its first use by another block"
                .to_owned()
        }
        [] => "between the two accesses".to_owned(),
        places => remedy::listed(places),
    };
    Some((
        format!("put a barrier of the cluster (`cluster.sync()`, `barrier.cluster`) {between}"),
        common("cluster", race, accesses),
    ))
}

/// What hands volatile or relaxed data over to another block.
fn flag([first, second]: &[Access; 2], sources: &Sources) -> String {
    let reads = |access: &Access| access.op == Op::Ld;
    // A flag hands over what was written, whichever came first in this run.
    let (from, to) = match reads(first) && !reads(second) {
        true => (second, first),
        false => (first, second),
    };
    let [from, to] = [from, to].map(|access| place(access, sources));
    format!(
        "hand the data over by a flag or a counter: after the {from}, `__threadfence()` and then the write of the flag; the read of the flag and then `__threadfence()` before the {to}. `volatile` and relaxed accesses order nothing"
    )
}

/// What is repaired together: accesses that one place of the function parts or, where no way leads from the one to
/// the other, that blocks make in parts of one branch.
fn common(what: &str, race: &log::Race, accesses: &[Access; 2]) -> Option<Cause> {
    let repair = race.repair.as_ref()?;
    let places = match &repair.points[..] {
        [] => [format!("{:?}", repair.conditional.as_ref()?)].into(),
        points => points.iter().map(|point| point.place.to_string()).collect(),
    };
    Some(Cause {
        what: format!("{what} in {}", accesses[1].ptx.module),
        places,
    })
}

/// What makes a write known to a bulk copy that reads it.
pub(crate) fn proxy(accesses: &[Access; 2], sources: &Sources) -> String {
    let [write, copy] = accesses;
    let (write, copy) = match write.op == Op::Cp {
        true => (copy, write),
        false => (write, copy),
    };
    let [write, copy] = [write, copy].map(|access| place(access, sources));
    format!(
        "put `fence.proxy.async` (`cuda::ptx::fence_proxy_async`) after the {write}, in each thread that writes and before the barrier that follows; or, after that barrier, before the {copy}"
    )
}
