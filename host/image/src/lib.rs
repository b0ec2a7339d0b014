//! The file formats of device code: what nvcc leaves in an executable.
//!
//! * [`fatbin`]: fat binaries, with PTX and machine code for several architectures.
//! * [`elf`]: executables, libraries and cubins.

pub mod elf;
pub mod fatbin;
