//! Fences, and what the order of `fence.sc`s decides.

use ptx::isa::{FenceSemantics, SyncOp};
use shadow::hb::{Engine, FenceKind, FenceOrder, Race};
use simt::Executing;

use super::{Reference, warp};
use crate::heard::Told;
use crate::instructions::scope;
use crate::pairs::Class;

/// What is wrong with the sides of a race that the engine has found just now.
pub(super) fn class(order: &mut FenceOrder, engine: &mut Engine, race: &mut Race) -> Class {
    match order.orders(engine, race) {
        true => Class::Fences,
        false => Class::Race,
    }
}

impl Reference {
    /// Lanes execute a fence.
    pub(super) fn fences(&mut self, who: Executing) {
        let meaning = self.meaning(who);
        if meaning.is_some_and(|meaning| meaning.proxy) {
            self.hear(who, || Told::ProxyFence);
            self.with(|engine| engine.fence_proxy(warp(who), who.lanes));
        }
        if meaning.is_some_and(|meaning| meaning.fences_inits) {
            self.hear(who, || Told::InitFence);
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
        let (lanes, scope) = ((warp(who), who.lanes), scope(within));
        self.hear(who, || Told::Fence { kind, scope });
        let kind = self.order.fence(&self.engine, lanes, kind, scope);
        self.engine.fence(warp(who), who.lanes, kind, scope);
        if let Some(strong) = &mut self.strong {
            strong.fence(warp(who), who.lanes, kind, scope);
        }
        self.luck.fence(warp(who), who.lanes, kind, scope);
    }
}
