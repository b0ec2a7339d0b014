//! Where reports and messages go, and that they arrive as they should.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use crate::workdir::{COUNT, RACY, Workdir};

/// Block 0 and block 1 increment a word.
const KERNEL: &str = include_str!("c/count.ptx");
/// Clears a terminal, and names its window.
const ESCAPES: &str = "\x1b[2J\x1b]0;name\x07";

/// A folder with a kernel.
fn with(kernel: &str) -> Workdir {
    let workdir = Workdir::new();
    workdir.write("count.ptx", kernel);
    workdir
}

/// Runs the kernel on two blocks.
fn run(workdir: &Workdir, more: &[&str]) -> Output {
    workdir.command(&[&COUNT, more].concat()).output().unwrap()
}

fn racing() -> String {
    KERNEL.replace("${op}", RACY)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn json_on_standard_error_is_nothing_but_json() {
    let workdir = with(&racing());
    let output = run(&workdir, &["--format", "json"]);
    assert_eq!(output.status.code(), Some(66));
    let report: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(report["summary"]["outcome"], "races");
    // Beside text the first line says what runs where.
    let output = run(
        &workdir,
        &["--format", "json:report.json", "--format", "text"],
    );
    assert!(text(&output.stderr).starts_with("cudarun-check 0"));
}

#[test]
fn a_dash_is_standard_output() {
    let workdir = with(&racing());
    for flags in [["--format", "json:-"], ["--save", "-"]] {
        let output = run(&workdir, &flags);
        assert_eq!(output.status.code(), Some(66));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["summary"]["outcome"], "races");
        assert!(text(&output.stderr).starts_with("cudarun-check 0"));
    }
    let output = run(&workdir, &["-o", "-"]);
    assert!(text(&output.stdout).contains("SUMMARY: "), "{output:?}");
    assert!(!workdir.path("-").exists());
}

#[test]
fn a_terminal_is_as_wide_as_columns_says() {
    let workdir = with(&racing());
    let widest = |columns: &str| {
        let (mut terminal, other_side) = pty_process::blocking::open().unwrap();
        terminal.resize(pty_process::Size::new(24, 90)).unwrap();
        let mut tool = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_cudarun-check"))
            .env("CUDARUN_CHECK_DRIVER", "/nowhere/libcuda.so.1")
            .envs([("COLUMNS", columns), ("NO_COLOR", "1"), ("TERM", "xterm")])
            .args(COUNT)
            .current_dir(workdir.path(""))
            .spawn(other_side)
            .unwrap();
        let mut seen = Vec::new();
        // A terminal that nobody has any more is an error, behind all that was written.
        drop(terminal.read_to_end(&mut seen));
        assert_eq!(tool.wait().unwrap().code(), Some(66));
        let seen = text(&seen);
        assert!(seen.contains("COVERAGE: "), "{seen}");
        let remarks = seen
            .lines()
            .filter(|line| !line.starts_with("cudarun-check "));
        let behind = remarks.skip_while(|line| !line.trim_start().starts_with("= "));
        behind.map(|line| line.trim_end().len()).max().unwrap()
    };
    assert!((40..=60).contains(&widest("60")), "{}", widest("60"));
    assert!((91..=120).contains(&widest("120")), "{}", widest("120"));
    for none in ["", "0", "wide"] {
        assert!(
            (61..=90).contains(&widest(none)),
            "{none}: {}",
            widest(none)
        );
    }
}

#[test]
fn a_report_that_a_file_does_not_take_is_on_standard_error() {
    let workdir = with(&racing());
    let output = run(&workdir, &["--log-file", "/dev/full"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(66), "{stderr}");
    assert!(
        stderr.contains("cannot write the report to /dev/full"),
        "{stderr}"
    );
    assert!(stderr.contains("SUMMARY: cudarun-check: "), "{stderr}");
    let quiet = with(&KERNEL.replace("${op}", "red.global.add.u32 [%word], %step;"));
    let output = run(&quiet, &["--format", "json:/dev/full"]);
    assert_eq!(output.status.code(), Some(70), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("schema_version"));
    // Where people see the text, they need no JSON.
    let output = run(&quiet, &["--save", "/dev/full"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(70), "{stderr}");
    assert!(
        stderr.contains("SUMMARY: ") && !stderr.contains("schema_version"),
        "{stderr}"
    );
}

#[test]
fn a_report_that_standard_error_does_not_take_is_an_error() {
    let quiet = with(&KERNEL.replace("${op}", "red.global.add.u32 [%word], %step;"));
    for format in ["text", "sarif"] {
        let mut command = quiet.command(&[&COUNT[..], &["--format", format]].concat());
        let full = std::fs::File::create("/dev/full").unwrap();
        let status = command.stderr(full).status().unwrap();
        assert_eq!(status.code(), Some(70), "{format}");
    }
}

#[test]
fn a_run_that_cannot_begin_has_an_annotation() {
    let workdir = Workdir::new();
    let mut command = workdir.command(&["run", "--quiet", "./no_such_program"]);
    let output = command.env("GITHUB_ACTIONS", "true").output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(127), "{stderr}");
    assert!(
        stderr.contains("::warning title=cudarun-check%3A incomplete::"),
        "{stderr}"
    );
    assert!(
        stderr.contains("cudarun-check: ./no_such_program"),
        "{stderr}"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let workdir = with(&racing());
    for arguments in [&["inspect", "count.ptx"][..], &["doctor"]] {
        for full in [false, true] {
            let mut command = workdir.command(arguments);
            let stdout = match full {
                true => std::fs::File::create("/dev/full").unwrap().into(),
                false => Stdio::piped(),
            };
            let mut tool = command
                .stdout(stdout)
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            drop(tool.stdout.take());
            let output = tool.wait_with_output().unwrap();
            let stderr = text(&output.stderr);
            assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
            assert_ne!(output.status.code(), Some(101), "{arguments:?}");
        }
    }
    let mut command = workdir.command(&COUNT);
    let full = std::fs::File::create("/dev/full").unwrap();
    let status = command.stderr(full).status().unwrap();
    assert_eq!(status.code(), Some(66));
}

#[test]
fn what_standard_output_does_not_take_is_an_error() {
    let workdir = with(&racing());
    assert_eq!(run(&workdir, &["--save", "r.crr"]).status.code(), Some(66));
    let create = ["baseline", "create", "r.crr"];
    let created = workdir.command(&create).output().unwrap();
    assert_eq!(created.status.code(), Some(0), "{created:?}");
    let json = [&COUNT[..], &["--format", "json:-"]].concat();
    for arguments in [
        &["--help"][..],
        &["report", "--help"],
        &["--version"],
        &["explain"],
        &["explain", "CR003"],
        &["inspect", "count.ptx"],
        &["report", "r.crr"],
        &["report", "r.crr", "--format", "json"],
        &["diff", "r.crr", "r.crr"],
        &["baseline", "show"],
        &["suppress", "r.crr"],
        &["completions", "bash"],
        &json,
    ] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let mut command = workdir.command(arguments);
        let output = command.stdout(full).output().unwrap();
        let stderr = text(&output.stderr);
        // As with files, races of a run win.
        let code = if arguments == json { 66 } else { 70 };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        let said = "to standard output: No space left on device";
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        // A reader that has seen enough is content.
        let mut command = workdir.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut tool = command.spawn().unwrap();
        drop(tool.stdout.take());
        let output = tool.wait_with_output().unwrap();
        let code = match arguments {
            ["report", "r.crr", ..] | ["count.ptx", ..] => 66,
            _ => 0,
        };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn control_characters_of_files_do_not_reach_the_terminal() {
    let named = racing()
        .replace("${op}", "")
        .replacen("ld.param", ".loc 1 1 1\n ld.param", 1)
        + &format!("\n.file 1 \"evil{ESCAPES}.cu\"\n");
    let unknown = racing().replacen("ld.param", &format!("bogus{ESCAPES}.u32 x; ld.param"), 1);
    for kernel in [named, unknown] {
        let workdir = with(&kernel);
        let inspected = workdir.command(&["inspect", "count.ptx"]).output().unwrap();
        for output in [
            run(&workdir, &[]),
            run(&workdir, &["--color", "always"]),
            run(&workdir, &["--format", "html"]),
            inspected,
        ] {
            for bytes in [output.stdout, output.stderr] {
                let bytes = text(&bytes);
                assert!(
                    !bytes.contains("\x1b[2J") && !bytes.contains('\x07'),
                    "{bytes:?}"
                );
            }
        }
    }
    let workdir = with("");
    let output = workdir
        .command(&[&format!("no{ESCAPES}such")])
        .output()
        .unwrap();
    assert!(text(&output.stderr).contains("no\\u{1b}[2J"), "{output:?}");
}

#[test]
fn formats_do_not_mix_on_a_stream() {
    let workdir = with(&racing());
    for formats in [["json", "jsonl"], ["text", "json"], ["github", "sarif"]] {
        let [one, other] = formats;
        let output = run(&workdir, &["--format", one, "--format", other]);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{formats:?}: {err}");
        assert!(
            err.contains("two formats would mix on standard error"),
            "{err}"
        );
    }
    for (one, other) in [("text", "github"), ("text", "json:report.json")] {
        let output = run(&workdir, &["--format", one, "--format", other]);
        assert_eq!(output.status.code(), Some(66), "{one} {other}: {output:?}");
    }
}

#[test]
fn every_format_goes_to_its_file() {
    let workdir = with(&racing());
    let names = ["json", "sarif", "junit", "github", "markdown", "html"];
    let formats: Vec<String> = names
        .iter()
        .map(|name| format!("{name}:report.{name}"))
        .collect();
    let flags: Vec<&str> = formats.iter().flat_map(|of| ["--format", of]).collect();
    let output = run(&workdir, &flags);
    assert_eq!(output.status.code(), Some(66), "{}", text(&output.stderr));
    for (name, part) in names.into_iter().zip([
        "\"rule\": \"CR003\"",
        "\"ruleId\": \"CR003\"",
        "<failure message=",
        "::error title=CR003",
        "| CR003 inter-block race |",
        "CR003 inter-block race",
    ]) {
        let report = std::fs::read_to_string(workdir.path(&format!("report.{name}"))).unwrap();
        assert!(
            report.contains(part) && report.contains("count.ptx"),
            "{name}: {report}"
        );
    }
    let output = run(&workdir, &["--format", "sarif"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(report["version"], "2.1.0");
}

#[test]
fn two_outputs_to_one_file_are_refused() {
    let workdir = with(&racing());
    for flags in [
        &["--format", "json:a", "--format", "junit:./a"][..],
        &["--format", "json:a", "--save", "a"],
        &[
            "--format",
            "text",
            "--format",
            "markdown",
            "--log-file",
            "a",
        ],
        &["--save", "a", "--record", "--log-file", "a"],
    ] {
        let output = run(&workdir, flags);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{flags:?}: {said}");
        assert!(said.contains("another output goes to this file"), "{said}");
    }
    // What is no file takes them all.
    let flags = ["--format", "json:/dev/null", "--save", "/dev/null"];
    assert_eq!(run(&workdir, &flags).status.code(), Some(66));
    // Another process still writes it, and keeps what it has written.
    let file = workdir.path("theirs");
    std::fs::write(&file, "kept").unwrap();
    let theirs = std::fs::File::open(&file).unwrap();
    theirs.lock().unwrap();
    let output = run(&workdir, &["--save", "theirs"]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    drop(theirs);
    let output = run(&workdir, &["--save", "theirs"]);
    assert_eq!(output.status.code(), Some(66), "{}", text(&output.stderr));
}

#[test]
fn names_of_all_files_are_filled_in() {
    let workdir = with(&racing());
    let flags = [
        "--format",
        "junit:%q{PATH_OF_RANK}.xml",
        "--save",
        "%q{PATH_OF_RANK}.crr",
        "--log-file",
        "%q{PATH_OF_RANK}.txt",
    ];
    let output = run(&workdir, &flags);
    assert_eq!(output.status.code(), Some(64));
    let said = text(&output.stderr);
    assert!(
        said.contains("PATH_OF_RANK of %q{PATH_OF_RANK} is not set"),
        "{said}"
    );
    let flags = flags.map(|flag| flag.replace("PATH_OF_RANK", "CARGO_PKG_NAME"));
    let output = run(&workdir, &flags.each_ref().map(String::as_str));
    assert_eq!(output.status.code(), Some(66), "{}", text(&output.stderr));
    for end in ["xml", "crr"] {
        let name = format!("{}.{end}", env!("CARGO_PKG_NAME"));
        assert!(
            workdir.path(&name).metadata().unwrap().len() > 100,
            "{name}"
        );
    }
}

#[test]
fn a_job_of_github_actions_gets_annotations() {
    let workdir = with(&racing());
    let job = |in_job: &str, more: &[&str]| {
        let mut command = workdir.command(&[&COUNT, more].concat());
        command.env("GITHUB_ACTIONS", in_job);
        command.env("GITHUB_STEP_SUMMARY", workdir.path("summary.md"));
        text(&command.output().unwrap().stderr)
    };
    assert!(job("true", &[]).contains("\n::error title=CR003"));
    assert!(!job("false", &[]).contains("\n::error"));
    // Who chooses a format gets that one.
    assert!(!job("true", &["--format", "text"]).contains("\n::error"));
    // The summary of a step keeps what is there.
    std::fs::write(workdir.path("summary.md"), "before\n").unwrap();
    let summary = format!("markdown:{}", workdir.path("summary.md").display());
    job("true", &["--format", &summary]);
    job("true", &["--format", "markdown:./summary.md"]);
    let summary = std::fs::read_to_string(workdir.path("summary.md")).unwrap();
    assert!(summary.starts_with("before\n## cudarun-check"), "{summary}");
    assert_eq!(summary.matches("## cudarun-check").count(), 2);
}

/// GitHub takes paths for those below the checkout, and a job may run in a folder of it.
#[test]
fn github_finds_files_from_any_folder_of_the_checkout() {
    let workdir = with(&racing());
    let source = workdir.path("build/racy.cu");
    std::fs::create_dir(workdir.path("build")).unwrap();
    workdir.write("build/racy.cu", "\n(*word)++;\n");
    let with_lines = racing().replace("ld.param.u64", ".loc 1 2 1\n    ld.param.u64")
        + &format!("\n.file 1 \"{}\"\n", source.display());
    workdir.write("build/count.ptx", &with_lines);
    let formats = ["--format", "github", "--format", "sarif:races.sarif"];
    let paths = |checkout: Option<PathBuf>| {
        let mut command = workdir.command(&[&COUNT, &formats[..]].concat());
        command.current_dir(workdir.path("build"));
        command.envs(checkout.map(|path| ("GITHUB_WORKSPACE", path)));
        let said = text(&command.output().unwrap().stderr);
        let sarif = workdir.json("build/races.sarif");
        let of = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        let of = of["artifactLocation"]["uri"].as_str().unwrap().to_owned();
        let annotated = said.split(",file=").nth(1).unwrap();
        (annotated.split(',').next().unwrap().to_owned(), of)
    };
    let both = |path: &str| (path.to_owned(), path.to_owned());
    assert_eq!(paths(None), both("racy.cu"));
    assert_eq!(paths(Some(workdir.path(""))), both("build/racy.cu"));
    assert_eq!(paths(Some("".into())), both("racy.cu"));
}

/// What a run that could not begin leaves for CI services, which would take a missing file for a good one of before.
#[test]
fn a_run_that_could_not_begin_has_reports_too() {
    let workdir = Workdir::new();
    workdir.write("racy.ptx", "this is no PTX");
    for (app, code, why) in [
        ("./missing", 127, "./missing: not found"),
        ("./racy.ptx", 65, "racy.ptx"),
    ] {
        workdir.write("old.xml", "<testsuites/>");
        let formats = ["junit:old.xml", "sarif:x.sarif", "json:x.json"];
        let mut command = workdir.command(&["run"]);
        for format in formats {
            command.args(["--format", format]);
        }
        let output = command.arg(app).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
        let report: serde_json::Value = workdir.json("x.json");
        assert_eq!(report["summary"]["outcome"], "incomplete");
        let because = report["coverage"]["incomplete_because"].to_string();
        assert!(because.contains(why), "{because}");
        let junit = workdir.read("old.xml");
        assert!(junit.contains("errors=\"1\""), "{junit}");
        let sarif: serde_json::Value = workdir.json("x.sarif");
        let invocation = &sarif["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false, "{invocation}");
    }
    // Where standard error is for a program, the report is all that is there.
    let output = workdir
        .command(&["run", "--format", "json", "./missing"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127));
    let report: Result<serde_json::Value, _> = serde_json::from_slice(&output.stderr);
    assert!(report.is_ok(), "{}", text(&output.stderr));
}
