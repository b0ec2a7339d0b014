//! The table of entry points as function pointers loaded from a library.
//!
//! Every function is optional, because drivers of different ages export different ones; calling
//! a missing one returns `CUDA_ERROR_NOT_FOUND` instead of failing at load time.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::path::{Path, PathBuf};

use super::*;

/// Why a driver library could not be used.
#[derive(Debug)]
pub enum LoadError {
    /// The dynamic loader refused.
    Open(PathBuf, String),
    /// The path is not absolute, so the loader might find our own library instead.
    NotAbsolute(PathBuf),
    /// The library is our own simulated driver and a real one was asked for.
    Ourselves(PathBuf),
    /// The library exports none of the entry points.
    NotADriver(PathBuf),
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::Open(path, why) => write!(f, "cannot load {}: {why}", path.display()),
            LoadError::NotAbsolute(path) => {
                write!(
                    f,
                    "{}: a driver is loaded by absolute path only",
                    path.display()
                )
            }
            LoadError::Ourselves(path) => {
                write!(
                    f,
                    "{}: this is cudarun-check's own driver, not the real one",
                    path.display()
                )
            }
            LoadError::NotADriver(path) => {
                write!(
                    f,
                    "{}: exports no cuInit, so it is no CUDA driver",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// What the table says about one entry point.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoint {
    /// Name in this crate: the field and method of [`Api`].
    pub name: &'static str,
    /// Name that `cuGetProcAddress` is asked for.
    pub base: &'static str,
    /// First CUDA version with this signature, 1000 * major + 10 * minor.
    pub since: c_int,
    /// Exported symbols; the second, if any, is for a per-thread default stream.
    pub symbols: &'static [&'static str],
}

macro_rules! make_api {
    ($($(#[$doc:meta])* $name:ident: $base:ident $since:literal [$symbol:ident $(, $other:ident)*]
        ($($arg:ident: $ty:ty),*);)*) => {
        #[derive(Clone, Copy, Default)]
        struct Functions {
            $($name: Option<unsafe extern "C" fn($($ty),*) -> CUresult>,)*
        }

        /// Every row of the table.
        pub static ENTRY_POINTS: &[EntryPoint] = &[$(EntryPoint {
            name: stringify!($name),
            base: stringify!($base),
            since: $since,
            symbols: &[stringify!($symbol) $(, stringify!($other))*],
        },)*];

        /// Every symbol a driver library exports for the table.
        pub static SYMBOLS: &[&str] = &[$(stringify!($symbol), $(stringify!($other),)*)*];

        impl Functions {
            fn load(library: &libloading::Library) -> Functions {
                let mut functions = Functions::default();
                $(
                    // SAFETY: the symbol has the signature of cuda.h, which the table repeats.
                    functions.$name = unsafe {
                        library.get(concat!(stringify!($symbol), "\0").as_bytes()).ok().map(|f| *f)
                    };
                )*
                functions
            }
        }

        /// The entry points, each with the safety conditions of the C function of that name.
        #[allow(
            clippy::missing_safety_doc, clippy::too_many_arguments,
            reason = "the methods are the C functions of cuda.h"
        )]
        impl Api {
            $(
                #[doc = concat!("Calls `", stringify!($symbol), "`; `NOT_FOUND` where missing.")]
                pub unsafe fn $name(&self, $($arg: $ty),*) -> CUresult {
                    match self.functions.$name {
                        // SAFETY: the caller keeps the conditions of the C function.
                        Some(function) => unsafe { function($($arg),*) },
                        None => CUresult::NOT_FOUND,
                    }
                }
            )*
        }
    };
}

crate::entry_points!(make_api);

/// A loaded driver library, real or simulated.
pub struct Api {
    functions: Functions,
    library: libloading::Library,
    path: PathBuf,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Api {
    /// Loads the library at an absolute path, whoever made it.
    pub fn open(path: &Path) -> Result<Api, LoadError> {
        if !path.is_absolute() {
            return Err(LoadError::NotAbsolute(path.to_owned()));
        }
        // SAFETY: loading runs the library's constructors; a CUDA driver's expect nothing of us.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|why| LoadError::Open(path.to_owned(), why.to_string()))?;
        let functions = Functions::load(&library);
        if functions.cuInit.is_none() {
            return Err(LoadError::NotADriver(path.to_owned()));
        }
        Ok(Api {
            functions,
            library,
            path: path.to_owned(),
        })
    }

    /// Loads a real driver: as [`Api::open`], but refuses our own library.
    pub fn open_real(path: &Path) -> Result<Api, LoadError> {
        let api = Api::open(path)?;
        if api.is_simulated() {
            return Err(LoadError::Ourselves(path.to_owned()));
        }
        Ok(api)
    }

    /// Whether this is our own simulated driver.
    pub fn is_simulated(&self) -> bool {
        self.symbol(MARKER).is_some()
    }

    /// The address of an exported symbol that the table may not know.
    pub fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = format!("{name}\0");
        // SAFETY: the address is only returned, not called.
        unsafe {
            self.library
                .get::<*mut c_void>(name.as_bytes())
                .ok()
                .map(|symbol| *symbol)
        }
    }

    /// Where the library was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_symbols_are_distinct_and_versions_plausible() {
        let mut symbols: Vec<_> = SYMBOLS.to_vec();
        symbols.sort_unstable();
        let count = symbols.len();
        symbols.dedup();
        assert_eq!(symbols.len(), count);
        for entry in ENTRY_POINTS {
            assert!(
                (2000..=CUDA_VERSION).contains(&entry.since),
                "{}",
                entry.name
            );
            assert!(entry.symbols.iter().all(|symbol| symbol.starts_with("cu")));
            assert!(entry.name.starts_with(entry.base), "{}", entry.name);
        }
    }

    #[test]
    fn a_library_that_is_no_driver_is_refused() {
        assert!(matches!(
            Api::open(Path::new("libm.so.6")),
            Err(LoadError::NotAbsolute(_))
        ));
        assert!(matches!(
            Api::open(Path::new("/nowhere/libcuda.so.1")),
            Err(LoadError::Open(..))
        ));
        for path in ["/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib64/libm.so.6"] {
            if Path::new(path).exists() {
                assert!(matches!(
                    Api::open(Path::new(path)),
                    Err(LoadError::NotADriver(_))
                ));
            }
        }
    }
}
