//! The workers of `gpu-tests`: what becomes of a unit whose worker hangs, dies or lies. Shell scripts
//! stand in for the workers, so that no driver is needed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use filetests::gpu::judge::Finding;
use filetests::gpu::{pool, units};

const RIGHT: &str = r#"@unit {"Unit":{"finding":"right","why":"","broken":false}}"#;

/// What becomes of two units under this worker.
fn findings(script: &str) -> Vec<Finding> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut all = units(&tests, &["exec/int_binary".to_owned()]).unwrap();
    all.truncate(2);
    assert!(all.len() == 2 && all[0].way == all[1].way);
    let settings = pool::Settings {
        jobs: 1,
        limit: Duration::from_millis(500),
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
fn a_worker_that_dies_or_never_starts_is_told() {
    assert_eq!(findings("exit 1"), [Finding::Crashed; 2]);
    let dies = "read a; echo '@unit \"Ready\"'; read a; exit 1";
    assert_eq!(findings(dies), [Finding::Crashed; 2]);
}
