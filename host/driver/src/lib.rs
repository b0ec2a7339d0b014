//! The only door to a CUDA driver, real or simulated; memory and file formats underneath.
//!
//! * [`sys`]: the driver API's codes, layouts and the one table of entry points.
//! * [`mem`]: host mappings that a simulated device may share with the program.
//! * [`fatbin`], [`elf`]: what nvcc leaves in an executable.
//! * [`gpu`]: a context of a driver, as the checker uses it beside the program.
//! * [`client`]: a program of our own on a driver.
//! * [`pointer`]: pointers that a program hands to an entry point; [`image`]: what it hands to a load.
//! * [`steps`]: launches in steps, before `cuLaunchKernel`.
//! * [`probe`]: whether a driver works.
//! * [`interrupts`]: signals that end a process which has something to write down first.
//! * [`signals`]: of a process that waits for another one.
//! * [`terminal`]: standard error, if it is one.
//! * [`Device`]: what the runtime needs of a device, whichever it is.

pub mod client;
mod device;
pub mod elf;
pub mod fatbin;
pub mod gpu;
pub mod image;
pub mod interrupts;
pub mod mem;
pub mod pointer;
pub mod probe;
pub mod signals;
pub mod steps;
pub mod sys;
pub mod terminal;

pub use device::{Device, DeviceError};
