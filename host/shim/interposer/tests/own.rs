//! A launch that is proved to have no races runs the program's own code, in every form of launch but a graph's node,
//! whose proved accesses go unchecked.

mod common;

use common::program::{Program, Ran};
use report::log::Judge;
use runtime::{Mode, Options, Prove};

/// What a run of `tests/c/unwritten.c` says, and which kernels the device has run, with their warp-instructions.
fn run(
    program: &Program,
    form: &str,
    wheres: &[&str],
    options: &Options,
) -> (Ran, Vec<(String, u64)>) {
    let list = program.place.path("launches");
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

#[test]
fn the_programs_own_code_runs_in_every_form_of_launch() {
    let program = Program::of("tests/c/unwritten.c");
    for form in ["params", "extra", "ex", "steps"] {
        for options in modes(Prove::On) {
            let wheres = ["apart", "alike", "apart"];
            let (ran, listed) = run(&program, form, &wheres, &options);
            let judges: Vec<Judge> = ran.launches.iter().map(|of| of.judge).collect();
            assert_eq!(judges, [Judge::Proof, Judge::Cells, Judge::Proof], "{form}");
            let kernels: Vec<&str> = listed.iter().map(|(kernel, _)| kernel.as_str()).collect();
            let own = "__cudarun_own_plain";
            assert_eq!(kernels, [own, "plain", own], "{form}");
            assert!(ran.launches.iter().all(|of| of.kernel == "plain"), "{form}");
            let racing = ran.races.iter().map(|race| race.launch);
            let second = ran.launches[1].launch;
            assert!(!ran.races.is_empty() && racing.into_iter().all(|of| of == second));
        }
        for options in modes(Prove::Audit) {
            let (ran, listed) = run(&program, form, &["apart"], &options);
            assert_eq!(
                (ran.launches[0].judge, listed[0].0.as_str()),
                (Judge::Cells, "plain")
            );
        }
    }
}

#[test]
fn the_node_of_a_graph_is_checked_where_it_is_not_proved() {
    let program = Program::of("tests/c/unwritten.c");
    for form in ["capture", "exec-set", "update", "node-set"] {
        let wheres: &[&str] = match form {
            "capture" => &["apart"],
            _ => &["apart", "alike", "apart"],
        };
        let of = |prove| modes(prove).map(|options| run(&program, form, wheres, &options));
        for ((on, spared), (off, checked)) in of(Prove::On).into_iter().zip(of(Prove::Off)) {
            assert_eq!(on.races.len(), off.races.len(), "{form}");
            for (n, place) in wheres.iter().enumerate() {
                assert_eq!(
                    (spared[n].0.as_str(), checked[n].0.as_str()),
                    ("plain", "plain")
                );
                // Two warps store without a check.
                let saved = spared[n].1 + 2 * 10 < checked[n].1;
                assert_eq!(saved, *place == "apart", "{form}: {spared:?} {checked:?}");
            }
        }
    }
}
