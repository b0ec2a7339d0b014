//! Walks through the program along what the engine was told.

use std::collections::{BTreeMap, BTreeSet};

use ptx::ast::{Instruction, Operand};
use runtime::heard::{Heard, Told};
use shadow::hb::{Access, Completion, Kind, Place};

use super::alu::{self, extend};
use super::barriers::Barriers;
use super::code::Code;
use super::lane::{Lane, Who};
use super::mbarriers::{Mbarriers, Operation};
use super::memory::{Memory, behind};
use super::want::{Want, What};
use super::{Launch, Objection, Result};

/// Bytes of the grid's barrier.
const WORKSPACE: u32 = 8;

/// What must be told next, before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    Barrier(u64, u32),
    Mbarrier(Place),
}

struct Walk<'a> {
    launch: &'a Launch<'a>,
    code: Code<'a>,
    /// Threads, and what each has come to; nothing while it waits at a barrier, or has ended.
    lanes: BTreeMap<Who, (Lane, Option<Want>)>,
    memory: Memory,
    mbarriers: Mbarriers,
    barriers: Barriers,
    owed: Vec<Owed>,
    /// How often a CTA has arrived at the grid's barrier.
    arrivals: BTreeMap<u64, u64>,
    /// Predicates that threads have brought to barriers that reduce.
    brought: BTreeMap<Who, bool>,
    /// Events that agree.
    after: usize,
}

/// Compares a run with what the program's text says. Gives global memory as it must be in the end.
///
/// # Errors
/// The first difference, or what this interpreter does not know.
pub fn follow(launch: &Launch<'_>, heard: &[Heard]) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut walk = Walk::new(launch)?;
    for event in heard {
        walk.event(event)?;
        walk.after += 1;
    }
    walk.end()?;
    let contents = launch.memory.iter().map(|(address, bytes)| {
        let byte = |behind: usize| {
            let place = Place::Global(address + behind as u64);
            walk.memory.load(place, 1).map(|byte| byte as u8)
        };
        Ok((*address, (0..bytes.len()).map(byte).collect::<Result<_>>()?))
    });
    contents.collect()
}

impl<'a> Walk<'a> {
    fn new(launch: &'a Launch<'a>) -> Result<Self> {
        let code = Code::new(launch);
        let entry = code.routine(launch.entry);
        let entry = entry.ok_or_else(|| Objection::unknown("the kernel"))?;
        let ctas: u32 = launch.grid.iter().product();
        let threads: u32 = launch.block.iter().product();
        let mut lanes = BTreeMap::new();
        for cta in 0..u64::from(ctas) {
            for thread in 0..threads {
                let who = Who {
                    cta,
                    warp: thread / 32,
                    lane: thread % 32,
                };
                lanes.insert(who, (Lane::new(who, entry), None));
            }
        }
        let mut memory = Memory::default();
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
        let all: Vec<Who> = walk.lanes.keys().copied().collect();
        for who in all {
            walk.advance(who)?;
        }
        Ok(walk)
    }

    fn differs<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Objection::Differs {
            after: self.after,
            what: what.into(),
        })
    }

    fn advance(&mut self, who: Who) -> Result<()> {
        if let Some((lane, want)) = self.lanes.get_mut(&who) {
            *want = Some(lane.advance(&self.code, self.launch)?);
        }
        Ok(())
    }

    /// The instruction that a thread has come to is done.
    fn done(&mut self, who: Who) -> Result<()> {
        if let Some((lane, _)) = self.lanes.get_mut(&who) {
            lane.done()?;
        }
        self.advance(who)
    }

    /// All threads have come to their end.
    fn end(&self) -> Result<()> {
        if let Some(owed) = self.owed.first() {
            return self.differs(format!("never told: {owed:?}"));
        }
        match self
            .lanes
            .iter()
            .find(|(who, _)| self.barriers.is_live(**who))
        {
            Some((who, (_, want))) => self.differs(format!("{who:?} has not ended: {want:?}")),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &Heard) -> Result<()> {
        match event.what {
            Told::Complete { id } => return self.complete(event.cta, id),
            Told::MbarrierComplete { at } => {
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
        let all: Vec<Who> = lanes
            .map(|lane| Who {
                cta: event.cta,
                warp: event.warp,
                lane,
            })
            .collect();
        if event.what == Told::WarpBarrier {
            return self.warp_barrier(event, &all);
        }
        if all.is_empty() {
            return self.differs(format!("nobody does {event:?}"));
        }
        for (number, &who) in all.iter().enumerate() {
            let want = self.agreed(event, (number, who))?;
            self.does(who, &want.what, &event.what)?;
        }
        self.owe(event);
        Ok(())
    }

    /// What must follow an event at once.
    fn owe(&mut self, event: &Heard) {
        if matches!(event.what, Told::Arrive { .. } | Told::Exit) {
            let due = self.barriers.due(event.cta).into_iter();
            self.owed.extend(due.map(|id| Owed::Barrier(event.cta, id)));
        }
    }

    /// What a thread has come to, if that is what is told of it.
    fn agreed(&self, event: &Heard, (number, who): (usize, Who)) -> Result<Want> {
        let Some((_, want)) = self.lanes.get(&who) else {
            return self.differs(format!("there is no {who:?}"));
        };
        let Some(want) = want else {
            return self.differs(format!(
                "{who:?} waits or has ended, and is said to do {event:?}"
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
        let agrees = match (&want.what, &event.what) {
            (What::Access { access, at }, Told::Access { access: of, places }) => {
                let at = self.counted(who, access, *at);
                same(access, of) && places.get(number) == Some(&at)
            }
            (What::Fence { kind, scope }, Told::Fence { kind: k, scope: s }) => {
                (kind, scope) == (k, s)
            }
            (What::ProxyFence, Told::ProxyFence)
            | (What::InitFence, Told::InitFence)
            | (What::Exit, Told::Exit) => true,
            (
                What::Arrive { id, waits, count },
                Told::Arrive {
                    id: i,
                    waits: w,
                    counted,
                },
            ) => (id, waits, count.is_some()) == (i, w, *counted),
            (What::ClusterArrive { relaxed }, Told::ClusterArrive { relaxed: r, .. }) => {
                relaxed == r
            }
            (What::ClusterWait, Told::ClusterWait { .. }) => true,
            (
                What::Copy {
                    from,
                    to,
                    ends,
                    bulk,
                },
                Told::Copy {
                    from: f,
                    to: t,
                    ends: e,
                    bulk: b,
                },
            ) => (from, to, ends, bulk) == (f, t, e, b),
            (What::Commit { bulk }, Told::Commit { bulk: b }) => bulk == b,
            (What::Wait(wait), Told::Wait(w)) => wait == w,
            (
                What::Mbarrier {
                    at, access, order, ..
                },
                Told::Mbarrier {
                    at: a,
                    access: x,
                    order: o,
                    ..
                },
            ) => {
                let accesses = match (access, x) {
                    (Some(access), Some(of)) => same(access, of),
                    (one, other) => one.is_none() && other.is_none(),
                };
                (at, order) == (a, o) && accesses
            }
            _ => false,
        };
        match agrees && line {
            true => Ok(want.clone()),
            false => self.differs(format!(
                "{who:?} has come to {want:?}, and is said to do {event:?}"
            )),
        }
    }

    /// Where the engine is told of an access: at the place itself, but for the grid's barrier, which
    /// counts in two words by turns (`runtime::grid`).
    fn counted(&self, who: Who, access: &Access, at: Place) -> Place {
        let arrivals = self.arrivals.get(&who.cta).copied().unwrap_or(0);
        let now = arrivals + u64::from(access.kind == Kind::Rmw);
        match self.in_workspace(at) {
            Some(address) if now % 2 == 1 => Place::Global(address - 4),
            _ => at,
        }
    }

    fn in_workspace(&self, at: Place) -> Option<u64> {
        let Place::Global(address) = at else {
            return None;
        };
        let base = self.launch.workspace?;
        (base..base + u64::from(WORKSPACE))
            .contains(&address)
            .then_some(address)
    }

    /// A thread does what it has come to.
    fn does(&mut self, who: Who, what: &What, told: &Told) -> Result<()> {
        match (what, told) {
            (What::Access { access, at }, _) => self.access(who, access, *at)?,
            (What::Arrive { id, waits, count }, _) => {
                self.bring(who)?;
                self.barriers.arrive(who, *id, (*waits, *count));
                if *waits {
                    self.stop(who);
                    return Ok(());
                }
            }
            (What::ClusterArrive { .. }, Told::ClusterArrive { phase, .. }) => {
                let now = self.barriers.cluster_arrive(who);
                if now != *phase {
                    return self.differs(format!("{who:?} arrives in phase {now}, not {phase}"));
                }
            }
            (What::ClusterWait, Told::ClusterWait { phase }) => {
                let waited = self.barriers.cluster_waited(who);
                if waited != Some(*phase) {
                    return self
                        .differs(format!("{who:?} waits for phase {waited:?}, not {phase}"));
                }
            }
            (What::Copy { from, to, ends, .. }, _) => {
                match from.1 {
                    0 => self.store_async(who, *to)?,
                    _ => self.memory.copy(*from, *to)?,
                }
                if let Completion::Mbarrier(at) = ends {
                    let arrived = Operation::Complete(to.1.into());
                    if self.mbarriers.operate(*at, arrived)?.1 {
                        self.owed.push(Owed::Mbarrier(*at));
                    }
                }
            }
            (What::Mbarrier { at, operation, .. }, Told::Mbarrier { over, .. }) => {
                let (phase, ends) = self.mbarriers.operate(*at, *operation)?;
                if ends != *over {
                    return self.differs(format!("{who:?}: {operation:?} at {at:?} gives {ends}"));
                }
                self.take(who, operation, (phase, ends))?;
            }
            (What::Exit, _) => {
                self.barriers.exit(who);
                self.stop(who);
                return Ok(());
            }
            _ => {}
        }
        self.done(who)
    }

    /// A thread does nothing until somebody lets it go on.
    fn stop(&mut self, who: Who) {
        if let Some((_, want)) = self.lanes.get_mut(&who) {
            *want = None;
        }
    }

    fn operands(&self, who: Who) -> Result<&'a Instruction> {
        let lane = self.lanes.get(&who).map(|(lane, _)| lane);
        let instruction = lane.and_then(|lane| lane.instruction(&self.code));
        instruction.ok_or_else(|| Objection::unknown("an instruction"))
    }

    fn value(&mut self, who: Who, operand: &Operand) -> Result<u64> {
        let gone = || Objection::unknown("a thread");
        let (lane, _) = self.lanes.get_mut(&who).ok_or_else(gone)?;
        lane.value(&self.code, self.launch, operand)
    }

    fn set(&mut self, who: Who, operand: &Operand, value: u64) -> Result<()> {
        let gone = || Objection::unknown("a thread");
        let (lane, _) = self.lanes.get_mut(&who).ok_or_else(gone)?;
        lane.set(operand, value)
    }

    /// An access of one thread.
    fn access(&mut self, who: Who, access: &Access, at: Place) -> Result<()> {
        let instruction = self.operands(who)?;
        let ty = alu::ty(instruction)?;
        let operand = |number: usize| {
            let missing = || Objection::unknown("a missing operand");
            instruction.operands.get(number).ok_or_else(missing)
        };
        let parts = |operand: &'a Operand| match operand {
            Operand::Vector(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let bytes = ty.bytes();
        if bytes > 8 {
            return Err(Objection::unknown("an element of more than 8 bytes"));
        }
        match access.kind {
            Kind::Load => {
                for (number, part) in parts(operand(0)?).iter().enumerate() {
                    let place = behind(at, u64::from(bytes) * number as u64);
                    let value = self.memory.load(place, bytes)?;
                    self.set(who, part, extend(value, ty))?;
                }
            }
            Kind::Store => {
                for (number, part) in parts(operand(1)?).iter().enumerate() {
                    let place = behind(at, u64::from(bytes) * number as u64);
                    let value = self.value(who, part)?;
                    self.memory.store(place, bytes, value);
                }
            }
            Kind::Rmw | Kind::Reduction => {
                let first = if access.kind == Kind::Rmw { 2 } else { 1 };
                let a = self.value(who, operand(first)?)?;
                let b = match instruction.operands.get(first + 1) {
                    Some(operand) => self.value(who, operand)?,
                    None => 0,
                };
                let old = self.memory.load(at, bytes)?;
                let new = alu::update(instruction, ty, old, (a, b))?;
                self.memory.store(at, bytes, new);
                if self.in_workspace(at).is_some() {
                    *self.arrivals.entry(who.cta).or_default() += 1;
                }
                if access.kind == Kind::Rmw {
                    self.set(who, operand(0)?, extend(old, ty))?;
                }
            }
        }
        Ok(())
    }

    /// `st.async` and `red.async` by one thread.
    fn store_async(&mut self, who: Who, to: (Place, u32)) -> Result<()> {
        let instruction = self.operands(who)?;
        let ty = alu::ty(instruction)?;
        let parts = match instruction.operands.get(1) {
            Some(Operand::Vector(parts)) => parts.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for (number, part) in parts.iter().enumerate() {
            let place = behind(to.0, u64::from(ty.bytes()) * number as u64);
            let value = self.value(who, part)?;
            let new = match instruction.opcode == "red" {
                true => {
                    let old = self.memory.load(place, ty.bytes())?;
                    alu::update(instruction, ty, old, (value, 0))?
                }
                false => value,
            };
            self.memory.store(place, ty.bytes(), new);
        }
        Ok(())
    }

    /// What an operation on an mbarrier hands out.
    fn take(&mut self, who: Who, operation: &Operation, found: (u64, bool)) -> Result<()> {
        let value = match operation {
            Operation::Arrive { .. } => found.0 << 63,
            Operation::Wait(_) => found.1.into(),
            _ => return Ok(()),
        };
        match self.operands(who)?.operands.first() {
            Some(target) => self.set(who, target, value),
            None => Ok(()),
        }
    }

    /// A predicate for a barrier that reduces.
    fn bring(&mut self, who: Who) -> Result<()> {
        let instruction = self.operands(who)?;
        if instruction.has("red")
            && let Some(operand) = instruction.operands.last()
        {
            let holds = self.value(who, operand)? != 0;
            self.brought.insert(who, holds);
        }
        Ok(())
    }

    /// A barrier of a CTA ends.
    fn complete(&mut self, cta: u64, id: u32) -> Result<()> {
        let owed = Owed::Barrier(cta, id);
        let Some(number) = self.owed.iter().position(|other| *other == owed) else {
            return self.differs(format!("barrier {id} of CTA {cta} must not end"));
        };
        self.owed.remove(number);
        let (arrived, waiting) = self.barriers.complete(cta, id);
        let brought: Vec<bool> = arrived
            .iter()
            .filter_map(|who| self.brought.remove(who))
            .collect();
        let holding = brought.iter().filter(|&&holds| holds).count();
        for who in waiting {
            let instruction = self.operands(who)?;
            let result = match () {
                () if !instruction.has("red") => None,
                () if instruction.has("popc") => Some(holding as u64),
                () if instruction.has("and") => Some(u64::from(holding == brought.len())),
                () => Some(u64::from(holding > 0)),
            };
            if let (Some(result), Some(target)) = (result, instruction.operands.first()) {
                self.set(who, target, result)?;
            }
            self.done(who)?;
        }
        Ok(())
    }

    /// The lanes of a mask meet: all of them that have not ended.
    fn warp_barrier(&mut self, event: &Heard, all: &[Who]) -> Result<()> {
        let mut masks = BTreeSet::new();
        let live: Vec<Who> = all
            .iter()
            .copied()
            .filter(|who| self.barriers.is_live(*who))
            .collect();
        for who in &live {
            match self.lanes.get(who) {
                Some((
                    _,
                    Some(Want {
                        what: What::WarpBarrier { mask },
                        line,
                    }),
                )) if *line == event.line => drop(masks.insert(*mask)),
                Some((_, want)) => {
                    return self.differs(format!("{who:?} has come to {want:?}, not to {event:?}"));
                }
                None => return self.differs(format!("there is no {who:?}")),
            }
        }
        let [mask] = masks.iter().copied().collect::<Vec<u32>>()[..] else {
            return self.differs(format!("lanes with masks {masks:?} meet by {event:?}"));
        };
        let met = all.iter().fold(0u32, |met, who| met | 1 << who.lane);
        let missing = (0..32).find(|&lane| {
            let who = Who {
                lane,
                cta: event.cta,
                warp: event.warp,
            };
            mask >> lane & 1 == 1 && met >> lane & 1 == 0 && self.barriers.is_live(who)
        });
        if let Some(lane) = missing {
            return self.differs(format!("lane {lane} is missing in {event:?}"));
        }
        if met & !mask != 0 {
            return self.differs(format!("lanes beyond {mask:#x} meet by {event:?}"));
        }
        live.into_iter().try_for_each(|who| self.done(who))
    }
}
