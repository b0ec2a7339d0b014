//! Sampling, `fast` mode: which words are checked, and that the others are left alone.

use std::collections::BTreeSet;

use crate::common::{launch, load};
use runtime::{Mode, Options};
use simt::{Launch, Schedule};

/// Bytes of global memory that every CTA stores to.
const BYTES: u32 = 16384;

/// Threads store to global memory by one word and by four, and to shared memory.
const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 data) { .reg .b64 %data, %at; .reg .b32 %t, %c;\n\
    .reg .pred %p; .shared .align 4 .b8 words[4096];\n\
    ld.param.u64 %data, [data]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;\n\
    mul.wide.u32 %at, %t, 16; add.u64 %at, %data, %at;\n\
    st.global.v4.u32 [%at], {%t, %t, %t, %t};\n\
    mul.wide.u32 %at, %t, 4; add.u64 %at, %data, %at;\n\
    setp.eq.u32 %p, %c, 0; @%p bra done;\n\
    st.global.u32 [%at], %c;\n\
    done: and.b32 %c, %t, 511; mov.u64 %at, words; mul.wide.u32 %data, %c, 4; add.u64 %at, %at, %data;\n\
    st.shared.u32 [%at], %t; ret; }";

/// Conflicts, and the pairs of sites that raced, at one word of `sample`.
fn run(sample: u32, schedule: Schedule) -> (u64, BTreeSet<(u32, u32)>) {
    let options = Options {
        mode: Mode::Fast,
        sample,
        ..Options::default()
    };
    let mut rig = load(TEXT, options);
    let data = rig.memory(&[0; BYTES as usize / 4]);
    rig.launch(&Launch {
        schedule,
        ..launch(2, BYTES / 16, &[data])
    });
    let launches = rig.launches();
    assert!(
        launches
            .iter()
            .all(|of| of.checked && of.counters.outside == 0)
    );
    let conflicts = launches.iter().map(|of| of.counters.conflicts).sum();
    let races = rig.races();
    let pairs = races.iter().map(|race| (race.site, race.previous_site));
    (conflicts, pairs.collect())
}

#[test]
fn a_sample_is_a_part_of_the_whole() {
    let (whole, pairs) = run(1, Schedule::RoundRobin);
    assert!(whole > 4096 && pairs.len() >= 3, "{whole} {pairs:?}");
    for sample in [2, 8, 32] {
        let (conflicts, found) = run(sample, Schedule::RoundRobin);
        let expected = whole / u64::from(sample);
        let about = expected - expected / 4..=expected + expected / 4;
        assert!(
            about.contains(&conflicts),
            "{conflicts} of {whole} at 1/{sample}"
        );
        assert!(found.is_subset(&pairs) && !found.is_empty());
    }
}

/// Whoever comes first: the words are the same.
#[test]
fn a_word_is_checked_always_or_never() {
    let (conflicts, _) = run(16, Schedule::RoundRobin);
    for seed in 1..4 {
        assert_eq!(run(16, Schedule::Seeded(seed)).0, conflicts, "seed {seed}");
    }
}
