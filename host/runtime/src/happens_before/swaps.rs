//! Atomics that swap, and others on integers: what they did tells locks, and when versions were written.

use events::{Exchange, Executing, Observer, Updated};
use ptx::ast::Space;
use shadow::hb::{Access, Atomics, Look, Swap, SwapValue, Update, Use};

use super::{HappensBefore, active};
use crate::instructions::Meaning;
use crate::pairs::Class;
use crate::sides::at;

impl HappensBefore {
    /// What else is to be known of an access.
    pub(super) fn use_of(&self, meaning: &Meaning) -> Use {
        let values = match self.knows_swaps {
            true => SwapValue::Later,
            false => SwapValue::Never,
        };
        Use {
            // A word that is swapped may be a lock.
            signal: meaning.signal || meaning.swaps && !self.knows_swaps,
            known: meaning.grid.is_some(),
            look: Look {
                swap: meaning.swaps.then_some(values),
                ..meaning.look
            },
        }
    }

    /// Lanes have swapped values.
    pub(super) fn swapped(
        &mut self,
        threads: Executing,
        space: Space,
        addresses: &[u64; 32],
        exchange: Exchange<'_>,
    ) {
        if !self.follows(space) {
            return;
        }
        // As written: taking a lock without a fence acquires nothing, whatever the model.
        let Some(access) = self.meaning(threads).and_then(|meaning| meaning.access) else {
            return;
        };
        let access = Access {
            bytes: exchange.bytes,
            ..access
        };
        let shape = self.shape;
        let location = |lane: u32| at(&shape, threads.cta, space, addresses[lane as usize]);
        let swap = |lane: u32| Swap {
            compare: exchange.compare.map(|values| values[lane as usize]),
            new: exchange.new[lane as usize],
            old: exchange.old[lane as usize],
        };
        let (pairs, lock_order, engine) = (&mut self.pairs, &mut self.lock_order, &mut self.engine);
        let active = active(threads);
        lock_order.swap(engine, active, &access, location, swap, |predicted| {
            pairs.keep_predicted(Class::LockOrder, predicted, None, None);
        });
        if let Some(strong) = &mut self.strong {
            strong.swap(lock_order, active, &access, location, swap);
        }
    }

    /// True of an atomic of which [`Self::counted`] receives more: there may be locks, which readers take by counting.
    pub(super) fn follows_updates(&self, meaning: &Meaning) -> bool {
        let is_followed = self.knows_swaps && self.instructions.swaps;
        is_followed && meaning.updates && meaning.grid.is_none()
    }

    /// Lanes have changed integers by another atomic.
    pub(super) fn counted(
        &mut self,
        threads: Executing,
        space: Space,
        addresses: &[u64; 32],
        updated: Updated<'_>,
    ) {
        let meaning = self.meaning(threads).filter(|of| self.follows_updates(of));
        let Some(meaning) = meaning.filter(|_| self.from_program && self.follows(space)) else {
            return;
        };
        let Some(written) = meaning.access else {
            return;
        };
        let access = self.under_model(written);
        let shape = self.shape;
        let location = |lane: u32| at(&shape, threads.cta, space, addresses[lane as usize]);
        let update = |lane: u32| Update {
            old: updated.old[lane as usize],
            new: updated.new[lane as usize],
        };
        let (pairs, lock_order, engine) = (&mut self.pairs, &mut self.lock_order, &mut self.engine);
        let active = active(threads);
        lock_order.forward(|engine| engine.atomics(meaning.atomics()));
        lock_order.update(
            engine,
            active,
            [&written, &access],
            location,
            update,
            |predicted| {
                pairs.keep_predicted(Class::LockOrder, predicted, None, None);
            },
        );
        lock_order.forward(|engine| engine.atomics(Atomics::Any));
    }
}
