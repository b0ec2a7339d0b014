//! nvcc: the one on PATH, under CUDA_HOME, or in our cache, where `cargo xtask toolkit` puts pinned wheels from PyPI.
//!
//! A cached toolkit is made in a folder beside its place and renamed into it when it is complete, so two commands may
//! fetch at once and an interrupted one leaves nothing that looks finished.
//! The wheels lie as in a virtual environment (`lib/pythonX.Y/site-packages/nvidia/cu13`), but pip's `--target` makes
//! that folder: a venv cannot be renamed, and Debian's python3 cannot make one without another package.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, headers, python};

/// The version in the name of the cached folder.
const VERSION: &str = "13.0";

/// Exactly these wheels, without what they would depend on.
const WHEELS: [&str; 5] = [
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.3.5.0.6",
];

/// The file that a complete folder holds: the list of its wheels.
const STAMP: &str = ".cudarun-check-toolkit";

/// The oldest release whose shared runtime we stand in for.
const OLDEST_RELEASE: u32 = 12;

/// A usable nvcc.
#[derive(Debug, Clone)]
pub struct Toolkit {
    /// The folder with `bin`, `include` and `lib` or `lib64`.
    pub root: PathBuf,
    /// The compiler.
    pub nvcc: PathBuf,
    /// Where it was found, for people.
    pub found: String,
}

impl Toolkit {
    /// A command with this toolkit's programs first on PATH.
    pub fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let bin = self.nvcc.parent().map(Path::to_path_buf);
        let paths = bin.into_iter().chain(std::env::split_paths(&old));
        if let Ok(path) = std::env::join_paths(paths) {
            command.env("PATH", path);
        }
        command.env("CUDA_HOME", &self.root)
    }

    /// `LD_LIBRARY_PATH` with the folders of this toolkit's libraries first, for programs of its shared runtime.
    pub fn library_path(&self) -> std::ffi::OsString {
        let own = ["lib64", "lib"].map(|name| self.root.join(name));
        let own = own.into_iter().filter(|folder| folder.is_dir());
        let old = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let old: Vec<PathBuf> = std::env::split_paths(&old).collect();
        std::env::join_paths(own.chain(old)).unwrap_or_default()
    }

    /// Its version of CUDA, such as (13, 0).
    ///
    /// # Errors
    /// When nvcc does not say it.
    pub fn release(&self) -> Result<(u32, u32)> {
        release(&self.nvcc)
    }

    /// Prints where it is; true, as a command's outcome.
    pub fn announce(&self) -> bool {
        println!("{} ({})", self.nvcc.display(), self.found);
        true
    }
}

/// An nvcc that is already there: one that somebody has installed, or the one in the cache.
pub fn find() -> Option<Toolkit> {
    ::toolkit::installed("nvcc")
        .into_iter()
        .find_map(|candidate| usable(&candidate.path, candidate.found))
        .or_else(|| cached(&cache_folder()?))
}

/// An nvcc, fetched when there is none; one that we have fetched gets the headers of libraries too.
pub fn ensure() -> Result<Toolkit> {
    let toolkit = compiler()?;
    if let Some(dir) = cache_folder().filter(|dir| toolkit.root.starts_with(dir)) {
        headers::ensure(&dir, &toolkit.root);
    }
    Ok(toolkit)
}

/// Prints where nvcc and z3 are, which are fetched when there is none; true, as a command's outcome.
pub fn ensure_all() -> Result<bool> {
    let compiler = ensure().map(|toolkit| toolkit.announce());
    let z3 = ensure_z3().context("could not get z3, which a test compares proofs with");
    compiler?;
    println!("{} (from PyPI, cached)", z3?.display());
    Ok(true)
}

fn ensure_z3() -> Result<PathBuf> {
    if let Some(z3) = ::toolkit::z3() {
        return Ok(z3);
    }
    let version = ::toolkit::Z3_VERSION;
    println!("fetching z3 {version} (39 MB) from PyPI");
    let wheel = format!("z3-solver=={version}");
    python::fetched(&format!("z3-{version}"), &[&wheel])?;
    ::toolkit::z3().context("the wheel did not bring bin/z3")
}

fn compiler() -> Result<Toolkit> {
    if let Some(toolkit) = find() {
        return Ok(toolkit);
    }
    let dir = cache_folder()
        .context("neither XDG_CACHE_HOME nor HOME is set: no place to keep the CUDA toolkit")?;
    println!(
        "no nvcc on PATH or under CUDA_HOME: fetching CUDA {VERSION} (105 MB) from PyPI into {}",
        dir.display()
    );
    fetch(&dir).context(
        "could not get the CUDA compiler (with CUDA 12 or later installed, put its nvcc on PATH or set CUDA_HOME)",
    )?;
    cached(&dir).with_context(|| {
        format!(
            "no usable nvcc in {}: remove that folder and try again",
            dir.display()
        )
    })
}

/// Where the fetched toolkit lives.
fn cache_folder() -> Option<PathBuf> {
    Some(::toolkit::cache()?.join(format!("cuda-{VERSION}")))
}

/// The toolkit in this folder, when it is complete and holds what we would fetch today.
fn cached(dir: &Path) -> Option<Toolkit> {
    let stamp = std::fs::read_to_string(dir.join(STAMP)).ok()?;
    let root = if stamp == stamp_text() {
        toolkit_root(dir)?
    } else {
        return None;
    };
    Some(Toolkit {
        nvcc: root.join("bin/nvcc"),
        root,
        found: "from PyPI, cached".to_owned(),
    })
}

/// What nvcc says that it is: `release 13.0, V13.0.88`.
fn release(nvcc: &Path) -> Result<(u32, u32)> {
    let said = command::output(Command::new(nvcc).arg("--version"))?;
    let version = said.split("release ").nth(1);
    let version = version.and_then(|rest| rest.split([',', ' ', '\n']).next());
    version
        .and_then(parse_release)
        .with_context(|| format!("{} --version names no release", nvcc.display()))
}

/// A version of CUDA: `12.8`.
pub fn parse_release(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// An nvcc of someone else's: new enough, and really there.
fn usable(nvcc: &Path, found: &str) -> Option<Toolkit> {
    if !::toolkit::is_executable(nvcc) {
        return None;
    }
    let (major, _) = release(nvcc).ok()?;
    // Links such as /usr/local/bin/nvcc must not hide where the toolkit is.
    let nvcc = nvcc.canonicalize().ok()?;
    let root = nvcc.parent()?.parent()?.to_path_buf();
    (major >= OLDEST_RELEASE).then_some(Toolkit {
        root,
        nvcc,
        found: found.to_owned(),
    })
}

/// Fetches into a folder beside `dir` and renames it.
fn fetch(dir: &Path) -> Result<()> {
    let parent = dir.parent().context("the cache folder has no parent")?;
    std::fs::create_dir_all(parent)
        .with_context(|| format!("cannot create {}", parent.display()))?;
    let version = python_version()?;
    let work = tempfile::Builder::new()
        .prefix(&format!("cuda-{VERSION}."))
        .tempdir_in(parent)?;
    let fresh = work.path().join("toolkit");
    pip_install(&fresh.join(format!("lib/python{version}/site-packages")))?;
    let root = toolkit_root(&fresh).context("the wheels did not bring nvidia/cu13/bin/nvcc")?;
    // nvcc looks for its libraries in lib64, and the linker wants a name without a version.
    symlink("lib", root.join("lib64"))?;
    symlink("libcudart.so.13", root.join("lib/libcudart.so"))?;
    command::output(Command::new(root.join("bin/nvcc")).arg("--version"))?;
    std::fs::write(fresh.join(STAMP), stamp_text())?;
    move_into_place(&fresh, dir, &work.path().join("replaced"))
}

/// Renames a complete folder to its place; another complete one that came first stays.
fn move_into_place(fresh: &Path, dir: &Path, aside: &Path) -> Result<()> {
    for _ in 0..3 {
        if cached(dir).is_some() {
            return Ok(());
        }
        // What stands there is from other pins or unfinished; it goes when our work folder goes.
        if dir.exists() && std::fs::rename(dir, aside).is_err() {
            continue;
        }
        if std::fs::rename(fresh, dir).is_ok() {
            return Ok(());
        }
    }
    bail!("cannot move the fetched toolkit to {}", dir.display())
}

pub(crate) fn python_version() -> Result<String> {
    let program = "import sys; print('%d.%d' % sys.version_info[:2])";
    let version = command::output(Command::new("python3").args(["-c", program]))
        .context("python3 is needed to fetch from PyPI: install it")?;
    command::output(Command::new("python3").args(["-m", "pip", "--version"]))
        .context("pip is needed to fetch from PyPI: install python3-pip")?;
    Ok(version.trim().to_owned())
}

fn pip_install(folder: &Path) -> Result<()> {
    let mut install = pip("install");
    install.arg("--target").arg(folder).args(WHEELS);
    run_pip(&mut install)
}

/// `pip VERB` for exactly the wheels that are named.
pub(crate) fn pip(verb: &str) -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", verb]).args([
        "--quiet",
        "--no-deps",
        "--no-input",
        "--disable-pip-version-check",
        "--retries",
        "2",
    ]);
    // A user's own pip settings must not send the files elsewhere.
    pip.env("PIP_USER", "0").env("PIP_REQUIRE_VIRTUALENV", "0");
    pip
}

/// Runs pip and says in few words why it failed.
pub(crate) fn run_pip(pip: &mut Command) -> Result<()> {
    let output = pip.output().context("cannot start python3")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim_end().lines().last().unwrap_or("it said nothing");
    // pip says this when it could not read the index; a wrong pin would list the versions there are.
    if said.contains("(from versions: none)") {
        bail!("PyPI cannot be reached");
    }
    bail!("pip failed: {last}")
}

/// The root of a toolkit among fetched wheels, if it has an nvcc.
fn toolkit_root(dir: &Path) -> Option<PathBuf> {
    let mut roots = ::toolkit::roots(dir).into_iter();
    roots.find(|root| ::toolkit::is_executable(&root.join("bin/nvcc")))
}

fn stamp_text() -> String {
    WHEELS.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A folder with an nvcc in it, and a stamp when `stamp` is given.
    fn folder(parent: &Path, name: &str, stamp: Option<&str>) -> PathBuf {
        let dir = parent.join(name);
        let bin = dir.join("lib/python3.11/site-packages/nvidia/cu13/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("nvcc"), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(bin.join("nvcc"), PermissionsExt::from_mode(0o755)).unwrap();
        if let Some(stamp) = stamp {
            std::fs::write(dir.join(STAMP), stamp).unwrap();
        }
        dir
    }

    #[test]
    fn a_folder_counts_only_with_the_stamp_of_todays_pins() {
        let work = tempfile::tempdir().unwrap();
        assert!(cached(&folder(work.path(), "none", None)).is_none());
        assert!(
            cached(&folder(
                work.path(),
                "old",
                Some("nvidia-cuda-nvcc==12.9.86\n")
            ))
            .is_none()
        );
        assert!(cached(&folder(work.path(), "good", Some(&stamp_text()))).is_some());
    }

    #[test]
    fn an_unfinished_folder_is_replaced_and_a_finished_one_is_kept() {
        let work = tempfile::tempdir().unwrap();
        let dir = folder(work.path(), "place", None);
        let first = folder(work.path(), "first", Some(&stamp_text()));
        move_into_place(&first, &dir, &work.path().join("aside")).unwrap();
        assert!(cached(&dir).is_some() && !first.exists());
        let second = folder(work.path(), "second", Some(&stamp_text()));
        move_into_place(&second, &dir, &work.path().join("aside2")).unwrap();
        assert!(cached(&dir).is_some() && second.exists());
    }
}
