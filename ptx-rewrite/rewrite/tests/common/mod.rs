//! Finding the CUDA toolkit.

use std::path::{Path, PathBuf};

/// A tool of the toolkit: from the environment, the cache, or the path.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("CUDARUN_CHECK_CUDA_BIN") {
        return Some(Path::new(&folder).join(name));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cached = cache.or_else(home).into_iter().flat_map(|cache| {
        let lib = cache.join("cudarun-check/cuda-13.0/lib");
        let pythons = std::fs::read_dir(lib).into_iter().flatten().flatten();
        pythons.map(|python| python.path().join("site-packages/nvidia/cu13/bin"))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = cached.chain(std::env::split_paths(&path)).collect();
    let mut candidates = folders.into_iter().map(|folder| folder.join(name));
    candidates.find(|candidate| candidate.is_file())
}

/// Without a toolkit a test passes, but not in CI, and not in silence.
pub(crate) fn skipped() {
    use std::io::Write;
    assert!(
        std::env::var_os("CI").is_none(),
        "no CUDA toolkit: run `cargo xtask toolkit`"
    );
    // `eprintln!` would be captured.
    let line = "skipped: no CUDA toolkit; run `cargo xtask toolkit`\n";
    drop(std::io::stderr().write_all(line.as_bytes()));
}
