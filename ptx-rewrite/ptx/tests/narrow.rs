//! Which accesses to a word stand for accesses to 8 or 16 bits of it.

/// A function's narrow accesses: text, pointer, bytes.
fn narrow(statements: &str) -> Vec<(String, String, u32)> {
    let text = format!(
        ".visible .entry k (.param .b64 memory) {{ .reg .pred %p<4>; .reg .b16 %s<9>; .reg .b32 %r<20>; \
         .reg .b64 %a<9>; ld.param.u64 %a0, [memory]; {statements} ret; }}"
    );
    let (module, diagnostics) = ptx::parse(&text);
    assert_eq!(diagnostics, [], "in:\n{text}");
    let function = module.function("k").unwrap();
    let body = function.body.as_ref().unwrap();
    let found = ptx::narrow(&module, function);
    let text = |at: usize| {
        let mut all = body.instructions();
        let (_, of) = all.find(|(index, _)| *index == at).unwrap();
        module.slice(of.span).to_owned()
    };
    found
        .into_iter()
        .map(|(at, of)| (text(at), of.pointer.to_string(), of.bytes))
        .collect()
}

const LOAD: &str = "and.b64 %a1, %a0, -2; cvt.u32.u64 %r0, %a0; shl.b32 %r1, %r0, 3; and.b32 %r2, %r1, 8; \
     ld.acquire.gpu.b16 %s1, [%a1]; cvt.u32.u16 %r3, %s1; shr.u32 %r4, %r3, %r2; cvt.u16.u32 %s2, %r4; \
     and.b16 %s3, %s2, 255; setp.eq.s16 %p0, %s3, 0;";
const STORE: &str = "and.b64 %a2, %a0, -4; cvt.u32.u64 %r5, %a0; shl.b32 %r6, %r5, 3; and.b32 %r7, %r6, 24; \
     mov.u32 %r8, 255; shl.b32 %r9, %r8, %r7; not.b32 %r10, %r9; ld.relaxed.gpu.b32 %r11, [%a2]; mov.u32 %r12, 1; \
     shl.b32 %r13, %r12, %r7; A: and.b32 %r14, %r11, %r10; or.b32 %r15, %r14, %r13; \
     atom.cas.release.gpu.b32 %r16, [%a2], %r11, %r15; setp.ne.s32 %p1, %r16, %r11; mov.u32 %r11, %r16; @%p1 bra A;";

#[test]
fn a_load_and_a_loop_of_swaps_are_narrow() {
    let found = narrow(&format!("{LOAD} {STORE}"));
    let all: Vec<_> = found
        .iter()
        .map(|(text, pointer, bytes)| (text.as_str(), pointer.as_str(), *bytes))
        .collect();
    assert_eq!(
        all,
        [
            ("ld.acquire.gpu.b16 %s1, [%a1];", "%a0", 1),
            ("ld.relaxed.gpu.b32 %r11, [%a2];", "%a0", 1),
            (
                "atom.cas.release.gpu.b32 %r16, [%a2], %r11, %r15;",
                "%a0",
                1
            ),
        ]
    );
}

#[test]
fn what_uses_or_changes_more_of_the_word_is_not_narrow() {
    // What is replaced, by what, and how many narrow accesses are left.
    let changes = [
        // The load uses bits of its neighbour.
        ("and.b16 %s3, %s2, 255;", "and.b16 %s3, %s2, 511;", 2),
        ("and.b16 %s3, %s2, 255;", "mov.u16 %s3, %s2;", 2),
        (
            "and.b16 %s3, %s2, 255;",
            "and.b16 %s3, %s2, 255; st.global.u16 [%a0], %s2;",
            2,
        ),
        ("shr.u32 %r4, %r3, %r2;", "mov.u32 %r4, %r3;", 2),
        ("shr.u32 %r4, %r3, %r2;", "shr.u32 %r4, %r3, 8;", 2),
        ("and.b32 %r2, %r1, 8;", "and.b32 %r2, %r1, 24;", 2),
        ("shl.b32 %r1, %r0, 3;", "shl.b32 %r1, %r0, 2;", 2),
        // Another pointer is rounded than the one that tells the place.
        (
            "and.b64 %a1, %a0, -2;",
            "add.s64 %a3, %a0, 1; and.b64 %a1, %a3, -2;",
            2,
        ),
        ("and.b64 %a1, %a0, -2;", "and.b64 %a1, %a0, -4;", 2),
        (
            "ld.acquire.gpu.b16 %s1, [%a1];",
            "ld.acquire.gpu.b16 %s1, [%a1+2];",
            2,
        ),
        // It has a guard, or does not say how it is ordered.
        (
            "ld.acquire.gpu.b16 %s1, [%a1];",
            "@%p2 ld.acquire.gpu.b16 %s1, [%a1];",
            2,
        ),
        // The swap writes more than the element.
        ("shl.b32 %r13, %r12, %r7;", "mov.u32 %r13, 1;", 1),
        ("mov.u32 %r12, 1;", "mov.u32 %r12, 256;", 1),
        ("mov.u32 %r8, 255;", "mov.u32 %r8, 511;", 1),
        ("not.b32 %r10, %r9;", "mov.u32 %r10, %r9;", 1),
        ("and.b32 %r7, %r6, 24;", "and.b32 %r7, %r6, 8;", 1),
        (
            "A: and.b32 %r14, %r11, %r10;",
            "and.b32 %r14, %r11, %r10; A:",
            1,
        ),
        ("or.b32 %r15, %r14, %r13;", "xor.b32 %r15, %r14, %r13;", 1),
        ("or.b32 %r15, %r14, %r13;", "mov.u32 %r15, %r13;", 1),
        // Something else uses the whole word.
        (
            "setp.ne.s32 %p1, %r16, %r11;",
            "setp.ne.s32 %p1, %r16, 0;",
            1,
        ),
        (
            "mov.u32 %r11, %r16; @%p1",
            "mov.u32 %r11, %r16; st.global.u32 [%a0], %r11; @%p1",
            1,
        ),
        ("%r11, %r15;", "%r11, %r15; st.global.u32 [%a0], %r15;", 1),
    ];
    let good = format!("{LOAD} {STORE}");
    for (from, to, left) in changes {
        assert!(good.contains(from), "{from}");
        let found = narrow(&good.replace(from, to));
        assert_eq!(found.len(), left, "{from} -> {to}: {found:?}");
    }
}

#[test]
fn a_pointer_that_moves_on_is_another() {
    let moved = "B: add.s64 %a5, %a0, %a6; and.b64 %a1, %a5, -2; cvt.u32.u64 %r0, %a5; shl.b32 %r1, %r0, 3; \
         and.b32 %r2, %r1, 8; ld.acquire.gpu.b16 %s1, [%a1]; cvt.u32.u16 %r3, %s1; shr.u32 %r4, %r3, %r2; \
         and.b32 %r3, %r4, 255; setp.eq.s32 %p0, %r3, 0; @%p0 bra B;";
    // `%r3` has two writes here, but each read sees one.
    assert_eq!(narrow(moved).len(), 1, "{:?}", narrow(moved));
    // The place in the word is that of the element before.
    let stale = "add.s64 %a5, %a0, 0; B: and.b64 %a1, %a0, -2; cvt.u32.u64 %r0, %a5; shl.b32 %r1, %r0, 3; \
         and.b32 %r2, %r1, 8; ld.acquire.gpu.b16 %s1, [%a1]; cvt.u32.u16 %r3, %s1; shr.u32 %r4, %r3, %r2; \
         and.b32 %r6, %r4, 255; setp.eq.s32 %p0, %r6, 0; @%p0 bra B;";
    assert!(narrow(stale).is_empty());
    let late = moved.replace("B: add", "mov.u32 %r2, 0; B: add").replace(
        "and.b32 %r2, %r1, 8; ld",
        "shr.u32 %r5, %r0, %r2; and.b32 %r2, %r1, 8; ld",
    );
    assert!(narrow(&late).is_empty(), "two writes of the place");
    let rotated = "and.b64 %a1, %a0, -2; cvt.u32.u64 %r0, %a0; B: add.s64 %a5, %a0, 1; \
         ld.acquire.gpu.b16 %s1, [%a1]; cvt.u32.u16 %r3, %s1; shl.b32 %r1, %r0, 3; and.b32 %r2, %r1, 8; \
         shr.u32 %r4, %r3, %r2; and.b32 %r6, %r4, 255; and.b64 %a1, %a5, -2; bra B;";
    assert!(narrow(rotated).is_empty());
}

#[test]
fn without_strong_accesses_of_16_bits_words_stay_words() {
    assert!(narrow(STORE).is_empty());
    let weak = LOAD.replace("ld.acquire.gpu.b16", "ld.b16");
    assert!(narrow(&format!("{weak} {STORE}")).is_empty());
    let unnamed = STORE.replace("atom.cas.release.gpu.b32", "atom.cas.b32");
    assert_eq!(narrow(&format!("{LOAD} {unnamed}")).len(), 1);
}

#[test]
fn elements_of_16_bits() {
    let halves = STORE.replace("mov.u32 %r8, 255;", "mov.u32 %r8, 65535;");
    let found = narrow(&format!("{halves} st.relaxed.gpu.b16 [%a0], %s0;"));
    let bytes: Vec<u32> = found.iter().map(|(.., bytes)| *bytes).collect();
    assert_eq!(bytes, [2, 2], "{found:?}");
}
