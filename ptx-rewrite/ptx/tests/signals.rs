//! Which accesses go to what threads communicate through, whether or not a run waits there.

/// The texts of a function's strong accesses that do.
fn signals(statements: &str) -> Vec<String> {
    let text = format!(
        ".visible .entry k (.param .b64 memory) {{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %a<9>; \
         ld.param.u64 %a0, [memory]; {statements} ret; }}"
    );
    let (module, diagnostics) = ptx::parse(&text);
    assert_eq!(diagnostics, [], "in:\n{text}");
    let function = module.function("k").unwrap();
    let found = ptx::signals(&module, function).all;
    let all = function.body.as_ref().unwrap().instructions();
    let all = all.filter(|(at, _)| found.contains(at));
    all.map(|(_, of)| module.slice(of.span).to_owned())
        .collect()
}

/// A loop that waits for a word, which the branch in front of it jumps over.
const WAIT: &str = "setp.eq.u32 %p1, %r1, 0; @%p1 bra E; \
    L: ld.volatile.u32 %r0, [%a1+4]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; E: ";
const LOAD: &str = "ld.volatile.u32 %r0, [%a1+4];";

#[test]
fn an_access_at_the_address_of_the_loop_is_one() {
    let text = format!("mov.u64 %a1, %a0; st.volatile.u32 [%a1+4], 1; {WAIT}");
    assert_eq!(signals(&text), ["st.volatile.u32 [%a1+4], 1;", LOAD]);
}

#[test]
fn the_same_address_may_be_computed_twice() {
    let text = format!(
        "mov.u32 %r2, %tid.x; mul.wide.u32 %a2, %r2, 8; add.s64 %a1, %a0, %a2; \
         mul.wide.u32 %a3, %r2, 8; cvta.to.global.u64 %a4, %a0; add.s64 %a5, %a3, %a4; add.s64 %a6, %a5, 4; \
         st.volatile.u32 [%a6], 1; st.volatile.u32 [%a5], 1; {WAIT}"
    );
    assert_eq!(signals(&text), ["st.volatile.u32 [%a6], 1;", LOAD]);
}

#[test]
fn other_words_sizes_and_weak_accesses_are_none() {
    let text = format!(
        "mov.u64 %a1, %a0; st.volatile.u32 [%a1], 1; st.volatile.u16 [%a1+4], 1; st.u32 [%a1+4], 1; {WAIT}"
    );
    assert_eq!(signals(&text), [LOAD]);
}

#[test]
fn what_memory_returns_is_equal_to_itself_alone() {
    let text = format!(
        "ld.u64 %a1, [%a0+8]; ld.u64 %a2, [%a0+8]; \
         st.volatile.u32 [%a1+4], 1; st.volatile.u32 [%a2+4], 1; {WAIT}"
    );
    assert_eq!(signals(&text), ["st.volatile.u32 [%a1+4], 1;", LOAD]);
}

#[test]
fn an_address_that_has_changed_in_between_is_another() {
    let text = format!(
        "mov.u64 %a1, %a0; st.volatile.u32 [%a1+4], 1; \
         mov.u32 %r2, %tid.x; cvt.u64.u32 %a2, %r2; add.s64 %a1, %a1, %a2; {WAIT}"
    );
    assert_eq!(signals(&text), [LOAD]);
}

#[test]
fn a_value_that_depends_on_itself_ends_the_search() {
    let text = format!(
        "mov.u64 %a1, %a0; M: add.s64 %a1, %a1, 8; st.volatile.u32 [%a1+4], 1; @%p3 bra M; {WAIT}"
    );
    assert_eq!(signals(&text), ["st.volatile.u32 [%a1+4], 1;", LOAD]);
}
