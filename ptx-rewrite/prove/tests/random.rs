//! Random problems against all pairs of threads: nothing that can conflict is proved, and little else is not.
//!
//! `PROVE_CASES` and `PROVE_SEED` choose how many and which; `PROVE_SHOW` prints so many that are not proved although
//! nothing conflicts.

#![allow(clippy::print_stderr, reason = "a test says what it measured")]

mod make;
mod text;
mod truth;

use prove::Argument;
use prove::decide::decide;
use random::Random;

/// Problems in a plain run.
const CASES: u64 = 100_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn no_access_that_can_conflict_is_proved() {
    let (cases, seed) = (number("PROVE_CASES", CASES), number("PROVE_SEED", 1));
    let (mut judged, mut large, mut free, mut proved, mut accesses) = (0, 0, 0, 0, 0);
    let mut arguments = [0_u64; 4];
    let (mut shown, show) = (0, number("PROVE_SHOW", 0));
    for case in 0..cases {
        let seed = seed.wrapping_mul(1 << 32).wrapping_add(case);
        let case = make::case(&mut Random::new(seed));
        let Some(truths) = truth::truth(&case) else {
            large += 1;
            continue;
        };
        judged += 1;
        let decision = decide(&case.problem, u64::MAX);
        for (access, (result, truth)) in decision.accesses.iter().zip(&truths).enumerate() {
            accesses += 1;
            free += u64::from(!truth.conflict);
            let wrong = || {
                format!(
                    "seed {seed}, access {access}: {result:?}, {truth:?}\n{}",
                    text::text(&case.problem)
                )
            };
            if let Some(range) = truth.range {
                let known = decision.ranges[access];
                assert!(
                    known.is_some_and(|known| known.low <= range.0 && range.1 <= known.high),
                    "{}",
                    wrong()
                );
            }
            let Ok(argument) = result else {
                if !truth.conflict && shown < show {
                    shown += 1;
                    eprintln!("{}", wrong());
                }
                continue;
            };
            assert!(!truth.conflict, "{}", wrong());
            assert!(
                !truth.written || *argument != Argument::ReadOnly,
                "{}",
                wrong()
            );
            assert!(
                !truth.shared || *argument != Argument::Private,
                "{}",
                wrong()
            );
            proved += 1;
            arguments[*argument as usize] += 1;
        }
    }
    let share = |part: u64| f64::from(u32::try_from(part * 10_000 / free).unwrap()) / 100.0;
    eprintln!(
        "{judged} problems with {accesses} accesses ({large} too large to enumerate): {free} without a conflict, \
         {proved} of them proved ({} %); read-only, private, barriers, atomic: {arguments:?}",
        share(proved)
    );
    assert!(share(proved) > 99.5);
}
