//! What is known of the pointers that a kernel loads and writes through.

use super::made::rewritten;

/// What is known of the pointers of a kernel with parameters `a`, `b` and `n` of 64 bits, `c` of 32.
fn pointers(body: &str) -> Option<rewrite::Pointers> {
    let all = rewritten(&format!(
        ".global .u64 g;\n.func f {{ ret; }}\n.entry k(.param .u64 a, .param .u64 b, .param .u32 c, .param .u64 n) {{\n\
         .reg .u64 %a, %b, %n, %x; .reg .u32 %v, %w; .reg .pred %p;\n\
         ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %n, [n]; ld.param.u32 %v, [c];\n\
         {body} ret; }}"
    ));
    all.kernels[0].pointers.clone()
}

#[test]
fn loads_are_known_by_the_variables_of_their_addresses() {
    let variable = 1 << rewrite::Pointers::FIRST_VARIABLE;
    for (body, loads, writes) in [
        (
            "ld.global.u32 %v, [g+4]; st.global.u32 [%b], %v;",
            vec![variable],
            vec![0b010],
        ),
        (
            "mov.u64 %x, g; add.s64 %x, %x, 8; ld.global.u32 %v, [%x]; st.global.u32 [%b], %v;",
            vec![variable],
            vec![0b010],
        ),
        (
            "selp.b64 %x, %a, %b, %p; mov.u64 %n, g; ld.u32 %v, [%x]; st.global.u32 [%n], %v;",
            vec![0b011],
            vec![0b100 | variable],
        ),
    ] {
        let known = pointers(body).unwrap();
        assert_eq!(known.variables, ["g"]);
        assert_eq!((known.loads, known.writes), (loads, writes), "{body}");
    }
    // Of a variable that is written no load is free, nor one of what has come from it.
    for body in [
        "ld.global.u32 %v, [g]; st.global.u32 [g+4], %v;",
        "ld.global.u64 %x, [g]; ld.global.u32 %v, [%x]; st.global.u32 [g], %v;",
        "ld.global.u64 %x, [g]; ld.global.u32 %v, [%a]; st.global.u32 [%x], %v;",
    ] {
        assert_eq!(pointers(body), None, "{body}");
    }
}

#[test]
fn loads_are_known_by_the_parameters_of_their_addresses() {
    let store = "st.global.u32 [%b], %v;";
    let sets = |body: &str| {
        let known = pointers(&format!("{body} {store}"))?;
        assert_eq!(known.offsets, [0, 8, 24]);
        assert_eq!(known.writes, [0b010]);
        Some(known.loads)
    };
    let one = Some(vec![0b001]);
    // Numbers move a pointer within its allocation, a loop does so too.
    for address in [
        "",
        "add.s64 %a, %a, 4;",
        "mad.wide.u32 %a, %v, 4, %a; cvta.to.global.u64 %a, %a;",
        "mul.wide.u32 %x, %v, 4; sub.s64 %a, %a, %x;",
        "ld.global.u32 %w, [%a]; cvt.u64.u32 %x, %w; shl.b64 %x, %x, 2; add.s64 %a, %a, %x;",
        "ld.global.s32 %x, [%a]; shl.b64 %x, %x, 4; add.s64 %a, %a, %x;",
        ".reg .u64 %y; ld.global.u64 %x, [%a]; mul.lo.s64 %y, %x, 2068; add.s64 %a, %a, %y;",
        "ld.global.u64 %x, [%a]; mad.lo.s64 %a, %x, 2068, %a;",
    ] {
        assert_eq!(
            sets(&format!("{address} ld.global.u32 %v, [%a];")),
            one,
            "{address}"
        );
    }
    // Of what it may be, everything counts.
    let either = sets("selp.b64 %x, %a, %n, %p; ld.global.u32 %v, [%x]; ld.u32 %v, [%a+4];");
    assert_eq!(either, Some(vec![0b101, 0b001]));
    for address in [
        // It may be what is written, comes from memory, or is put together.
        "selp.b64 %a, %a, %b, %p;",
        "ld.global.u64 %a, [%a];",
        ".reg .u64 %y; ld.global.u64 %x, [%a]; mul.lo.s64 %y, %x, 16; add.s64 %a, %a, %y;",
        "ld.global.u64 %x, [%a]; mad.lo.s64 %a, %n, 2068, %x;",
        ".reg .u64 %y; ld.global.s32 %x, [%a]; shl.b64 %y, %x, 32; add.s64 %a, %a, %y;",
        "mov.b64 %x, {%v, %v}; add.s64 %a, %a, %x;",
        "shl.b64 %x, %n, 32; add.s64 %a, %a, %x;",
        "atom.global.add.u64 %a, [%b], 1;",
    ] {
        let loads = sets(&format!("{address} ld.global.u32 %v, [%a];"));
        assert_eq!(loads.unwrap_or_default(), [0; 0], "{address}");
    }
}

#[test]
fn one_write_that_is_not_known_spoils_all_loads() {
    let load = "ld.global.u32 %v, [%a];";
    assert!(pointers(&format!("{load} st.global.u32 [%b], %v;")).is_some());
    for write in [
        "ld.global.u64 %b, [%b]; st.global.u32 [%b], %v;",
        "st.global.u32 [4096], %v;",
        "red.global.add.u32 [%x], %v;",
        "mov.b64 %b, {%v, %v}; st.u32 [%b], %v;",
        "cp.async.ca.shared.global [%v], [%a], 4;",
        "{ call f; }",
    ] {
        assert_eq!(pointers(&format!("{load} {write}")), None, "{write}");
    }
    // Nothing but shared memory is written.
    let shared = ".shared .u32 s; mov.u64 %x, s; cvta.shared.u64 %x, %x; st.u32 [%x], %v;";
    let known = pointers(&format!("{load} {shared}")).unwrap();
    assert_eq!((known.loads, known.writes), (vec![0b001], vec![]));
}

#[test]
fn words_are_known_by_the_parameters_of_their_addresses() {
    let sets = |body: &str| pointers(body).map(|known| (known.words, known.parts));
    let store = "st.global.u32 [%b], %v;";
    let byte = "ld.global.u8 %v, [%a];";
    assert_eq!(
        sets(&format!("{byte} {store}")),
        Some((vec![0b010], vec![0b001]))
    );
    // Parts of a word may be atomics, too; words are no larger.
    let atomic = ".reg .b16 %h; atom.global.cas.b16 %h, [%a], %h, %h;";
    assert_eq!(
        sets(&format!("{atomic} {store} st.global.u64 [%n], %x;")),
        Some((vec![0b010], vec![0b001]))
    );
    for body in [
        // No parts; words of the same pointer; words that may be of it; parts that may be anywhere.
        String::from(store),
        format!("{byte} st.global.u32 [%a+4], %v;"),
        format!("{byte} selp.b64 %x, %a, %b, %p; st.global.u32 [%x], %v;"),
        format!("ld.global.u64 %a, [%n]; {byte} {store}"),
        format!(".shared .u32 s; mov.u64 %x, s; selp.b64 %a, %a, %x, %p; ld.u8 %v, [%a]; {store}"),
    ] {
        let words = sets(&body).map(|(words, _)| words);
        assert_eq!(words.unwrap_or_default(), [0; 0], "{body}");
    }
}
