//! Special registers, and questions about addresses.

use ptx::ast::Space;

use super::address::lanes;
use super::cta::CtaId;
use super::listener::Listener;
use super::machine::{Machine, RESERVED_SHARED};
use super::warp::{Split, Warp};
use crate::code::{Map, Rank, Special};
use crate::lanes::{WARP, put, splat};
use crate::windows;

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// Writes the value of a special register into the lanes of `mask` of row `d`.
    pub(crate) fn special(
        &self,
        special: Special,
        cta: &CtaId,
        warp: &mut Warp,
        d: usize,
        mask: u32,
    ) {
        let launch = self.setup.launch;
        let cluster = self.setup.cluster;
        let axis =
            |values: [u32; 3], axis: u8| u64::from(*values.get(usize::from(axis)).unwrap_or(&0));
        let Some(row) = warp.regs.get_mut(d) else {
            return;
        };
        let mut per_lane = |f: fn(u32) -> u32| {
            put(
                row,
                mask,
                &std::array::from_fn(|lane| u64::from(f(lane as u32))),
            );
        };
        let size = |three: [u32; 3]| three.iter().map(|&n| u64::from(n)).product::<u64>();
        let each = match special {
            Special::Tid(axis @ 0..=2) => return put(row, mask, &warp.tid[usize::from(axis)]),
            Special::Tid(_) => 0,
            Special::Ntid(of) => axis(launch.block, of),
            Special::Ctaid(of) => axis(cta.index, of),
            Special::Nctaid(of) => axis(launch.grid, of),
            Special::LaneId => return per_lane(|lane| lane),
            Special::LaneMaskEq => return per_lane(|lane| 1 << lane),
            Special::LaneMaskLe => return per_lane(|lane| u32::MAX >> (31 - lane)),
            Special::LaneMaskLt => return per_lane(|lane| (1 << lane) - 1),
            Special::LaneMaskGe => return per_lane(|lane| u32::MAX << lane),
            Special::LaneMaskGt => return per_lane(|lane| u32::MAX << lane & !(1 << lane)),
            Special::WarpId => u64::from(warp.index),
            Special::NwarpId => size(launch.block).div_ceil(32),
            Special::SmId => u64::from(cta.slot % self.setup.config.sm_count.max(1)),
            Special::NsmId => u64::from(self.setup.config.sm_count),
            Special::GridId => self.setup.number,
            Special::Clock => self.clock() & 0xffff_ffff,
            Special::ClockHi => self.clock() >> 32,
            Special::Clock64 | Special::GlobalTimer => self.clock(),
            Special::GlobalTimerLo => self.clock() & 0xffff_ffff,
            Special::GlobalTimerHi => self.clock() >> 32,
            Special::Env(1) => self.setup.grid_barrier >> 32,
            Special::Env(2) => self.setup.grid_barrier & 0xffff_ffff,
            Special::Env(_) => 0,
            Special::TotalShared | Special::AggregateShared => u64::from(self.shared_bytes),
            Special::DynamicShared => u64::from(launch.dynamic_shared),
            Special::ReservedShared(which) => {
                let start = u64::from(self.reserved_start);
                match which {
                    1 => start + u64::from(RESERVED_SHARED),
                    2 => u64::from(RESERVED_SHARED),
                    4 => start + u64::from(RESERVED_SHARED / 2),
                    _ => start,
                }
            }
            Special::ClusterId(of) => axis(cta.index, of) / axis(cluster, of).max(1),
            Special::NclusterId(of) => axis(launch.grid, of) / axis(cluster, of).max(1),
            Special::ClusterCtaid(of) => axis(cta.in_cluster, of),
            Special::ClusterNctaid(of) => axis(cluster, of),
            Special::ClusterCtarank => u64::from(cta.rank),
            Special::ClusterNctarank => size(cluster),
            Special::Nothing => 0,
            Special::IsExplicitCluster => u64::from(size(cluster) > 1),
        };
        splat(row, mask, each);
    }

    /// `isspacep`
    pub(crate) fn is_space(
        &self,
        warp: &mut Warp,
        split: &Split,
        d: u32,
        address: u32,
        space: Space,
        exec: u32,
    ) {
        let consts = &self.setup.program.consts;
        let at = warp.read(&split.frame, address, consts);
        let constants = &self.setup.program.constants;
        let mut found = 0;
        for lane in lanes(exec) {
            let held = |(first, last): &(u64, u64)| (*first..=*last).contains(&at[lane]);
            let constant = constants.iter().any(held);
            let is = match (windows::space(at[lane]), space) {
                // The window starts with the CTA's own memory.
                (Space::Shared, Space::Shared) => at[lane] - windows::SHARED < events::SHARED_STEP,
                (Space::Shared, Space::SharedCluster) => true,
                // The window of a kernel's parameters lies in the global one (PTX ISA, `isspacep`).
                (Space::Param, Space::Global) => true,
                // Constants lie in device memory, but an address of one is not global: the code that
                // ptxas makes compares it with their bounds.
                (Space::Global, Space::Const) => constant,
                (Space::Global, Space::Global) => !constant,
                (have, want) => have == want,
            };
            found |= u32::from(is) << lane;
        }
        warp.rows(&split.frame, consts).put_pred(d, exec, found);
    }

    /// `mapa`
    pub(crate) fn map(&self, warp: &mut Warp, split: &Split, map: &Map, exec: u32) {
        let Map {
            d,
            address,
            rank,
            generic,
        } = *map;
        let consts = &self.setup.program.consts;
        let mut at = warp.read(&split.frame, address, consts);
        let rank = warp.read(&split.frame, rank, consts);
        for lane in 0..WARP {
            let base = if generic { windows::SHARED } else { 0 };
            let offset = at[lane].wrapping_sub(base) & (events::SHARED_STEP - 1);
            // Lanes that take no part may hold anything.
            let step = rank[lane].wrapping_add(1).wrapping_mul(events::SHARED_STEP);
            at[lane] = (base + offset).wrapping_add(step);
        }
        warp.rows(&split.frame, consts).put(d, exec, &at);
    }

    /// `getctarank`
    pub(crate) fn rank(&self, cta: &CtaId, warp: &mut Warp, split: &Split, rank: &Rank, exec: u32) {
        let Rank {
            d,
            address,
            generic,
        } = *rank;
        let consts = &self.setup.program.consts;
        let base = if generic { windows::SHARED } else { 0 };
        let at = warp.read(&split.frame, address, consts);
        let ranks = at.map(
            |at| match at.wrapping_sub(base) as u32 / events::SHARED_STEP as u32 {
                0 => u64::from(cta.rank),
                rank => u64::from(rank - 1),
            },
        );
        warp.rows(&split.frame, consts).put(d, exec, &ranks);
    }
}
