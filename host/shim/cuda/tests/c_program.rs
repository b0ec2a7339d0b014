//! The library as a program meets it: linked into `libcuda.so.1`, found by the loader.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Links the static library of this build the way `cargo xtask dist` does.
fn link(folder: &Path) -> PathBuf {
    // Cargo builds the static library beside the tests, which lie in `deps`.
    let test = std::env::current_exe().expect("a running test");
    let built = test.ancestors().nth(2).expect("deps has a parent");
    let archive = built.join("libcudarun_shim_cuda.a");
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
    let run = |devices: Option<&str>| {
        let mut command = Command::new(&program);
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
    let (status, text) = run(None);
    assert!(status.success() && text == "ok\n", "{status}: {text}");
    let (status, text) = run(Some("1"));
    assert!(
        !status.success() && text.contains("CUDA_ERROR_NO_DEVICE"),
        "{status}: {text}"
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
