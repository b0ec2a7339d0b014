//! What is installed on this machine.

use std::path::{Path, PathBuf};

/// A tool of the CUDA toolkit: named by the environment, on PATH, in the usual place, or where
/// `cargo xtask` keeps its own.
pub(crate) fn find(tool: &str) -> Option<PathBuf> {
    let from = |variable: &str, folder: &str| {
        let home = std::env::var_os(variable)?;
        Some(PathBuf::from(home).join(folder).join(tool))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(tool));
    let usual = [
        from("CUDA_HOME", "bin"),
        from("CUDA_PATH", "bin"),
        Some(Path::new("/usr/local/cuda/bin").join(tool)),
    ];
    let candidates = from("CUDARUN_CHECK_CUDA_BIN", "")
        .into_iter()
        .chain(on_path)
        .chain(usual.into_iter().flatten())
        .chain(cached(tool));
    candidates.into_iter().find(|path| path.is_file())
}

/// Toolkits that `cargo xtask` fetched, the newest first.
fn cached(tool: &str) -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let folders = |path: PathBuf| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths.reverse();
        paths
    };
    let toolkits = cache
        .into_iter()
        .flat_map(|cache| folders(cache.join("cudarun-check")));
    let pythons = toolkits.flat_map(|toolkit| folders(toolkit.join("lib")));
    let nvidia = pythons.flat_map(|python| folders(python.join("site-packages/nvidia")));
    nvidia.map(|major| major.join("bin").join(tool)).collect()
}

/// The version of the NVIDIA driver, if one is loaded.
pub(crate) fn nvidia_driver() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let words = text.lines().next()?.split_whitespace();
    let number = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    Some(
        words
            .into_iter()
            .find(number)
            .unwrap_or("of unknown version")
            .to_owned(),
    )
}
