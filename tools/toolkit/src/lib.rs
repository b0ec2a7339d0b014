//! Where the tools of a CUDA toolkit are, such as `nvcc` and `ptxas`.
//!
//! Looked for in this order: the folder that `CUDARUN_CHECK_CUDA_BIN` names, `PATH`, `CUDA_HOME`, `CUDA_PATH`,
//! `/usr/local/cuda`, and the [cache] that `cargo xtask toolkit` fills.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names the folder of the tools.
const FOLDER_VARIABLE: &str = "CUDARUN_CHECK_CUDA_BIN";

/// A place where a tool may be.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The file, which need not be there.
    pub path: PathBuf,
    /// Why it is looked for there, for people.
    pub found: &'static str,
}

/// The first place that has the tool.
pub fn find(tool: &str) -> Option<PathBuf> {
    let mut installed = installed(tool).into_iter().map(|candidate| candidate.path);
    let cached = || {
        let roots = cached_roots().into_iter();
        roots.map(|root| root.join("bin").join(tool))
    };
    let found = installed.find(|path| is_executable(path));
    found.or_else(|| cached().find(|path| is_executable(path)))
}

/// The tool, for a test that needs it.
///
/// # Errors
/// What to do where there is none.
pub fn require(tool: &str) -> Result<PathBuf, String> {
    let why = || format!("no {tool}: run `cargo xtask toolkit`, or set CUDA_HOME");
    find(tool).ok_or_else(why)
}

/// Where somebody has installed the tool, if they have.
pub fn installed(tool: &str) -> Vec<Candidate> {
    let at = |folder: PathBuf, found| Candidate {
        path: folder.join(tool),
        found,
    };
    let named = |variable, folder: &str, found| {
        let home = std::env::var_os(variable).filter(|home| !home.is_empty())?;
        Some(at(PathBuf::from(home).join(folder), found))
    };
    let on_path = path().into_iter().map(|folder| at(folder, "on PATH"));
    let mut all: Vec<Candidate> = named(FOLDER_VARIABLE, "", "in CUDARUN_CHECK_CUDA_BIN")
        .into_iter()
        .collect();
    all.extend(on_path);
    all.extend(named("CUDA_HOME", "bin", "under CUDA_HOME"));
    all.extend(named("CUDA_PATH", "bin", "under CUDA_PATH"));
    all.push(at("/usr/local/cuda/bin".into(), "in /usr/local/cuda"));
    all
}

/// The first program of this name on `PATH`.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let mut places = path().into_iter().map(|folder| folder.join(program));
    places.find(|path| is_executable(path))
}

/// The folders of `PATH`.
fn path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// The wheel of `z3-solver` that tests compare with.
pub const Z3_VERSION: &str = "5.4.1.0";

/// The `z3` that `cargo xtask toolkit` has fetched, for tests.
pub fn z3() -> Option<PathBuf> {
    let prefix = format!("z3-{Z3_VERSION}-");
    let ours = |dir: &PathBuf| {
        let name = dir.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&prefix))
    };
    let dirs = inside(&cache()?).into_iter().filter(ours);
    let programs = dirs.map(|dir| dir.join("site-packages/bin/z3"));
    programs.into_iter().find(|path| is_executable(path))
}

/// The folder of fetched toolkits: `${XDG_CACHE_HOME:-~/.cache}/cudarun-check`.
pub fn cache() -> Option<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache"),
    };
    Some(base.join("cudarun-check"))
}

/// Roots of fetched toolkits, with `bin` in them, the newest first.
fn cached_roots() -> Vec<PathBuf> {
    let toolkits = cache().map_or_else(Vec::new, |cache| inside(&cache));
    toolkits.iter().flat_map(|dir| roots(dir)).collect()
}

/// Roots of toolkits among wheels that lie as in a virtual environment: `lib/python*/site-packages/nvidia/*`.
pub fn roots(dir: &Path) -> Vec<PathBuf> {
    let pythons = inside(&dir.join("lib"));
    let nvidia = pythons
        .iter()
        .flat_map(|python| inside(&python.join("site-packages/nvidia")));
    nvidia.filter(|root| root.join("bin").is_dir()).collect()
}

/// What lies in a folder, by name, the last first.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_by(|a, b| b.cmp(a));
    paths
}

/// Whether a file can be run.
pub fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
}
