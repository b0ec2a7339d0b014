//! Options from `CUDARUN_CHECK_OPTIONS` and `cudarun-check.toml`, and which of several counts.

use crate::workdir::{COUNT, RACY, Ran, Workdir};

const VARIABLE: &str = "CUDARUN_CHECK_OPTIONS";
const FILE: &str = "cudarun-check.toml";

/// A folder with a racy kernel, and a file of options in it.
fn with(options: &str) -> Workdir {
    let workdir = Workdir::new();
    let kernel = include_str!("c/count.ptx").replace("${op}", RACY);
    workdir.write("count.ptx", &kernel);
    workdir.write(FILE, options);
    workdir
}

/// Runs the kernel with further options on the command line and in the environment.
fn run(workdir: &Workdir, line: &[&str], environment: &str) -> Ran {
    let mut command = workdir.command(&[&COUNT, line].concat());
    command.env(VARIABLE, environment);
    command.output().unwrap().into()
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let workdir = with("error_exitcode = 3\n");
    let line = &["--error-exitcode", "5"][..];
    let environment = "--error-exitcode 4";
    for (code, line, environment) in [
        (3, &[][..], ""),
        (4, &[], environment),
        (5, line, ""),
        (5, line, environment),
    ] {
        run(&workdir, line, environment).ends(code, &[]);
    }
    workdir.write(FILE, "");
    run(&workdir, &[], "").ends(66, &[]);
}

#[test]
fn a_list_is_taken_from_one_place_as_a_whole() {
    let workdir = with("kernel-name = [\"other\", \"third\"]\n");
    run(&workdir, &[], "").ends(75, &["nothing was checked: the options select no launch"]);
    run(&workdir, &[], "--kernel-name count").ends(66, &[]);
    run(
        &workdir,
        &["--kernel-name", "fourth"],
        "--kernel-name count",
    )
    .ends(75, &[]);
    workdir.write(FILE, "kernel-name = [\"other\", \"count\"]\n");
    run(&workdir, &[], "").ends(66, &[]);
}

#[test]
fn an_option_takes_the_place_of_one_that_it_excludes() {
    let workdir = with("strict = true\nprogress = true\nexclude-kernel = \"count\"\n");
    run(&workdir, &[], "").ends(75, &[]);
    run(&workdir, &["--allow-incomplete"], "").ends(0, &[]);
    run(&workdir, &[], "--allow-incomplete").ends(0, &[]);
    run(&workdir, &["--strict"], "--allow-incomplete").ends(75, &[]);
    // False is what the option is without the file.
    workdir.write(FILE, "strict = false\nexclude-kernel = \"count\"\n");
    run(&workdir, &["--allow-incomplete"], "").ends(0, &[]);
}

#[test]
fn words_are_quoted_as_in_a_shell() {
    let workdir = with("");
    let options = "--error-exitcode=7 --kernel-name 'regex:^co.nt$' --log-file \"a b.txt\"";
    run(&workdir, &[], options).ends(7, &[]);
    assert!(workdir.read("a b.txt").contains("error[CR003]"));
    for (options, words) in [
        ("--seed 'x", "a quotation mark is not closed"),
        ("--seed x", "invalid value 'x' for '--seed <N>'"),
        (
            "--seed -3",
            "invalid value '-3' for '--seed <N>': `-3` is not",
        ),
        ("--sed 3", "unexpected argument '--sed'"),
        ("--xml", "--xml is an option of compute-sanitizer"),
        ("--seed 3 app", "`app` is no option"),
        ("--help", "--help is for the command line"),
    ] {
        let why = format!("cudarun-check: {VARIABLE}: {words}");
        run(&workdir, &[], options).ends(64, &[&why]);
    }
}

#[test]
fn the_file_is_found_upward_named_or_left_out() {
    let workdir = with("error-exitcode = 3\n");
    std::fs::create_dir_all(workdir.path("a/b")).unwrap();
    let inside = |line: &[&str]| -> Ran {
        let mut command = workdir.command(&[&["../../count.ptx"], &COUNT[1..], line].concat());
        command.current_dir(workdir.path("a/b"));
        command.env_remove(VARIABLE).output().unwrap().into()
    };
    let file = workdir.path(FILE).display().to_string();
    inside(&[]).ends(3, &[&format!(", with the options of {file}\n")]);
    // The nearest one counts, and it alone.
    workdir.write("a/cudarun-check.toml", "fail-on = \"never\"\n");
    inside(&[]).ends(0, &[]);
    inside(&["--no-config"])
        .ends(66, &[])
        .lacks(&["with the options"]);
    inside(&["--config", "../../cudarun-check.toml"]).ends(3, &[]);
    inside(&["--no-config", "--config", "../../cudarun-check.toml"]).ends(3, &[]);
    let missing = inside(&["--config", "none.toml"]);
    missing.ends(65, &["none.toml: cannot read options"]);
    let from_environment = format!("--config {file}");
    run(&workdir, &["--no-config"], &from_environment).ends(66, &[]);
}

#[test]
fn paths_are_relative_to_the_file() {
    let options = "suppressions = [\"known.toml\"]\nformat = [\"text\", \"json:r.json\"]\n";
    let workdir = with(options);
    workdir.write(
        "known.toml",
        "[[suppress]]\nkernel = \"count\"\nreason = \"a test\"\n",
    );
    std::fs::create_dir(workdir.path("a")).unwrap();
    let mut command = workdir.command(&[&["../count.ptx"], &COUNT[1..]].concat());
    command.current_dir(workdir.path("a")).env_remove(VARIABLE);
    let ran: Ran = command.output().unwrap().into();
    ran.ends(0, &["1 suppressed"]);
    assert_eq!(workdir.json("r.json")["summary"]["suppressed"], 1);
}

#[test]
fn what_makes_no_sense_is_65_with_the_line_and_what_to_do() {
    for (line, words) in [
        (
            "laucnh-skip = 3",
            "unknown key `laucnh-skip`; write `launch-skip`?",
        ),
        ("qqq = 3", "unknown key `qqq`; keys are the options of"),
        ("config = \"x\"", "unknown key `config`"),
        ("[launch]", "unknown key `launch`"),
        ("seed = \"x\"", "invalid value 'x' for '--seed <N>'"),
        ("mode = \"slow\"", "possible values: precise, fast, full"),
        ("strict = 1", "`strict` is true or false"),
        ("seed = true", "`seed` is a string or a number"),
        ("seed = [1, 2]", "`seed` has one value only"),
        ("seed = ", "string values must be quoted"),
        (
            "kernel-name = [[1]]",
            "`kernel-name` is a string or a number",
        ),
    ] {
        let workdir = with(&format!("# options\n\n{line}\n"));
        let ran = run(&workdir, &[], "");
        let file = workdir.path(FILE).display().to_string();
        ran.ends(65, &[&format!("cudarun-check: {file}:3: "), words]);
    }
}

#[test]
fn options_that_exclude_each_other_are_reported_with_their_file() {
    let workdir = with("strict = true\nallow-incomplete = true\n");
    let file = workdir.path(FILE).display().to_string();
    let words = format!("{file}: the argument '--allow-incomplete' cannot be used with '--strict'");
    run(&workdir, &[], "").ends(65, &[&words]);
}

#[test]
fn an_option_whose_value_may_be_left_out_may_be_true() {
    let workdir = with("record = true\nsave = \"run.crr\"\n");
    run(&workdir, &[], "").ends(66, &[]);
    let ran = workdir.tool(&["replay", "run.crr"]);
    assert_eq!(ran.code, 66, "{}", ran.stderr);
    workdir.write(FILE, "record = false\nsave = \"run.crr\"\n");
    run(&workdir, &[], "").ends(66, &[]);
    workdir
        .tool(&["replay", "run.crr"])
        .ends(65, &["no recorded launches"]);
}

#[test]
fn other_commands_take_no_options_from_them() {
    let workdir = with("nonsense = 3\n");
    let mut command = workdir.command(&["explain", "CR003"]);
    let ran: Ran = command.env(VARIABLE, "--nonsense").output().unwrap().into();
    ran.ends(0, &[]);
}
