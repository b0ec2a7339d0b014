//! What operations on mbarriers order, and what they do to the memory where these lie.

use events::Executing;
use ptx::isa::{MbarrierOp, SyncOp};
use shadow::hb::{Engine, Location, MemoryOrder, Operation as Phased, Scope, Thread};

use super::{HappensBefore, fences, warp};
use crate::traced::EventKind;

/// An operation of one lane.
struct Operation {
    op: MbarrierOp,
    me: Thread,
    at: Location,
    relaxed: bool,
    scope: Scope,
}

impl Operation {
    /// How it orders others, where it does as `order` unless it is relaxed.
    fn order(&self, order: fn(Scope) -> MemoryOrder) -> MemoryOrder {
        match self.relaxed {
            true => MemoryOrder::Relaxed(self.scope),
            false => order(self.scope),
        }
    }
}

impl HappensBefore {
    /// The operation on an mbarrier that lanes execute, and whether it expects bytes.
    pub(crate) fn mbarrier_op(&self, threads: Executing) -> Option<(MbarrierOp, bool)> {
        let meaning = self.meaning(threads)?;
        match meaning.sync {
            Some(SyncOp::Mbarrier { op, .. }) => Some((op, meaning.expects)),
            _ => None,
        }
    }

    fn operation(&self, threads: Executing, address: u64) -> Option<Operation> {
        match self.meaning(threads)?.sync {
            Some(SyncOp::Mbarrier {
                op,
                relaxed,
                scope: within,
                ..
            }) => Some(Operation {
                op,
                me: warp(threads).lane(threads.lanes.trailing_zeros()),
                at: self.shared(threads, address),
                relaxed,
                scope: within,
            }),
            _ => None,
        }
    }

    /// A lane operates on an mbarrier; see [`events::Observer::mbarrier`].
    pub(super) fn operates(&mut self, threads: Executing, address: u64, over: bool) {
        self.stamp();
        let Some(of) = self.operation(threads, address) else {
            return;
        };
        let (me, at) = (of.me, of.at);
        let waits = matches!(of.op, MbarrierOp::TestWait | MbarrierOp::TryWait);
        let access = self.meaning(threads).and_then(|meaning| meaning.access);
        self.hear(threads, || EventKind::Mbarrier {
            at,
            access,
            order: match of.op {
                MbarrierOp::Arrive | MbarrierOp::ArriveDrop => Some(of.order(MemoryOrder::Release)),
                _ if waits => Some(of.order(MemoryOrder::Acquire)),
                _ => None,
            },
            over,
        });
        if over || !waits {
            self.uses(threads, &of);
        }
        self.phase(threads, &of, over);
        match of.op {
            MbarrierOp::Arrive | MbarrierOp::ArriveDrop => {
                let order = of.order(MemoryOrder::Release);
                self.barrier(threads, threads.lanes, |engine| {
                    engine.mbarrier_arrive(me, at, order, over);
                });
            }
            MbarrierOp::CopyArrive => self.with(|engine| engine.copies_arrive(me, at, over)),
            MbarrierOp::Inval => self.with(|engine| engine.mbarrier_inval(at)),
            MbarrierOp::CompleteTx if over => self.with(|engine| engine.mbarrier_complete(at)),
            _ if waits && over => {
                let order = of.order(MemoryOrder::Acquire);
                self.barrier(threads, threads.lanes, |engine| {
                    engine.mbarrier_wait(me, at, order)
                });
            }
            _ => {}
        }
        if let (true, false, Some(barriers)) = (over, waits, &mut self.barriers) {
            barriers.ends(at);
        }
    }

    /// What an operation is to the phases of its mbarrier, where somebody asks. The engines hear of it next.
    fn phase(&mut self, threads: Executing, of: &Operation, over: bool) {
        let Some(meaning) = self.meaning(threads) else {
            return;
        };
        let Some(barriers) = &mut self.barriers else {
            return;
        };
        let (me, site) = (of.me, meaning.site);
        let does = match of.op {
            MbarrierOp::Arrive | MbarrierOp::ArriveDrop => Phased::Arrive,
            MbarrierOp::CopyArrive if meaning.noinc => Phased::Arrive,
            MbarrierOp::CopyArrive | MbarrierOp::ExpectTx => Phased::Expect,
            MbarrierOp::CompleteTx => Phased::Complete,
            MbarrierOp::TestWait | MbarrierOp::TryWait if over => {
                return barriers.waits(me, site, of.at);
            }
            _ => return,
        };
        barriers.operates(me, site, of.at, does);
    }

    /// A lane has waited for the phase of an mbarrier before the last one that is over.
    pub(crate) fn mbarrier_waited(&mut self, threads: Executing, address: u64) {
        let Some(of) = self.operation(threads, address) else {
            return;
        };
        self.uses(threads, &of);
        let (me, at, order) = (of.me, of.at, of.order(MemoryOrder::Acquire));
        self.barrier(threads, threads.lanes, |engine| {
            engine.mbarrier_waited(me, at, order);
        });
    }

    /// The access of its bytes that an operation is. It comes before what the operation makes known:
    /// who has waited without knowing that there is a barrier may have waited for anything.
    fn uses(&mut self, threads: Executing, of: &Operation) {
        let Some((access, site)) = self
            .meaning(threads)
            .and_then(|m| Some((m.access?, m.site)))
        else {
            return;
        };
        let (me, at) = (of.me, of.at);
        let mut races = Vec::new();
        let found = |race| races.push(race);
        if of.op == MbarrierOp::Init {
            let fenced = self.instructions.fences_inits;
            self.engine.mbarrier_init(me, at, site, fenced, found);
            let event = |engine: &mut Engine| engine.mbarrier_init(me, at, site, fenced, |_| ());
            self.order.forward(event);
            self.lock_order.forward(event);
            if let Some(barriers) = &mut self.barriers {
                barriers.makes(me, at, site, fenced);
            }
        } else {
            self.engine.mbarrier_used(me, at, &access, found);
            if let Some(barriers) = &mut self.barriers {
                barriers.uses(me, at, &access);
            }
        }
        for mut race in races {
            let class = fences::class(&mut self.order, &mut self.engine, &mut race);
            self.pairs.keep(class, race, false);
        }
        self.pairs
            .explain(&self.engine, &self.lock_order, &self.instructions);
    }
}
