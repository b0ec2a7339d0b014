//! Single traces that others get wrong (the table in docs/cell.md), and what the enumeration is too
//! short for: saturated epochs, many CTAs, tags, generations.
//!
//! Traces with fences and flags are not here: a cell cannot decide them, and the device marks the
//! conflicts of such kernels as candidates. Nor are bytes of one word: they are granules, so cells,
//! of their own.

#[allow(dead_code, reason = "the enumeration also takes accesses back")]
use crate::oracle::{Oracle, ThreadId};
use shadow::layout::{GENERATION_MASK, MAX_GENERATION};
use shadow::plan::{Identity, Shape, Widths, widths};
use shadow::rule::{self, *};

const WIDTHS: Widths = Widths {
    grid: 0,
    tag: 2,
    cta: 8,
    barrier: 16,
    warp: 7,
};

/// Runs `R01 W00 Ag10 Ac001 B0 S01`: kind, CTA, warp and perhaps lane; `B0` is a barrier of CTA 0,
/// `S01` one of its warp 1. Gives one letter per access: `.` fine, `!` conflict, `?` anything else.
fn run(trace: &str) -> String {
    let shifts = WIDTHS.shifts();
    let (mut cell, mut verdicts) = (0, String::new());
    let mut barriers: Vec<(u32, Option<u32>)> = Vec::new();
    for event in trace.split_whitespace() {
        let digits: Vec<u32> = event.chars().filter_map(|c| c.to_digit(10)).collect();
        let kind = match event.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "B" => {
                barriers.push((digits[0], None));
                continue;
            }
            "S" => {
                barriers.push((digits[0], Some(digits[1])));
                continue;
            }
            "R" => WEAK_LOAD,
            "W" => WEAK_STORE,
            "Ag" => STRONG_WRITE_GPU,
            "Ac" => STRONG_WRITE_CTA,
            other => panic!("{other}"),
        };
        let mut me = Identity {
            generation: 1,
            cta: digits[0].into(),
            warp: digits[1],
            lane: digits.get(2).copied().unwrap_or(0),
            ..Identity::default()
        }
        .pack(&WIDTHS);
        for &(cta, warp) in barriers.iter().filter(|(cta, _)| *cta == digits[0]) {
            me = match warp {
                None => pass_barrier(me, &shifts),
                Some(warp) if (cta, warp) == (digits[0], digits[1]) => {
                    pass_warp_barrier(me, &shifts)
                }
                Some(_) => me,
            };
        }
        let outcome = access(cell, me, kind, &shifts);
        cell = outcome.next;
        verdicts.push(match outcome.verdict {
            OK => '.',
            CONFLICT_GRID..=CONFLICT_WARP => '!',
            _ => '?',
        });
    }
    verdicts
}

#[test]
fn the_table_of_traces() {
    for (trace, verdicts) in [
        // A reader must not erase the writer.
        ("W00 B0 R01 R10", "..!"),
        ("R00 R01 W01", "..!"),
        ("R00 R10 W10", "..!"),
        ("W00 Ag00 Ag10", "..!"),
        ("R00 Ag00 Ag01", "..!"),
        ("Ag00 Ac10", ".!"),
        ("Ac00 Ag10", ".!"),
        // A race, then a second, different race.
        ("W00 R10 W20 R30", ".!!!"),
        // Two lanes in one instruction, and what orders them.
        ("W000 W001", ".!"),
        ("W000 S00 R001", ".."),
        ("W000 B0 R001", ".."),
        ("W000 S01 R001", ".!"),
        ("W00 S00 R01", ".!"),
        // A barrier orders its own CTA only.
        ("W00 B1 R01", ".!"),
        ("W00 B0 B1 R10", ".!"),
        ("R10 R10 W10", "..."),
        ("R00 B0 Ag00 Ag01", "..."),
        ("W00 B0 R00 R01", "..."),
        ("Ag00 Ag10 Ag01", "..."),
        ("Ac00 Ac01", ".."),
    ] {
        assert_eq!(run(trace), verdicts, "{trace}");
    }
}

/// Barriers before the first access, and between it and the second.
const BARRIERS: [u64; 12] = [0, 1, 2, 14, 15, 16, 255, 256, 257, 1024, 65535, 65536];

/// Against the clocks: the first access after some barriers, the second after some more, by another
/// warp. Never a false alarm; a race is left undecided only where the epoch is used up.
#[test]
fn any_number_of_barriers_orders_and_never_alarms_or_hides() {
    let (mut alarms, mut undecided) = (0, 0);
    for (before, between) in BARRIERS.iter().flat_map(|&a| BARRIERS.map(|b| (a, b))) {
        let races = races_after(before, between);
        for bits in [4, 8, 10, 16, 28] {
            let widths = Widths {
                grid: 0,
                tag: 0,
                cta: 1,
                barrier: bits,
                warp: 0,
            };
            let shifts = widths.shifts();
            let id = |warp| {
                Identity {
                    generation: 1,
                    warp,
                    ..Identity::default()
                }
                .pack(&widths)
            };
            let pass = |me, barriers| (0..barriers).fold(me, |me, _| pass_barrier(me, &shifts));
            let (early, late) = (pass(id(0), before), pass(id(1), before + between));
            let used_up = before >= (1 << bits) - 1;
            for &(first, second, races) in &races {
                let cell = access(0, early, first, &shifts).next;
                let verdict = access(cell, late, second, &shifts).verdict;
                let expected = match (races, used_up) {
                    (true, false) => CONFLICT_CTA,
                    (true, true) => UNDECIDED,
                    // Ordered, which the cell cannot know.
                    (false, true) if between > 0 && verdict == UNDECIDED => UNDECIDED,
                    (false, _) => OK,
                };
                let case = format!("{bits} bits, {before}+{between}: {first} {second}");
                assert_eq!(verdict, expected, "{case}");
                alarms += u32::from(verdict == CONFLICT_CTA);
                undecided += u32::from(verdict == UNDECIDED);
            }
        }
    }
    // 15 of the 36 pairs of kinds conflict. The five widths have room for the first 4, 6, 9, 10 and
    // 12 of `BARRIERS`; beyond, a conflict is undecided whatever comes between.
    assert_eq!((alarms, undecided), (41 * 15, 19 * 12 * 15));
}

/// Every pair of kinds, and whether the clocks see a race.
fn races_after(before: u64, between: u64) -> Vec<(u32, u32, bool)> {
    let thread_ids = [0, 1].map(|warp| ThreadId {
        cta: 0,
        warp,
        lane: 0,
    });
    let mut early = Oracle::new(&thread_ids);
    (0..before).for_each(|_| early.barrier(|_| true));
    let mut pairs = Vec::new();
    for first in 0..KINDS {
        let mut late = early.clone();
        late.access(0, first);
        (0..between).for_each(|_| late.barrier(|_| true));
        pairs.extend((0..KINDS).map(|second| (first, second, late.clone().access(1, second))));
    }
    pairs
}

/// A CTA that has used up its epochs races in itself: undecided, which is counted, not silence.
#[test]
fn a_saturated_epoch_is_undecided_and_other_ctas_still_race() {
    let widths = Widths {
        grid: 0,
        tag: 0,
        cta: 1,
        barrier: 4,
        warp: 4,
    };
    let shifts = widths.shifts();
    let id = |cta, warp, lane| {
        Identity {
            generation: 1,
            cta,
            warp,
            lane,
            ..Identity::default()
        }
        .pack(&widths)
    };
    let late = |me| (0..100).fold(me, |me, _| pass_barrier(me, &shifts));
    let cell = access(0, late(id(0, 0, 0)), WEAK_STORE, &shifts).next;
    assert_eq!(
        access(cell, late(id(0, 1, 0)), WEAK_STORE, &shifts).verdict,
        UNDECIDED
    );
    assert_eq!(
        access(cell, late(id(0, 0, 1)), WEAK_STORE, &shifts).verdict,
        UNDECIDED
    );
    assert_eq!(
        access(cell, id(1, 0, 0), WEAK_LOAD, &shifts).verdict,
        CONFLICT_GRID
    );
    let late = |me| (0..100).fold(me, |me, _| pass_warp_barrier(me, &shifts));
    let cell = access(0, late(id(0, 0, 0)), WEAK_STORE, &shifts).next;
    assert_eq!(
        access(cell, late(id(0, 0, 1)), WEAK_STORE, &shifts).verdict,
        UNDECIDED
    );
    assert_eq!(
        access(cell, id(0, 1, 0), WEAK_STORE, &shifts).verdict,
        CONFLICT_CTA
    );
    // A CTA barrier makes room for warp epochs again.
    let rested = |me| pass_barrier(late(me), &shifts);
    let cell = access(0, rested(id(0, 0, 0)), WEAK_STORE, &shifts).next;
    assert_eq!(
        access(cell, rested(id(0, 0, 1)), WEAK_STORE, &shifts).verdict,
        CONFLICT_WARP
    );
}

#[test]
fn ctas_that_agree_modulo_a_power_of_two_still_race() {
    for (bits, index_bits) in (1..=28).flat_map(|bits| [(bits, 28), (bits, 26)]) {
        let shape = Shape {
            ctas: 1 << bits,
            window_bytes: 1 << 30,
            index_bits,
            granule_log2: 2,
            barriers: bits < 24,
            warp_barriers: bits < 20,
            grid_barriers: bits < 12,
            shared_tag: 0,
        };
        let widths = widths(&shape).unwrap();
        let shifts = widths.shifts();
        let id = |cta| {
            Identity {
                generation: 1,
                cta,
                ..Identity::default()
            }
            .pack(&widths)
        };
        for power in 0..bits {
            for (one, other) in [(0, 1 << power), ((1 << bits) - 1, !(1 << power))] {
                let other = other & ((1 << bits) - 1);
                let cell = access(0, id(one), WEAK_STORE, &shifts).next;
                assert_eq!(
                    access(cell, id(other), WEAK_LOAD, &shifts).verdict,
                    CONFLICT_GRID,
                    "{bits} bits, {one} and {other}"
                );
            }
        }
    }
}

#[test]
fn another_granule_evicts_and_never_alarms() {
    let shifts = WIDTHS.shifts();
    let id = |tag, cta| {
        Identity {
            generation: 1,
            tag,
            cta,
            ..Identity::default()
        }
        .pack(&WIDTHS)
    };
    for kind in 0..KINDS {
        let cell = access(0, id(0, 0), WEAK_STORE, &shifts).next;
        let outcome = access(cell, id(3, 1), kind, &shifts);
        assert_eq!(outcome.verdict, EVICTED);
        assert_eq!(outcome.next, id(3, 1) | rule::classes(kind));
    }
}

#[test]
fn launches_are_ordered() {
    let shifts = WIDTHS.shifts();
    let id = |generation, cta| {
        Identity {
            generation,
            cta,
            ..Identity::default()
        }
        .pack(&WIDTHS)
    };
    let mut cell = 0;
    for generation in 1..=MAX_GENERATION {
        let outcome = access(
            cell,
            id(generation, u64::from(generation) % 7),
            WEAK_STORE,
            &shifts,
        );
        assert_eq!(outcome.verdict, OK, "generation {generation}");
        cell = outcome.next;
    }
    assert_eq!(cell & GENERATION_MASK, GENERATION_MASK);
}

/// Whatever an older launch left behind, the cell is as good as empty.
#[test]
fn an_older_launch_leaves_nothing() {
    let shifts = WIDTHS.shifts();
    let id = |generation, cta, warp| {
        Identity {
            generation,
            tag: cta,
            cta,
            warp,
            ..Identity::default()
        }
        .pack(&WIDTHS)
    };
    let kinds = || 0..KINDS;
    for (first, second, third) in
        kinds().flat_map(|a| kinds().flat_map(move |b| kinds().map(move |c| (a, b, c))))
    {
        for (old, new) in [(1, 2), (1, 255), (254, 255), (255, 1)] {
            let cell = access(0, id(old, 1, 0), first, &shifts).next;
            let cell = access(cell, id(old, 1, 1), second, &shifts).next;
            let outcome = access(cell, id(new, 2, 0), third, &shifts);
            let empty = access(0, id(new, 2, 0), third, &shifts);
            assert_eq!(
                (outcome.next, outcome.verdict),
                (empty.next, OK),
                "{first} {second}, then {third}"
            );
        }
    }
}
