//! From a seed to a kernel.

mod locks;
mod modules;
mod phases;

use super::Random;
use super::kernel::{
    Access, AccessKind, AccessOrder, Act, Call, FAR, Kernel, Role, Scope, Step, Target, Whole,
};

const SCOPES: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];

/// What a kernel is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    /// What the cells decide alone: weak accesses, reductions, strong stores, full barriers.
    Barriers,
    /// Everything.
    Everything,
    /// Data handed over by flags.
    Flags,
}

/// What all parts of one kernel keep to.
struct Maker {
    random: Random,
    flavour: Flavour,
    /// Sizes of weak accesses.
    sizes: Vec<u32>,
    /// Sizes of strong ones.
    strong: Vec<u32>,
    /// Fixed places of global memory start at so many multiples of 4.
    words: u32,
    /// Shared memory is used, so many times out of a hundred.
    shared: u32,
    small_shadow: bool,
    clusters: bool,
    /// There are asynchronous copies and an mbarrier.
    copies: bool,
    /// There are bulk copies and their mbarrier.
    bulk: bool,
    /// There are asynchronous stores and their mbarrier.
    sends: bool,
    named: u32,
}

/// The kernel of a seed, and its module.
pub fn kernel(seed: u64) -> Kernel {
    let mut kernel = alone(seed);
    kernel.beside = modules::beside(seed).into_iter().map(alone).collect();
    kernel
}

/// The kernel of a seed that does nothing but hand over data, from one thread to another, by one or two
/// flags: all of it volatile, or the data weak; with fences missing and scopes too narrow now and then.
pub fn messages(seed: u64) -> Kernel {
    let mut kernel = modules::messages(seed);
    let mut random = Random::new(seed.rotate_left(40) ^ 0x766f_6c61);
    if random.percent(60) {
        modules::make_volatile(&mut kernel.steps);
    }
    kernel
}

/// The kernel of a seed, without others beside it.
fn alone(seed: u64) -> Kernel {
    let mut random = Random::new(seed);
    let flavour = match random.below(100) {
        0..55 => Flavour::Barriers,
        55..75 => Flavour::Everything,
        _ => Flavour::Flags,
    };
    let sizes = match random.below(10) {
        0..6 => vec![4],
        6 => vec![1, 2, 4],
        7 => vec![1, 4],
        8 => vec![4, 8],
        _ => vec![1, 2, 4, 8],
    };
    let strong = match random.below(10) {
        0..7 => vec![4],
        7 => vec![8],
        8 => vec![4, 8],
        _ => vec![1, 2, 4, 8],
    };
    let shared = random.pick(&[0, 0, 0, 20, 50]);
    let words = 1 + random.below(4);
    let small_shadow = random.percent(8);
    let (ctas, warps) = (
        random.pick(&[1, 1, 2, 2, 2, 3, 4]),
        random.pick(&[1, 1, 2, 2, 3]),
    );
    let clusters = ctas % 2 == 0 && random.percent(20);
    let mut maker = Maker {
        random,
        flavour,
        sizes,
        strong,
        words,
        shared,
        small_shadow,
        clusters,
        // Drawn apart, so that other kernels stay as they were.
        copies: flavour != Flavour::Barriers && Random::new(!seed).percent(20),
        bulk: flavour != Flavour::Barriers
            && Random::new(seed.rotate_left(16) ^ 0x6275_6c6b).percent(15),
        sends: clusters
            && flavour != Flavour::Barriers
            && Random::new(seed.rotate_left(20) ^ 0x7365_6e64).percent(40),
        named: 0,
    };
    let roles = (0..1 + maker.random.below(4))
        .map(|_| maker.role(ctas, warps))
        .collect();
    let mut kernel = Kernel {
        seed,
        ctas,
        warps,
        clusters,
        small_shadow,
        roles,
        gates: Vec::new(),
        steps: Vec::new(),
        early: false,
        beside: Vec::new(),
    };
    let count = 2 + maker.random.below(7);
    kernel.steps = maker.steps(&kernel, count, true);
    if !clusters {
        meet_as_a_grid(&mut kernel);
    }
    // Drawn apart, too.
    maker.random = Random::new(seed.rotate_left(48) ^ 0x7068_6173);
    maker.phases(&mut kernel);
    maker.random = Random::new(seed.rotate_left(12) ^ 0x6c6f_636b);
    maker.locks(&mut kernel);
    if Random::new(seed.rotate_left(36) ^ 0x766f_6c61).percent(12) {
        modules::make_volatile(&mut kernel.steps);
    }
    if Random::new(seed.rotate_left(52) ^ 0x6c6f_6f6b).percent(40) {
        modules::look_before(&mut kernel.steps);
    }
    modules::calls(&mut kernel);
    kernel
}

/// Puts barriers of the grid between the steps of some kernels. Drawn apart, so that other kernels
/// stay as they were.
fn meet_as_a_grid(kernel: &mut Kernel) {
    let mut random = Random::new(kernel.seed.rotate_left(32) ^ 0x6772_6964);
    if !random.percent(15) {
        return;
    }
    for _ in 0..1 + random.below(2) {
        let at = random.below(kernel.steps.len() as u32) as usize;
        match &mut kernel.steps[at] {
            Step::Loop { steps, .. } if random.percent(50) => steps.push(Step::Grid),
            _ => kernel.steps.insert(at, Step::Grid),
        }
    }
}

impl Maker {
    fn role(&mut self, ctas: u32, warps: u32) -> Role {
        Role {
            ctas: self.some(ctas),
            warps: self.some(warps),
            lanes: match self.random.below(10) {
                0..6 => 1 << self.random.pick(&[0, 0, 1, 5, 31]),
                6 => 0b11,
                7 => 0xffff,
                8 => u32::MAX,
                _ => self.random.number() as u32 | 1 << 7,
            },
        }
    }

    /// One, all, or a few of so many.
    fn some(&mut self, of: u32) -> u32 {
        match self.random.below(4) {
            0 => (1 << of) - 1,
            1 => (1 + self.random.below((1 << of) - 1)).max(1),
            _ => 1 << self.random.below(of),
        }
    }

    fn steps(&mut self, kernel: &Kernel, count: u32, outside: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        while (steps.len() as u32) < count {
            let barriers_only = self.flavour == Flavour::Barriers;
            match self.random.below(100) {
                0..18 => steps.push(Step::Barrier(self.random.pick(&[
                    Whole::Bar,
                    Whole::Bar,
                    Whole::Bar,
                    Whole::Unaligned,
                    Whole::Reduce,
                ]))),
                18..24 => {
                    let full = barriers_only || self.random.percent(50);
                    let mask = match full {
                        true => u32::MAX,
                        false => self.random.pick(&[1, 3, 0xff, 0xffff, 0x8000_0021]),
                    };
                    let register = !barriers_only && self.random.percent(30);
                    steps.push(Step::WarpBarrier { mask, register });
                }
                24..28 if outside && self.random.percent(70) => {
                    let steps_inside = 1 + self.random.below(3);
                    steps.push(Step::Loop {
                        times: 2 + self.random.below(2),
                        steps: self.steps(kernel, steps_inside, false),
                    });
                }
                28..34 if !barriers_only && outside && self.named < 8 => {
                    self.named += 1;
                    steps.push(Step::Named {
                        id: self.named,
                        sync: self.some(kernel.warps),
                        arrive: match self.random.below(2) {
                            0 => 0,
                            _ => self.some(kernel.warps),
                        },
                    });
                }
                34..40 if !barriers_only && kernel.clusters => {
                    let relaxed = self.random.percent(20);
                    steps.push(Step::ClusterArrive { relaxed });
                    if self.random.percent(30) {
                        steps.push(self.acts(kernel));
                    }
                    steps.push(Step::ClusterWait);
                }
                40..70 if self.flavour == Flavour::Flags => self.message(kernel, &mut steps),
                _ => steps.push(self.acts(kernel)),
            }
        }
        steps
    }

    /// A role acts, and perhaps the others.
    fn acts(&mut self, kernel: &Kernel) -> Step {
        let some = |maker: &mut Self, most| {
            let count = 1 + maker.random.below(most);
            (0..count).map(|_| maker.act()).collect::<Vec<_>>()
        };
        let acts = some(self, 3);
        let others = match self.random.percent(15) {
            true => some(self, 2),
            false => Vec::new(),
        };
        Step::Acts {
            role: self.random.below(kernel.roles.len() as u32) as usize,
            branch: self.random.percent(40),
            acts,
            others,
            call: Call::Inline,
        }
    }

    fn act(&mut self) -> Act {
        if self.flavour == Flavour::Barriers {
            // What only acquires orders nothing by itself.
            return match self.random.percent(2) {
                true => Act::Fence("acquire", Scope::Gpu),
                false => Act::Access(self.simple()),
            };
        }
        if self.copies && self.random.percent(40) {
            return self.asynchronous();
        }
        if self.bulk && self.random.percent(40) {
            return self.bulk();
        }
        if self.sends && self.random.percent(40) {
            return self.send();
        }
        match self.random.below(100) {
            0..12 => self.fence(),
            12..15 => Act::Poll {
                access: self.looking(),
                tries: 1 + self.random.below(20),
                before: false,
            },
            15..60 => Act::Access(self.simple()),
            _ => Act::Access(self.strong()),
        }
    }

    /// A copy, a wait for copies, or a use of the mbarrier.
    fn asynchronous(&mut self) -> Act {
        match self.random.below(100) {
            0..40 => {
                let bytes = self.random.pick(&[4, 4, 8]);
                let by_lane = self.random.percent(20);
                let target = |maker: &mut Self, shared| Target {
                    shared,
                    far: false,
                    generic: false,
                    offset: maker.random.below((maker.words * 4).div_ceil(bytes)) * bytes,
                    bytes,
                    vector: 1,
                    by_lane,
                };
                let from = target(self, false);
                let to = target(self, true);
                Act::Copy { from, to }
            }
            40..55 => Act::Commit,
            55..65 => Act::WaitGroup(None),
            65..75 => Act::WaitGroup(Some(self.random.below(2))),
            75..82 => Act::Arrive {
                copies: true,
                relaxed: false,
            },
            82..90 => Act::Arrive {
                copies: false,
                relaxed: self.random.percent(20),
            },
            _ => Act::Pass {
                tries: 1 + self.random.below(20),
                relaxed: self.random.percent(20),
            },
        }
    }

    /// A bulk copy, what waits for one, or a fence between the proxies.
    fn bulk(&mut self) -> Act {
        match self.random.below(100) {
            0..45 => {
                let (global, shared) = self.bulk_places(10);
                let ops = &[None, None, Some("add"), Some("or")];
                let (from, to, op) = match self.random.percent(60) {
                    true => (global, shared, None),
                    false => (shared, global, self.random.pick(ops)),
                };
                Act::Bulk { from, to, op }
            }
            45..58 => Act::BulkCommit,
            58..70 => Act::BulkWait {
                left: self.random.below(2),
                read: self.random.percent(30),
            },
            70..80 => Act::ProxyFence,
            80..87 => Act::Arrive {
                copies: false,
                relaxed: self.random.percent(20),
            },
            _ => Act::Pass {
                tries: 1 + self.random.below(20),
                relaxed: self.random.percent(20),
            },
        }
    }

    /// Where a bulk copy goes, in global and in shared memory; each lane has its own so many times out
    /// of a hundred, where that fits.
    fn bulk_places(&mut self, of_hundred: u32) -> (Target, Target) {
        let bytes = self.random.pick(&[16, 16, 32]);
        let by_lane = bytes == 16 && self.random.percent(of_hundred);
        let target = |shared, offset| Target {
            shared,
            far: false,
            generic: false,
            offset: if by_lane { 0 } else { offset },
            bytes,
            vector: 1,
            by_lane,
        };
        // Fixed places of other accesses lie in the first of these rows.
        let offsets = [0; 2].map(|_| self.random.pick(&[0, 0, 0, 16]));
        (target(false, offsets[0]), target(true, offsets[1]))
    }

    fn fence(&mut self) -> Act {
        let sem = self
            .random
            .pick(&["acq_rel", "acq_rel", "sc", "membar", "acquire", "release"]);
        Act::Fence(sem, self.random.pick(&SCOPES))
    }

    /// An access that the cells understand.
    fn simple(&mut self) -> Access {
        let wide = self
            .random
            .pick(&[Scope::Gpu, Scope::Gpu, Scope::Cta, Scope::Sys]);
        let (kind, order) = match self.random.below(100) {
            0..42 => (AccessKind::Load, AccessOrder::Plain),
            42..68 => (AccessKind::Store, AccessOrder::Plain),
            68..76 => (
                AccessKind::Red(self.random.pick(&["add", "or", "max"])),
                AccessOrder::Plain,
            ),
            76..90 => (AccessKind::Red("add"), AccessOrder::Strong("relaxed", wide)),
            90..96 => (AccessKind::Store, AccessOrder::Strong("relaxed", wide)),
            96..98 => (AccessKind::Store, AccessOrder::Volatile),
            _ => (AccessKind::Load, AccessOrder::ReadOnly),
        };
        self.at_a_place(kind, order)
    }

    /// A strong access of any kind.
    fn strong(&mut self) -> Access {
        let scope = self.random.pick(&SCOPES);
        let relaxed = AccessOrder::Strong("relaxed", scope);
        let (kind, order) = match self.random.below(100) {
            0..12 => (AccessKind::Load, relaxed),
            12..24 => (AccessKind::Load, AccessOrder::Strong("acquire", scope)),
            24..30 => (AccessKind::Load, AccessOrder::Volatile),
            30..42 => (AccessKind::Store, relaxed),
            42..54 => (AccessKind::Store, AccessOrder::Strong("release", scope)),
            54..58 => (AccessKind::Store, AccessOrder::Volatile),
            58..68 => (
                AccessKind::Red("add"),
                AccessOrder::Strong("release", scope),
            ),
            68..74 => (AccessKind::Red("or"), relaxed),
            _ => {
                let op = self.random.pick(&["add", "exch", "cas", "or", "and"]);
                let sem = self
                    .random
                    .pick(&["relaxed", "acquire", "release", "acq_rel"]);
                (AccessKind::Atom(op), AccessOrder::Strong(sem, scope))
            }
        };
        self.at_a_place(kind, order)
    }

    /// A look at a flag; an atomic leaves it as it is.
    fn looking(&mut self) -> Access {
        let scope = self.random.pick(&SCOPES);
        let (kind, order) = match self.random.below(10) {
            0..4 => (AccessKind::Load, AccessOrder::Strong("acquire", scope)),
            4..6 => (AccessKind::Load, AccessOrder::Strong("relaxed", scope)),
            6 => (AccessKind::Load, AccessOrder::Volatile),
            7 => (
                AccessKind::Atom("and"),
                AccessOrder::Strong("acquire", scope),
            ),
            8 => (
                AccessKind::Atom("cas"),
                AccessOrder::Strong("acq_rel", scope),
            ),
            _ => (AccessKind::Load, AccessOrder::Plain),
        };
        let mut access = self.at_a_place(kind, order);
        access.target = Target {
            by_lane: false,
            vector: 1,
            ..access.target
        };
        access
    }

    fn at_a_place(&mut self, kind: AccessKind, order: AccessOrder) -> Access {
        let atomic = matches!(kind, AccessKind::Atom(_) | AccessKind::Red(_));
        let weak = matches!(order, AccessOrder::Plain | AccessOrder::ReadOnly) && !atomic;
        let sizes = if weak { &self.sizes } else { &self.strong };
        let mut bytes = self.random.pick(sizes);
        if atomic {
            let halves = matches!(kind, AccessKind::Atom("cas"));
            bytes = bytes.max(if halves { 2 } else { 4 });
        }
        let shared = order != AccessOrder::ReadOnly && self.random.percent(self.shared);
        let vector = if weak && self.random.percent(4) { 2 } else { 1 };
        // Vectors are aligned as a whole.
        let unit = bytes * vector;
        let hot = (self.words * 4).div_ceil(unit);
        let mut offset = self.random.below(hot) * unit;
        if self.small_shadow && !shared && self.random.percent(40) {
            offset += FAR;
        }
        Access {
            kind,
            order,
            target: Target {
                shared,
                far: shared && self.clusters && self.random.percent(40),
                generic: order != AccessOrder::ReadOnly && self.random.percent(6),
                offset,
                bytes,
                vector,
                by_lane: self.random.percent(12),
            },
            after_flag: false,
        }
    }

    /// One role writes data and sets a flag, another waits for it and reads the data; with parts
    /// missing now and then.
    fn message(&mut self, kernel: &Kernel, steps: &mut Vec<Step>) {
        let role = |maker: &mut Self| maker.random.below(kernel.roles.len() as u32) as usize;
        let (from, to) = (role(self), role(self));
        let mut data = self.at_a_place(AccessKind::Store, AccessOrder::Plain);
        data.order = AccessOrder::Plain;
        let mut flag = self.looking();
        flag.target.bytes = flag.target.bytes.max(4);
        // A place of its own, so that the data's race does not hide the flag's order.
        flag.target.offset = 32 + 8 * self.random.below(3);
        let scope = self.random.pick(&SCOPES);
        let (kind, order) = match self.random.below(10) {
            0..4 => (AccessKind::Store, AccessOrder::Strong("release", scope)),
            4..6 => (AccessKind::Store, AccessOrder::Strong("relaxed", scope)),
            6 => (
                AccessKind::Red("add"),
                AccessOrder::Strong("release", scope),
            ),
            7 => (
                AccessKind::Atom("exch"),
                AccessOrder::Strong("acq_rel", scope),
            ),
            8 => (AccessKind::Store, AccessOrder::Volatile),
            _ => (AccessKind::Store, AccessOrder::Plain),
        };
        let set = Access {
            kind,
            order,
            ..flag
        };
        let mut acts = vec![Act::Access(data)];
        if self.random.percent(60) {
            acts.push(self.fence());
        }
        acts.push(Act::Access(set));
        steps.push(Step::Acts {
            role: from,
            branch: true,
            acts,
            others: Vec::new(),
            call: Call::Inline,
        });
        let mut acts = vec![Act::Poll {
            access: flag,
            tries: 5 + self.random.below(60),
            before: false,
        }];
        if self.random.percent(60) {
            acts.push(self.fence());
        }
        let kind = match self.random.percent(70) {
            true => AccessKind::Load,
            false => AccessKind::Store,
        };
        acts.push(Act::Access(Access {
            kind,
            after_flag: true,
            ..data
        }));
        // Passed on to a third.
        if self.random.percent(25) {
            acts.push(Act::Access(Access {
                target: Target {
                    offset: 64,
                    ..flag.target
                },
                after_flag: true,
                ..set
            }));
        }
        steps.push(Step::Acts {
            role: to,
            branch: true,
            acts,
            others: Vec::new(),
            call: Call::Inline,
        });
    }
}
