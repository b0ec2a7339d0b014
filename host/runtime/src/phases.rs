//! The phases of mbarriers, from what a journal records of their operations.

use std::collections::HashMap;

use events::Misuse;
use ptx::isa::MbarrierOp;

/// A place in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SharedPlace {
    /// The CTA whose memory it is.
    pub(crate) owner: u64,
    pub(crate) offset: u64,
}

/// All mbarriers of a launch.
#[derive(Debug, Default)]
pub(crate) struct Mbarriers(HashMap<SharedPlace, Counts>);

/// What an mbarrier waits for in the current phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Of a barrier that is made for so many arrivals in a phase.
    fn new(arrivals: i64) -> Self {
        Self {
            pending: arrivals,
            expected: arrivals,
            bytes: 0,
            over: 0,
        }
    }

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
    /// An operation that counts `count`, of bytes if it `expects` them. Says whether it ends the phase, and
    /// what is wrong with it.
    pub(crate) fn operate(
        &mut self,
        at: SharedPlace,
        op: MbarrierOp,
        expects: bool,
        count: u32,
    ) -> (bool, Option<Misuse>) {
        let misuse = match (op, self.0.get(&at)) {
            (MbarrierOp::Init, _) => None,
            (_, None) => Some(Misuse::NotMbarrier),
            (MbarrierOp::Arrive | MbarrierOp::ArriveDrop | MbarrierOp::CopyArrive, Some(of)) => {
                let arrivals = if expects { 1 } else { i64::from(count) };
                (arrivals > of.pending).then_some(Misuse::Excess)
            }
            _ => None,
        };
        (self.count(at, op, expects, i64::from(count)), misuse)
    }

    /// Counts an operation. True if it ends the phase.
    fn count(&mut self, at: SharedPlace, op: MbarrierOp, expects: bool, count: i64) -> bool {
        let (arrivals, bytes) = if expects { (1, count) } else { (count, 0) };
        let Some(of) = self.0.get_mut(&at) else {
            if op == MbarrierOp::Init {
                self.0.insert(at, Counts::new(count));
            }
            return false;
        };
        match op {
            MbarrierOp::Init => {
                *of = Counts::new(count);
                false
            }
            MbarrierOp::Inval => {
                self.0.remove(&at);
                false
            }
            MbarrierOp::Arrive | MbarrierOp::ArriveDrop => {
                of.bytes += bytes;
                of.pending -= arrivals;
                if op == MbarrierOp::ArriveDrop {
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

    /// Whether a thread that has waited for a phase with a parity, 0 or 1, is recorded so late that the next
    /// one is over as well.
    pub(crate) fn is_late(&self, at: SharedPlace, parity: u64) -> bool {
        let over = self.0.get(&at).map_or(0, |of| of.over);
        // The first phase has parity 0; the last one that is over, of `over`.
        over > 0 && (over - 1) & 1 != parity
    }

    /// Bytes of a copy have come. True if that ends the phase.
    pub(crate) fn complete(&mut self, at: SharedPlace, bytes: i64) -> bool {
        let Some(of) = self.0.get_mut(&at) else {
            return false;
        };
        of.bytes -= bytes;
        of.settle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(owner: u64, offset: u64) -> SharedPlace {
        SharedPlace { owner, offset }
    }

    #[test]
    fn parities_distinguish_phases() {
        let (mut all, at) = (Mbarriers::default(), place(0, 8));
        all.operate(at, MbarrierOp::Init, false, 1);
        // Nothing is over, and the phase before the first has parity 1.
        assert!(!all.is_late(at, 1));
        assert!(all.operate(at, MbarrierOp::Arrive, false, 1).0);
        assert!(!all.is_late(at, 0) && all.is_late(at, 1));
        assert!(all.operate(at, MbarrierOp::Arrive, false, 1).0);
        assert!(!all.is_late(at, 1) && all.is_late(at, 0));
    }

    #[test]
    fn a_phase_waits_for_arrivals_and_bytes() {
        let (mut all, at) = (Mbarriers::default(), place(1, 64));
        let mut operate = |op, expects, count| {
            let (over, misuse) = all.operate(at, op, expects, count);
            assert_eq!(misuse, None);
            over
        };
        assert!(!operate(MbarrierOp::Init, false, 3));
        assert!(!operate(MbarrierOp::Arrive, true, 96));
        assert!(!operate(MbarrierOp::CopyArrive, false, 0));
        assert!(!operate(MbarrierOp::CopyArrive, false, 1));
        assert!(!operate(MbarrierOp::CompleteTx, false, 32));
        assert!(!operate(MbarrierOp::Arrive, false, 1));
        assert!(all.complete(at, 64));
        // One drops out for good: the phase after the next expects one less.
        assert!(!all.operate(at, MbarrierOp::ArriveDrop, false, 1).0);
        assert!(all.operate(at, MbarrierOp::Arrive, false, 2).0);
        assert!(all.operate(at, MbarrierOp::Arrive, false, 2).0);
    }

    #[test]
    fn arrivals_beyond_those_expected_are_reported() {
        let (mut all, at) = (Mbarriers::default(), place(0, 0));
        let mut operate = |op, expects, count| all.operate(at, op, expects, count).1;
        let strange = Some(Misuse::NotMbarrier);
        assert_eq!(operate(MbarrierOp::Arrive, false, 1), strange);
        assert_eq!(operate(MbarrierOp::Inval, false, 0), strange);
        assert_eq!(operate(MbarrierOp::Init, false, 2), None);
        assert_eq!(operate(MbarrierOp::Arrive, true, 64), None);
        assert_eq!(operate(MbarrierOp::Arrive, false, 2), Some(Misuse::Excess));
        assert_eq!(operate(MbarrierOp::Init, false, 1), None);
        assert_eq!(operate(MbarrierOp::Arrive, true, 64), None);
        // The phase has got all its arrivals, and waits for bytes.
        assert_eq!(operate(MbarrierOp::CopyArrive, false, 0), None);
        assert_eq!(
            operate(MbarrierOp::CopyArrive, false, 1),
            Some(Misuse::Excess)
        );
        assert_eq!(operate(MbarrierOp::Inval, false, 0), None);
        assert_eq!(operate(MbarrierOp::CompleteTx, false, 64), strange);
    }
}
