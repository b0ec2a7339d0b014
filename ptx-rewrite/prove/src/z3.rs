//! z3, for tests that compare with it.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Set where z3 must be there.
const NEEDED: &str = "CUDARUN_CHECK_TEST_Z3";

/// What z3 says of formulas of a logic of SMT-LIB 2, each within so many milliseconds: `sat`, `unsat` or `unknown`. None
/// where there is no z3.
pub(crate) fn answers(logic: &str, milliseconds: u32, formulas: &[String]) -> Option<Vec<String>> {
    let Some(z3) = toolkit::z3() else {
        let why = "no z3: `cargo xtask toolkit` fetches it";
        assert!(std::env::var_os(NEEDED).is_none(), "{why}");
        println!("not compared: {why}");
        return None;
    };
    let mut child = Command::new(z3)
        .arg("-in")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    // The answers fit the pipe, so nobody needs to read while this writes.
    write!(
        to,
        "(set-logic {logic})\n(set-option :timeout {milliseconds})\n"
    )
    .unwrap();
    for formula in formulas {
        to.write_all(formula.as_bytes()).unwrap();
    }
    drop(to);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<String> = said.lines().map(str::to_owned).collect();
    let known = |answer: &String| ["sat", "unsat", "unknown"].contains(&answer.as_str());
    assert!(
        answers.len() == formulas.len() && answers.iter().all(known),
        "z3 said {said}"
    );
    Some(answers)
}
