//! Single traces that others get wrong (the table in docs/cell.md), and what the enumeration is too
//! short for: saturated epochs, many CTAs, tags, generations.
//!
//! Traces with fences and flags are not here: a cell cannot decide them, and the device marks the
//! conflicts of such kernels as candidates.

use shadow::layout::{GENERATION_MASK, MAX_GENERATION};
use shadow::plan::{Identity, Shape, Widths, widths};
use shadow::rule::{self, *};

const WIDTHS: Widths = Widths {
    tag: 2,
    cta: 8,
    barrier: 16,
    warp: 7,
};

fn thread(cta: u64, warp: u32) -> u64 {
    Identity {
        generation: 1,
        cta,
        warp,
        ..Identity::default()
    }
    .pack(&WIDTHS)
}

/// Runs `R01 W00 Ag10 Ac00 B0`: kind, CTA and warp; `B0` is a barrier of CTA 0. Gives one letter per
/// access: `.` fine, `!` conflict.
fn run(trace: &str) -> String {
    let shifts = WIDTHS.shifts();
    let (mut cell, mut verdicts) = (0, String::new());
    let mut passed = [0u32; 4];
    for event in trace.split_whitespace() {
        let digits: Vec<u32> = event.chars().filter_map(|c| c.to_digit(10)).collect();
        if event.starts_with('B') {
            passed[digits[0] as usize] += 1;
            continue;
        }
        let kind = match event.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "R" => WEAK_LOAD,
            "W" => WEAK_STORE,
            "Ag" => STRONG_WRITE_GPU,
            "Ac" => STRONG_WRITE_CTA,
            other => panic!("{other}"),
        };
        let mut me = thread(digits[0].into(), digits[1]);
        for _ in 0..passed[digits[0] as usize] {
            me = pass_barrier(me, &shifts);
        }
        let outcome = access(cell, me, kind, &shifts);
        cell = outcome.next;
        verdicts.push(if outcome.verdict == OK { '.' } else { '!' });
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
        ("R10 R10 W10", "..."),
        ("R00 B0 Ag00 Ag01", "..."),
        ("W00 B0 R00 R01", "..."),
        ("Ag00 Ag10 Ag01", "..."),
        ("Ac00 Ac01", ".."),
    ] {
        assert_eq!(run(trace), verdicts, "{trace}");
    }
}

/// Between the two accesses the CTA passes so many barriers.
fn after_barriers(barriers: u64, widths: &Widths, first: u32, second: u32) -> u32 {
    let shifts = widths.shifts();
    let id = |warp| {
        Identity {
            generation: 1,
            warp,
            ..Identity::default()
        }
        .pack(widths)
    };
    let cell = access(0, id(0), first, &shifts).next;
    let me = (0..barriers).fold(id(1), |me, _| pass_barrier(me, &shifts));
    access(cell, me, second, &shifts).verdict
}

#[test]
fn any_number_of_barriers_orders_and_never_alarms() {
    for bits in [4, 8, 16] {
        let widths = Widths {
            tag: 0,
            cta: 1,
            barrier: bits,
            warp: 0,
        };
        for barriers in [1, 2, 15, 16, 255, 256, 257, 1024, 65535, 65536, 65537] {
            assert_eq!(
                after_barriers(barriers, &widths, WEAK_STORE, WEAK_STORE),
                OK,
                "{bits} {barriers}"
            );
        }
    }
}

/// A CTA that has used up its epochs races in itself: undecided, which is counted, not silence.
#[test]
fn a_saturated_epoch_is_undecided_and_other_ctas_still_race() {
    let widths = Widths {
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
}

#[test]
fn ctas_that_agree_modulo_a_power_of_two_still_race() {
    for bits in 1..=28 {
        let shape = Shape {
            ctas: (1 << bits) + 1,
            window_bytes: 1 << 30,
            index_bits: 28,
            granule_log2: 2,
            barriers: true,
            warp_barriers: false,
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
        let cell = access(0, id(0), WEAK_STORE, &shifts).next;
        assert_eq!(
            access(cell, id(1 << bits), WEAK_LOAD, &shifts).verdict,
            CONFLICT_GRID,
            "{bits}"
        );
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
