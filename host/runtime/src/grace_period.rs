//! How long what a launch has done is still judged when the run is to end.

use std::time::{Duration, Instant};

use os::interrupts;

/// How long judging goes on behind a signal or a deadline.
const REST: Duration = Duration::from_millis(300);
/// Steps between two looks at the clock.
const STEPS: u32 = 64;

/// Whoever judges step by step asks it before each.
#[derive(Debug)]
pub(crate) struct GracePeriod {
    deadline: Option<Instant>,
    /// When the signal was seen.
    since: Option<Instant>,
    steps: u32,
    over: bool,
}

impl GracePeriod {
    /// Until a signal comes that this process [holds](interrupts::hold), or a time is over.
    pub(crate) fn new(deadline: Option<Instant>) -> Self {
        Self {
            deadline,
            since: None,
            steps: 0,
            over: false,
        }
    }

    /// Whether it is time to stop.
    pub(crate) fn is_over(&mut self) -> bool {
        self.steps += 1;
        if !self.over && self.steps.is_multiple_of(STEPS) {
            let now = Instant::now();
            if interrupts::caught().is_some() {
                self.since.get_or_insert(now);
            }
            let ends = [self.deadline, self.since].into_iter().flatten().min();
            self.over = ends.is_some_and(|end| now >= end + REST);
        }
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_some_time_behind_the_deadline_and_without_one_never() {
        let asked = |deadline| {
            let mut grace = GracePeriod::new(deadline);
            (0..=STEPS).any(|_| grace.is_over())
        };
        let now = Instant::now();
        assert!(!asked(None));
        assert!(!asked(Some(now + Duration::from_secs(3600))));
        assert!(asked(now.checked_sub(REST)));
    }
}
