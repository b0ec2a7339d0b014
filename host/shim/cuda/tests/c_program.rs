//! The library as a program meets it: linked into `libcuda.so.1`, found by the loader.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The static library, which cargo builds beside the tests under a name with a hash.
fn archive() -> PathBuf {
    let test = std::env::current_exe().expect("a running test");
    let folder = test
        .parent()
        .expect("a folder")
        .read_dir()
        .expect("a readable folder");
    let ours = folder.flatten().filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with("libcudarun_shim_cuda-") && name.ends_with(".a")
    });
    // Old builds stay around; the newest is the one this test was built with.
    let newest = ours.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    newest.expect("a static library").path()
}

/// Links the static library of this build the way `cargo xtask dist` does.
fn link(folder: &Path) -> PathBuf {
    let archive = archive();
    let script = folder.join("exports.map");
    std::fs::write(&script, "{ global: cu*; local: *; };\n").expect("a writable folder");
    let library = folder.join("libcuda.so.1");
    let linked = Command::new("cc")
        .args(["-shared", "-o"])
        .arg(&library)
        .arg("-Wl,--whole-archive")
        .arg(&archive)
        .args([
            "-Wl,--no-whole-archive",
            "-Wl,-soname,libcuda.so.1",
            "-Wl,-Bsymbolic",
        ])
        .args([
            "-Wl,-z,nodelete",
            &format!("-Wl,--version-script={}", script.display()),
        ])
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lc"])
        .output()
        .expect("a C compiler");
    assert!(
        linked.status.success(),
        "{}",
        String::from_utf8_lossy(&linked.stderr)
    );
    library
}

#[test]
fn a_c_program_of_the_driver_api_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = link(folder.path());
    let program = folder.path().join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/driver_api.c");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg(&source)
        .arg(&library)
        .output()
        .expect("a C compiler");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).expect("a writable folder");
    let run = |devices: Option<&str>, checked: bool| {
        let mut command = Command::new(&program);
        command
            .env_remove("CUDARUN_CHECK_DIR")
            .env_remove("CUDARUN_CHECK_RUN");
        if checked {
            command.env("CUDARUN_CHECK_DIR", &logs);
        }
        command
            .env("LD_LIBRARY_PATH", folder.path())
            .env_remove("CUDA_VISIBLE_DEVICES");
        command.env_remove("CUDA_LAUNCH_BLOCKING");
        if let Some(devices) = devices {
            command.env("CUDA_VISIBLE_DEVICES", devices);
        }
        let output = command.output().expect("the program starts");
        (
            output.status,
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (status, text) = run(None, false);
    assert!(status.success() && text == "ok\n", "{status}: {text}");
    // The same with checks: nothing changes for the program, and its kernels are free of races.
    let (status, text) = run(None, true);
    assert!(status.success() && text == "ok\n", "{status}: {text}");
    let log = std::fs::read_dir(&logs)
        .expect("a folder")
        .flatten()
        .map(|file| file.path())
        .find(|path| {
            path.extension()
                .is_some_and(|end| end == report::log::EXTENSION)
        })
        .expect("a log");
    let events = report::log::read(&log).expect("a readable log");
    let launches = events.iter().filter_map(|event| match event {
        report::log::Event::Launch(launch) => Some(launch),
        _ => None,
    });
    assert!(launches.clone().count() >= 10);
    assert!(
        launches
            .clone()
            .all(|launch| launch.checked != launch.invalid && launch.counters.conflicts == 0)
    );
    // The program asks for too much on purpose.
    assert!(launches.clone().any(|launch| launch.invalid));
    let (status, text) = run(Some("1"), false);
    assert!(
        !status.success() && text.contains("CUDA_ERROR_NO_DEVICE"),
        "{status}: {text}"
    );
}

#[test]
fn a_call_fails_when_a_test_asks_for_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = link(folder.path());
    let program = folder.path().join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/driver_api.c");
    let mut cc = Command::new("cc");
    cc.arg("-o").arg(&program).args([&source, &library]);
    assert!(cc.status().expect("a C compiler").success());
    let run = |failures: &str| {
        let mut command = Command::new(&program);
        command
            .env("LD_LIBRARY_PATH", folder.path())
            .env("CUDARUN_SIM_FAIL", failures);
        let output = command.output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (out, _) = run("cuMemAlloc_v2#2=2");
    assert!(out.contains("cuMemAlloc_v2"), "{out}");
    assert!(out.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{out}");
    let (out, _) = run("cuLaunchKernel#2=719");
    assert!(out.contains("CUDA_ERROR_LAUNCH_FAILED"), "{out}");
    // More calls than the program makes.
    assert_eq!(run("cuLaunchKernel#1000=719").0, "ok\n");
    let (out, err) = run("cuMemAlloc#1=2");
    assert_ne!(out, "ok\n");
    assert_eq!(
        err.matches("CUDARUN_SIM_FAIL: `cuMemAlloc#1=2`").count(),
        1,
        "{err}"
    );
}

#[test]
fn the_library_can_be_loaded_by_path_and_knows_itself() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = link(folder.path());
    let api = driver::sys::Api::open(&library).expect("our own library");
    assert!(api.is_simulated());
    for symbol in cudarun_shim_cuda::EXPORTS {
        assert!(api.symbol(symbol).is_some(), "{symbol} is not exported");
    }
    let refused = driver::sys::Api::open_real(&library);
    assert!(matches!(refused, Err(driver::sys::LoadError::Ourselves(_))));
}
