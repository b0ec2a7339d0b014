//! What programs get in place of the libraries that they ask for.

use std::ffi::CStr;
use std::sync::OnceLock;

/// Names the folder of our libraries, by absolute path; without it everything is left as it is.
const VARIABLE: &CStr = c"CUDARUN_CHECK_LIBRARIES";

/// Our files. Which of them are there depends on the folder: in front of a GPU's driver it has no runtime library.
const FILES: [&[u8]; 3] = [b"libcuda.so.1", b"libcudart.so.12", b"libcudart.so.13"];

/// The index of the driver in [`FILES`].
const DRIVER: usize = 0;

/// A path, with the zero byte at its end.
struct Path {
    bytes: [u8; libc::PATH_MAX as usize],
}

/// Paths, copied: the program may overwrite its environment.
struct Given {
    folder: Option<Path>,
    /// Those of our files that exist.
    files: [Option<Path>; FILES.len()],
}

static GIVEN: OnceLock<Given> = OnceLock::new();

/// The folder of our libraries.
pub(crate) fn folder() -> Option<&'static CStr> {
    given().folder.as_ref().map(Path::as_c_str)
}

/// What a search for `name` shall find instead.
pub(crate) fn instead(name: &CStr) -> Option<&'static CStr> {
    given().file(file(name)?)
}

/// Our driver.
pub(crate) fn driver() -> Option<&'static CStr> {
    given().file(DRIVER)
}

/// Whether ours is the simulated device, over which there is a runtime library of ours.
pub(crate) fn simulates() -> bool {
    given().files[DRIVER + 1..].iter().any(Option::is_some)
}

/// Whether a file is called as NVIDIA's linker for machine code is.
pub(crate) fn is_linker(name: &CStr) -> bool {
    last(name).starts_with(b"libnvJitLink.so")
}

/// Whether a file is called as a driver is.
pub(crate) fn is_driver(name: &CStr) -> bool {
    file(name) == Some(DRIVER)
}

/// Which of our files stands in for this one, by its name alone.
fn file(name: &CStr) -> Option<usize> {
    match last(name) {
        b"libcuda.so" => Some(DRIVER),
        last => FILES.iter().position(|file| *file == last),
    }
}

/// The last part of a path.
fn last(name: &CStr) -> &[u8] {
    let mut parts = name.to_bytes().rsplit(|byte| *byte == b'/');
    parts.next().unwrap_or_default()
}

fn given() -> &'static Given {
    GIVEN.get_or_init(|| {
        // SAFETY: the name is a C string, and no other thread runs yet.
        let value = unsafe { libc::getenv(VARIABLE.as_ptr()) };
        if value.is_null() {
            return Given {
                folder: None,
                files: [const { None }; FILES.len()],
            };
        }
        // SAFETY: the environment holds C strings.
        let folder = unsafe { CStr::from_ptr(value) };
        Given {
            folder: Path::new(folder, b""),
            files: FILES.map(|file| Path::new(folder, file).filter(Path::exists)),
        }
    })
}

impl Given {
    fn file(&self, index: usize) -> Option<&CStr> {
        self.files[index].as_ref().map(Path::as_c_str)
    }
}

impl Path {
    /// A file in a folder. Nothing for a folder that is not absolute, or a path that is too long for the system.
    fn new(folder: &CStr, file: &[u8]) -> Option<Path> {
        let folder = folder.to_bytes();
        let mut bytes = [0; libc::PATH_MAX as usize];
        let length = folder.len() + 1 + file.len();
        if folder.first() != Some(&b'/') || length >= bytes.len() {
            return None;
        }
        bytes[..folder.len()].copy_from_slice(folder);
        bytes[folder.len()] = b'/';
        bytes[folder.len() + 1..length].copy_from_slice(file);
        Some(Path { bytes })
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    fn exists(&self) -> bool {
        // SAFETY: the path is a C string.
        unsafe { libc::access(self.as_c_str().as_ptr(), libc::F_OK) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        for (name, index) in [
            (c"libcuda.so.1", Some(0)),
            (c"libcuda.so", Some(0)),
            (c"/usr/lib64/libcuda.so.1", Some(0)),
            (c"libcudart.so.12", Some(1)),
            (c"/opt/cuda/lib/libcudart.so.13", Some(2)),
            (c"libcudart.so.11.0", None),
            (c"/usr/lib64/libcuda.so.1/libm.so.6", None),
            (c"libcuda.so.1.1", None),
            (c"", None),
        ] {
            assert_eq!(file(name), index, "{name:?}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_one_is_not_used() {
        let path = Path::new(c"/x", b"libcuda.so.1").expect("an absolute path");
        assert_eq!(path.as_c_str(), c"/x/libcuda.so.1");
        assert!(!path.exists());
        assert!(Path::new(c"x", b"libcuda.so.1").is_none());
        let long = std::ffi::CString::new(vec![b'/'; libc::PATH_MAX as usize]).expect("no zero");
        assert!(Path::new(&long, b"libcuda.so.1").is_none());
    }
}
