//! Accesses outside of all memory, in the report.

use serde::{Deserialize, Serialize};

use crate::build::address;
use crate::log::{self, StraySpace};
use crate::model::{Act, Address, FrameAt};
use crate::names::{VARIABLE, demangle};
use crate::side::frames;
use crate::source::Sources;
use crate::words::{counted, put_in};

/// Accesses of one instruction outside of all memory, after which the launch went on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stray {
    /// Demangled.
    pub kernel: String,
    /// The first launch that made one.
    pub launch: u64,
    /// What each does.
    pub op: Act,
    /// The memory that it would be in.
    pub space: StraySpace,
    /// Bytes of one thread.
    pub bytes: u64,
    /// The first thread, in its block.
    pub thread: [u32; 3],
    /// Its block.
    pub block: [u32; 3],
    /// Where its access begins, hexadecimal.
    pub address: String,
    /// What is nearest to it, in words.
    pub distance: String,
    /// The allocation of device memory that is nearest to it.
    pub nearest: Option<Address>,
    /// How many accesses of threads there were.
    pub count: u64,
    /// Line of the module's PTX.
    pub ptx_line: u32,
    /// Source, innermost inlined function first.
    pub frames: Vec<FrameAt>,
}

/// Adds what a launch has made to what is known.
pub(crate) fn add(all: &mut Vec<Stray>, launch: &log::Launch) {
    let kernel = demangle(&launch.kernel);
    for stray in &launch.strays {
        let same = |known: &&mut Stray| {
            known.kernel == kernel
                && known.ptx_line == stray.ptx_line
                && (known.op, known.space) == (stray.op, stray.space)
        };
        if let Some(known) = all.iter_mut().find(same) {
            known.count += stray.count;
            continue;
        }
        all.push(Stray {
            kernel: kernel.clone(),
            launch: launch.launch,
            op: stray.op,
            space: stray.space,
            bytes: stray.bytes,
            thread: stray.thread,
            block: stray.block,
            address: format!("{:#x}", stray.address),
            distance: distance(stray),
            nearest: stray.nearest.as_ref().map(|of| address(of.base, Some(of))),
            count: stray.count,
            ptx_line: stray.ptx_line,
            frames: frames(&stray.frames, &launch.kernel),
        });
    }
}

/// How far it is from the memory that is nearest to it.
fn distance(stray: &log::Stray) -> String {
    let end = stray.address.saturating_add(stray.bytes);
    let Some(near) = &stray.nearest else {
        return match stray.space {
            StraySpace::Global => "no memory is allocated".to_owned(),
            space => format!(
                "the thread has {} of {space} memory",
                counted(stray.size, "byte")
            ),
        };
    };
    let what = match near.api.strip_prefix(VARIABLE) {
        Some(name) => format!("variable `{}`", demangle(name)),
        None => format!("made by {}", near.api),
    };
    let memory = format!(
        "allocation #{} of {}, {what}",
        near.id,
        counted(near.bytes, "byte")
    );
    let last = near.base + near.bytes;
    match stray.address {
        at if at >= last => format!("{} behind the end of {memory}", counted(at - last, "byte")),
        at if at >= near.base => {
            format!(
                "its last {} are behind the end of {memory}",
                counted(end - last, "byte")
            )
        }
        at => format!(
            "{} before the start of {memory}",
            counted(near.base - at, "byte")
        ),
    }
}

/// One of them, without the newline at its end.
pub(crate) fn render(stray: &Stray, sources: &Sources) -> String {
    let index = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    let op = match stray.op {
        Act::Atomic => "atomic access",
        op => op.noun(),
    };
    let mut text = format!(
        "error: out of bounds: {op} of {} of {} memory at {} by thread {} of block {} of {}",
        counted(stray.bytes, "byte"),
        stray.space,
        stray.address,
        index(stray.thread),
        index(stray.block),
        stray.kernel
    );
    let frame = stray.frames.first();
    match frame {
        Some(frame) => put_in(
            &mut text,
            format_args!("\n  --> {}:{}", sources.shown(&frame.file), frame.line),
        ),
        None => put_in(
            &mut text,
            format_args!("\n  --> ptx line {}", stray.ptx_line),
        ),
    }
    if let Some(line) = frame.and_then(|frame| sources.line(&frame.file, frame.line)) {
        put_in(&mut text, format_args!("\n      | {}", line.trim()));
    }
    put_in(&mut text, format_args!("\n  = nearest: {}", stray.distance));
    let went = match stray.op {
        Act::Read => "read as zero",
        Act::Write => "dropped",
        Act::Atomic | Act::Copy => "dropped, and zero as a result",
    };
    put_in(
        &mut text,
        format_args!(
            "\n  = seen: {}, the first in launch #{}; {went}",
            counted(stray.count, "time"),
            stray.launch
        ),
    );
    text
}
