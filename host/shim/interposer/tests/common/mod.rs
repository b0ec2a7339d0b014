//! Libraries and C programs that the tests of this folder make.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// A folder with the interposer in `gpu`, and what else a test puts there.
pub(crate) struct Workdir {
    folder: tempfile::TempDir,
}

impl Workdir {
    pub(crate) fn new() -> Workdir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("gpu")).expect("a writable folder");
        let workdir = Workdir { folder };
        link(
            "cudarun_shim_interposer",
            &workdir.interposer(),
            "cu*; InitializeInjectionNvtx2",
        );
        std::os::unix::fs::symlink("libcuda.so.1", workdir.path("gpu/libcuda.so")).expect("a link");
        workdir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn interposer(&self) -> PathBuf {
        self.path("gpu/libcuda.so.1")
    }

    /// Makes the simulated driver.
    pub(crate) fn simulated(&self) -> PathBuf {
        let library = self.path("libcuda.so.1");
        link(
            "cudarun_shim_cuda",
            &library,
            "cu*; InitializeInjectionNvtx2",
        );
        library
    }

    /// The audit library, made when it is first asked for.
    pub(crate) fn audit(&self) -> PathBuf {
        let library = self.path("audit.so");
        if !library.exists() {
            link("cudarun_shim_audit", &library, "la_*");
        }
        library
    }

    /// Compiles a file of `tests/c`, or of `host/shim/cuda/tests/c`.
    pub(crate) fn compile(&self, source: &str, name: &str, options: &[&str]) -> PathBuf {
        let output = self.path(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
            .arg(&output)
            .arg(source)
            .args(options);
        succeed(&mut cc);
        output
    }

    /// A program under the interposer, which stands in front of `driver`.
    pub(crate) fn command(&self, program: &Path, driver: &Path) -> Command {
        let mut command = Command::new(program);
        for variable in [
            "CUDARUN_CHECK_DIR",
            "CUDA_VISIBLE_DEVICES",
            "CUDARUN_SIM_FAIL",
            "CUDARUN_SIM_REFUSE",
        ] {
            command.env_remove(variable);
        }
        command.env("LD_LIBRARY_PATH", self.path("gpu"));
        command.env("CUDARUN_CHECK_DRIVER", driver);
        command.env("CUDARUN_CHECK_DRIVER_SIMULATED", "1");
        command
    }
}

/// Runs to a good end.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    output
}

/// The text that a program printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Puts a library of this build to `library`, linked the way `cargo xtask dist` does.
/// Linking takes seconds, so each is linked once for all tests of a program.
fn link(crate_name: &'static str, library: &Path, exports: &str) {
    static LINKED: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut linked = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    let linked = linked.entry(crate_name).or_insert_with(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_PKG_NAME"));
        std::fs::create_dir_all(&folder).expect("a writable folder");
        let output = folder.join(crate_name);
        let name = library.file_name().expect("a file").to_string_lossy();
        link_as(&name, crate_name, &output, exports);
        output
    });
    std::fs::copy(linked, library).expect("a writable folder");
}

fn link_as(name: &str, crate_name: &str, output: &Path, exports: &str) {
    let script = output.with_extension("map");
    std::fs::write(&script, format!("{{ global: {exports}; local: *; }};\n"))
        .expect("a writable folder");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-o"])
        .arg(output)
        .arg("-Wl,--whole-archive")
        .arg(archive(crate_name))
        .args(["-Wl,--no-whole-archive", "-Wl,-Bsymbolic"])
        .args(["-Wl,-z,nodelete", "-Wl,-z,now", "-Wl,--gc-sections"])
        .arg(format!("-Wl,-soname,{name}"))
        .arg(format!("-Wl,--version-script={}", script.display()))
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lc"]);
    succeed(&mut cc);
}

/// The static library, which cargo builds beside the tests under a name with a hash.
fn archive(crate_name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test");
    let folder = test.parent().expect("a folder");
    let prefix = format!("lib{crate_name}-");
    let ours = folder
        .read_dir()
        .expect("a readable folder")
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(&prefix) && name.ends_with(".a")
        });
    // Old builds stay around; the newest is the one this test was built with.
    let newest = ours.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok());
    newest.expect("a static library").path()
}
