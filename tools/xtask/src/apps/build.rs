//! Compiles a variant of a program with nvcc, once per content.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use report::hash;

use super::{Program, Variant, includes};
use crate::command;
use crate::dist::{Dist, Profile};
use crate::toolkit::Toolkit;
use crate::workspace::Workspace;

/// The architecture of the simulated device.
pub const SIMULATED: &str = "sm_90";

/// What everything is compiled with, and where to.
#[derive(Debug, Clone)]
pub struct Builder {
    /// The compiler.
    pub toolkit: Toolkit,
    /// Programs of the driver API are linked with our library.
    pub dist: Dist,
    /// The folder for what is built.
    pub folder: PathBuf,
    /// The architecture that programs are compiled for unless they name one, such as [`SIMULATED`].
    pub arch: String,
    /// What is not compiled by then is given up, and what still runs is ended.
    pub until: Option<Instant>,
}

/// A compiled variant.
#[derive(Debug, Clone)]
pub struct Built {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What the tool is given too.
    pub options: Vec<String>,
}

impl Builder {
    /// That of the tests.
    pub fn of_tests(workspace: &Workspace, toolkit: Toolkit) -> Builder {
        Builder {
            toolkit,
            dist: Dist::of(workspace, Profile::Test),
            folder: workspace.target.join("apps"),
            arch: SIMULATED.to_owned(),
            until: None,
        }
    }

    /// Compiles, or finds what an earlier call compiled from the same files with the same options.
    ///
    /// # Errors
    /// What nvcc says, or that it takes too long.
    pub fn build(&self, program: &Program, variant: Variant) -> Result<Built> {
        let (options, dir) = self.dir(program, variant)?;
        if !dir.join(&program.name).is_file() {
            self.compile(program, variant, &options, &dir)?;
        }
        Ok(built(program, variant, &dir))
    }

    /// What an earlier call compiled from the same files with the same options, if any has.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn find(&self, program: &Program, variant: Variant) -> Result<Option<Built>> {
        let (_, dir) = self.dir(program, variant)?;
        let there = dir.join(&program.name).is_file();
        Ok(there.then(|| built(program, variant, &dir)))
    }

    /// nvcc's options for a variant, and its folder.
    fn dir(&self, program: &Program, variant: Variant) -> Result<(Vec<String>, PathBuf)> {
        let options = options(program, variant, &self.arch);
        let key = self.key(program, &options)?;
        let name = format!("{}-{variant}-{key:016x}", program.name);
        Ok((options, self.folder.join(name)))
    }

    /// Into a folder beside, renamed when complete.
    fn compile(
        &self,
        program: &Program,
        variant: Variant,
        options: &[String],
        dir: &Path,
    ) -> Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let work = tempfile::Builder::new()
            .prefix(".building")
            .tempdir_in(&self.folder)?;
        for options in program.values("ptx", variant) {
            let to = work.path().join(format!("{}.ptx", program.name));
            self.ptx(program, variant, options, &to)?;
        }
        let mut nvcc = self.nvcc();
        nvcc.args(options)
            .arg("-o")
            .arg(work.path().join(&program.name))
            .args(program.files());
        nvcc.arg("-L").arg(self.dist.libraries());
        self.finish(&mut nvcc)?;
        if std::fs::rename(work.path(), dir).is_err() && !dir.join(&program.name).is_file() {
            std::fs::remove_dir_all(dir).ok();
            std::fs::rename(work.path(), dir)
                .with_context(|| format!("cannot create {}", dir.display()))?;
        }
        Ok(())
    }

    /// Compiles the program's file to PTX, with more options for nvcc.
    ///
    /// # Errors
    /// What nvcc says, or that it takes too long.
    pub fn ptx(&self, program: &Program, variant: Variant, options: &str, to: &Path) -> Result<()> {
        let mut nvcc = self.nvcc();
        nvcc.arg("-ptx")
            .arg(format!("-arch={}", self.arch.replace("sm_", "compute_")))
            .args(common(variant))
            .args(options.split_whitespace());
        nvcc.arg("-o").arg(to).arg(&program.path);
        self.finish(&mut nvcc)
    }

    /// Runs a compiler to its end, as long as there is time. If it fails for want of g++, the error says so.
    fn finish(&self, nvcc: &mut Command) -> Result<()> {
        self.end(nvcc)
            .map_err(|error| match ::toolkit::on_path("g++") {
                Some(_) => error,
                None => error.context("nvcc needs g++, which is not on PATH: install it"),
            })
    }

    fn end(&self, nvcc: &mut Command) -> Result<()> {
        let Some(until) = self.until else {
            return command::output(nvcc).map(drop);
        };
        let left = until.saturating_duration_since(Instant::now());
        let ended = command::finish_within(nvcc, left)?;
        match ended.code {
            0 => Ok(()),
            code => bail!(
                "{} exited with {code}\n{}",
                command::describe(nvcc),
                ended.stderr.trim_end()
            ),
        }
    }

    fn nvcc(&self) -> Command {
        let mut nvcc = Command::new(&self.toolkit.nvcc);
        self.toolkit.prepare(&mut nvcc);
        nvcc
    }

    /// Changes with the compiler, the options, the name and everything that is compiled.
    fn key(&self, program: &Program, options: &[String]) -> Result<u64> {
        let mut hash = add_text(hash::EMPTY, self.toolkit.nvcc.as_os_str());
        for option in options {
            hash = add_text(hash, OsStr::new(option));
        }
        for file in program.files() {
            for path in std::iter::once(file.clone()).chain(includes(&file)?) {
                let contents = std::fs::read(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                hash = hash::add_bytes(add_text(hash, path.as_os_str()), &contents);
            }
        }
        Ok(hash)
    }
}

/// The variant that lies in a folder.
fn built(program: &Program, variant: Variant, dir: &Path) -> Built {
    let ptx = dir.join(format!("{}.ptx", program.name));
    let expand = |word: &str| match word {
        "{ptx}" => ptx.display().to_string(),
        _ => word.to_owned(),
    };
    let words = program.words("args", variant).into_iter();
    let options = program.words("options", variant).into_iter();
    Built {
        program: dir.join(&program.name),
        arguments: words.map(expand).collect(),
        options: options.map(str::to_owned).collect(),
    }
}

/// nvcc's options for a program, apart from files.
fn options(program: &Program, variant: Variant, arch: &str) -> Vec<String> {
    let own = program.words("nvcc", variant);
    let mut options = common(variant);
    if !own
        .iter()
        .any(|word| word.starts_with("-gencode") || word.starts_with("-arch"))
    {
        options.push(format!("-arch={arch}"));
    }
    if !own.contains(&"-cudart") {
        options.extend(["-cudart".to_owned(), "shared".to_owned()]);
    }
    options.extend(own.into_iter().map(str::to_owned));
    options
}

fn common(variant: Variant) -> Vec<String> {
    let mut options = vec!["-O2".to_owned(), "-lineinfo".to_owned()];
    if variant == Variant::Racy {
        options.push("-DRACY".to_owned());
    }
    options
}

/// Adds a text to a hash. The byte behind it keeps "ab" + "c" apart from "a" + "bc".
fn add_text(hash: u64, text: &OsStr) -> u64 {
    hash::add(hash::add_bytes(hash, text.as_encoded_bytes()), 0)
}
