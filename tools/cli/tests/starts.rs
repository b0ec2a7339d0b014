//! Programs that start others, with whatever environment: what these do is checked, or the run says that it was not.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::common::{WAYS, Way, command, compile, compile_with, text};
use serde_json::Value;

const PTX: &str = include_str!("c/channel.ptx");

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("starts", PTX))
}

/// The code, what was printed, and the report.
fn run(way: Way, arguments: &[&str]) -> (Option<i32>, Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let output = command(way, folder.path())
        .args(arguments)
        .output()
        .unwrap();
    let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap_or_default();
    let report = serde_json::from_str(&report).unwrap_or_default();
    (output.status.code(), output, report)
}

/// Runs something that starts the racing program.
#[track_caller]
fn finds_the_race(way: Way, arguments: &[&str], launches: u64) {
    let (code, output, report) = run(way, arguments);
    let said = text(&output.stderr);
    assert_eq!(code, Some(66), "{way:?} {arguments:?}\n{said}");
    assert_eq!(text(&output.stdout), "raced\n", "{way:?} {arguments:?}");
    let checked = &report["coverage"]["launches"]["checked"];
    assert_eq!(checked, launches, "{way:?} {arguments:?}\n{said}");
}

#[test]
fn a_program_that_is_started_with_another_environment_is_checked() {
    let program = program().to_str().unwrap();
    for way in WAYS {
        for how in [
            "setenv",
            "fork",
            "execve",
            "execle",
            "execle-short",
            "syscall",
            "syscall-at",
            "vfork",
            "execvpe",
            "fexecve",
            "posix_spawn",
            "posix_spawnp",
            "execv",
            "execvp",
            "execl",
            "execlp",
            "system",
            "popen",
        ] {
            finds_the_race(way, &["--", program, how], 2);
        }
    }
}

#[test]
fn calls_without_a_procedure_linkage_table_are_seen() {
    let program = compile_with("starts", "starts-direct", PTX, &["-fno-plt", "-Wl,-z,now"]);
    for way in WAYS {
        for how in ["execve", "execle", "posix_spawn", "syscall", "execvp"] {
            finds_the_race(way, &["--", program.to_str().unwrap(), how], 2);
        }
    }
}

/// Compiles a program that does nothing and is linked statically.
fn without_loader(source: &str, path: &Path) {
    let mut cc = Command::new("cc");
    cc.args(["-static", "-x", "c", "-", "-o"]).arg(path);
    let mut cc = cc.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = cc.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, source.as_bytes()).unwrap();
    drop(input);
    assert!(cc.wait().unwrap().success());
}

#[test]
fn cupy_is_asked_for_ptx() {
    for way in WAYS {
        let script = "echo $CUPY_COMPILE_WITH_PTX";
        let (_, output, _) = run(way, &["--", "sh", "-c", script]);
        assert_eq!(text(&output.stdout), "1\n", "{way:?}");
    }
}

#[test]
fn a_program_that_nobody_can_check_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    without_loader("int main(void) { return 0; }", &path("plain"));
    let cuda = "int cudaMalloc(void **p, unsigned long n) { return n && p; }\n\
                int main(void) { return 0; }";
    without_loader(cuda, &path("cuda"));
    // A program that runs as another user, whoever this one is.
    let mut privileged = path("privileged");
    std::fs::copy("/bin/true", &privileged).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    match std::os::unix::fs::chown(&privileged, Some(1), None) {
        Ok(()) => std::fs::set_permissions(&privileged, mode).unwrap(),
        // Only root can make one; this is there where others may become root.
        Err(_) => privileged = "/bin/su".into(),
    }
    for way in WAYS {
        for (other, said) in [
            (&path("plain"), None),
            (
                &path("cuda"),
                Some("cuda is not loaded by the dynamic loader of glibc"),
            ),
            (&privileged, Some("gains privileges when it starts")),
        ] {
            let [program, other] = [program(), other].map(|path| path.to_str().unwrap());
            let (code, output, _) = run(way, &["--", program, "program", other]);
            let errors = text(&output.stderr);
            match said {
                Some(said) => assert!(code == Some(75) && errors.contains(said), "{errors}"),
                None => assert_eq!(code, Some(0), "{way:?} {other}: {errors}"),
            }
        }
    }
}

#[test]
fn a_script_may_set_or_empty_the_environment() {
    let program = program().display();
    for way in WAYS {
        for script in [
            format!("LD_LIBRARY_PATH=/nowhere exec {program} race"),
            format!("LD_LIBRARY_PATH=/nowhere {program} race"),
            format!("unset LD_LIBRARY_PATH LD_AUDIT LD_PRELOAD; {program} race"),
            format!("env -i {program} race"),
            format!("env -i sh -c '{program} race'"),
        ] {
            finds_the_race(way, &["--", "sh", "-c", &script], 1);
        }
    }
}

#[test]
fn the_simulated_device_lets_nobody_link_machine_code() {
    // A library that is called as NVIDIA's linker is, and a program that asks for its version, as Python's
    // `cuda.core` does to find out whether it is there.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let compile = |source: &str, output: &str, options: &[&str]| {
        let file = path(&format!("{output}.c"));
        std::fs::write(&file, source).unwrap();
        let mut cc = Command::new("cc");
        cc.args(options).arg("-o").arg(path(output)).arg(file);
        assert!(cc.arg("-ldl").status().unwrap().success());
    };
    compile(
        "int nvJitLinkVersion(void) { return 13; } int other(void) { return 7; }\n",
        "libnvJitLink.so.13",
        &["-shared"],
    );
    compile(
        "#include <dlfcn.h>\n#include <stdio.h>\n\
         int main(int argc, char **argv) {\n\
         void *all = dlopen(argv[argc - 1], RTLD_NOW);\n\
         int (*other)(void) = (int (*)(void))dlsym(all, \"other\");\n\
         printf(\"%d %d\\n\", dlsym(all, \"nvJitLinkVersion\") != NULL, other());\n\
         return 0; }\n",
        "asks",
        &[],
    );
    let arguments = [path("asks"), path("libnvJitLink.so.13")];
    let arguments = arguments.each_ref().map(|path| path.to_str().unwrap());
    for (way, found) in [(Way::Simulated, "0 7\n"), (Way::Interposed, "1 7\n")] {
        let (code, output, _) = run(way, &arguments);
        assert_eq!(text(&output.stdout), found, "{way:?}");
        assert_eq!(code, Some(75), "{way:?}");
    }
}

#[test]
fn a_path_in_the_program_leads_to_no_other_library() {
    // A driver that does nothing stands where the program looks first.
    let folder = tempfile::tempdir().unwrap();
    let stub = folder.path().join("libcuda.so.1");
    let source = folder.path().join("stub.c");
    std::fs::write(
        &source,
        "int cuInit(unsigned flags) { return flags + 100; }\n",
    )
    .unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-Wl,-soname,libcuda.so.1", "-o"]);
    assert!(cc.arg(&stub).arg(&source).status().unwrap().success());
    let path = format!("-Wl,-rpath,{}", folder.path().display());
    for tags in ["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"] {
        let program = compile_with("starts", "starts-path", PTX, &[&path, tags]);
        for way in WAYS {
            finds_the_race(way, &["--", program.to_str().unwrap(), "race"], 1);
        }
    }
}
