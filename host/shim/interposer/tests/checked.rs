//! Programs that launch in every form are checked, and compute what they compute without.

mod common;

use std::path::{Path, PathBuf};

use common::{Place, text};
use runtime::log::{Event, Launch, Race};
use runtime::{Mode, Options};

/// What `fine` leaves: 128 words that were 1, with 3 added three times.
const SUM: &str = "1280\n";

struct Program {
    place: Place,
    driver: PathBuf,
    program: PathBuf,
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    launches: Vec<Launch>,
    races: Vec<Race>,
    notes: Vec<String>,
}

impl Ran {
    /// Whether each launch was checked, by kernel.
    fn checked(&self, kernel: &str) -> Vec<bool> {
        let of = self
            .launches
            .iter()
            .filter(|launch| launch.kernel == kernel);
        of.map(|launch| launch.checked).collect()
    }

    /// Kernels of the launches that raced, each once.
    fn racing(&self) -> Vec<String> {
        let kernel = |race: &Race| {
            let mut of = self.launches.iter();
            let launch = of.find(|launch| launch.launch == race.launch);
            launch.expect("a race is in a launch").kernel.clone()
        };
        let mut all: Vec<String> = self.races.iter().map(kernel).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Program {
    fn new() -> Program {
        let place = Place::new();
        let driver = place.simulated();
        let library = place.interposer().display().to_string();
        let program = place.compile("tests/c/launches.c", "program", &[&library]);
        Program {
            place,
            driver,
            program,
        }
    }

    fn run(&self, arguments: &[&str], options: &Options, fail: &str) -> Ran {
        let logs = tempfile::tempdir().expect("a temporary folder");
        let mut command = self.place.command(&self.program, &self.driver);
        command.args(arguments);
        command.env(runtime::options::DIRECTORY_VARIABLE, logs.path());
        let options = serde_json::to_string(options).expect("options are JSON");
        command.env(runtime::options::OPTIONS_VARIABLE, options);
        if !fail.is_empty() {
            command.env("CUDARUN_SIM_FAIL", fail);
        }
        let output = command.output().expect("it can be started");
        let mut ran = Ran {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            launches: Vec::new(),
            races: Vec::new(),
            notes: Vec::new(),
        };
        for event in read(logs.path()) {
            match event {
                Event::Launch(launch) => ran.launches.push(*launch),
                Event::Race(race) => ran.races.push(*race),
                Event::Note { text } => ran.notes.push(text),
                _ => {}
            }
        }
        ran
    }
}

fn read(logs: &Path) -> Vec<Event> {
    let files = std::fs::read_dir(logs).expect("a folder");
    let paths = files.map(|file| file.expect("a file").path());
    paths
        .flat_map(|path| runtime::log::read(&path).expect("a log"))
        .collect()
}

#[test]
fn every_form_of_launch_is_checked() {
    let program = Program::new();
    let file = program.place.path("kernels.ptx");
    // The text in the program, between its quotes.
    let source = include_str!("c/launches.c");
    let start = source.find("static const char ptx[] =").expect("the text");
    let lines = source[start..].lines().skip(1);
    let quoted = lines.take_while(|line| line.trim_start().starts_with('"'));
    let ptx: String = quoted
        .map(|line| {
            let inner = line.trim().trim_end_matches(';').trim_matches('"');
            inner.replace("\\n", "\n")
        })
        .collect();
    std::fs::write(&file, ptx).expect("a writable folder");
    let file = file.display().to_string();
    for form in [
        "plain",
        "extra",
        "ex",
        "cooperative",
        "per-thread",
        "library",
        "function",
        "enumerate",
        "file",
        "link",
        "capture",
        "nodes",
    ] {
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run(&[form, &file], &options, "");
            assert_eq!(
                (ran.stdout.as_str(), ran.stderr.as_str()),
                (SUM, ""),
                "{form}"
            );
            assert_eq!(ran.code, Some(0), "{form}");
            assert_eq!(ran.racing(), ["racy"], "{form} {mode:?}: {:?}", ran.notes);
            for kernel in ["racy", "fine"] {
                assert_eq!(ran.checked(kernel), [true; 3], "{form} {mode:?} {kernel}");
            }
        }
    }
}

#[test]
fn launches_that_nobody_waits_for_are_told() {
    let program = Program::new();
    let ran = program.run(&["no-wait"], &Options::default(), "");
    assert_eq!(ran.racing(), ["racy"]);
    assert_eq!(ran.launches.len(), 6);
    let ran = program.run(&["_exit"], &Options::default(), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), SUM));
    assert_eq!(ran.launches.len(), 6);
}
