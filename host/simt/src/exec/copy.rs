//! `cp.async` and bulk copies: done when they are issued.

use super::address::{each_aligned, lanes};
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code::Copy;
use crate::lanes::WARP;
use crate::observer::{Bytes, Observer};

/// Largest bulk copy, in bytes; shared memory is smaller.
const MAX_BYTES: u64 = 1 << 24;

impl<O: Observer> Machine<'_, O> {
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
        let (to_first, to_others) = self.addresses(warp, split, (&copy.to, 4), exec, &mut to);
        let (from_first, from_others) =
            self.addresses(warp, split, (&copy.from, 4), exec, &mut from);
        let bytes = warp.read(&split.frame, copy.bytes, consts);
        let given = copy
            .source_bytes
            .map_or(bytes, |row| warp.read(&split.frame, row, consts));
        let ignore = copy.ignore.map_or(0, |pred| warp.pred(&split.frame, pred));
        let spaces =
            |first: &super::address::Group, others: &[super::address::Group], lane: usize| {
                let mut groups = std::iter::once(first).chain(others);
                groups
                    .find(|group| group.mask >> lane & 1 == 1)
                    .map_or(first.space, |group| group.space)
            };
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
                given[lane].min(count)
            };
            let to_space = spaces(&to_first, &to_others, lane);
            let from_space = spaces(&from_first, &from_others, lane);
            let who = self.who(cta, warp.index, split.pc, 1 << lane);
            let from_bytes = Bytes {
                space: from_space,
                address: from[lane],
                count: read as u32,
            };
            let to_bytes = Bytes {
                space: to_space,
                address: to[lane],
                count: count as u32,
            };
            let mbarrier = copy
                .complete
                .as_ref()
                .map(|barrier| self.address_of(warp, split, barrier, lane));
            self.observer.copy(who, from_bytes, to_bytes, mbarrier);
            for step in (0..count).step_by(4) {
                let mut value = 0;
                for byte in step..(step + 4).min(read) {
                    let at = from[lane] + byte;
                    let spot = self.spot(cta, warp, lane, (from_space, at), 1, false)?;
                    value |= self.peek(warp, spot, 1) << (8 * (byte - step));
                }
                let place = (to_space, to[lane] + step);
                let spot = self.spot(cta, warp, lane, place, 4, true)?;
                self.changes((who, warp, lane), place, spot, (4, value));
                self.poke(warp, spot, 4, value);
            }
            if let Some(barrier) = mbarrier {
                self.complete_bytes(cta, warp, (who, barrier), lane, count)?;
            }
        }
        Ok(())
    }
}
