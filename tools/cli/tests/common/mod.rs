//! A program that is ended, and the tool with its libraries.
#![allow(dead_code, reason = "each test uses a part of it")]

#[path = "../../../../host/shim/interposer/tests/common/mod.rs"]
mod libraries;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use libraries::Workdir;
pub(crate) use libraries::text;

/// The tool's libraries, and the program.
pub(crate) struct Built {
    workdir: Workdir,
    pub(crate) program: PathBuf,
}

pub(crate) fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        // The signals of the tests are to arrive.
        os::signals::reset();
        let workdir = Workdir::new();
        let library = workdir.simulated();
        workdir.audit();
        // Nobody here loads it; that it is there says that kernels run on the simulated device.
        std::fs::write(workdir.path("libcudart.so.13"), "").expect("a writable folder");
        let header = header(include_str!("../c/ends.ptx"));
        std::fs::write(workdir.path("ends.h"), header).expect("a writable folder");
        let include = format!("-I{}", workdir.path("").display());
        let library = library.display().to_string();
        let program = workdir.compile("tests/c/ends.c", "ends", &[&include, &library, "-pthread"]);
        Built { workdir, program }
    })
}

/// Compiles another program over the simulated device; `ptx` is in its header `NAME.h`.
pub(crate) fn compile(name: &str, ptx: &str) -> PathBuf {
    compile_with(name, name, ptx, &[])
}

/// Likewise with further options, as another file.
pub(crate) fn compile_with(name: &str, output: &str, ptx: &str, options: &[&str]) -> PathBuf {
    let workdir = &built().workdir;
    // A folder of its own: others may compile the same file with another header meanwhile.
    let headers = workdir.path(&format!("{output}-headers"));
    std::fs::create_dir_all(&headers).expect("a writable folder");
    std::fs::write(headers.join(format!("{name}.h")), header(ptx)).expect("a writable folder");
    let include = format!("-I{}", headers.display());
    let library = workdir.path("libcuda.so.1").display().to_string();
    let options = [&[include.as_str(), &library], options].concat();
    workdir.compile(&format!("tests/c/{name}.c"), output, &options)
}

/// PTX as a variable of C.
fn header(ptx: &str) -> String {
    let quoted = ptx
        .lines()
        .map(|line| format!("{:?}\n", format!("{line}\n")));
    format!(
        "static const char ptx[] =\n{};\n",
        quoted.collect::<String>()
    )
}

/// Runs the tool with flags on a program, on the simulated device. The folder has the report as JSON.
pub(crate) fn checked(program: &Path, flags: &[&str]) -> (tempfile::TempDir, Output) {
    let folder = tempfile::tempdir().expect("a writable folder");
    let mut command = command(Way::Simulated, folder.path());
    command.args(flags).arg(program).stdin(Stdio::null());
    let output = command.output().expect("the tool starts");
    (folder, output)
}

/// Where kernels run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// On the simulated device.
    Simulated,
    /// Through the interposer, with the simulated driver as the real one.
    Interposed,
}

pub(crate) const WAYS: [Way; 2] = [Way::Simulated, Way::Interposed];

/// Variables and first arguments of the tool for a way; `folder` takes the report as JSON.
pub(crate) fn tool(way: Way, folder: &Path) -> (Vec<(&'static str, PathBuf)>, Vec<String>) {
    let workdir = &built().workdir;
    let json = format!("json:{}", folder.join("report.json").display());
    let mut arguments = vec![
        "--format".to_owned(),
        "text".to_owned(),
        "--format".to_owned(),
        json,
    ];
    let mut variables = vec![("CUDARUN_CHECK_LIB", workdir.path(""))];
    match way {
        Way::Simulated => arguments.extend(["--device".to_owned(), "sim".to_owned()]),
        Way::Interposed => {
            arguments.extend(["--device".to_owned(), "gpu".to_owned()]);
            variables.push(("CUDARUN_CHECK_DRIVER", workdir.path("libcuda.so.1")));
            variables.push(("CUDARUN_CHECK_DRIVER_SIMULATED", "1".into()));
        }
    }
    (variables, arguments)
}

/// The tool as a command.
pub(crate) fn command(way: Way, folder: &Path) -> Command {
    let (variables, arguments) = tool(way, folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
    command.envs(variables).args(arguments);
    command
}

/// A shell that executes a script, in which `"$@"` is a command.
pub(crate) fn in_shell(command: &Command, script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    let variables = command.get_envs();
    shell.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    shell
}
