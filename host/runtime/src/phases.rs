//! The phases of mbarriers, from what a journal tells of their operations.

use std::collections::HashMap;

use ptx::isa::MbarrierOp;

/// Where an mbarrier is: whose shared memory, and the offset there.
pub(crate) type At = (u64, u64);

/// All mbarriers of a launch.
#[derive(Debug, Default)]
pub(crate) struct Mbarriers(HashMap<At, Counts>);

/// What an mbarrier waits for in the current phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Arrivals.
    pending: i64,
    /// Arrivals in the next phase.
    expected: i64,
    /// Bytes of copies.
    bytes: i64,
    /// Phases that are over.
    over: u64,
}

impl Counts {
    /// Goes to the next phase if nothing is left to wait for; true if so.
    fn settle(&mut self) -> bool {
        let over = self.pending == 0 && self.bytes == 0;
        if over {
            self.pending = self.expected;
            self.over += 1;
        }
        over
    }
}

impl Mbarriers {
    /// An operation that counts `count`; the flag beside it says that this is bytes to expect. True if it
    /// ends the phase.
    pub(crate) fn operate(&mut self, at: At, op: (MbarrierOp, bool), count: u32) -> bool {
        let count = i64::from(count);
        let of = self.0.entry(at).or_default();
        let (arrivals, bytes) = if op.1 { (1, count) } else { (count, 0) };
        match op.0 {
            MbarrierOp::Init => {
                *of = Counts {
                    pending: count,
                    expected: count,
                    ..Counts::default()
                };
                false
            }
            MbarrierOp::Inval => {
                *of = Counts::default();
                false
            }
            MbarrierOp::Arrive | MbarrierOp::ArriveDrop => {
                of.bytes += bytes;
                of.pending -= arrivals;
                if op.0 == MbarrierOp::ArriveDrop {
                    of.expected -= arrivals;
                }
                of.settle()
            }
            MbarrierOp::ExpectTx => {
                of.bytes += count;
                false
            }
            MbarrierOp::CompleteTx => self.complete(at, count),
            // Unless the arrival was expected, it is one more to wait for, and comes at once.
            MbarrierOp::CopyArrive if count > 0 => {
                of.pending -= count;
                of.settle()
            }
            _ => false,
        }
    }

    /// Whether a thread that has waited for a phase with a parity, 0 or 1, is told of so late that the next
    /// one is over as well.
    pub(crate) fn is_late(&self, at: At, parity: u64) -> bool {
        let over = self.0.get(&at).map_or(0, |of| of.over);
        // The first phase has parity 0; the last one that is over, of `over`.
        over > 0 && (over - 1) & 1 != parity
    }

    /// Bytes of a copy have come. True if that ends the phase.
    pub(crate) fn complete(&mut self, at: At, bytes: i64) -> bool {
        let of = self.0.entry(at).or_default();
        of.bytes -= bytes;
        of.settle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parities_tell_phases_apart() {
        let (mut all, at) = (Mbarriers::default(), (0, 8));
        all.operate(at, (MbarrierOp::Init, false), 1);
        // Nothing is over, and the phase before the first has parity 1.
        assert!(!all.is_late(at, 1));
        assert!(all.operate(at, (MbarrierOp::Arrive, false), 1));
        assert!(!all.is_late(at, 0) && all.is_late(at, 1));
        assert!(all.operate(at, (MbarrierOp::Arrive, false), 1));
        assert!(!all.is_late(at, 1) && all.is_late(at, 0));
    }

    #[test]
    fn a_phase_waits_for_arrivals_and_bytes() {
        let (mut all, at) = (Mbarriers::default(), (1, 64));
        let mut operate = |op, expects, count| all.operate(at, (op, expects), count);
        assert!(!operate(MbarrierOp::Init, false, 3));
        assert!(!operate(MbarrierOp::Arrive, true, 96));
        assert!(!operate(MbarrierOp::CopyArrive, false, 0));
        assert!(!operate(MbarrierOp::CopyArrive, false, 1));
        assert!(!operate(MbarrierOp::CompleteTx, false, 32));
        assert!(!operate(MbarrierOp::Arrive, false, 1));
        assert!(all.complete(at, 64));
        // One drops out for good: the phase after the next expects one less.
        assert!(!all.operate(at, (MbarrierOp::ArriveDrop, false), 1));
        assert!(all.operate(at, (MbarrierOp::Arrive, false), 2));
        assert!(all.operate(at, (MbarrierOp::Arrive, false), 2));
    }
}
