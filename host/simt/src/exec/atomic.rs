//! `atom` and `red`: one lane after the other.

use std::sync::atomic::Ordering::Relaxed;

use events::{AccessKind, Bytes, Exchange, Executing, Updated};
use ptx::ast::Space;

use super::address::{Group, aligned, deposit, fetch, illegal, lanes, local_at, sectors};
use super::cta::CtaId;
use super::fault::Fault;
use super::listener::Listener;
use super::machine::Machine;
use super::outside::Reach;
use super::sharing::set;
use super::warp::{Split, Warp};
use crate::code::{Atomic, HalfOp, Rmw};
use crate::lanes::{Lanes, WARP, splat};
use crate::values::approx::{flush, one_nan};
use crate::values::mods::{Arith, arith, extreme};
use crate::values::soft::{BF16, F16};

/// A place in some memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spot {
    Global { mapping: u32, offset: u64 },
    Shared { slot: usize, offset: u64 },
    Local { lane: usize, offset: u64 },
}

impl Spot {
    /// The place `bytes` bytes behind.
    pub(crate) fn plus(self, bytes: u64) -> Self {
        let mut moved = self;
        match &mut moved {
            Self::Global { offset, .. }
            | Self::Shared { offset, .. }
            | Self::Local { offset, .. } => *offset = offset.wrapping_add(bytes),
        }
        moved
    }
}

/// Most elements of one atomic: eight of 16 bits in a vector.
const MAX_ELEMENTS: usize = 8;

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// The place of some bytes.
    pub(crate) fn spot(
        &mut self,
        cta: &CtaId,
        warp: &Warp,
        lane: usize,
        bytes: Bytes,
        write: bool,
    ) -> Result<Spot, Box<Fault>> {
        let Bytes {
            space,
            address,
            count: bytes,
        } = bytes;
        match space {
            Space::Shared | Space::SharedCluster => {
                let (slot, offset) = self.shared_at(cta, lane, address, bytes, write)?;
                Ok(Spot::Shared { slot, offset })
            }
            Space::Local => {
                local_at(warp, lane, address, bytes, write)?;
                Ok(Spot::Local {
                    lane,
                    offset: address,
                })
            }
            Space::Param => Err(illegal(lane, address, bytes, space, write)),
            _ => {
                let window = self.locate(lane as u32, address, bytes, write)?;
                Ok(Spot::Global {
                    mapping: window.mapping,
                    offset: address - window.origin,
                })
            }
        }
    }

    /// Reads 1 to 8 bytes.
    pub(crate) fn peek(&self, warp: &Warp, spot: Spot, bytes: u32) -> u64 {
        match spot {
            Spot::Global { mapping, offset } => {
                let words = self.memory.words(mapping);
                fetch(bytes, offset, |word| words[word].load(Relaxed))
            }
            Spot::Shared { slot, offset } => fetch(bytes, offset, |word| self.shared[slot][word]),
            Spot::Local { lane, offset } => {
                fetch(bytes, offset, |word| warp.local[word * WARP + lane])
            }
        }
    }

    /// Writes 1 to 8 bytes.
    pub(crate) fn poke(&mut self, warp: &mut Warp, spot: Spot, bytes: u32, value: u64) {
        match spot {
            Spot::Global { mapping, offset } => {
                let words = self.memory.words(mapping);
                let several = self.memory.locks().is_some();
                deposit(bytes, offset, value, |word, keep, bits| {
                    set(&words[word], several, keep, bits);
                });
            }
            Spot::Shared { slot, offset } => {
                let words = &mut self.shared[slot];
                deposit(bytes, offset, value, |word, keep, bits| {
                    words[word] = words[word] & !keep | bits & keep;
                });
            }
            Spot::Local { lane, offset } => {
                deposit(bytes, offset, value, |word, keep, bits| {
                    let word = &mut warp.local[word * WARP + lane];
                    *word = *word & !keep | bits & keep;
                });
            }
        }
    }

    /// Notifies the observer which words an element of 1 to 8 bytes is about to change.
    pub(crate) fn changes(
        &mut self,
        threads: Executing,
        warp: &Warp,
        lane: usize,
        element: Bytes,
        spot: Spot,
        new: u64,
    ) {
        let Bytes {
            space,
            address,
            count: bytes,
        } = element;
        if !self.observer.follows(space) {
            return;
        }
        let inside = address % 4;
        let word = spot.plus(0u64.wrapping_sub(inside));
        let old = self.peek(warp, word, bytes.max(4));
        let keep = !(u64::MAX >> (64 - 8 * bytes) << (8 * inside));
        let changed = old ^ (old & keep | new << (8 * inside) & !keep);
        for half in 0..2 {
            if (changed >> (32 * half)) as u32 != 0 {
                let word = address - inside + 4 * half;
                let before = (old >> (32 * half)) as u32;
                self.observer
                    .changes(threads, lane as u32, space, word, before);
            }
        }
    }

    pub(crate) fn atomic(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        atomic: &Atomic,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let mut at = [0; WARP];
        let bytes = u32::from(atomic.bytes.min(8)) * atomic.operands.len() as u32;
        let (first, others) = self.addresses(warp, split, &atomic.address, bytes, exec, &mut at);
        for group in std::iter::once(&first).chain(&others) {
            self.atomic_group(cta, warp, split, atomic, group, &at)?;
            self.accessed(cta, group.space);
        }
        Ok(())
    }

    fn atomic_group(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        atomic: &Atomic,
        group: &Group,
        at: &Lanes,
    ) -> Result<(), Box<Fault>> {
        let consts = &self.setup.program.consts;
        let size = u32::from(atomic.bytes.min(8));
        let total = size * atomic.operands.len() as u32;
        aligned(at, group, total)?;
        let reach = Reach {
            group,
            at,
            bytes: total.into(),
            kind: AccessKind::Rmw,
        };
        let stray = self.stray_lanes(cta, warp, split, reach)?;
        if stray != 0 {
            let first = split.frame.rows as usize;
            for &row in &atomic.results {
                splat(&mut warp.regs[first + row as usize], stray, 0);
            }
            return match group.without(stray) {
                Some(rest) => self.atomic_group(cta, warp, split, atomic, &rest, at),
                None => Ok(()),
            };
        }
        let threads = self.executing(cta, warp.index, split.pc, group.mask);
        let narrow = atomic.narrow.as_ref();
        let elements = narrow.map(|narrow| self.elements(warp, split, narrow, at));
        let observed = elements.as_ref().unwrap_or(at);
        let observed_bytes = atomic.narrow.map_or(total, |narrow| narrow.bytes);
        self.observer.access(
            threads,
            AccessKind::Rmw,
            group.space,
            observed,
            observed_bytes,
        );
        if group.space == Space::Global {
            self.stats.global_sectors += sectors(at, group, total);
        }
        let frame = &split.frame;
        let first = frame.rows as usize;
        // A result may take the place of an operand.
        let copy = |rows: &[u32]| rows.first().map(|&row| warp.read(frame, row, consts));
        let exchanged = (copy(&atomic.operands), copy(&atomic.second));
        let of_lane = |warp: &Warp, rows: &[u32], lane: usize| {
            let mut values = [0; MAX_ELEMENTS];
            for (value, &row) in values.iter_mut().zip(rows) {
                *value = warp.source(frame, row, consts)[lane];
            }
            values
        };
        let step = |index: usize| u64::from(size) * index as u64;
        let (mut before, mut after) = ([0; WARP], [0; WARP]);
        for lane in lanes(group.mask) {
            let spot = self.spot(cta, warp, lane, group.bytes(lane, at, total), true)?;
            let operands = of_lane(warp, &atomic.operands, lane);
            let operands = &operands[..atomic.operands.len().min(MAX_ELEMENTS)];
            let second = of_lane(warp, &atomic.second, lane);
            let second = &second[..atomic.second.len().min(MAX_ELEMENTS)];
            // The two halves of 128 bits are compared together.
            let wide = atomic.bytes == 16;
            let mut swap = true;
            if atomic.op == Rmw::Cas && wide {
                for (index, &operand) in operands.iter().enumerate() {
                    swap &= self.peek(warp, spot.plus(step(index)), size) == operand;
                }
            }
            for (index, &operand) in operands.iter().enumerate() {
                let spot = spot.plus(step(index));
                let new = |old| match second.get(index) {
                    Some(&second) if wide => {
                        if swap {
                            second
                        } else {
                            old
                        }
                    }
                    Some(&second) if old == truncate(operand, size) => second,
                    Some(_) => old,
                    None => {
                        let subnormals = Subnormals::of_atomic(group.space);
                        update(atomic.op, subnormals, size, old, operand)
                    }
                };
                let old = match (self.memory.locks(), spot) {
                    (Some(locks), Spot::Global { mapping, offset }) => {
                        locks.replace(self.memory.words(mapping), size, offset, new)
                    }
                    _ => {
                        let old = self.peek(warp, spot, size);
                        let element = Bytes {
                            space: group.space,
                            address: at[lane] + step(index),
                            count: size,
                        };
                        self.changes(threads, warp, lane, element, spot, new(old));
                        self.poke(warp, spot, size, new(old));
                        old
                    }
                };
                (before[lane], after[lane]) = (old, new(old));
                if let Some(&row) = atomic.results.get(index) {
                    warp.regs[first + row as usize][lane] = old;
                }
            }
        }
        let single = atomic.operands.len() == 1;
        if let (Rmw::Exch | Rmw::Cas, true, (Some(operand), second)) =
            (atomic.op, single, exchanged)
        {
            let of = |row: Lanes| row.map(|value| truncate(value, size));
            let (mut first, mut new) = (of(operand), of(second.unwrap_or(operand)));
            if atomic.narrow.is_some() {
                for lane in lanes(group.mask) {
                    // It may have failed because of another element.
                    if first[lane] != before[lane] {
                        new[lane] = before[lane];
                    }
                    let shift = 8 * (observed[lane] - at[lane]);
                    let element = |value: u64| truncate(value >> shift, observed_bytes);
                    first[lane] = element(first[lane]);
                    new[lane] = element(new[lane]);
                    before[lane] = element(before[lane]);
                }
            }
            let exchange = Exchange {
                bytes: observed_bytes,
                compare: (atomic.op == Rmw::Cas).then_some(&first),
                new: &new,
                old: &before,
            };
            self.observer
                .exchanged(threads, group.space, observed, exchange);
        }
        if single && counts(atomic.op) {
            let updated = Updated {
                bytes: size,
                old: &before,
                new: &after,
            };
            self.observer.updated(threads, group.space, at, updated);
        }
        Ok(())
    }
}

/// True of atomics on integers by which threads count, or set and clear bits.
fn counts(op: Rmw) -> bool {
    matches!(
        op,
        Rmw::Add | Rmw::Inc | Rmw::Dec | Rmw::And | Rmw::Or | Rmw::Xor
    )
}

pub(super) fn truncate(value: u64, bytes: u32) -> u64 {
    value & (u64::MAX >> (64 - 8 * bytes))
}

fn signed(value: u64, bytes: u32) -> i64 {
    let unused = 64 - 8 * bytes;
    (value << unused) as i64 >> unused
}

/// What a floating-point sum in single precision does with subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subnormals {
    /// Flushes them to zero: atomics on global memory (PTX ISA, `atom` and `red`).
    Flushed,
    /// Keeps them: atomics on shared memory (PTX ISA), and bulk reductions to any memory (seen on an H100).
    Kept,
}

impl Subnormals {
    pub(crate) fn of_atomic(space: Space) -> Self {
        match space {
            Space::Global => Self::Flushed,
            _ => Self::Kept,
        }
    }
}

/// The new value of so many bytes, of an atomic that always writes.
pub(crate) fn update(op: Rmw, subnormals: Subnormals, bytes: u32, old: u64, operand: u64) -> u64 {
    let operand = truncate(operand, bytes);
    let new = match op {
        Rmw::And => old & operand,
        Rmw::Or => old | operand,
        Rmw::Xor => old ^ operand,
        Rmw::Exch | Rmw::Cas => operand,
        Rmw::Add => old.wrapping_add(operand),
        Rmw::Inc => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        Rmw::Dec => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
        Rmw::MinU => old.min(operand),
        Rmw::MaxU => old.max(operand),
        Rmw::MinS => signed(old, bytes).min(signed(operand, bytes)) as u64,
        Rmw::MaxS => signed(old, bytes).max(signed(operand, bytes)) as u64,
        Rmw::AddF32 => {
            let flushes = subnormals == Subnormals::Flushed;
            let own = |x| if flushes { flush(x) } else { x };
            let [a, b] = [old, operand].map(|bits| own(f32::from_bits(bits as u32)));
            one_nan(own(a + b)).to_bits().into()
        }
        Rmw::AddF64 => (f64::from_bits(old) + f64::from_bits(operand)).to_bits(),
        Rmw::Half { bfloat, op } => {
            let format = if bfloat { BF16 } else { F16 };
            let one = |a, b| match op {
                HalfOp::Add => arith(Arith::Add, format, 0, a, b, 0),
                HalfOp::Min => extreme(false, format, 0, a, b),
                HalfOp::Max => extreme(true, format, 0, a, b),
            };
            let mut all = 0;
            for shift in (0..8 * bytes).step_by(16) {
                all |= one(old >> shift & 0xffff, operand >> shift & 0xffff) << shift;
            }
            all
        }
    };
    truncate(new, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_counters() {
        let run = |op, old, operand| update(op, Subnormals::Flushed, 4, old, operand);
        assert_eq!(
            (
                run(Rmw::Inc, 3, 3),
                run(Rmw::Inc, 2, 3),
                run(Rmw::Inc, 9, 3)
            ),
            (0, 3, 0)
        );
        assert_eq!(
            (
                run(Rmw::Dec, 0, 3),
                run(Rmw::Dec, 2, 3),
                run(Rmw::Dec, 9, 3)
            ),
            (3, 1, 3)
        );
    }

    #[test]
    fn signs_and_widths() {
        let minus = u64::from(-1i32 as u32);
        let update = |op, bytes, old, operand| update(op, Subnormals::Kept, bytes, old, operand);
        assert_eq!(update(Rmw::MinS, 4, 5, minus), minus);
        assert_eq!(update(Rmw::MinU, 4, 5, minus), 5);
        assert_eq!(update(Rmw::MaxS, 8, 5, u64::MAX), 5);
        assert_eq!(update(Rmw::Add, 4, 0xffff_ffff, 1), 0);
        assert_eq!(update(Rmw::AddF32, 4, 1, 1), 2);
        assert_eq!(super::update(Rmw::AddF32, Subnormals::Flushed, 4, 1, 1), 0);
        assert_eq!(
            update(
                Rmw::Half {
                    bfloat: false,
                    op: HalfOp::Add
                },
                4,
                0x3c00_4000,
                0x3c00_3c00
            ),
            0x4000_4200
        );
    }
}
