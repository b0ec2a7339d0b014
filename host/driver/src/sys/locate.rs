//! Where an NVIDIA driver may be installed.
//!
//! Not left to the dynamic loader: in a checked program the plain name `libcuda.so.1` leads to
//! ourselves. Source of the cache's layout: glibc's `dl-cache.h`, format 1.1.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names the driver that the interposer stands in front of, by absolute path.
pub const DRIVER_VARIABLE: &str = "CUDARUN_CHECK_DRIVER";

/// Set to `1`, it lets [`DRIVER_VARIABLE`] name our own simulated driver, which then checks nothing:
/// the interposer does. For tests.
pub const SIMULATED_VARIABLE: &str = "CUDARUN_CHECK_DRIVER_SIMULATED";

/// What a driver is called. `libcuda.so` alone may be the toolkit's stub.
const NAME: &str = "libcuda.so.1";

/// The dynamic loader's list of installed libraries.
const CACHE: &str = "/etc/ld.so.cache";

/// Where drivers are when the cache does not know: distributions, containers, WSL, NixOS, and the
/// compatibility package of the toolkit last, because it is for older kernel modules only.
const FOLDERS: [&str; 9] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
    "/usr/lib64/nvidia",
    "/usr/local/cuda/compat",
];

/// Whether the simulated driver has been named as the one behind the interposer.
pub fn simulated_stands_in() -> bool {
    std::env::var_os(SIMULATED_VARIABLE).is_some_and(|value| value == "1")
}

/// Files that may be a real driver, in the order in which the loader would prefer them.
///
/// They exist; whether they are a driver, and not our own library, is for
/// [`super::Api::open_real`] to say.
pub fn candidates() -> Vec<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named: Vec<PathBuf> = std::env::split_paths(&named)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(NAME))
        .collect();
    let cache = std::fs::read(CACHE).unwrap_or_default();
    let usual = FOLDERS.iter().map(|folder| Path::new(folder).join(NAME));
    let all = named.into_iter().chain(cached(&cache, NAME)).chain(usual);
    let mut found: Vec<PathBuf> = Vec::new();
    for path in all.filter(|path| path.is_file()) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// The paths of a library by the loader's cache; nothing where the cache cannot be understood.
fn cached(cache: &[u8], name: &str) -> Vec<PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    // Older systems put an older list before it.
    let start = cache
        .windows(MAGIC.len())
        .position(|window| window == MAGIC);
    let Some(cache) = start.and_then(|start| cache.get(start..)) else {
        return Vec::new();
    };
    let number = |at: usize| {
        let bytes = cache.get(at..at.checked_add(4)?)?.try_into().ok()?;
        usize::try_from(u32::from_ne_bytes(bytes)).ok()
    };
    let text = |at: usize| cache.get(at..)?.split(|byte| *byte == 0).next();
    let count = number(MAGIC.len()).unwrap_or(0);
    let entries = cache.get(HEADER..).unwrap_or_default().len() / ENTRY;
    (0..count.min(entries))
        .map(|index| HEADER + index * ENTRY)
        .filter(|&at| number(at + 4).and_then(text) == Some(name.as_bytes()))
        .filter_map(|at| Some(PathBuf::from(OsStr::from_bytes(text(number(at + 8)?)?))))
        .filter(|path| path.is_absolute())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with these names and paths.
    fn cache(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut strings: Vec<u8> = Vec::new();
        let mut table: Vec<u8> = Vec::new();
        let first = 48 + 24 * entries.len();
        for (name, path) in entries {
            let mut offset = |text: &str| {
                let at = first + strings.len();
                strings.extend(text.as_bytes().iter().chain(&[0]));
                u32::try_from(at).unwrap().to_ne_bytes()
            };
            table.extend(3u32.to_ne_bytes());
            table.extend(offset(name));
            table.extend(offset(path));
            table.extend([0; 12]);
        }
        let mut bytes = b"glibc-ld.so.cache1.1".to_vec();
        bytes.extend(u32::try_from(entries.len()).unwrap().to_ne_bytes());
        bytes.resize(48, 0);
        bytes.extend(table);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn the_cache_is_read_and_a_broken_one_is_not_believed() {
        let whole = cache(&[
            ("libcuda.so", "/lib/libcuda.so"),
            ("libcuda.so.1", "/lib/libcuda.so.1"),
            ("libcuda.so.1", "not/absolute"),
            ("libm.so.6", "/lib/libm.so.6"),
        ]);
        assert_eq!(cached(&whole, NAME), [Path::new("/lib/libcuda.so.1")]);
        assert!(cached(b"something else", NAME).is_empty());
        for end in 0..whole.len() {
            // No cut may panic; before the strings nothing can be found.
            let found = cached(&whole[..end], NAME);
            assert!(end > 48 + 4 * 24 || found.is_empty());
        }
        let mut wrong = whole;
        wrong[20..24].fill(0xff);
        wrong[52..60].fill(0xff);
        assert_eq!(cached(&wrong, NAME), [Path::new("/lib/libcuda.so.1")]);
    }

    #[test]
    fn this_machines_cache_holds_the_c_library() {
        if let Ok(bytes) = std::fs::read(CACHE) {
            assert!(
                cached(&bytes, "libc.so.6")
                    .iter()
                    .any(|path| path.is_file())
            );
        }
    }
}
