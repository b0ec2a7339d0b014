//! Loads of what a launch never writes go unchecked, and no others: the values of the parameters are looked
//! at in every form of launch, and again when the node of a graph is changed.

use crate::common::program::Program;
use runtime::{Mode, Options, Prove};

/// What a run has printed, how many races each launch has, and how many warp-instructions it took.
fn run(program: &Program, form: &str, wheres: &[&str], mode: Mode) -> (Vec<usize>, Vec<u64>) {
    let options = Options {
        prove: Prove::Off,
        mode,
        ..Options::default()
    };
    let list = program.workdir.path("launches");
    let _ = std::fs::remove_file(&list);
    let launches = [("CUDARUN_SIM_LAUNCHES", list.to_str().expect("a path"))];
    let ran = program.run_with(&[&[form], wheres].concat(), &options, &launches);
    let what = format!("{form} {wheres:?} {mode:?}");
    // Of 512 words those that are stored to become 7, and only in the second range were they 8.
    let apart = wheres.contains(&"apart");
    let sum = if apart { 256 * 15 - 64 } else { 256 * 15 };
    assert_eq!(ran.stdout, format!("{sum}\n"), "{what}: {}", ran.stderr);
    assert!(ran.launches.iter().all(|of| of.checked), "{what}");
    let races = ran.launches.iter().map(|launch| {
        let of = ran.races.iter().filter(|race| race.launch == launch.launch);
        of.count()
    });
    let listed = std::fs::read_to_string(&list).expect("a list of launches");
    let took = listed.lines().map(|line| {
        let (_, instructions) = line.split_once(' ').expect("a kernel and a number");
        instructions.parse().expect("a number")
    });
    let (races, took): (Vec<usize>, Vec<u64>) = (races.collect(), took.collect());
    assert_eq!((races.len(), took.len()), (wheres.len(), wheres.len()));
    (races, took)
}

/// The warps of one launch: two, each with one load.
const WARPS: u64 = 2;
/// Fewer warp-instructions than the check of one load.
const CHECK: u64 = 10;

#[test]
fn loads_of_what_is_not_written_are_free_in_every_form_of_launch() {
    let program = Program::of("tests/c/unwritten.c");
    for form in ["params", "extra", "ex", "steps", "inside", "capture"] {
        for mode in [Mode::Precise, Mode::Fast] {
            let one = |place| {
                let (races, took) = run(&program, form, &[place], mode);
                (races[0], took[0])
            };
            let [apart, together, alike] = ["apart", "together", "alike"].map(one);
            assert_eq!((apart.0, together.0), (0, 0), "{form} {mode:?}");
            assert_ne!(alike.0, 0, "{form} {mode:?}");
            let (apart, together) = (apart.1, together.1);
            let saved = apart + WARPS * CHECK < together;
            assert!(saved, "{form} {mode:?}: {apart} {together}");
        }
    }
}

#[test]
fn a_node_that_is_changed_is_looked_at_again() {
    let program = Program::of("tests/c/unwritten.c");
    let wheres = ["apart", "alike", "apart", "together"];
    for form in ["params", "exec-set", "update", "node-set"] {
        for mode in [Mode::Precise, Mode::Fast] {
            let (races, took) = run(&program, form, &wheres, mode);
            assert_eq!((races[0], races[2], races[3]), (0, 0, 0), "{form} {mode:?}");
            assert_ne!(races[1], 0, "{form} {mode:?}");
            for apart in [took[0], took[2]] {
                let saved = apart + WARPS * CHECK < took[3];
                assert!(saved, "{form} {mode:?}: {took:?}");
            }
        }
    }
}
