//! Memory of the host that kernels access is checked like the device's, as far as one launch does not access
//! both: then accesses to the smaller part are counted.

use crate::common::program::Program;
use runtime::{Mode, Options};

#[test]
fn memory_of_the_host_is_checked_where_a_kernel_is_given_nothing_else() {
    let program = Program::of("tests/c/places.c");
    // The simulated driver puts memory that it allocates near the device's, and elsewhere it is the program's.
    for (kind, of_both) in [("registered", 128), ("allocated", 0)] {
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run(&[kind], &options, "");
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, ("512\n", ""), "{kind} {mode:?}");
            assert_eq!(ran.racing(), ["both", "racy"], "{kind} {mode:?}");
            let outside = ran.launches.iter().map(|launch| {
                assert!(launch.checked, "{kind} {mode:?}");
                (launch.kernel.as_str(), launch.counters.outside)
            });
            // What `both` stores to the host's memory: COVERAGE tells how often.
            let outside: Vec<(&str, u64)> = outside.collect();
            let expected = [("racy", 0), ("fine", 0), ("both", of_both)];
            assert_eq!(outside, expected, "{kind} {mode:?}");
        }
    }
}

/// Nobody but the driver knows of memory that other calls than the usual ones have made.
#[test]
fn memory_that_nobody_has_told_of_is_checked_as_well() {
    let program = Program::of("tests/c/found.c");
    for mode in [Mode::Precise, Mode::Fast] {
        let options = Options {
            mode,
            ..Options::default()
        };
        let ran = program.run(&[], &options, "");
        let said = (ran.stdout.as_str(), ran.stderr.as_str());
        assert_eq!(said, ("512\n", ""), "{mode:?}");
        assert_eq!(ran.racing(), ["racy"], "{mode:?}");
        let outside: u64 = ran.launches.iter().map(|of| of.counters.outside).sum();
        assert_eq!(outside, 0, "{mode:?}");
    }
}
