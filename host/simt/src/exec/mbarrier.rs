//! mbarrier objects: 64 bits in shared memory.
//!
//! The ISA leaves their contents open. Here, from bit 0: arrivals pending (20 bits), arrivals
//! expected in a phase (20), bytes outstanding (21, two's complement), a mark of an object (2),
//! phase (1). Counts that a program drives out of their range wrap.

use events::{Bytes, Executing, Misuse};
use ptx::ast::Space;

use super::address::lanes;
use super::cta::CtaId;
use super::fault::Fault;
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code::{Address, Mbarrier, MbarrierKind};
use crate::lanes::WARP;

const COUNT: u64 = (1 << 20) - 1;
const BYTES: u64 = (1 << 21) - 1;
/// The mark of an object, which memory that was never made one has only by chance.
const OBJECT: u64 = 0b01;

/// The parts of a barrier's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    pending: u64,
    expected: u64,
    bytes: u64,
    mark: u64,
    phase: u64,
}

impl Parts {
    /// No object.
    const NONE: Self = Self {
        pending: 0,
        expected: 0,
        bytes: 0,
        mark: 0,
        phase: 0,
    };

    fn unpack(word: u64) -> Self {
        Self {
            pending: word & COUNT,
            expected: word >> 20 & COUNT,
            bytes: word >> 40 & BYTES,
            mark: word >> 61 & 0b11,
            phase: word >> 63,
        }
    }

    fn pack(self) -> u64 {
        self.pending & COUNT
            | (self.expected & COUNT) << 20
            | (self.bytes & BYTES) << 40
            | self.mark << 61
            | self.phase << 63
    }

    /// The phase alone, which does not depend on who has arrived before.
    fn without_counts(self) -> Self {
        Self {
            mark: self.mark,
            phase: self.phase,
            ..Self::NONE
        }
    }

    /// Goes to the next phase when nothing is outstanding.
    fn settle(mut self) -> Self {
        if self.pending & COUNT == 0 && self.bytes & BYTES == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
        }
        self
    }
}

/// The arrivals that an mbarrier waits for in its phase, and the bytes; negative when more have come than expected.
pub(super) fn outstanding(word: u64) -> (u64, i64) {
    let parts = Parts::unpack(word);
    let unused = 64 - BYTES.count_ones();
    (parts.pending, (parts.bytes << unused) as i64 >> unused)
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// Whether the states that arrivals return tell nothing of counts: where values are followed, and nobody asks.
    pub(super) fn hides_counts(&self) -> bool {
        self.follows_values() && !self.setup.program.counts_pending
    }

    pub(crate) fn mbarrier(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        mbarrier: &Mbarrier,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let consts = &self.setup.program.consts;
        let a = warp.read(&split.frame, mbarrier.a, consts);
        let b = warp.read(&split.frame, mbarrier.b, consts);
        let (mut result, mut holds) = ([0; WARP], 0u32);
        if mbarrier.kind == MbarrierKind::PendingCount {
            result = a.map(|state| Parts::unpack(state).pending);
        } else {
            let mut at = [0; WARP];
            let (first, others) = self.addresses(warp, split, &mbarrier.address, 8, exec, &mut at);
            for group in std::iter::once(&first).chain(&others) {
                super::address::aligned(&at, group, 8)?;
                for lane in lanes(group.mask) {
                    let spot = self.spot(cta, warp, lane, group.bytes(lane, &at, 8), true)?;
                    let old = self.peek(warp, spot, 8);
                    let mut parts = Parts::unpack(old);
                    let mut misuse = match mbarrier.kind {
                        MbarrierKind::Init => None,
                        _ => (parts.mark != OBJECT).then_some(Misuse::NotMbarrier),
                    };
                    match mbarrier.kind {
                        MbarrierKind::Init => {
                            let count = a[lane] & COUNT;
                            parts = Parts {
                                pending: count,
                                expected: count,
                                mark: OBJECT,
                                ..Parts::NONE
                            };
                        }
                        MbarrierKind::Inval => parts = Parts::NONE,
                        MbarrierKind::Arrive { drop, expect } => {
                            let count = if expect { 1 } else { a[lane] };
                            if expect {
                                parts.bytes = parts.bytes.wrapping_add(b[lane]);
                            }
                            if drop {
                                parts.expected = parts.expected.wrapping_sub(count);
                            }
                            if count > parts.pending {
                                misuse = misuse.or(Some(Misuse::Excess));
                            }
                            parts.pending = parts.pending.wrapping_sub(count) & COUNT;
                            parts = parts.settle();
                        }
                        MbarrierKind::ExpectTx => parts.bytes = parts.bytes.wrapping_add(a[lane]),
                        MbarrierKind::CompleteTx => {
                            parts.bytes = parts.bytes.wrapping_sub(a[lane]) & BYTES;
                            parts = parts.settle();
                        }
                        MbarrierKind::TestWait { parity } => {
                            let waited = if parity { a[lane] & 1 } else { a[lane] >> 63 };
                            holds |= u32::from(parts.phase != waited) << lane;
                        }
                        MbarrierKind::PendingCount | MbarrierKind::CopyArrive => {}
                    }
                    let over = match mbarrier.kind {
                        MbarrierKind::TestWait { .. } => holds >> lane & 1 == 1,
                        // An object that begins or ends has no phase that could be over.
                        MbarrierKind::Init | MbarrierKind::Inval => false,
                        _ => parts.phase != Parts::unpack(old).phase,
                    };
                    let threads = self.executing(cta, warp.index, split.pc, 1 << lane);
                    self.observer.mbarrier(threads, at[lane], over);
                    if let Some(misuse) = misuse {
                        self.observer.misuse(threads, misuse, threads.offset);
                    }
                    // The state an arrival returns is that of the phase it arrived in.
                    result[lane] = match self.hides_counts() {
                        true => Parts::unpack(old).without_counts().pack(),
                        false => old,
                    };
                    if parts != Parts::unpack(old) {
                        let object = group.bytes(lane, &at, 8);
                        self.changes(threads, warp, lane, object, spot, parts.pack());
                        self.poke(warp, spot, 8, parts.pack());
                    }
                }
            }
        }
        if self.follows_values() {
            self.follow_mbarrier_result(warp, split, mbarrier, exec, holds);
        }
        if let Some(d) = mbarrier.d {
            let mut rows = warp.rows(&split.frame, &self.setup.program.consts);
            match mbarrier.kind {
                MbarrierKind::TestWait { .. } => rows.put_pred(d, exec, holds),
                _ => rows.put(d, exec, &result),
            }
        }
        Ok(())
    }

    /// The address in shared memory that one lane means.
    pub(crate) fn address_of(
        &self,
        warp: &Warp,
        split: &Split,
        address: &Address,
        lane: usize,
    ) -> u64 {
        let mut at = [0; WARP];
        self.addresses(warp, split, address, 8, 1 << lane, &mut at);
        at[lane]
    }

    /// Notifies a barrier that the bytes it expects have come.
    pub(crate) fn complete_bytes(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        threads: Executing,
        barrier: u64,
        lane: usize,
        bytes: u64,
    ) -> Result<(), Box<Fault>> {
        let object = Bytes {
            space: Space::Shared,
            address: barrier,
            count: 8,
        };
        let spot = self.spot(cta, warp, lane, object, true)?;
        let mut parts = Parts::unpack(self.peek(warp, spot, 8));
        if parts.mark != OBJECT {
            self.observer
                .misuse(threads, Misuse::NotMbarrier, threads.offset);
        }
        parts.bytes = parts.bytes.wrapping_sub(bytes) & BYTES;
        let settled = parts.settle();
        if settled.phase != parts.phase {
            self.observer.mbarrier_complete(threads, barrier);
        }
        let state = settled.pack();
        self.changes(threads, warp, lane, object, spot, state);
        self.poke(warp, spot, 8, state);
        Ok(())
    }
}
