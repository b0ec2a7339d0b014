//! The table of entry points as function pointers loaded from a library.
//!
//! Every function is optional, because drivers of different ages export different ones; calling
//! a missing one returns `CUDA_ERROR_NOT_FOUND` instead of failing at load time.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// None of the places where drivers are installed has one.
    NotFound,
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
            LoadError::NotFound => f.write_str("no NVIDIA driver found"),
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
            fn load(library: &libloading::Library, streams: DefaultStream) -> Functions {
                let mut functions = Functions::default();
                $(
                    let symbols = [
                        concat!(stringify!($symbol), "\0") $(, concat!(stringify!($other), "\0"))*
                    ];
                    let symbol = match streams {
                        DefaultStream::Legacy => symbols[0],
                        DefaultStream::PerThread => symbols[symbols.len() - 1],
                    };
                    // SAFETY: the symbol has the signature of cuda.h, which the table repeats.
                    functions.$name = unsafe { library.get(symbol.as_bytes()).ok().map(|f| *f) };
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
                    count_call();
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

thread_local! {
    // Constant and without destructor: a program may call a driver while its thread ends.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// How many entry points this thread has called through an [`Api`].
///
/// Whoever stands between a program and the driver sees from it whether a call of the program has
/// had consequences.
pub fn calls_of_this_thread() -> u64 {
    CALLS.get()
}

/// Counts a call for [`calls_of_this_thread`], as every method of [`Api`] does.
pub fn count_call() {
    CALLS.set(CALLS.get().wrapping_add(1));
}

/// Which symbol of an entry point is called, where it has two: what stream 0 is.
#[derive(Clone, Copy)]
enum DefaultStream {
    Legacy,
    PerThread,
}

/// A loaded driver library, real or simulated.
#[derive(Clone)]
pub struct Api {
    functions: Functions,
    library: Arc<libloading::Library>,
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
        let functions = Functions::load(&library, DefaultStream::Legacy);
        if functions.cuInit.is_none() {
            return Err(LoadError::NotADriver(path.to_owned()));
        }
        Ok(Api {
            functions,
            library: Arc::new(library),
            path: path.to_owned(),
        })
    }

    /// Loads a real driver: as [`Api::open`], but refuses our own library.
    pub fn open_real(path: &Path) -> Result<Api, LoadError> {
        let api = Api::open(path)?;
        match api.symbol(MARKER) {
            Some(_) => Err(LoadError::Ourselves(path.to_owned())),
            None => Ok(api),
        }
    }

    /// Loads the driver that an interposer stands in front of: the one that [`DRIVER_VARIABLE`]
    /// names, or the first real one of [`candidates`].
    ///
    /// # Errors
    /// Why the named one cannot be used, or that there is none.
    pub fn open_behind() -> Result<Api, LoadError> {
        match std::env::var_os(DRIVER_VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) if simulated_stands_in() => {
                let api = Api::open(Path::new(&path))?;
                match api.symbol(INTERPOSER_MARKER) {
                    Some(_) => Err(LoadError::Ourselves(path.into())),
                    None => Ok(api),
                }
            }
            Some(path) => Api::open_real(Path::new(&path)),
            None => candidates()
                .iter()
                .find_map(|path| Api::open_real(path).ok())
                .ok_or(LoadError::NotFound),
        }
    }

    /// The same library as a program calls it that was built with a per-thread default stream.
    pub fn with_per_thread_stream(&self) -> Api {
        Api {
            functions: Functions::load(&self.library, DefaultStream::PerThread),
            ..self.clone()
        }
    }

    /// Whether this is our own simulated driver.
    pub fn is_simulated(&self) -> bool {
        self.symbol(MARKER).is_some() && self.symbol(INTERPOSER_MARKER).is_none()
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
    fn the_headers_know_every_symbol_of_the_table() {
        assert!(FUNCTION_NAMES.is_sorted());
        for symbol in SYMBOLS {
            assert!(FUNCTION_NAMES.contains(symbol), "{symbol}");
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
