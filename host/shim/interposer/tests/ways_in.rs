//! How the interposer gets between a program and its driver, and how programs end with it there.

use std::path::Path;
use std::process::Command;

use crate::common::{Workdir, succeed, text};

const PROGRAM: &str = "tests/c/ways.c";

/// As the command line does it.
fn checked(workdir: &Workdir, program: &Path, driver: &Path) -> Command {
    let mut command = workdir.command(program, driver);
    command.env("LD_PRELOAD", workdir.interposer());
    command.env("LD_AUDIT", workdir.audit());
    command.env("CUDARUN_CHECK_LIBRARIES", workdir.path("gpu"));
    command
}

/// What it prints when it has got the interposer, and that the driver behind.
fn got(workdir: &Workdir) -> String {
    format!(
        "file {}\ncuInit 0\nversion 0 13000\n",
        workdir.interposer().display()
    )
}

#[test]
fn a_linked_program_gets_the_interposer() {
    let workdir = Workdir::new();
    let driver = workdir.simulated();
    let link = driver.display().to_string();
    let run_path = format!("-Wl,-rpath,{}", workdir.path("").display());
    for (name, kind) in [
        ("plain", None),
        ("runpath", Some("-Wl,--enable-new-dtags")),
        ("rpath", Some("-Wl,--disable-new-dtags")),
    ] {
        let mut options = vec!["-DLINKED", &link, "-ldl"];
        options.extend(kind.map(|_| run_path.as_str()));
        options.extend(kind);
        let program = workdir.compile(PROGRAM, name, &options);
        let mut command = checked(&workdir, &program, &driver);
        assert_eq!(
            text(&succeed(command.arg("linked")).stdout),
            got(&workdir),
            "{name}"
        );
        // Each of the two ways is enough.
        command.env_remove("LD_AUDIT");
        assert_eq!(text(&succeed(&mut command).stdout), got(&workdir), "{name}");
        let mut command = checked(&workdir, &program, &driver);
        command.env_remove("LD_PRELOAD").arg("linked");
        assert_eq!(text(&succeed(&mut command).stdout), got(&workdir), "{name}");
        // Without either, an RPATH wins over LD_LIBRARY_PATH: the test would be none otherwise.
        let mut command = workdir.command(&program, &driver);
        let alone = text(&succeed(command.arg("linked")).stdout);
        assert_eq!(alone == got(&workdir), name != "rpath", "{alone}");
    }
}

#[test]
fn a_program_that_opens_a_driver_gets_the_interposer() {
    let workdir = Workdir::new();
    let driver = workdir.simulated();
    std::os::unix::fs::symlink("libcuda.so.1", workdir.path("libcuda.so")).expect("a link");
    let program = workdir.compile(PROGRAM, "program", &["-ldl"]);
    let absolute = driver.display().to_string();
    let plain = workdir.path("libcuda.so").display().to_string();
    for name in ["libcuda.so.1", "libcuda.so", &absolute, &plain] {
        let mut command = checked(&workdir, &program, &driver);
        assert_eq!(
            text(&succeed(command.arg(name)).stdout),
            got(&workdir),
            "{name}"
        );
    }
    for name in ["libcuda.so.1", "libcuda.so", &absolute, &plain] {
        let mut command = checked(&workdir, &program, &driver);
        let printed = text(&succeed(command.arg(format!("namespace:{name}"))).stdout);
        assert_eq!(printed, "marked 1\ncuInit 0\nversion 0 13000\n", "{name}");
    }
    // One interposer and one driver is enough for the program, or there is none of ours.
    let mut command = checked(&workdir, &program, &driver);
    command.env_remove("LD_PRELOAD");
    let printed = text(&succeed(command.arg(format!("namespace:{absolute}"))).stdout);
    assert_eq!(printed, "marked 0\ncuInit 0\nversion 0 13000\n");
    // Without the audit library the absolute path leads past us: the test would be none otherwise.
    let mut command = checked(&workdir, &program, &driver);
    let printed = text(&succeed(command.env_remove("LD_AUDIT").arg(&absolute)).stdout);
    assert_eq!(
        printed,
        format!("file {absolute}\ncuInit 0\nversion 0 13000\n")
    );
    // Other libraries are left alone.
    let mut command = checked(&workdir, &program, &driver);
    let output = command.arg("libm.so.6").output().expect("it starts");
    assert!(text(&output.stdout).contains("undefined symbol: cu"));
}

#[test]
fn without_its_variable_the_audit_library_takes_no_part() {
    let workdir = Workdir::new();
    let driver = workdir.simulated();
    let program = workdir.compile(PROGRAM, "program", &["-ldl"]);
    let absolute = driver.display().to_string();
    for folder in [None, Some("relative")] {
        let mut command = workdir.command(&program, &driver);
        command.env("LD_AUDIT", workdir.audit()).arg(&absolute);
        if let Some(path) = folder {
            command.env("CUDARUN_CHECK_LIBRARIES", path);
        }
        let printed = text(&succeed(&mut command).stdout);
        assert!(
            printed.starts_with(&format!("file {absolute}\n")),
            "{printed}"
        );
    }
}

#[test]
fn programs_end_as_they_do_without_us() {
    let workdir = Workdir::new();
    let driver = workdir.simulated();
    let link = driver.display().to_string();
    let linked = workdir.compile(PROGRAM, "linked", &["-DLINKED", &link, "-ldl"]);
    let opens = workdir.compile(PROGRAM, "opens", &["-ldl"]);
    for (program, way, end) in [
        (&linked, "linked", "fork"),
        (&linked, "linked", "_exit"),
        (&linked, "linked", "abort"),
        (&linked, "linked", "atexit"),
        (&opens, "libcuda.so.1", "unload"),
        (&opens, "libcuda.so.1", "atexit"),
        (&opens, "libcuda.so.1", "fork"),
    ] {
        let output = checked(&workdir, program, &driver)
            .args([way, end])
            .output();
        let output = output.expect("it starts");
        let mut alone = workdir.command(program, &driver);
        alone.env("LD_LIBRARY_PATH", workdir.path(""));
        let alone = alone.args([way, end]).output().expect("it starts");
        assert_eq!(output.status, alone.status, "{way} {end}");
        assert_eq!(output.stderr, alone.stderr, "{way} {end}");
        let after = |bytes: &[u8]| {
            text(bytes)
                .split_once('\n')
                .map(|(_, rest)| rest.to_owned())
        };
        assert_eq!(after(&output.stdout), after(&alone.stdout), "{way} {end}");
        assert!(
            text(&output.stdout).starts_with(&got(&workdir)),
            "{way} {end}"
        );
    }
}

#[test]
fn a_program_without_cuda_never_loads_a_driver() {
    let workdir = Workdir::new();
    // Nobody would notice a driver that does not exist, and nothing is said of it.
    let mut command = checked(
        &workdir,
        Path::new("/bin/echo"),
        Path::new("/nowhere/libcuda.so.1"),
    );
    let output = succeed(command.arg("hello"));
    assert_eq!(
        (text(&output.stdout).as_str(), output.stderr.len()),
        ("hello\n", 0)
    );
}
