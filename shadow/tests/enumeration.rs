//! All short traces on one granule: the cell against unbounded vector clocks.
//!
//! The claim: without strong loads, the cell agrees with the clocks on every access up to and
//! including the first race on a granule. With strong loads it may leave the first race undecided,
//! which is counted, when the granule's class is mixed. After the first race, or an undecided
//! access, it may miss others.
//! Never does it report a race that is none; also not with epochs so narrow that they saturate at
//! once, where a first race is reported or counted as undecided, and not when two granules fight
//! over the cell.
//! Traces are walked as a tree, so that a shared beginning is computed once.

use crate::oracle::{Oracle, ThreadId};
use shadow::plan::{Identity, Widths};
use shadow::rule::{self, Shifts};

const WIDTHS: Widths = Widths {
    grid: 0,
    tag: 0,
    cta: 1,
    barrier: 4,
    warp: 4,
};
/// The first barrier saturates them.
const NARROW: Widths = Widths {
    barrier: 1,
    warp: 1,
    ..WIDTHS
};
/// Room to distinguish two granules of one cell.
const TAGGED: Widths = Widths { tag: 1, ..WIDTHS };

/// Fields of a cell, and how a launch uses them.
struct Cells<'a> {
    widths: &'a Widths,
    shifts: Shifts,
}

fn cells(widths: &Widths) -> Cells<'_> {
    let shifts = widths.shifts();
    Cells { widths, shifts }
}

fn shared_cells(widths: &Widths) -> Cells<'_> {
    let shifts = widths.shared_shifts();
    Cells { widths, shifts }
}

/// What is known of an access without the cell.
#[derive(Clone, Copy)]
struct Truth {
    races: bool,
    /// The cell stands for some of the accesses only: an earlier one races, or was not decided.
    blurred: bool,
}

#[derive(Clone, Copy)]
enum Event {
    /// Thread, kind, granule.
    Access(usize, u32, usize),
    GridBarrier,
    CtaBarrier(u64),
    WarpBarrier(u64, u32),
}

/// What a walk has seen.
#[derive(Debug, Default)]
struct Tally {
    accesses: u64,
    races: u64,
    first_races: u64,
    undecided: u64,
    undecided_races: u64,
    evictions: u64,
    later_races: u64,
    later_misses: u64,
    settled_late: u64,
}

impl Tally {
    /// How many of the first races strong loads (or saturated epochs) leave undecided. Of the first
    /// races, not of the accesses: most accesses of the tree come after one.
    fn share_undecided(&self) -> f64 {
        self.undecided_races as f64 / self.first_races as f64
    }
}

/// What has happened to each granule that may be in the cell.
type Oracles<'a> = [Oracle<'a>; 2];

struct Walk<'a> {
    thread_ids: &'a [ThreadId],
    events: &'a [Event],
    shifts: Shifts,
    tally: Tally,
    /// What the cell has held, where accesses may be settled by that too; empty where not.
    held: Vec<u64>,
}

impl Walk<'_> {
    fn step(&mut self, cell: u64, me: &[u64], oracles: &mut Oracles<'_>, blurred: bool, left: u32) {
        if left == 0 {
            return;
        }
        if !self.held.is_empty() {
            self.held.push(cell);
        }
        for index in 0..self.events.len() {
            match self.events[index] {
                Event::Access(thread, kind, granule) => {
                    // Each CTA has its own shared memory.
                    let granule = match self.shifts.in_turn {
                        true => self.thread_ids[thread].cta as usize,
                        false => granule,
                    };
                    let races = oracles[granule].access(thread, kind);
                    let tag = match self.shifts.in_turn {
                        true => 0,
                        false => (granule as u64).checked_shl(self.shifts.tag).unwrap_or(0),
                    };
                    let me_here = me[thread] | tag;
                    let outcome = rule::access(cell, me_here, kind, &self.shifts);
                    let truth = Truth { races, blurred };
                    self.judge(outcome.verdict, truth);
                    let settled = match self.shifts.in_turn {
                        true => passes_fast_shared(cell, me_here, kind, &self.shifts),
                        false => passes_fast(cell, me_here, kind, &self.shifts),
                    };
                    third_lane(cell, me_here, kind, &self.shifts);
                    if settled {
                        assert_eq!((outcome.next, outcome.verdict), (cell, rule::OK));
                    }
                    let load = kind == rule::WEAK_LOAD;
                    if load && rule::only_loads(cell, me_here, &self.shifts) {
                        let next = rule::join_loads(cell, me_here, &self.shifts);
                        assert_eq!((outcome.next, outcome.verdict), (next, rule::OK));
                    }
                    let beside = rule::compared_by_load(&self.shifts);
                    let adds = rule::added_by_load(cell ^ me_here, beside);
                    if load && adds != 0 {
                        assert_eq!((outcome.next, outcome.verdict), (cell | adds, rule::OK));
                    }
                    if rule::is_covered(cell, me_here, kind)
                        || claims_before_barrier(cell, me_here, kind, &self.shifts)
                    {
                        let alone = me_here | rule::classes(kind);
                        assert_eq!((outcome.next, outcome.verdict), (alone, rule::OK));
                    }
                    // What one access may claim in place stands for one access, however it came about.
                    let alone = me_here | rule::classes(kind);
                    if rule::may_be_claimed(outcome.next) {
                        assert!([cell, alone].contains(&outcome.next));
                    }
                    let late = blurred || races || outcome.verdict != rule::OK;
                    self.step(outcome.next, me, oracles, late, left - 1);
                    self.settle_late(cell, me_here, kind, truth, |walk, late| {
                        walk.step(cell, me, oracles, late, left - 1);
                    });
                    oracles[granule].undo();
                }
                Event::GridBarrier => {
                    self.barrier(
                        cell,
                        me,
                        oracles,
                        blurred,
                        left,
                        |_| true,
                        pass_grid_barrier,
                    );
                }
                Event::CtaBarrier(cta) => {
                    let joins = |thread_id: &ThreadId| thread_id.cta == cta;
                    let pass = rule::pass_barrier;
                    self.barrier(cell, me, oracles, blurred, left, joins, pass);
                }
                Event::WarpBarrier(cta, warp) => {
                    let joins =
                        |thread_id: &ThreadId| thread_id.cta == cta && thread_id.warp == warp;
                    let pass = rule::pass_warp_barrier;
                    self.barrier(cell, me, oracles, blurred, left, joins, pass);
                }
            }
        }
        if !self.held.is_empty() {
            self.held.pop();
        }
    }

    /// The access as it is if the device's fast path finds what the cell held before in its
    /// multiprocessor's cache, and settles the access by that.
    fn settle_late(
        &mut self,
        cell: u64,
        me: u64,
        kind: u32,
        Truth { races, blurred }: Truth,
        mut go_on: impl FnMut(&mut Self, bool),
    ) {
        let settles = |&held: &u64| held != cell && passes_fast(held, me, kind, &self.shifts);
        if self.held.iter().any(settles) {
            assert!(!races || blurred, "missed the first race");
            self.tally.settled_late += u64::from(!blurred);
            go_on(self, blurred || races);
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the state of a walk, and what is special about the barrier"
    )]
    fn barrier(
        &mut self,
        cell: u64,
        me: &[u64],
        oracles: &Oracles<'_>,
        blurred: bool,
        left: u32,
        joins: impl Fn(&ThreadId) -> bool,
        pass: fn(u64, &Shifts) -> u64,
    ) {
        let mut after = oracles.clone();
        for oracle in &mut after {
            oracle.barrier(&joins);
        }
        let mut passed = me.to_vec();
        for (me, thread_id) in passed.iter_mut().zip(self.thread_ids) {
            if joins(thread_id) {
                *me = pass(*me, &self.shifts);
            }
        }
        self.step(cell, &passed, &mut after, blurred, left - 1);
    }

    fn judge(&mut self, verdict: u32, Truth { races, blurred }: Truth) {
        let conflict = (rule::CONFLICT_GRID..=rule::CONFLICT_WARP).contains(&verdict);
        let undecided = verdict == rule::UNDECIDED;
        let tally = &mut self.tally;
        tally.accesses += 1;
        tally.races += u64::from(races);
        tally.evictions += u64::from(verdict == rule::EVICTED);
        assert!(races || !conflict, "false alarm");
        if blurred {
            tally.later_races += u64::from(races);
            tally.later_misses += u64::from(races && !conflict);
        } else {
            // One of two CTAs that use a slot of shared memory at a time has lost its cell.
            let lost = self.shifts.in_turn && verdict == rule::EVICTED;
            let reported = conflict || undecided || lost;
            assert!(!races || reported, "missed the first race");
            tally.first_races += u64::from(races);
            tally.undecided += u64::from(undecided);
            tally.undecided_races += u64::from(undecided && races);
        }
    }
}

/// One grid barrier more than before.
fn pass_grid_barrier(me: u64, shifts: &Shifts) -> u64 {
    let passed = me.checked_shr(shifts.grid).unwrap_or(0);
    rule::pass_barrier_of_grid(me, passed + 1, 1, shifts)
}

/// The device's fast path (`__cudarun_fast`), which settles an access without asking the rule.
fn passes_fast(cell: u64, me: u64, kind: u32, shifts: &Shifts) -> bool {
    let everyones = (cell ^ me) & rule::compared(shifts) == rule::shared(kind);
    everyones || passes_fast_shared(cell, me, kind, shifts)
}

/// The device's claim of a cell of the thread's own CTA from before its last barrier
/// (`device::Claim`), as it is inlined.
fn claims_before_barrier(cell: u64, me: u64, kind: u32, shifts: &Shifts) -> bool {
    let differs = cell ^ me;
    let alike = differs & rule::compared_before_barrier(kind) == rule::claimed_before_barrier(kind);
    let (from, end) = (1 << shifts.barrier, rule::up(1, shifts.cta));
    let span = match shifts.grid {
        64 => end.wrapping_sub(from),
        _ => 0,
    };
    alike && differs.wrapping_sub(from) < span
}

/// Where several lanes of a warp do the same, the device enters two of them: after a second without
/// a finding, the rule finds nothing and changes nothing for a third. (After a finding, the cell
/// stands for some of the accesses anyway.)
fn third_lane(cell: u64, me: u64, kind: u32, shifts: &Shifts) {
    let first = rule::access(cell, me, kind, shifts);
    // No thread of a walk has these lanes.
    let second = rule::access(first.next, me ^ 8, kind, shifts);
    let third = rule::access(second.next, me ^ 16, kind, shifts);
    if second.verdict == rule::OK {
        let outcome = (third.next, third.verdict);
        assert_eq!(outcome, (second.next, rule::OK), "{cell:#x} {me:#x} {kind}");
    }
}

/// The device's fast path for shared memory (`__cudarun_fast_shared`).
fn passes_fast_shared(cell: u64, me: u64, kind: u32, shifts: &Shifts) -> bool {
    let differs = cell ^ me;
    let compared = rule::compared_by_warps(shifts);
    differs & !rule::own(kind) == rule::classes(kind)
        || differs & compared == rule::shared_by_warps(kind)
        || differs & rule::COMPARED_BY_LANES == rule::shared_by_lanes(kind)
}

fn walk(
    name: &str,
    cells: Cells<'_>,
    thread_ids: &[ThreadId],
    kinds: &[u32],
    barriers: &[Event],
    length: u32,
) -> Tally {
    walk_back(name, cells, thread_ids, kinds, barriers, length, false)
}

/// Likewise; with `late`, accesses may also be settled by what the cell has held before.
#[allow(clippy::print_stderr, reason = "the figures, for `--nocapture`")]
fn walk_back(
    name: &str,
    cells: Cells<'_>,
    thread_ids: &[ThreadId],
    kinds: &[u32],
    barriers: &[Event],
    length: u32,
    late: bool,
) -> Tally {
    let Cells { widths, shifts } = cells;
    let mut events = barriers.to_vec();
    for granule in 0..1 << widths.tag {
        for thread in 0..thread_ids.len() {
            events.extend(
                kinds
                    .iter()
                    .map(|&kind| Event::Access(thread, kind, granule)),
            );
        }
    }
    let identity = |thread_id: &ThreadId| Identity {
        generation: 1,
        cta: thread_id.cta,
        warp: thread_id.warp,
        lane: thread_id.lane,
        ..Identity::default()
    };
    let me: Vec<u64> = thread_ids
        .iter()
        .map(|thread_id| identity(thread_id).pack(widths))
        .collect();
    let mut walk = Walk {
        thread_ids,
        events: &events,
        shifts,
        tally: Tally::default(),
        held: if late { vec![0] } else { Vec::new() },
    };
    let mut oracles = [Oracle::new(thread_ids), Oracle::new(thread_ids)];
    walk.step(0, &me, &mut oracles, false, length);
    eprintln!("{name}: {:?}", walk.tally);
    walk.tally
}

const fn thread_id(cta: u64, warp: u32, lane: u32) -> ThreadId {
    ThreadId { cta, warp, lane }
}

/// Two CTAs of two warps.
const WARPS: [ThreadId; 4] = [
    thread_id(0, 0, 0),
    thread_id(0, 1, 0),
    thread_id(1, 0, 0),
    thread_id(1, 1, 0),
];
/// Two lanes of a warp, another warp, another CTA.
const LANES: [ThreadId; 4] = [
    thread_id(0, 0, 0),
    thread_id(0, 0, 1),
    thread_id(0, 1, 0),
    thread_id(1, 0, 0),
];
/// One CTA of two warps of two lanes.
const ONE_CTA: [ThreadId; 4] = [
    thread_id(0, 0, 0),
    thread_id(0, 0, 1),
    thread_id(0, 1, 0),
    thread_id(0, 1, 1),
];

/// The barriers of [`WARPS`].
const CTA_BARRIERS: [Event; 2] = [Event::CtaBarrier(0), Event::CtaBarrier(1)];
/// The barriers of [`LANES`] and [`ONE_CTA`].
const ALL_BARRIERS: [Event; 3] = [
    Event::CtaBarrier(0),
    Event::WarpBarrier(0, 0),
    Event::WarpBarrier(0, 1),
];

const KINDS: [u32; 4] = [
    rule::WEAK_LOAD,
    rule::WEAK_STORE,
    rule::STRONG_WRITE_GPU,
    rule::STRONG_WRITE_CTA,
];
const ALL_KINDS: [u32; 6] = [0, 1, 2, 3, 4, 5];

/// How many accesses the tree has: those to choose from per event, all events, the length.
fn accesses(choices: u64, events: u64, length: u32) -> u64 {
    choices * (events.pow(length) - 1) / (events - 1)
}

#[test]
fn six_events_of_two_ctas_with_two_warps() {
    let tally = walk("warps", cells(&WIDTHS), &WARPS, &KINDS, &CTA_BARRIERS, 6);
    assert_eq!(tally.accesses, accesses(16, 18, 6));
    // Here and below: the figures that docs/cell.md gives.
    assert_eq!(
        (tally.later_misses, tally.later_races),
        (8_387_360, 29_928_448)
    );
    assert_eq!(tally.undecided, 0);
}

#[test]
fn five_events_of_all_kinds() {
    let tally = walk(
        "all kinds",
        cells(&WIDTHS),
        &WARPS,
        &ALL_KINDS,
        &CTA_BARRIERS,
        5,
    );
    assert_eq!(tally.accesses, accesses(24, 26, 5));
    assert_eq!(
        (tally.later_misses, tally.later_races),
        (2_054_048, 8_165_152)
    );
    assert_eq!(tally.undecided, 144_768);
    assert!((0.05..0.10).contains(&tally.share_undecided()), "{tally:?}");
}

#[test]
fn five_events_of_lanes_and_warp_barriers() {
    for (name, thread_ids, undecided) in [
        ("lanes", LANES, 0.10..0.11),
        ("one CTA", ONE_CTA, 0.22..0.23),
    ] {
        let tally = walk(
            name,
            cells(&WIDTHS),
            &thread_ids,
            &ALL_KINDS,
            &ALL_BARRIERS,
            5,
        );
        assert_eq!(tally.accesses, accesses(24, 27, 5));
        assert!(undecided.contains(&tally.share_undecided()), "{tally:?}");
        let tally = walk(name, cells(&WIDTHS), &thread_ids, &KINDS, &ALL_BARRIERS, 5);
        assert_eq!(tally.accesses, accesses(16, 19, 5));
        assert_eq!(tally.undecided, 0);
    }
}

#[test]
fn settled_by_what_the_cell_held_before() {
    for (name, thread_ids, barriers) in [
        ("late, warps", WARPS, &CTA_BARRIERS[..]),
        ("late, lanes", LANES, &ALL_BARRIERS),
        ("late, one CTA", ONE_CTA, &ALL_BARRIERS),
    ] {
        for kinds in [&KINDS[..], &ALL_KINDS] {
            let cells = cells(&WIDTHS);
            let tally = walk_back(name, cells, &thread_ids, kinds, barriers, 5, true);
            assert!(tally.settled_late > 1_000, "{tally:?}");
        }
    }
}

#[test]
fn five_events_with_saturated_epochs() {
    for (name, thread_ids) in [("saturated", LANES), ("saturated, one CTA", ONE_CTA)] {
        let tally = walk(
            name,
            cells(&NARROW),
            &thread_ids,
            &ALL_KINDS,
            &ALL_BARRIERS,
            5,
        );
        assert_eq!(tally.accesses, accesses(24, 27, 5));
        assert!(tally.undecided > 0, "{tally:?}");
    }
}

#[test]
fn five_events_on_two_granules_of_one_cell() {
    let tally = walk(
        "two granules",
        cells(&TAGGED),
        &WARPS,
        &KINDS,
        &CTA_BARRIERS,
        5,
    );
    assert_eq!(tally.accesses, accesses(32, 34, 5));
    assert!(tally.evictions > tally.accesses / 4, "{tally:?}");
}

/// The barriers of [`WARPS`], and one of the whole grid.
const GRID_BARRIERS: [Event; 3] = [
    Event::GridBarrier,
    Event::CtaBarrier(0),
    Event::CtaBarrier(1),
];

#[test]
fn five_events_with_barriers_of_the_grid() {
    let wide = Widths { grid: 4, ..WIDTHS };
    for (name, widths) in [("grid", wide), ("grid, tagged", Widths { tag: 1, ..wide })] {
        let cells = cells(&widths);
        let tally = walk(name, cells, &WARPS, &KINDS, &GRID_BARRIERS, 5);
        let choices = 16 << widths.tag;
        assert_eq!(tally.accesses, accesses(choices, choices + 3, 5));
        // Without strong loads, every first race is reported.
        assert_eq!(tally.undecided, 0);
    }
    // The first barrier of the grid uses up the epochs.
    let narrow = Widths { grid: 1, ..WIDTHS };
    let cells = cells(&narrow);
    let tally = walk("grid, saturated", cells, &WARPS, &KINDS, &GRID_BARRIERS, 5);
    assert!(tally.undecided > 0, "{tally:?}");
}

/// The kinds that shared memory knows: inside a CTA every scope is wide.
const SHARED_KINDS: [u32; 4] = [
    rule::WEAK_LOAD,
    rule::STRONG_LOAD_GPU,
    rule::STRONG_WRITE_GPU,
    rule::WEAK_STORE,
];

#[test]
fn five_events_in_shared_memory() {
    for (name, widths) in [("shared", WIDTHS), ("shared, saturated", NARROW)] {
        let cells = shared_cells(&widths);
        let tally = walk(name, cells, &ONE_CTA, &SHARED_KINDS, &ALL_BARRIERS, 5);
        assert_eq!(tally.accesses, accesses(16, 19, 5));
        assert_eq!(tally.evictions, 0);
    }
    let widths = Widths { grid: 4, ..WIDTHS };
    for (name, thread_ids, evictions) in [
        ("shared, grid", ONE_CTA, false),
        ("one slot, grid", WARPS, true),
    ] {
        let cells = shared_cells(&widths);
        let tally = walk(name, cells, &thread_ids, &SHARED_KINDS, &GRID_BARRIERS, 5);
        assert_eq!(tally.accesses, accesses(16, 19, 5));
        assert_eq!(tally.evictions > 0, evictions);
    }
}

/// Two CTAs that run at a time and have to share a slot: nothing is reported that is none, and what
/// is lost is counted.
#[test]
fn six_events_in_one_slot_of_shared_memory() {
    let cells = shared_cells(&WIDTHS);
    let tally = walk("one slot", cells, &WARPS, &SHARED_KINDS, &CTA_BARRIERS, 6);
    assert_eq!(tally.accesses, accesses(16, 18, 6));
    assert!(tally.evictions > tally.accesses / 8, "{tally:?}");
}
