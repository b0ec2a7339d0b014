//! Follows what depends on more than a launch's arguments: on memory that it has not written, its input, and on the
//! order in which its threads run.
//!
//! A value is tainted where it may be another one with other input, or under another schedule. What is computed from
//! it is tainted too; memory keeps it byte by byte. Where such a value decides where an access goes or what is
//! executed, the observer is notified ([`Observer::depends`]): what it decides is followed no further, so a branch taints
//! nothing. What is not followed exactly is tainted: textures, surfaces and matrices loaded from memory depend on
//! input, and on the order of threads once anything that the launch has written does.

mod memory;
mod registers;

use events::{Decides, Sources};
use ptx::ast::Space;

pub(crate) use self::memory::Memories;
pub(crate) use self::registers::{Registers, Taint};
use super::address::lanes;
use super::atomic::Spot;
use super::cta::CtaId;
use super::exchange::{Inputs, source};
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Frame, Split, Warp};
use crate::code::{
    Access, Address, Argument, AsyncStore, Atomic, BarrierKind, Callee, Copy, Exchange,
    ExchangeKind, Formal, Kind, Map, Mbarrier, MbarrierKind, Op, Rank, Special,
};
use crate::lanes::{Lanes, WARP};
use crate::matrix::{Matrix, MatrixKind};
use crate::memory::Window;

/// Lanes that execute an op, and what its guard depends on.
#[derive(Clone, Copy)]
struct Guarded {
    exec: u32,
    guard: Taint,
}

/// Where a lane accesses memory.
#[derive(Clone, Copy)]
struct Accessed {
    spot: Spot,
    /// Where the allocation begins.
    region: u64,
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// An op is about to be executed by the lanes `exec` of a split.
    pub(super) fn follow(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        op: &Op,
        exec: u32,
    ) {
        let frame = split.frame;
        let guard = warp.taint.pred(&frame, op.guard).of(split.mask);
        if exec | guard.any() == 0 {
            return;
        }
        let lanes = Guarded { exec, guard };
        match &op.kind {
            Kind::Alu(_, args) => warp.taint.compute(&frame, args, exec, guard),
            Kind::Special(d, special) => {
                let taint = match depends_on_order(*special) {
                    true => self.by_order(split, exec),
                    false => Taint::default(),
                };
                warp.taint.write_row(&frame, *d, exec, taint, guard);
            }
            Kind::FrameAddress { d, .. } | Kind::Param { d, .. } => {
                let taint = Taint::default();
                warp.taint.write_row(&frame, *d, exec, taint, guard);
            }
            Kind::Map(Map {
                d, address, rank, ..
            }) => {
                let taint = warp.taint.rows(&frame, &[*address, *rank]);
                warp.taint.write_row(&frame, *d, exec, taint, guard);
            }
            Kind::Rank(Rank { d, address, .. }) => {
                let taint = warp.taint.row(&frame, *address);
                warp.taint.write_row(&frame, *d, exec, taint, guard);
            }
            Kind::IsSpace { d, address, .. } => {
                let taint = warp.taint.row(&frame, *address);
                warp.taint.write_pred(&frame, *d, exec, taint, guard);
            }
            Kind::ActiveMask(d) => {
                let taint = self.by_order(split, exec);
                warp.taint.write_row(&frame, *d, exec, taint, guard);
            }
            Kind::Load(access) => self.follow_load(cta, warp, split, access, lanes),
            Kind::Store(access) => self.follow_store(cta, warp, split, access, lanes),
            Kind::Atomic(atomic) => self.follow_atomic(cta, warp, split, atomic, lanes),
            Kind::Copy(copy) => self.follow_copy(cta, warp, split, copy, lanes),
            Kind::AsyncStore(store) => self.follow_async_store(cta, warp, split, store, lanes),
            Kind::Texture(texture) => {
                let texel_taint = warp.taint.rows(&frame, &texture.texel.at);
                let texel_taint = texel_taint.with(warp.taint.row(&frame, texture.texel.handle));
                self.decides(cta, warp, split, Decides::Address, texel_taint.of(exec));
                self.decides(cta, warp, split, Decides::Access, guard);
                let taint = texel_taint.with(self.by_memory(split, exec));
                for row in texture.rows {
                    warp.taint.write_row(&frame, row, exec, taint, guard);
                }
            }
            Kind::Surface(surface) => {
                let texel_taint = warp.taint.rows(&frame, &surface.texel.at);
                let texel_taint = texel_taint.with(warp.taint.row(&frame, surface.texel.handle));
                self.decides(cta, warp, split, Decides::Address, texel_taint.of(exec));
                self.decides(cta, warp, split, Decides::Access, guard);
                if surface.store {
                    let value = texel_taint.with(warp.taint.rows(&frame, &surface.rows));
                    self.taint.write_image(sources(value.of(exec).with(guard)));
                } else {
                    let taint = texel_taint.with(self.by_memory(split, exec));
                    for &row in &surface.rows {
                        warp.taint.write_row(&frame, row, exec, taint, guard);
                    }
                }
            }
            Kind::Matrix(matrix) => self.follow_matrix(cta, warp, split, matrix, lanes),
            Kind::Mbarrier(mbarrier) => self.follow_mbarrier(cta, warp, split, mbarrier, lanes),
            Kind::Allocate { d, bytes, .. } => {
                let taint = warp.taint.row(&frame, *bytes);
                warp.taint.write_row(&frame, *d, exec, taint, guard);
            }
            Kind::BranchIndexed { index, .. } => {
                let taint = warp.taint.row(&frame, *index).of(exec).with(guard);
                self.decides(cta, warp, split, Decides::Flow, taint);
            }
            Kind::Call(call) => {
                let mut taint = guard;
                if let Callee::Indirect(row) = &call.callee {
                    taint = taint.with(warp.taint.row(&frame, *row).of(exec));
                }
                self.decides(cta, warp, split, Decides::Flow, taint);
            }
            Kind::Exchange(exchange) => {
                let members = exchange.members.map(|row| warp.taint.row(&frame, row));
                let taint = guard.with(members.unwrap_or_default().of(exec));
                self.decides(cta, warp, split, Decides::Flow, taint);
            }
            Kind::Barrier(barrier) => {
                let mut taint = warp.taint.row(&frame, barrier.id);
                if let Some(count) = barrier.count {
                    taint = taint.with(warp.taint.row(&frame, count));
                }
                self.decides(cta, warp, split, Decides::Flow, guard.with(taint.of(exec)));
                if !matches!(barrier.kind, BarrierKind::Sync | BarrierKind::Arrive) {
                    let brought = warp.taint.pred(&frame, barrier.predicate).of(exec);
                    let on = sources(brought);
                    self.taint.bring(cta.slot as usize, on);
                }
            }
            Kind::Branch(_)
            | Kind::ClusterBarrier { .. }
            | Kind::Return
            | Kind::Exit
            | Kind::Trap
            | Kind::Fence
            | Kind::Copies
            | Kind::StackSave(_)
            | Kind::StackRestore(_)
            | Kind::Unsupported(_) => self.decides(cta, warp, split, Decides::Flow, guard),
            Kind::Dependency | Kind::Sleep(_) | Kind::Nop => {}
        }
    }

    /// Reports that tainted values decide something, if they are.
    fn decides(&mut self, cta: &CtaId, warp: &Warp, split: &Split, decides: Decides, taint: Taint) {
        let taint = taint.of(!warp.taint.retries);
        if taint.any() != 0 {
            let threads = self.executing(cta, warp.index, split.pc, taint.any());
            self.observer
                .depends(threads, decides, sources(taint), taint.from);
        }
    }

    /// Notifies the observer that the launch has ended.
    pub(super) fn end(&mut self) {
        if !self.follows_values() {
            return;
        }
        let (memory, taint) = (&self.memory, &self.taint);
        self.observer.ends(&|address| {
            let window = memory.window(address);
            let of = |window: Window| {
                let spot = Spot::Global {
                    mapping: window.mapping,
                    offset: address - window.origin,
                };
                taint.read(spot, window.start, 1)
            };
            window.map(of).unwrap_or_default()
        });
    }

    fn offset(&self, split: &Split) -> u32 {
        let offsets = &self.setup.program.offsets;
        offsets.get(split.pc as usize).copied().unwrap_or(0)
    }

    fn by_order(&self, split: &Split, lanes: u32) -> Taint {
        Taint {
            schedule: lanes,
            from: self.offset(split),
            ..Taint::default()
        }
    }

    /// What lanes load from memory of which it is not known which bytes it is.
    fn by_memory(&self, split: &Split, lanes: u32) -> Taint {
        let on = self.taint.anywhere();
        let of = |depends: bool| if depends { lanes } else { 0 };
        Taint {
            input: of(on.input),
            schedule: of(on.schedule),
            from: self.offset(split),
        }
    }

    /// Where each lane accesses memory. An access that fails has no place.
    fn accessed_by_lane(
        &mut self,
        cta: &CtaId,
        warp: &Warp,
        split: &Split,
        address: &Address,
        bytes: u32,
        exec: u32,
    ) -> Vec<(usize, Space, Accessed)> {
        if exec == 0 {
            return Vec::new();
        }
        let mut at: Lanes = [0; WARP];
        let (first, others) = self.addresses(
            warp,
            split,
            address,
            bytes.next_power_of_two(),
            exec,
            &mut at,
        );
        let mut all = Vec::new();
        for group in std::iter::once(&first).chain(&others) {
            for lane in lanes(group.mask) {
                let bytes_at = group.bytes(lane, &at, bytes);
                if let Ok(spot) = self.spot(cta, warp, lane, bytes_at, false) {
                    let region = self.window.start;
                    all.push((lane, group.space, Accessed { spot, region }));
                }
            }
        }
        all
    }

    /// A lane writes bytes that depend on `value`. `loose` is what it depends on where they go, and whether they are
    /// written at all: all bytes of the region may be others then.
    fn write_taint(
        &mut self,
        Accessed { spot, region }: Accessed,
        bytes: u64,
        executes: bool,
        value: Sources,
        loose: Taint,
    ) {
        let on = join(value, sources(loose));
        if executes {
            self.taint.write(spot, bytes, on);
        }
        if loose.any() != 0 {
            self.taint.write_anywhere(spot, region, on);
        }
    }

    fn follow_load(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        access: &Access,
        Guarded { exec, guard }: Guarded,
    ) {
        let frame = split.frame;
        let address = warp.taint.row(&frame, access.address.base).of(exec);
        self.decides(cta, warp, split, Decides::Address, address);
        self.decides(cta, warp, split, Decides::Access, guard);
        let from = self.offset(split);
        let accessed_by_lane =
            self.accessed_by_lane(cta, warp, split, &access.address, access.bytes, exec);
        for (step, &row) in access.steps() {
            let mut taint = Taint {
                from,
                ..Taint::default()
            };
            for (lane, space, accessed) in &accessed_by_lane {
                let spot = accessed.spot.plus(step);
                let on = match spot {
                    Spot::Local { offset, .. } => {
                        let local = warp.taint.local(offset as u32, access.element());
                        sources(local.of(1 << lane))
                    }
                    _ => self
                        .taint
                        .read(spot, accessed.region, u64::from(access.element())),
                };
                let looks = access.strong && *space != Space::Local;
                taint.input |= u32::from(on.input) << lane;
                taint.schedule |= u32::from(on.schedule || looks) << lane;
            }
            warp.taint
                .write_row(&frame, row, exec, taint.with(address), guard);
        }
    }

    fn follow_store(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        access: &Access,
        Guarded { exec, guard }: Guarded,
    ) {
        let frame = split.frame;
        let address = warp.taint.row(&frame, access.address.base).of(exec);
        self.decides(cta, warp, split, Decides::Address, address);
        self.decides(cta, warp, split, Decides::Access, guard);
        let bytes = u64::from(access.element());
        // Where a guard fails that may hold, the address says at least which region it would be.
        let may = exec | guard.any();
        let accessed_by_lane =
            self.accessed_by_lane(cta, warp, split, &access.address, access.bytes, may);
        for (lane, _, accessed) in accessed_by_lane {
            let lanes = 1u32 << lane;
            let loose = address.with(guard).of(lanes);
            for (step, &row) in access.steps() {
                let value = warp.taint.row(&frame, row).of(lanes);
                let executes = exec & lanes != 0;
                if let Spot::Local { offset, .. } = accessed.spot.plus(step) {
                    let (offset, bytes) = (offset as u32, access.element());
                    let kept = match executes {
                        true => Taint::default(),
                        false => warp.taint.local(offset, bytes),
                    };
                    let taint = kept.with(value).with(loose);
                    warp.taint.set_local(offset, bytes, lanes, taint);
                    continue;
                }
                let spot = accessed.spot.plus(step);
                let accessed = Accessed { spot, ..accessed };
                let mut on = sources(value);
                // Under another schedule an earlier strong store may come last.
                on.schedule |= access.strong && self.taint.is_written(spot, bytes);
                self.write_taint(accessed, bytes, executes, on, loose);
            }
        }
    }

    fn follow_atomic(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        atomic: &Atomic,
        Guarded { exec, guard }: Guarded,
    ) {
        let frame = split.frame;
        let address = warp.taint.row(&frame, atomic.address.base).of(exec);
        self.decides(cta, warp, split, Decides::Address, address);
        self.decides(cta, warp, split, Decides::Access, guard);
        let bytes = u32::from(atomic.bytes.min(8)) * atomic.operands.len() as u32;
        let operands = warp
            .taint
            .rows(&frame, atomic.operands.iter().chain(&atomic.second));
        let ordered = self.taint.depends_on_order(atomic.op);
        let may = exec | guard.any();
        let accessed_by_lane = self.accessed_by_lane(cta, warp, split, &atomic.address, bytes, may);
        let mut taint = self.by_order(split, exec);
        for (lane, _, accessed) in accessed_by_lane {
            let loose = address.with(guard).of(1 << lane);
            let mut on = self
                .taint
                .read(accessed.spot, accessed.region, u64::from(bytes));
            taint.input |= u32::from(on.input) << lane & exec;
            on = join(on, sources(operands.of(1 << lane)));
            on.schedule |= ordered;
            let executes = exec >> lane & 1 == 1;
            self.write_taint(accessed, u64::from(bytes), executes, on, loose);
        }
        for &row in &atomic.results {
            warp.taint
                .write_row(&frame, row, exec, taint.with(address), guard);
        }
    }

    fn follow_copy(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        copy: &Copy,
        Guarded { exec, guard }: Guarded,
    ) {
        let frame = split.frame;
        let operands = [
            Some(copy.to.base),
            Some(copy.from.base),
            Some(copy.bytes),
            copy.source_bytes,
            copy.multicast,
            copy.complete.map(|at| at.base),
        ];
        let mut address = warp.taint.rows(&frame, operands.iter().flatten()).of(exec);
        if let Some(ignore) = copy.ignore {
            address = address.with(warp.taint.pred(&frame, ignore).of(exec));
        }
        self.decides(cta, warp, split, Decides::Address, address);
        self.decides(cta, warp, split, Decides::Access, guard);
        let bytes = warp.read(&frame, copy.bytes, &self.setup.program.consts);
        let ordered = copy
            .reduce
            .is_some_and(|(op, _)| self.taint.depends_on_order(op));
        let may = exec | guard.any();
        let from = self.accessed_by_lane(cta, warp, split, &copy.from, 1, may);
        let to = self.accessed_by_lane(cta, warp, split, &copy.to, 1, may);
        for (lane, _, source) in from {
            let Some((_, _, target)) = to.iter().find(|(of, ..)| *of == lane) else {
                continue;
            };
            let count = bytes[lane] & 0xffff_ffff;
            let loose = address.with(guard).of(1 << lane);
            let mut on = self.taint.read(source.spot, source.region, count);
            if copy.reduce.is_some() {
                on = join(on, self.taint.read(target.spot, target.region, count));
                on.schedule |= ordered;
            }
            let mut targets = vec![target.spot];
            if let Some(row) = copy.multicast {
                let ranks = warp.read(&frame, row, &self.setup.program.consts)[lane];
                if let Spot::Shared { offset, .. } = target.spot {
                    let in_cta = |rank: u32| Spot::Shared {
                        slot: (cta.first_slot + rank) as usize,
                        offset,
                    };
                    let ranks = (0..16).filter(|rank| ranks >> rank & 1 == 1);
                    targets = ranks.map(in_cta).collect();
                }
            }
            let executes = exec >> lane & 1 == 1;
            for spot in targets {
                let target = Accessed { spot, ..*target };
                self.write_taint(target, count, executes, on, loose);
            }
        }
    }

    fn follow_async_store(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        store: &AsyncStore,
        Guarded { exec, guard }: Guarded,
    ) {
        let frame = split.frame;
        let address = warp
            .taint
            .rows(&frame, &[store.to.base, store.complete.base]);
        let address = address.of(exec);
        self.decides(cta, warp, split, Decides::Address, address);
        self.decides(cta, warp, split, Decides::Access, guard);
        let value = warp.taint.rows(&frame, &store.rows);
        let bytes = u64::from(store.bytes) * store.rows.len() as u64;
        let ordered = store
            .reduce
            .is_some_and(|op| self.taint.depends_on_order(op));
        let accessed_by_lane = self.accessed_by_lane(
            cta,
            warp,
            split,
            &store.to,
            bytes as u32,
            exec | guard.any(),
        );
        for (lane, _, accessed) in accessed_by_lane {
            let loose = address.with(guard).of(1 << lane);
            let mut on = sources(value.of(1 << lane));
            if store.reduce.is_some() {
                on = join(on, self.taint.read(accessed.spot, accessed.region, bytes));
                on.schedule |= ordered;
            }
            let executes = exec >> lane & 1 == 1;
            self.write_taint(accessed, bytes, executes, on, loose);
        }
    }

    fn follow_matrix(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        matrix: &Matrix,
        Guarded { exec, guard }: Guarded,
    ) {
        let frame = split.frame;
        let operands = matrix.a.iter().chain(&matrix.b).chain(&matrix.c);
        let mut taint = warp.taint.rows(&frame, operands).of(exec).spread(exec);
        let in_memory = matches!(
            matrix.kind,
            MatrixKind::Rows { .. } | MatrixKind::Fragment { .. }
        );
        if let Some(address) = matrix.address.as_ref().filter(|_| in_memory) {
            let mut address_taint = warp.taint.row(&frame, address.base);
            if let Some(stride) = matrix.stride {
                address_taint = address_taint.with(warp.taint.row(&frame, stride));
            }
            self.decides(cta, warp, split, Decides::Address, address_taint.of(exec));
            self.decides(cta, warp, split, Decides::Access, guard);
            taint = taint.with(self.by_memory(split, exec));
            if matrix.d.is_empty() {
                let on = sources(taint.with(guard));
                for (_, _, accessed) in self.accessed_by_lane(cta, warp, split, address, 1, exec) {
                    self.taint
                        .write_anywhere(accessed.spot, accessed.region, on);
                }
            }
        }
        for &row in &matrix.d {
            warp.taint.write_row(&frame, row, exec, taint, guard);
        }
    }

    fn follow_mbarrier(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        mbarrier: &Mbarrier,
        Guarded { exec, guard }: Guarded,
    ) {
        let frame = split.frame;
        let operands = warp
            .taint
            .rows(&frame, &[mbarrier.address.base, mbarrier.a, mbarrier.b]);
        self.decides(
            cta,
            warp,
            split,
            Decides::Flow,
            guard.with(operands.of(exec)),
        );
        let by_order = self.by_order(split, exec);
        for (_, _, accessed) in self.accessed_by_lane(cta, warp, split, &mbarrier.address, 8, exec)
        {
            self.taint.write(accessed.spot, 8, sources(by_order));
        }
        let tests = matches!(mbarrier.kind, MbarrierKind::TestWait { .. });
        if tests && !self.setup.program.retries.contains_key(&split.pc) {
            // Whether the thread has waited at all.
            self.decides(cta, warp, split, Decides::Flow, by_order);
        }
        let Some(d) = mbarrier.d else {
            return;
        };
        match mbarrier.kind {
            MbarrierKind::TestWait { .. } => {
                warp.taint.write_pred(&frame, d, exec, by_order, guard);
            }
            // The observer knows whether the phase is the same in every order.
            MbarrierKind::Arrive { .. } if self.hides_counts() => {
                warp.taint
                    .write_row(&frame, d, exec, Taint::default(), guard);
            }
            _ => warp.taint.write_row(&frame, d, exec, by_order, guard),
        }
    }

    /// Lanes have tested an mbarrier: it `holds` for some. Where those for which it does not can only test again, the
    /// result is that of the last test; what is written on the way depends on how often they have tested.
    pub(super) fn follow_mbarrier_result(
        &self,
        warp: &mut Warp,
        split: &Split,
        mbarrier: &Mbarrier,
        exec: u32,
        holds: u32,
    ) {
        let (Some(retry), Some(d)) = (self.setup.program.retries.get(&split.pc), mbarrier.d) else {
            return;
        };
        let (frame, over) = (split.frame, exec & holds);
        warp.taint.retries = warp.taint.retries & !exec | exec & !holds;
        let by_order = self.by_order(split, over);
        for &row in &retry.rows {
            warp.taint.set_row(&frame, row, over, by_order);
        }
        for &pred in &retry.preds {
            warp.taint.set_pred(&frame, pred, over, by_order);
        }
        warp.taint.set_pred(&frame, d, over, Taint::default());
    }

    /// What lanes bring to an exchange.
    pub(super) fn follow_brought(&self, warp: &Warp, split: &Split, exchange: &Exchange) -> Taint {
        let of = match exchange.kind.votes() {
            true => warp.taint.pred(&split.frame, exchange.a),
            false => warp.taint.row(&split.frame, exchange.a),
        };
        let taint = of.with(warp.taint.rows(&split.frame, &[exchange.b, exchange.c]));
        taint.of(split.mask)
    }

    /// Lanes have exchanged what all of them have brought.
    pub(super) fn follow_exchange(
        &self,
        warp: &mut Warp,
        split: &Split,
        exchange: &Exchange,
        inputs: &Inputs,
    ) {
        let brought = inputs.taint;
        let mask = split.mask;
        let shuffles = matches!(
            exchange.kind,
            ExchangeKind::ShflUp
                | ExchangeKind::ShflDown
                | ExchangeKind::ShflBfly
                | ExchangeKind::ShflIdx
        );
        let mut taint = match shuffles {
            true => {
                let moved = |bits: u32| {
                    let from = |lane| source(exchange.kind, lane, inputs.b[lane], inputs.c[lane]).0;
                    let set = (0..WARP).filter(|&lane| bits >> from(lane) & 1 == 1);
                    set.fold(0, |all, lane| all | 1 << lane)
                };
                let own = warp.taint.rows(&split.frame, &[exchange.b, exchange.c]);
                let moved = Taint {
                    input: moved(brought.input),
                    schedule: moved(brought.schedule),
                    ..brought
                };
                moved.with(own)
            }
            false => brought.spread(u32::MAX),
        };
        let together = exchange.members.is_none() && exchange.kind != ExchangeKind::Together;
        if together {
            taint = taint.with(self.by_order(split, mask));
        }
        if let Some(row) = exchange.d {
            warp.taint.set_row(&split.frame, row, mask, taint);
        }
        if let Some(pred) = exchange.p {
            warp.taint.set_pred(&split.frame, pred, mask, taint);
        }
    }

    /// A parameter or a result is passed between two frames.
    pub(super) fn follow_passed(&self, warp: &mut Warp, lanes: u32, from: Passed, to: Passed) {
        let taint = match from {
            Passed::Row(frame, row) => warp.taint.row(&frame, row),
            Passed::Local(offset, bytes) => warp.taint.local(offset, bytes),
            Passed::Result => Taint {
                schedule: lanes,
                ..Taint::default()
            },
        };
        match to {
            Passed::Row(frame, row) => warp.taint.set_row(&frame, row, lanes, taint),
            Passed::Local(offset, bytes) => warp.taint.set_local(offset, bytes, lanes, taint),
            Passed::Result => {}
        }
    }

    /// Lanes go on after a barrier that gives them a result.
    pub(super) fn follow_result(&self, cta: &CtaId, warp: &mut Warp, split: usize) {
        let Split {
            pc, mask, frame, ..
        } = warp.splits[split];
        let Kind::Barrier(barrier) = &self.setup.program.ops[pc as usize].kind else {
            return;
        };
        let on = self.taint.brought(cta.slot as usize);
        let taint = Taint {
            input: if on.input { mask } else { 0 },
            schedule: if on.schedule { mask } else { 0 },
            from: self.setup.program.offsets[pc as usize],
        };
        match barrier.kind {
            BarrierKind::Popc => warp.taint.set_row(&frame, barrier.d, mask, taint),
            BarrierKind::And | BarrierKind::Or => {
                warp.taint.set_pred(&frame, barrier.d, mask, taint);
            }
            BarrierKind::Sync | BarrierKind::Arrive => {}
        }
    }
}

/// Whether a special register tells of the order in which threads run.
fn depends_on_order(special: Special) -> bool {
    matches!(
        special,
        Special::Clock
            | Special::ClockHi
            | Special::Clock64
            | Special::GlobalTimer
            | Special::GlobalTimerLo
            | Special::GlobalTimerHi
            | Special::SmId
            | Special::WarpId
            | Special::GridId
            | Special::Nothing
    )
}

/// Where a parameter or a result is.
#[derive(Clone, Copy)]
pub(super) enum Passed {
    Row(Frame, u32),
    /// In local memory: offset and bytes.
    Local(u32, u32),
    /// The result of a function that is no PTX.
    Result,
}

impl Passed {
    pub(super) fn argument(frame: &Frame, argument: Argument) -> Self {
        match argument {
            Argument::Row(row) => Self::Row(*frame, row),
            Argument::Frame { offset, bytes } => Self::Local(frame.local + offset, bytes),
        }
    }

    pub(super) fn formal(frame: &Frame, formal: Formal) -> Self {
        match formal {
            Formal::Row { row, .. } => Self::Row(*frame, row),
            Formal::Frame { offset, bytes } => Self::Local(frame.local + offset, bytes),
        }
    }
}

fn sources(taint: Taint) -> Sources {
    Sources {
        input: taint.input != 0,
        schedule: taint.schedule != 0,
    }
}

fn join(a: Sources, b: Sources) -> Sources {
    Sources {
        input: a.input || b.input,
        schedule: a.schedule || b.schedule,
    }
}
