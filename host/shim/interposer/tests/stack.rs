//! The stack of threads with checks.

use crate::common::program::{Program, ptx};
use runtime::Options;

/// Calls itself.
const DOWN: &str = ".func down(.param .u32 n) {
    .reg .u32 %n; .reg .pred %p;
    ld.param.u32 %n, [n]; setp.eq.u32 %p, %n, 0; @%p ret;
    sub.u32 %n, %n, 1;
    { .param .u32 a; st.param.u32 [a], %n; call.uni down, (a); }
    ret;
}
";
/// Is called through a pointer.
const FAR: &str = ".func far(.param .u32 n) { ret; }
";

/// Where a driver cannot know how much is needed, there is more, of which the program does not hear.
#[test]
fn there_is_more_stack_where_nobody_knows_how_much_is_needed() {
    let program = Program::of("tests/c/stack.c");
    let call = |how: &str| format!("{{ .param .u32 a; st.param.u32 [a], %n; {how} }} ret;\n}}\n");
    let calls = call("call.uni down, (a);");
    let pointed = call(
        ".reg .u64 %f; mov.u64 %f, far; prototype: .callprototype _ (.param .u32 n); call %f, (a), prototype;",
    );
    let once = DOWN.replace("call.uni down, (a);", "");
    for (functions, calls, more) in [
        ("", "ret;\n}\n", false),
        (once.as_str(), calls.as_str(), false),
        (DOWN, calls.as_str(), true),
        (FAR, pointed.as_str(), true),
    ] {
        let bounds = ".maxntid 64";
        let text = ptx("7.0", bounds, bounds);
        let (head, last) = text.rsplit_once("ret;\n}\n").expect("a kernel");
        let head = head.replacen(".visible .entry", &format!("{functions}.visible .entry"), 1);
        let file = program.workdir.path("given.ptx");
        std::fs::write(&file, format!("{head}{calls}{last}")).expect("a writable folder");
        for form in ["module", "library"] {
            let given = file.to_str().expect("a path");
            let ran = program.run_with(&[form, given], &Options::default(), &[]);
            let printed = match more {
                true => "1024 of 4096\n2000 of 7024\n2000 of 7024\n",
                false => "1024 of 1024\n2000 of 2000\n2000 of 2000\n",
            };
            let what = format!("{form} {calls} {:?}\n{}", ran.notes, ran.stderr);
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (Some(0), printed),
                "{what}"
            );
            assert_eq!(ran.checked("fine"), [true], "{what}");
        }
    }
}
