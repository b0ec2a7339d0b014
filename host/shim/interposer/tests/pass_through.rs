//! Programs over the interposer over the simulated driver: they see no difference.

use std::path::Path;

use crate::common::{Workdir, succeed, text};
use driver::sys::{Api, FUNCTION_NAMES, INTERPOSER_MARKER, LoadError, MARKER};
use report::log::Event;

/// A program of the driver API that says "ok" when everything was as it should be.
const PROGRAM: &str = "../cuda/tests/c/driver_api.c";

#[test]
fn a_program_of_the_driver_api_sees_no_difference() {
    let workdir = Workdir::new();
    let driver = workdir.simulated();
    let library = workdir.interposer().display().to_string();
    let program = workdir.compile(PROGRAM, "program", &[&library]);
    let logs = workdir.path("logs");
    std::fs::create_dir(&logs).expect("a writable folder");
    let mut command = workdir.command(&program, &driver);
    command.env("CUDARUN_CHECK_DIR", &logs);
    assert_eq!(text(&succeed(&mut command).stdout), "ok\n");
    // The driver behind does not check by itself, or there were two beginnings.
    let files = std::fs::read_dir(&logs).expect("a folder");
    let events = files.flat_map(|file| {
        let path = file.expect("a file").path();
        report::log::read(&path).expect("a log")
    });
    let starts = events.filter(|event| matches!(event, Event::Start { .. }));
    assert_eq!(starts.count(), 1);
    let hidden = workdir
        .command(&program, &driver)
        .env("CUDA_VISIBLE_DEVICES", "1")
        .output()
        .expect("it starts");
    assert!(text(&hidden.stdout).contains("CUDA_ERROR_NO_DEVICE"));
}

#[test]
fn what_is_hooked_is_ours_in_every_form_of_asking() {
    let workdir = Workdir::new();
    let driver = workdir.simulated();
    let library = workdir.interposer().display().to_string();
    let program = workdir.compile("tests/c/forms.c", "forms", &[&library, "-ldl"]);
    let printed = text(&succeed(&mut workdir.command(&program, &driver)).stdout);
    let expected = "\
cuGetProcAddress 11030 0: 0 0 ours
cuGetProcAddress 11080 2: 0 0 ours
cuGetProcAddress 12000 0: 0 0 ours
cuGetProcAddress 13000 1: 0 0 ours
cuGetProcAddress 12000 2: 0 0 ours
cuGetProcAddress_v2 12000 0: 0 0 ours
cuGetProcAddress 11000 0: 500 2 none
cuMemAlloc 13000 0: 0 0 ours
cuMemcpy 13000 2: 0 0 theirs
cuNoSuchThing 13000 0: 500 1 none
again: 0 ours
nowhere: 1
nothing: 1
";
    assert_eq!(printed, expected);
}

#[test]
fn every_name_is_exported_and_nothing_else() {
    let workdir = Workdir::new();
    let output = succeed(
        std::process::Command::new("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(workdir.interposer()),
    );
    let listed = text(&output.stdout);
    let mut exported: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    exported.sort_unstable();
    let mut expected: Vec<&str> = FUNCTION_NAMES.to_vec();
    expected.extend([MARKER, INTERPOSER_MARKER]);
    // What NVTX calls to have its ranges reported.
    expected.push("InitializeInjectionNvtx2");
    expected.sort_unstable();
    assert_eq!(exported, expected);
}

#[test]
fn the_interposer_never_stands_in_front_of_itself() {
    let workdir = Workdir::new();
    let library = workdir.interposer();
    let refused = Api::open_real(&library);
    assert!(matches!(refused, Err(LoadError::Ourselves(_))));
    let program = workdir.compile(PROGRAM, "program", &[&library.display().to_string()]);
    for (driver, says) in [
        (library.as_path(), "own driver, not the real one"),
        (Path::new("libcuda.so.1"), "by absolute path only"),
        (Path::new("/nowhere/libcuda.so.1"), "cannot load /nowhere"),
    ] {
        let output = workdir
            .command(&program, driver)
            .output()
            .expect("it starts");
        let said = text(&output.stderr);
        assert_eq!(said.matches(says).count(), 1, "{said}");
        // A call fails, and the program goes on to say so.
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
    // The simulated driver is a real one only when it is asked for.
    let output = workdir
        .command(&program, &workdir.simulated())
        .env_remove("CUDARUN_CHECK_DRIVER_SIMULATED")
        .output()
        .expect("it starts");
    assert!(text(&output.stderr).contains("not the real one"));
}
