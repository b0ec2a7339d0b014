//! The only door to a CUDA driver, real or simulated.
//!
//! * [`sys`]: the driver API's codes, layouts and the one table of entry points.
//! * [`gpu`]: a context of a driver, as the checker uses it beside the program.
//! * [`client`]: a program of our own on a driver.
//! * [`pointer`]: pointers that a program hands to an entry point; [`load`]: the images that it hands to a load.
//! * [`nvtx`]: the ranges that a program has open.
//! * [`steps`]: launches in steps, before `cuLaunchKernel`.
//! * [`probe`]: whether a driver works.
//! * [`Device`]: what the runtime needs of a device, whichever it is.

pub mod client;
mod device;
pub mod gpu;
pub mod load;
pub mod nvtx;
pub mod pointer;
pub mod probe;
pub mod steps;
pub mod sys;

pub use device::{Device, DeviceError};
