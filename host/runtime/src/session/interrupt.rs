//! The end of a process whose launches have not ended.

use std::time::Duration;

use super::Session;
use crate::checker::Outcome;

impl Session {
    /// The process is about to end by a signal: writes down what launches have found, also those that
    /// have not ended within a time. The driver is not called while it is being asked for a launch:
    /// that call may be the one that does not end.
    pub fn interrupt(&mut self, patience: Duration) {
        if !self.is_asking() {
            self.settle(patience);
        }
        let running = std::mem::take(&mut self.flights);
        let running = running.into_iter().chain(std::mem::take(&mut self.asked));
        for flight in running.collect::<Vec<_>>() {
            let Some(gpu) = self.gpus.get(&flight.context) else {
                continue;
            };
            for (_, begun) in flight.launches {
                let outcome = Outcome {
                    error: Some("it was interrupted".to_owned()),
                    interrupted: true,
                    running: true,
                    ..Outcome::default()
                };
                self.checker.end(gpu, begun, outcome, None);
            }
        }
    }
}
