//! `--prove audit`: a race that a proof excludes.

use crate::kernel::run;

/// Each thread writes its own word of `data`, and the other thread's through `lock` and an index that it loads. Proofs
/// assume that no index leads out of the allocation of its pointer, so this makes one wrong.
const ASTRAY: &str = ".reg .b64 %mine, %at, %far; .reg .b32 %other;
    mad.wide.u32 %mine, %n, 4, %data; mad.wide.u32 %at, %n, 4, %lock;
    sub.s64 %far, %data, %lock; shr.s64 %far, %far, 2; cvt.u32.u64 %v, %far;
    xor.b32 %other, %n, 1; add.u32 %v, %v, %other; st.global.u32 [%at], %v;
    st.global.u32 [%mine], 1;
    ld.global.s32 %far, [%at]; shl.b64 %far, %far, 2; add.s64 %far, %lock, %far; st.global.u32 [%far], 2;";

#[test]
fn a_race_that_a_proof_excludes_is_an_error_of_the_tool() {
    for mode in [&[] as &[&str], &["--as-gpu"], &["--mode", "fast"]] {
        let of = |prove| run(ASTRAY, &[mode, &["--prove", prove]].concat());
        let ran = of("audit");
        ran.ends(
            70,
            &[
                "internal error of cudarun-check: launch #1 of k: the accesses at PTX lines",
                "is proved not to (Private)",
                "1 race (1 error); 1 error of cudarun-check itself",
            ],
        );
        assert_eq!(ran.json["summary"]["outcome"], "tool_error");
        assert_eq!(ran.json["tool"]["errors"].as_array().unwrap().len(), 1);
        of("off").ends(66, &["1 race (1 error)\n"]);
    }
}
