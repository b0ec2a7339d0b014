//! Programs that are checked, and what their logs say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use report::log::{Event, Launch, Race};
use runtime::Options;

use super::{Workdir, text};

/// A program under the interposer, with the simulated driver as the real one.
pub(crate) struct Program {
    pub(crate) workdir: Workdir,
    pub(crate) driver: PathBuf,
    pub(crate) program: PathBuf,
}

/// What a run has printed, and what the log says.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) launches: Vec<Launch>,
    pub(crate) races: Vec<Race>,
    pub(crate) notes: Vec<String>,
    /// Launches of kernels without PTX, by kernel.
    pub(crate) without_ptx: BTreeMap<String, u64>,
    /// What was not checked, in words.
    pub(crate) missed: Vec<String>,
    /// What the modules are called that were to get checks.
    pub(crate) origins: Vec<String>,
}

impl Ran {
    /// Whether each launch was checked, by kernel.
    pub(crate) fn checked(&self, kernel: &str) -> Vec<bool> {
        let of = self
            .launches
            .iter()
            .filter(|launch| launch.kernel == kernel);
        of.map(|launch| launch.checked).collect()
    }

    /// Kernels of the launches that raced, each once.
    pub(crate) fn racing(&self) -> Vec<String> {
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
    pub(crate) fn new() -> Program {
        Program::of("tests/c/launches.c")
    }

    pub(crate) fn of(source: &str) -> Program {
        let workdir = Workdir::new();
        let driver = workdir.simulated();
        let library = workdir.interposer().display().to_string();
        let program = workdir.compile(source, "program", &[&library, "-pthread"]);
        Program {
            workdir,
            driver,
            program,
        }
    }

    pub(crate) fn run(&self, arguments: &[&str], options: &Options, fail: &str) -> Ran {
        match fail.is_empty() {
            true => self.run_with(arguments, options, &[]),
            false => self.run_with(arguments, options, &[("CUDARUN_SIM_FAIL", fail)]),
        }
    }

    pub(crate) fn run_with(
        &self,
        arguments: &[&str],
        options: &Options,
        more: &[(&str, &str)],
    ) -> Ran {
        let logs = tempfile::tempdir().expect("a temporary folder");
        let mut command = self.workdir.command(&self.program, &self.driver);
        command.args(arguments);
        command.env(runtime::options::DIRECTORY_VARIABLE, logs.path());
        let options = serde_json::to_string(options).expect("options are JSON");
        command.env(runtime::options::OPTIONS_VARIABLE, options);
        command.envs(more.iter().copied());
        let output = command.output().expect("it can be started");
        let mut ran = Ran {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            launches: Vec::new(),
            races: Vec::new(),
            notes: Vec::new(),
            without_ptx: BTreeMap::new(),
            missed: Vec::new(),
            origins: Vec::new(),
        };
        for event in read(logs.path()) {
            match event {
                Event::Launch(launch) => ran.launches.push(*launch),
                Event::Race(race) => ran.races.push(*race),
                Event::Note { text } => ran.notes.push(text),
                Event::WithoutPtx {
                    kernel, launches, ..
                } => *ran.without_ptx.entry(kernel).or_default() += launches,
                Event::Missed { text } => ran.missed.push(text),
                Event::Module(module) => ran.origins.push(module.origin),
                _ => {}
            }
        }
        ran
    }
}

/// `racy`, in which all threads store to one word, and `fine`, in which each adds to its own, with their bounds, as
/// `tests/c/given.c` launches them.
pub(crate) fn ptx(version: &str, racy: &str, fine: &str) -> String {
    format!(
        "\
.version {version}
.target sm_70
.address_size 64
.visible .entry racy(.param .u64 out, .param .u32 n) {racy} {{
    .reg .u64 %a; .reg .u32 %t;
    ld.param.u64 %a, [out]; mov.u32 %t, %tid.x;
    st.global.u32 [%a], %t; ret;
}}
.visible .entry fine(.param .u64 out, .param .u32 n) {fine} {{
    .reg .u64 %a, %o; .reg .u32 %n, %i, %c, %t;
    ld.param.u64 %a, [out]; ld.param.u32 %n, [n];
    mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %i, %c, %t; mul.wide.u32 %o, %i, 4; add.u64 %a, %a, %o;
    ld.global.u32 %t, [%a]; add.u32 %t, %t, %n; st.global.u32 [%a], %t; ret;
}}
"
    )
}

fn read(logs: &Path) -> Vec<Event> {
    let files = std::fs::read_dir(logs).expect("a folder");
    let paths = files.map(|file| file.expect("a file").path());
    paths
        .flat_map(|path| report::log::read(&path).expect("a log"))
        .collect()
}
