//! What would order two accesses that nothing orders, or would make their order not matter: the forms of
//! advice, each with what it says.
//!
//! The control flow decides ([`crate::log::Repair`]): updates of one address that commute become atomics;
//! accesses by one block get the barrier that is missing, and where; and between blocks of a grid there is
//! no barrier to put.

use super::model::{Access, FrameAt};
use super::source::Sources;
use crate::log::{self, Level, Outside, Point};

/// The forms of advice for accesses that nothing orders.
#[derive(Debug, PartialEq)]
pub(super) enum Remedy {
    /// Both are part of updates that commute: one atomic call in place of each.
    Atomic(String),
    /// A barrier at each of these places.
    Barrier {
        /// `__syncthreads()` or `__syncwarp()`.
        call: &'static str,
        /// Where, in words.
        places: Vec<String>,
    },
    /// The one access writes several threads' values to one address.
    OneWriter,
    /// Only some threads of the block come to either access, so that no barrier fits between them.
    OutOfBranch(Option<String>),
    /// Nothing is known of the way from one to the other.
    Between(&'static str),
    /// Accesses of different blocks, none of them atomic.
    OtherBlocks,
    /// Of different blocks, and one is atomic.
    OtherBlocksAtomic,
}

impl Remedy {
    /// The advice in a sentence.
    pub(super) fn text(&self) -> String {
        match self {
            Remedy::Atomic(call) => format!("make it one operation: `{call}`"),
            Remedy::Barrier { call, places } => format!("put `{call}` {}", places.join(", and ")),
            Remedy::OneWriter => "let one thread write the element, or give each thread an element of its own; no barrier orders threads that execute the same write".to_owned(),
            Remedy::OutOfBranch(branch) => format!(
                "only some threads of the block execute {}, and a barrier inside does not work: end the branch after the first access, put `__syncthreads()` where all threads of the block pass, and begin another branch for the second access",
                branch.as_ref().map_or_else(|| "these accesses".to_owned(), |at| format!("the branch at {at}"))
            ),
            Remedy::Between(call) => format!(
                "put `{call}` between the two accesses, at a place that all threads it joins reach"
            ),
            Remedy::OtherBlocks => "split the kernel into two launches between the two accesses, or give each block its own part of the data; `__syncthreads()` does not reach other blocks".to_owned(),
            Remedy::OtherBlocksAtomic => "one access is atomic and the other is not; if any value may be seen, make the other atomic too (an atomic load or store, for example through `cuda::atomic_ref`); if it must come before or after all updates, move it to another launch".to_owned(),
        }
    }
}

/// The form for a race of weak accesses. `update` is the atomic call that the source text asks for, if it
/// can be written down.
pub(super) fn choose(
    race: &log::Race,
    accesses: &[Access; 2],
    sources: &Sources,
    update: Option<String>,
) -> Remedy {
    let atomic = accesses.iter().any(|access| access.atomic);
    let commuting = race
        .repair
        .as_ref()
        .and_then(|repair| repair.update.as_ref());
    if let Some(name) = commuting {
        return Remedy::Atomic(update.unwrap_or_else(|| format!("{name}(address, value)")));
    }
    // Of accesses in different functions the source text is all there is.
    if race.repair.is_none()
        && let Some(update) = update
    {
        return Remedy::Atomic(update);
    }
    let repair = match (race.level, &race.repair) {
        (Level::Grid, _) if atomic => return Remedy::OtherBlocksAtomic,
        (Level::Grid, _) => return Remedy::OtherBlocks,
        (Level::Cta, None) => return Remedy::Between("__syncthreads()"),
        (Level::Warp, None) => return Remedy::Between("__syncwarp()"),
        (_, Some(repair)) => repair,
    };
    if race.site == race.previous_site {
        return Remedy::OneWriter;
    }
    let call = match race.level {
        // Where a kernel has phases of the whole block, the next phase begins for all of it.
        Level::Warp if !repair.barriers || repair.points.is_empty() => "__syncwarp()",
        _ => "__syncthreads()",
    };
    if repair.points.is_empty() {
        return match race.level {
            Level::Warp => Remedy::Between(call),
            _ => Remedy::OutOfBranch(repair.conditional.as_ref().and_then(|frames| {
                let frame = frames.last()?;
                Some(format!("{}:{}", sources.shown(&frame.file), frame.line))
            })),
        };
    }
    let places = repair.points.iter();
    Remedy::Barrier {
        call,
        places: places
            .map(|point| place(point, accesses, sources))
            .collect(),
    }
}

/// Where a barrier stands, by the lines of the function that both accesses came through.
fn place(point: &Point, accesses: &[Access; 2], sources: &Sources) -> String {
    let depth = parting(accesses);
    let at = |frame: &FrameAt| format!("{}:{}", sources.shown(&frame.file), frame.line);
    let frames = accesses.each_ref().map(|access| frame(access, depth));
    let (access, own) = match point.later {
        true => (&accesses[1], frames[1]),
        false => (&accesses[0], frames[0]),
    };
    let Some(own) = own else {
        let line = access.ptx.line;
        let side = if point.after { "after" } else { "before" };
        return format!("{side} line {line} of {}", access.ptx.module);
    };
    let what = match (access.atomic, access.op.as_str()) {
        (true, _) => "atomic",
        (_, "st") => "write",
        (_, "cp") => "copy",
        _ => "read",
    };
    let one_line = frames[0]
        .zip(frames[1])
        .is_some_and(|(a, b)| (&a.file, a.line) == (&b.file, b.line));
    if one_line && point.outside.is_none() {
        return match (point.after, what) {
            (true, "read") | (false, "write") => format!(
                "inside the statement at {}: read into a variable first, and write after the barrier",
                at(own)
            ),
            (true, _) => format!("after the statement at {}", at(own)),
            (false, _) => format!("before the statement at {}", at(own)),
        };
    }
    let side = match point.after {
        true => "after",
        false => "before",
    };
    let outside = point.outside.as_ref().map(|outside| {
        let frame = outer(outside, depth).filter(|frame| frame.line != own.line && frame.line > 0);
        let what = if outside.is_loop { "loop" } else { "branch" };
        let where_ = match frame {
            Some(frame) => format!(
                "the {what} at {}:{}",
                sources.shown(&frame.file),
                frame.line
            ),
            None => format!("the {what} around it"),
        };
        let side = match point.after {
            true => "behind the end of",
            false => "ahead of",
        };
        format!(", {side} {where_}, so that every thread of the block reaches it")
    });
    format!(
        "{side} the {what} at {}{}",
        at(own),
        outside.unwrap_or_default()
    )
}

/// How many frames, from the outermost, both accesses came through by the same calls.
fn parting(accesses: &[Access; 2]) -> usize {
    let [one, other] = accesses.each_ref().map(|access| access.frames.iter().rev());
    let same =
        |a: &FrameAt, b: &FrameAt| (&a.file, a.line, a.column) == (&b.file, b.line, b.column);
    one.zip(other).take_while(|(a, b)| same(a, b)).count()
}

/// The frame of an access at a depth from the outermost; the one that reports show when it has none.
fn frame(access: &Access, depth: usize) -> Option<&FrameAt> {
    let found = access.frames.iter().rev().nth(depth);
    found.or_else(|| access.shown())
}

fn outer(outside: &Outside, depth: usize) -> Option<&log::Frame> {
    let mut frames = outside.frames.iter().rev();
    frames.nth(depth).or(outside.frames.first())
}
