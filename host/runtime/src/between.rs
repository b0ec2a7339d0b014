//! What two threads do between two accesses that race, in the order of the launch.
//!
//! A replay keeps two kinds of events: the synchronisation of the two threads, and the accesses of all threads to the
//! bytes that race.

use report::log::Semantics;
use report::replay::{Did, FenceOrder, Op, Role, Step};
use shadow::hb::{Access, Completion, FenceKind, LANES, Location, MemoryOrder, OpKind, Race, Span};

use crate::log;
use crate::traced::{EventKind, TraceEvent};

/// Bytes of an mbarrier object.
const MBARRIER_BYTES: u32 = 8;
/// Steps that are kept on either side of those that are left out.
const KEPT: usize = 200;
/// Accesses to the bytes that race that are kept.
const ACCESSES: usize = 10_000;

/// Two accesses that race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The earlier and the later thread: linear index of its CTA in the grid, and its own in the CTA.
    pub threads: [(u64, u32); 2],
    /// Lines of the instructions in the program's own PTX.
    pub lines: [u32; 2],
    /// The memory that they access.
    pub space: log::Space,
    /// First byte of the word that they share, an offset in shared memory.
    pub address: u64,
}

impl Wanted {
    /// Whether a race is theirs, whose instructions have these lines.
    fn is(&self, race: &Race, lines: [u32; 2]) -> bool {
        let sides = [race.earlier, race.later].map(|side| {
            let of = side.thread;
            (of.cta, of.warp * LANES + of.lane)
        });
        sides == self.threads && lines == self.lines && self.holds(race.location, 1)
    }

    /// Whether bytes from a location on share one with the word.
    fn holds(&self, location: Location, bytes: u32) -> bool {
        let (space, address) = match location {
            Location::Global(address) => (log::Space::Global, address),
            Location::Shared { offset, .. } => (log::Space::Shared, u64::from(offset)),
        };
        let word = self.address & !3;
        space == self.space && address < word + 4 && word < address + u64::from(bytes.max(1))
    }
}

/// What happens between two accesses.
#[derive(Clone, Debug)]
pub struct Between {
    wanted: Wanted,
    /// From the last access of the earlier thread on.
    first: Vec<Step>,
    last: Vec<Step>,
    left_out: u64,
    /// The steps up to a second access for which no race was reported.
    candidate: Option<Steps>,
    /// The steps at the moment when the race was reported.
    found: Option<Steps>,
    /// The engine has just found the race.
    met: bool,
    /// Accesses of all threads to the bytes.
    accesses: Vec<Step>,
    more_accesses: u64,
    /// Events so far.
    number: u64,
}

/// Steps from the first access to the second.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// In the order of the launch.
    pub steps: Vec<Step>,
    /// How many are left out in the middle.
    pub left_out: u64,
    /// Accesses of all threads to the bytes.
    pub accesses: Vec<Step>,
    /// How many of these are left out at the end.
    pub more_accesses: u64,
}

impl Between {
    /// Starts before the first event.
    pub fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            first: Vec::new(),
            last: Vec::new(),
            left_out: 0,
            candidate: None,
            found: None,
            met: false,
            accesses: Vec::new(),
            more_accesses: 0,
            number: 0,
        }
    }

    /// The steps, when the launch has ended; none if one of the two accesses was not made.
    pub fn finish(mut self) -> Steps {
        self.settle();
        let found = self.found.or(self.candidate).unwrap_or_default();
        Steps {
            accesses: self.accesses,
            more_accesses: self.more_accesses,
            ..found
        }
    }

    /// The engine has found a race between instructions on these lines.
    pub(crate) fn race(&mut self, race: &Race, lines: [u32; 2]) {
        self.met |= self.found.is_none() && self.wanted.is(race, lines);
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.met) && self.found.is_none() {
            self.found = Some(self.so_far());
        }
    }

    fn so_far(&self) -> Steps {
        Steps {
            steps: self.first.iter().chain(&self.last).cloned().collect(),
            left_out: self.left_out,
            ..Steps::default()
        }
    }

    /// Takes the next event of the launch.
    pub(crate) fn hear(&mut self, traced: TraceEvent) {
        self.settle();
        self.number += 1;
        let of = |n: usize| {
            let (cta, thread) = self.wanted.threads[n];
            let own = traced.cta == cta && traced.warp == thread / LANES;
            match traced.what {
                EventKind::Complete { .. } => traced.cta == cta,
                EventKind::MbarrierComplete { at } => {
                    matches!(at, Location::Shared { cta: of, .. } if of == cta)
                }
                _ => own && traced.lanes >> (thread % LANES) & 1 == 1,
            }
        };
        let by = [of(0), of(1)];
        let touched = self.touched(&traced);
        if touched.is_empty() && (by == [false; 2] || !orders(&traced.what)) {
            return;
        }
        let role = match by {
            [true, true] => Role::Both,
            [true, false] => Role::First,
            [false, true] => Role::Second,
            [false, false] => Role::Other,
        };
        let step = Step {
            number: self.number,
            role,
            cta: traced.cta,
            thread: match by {
                _ if traced.lanes == 0 => None,
                [true, false] => Some(self.wanted.threads[0].1),
                [false, true] => Some(self.wanted.threads[1].1),
                _ => touched
                    .first()
                    .copied()
                    .or(Some(traced.warp * LANES + traced.lanes.trailing_zeros())),
            },
            ptx_line: traced.line,
            did: did(&traced.what, !touched.is_empty()),
            times: 1,
            ..Step::default()
        };
        self.access(&traced, &touched, &step);
        let makes = |n: usize| {
            let thread = self.wanted.threads[n].1;
            by[n] && traced.line == self.wanted.lines[n] && touched.contains(&thread)
        };
        let [first, second] = [makes(0), makes(1)];
        if second && !self.first.is_empty() && self.candidate.is_none() {
            self.push(step.clone());
            self.candidate = Some(self.so_far());
        } else if !first && !self.first.is_empty() && role != Role::Other {
            self.push(step.clone());
        }
        if first && self.found.is_none() {
            self.first = vec![step];
            self.last.clear();
            self.left_out = 0;
        }
    }

    /// The threads, by their index in the CTA, that access the bytes that race.
    fn touched(&self, traced: &TraceEvent) -> Vec<u32> {
        let lanes = (0..LANES).filter(|lane| traced.lanes >> lane & 1 == 1);
        let threads = lanes.map(|lane| traced.warp * LANES + lane);
        match &traced.what {
            EventKind::Access { access, locations } => {
                let bytes = access.bytes * access.elements.max(1);
                let touching = threads.zip(locations);
                let touching =
                    touching.filter(|(_, location)| self.wanted.holds(**location, bytes));
                touching.map(|(thread, _)| thread).collect()
            }
            EventKind::Copy { from, to, ends, .. } => {
                let holds = |span: &Span| self.wanted.holds(span.location, span.bytes);
                let ends = match ends {
                    Completion::Mbarrier(at) => self.wanted.holds(*at, MBARRIER_BYTES),
                    Completion::Group => false,
                };
                match holds(from) || holds(to) || ends {
                    true => threads.collect(),
                    false => Vec::new(),
                }
            }
            EventKind::Mbarrier { at, .. } if self.wanted.holds(*at, MBARRIER_BYTES) => {
                threads.collect()
            }
            _ => Vec::new(),
        }
    }

    /// Keeps an access to the bytes, for each thread that makes it.
    fn access(&mut self, traced: &TraceEvent, touched: &[u32], step: &Step) {
        for &thread in touched {
            if self.accesses.len() == ACCESSES {
                self.more_accesses += 1;
                continue;
            }
            let is = |n: usize| self.wanted.threads[n] == (traced.cta, thread);
            self.accesses.push(Step {
                thread: Some(thread),
                role: match (is(0), is(1)) {
                    (true, true) => Role::Both,
                    (true, false) => Role::First,
                    (false, true) => Role::Second,
                    (false, false) => Role::Other,
                },
                ..step.clone()
            });
        }
    }

    fn push(&mut self, step: Step) {
        let room = self.first.len() < KEPT;
        let steps = match room {
            true => &mut self.first,
            false => &mut self.last,
        };
        if let Some(before) = steps.last_mut()
            && before.is_again(&step)
        {
            before.times += 1;
            before.number = step.number;
            return;
        }
        steps.push(step);
        if self.last.len() > KEPT {
            self.left_out += self.last.remove(0).times;
        }
    }
}

/// Whether something orders threads, or ends one.
fn orders(what: &EventKind) -> bool {
    match what {
        EventKind::Access { access, .. } => {
            access.order.scope().is_some() || matches!(access.kind, OpKind::Rmw | OpKind::Reduction)
        }
        EventKind::Copy { .. } => false,
        _ => true,
    }
}

fn did(what: &EventKind, racing: bool) -> Did {
    match what {
        EventKind::Access { access, locations } => {
            access_of(access, locations.first().copied(), racing)
        }
        EventKind::Fence { kind, scope } => Did::Fence {
            order: match kind {
                FenceKind::Sc | FenceKind::ScForced => FenceOrder::Sc,
                FenceKind::AcqRel => FenceOrder::AcqRel,
                FenceKind::Acquire => FenceOrder::Acquire,
                FenceKind::Release => FenceOrder::Release,
            },
            scope: Some(*scope),
        },
        EventKind::ProxyFence => Did::Fence {
            order: FenceOrder::ProxyAsync,
            scope: None,
        },
        EventKind::InitFence => Did::Fence {
            order: FenceOrder::MbarrierInit,
            scope: None,
        },
        EventKind::Arrive { id, waits, .. } => Did::Arrive {
            barrier: *id,
            waits: *waits,
        },
        EventKind::Complete { id } => Did::Complete { barrier: *id },
        EventKind::WarpBarrier => Did::WarpBarrier,
        EventKind::ClusterArrive { relaxed, .. } => Did::ClusterArrive { relaxed: *relaxed },
        EventKind::ClusterWait { .. } => Did::ClusterWait,
        EventKind::Copy { bulk, .. } => Did::Copy {
            bulk: *bulk,
            racing,
        },
        EventKind::Commit { bulk } => Did::Commit { bulk: *bulk },
        EventKind::Wait(_) => Did::WaitForCopies,
        EventKind::Mbarrier {
            at, order, over, ..
        } => Did::Mbarrier {
            address: at.address(),
            arrives: matches!(order, Some(MemoryOrder::Release(_))),
            waits: matches!(order, Some(MemoryOrder::Acquire(_))),
            over: *over,
        },
        EventKind::MbarrierComplete { at } => Did::MbarrierComplete {
            address: at.address(),
        },
        EventKind::Exit => Did::Exit,
    }
}

fn access_of(access: &Access, location: Option<Location>, racing: bool) -> Did {
    let (order, scope) = match access.order {
        MemoryOrder::Weak | MemoryOrder::ReadOnly => (Semantics::Weak, None),
        MemoryOrder::Relaxed(scope) => (Semantics::Relaxed, Some(scope)),
        MemoryOrder::Acquire(scope) => (Semantics::Acquire, Some(scope)),
        MemoryOrder::Release(scope) => (Semantics::Release, Some(scope)),
        MemoryOrder::AcqRel(scope) => (Semantics::AcqRel, Some(scope)),
    };
    Did::Access {
        op: match access.kind {
            OpKind::Load => Op::Ld,
            OpKind::Store => Op::St,
            OpKind::Rmw => Op::Atom,
            OpKind::Reduction => Op::Red,
        },
        order,
        scope,
        address: location.map_or(0, Location::address),
        shared: matches!(location, Some(Location::Shared { .. })),
        racing,
    }
}
