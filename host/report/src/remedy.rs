//! What would order two accesses that nothing orders, or would make their order not matter: the forms of
//! advice, each with what it says.
//!
//! The control flow decides ([`crate::log::Repair`]): updates of one address that commute become atomics;
//! accesses by one block get the barrier that is missing, and where; and between blocks of a grid there is
//! a barrier for cooperative launches only.

use std::path::Path;

use crate::causes::Cause;
use crate::log::{self, Level, Outside, Point};
use crate::model::{Access, FrameAt, Semantics};
use crate::side;
use crate::source::Sources;
use crate::statement::{self, Kind};
use crate::update;
use crate::words::{counted, joined};

/// Places that advice names; of more it says the number.
const PLACES: usize = 8;

/// The forms of advice for accesses that nothing orders.
#[derive(Debug, PartialEq)]
pub(crate) enum Remedy {
    /// Both are part of updates that commute: this says which atomic call takes their place.
    Atomic(String),
    /// A barrier at each of these places.
    Barrier {
        /// `__syncthreads()` or `__syncwarp()`.
        call: &'static str,
        /// Where, in words.
        places: Vec<String>,
    },
    /// Threads execute the one write, with an own value each.
    OneWriter,
    /// A barrier orders the accesses on one path, and a branch skips it.
    Passed {
        /// Where the barrier is.
        barrier: String,
        /// Where the branch is.
        branch: String,
    },
    /// A thread arrives at an mbarrier after one access, and the other thread does not wait for it.
    Unwaited {
        /// The access before which the wait is missing, such as `read at x.cu:7`.
        before: String,
        /// Where the other thread arrives.
        arrival: String,
        /// The calls that wait, as code.
        calls: &'static str,
    },
    /// A thread arrives at a barrier of the block before its access, which the other thread waits for there.
    ArriveLater {
        /// `first` or `second`.
        thread: &'static str,
        /// Where it arrives.
        arrival: String,
    },
    /// Only some threads of the block come to either access, so that no barrier fits between them.
    OutOfBranch(Option<String>),
    /// Some threads have left before both accesses.
    Left(String),
    /// The accesses are made in two calls of this function.
    BetweenCalls(String),
    /// Nothing is known of the way from one to the other.
    Between(&'static str),
    /// Accesses of different blocks, none of them atomic, and where the kernel can be split between them.
    OtherBlocks(Vec<String>),
    /// Of different blocks, of which the second comes here depending on what an atomic has counted.
    Counted {
        /// Where the atomic is.
        at: String,
        /// No fence is in front of it.
        before: bool,
        /// No fence is behind it.
        after: bool,
    },
    /// One is atomic, or volatile; nothing says whether the other needs an order.
    AtomicOr {
        /// The scope of an atomic that has both threads, such as `device`.
        scope: &'static str,
        /// It is volatile.
        volatile: bool,
        /// What orders them.
        order: Box<Remedy>,
    },
}

impl Remedy {
    /// The advice in a sentence.
    pub(crate) fn text(&self) -> String {
        match self {
            Remedy::Atomic(advice) => advice.clone(),
            Remedy::Barrier { call, places } => {
                let lockstep = match *call {
                    "__syncwarp()" => "; lanes of a warp do not run in lockstep",
                    _ => "",
                };
                format!("put `{call}` {}{lockstep}", listed(places))
            }
            Remedy::Passed { barrier, branch } => format!(
                "the branch at {branch} skips the `__syncthreads()` at {barrier}: move the barrier out of the branch, so that every path between the two accesses executes it"
            ),
            Remedy::Unwaited { before, arrival, calls } => format!(
                "before the {before}, wait for the mbarrier at which the other thread arrives at {arrival} ({calls})"
            ),
            Remedy::ArriveLater { thread, arrival } => format!(
                "let the {thread} thread arrive after its access, and not before, at the barrier at which it arrives at {arrival} (`barrier.arrive`)"
            ),
            Remedy::OneWriter => "let one thread write the element, or give each thread an element of its own: no barrier orders threads that execute the same write".to_owned(),
            Remedy::OutOfBranch(branch) => format!(
                "end {} after the first access, put `__syncthreads()` where all threads of the block pass, and begin another branch for the second access: only some threads of the block execute both accesses",
                branch.as_ref().map_or_else(|| "the branch around them".to_owned(), |at| format!("the branch at {at}"))
            ),
            Remedy::Left(at) => format!(
                "do not return at {at}: put the code after it into two branches, one up to the first access and one for the second, and `__syncthreads()` between the branches, where all threads of the block pass"
            ),
            Remedy::Between("__syncwarp()") => "put `__syncwarp()` between the two accesses, with a mask of the lanes that execute both if not all of the warp do; lanes of a warp do not run in lockstep".to_owned(),
            Remedy::Between(call) => format!(
                "put `{call}` between the two accesses, where all threads of the block pass"
            ),
            Remedy::BetweenCalls(function) => format!(
                "put `__syncthreads()` at the end of `{function}`, or between its calls: the two accesses are made in two calls"
            ),
            Remedy::OtherBlocks(places) => {
                let places = match &places[..] {
                    [] => "between the two accesses".to_owned(),
                    places => listed(places),
                };
                format!("put a barrier of the grid {places} (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there and go on in another launch: `__syncthreads()` does not order blocks")
            }
            Remedy::Counted { at, before: false, after: false } => format!(
                "put `__syncthreads()` between the fences around the atomic at {at} and the accesses of other threads of the block: a fence alone does not hand over what other threads have written"
            ),
            Remedy::Counted { at, before, after } => {
                let places = match (before, after) {
                    (true, false) => format!("before the atomic at {at}"),
                    (false, true) => format!("after the atomic at {at}"),
                    _ => format!("before and after the atomic at {at}"),
                };
                format!("put `__threadfence()` {places}: an atomic alone does not hand over what was written before it")
            }
            Remedy::AtomicOr { scope, volatile: true, order } => format!(
                "only one of the accesses is volatile: if the two may come in either order, make both atomic (`cuda::atomic_ref` of {scope} scope); if one must come first, {}",
                order.text()
            ),
            Remedy::AtomicOr { scope, volatile: false, order } => format!(
                "only one of the accesses is atomic: if the other may come before, between or after the updates, make it atomic too (`cuda::atomic_ref` of {scope} scope); if it must come before or after all of them, {}",
                order.text()
            ),
        }
    }
}

impl Remedy {
    /// What it repairs, if that may be the cause of several races.
    pub(crate) fn cause(&self, race: &log::Race, accesses: &[Access; 2]) -> Option<Cause> {
        let repair = race.repair.as_ref();
        let module = &accesses[1].ptx.module;
        let of = |what: &str, lines: Vec<u32>| Cause {
            what: format!("{what} in {module}"),
            places: lines.iter().map(u32::to_string).collect(),
        };
        let cause = match self {
            // What is made atomic no longer races with itself either.
            Remedy::AtomicOr { order, .. } => {
                let is_plain = |access: &&Access| !access.atomic && access.sem == Semantics::Weak;
                let plain = accesses.iter().find(is_plain)?;
                let of_plain = || Cause {
                    what: format!("plain access in {module}"),
                    places: [site(plain), "atomic".to_owned()].into(),
                };
                return order.cause(race, accesses).or_else(|| Some(of_plain()));
            }
            Remedy::OneWriter => Cause {
                what: format!("plain access in {module}"),
                places: [site(&accesses[1])].into(),
            },
            Remedy::Atomic(_) => of("atomic", repair?.update.as_ref()?.lines.clone()),
            // By the source: code that the compiler has copied is several places of the module.
            Remedy::Barrier { call, places } => Cause {
                what: match repair?.points[..] {
                    [] => (*call).to_owned(),
                    _ => format!("{call} in {module}"),
                },
                places: places.iter().cloned().collect(),
            },
            Remedy::OtherBlocks(_) => {
                let points = &repair?.points;
                of("launch", points.iter().map(|point| point.place).collect())
            }
            Remedy::Counted { at, .. } => Cause {
                what: "atomic".to_owned(),
                places: [at.clone()].into(),
            },
            Remedy::Passed { barrier, .. } => Cause {
                what: "barrier passed".to_owned(),
                places: [barrier.clone()].into(),
            },
            Remedy::Unwaited { arrival, .. } => Cause {
                what: "mbarrier".to_owned(),
                places: [arrival.clone()].into(),
            },
            Remedy::ArriveLater { arrival, .. } => Cause {
                what: "arrival".to_owned(),
                places: [arrival.clone()].into(),
            },
            Remedy::OutOfBranch(Some(at)) | Remedy::Left(at) => Cause {
                what: "branch".to_owned(),
                places: [at.clone()].into(),
            },
            _ => return None,
        };
        Some(cause).filter(|cause| !cause.places.is_empty())
    }
}

/// Which access it is, by its place in the source.
fn site(access: &Access) -> String {
    match access.shown() {
        Some(frame) => format!("{}:{}:{}", frame.file, frame.line, frame.column),
        None => access.ptx.line.to_string(),
    }
}

/// An atomic, or a load or a store by `cuda::atomic_ref`.
fn is_atomic(access: &Access) -> bool {
    let says = matches!(
        access.sem,
        Semantics::Relaxed | Semantics::Acquire | Semantics::Release | Semantics::AcqRel
    );
    access.atomic || says
}

/// Places in a sentence.
pub(crate) fn listed(places: &[String]) -> String {
    let more = places.len().saturating_sub(PLACES);
    let mut shown: Vec<String> = places.iter().take(PLACES).cloned().collect();
    if more > 0 {
        shown.push(format!("at {} more", counted(more as u64, "place")));
    }
    joined(&shown)
}

/// The form for a race of accesses that are not both strong.
pub(crate) fn choose(race: &log::Race, accesses: &[Access; 2], sources: &Sources) -> Remedy {
    let volatile = accesses
        .iter()
        .filter(|access| access.sem == Semantics::Volatile);
    let volatile = volatile.count();
    let [one, other] = accesses.each_ref().map(is_atomic);
    let is_mixed = one != other;
    let known = race.repair.as_ref();
    // Where one half of an update is strong already, the other has to be.
    let halves = is_mixed && !accesses.iter().any(|access| access.atomic);
    let commuting = known.filter(|_| !halves);
    let commuting = commuting.and_then(|repair| repair.update.as_ref());
    // Of accesses in different functions the source text is all there is.
    if (known.is_none() || commuting.is_some())
        && let Some(advice) = update::advice(commuting, accesses, sources)
    {
        return Remedy::Atomic(advice);
    }
    if race.site == race.previous_site && !one {
        return Remedy::OneWriter;
    }
    let points = known.map_or(&[][..], |repair| &repair.points);
    let mut places = places(points, sources);
    let behind = known.and_then(|repair| behind_statement(race, repair, sources));
    if let Some(behind) = behind.filter(|behind| !places.contains(behind)) {
        places.insert(0, behind);
    }
    let call = match known {
        Some(repair) if !repair.of_warps => "__syncthreads()",
        None if race.level == Level::Cta => "__syncthreads()",
        _ => "__syncwarp()",
    };
    let of_block = matches!(race.level, Level::Cta | Level::Warp);
    if of_block && let Some(repair) = known {
        if let Some(passed) = &repair.passed {
            return Remedy::Passed {
                barrier: at(&passed.barrier, sources),
                branch: at(&passed.branch, sources),
            };
        }
        let unwaited = repair.unwaited.as_ref();
        if let Some(unwaited) = unwaited.filter(|of| of.is_between || points.is_empty()) {
            let [earlier, later] = accesses;
            let before = if unwaited.before_earlier {
                earlier
            } else {
                later
            };
            return Remedy::Unwaited {
                before: crate::advice::place(before, sources),
                arrival: at(&unwaited.arrival, sources),
                calls: waits(&unwaited.arrival),
            };
        }
        let early = repair.early_arrival.as_ref();
        if let Some(early) = early.filter(|_| points.is_empty()) {
            return Remedy::ArriveLater {
                thread: if early.by_later { "second" } else { "first" },
                arrival: at(&early.arrival, sources),
            };
        }
    }
    let counted = known.and_then(|repair| repair.counted.as_ref());
    // A fence hands over what the thread that has counted last reads, whatever it reads it with.
    let is_counted = counted.is_some() && !accesses.iter().any(|access| access.atomic);
    match (race.level, known) {
        (Level::Grid, _) if !is_counted && (is_mixed || volatile == 1) => Remedy::AtomicOr {
            scope: "device",
            volatile: !is_mixed,
            order: Box::new(Remedy::OtherBlocks(places)),
        },
        (Level::Grid, _) if let Some(counted) = counted => Remedy::Counted {
            at: instruction(&counted.frames, counted.line, sources),
            before: counted.before,
            after: counted.after,
        },
        (Level::Grid, _) => Remedy::OtherBlocks(places),
        _ => {
            let order = match known {
                Some(_) if !points.is_empty() => Remedy::Barrier { call, places },
                Some(repair) if race.level == Level::Cta => around(repair, accesses, sources),
                _ => Remedy::Between(call),
            };
            // Where one barrier of the block is enough, the code has a before and an after.
            let has_place = match &order {
                Remedy::Barrier { call, places } => *call == "__syncthreads()" && places.len() == 1,
                _ => false,
            };
            match is_mixed && !has_place {
                true => Remedy::AtomicOr {
                    scope: "block",
                    volatile: false,
                    order: Box::new(order),
                },
                false => order,
            }
        }
    }
}

/// Where an instruction is, such as `x.cu:7`.
pub(crate) fn at(place: &log::CodeLocation, sources: &Sources) -> String {
    instruction(&place.frames, place.line, sources)
}

/// The calls that wait for an mbarrier at which a thread arrives there.
pub(crate) fn waits(arrival: &log::CodeLocation) -> &'static str {
    let is_in = |name: &str| {
        let mut functions = arrival.frames.iter().filter_map(|at| at.function.as_ref());
        functions.any(|function| function.contains(name))
    };
    match (is_in("producer_commit"), is_in("consumer_release")) {
        (true, _) => "`cuda::pipeline::consumer_wait`",
        (_, true) => "`cuda::pipeline::producer_acquire`",
        _ => "`cuda::barrier::wait`, `mbarrier.try_wait`",
    }
}

fn instruction(frames: &[log::Frame], line: u32, sources: &Sources) -> String {
    let frames = side::frames(frames, "");
    side::shown(&frames).map_or_else(
        || format!("line {line} of the PTX"),
        |frame| shown(frame, sources),
    )
}

/// The form for accesses that only some threads of the block make, by the branch that leads there: the compiler joins
/// branches, so that the source says more about what is in one than the control flow.
fn around(repair: &log::Repair, accesses: &[Access; 2], sources: &Sources) -> Remedy {
    if repair.between_calls {
        return Remedy::BetweenCalls(accesses[1].function.clone());
    }
    let Some(branch) = &repair.conditional else {
        return Remedy::Between("__syncthreads()");
    };
    let branch = side::frames(branch, "");
    let [one, other] = accesses.each_ref().map(|access| &access.frames[..]);
    let depth = parting(one, other);
    let Some(branch) = branch.iter().rev().nth(depth).or(branch.last()) else {
        return Remedy::OutOfBranch(None);
    };
    let at = shown(branch, sources);
    let text = sources.text(&branch.file);
    let found = text.as_ref().and_then(|text| {
        let (kind, range) = statement::at(text, branch.line, branch.column)?;
        let place = |frames: &[FrameAt]| {
            let frame = frame(frames, depth).filter(|frame| frame.file == branch.file)?;
            statement::offset(text, frame.line, frame.column)
        };
        let (one, other) = (place(one)?, place(other)?);
        Some((kind, range, one.min(other), one.max(other)))
    });
    match found {
        Some((kind, range, first, last)) if range.contains(&first) && last >= range.end => {
            Remedy::Barrier {
                call: "__syncthreads()",
                places: vec![format!("after the end of the {} at {at}", kind.noun())],
            }
        }
        Some((Kind::Branch, range, first, _)) if first >= range.end => Remedy::Left(at),
        _ => Remedy::OutOfBranch(Some(at)),
    }
}

/// Where barriers stand, each place once.
pub(crate) fn places(points: &[Point], sources: &Sources) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for place in points.iter().map(|point| place(point, sources)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Where a barrier stands, by the lines of the function that both accesses came through.
fn place(point: &Point, sources: &Sources) -> String {
    let frames = [&point.frames, &point.other].map(|frames| side::frames(frames, ""));
    let depth = parting(&frames[0], &frames[1]);
    let side = if point.after { "after" } else { "before" };
    let Some(own) = frame(&frames[0], depth) else {
        return match point.outside {
            Some(_) => format!("before line {} of the PTX", point.place),
            None => format!("{side} line {} of the PTX", point.ptx_line),
        };
    };
    if let Some(call) = call_of_library(&frames[0], depth) {
        return format!("{side} the call at {}", shown(call, sources));
    }
    let what: &str = match side::shown(&frames[0]) == Some(own) {
        true => point.op.into(),
        false => "call",
    };
    let other = frame(&frames[1], depth).filter(|other| own.file == other.file);
    let one_line = other.is_some_and(|other| own.line == other.line);
    let at = shown(own, sources);
    match &point.outside {
        Some(outside) => beside(outside, side, depth, own, sources),
        None if let Some(line) = other.and_then(|other| loop_line(own, other, sources)) => {
            let end = if point.after { "the end of " } else { "" };
            let file = sources.shown(&own.file);
            format!("{side} {end}the loop at {file}:{line}")
        }
        None if !one_line => format!("{side} the {what} at {at}"),
        None => match (point.after, what) {
            (true, "read") | (false, "write") => format!(
                "inside the statement at {at}: read into a variable first, and write after the barrier"
            ),
            _ => format!("{side} the statement at {at}"),
        },
    }
}

/// The place behind a statement that holds both accesses and that a loop of the source repeats. The compiler may have taken
/// them out of the loop, which it can only if no barrier is in it; then the control flow does not show that the next
/// iteration needs one too.
fn behind_statement(race: &log::Race, repair: &log::Repair, sources: &Sources) -> Option<String> {
    let [point] = &repair.points[..] else {
        return None;
    };
    let frames = [&point.frames, &point.other].map(|frames| side::frames(frames, ""));
    let depth = parting(&frames[0], &frames[1]);
    let (own, other) = (frame(&frames[0], depth)?, frame(&frames[1], depth)?);
    let one_line = (&own.file, own.line) == (&other.file, other.line);
    if !repair.is_straight || !one_line || point.outside.is_some() {
        return None;
    }
    let text = sources.text(&own.file)?;
    let offset = |frame: &FrameAt| statement::offset(&text, frame.line, frame.column);
    let repeated = statement::loop_around(&text, offset(own)?)?;
    let barriers = race.around.iter().flat_map(|of| [&of.before, &of.after]);
    let mut barriers = barriers.flatten();
    let in_loop = |barrier: &log::Barrier| {
        side::frames(&barrier.frames, "")
            .iter()
            .any(|at| at.file == own.file && offset(at).is_some_and(|at| repeated.contains(&at)))
    };
    let behind = || format!("after the statement at {}", shown(own, sources));
    (!barriers.any(in_loop)).then(behind)
}

/// The line of the outermost loop of the source that one access is in and the other is not: the compiler may have
/// unrolled it, so that the control flow has none.
fn loop_line(own: &FrameAt, other: &FrameAt, sources: &Sources) -> Option<usize> {
    let text = sources.text(&own.file)?;
    let [inside, outside] =
        [own, other].map(|frame| statement::offset(&text, frame.line, frame.column));
    let start = statement::loop_of(&text, inside?, outside?)?;
    Some(1 + text[..start].matches('\n').count())
}

/// The same for a place outside of a branch or loop that holds the access.
fn beside(outside: &Outside, side: &str, depth: usize, own: &FrameAt, sources: &Sources) -> String {
    let frames = side::frames(&outside.frames, "");
    let of_line = frame(&frames, depth)
        .filter(|frame| frame.line > 0)
        .unwrap_or(own);
    let text = sources.text(&of_line.file);
    let kind = text.and_then(|text| statement::at(&text, of_line.line, of_line.column));
    let noun = match kind {
        Some((kind, _)) => kind.noun(),
        None if outside.is_loop => Kind::Loop.noun(),
        None => Kind::Branch.noun(),
    };
    let end = if side == "after" { "the end of " } else { "" };
    format!("{side} {end}the {noun} at {}", shown(of_line, sources))
}

fn shown(frame: &FrameAt, sources: &Sources) -> String {
    format!("{}:{}", sources.shown(&frame.file), frame.line)
}

/// How many frames, from the outermost, two accesses came through by the same calls.
fn parting(one: &[FrameAt], other: &[FrameAt]) -> usize {
    let same =
        |a: &FrameAt, b: &FrameAt| (&a.file, a.line, a.column) == (&b.file, b.line, b.column);
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take_while(|(a, b)| same(a, b)).count()
}

/// The call in the user's code that led to the frame at a depth from the outermost, if that is in a library,
/// such as CUB, which nobody is to change.
fn call_of_library(frames: &[FrameAt], depth: usize) -> Option<&FrameAt> {
    let in_library = |frame: &&FrameAt| side::in_library(Path::new(&frame.file));
    let mut outer = frames.iter().rev().take(depth + 1);
    outer.next_back().filter(in_library)?;
    outer.rev().find(|frame| !in_library(frame))
}

/// The frame at a depth from the outermost; the one that reports show when there is none.
fn frame(frames: &[FrameAt], depth: usize) -> Option<&FrameAt> {
    let found = frames.iter().rev().nth(depth);
    found.or_else(|| side::shown(frames))
}
