//! Failures of the log's writes on request, for tests: `CUDARUN_LOG_FAIL=3=28`.
//!
//! `N=ERRNO` lets the Nth write to the log's folder fail, `N..=ERRNO` every write from the Nth on, to the spare folder
//! too, and `N=abort` ends the process in place of the Nth write, `N=kill` by SIGKILL. Writes are counted from 1 in each
//! process; 0 is the making of the log.

use std::io;

/// Names the failure.
pub const VARIABLE: &str = "CUDARUN_LOG_FAIL";

/// SIGKILL has this number on every Linux.
const KILL: i32 = 9;

/// Which writes fail, and the one that is being made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    wanted: Option<Fault>,
    write: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault {
    /// From 1; 0 is the making of the log.
    write: u64,
    and_later: bool,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Error(i32),
    Abort,
    Kill,
}

impl Faults {
    pub(super) fn from_environment() -> Self {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        Self::parse(&text).unwrap_or_default()
    }

    /// None for a text that makes no sense.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (write, how) = text.split_once('=')?;
        let (write, and_later) = match write.strip_suffix("..") {
            Some(write) => (write, true),
            None => (write, false),
        };
        let how = match how {
            "abort" => How::Abort,
            "kill" => How::Kill,
            code => How::Error(code.parse().ok()?),
        };
        let write = write.parse().ok()?;
        let wanted = Some(Fault {
            write,
            and_later,
            how,
        });
        Some(Self { wanted, write: 0 })
    }

    /// Another write is about to be made.
    pub(super) fn next(&mut self) {
        self.write += 1;
        let write = self.write;
        let here = self.wanted.filter(|fault| fault.write == write);
        match here.map(|fault| fault.how) {
            Some(How::Abort) => std::process::abort(),
            Some(How::Kill) => os::signals::send(std::process::id(), KILL),
            Some(How::Error(_)) | None => {}
        }
    }

    /// The error of the write to the folder in use.
    pub(super) fn first(&self) -> Option<io::Error> {
        let fault = self.wanted?;
        let hit = self.write == fault.write || fault.and_later && self.write > fault.write;
        match fault.how {
            How::Error(code) if hit => Some(io::Error::from_raw_os_error(code)),
            _ => None,
        }
    }

    /// The error of a write to any folder.
    pub(super) fn every(&self) -> Option<io::Error> {
        let all = self.wanted.is_some_and(|fault| fault.and_later);
        self.first().filter(|_| all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read() {
        let at = |text: &str, write: u64| {
            let mut faults = Faults::parse(text).unwrap();
            (0..write).for_each(|_| faults.next());
            let code = |error: Option<io::Error>| error.and_then(|error| error.raw_os_error());
            (code(faults.first()), code(faults.every()))
        };
        assert_eq!(at("2=5", 1), (None, None));
        assert_eq!(at("2=5", 2), (Some(5), None));
        assert_eq!(at("2=5", 3), (None, None));
        assert_eq!(at("2..=28", 3), (Some(28), Some(28)));
        for bad in ["", "x=5", "2=", "2", "..=5"] {
            assert!(Faults::parse(bad).is_none(), "{bad}");
        }
    }
}
