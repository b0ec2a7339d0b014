//! Races by pair of sites, each with a witness.

use std::collections::HashMap;

use shadow::hb::{
    Cause, Engine, Enough, Flag, Held, LaterAccess, Location, LockOrder, Predicted, Race, Rule,
    Unordered, Warp,
};

use crate::happens_before::each;
use crate::instructions::Instructions;
use crate::progress;
use crate::sides::{Compared, Sides};

/// Pairs of sites kept per launch.
const PAIRS: usize = 4096;

/// Of those, pairs per CTA of which it is looked at each poll whether a flag explains them.
const UNEXPLAINED: usize = 64;

/// What is wrong with two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// A data race.
    Race,
    /// Strong accesses that nothing orders.
    Strong,
    /// Only the order in which locks were taken has ordered them.
    LockOrder,
    /// Only the order of `fence.sc`s has ordered them.
    Fences,
    /// The same, by the order in which atomics have counted, or that.
    Counted,
}

/// A pair of sites that raced, with a witness and how often.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) class: Class,
    pub(crate) race: Race,
    pub(crate) count: u64,
    /// It was more often than that: see [`Pairs::enough`].
    pub(crate) at_least: bool,
    /// Its instructions always came in this order, and a later block of the grid executed the second one.
    pub(crate) ascending: bool,
    /// The lowest and the highest address, or offset in shared memory, where it was.
    pub(crate) span: [u64; 2],
    /// What would have ordered the witness.
    pub(crate) cause: Option<Cause>,
    /// What would have ordered them by a flag that was read after both, with that flag; see [`Engine::flag_read_late`].
    pub(crate) read_late: Option<(Cause, Flag)>,
    /// See [`Engine::precedes_issue`].
    pub(crate) precedes_issue: bool,
    /// By which flag or counter.
    pub(crate) flag: Option<Flag>,
    /// What the earlier and the later thread held.
    pub(crate) locks: [Vec<Held>; 2],
    pub(crate) compared: Compared,
}

/// A race of a pair, while its later access is being made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pair: usize,
    pub(crate) race: Race,
    /// It is the pair's witness.
    witness: bool,
}

/// A pair whose witness has no cause, or one that a flag may take the place of that is read later.
#[derive(Debug)]
struct Unexplained {
    pair: usize,
    race: Race,
    /// See [`Engine::made`].
    made: LaterAccess,
}

/// Races by pair of sites.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) found: Vec<Found>,
    /// Those whose cause has not been looked for.
    fresh: Vec<usize>,
    /// By the CTAs of both sides: those without a cause, which a flag may explain that is read only now.
    unexplained: HashMap<u64, Vec<Unexplained>>,
    /// Where in `found` a pair is.
    index: HashMap<Key, usize>,
    /// Those that found no room.
    pub(crate) dropped: u64,
    /// All races, for an audit.
    pub(crate) every: Option<Vec<Race>>,
    /// Those of the last access, for a replay.
    pub(crate) latest: Option<Vec<Race>>,
}

/// What the races of a pair have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The smaller number first.
    sites: [u32; 2],
    /// In shared memory.
    shared: bool,
    class: Class,
}

fn key(class: Class, location: Location, [a, b]: [u32; 2]) -> Key {
    Key {
        sites: [a.min(b), a.max(b)],
        shared: is_shared(location),
        class,
    }
}

/// How far apart the threads of a race are; more is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    other_cta: bool,
    other_warp: bool,
}

fn apart(race: &Race) -> Distance {
    let (a, b) = (race.earlier.thread, race.later.thread);
    Distance {
        other_cta: a.cta != b.cta,
        other_warp: a.warp != b.warp,
    }
}

/// Whether a later block makes the second access.
fn is_ascending(race: &Race) -> bool {
    race.earlier.thread.cta < race.later.thread.cta
}

pub(crate) fn is_shared(location: Location) -> bool {
    matches!(location, Location::Shared { .. })
}

impl Found {
    /// What it has in common with races of the same pair.
    pub(crate) fn key(&self) -> Key {
        let Race { earlier, later, .. } = self.race;
        key(self.class, self.race.location, [earlier.site, later.site])
    }

    /// The pair has raced again.
    fn ascends(&mut self, race: &Race) {
        self.ascending &= is_ascending(race) && race.earlier.site == self.race.earlier.site;
    }

    fn spans(&mut self, location: Location) {
        let [low, high] = self.span;
        self.span = [low.min(location.address()), high.max(location.address())];
    }
}

impl Pairs {
    /// Counts a race, and keeps it if it is the first of its pair, or says more than that. `stores`:
    /// both sides are. Gives the race back if its values are to be looked at.
    pub(crate) fn keep(&mut self, class: Class, race: Race, stores: bool) -> Option<Open> {
        if let Some(every) = self.every.as_mut().filter(|_| class == Class::Race) {
            every.push(race);
        }
        if let Some(latest) = &mut self.latest {
            latest.push(race);
        }
        let key = key(class, race.location, [race.earlier.site, race.later.site]);
        let (pair, witness) = match self.index.get(&key) {
            Some(&at) => {
                self.found[at].count += 1;
                self.found[at].spans(race.location);
                self.found[at].ascends(&race);
                // What orders threads that are further apart orders the others too. Where a copy has not been waited
                // for, no barrier is enough.
                let rank = |race: &Race| (race.rule == Rule::Asynchronous, apart(race));
                let more = rank(&race) > rank(&self.found[at].race);
                if more {
                    self.witness(at, race);
                }
                (at, more)
            }
            None if self.found.len() < PAIRS => {
                let at = self.found.len();
                progress::found();
                self.index.insert(key, at);
                self.fresh.push(at);
                self.found.push(Found {
                    class,
                    race,
                    count: 1,
                    at_least: false,
                    ascending: is_ascending(&race),
                    span: [race.location.address(); 2],
                    cause: None,
                    read_late: None,
                    precedes_issue: false,
                    flag: None,
                    locks: Default::default(),
                    compared: Compared::new(stores),
                });
                (at, true)
            }
            None => {
                self.dropped += 1;
                return None;
            }
        };
        let wanted = witness || self.found[pair].compared.wants(&race);
        wanted.then_some(Open {
            pair,
            race,
            witness,
        })
    }

    /// Whether a data race, which is to be kept, says all that is to be known of the accesses by its
    /// earlier instruction to the word, of which there are many. If so the others are not counted.
    ///
    /// The pair has a witness of different CTAs then. And if both are stores, it is known that they do
    /// not always write the same, or all of the many have written the same: each was compared with one
    /// of those before it.
    pub(crate) fn enough(&mut self, race: &Race) -> Enough {
        let known = |sites| {
            self.index
                .get(&key(Class::Race, race.location, sites))
                .copied()
        };
        let (earlier, later) = (race.earlier.site, race.later.site);
        let uniform = || {
            let among = known([earlier; 2]).map(|at| &self.found[at].compared);
            among.is_some_and(|compared| !compared.differs())
        };
        let pair = known([earlier, later]).filter(|&at| {
            let Found { race, compared, .. } = &self.found[at];
            apart(race).other_cta && (!compared.matters() || uniform())
        });
        match pair {
            Some(at) if race.of_many && self.every.is_none() => {
                self.found[at].at_least = true;
                self.found[at].ascends(race);
                self.found[at].spans(race.location);
                Enough::OfSite
            }
            _ => Enough::Never,
        }
    }

    fn witness(&mut self, pair: usize, race: Race) {
        self.found[pair].race = race;
        self.found[pair].compared.values = Default::default();
        self.fresh.push(pair);
    }

    /// Keeps what is no data race; its cause and locks are known.
    pub(crate) fn keep_predicted(
        &mut self,
        class: Class,
        predicted: Predicted,
        cause: Option<Cause>,
        flag: Option<Flag>,
    ) {
        let open = self.keep(class, predicted.race, false);
        if let Some(open) = open.filter(|open| open.witness) {
            let found = &mut self.found[open.pair];
            (found.locks, found.cause, found.flag) = (predicted.locks, cause, flag);
        }
        self.fresh.clear();
    }

    /// Keeps an unordered strong conflict, at the end of a launch.
    pub(crate) fn keep_strong(&mut self, found: Unordered) {
        let Unordered {
            predicted,
            cause,
            flag,
            count,
            ..
        } = found;
        let race = predicted.race;
        let before = self.found.len();
        self.keep_predicted(Class::Strong, predicted, cause, flag);
        let same = |of: &&mut Found| of.class == Class::Strong && of.race == race;
        if self.found.len() > before
            && let Some(of) = self.found.iter_mut().rev().find(same)
        {
            of.count = count;
        }
    }

    /// The values of a race are known, as far as they ever will.
    pub(crate) fn settle(&mut self, open: &Open, sides: &Sides<'_>) {
        let found = &mut self.found[open.pair];
        let differs = found.compared.compare(&open.race, sides);
        // Values that differ say more.
        let says_more = differs && apart(&open.race) >= apart(&found.race);
        if says_more {
            self.witness(open.pair, open.race);
        }
        if says_more || open.witness {
            self.found[open.pair].compared.values = sides.both(&open.race);
        }
    }

    /// Looks for the causes of what was found just now. The counter of a barrier of the grid is no flag.
    pub(crate) fn explain(
        &mut self,
        engine: &Engine,
        lock_order: &LockOrder,
        instructions: &Instructions,
    ) {
        for at in self.fresh.drain(..) {
            let found = &mut self.found[at];
            found.precedes_issue = engine.precedes_issue(&found.race);
            found.flag = engine.flag(&found.race);
            let sites = found.flag.map(|flag| [flag.written, flag.read]);
            let mut sites = sites.into_iter().flatten().flatten();
            found.cause = match sites.any(|site| instructions.is_of_grid_barrier(site)) {
                true => None,
                false => engine.cause(&found.race),
            };
            found.flag = found.flag.filter(|_| found.cause.is_some());
            found.locks = lock_order.locks_of(&found.race);
            let made = engine.made(&found.race);
            found.read_late = None;
            // A flag that was written too early may not be the one that was to be waited for.
            if let (None | Some(Cause::Early), Some(made)) = (found.cause, made) {
                let race = found.race;
                for side in [race.earlier, race.later] {
                    let of_cta = self.unexplained.entry(side.thread.cta).or_default();
                    if of_cta.len() < UNEXPLAINED {
                        of_cta.push(Unexplained {
                            pair: at,
                            race,
                            made,
                        });
                    }
                }
            }
        }
    }

    /// Lanes have read what a loop waits for: perhaps a flag that an access of their CTA should have waited for.
    pub(crate) fn waited(&mut self, engine: &Engine, warp: Warp, lanes: u32) {
        let Some(unexplained) = self.unexplained.get_mut(&warp.cta) else {
            return;
        };
        unexplained.retain(|of| {
            let found = &mut self.found[of.pair];
            if found.race != of.race || found.read_late.is_some() {
                return false;
            }
            let mut readers = each(lanes).map(|lane| warp.lane(lane));
            let late = readers.find_map(|reader| engine.flag_read_late(&of.race, of.made, reader));
            found.read_late = late;
            late.is_none()
        });
        if unexplained.is_empty() {
            self.unexplained.remove(&warp.cta);
        }
    }
}
