//! Whether the phases of asynchronous barriers (mbarriers) are the same in every order in which the threads can run:
//! whether each operation that counts belongs to the same phase, and each wait finds the same phase over.
//!
//! An mbarrier goes from phase to phase by itself, and a wait names its phase by a state or by a parity, which is that
//! of every second phase. So in every order
//!
//! 1. an operation that counts must come after all phases before its own are over, or else it may belong to one of them;
//! 2. of the arrivals that end a phase, one must come behind each expectation of the phase (of bytes, or of copies'
//!    arrivals), or else the phase may end without it;
//! 3. a wait must come after the phase before the one it waits for is over, or else it may find an earlier one over;
//! 4. of the arrivals that end the next phase, one must come behind the wait, or else the wait may come so late that the
//!    parity stands for another phase.
//!
//! An arrival of copies (`cp.async.mbarrier.arrive`) orders nothing that its thread has done but the copies. For 1. and
//! 4. it need not. The thread issues it when it has found a phase over and has left its loop; the arrival comes later
//! still; and who waits for that arrival leaves a loop too. An operation that counted in that phase, or a wait that found
//! what comes of the arrival, would depend on itself, which no execution does (PTX ISA, "No-Thin-Air"). For 2. and 3. it
//! does not do: an expectation is nothing that the thread has waited for, and a wait may read what was before.
//!
//! PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier", "Phase of the mbarrier object" and
//! "Tracking asynchronous operations by the mbarrier object".

use alloc::vec::Vec;

use super::generations::{Come, Generations};
use super::thread::Thread;
use super::{Engine, Location};

/// What an operation does to the phase of an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Arrives. It may expect bytes at once.
    Arrive,
    /// Makes the phase wait for more: for bytes, or for the arrival of copies.
    Expect,
    /// Brings bytes.
    Complete,
}

/// What another order may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unphased {
    /// The operation may belong to an earlier phase.
    EarlyOperation,
    /// The phase may end without what the operation expects.
    Unexpected,
    /// The wait may find an earlier phase over.
    EarlyWait,
    /// The wait may come when the next phase is over too.
    LateWait,
}

/// An mbarrier.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// Expectations of this phase that no arrival has come behind.
    expected: Vec<Come>,
    /// Waits for the phase before that no arrival of this phase has come behind.
    waits: Vec<Come>,
}

impl Generations {
    /// A thread makes an mbarrier.
    pub fn mbarrier_init(&mut self, at: Location) {
        *self.phase(at) = Phase::default();
    }

    /// A thread executes an operation that counts, which `engine` receives next.
    pub fn mbarrier_operate(
        &mut self,
        engine: &mut Engine,
        me: Thread,
        site: u32,
        at: Location,
        operation: Operation,
    ) -> Option<Unphased> {
        let early = engine.phases_before(me, at) < engine.phases_over(at);
        let phase = self.phase(at);
        match operation {
            Operation::Arrive => {
                phase
                    .expected
                    .retain(|come| engine.knows(me, come.thread) < come.at);
                phase
                    .waits
                    .retain(|come| engine.knows_issued(me, come.thread) < come.at);
            }
            Operation::Expect => phase.expected.push(Come::now(engine, me, site)),
            Operation::Complete => {}
        }
        early.then_some(Unphased::EarlyOperation)
    }

    /// A thread has found a phase over, which `engine` receives next.
    pub fn mbarrier_wait(
        &mut self,
        engine: &mut Engine,
        me: Thread,
        site: u32,
        at: Location,
    ) -> Option<Unphased> {
        let before = engine.phases_over(at).saturating_sub(1);
        let early = engine.phases_known(me, at) < before;
        let come = Come::now(engine, me, site);
        let waits = &mut self.phase(at).waits;
        if !waits.contains(&come) {
            waits.push(come);
        }
        early.then_some(Unphased::EarlyWait)
    }

    /// The phase of an mbarrier ends. Gives what is wrong by site.
    pub fn mbarrier_complete(&mut self, at: Location) -> impl Iterator<Item = (Unphased, u32)> {
        let Phase { expected, waits } = core::mem::take(self.phase(at));
        let expected = expected
            .into_iter()
            .map(|come| (Unphased::Unexpected, come.site));
        let waits = waits
            .into_iter()
            .map(|come| (Unphased::LateWait, come.site));
        expected.chain(waits)
    }

    fn phase(&mut self, at: Location) -> &mut Phase {
        let cta = match at {
            Location::Shared { cta, .. } => cta,
            Location::Global(_) => 0,
        };
        let of_cta = self.ctas.entry(cta).or_default();
        of_cta.mbarriers.entry(at.key()).or_default()
    }
}
