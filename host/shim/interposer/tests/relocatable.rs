//! Programs of several translation units (`nvcc -rdc=true`) are checked, and compute what they compute
//! without.

use crate::common::program::Program;
use crate::common::text;
use runtime::{Mode, Options};

/// What `fine` leaves: 128 words that were 1, with 3 added three times.
const SUM: &str = "1280\n";

#[test]
fn units_are_linked_and_checked() {
    let program = Program::of("tests/c/units.c");
    for form in ["module", "library", "link"] {
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run(&[form, "both"], &options, "");
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, (SUM, ""), "{form} {mode:?}: {:?}", ran.notes);
            assert_eq!(ran.racing(), ["racy"], "{form} {mode:?}: {:?}", ran.notes);
            for kernel in ["racy", "fine"] {
                assert_eq!(ran.checked(kernel), [true; 3], "{form} {mode:?} {kernel}");
            }
            // Not the text that the simulated driver has made of both.
            let origin = match form {
                "link" => "kernels + functions",
                _ => "embedded compute_70 code + embedded compute_70 code",
            };
            assert_eq!(ran.origins, [origin], "{form} {mode:?}");
            // The race is on a variable of another unit, in a function of another unit.
            let variable = |of: &report::log::Race| {
                let made = of.allocation.as_ref().map(|of| of.api.as_str());
                made == Some("variable word")
            };
            assert!(ran.races.iter().all(variable), "{form} {mode:?}");
        }
    }
}

/// The driver gets the program's own image, and the program its answer.
#[test]
fn units_that_cannot_be_linked_run_as_they_are() {
    let program = Program::of("tests/c/units.c");
    for (units, says) in [
        (
            "one",
            "relocatable device code that runs unchecked: embedded compute_70 code needs put",
        ),
        (
            "nested",
            "kernels that launch kernels are not checked on a GPU",
        ),
        (
            "conditional",
            "kernels that call cudaGraphSetConditional are not checked on a GPU",
        ),
        (
            "nested-conditional",
            "kernels that launch kernels or call cudaGraphSetConditional are not checked on a GPU",
        ),
    ] {
        let mut alone = program.workdir.command(&program.program, &program.driver);
        let alone = alone.args(["module", units]).output().expect("a program");
        let ran = program.run(&["module", units], &Options::default(), "");
        assert_eq!(ran.code, alone.status.code(), "{units}");
        assert_eq!(ran.stdout, text(&alone.stdout), "{units}");
        let said = ran.missed.iter().filter(|text| text.contains(says));
        assert_eq!(said.count(), 1, "{units}: {:?}", ran.missed);
    }
    // Kernels without PTX are reported when they are launched. The simulated driver does not load them.
    let ran = program.run(&["module", "machine-code"], &Options::default(), "");
    assert_ne!(ran.code, Some(0));
    assert!(
        ran.missed.is_empty() && ran.notes.is_empty(),
        "{:?}",
        ran.notes
    );
    // It links, and the driver does not take it.
    let ran = program.run(
        &["module", "both"],
        &Options::default(),
        "cuModuleLoadDataEx#1=218,cuModuleLoadDataEx#2=218,cuModuleLoadDataEx#3=218",
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM));
    assert_eq!(ran.checked("fine"), [false; 3]);
    let why = ran.launches[0].why_not.as_deref().unwrap_or_default();
    assert!(why.contains("does not load with checks"), "{why}");
}
