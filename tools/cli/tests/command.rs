//! The built command: exit codes, messages and reports, for good input and bad.
//!
//! Programs without CUDA, and kernels of `.ptx` files; `cargo xtask test` has a compiler for others.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::audit;
use crate::workdir::{COUNT, RACY, Ran};

/// Block 0 and block 1 increment a word; `${op}` makes it racy or not.
const KERNEL: &str = include_str!("c/count.ptx");
const ATOMIC: &str = "atom.global.add.u32 %old, [%word], %step;";

/// A folder for one test.
struct Workdir(tempfile::TempDir);

impl Workdir {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Programs that do not use CUDA never load it; it only has to be there.
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        std::fs::write(folder.path().join("lib/libcuda.so.1"), "").unwrap();
        std::fs::write(folder.path().join("lib/audit.so"), audit::library()).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }

    fn kernel(&self, op: &str) -> String {
        self.file("count.ptx", &KERNEL.replace("${op}", op))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
        command.env("CUDARUN_CHECK_LIB", self.path("lib"));
        // Whatever is installed here.
        command.env("CUDARUN_CHECK_DRIVER", "/nowhere/libcuda.so.1");
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.command().args(arguments).output().unwrap().into()
    }

    /// Runs the counting kernel on two blocks.
    fn count(&self, op: &str, more: &[&str]) -> Ran {
        let file = self.kernel(op);
        self.run(&[&[file.as_str()], &COUNT[1..], more].concat())
    }
}

#[test]
fn wrong_usage_is_64_and_names_the_flag() {
    let workdir = Workdir::new();
    for (arguments, word) in [
        (&["--no-such-flag", "true"][..], "--no-such-flag"),
        (&["--format", "xml", "true"], "xml"),
        (&["--shadow-mem", "0%", "true"], "0%"),
        (&["--schedules", "0", "true"], "--schedules"),
        (&["--sample", "1/3", "--mode", "fast", "true"], "1/3"),
        (&["--sample", "1/8", "true"], "--sample needs --mode fast"),
        (
            &["--as-gpu", "--mode", "full", "true"],
            "--mode full never checks as on a GPU",
        ),
        (&["--timeout", "soon", "true"], "soon"),
        (&["--kernel", "k", "true"], "--kernel is for a .ptx file"),
        (&["--log-file", "a%z", "true"], "%z"),
        (&["run"], "APP"),
        (&["rewrite"], "INPUT"),
    ] {
        workdir.run(arguments).ends(64, &[word]);
    }
    assert_eq!(workdir.run(&["--help"]).code, 0);
    assert!(
        workdir
            .run(&["--version"])
            .stdout
            .contains(env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn programs_that_cannot_start_are_126_or_127() {
    let workdir = Workdir::new();
    let notes = workdir.file("notes.txt", "text");
    workdir
        .run(&["./missing"])
        .ends(127, &["./missing: not found"]);
    workdir
        .run(&["no-program-has-this-name"])
        .ends(127, &["not found on PATH"]);
    workdir
        .run(&[&notes])
        .ends(126, &["notes.txt", "not executable"]);
    workdir.run(&["./lib"]).ends(126, &["folder"]);
    let script = workdir.file("script", "#!/no/such/interpreter\n");
    Command::new("chmod")
        .args(["+x", &script])
        .status()
        .unwrap();
    workdir.run(&[&script]).ends(127, &["interpreter"]);
    workdir
        .run(&["--device", "gpu", "true"])
        .ends(69, &["--device sim"]);
}

#[test]
fn without_our_libraries_nothing_is_started() {
    let workdir = Workdir::new();
    let mut command = workdir.command();
    command.env("CUDARUN_CHECK_LIB", workdir.path("nowhere"));
    let ran = Ran::from(command.args(["sh", "-c", "echo started"]).output().unwrap());
    assert_eq!(ran.ends(70, &["nowhere", "libcuda.so.1"]).stdout, "");
}

#[test]
fn without_a_folder_for_temporary_files_another_one_is_taken() {
    let workdir = Workdir::new();
    let mut command = workdir.command();
    command.env("TMPDIR", workdir.path("nowhere"));
    let ran = Ran::from(command.args(["sh", "-c", "echo started"]).output().unwrap());
    assert_eq!(
        ran.ends(75, &["no launch of a kernel was seen"]).stdout,
        "started\n"
    );
}

#[test]
fn a_program_without_cuda_runs_and_nothing_is_checked() {
    let workdir = Workdir::new();
    let ran = workdir.run(&["echo", "hello"]);
    ran.ends(
        75,
        &[
            "does not use CUDA",
            "no launch of a kernel was seen",
            "COVERAGE: no kernels seen",
        ],
    );
    assert_eq!(ran.stdout, "hello\n");
}

#[test]
fn the_programs_end_is_ours() {
    let workdir = Workdir::new();
    workdir
        .run(&["sh", "-c", "exit 7"])
        .ends(7, &["exited with 7"]);
    workdir
        .run(&["sh", "-c", "kill -9 $$"])
        .ends(137, &["killed by signal 9"]);
    workdir
        .run(&["sh", "-c", "kill -ABRT $$"])
        .ends(134, &["killed by signal 6"]);
    let start = Instant::now();
    workdir
        .run(&["--timeout", "0.2", "sleep", "60"])
        .ends(124, &["--timeout"]);
    let flags = ["--timeout", "0.5", "--schedules", "9"];
    workdir
        .run(&[&flags[..], &["sleep", "0.2"]].concat())
        .ends(124, &["--timeout"]);
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn streams_and_environment_reach_the_program() {
    let workdir = Workdir::new();
    let mut command = workdir.command();
    command.args([
        "-q",
        "sh",
        "-c",
        "cat; echo err >&2; echo $LD_LIBRARY_PATH; ls -d $CUDARUN_CHECK_DIR >&2",
    ]);
    command.env("LD_LIBRARY_PATH", "/somewhere/else");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    ran.ends(75, &["err\n", "cudarun-check-"]);
    let lib = workdir.path("lib").display().to_string();
    assert_eq!(ran.stdout, format!("typed\n{lib}:/somewhere/else\n"));
    // The folder for logs is gone with the run.
    let logs = ran
        .stderr
        .lines()
        .find(|line| line.contains("cudarun-check-"))
        .unwrap();
    assert!(!Path::new(logs).exists(), "{logs}");
}

/// Whether this process, and so what it starts, was told to ignore a signal, as `nohup` and `&` do.
fn ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    mask & 1 << (signal - 1) != 0
}

#[test]
fn a_signal_ends_the_program_and_still_gives_a_report() {
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        if ignored(number) {
            continue;
        }
        let workdir = Workdir::new();
        let mut command = workdir.command();
        command.args(["sh", "-c", "echo ready; exec sleep 60"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let pid = child.id().to_string();
        Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status()
            .unwrap();
        let killed = format!("killed by signal {number}");
        Ran::from(child.wait_with_output().unwrap())
            .ends(128 + number as i32, &[&killed, "COVERAGE"]);
    }
}

#[test]
fn a_racy_kernel_is_reported_and_its_repair_is_not() {
    let workdir = Workdir::new();
    workdir.count(RACY, &[]).ends(
        66,
        &[
            "error[CR003]: inter-block race on global memory",
            "ld.global.u32 %old, [%word];",
            "st.global.u32 [%word], %old;",
            "kernel: count  launch #1, grid (2,1,1) block (1,1,1)",
            "allocation #1 of 4 bytes, made by --arg 0",
            "COVERAGE: 1/1 kernel instrumented, 1 launch checked",
        ],
    );
    let clean = workdir.count(ATOMIC, &["--dump", "0"]);
    clean.ends(0, &["SUMMARY: cudarun-check: 0 races\n", "COVERAGE: 1/1"]);
    assert_eq!(clean.stdout, "arg 0: u32[1] = 10\n");
    assert!(!clean.stderr.contains("error"));
}

#[test]
fn fast_mode_is_sure_of_what_nobody_released_and_not_of_what_may_be_observed() {
    let workdir = Workdir::new();
    let fenced = format!("{RACY} membar.gl;");
    for mode in ["precise", "full", "fast"] {
        workdir
            .count(&fenced, &["--mode", mode])
            .ends(66, &["error[CR003]: inter-block race on global memory"]);
    }
    let narrow = "red.relaxed.cta.global.add.u32 [%word], 1; membar.gl;";
    workdir.count(narrow, &[]).ends(66, &["error[CR0"]);
    let fast = ["--mode", "fast"];
    workdir
        .count(narrow, &fast)
        .ends(0, &["possible", "not decided", "membar.gl"]);
    workdir
        .count(narrow, &[&fast[..], &["--fail-on", "warning"]].concat())
        .ends(66, &["possible"]);
}

#[test]
fn a_report_names_what_is_missing_between_the_two_sides() {
    let workdir = Workdir::new();
    let kernel = |release: &str, acquire: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n\
             .visible .entry k(.param .u64 buf) {{\n\
             .reg .u64 %data, %flag; .reg .u32 %r<3>; .reg .pred %p;\n\
             ld.param.u64 %data, [buf]; add.u64 %flag, %data, 4;\n\
             mov.u32 %r0, %ctaid.x; setp.ne.u32 %p, %r0, 0; @%p bra reader;\n\
             st.global.u32 [%data], 1;\n{release}\nst.relaxed.gpu.global.u32 [%flag], 1;\nret;\n\
             reader:\nld.relaxed.gpu.global.u32 %r1, [%flag]; setp.eq.u32 %p, %r1, 0; @%p bra reader;\n\
             {acquire}\nld.global.u32 %r2, [%data];\nret;\n}}\n"
        )
    };
    let arguments = ["--grid", "2", "--block", "1", "--arg", "u32[2]"];
    for (release, acquire, code, says) in [
        ("fence.acq_rel.gpu;", "fence.acq_rel.gpu;", 0, "0 races"),
        ("", "fence.acq_rel.gpu;", 66, "wrote without a release"),
        ("fence.acq_rel.gpu;", "", 66, "but has not acquired"),
        (
            "fence.acq_rel.cta;",
            "fence.acq_rel.gpu;",
            66,
            "is of block scope",
        ),
        (
            "fence.acq_rel.gpu;",
            "fence.acq_rel.cta;",
            66,
            "at block scope only",
        ),
    ] {
        let file = workdir.file("mp.ptx", &kernel(release, acquire));
        let run = workdir.run(&[&[file.as_str()], &arguments[..]].concat());
        run.ends(code, &[says]);
    }
}

#[test]
fn exit_codes_and_printing_follow_the_flags() {
    let workdir = Workdir::new();
    workdir.count(RACY, &["--error-exitcode", "3"]).ends(3, &[]);
    workdir
        .count(RACY, &["--error-exitcode", "0"])
        .ends(0, &["error[CR003]"]);
    workdir
        .count(RACY, &["--fail-on", "never"])
        .ends(0, &["error[CR003]"]);
    let limited = workdir.count(RACY, &["--print-limit", "0"]);
    // No limit, as with compute-sanitizer.
    limited.ends(66, &["error[CR003]"]);
    assert!(!workdir.count(RACY, &[]).stderr.contains('\u{1b}'));
    assert!(
        workdir
            .count(RACY, &["--color", "always"])
            .stderr
            .contains('\u{1b}')
    );
    let same = "st.global.u32 [%word], %step;";
    workdir
        .count(same, &[])
        .ends(0, &["warning[CR003]", "wrote 4 bytes: 5 (second)"]);
    workdir.count(same, &["--fail-on", "warning"]).ends(66, &[]);
    let logged = workdir.count(RACY, &["--log-file", "report.txt", "-q"]);
    assert_eq!(logged.ends(66, &[]).stderr, "");
    assert!(
        std::fs::read_to_string(workdir.path("report.txt"))
            .unwrap()
            .contains("SUMMARY")
    );
}

#[test]
fn json_keeps_to_its_schema() {
    let workdir = Workdir::new();
    workdir
        .count(
            RACY,
            &[
                "--format",
                "text",
                "--format",
                "json:r.json",
                "--schedules",
                "3",
            ],
        )
        .ends(66, &["under 3 schedules"]);
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(workdir.path("r.json")).unwrap()).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&report)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(report["tool"]["schedules"], 3);
    assert_eq!(report["coverage"]["launches"]["checked"], 3);
    assert!(report["stats"]["warp_instructions"].as_u64().unwrap() > 0);
    assert_eq!(
        report["races"][0]["accesses"][0]["frames"],
        serde_json::json!([])
    );
    let unwritable = workdir.count(RACY, &["--format", "json:lib/none/r.json"]);
    unwritable.ends(70, &["lib/none/r.json"]);
}

#[test]
fn checks_can_be_off_or_for_some_kernels_only() {
    let workdir = Workdir::new();
    let count = |more: &[&str]| {
        let ran = workdir.count(RACY, &[&["--format", "json:r.json"], more].concat());
        let text = std::fs::read_to_string(workdir.path("r.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        (
            ran.code,
            report["stats"]["warp_instructions"].as_u64().unwrap(),
        )
    };
    let (code, without) = count(&["--check", "off"]);
    assert_eq!(code, 0);
    // By default the program runs without checks in its kernels.
    assert_eq!(count(&[]), (66, without));
    let (code, with) = count(&["--as-gpu"]);
    assert_eq!(code, 66);
    assert!(with > without && without > 0, "{with} {without}");
    workdir
        .count(RACY, &["--kernel-name", "other"])
        .ends(75, &["not selected by --kernel-name"]);
    workdir
        .count(RACY, &["--kernel-name", "kne=count"])
        .ends(66, &[]);
    workdir.count(RACY, &["--exact"]).ends(66, &[]);
    workdir
        .count(RACY, &["--shadow-mem", "64KiB"])
        .ends(66, &[]);
}

#[test]
fn a_kernel_that_is_not_described_right_is_64() {
    let workdir = Workdir::new();
    let file = workdir.kernel(ATOMIC);
    for (arguments, word) in [
        (&[][..], "--grid is missing"),
        (&["--grid", "1"], "--block is missing"),
        (&["--grid", "1", "--block", "1"], "takes 2 parameters"),
        (
            &[
                "--grid", "1", "--block", "1", "--arg", "u32:1", "--arg", "u32:1",
            ],
            "--arg 0: the value has 4 bytes",
        ),
        (
            &[
                "--grid", "1", "--block", "1", "--arg", "buf:4", "--arg", "u32:1", "--dump", "1",
            ],
            "--dump 1",
        ),
        (&["--grid", "0", "--block", "1"], "--grid"),
        (&["--grid", "1", "--block", "1", "--arg", "u99:1"], "u99"),
        (
            &["--kernel", "other", "--grid", "1", "--block", "1"],
            "it has count",
        ),
    ] {
        workdir
            .run(&[&[file.as_str()], arguments].concat())
            .ends(64, &[word]);
    }
    workdir
        .run(&["none.ptx", "--grid", "1"])
        .ends(127, &["none.ptx: not found"]);
}

#[test]
fn text_that_is_not_ptx_is_65_with_its_place() {
    let workdir = Workdir::new();
    let launch = ["--grid", "1", "--block", "1"];
    for (text, word) in [
        ("no ptx at all", "x.ptx: not PTX"),
        ("", "no .version"),
        (
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry broken( { add }\n",
            "x.ptx:4:",
        ),
        (
            ".version 8.0\n.target sm_90\n.address_size 64\n",
            "no kernel",
        ),
    ] {
        let file = workdir.file("x.ptx", text);
        workdir
            .run(&[&[file.as_str()], &launch[..]].concat())
            .ends(65, &[word]);
    }
    std::fs::write(workdir.path("x.ptx"), [0xff, 0xfe]).unwrap();
    workdir
        .run(&["x.ptx", "--grid", "1", "--block", "1"])
        .ends(65, &["not text"]);
}

#[test]
fn launches_that_fail_say_where_in_the_file() {
    let workdir = Workdir::new();
    let stray = workdir.count(
        "add.u64 %word, %word, 0x100000; st.global.u32 [%word], %step;",
        &[],
    );
    stray.ends(1, &["failed", "invalid global write of 4 bytes", "line 11"]);
    let mis = workdir.count(
        "add.u64 %word, %word, 2; st.global.u32 [%word], %step;",
        &[],
    );
    mis.ends(1, &["misaligned", "line 11"]);
    let lacking = workdir.count(".reg .pred %is; istypep.texref %is, %word;", &[]);
    lacking.ends(
        75,
        &["istypep", "line 11", "not supported by the simulated"],
    );
    // A race found before the fault is reported all the same.
    let late = "
        .reg .pred %second;
        mov.u32 %old, %ctaid.x;
        setp.eq.u32 %second, %old, 1;
        add.u64 %word, %word, 0x100000;
        @%second st.global.u32 [%word], %step;";
    let both = workdir.count(&format!("{RACY} {late}"), &[]);
    both.ends(66, &["invalid global write", "error[CR003]"]);
    // A loop that asks who is together is not proved to have no end.
    let busy = "again: activemask.b32 %old; bra again;";
    let forever = workdir.count(busy, &["--timeout", "0.3", "--schedules", "9"]);
    let said = ["ran out of time", "1 launch checked", "1 launch failed"];
    forever.ends(124, &said);
}

#[test]
fn rewriting_can_be_undone() {
    let workdir = Workdir::new();
    let file = workdir.kernel(RACY);
    workdir
        .run(&["rewrite", &file, "-o", "out.ptx", "--map", "map.json"])
        .ends(0, &[]);
    let written = std::fs::read_to_string(workdir.path("out.ptx")).unwrap();
    assert_eq!(
        rewrite::erase(&written),
        std::fs::read_to_string(&file).unwrap()
    );
    assert_eq!(workdir.run(&["rewrite", &file]).stdout, written);
    let map: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(workdir.path("map.json")).unwrap()).unwrap();
    assert_eq!(map[1]["instruction"], "st.global.u32 [%word], %old;");
    workdir
        .run(&["rewrite", "out.ptx"])
        .ends(65, &["rewritten already"]);
    workdir
        .run(&["rewrite", "none.ptx"])
        .ends(127, &["not found"]);
    workdir
        .run(&["rewrite", &file, "-o", "lib/none/x"])
        .ends(70, &["lib/none/x"]);
}

#[test]
fn files_are_inspected() {
    let workdir = Workdir::new();
    let file = workdir.kernel(RACY);
    let shown = workdir.run(&["inspect", &file]);
    assert!(shown.stdout.contains("count"), "{}", shown.stdout);
    let summary = workdir.run(&["inspect", "--summary", "--kernel", "count", &file]);
    let shown = &summary.ends(0, &[]).stdout;
    for part in ["PTX line", "bytes, global, at"] {
        assert!(shown.contains(part), "{shown}");
    }
    let none = workdir.run(&["inspect", "--summary", "--kernel", "nothing", &file]);
    none.ends(64, &["has no kernel nothing with PTX", "lists its kernels"]);
    let program = workdir.run(&["inspect", env!("CARGO_BIN_EXE_cudarun-check")]);
    assert!(program.ends(0, &[]).stdout.contains("no device code"));
    let garbage = workdir.file("garbage", "\u{7f}ELF and nothing else");
    workdir.run(&["inspect", &garbage]).ends(65, &["garbage"]);
    workdir
        .run(&["inspect", "none"])
        .ends(127, &["none: not found"]);
}

#[test]
fn the_doctor_finds_its_race_and_misses_the_libraries() {
    let workdir = Workdir::new();
    let ran = workdir.run(&["doctor"]);
    assert_eq!(ran.code, 70, "{}", ran.stdout);
    for word in [
        "FAIL libraries",
        "FAIL injection",
        "ok   racy kernel",
        "ok   clean kernel",
    ] {
        let said = ran.stdout.contains(word);
        assert!(said, "{word}\nis missing in\n{}", ran.stdout);
    }
}
