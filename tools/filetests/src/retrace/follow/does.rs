//! What one thread does, to its registers and to what threads share.

use ptx::ast::{Instruction, Operand};
use runtime::traced::EventKind;
use shadow::hb::{Access, Completion, Location, OpKind, Span};

use super::super::alu::{self, extend};
use super::super::lane::ThreadId;
use super::super::mbarriers::Operation;
use super::super::memory::behind;
use super::super::want::What;
use super::super::{Objection, Result};
use super::{Owed, Walk};

impl<'a> Walk<'a> {
    /// A thread does what it has come to.
    pub(super) fn does(
        &mut self,
        thread: ThreadId,
        what: &What,
        received: &EventKind,
    ) -> Result<()> {
        match (what, received) {
            (What::Access { access, at }, _) => self.access(thread, access, *at)?,
            (What::Arrive { id, waits, count }, _) => {
                self.bring(thread)?;
                self.barriers.arrive(thread, *id, *waits, *count)?;
                if *waits {
                    self.stop(thread);
                    return Ok(());
                }
            }
            (What::ClusterArrive { .. }, EventKind::ClusterArrive { phase, .. }) => {
                let now = self.barriers.cluster_arrive(thread);
                if now != *phase {
                    return self.differs(format!("{thread:?} arrives in phase {now}, not {phase}"));
                }
            }
            (What::ClusterWait, EventKind::ClusterWait { phase }) => {
                let waited = self.barriers.cluster_waited(thread);
                if waited != Some(*phase) {
                    return self.differs(format!(
                        "{thread:?} waits for phase {waited:?}, not {phase}"
                    ));
                }
            }
            (
                What::Copy {
                    from,
                    to,
                    ends,
                    reduces,
                    ..
                },
                _,
            ) => {
                match (from.bytes, reduces) {
                    (0, _) => self.store_async(thread, to.location)?,
                    (_, None) => self.memory.copy(*from, *to)?,
                    (_, Some(access)) => self.reduce(thread, *from, to.location, access.bytes)?,
                }
                if let Completion::Mbarrier(at) = ends {
                    let arrived = Operation::Complete(to.bytes.into());
                    if self.mbarriers.operate(*at, arrived)?.1 {
                        self.owed.push(Owed::Mbarrier(*at));
                    }
                }
            }
            (What::Mbarrier { at, operation, .. }, EventKind::Mbarrier { over, .. }) => {
                let (phase, ends) = self.mbarriers.operate(*at, *operation)?;
                if ends != *over {
                    return self
                        .differs(format!("{thread:?}: {operation:?} at {at:?} gives {ends}"));
                }
                self.take(thread, operation, phase, ends)?;
            }
            (What::Exit, _) => {
                self.barriers.exit(thread);
                self.stop(thread);
                return Ok(());
            }
            _ => {}
        }
        self.done(thread)
    }

    /// A thread does nothing until somebody lets it go on.
    pub(super) fn stop(&mut self, thread: ThreadId) {
        if let Some((_, want)) = self.lanes.get_mut(&thread) {
            *want = None;
        }
    }

    pub(super) fn operands(&self, thread: ThreadId) -> Result<&'a Instruction> {
        let lane = self.lanes.get(&thread).map(|(lane, _)| lane);
        let instruction = lane.and_then(|lane| lane.instruction(&self.code));
        instruction.ok_or_else(|| Objection::unknown("an instruction"))
    }

    fn value(&mut self, thread: ThreadId, operand: &Operand) -> Result<u64> {
        let gone = || Objection::unknown("a thread");
        let (lane, _) = self.lanes.get_mut(&thread).ok_or_else(gone)?;
        lane.value(&self.code, self.launch, operand)
    }

    pub(super) fn set(&mut self, thread: ThreadId, operand: &Operand, value: u64) -> Result<()> {
        let gone = || Objection::unknown("a thread");
        let (lane, _) = self.lanes.get_mut(&thread).ok_or_else(gone)?;
        lane.set(operand, value)
    }

    /// An access of one thread.
    fn access(&mut self, thread: ThreadId, access: &Access, at: Location) -> Result<()> {
        let instruction = self.operands(thread)?;
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
            OpKind::Load => {
                for (number, part) in parts(operand(0)?).iter().enumerate() {
                    let location = behind(at, u64::from(bytes) * number as u64);
                    let value = self.memory.load(location, bytes)?;
                    self.set(thread, part, extend(value, ty))?;
                }
            }
            OpKind::Store => {
                for (number, part) in parts(operand(1)?).iter().enumerate() {
                    let location = behind(at, u64::from(bytes) * number as u64);
                    let value = self.value(thread, part)?;
                    self.memory.store(location, bytes, value);
                }
            }
            OpKind::Rmw | OpKind::Reduction => {
                let first = if access.kind == OpKind::Rmw { 2 } else { 1 };
                let a = self.value(thread, operand(first)?)?;
                let b = match instruction.operands.get(first + 1) {
                    Some(operand) => self.value(thread, operand)?,
                    None => 0,
                };
                let old = self.memory.load(at, bytes)?;
                let new = alu::update(instruction, ty, old, a, b)?;
                self.memory.store(at, bytes, new);
                if self.in_workspace(at).is_some() {
                    *self.arrivals.entry(thread.cta).or_default() += 1;
                }
                if access.kind == OpKind::Rmw {
                    self.set(thread, operand(0)?, extend(old, ty))?;
                }
            }
        }
        Ok(())
    }

    /// `cp.reduce.async.bulk` by one thread.
    fn reduce(&mut self, thread: ThreadId, from: Span, to: Location, bytes: u32) -> Result<()> {
        let instruction = self.operands(thread)?;
        let ty = alu::ty(instruction)?;
        for number in (0..u64::from(from.bytes)).step_by(bytes as usize) {
            let value = self.memory.load(behind(from.location, number), bytes)?;
            let location = behind(to, number);
            let old = self.memory.load(location, bytes)?;
            let new = alu::update(instruction, ty, old, value, 0)?;
            self.memory.store(location, bytes, new);
        }
        Ok(())
    }

    /// `st.async` and `red.async` by one thread.
    fn store_async(&mut self, thread: ThreadId, to: Location) -> Result<()> {
        let instruction = self.operands(thread)?;
        let ty = alu::ty(instruction)?;
        let parts = match instruction.operands.get(1) {
            Some(Operand::Vector(parts)) => parts.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for (number, part) in parts.iter().enumerate() {
            let location = behind(to, u64::from(ty.bytes()) * number as u64);
            let value = self.value(thread, part)?;
            let new = match instruction.opcode == "red" {
                true => {
                    let old = self.memory.load(location, ty.bytes())?;
                    alu::update(instruction, ty, old, value, 0)?
                }
                false => value,
            };
            self.memory.store(location, ty.bytes(), new);
        }
        Ok(())
    }

    /// What an operation on an mbarrier hands out.
    fn take(
        &mut self,
        thread: ThreadId,
        operation: &Operation,
        phase: u64,
        ends: bool,
    ) -> Result<()> {
        let value = match operation {
            Operation::Arrive { .. } => phase << 63,
            Operation::Wait(_) => ends.into(),
            _ => return Ok(()),
        };
        match self.operands(thread)?.operands.first() {
            Some(target) => self.set(thread, target, value),
            None => Ok(()),
        }
    }

    /// A predicate for a barrier that reduces.
    fn bring(&mut self, thread: ThreadId) -> Result<()> {
        let instruction = self.operands(thread)?;
        if instruction.has("red")
            && let Some(operand) = instruction.operands.last()
        {
            let holds = self.value(thread, operand)? != 0;
            self.brought.insert(thread, holds);
        }
        Ok(())
    }
}
