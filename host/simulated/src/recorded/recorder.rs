//! Records launches while a program runs: keeps what memory holds before each, and writes it down for those with races.

use std::fs::File;
use std::path::PathBuf;

use driver::DeviceError;
use runtime::Checker;
use simt::{Device, LaunchError, LaunchStats, State};

use super::{Contents, Ended, Recorded, TooLarge};
use crate::CheckedSim;

/// How the name of a recording ends.
pub(crate) const EXTENSION: &str = "launch";

/// Records the launches of a device.
#[derive(Debug)]
pub(crate) struct Recorder {
    folder: PathBuf,
    /// Bytes of contents that may still be kept.
    left: u64,
    /// Room for contents.
    room: Contents,
}

/// What a device was before a launch.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) state: State,
    pub(crate) contents: Contents,
}

impl Before {
    pub(crate) fn of(device: &Device, room: Contents, limit: u64) -> Result<Self, TooLarge> {
        Ok(Self {
            contents: room.refill(device.memory(), limit)?,
            state: device.state(),
        })
    }

    /// Another device that is as this one was.
    pub(crate) fn device(&self) -> Result<Device, DeviceError> {
        self.contents.restore(&self.state)
    }
}

impl CheckedSim {
    /// Records launches that have races into a folder, if the checker's options say so.
    pub fn record_into(&mut self, folder: impl Into<PathBuf>) {
        let options = self.checker.as_ref().map(Checker::options);
        let limit = options.and_then(|options| options.record);
        self.recorder = limit.map(|limit| Recorder {
            folder: folder.into(),
            left: limit,
            room: Contents::default(),
        });
    }
}

impl Recorder {
    /// Takes what the next launch depends on.
    pub(crate) fn before(&mut self, device: &Device) -> Result<Before, TooLarge> {
        Before::of(device, std::mem::take(&mut self.room), self.left)
    }

    /// The launch has nothing that is to be kept.
    pub(crate) fn drop(&mut self, before: Before) {
        self.room = before.contents;
    }

    /// Writes a launch down.
    pub(crate) fn keep(
        &mut self,
        device: &Device,
        checker: &mut Checker,
        name: &str,
        mut recorded: Recorded,
        result: &Result<LaunchStats, LaunchError>,
    ) {
        recorded.checked_by(checker);
        recorded.ended = Some(Ended::of(device, result));
        self.left = self.left.saturating_sub(recorded.contents.len());
        let path = self.folder.join(format!("{name}.{EXTENSION}"));
        if let Err(error) = File::create(&path).and_then(|file| recorded.write(file)) {
            // Half of it is of no use.
            let _ = std::fs::remove_file(&path);
            checker.note(format!(
                "launch #{} cannot be recorded: {error}",
                recorded.number
            ));
        }
        self.room = recorded.contents;
    }
}

/// Whether a launch that ended like this does the same when it runs again.
pub(crate) fn ends_by_itself(result: &Result<LaunchStats, LaunchError>) -> Result<(), String> {
    match result {
        Err(LaunchError::Timeout { .. } | LaunchError::Interrupted { .. }) => {
            Err("it was interrupted".to_owned())
        }
        _ => Ok(()),
    }
}
