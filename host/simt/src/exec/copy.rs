//! `cp.async`, bulk copies and asynchronous stores: done when they are issued.
//!
//! Observers receive a copy that reduces as a copy. Its instruction says that it reduces.

use events::SHARED_STEP;
use ptx::ast::Space;

use super::address::{Group, each_aligned, lanes};
use super::atomic::{Subnormals, update};
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code::{AsyncStore, Copy};
use crate::lanes::WARP;
use events::{AccessKind, Bytes};

/// Largest bulk copy, in bytes; shared memory is smaller.
const MAX_BYTES: u64 = 1 << 24;

/// One lane's copy.
struct Piece {
    from: (Space, u64),
    to: (Space, u64),
    /// Bytes written, and bytes read; the rest is zero.
    count: u64,
    read: u64,
    mbarrier: Option<u64>,
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    pub(crate) fn copy(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        copy: &Copy,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let consts = &self.setup.program.consts;
        let (mut to, mut from) = ([0; WARP], [0; WARP]);
        let (to_first, to_others) = self.addresses(warp, split, &copy.to, 4, exec, &mut to);
        let (from_first, from_others) = self.addresses(warp, split, &copy.from, 4, exec, &mut from);
        let bytes = warp.read(&split.frame, copy.bytes, consts);
        let given = copy
            .source_bytes
            .map_or(bytes, |row| warp.read(&split.frame, row, consts));
        let ignore = copy.ignore.map_or(0, |pred| warp.pred(&split.frame, pred));
        let targets = copy
            .multicast
            .map(|row| warp.read(&split.frame, row, consts));
        for lane in lanes(exec) {
            let count = bytes[lane] & 0xffff_ffff;
            let valid = count <= MAX_BYTES
                && count.is_multiple_of(4)
                && (!copy.bulk || count.is_multiple_of(16));
            if !valid {
                let what = format!("a copy of {count} bytes");
                return Err(Fault::new(lane as u32, FaultKind::Unsupported(what)));
            }
            let unit = if copy.bulk { 16 } else { count.max(4) as u32 };
            each_aligned(&to, 1 << lane, unit)?;
            each_aligned(&from, 1 << lane, unit)?;
            let read = if ignore >> lane & 1 == 1 {
                0
            } else {
                (given[lane] & 0xffff_ffff).min(count)
            };
            let mbarrier = copy
                .complete
                .as_ref()
                .map(|barrier| self.address_of(warp, split, barrier, lane));
            let piece = Piece {
                from: (space_of(&from_first, &from_others, lane), from[lane]),
                to: (space_of(&to_first, &to_others, lane), to[lane]),
                count,
                read,
                mbarrier,
            };
            let Some(targets) = &targets else {
                self.copy_piece(cta, warp, split, copy, lane, &piece)?;
                continue;
            };
            // To the same place in every CTA that is named.
            for rank in (0..16).filter(|rank| targets[lane] >> rank & 1 == 1) {
                let in_cta = |address| address % SHARED_STEP + (rank + 1) * SHARED_STEP;
                let piece = Piece {
                    to: (piece.to.0, in_cta(piece.to.1)),
                    mbarrier: piece.mbarrier.map(in_cta),
                    ..piece
                };
                self.copy_piece(cta, warp, split, copy, lane, &piece)?;
            }
        }
        Ok(())
    }

    fn copy_piece(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        copy: &Copy,
        lane: usize,
        piece: &Piece,
    ) -> Result<(), Box<Fault>> {
        let threads = self.executing(cta, warp.index, split.pc, 1 << lane);
        let bytes = |(space, address), count| Bytes {
            space,
            address,
            count: count as u32,
        };
        let behind = |(space, address), step| (space, address + step);
        let mut strays = |place, count, kind| match count {
            0 => Ok(false),
            _ => self.strays_alone(cta, warp, split, lane, bytes(place, count), kind),
        };
        // What is read outside is zero; what is written there goes nowhere, but the barrier learns of the bytes.
        let read = match strays(piece.from, piece.read, AccessKind::Load)? {
            true => 0,
            false => piece.read,
        };
        let kind = match copy.reduce {
            Some(_) => AccessKind::Rmw,
            None => AccessKind::Store,
        };
        let count = match strays(piece.to, piece.count, kind)? {
            true => 0,
            false => piece.count,
        };
        let (from, to) = (bytes(piece.from, read), bytes(piece.to, count));
        self.observer.copy(threads, from, to, piece.mbarrier);
        let size = copy.reduce.map_or(4, |(_, bytes)| u32::from(bytes));
        for step in (0..count).step_by(size as usize) {
            let mut value = 0;
            for byte in step..(step + u64::from(size)).min(read) {
                let source = bytes(behind(piece.from, byte), 1);
                let spot = self.spot(cta, warp, lane, source, false)?;
                value |= self.peek(warp, spot, 1) << (8 * (byte - step));
            }
            let element = bytes(behind(piece.to, step), size.into());
            let spot = self.spot(cta, warp, lane, element, true)?;
            if let Some((op, _)) = copy.reduce {
                let old = self.peek(warp, spot, size);
                value = update(op, Subnormals::Kept, size, old, value);
            }
            self.changes(threads, warp, lane, element, spot, value);
            self.poke(warp, spot, size, value);
        }
        match piece.mbarrier {
            Some(barrier) => self.complete_bytes(cta, warp, threads, barrier, lane, piece.count),
            None => Ok(()),
        }
    }

    /// `st.async` and `red.async`
    pub(crate) fn async_store(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        store: &AsyncStore,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let consts = &self.setup.program.consts;
        let mut at = [0; WARP];
        let (group, _) = self.addresses(warp, split, &store.to, 4, exec, &mut at);
        let rows = store.rows.iter();
        let values: Vec<_> = rows
            .map(|&row| warp.read(&split.frame, row, consts))
            .collect();
        let size = u32::from(store.bytes);
        let total = size * values.len() as u32;
        each_aligned(&at, exec, total)?;
        for lane in lanes(exec) {
            let threads = self.executing(cta, warp.index, split.pc, 1 << lane);
            let barrier = self.address_of(warp, split, &store.complete, lane);
            let to = |count| group.bytes(lane, &at, count);
            if self.strays_alone(cta, warp, split, lane, to(total), AccessKind::Store)? {
                self.complete_bytes(cta, warp, threads, barrier, lane, total.into())?;
                continue;
            }
            // What is written comes from registers.
            self.observer.copy(threads, to(0), to(total), Some(barrier));
            for (index, value) in values.iter().enumerate() {
                let element = Bytes {
                    address: at[lane] + u64::from(size) * index as u64,
                    ..to(size)
                };
                let spot = self.spot(cta, warp, lane, element, true)?;
                let mut new = value[lane] & (u64::MAX >> (64 - 8 * size));
                if let Some(op) = store.reduce {
                    let old = self.peek(warp, spot, size);
                    new = update(op, Subnormals::Kept, size, old, new);
                }
                self.changes(threads, warp, lane, element, spot, new);
                self.poke(warp, spot, size, new);
            }
            self.complete_bytes(cta, warp, threads, barrier, lane, total.into())?;
        }
        Ok(())
    }
}

/// The space a lane's address lies in.
fn space_of(first: &Group, others: &[Group], lane: usize) -> Space {
    let mut groups = std::iter::once(first).chain(others);
    groups
        .find(|group| group.mask >> lane & 1 == 1)
        .map_or(first.space, |group| group.space)
}
