//! Which memory is checked: that of the host and of graphs as well as that of the device, in one launch too.

use std::collections::BTreeSet;

use crate::common::program::{Program, Ran};
use runtime::{Mode, Options};

/// Runs a program with an argument in both modes. It must print what `fine` leaves, all launches must be checked, and no
/// access may be outside the checked memory.
fn run(program: &Program, argument: &str, judge: impl Fn(&Ran)) {
    for mode in [Mode::Precise, Mode::Fast] {
        let options = Options {
            mode,
            ..Options::default()
        };
        let ran = program.run(&[argument], &options, "");
        let printed = (ran.stdout.as_str(), ran.stderr.as_str());
        assert_eq!(printed, ("512\n", ""), "{argument} {mode:?}");
        for launch in &ran.launches {
            let outside = launch.counters.outside;
            assert!(launch.checked && outside == 0, "{argument} {mode:?}");
        }
        judge(&ran);
    }
}

#[test]
fn memory_of_the_host_is_checked() {
    let program = Program::of("tests/c/places.c");
    // The simulated driver allocates host memory near the device's. Memory that the program registers lies elsewhere.
    for kind in ["registered", "allocated"] {
        run(&program, kind, |ran| {
            assert_eq!(ran.racing(), ["both", "racy"], "{kind}");
            // The store of `racy` and the two stores of `both`.
            let stores: BTreeSet<u32> = ran.races.iter().map(|race| race.site).collect();
            assert_eq!(stores.len(), 3, "{kind}");
        });
    }
}

/// Memory of graphs is known by the calls that allocate it. The driver is asked about memory that no hooked call has
/// allocated.
#[test]
fn memory_of_graphs_and_memory_that_only_the_driver_knows_is_checked() {
    let program = Program::of("tests/c/found.c");
    for (kind, api) in [
        ("graph", "cuGraphAddMemAllocNode"),
        ("captured", "cuMemAllocAsync"),
        ("beside", "a call that was not seen"),
    ] {
        run(&program, kind, |ran| {
            assert_eq!(ran.racing(), ["racy"], "{kind}");
            for race in &ran.races {
                let allocation = race.allocation.as_ref();
                assert_eq!(allocation.map(|of| of.api.as_str()), Some(api), "{kind}");
            }
        });
    }
}
