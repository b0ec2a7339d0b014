//! mbarrier objects, by PTX ISA, "Phase of the mbarrier object".

use std::collections::HashMap;

use shadow::hb::Location;

use super::{Objection, Result};

/// One object.
#[derive(Clone, Copy, Debug)]
struct Object {
    expected: i64,
    pending: i64,
    bytes: i64,
    /// Phases that are over.
    phase: u64,
}

/// All of them.
#[derive(Default)]
pub(super) struct Mbarriers {
    objects: HashMap<Location, Object>,
}

/// What a thread does with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `init`, with the arrivals of a phase.
    Init(u64),
    /// `inval`
    Inval,
    /// `arrive` and `arrive_drop`, so many times, and expecting so many bytes before that.
    Arrive {
        /// Arrivals.
        count: u64,
        /// Bytes.
        expects: u64,
        /// For all phases to come, too.
        drops: bool,
    },
    /// `expect_tx`, without an arrival.
    Expect(u64),
    /// `complete_tx`
    Complete(u64),
    /// `test_wait` and `try_wait` for the phase of a parity.
    Wait(u64),
    /// An arrival that its copies make, which was counted before (`.noinc`) or not.
    CopyArrive(bool),
}

impl Mbarriers {
    /// Does it. Gives the parity of the phase before, and whether it has ended a phase, or the phase
    /// waited for is over.
    pub(super) fn operate(&mut self, at: Location, operation: Operation) -> Result<(u64, bool)> {
        if let Operation::Init(count) = operation {
            let count = count as i64;
            let fresh = Object {
                expected: count,
                pending: count,
                bytes: 0,
                phase: 0,
            };
            self.objects.insert(at, fresh);
            return Ok((0, false));
        }
        let unknown = || Objection::unknown("an operation on memory that is no mbarrier");
        let object = self.objects.get_mut(&at).ok_or_else(unknown)?;
        let parity = object.phase & 1;
        match operation {
            Operation::Init(_) | Operation::CopyArrive(false) => {}
            Operation::Inval => drop(self.objects.remove(&at)),
            Operation::Wait(of) => return Ok((parity, parity != of)),
            Operation::Expect(bytes) => object.bytes += bytes as i64,
            Operation::Complete(bytes) => {
                object.bytes -= bytes as i64;
                return Ok((parity, object.settle()?));
            }
            Operation::Arrive {
                count,
                expects,
                drops,
            } => {
                object.bytes += expects as i64;
                object.pending -= count as i64;
                object.expected -= if drops { count as i64 } else { 0 };
                return Ok((parity, object.settle()?));
            }
            Operation::CopyArrive(true) => {
                object.pending -= 1;
                return Ok((parity, object.settle()?));
            }
        }
        Ok((parity, false))
    }
}

impl Object {
    /// Whether that ends the phase.
    fn settle(&mut self) -> Result<bool> {
        if self.pending < 0 {
            return Err(Objection::unknown("more arrivals than a phase expects"));
        }
        let over = self.pending == 0 && self.bytes == 0;
        if over {
            self.phase += 1;
            self.pending = self.expected;
        }
        Ok(over)
    }
}
