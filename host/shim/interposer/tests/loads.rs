//! Loads as a real driver makes them: lazily, with results for the program, and with its word that the image
//! stays.

use crate::common::program::Program;
use runtime::Options;

/// What `fine` leaves: 128 words that were 1, with 3 added.
const SUM: &str = "512\n";
/// What the options of the load return, and that.
const EXPECTED: &str = "timed, 0 of information, 0 of errors\n512\n";
/// The driver loads a library when something of it is first needed.
const LAZY: (&str, &str) = ("CUDARUN_SIM_LAZY", "1");

fn program() -> Program {
    Program::of("tests/c/loads.c")
}

#[test]
fn loads_are_checked_however_late_the_driver_makes_them() {
    let program = program();
    for (form, prints) in [
        ("module", EXPECTED),
        ("library", EXPECTED),
        // The driver may read the image until the library is unloaded, and it is not the program's.
        ("preserved", EXPECTED),
        ("before-context", SUM),
    ] {
        for lazy in [&[][..], &[LAZY]] {
            let ran = program.run_with(&[form], &Options::default(), lazy);
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, (prints, ""), "{form} {lazy:?} {:?}", ran.notes);
            assert_eq!(ran.code, Some(0), "{form}");
            assert_eq!(ran.racing(), ["racy"], "{form} {lazy:?}");
            assert_eq!(ran.checked("fine"), [true], "{form} {lazy:?}");
        }
    }
}

/// What a driver cannot compile with checks may show when the library is first needed only; by then the
/// program's own image has to be there.
#[test]
fn a_library_that_does_not_compile_with_checks_runs_as_it_is() {
    let program = program();
    let fail = [1, 2, 3]
        .map(|n| format!("cuLibraryGetModule#{n}=218"))
        .join(",");
    let fail = ("CUDARUN_SIM_FAIL", fail.as_str());
    for more in [&[fail][..], &[fail, LAZY]] {
        let ran = program.run_with(&["library"], &Options::default(), more);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), EXPECTED));
        assert_eq!(ran.checked("fine"), [false]);
        let why = ran.launches[0].why_not.as_deref().unwrap_or_default();
        assert!(why.contains("does not load with checks"), "{why}");
    }
}

/// The driver says so in place of a launch.
#[test]
fn a_kernel_that_does_not_load_at_its_first_launch_is_counted_as_failed() {
    let program = program();
    let fail = ("CUDARUN_SIM_FAIL", "cuLaunchKernel#2=218");
    let ran = program.run_with(&["library"], &Options::default(), &[fail, LAZY]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("= 218\n"), "{}", ran.stdout);
    let failed = ran.launches.iter().filter(|launch| launch.error.is_some());
    let failed: Vec<&str> = failed.map(|launch| launch.kernel.as_str()).collect();
    let (_, later) = ran.launches.split_first().expect("a launch before");
    assert_eq!(failed, [later[0].kernel.as_str()]);
    assert!(!later[0].invalid);
}

/// Also where it takes a second load, because the first with fewer registers fails.
#[test]
fn results_of_a_load_are_those_of_the_load_that_counts() {
    let program = program();
    for (form, fail) in [
        ("module", "cuModuleLoadDataEx#1=218"),
        ("library", "cuLibraryLoadData#1=218"),
    ] {
        let ran = program.run(&[form], &Options::default(), fail);
        assert_eq!(ran.checked("fine"), [true], "{form}");
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), EXPECTED),
            "{form}"
        );
    }
}

#[test]
fn options_without_values_are_refused_by_the_driver() {
    let program = program();
    let ran = program.run(&["missing-options"], &Options::default(), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1\n1\n"));
}
