//! Launches that failed.

use crate::log;
use crate::model::Failure;
use crate::names::demangle;
use crate::side::frames;
use crate::stuck::stuck;
use crate::words::counted;

/// Adds a failed launch to those that are known.
pub(crate) fn add(all: &mut Vec<Failure>, launch: &log::Launch, message: &str) {
    let waits = launch.stuck.as_deref();
    let size = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
    let message = match launch.invalid {
        // What it asked for is what is wrong.
        true => format!(
            "{message}, with grid {}, block {} and {} of dynamic shared memory",
            size(launch.grid),
            size(launch.block),
            counted(launch.dynamic_shared.into(), "byte")
        ),
        false => message.to_owned(),
    };
    let failure = Failure {
        kernel: demangle(&launch.kernel),
        message,
        invalid: launch.invalid,
        unsupported: launch.unsupported,
        deadlock: launch.deadlock,
        stuck: waits.map(|waits| stuck(waits, &launch.kernel)),
        frames: frames(&launch.error_frames, &launch.kernel),
        count: 1,
    };
    let same = |known: &&mut Failure| {
        // Under another schedule other blocks may be the first to wait at the same places.
        known.kernel == failure.kernel
            && known.deadlock == failure.deadlock
            && (failure.deadlock || known.message == failure.message)
            && known.frames == failure.frames
    };
    match all.iter_mut().find(same) {
        Some(known) => known.count += 1,
        None => all.push(failure),
    }
}
