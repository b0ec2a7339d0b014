//! Walks through the program along what the engine has received.
//! * [`does`]: what a thread does.
//! * [`meet`]: barriers that several threads pass together.

mod does;
mod meet;

use std::collections::BTreeMap;

use runtime::traced::{EventKind, TraceEvent};
use shadow::hb::{Access, Location, OpKind};

use super::barriers::Barriers;
use super::code::Code;
use super::lane::{Lane, ThreadId};
use super::mbarriers::Mbarriers;
use super::memory::Memory;
use super::want::{Want, What};
use super::{Launch, Objection, Result};

/// Bytes of the grid's barrier.
const WORKSPACE: u32 = 8;

/// What must be received next, before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    Barrier(u64, u32),
    Mbarrier(Location),
}

struct Walk<'a> {
    launch: &'a Launch<'a>,
    code: Code<'a>,
    /// Threads, and what each has come to; nothing while it waits at a barrier, or has ended.
    lanes: BTreeMap<ThreadId, (Lane, Option<Want>)>,
    memory: Memory,
    mbarriers: Mbarriers,
    barriers: Barriers,
    owed: Vec<Owed>,
    /// How often a CTA has arrived at the grid's barrier.
    arrivals: BTreeMap<u64, u64>,
    /// Predicates that threads have brought to barriers that reduce.
    brought: BTreeMap<ThreadId, bool>,
    /// Events that agree.
    after: usize,
}

/// Compares a run with what the program's text says. Gives global memory as it must be in the end.
///
/// # Errors
/// The first difference, or what this interpreter does not know.
pub fn follow(launch: &Launch<'_>, traced: &[TraceEvent]) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut walk = Walk::new(launch)?;
    for event in traced {
        walk.event(event)?;
        walk.after += 1;
    }
    walk.end()?;
    let contents = launch.memory.iter().map(|(address, bytes)| {
        let byte = |behind: usize| {
            let location = Location::Global(address + behind as u64);
            walk.memory.load(location, 1).map(|byte| byte as u8)
        };
        Ok((*address, (0..bytes.len()).map(byte).collect::<Result<_>>()?))
    });
    contents.collect()
}

impl<'a> Walk<'a> {
    fn new(launch: &'a Launch<'a>) -> Result<Self> {
        let mut functions = launch.module.functions();
        if functions.any(|of| !ptx::narrow(launch.module, of).is_empty()) {
            return Err(Objection::unknown("accesses that stand for narrower ones"));
        }
        let code = Code::new(launch);
        let entry = code.routine(launch.entry);
        let entry = entry.ok_or_else(|| Objection::unknown("the kernel"))?;
        let ctas: u32 = launch.grid.iter().product();
        let threads: u32 = launch.block.iter().product();
        let mut lanes = BTreeMap::new();
        for cta in 0..u64::from(ctas) {
            for thread in 0..threads {
                let thread = ThreadId {
                    cta,
                    warp: thread / 32,
                    lane: thread % 32,
                };
                lanes.insert(thread, (Lane::new(thread, entry), None));
            }
        }
        let mut memory = Memory::new(launch.shared_content);
        for (address, bytes) in launch.memory {
            memory.fill(*address, bytes);
        }
        if let Some(address) = launch.workspace {
            memory.fill(address, &u64::from(WORKSPACE).to_le_bytes());
        }
        for variable in launch.module.variables() {
            if let Some(&address) = launch.variables.get(variable.name.as_str()) {
                memory.fill(address, &code.initial(variable)?);
            }
        }
        let mut walk = Self {
            barriers: Barriers::new(lanes.keys().copied().collect(), launch.cluster),
            launch,
            code,
            lanes,
            memory,
            mbarriers: Mbarriers::default(),
            owed: Vec::new(),
            arrivals: BTreeMap::new(),
            brought: BTreeMap::new(),
            after: 0,
        };
        let all: Vec<ThreadId> = walk.lanes.keys().copied().collect();
        for thread in all {
            walk.advance(thread)?;
        }
        Ok(walk)
    }

    fn differs<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Objection::Differs {
            after: self.after,
            what: what.into(),
        })
    }

    fn advance(&mut self, thread: ThreadId) -> Result<()> {
        if let Some((lane, want)) = self.lanes.get_mut(&thread) {
            *want = Some(lane.advance(&self.code, self.launch)?);
        }
        Ok(())
    }

    /// The instruction that a thread has come to is done.
    fn done(&mut self, thread: ThreadId) -> Result<()> {
        if let Some((lane, _)) = self.lanes.get_mut(&thread) {
            lane.done()?;
        }
        self.advance(thread)
    }

    /// All threads have come to their end.
    fn end(&self) -> Result<()> {
        if let Some(owed) = self.owed.first() {
            return self.differs(format!("never told: {owed:?}"));
        }
        match self
            .lanes
            .iter()
            .find(|(thread, _)| self.barriers.is_live(**thread))
        {
            Some((thread, (_, want))) => {
                self.differs(format!("{thread:?} has not ended: {want:?}"))
            }
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &TraceEvent) -> Result<()> {
        match event.what {
            EventKind::Complete { id } => return self.complete(event.cta, id),
            EventKind::MbarrierComplete { at } => {
                let owed = Owed::Mbarrier(at);
                let Some(number) = self.owed.iter().position(|other| *other == owed) else {
                    return self.differs(format!("no phase ends at {at:?}"));
                };
                self.owed.remove(number);
                return Ok(());
            }
            _ => {}
        }
        if let Some(owed) = self.owed.first() {
            return self.differs(format!("{owed:?} should come before {event:?}"));
        }
        let lanes = (0..32).filter(|lane| event.lanes >> lane & 1 == 1);
        let all: Vec<ThreadId> = lanes
            .map(|lane| ThreadId {
                cta: event.cta,
                warp: event.warp,
                lane,
            })
            .collect();
        if event.what == EventKind::WarpBarrier {
            return self.warp_barrier(event, &all);
        }
        if all.is_empty() {
            return self.differs(format!("nobody does {event:?}"));
        }
        for (number, &thread) in all.iter().enumerate() {
            let want = self.agreed(event, number, thread)?;
            self.does(thread, &want.what, &event.what)?;
        }
        self.owe(event);
        Ok(())
    }

    /// What must follow an event at once.
    fn owe(&mut self, event: &TraceEvent) {
        if matches!(event.what, EventKind::Arrive { .. } | EventKind::Exit) {
            let due = self.barriers.due(event.cta).into_iter();
            self.owed.extend(due.map(|id| Owed::Barrier(event.cta, id)));
        }
    }

    /// What a thread has come to, if that is what is received of it.
    fn agreed(&self, event: &TraceEvent, number: usize, thread: ThreadId) -> Result<Want> {
        let Some((_, want)) = self.lanes.get(&thread) else {
            return self.differs(format!("there is no {thread:?}"));
        };
        let Some(want) = want else {
            return self.differs(format!(
                "{thread:?} waits or has ended, and is said to do {event:?}"
            ));
        };
        // The end of a function has no line.
        let line = want.line == event.line || want.what == What::Exit;
        let same = |access: &Access, of: &Access| {
            *of == Access {
                site: of.site,
                ..*access
            }
        };
        let alike = |access: &Option<Access>, of: &Option<Access>| match (access, of) {
            (Some(access), Some(of)) => same(access, of),
            (one, other) => one.is_none() && other.is_none(),
        };
        let agrees = match (&want.what, &event.what) {
            (
                What::Access { access, at },
                EventKind::Access {
                    access: of,
                    locations,
                },
            ) => {
                let at = self.counted(thread, access, *at);
                same(access, of) && locations.get(number) == Some(&at)
            }
            (What::Fence { kind, scope }, EventKind::Fence { kind: k, scope: s }) => {
                (kind, scope) == (k, s)
            }
            (What::ProxyFence, EventKind::ProxyFence)
            | (What::InitFence, EventKind::InitFence)
            | (What::Exit, EventKind::Exit) => true,
            (
                What::Arrive { id, waits, count },
                EventKind::Arrive {
                    id: i,
                    waits: w,
                    counted,
                },
            ) => (id, waits, count.is_some()) == (i, w, *counted),
            (What::ClusterArrive { relaxed }, EventKind::ClusterArrive { relaxed: r, .. }) => {
                relaxed == r
            }
            (What::ClusterWait, EventKind::ClusterWait { .. }) => true,
            (
                What::Copy {
                    from,
                    to,
                    ends,
                    bulk,
                    reduces,
                },
                EventKind::Copy {
                    from: f,
                    to: t,
                    ends: e,
                    bulk: b,
                    reduces: r,
                },
            ) => (from, to, ends, bulk) == (f, t, e, b) && alike(reduces, r),
            (What::Commit { bulk }, EventKind::Commit { bulk: b }) => bulk == b,
            (What::Wait(wait), EventKind::Wait(w)) => wait == w,
            (
                What::Mbarrier {
                    at, access, order, ..
                },
                EventKind::Mbarrier {
                    at: a,
                    access: x,
                    order: o,
                    ..
                },
            ) => (at, order) == (a, o) && alike(access, x),
            _ => false,
        };
        match agrees && line {
            true => Ok(want.clone()),
            false => self.differs(format!(
                "{thread:?} has come to {want:?}, and is said to do {event:?}"
            )),
        }
    }

    /// Where the engine receives an access: at the place itself, but for the grid's barrier, which
    /// counts in two words by turns (`runtime::grid`).
    fn counted(&self, thread: ThreadId, access: &Access, at: Location) -> Location {
        let arrivals = self.arrivals.get(&thread.cta).copied().unwrap_or(0);
        let now = arrivals + u64::from(access.kind == OpKind::Rmw);
        match self.in_workspace(at) {
            Some(address) if now % 2 == 1 => Location::Global(address - 4),
            _ => at,
        }
    }

    fn in_workspace(&self, at: Location) -> Option<u64> {
        let Location::Global(address) = at else {
            return None;
        };
        let base = self.launch.workspace?;
        (base..base + u64::from(WORKSPACE))
            .contains(&address)
            .then_some(address)
    }
}
