//! A launch that is proved to have no races runs the program's own code, and others their checks.

use report::log::{Judge, Space};
use runtime::{Mode, Options, Prove, ShadowSize};

use crate::common::{launch, load};

/// Every thread adds its neighbour's word, at a distance in words that is a parameter, to its own.
const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 to, .param .u64 far) { .reg .b64 %to, %at, %far; .reg .b32 %t, %c, %n, %v, %w;\n\
    ld.param.u64 %to, [to]; cvta.to.global.u64 %to, %to; ld.param.u64 %far, [far]; shl.b64 %far, %far, 2;\n\
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.s32 %t, %c, %n, %t;\n\
    mul.wide.s32 %at, %t, 4; add.s64 %to, %to, %at; ld.global.u32 %v, [%to]; add.s64 %at, %to, %far;\n\
    ld.global.u32 %w, [%at]; add.u32 %v, %v, %w; st.global.u32 [%to], %v;\n\
    END ret; }";

struct Ran {
    races: usize,
    judge: Judge,
    instructions: u64,
    error: Option<String>,
    words: Vec<u32>,
}

fn run(text: &str, options: &Options, far: u64) -> Ran {
    let options = Options {
        shadow: ShadowSize::Bytes(1 << 20),
        ..options.clone()
    };
    let mut rig = load(text, options);
    let to = rig.memory(&(0..512).collect::<Vec<u32>>());
    let result = rig.try_launch(&launch(4, 64, &[to, far]));
    let launch = rig.launches().pop().unwrap();
    Ran {
        races: rig.races().len(),
        judge: launch.judge,
        instructions: launch.warp_instructions,
        error: result.err().map(|error| error.to_string()),
        words: rig.words(to, 512),
    }
}

fn modes() -> [Options; 2] {
    let fast = Options {
        mode: Mode::Fast,
        ..Options::default()
    };
    let as_gpu = Options {
        as_gpu: true,
        ..Options::default()
    };
    [fast, as_gpu]
}

#[test]
fn a_launch_that_is_proved_runs_the_programs_own_code() {
    let text = TEXT.replace("END", "");
    let unchecked = Options {
        check: false,
        ..Options::default()
    };
    for far in [0, 256] {
        let alone = run(&text, &unchecked, far);
        for mode in modes() {
            let ran = run(&text, &mode, far);
            assert_eq!((ran.races, ran.judge), (0, Judge::Proof), "{far} {mode:?}");
            assert_eq!(ran.instructions, alone.instructions);
            assert_eq!(ran.words, alone.words);
            for prove in [Prove::Off, Prove::Audit] {
                let ran = run(
                    &text,
                    &Options {
                        prove,
                        ..mode.clone()
                    },
                    far,
                );
                assert_eq!((ran.races, ran.judge), (0, Judge::Cells));
                assert!(ran.instructions > alone.instructions + 100);
                assert_eq!(ran.words, alone.words);
            }
        }
    }
}

#[test]
fn a_launch_with_a_race_runs_its_checks() {
    let text = TEXT.replace("END", "");
    for mode in modes() {
        let [on, off, audit] = [Prove::On, Prove::Off, Prove::Audit].map(|prove| {
            let options = Options {
                prove,
                ..mode.clone()
            };
            let ran = run(&text, &options, 1);
            assert_eq!(ran.judge, Judge::Cells, "{options:?}");
            ran.races
        });
        assert!(on > 0, "{mode:?}");
        assert_eq!([on, on], [off, audit], "{mode:?}");
    }
}

#[test]
fn what_fails_in_the_programs_own_code_is_reported_by_its_own_lines() {
    let text = TEXT.replace("END", "trap;");
    for mode in modes() {
        let ran = run(&text, &mode, 256);
        let error = ran.error.unwrap();
        assert_eq!(ran.judge, Judge::Proof, "{error}");
        let line = text
            .lines()
            .position(|line| line.contains("trap;"))
            .unwrap()
            + 1;
        assert!(error.contains(&format!("line {line},")), "{error}");
        assert!(!error.contains("__cudarun"), "{error}");
    }
}

/// Every thread writes the same word, and the word of its number shifted by a parameter.
const KNOWN: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 one, .param .u64 all, .param .u64 by) { .reg .b64 %one, %all, %at; .reg .b32 %t, %c, %n, %by;\n\
    ld.param.u64 %one, [one]; cvta.to.global.u64 %one, %one; ld.param.u64 %all, [all];\n\
    cvta.to.global.u64 %all, %all; ld.param.u32 %by, [by];\n\
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.s32 %t, %c, %n, %t;\n\
    st.global.u32 [%one], %n;\n\
    shr.u32 %c, %t, %by; mul.wide.u32 %at, %c, 4; add.s64 %all, %all, %at;\n\
    st.global.u32 [%all], %t;\n\
    ret; }";

/// Every thread writes a word of shared memory, or of global memory, as a parameter says.
const EITHER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 word, .param .u64 in_global) { .shared .align 4 .b8 box[4];\n\
    .reg .b64 %at, %box, %which; .reg .b32 %t; .reg .pred %p;\n\
    ld.param.u64 %at, [word]; ld.param.u64 %which, [in_global];\n\
    mov.u64 %box, box; cvta.shared.u64 %box, %box; setp.eq.u64 %p, %which, 0;\n\
    selp.b64 %at, %box, %at, %p; mov.u32 %t, %tid.x;\n\
    st.u32 [%at], %t;\n\
    ret; }";

#[test]
fn a_pair_that_has_raced_in_one_memory_is_looked_for_in_the_other() {
    for mode in modes() {
        for in_global in [[0u64, 1, 1, 0], [1, 0, 0, 1]] {
            let mut rig = load(EITHER, mode.clone());
            let word = rig.memory(&[0]);
            let spaces = in_global.map(|which| {
                let before = rig.races().len();
                rig.try_launch(&launch(4, 64, &[word, which])).unwrap();
                let races = rig.races().split_off(before);
                races.iter().map(|race| race.space).collect::<Vec<_>>()
            });
            let expected = in_global.map(|which| match which {
                0 => Space::Shared,
                _ => Space::Global,
            });
            for (found, space) in spaces.iter().zip(expected).take(2) {
                assert!(!found.is_empty(), "{mode:?} {spaces:?}");
                assert!(found.iter().all(|of| *of == space), "{mode:?} {spaces:?}");
            }
            assert!(spaces[2..].iter().all(Vec::is_empty), "{mode:?} {spaces:?}");
        }
    }
}

#[test]
fn pairs_that_have_raced_are_not_looked_for_again_and_others_are() {
    for mode in modes() {
        let run = |prove, look_again| {
            let options = Options {
                shadow: ShadowSize::Bytes(1 << 20),
                prove,
                look_again,
                ..mode.clone()
            };
            let mut rig = load(KNOWN, options);
            let one = rig.memory(&[0]);
            let all = rig.memory(&(0..512).collect::<Vec<u32>>());
            // Two threads of different blocks have the same word only by the last shift.
            let ran = [0u64, 0, 0, 7, 7].map(|by| {
                let before = rig.races().len();
                rig.try_launch(&launch(4, 64, &[one, all, by])).unwrap();
                let races = rig.races().split_off(before);
                let reported: Vec<bool> = races.iter().map(|race| race.at_least).collect();
                (rig.launches().pop().unwrap().judge, reported)
            });
            (ran, rig.words(all, 2))
        };
        let (ran, words) = run(Prove::On, false);
        let [first, second, third, fourth, fifth] = ran;
        // Threads of one block and of two, which is what counts.
        assert_eq!(first.0, Judge::Cells);
        assert!(first.1.contains(&true), "{first:?}");
        assert_eq!([&second, &third], [&(Judge::Known, Vec::new()); 2]);
        assert_eq!(fourth.0, Judge::Cells);
        assert!(fourth.1.contains(&true), "{fourth:?}");
        assert_eq!(fifth, (Judge::Known, Vec::new()));
        for (prove, look_again) in [(Prove::Off, false), (Prove::On, true)] {
            let (all, same) = run(prove, look_again);
            assert_eq!(words, same);
            let checked = |(judge, reported): &(Judge, Vec<bool>)| {
                *judge == Judge::Cells && !reported.is_empty() && !reported.contains(&true)
            };
            assert!(all.iter().all(checked), "{all:?}");
        }
    }
}

/// Every thread writes the first word, and loads the word whose number a table has for it, before or behind that.
const LOOKED_UP: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 words, .param .u64 table) { .reg .b64 %words, %table, %at; .reg .b32 %t, %c, %n, %v;\n\
    ld.param.u64 %words, [words]; cvta.to.global.u64 %words, %words;\n\
    ld.param.u64 %table, [table]; cvta.to.global.u64 %table, %table;\n\
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.s32 %t, %c, %n, %t;\n\
    mul.wide.u32 %at, %t, 4; add.s64 %table, %table, %at; ld.global.u32 %v, [%table];\n\
    mul.wide.u32 %at, %v, 4; add.s64 %at, %words, %at;\n\
    BEFORE st.global.u32 [%words], %n;\n\
    BEHIND ret; }";

#[test]
fn a_store_whose_races_with_stores_are_known_is_still_found_by_loads() {
    const LOAD: &str = "ld.global.u32 %v, [%at];";
    for mode in modes() {
        for [before, behind] in [[LOAD, ""], ["", LOAD]] {
            let text = LOOKED_UP
                .replace("BEFORE", before)
                .replace("BEHIND", behind);
            let run = |look_again| {
                let options = Options {
                    look_again,
                    ..mode.clone()
                };
                let mut rig = load(&text, options);
                let words = rig.memory(&vec![0; 512]);
                // Words that nobody writes; then one thread of the first and of the last block looks up the first word.
                let mut table: Vec<u32> = (1..=256).collect();
                let apart = rig.memory(&table);
                (table[3], table[250]) = (0, 0);
                let meets = rig.memory(&table);
                [apart, apart, meets].map(|table| {
                    let before = rig.races().len();
                    rig.try_launch(&launch(8, 32, &[words, table])).unwrap();
                    let races = rig.races().split_off(before);
                    let found: Vec<bool> =
                        races.iter().map(|of| of.site != of.previous_site).collect();
                    let launch = rig.launches().pop().unwrap();
                    assert_eq!(launch.judge, Judge::Cells);
                    (found, launch.warp_instructions, launch.counters.conflicts)
                })
            };
            let [first, second, third] = run(false);
            let reported = format!("{mode:?} {before:?}: {first:?} {second:?} {third:?}");
            // The stores race with each other, and no more is said of that.
            assert!(
                !first.0.is_empty() && !first.0.contains(&true),
                "{reported}"
            );
            // Threads of one warp are looked at as before.
            assert!(!second.0.contains(&true), "{reported}");
            assert!(
                second.1 < first.1 / 2 && second.2 < first.2 / 4,
                "{reported}"
            );
            // A load and a store.
            assert!(third.0.contains(&true), "{reported}");
            let [_, second, third] = run(true);
            assert!(
                !second.0.is_empty() && second.2 == first.2,
                "{second:?}, {reported}"
            );
            assert!(third.0.contains(&true), "{third:?}");
        }
    }
}
