//! What reaches a driver, and what comes back: a small driver in C, and a program that calls it.

use crate::common::{Workdir, succeed, text};

/// Calls of the driver's own functions stay inside; without the last word they come to us.
const SYMBOLIC: [&str; 3] = ["-shared", "-fPIC", "-Wl,-Bsymbolic"];

#[test]
fn every_kind_of_argument_passes_whoever_is_first() {
    let workdir = Workdir::new();
    let fake = workdir.compile("tests/c/fake.c", "fake.so", &SYMBOLIC);
    let bound = workdir.compile("tests/c/fake.c", "bound.so", &SYMBOLIC[..2]);
    let library = workdir.interposer().display().to_string();
    let program = workdir.compile("tests/c/calls.c", "calls", &[&library, "-ldl", "-lpthread"]);
    for first in [
        "integers",
        "numbers",
        "structures",
        "variable",
        "vectors",
        "missing",
        "itself",
        "lookups",
        "hooks",
        "threads",
    ] {
        for driver in [&fake, &bound] {
            let mut command = workdir.command(&program, driver);
            if driver == &bound {
                command.env("FAKE_BOUND", "1");
            }
            let output = command.arg(first).output().expect("it starts");
            let said = text(&output.stdout) + &text(&output.stderr);
            assert_eq!(said, "ok\n", "{first}: {}", output.status);
        }
    }
}

#[test]
fn a_driver_that_answers_with_other_addresses_is_understood_by_name() {
    let workdir = Workdir::new();
    let fake = workdir.compile("tests/c/fake.c", "fake.so", &SYMBOLIC);
    let library = workdir.interposer().display().to_string();
    let program = workdir.compile("tests/c/calls.c", "calls", &[&library, "-ldl", "-lpthread"]);
    let run = |version: &str| {
        let mut command = workdir.command(&program, &fake);
        command.env("FAKE_INNER", "1").env("FAKE_VERSION", version);
        succeed(command.arg("hooks"))
    };
    let known = run("13000");
    assert_eq!(
        (text(&known.stdout).as_str(), known.stderr.len()),
        ("ok\n", 0)
    );
    // Twice asked, once said.
    let newer = run("14000");
    assert_eq!(text(&newer.stdout), "ok\n");
    let said = text(&newer.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("the driver's cuGetProcAddress of CUDA 14.0 is not known"));
}
