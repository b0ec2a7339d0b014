//! A launch that is stuck, in the report: who waits for what, who does not, and what repairs it.

use serde::{Deserialize, Serialize};

use crate::build::address;
use crate::excerpt;
use crate::log;
use crate::model::{Address, FrameAt};
use crate::side::{frames, shown};
use crate::source::Sources;
use crate::words::{counted, number, put_in};

/// Who waits for what, and who does not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stuck {
    /// One for each place and reason, the first 16.
    pub waits: Vec<Wait>,
    /// Places and reasons that are left out.
    pub more: u64,
    /// Blocks that have ended.
    pub exited_blocks: u64,
    /// Indices of the first of them, where they are known.
    pub first_exited: Vec<[u32; 3]>,
    /// Blocks that have not started, because the waiting blocks occupy the device.
    pub unstarted_blocks: u64,
    /// Threads that have exited, of blocks that have not ended.
    pub exited_threads: u64,
    /// What to do about it.
    pub help: String,
}

/// Threads that wait at one place for one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// What kind of thing they wait for.
    pub kind: WaitKind,
    /// What they wait for, in words.
    pub message: String,
    /// How many.
    pub threads: u64,
    /// Of how many blocks.
    pub blocks: u64,
    /// The first of them.
    pub thread: [u32; 3],
    /// Its block.
    pub block: [u32; 3],
    /// What they look at, if that is memory.
    pub address: Option<Address>,
    /// What is there, hexadecimal.
    pub value: Option<String>,
    /// Line of the module's PTX.
    pub ptx_line: u32,
    /// Source, innermost inlined function first.
    pub frames: Vec<FrameAt>,
}

/// What threads wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// Nothing: they can go on, in a launch that was interrupted.
    Running,
    /// A barrier of the block.
    Barrier,
    /// The barrier of the cluster.
    ClusterBarrier,
    /// The barrier of the grid.
    GridBarrier,
    /// Other threads of the warp.
    Warp,
    /// A value in memory.
    Memory,
    /// A phase of an mbarrier.
    Mbarrier,
    /// Nothing: a loop without an end.
    #[default]
    Loop,
}

/// What a log records of a launch of a kernel that is stuck.
pub(crate) fn stuck(of: &log::Stuck, kernel: &str) -> Stuck {
    Stuck {
        waits: waits(of, kernel).collect(),
        more: of.more,
        exited_blocks: of.exited,
        first_exited: of.first_exited.clone(),
        unstarted_blocks: of.unstarted,
        exited_threads: of.exited_threads,
        help: help(of),
    }
}

/// What threads wait for.
pub(crate) fn waits(of: &log::Stuck, kernel: &str) -> impl Iterator<Item = Wait> {
    of.waits.iter().map(move |wait| {
        let (kind, message) = describe(&wait.on);
        let (at, value) = match &wait.on {
            log::On::Memory {
                address: at,
                value,
                allocation,
                ..
            } => (
                Some(address(*at, allocation.as_ref())),
                Some(format!("{value:#x}")),
            ),
            log::On::Mbarrier { address: at, .. } => (Some(address(*at, None)), None),
            _ => (None, None),
        };
        Wait {
            kind,
            message,
            threads: wait.threads,
            blocks: wait.blocks,
            thread: wait.thread,
            block: wait.block,
            address: at,
            value,
            ptx_line: wait.ptx_line,
            frames: frames(&wait.frames, kernel),
        }
    })
}

/// What threads wait for: in one word, and in words that follow "is" or "are".
fn describe(on: &log::On) -> (WaitKind, String) {
    match on {
        log::On::Running => (WaitKind::Running, "running".to_owned()),
        log::On::Lanes => (
            WaitKind::Warp,
            "waiting for other threads of the same warp".to_owned(),
        ),
        log::On::Barrier {
            id,
            arrived,
            expected,
        } => {
            let which = match id {
                0 => "`__syncthreads()`".to_owned(),
                id => format!("barrier {id} of the block"),
            };
            let come = format!(
                "{arrived} of {} have come",
                counted((*expected).into(), "thread")
            );
            (
                WaitKind::Barrier,
                format!("waiting at {which}, to which {come}"),
            )
        }
        log::On::Cluster { arrived, expected } => {
            let come = format!(
                "{arrived} of {} have come",
                counted((*expected).into(), "thread")
            );
            (
                WaitKind::ClusterBarrier,
                format!("waiting at the barrier of the cluster, to which {come}"),
            )
        }
        log::On::Grid => (
            WaitKind::GridBarrier,
            "waiting at the barrier of the grid (`grid.sync()`), to which not all blocks have come"
                .to_owned(),
        ),
        log::On::Memory {
            space,
            address: at,
            bytes,
            value,
            allocation,
        } => {
            let at = excerpt::address(&address(*at, allocation.as_ref()), *space);
            let size = counted((*bytes).into(), "byte");
            (
                WaitKind::Memory,
                format!("waiting for {size} of {space} memory to change (now {value:#x}), at {at}"),
            )
        }
        log::On::Mbarrier {
            address,
            arrivals,
            bytes,
        } => {
            let mut lacks = Vec::new();
            if *arrivals > 0 {
                lacks.push(counted(*arrivals, "arrival"));
            }
            match *bytes {
                0 => {}
                1.. => lacks.push(counted(bytes.unsigned_abs(), "byte")),
                _ => lacks.push(format!(
                    "the announcement of {}",
                    counted(bytes.unsigned_abs(), "byte")
                )),
            }
            let lacks = match &lacks[..] {
                [] => "which is in another phase".to_owned(),
                lacks => format!("which lacks {}", lacks.join(" and ")),
            };
            (
                WaitKind::Mbarrier,
                format!(
                    "waiting for a phase of the mbarrier at offset {address:#x} of shared memory to end, {lacks}"
                ),
            )
        }
        log::On::Nothing => (
            WaitKind::Loop,
            "in an endless loop that reads no memory".to_owned(),
        ),
    }
}

fn help(of: &log::Stuck) -> String {
    let any = |wanted: fn(&log::On) -> bool| of.waits.iter().any(|wait| wanted(&wait.on));
    // nvcc may give the waits of producers and consumers one instruction, with the source of either.
    let in_pipeline = of.waits.iter().any(|wait| {
        let mut functions = wait.frames.iter().filter_map(|at| at.function.as_ref());
        functions.any(|of| of.contains("producer_acquire") || of.contains("consumer_wait"))
    });
    let global = |on: &log::On| {
        let log::On::Memory { space, .. } = on else {
            return false;
        };
        *space == log::Space::Global
    };
    let mut text = if of.unstarted > 0 {
        "launch no more blocks than are resident at once, or do not let blocks wait for later ones"
    } else if any(|on| matches!(on, log::On::Grid)) {
        "every block has to come to each `grid.sync()`: move it out of the condition, and let no block return before it"
    } else if any(|on| matches!(on, log::On::Mbarrier { .. })) && in_pipeline {
        "let each producer commit every stage that it acquires (`cuda::pipeline::producer_commit`), and each consumer release every stage that it waits for (`consumer_release`)"
    } else if any(|on| matches!(on, log::On::Mbarrier { .. })) {
        "let as many threads arrive as the mbarrier was initialised for, and as many bytes come as were announced (`expect_tx`)"
    } else if any(|on| matches!(on, log::On::Memory { .. })) {
        "no thread that is left writes there: let the thread that is to end the wait do so before it exits or waits itself"
    } else if any(|on| matches!(on, log::On::Nothing)) {
        "let the loop look at memory by a volatile or atomic access, or give it an end"
    } else {
        "let all threads that a barrier waits for come to it: move it out of the condition, and let no thread wait elsewhere"
    }
    .to_owned();
    if any(global) {
        text.push_str(
            ". Here a launch ends before the host goes on, so a copy or a launch that comes later does not count; CUDA does not promise that it runs beside this one",
        );
    }
    text
}

/// Which threads wait, and for what.
pub(crate) fn waiting(wait: &Wait) -> String {
    let index = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    let (block, message) = (index(wait.block), &wait.message);
    match (wait.threads, wait.blocks) {
        (1, _) => format!(
            "thread {} of block {block} is {message}",
            index(wait.thread)
        ),
        (threads, 1) => format!(
            "{} of block {block} are {message}",
            counted(threads, "thread")
        ),
        (threads, blocks) => format!(
            "{} of {}, the first of them {block}, are {message}",
            counted(threads, "thread"),
            counted(blocks, "block"),
        ),
    }
}

/// The lines below the first one of a launch that was interrupted, where it is known what its threads did.
pub(crate) fn interrupted(threads: &[Wait], sources: &Sources) -> String {
    let mut text = places(threads, sources);
    if !threads.is_empty() {
        text.push_str(
            "\n  = note: on the simulated device a launch ends before the host goes on, so threads must not wait for what the host does after the launch",
        );
    }
    text
}

/// Where threads wait, a line for each place, and its source.
fn places(waits: &[Wait], sources: &Sources) -> String {
    let mut text = String::new();
    for wait in waits {
        let line = shown(&wait.frames);
        let at = match line {
            Some(frame) => format!("{}:{}", sources.shown(&frame.file), frame.line),
            None => format!("ptx line {}", wait.ptx_line),
        };
        put_in(&mut text, format_args!("\n  --> {at}: {}", waiting(wait)));
        if let Some(line) = line.and_then(|frame| sources.line(&frame.file, frame.line)) {
            put_in(&mut text, format_args!("\n      | {}", line.trim()));
        }
    }
    text
}

/// The lines below the first one of a launch that is stuck.
pub(crate) fn render(stuck: &Stuck, sources: &Sources) -> String {
    let mut text = places(&stuck.waits, sources);
    let index = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    let mut note = |what: String| put_in(&mut text, format_args!("\n  = {what}"));
    if stuck.more > 0 {
        note(format!(
            "note: threads wait at {} more places or for more values",
            number(stuck.more)
        ));
    }
    let exited = |verb: &str| {
        let named: Vec<String> = stuck
            .first_exited
            .iter()
            .map(|&block| index(block))
            .collect();
        let more = stuck.exited_blocks.saturating_sub(named.len() as u64);
        let and = if more > 0 {
            format!(" and {} more", number(more))
        } else {
            String::new()
        };
        let blocks = if stuck.exited_blocks == 1 {
            "block"
        } else {
            "blocks"
        };
        match named.is_empty() {
            true => format!(
                "note: {} {verb} exited",
                counted(stuck.exited_blocks, "block")
            ),
            false => format!("note: {blocks} {}{and} {verb} exited", named.join(", ")),
        }
    };
    match stuck.exited_blocks {
        0 => {}
        1 => note(exited("has")),
        _ => note(exited("have")),
    }
    if stuck.exited_threads > 0 {
        let threads = counted(stuck.exited_threads, "thread");
        note(format!(
            "note: {threads} of the blocks that wait have exited"
        ));
    }
    if stuck.unstarted_blocks > 0 {
        let blocks = counted(stuck.unstarted_blocks, "block");
        note(format!(
            "note: {blocks} have not started: the waiting blocks occupy the device"
        ));
    }
    note(format!("help: {}", stuck.help));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_in_a_pipeline_names_the_calls_that_end_it() {
        let within = |function: &str| {
            let frame = log::Frame {
                function: Some(function.to_owned()),
                ..log::Frame::default()
            };
            let wait = log::Wait {
                on: log::On::Mbarrier {
                    address: 8,
                    arrivals: 64,
                    bytes: 0,
                },
                frames: vec![log::Frame::default(), frame],
                ..log::Wait::default()
            };
            help(&log::Stuck {
                waits: vec![wait],
                ..log::Stuck::default()
            })
        };
        for method in ["16producer_acquire", "13consumer_wait"] {
            let help = within(&format!("_ZN4cuda3__48pipelineILi2EE{method}Ev"));
            assert!(
                help.contains("let each producer commit every stage"),
                "{help}"
            );
        }
        let other = within("_ZN5other4waitEv");
        assert!(
            other.contains("as the mbarrier was initialised for"),
            "{other}"
        );
    }
}
