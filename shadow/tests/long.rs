//! Long traces at random, where epochs count up, saturate and start again: the cell against
//! unbounded vector clocks. The enumeration is exhaustive, but too short for that.

#[allow(dead_code, reason = "the enumeration also takes accesses back")]
use crate::oracle::{Oracle, ThreadId};
use proptest::prelude::*;
use shadow::plan::{Identity, Widths};
use shadow::rule;

const fn thread_id(cta: u64, warp: u32, lane: u32) -> ThreadId {
    ThreadId { cta, warp, lane }
}

/// Two lanes of a warp, another warp, another CTA.
const THREAD_IDS: [ThreadId; 4] = [
    thread_id(0, 0, 0),
    thread_id(0, 0, 1),
    thread_id(0, 1, 0),
    thread_id(1, 0, 0),
];

#[derive(Clone, Copy, Debug)]
enum Event {
    Access(usize, u32),
    CtaBarriers(u64, u32),
    WarpBarriers(u64, u32, u32),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => (0usize..4, 0..rule::KINDS).prop_map(|(t, k)| Event::Access(t, k)),
        // Loads alone do not race, so with many of them the first race comes late.
        3 => (0usize..4).prop_map(|t| Event::Access(t, rule::WEAK_LOAD)),
        3 => (0u64..2, 1u32..6).prop_map(|(c, n)| Event::CtaBarriers(c, n)),
        2 => (0u64..2, 0u32..2, 1u32..6).prop_map(|(c, w, n)| Event::WarpBarriers(c, w, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8_000) })]

    #[test]
    fn long_traces_never_alarm_falsely_and_the_first_race_is_not_silent(
        barrier in 1u32..5,
        warp in 1u32..5,
        events in prop::collection::vec(event(), 1..80),
    ) {
        let widths = Widths { grid: 0, tag: 0, cta: 1, barrier, warp };
        let shifts = widths.shifts();
        let mut oracle = Oracle::new(&THREAD_IDS);
        let mut me = THREAD_IDS.map(|p| {
            let id = Identity { generation: 1, cta: p.cta, warp: p.warp, lane: p.lane, ..Identity::default() };
            id.pack(&widths)
        });
        let (mut cell, mut blurred) = (0, false);
        for event in events {
            match event {
                Event::Access(thread, kind) => {
                    let races = oracle.access(thread, kind);
                    let outcome = rule::access(cell, me[thread], kind, &shifts);
                    let conflict = (rule::CONFLICT_GRID..=rule::CONFLICT_WARP).contains(&outcome.verdict);
                    prop_assert!(races || !conflict, "false alarm");
                    prop_assert!(!races || blurred || outcome.verdict != rule::OK, "silent");
                    blurred |= outcome.verdict != rule::OK;
                    cell = outcome.next;
                }
                Event::CtaBarriers(cta, times) => for _ in 0..times {
                    oracle.barrier(|p| p.cta == cta);
                    for (me, _) in me.iter_mut().zip(THREAD_IDS).filter(|(_, p)| p.cta == cta) {
                        *me = rule::pass_barrier(*me, &shifts);
                    }
                },
                Event::WarpBarriers(cta, warp, times) => for _ in 0..times {
                    oracle.barrier(|p| (p.cta, p.warp) == (cta, warp));
                    for (me, _) in me.iter_mut().zip(THREAD_IDS).filter(|(_, p)| (p.cta, p.warp) == (cta, warp)) {
                        *me = rule::pass_warp_barrier(*me, &shifts);
                    }
                },
            }
        }
    }
}
