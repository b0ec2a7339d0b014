//! Work of different streams, by what is recorded of it.

use crate::common;

#[test]
fn what_was_not_recorded_is_no_pass() {
    let kernel = include_str!("c/count.ptx").replace("${op}", "st.global.u32 [%word], %step;");
    let program = common::compile_with("early", "early", &kernel, &[]);
    let open =
        "1 pair of launches or copies in different streams may race (such as count and count)";
    let note = "races between launches of different streams were not looked for everywhere";
    let strict = "incomplete: --strict: launches of different streams were not compared everywhere";
    for (flags, code, says) in [
        (&[][..], 75, open),
        (&["--prove", "off"], 66, "error[CR014]"),
        (&["--mode", "fast"], 0, note),
        (&["--as-gpu"], 0, note),
        (&["--mode", "fast", "--strict"], 75, strict),
        (&["--as-gpu", "--strict"], 75, strict),
    ] {
        let (_folder, output) = common::checked(&program, flags);
        let err = common::text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {err}");
        assert!(err.contains(says), "{flags:?}: no {says} in {err}");
    }
}
