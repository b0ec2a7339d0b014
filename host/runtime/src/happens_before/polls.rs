//! Looks that a journal has once although threads may have made them several times.
//!
//! A thread that polls writes an entry for its first look, and none for later ones that find no new write
//! (device/src/kernel/looks.rs). An atomic that changes nothing is a look, but a write as well, which others may
//! observe; and who has observed a write comes after it. So two things are not known of such an atomic:
//! 1. whether who has observed it has observed the last time that it was made;
//! 2. whether a thread that polls the same word has observed it, when its own entry stands before. The order of fences in
//!    this run may put such a thread before the other access, so it is not known whether the conflict is a race or only
//!    depends on that order.
//!
//! An atomic that cannot change anything may be made without a turn, and then its entry may stand behind those of
//! loads that have observed it, and of weak loads behind these (the stores take turns).
//!
//! All of this matters for an access that races with the atomic, by scope, size or for being weak, and that release and
//! acquire do not order behind it. Such a conflict is undecided, whatever the entries say of it.

use std::collections::HashMap;

use shadow::hb::{Access, Active, Engine, FenceOrder, Location, Party, Race, Scope, Thread, Time};

/// Looks at a word that are remembered.
const MOST: usize = 4096;
/// With more looks at a word than this, who may have observed whom is not asked thread by thread. Some thread in the scope
/// of an atomic is taken to have observed it, and other threads to come after that one if they know anything of its CTA.
const MANY: usize = 64;

/// A thread's looks at a scalar by one instruction.
#[derive(Clone, Copy, Debug)]
struct Look {
    thread: Thread,
    site: u32,
    /// The thread's own time at the first look, and at the last atomic that changed nothing.
    first: Time,
    idle: Option<Time>,
    scope: Scope,
    /// Where it starts, and its bytes.
    scalar: (u64, u32),
}

/// The looks at a word of memory.
#[derive(Debug, Default)]
struct Word {
    looks: Vec<Look>,
    /// Start and bytes of the only scalar that is looked at, if all do so in a scope that has all threads.
    wide: Option<(u64, u32)>,
}

/// What is looked at, by the words of memory.
#[derive(Debug, Default)]
pub(super) struct Polls(HashMap<Location, Word>);

/// A conflict with an atomic that may have been made more often than its entry says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    earlier: Thread,
    site: u32,
    later: Thread,
    /// Another thread may have observed it.
    observed: bool,
}

impl Doubt {
    /// True of a race by those accesses.
    fn is_of(&self, race: &Race) -> bool {
        let Thread { cta, warp, lane } = self.earlier;
        let earlier = race.earlier.thread;
        (earlier.cta, earlier.warp) == (cta, warp)
            && race.lanes >> lane & 1 == 1
            && (race.earlier.site, race.later.thread) == (self.site, self.later)
    }

    /// Whether it is undecided, if these were found of the later access. What was found and is undecided goes to
    /// `doubtful`.
    pub(super) fn is_undecided(&self, found: &[Race], mut doubtful: impl FnMut(&Race)) -> bool {
        let mut races = found.iter().filter(|race| self.is_of(race)).peekable();
        if races.peek().is_none() {
            // Only that somebody has observed it keeps it from being a race.
            return true;
        }
        if self.observed {
            races.for_each(&mut doubtful);
        }
        self.observed
    }
}

/// The engine, and the order that the fences of this run add to it: a race that only this order would exclude is of
/// another class.
pub(super) struct Orders<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) fences: &'a mut FenceOrder,
}

impl Orders<'_> {
    fn knows(&mut self, me: Thread, other: Thread) -> Time {
        let time = self.engine.knows(me, other);
        time.max(self.fences.knows(me, other))
    }

    fn knows_cta(&mut self, me: Thread, other: u64) -> bool {
        self.engine.knows_cta(me, other) || self.fences.knows_cta(me, other)
    }
}

impl Look {
    fn party(&self) -> Party {
        Party {
            thread: self.thread,
            scope: self.scope,
        }
    }
}

impl Polls {
    /// Lanes have looked. `idle` says that they have done so by an atomic that has changed nothing.
    pub(super) fn look(
        &mut self,
        engine: &mut Engine,
        Active { warp, lanes }: Active,
        access: &Access,
        idle: bool,
        locations: impl Fn(u32) -> Location,
    ) {
        for (lane, location) in scalars(access, lanes, locations) {
            self.enter(engine, warp.lane(lane), access, location, idle);
        }
    }

    /// What is not known of conflicts of an access that the engine has not received yet.
    pub(super) fn met(
        &self,
        mut orders: Orders<'_>,
        Active { warp, lanes }: Active,
        access: &Access,
        locations: impl Fn(u32) -> Location,
    ) -> Vec<Doubt> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let all = scalars(access, lanes, locations);
        all.flat_map(|(lane, location)| self.doubts(&mut orders, warp.lane(lane), access, location))
            .collect()
    }

    /// Whether the load of a race may come after the atomic that has changed nothing, whose entry stands behind its
    /// own: it is by a thread that may have observed the atomic, or knows one.
    pub(super) fn may_follow(&self, engine: &mut Engine, race: &Race, atomic: &Access) -> bool {
        let (load, me) = (race.earlier.thread, race.later.thread);
        let (Some(word), Some(scope)) = (self.0.get(&race.location), atomic.order.scope()) else {
            return false;
        };
        let shape = *engine.shape();
        word.looks.len() > MANY
            || word.looks.iter().any(|other| {
                other.thread != me
                    && shape.mutual(Party { thread: me, scope }, other.party())
                    && (other.thread == load || engine.knows(load, other.thread) >= other.first)
            })
    }

    fn enter(
        &mut self,
        engine: &mut Engine,
        me: Thread,
        access: &Access,
        location: Location,
        idle: bool,
    ) {
        let Some(scope) = access.order.scope() else {
            return;
        };
        let now = engine.knows(me, me);
        let idle = idle.then_some(now);
        for (word, start) in words(location, access.bytes) {
            let scalar = (start, access.bytes);
            let Word { looks, wide } = self.0.entry(word).or_default();
            let is_wide = scope >= Scope::Gpu && (looks.is_empty() || *wide == Some(scalar));
            *wide = is_wide.then_some(scalar);
            let same = |of: &Look| (of.thread, of.site, of.scalar) == (me, access.site, scalar);
            match looks.iter().rposition(same) {
                Some(at) => looks[at].idle = idle.or(looks[at].idle),
                None if looks.len() < MOST => looks.push(Look {
                    thread: me,
                    site: access.site,
                    first: now,
                    idle,
                    scope,
                    scalar,
                }),
                None => {}
            }
        }
    }

    fn doubts(
        &self,
        orders: &mut Orders<'_>,
        me: Thread,
        access: &Access,
        location: Location,
    ) -> Vec<Doubt> {
        let shape = *orders.engine.shape();
        let mut doubts = Vec::new();
        for (word, start) in words(location, access.bytes) {
            let scalar = (start, access.bytes);
            let Some(word) = self.0.get(&word) else {
                continue;
            };
            let scope = access.order.scope();
            if word.wide == Some(scalar) && scope >= Some(Scope::Gpu) {
                continue;
            }
            for of in &word.looks {
                let Some(time) = of.idle.filter(|_| of.thread != me) else {
                    continue;
                };
                let mutual = |scope| shape.mutual(of.party(), Party { thread: me, scope });
                let strong = of.scalar == scalar && scope.is_some_and(mutual);
                if strong || orders.engine.knows(me, of.thread) >= time {
                    continue;
                }
                let observes = |other: &Look| {
                    other.thread != of.thread
                        && other.scalar == of.scalar
                        && shape.mutual(of.party(), other.party())
                        && (other.thread == me || orders.knows(me, other.thread) >= other.first)
                };
                doubts.push(Doubt {
                    earlier: of.thread,
                    site: of.site,
                    later: me,
                    observed: match word.looks.len() > MANY {
                        true => of.scope > Scope::Cta || orders.knows_cta(me, of.thread.cta),
                        false => word.looks.iter().any(observes),
                    },
                });
            }
        }
        doubts
    }
}

/// The elements that lanes access.
fn scalars(
    access: &Access,
    lanes: u32,
    locations: impl Fn(u32) -> Location,
) -> impl Iterator<Item = (u32, Location)> {
    let (bytes, elements) = (access.bytes, access.elements);
    super::each(lanes).flat_map(move |lane| {
        let first = locations(lane);
        (0..elements).map(move |element| {
            let step = element * bytes;
            let location = match first {
                Location::Global(address) => Location::Global(address + u64::from(step)),
                Location::Shared { cta, offset } => Location::Shared {
                    cta,
                    offset: offset + step,
                },
            };
            (lane, location)
        })
    })
}

/// The words of some bytes, each with where the bytes start as a number.
fn words(location: Location, bytes: u32) -> impl Iterator<Item = (Location, u64)> {
    const WORD: u64 = 4;
    let start = location.address();
    let end = start + u64::from(bytes.max(1));
    (start / WORD..=(end - 1) / WORD).map(move |word| {
        let location = match location {
            Location::Global(_) => Location::Global(word * WORD),
            Location::Shared { cta, .. } => Location::Shared {
                cta,
                offset: (word * WORD) as u32,
            },
        };
        (location, start)
    })
}
