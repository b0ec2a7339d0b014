//! The workers of `gpu-tests`: what becomes of a unit whose worker hangs, dies or lies. Shell scripts
//! stand in for the workers, so that no driver is needed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use filetests::gpu::judge::Finding;
use filetests::gpu::{Unit, pool, units};

const RIGHT: &str = r#"@unit {"Unit":{"finding":"right","why":"","broken":false}}"#;

/// The units of the files with one of these in their names.
fn named(parts: &[&str]) -> Vec<Unit> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let parts: Vec<String> = parts.iter().map(|&part| part.to_owned()).collect();
    units(&tests, &parts).unwrap()
}

/// What becomes of two units under this worker.
fn findings(script: &str) -> Vec<Finding> {
    let mut all = named(&["exec/int_binary"]);
    all.truncate(2);
    assert!(all.len() == 2 && all[0].way == all[1].way);
    let settings = pool::Settings {
        jobs: 1,
        limit: Duration::from_millis(500),
        hang_limit: Duration::from_secs(60),
        deadline: Instant::now() + Duration::from_secs(60),
    };
    let ended = pool::run(&all, settings, || {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    });
    ended.iter().map(|ended| ended.finding).collect()
}

#[test]
fn a_worker_that_answers_is_used_again() {
    let script =
        format!("read a; echo '@unit \"Ready\"'; while read a; do echo 'noise {RIGHT}'; done");
    assert_eq!(findings(&script), [Finding::Right, Finding::Right]);
}

#[test]
fn a_unit_that_hangs_is_killed_and_the_next_one_runs() {
    // Hangs at the first unit, and answers the second.
    let script = format!(
        "read a; echo '@unit \"Ready\"'; while read a; do case $a in 1) echo '{RIGHT}';; *) exec sleep 50;; esac; done"
    );
    assert_eq!(findings(&script), [Finding::Hung, Finding::Right]);
}

#[test]
fn a_worker_that_dies_or_never_starts_is_reported() {
    assert_eq!(findings("exit 1"), [Finding::Crashed; 2]);
    let dies = "read a; echo '@unit \"Ready\"'; read a; exit 1";
    assert_eq!(findings(dies), [Finding::Crashed; 2]);
}

#[test]
fn what_may_hang_comes_last_and_is_killed_sooner() {
    let all = named(&["misuse_", "exec/int_binary"]);
    let [first, .., last] = &all[..] else {
        panic!("two units")
    };
    assert!(first.name.contains("int_binary") && last.name.contains("misuse_"));
    let ends = [first.clone(), last.clone()];
    let settings = pool::Settings {
        jobs: 1,
        limit: Duration::from_secs(3),
        hang_limit: Duration::from_secs(1),
        deadline: Instant::now() + Duration::from_secs(60),
    };
    let ended = pool::run(&ends, settings, || {
        let mut command = Command::new("sh");
        command.args(["-c", "read a; echo '@unit \"Ready\"'; exec sleep 50"]);
        command
    });
    let findings: Vec<_> = ended
        .iter()
        .map(|ended| (ended.finding, ended.why.as_str()))
        .collect();
    assert_eq!(
        findings,
        [
            (Finding::Hung, "killed after 3 s"),
            (Finding::NotSeen, "killed after 1 s")
        ]
    );
}
