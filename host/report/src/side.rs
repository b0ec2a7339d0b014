//! One side of a race: its identity for merging, and what the report says of it.

use std::path::Path;

use crate::log::{self, Op, Semantics};
use crate::model::{Access, BarrierAt, Barriers, FrameAt, PtxLine, Role};
use crate::names;
use crate::names::demangle;
use crate::source::Sources;

/// Two reports are one when both sides come from the same place and do the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Side {
    op: Op,
    function: String,
    /// File, line and column that reports show; or the module and the line in it.
    place: (String, u32, u32),
}

/// A site, and where its module comes from.
#[derive(Clone, Copy)]
pub(crate) struct LoggedSite<'a> {
    pub(crate) site: &'a log::Site,
    pub(crate) origin: &'a str,
}

/// The identity of a site in the module that came from `origin`.
pub(crate) fn side(LoggedSite { site, origin }: LoggedSite<'_>) -> Side {
    let frames = frames(&site.frames, &site.function);
    // A source line that is inlined at several places is one place.
    let (place, function) = match shown(&frames) {
        None => ((origin.to_owned(), site.ptx_line, 0), &site.function),
        Some(frame) => (
            (frame.file.clone(), frame.line, frame.column),
            &frame.function,
        ),
    };
    Side {
        op: site.op,
        // With lines known, instantiations of one template are one place.
        function: match site.frames[..] {
            [] => function.clone(),
            _ => names::base(function).into_owned(),
        },
        place,
    }
}

/// What is known of a site; who executed it is left open.
pub(crate) fn access(LoggedSite { site, origin }: LoggedSite<'_>) -> Access {
    Access {
        role: Role::First,
        op: site.op.into(),
        width: site.bytes,
        atomic: site.op == Op::Atomic,
        sem: site.sem,
        scope: site.scope,
        thread: None,
        block: None,
        value: None,
        ptx: PtxLine {
            module: origin.to_owned(),
            line: site.ptx_line,
            text: site.text.clone(),
        },
        function: demangle(&site.function),
        frames: frames(&site.frames, &site.function),
        locks: Vec::new(),
        barriers: Barriers::default(),
    }
}

/// The same of a site by which a thread came to a barrier, whatever it does to the memory where that lies.
pub(crate) fn came(LoggedSite { site, origin }: LoggedSite<'_>) -> Access {
    let barrier = log::Site {
        op: Op::Barrier,
        ..site.clone()
    };
    Access {
        width: 0,
        sem: Semantics::Weak,
        scope: None,
        ..access(LoggedSite {
            site: &barrier,
            origin,
        })
    }
}

/// The barriers of the code around an access in `function`.
pub(crate) fn barriers(around: &log::Around, function: &str, sources: &Sources) -> Barriers {
    let at = |barrier: &log::Barrier| BarrierAt {
        of: barrier.of.clone(),
        place: match shown(&frames(&barrier.frames, function)) {
            Some(frame) => format!("{}:{}", sources.shown(&frame.file), frame.line),
            None => format!("PTX line {}", barrier.ptx_line),
        },
    };
    Barriers {
        before: around.before.as_ref().map(at),
        after: around.after.as_ref().map(at),
    }
}

/// Source positions, outermost function named too.
pub(crate) fn frames(frames: &[log::Frame], function: &str) -> Vec<FrameAt> {
    let at = |frame: &log::Frame| FrameAt {
        file: frame.file.clone(),
        line: frame.line,
        column: frame.column,
        function: demangle(frame.function.as_deref().unwrap_or(function)),
        inlined: frame.function.is_some(),
    };
    frames.iter().map(at).collect()
}

/// The frame to show of several, innermost first; see [`Access::shown`].
pub(crate) fn shown(frames: &[FrameAt]) -> Option<&FrameAt> {
    let own = |frame: &&FrameAt| !in_library(Path::new(&frame.file));
    frames.iter().find(own).or(frames.first())
}

/// Whether a file is one of the CUDA toolkit's headers, in a folder with those of the runtime, or of Triton's library.
pub(crate) fn in_library(file: &Path) -> bool {
    let mut folders = file.ancestors().skip(1);
    folders.any(|folder| match folder.ends_with("include") {
        true => folder.join("cuda_runtime_api.h").exists(),
        false => folder.ends_with("triton/language"),
    })
}
