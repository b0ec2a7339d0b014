//! Races between pieces of work of different streams.

use crate::advice::{Advice, kind};
use crate::log;
use crate::log::{Apart, Call};
use crate::model::{Access, KernelLaunch, Work};
use crate::rules::RuleId;

/// The call on the host that an access is, if it is one.
fn call(access: &Access) -> Option<Call> {
    let mut all = Call::ALL.into_iter();
    all.find(|call| access.is_call() && call.text() == access.ptx.text)
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
            "let the host wait for {first} before it frees the memory (`cudaStreamSynchronize`), because `cudaFree` does not wait for work on memory from a pool; or free it in that stream (`cudaFreeAsync`)"
        ),
        [first, second] if first != second => format!(
            "record an event in {first} after the first operation (`cudaEventRecord`) and let {second} wait for it before the second operation (`cudaStreamWaitEvent`){one_stream}"
        ),
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
        })
        .collect()
}
