//! Which accesses look at a version before and after what it guards.

use std::collections::BTreeSet;

/// The texts of the looks before, of the blind ones among them, of the looks after, and of what is carried.
fn versions(statements: &str) -> [Vec<String>; 4] {
    let text = format!(
        ".visible .entry k (.param .b64 memory) {{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %a<9>; \
         ld.param.u64 %a0, [memory]; {statements} ret; }}"
    );
    let (module, diagnostics) = ptx::parse(&text);
    assert_eq!(diagnostics, [], "in:\n{text}");
    let function = module.function("k").unwrap();
    let found = ptx::versions(&module, function);
    let texts = |of: &BTreeSet<usize>| {
        let all = function.body.as_ref().unwrap().instructions();
        let all = all.filter(|(at, _)| of.contains(at));
        all.map(|(_, of)| module.slice(of.span).to_owned())
            .collect()
    };
    [&found.opens, &found.blind, &found.closes, &found.carried].map(texts)
}

const FIRST: &str = "ld.volatile.u32 %r0, [%a0];";
const SECOND: &str = "ld.volatile.u32 %r1, [%a0];";
const DATA: &str = "ld.volatile.u32 %r2, [%a0+4];";

#[test]
fn two_looks_that_are_compared_guard_what_is_between() {
    let ends = [
        "setp.ne.u32 %p0, %r0, %r1; @%p0 bra A;",
        "xor.b32 %r3, %r0, %r1; and.b32 %r4, %r0, 1; or.b32 %r3, %r3, %r4; setp.ne.u32 %p0, %r3, 0; @%p0 bra A;",
    ];
    for end in ends {
        let found = versions(&format!(
            "A: {FIRST} membar.gl; {DATA} membar.gl; {SECOND} {end}"
        ));
        let [opens, blind, closes, carried] = found;
        assert_eq!(opens, [FIRST, SECOND]);
        assert_eq!(blind, [FIRST]);
        assert_eq!(closes, [SECOND]);
        assert!(carried.is_empty());
    }
}

#[test]
fn a_look_that_decides_something_is_not_blind() {
    let [opens, blind, ..] = versions(&format!(
        "A: {FIRST} and.b32 %r3, %r0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra A; {DATA} {SECOND} \
         setp.ne.u32 %p0, %r0, %r1; @%p0 bra A;"
    ));
    assert_eq!(opens, [FIRST, SECOND]);
    assert!(blind.is_empty());
}

#[test]
fn a_wait_for_another_value_is_no_look_at_a_version() {
    let found = versions(&format!(
        "{FIRST} {DATA} A: {SECOND} setp.eq.u32 %p0, %r0, %r1; @%p0 bra A;"
    ));
    assert!(found.iter().all(Vec::is_empty));
}

#[test]
fn a_swap_may_be_the_look_after() {
    let swap = "atom.cas.b32 %r1, [%a0], %r0, %r2;";
    let [_, blind, closes, carried] = versions(&format!(
        "A: {FIRST} {DATA} {swap} setp.ne.u32 %p0, %r0, %r1; @%p0 bra A;"
    ));
    assert_eq!(blind, [FIRST]);
    assert_eq!(closes, [swap]);
    assert_eq!(carried, [DATA]);
}
