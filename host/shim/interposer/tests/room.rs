//! Device memory that the program needs itself.

use crate::common::program::{Program, Ran, ptx};
use runtime::{Options, Prove};

/// What is reported when memory is given back.
const GIVEN: &str = "the program has no device memory left, so half of ";

/// Runs kernels of which `fine` keeps a journal, on a device of 256 MiB, of which cells take 32 at most.
fn run(program: &Program, before: &str, behind: &str, fail: &str) -> Ran {
    let bounds = ".maxntid 64";
    let text =
        ptx("7.0", bounds, bounds).replace("add.u32 %t, %t, %n;", "add.u32 %t, %t, %n; membar.gl;");
    let file = program.workdir.path("given.ptx");
    std::fs::write(&file, text).expect("a writable folder");
    let file = file.to_str().expect("a path");
    let more = [("CUDARUN_SIM_MEMORY", "256"), ("CUDARUN_SIM_FAIL", fail)];
    // A launch that is proved needs neither cells nor a journal.
    let options = Options {
        prove: Prove::Off,
        ..Options::default()
    };
    let ran = program.run_with(&["module", file, before, behind], &options, &more);
    let printed = (ran.code, ran.stdout.as_str());
    let what = format!("{before} {behind} {fail} {:?}", ran.notes);
    assert_eq!(printed, (Some(0), "64 896\n"), "{what}");
    assert_eq!(ran.checked("fine"), [true; 2], "{what}");
    ran
}

/// What of ours was given back.
fn given(ran: &Ran) -> Vec<&str> {
    let notes = ran.notes.iter();
    notes.filter_map(|note| note.strip_prefix(GIVEN)).collect()
}

#[test]
fn a_journal_takes_a_part_of_what_is_free() {
    let program = Program::of("tests/c/given.c");
    // Cells take 32 MiB of the 56 that are left, and the journal an eighth of the rest.
    let ran = run(&program, "200", "16", "");
    assert_eq!(given(&ran), [""; 0]);
}

#[test]
fn a_journal_that_no_launch_keeps_is_given_back() {
    let program = Program::of("tests/c/given.c");
    // Without the cells, but with a journal of 28 MiB, there would not be so much.
    let ran = run(&program, "1", "232", "");
    let both = "the shadow memory and of the journal was given back";
    assert_eq!(given(&ran), [both]);
}

/// Whatever the program needs it for.
#[test]
fn arrays_and_modules_get_memory_too() {
    let program = Program::of("tests/c/given.c");
    for fail in [
        "cuArrayCreate_v2#1=2",
        "cuArray3DCreate_v2#1=2",
        "cuMipmappedArrayCreate#1=2",
        "cuModuleLoadDataEx#2=2",
    ] {
        let ran = run(&program, "1", "1", fail);
        assert_eq!(given(&ran).len(), 1, "{fail}: {:?}", ran.notes);
    }
}
