//! A launch that is proved to have no races runs the program's own code, in every form of launch.

use std::collections::BTreeSet;

use crate::common::program::{Program, Ran};
use report::log::Judge;
use runtime::{Mode, Options, Prove};

/// What a run of `tests/c/unwritten.c` says, and which kernels the device has run, with their warp-instructions.
fn run(
    program: &Program,
    form: &str,
    wheres: &[&str],
    options: &Options,
) -> (Ran, Vec<(String, u64)>) {
    let list = program.workdir.path("launches");
    let _ = std::fs::remove_file(&list);
    let launches = [("CUDARUN_SIM_LAUNCHES", list.to_str().expect("a path"))];
    let ran = program.run_with(&[&[form], wheres].concat(), options, &launches);
    assert_eq!(ran.code, Some(0), "{form}: {}", ran.stderr);
    assert!(ran.launches.iter().all(|of| of.checked), "{form}");
    let listed = std::fs::read_to_string(&list).expect("a list of launches");
    let listed = listed.lines().map(|line| {
        let (kernel, instructions) = line.split_once(' ').expect("a kernel and a number");
        (kernel.to_owned(), instructions.parse().expect("a number"))
    });
    let listed: Vec<(String, u64)> = listed.collect();
    assert_eq!(
        (ran.launches.len(), listed.len()),
        (wheres.len(), wheres.len())
    );
    (ran, listed)
}

fn modes(prove: Prove) -> [Options; 2] {
    [Mode::Precise, Mode::Fast].map(|mode| Options {
        mode,
        prove,
        ..Options::default()
    })
}

/// The forms of a launch; a graph's are changed before each launch but the first, or are captured and not changed.
const FORMS: [&str; 8] = [
    "params", "extra", "ex", "steps", "capture", "exec-set", "update", "node-set",
];

#[test]
fn the_programs_own_code_runs_in_every_form_of_launch() {
    let program = Program::of("tests/c/unwritten.c");
    for form in FORMS {
        let wheres: &[&str] = match form {
            "capture" => &["apart", "apart"],
            _ => &["apart", "alike", "apart", "apart"],
        };
        for options in modes(Prove::On) {
            let (ran, listed) = run(&program, form, wheres, &options);
            let all = wheres.iter().zip(ran.launches.iter().zip(&listed));
            for (place, (launch, (kernel, _))) in all {
                // What is updated by another graph has its checks from then on.
                let first = launch.launch == ran.launches[0].launch;
                let (judge, code) = match *place {
                    "apart" if form != "update" || first => (Judge::Proof, "__cudarun_own_plain"),
                    _ => (Judge::Cells, "plain"),
                };
                assert_eq!((launch.judge, kernel.as_str()), (judge, code), "{form}");
                assert_eq!(launch.kernel, "plain", "{form}");
            }
            let racing: BTreeSet<u64> = ran.races.iter().map(|race| race.launch).collect();
            let alike = ran.launches.iter().zip(wheres);
            let alike = alike.filter(|(_, place)| **place == "alike");
            assert!(
                racing.into_iter().eq(alike.map(|(of, _)| of.launch)),
                "{form}"
            );
        }
        for options in modes(Prove::Audit) {
            let (ran, listed) = run(&program, form, &["apart"], &options);
            assert_eq!(
                (ran.launches[0].judge, listed[0].0.as_str()),
                (Judge::Cells, "plain"),
                "{form}"
            );
        }
    }
}

#[test]
fn a_graph_whose_memory_has_changed_is_not_called_proved() {
    let program = Program::of("tests/c/unwritten.c");
    for options in modes(Prove::On) {
        let ran = program.run_with(&["freed", "apart", "apart"], &options, &[]);
        assert_ne!(ran.code, Some(0), "{}", ran.stderr);
        let [first, second] = &ran.launches[..] else {
            panic!("{:?}", ran.launches);
        };
        assert_eq!((first.judge, first.checked), (Judge::Proof, true));
        assert_eq!((second.judge, second.checked), (Judge::Nobody, false));
        let why = second.why_not.as_deref();
        assert!(
            why.is_some_and(|why| why.contains("allocated anew")),
            "{why:?}"
        );
    }
}
