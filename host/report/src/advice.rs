//! What kind of race it is, and what would order the two accesses.

use std::borrow::Cow;
use std::collections::BTreeSet;

use events::{Acquire, Scope};

use crate::causes;
use crate::language::{self, Language};
use crate::log::{self, Cause, Gap, Level, Space, Why};
use crate::model::{Access, Op, RaceKind, Semantics};
use crate::names::{VARIABLE, demangle};
use crate::rules::RuleId;
use crate::source::Sources;
use crate::words;
use crate::{blocks, locks, misuse, nested, remedy, streams};

/// Rule, kind and texts of a race.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Advice {
    pub(crate) rule: RuleId,
    pub(crate) kind: RaceKind,
    pub(crate) message: String,
    pub(crate) help: String,
    /// What it repairs, if that may be the cause of several entries.
    pub(crate) cause: Option<causes::Cause>,
}

/// Describes a race between two accesses, with help in the words of a language.
pub(crate) fn advise(
    race: &log::Race,
    accesses: &[Access; 2],
    sources: &Sources,
    language: Language,
) -> Advice {
    let advice = in_cuda(race, accesses, sources);
    let help = language::words(&advice.help, language);
    Advice { help, ..advice }
}

/// The same in those of CUDA C++.
fn in_cuda(race: &log::Race, accesses: &[Access; 2], sources: &Sources) -> Advice {
    match race.why {
        Why::Misuse(misuse) => return misuse::describe(misuse, accesses),
        Why::Streams => return streams::describe(race, accesses),
        Why::Child | Why::Siblings => return nested::describe(race, accesses),
        _ => {}
    }
    let [first, second] = accesses;
    let level = race.level;
    let why = match race.why {
        Why::Asynchronous if lacks_order(race, accesses) => Why::Unordered,
        why => why,
    };
    let strong = first.sem != Semantics::Weak && second.sem != Semantics::Weak;
    let race = match strong && why == Why::Unordered && lacks_release(race) {
        true => Cow::Owned(log::Race {
            cause: None,
            ..race.clone()
        }),
        false => Cow::Borrowed(race),
    };
    let race = race.as_ref();
    let fault = match why {
        Why::Unordered | Why::Strong | Why::LockOrder | Why::Fences => locks::fault(race, accesses),
        _ => None,
    };
    let rule = match (why, level) {
        (Why::Overlap, _) => RuleId::MixedSize,
        (Why::ReadOnly, _) => RuleId::ReadOnly,
        (Why::Asynchronous, _) => RuleId::Asynchronous,
        (Why::Proxy, _) => RuleId::Proxy,
        (Why::Misuse(_), _) => RuleId::Synchronisation,
        (Why::Streams, _) if streams::by_host(accesses).is_some() => RuleId::Host,
        (Why::Streams | Why::Child | Why::Siblings, _) => RuleId::Streams,
        (Why::Strong, _) => RuleId::StrongConflict,
        (Why::LockOrder | Why::Fences | Why::Counted, _) => RuleId::Predictive,
        (Why::Unordered, _) if strong => RuleId::NarrowScope,
        (Why::Unordered, _) if let Some(fault) = &fault => fault.rule,
        (Why::Unordered, _) if let Some(rule) = race.cause.as_ref().and_then(of_cause) => rule,
        (Why::Unordered, Level::Warp) => RuleId::IntraWarp,
        (Why::Unordered, Level::Cta) => RuleId::IntraBlock,
        (Why::Unordered, Level::Grid) => RuleId::InterBlock,
    };
    let reach = match level {
        Level::Warp => "intra-warp",
        Level::Cta => "intra-block",
        Level::Grid => "inter-block",
    };
    let memory = match race.space {
        Space::Global => "global memory",
        Space::Shared => "shared memory",
    };
    let [one, other] = [first, second].map(|access| access.act().with_article());
    let what = match why {
        Why::Overlap => format!("{one} and {other} of different size or alignment overlap"),
        Why::ReadOnly => {
            "data read through the read-only path is written in the same launch".to_owned()
        }
        Why::Asynchronous => format!(
            "{one} and {other} access the same address, and no thread has waited for the asynchronous copy in between"
        ),
        Why::Proxy => {
            "a bulk copy reads what was written without a proxy fence in between".to_owned()
        }
        Why::Misuse(_) | Why::Streams | Why::Child | Why::Siblings => String::new(),
        Why::Strong if one == other => {
            format!(
                "nothing orders two {} to the same address",
                first.act().plural()
            )
        }
        Why::Strong => format!("nothing orders {one} and {other} of the same address"),
        Why::LockOrder if fault.is_some() => format!(
            "{one} and {other} of the same address are ordered only by the order in which their lock was taken in this run"
        ),
        Why::LockOrder => locks::lock_order(accesses),
        Why::Fences => format!(
            "{one} and {other} of the same address are ordered only by the order of `fence.sc` (`__threadfence()`) in this run"
        ),
        Why::Unordered if strong && one == other => format!(
            "the scopes of two {} of the same address do not include each other's thread",
            first.act().plural()
        ),
        Why::Counted => format!(
            "{one} and {other} of the same address are ordered only by the order in which threads executed an atomic counter or `fence.sc` (`__threadfence()`) in this run"
        ),
        Why::Unordered if strong => {
            format!(
                "the scopes of {one} and {other} of the same address do not include each other's thread"
            )
        }
        Why::Unordered if one == other => {
            format!(
                "two {} to the same address are not ordered",
                first.act().plural()
            )
        }
        Why::Unordered => format!("{one} and {other} of the same address are not ordered"),
    };
    let what = match (&fault, &race.cause) {
        (Some(fault), _) => format!("{what}: {}", fault.what),
        (None, Some(cause)) => format!("{what}: {}", lacking(cause, race)),
        (None, None) => what,
    };
    let message = match race.decided {
        _ if why == Why::Strong => {
            format!("{reach} unordered strong conflict on {memory}: {what}")
        }
        _ if why == Why::LockOrder => {
            format!("{reach} lock-order-dependent accesses to {memory}: {what}")
        }
        _ if why == Why::Counted => {
            format!("{reach} count-order-dependent accesses to {memory}: {what}")
        }
        _ if why == Why::Fences => {
            format!("{reach} fence-order-dependent accesses to {memory}: {what}")
        }
        true => format!("{reach} race on {memory}: {what}"),
        false => format!(
            "possible {reach} race on {memory}, not decided: {what} by what the checks of this mode can follow"
        ),
    };
    let of_lock = fault.filter(|_| !(strong && why == Why::Unordered));
    let (help, cause) = match of_lock {
        Some(fault) => (
            fault.help.clone(),
            Some(match fault.narrow {
                // The lock's own word is one of those that its atomics' scope lets race.
                Some(taken) => causes::Cause {
                    what: "scope".to_owned(),
                    places: [format!("the atomic at {taken}")].into(),
                },
                None => causes::Cause {
                    what: accesses[1].function.clone(),
                    places: [fault.help].into(),
                },
            }),
        ),
        None => help(race, strong, accesses, sources),
    };
    Advice {
        rule,
        kind: kind(accesses),
        message,
        help,
        cause,
    }
}

/// An asynchronous copy and an access that race because something else is missing than a wait for the copy: an mbarrier is
/// used before its initialisation is ordered, or the copy of the next round fills a buffer while threads still read it.
fn lacks_order(race: &log::Race, accesses: &[Access; 2]) -> bool {
    let known = race.repair.as_ref();
    let next = known.is_some_and(|repair| repair.only_back);
    let reused = race.precedes_issue && next || known.is_some_and(|of| is_refilled(of, accesses));
    race.why == Why::Asynchronous && (reused || blocks::initialises(race, accesses))
}

/// The code waits at an mbarrier between the copy and the access, and does not wait between the access and the next copy.
fn is_refilled(repair: &log::Repair, [earlier, later]: &[Access; 2]) -> bool {
    repair.unwaited.as_ref().is_some_and(|unwaited| {
        let before = if unwaited.before_earlier {
            earlier
        } else {
            later
        };
        unwaited.is_between && unwaited.is_waited_back && before.op == Op::Cp
    })
}

/// The second access is an asynchronous copy. The code makes the first access after the copy and does not wait in between;
/// in this run another thread's copy came later.
fn is_before_copy(race: &log::Race, [first, second]: &[Access; 2]) -> bool {
    let known = race.repair.as_ref();
    let behind = known.is_some_and(|repair| repair.only_back && repair.unfinished);
    behind && second.op == Op::Cp && first.op != Op::Cp
}

/// What keeps a flag or an mbarrier from ordering the accesses is not its scope. If both accesses are strong, they race
/// because of their own scopes, and a wider scope ends that.
fn lacks_release(race: &log::Race) -> bool {
    let rule = race.cause.as_ref().map(of_cause);
    rule.is_some_and(|rule| rule != Some(RuleId::NarrowScope))
}

/// The rule of a race with a cause, if the cause has one of its own.
fn of_cause(cause: &Cause) -> Option<RuleId> {
    match cause {
        Cause::NarrowRelease { .. }
        | Cause::NarrowAcquire { .. }
        | Cause::NarrowArrival { .. }
        | Cause::NarrowWait { .. } => Some(RuleId::NarrowScope),
        Cause::NoAcquire { .. } | Cause::NoRelease | Cause::Early | Cause::Version(_) => {
            Some(RuleId::ReleaseAcquire)
        }
        Cause::NoBarrier { .. } | Cause::Overtaken { .. } | Cause::NoWait | Cause::NoArrival => {
            None
        }
    }
}

/// What is not right about what would have ordered the two accesses.
fn lacking(cause: &Cause, race: &log::Race) -> String {
    // Of several blocks, other threads may have written and read the flag.
    let [first, second] = match (race.level, is_flag(cause)) {
        (Level::Grid, true) => ["the first thread's block", "the second thread's block"],
        _ => ["the first thread", "the second thread"],
    };
    let block = |by: &log::Thread| {
        let [x, y, z] = by.block;
        format!("block ({x},{y},{z})")
    };
    match cause {
        Cause::NarrowRelease { by, scope, .. } => format!(
            "{second} has observed a release by {}, but that release is of {} scope",
            block(by),
            words::scope(*scope)
        ),
        Cause::NarrowAcquire { by, scope } => format!(
            "{second} has observed a release by {}, but has acquired at {} scope only",
            block(by),
            words::scope(*scope)
        ),
        Cause::NarrowArrival { by, scope } => format!(
            "the second thread has waited for an mbarrier at which {} arrived, but that arrival is a release of {} scope",
            block(by),
            words::scope(*scope)
        ),
        Cause::NarrowWait { by, scope } => format!(
            "the second thread has waited for an mbarrier at which {} arrived, but has acquired at {} scope only",
            block(by),
            words::scope(*scope)
        ),
        Cause::NoAcquire { by } => format!(
            "{second} has observed a release by {}, but has not acquired",
            block(by)
        ),
        Cause::NoRelease | Cause::Early | Cause::NoBarrier { .. } if is_early(cause, race) => format!(
            "{second} has observed a flag that {first} wrote before the first access, and not after it"
        ),
        Cause::NoRelease | Cause::Early => {
            format!("{second} has observed a flag that {first} wrote without a release")
        }
        Cause::NoBarrier { before, after } => {
            let places = match (before, after) {
                (true, true) => {
                    "between the first access and the write of the flag, and none between the read of the flag and the second access"
                }
                (true, false) => "between the first access and the write of the flag",
                _ => "between the read of the flag and the second access",
            };
            format!(
                "{second} has observed a flag that {first} wrote, but there is no `__syncthreads()` {places}"
            )
        }
        Cause::Overtaken { before } => {
            let places = match before {
                true => {
                    "between the second access and the write of the flag, and none between the read of the flag and the first access"
                }
                false => "between the read of the flag and the first access",
            };
            format!(
                "another thread of {first} waits for a flag that {second} wrote, but there is no `__syncthreads()` {places}"
            )
        }
        Cause::NoWait => {
            "the first thread has arrived at an mbarrier after its access, but the second thread has not waited for that"
                .to_owned()
        }
        Cause::NoArrival => {
            "the second thread has waited for an mbarrier, but the first thread has arrived there before its access"
                .to_owned()
        }
        Cause::Version(gap) => format!(
            "both accesses are guarded by one version counter, and {}",
            match gap {
                Gap::FirstWrite =>
                    "the writer has no fence behind its first write of the version that reaches the reader",
                Gap::SecondWrite =>
                    "the writer has no fence in front of its second write of the version that reaches the reader",
                Gap::FirstLook =>
                    "the reader has no fence behind its first look at the version that reaches the writer",
                Gap::SecondLook =>
                    "the reader has no fence in front of its second look at the version that reaches the writer",
            }
        ),
    }
}

/// True of one by a flag or a counter.
fn is_flag(cause: &Cause) -> bool {
    match cause {
        Cause::NarrowRelease { .. }
        | Cause::NarrowAcquire { .. }
        | Cause::NoAcquire { .. }
        | Cause::NoRelease
        | Cause::Early
        | Cause::NoBarrier { .. }
        | Cause::Overtaken { .. } => true,
        Cause::NarrowArrival { .. }
        | Cause::NarrowWait { .. }
        | Cause::NoWait
        | Cause::NoArrival
        | Cause::Version(_) => false,
    }
}

/// The flag is written before the first access, in the code or, where that does not tell, in this run.
fn is_early(cause: &Cause, race: &log::Race) -> bool {
    let repair = race.repair.as_ref();
    let [early, late] = repair.map_or([false; 2], |repair| [repair.early, repair.late]);
    early || *cause == Cause::Early && !late
}

/// What makes an order of it.
fn completion(cause: &Cause, race: &log::Race) -> String {
    // Two threads of one block may race on data that a flag also hands to other blocks.
    let of_device = race.flag.as_ref().is_some_and(|word| word.is_of_device);
    let fence = match race.level {
        Level::Cta | Level::Warp if !of_device => "__threadfence_block()",
        _ => "__threadfence()",
    };
    let wider = "to a scope that includes both threads: `__threadfence()` in place of `__threadfence_block()`, `thread_scope_device` in place of `thread_scope_block`";
    let flag = |at: usize| {
        let word = race.flag.as_ref();
        word.map_or_else(|| "the flag".to_owned(), |word| flag(word, at))
    };
    let (written, read) = (flag(0), flag(1));
    let unacquired = (race.repair.as_ref()).is_some_and(|repair| repair.unacquired);
    match cause {
        Cause::NarrowRelease { acquire, .. } => match acquire {
            Acquire::Wide => format!("widen the release of {written} {wider}"),
            Acquire::Narrow => {
                format!("widen the release of {written} and the acquire of {read} {wider}")
            }
            Acquire::Missing => format!(
                "widen the release of {written} {wider}; and acquire before the second access: put `{fence}` after the read of {read}, or read it with `ld.acquire` (`cuda::memory_order_acquire`)"
            ),
        },
        Cause::NarrowAcquire { .. } => format!("widen the acquire of {read} {wider}"),
        Cause::NarrowArrival { .. } => "widen the arrival to a scope that includes both threads: `mbarrier.arrive.release.cluster`, `cuda::ptx::mbarrier_arrive` with `scope_cluster`, or, where the arrival is relaxed, a fence of that scope before it".to_owned(),
        Cause::NarrowWait { .. } => "widen the wait to a scope that includes both threads: `mbarrier.try_wait.acquire.cluster`, `cuda::ptx::mbarrier_try_wait` with `scope_cluster`, or, where the wait is relaxed, a fence of that scope after it".to_owned(),
        Cause::NoAcquire { .. } if race.flag.is_none() => format!(
            "acquire before the second access: put `{fence}` after the wait for the mbarrier, or make the wait an acquire (`mbarrier.try_wait.acquire`)"
        ),
        Cause::NoAcquire { .. } => format!(
            "acquire before the second access: put `{fence}` after the read of {read}, or read it with `ld.acquire` (`cuda::memory_order_acquire`)"
        ),
        Cause::NoWait => format!(
            "wait before the second access for {} (`cuda::barrier::wait`, `mbarrier.try_wait`)",
            mbarrier(race)
        ),
        Cause::NoArrival => format!(
            "let the first thread arrive after its access, and not before, at {} (`cuda::barrier::arrive`, `mbarrier.arrive`)",
            mbarrier(race)
        ),
        Cause::Version(Gap::FirstWrite) => {
            "put `__threadfence()` between the writer's first write of the version and the data".to_owned()
        }
        Cause::Version(Gap::SecondWrite) => {
            "put `__threadfence()` between the data and the writer's second write of the version".to_owned()
        }
        Cause::Version(Gap::FirstLook) => {
            "put `__threadfence()` between the reader's first look at the version and the data".to_owned()
        }
        Cause::Version(Gap::SecondLook) => {
            "put `__threadfence()` between the data and the reader's second look at the version".to_owned()
        }
        Cause::NoRelease | Cause::Early | Cause::NoBarrier { .. } if is_early(cause, race) => {
            let (barrier, between) = match race.level {
                Level::Grid => (
                    " (behind a `__syncthreads()`, if several threads of the block write the data)",
                    "a barrier of the grid (`cooperative_groups::this_grid().sync()`, in a cooperative launch)",
                ),
                Level::Cta | Level::Warp => ("", "`__syncthreads()`"),
            };
            let acquired = match unacquired {
                true => format!(", and `{fence}` after the read of {read}"),
                false => String::new(),
            };
            format!(
                "move the write of {written} behind the first access{barrier}, and put `{fence}` between the two{acquired}; if the flag is not to hand over this data, put {between} between the two accesses"
            )
        }
        Cause::NoBarrier { before, after } => {
            let write = AtFlag { lacks_barrier: *before, access: "first", flag: &written };
            let read = AtFlag { lacks_barrier: *after, access: "second", flag: &read };
            barriers(write, read)
        }
        // The access that the flag hands over comes second in this run, because the other one has not waited.
        Cause::Overtaken { before } => {
            let write = AtFlag { lacks_barrier: *before, access: "second", flag: &written };
            let read = AtFlag { lacks_barrier: true, access: "first", flag: &read };
            barriers(write, read)
        }
        Cause::NoRelease | Cause::Early if unacquired => format!(
            "release after the first access and acquire before the second: put `{fence}` before the write of {written}, and after the read of {read}, or write it with `st.release` and read it with `ld.acquire` (`cuda::memory_order_release`, `cuda::memory_order_acquire`)"
        ),
        Cause::NoRelease | Cause::Early => format!(
            "release after the first access: put `{fence}` before the write of {written}, or write it with `st.release` (`cuda::memory_order_release`)"
        ),
    }
}

/// The write or the read of a flag, beside an access of the race.
struct AtFlag<'a> {
    /// A barrier is missing between the two.
    lacks_barrier: bool,
    /// `first` or `second`.
    access: &'a str,
    /// The flag, as a person calls it.
    flag: &'a str,
}

/// The barriers that are missing around a flag.
fn barriers(write: AtFlag<'_>, read: AtFlag<'_>) -> String {
    let AtFlag { access, flag, .. } = write;
    let between = || format!("between the {access} access and the write of {flag}");
    let before = write.lacks_barrier.then(between);
    let AtFlag { access, flag, .. } = read;
    let between = || format!("between the read of {flag} and the {access} access");
    let after = read.lacks_barrier.then(between);
    let places: Vec<String> = before.into_iter().chain(after).collect();
    format!(
        "put `__syncthreads()` {}: the flag orders the thread that writes it and the thread that reads it, and no other threads of their blocks; if the flag is not meant for this data, put a barrier of the grid (`cooperative_groups::this_grid().sync()`, in a cooperative launch) between the two accesses",
        words::joined(&places)
    )
}

/// The mbarrier that a race names as its flag, and where the first thread arrives there.
fn mbarrier(race: &log::Race) -> String {
    let Some(word) = &race.flag else {
        return "the mbarrier".to_owned();
    };
    let arrives = word.places.first().and_then(Option::as_ref);
    let arrives = arrives.map_or_else(String::new, |place| {
        format!(", at which the first thread arrives at {place}")
    });
    format!(
        "the mbarrier at offset {:#x} of shared memory{arrives}",
        word.address
    )
}

/// A flag, with where it is written (0) or read (1) and where it lies.
fn flag(word: &log::Word, side: usize) -> String {
    let place = word.places.get(side).and_then(Option::as_ref);
    let at = match (&word.allocation, word.space) {
        (
            Some(log::Allocation {
                place: Some(of), ..
            }),
            _,
        ) => format!("in `{of}`"),
        (Some(of), _) => {
            let offset = words::number(word.address.saturating_sub(of.base));
            match of.api.strip_prefix(VARIABLE) {
                Some(name) => format!("in variable `{}`, offset {offset}", demangle(name)),
                None => format!("at offset {offset} in allocation #{}", of.id),
            }
        }
        (None, Space::Shared) => format!("at offset {:#x} in shared memory", word.address),
        (None, Space::Global) => format!("at {:#x}", word.address),
    };
    match place {
        Some(place) => format!("the flag at {place} ({})", at.trim_start_matches("at ")),
        None => format!("the flag {at}"),
    }
}

/// What the two sides do.
pub(crate) fn kind(accesses: &[Access; 2]) -> RaceKind {
    RaceKind::Accesses(accesses.each_ref().map(Access::act))
}

fn help(
    race: &log::Race,
    strong: bool,
    accesses: &[Access; 2],
    sources: &Sources,
) -> (String, Option<causes::Cause>) {
    let waits = match race.why {
        Why::Asynchronous => !lacks_order(race, accesses),
        Why::Unordered => is_before_copy(race, accesses),
        _ => false,
    };
    if waits {
        return asynchronous(race, accesses, sources);
    }
    let by_lock = match race.why {
        Why::Unordered => !strong,
        // A lock also orders volatile data.
        Why::Strong => true,
        _ => false,
    };
    if by_lock
        && race.cause.is_none()
        && race.decided
        && let Some(help) =
            locks::unguarded(accesses, sources).or_else(|| locks::by_text(race, accesses, sources))
    {
        let cause = causes::Cause {
            what: "lock".to_owned(),
            places: [help.clone()].into(),
        };
        return (help, Some(cause));
    }
    if let Some(fixed) = fixed(race, accesses, sources) {
        // What names a flag repairs all that this flag hands over. The same statements may access many flags.
        let one = race.flag.is_some() || race.why == Why::Fences;
        let cause = one.then(|| causes::Cause {
            what: accesses[1].function.clone(),
            places: [fixed_at_any_flag(race, accesses, sources).unwrap_or_else(|| fixed.clone())]
                .into(),
        });
        return (fixed, cause);
    }
    if let Some(between_blocks) = blocks::help(race, accesses, sources) {
        return between_blocks;
    }
    if strong && race.why == Why::Unordered {
        return scopes(accesses, sources);
    }
    let remedy = remedy::choose(race, accesses, sources);
    (remedy.text(), remedy.cause(race, accesses))
}

/// The advice where the text of the kernel does not matter, for whatever flag the same statements access. None if these are
/// not known.
fn fixed_at_any_flag(
    race: &log::Race,
    accesses: &[Access; 2],
    sources: &Sources,
) -> Option<String> {
    let flag = race.flag.as_ref()?;
    let is_known = flag.places.iter().all(Option::is_some);
    let any = log::Word {
        address: 0,
        allocation: None,
        ..flag.clone()
    };
    let race = log::Race {
        flag: Some(any),
        ..race.clone()
    };
    fixed(&race, accesses, sources).filter(|_| is_known)
}

/// Advice for strong accesses whose scopes do not include each other's thread.
fn scopes(accesses: &[Access; 2], sources: &Sources) -> (String, Option<causes::Cause>) {
    let mut narrow: Vec<&Access> = accesses.iter().collect();
    narrow.retain(|access| matches!(access.scope, Some(Scope::Cta | Scope::Cluster)));
    narrow.sort_by_key(|access| {
        let at = access.shown().map(|frame| (&frame.file, frame.line));
        (at, access.ptx.line)
    });
    let places = narrow.iter();
    let mut places: Vec<String> = places
        .map(|access| format!("the {}", place(access, sources)))
        .collect();
    places.dedup();
    let of = match &places[..] {
        [] => "on both sides".to_owned(),
        places => format!("for {}", words::joined(places)),
    };
    let cause = causes::Cause {
        what: "scope".to_owned(),
        places: places.into_iter().collect(),
    };
    (
        format!(
            "use device scope {of}: `atomicAdd` in place of `atomicAdd_block`, `thread_scope_device` in place of `thread_scope_block`"
        ),
        Some(cause).filter(|cause| !cause.places.is_empty()),
    )
}

/// What an access is and where, such as `read at x.cu:7`; a call on the host has no place.
pub(crate) fn place(access: &Access, sources: &Sources) -> String {
    if access.is_call() {
        return access.function.clone();
    }
    format!("{} at {}", access.act(), line(access, sources))
}

/// Where an access is, such as `x.cu:7`.
pub(crate) fn line(access: &Access, sources: &Sources) -> String {
    let (file, line) = match access.shown() {
        Some(frame) => (sources.shown(&frame.file), frame.line),
        None => (access.ptx.module.clone(), access.ptx.line),
    };
    format!("{file}:{line}")
}

/// Advice where the text of the kernel does not matter.
fn fixed(race: &log::Race, accesses: &[Access; 2], sources: &Sources) -> Option<String> {
    let level = race.level;
    let counted = level == Level::Grid
        && race
            .repair
            .as_ref()
            .is_some_and(|repair| repair.counted.is_some());
    let polled = race.repair.as_ref().is_some_and(|repair| repair.polled);
    let relaxed = race
        .repair
        .as_ref()
        .and_then(|repair| repair.relaxed_arrival.as_ref());
    Some(match (race.why, &race.cause) {
        (Why::LockOrder, _) => locks::remedy(accesses),
        (Why::Overlap, _) => {
            "access the data with one size and one alignment on both sides".to_owned()
        }
        (Why::ReadOnly, _) => "read with an ordinary load (not `__ldg`, and no `const __restrict__` on data that the kernel writes) and order it with the write, or write in another launch: nothing within a launch orders reads through the read-only path".to_owned(),
        (Why::Proxy, _) => blocks::proxy(accesses, sources),
        _ if blocks::initialises(race, accesses) => return None,
        (_, Some(cause)) => completion(cause, race),
        (Why::Unordered, _) if polled => {
            let [write, read] = match accesses[0].op {
                Op::St => [0, 1],
                _ => [1, 0],
            };
            let scope = match level {
                Level::Grid => "device",
                Level::Cta | Level::Warp => "block",
            };
            format!(
                "the loop at {} waits for the write at {}: make both atomic, by `cuda::atomic_ref` of {scope} scope, with `cuda::memory_order_release` for the write and `cuda::memory_order_acquire` for the read",
                line(&accesses[read], sources),
                line(&accesses[write], sources)
            )
        }
        _ if let Some(frames) = relaxed.filter(|_| level == Level::Grid) => {
            let at = frames.last().map_or_else(String::new, |frame| {
                format!(" at {}:{}", sources.shown(&frame.file), frame.line)
            });
            let of_one = match race.space {
                Space::Shared => "",
                Space::Global => "if the two blocks belong to one cluster: ",
            };
            format!(
                "{of_one}release at the cluster's barrier: the arrival{at} is `.relaxed`; arrive with `barrier.cluster.arrive.release` (`cluster.sync()`, `cluster.barrier_arrive()`), or put `fence.acq_rel.cluster` before it"
            )
        }
        _ if blocks::of_cluster(race) => return None,
        (Why::Fences | Why::Counted, _) if counted => return None,
        (Why::Fences | Why::Counted, _) if locks::differ(accesses) => locks::remedy(accesses),
        (Why::Counted, _) => "put `__threadfence()` after the atomic of the thread that finds the counter complete, before it lets the others go on".to_owned(),
        (Why::Fences, _) => "hand the order over by a flag or a counter: write it after the fence of the first thread, and read it before a fence of the second thread; fences alone order nothing".to_owned(),
        _ if !race.decided => "run the program with `--device sim --mode precise`, which decides: the kernel has operations that may order the two accesses, and the checks of this mode cannot follow them".to_owned(),
        _ => return None,
    })
}

/// What ends an asynchronous copy, and what else that repairs: one wait ends all copies of groups before it.
fn asynchronous(
    race: &log::Race,
    accesses: &[Access; 2],
    sources: &Sources,
) -> (String, Option<causes::Cause>) {
    let [first, second] = accesses;
    let copy = accesses
        .iter()
        .find(|access| access.op == Op::Cp)
        .unwrap_or(first);
    let text = copy.ptx.text.as_str();
    let one_thread = (first.thread, first.block) == (second.thread, second.block);
    let completes = race
        .repair
        .as_ref()
        .and_then(|repair| repair.completes.as_ref());
    let (wait, all) = if text.contains("mbarrier::complete_tx") {
        (
            "wait for the mbarrier that it completes at (`cuda::barrier::wait`, `mbarrier.try_wait`)".to_owned(),
            true,
        )
    } else if let Some(arrival) = completes {
        (
            format!(
                "wait for the mbarrier that it completes at, by the arrival at {} ({})",
                remedy::at(arrival, sources),
                remedy::waits(arrival)
            ),
            true,
        )
    } else if text.contains("bulk") {
        (
            "wait for its group (`cp.async.bulk.wait_group`, `cuda::ptx::cp_async_bulk_wait_group`) in the thread that issued it".to_owned(),
            false,
        )
    } else {
        (
            "wait for it (`__pipeline_wait_prior(0)`, `cuda::pipeline::consumer_wait`, `cooperative_groups::wait`) in the thread that issued it".to_owned(),
            false,
        )
    };
    let behind = match (one_thread, all) {
        (_, true) => ", in every thread that accesses the data",
        (true, false) => "",
        (false, false) => ", and put `__syncthreads()` after that",
    };
    // Two copies with a wait of its own missing for each have nothing in common.
    let waits = race.repair.as_ref().map_or(&[][..], |known| &known.waits);
    let mut places: BTreeSet<String> = match waits {
        _ if all => ["wait".to_owned()].into(),
        [] => [format!("wait for {}", copy.ptx.line)].into(),
        waits => waits.iter().map(|at| format!("wait at {at}")).collect(),
    };
    places.extend((!one_thread && !all).then(|| "barrier".to_owned()));
    let cause = causes::Cause {
        what: format!("{wait}, in {}", copy.function),
        places,
    };
    let other = match second.op == Op::Cp && first.op != Op::Cp {
        true => "first",
        false => "second",
    };
    let help = format!("the copy may still run at the {other} access: before that, {wait}{behind}");
    (help, Some(cause))
}

#[cfg(test)]
mod tests {
    use super::super::model::FrameAt;
    use super::*;

    fn access(op: Op, sem: Semantics, line: u32) -> Access {
        Access {
            op,
            atomic: op == Op::Atom,
            sem,
            frames: vec![FrameAt {
                file: "x.cu".into(),
                line,
                ..FrameAt::default()
            }],
            ..Access::default()
        }
    }

    #[test]
    fn each_level_has_its_rule_and_remedy() {
        let (_folder, sources) = Sources::of_text("");
        let of = |level, op, sem| {
            let sides = [access(Op::St, sem, 1), access(op, sem, 2)];
            let race = log::Race {
                level,
                site: 1,
                decided: true,
                ..log::Race::default()
            };
            let advice = advise(&race, &sides, &sources, Language::Cuda);
            (advice.rule, advice.kind, advice.help)
        };
        let (rule, kind, help) = of(Level::Warp, Op::Ld, Semantics::Weak);
        assert_eq!(
            (rule, kind.to_string().as_str()),
            (RuleId::IntraWarp, "write-read")
        );
        assert!(help.contains("__syncwarp()"));
        assert!(
            of(Level::Cta, Op::St, Semantics::Weak)
                .2
                .contains("put `__syncthreads()`")
        );
        assert!(
            of(Level::Grid, Op::Ld, Semantics::Weak)
                .2
                .contains("does not order blocks")
        );
        assert!(
            of(Level::Grid, Op::Atom, Semantics::Weak)
                .2
                .contains("make it atomic too")
        );
        assert_eq!(
            of(Level::Grid, Op::Atom, Semantics::Relaxed).0,
            RuleId::NarrowScope
        );
        let undecided = advise(
            &log::Race::default(),
            &[
                access(Op::St, Semantics::Weak, 1),
                access(Op::Ld, Semantics::Weak, 2),
            ],
            &sources,
            Language::Cuda,
        );
        assert!(
            undecided.message.starts_with("possible") && undecided.message.contains("not decided")
        );
    }
}
