//! Exit codes, and which of several reasons wins.

use report::model::{ExitStatus, Run, RunOutcome};

/// The command line makes no sense.
pub(crate) const USAGE: u8 = 64;
/// A file that was given is not what it should be.
pub(crate) const BAD_INPUT: u8 = 65;
/// Races.
pub(crate) const RACES: u8 = 66;
/// The device that was asked for is not there.
pub(crate) const NO_DEVICE: u8 = 69;
/// Something on our side failed.
pub(crate) const INTERNAL: u8 = 70;
/// Nothing, or not enough, was checked.
pub(crate) const INCOMPLETE: u8 = 75;
/// `--timeout` was over.
pub(crate) const TIMEOUT: u8 = 124;
/// The program is there but cannot be started.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
pub(crate) const NOT_FOUND: u8 = 127;

/// Why we stop, with the exit code and one line.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Stop {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The code of a process that ended like this: its own, or 128 and the signal.
pub(crate) fn of(exit: ExitStatus) -> u8 {
    let code = match (exit.code, exit.signal) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => i32::from(INTERNAL),
    };
    // The system keeps the lowest eight bits of an exit code.
    (code & 0xff) as u8
}

/// The code of a whole run.
///
/// An error of the tool wins over races, these over the program's own failure, and that over a lack of coverage.
pub(crate) fn of_run(outcome: RunOutcome, run: &Run, races: u8) -> u8 {
    match outcome {
        RunOutcome::ToolError => INTERNAL,
        RunOutcome::Races => races,
        _ if run.timed_out => TIMEOUT,
        RunOutcome::AppFailed => of(run.exit),
        RunOutcome::Incomplete => INCOMPLETE,
        RunOutcome::Clean => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_tool_win_then_races_then_the_program_then_coverage() {
        let run = |exit, timed_out| Run {
            exit,
            timed_out,
            ..Run::default()
        };
        let killed = |timed_out| {
            let signal = Some(9);
            run(ExitStatus { code: None, signal }, timed_out)
        };
        let exited = |code| {
            let code = Some(code);
            run(ExitStatus { code, signal: None }, false)
        };
        assert_eq!(of_run(RunOutcome::ToolError, &killed(true), 66), INTERNAL);
        assert_eq!(of_run(RunOutcome::Races, &exited(7), 66), 66);
        assert_eq!(of_run(RunOutcome::Races, &killed(true), 0), 0);
        assert_eq!(of_run(RunOutcome::AppFailed, &exited(7), 66), 7);
        assert_eq!(of_run(RunOutcome::AppFailed, &killed(false), 66), 137);
        assert_eq!(of_run(RunOutcome::AppFailed, &killed(true), 66), 124);
        assert_eq!(of_run(RunOutcome::Incomplete, &exited(0), 66), 75);
        assert_eq!(of_run(RunOutcome::Clean, &exited(0), 66), 0);
        assert_eq!(of(exited(-1).exit), 255);
    }
}
