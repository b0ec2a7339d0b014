//! Critical sections under locks of one word, with fences missing, scopes too narrow and wrong locks now and
//! then; and stores into the other CTA of a cluster.

use super::super::kernel::{
    Access, AccessKind, AccessOrder, Act, Call, Kernel, Role, Scope, Step, Target,
};
use super::{Flavour, Maker, SCOPES};

/// Where the words of locks lie, behind what hardly anything else reaches.
const LOCKS: u32 = 480;

impl Maker {
    /// Puts critical sections between the steps of some kernels.
    pub(super) fn locks(&mut self, kernel: &mut Kernel) {
        if self.flavour == Flavour::Barriers || !self.random.percent(20) {
            return;
        }
        let data = self.guarded();
        // Few threads: each of them tries for a while.
        let first = kernel.roles.len();
        for _ in 0..2 {
            let role = Role {
                lanes: self.random.pick(&[1, 1, 2, 0b11, 1 << 31]),
                ..self.role(kernel.ctas, kernel.warps)
            };
            kernel.roles.push(role);
        }
        for _ in 0..1 + self.random.below(3) {
            let role = first + self.random.below(2) as usize;
            let step = self.section(role, data);
            let at = self.random.below(kernel.steps.len() as u32 + 1) as usize;
            kernel.steps.insert(at, step);
        }
    }

    /// What the lock is for: volatile for the most part.
    fn guarded(&mut self) -> Access {
        let order = match self.random.below(10) {
            0..5 => AccessOrder::Volatile,
            5..7 => AccessOrder::Strong("relaxed", self.random.pick(&SCOPES)),
            _ => AccessOrder::Plain,
        };
        let access = self.at_a_place(AccessKind::Store, order);
        Access {
            order,
            target: Target {
                by_lane: false,
                vector: 1,
                ..access.target
            },
            ..access
        }
    }

    /// A role takes a lock, accesses the data and gives the lock back.
    fn section(&mut self, role: usize, data: Access) -> Step {
        let lock = Access {
            kind: AccessKind::Atom(self.random.pick(&["cas", "cas", "exch"])),
            order: AccessOrder::Plain,
            target: Target {
                shared: false,
                far: false,
                generic: false,
                offset: LOCKS + 8 * u32::from(self.random.percent(15)),
                bytes: 4,
                vector: 1,
                by_lane: false,
            },
            after_flag: false,
        };
        let scope = self
            .random
            .pick(&[Scope::Gpu, Scope::Gpu, Scope::Gpu, Scope::Cta]);
        let take = match self.random.below(10) {
            0..6 => AccessOrder::Plain,
            6..8 => AccessOrder::Strong("acquire", scope),
            _ => AccessOrder::Strong("relaxed", scope),
        };
        let (kind, order) = match self.random.below(10) {
            0..3 => (AccessKind::Atom("exch"), AccessOrder::Plain),
            3..5 => (AccessKind::Store, AccessOrder::Volatile),
            5..7 => (AccessKind::Store, AccessOrder::Strong("release", scope)),
            7..9 => (
                AccessKind::Atom("exch"),
                AccessOrder::Strong("release", scope),
            ),
            _ => (AccessKind::Store, AccessOrder::Strong("relaxed", scope)),
        };
        let mut acts = vec![Act::Take {
            access: Access {
                order: take,
                ..lock
            },
            tries: 5 + self.random.below(30),
        }];
        acts.extend(self.random.percent(75).then(|| self.fence()));
        for _ in 0..1 + self.random.below(2) {
            let kind = self.random.pick(&[AccessKind::Store, AccessKind::Load]);
            acts.push(Act::Access(Access {
                kind,
                after_flag: true,
                ..data
            }));
        }
        acts.extend(self.random.percent(75).then(|| self.fence()));
        acts.push(Act::Give(Access {
            kind,
            order,
            ..lock
        }));
        Step::Acts {
            role,
            branch: true,
            acts,
            others: Vec::new(),
            call: Call::Inline,
        }
    }

    /// A store into the other CTA of the cluster, or what waits for one.
    pub(super) fn send(&mut self) -> Act {
        match self.random.below(100) {
            0..50 => Act::Send {
                to: Target {
                    shared: true,
                    far: true,
                    generic: false,
                    offset: self.random.below(self.words) * 4,
                    bytes: 4,
                    vector: 1,
                    by_lane: self.random.percent(15),
                },
                op: self.random.pick(&[None, None, Some("add"), Some("or")]),
            },
            50..70 => Act::Arrive {
                copies: false,
                relaxed: self.random.percent(20),
            },
            _ => Act::Pass {
                tries: 1 + self.random.below(20),
                relaxed: self.random.percent(20),
            },
        }
    }
}
