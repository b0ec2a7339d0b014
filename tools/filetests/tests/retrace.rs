//! The second opinion on what happens-before is told: it confirms what is right, and nothing else.

use std::collections::BTreeMap;

use filetests::random::kernel::{Act, Kernel};
use filetests::random::{Random, judge, make};
use filetests::retrace::Objection;
use filetests::retrace::faults::{FAULTS, Fault};

/// Kernels to falsify runs of.
const KERNELS: u64 = 150;
/// Tries of each fault on a run.
const TRIES: u32 = 4;
/// Longer runs take too much time.
const MOST_EVENTS: usize = 400;

/// Whether threads may go around a loop once more, or once less, and nobody could say so.
fn waits(kernel: &Kernel) -> bool {
    let waits = |act: &&Act| matches!(act, Act::Poll { .. } | Act::Pass { .. } | Act::Leave { .. });
    kernel.cooperative() || kernel.acts().iter().any(waits)
}

#[test]
fn nothing_falsified_is_confirmed() {
    let mut noticed: BTreeMap<Fault, u32> = BTreeMap::new();
    for seed in 0..KERNELS {
        let kernel = make::kernel(seed);
        let recorded = judge::record(&kernel, seed % 7).unwrap();
        match recorded.confirm(&recorded.heard) {
            Ok(()) => {}
            Err(Objection::NotUnderstood(_)) => continue,
            Err(objection) => panic!("seed {seed}: {objection}"),
        }
        let length = recorded.heard.len();
        if length > MOST_EVENTS {
            continue;
        }
        let mut random = Random::new(seed);
        for fault in FAULTS {
            if fault.may_be_a_loop() && waits(&kernel) {
                continue;
            }
            for _ in 0..TRIES {
                let number = random.below(length as u32) as usize;
                let Some(falsified) = fault.falsify(&recorded.heard, number) else {
                    continue;
                };
                let event = &recorded.heard[number];
                let confirmed = recorded.confirm(&falsified);
                assert!(
                    matches!(confirmed, Err(Objection::Differs { .. })),
                    "seed {seed}: {fault:?} of event {number} is not noticed: {event:?}: {confirmed:?}"
                );
                *noticed.entry(fault).or_default() += 1;
            }
        }
    }
    for fault in FAULTS {
        let count = noticed.get(&fault).copied().unwrap_or(0);
        assert!(count >= 10, "{fault:?} was tried {count} times only");
    }
}
