//! What the driver's compiler is asked for, how often, and what is reported of its answers.

use crate::common::program::{Program, Ran, ptx};
use runtime::Options;

/// How a program loads.
#[derive(Clone, Copy, Debug)]
struct Form {
    name: &'static str,
    /// What the driver calls our load.
    call: &'static str,
}

const FORMS: [Form; 2] = [
    Form {
        name: "module",
        call: "cuModuleLoadDataEx",
    },
    Form {
        name: "library",
        call: "cuLibraryLoadData",
    },
];

/// Runs a program of this text, and counts the compilations with checks.
fn run(program: &Program, form: Form, text: &str, more: &[(&str, &str)]) -> (Ran, usize) {
    let file = program.workdir.path("given.ptx");
    std::fs::write(&file, text).expect("a writable folder");
    let list = program.workdir.path("calls");
    let _ = std::fs::remove_file(&list);
    let mut all = vec![("CUDARUN_SIM_CALLS", list.to_str().expect("a path"))];
    all.extend(more);
    let file = file.to_str().expect("a path");
    let ran = program.run_with(&[form.name, file], &Options::default(), &all);
    let calls = std::fs::read_to_string(&list).expect("a list of calls");
    let loads = calls
        .lines()
        .filter(|line| line.ends_with(form.call))
        .count();
    (ran, loads)
}

/// A large module takes its time, so that it is compiled once: with few registers, unless every kernel says that its
/// blocks are small.
#[test]
fn a_module_is_compiled_once_for_every_block_that_it_may_have() {
    let program = Program::of("tests/c/given.c");
    let (all, small) = ("", ".maxntid 128, 1, 1");
    // What is left to a block of `fine`: 512 threads where each has 128 registers, and all where each has 64.
    for (racy, fine, most) in [
        (all, all, 1024),
        (all, ".maxntid 800", 800),
        (small, all, 1024),
        (small, ".maxntid 1024", 1024),
        (small, ".minnctapersm 2", 1024),
        (small, ".maxntid 800", 512),
        (small, ".maxntid 800 .minnctapersm 2", 512),
        (small, ".reqntid 64, 1, 1", 64),
        (".maxnreg 200", ".maxntid 800", 512),
    ] {
        for form in FORMS {
            let registers = [("CUDARUN_SIM_REGISTERS", "128")];
            let (ran, loads) = run(&program, form, &ptx("7.0", racy, fine), &registers);
            let what = format!("{form:?} `{racy}` `{fine}` {:?}", ran.notes);
            assert_eq!(
                (ran.code, ran.stdout.clone()),
                (Some(0), format!("{most} 512\n")),
                "{what}"
            );
            assert_eq!(loads, 1, "{what}");
            assert_eq!(ran.checked("fine"), [true], "{what}");
        }
    }
}

/// Where the compiler cannot do with so few.
#[test]
fn a_module_that_needs_more_registers_gets_them() {
    let program = Program::of("tests/c/given.c");
    for form in FORMS {
        let fail = format!("{}#1=218", form.call);
        let more = [
            ("CUDARUN_SIM_REGISTERS", "128"),
            ("CUDARUN_SIM_FAIL", &fail),
        ];
        let (ran, loads) = run(&program, form, &ptx("7.0", "", ""), &more);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), "512 512\n"),
            "{form:?}"
        );
        assert_eq!((loads, ran.checked("fine")), (2, vec![true]), "{form:?}");
    }
}

/// What is in texts with checks, and in no others.
const CHECKS: &str = "/*+crc*/";

/// Why a launch of `fine` was not checked.
fn why_not(ran: &Ran) -> &str {
    let mut of = ran.launches.iter().filter(|of| of.kernel == "fine");
    let why = of.next().and_then(|launch| launch.why_not.as_deref());
    why.unwrap_or_default()
}

/// The compiler says why it refuses a text, to the program where it asks for that.
#[test]
fn the_compilers_first_words_are_reported() {
    let program = Program::of("tests/c/given.c");
    let refuse = format!("218:{CHECKS}");
    let more = [("CUDARUN_SIM_REFUSE", refuse.as_str())];
    for form in FORMS {
        let (ran, loads) = run(&program, form, &ptx("7.0", "", ""), &more);
        assert_eq!(ran.code, Some(0), "{form:?}");
        assert_eq!((loads, ran.checked("fine")), (3, vec![false]), "{form:?}");
        let says = "line 4; error   : `/*+crc*/` is refused";
        assert!(why_not(&ran).ends_with(says), "{}", why_not(&ran));
    }
    let program = Program::of("tests/c/loads.c");
    for form in ["module", "library"] {
        let ran = program.run_with(&[form], &Options::default(), &more);
        let said = (ran.code, ran.stdout.as_str());
        let noted = "timed, 0 of information, 0 of errors\n512\n";
        assert_eq!(said, (Some(0), noted), "{form}");
        assert!(!why_not(&ran).contains("is refused"), "{}", why_not(&ran));
    }
}

/// The compiler may fail where it optimises.
#[test]
fn a_module_that_only_compiles_plainly_is_checked() {
    let program = Program::of("tests/c/given.c");
    let refuse = format!("optimised 218:{CHECKS}");
    let more = [("CUDARUN_SIM_REFUSE", refuse.as_str())];
    for form in FORMS {
        let (ran, loads) = run(&program, form, &ptx("7.0", "", ""), &more);
        let said = (ran.code, ran.stdout.as_str());
        assert_eq!(said, (Some(0), "1024 512\n"), "{form:?} {:?}", ran.notes);
        assert_eq!((loads, ran.checked("fine")), (3, vec![true]), "{form:?}");
        assert_eq!(ran.racing(), ["racy"], "{form:?}");
        let noted = "compiled without optimisation, since the driver says";
        let noted = ran.notes.iter().filter(|note| note.contains(noted)).count();
        assert_eq!(noted, 1, "{form:?} {:?}", ran.notes);
    }
}

/// A toolkit may be newer than the driver: the simulated one is of CUDA 13.0.
#[test]
fn ptx_that_is_too_new_is_checked_as_what_the_driver_takes() {
    let program = Program::of("tests/c/given.c");
    let too_new = ptx("9.1 // not .version 9.1\n", ".maxntid 64", ".maxntid 64");
    for form in FORMS {
        let more = [("CUDARUN_SIM_REFUSE", "222:.version 9.1 //")];
        let (ran, loads) = run(&program, form, &too_new, &more);
        let said = (ran.code, ran.stdout.as_str());
        assert_eq!(said, (Some(0), "64 512\n"), "{form:?} {:?}", ran.notes);
        assert_eq!((loads, ran.checked("fine")), (2, vec![true]), "{form:?}");
        assert_eq!(ran.racing(), ["racy"], "{form:?}");
        let noted =
            "its PTX is of version 9.1, and a driver of CUDA 13.0 takes 9.0 at most; it is checked";
        let noted = ran.notes.iter().filter(|note| note.contains(noted)).count();
        assert_eq!(noted, 1, "{form:?} {:?}", ran.notes);
        // No older version helps where the text has what that lacks.
        let refuse = format!("222:{CHECKS}");
        let more = [("CUDARUN_SIM_REFUSE", refuse.as_str())];
        let (ran, loads) = run(&program, form, &too_new, &more);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "64 512\n"));
        assert_eq!((loads, ran.checked("fine")), (2, vec![false]), "{form:?}");
        let says = "compile it with the nvcc of CUDA 13.0, or install a newer driver";
        assert!(why_not(&ran).ends_with(says), "{}", why_not(&ran));
    }
    // Nor where it is old enough already.
    let refuse = format!("222:{CHECKS}");
    let more = [("CUDARUN_SIM_REFUSE", refuse.as_str())];
    let (ran, loads) = run(&program, FORMS[0], &ptx("9.0", "", ""), &more);
    assert_eq!((loads, ran.checked("fine")), (1, vec![false]));
    assert!(why_not(&ran).ends_with("is refused"), "{}", why_not(&ran));
}
