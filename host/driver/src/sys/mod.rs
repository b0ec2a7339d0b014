//! The driver API as it crosses the library boundary: codes, handles, layouts and one table of
//! entry points.
//!
//! Written from the public headers; nothing here calls a driver unless an [`Api`] was loaded.
#![allow(
    non_camel_case_types,
    non_snake_case,
    reason = "types and functions keep their C names, so that cuda.h documents them"
)]

mod api;
pub mod constants;
mod locate;
mod lookup;
mod names;
mod result;
mod table;
mod types;

pub use api::{
    Api, ENTRY_POINTS, EntryPoint, LoadError, SYMBOLS, calls_of_this_thread, count_call,
};
pub use constants::*;
pub use locate::{DRIVER_VARIABLE, SIMULATED_VARIABLE, candidates, simulated_stands_in};
pub use lookup::{find_known_symbol, find_symbol};
pub use result::CUresult;
pub use types::*;

macro_rules! list_names {
    ($($name:ident)*) => {
        /// Every function that a driver library of CUDA 13.0 exports, in alphabetical order.
        pub static FUNCTION_NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

crate::function_names!(list_names);

macro_rules! list_versions {
    ($($name:ident $version:literal,)*) => {
        /// From which version of CUDA on a name has another signature, by the headers of CUDA 13.0.
        pub static FUNCTION_VERSIONS: &[(&str, std::ffi::c_int)] =
            &[$((stringify!($name), $version)),*];
    };
}

crate::function_versions!(list_versions);
