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
mod result;
mod table;
mod types;

pub use api::{Api, ENTRY_POINTS, EntryPoint, LoadError, SYMBOLS};
pub use constants::*;
pub use result::CUresult;
pub use types::*;
