//! What captures forbid the program, they do not forbid us, and what we do ends none.

use crate::common::text;
use crate::common::{
    self,
    program::{Program, Ran},
};
use runtime::{Mode, Options};

/// 128 words that were 1, with 3 added eight times, in the graph and beside it.
const SUMS: &str = "3200\n3200\n";

/// The program has computed what it should, and every launch was checked.
fn assert_checked(ran: &Ran, what: &str) {
    let said = (ran.stdout.as_str(), ran.stderr.as_str());
    assert_eq!(said, (SUMS, ""), "{what}");
    assert_eq!(ran.code, Some(0), "{what}");
    assert_eq!(ran.racing(), ["racy"], "{what}");
    assert_eq!(ran.checked("fine"), [true; 16], "{what}");
}

#[test]
fn launches_are_checked_while_streams_are_captured() {
    let program = Program::of("tests/c/capture.c");
    // `CU_STREAM_CAPTURE_MODE_GLOBAL` and its like.
    for capture in ["0", "1", "2"] {
        for load in ["module", "library"] {
            // A driver that loads lazily does so at the first launch, which is captured.
            let lazy = [("CUDARUN_SIM_LAZY", "1")];
            for (mode, more) in [
                (Mode::Precise, &[][..]),
                (Mode::Fast, &[]),
                (Mode::Precise, &lazy),
            ] {
                let options = Options {
                    mode,
                    ..Options::default()
                };
                let ran = program.run_with(&[capture, load], &options, more);
                let what = format!("{capture} {load} {mode:?} {more:?} {:?}", ran.notes);
                assert_checked(&ran, &what);
            }
        }
    }
}

#[test]
fn another_thread_may_load_and_first_use_a_module_during_a_capture() {
    let program = Program::of("tests/c/capture.c");
    for capture in ["0", "1", "2"] {
        for load in ["module", "library"] {
            for lazy in ["0", "1"] {
                let lazy = [("CUDARUN_SIM_LAZY", lazy)];
                let options = Options::default();
                let ran = program.run_with(&[capture, load, "there"], &options, &lazy);
                let what = format!("{capture} {load} {lazy:?} {:?}", ran.notes);
                assert_checked(&ran, &what);
            }
        }
    }
}

#[test]
fn captures_forbid_the_program_what_they_forbid_it_without_us() {
    let program = Program::of("tests/c/capture.c");
    for (capture, form, prints) in [
        ("0", "forbidden", "900 2 901\n"),
        ("0", "forbidden-here", "900 2 901\n"),
        ("1", "forbidden", "0 1 0\n"),
        ("1", "forbidden-here", "900 2 901\n"),
        ("2", "forbidden", "0 1 0\n"),
        ("2", "forbidden-here", "0 1 0\n"),
    ] {
        let mut alone = program.workdir.command(&program.program, &program.driver);
        let output = common::succeed(alone.args([capture, form]));
        assert_eq!(text(&output.stdout), prints, "{capture} {form}");
        let ran = program.run(&[capture, form], &Options::default(), "");
        assert_eq!(ran.stdout, prints, "{capture} {form}");
        // Beside a capture that may have failed, and in the next one.
        let checked = ran.checked("fine");
        let ended = checked.len() - checked.iter().filter(|checked| **checked).count();
        assert_eq!((checked.len() >= 2, ended), (true, 0), "{capture} {form}");
        assert_eq!(ran.racing(), ["racy"], "{capture} {form}");
    }
}
