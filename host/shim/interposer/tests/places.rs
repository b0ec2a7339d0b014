//! Memory of the host that kernels access is checked like the device's, in launches that access both as well.

use std::collections::BTreeSet;

use crate::common::program::Program;
use runtime::{Mode, Options};

#[test]
fn memory_of_the_host_is_checked() {
    let program = Program::of("tests/c/places.c");
    // The simulated driver puts memory that it allocates near the device's, and elsewhere it is the program's.
    for kind in ["registered", "allocated"] {
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run(&[kind], &options, "");
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, ("512\n", ""), "{kind} {mode:?}");
            assert_eq!(ran.racing(), ["both", "racy"], "{kind} {mode:?}");
            // One store of `racy`, and each of the two of `both`.
            let stores: BTreeSet<u32> = ran.races.iter().map(|race| race.site).collect();
            assert_eq!(stores.len(), 3, "{kind} {mode:?}");
            let outside = ran.launches.iter().map(|launch| {
                assert!(launch.checked, "{kind} {mode:?}");
                (launch.kernel.as_str(), launch.counters.outside)
            });
            let outside: Vec<(&str, u64)> = outside.collect();
            let expected = [("racy", 0), ("fine", 0), ("both", 0)];
            assert_eq!(outside, expected, "{kind} {mode:?}");
        }
    }
}

/// A graph has its memory while it runs, so a driver says nothing of it before. Of memory that no call has told of, the
/// driver knows.
#[test]
fn memory_of_graphs_and_what_the_driver_knows_of_is_checked_as_well() {
    let program = Program::of("tests/c/found.c");
    for (kind, made_by) in [
        ("graph", "cuGraphAddMemAllocNode"),
        ("captured", "cuMemAllocAsync"),
        ("beside", "a call that was not seen"),
    ] {
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run(&[kind], &options, "");
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, ("512\n", ""), "{kind} {mode:?}");
            assert_eq!(ran.racing(), ["racy"], "{kind} {mode:?}");
            let outside: u64 = ran.launches.iter().map(|of| of.counters.outside).sum();
            assert_eq!(outside, 0, "{kind} {mode:?}");
            for race in &ran.races {
                let made = race.allocation.as_ref().map(|of| of.api.as_str());
                assert_eq!(made, Some(made_by), "{kind} {mode:?}");
            }
        }
    }
}
