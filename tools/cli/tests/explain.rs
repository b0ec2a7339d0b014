//! `explain`: rules by their ids, and docs/rules.md.

use std::path::Path;
use std::process::{Command, Output};

fn explain(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
    command.arg("explain").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_page_of_rules_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let page = std::fs::read_to_string(path).unwrap();
    let output = explain(&[]);
    assert!(output.status.success());
    assert!(
        text(&output.stdout) == page,
        "run `cudarun-check explain > docs/rules.md`"
    );
}

#[test]
fn a_rule_is_found_by_its_id_and_another_word_names_all_rules() {
    let found = explain(&["cr003"]);
    let words = text(&found.stdout);
    assert!(words.starts_with("## CR003: inter-block race\n"), "{words}");
    assert!(words.contains("*total += data[blockIdx.x];"), "{words}");
    assert!(
        words.contains("atomicAdd(total, data[blockIdx.x]);"),
        "{words}"
    );
    let wrong = explain(&["CR004"]);
    assert_eq!(wrong.status.code(), Some(64));
    let words = text(&wrong.stderr);
    assert!(words.contains("there is no rule `CR004`; the rules are CR001, CR002, CR003, CR005"));
}
