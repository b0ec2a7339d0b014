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
        threads: Executing,
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
                Kept::Access { threads, .. } if threads.lanes == 0 => {}
                Kept::Access {
                    threads,
                    kind,
                    space,
                    addresses,
                    bytes,
                } => self.engine.access(threads, kind, space, &addresses, bytes),
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
        threads: Executing,
        kind: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        if !self.engine.knows(threads) {
            return;
        }
        for lane in lanes(threads.lanes) {
            self.last
                .insert((threads.cta, threads.warp, lane), self.kept.len());
        }
        let addresses = Box::new(*addresses);
        self.kept.push(Kept::Access {
            threads,
            kind,
            space,
            addresses,
            bytes,
        });
    }

    fn jump(&mut self, threads: Executing) {
        let thrown_away = self.again.made.contains(&threads.offset);
        if !thrown_away && !self.again.not_made.contains(&threads.offset) {
            return;
        }
        for lane in lanes(threads.lanes) {
            let last = self.last.remove(&(threads.cta, threads.warp, lane));
            let last = last.filter(|_| thrown_away);
            if let Some(Kept::Access { threads, .. }) = last.and_then(|at| self.kept.get_mut(at)) {
                threads.lanes &= !(1 << lane);
            }
        }
    }

    fn arrive(&mut self, threads: Executing, id: u32, waits: bool) {
        self.keep(move |of| of.arrive(threads, id, waits));
    }

    fn complete(&mut self, cta: u64, id: u32) {
        self.keep(move |of| of.complete(cta, id));
    }

    fn warp_barrier(&mut self, threads: Executing) {
        self.keep(move |of| of.warp_barrier(threads));
    }

    fn fence(&mut self, threads: Executing) {
        self.keep(move |of| of.fence(threads));
    }

    fn copies(&mut self, threads: Executing) {
        self.keep(move |of| of.copies(threads));
    }

    fn dependency(&mut self, threads: Executing) {
        self.keep(move |of| of.dependency(threads));
    }

    fn copy(&mut self, threads: Executing, from: Bytes, to: Bytes, mbarrier: Option<u64>) {
        self.keep(move |of| of.copy(threads, from, to, mbarrier));
    }

    fn mbarrier(&mut self, threads: Executing, address: u64, over: bool) {
        self.keep(move |of| of.mbarrier(threads, address, over));
    }

    fn mbarrier_complete(&mut self, threads: Executing, address: u64) {
        self.keep(move |of| of.mbarrier_complete(threads, address));
    }

    fn cluster_arrive(&mut self, threads: Executing, phase: u64) {
        self.keep(move |of| of.cluster_arrive(threads, phase));
    }

    fn cluster_wait(&mut self, threads: Executing, phase: u64) {
        self.keep(move |of| of.cluster_wait(threads, phase));
    }

    fn allocated(&mut self, address: u64, bytes: u64) {
        self.keep(move |of| of.allocated(address, bytes));
    }

    fn released(&mut self, address: u64, bytes: u64) {
        self.keep(move |of| of.released(address, bytes));
    }

    fn requested(&mut self, threads: Executing, number: usize) {
        self.keep(move |of| of.requested(threads, number));
    }

    fn misuse(&mut self, threads: Executing, misuse: Misuse, offset: u32) {
        self.keep(move |of| of.misuse(threads, misuse, offset));
    }

    fn exit(&mut self, threads: Executing) {
        self.keep(move |of| of.exit(threads));
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}
