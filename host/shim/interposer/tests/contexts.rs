//! Launches that bring their context with them, and functions that a program comes to by way of others.

use crate::common::text;
use crate::common::{self, program::Program};
use runtime::{Mode, Options};

#[test]
fn kernels_of_libraries_are_checked_where_they_run() {
    let program = Program::of("tests/c/contexts.c");
    let two = [("CUDARUN_SIM_DEVICES", "2")];
    for (form, prints) in [
        ("function", "896\n"),
        ("other", "896\n"),
        // The default stream is the current context's, and there is none.
        ("none", "201\n896\n"),
    ] {
        let mut alone = program.workdir.command(&program.program, &program.driver);
        let output = common::succeed(alone.arg(form).envs(two));
        assert_eq!(text(&output.stdout), prints, "{form}");
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run_with(&[form], &options, &two);
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, (prints, ""), "{form} {mode:?} {:?}", ran.notes);
            assert_eq!(ran.code, Some(0), "{form} {mode:?}");
            assert_eq!(ran.racing(), ["racy"], "{form} {mode:?}");
            assert_eq!(ran.checked("racy"), [true; 2], "{form} {mode:?}");
            assert_eq!(ran.checked("fine"), [true; 2], "{form} {mode:?}");
        }
    }
}
