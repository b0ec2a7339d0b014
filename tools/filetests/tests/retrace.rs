//! The second opinion on what happens-before receives: it confirms what is right, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use filetests::args::Arg;
use filetests::machine::{Checks, Launch, Machine};
use filetests::random::kernel::{Act, Kernel};
use filetests::random::{Random, judge, make};
use filetests::retrace::Objection;
use filetests::retrace::faults::{FAULTS, Fault};
use filetests::{files, header, race};
use runtime::{Mode, Prove};

/// Kernels to falsify runs of.
const KERNELS: u64 = 130;
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
        match recorded.confirm(&recorded.traced) {
            Ok(()) => {}
            Err(Objection::NotUnderstood(_)) => continue,
            Err(objection) => panic!("seed {seed}: {objection}"),
        }
        let length = recorded.traced.len();
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
                let Some(falsified) = fault.falsify(&recorded.traced, number) else {
                    continue;
                };
                let event = &recorded.traced[number];
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

/// The files of `tests/race` whose events the second interpreter confirms, of so many out of a hundred
/// that run to their end.
const CONFIRMED: usize = 90;

#[test]
fn the_events_of_race_tests_are_what_their_text_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/race");
    let mut unknown: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut confirmed, mut ended) = (0, 0);
    for path in files::below(&root, "ptx").unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        let cases = header::cases(&text).unwrap();
        // All revisions but those that differ in the memory model alone.
        let models = ["ptx", "scoped"];
        let cases = cases
            .iter()
            .filter(|case| !case.get("model").is_some_and(|m| models.contains(&m)));
        for case in cases {
            let name = format!("{} {}", path.display(), case.revision);
            let arguments = race::arguments(case).unwrap();
            let images = arguments.iter().any(|arg| matches!(arg, Arg::Image(_)));
            if images || case.get("then").is_some() {
                unknown
                    .entry("images or two launches".to_owned())
                    .or_default()
                    .push(name);
                continue;
            }
            // The engine is to hear of all accesses, whatever is proved.
            let checks = Checks {
                prove: Prove::Off,
                ..Checks::by(Mode::Precise)
            };
            let machine = Machine::new(Some(checks), 3).unwrap();
            let launch = Launch::of(case).unwrap();
            let trace = match machine.trace(&case.text, &launch, &arguments) {
                Ok(trace) => trace,
                Err(error) => {
                    unknown.entry(format!("{error:#}")).or_default().push(name);
                    continue;
                }
            };
            ended += 1;
            match trace.confirm() {
                Ok(()) => confirmed += 1,
                Err(Objection::NotUnderstood(what)) => unknown.entry(what).or_default().push(name),
                Err(objection) => panic!("{name}: {objection}"),
            }
        }
    }
    let list = || {
        unknown
            .iter()
            .map(|(what, names)| format!("{what}: {names:?}\n"))
    };
    assert!(
        confirmed * 100 > ended * CONFIRMED,
        "{confirmed} of {ended}\n{}",
        list().collect::<String>()
    );
}
