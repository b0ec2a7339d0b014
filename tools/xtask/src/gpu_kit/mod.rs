//! `cargo xtask gpu-kit`: a folder that needs only a GPU, nvcc, g++ and sh (docs/gpu-kit.md).

pub mod apps;
pub mod costs;
pub mod racecheck;
pub mod summary;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::dist::{self, Profile};
use crate::workspace::Workspace;

/// The most that a kit may weigh, in bytes.
const MOST: u64 = 60 << 20;

/// The script that runs everything.
const SCRIPT: &str = include_str!("run.sh");

/// Programs that are built for the kit alone, with their packages.
const PROGRAMS: [(&str, &str); 3] = [
    ("filetests", "gpu-tests"),
    ("bench-rodinia", "bench-rodinia"),
    ("xtask", "kit-apps"),
];

/// Makes the kit in `folder`, or in `<target>/gpu-kit`, in place of what an earlier call has made there.
///
/// # Errors
/// When something does not build, the folder holds something else, or the kit is too big.
pub fn make(workspace: &Workspace, folder: Option<&Path>) -> Result<bool> {
    let folder = folder.map_or_else(|| workspace.target.join("gpu-kit"), Path::to_path_buf);
    let script = folder.join("run.sh");
    if folder.exists() {
        let empty = std::fs::read_dir(&folder)?.next().is_none();
        ensure!(
            empty || script.is_file(),
            "{} holds something else",
            folder.display()
        );
        std::fs::remove_dir_all(&folder)?;
    }
    let dist = dist::build(workspace, Profile::Release)?;
    // The script marks the folder as a kit, so that the next call may replace it when this one fails.
    std::fs::create_dir_all(&folder)?;
    std::fs::write(&script, SCRIPT)?;
    let mut cargo = workspace.cargo(&["build", "--release"]);
    for (package, program) in PROGRAMS {
        cargo.args(["--package", package, "--bin", program]);
    }
    command::run(&mut cargo)?;
    copy(&dist.root.join("bin"), &folder.join("bin"))?;
    copy(&dist.root.join("lib"), &folder.join("lib"))?;
    for (_, program) in PROGRAMS {
        let from = workspace.target.join("release").join(program);
        std::fs::copy(&from, folder.join("bin").join(program))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    for part in ["bin", "lib"] {
        strip(&folder.join(part))?;
    }
    for part in ["tests", crate::apps::MEASURED] {
        copy(&workspace.root.join(part), &folder.join(part))?;
    }
    let bytes = weight(&folder)?;
    println!(
        "{}: {:.1} MiB",
        folder.display(),
        bytes as f64 / f64::from(1 << 20)
    );
    ensure!(bytes <= MOST, "the kit weighs more than {} MiB", MOST >> 20);
    Ok(true)
}

/// Strips every program and library in a folder. Scripts stay as they are.
fn strip(folder: &Path) -> Result<()> {
    for file in files(folder)? {
        let mut magic = [0; 4];
        let read = std::fs::File::open(&file)?.read(&mut magic);
        if read.with_context(|| file.display().to_string())? == 4 && magic == *b"\x7fELF" {
            command::run(Command::new("strip").arg("--strip-unneeded").arg(file))?;
        }
    }
    Ok(())
}

/// Copies a folder; links stay links.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&path, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&path)?, &target)?;
        } else {
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Every file below a folder, without links.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.extend(files(&entry.path())?);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Bytes of all files.
fn weight(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for file in files(folder)? {
        bytes += file.metadata()?.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_and_libraries_are_stripped() {
        let folder = tempfile::tempdir().unwrap();
        let [script, program] = ["script", "program"].map(|name| folder.path().join(name));
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let before = weight(folder.path()).unwrap();
        strip(folder.path()).unwrap();
        assert!(weight(folder.path()).unwrap() < before);
        assert_eq!(std::fs::read_to_string(script).unwrap(), "#!/bin/sh\n");
    }

    /// A kit whose programs are shell scripts.
    struct Kit(tempfile::TempDir);

    impl Kit {
        fn of(gpu_tests: &str, kit_apps: &str) -> Kit {
            let kit = Kit(tempfile::tempdir().unwrap());
            kit.put("bin/gpu-tests", gpu_tests);
            kit.put("bin/kit-apps", kit_apps);
            kit.put("bin/bench-rodinia", "exit 0");
            std::fs::write(kit.path("run.sh"), SCRIPT).unwrap();
            kit
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn put(&self, name: &str, text: &str) {
            // Copied by another process: a file that a fork of ours still has open cannot be run.
            std::fs::write(self.path("text"), format!("#!/bin/sh\n{text}\n")).unwrap();
            let mut install = Command::new("install");
            install
                .args(["-D", "-m", "755"])
                .arg(self.path("text"))
                .arg(self.path(name));
            command::run(&mut install).unwrap();
        }

        /// Runs the script with the kit's own folder `path` first on PATH; gives its output and the steps that it has
        /// noted.
        fn run(&self) -> (String, Vec<String>) {
            let old = std::env::var("PATH").unwrap();
            let path = format!("{}:{old}", self.path("path").display());
            self.run_in(Command::new("sh").env("PATH", path))
        }

        fn run_in(&self, shell: &mut Command) -> (String, Vec<String>) {
            shell
                .arg(self.path("run.sh"))
                .env_remove("CUDARUN_CHECK_DRIVER_SIMULATED");
            let output = command::output(shell).unwrap();
            let steps = std::fs::read_to_string(self.path("results/steps.tsv")).unwrap();
            let fields = |line: &str| line.rsplit_once('\t').unwrap().0.replace('\t', " ");
            (output, steps.lines().map(fields).collect())
        }
    }

    /// In place of `gpu-tests`: knows a GPU, and says how it is called.
    const GPU: &str =
        "case $1 in --device) printf 'sm_90\\t13.0\\tx\\n';; *) echo \"race $*\";; esac";

    #[test]
    fn a_step_that_fails_keeps_no_other_from_running() {
        let gpu = "case $1 in --device) printf 'sm_90\\t13.0\\tx\\n';; *) exit 1;; esac";
        let apps = "case $1 in build) exit 2;; run) : >\"$3/manifest.json\";; esac";
        let (_, steps) = Kit::of(gpu, apps).run();
        assert_eq!(
            steps,
            [
                "device 0",
                "build 2",
                "race 1",
                "apps 0",
                "costs 0",
                "bench 0",
                "racecheck 0"
            ]
        );
    }

    #[test]
    fn without_a_gpu_nothing_is_measured() {
        let (output, steps) = Kit::of("exit 2", "echo $1").run();
        assert_eq!(steps, ["device 2"]);
        assert!(
            output.contains("nothing was measured") && output.ends_with("summary\n"),
            "{output}"
        );
    }

    #[test]
    fn all_steps_together_end_within_eight_minutes() {
        let seconds = |line: &str| {
            let mut words = line.trim_start().strip_prefix("step ")?.split(' ');
            words.nth(1)?.parse::<u32>().ok()
        };
        let steps: Vec<u32> = SCRIPT.lines().filter_map(seconds).collect();
        assert_eq!(steps.len(), 7);
        let sum: u32 = steps.iter().sum();
        assert!(sum < 480, "{sum} s");
        let stated = steps.iter().map(u32::to_string).collect::<Vec<_>>();
        let stated = format!("Steps end within {} s = {sum} s;", stated.join(" + "));
        assert!(SCRIPT.contains(&stated), "{stated}");
    }

    #[test]
    fn cores_say_how_many_workers_there_are() {
        for (cores, workers, programs) in [(1, 1, 2), (6, 6, 6), (64, 16, 16)] {
            let kit = Kit::of(GPU, "echo apps $*");
            kit.put("path/nproc", &format!("echo {cores}"));
            let (output, steps) = kit.run();
            // There is no manifest.
            assert_eq!(steps.len(), 5, "{steps:?}");
            assert!(!steps.iter().any(|step| step.starts_with("bench ")));
            let mut lines = output.lines();
            let mut jobs = |start: &str, count: usize| {
                let line = lines.find(|line| line.starts_with(start)).unwrap();
                assert!(line.contains(&format!(" --jobs {count} ")), "{line}");
            };
            jobs("apps build", cores);
            jobs("race ", workers);
            jobs("apps run", programs);
        }
    }

    #[test]
    fn the_compiler_and_its_libraries_need_not_be_on_any_path() {
        let kit = Kit::of(
            GPU,
            "echo \"$1 by $(command -v nvcc) with $LD_LIBRARY_PATH\"",
        );
        kit.put("cuda/bin/nvcc", "exit 0");
        std::fs::create_dir(kit.path("path")).unwrap();
        let link = |name: &str, to: &Path| std::os::unix::fs::symlink(to, kit.path(name)).unwrap();
        // All that the script calls, and nothing else: there may be a compiler in the same folder.
        for name in [
            "cut", "date", "dirname", "mkdir", "nproc", "readlink", "rm", "sed", "sh", "tail",
            "timeout",
        ] {
            link(&format!("path/{name}"), &::toolkit::on_path(name).unwrap());
        }
        let built = || {
            let mut shell = Command::new("sh");
            shell
                .env("PATH", kit.path("path"))
                .env("CUDA_HOME", kit.path("cuda"))
                .env_remove("LD_LIBRARY_PATH");
            let (output, _) = kit.run_in(&mut shell);
            let line = output.lines().find(|line| line.starts_with("build by "));
            line.unwrap().to_owned()
        };
        let cuda = kit.path("cuda");
        let expected = |nvcc: PathBuf| {
            let (nvcc, cuda) = (nvcc.display(), cuda.display());
            format!("build by {nvcc} with {cuda}/lib64:{cuda}/lib")
        };
        assert_eq!(built(), expected(cuda.join("bin/nvcc")));
        link("path/nvcc", &cuda.join("bin/nvcc"));
        assert_eq!(built(), expected(kit.path("path/nvcc")));
    }
}
