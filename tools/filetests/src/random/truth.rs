//! The races of a kernel in which full barriers alone order, read off its steps: the obvious way.
//!
//! Neither what runs when nor what a load finds matters then, so every schedule has the same races.

use std::collections::{BTreeMap, BTreeSet};

use super::kernel::{Access, AccessKind, AccessOrder, Act, Kernel, LANES, Scope, Step};

/// A byte: of the shared memory of a CTA, or of global memory.
pub type Byte = (Option<u64>, u32);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Thread {
    cta: u32,
    warp: u32,
    lane: u32,
}

/// One access of one thread.
struct Event {
    thread: Thread,
    /// Barriers passed.
    epochs: Epochs,
    /// First byte and bytes of one element.
    element: (u32, u32),
    writes: bool,
    scope: Option<Scope>,
}

/// How many barriers have been passed: of the grid; of the grid or CTA; of any kind.
#[derive(Clone, Copy, Default)]
struct Epochs {
    grid: u32,
    cta: u32,
    warp: u32,
}

/// The bytes that threads race on.
pub fn races(kernel: &Kernel) -> BTreeSet<Byte> {
    let mut walk = Walk {
        kernel,
        epochs: Epochs::default(),
        words: BTreeMap::new(),
    };
    walk.steps(&kernel.steps);
    let mut racing = BTreeSet::new();
    for ((shared, _), events) in &walk.words {
        for (number, a) in events.iter().enumerate() {
            for b in &events[..number] {
                if race(a, b) {
                    let first = a.element.0.max(b.element.0);
                    let end = (a.element.0 + a.element.1).min(b.element.0 + b.element.1);
                    racing.extend((first..end).map(|byte| (*shared, byte)));
                }
            }
        }
    }
    racing
}

fn race(a: &Event, b: &Event) -> bool {
    let same_cta = a.thread.cta == b.thread.cta;
    let same_warp = same_cta && a.thread.warp == b.thread.warp;
    let apart =
        a.element.0 >= b.element.0 + b.element.1 || b.element.0 >= a.element.0 + a.element.1;
    let ordered = a.thread == b.thread
        || a.epochs.grid != b.epochs.grid
        || same_cta && a.epochs.cta != b.epochs.cta
        || same_warp && a.epochs.warp != b.epochs.warp;
    let morally_strong = match (a.scope, b.scope) {
        (Some(one), Some(other)) => {
            a.element == b.element && (same_cta || one.min(other) > Scope::Cluster)
        }
        _ => false,
    };
    !apart && !ordered && !morally_strong && (a.writes || b.writes)
}

struct Walk<'a> {
    kernel: &'a Kernel,
    epochs: Epochs,
    /// By memory and 8-byte word.
    words: BTreeMap<(Option<u64>, u32), Vec<Event>>,
}

impl Walk<'_> {
    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Acts {
                    role, acts, others, ..
                } => {
                    let role = self.kernel.roles[*role];
                    for cta in 0..self.kernel.ctas {
                        for thread in 0..self.kernel.threads() {
                            let me = Thread {
                                cta,
                                warp: thread / LANES,
                                lane: thread % LANES,
                            };
                            let does = match role.has(me.cta, me.warp, me.lane) {
                                true => acts,
                                false => others,
                            };
                            does.iter().for_each(|act| self.act(act, me));
                        }
                    }
                }
                Step::Grid => self.pass(1, 1),
                Step::Barrier(_) => self.pass(0, 1),
                Step::WarpBarrier { .. } => self.pass(0, 0),
                Step::Loop { times, steps } => (0..*times).for_each(|_| self.steps(steps)),
                // These order in ways that are not followed here.
                Step::Named { .. } | Step::ClusterArrive { .. } | Step::ClusterWait => {}
            }
        }
    }

    /// Passes a barrier, which may be one of the grid and one of the CTA.
    fn pass(&mut self, grid: u32, cta: u32) {
        self.epochs.grid += grid;
        self.epochs.cta += cta;
        self.epochs.warp += 1;
    }

    fn act(&mut self, act: &Act, thread: Thread) {
        let Act::Access(access) = act else { return };
        let target = access.target;
        let owner = thread.cta ^ u32::from(target.far);
        let memory = target.shared.then_some(u64::from(owner));
        for element in 0..target.vector {
            let first = target.range(thread.lane).0 + element * target.bytes;
            let event = Event {
                thread,
                epochs: self.epochs,
                element: (first, target.bytes),
                writes: access.kind != AccessKind::Load,
                scope: scope(access),
            };
            self.words
                .entry((memory, first / 8))
                .or_default()
                .push(event);
        }
    }
}

/// The scope of a strong access.
fn scope(access: &Access) -> Option<Scope> {
    match (access.order, access.kind) {
        (AccessOrder::Strong(_, scope), _) => Some(scope),
        (AccessOrder::Volatile, _) => Some(Scope::Sys),
        (_, AccessKind::Atom(_) | AccessKind::Red(_)) => Some(Scope::Gpu),
        _ => None,
    }
}
