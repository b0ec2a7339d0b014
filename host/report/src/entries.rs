//! Which races are one entry of the report, what the entries are called, and in which order they come.

use std::collections::HashMap;

use crate::build::LogIndex;
use crate::log;
use crate::model::Race;
use crate::rules::RuleId;
use crate::side::{LoggedSite, Side, side};
use crate::words::put_in;

/// What is one entry of the report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pair {
    /// Two places in the source, whatever has called the functions they stand in, and the memory that is accessed there:
    /// one line may access both.
    Places([Side; 2], log::Space),
    /// Two operations of streams, by their kernels or calls, and whether a graph holds both: one event
    /// orders all of their accesses.
    Operations([String; 2]),
    /// An operation of a stream, what the host does, and the calls on the host behind that.
    Host([String; 2], Vec<log::HostFrame>),
}

/// What entry of the report a race belongs to.
pub(crate) fn pair(race: &log::Race, sites: [LoggedSite<'_>; 2], log_index: &LogIndex<'_>) -> Pair {
    if matches!(race.why, log::Why::Streams | log::Why::Siblings) {
        let mut operations = [0, 1].map(|n: usize| {
            let launch = race.work.get(n).and_then(|work| work.launch);
            let kernel = launch.and_then(|number| log_index.launches.get(&number));
            kernel.map_or_else(
                || sites[n].site.text.clone(),
                |launch| launch.kernel.clone(),
            )
        });
        if log::Call::of_text(&operations[1]).is_some_and(log::Call::is_by_host) {
            let frames = race.work.iter().skip(1).flat_map(|host| &host.host_stack);
            return Pair::Host(operations, frames.cloned().collect());
        }
        operations.sort();
        return Pair::Operations(operations);
    }
    let mut sides = sites.map(side);
    sides.sort();
    Pair::Places(sides, race.space)
}

/// Which of several races of one level to repair first: a barrier that is missing or misused is the cause of
/// many others, so is a scope that is too narrow; a missing barrier of the block comes before what happens within a warp, and an order
/// that only this run has had comes last.
pub(crate) fn order(rule: RuleId) -> u32 {
    match rule {
        RuleId::Synchronisation => 0,
        RuleId::NarrowScope => 1,
        RuleId::IntraWarp => 3,
        RuleId::StrongConflict => 4,
        RuleId::Predictive => 5,
        _ => 2,
    }
}

/// Gives races an id of their own where lines of the same text have given them the same.
pub(crate) fn distinguish(races: &mut [Race]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for race in races {
        let count = seen.entry(race.id.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            let number = *count;
            put_in(&mut race.id, format_args!(".{number}"));
        }
    }
}

/// How the values of two writes compare. An entry of several pairs has the greatest of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Written {
    /// Always the same bytes.
    Same,
    /// Not known.
    Unknown,
    /// Different bytes, or an access is no write.
    Different,
}

impl Written {
    /// For a race of a log.
    pub(crate) fn of(race: &log::Race, sites: [&log::Site; 2]) -> Self {
        match race.same_value {
            true => Self::Same,
            false if is_unknown(race, sites) => Self::Unknown,
            false => Self::Different,
        }
    }

    /// For an entry as it is so far.
    pub(crate) fn so_far(entry: &Race) -> Self {
        match entry.same_value {
            true => Self::Same,
            false if entry.values_unknown => Self::Unknown,
            false => Self::Different,
        }
    }
}

/// Two stores of which it is not known whether they wrote the same.
pub(crate) fn is_unknown(race: &log::Race, sites: [&log::Site; 2]) -> bool {
    let stores = sites.iter().all(|site| site.op == log::Op::Store);
    let values = race.previous_value.new.zip(race.value.new);
    let known = values.is_some_and(|(before, now)| before != now);
    race.why == log::Why::Unordered && stores && !race.same_value && !known
}
