//! Fences and atomics that count, and what their order decides.

use events::Executing;
use ptx::isa::{FenceSemantics, SyncOp};
use shadow::hb::{Atomics, Engine, FenceKind, FenceOrder, Race};

use super::{HappensBefore, active, warp};
use crate::pairs::Class;
use crate::traced::EventKind;

/// The class of a race that the engine has just found.
pub(super) fn class(order: &mut FenceOrder, engine: &mut Engine, race: &mut Race) -> Class {
    match order.orders(engine, race) {
        true if order.has_counted() => Class::Counted,
        true => Class::Fences,
        false => Class::Race,
    }
}

impl HappensBefore {
    /// Says what the next atomics are for.
    pub(super) fn atomics(&mut self, atomics: Atomics) {
        if atomics == Atomics::Count {
            self.order.count(&self.engine);
        }
        let event = |engine: &mut Engine| engine.atomics(atomics);
        event(&mut self.engine);
        if let Some(strong) = &mut self.strong {
            strong.forward(event);
        }
        self.lock_order.forward(event);
    }

    /// Lanes execute an instruction that only the thread with the final count executes.
    pub(super) fn have_found(&mut self, who: Executing) {
        let Some(site) = self.meaning(who).and_then(|meaning| meaning.found) else {
            return;
        };
        let event = |engine: &mut Engine| engine.has_found(warp(who), who.lanes, site);
        event(&mut self.engine);
        if let Some(strong) = &mut self.strong {
            strong.forward(event);
        }
        self.lock_order.forward(event);
    }

    /// Lanes execute a fence.
    pub(super) fn fences(&mut self, who: Executing) {
        self.have_found(who);
        let meaning = self.meaning(who);
        if meaning.is_some_and(|meaning| meaning.proxy) {
            self.hear(who, || EventKind::ProxyFence);
            self.with(|engine| engine.fence_proxy(warp(who), who.lanes));
        }
        if meaning.is_some_and(|meaning| meaning.fences_inits) {
            self.hear(who, || EventKind::InitFence);
            self.with(|engine| engine.fence_init(warp(who), who.lanes));
            return;
        }
        let Some(SyncOp::Fence {
            sem,
            scope: within,
            proxy: false,
        }) = meaning.and_then(|meaning| meaning.sync)
        else {
            return;
        };
        let kind = match sem {
            FenceSemantics::Sc => FenceKind::Sc,
            FenceSemantics::AcqRel => FenceKind::AcqRel,
            FenceSemantics::Acquire => FenceKind::Acquire,
            FenceSemantics::Release => FenceKind::Release,
        };
        let scope = within;
        if let Some(footprints) = &mut self.footprints {
            footprints.fence(who, scope);
        }
        self.hear(who, || EventKind::Fence { kind, scope });
        let kind = self.order.fence(&self.engine, active(who), kind, scope);
        self.engine.fence(warp(who), who.lanes, kind, scope);
        if let Some(strong) = &mut self.strong {
            strong.fence(warp(who), who.lanes, kind, scope);
        }
        self.lock_order.fence(warp(who), who.lanes, kind, scope);
    }
}
