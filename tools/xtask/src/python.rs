//! `cargo xtask python`: the programs of `tests/python` under the tool, with real packages from PyPI.
//!
//! The packages are fetched into the cache beside nvcc, each set into a folder of its own, once.
//! A program is run with the argument `racy` and with `clean`. The race must be reported at lines that end in `# race`
//! or `// race`, and the launch at the one that ends in `# launch`; a help must have the words of each line
//! `# help: WORDS`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use report::Report;
use report::model::Level;

use crate::command;
use crate::dist::Dist;
use crate::toolkit::{self, Toolkit};
use crate::workspace::Workspace;

/// A package whose kernels are checked, or whose program says why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Package {
    /// NVRTC and the driver API.
    CudaPython,
    /// Kernels in Python.
    NumbaCuda,
    /// 286 MB.
    Triton,
    /// 90 MB; does not run on the simulated device, and the report says why.
    Cupy,
}

/// Those that are part of `cargo xtask test`: 150 MB. The others are for `cargo xtask python`.
pub const SMALL: [Package; 2] = [Package::CudaPython, Package::NumbaCuda];

/// Exactly these wheels, without what they would depend on. libnvvm comes from the toolkit.
const NUMBA: &[&str] = &[
    "cuda-bindings==13.4.4",
    "cuda-core==1.2.2",
    "cuda-pathfinder==1.9.1",
    "llvmlite==0.50.0",
    "numba==0.68.1",
    "numba-cuda==0.30.4",
    "numpy==2.4.6",
    "nvidia-cuda-nvrtc==13.5.37",
    "packaging==26.4",
];
const TRITON: &[&str] = &["triton==3.9.0"];
const CUPY: &[&str] = &[
    "cuda-pathfinder==1.9.1",
    "cupy-cuda13x==14.2.0",
    "numpy==2.4.6",
];

/// Lets the `.pth` files of the wheels count, as in a folder that Python itself installs into.
const CUSTOMIZE: &str = "import os, site\nsite.addsitedir(os.path.dirname(__file__))\n";
/// The folder of the programs.
pub(crate) const FOLDER: &str = "tests/python";
/// The file that a complete folder holds: the list of its wheels.
const STAMP: &str = ".cudarun-check-wheels";

impl Package {
    /// Its programs in `tests/python`.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Package::CudaPython => &["cuda_python.py"],
            Package::NumbaCuda => &["numba_kernel.py", "numba_grid.py"],
            Package::Triton => &["triton_kernel.py"],
            Package::Cupy => &["cupy_kernel.py"],
        }
    }

    /// The folder of its wheels in the cache, and these.
    fn wheels(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Package::CudaPython | Package::NumbaCuda => ("python-numba", NUMBA),
            Package::Triton => ("python-triton", TRITON),
            Package::Cupy => ("python-cupy", CUPY),
        }
    }
}

/// Whether a package has this program.
pub(crate) fn runs(program: &str) -> bool {
    let mut all = Package::value_variants().iter();
    all.any(|package| package.programs().contains(&program))
}

/// Runs the programs of these packages; of all, if none is given. The tool has been built.
pub fn run(workspace: &Workspace, dist: &Dist, packages: &[Package]) -> Result<bool> {
    let toolkit = toolkit::ensure()?;
    let all = Package::value_variants();
    for &package in if packages.is_empty() { all } else { packages } {
        let (folder, wheels) = package.wheels();
        let wheels = fetched(folder, wheels)?;
        for program in package.programs() {
            let program = workspace.root.join(FOLDER).join(program);
            let tried = Tried {
                dist,
                toolkit: &toolkit,
                program: &program,
                wheels: &wheels,
            };
            match package {
                Package::Cupy => tried.refused("has NVIDIA's CUDA runtime inside"),
                _ => tried.racy().and_then(|()| tried.clean()),
            }
            .with_context(|| format!("{}", program.display()))?;
            println!("{}  ok", program.display());
        }
    }
    Ok(true)
}

/// The cached folder with these wheels, fetched if they are not there.
pub(crate) fn fetched(name: &str, wheels: &[&str]) -> Result<PathBuf> {
    let cache = ::toolkit::cache().context("there is no home folder for a cache")?;
    let version = toolkit::python_version()?;
    let dir = cache.join(format!("{name}-{version}"));
    // Reports tell packages by the names of their folders.
    let packages = dir.join("site-packages");
    let stamp = wheels.join("\n");
    if std::fs::read_to_string(dir.join(STAMP)).is_ok_and(|found| found == stamp) {
        return Ok(packages);
    }
    std::fs::create_dir_all(&cache)
        .with_context(|| format!("cannot create {}", cache.display()))?;
    let work = tempfile::Builder::new().prefix(name).tempdir_in(&cache)?;
    let fresh = work.path().join("fresh");
    let mut pip = toolkit::pip("install");
    pip.arg("--no-compile")
        .arg("--target")
        .arg(fresh.join("site-packages"))
        .args(wheels);
    toolkit::run_pip(&mut pip)?;
    std::fs::write(fresh.join("site-packages/sitecustomize.py"), CUSTOMIZE)?;
    std::fs::write(fresh.join(STAMP), stamp)?;
    if dir.exists() {
        std::fs::rename(&dir, work.path().join("replaced"))?;
    }
    // Another command may have been as quick; its folder is as good.
    if std::fs::rename(&fresh, &dir).is_err() && !dir.join(STAMP).exists() {
        bail!("cannot move the fetched packages to {}", dir.display());
    }
    Ok(packages)
}

/// A program of a package, and what it is run with.
struct Tried<'a> {
    dist: &'a Dist,
    toolkit: &'a Toolkit,
    program: &'a Path,
    wheels: &'a Path,
}

/// How a run ended.
struct Ran {
    code: Option<i32>,
    text: String,
    report: Report,
}

impl Tried<'_> {
    fn run(&self, argument: &str) -> Result<Ran> {
        let scratch = tempfile::tempdir()?;
        let json = scratch.path().join("report.json");
        // NVRTC is among the wheels, libnvvm in the toolkit, whose wheels and installers have it at different places.
        let root = &self.toolkit.root;
        let libraries = [
            self.wheels.join("nvidia/cu13/lib"),
            root.join("lib"),
            root.join("nvvm/lib64"),
        ];
        let mut tool = Command::new(self.dist.tool());
        self.toolkit.prepare(&mut tool);
        tool.args(["--format", "text", "--format"])
            .arg(format!("json:{}", json.display()))
            .arg("python3")
            .arg(self.program)
            .arg(argument)
            .env("PYTHONPATH", self.wheels)
            .env("LD_LIBRARY_PATH", std::env::join_paths(libraries)?)
            .env("TRITON_CACHE_DIR", scratch.path().join("triton"))
            .env("CUDA_CACHE_DISABLE", "1");
        let output = tool.output().context("cannot start the tool")?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = std::fs::read_to_string(&json)
            .with_context(|| format!("no report: {}", command::describe(&tool)))?;
        Ok(Ran {
            code: output.status.code(),
            text,
            report: serde_json::from_str(&report)?,
        })
    }

    fn racy(&self) -> Result<()> {
        let ran = self.run("racy")?;
        let text = &ran.text;
        ensure!(
            ran.code == Some(66),
            "exit code {:?}, not 66:\n{text}",
            ran.code
        );
        let (races, launches) = (self.marked("race")?, self.marked("launch")?);
        for words in self.helps()? {
            let mut races = ran.report.races.iter();
            ensure!(
                races.any(|race| race.help.contains(&words)),
                "no help says {words}:\n{text}"
            );
        }
        let own = |file: &str| Path::new(file).file_name() == self.program.file_name();
        for race in ran
            .report
            .races
            .iter()
            .filter(|race| race.level == Level::Error)
        {
            for access in &race.accesses {
                let frames = access.frames.iter();
                let lines: BTreeSet<u32> = frames
                    .filter(|of| own(&of.file))
                    .map(|of| of.line)
                    .collect();
                ensure!(
                    !lines.is_disjoint(&races),
                    "an access at lines {lines:?}, not {races:?}:\n{text}"
                );
            }
            let from = race.kernel.host_stack.first();
            ensure!(
                from.is_some_and(|of| own(&of.file) && launches.contains(&of.line)),
                "launched at {from:?}, not at {launches:?}:\n{text}"
            );
        }
        Ok(())
    }

    fn clean(&self) -> Result<()> {
        let ran = self.run("clean")?;
        let checked = ran.report.coverage.launches.checked;
        // What a library does by itself is known, and suppressed.
        let mut races = ran.report.races.iter();
        let silent = races.all(|race| race.suppressed_by.is_some());
        ensure!(
            ran.code == Some(0) && checked > 0 && silent,
            "exit code {:?}, {checked} launches checked:\n{}",
            ran.code,
            ran.text
        );
        Ok(())
    }

    /// The program cannot run, and the report says why.
    fn refused(&self, why: &str) -> Result<()> {
        let ran = self.run("racy")?;
        ensure!(
            ran.code != Some(0) && ran.report.coverage.launches.total == 0,
            "it runs: say so in docs/python.md, and check what it finds:\n{}",
            ran.text
        );
        ensure!(ran.text.contains(why), "{why} is missing in\n{}", ran.text);
        Ok(())
    }

    /// What the help of a race has to say, by lines of the program that begin with `# help: `.
    fn helps(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(self.program)?;
        let helps = text
            .lines()
            .filter_map(|line| line.strip_prefix("# help: "));
        Ok(helps.map(str::to_owned).collect())
    }

    /// Lines of the program that end in a mark.
    fn marked(&self, mark: &str) -> Result<BTreeSet<u32>> {
        let text = std::fs::read_to_string(self.program)?;
        let ends = |line: &str| {
            ["# ", "// "]
                .iter()
                .any(|sign| line.ends_with(&format!("{sign}{mark}")))
        };
        let lines = (1..).zip(text.lines()).filter(|(_, line)| ends(line));
        let lines: BTreeSet<u32> = lines.map(|(number, _)| number).collect();
        ensure!(!lines.is_empty(), "no line ends in `# {mark}`");
        Ok(lines)
    }
}
