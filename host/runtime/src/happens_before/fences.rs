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
    pub(super) fn have_found(&mut self, threads: Executing) {
        let Some(site) = self.meaning(threads).and_then(|meaning| meaning.found) else {
            return;
        };
        let event = |engine: &mut Engine| engine.has_found(warp(threads), threads.lanes, site);
        event(&mut self.engine);
        if let Some(strong) = &mut self.strong {
            strong.forward(event);
        }
        self.lock_order.forward(event);
    }

    /// Lanes execute a fence.
    pub(super) fn fences(&mut self, threads: Executing) {
        self.have_found(threads);
        let meaning = self.meaning(threads);
        if meaning.is_some_and(|meaning| meaning.proxy) {
            self.hear(threads, || EventKind::ProxyFence);
            self.with(|engine| engine.fence_proxy(warp(threads), threads.lanes));
        }
        if meaning.is_some_and(|meaning| meaning.fences_inits) {
            self.hear(threads, || EventKind::InitFence);
            self.with(|engine| engine.fence_init(warp(threads), threads.lanes));
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
            footprints.fence(threads, scope);
        }
        self.hear(threads, || EventKind::Fence { kind, scope });
        let kind = self.order.fence(&self.engine, active(threads), kind, scope);
        self.engine.fence(warp(threads), threads.lanes, kind, scope);
        if let Some(strong) = &mut self.strong {
            strong.fence(warp(threads), threads.lanes, kind, scope);
        }
        self.lock_order
            .fence(warp(threads), threads.lanes, kind, scope);
    }
}
