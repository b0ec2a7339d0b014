//! What a program uses of what it does in a launch with a journal, where a thread may have to make a load again: what
//! it has loaded before is thrown away, and is no access of the program's.
//!
//! For tests of the tool itself, which hold a journal against what happens-before hears of the same run.

use hashbrown::HashMap;

use events::{AccessKind, Bytes, Executing, Misuse, Observer};
use ptx::ast::Space;

use crate::happens_before::HappensBefore;

/// Keeps the events for a happens-before engine until the launch is over, and it is known which loads the program has used.
pub struct Used<'a> {
    engine: &'a mut HappensBefore,
    again: rewrite::Again,
    kept: Vec<Kept>,
    /// By CTA, warp and lane: the access that the thread has made last.
    last: HashMap<(u64, u32, u32), usize>,
}

/// Something that lanes have done.
enum Kept {
    Access {
        who: Executing,
        kind: AccessKind,
        space: Space,
        addresses: Box<[u64; 32]>,
        bytes: u32,
    },
    Other(Box<dyn FnOnce(&mut HappensBefore)>),
}

impl<'a> Used<'a> {
    /// Listens to a launch of that loaded text.
    pub fn of(engine: &'a mut HappensBefore, loaded: &str) -> Self {
        Self {
            engine,
            again: rewrite::again(loaded),
            kept: Vec::new(),
            last: HashMap::new(),
        }
    }

    /// The launch is over: the engine gets what the program has used.
    pub fn forward(self) {
        for kept in self.kept {
            match kept {
                Kept::Access { who, .. } if who.lanes == 0 => {}
                Kept::Access {
                    who,
                    kind,
                    space,
                    addresses,
                    bytes,
                } => self.engine.access(who, kind, space, &addresses, bytes),
                Kept::Other(event) => event(self.engine),
            }
        }
    }

    fn keep(&mut self, event: impl FnOnce(&mut HappensBefore) + 'static) {
        self.kept.push(Kept::Other(Box::new(event)));
    }
}

impl Observer for Used<'_> {
    fn access(
        &mut self,
        who: Executing,
        kind: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        if !self.engine.knows(who) {
            return;
        }
        for lane in lanes(who.lanes) {
            self.last.insert((who.cta, who.warp, lane), self.kept.len());
        }
        let addresses = Box::new(*addresses);
        self.kept.push(Kept::Access {
            who,
            kind,
            space,
            addresses,
            bytes,
        });
    }

    fn jump(&mut self, who: Executing) {
        let thrown_away = self.again.made.contains(&who.offset);
        if !thrown_away && !self.again.not_made.contains(&who.offset) {
            return;
        }
        for lane in lanes(who.lanes) {
            let last = self.last.remove(&(who.cta, who.warp, lane));
            let last = last.filter(|_| thrown_away);
            if let Some(Kept::Access { who, .. }) = last.and_then(|at| self.kept.get_mut(at)) {
                who.lanes &= !(1 << lane);
            }
        }
    }

    fn arrive(&mut self, who: Executing, id: u32, waits: bool) {
        self.keep(move |of| of.arrive(who, id, waits));
    }

    fn complete(&mut self, cta: u64, id: u32) {
        self.keep(move |of| of.complete(cta, id));
    }

    fn warp_barrier(&mut self, who: Executing) {
        self.keep(move |of| of.warp_barrier(who));
    }

    fn fence(&mut self, who: Executing) {
        self.keep(move |of| of.fence(who));
    }

    fn copies(&mut self, who: Executing) {
        self.keep(move |of| of.copies(who));
    }

    fn dependency(&mut self, who: Executing) {
        self.keep(move |of| of.dependency(who));
    }

    fn copy(&mut self, who: Executing, from: Bytes, to: Bytes, mbarrier: Option<u64>) {
        self.keep(move |of| of.copy(who, from, to, mbarrier));
    }

    fn mbarrier(&mut self, who: Executing, address: u64, over: bool) {
        self.keep(move |of| of.mbarrier(who, address, over));
    }

    fn mbarrier_complete(&mut self, who: Executing, address: u64) {
        self.keep(move |of| of.mbarrier_complete(who, address));
    }

    fn cluster_arrive(&mut self, who: Executing, phase: u64) {
        self.keep(move |of| of.cluster_arrive(who, phase));
    }

    fn cluster_wait(&mut self, who: Executing, phase: u64) {
        self.keep(move |of| of.cluster_wait(who, phase));
    }

    fn allocated(&mut self, address: u64, bytes: u64) {
        self.keep(move |of| of.allocated(address, bytes));
    }

    fn released(&mut self, address: u64, bytes: u64) {
        self.keep(move |of| of.released(address, bytes));
    }

    fn requested(&mut self, who: Executing, number: usize) {
        self.keep(move |of| of.requested(who, number));
    }

    fn misuse(&mut self, who: Executing, misuse: Misuse, offset: u32) {
        self.keep(move |of| of.misuse(who, misuse, offset));
    }

    fn exit(&mut self, who: Executing) {
        self.keep(move |of| of.exit(who));
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}
