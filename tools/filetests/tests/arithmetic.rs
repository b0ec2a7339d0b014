//! What instructions compute, on random operands, against the reference.
//!
//! `CUDARUN_ARITHMETIC_SEED` draws other operands, and `CUDARUN_ARITHMETIC_WARPS` lets each form run on
//! so many warps of them.

use filetests::arithmetic::{forms, run};

/// The variable's value.
fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => default,
    }
}

#[test]
fn no_form_is_there_twice() {
    let mut seen = std::collections::HashSet::new();
    for form in forms::all() {
        let kernel = form.kernel("k");
        assert!(seen.insert(kernel), "{} in the same registers", form.text);
    }
}

#[test]
fn every_form_computes_what_the_reference_does() {
    let seed = number("CUDARUN_ARITHMETIC_SEED", 1);
    let warps = number("CUDARUN_ARITHMETIC_WARPS", 16) as u32;
    let forms = forms::all();
    let mut wrong = Vec::new();
    for some in forms.chunks(200) {
        wrong.extend(run(some, seed, warps).unwrap());
    }
    assert!(
        wrong.is_empty(),
        "{} of {} forms differ with CUDARUN_ARITHMETIC_SEED={seed}:\n{}",
        wrong.len(),
        forms.len(),
        wrong.join("\n")
    );
}
