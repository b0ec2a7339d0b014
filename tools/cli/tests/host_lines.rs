//! The line of the host that has launched a kernel.

use std::path::Path;

use crate::common::{self, WAYS};
use crate::kernel;
use serde_json::Value;

const SOURCE: &str = include_str!("c/choice.c");

/// The number of the line that has this in it.
fn line(part: &str) -> u64 {
    let at = SOURCE.lines().position(|line| line.contains(part));
    at.expect("the line is there") as u64 + 1
}

/// The text, the page and the report of a program that races.
fn run(way: common::Way, program: &Path) -> (String, String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let mut command = common::command(way, folder.path());
    command
        .arg("--format")
        .arg(format!("html:{}", page.display()));
    let output = command.arg(program).arg("first_sum").output().unwrap();
    let text = common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(66), "{text}");
    let json = std::fs::read_to_string(folder.path().join("report.json")).unwrap();
    let json = serde_json::from_str(&json).unwrap();
    kernel::assert_valid(&json);
    (text, std::fs::read_to_string(page).unwrap(), json)
}

#[test]
fn a_program_with_debug_information_shows_where_it_launches() {
    let ptx = include_str!("c/choice.ptx");
    let program = common::compile_with("choice", "with-lines", ptx, &["-g", "-ldl"]);
    for way in WAYS {
        let (text, page, json) = run(way, &program);
        let stack = &json["races"][0]["kernel"]["host_stack"];
        for (n, (function, part)) in [
            ("launch", "CUresult result = cuLaunchKernel("),
            ("main", "CHECK(launch(kernel, params));"),
        ]
        .into_iter()
        .enumerate()
        {
            let frame = &stack[n];
            assert_eq!(frame["function"], function, "{way:?} {stack}");
            assert_eq!(frame["line"], line(part), "{way:?} {stack}");
            let file = frame["file"].as_str().unwrap();
            assert!(file.ends_with("tests/c/choice.c"), "{file}");
        }
        let workdir = format!(
            "choice.c:{} launch",
            line("CUresult result = cuLaunchKernel(")
        );
        for shown in [&text, &page] {
            assert!(shown.contains(", launched at "), "{way:?} {shown}");
            assert!(
                shown.contains(&workdir),
                "{way:?} {workdir} is missing in {shown}"
            );
        }
    }
}

#[test]
fn a_program_without_does_not() {
    let ptx = include_str!("c/choice.ptx");
    let program = common::compile_with("choice", "without-lines", ptx, &["-ldl"]);
    for way in WAYS {
        let (text, _, json) = run(way, &program);
        assert_eq!(json["races"][0]["kernel"]["host_stack"], Value::Null);
        assert!(!text.contains("launched at"), "{text}");
    }
}
