//! Mbarriers that go through several phases, alone or as a pair of which one says that there is
//! something and the other that it has been taken.

use super::super::kernel::{
    Access, AccessKind, AccessOrder, Act, Call, Entry, Gate, Kernel, Role, Scope, Step, Strength,
    Target, Whole,
};
use super::{Flavour, Maker};

impl Maker {
    /// Gives some kernels one or two mbarriers and puts rounds of their phases between the steps.
    pub(super) fn phases(&mut self, kernel: &mut Kernel) {
        if self.flavour == Flavour::Barriers || !self.random.percent(30) {
            return;
        }
        let pair = self.random.percent(50);
        let several = pair || self.random.percent(40);
        let mut others = 0;
        for number in 0..1 + usize::from(several) {
            let role = self.members(kernel, others);
            // The two sides of a pair are different lanes.
            others = if pair { role.lanes } else { 0 };
            kernel.roles.push(role);
            kernel.gates.push(Gate {
                role: kernel.roles.len() - 1,
                share: 1 + u32::from(self.random.percent(35)),
                then: if pair { 1 - number } else { number },
                begins: !pair || number == 0,
            });
        }
        for _ in 0..1 + self.random.below(3) {
            let mut steps = match pair {
                true => self.hand_over(kernel),
                false => {
                    let gate = self.random.below(kernel.gates.len() as u32) as usize;
                    self.meet(kernel, gate)
                }
            };
            if self.random.percent(50) {
                let times = 2 + self.random.below(2);
                steps = vec![Step::Loop { times, steps }];
            }
            let at = self.random.below(kernel.steps.len() as u32 + 1) as usize;
            kernel.steps.splice(at..at, steps);
        }
    }

    /// Threads of every CTA that use an mbarrier, without those lanes.
    fn members(&mut self, kernel: &Kernel, without: u32) -> Role {
        let lanes = self
            .random
            .pick(&[1, 2, 0b11, 0x8000_0020, 0xffff, u32::MAX]);
        let lanes = match (lanes & !without, !without) {
            (0, 0) => 1,
            (0, rest) => rest,
            (lanes, _) => lanes,
        };
        Role {
            ctas: (1 << kernel.ctas) - 1,
            warps: self.some(kernel.warps),
            // Somebody has to be left for the other side of a pair.
            lanes: if lanes == u32::MAX {
                0x00ff_ffff
            } else {
                lanes
            },
        }
    }

    /// The threads of an mbarrier arrive and wait.
    fn meet(&mut self, kernel: &Kernel, gate: usize) -> Vec<Step> {
        let role = kernel.gates[gate].role;
        let (how, copy) = self.entry();
        let (put, get) = self.data(kernel, role, &how);
        let mut before = Vec::new();
        before.extend(self.random.percent(75).then_some(put));
        before.extend(copy);
        before.extend(self.random.percent(20).then(|| self.fence()));
        before.push(self.enter(gate, how));
        let mut behind = vec![self.leave(gate, true)];
        behind.extend(self.random.percent(20).then(|| self.fence()));
        behind.extend(self.random.percent(75).then_some(get));
        if self.random.percent(60) {
            before.append(&mut behind);
            return vec![step(role, before)];
        }
        let between = match self.random.below(3) {
            0 => Step::Barrier(Whole::Bar),
            _ => self.acts(kernel),
        };
        vec![step(role, before), between, step(role, behind)]
    }

    /// One side of a pair of mbarriers hands something over to the other and waits until that is done
    /// with it.
    fn hand_over(&mut self, kernel: &Kernel) -> Vec<Step> {
        let [from, to] = [0, 1].map(|gate: usize| kernel.gates[gate].role);
        let (how, copy) = self.entry();
        let (put, get) = self.data(kernel, from, &how);
        let mut gives = Vec::new();
        gives.extend(self.random.percent(85).then_some(put));
        gives.extend(copy);
        gives.extend(self.random.percent(15).then(|| self.fence()));
        gives.push(self.enter(0, how));
        let mut takes = vec![self.leave(0, false)];
        takes.extend(self.random.percent(15).then(|| self.fence()));
        takes.extend(self.random.percent(85).then_some(get));
        let done = match self.entry().0 {
            Entry::Bulk { .. } | Entry::Copies => Entry::Whole,
            how => how,
        };
        // Too early, now and then.
        let at = match self.random.percent(15) {
            true => 1,
            false => takes.len(),
        };
        takes.insert(at, self.enter(1, done));
        let waits = vec![self.leave(1, false)];
        vec![step(from, gives), step(to, takes), step(from, waits)]
    }

    /// A way to arrive, and the copy that it is about.
    fn entry(&mut self) -> (Entry, Option<Act>) {
        match self.random.below(100) {
            0..30 => (Entry::Whole, None),
            30..40 => (Entry::OneByOne, None),
            40..55 => (Entry::NoComplete, None),
            55..65 => (Entry::Drop, None),
            65..80 => {
                let by_lane = self.random.percent(60);
                let [from, to] = [false, true].map(|shared| Target {
                    shared,
                    far: false,
                    generic: false,
                    offset: 128,
                    bytes: 4,
                    vector: 1,
                    by_lane,
                });
                (Entry::Copies, Some(Act::Copy { from, to }))
            }
            _ => {
                let (from, to) = self.bulk_places(0);
                let apart = self.random.percent(40);
                (Entry::Bulk { from, to, apart }, None)
            }
        }
    }

    /// A store in front of an arrival, each lane for itself, and a load of what one lane has stored
    /// or a copy has brought.
    fn data(&mut self, kernel: &Kernel, role: usize, how: &Entry) -> (Act, Act) {
        let row = Target {
            shared: self.random.percent(60),
            far: false,
            generic: self.random.percent(6),
            offset: self.random.pick(&[128, 128, 256]),
            bytes: 4,
            vector: 1,
            by_lane: true,
        };
        let lane = kernel.roles[role].lanes.trailing_zeros();
        let one = Target {
            offset: row.offset + 4 * lane,
            by_lane: false,
            ..row
        };
        let taken = match how {
            Entry::Bulk { to, .. } => Target {
                offset: to.offset + 4 * self.random.below(4),
                shared: true,
                ..one
            },
            Entry::Copies => Target {
                offset: 128 + 4 * lane,
                shared: true,
                ..one
            },
            _ => one,
        };
        let access = |kind, target, after_flag| {
            Act::Access(Access {
                kind,
                order: AccessOrder::Plain,
                target,
                after_flag,
            })
        };
        let put = match self.random.percent(85) {
            true => access(AccessKind::Store, row, false),
            false => self.act(),
        };
        let kind = match self.random.percent(80) {
            true => AccessKind::Load,
            false => AccessKind::Store,
        };
        // Now and then what the thread itself has stored is what another one reads.
        let target = if self.random.percent(80) { taken } else { one };
        (put, access(kind, target, self.random.percent(90)))
    }

    fn enter(&mut self, gate: usize, how: Entry) -> Act {
        Act::Enter {
            gate,
            how,
            strength: self.strength(),
        }
    }

    fn leave(&mut self, gate: usize, own: bool) -> Act {
        Act::Leave {
            gate,
            state: own && self.random.percent(50),
            suspends: self.random.percent(50),
            strength: self.strength(),
            tries: self.random.pick(&[2, 60, 200]),
        }
    }

    fn strength(&mut self) -> Strength {
        match self.random.below(10) {
            0..7 => Strength::Plain,
            7 => Strength::Cluster,
            8 => Strength::Relaxed(Scope::Cta),
            _ => Strength::Relaxed(Scope::Cluster),
        }
    }
}

fn step(role: usize, acts: Vec<Act>) -> Step {
    Step::Acts {
        role,
        branch: true,
        acts,
        others: Vec::new(),
        call: Call::Inline,
    }
}
