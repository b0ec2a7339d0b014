//! What an op would do beyond the registers and the local memory of its lanes.

use events::Unobserved;
use ptx::ast::Space;

use crate::code::{Access, Atomic, Callee, Kind, MbarrierKind, Op, Rmw, Special};
use crate::exec::address::{Group, lanes};
use crate::exec::atomic::{Subnormals, truncate, update};
use crate::exec::cta::CtaId;
use crate::exec::fault::Fault;
use crate::exec::machine::Machine;
use crate::exec::warp::{Split, Warp};
use crate::lanes::{Lanes, WARP};

/// What an op would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing else: it may be executed. Its result in these lanes is up to the clock or the host.
    Own(u32),
    /// Nothing at all: it can be passed over.
    None,
    /// Something that others may see, or the end of its lanes.
    Acts,
    /// It needs lanes that are elsewhere.
    Others,
    /// Not looked into.
    Unsure,
}

/// A look at memory that a loop makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) pc: u32,
    pub(crate) space: Space,
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) value: u64,
    /// Part of a loop that waits, more likely than others: volatile, ordered, atomic, a test of an mbarrier.
    pub(crate) strong: bool,
    pub(crate) mbarrier: bool,
}

/// Where an op is executed.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) cta: &'a CtaId,
    pub(super) warp: &'a Warp,
    pub(super) split: &'a Split,
    pub(super) exec: u32,
}

type Checked<T> = Result<T, Box<Fault>>;

impl Machine<'_, Unobserved> {
    /// What an op would do. Its sources are known.
    pub(super) fn effect(&mut self, at: At<'_>, op: &Op, looks: &mut Vec<Look>) -> Effect {
        let of = match &op.kind {
            Kind::Alu(..)
            | Kind::FrameAddress { .. }
            | Kind::Param { .. }
            | Kind::Branch(_)
            | Kind::BranchIndexed { .. }
            | Kind::Map(_)
            | Kind::Rank(_)
            | Kind::IsSpace { .. }
            | Kind::Fence
            | Kind::Copies
            | Kind::Dependency
            | Kind::Nop => Ok(Effect::Own(0)),
            Kind::Sleep(_) => Ok(Effect::None),
            Kind::Special(
                _,
                Special::Clock
                | Special::ClockHi
                | Special::Clock64
                | Special::GlobalTimer
                | Special::GlobalTimerLo
                | Special::GlobalTimerHi,
            ) => Ok(Effect::Own(at.exec)),
            Kind::Special(..) => Ok(Effect::Own(0)),
            Kind::Load(access) => self.load_effect(at, access, looks),
            Kind::Store(access) => self.store_effect(at, access),
            Kind::Atomic(atomic) => self.atomic_effect(at, atomic, looks),
            Kind::Mbarrier(mbarrier) => match mbarrier.kind {
                MbarrierKind::TestWait { .. } => self.test_effect(at, &mbarrier.address, looks),
                MbarrierKind::PendingCount => Ok(Effect::Unsure),
                _ => Ok(Effect::Acts),
            },
            Kind::Call(call) => match call.callee {
                Callee::Function(_) | Callee::Indirect(_) => Ok(Effect::Own(0)),
                _ => Ok(Effect::Acts),
            },
            Kind::Return if !at.split.callers.is_empty() => Ok(Effect::Own(0)),
            Kind::Exchange(exchange) => match exchange.members {
                // Which lanes happen to be together is nobody's to say.
                None => Ok(Effect::Unsure),
                Some(_) if self.is_complete(at.warp, at.split, exchange) => Ok(Effect::Own(0)),
                Some(_) => Ok(Effect::Others),
            },
            Kind::Return
            | Kind::Exit
            | Kind::Trap
            | Kind::Copy(_)
            | Kind::AsyncStore(_)
            | Kind::Barrier(_)
            | Kind::ClusterBarrier { .. }
            | Kind::Unsupported(_) => Ok(Effect::Acts),
            Kind::Texture(_)
            | Kind::Surface(_)
            | Kind::Matrix(_)
            | Kind::ActiveMask(_)
            | Kind::Allocate { .. }
            | Kind::StackSave(_)
            | Kind::StackRestore(_) => Ok(Effect::Unsure),
        };
        // A fault ends the launch.
        of.unwrap_or(Effect::Acts)
    }

    /// Whether the host may write bytes at an address while a launch runs.
    fn is_for_host(&self, space: Space, address: u64) -> bool {
        space == Space::Global
            && self
                .memory
                .window(address)
                .is_some_and(|window| !self.memory.is_own(window.mapping))
    }

    fn load_effect(
        &mut self,
        at: At<'_>,
        access: &Access,
        looks: &mut Vec<Look>,
    ) -> Checked<Effect> {
        let mut unknown = 0;
        let mut to = [0; WARP];
        let (first, others) = self.addresses(
            at.warp,
            at.split,
            &access.address,
            access.bytes,
            at.exec,
            &mut to,
        );
        for group in std::iter::once(&first).chain(&others) {
            for lane in lanes(group.mask) {
                unknown |= u32::from(self.is_for_host(group.space, to[lane])) << lane;
            }
            let bytes = access.bytes.min(8);
            let look = self.look(at, group, &to, bytes)?;
            looks.extend(look.map(|look| Look {
                strong: access.strong,
                ..look
            }));
        }
        Ok(Effect::Own(unknown))
    }

    /// Where the first lane of a group looks, weakly.
    fn look(&mut self, at: At<'_>, group: &Group, to: &Lanes, bytes: u32) -> Checked<Option<Look>> {
        if !matches!(
            group.space,
            Space::Global | Space::Shared | Space::SharedCluster
        ) || group.mask == 0
        {
            return Ok(None);
        }
        let lane = group.first();
        let bytes_at = group.bytes(lane, to, bytes);
        let spot = self.spot(at.cta, at.warp, lane, bytes_at, false)?;
        Ok(Some(Look {
            pc: at.split.pc,
            space: group.space,
            address: to[lane],
            bytes,
            value: self.peek(at.warp, spot, bytes),
            strong: false,
            mbarrier: false,
        }))
    }

    fn store_effect(&mut self, at: At<'_>, access: &Access) -> Checked<Effect> {
        let consts = &self.setup.program.consts;
        let (size, bytes) = (access.element(), access.bytes);
        let mut to = [0; WARP];
        let (first, others) =
            self.addresses(at.warp, at.split, &access.address, bytes, at.exec, &mut to);
        if others.is_empty() && first.space == Space::Local {
            return Ok(Effect::Own(0));
        }
        for group in std::iter::once(&first).chain(&others) {
            for lane in lanes(group.mask) {
                let bytes_at = group.bytes(lane, &to, bytes);
                let spot = self.spot(at.cta, at.warp, lane, bytes_at, true)?;
                for (step, &row) in access.steps() {
                    let value = at.warp.source(&at.split.frame, row, consts)[lane];
                    let there = self.peek(at.warp, spot.plus(step), size);
                    if there != truncate(value, size) || self.is_for_host(group.space, to[lane]) {
                        return Ok(Effect::Acts);
                    }
                }
            }
        }
        Ok(Effect::None)
    }

    /// An atomic that changes nothing may be executed: it leaves what is there.
    fn atomic_effect(
        &mut self,
        at: At<'_>,
        atomic: &Atomic,
        looks: &mut Vec<Look>,
    ) -> Checked<Effect> {
        let consts = &self.setup.program.consts;
        let size = u32::from(atomic.bytes.min(8));
        let total = size * atomic.operands.len() as u32;
        let mut to = [0; WARP];
        let (first, others) =
            self.addresses(at.warp, at.split, &atomic.address, total, at.exec, &mut to);
        let value = |row: u32, lane: usize| {
            let row = at.warp.source(&at.split.frame, row, consts);
            truncate(row[lane], size)
        };
        for group in std::iter::once(&first).chain(&others) {
            for lane in lanes(group.mask) {
                if self.is_for_host(group.space, to[lane]) {
                    return Ok(Effect::Acts);
                }
                let bytes_at = group.bytes(lane, &to, total);
                let spot = self.spot(at.cta, at.warp, lane, bytes_at, true)?;
                let element = |index: usize| spot.plus(u64::from(size) * index as u64);
                let old: Vec<u64> = (0..atomic.operands.len())
                    .map(|index| self.peek(at.warp, element(index), size))
                    .collect();
                let operand = |index: usize| value(atomic.operands[index], lane);
                let changes = if atomic.op == Rmw::Cas {
                    let found = (0..old.len()).all(|index| old[index] == operand(index));
                    let new =
                        |index: usize| atomic.second.get(index).map_or(0, |&row| value(row, lane));
                    found && (0..old.len()).any(|index| new(index) != old[index])
                } else {
                    let subnormals = Subnormals::of_atomic(group.space);
                    let new =
                        |index| update(atomic.op, subnormals, size, old[index], operand(index));
                    (0..old.len()).any(|index| new(index) != old[index])
                };
                if changes {
                    return Ok(Effect::Acts);
                }
            }
            let look = self.look(at, group, &to, total.min(8))?;
            looks.extend(look.map(|look| Look {
                strong: true,
                ..look
            }));
        }
        Ok(Effect::Own(0))
    }

    fn test_effect(
        &mut self,
        at: At<'_>,
        address: &crate::code::Address,
        looks: &mut Vec<Look>,
    ) -> Checked<Effect> {
        let mut to = [0; WARP];
        let (first, others) = self.addresses(at.warp, at.split, address, 8, at.exec, &mut to);
        for group in std::iter::once(&first).chain(&others) {
            let look = self.look(at, group, &to, 8)?;
            looks.extend(look.map(|look| Look {
                strong: true,
                mbarrier: true,
                ..look
            }));
        }
        Ok(Effect::Own(0))
    }
}
