//! Precise mode from the device's own journal: what is recorded, and when there is none.

use std::collections::BTreeSet;

use crate::common::{Rig, launch, load};
use report::log::Launch as Logged;
use runtime::audit::AuditedRace;
use runtime::{Choice, Mode, Options, Prove};
use simt::{Launch, Schedule};

const THREADS: u32 = 64;
const CTAS: u32 = 8;

/// Every thread adds to its own word `rounds` times; then one thread of each CTA counts it with a
/// release. With `early`, it does not wait for the others, and reads the last one's word.
fn kernel(rounds: u32, early: bool) -> String {
    let barrier = if early { "" } else { "bar.sync 0;" };
    let read = if early {
        "@!%p ld.global.u32 %v, [%o];"
    } else {
        ""
    };
    let last = THREADS * CTAS * 4 - 4;
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 words, .param .u64 counter) {{\n\
         .reg .pred %p, %q; .reg .b32 %t, %c, %n, %v; .reg .b64 %w, %a, %o;\n\
         ld.param.u64 %w, [words]; ld.param.u64 %a, [counter];\n\
         mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; setp.ne.u32 %p, %t, 0;\n\
         add.u64 %o, %w, {last};\n\
         mad.lo.u32 %n, %c, {THREADS}, %t; mad.wide.u32 %w, %n, 4, %w; mov.u32 %n, {rounds};\n\
         again: ld.global.u32 %v, [%w]; add.u32 %v, %v, 1; st.global.u32 [%w], %v;\n\
         sub.u32 %n, %n, 1; setp.ne.u32 %q, %n, 0; @%q bra again;\n\
         {barrier}\n{read}\n@!%p red.release.gpu.global.add.u32 [%a], 1; ret; }}"
    )
}

/// What is logged of some launches, and the words and the counter afterwards.
fn run(text: &str, options: Options, launches: u32) -> (Vec<Logged>, usize, Vec<u32>) {
    let mut rig = journaled(text, options);
    const WORDS: usize = (THREADS * CTAS) as usize + 1;
    let words = rig.memory(&[0; WORDS]);
    let counter = words + 4 * (WORDS as u64 - 1);
    for _ in 0..launches {
        rig.launch(&launch(CTAS, THREADS, &[words, counter]));
    }
    (rig.launches(), rig.races().len(), rig.words(words, WORDS))
}

/// A device whose kernels keep journals.
fn journaled(text: &str, options: Options) -> Rig {
    let options = Options {
        mode: Mode::Precise,
        as_gpu: true,
        // What is proved is not recorded either.
        prove: Prove::Off,
        ..options
    };
    load(text, options)
}

/// Accesses that the engine has received, by launch.
fn accesses(launches: &[Logged]) -> Vec<u64> {
    let clocks = launches.iter().filter_map(|launch| launch.clocks);
    clocks.map(|clocks| clocks.accesses).collect()
}

#[test]
fn what_a_thread_has_for_itself_is_not_recorded() {
    let recorded = [3, 300].map(|rounds| {
        let (launches, races, left) = run(&kernel(rounds, false), Options::default(), 2);
        assert_eq!(races, 0);
        assert!(
            left[..left.len() - 1]
                .iter()
                .all(|&word| word == 2 * rounds)
        );
        assert_eq!(left.last(), Some(&(2 * CTAS)));
        accesses(&launches)
    });
    // The counter's additions, and nothing else.
    assert_eq!(
        recorded,
        [vec![u64::from(CTAS); 2], vec![u64::from(CTAS); 2]]
    );
}

#[test]
fn every_launch_has_a_journal_of_its_own() {
    let (launches, races, _) = run(&kernel(1, true), Options::default(), 3);
    let conflicts: Vec<u64> = launches
        .iter()
        .map(|launch| launch.counters.conflicts)
        .collect();
    // Thread 0 of every CTA against the last thread, which stores and loads; its own CTA's too.
    assert!(conflicts.iter().all(|&count| count > 0), "{conflicts:?}");
    assert!(races >= 3);
    assert!(
        launches
            .iter()
            .all(|launch| launch.checked && launch.counters.dropped == 0)
    );
}

#[test]
fn a_kernel_that_is_not_selected_runs_without_a_journal() {
    let options = Options {
        choice: Choice {
            kernels: vec!["kne=other".parse().unwrap()],
            ..Choice::default()
        },
        ..Options::default()
    };
    let (launches, races, left) = run(&kernel(2, true), options, 1);
    assert!(!launches[0].checked && races == 0);
    assert_eq!(left.last(), Some(&CTAS));
}

/// After a `pause`, each lane of a CTA's first warp publishes data by a flag, for which a lane of the
/// second one waits by atomics that change nothing.
fn polled_flags(pause: u32) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 words) {{\n\
         .reg .pred %p; .reg .b32 %t, %c, %w, %n, %v; .reg .b64 %a;\n\
         ld.param.u64 %a, [words]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;\n\
         shr.u32 %w, %t, 5; and.b32 %t, %t, 31; mad.lo.u32 %n, %c, 32, %t;\n\
         mad.wide.u32 %a, %n, 32, %a; setp.eq.u32 %p, %w, 1; @%p bra reader;\n\
         mov.u32 %n, {pause};\n\
         wait: sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra wait;\n\
         st.global.u32 [%a+16], 1; fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%a], 1; ret;\n\
         reader: atom.relaxed.gpu.global.add.u32 %v, [%a], 0; setp.eq.u32 %p, %v, 0; @%p bra reader;\n\
         fence.acq_rel.gpu; ld.global.u32 %v, [%a+16]; ret; }}"
    )
}

#[test]
fn a_thread_that_waits_by_an_atomic_records_it_once_per_value() {
    const FLAGS: usize = 32 * CTAS as usize;
    for pause in [1, 30_000] {
        let mut rig = journaled(&polled_flags(pause), Options::default());
        let memory = rig.memory(&[0; 8 * FLAGS]);
        rig.launch(&launch(CTAS, THREADS, &[memory]));
        assert_eq!(rig.races().len(), 0);
        // Of each pair: two accesses to data, one to set the flag, and one or two looks at it.
        let recorded = accesses(&rig.launches())[0];
        assert!(recorded <= 5 * FLAGS as u64, "{recorded} after {pause}");
    }
}

/// After a `pause`, each lane of a CTA's first warp publishes data by a flag, each of the second one
/// overwrites the flag with a weak store, and each of the third one reads the data once it has seen
/// the flag set. Who has seen the second store has not observed the first.
fn overwritten_flags(pause: u32) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 words) {{\n\
         .reg .pred %p; .reg .b32 %t, %c, %w, %n, %v; .reg .b64 %a;\n\
         ld.param.u64 %a, [words]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;\n\
         shr.u32 %w, %t, 5; and.b32 %t, %t, 31; mad.lo.u32 %n, %c, 32, %t;\n\
         mad.wide.u32 %a, %n, 32, %a;\n\
         setp.eq.u32 %p, %w, 1; @%p bra weak; setp.eq.u32 %p, %w, 2; @%p bra reader;\n\
         mov.u32 %n, {pause};\n\
         wait: sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra wait;\n\
         st.global.u32 [%a+16], 1; st.release.gpu.global.u32 [%a], 1; ret;\n\
         weak: mov.u32 %n, {pause};\n\
         pause: sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra pause;\n\
         st.global.u32 [%a], 2; ret;\n\
         reader: atom.acquire.gpu.global.or.b32 %v, [%a], 0; setp.eq.u32 %p, %v, 0; @%p bra reader;\n\
         ld.global.u32 %v, [%a+16]; ret; }}"
    )
}

/// Words that race.
fn words<'a>(conflicts: impl IntoIterator<Item = &'a AuditedRace>) -> BTreeSet<u64> {
    let addresses = conflicts.into_iter().map(|conflict| conflict.address);
    addresses.collect()
}

#[test]
fn a_weak_store_is_recorded_where_it_stands_among_strong_accesses_or_undecided() {
    const FLAGS: usize = 32 * CTAS as usize;
    // After a short pause the weak store may come before there are strong accesses, or meanwhile.
    let undecided = [16, 3000].map(|pause| {
        let mut rig = journaled(&overwritten_flags(pause), Options::default());
        let (mut undecided, mut data) = (0, 0);
        for seed in 0..12 {
            let memory = rig.memory(&[0; 8 * FLAGS]);
            let audit = rig.audit(&Launch {
                schedule: Schedule::Seeded(seed),
                ..launch(CTAS, 96, &[memory])
            });
            let journal = audit.journal.as_deref().unwrap();
            let (recorded, traced) = (words(journal), words(&audit.happens_before));
            let sure = words(journal.iter().filter(|race| !race.possible));
            assert!(sure.is_subset(&traced));
            data += traced.iter().filter(|&at| at % 32 == 16).count();
            if audit.counters.undecided > 0 {
                undecided += 1;
            } else {
                assert_eq!(recorded, traced, "seed {seed} after a pause of {pause}");
            }
        }
        assert!(data > 0, "nobody has seen only the weak store");
        undecided
    });
    assert!(undecided[0] > 0 && undecided[0] < 12, "{undecided:?}");
    assert_eq!(undecided[1], 0);
}

/// One thread writes a word 40 times; all others load it until they see the last value, and write down how often.
const POLLED: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 words) {\n\
    .reg .pred %p; .reg .b32 %t, %n, %v; .reg .b64 %a, %o;\n\
    ld.param.u64 %a, [words]; mov.u32 %t, %tid.x; mov.u32 %n, %ctaid.x; mad.lo.u32 %t, %n, 32, %t;\n\
    mad.wide.u32 %o, %t, 4, %a; mov.u32 %n, 0; setp.eq.u32 %p, %t, 0; @!%p bra poll;\n\
    again: add.u32 %n, %n, 1; st.release.gpu.global.u32 [%a], %n; setp.lt.u32 %p, %n, 40; @%p bra again; ret;\n\
    poll: add.u32 %n, %n, 1;\n\
    ld.acquire.gpu.global.u32 %v, [%a];\n\
    setp.lt.u32 %p, %v, 40; @%p bra poll; st.global.u32 [%o], %n; ret; }";

#[test]
fn an_audit_hears_no_load_that_a_thread_makes_again() {
    const WORDS: usize = 32 * CTAS as usize;
    let line = POLLED.lines().position(|line| line.contains("acquire"));
    let line = line.unwrap() as u32 + 1;
    let mut rig = journaled(POLLED, Options::default());
    for seed in 0..8 {
        let memory = rig.memory(&[0; WORDS]);
        let audit = rig.audit(&Launch {
            schedule: Schedule::Seeded(seed),
            ..launch(CTAS, 32, &[memory])
        });
        let loads = audit.traced.iter().filter(|traced| traced.line == line);
        let loads: u32 = loads.map(|traced| traced.lanes.count_ones()).sum();
        let used: u32 = rig.words(memory, WORDS)[1..].iter().sum();
        assert_eq!(loads, used, "seed {seed}");
        assert_eq!(audit.happens_before.len(), 0);
        assert_eq!(audit.journal.map(|of| of.len()), Some(0));
    }
}

const TOGETHER: u32 = 8;

/// In the last of some rounds the lanes in `writers` write a word for each lane. Then, in each round, all lanes execute
/// an atomic that changes nothing, and in the end each reads its word of each other lane.
fn atomics_together(writers: u32, rounds: u32) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 words) {{\n\
         .reg .pred %p, %q, %w; .reg .b32 %t, %n, %i, %v; .reg .b64 %a, %o;\n\
         ld.param.u64 %a, [words]; mov.u32 %t, %tid.x; mov.u32 %n, {rounds};\n\
         shr.u32 %v, {writers}, %t; and.b32 %v, %v, 1; setp.ne.u32 %w, %v, 0;\n\
         round: setp.eq.and.u32 %p, %n, 1, %w; @!%p bra together;\n\
         mov.u32 %i, 0;\n\
         write: mad.lo.u32 %v, %t, {TOGETHER}, %i; mad.wide.u32 %o, %v, 4, %a;\n\
         st.global.u32 [%o+16], 1;\n\
         add.u32 %i, %i, 1; setp.lt.u32 %q, %i, {TOGETHER}; @%q bra write;\n\
         fence.acq_rel.cta;\n\
         together: atom.acquire.cta.global.and.b32 %v, [%a], 1;\n\
         sub.u32 %n, %n, 1; setp.ne.u32 %q, %n, 0; @%q bra round;\n\
         mov.u32 %i, 0;\n\
         read: mad.lo.u32 %v, %i, {TOGETHER}, %t; mad.wide.u32 %o, %v, 4, %a;\n\
         setp.ne.u32 %p, %i, %t; @%p ld.global.u32 %v, [%o+16];\n\
         add.u32 %i, %i, 1; setp.lt.u32 %q, %i, {TOGETHER}; @%q bra read; ret; }}"
    )
}

#[test]
fn lanes_whose_atomics_change_nothing_observe_those_of_the_lanes_before_them() {
    let schedules = [Schedule::default()].into_iter();
    let schedules: Vec<_> = schedules.chain((0..6).map(Schedule::Seeded)).collect();
    let (mut racy, mut read) = (0, 0);
    for (writers, rounds) in (0..16).flat_map(|of| [(of * 37 % 251, 1), (of * 53 % 255, 2)]) {
        let mut rig = journaled(&atomics_together(writers, rounds), Options::default());
        for &schedule in &schedules {
            let memory = rig.memory(&[0; 4 + (TOGETHER * TOGETHER) as usize]);
            let audit = rig.audit(&Launch {
                schedule,
                ..launch(1, TOGETHER, &[memory])
            });
            let (recorded, traced) = (
                words(audit.journal.as_deref().unwrap()),
                words(&audit.happens_before),
            );
            assert_eq!(
                recorded, traced,
                "writers {writers:08b}, {rounds} rounds, {schedule:?}"
            );
            assert_eq!(audit.counters.undecided, 0);
            racy += traced.len();
            read += (writers.count_ones() * (TOGETHER - 1)) as usize;
        }
    }
    assert!(racy > read / 8 && racy < read * 7 / 8, "{racy} of {read}");
}

#[test]
fn a_kernel_that_shares_a_function_with_a_journaled_one_is_judged_by_its_journal() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .func shared_one() { ret; }\n\
        .visible .entry orders(.param .u64 words) {\n\
        .reg .b64 %a;\n\
        ld.param.u64 %a, [words]; st.release.gpu.global.u32 [%a], 1; call shared_one; ret; }\n\
        .visible .entry k(.param .u64 words) {\n\
        .reg .b64 %a;\n\
        ld.param.u64 %a, [words]; st.global.u32 [%a], 1; call shared_one; ret; }";
    let mut rig = journaled(text, Options::default());
    let memory = rig.memory(&[0]);
    let audit = rig.audit(&launch(1, 2, &[memory]));
    assert!(!audit.cells_decide && !audit.release_capable);
    assert_eq!(words(&audit.happens_before).len(), 1);
    assert_eq!(
        words(audit.journal.as_deref().unwrap()),
        words(&audit.happens_before)
    );
}
