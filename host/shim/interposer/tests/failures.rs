//! Every call that reaches the driver fails once, whoever has made it: a program computes what it computes, or
//! sees a call of its own fail.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::text;
use crate::common::{self, program::Program};
use runtime::Options;

/// How often each function of the driver was called.
fn calls(list: &Path) -> BTreeMap<String, u32> {
    let listed = std::fs::read_to_string(list).expect("a list of calls");
    let mut calls = BTreeMap::new();
    for line in listed.lines() {
        let (_, name) = line.split_once(' ').expect("a call");
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    std::fs::remove_file(list).expect("it was there");
    calls
}

/// Lets each call of each function fail, the first few and the last ones of many.
fn fail_each(program: &Program, form: &str, code: u32) {
    let list = program.workdir.path("calls");
    let noted = [("CUDARUN_SIM_CALLS", list.to_str().expect("a path"))];
    let mut alone = program.workdir.command(&program.program, &program.driver);
    let output = common::succeed(alone.arg(form).envs(noted));
    let expected = text(&output.stdout);
    let own = calls(&list);
    let whole = program.run_with(&[form], &Options::default(), &noted);
    assert_eq!((whole.code, &whole.stdout), (Some(0), &expected), "{form}");
    let all = calls(&list);
    let ours = all.keys().filter(|name| !own.contains_key(*name)).count();
    assert!(ours >= 15, "{form}: {all:?}");
    for (name, &count) in &all {
        let mut failed = 0;
        for nth in (1..=count).filter(|nth| *nth <= 4 || nth + 2 > count) {
            let ran = program.run(
                &[form],
                &Options::default(),
                &format!("{name}#{nth}={code}"),
            );
            let what = format!("{form} {name}#{nth}={code} {:?}\n{}", ran.notes, ran.stderr);
            assert!(!ran.stderr.contains("hook"), "{what}");
            assert!(ran.racing().iter().all(|kernel| kernel == "racy"), "{what}");
            match ran.code {
                Some(0) => assert_eq!(ran.stdout, expected, "{what}"),
                Some(1) => {
                    // The program says which of its calls.
                    let last = ran.stdout.lines().last().unwrap_or_default();
                    assert!(last.starts_with("line "), "{what} {last}");
                    failed += 1;
                }
                _ => panic!("{what} {:?}", ran.code),
            }
        }
        let most = own.get(name).copied().unwrap_or(0);
        assert!(
            failed <= most,
            "{form} {name}: {failed} times, and called {most} times"
        );
    }
}

#[test]
fn each_call_may_fail_for_whatever_reason() {
    let program = Program::new();
    for form in ["plain", "library", "capture", "nodes"] {
        fail_each(&program, form, 999);
    }
}

#[test]
fn each_call_may_fail_for_want_of_memory() {
    fail_each(&Program::new(), "mapped", 2);
}

#[test]
fn each_call_for_a_graph_may_fail() {
    let program = Program::of("tests/c/graphs.c");
    for form in ["child", "update", "exec-set"] {
        fail_each(&program, form, 999);
    }
}
