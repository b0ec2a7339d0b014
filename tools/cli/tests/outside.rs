//! `--oob`: launches that access what is outside of all memory.

use std::process::Command;

use crate::kernel::run_as;

const MODES: [&[&str]; 4] = [
    &[],
    &["--mode", "fast"],
    &["--as-gpu"],
    &["--sim-threads", "2"],
];

/// Two words behind the end of the first buffer, for each thread of odd number, and then one inside.
const BEHIND: &str = ".reg .b32 %t; .reg .b64 %at, %mine; mov.u32 %t, %tid.x; and.b32 %v, %t, 1; mul.lo.u32 %v, %v, 4;\n\
     mad.wide.u32 %mine, %t, 4, %lock; mad.wide.u32 %at, %v, 4, %data;\nld.global.u32 %v, [%at];\n\
     st.global.u32 [%at], 5;\nadd.u32 %v, %v, 100; setp.lt.u32 %p, %t, 2; @%p st.global.u32 [%mine], %v;";

#[test]
fn a_launch_ends_at_the_first_access_outside() {
    for mode in MODES {
        let ran = run_as("--grid 1 --block 2", BEHIND, mode);
        ran.ends(1, &["invalid global read of 4 bytes", "thread (1,0,0)"]);
        assert_eq!(ran.json["out_of_bounds"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn or_goes_on_and_reports_each_of_them() {
    for mode in MODES {
        let options = [mode, &["--oob", "continue", "--dump", "1"]].concat();
        let ran = run_as("--grid 1 --block 2", BEHIND, &options);
        ran.ends(
            66,
            &[
                "error: out of bounds: read of 4 bytes of global memory at 0x",
                "error: out of bounds: write of 4 bytes of global memory at 0x",
                "by thread (1,0,0) of block (0,0,0) of k",
                "= nearest: 8 bytes behind the end of allocation #1 of 8 bytes, made by --arg 0",
                "read as zero",
                "dropped",
                "SUMMARY: cudarun-check: 0 races, 2 accesses out of bounds",
                "1 launch checked, 2 accesses out of bounds skipped",
            ],
        );
        assert_eq!(ran.json["summary"]["outcome"], "races");
        let first = &ran.json["out_of_bounds"][0];
        assert_eq!((&first["op"], &first["count"]), (&"read".into(), &1.into()));
        assert_eq!(first["thread"], serde_json::json!([1, 0, 0]));
        // The load gave zero, and the launch came to its end.
        assert!(
            ran.stdout.contains("arg 1: u32[2] = 100 100"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn other_spaces_and_atomics() {
    let body = ".shared .align 4 .b32 word; .reg .b64 %at; mov.u64 %at, 64; atom.global.add.u32 %v, [%at], 1;\n\
                st.shared.u32 [word+4096], 1; ld.shared.u32 %n, [word+8192]; add.u32 %v, %v, %n;\n\
                st.global.u32 [%lock], %v;";
    let ran = run_as("--grid 1 --block 32", body, &["--oob", "continue"]);
    ran.ends(
        66,
        &[
            "atomic access of 4 bytes of global memory at 0x40",
            "write of 4 bytes of shared memory at 0x1000",
            "= nearest: the thread has 4 bytes of shared memory",
            "= seen: 32 times, the first in launch #1",
        ],
    );
}

#[test]
fn an_access_outside_is_no_race_but_a_fault_in_every_mode() {
    // Both lanes store to the same byte of the null page.
    let body = ".reg .b64 %at; mov.u64 %at, 0; mov.u32 %v, %tid.x; st.global.u8 [%at+1], %v; st.global.u8 [%at], %v;";
    for mode in MODES {
        let ran = run_as("--grid 1 --block 2", body, mode);
        ran.ends(1, &["invalid global write of 1 bytes at 0x1", "0 races"]);
    }
}

#[test]
fn bad_values_and_gpus_are_refused() {
    let ends = |arguments: &[&str]| {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
        let output = tool.args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    };
    let (code, said) = ends(&["--oob", "ignore", "x.ptx"]);
    assert_eq!(code, 64, "{said}");
    for word in ["'ignore'", "--oob", "stop", "continue"] {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
    let (code, said) = ends(&["--oob", "continue", "--device", "gpu", "/bin/true"]);
    assert_eq!(code, 64, "{said}");
    let refusal = "--oob continue is for the simulated device: use --device sim";
    assert!(said.contains(refusal), "{said}");
}
