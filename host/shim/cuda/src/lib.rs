//! `libcuda.so.1` over the simulated device.
//!
//! Source: the driver API of CUDA 13, as far as runtime libraries and ordinary programs use it;
//! one table (`driver::entry_points!`) gives the exports, their signatures and
//! `cuGetProcAddress`.
//!
//! Departures from a real driver:
//! 1. Work is done when it is submitted, in issue order over all streams; what a stream promises
//!    (order within it, events, synchronisation) holds trivially. A fault is still reported as on
//!    a real device: by the next call that could see it, and by every call after that.
//! 2. One device, sm_90, or several of them that share one memory: each reaches all of it whether or not
//!    the program has enabled peer access, and managed variables of libraries are not shared. IPC,
//!    mipmapped arrays, texture references, and graphics interoperability are not
//!    there; asking for them is
//!    `CUDA_ERROR_NOT_SUPPORTED` or an attribute that reads 0.
//! 3. Only PTX runs. A cubin is refused (`CUDA_ERROR_NO_BINARY_FOR_GPU`) unless it was built with
//!    line information: then it carries its PTX.
//! 4. NVIDIA's runtime library is not served: `cuGetExportTable` knows no table.
//!
//! Layering: `exports` (C functions) → one file per part of the API → `state` → `engine`.
//! `unsafe` is in `exports`, in `pointer` (what the program passes) and where callbacks are called.
#![allow(
    non_snake_case,
    reason = "functions keep their C names, so that cuda.h documents them"
)]

mod array;
mod caller;
mod calls;
mod capture_mode;
mod conditional;
mod context;
mod copy;
mod device;
mod edges;
mod engine;
mod event;
pub mod exports;
mod function;
mod graph;
mod graph_exec;
mod image;
mod init;
mod inject;
mod jit;
mod launch;
mod link;
mod memory;
mod missing;
mod module;
mod node;
mod node_params;
mod occupancy;
mod order;
mod pointer_attribute;
mod pool;
mod proc_address;
mod refuse;
mod state;
mod steps;
mod stream;
mod table;
mod texture;
mod user_object;
mod virtual_memory;
mod work;

pub use exports::EXPORTS;

/// What every entry point answers; success carries no value.
use driver::pointer::{self, Answer};

/// The entry points by their table name, for `exports`.
mod api {
    pub(crate) use crate::array::*;
    pub(crate) use crate::capture_mode::cuThreadExchangeStreamCaptureMode;
    pub(crate) use crate::conditional::cuGraphConditionalHandleCreate;
    pub(crate) use crate::context::*;
    pub(crate) use crate::copy::*;
    pub(crate) use crate::device::*;
    pub(crate) use crate::edges::*;
    pub(crate) use crate::event::*;
    pub(crate) use crate::function::*;
    pub(crate) use crate::graph::*;
    pub(crate) use crate::graph_exec::*;
    pub(crate) use crate::init::*;
    pub(crate) use crate::launch::*;
    pub(crate) use crate::link::*;
    pub(crate) use crate::memory::*;
    pub(crate) use crate::module::*;
    pub(crate) use crate::node::*;
    pub(crate) use crate::node_params::*;
    pub(crate) use crate::occupancy::*;
    pub(crate) use crate::pointer_attribute::*;
    pub(crate) use crate::pool::*;
    pub(crate) use crate::proc_address::*;
    pub(crate) use crate::steps::*;
    pub(crate) use crate::stream::*;
    pub(crate) use crate::texture::*;
    pub(crate) use crate::user_object::*;
    pub(crate) use crate::virtual_memory::*;
}
