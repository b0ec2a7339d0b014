//! The embedded SIMT device: runs PTX and has never heard of races.

mod config;
mod device;
mod error;
pub mod memory;
mod observer;

pub use config::{
    DeviceConfig, KernelInfo, Launch, LaunchStats, Limits, ParamLayout, Schedule, Sink,
};
pub use device::{Device, ModuleId};
pub use error::{LaunchError, LoadError, Place, Waiting};
pub use memory::Memory;
pub use observer::{AccessKind, Executing, Observer, Unobserved};
