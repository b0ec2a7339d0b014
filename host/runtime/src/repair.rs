//! What the text of a module says of two accesses that raced: where a barrier would order them if they are of one block,
//! whether both belong to updates that commute, and whether both store the same constant.
//!
//! The answer comes from the control flow of the function that holds both accesses.
//! A barrier must stand on every path from the one access to the other that passes none, and outside of
//! code that only some threads of the block execute.
//! The races of a launch are looked at together: of several places the one that orders most of them is taken, so that
//! races which one barrier repairs are known to have one cause.

mod arrivals;
mod counter;
mod divergence;
mod flow;
mod locked;
mod points;
mod stored;
mod update;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ptx::ast::{Function, Module};
use ptx::dataflow::Dataflow;

use self::flow::{Flow, RequiredOrder};
use self::points::Chosen;
use self::update::Updates;
use crate::log::{self, Around, Cause, Level, Repair, Space, Update};

/// Larger functions are not looked at.
const STATEMENTS: usize = 20_000;

/// The functions of a module that had races.
#[derive(Debug)]
pub(crate) struct Repairs {
    module: Arc<Module>,
    known: HashMap<Pair, Known>,
    /// What has been found to order races of a function so far, by the line it begins on.
    chosen: HashMap<u32, Chosen>,
}

/// Two accesses: the lines of the earlier and the later one, how far apart their threads are, in which memory, and the
/// lines at which the flag between them was written and read, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pair {
    pub(crate) lines: [u32; 2],
    pub(crate) level: Level,
    pub(crate) space: Space,
    pub(crate) flag_written: Option<u32>,
    /// The thread of the earlier access has written that flag.
    pub(crate) own_flag: bool,
    pub(crate) flag_read: Option<u32>,
}

impl Pair {
    /// What can order the two, where a barrier of the warp is not enough. Shared memory is that of a cluster at most.
    fn order(self) -> RequiredOrder {
        match (self.level, self.space) {
            (Level::Grid, Space::Shared) => RequiredOrder::Cluster,
            (Level::Grid, Space::Global) => RequiredOrder::Grid,
            (Level::Cta | Level::Warp, _) => RequiredOrder::Block,
        }
    }
}

/// What the text says of two accesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// What orders them; none when they stand in different functions.
    pub(crate) repair: Option<Repair>,
    /// The accesses are an update that no thread repeats. It has to become atomic; waiting at an mbarrier that one side
    /// comes by would order two threads only.
    is_one_update: bool,
    /// Barriers around each of them; empty as well then.
    pub(crate) around: Vec<Around>,
    /// They are stores of the same constant.
    pub(crate) same_value: bool,
}

impl Known {
    /// Adds it to a race of the two.
    pub(crate) fn put_in(self, race: &mut log::Race) {
        let waits = matches!(race.cause, Some(Cause::NoWait | Cause::NoArrival));
        if self.is_one_update && waits {
            (race.cause, race.flag) = (None, None);
        }
        race.repair = self.repair;
        race.around = self.around;
        race.same_value |= self.same_value && race.why == log::Why::Unordered;
    }
}

impl Repairs {
    /// Of a module's own text, without checks.
    pub(crate) fn new(module: Arc<Module>) -> Self {
        Self {
            module,
            known: HashMap::new(),
            chosen: HashMap::new(),
        }
    }

    /// Whether barriers of the block stand on all paths from the first of two lines of a function to the second.
    pub(crate) fn are_parted(&self, lines: [u32; 2]) -> bool {
        within(&self.module, lines).is_some_and(|(function, way)| {
            let body = function.body.as_ref();
            let flow = body.and_then(|body| Flow::new(&self.module, function, body));
            flow.is_some_and(|flow| !flow.reaches(way, &[], RequiredOrder::Block))
        })
    }

    /// What there is to know of pairs of accesses, those of one launch.
    pub(crate) fn of(&mut self, pairs: &[Pair]) -> Vec<Known> {
        let new: Vec<Pair> = pairs
            .iter()
            .copied()
            .filter(|pair| !self.known.contains_key(pair))
            .collect();
        let mut functions: BTreeMap<u32, Vec<Found>> = BTreeMap::new();
        for pair in new {
            let known = Known {
                repair: None,
                is_one_update: false,
                around: Vec::new(),
                same_value: stored::same(&self.module, pair.lines),
            };
            self.known.insert(pair, known);
            if let Some((function, sites)) = within(&self.module, pair.lines) {
                let all = functions.entry(self.module.line_column(function.span.start).0);
                all.or_default().push(Found { pair, sites });
            }
        }
        let racing: HashSet<u32> = self.known.keys().flat_map(|pair| pair.lines).collect();
        for (line, pairs) in functions {
            let chosen = self.chosen.entry(line).or_default();
            let repairs = together(&self.module, line, &pairs, chosen, &racing);
            for (found, (repair, around, is_one_update)) in pairs.iter().zip(repairs) {
                if let Some(known) = self.known.get_mut(&found.pair) {
                    known.repair = Some(repair);
                    known.is_one_update = is_one_update;
                    known.around = around.into();
                }
            }
        }
        let known = pairs.iter().filter_map(|pair| self.known.get(pair));
        known.cloned().collect()
    }
}

/// The function that two lines are in, with the accesses there.
fn within(module: &Module, lines: [u32; 2]) -> Option<(&Function, [usize; 2])> {
    let (function, body, sites) = module.functions().find_map(|function| {
        let body = function.body.as_ref()?;
        let at = |line| {
            let mut all = body.instructions();
            let found = all.find(|(_, of)| module.line_column(of.span.start).0 == line)?;
            Some(found.0)
        };
        Some((function, body, [at(lines[0])?, at(lines[1])?]))
    })?;
    (body.statements.len() <= STATEMENTS).then_some((function, sites))
}

/// A pair of accesses, by the statements that they are in the function that has both.
struct Found {
    pair: Pair,
    sites: [usize; 2],
}

/// The repairs for pairs of accesses in the function that begins on a line, and whether they are one update that no thread
/// repeats. `chosen` has what orders other pairs, `racing`
/// the lines of all races.
fn together(
    module: &Module,
    line: u32,
    pairs: &[Found],
    chosen: &mut Chosen,
    racing: &HashSet<u32>,
) -> Vec<(Repair, [Around; 2], bool)> {
    let mut functions = module.functions();
    let of_line = |of: &&Function| module.line_column(of.span.start).0 == line;
    let found = functions.find(of_line).and_then(|function| {
        let body = function.body.as_ref()?;
        Some((function, Flow::new(module, function, body)?))
    });
    let Some((function, flow)) = found else {
        return Vec::new();
    };
    let dataflow = Dataflow::new(flow.body);
    let updates = Updates::new(flow.body, &flow.cfg, &dataflow);
    let places = chosen.order(&flow, pairs);
    let update = |sites| {
        let racing = |at: usize| racing.contains(&flow.line(at));
        let common = updates.common(sites, racing)?;
        // If many threads read, and something else decides which of them writes, there is no update.
        let store = common.stores[0];
        let loads = updates.loads(store);
        let parts = |load: &usize| {
            let decided = |branch| { loads.iter() }.any(|&of| updates.decides_branch(of, branch));
            let mut branches = flow.parting(store, *load);
            branches.any(|branch| !decided(branch))
        };
        // The other side of an update may be an atomic.
        let parted = |at: &usize| match loads.contains(at) {
            true => parts(at),
            false => !common.stores.contains(at) && loads.iter().any(parts),
        };
        if common.is_of_any() && sites.iter().any(parted) {
            return None;
        }
        let stores = common.stores.iter();
        Some(Update {
            call: common.call.to_owned(),
            stores: stores.clone().map(|&at| flow.source(at)).collect(),
            lines: stores.map(|&at| flow.line(at)).collect(),
            with: common.with.iter().map(|&at| flow.place(at)).collect(),
        })
    };
    let (polls, spins) = (ptx::polls(module, function), ptx::spins(module, function));
    let takes = ptx::takes(module, function);
    let repairs = pairs.iter().zip(places).map(|(found, places)| {
        let Found { pair, sites } = found;
        let around = sites.map(|at| flow.around(at));
        let of_block = pair.order() == RequiredOrder::Block;
        // A barrier that all threads pass ends the wait too.
        let has_barrier = of_block && !places.points.is_empty();
        let flag_at = pair.flag_written.and_then(|line| flow.on_line(line));
        let ways = [*sites, [sites[1], sites[0]]];
        let open = |order| ways.iter().any(|&way| flow.reaches(way, &[], order));
        let repair = Repair {
            update: update(*sites),
            points: places.points,
            of_warps: places.of_warps,
            conditional: flow
                .divergent(sites[0], pair.order())
                .or_else(|| flow.divergent(sites[1], pair.order())),
            relaxed_arrival: flow.relaxed_arrival(),
            counted: match pair.order() {
                RequiredOrder::Grid => counter::between(&flow, *sites),
                _ => None,
            },
            passed: of_block
                .then(|| {
                    ways.into_iter().find_map(|way| {
                        let open = flow.reaches(way, &[], RequiredOrder::Block);
                        // A branch that the race itself decides goes another way once that is repaired.
                        let decided =
                            |branch| sites.iter().any(|&at| updates.decides_branch(at, branch));
                        open.then(|| flow.passed(way, |branch| !decided(branch)))
                            .flatten()
                    })
                })
                .flatten(),
            unacquired: pair
                .flag_read
                .is_some_and(|line| flow.unacquired(line, sites[1], pair.level)),
            early: flag_at.is_some_and(|flag| flow.precedes(flag, sites[0])),
            late: pair.own_flag && flag_at.is_some_and(|flag| flow.precedes(sites[0], flag)),
            polled: ways.iter().any(|[read, write]| {
                flow.store(*write).is_some_and(|op| {
                    let spins = spins.contains(read) && !has_barrier;
                    spins || polls.contains(read) && !op.is_strong()
                })
            }),
            unwaited: of_block
                .then(|| arrivals::unwaited(&flow, *sites))
                .flatten(),
            early_arrival: of_block.then(|| arrivals::early(&flow, *sites)).flatten(),
            waits: places.waits,
            completes: sites.iter().find_map(|&at| flow.completes(at)),
            between_calls: of_block
                && !function.entry
                && open(RequiredOrder::Nothing)
                && !open(RequiredOrder::Block),
            is_straight: flow.precedes(sites[0], sites[1]) || flow.precedes(sites[1], sites[0]),
            only_back: of_block && flow.only_back(*sites),
            unfinished: of_block && flow.unfinished(*sites),
            locked: sites.map(|at| locked::at(&flow, &takes, at, pair.level)),
        };
        let is_one_update =
            repair.update.is_some() && !flow.reaches([sites[0]; 2], &[], RequiredOrder::Nothing);
        (repair, around, is_one_update)
    });
    let mut repairs: Vec<(Repair, [Around; 2], bool)> = repairs.collect();
    // If another race needs the same barrier anyway, that barrier also stands on the path that skips this one.
    let places = |of: &Repair| -> Vec<u32> { of.points.iter().map(|point| point.place).collect() };
    let needed = repairs.iter().filter(|(of, ..)| of.passed.is_none());
    let needed: Vec<u32> = needed.flat_map(|(of, ..)| places(of)).collect();
    for (repair, ..) in &mut repairs {
        let places = places(repair);
        if !places.is_empty() && places.iter().all(|place| needed.contains(place)) {
            repair.passed = None;
        }
    }
    repairs
}
