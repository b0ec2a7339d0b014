//! Which loads a loop waits for.

use std::collections::BTreeSet;

use ptx::ast::{Function, Module};

/// The strong loads of a function that a loop waits for, by the register that they write.
fn waited(statements: &str) -> Vec<String> {
    found(statements, ptx::waits)
}

/// The loads of a function that are found, by the register that they write.
fn found(statements: &str, find: fn(&Module, &Function) -> BTreeSet<usize>) -> Vec<String> {
    let text = format!(
        ".func f (.reg .b64 %a) {{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %q; {statements} }}"
    );
    let (module, diagnostics) = ptx::parse(&text);
    assert_eq!(diagnostics, [], "in:\n{text}");
    let function = module.function("f").unwrap();
    let body = function.body.as_ref().unwrap();
    let found = find(&module, function);
    let mut all = Vec::new();
    for (at, instruction) in body.instructions() {
        if found.contains(&at) {
            all.push(
                module
                    .slice(instruction.span)
                    .split_whitespace()
                    .nth(1)
                    .unwrap()
                    .replace(',', ""),
            );
        }
    }
    all
}

#[test]
fn a_spinning_load_is_waited_for_and_one_behind_it_is_not() {
    let text = "L: ld.volatile.u32 %r0, [%a]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; ld.volatile.u32 %r1, [%a+4]; ret;";
    assert_eq!(waited(text), ["%r0"]);
}

#[test]
fn atomics_and_acquire_loads_wait_and_swaps_and_weak_loads_do_not() {
    let spin = |load: &str| {
        waited(&format!(
            "L: {load}; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; ret;"
        ))
    };
    assert_eq!(spin("ld.acquire.gpu.u32 %r0, [%a]"), ["%r0"]);
    assert_eq!(spin("atom.add.u32 %r0, [%a], 0"), ["%r0"]);
    assert!(spin("atom.cas.b32 %r0, [%a], 0, 1").is_empty());
    assert!(spin("ld.u32 %r0, [%a]").is_empty());
}

#[test]
fn a_swap_that_changes_nothing_waits() {
    let text = "L: atom.cas.b32 %r0, [%a], %r1, %r1; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; ret;";
    assert_eq!(waited(text), ["%r0"]);
}

#[test]
fn a_load_polls_where_its_address_stays() {
    let poll = |next: &str| {
        let text = format!(
            "mov.u64 %q, %a; L: ld.relaxed.gpu.u32 %r0, [%q]; {next} setp.eq.u32 %p0, %r0, 0; @%p0 bra L; ret;"
        );
        (found(&text, ptx::polls), waited(&text))
    };
    let both = vec!["%r0".to_owned()];
    assert_eq!(poll(""), (both.clone(), both.clone()));
    assert_eq!(poll("add.u64 %q, %q, 4;"), (Vec::new(), both));
}

#[test]
fn a_weak_load_spins_where_the_loop_does_nothing_else() {
    let spin = |before: &str, behind: &str| {
        let text = format!(
            "mov.u64 %q, %a; L: {before} ld.global.cg.u32 %r0, [%q]; {behind} setp.eq.u32 %p0, %r0, 0; @%p0 bra L; ret;"
        );
        assert!(waited(&text).is_empty());
        found(&text, ptx::spins)
    };
    assert_eq!(spin("", ""), ["%r0"]);
    assert_eq!(spin("", "membar.gl;"), ["%r0"]);
    for other in [
        "st.global.u32 [%a+4], %r1;",
        "red.global.add.u32 [%a+4], 1;",
        "bar.sync 0;",
    ] {
        assert!(spin("", other).is_empty(), "{other}");
    }
    // As in a list: each time another word.
    assert!(spin("add.u64 %q, %q, 4;", "").is_empty());
    let strong = "L: ld.volatile.u32 %r0, [%a]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; ret;";
    assert!(found(strong, ptx::spins).is_empty());
}

#[test]
fn a_load_in_a_counted_loop_is_data() {
    let text = "mov.u32 %r1, 0; L: ld.volatile.u32 %r0, [%a]; add.u32 %r2, %r2, %r0; st.volatile.u32 [%a], %r2; add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 8; @%p0 bra L; ret;";
    assert!(waited(text).is_empty());
}

#[test]
fn a_register_that_a_branch_on_the_load_sets_carries_the_decision() {
    let text = "mov.u32 %r1, 0; L: ld.volatile.u32 %r0, [%a]; setp.eq.u32 %p0, %r0, 0; @%p0 bra N; mov.u32 %r1, 1; N: setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret;";
    assert_eq!(waited(text), ["%r0"]);
}

#[test]
fn a_return_from_the_middle_of_a_loop_is_an_exit() {
    let text = "mov.u32 %r1, 0; L: ld.volatile.u32 %r0, [%a]; setp.eq.u32 %p0, %r0, 0; @%p0 ret; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 8; @%p1 bra L; ret;";
    assert_eq!(waited(text), ["%r0"]);
}

#[test]
fn a_load_of_the_outer_loop_decides_the_exit_of_the_outer_one_only() {
    let text = "L: ld.volatile.u32 %r0, [%a]; M: ld.volatile.u32 %r1, [%a+4]; setp.eq.u32 %p1, %r2, 0; @%p1 bra M; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; ret;";
    assert_eq!(waited(text), ["%r0"]);
}

/// As nvcc writes a wait that is the first statement of a round: two loops, one head.
#[test]
fn a_wait_may_have_the_head_of_the_loop_around_it() {
    let round = |step: &str| {
        let text = format!(
            "mov.u64 %q, %a; mov.u32 %r1, 0; L: ld.volatile.u32 %r0, [%q]; setp.le.u32 %p0, %r0, %r1; {step} @%p0 bra L; \
             ld.volatile.u32 %r2, [%a+4]; st.u32 [%a+8], %r2; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 8; @%p1 bra L; ret;"
        );
        (waited(&text), found(&text, ptx::polls))
    };
    let wait = vec!["%r0".to_owned()];
    assert_eq!(round(""), (wait.clone(), wait));
    // A scan: each way back goes to another word.
    assert_eq!(round("add.u64 %q, %q, 4;"), (Vec::new(), Vec::new()));
}

#[test]
fn a_load_into_a_register_that_is_written_again_before_the_branch_is_data() {
    // The register's other value decides: the count, and in the second loop what the other load returns.
    let text = "mov.u32 %r1, 0; L: ld.volatile.u32 %r0, [%a]; add.u32 %r2, %r2, %r0; add.u32 %r1, %r1, 1; mov.u32 %r0, %r1; setp.lt.u32 %p0, %r0, 8; @%p0 bra L; ret;";
    assert!(waited(text).is_empty());
    let text = "L: ld.volatile.u32 %r0, [%a]; st.u32 [%a+8], %r0; ld.acquire.gpu.u32 %r0, [%a+4]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; ret;";
    assert_eq!(waited(text).len(), 1);
}
