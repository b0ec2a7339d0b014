//! Accesses outside of all memory: they end the launch, or are passed over where a launch is to go on.
//!
//! An observer receives accesses that are made, so what lies outside is found before. Without an observer it is
//! found when the access is made.

use events::SHARED_STEP;
use ptx::ast::Space;

use super::address::{Group, Pattern, lanes, local_at};
use super::cta::CtaId;
use super::fault::{self, Fault};
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::lanes::{Lanes, WARP};
use crate::strays::Stray;
use events::{AccessKind, Bytes};

/// Bytes that lanes of a split access.
pub(super) struct Reach<'a> {
    pub(super) group: &'a Group,
    pub(super) at: &'a Lanes,
    pub(super) bytes: u64,
    pub(super) kind: AccessKind,
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// The lanes whose access is not to be made, because it lies outside.
    ///
    /// # Errors
    /// The first of them, unless the launch is to go on.
    #[inline(always)]
    pub(super) fn stray_lanes(
        &mut self,
        cta: &CtaId,
        warp: &Warp,
        split: &Split,
        reach: Reach<'_>,
    ) -> Result<u32, Box<Fault>> {
        match O::LISTENS || self.setup.launch.strays.is_some() {
            true => self.find_strays(cta, warp, split, reach),
            false => Ok(0),
        }
    }

    /// Whether bytes that one lane accesses lie outside, so that they are to be passed over.
    ///
    /// # Errors
    /// As [`Self::stray_lanes`].
    pub(super) fn strays_alone(
        &mut self,
        cta: &CtaId,
        warp: &Warp,
        split: &Split,
        lane: usize,
        bytes: Bytes,
        kind: AccessKind,
    ) -> Result<bool, Box<Fault>> {
        let group = Group {
            space: bytes.space,
            mask: 1 << lane,
            pattern: Pattern::Any,
        };
        let reach = Reach {
            group: &group,
            at: &[bytes.address; WARP],
            bytes: bytes.count.into(),
            kind,
        };
        self.stray_lanes(cta, warp, split, reach)
            .map(|lanes| lanes != 0)
    }

    fn find_strays(
        &mut self,
        cta: &CtaId,
        warp: &Warp,
        split: &Split,
        reach: Reach<'_>,
    ) -> Result<u32, Box<Fault>> {
        let Reach {
            group,
            at,
            bytes,
            kind,
        } = reach;
        let size = u64::from(self.shared_bytes).min(SHARED_STEP);
        let narrow = u32::try_from(bytes).unwrap_or(u32::MAX);
        if group.space == Space::Shared && group.lies_in(at, narrow, 0..size) {
            return Ok(0);
        }
        let write = kind != AccessKind::Load;
        let lane = group.first();
        if group.space == Space::Global
            && let Ok(window) = self.locate(lane as u32, at[lane], narrow, write)
            && group.lies_in(at, narrow, window.start..window.end)
        {
            return Ok(0);
        }
        let (mut outside, mut first) = (0u32, None);
        for lane in lanes(group.mask) {
            let found = match group.space {
                Space::Shared | Space::SharedCluster => {
                    self.shared_at(cta, lane, at[lane], narrow, write).map(drop)
                }
                Space::Local => local_at(warp, lane, at[lane], narrow, write),
                Space::Param => Ok(()),
                _ => self.locate(lane as u32, at[lane], narrow, write).map(drop),
            };
            if let Err(fault) = found {
                outside |= 1 << lane;
                first.get_or_insert(fault);
            }
        }
        let (Some(first), Some(strays)) = (&first, &self.setup.launch.strays) else {
            return first.map_or(Ok(0), Err);
        };
        let lane = first.lane;
        let setup = &self.setup;
        let size = match group.space {
            Space::Shared | Space::SharedCluster => u64::from(self.shared_bytes),
            Space::Local => (warp.local.len() / 32 * 4) as u64,
            _ => 0,
        };
        strays.add((split.pc, kind), outside.count_ones().into(), || Stray {
            at: fault::place(
                setup.module,
                setup.program,
                setup.kernel,
                split.pc,
                cta,
                warp,
                lane,
            ),
            kind,
            space: group.space,
            address: at[lane as usize],
            bytes,
            size,
            count: 0,
        });
        Ok(outside)
    }
}

impl Group {
    /// The same without some lanes; none when no lane is left.
    pub(super) fn without(&self, lanes: u32) -> Option<Self> {
        let mask = self.mask & !lanes;
        (mask != 0).then_some(Self {
            space: self.space,
            mask,
            pattern: Pattern::Any,
        })
    }
}
