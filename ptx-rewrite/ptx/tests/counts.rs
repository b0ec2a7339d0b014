//! Which atomics count threads, and what only the last of them executes.

/// The texts of what only a thread that has found the value executes, or nothing where no atomic counts.
fn found(statements: &str) -> Option<Vec<String>> {
    let text = format!(
        ".visible .entry k (.param .b64 memory, .param .u32 n) {{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %a<9>; \
         ld.param.u64 %a0, [memory]; {statements} ret; }}"
    );
    let (module, diagnostics) = ptx::parse(&text);
    assert_eq!(diagnostics, [], "in:\n{text}");
    let function = module.function("k").unwrap();
    let found = ptx::counts(&module, function);
    let all = function.body.as_ref().unwrap().instructions();
    let all = all.filter(|(at, _)| found.found.contains_key(at));
    let texts = all.map(|(_, of)| module.slice(of.span).to_owned());
    (!found.counts.is_empty()).then(|| texts.collect())
}

const COUNT: &str = "mov.u32 %r1, %nctaid.x; add.s32 %r2, %r1, -1; atom.add.u32 %r0, [%a0], 1;";
const LAST: &str = "st.volatile.u32 [%a0], 0;";

fn branch(statements: &str) -> String {
    format!("{statements} @%p0 bra E; {LAST} E: membar.gl; ")
}

#[test]
fn what_is_behind_the_branch_the_last_one_executes() {
    let text = branch(&format!("{COUNT} setp.ne.u32 %p0, %r0, %r2;"));
    assert_eq!(found(&text), Some(vec![LAST.to_owned()]));
    let text = format!("{COUNT} setp.eq.u32 %p0, %r0, %r2; @!%p0 bra E; {LAST} E: membar.gl; ");
    assert_eq!(found(&text), Some(vec![LAST.to_owned()]));
    let text = format!(
        "{COUNT} setp.eq.u32 %p0, %r0, %r2; @%p0 bra L; ret; L: {LAST} ld.global.u32 %r3, [%a0]; ret; "
    );
    let all = [LAST, "ld.global.u32 %r3, [%a0];", "ret;"];
    assert_eq!(found(&text).unwrap()[..3], all);
}

#[test]
fn the_value_may_be_moved_and_compared_with_a_parameter() {
    let text = branch(
        "ld.param.u32 %r2, [n]; atom.inc.u32 %r0, [%a0], 7; mov.u32 %r3, %r0; add.s32 %r4, %r3, 1; \
         setp.ne.u32 %p0, %r4, %r2;",
    );
    assert_eq!(found(&text), Some(vec![LAST.to_owned()]));
}

#[test]
fn a_value_that_is_put_to_other_use_does_not_count() {
    for of in [
        "setp.ne.u32 %p0, %r0, %r2; st.global.u32 [%a0+4], %r0;",
        "setp.lt.u32 %p0, %r0, %r2;",
        "setp.ne.u32 %p0, %r0, %r2; selp.u32 %r3, 1, 0, %p0;",
        "setp.ne.u32 %p1, %r0, 0; setp.ne.u32 %p0, %r0, %r2;",
        "mov.u32 %r3, %tid.x; setp.ne.u32 %p0, %r0, %r3;",
    ] {
        assert_eq!(found(&branch(&format!("{COUNT} {of}"))), None, "{of}");
    }
    let different = "mov.u32 %r1, %tid.x; atom.add.u32 %r0, [%a0], %r1; setp.ne.u32 %p0, %r0, 9;";
    assert_eq!(found(&branch(different)), None);
    let swap = "atom.exch.b32 %r0, [%a0], 1; setp.ne.u32 %p0, %r0, 0;";
    assert_eq!(found(&branch(swap)), None);
}

#[test]
fn the_last_one_must_show() {
    let text =
        format!("{COUNT} setp.ne.u32 %p0, %r0, %r2; @%p0 bra E; mov.u32 %r3, 1; E: membar.gl; ");
    assert_eq!(found(&text), None);
}
