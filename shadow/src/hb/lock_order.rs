//! What only locks, and the order in which they were taken, have ordered in one run.
//!
//! A second engine receives the same as the first, but that taking a lock acquires nothing, and that
//! `fence.sc`s are ordered only as in every run (`fenced.rs`). A critical section still comes after the earlier
//! ones of its lock, as soon as it accesses what one of them has accessed in conflict: this is
//! "weak causally precedes" (Kini, Mathur, Viswanathan, "Dynamic Race Prediction in Linear Time",
//! PLDI 2017), with more order, never less, but for its rule about critical sections that are
//! ordered by other means inside; a word through which others are let in is no lock (`locks.rs`).
//! What the second engine finds, and the first has ordered, another run may well turn around, unless
//! both sides were under one lock: a lockset warning.
//!
//! A launch without locks has no second engine. It is a copy of the first one, made when the first
//! lock is released; its room is that of the first.

use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::clock::Sparse;
use super::history::WORD;
use super::locks::{Locks, Released, Step, Swap, Update, Writing};
use super::section::Held;
use super::thread::{Active, Thread, Warp};
use super::turns::{Touch, Turn};
use super::{Access, Engine, FenceKind, Location, MemoryOrder, OpKind, Race, Rule, Side, each};

/// Two accesses, and what their threads held: the earlier one's first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicted {
    /// The accesses.
    pub race: Race,
    /// What the earlier and the later thread held.
    pub locks: [Vec<Held>; 2],
}

/// A scalar that was written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The thread's CTA.
    pub cta: u64,
    /// Where.
    pub location: Location,
    /// How much.
    pub bytes: u32,
}

/// Looks for locks, and for what nothing but them has ordered.
#[derive(Clone, Debug, Default)]
pub struct LockOrder {
    locks: Locks,
    /// The second engine.
    engine: Option<Engine>,
    /// By lock, and apart for readers: what its releases have published.
    released: HashMap<Released, Sparse>,
    /// Words that were written just now, and whether that has released a lock.
    written: Vec<(Written, bool)>,
    /// Taking a lock acquires what its last release has published, by the model.
    acquires: bool,
}

impl LockOrder {
    /// For one launch. `acquires` says that a strong read acquires whatever it observes, by the model.
    pub fn new(acquires: bool) -> Self {
        Self {
            acquires,
            ..Self::default()
        }
    }

    /// Something happens that is no access, fence or barrier.
    pub fn forward(&mut self, event: impl Fn(&mut Engine)) {
        if let Some(engine) = &mut self.engine {
            event(engine);
        }
    }

    /// Lanes come to a barrier, or go on after it.
    pub fn barrier(&mut self, warp: Warp, lanes: u32, event: impl Fn(&mut Engine)) {
        if !self.locks.is_empty() {
            each(lanes).for_each(|lane| self.locks.share(warp.lane(lane)));
            self.give_up();
        }
        self.forward(event);
    }

    /// Lanes execute a fence.
    pub fn fence(&mut self, warp: Warp, lanes: u32, kind: FenceKind, scope: Scope) {
        if self.locks.is_empty() {
            return;
        }
        each(lanes).for_each(|lane| self.locks.fence(warp.lane(lane), scope, kind));
        self.forward(|engine| engine.fence(warp, lanes, kind.forced(), scope));
    }

    /// Lanes end.
    pub fn exit(&mut self, warp: Warp, lanes: u32) {
        each(lanes).for_each(|lane| self.locks.exit(warp.lane(lane)));
        self.forward(|engine| engine.exit(warp, lanes));
    }

    /// Lanes access memory, and `main` has received it. Calls `found` for accesses that only lock order has ordered.
    /// Swaps come through [`Self::swap`].
    pub fn access(
        &mut self,
        main: &mut Engine,
        active: Active,
        access: &Access,
        locations: impl Fn(u32) -> Location,
        mut found: impl FnMut(Predicted),
    ) {
        if self.locks.is_empty() {
            return;
        }
        self.written.clear();
        let Active { warp, lanes } = active;
        let mut released = Vec::new();
        let mut parts = 0;
        for lane in each(lanes) {
            let at = locations(lane);
            let by = writing(warp.lane(lane), at, access);
            self.touch(main, by.thread, at, access);
            if self.locks.is_word(at) && access.kind != OpKind::Load {
                let step = self.locks.write(&by, access.kind != OpKind::Store);
                if let Some(lock) = step.released {
                    released.push((by.thread, lock));
                    parts |= 1 << lane;
                }
                let written = Written {
                    cta: warp.cta,
                    location: at,
                    bytes: access.bytes,
                };
                self.written.push((written, parts >> lane & 1 == 1));
            }
        }
        // An atomic that releases a lock learns nothing from those before.
        let kind = match access.kind {
            OpKind::Rmw if parts != 0 => OpKind::Reduction,
            other => other,
        };
        if self.engine.is_some() {
            let access = Access { kind, ..*access };
            self.follow(main, active, &access, locations, &mut found);
        }
        for (thread, lock) in released {
            self.publish(main, thread, lock);
        }
        self.turn(main, &mut found);
        self.give_up();
    }

    /// Lanes are about to swap, which `main` has not received. If that may take a lock that only readers have
    /// given back until now, the second engine is made before `main` learns of it.
    pub fn before(&mut self, main: &Engine, lanes: u32, locations: impl Fn(u32) -> Location) {
        if self.engine.is_none()
            && !self.locks.is_spoiled()
            && each(lanes).any(|lane| self.locks.has_had_readers(locations(lane)))
        {
            self.engine = Some(main.clone());
        }
    }

    /// Lanes have swapped values, one after the other, and `main` has received it.
    pub fn swap(
        &mut self,
        main: &mut Engine,
        active: Active,
        access: &Access,
        locations: impl Fn(u32) -> Location,
        swaps: impl Fn(u32) -> Swap,
        found: impl FnMut(Predicted),
    ) {
        let step = |locks: &mut Locks, by: &Writing, lane: u32| locks.swap(by, swaps(lane));
        self.change(main, active, [access; 2], locations, step, found);
    }

    /// Lanes have changed values by another atomic, one after the other, and `main` has received it. `accesses` is the
    /// access as it was written, and as `main` has received it.
    pub fn update(
        &mut self,
        main: &mut Engine,
        active: Active,
        accesses: [&Access; 2],
        locations: impl Fn(u32) -> Location,
        updates: impl Fn(u32) -> Update,
        found: impl FnMut(Predicted),
    ) {
        let step = |locks: &mut Locks, by: &Writing, lane: u32| locks.update(by, updates(lane));
        self.change(main, active, accesses, locations, step, found);
    }

    /// Lanes have made an atomic access whose values are known.
    fn change(
        &mut self,
        main: &mut Engine,
        Active { warp, lanes }: Active,
        [written, access]: [&Access; 2],
        locations: impl Fn(u32) -> Location,
        step: impl Fn(&mut Locks, &Writing, u32) -> Step,
        mut found: impl FnMut(Predicted),
    ) {
        // What `main` has received, a copy of it that is made here knows.
        let follows = self.engine.is_some();
        let active = |lanes| Active { warp, lanes };
        // Lanes that do nothing to a lock, and have not been passed on yet.
        let mut plain = 0;
        for lane in each(lanes) {
            let by = writing(warp.lane(lane), locations(lane), written);
            self.touch(main, by.thread, by.location, access);
            let Step { of_lock, released } = step(&mut self.locks, &by, lane);
            if !of_lock && released.is_none() {
                plain |= 1 << lane;
                continue;
            }
            if follows {
                self.follow(main, active(plain), access, &locations, &mut found);
                let kind = match of_lock {
                    true => OpKind::Reduction,
                    false => access.kind,
                };
                let access = Access { kind, ..*access };
                self.follow(main, active(1 << lane), &access, &locations, &mut found);
            }
            plain = 0;
            if let Some(lock) = released {
                self.publish(main, by.thread, lock);
            }
        }
        if follows {
            self.follow(main, active(plain), access, &locations, &mut found);
        }
        self.turn(main, &mut found);
        self.give_up();
    }

    /// The access that was received last has been made, and `value` gives what is there now.
    pub fn made(&mut self, value: impl Fn(&Written) -> Option<u64>) {
        for (written, released) in core::mem::take(&mut self.written) {
            if let Some(value) = value(&written) {
                self.locks.holds_now(written.location, value, released);
            }
        }
        self.give_up();
    }

    /// What the threads of two accesses held, the earlier one's first; the later access is under way.
    pub fn locks_of(&self, race: &Race) -> [Vec<Held>; 2] {
        if self.locks.is_empty() {
            return Default::default();
        }
        let word = race.location.key() / WORD;
        let Side { thread, site } = race.earlier;
        [
            self.locks.then(thread, word, site),
            self.locks.now(race.later.thread),
        ]
    }

    /// The same, where both critical sections may be over.
    pub(crate) fn locks_then(&self, race: &Race) -> [Vec<Held>; 2] {
        let word = race.location.key() / WORD;
        [race.earlier, race.later].map(|of| self.locks.then(of.thread, word, of.site))
    }

    /// True when some word has been swapped or counted, so that there may be locks.
    pub(crate) fn has_swaps(&self) -> bool {
        !self.locks.is_empty()
    }

    /// True when a thread holds something that may be a lock.
    pub(crate) fn holds(&self, thread: Thread) -> bool {
        self.locks.holds(thread)
    }

    /// True for words that were taken and released, and nothing else.
    pub fn is_lock(&self, location: Location) -> bool {
        self.locks.is_lock(location)
    }

    /// True for words that behave as locks until now.
    pub(crate) fn passes(&self, location: Location) -> bool {
        self.locks.passes(location)
    }

    /// True for a swap that would have taken a word, and has found it held.
    pub(crate) fn fails(&self, location: Location, swap: Swap) -> bool {
        self.locks.fails(location, swap)
    }

    /// True at the end of a launch when a word that had passed for a lock was none, so that nothing can be said
    /// of luck.
    pub fn is_spoiled(&self) -> bool {
        self.locks.end_spoiled()
    }

    /// An access that is not to a lock: learns what earlier critical sections have published when
    /// it conflicts with one of theirs.
    fn touch(&mut self, main: &mut Engine, me: Thread, at: Location, access: &Access) {
        if !self.locks.holds(me) || self.locks.is_lock(at) {
            return;
        }
        let Self {
            locks,
            engine,
            released,
            ..
        } = self;
        let shape = main.shape;
        let own = main.knows(me, me);
        let times = [
            own,
            engine.as_mut().map_or(own, |engine| engine.knows(me, me)),
        ];
        let first = at.key();
        let end = first + u64::from(access.bytes * access.elements);
        for memory in first / WORD..=(end - 1) / WORD {
            let word = memory * WORD;
            let inside = |byte: &u64| (first..end).contains(&(word + byte));
            let touch = Touch {
                thread: me,
                memory,
                site: access.site,
                writes: access.kind != OpKind::Load,
                bytes: (0..WORD)
                    .filter(inside)
                    .fold(0, |all, byte| all | 1 << byte),
                scope: access.order.scope(),
                times,
            };
            locks.turn(&touch, &shape, |earlier| {
                let [time, beside] = earlier.times;
                let ordered = main.knows(me, earlier.thread) >= time;
                ordered
                    && engine
                        .as_mut()
                        .is_some_and(|engine| engine.knows(me, earlier.thread) < beside)
            });
            locks.touch(&touch, |lock, shared| {
                // Readers come after owners alone.
                for by in [false, true].into_iter().take(2 - usize::from(shared)) {
                    let known = released.get(&Released { lock, shared: by });
                    if let (Some(engine), Some(known)) = (engine.as_mut(), known) {
                        engine.join(me, known);
                    }
                }
            });
        }
    }

    /// Finds, of critical sections that have just ended, those that would race the other way around.
    fn turn(&mut self, main: &Engine, found: &mut impl FnMut(Predicted)) {
        for turn in self.locks.turns() {
            // Nearly all are in order either way, by the lock that has brought them here.
            let held = turn.earlier.held;
            let now = self.locks.past(&turn.later, held.lock);
            let turns = |now: &&Held| {
                now.excludes(&held) && turn.turns(&main.shape, self.acquires, [&held, *now])
            };
            if now.filter(turns).is_some() {
                continue;
            }
            let race = turn.race();
            let mut locks = self.locks_then(&race);
            let Turn { earlier, .. } = &turn;
            for held in &mut locks[0] {
                if held.lock == earlier.held.lock {
                    *held = earlier.held;
                }
            }
            let [before, now] = &locks;
            let both: Vec<[&Held; 2]> = before
                .iter()
                .filter_map(|held| Some([held, now.iter().find(|now| now.excludes(held))?]))
                .collect();
            // How the others are given back is not known yet.
            let under_way = self.locks.now(race.later.thread);
            let over = |[held, _]: &[&Held; 2]| under_way.iter().all(|of| of.lock != held.lock);
            let turns = both
                .iter()
                .any(|both| turn.turns(&main.shape, self.acquires, *both));
            if !both.is_empty() && both.iter().all(over) && !turns {
                found(Predicted { race, locks });
            }
        }
    }

    /// Passes an access to the second engine, and sorts out what it finds.
    fn follow(
        &mut self,
        main: &mut Engine,
        Active { warp, lanes }: Active,
        access: &Access,
        locations: impl Fn(u32) -> Location,
        found: &mut impl FnMut(Predicted),
    ) {
        let mut races = Vec::new();
        if let Some(engine) = &mut self.engine
            && lanes != 0
        {
            engine.access(warp, lanes, access, locations, |race| races.push(race));
        }
        for race in races {
            let (me, them) = (race.later.thread, race.earlier.thread);
            if race.rule != Rule::Unordered || main.knows(me, them) < race.time {
                continue;
            }
            let locks = self.locks_of(&race);
            let apart = |a: &Held| !locks[1].iter().any(|b| a.excludes(b));
            // Where neither is under a lock, words that only pass for locks would be taken for them: queues.
            if locks.iter().any(|held| !held.is_empty()) && locks[0].iter().all(apart) {
                found(Predicted { race, locks });
            }
        }
    }

    /// A thread has released a lock.
    fn publish(&mut self, main: &Engine, thread: Thread, lock: Released) {
        if self.locks.is_spoiled() {
            return;
        }
        if !lock.shared {
            self.engine.get_or_insert_with(|| main.clone());
        }
        let engine = self.engine.as_ref().unwrap_or(main);
        engine.publish(thread, self.released.entry(lock).or_default());
    }

    /// Nothing can be said any more once a lock has turned out to be none.
    fn give_up(&mut self) {
        if self.locks.is_spoiled() {
            self.engine = None;
        }
    }
}

fn writing(thread: Thread, location: Location, access: &Access) -> Writing {
    let (scope, acquires, releases) = match access.order {
        MemoryOrder::Weak | MemoryOrder::ReadOnly => (Scope::Cta, false, false),
        MemoryOrder::Relaxed(scope) => (scope, false, false),
        MemoryOrder::Acquire(scope) => (scope, true, false),
        MemoryOrder::Release(scope) => (scope, false, true),
        MemoryOrder::AcqRel(scope) => (scope, true, true),
    };
    Writing {
        thread,
        location,
        site: access.site,
        bytes: access.bytes,
        scope,
        acquires,
        releases,
    }
}

impl Engine {
    /// Adds what a thread has published to `into`: all that it had done and knew when it last
    /// executed a fence or a release operation.
    fn publish(&self, of: Thread, into: &mut Sparse) {
        let cta = self.ctas.get(&of.cta);
        let Some(lanes) = cta.and_then(|cta| cta.known(of.warp)) else {
            return;
        };
        let mut times = lanes.view(of.lane).times.clone();
        times.own -= 1;
        if times.own > 0 {
            times.publish(into, of.warp(), 1 << of.lane, false);
        }
    }

    /// A thread learns what others have published.
    fn join(&mut self, me: Thread, known: &Sparse) {
        self.enter(me.warp());
        if let Some(cta) = self.ctas.get_mut(&me.cta) {
            let lanes = cta.lanes(me.warp);
            // What it does next, or the fence behind it, puts lanes together that know the same.
            lanes.part(1 << me.lane, |view, _| view.times.rest.join(known));
        }
    }
}
