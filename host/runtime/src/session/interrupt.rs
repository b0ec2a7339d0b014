//! Launches that take long: how far they are, and the end of a process while they run.

use std::time::Duration;

use super::{Armed, Session};
use crate::checker::LaunchOutcome;
use crate::progress;

impl Session {
    /// The process is about to end by a signal: writes down what launches have found, also those that
    /// have not ended within a time. The driver is not called while it is being asked for a launch:
    /// that call may be the one that does not end.
    pub fn interrupt(&mut self, timeout: Duration) {
        if !self.is_asking() {
            self.settle(timeout);
        }
        let running = std::mem::take(&mut self.flights);
        let running = running.into_iter().chain(std::mem::take(&mut self.asked));
        for flight in running.collect::<Vec<_>>() {
            let Some(gpu) = self.gpus.get(&flight.context) else {
                continue;
            };
            for Armed { pending, .. } in flight.launches {
                let outcome = LaunchOutcome {
                    error: Some("it was interrupted".to_owned()),
                    interrupted: true,
                    running: true,
                    ..LaunchOutcome::default()
                };
                self.checker.end(gpu, pending, outcome, None);
            }
        }
    }

    /// Shows the launch that has been in flight for longest, if it takes long.
    pub fn show_progress(&mut self) {
        let mut all = self.flights.iter().chain(&self.asked);
        let oldest = all.next().and_then(|flight| {
            let Armed { kernel, pending } = flight.launches.first()?;
            Some((
                flight.number,
                self.gpus.get(&flight.context)?,
                kernel,
                pending,
            ))
        });
        let Some((number, gpu, kernel, pending)) = oldest else {
            self.shown = None;
            progress::end();
            return;
        };
        if self.shown != Some(number) {
            self.shown = Some(number);
            progress::end();
            progress::begin(&kernel.name, pending.number(), self.checker.races());
        }
        progress::show(|| self.checker.found_so_far(gpu, pending));
    }
}
