//! What a program is told of its kernels is what it is told without checks.

use crate::common::program::Program;
use crate::common::{succeed, text};
use runtime::Options;

#[test]
fn a_program_gets_answers_about_its_own_kernels() {
    let program = Program::of("tests/c/queries.c");
    for form in ["module", "library"] {
        let mut alone = program.workdir.command(&program.program, &program.driver);
        let alone = text(&succeed(alone.arg(form)).stdout);
        for options in [Options::default(), fast()] {
            let ran = program.run(&[form], &options, "");
            assert_eq!(ran.stdout, alone, "{form}");
            assert_eq!(ran.code, Some(0), "{form} {}", ran.stderr);
            assert_eq!(ran.racing(), ["racy"], "{form}");
            assert_eq!(ran.checked("fine"), [true], "{form}");
        }
    }
}

/// With the answers of the kernels with checks the program would see a difference, or the first test could not fail.
#[test]
fn answers_would_differ_with_checks() {
    let program = Program::of("tests/c/queries.c");
    let ran = program.run(&["module"], &Options::default(), "cuLibraryLoadData#1=218");
    let mut alone = program.workdir.command(&program.program, &program.driver);
    let alone = text(&succeed(alone.arg("module")).stdout);
    assert_ne!(ran.stdout, alone);
    assert_eq!((ran.code, ran.racing()), (Some(0), vec!["racy".to_owned()]));
}

/// More blocks than fit with checks would be refused, or wait for ever.
#[test]
fn blocks_that_wait_for_one_another_all_fit() {
    let program = Program::of("tests/c/queries.c");
    let ran = program.run(&["waits"], &Options::default(), "");
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(ran.checked("waits"), [true]);
    let mut alone = program.workdir.command(&program.program, &program.driver);
    assert_eq!(ran.stdout, text(&succeed(alone.arg("waits")).stdout));
}

fn fast() -> Options {
    Options {
        mode: runtime::Mode::Fast,
        ..Options::default()
    }
}
