//! The embedded SIMT device: runs PTX and has never heard of races.
//!
//! A kernel is decoded once, together with all it calls, into ops over rows of 32 lanes
//! (`decode`, `code`); a launch interprets them warp by warp (`exec`).
//! Lanes of a warp may part and meet again, every one of them makes progress, and so do all
//! resident CTAs. Memory is sequentially consistent: one thread of the host runs a launch, or several
//! do that cannot tell ([`Threads`]).
//! It is a device, so it has a device's error behaviour: a stray pointer ends the launch with a
//! [`LaunchError`] that names kernel, PTX line, CTA and thread.
//!
//! Texture and surface objects are made through [`Device::textures_mut`], and read from the device's memory.
//!
//! Source: PTX ISA 9.0. Departures: bounds of allocations are exact to the byte; asynchronous copies
//! are done when issued; approximate functions are more exact than a GPU's; products of matrices are
//! summed in ascending order of `k`, rounded to single precision (double for `f64`) after each addition,
//! where the ISA leaves order and precision open, so that a GPU's last bits may differ.

mod code;
mod config;
mod decode;
mod device;
mod device_call;
mod error;
mod exec;
mod lanes;
mod matrix;
pub mod memory;
mod module;
mod requests;
mod strays;
mod tallies;
pub mod texture;
mod validate;
mod values;
mod windows;

pub use config::{
    DeviceConfig, KernelInfo, Launch, LaunchStats, Limits, ParamLayout, Progress, Schedule,
    SharedVariable, Sink, Threads,
};
pub use device::{Device, ModuleId, State};
pub use error::{Absent, ExecutionPoint, LaunchError, LoadError, On, Waiting};
pub use memory::{Memory, Region};
pub use module::{Image, Placement};
pub use random::Random;
pub use requests::{Child, Request, Requests, Wanted};
pub use strays::{Stray, Strays};
pub use tallies::Tallies;
pub use texture::{Texture, Textures};
