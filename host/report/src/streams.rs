//! Races between pieces of work of different streams.

use std::collections::{BTreeMap, BTreeSet};

use crate::advice::{Advice, kind};
use crate::causes::Cause;
use crate::log;
use crate::log::{Act, Apart, Call};
use crate::model::{Access, KernelLaunch, Work};
use crate::rules::RuleId;

/// The call on the host that an access is, if it is one.
fn call(access: &Access) -> Option<Call> {
    Call::of_text(&access.ptx.text).filter(|_| access.is_call())
}

/// What the host itself does to memory that work in flight touches too, if it is that.
pub(crate) fn by_host(accesses: &[Access; 2]) -> Option<Call> {
    call(&accesses[1]).filter(|call| call.is_by_host())
}

/// Describes a race of the host with work that it has not waited for.
fn describe_by_host(race: &log::Race, accesses: &[Access; 2], call: Call) -> Advice {
    let [first, _] = accesses;
    let work = match first.is_call() {
        true => first.function.trim_start_matches("a "),
        false => "kernel",
    };
    let does = match first.act() {
        Act::Read => "reads",
        Act::Write | Act::Copy => "writes",
        Act::Atomic => "changes",
    };
    let host = match call {
        Call::HostWrite => "writes",
        _ => "accesses",
    };
    let stream = race.work.first().map_or("", |work| work.stream.as_str());
    let the_work = format!("the {work}");
    let (stream, waited_for) = launched(stream, &the_work);
    Advice {
        rule: RuleId::Host,
        kind: kind(accesses),
        message: format!(
            "race between host and device: the host {host} memory that a {work} {does}, and has not waited for the {work}"
        ),
        help: format!(
            "let the host wait for {waited_for} before it {host} the memory: `cudaStreamSynchronize` for {stream}, `cudaEventSynchronize` for an event behind {waited_for}, or `cudaDeviceSynchronize`"
        ),
        cause: None,
    }
}

/// What two pieces of work do with memory, one of which may allocate or free it.
fn what(apart: Apart, accesses: &[Access; 2], both: &str) -> String {
    let calls = accesses.each_ref().map(call);
    let frees = |call: &Option<Call>| matches!(call, Some(Call::Free | Call::FreeOnHost));
    if calls.iter().any(frees) {
        return format!(
            "use after free between streams: {both} of the same memory are in work that may run at the same time"
        );
    }
    if calls.contains(&Some(Call::Alloc)) {
        return format!(
            "use between streams of memory that may not be allocated yet: {both} of the same memory are in work that may run at the same time"
        );
    }
    if apart == Apart::Early {
        return format!(
            "race between dependent launches on global memory: {both} access the same address, and the second kernel may begin before the first has ended"
        );
    }
    format!(
        "race between streams on global memory: {both} access the same address in operations that may run at the same time"
    )
}

/// Describes such a race.
pub(crate) fn describe(race: &log::Race, accesses: &[Access; 2]) -> Advice {
    if let Some(call) = by_host(accesses) {
        return describe_by_host(race, accesses, call);
    }
    let [one, other] = accesses.each_ref().map(|access| match access.is_call() {
        true => access.function.as_str(),
        false => access.act().with_article(),
    });
    let both = match one == other {
        true => format!("{one} and another"),
        false => format!("{one} and {other}"),
    };
    Advice {
        rule: RuleId::Streams,
        kind: kind(accesses),
        message: what(race.apart, accesses, &both),
        help: order(race, accesses),
        cause: None,
    }
}

/// If there are more races between two streams, each is an entry of its own: all are compared with each other.
const SHARED: usize = 256;

/// A race, and the processes that had it.
pub(crate) struct Encounter<'a> {
    pub(crate) race: &'a log::Race,
    pub(crate) processes: BTreeSet<usize>,
}

/// Gives races between two streams their causes. An event that is recorded
/// behind an operation and waited for ahead of another one also orders what comes earlier in the first stream and later in
/// the second.
pub(crate) fn share_events<'a>(
    races: impl Iterator<Item = Encounter<'a>>,
    causes: &mut [Option<Cause>],
) {
    /// The two streams, in the processes that had a race between them.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct Streams<'a> {
        processes: BTreeSet<usize>,
        names: [&'a str; 2],
    }
    let mut of_streams: BTreeMap<Streams<'_>, Vec<(usize, [u64; 2])>> = BTreeMap::new();
    for (at, Encounter { race, processes }) in races.enumerate() {
        if let (log::Why::Streams, Apart::Streams | Apart::Devices, [one, other]) =
            (race.why, race.apart, &race.work[..])
        {
            let names = [one.stream.as_str(), &other.stream];
            let streams = Streams { processes, names };
            let all = of_streams.entry(streams).or_default();
            all.push((at, [one.number, other.number]));
        }
    }
    for (streams, all) in of_streams {
        let Streams {
            processes,
            names: [first, second],
        } = streams;
        if first == second || second == log::HOST || all.len() > SHARED {
            continue;
        }
        for &(at, [behind, ahead]) in &all {
            let earlier = all.iter().filter(|(_, [before, _])| *before <= behind);
            let later = all.iter().filter(|(_, [_, after])| *after >= ahead);
            let earlier = earlier.map(|(_, [before, _])| format!("behind {before}"));
            let later = later.map(|(_, [_, after])| format!("ahead of {after}"));
            causes[at] = Some(Cause {
                what: format!("event from {first} to {second} in {processes:?}"),
                places: earlier.chain(later).collect(),
            });
        }
    }
}

/// The help: what orders the two operations.
fn order(race: &log::Race, accesses: &[Access; 2]) -> String {
    match race.apart {
        Apart::Early => "call `cudaGridDependencySynchronize()` (`griddepcontrol.wait`) in the second kernel before the access: until then a programmatic dependent launch may run beside the launch ahead of it".to_owned(),
        Apart::Nodes => {
            "add an edge between the two nodes to the graph, or capture both operations in one stream".to_owned()
        }
        Apart::Streams | Apart::Devices => between_streams(race, accesses),
    }
}

/// A stream and what the program gives to it: an operation, or the graph that this belongs to.
fn launched<'a>(stream: &'a str, operation: &'a str) -> (&'a str, &'a str) {
    match stream.strip_prefix(log::OF_GRAPH) {
        Some(stream) => (stream, "the launch of the graph"),
        None => (stream, operation),
    }
}

/// The help for operations of different streams.
fn between_streams(race: &log::Race, accesses: &[Access; 2]) -> String {
    let streams = race.work.iter().map(|work| work.stream.as_str());
    let streams: Vec<&str> = streams.collect();
    let devices = race.apart == Apart::Devices;
    let one_stream = match devices {
        true => "",
        false => ", or use one stream for both",
    };
    let order = match streams[..] {
        [first, log::HOST] => format!(
            "let the host wait for {} before it frees the memory (`cudaStreamSynchronize`), because `cudaFree` does not wait for work on memory from a pool; or free it in that stream (`cudaFreeAsync`)",
            launched(first, "").0
        ),
        [first, second] if first != second => {
            let (first, after) = launched(first, "the first operation");
            let (second, before) = launched(second, "the second operation");
            format!(
                "record an event in {first} after {after} (`cudaEventRecord`) and let {second} wait for it before {before} (`cudaStreamWaitEvent`){one_stream}"
            )
        }
        // Both are default streams, of two devices or of two host threads.
        _ => "record an event after the first operation in its stream (`cudaEventRecord`) and let the stream of the second operation wait for it before that (`cudaStreamWaitEvent`)".to_owned(),
    };
    let calls = accesses.iter().any(Access::is_call);
    let host = match (calls || devices) && !streams.contains(&log::HOST) {
        true => ", or let the host wait between them (`cudaStreamSynchronize`)",
        false => "",
    };
    let default = match streams.contains(&log::DEFAULT_STREAM) {
        _ if devices => "; streams of two devices do not wait for each other",
        true => {
            "; a stream made with `cudaStreamNonBlocking` and the default stream do not wait for each other"
        }
        false => "",
    };
    format!("{order}{host}{default}")
}

/// What the two sides belong to, with the launches' sizes; `launch` finds a launch by its number.
pub(crate) fn work(
    race: &log::Race,
    accesses: &[Access; 2],
    launch: impl Fn(u64) -> Option<KernelLaunch>,
) -> Vec<Work> {
    let pairs = race.work.iter().zip(accesses);
    pairs
        .map(|(work, access)| Work {
            role: access.role,
            kernel: work.launch.and_then(&launch),
            call: access.is_call().then(|| access.ptx.text.clone()),
            stream: work.stream.clone(),
            host_stack: work.host_stack.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_repairs_what_lies_around_it() {
        let race = |streams: [&str; 2], numbers: [u64; 2]| log::Race {
            why: log::Why::Streams,
            work: { streams.into_iter().zip(numbers) }
                .map(|(stream, number)| log::Work {
                    stream: stream.to_owned(),
                    number,
                    ..log::Work::default()
                })
                .collect(),
            ..log::Race::default()
        };
        let races = [
            (race(["a", "b"], [1, 7]), 0),
            (race(["a", "b"], [3, 6]), 0),
            (race(["a", "b"], [2, 5]), 0),
            (race(["b", "a"], [5, 8]), 0),
            (race(["a", "b"], [3, 6]), 1),
        ];
        let mut causes = vec![None; races.len()];
        let all = races.iter();
        let all = all.map(|(race, of)| Encounter {
            race,
            processes: [*of].into(),
        });
        share_events(all, &mut causes);
        let repairs = |one: usize, other: usize| {
            let of = |at: usize| causes[at].as_ref().unwrap();
            of(one).what == of(other).what && of(one).places.is_superset(&of(other).places)
        };
        // Behind 3 and ahead of 6 lies between 1 and 7 too; 2 and 5 want an event ahead of 5.
        assert!(repairs(1, 0) && repairs(2, 0));
        assert!(!repairs(0, 1) && !repairs(1, 2) && !repairs(2, 1));
        assert!(!repairs(3, 0) && !repairs(0, 3));
        // In another process.
        assert!(!repairs(4, 0));
    }
}
