//! `libcudart.so.12` and `.13`: the CUDA runtime API over the driver API of the `libcuda.so.1` that
//! lies beside them.
//!
//! One source for both versions; `cargo xtask dist` links it twice, with the version node that
//! programs ask for. What differs between the two (device properties) has different names.
//! Source: the public headers of CUDA 12.8 and 13.0, and what nvcc's host code calls.
//!
//! Departures from NVIDIA's library: one device; streams run in issue order; mipmapped arrays, interoperability and IPC are stubs that say so.
//! Nothing needs to run at exit: the driver writes as things happen.
#![allow(
    unreachable_pub,
    reason = "exported by name from the shared library, not by path"
)]
#![allow(
    non_snake_case,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::not_unsafe_ptr_arg_deref,
    reason = "functions keep the names and signatures of the C headers, which document them"
)]

mod array;
mod capture;
mod context;
mod device;
mod entry;
mod error;
mod function;
mod graph;
mod launch;
mod library;
mod memory;
mod properties;
mod registration;
mod stream;
mod stubs;
mod texture;
mod volume;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// names.txt lists what NVIDIA's libraries export; each name is ours exactly once.
    #[test]
    fn every_name_of_the_real_library_is_exported() {
        let sources = [
            include_str!("array.rs"),
            include_str!("capture.rs"),
            include_str!("device.rs"),
            include_str!("error.rs"),
            include_str!("function.rs"),
            include_str!("graph.rs"),
            include_str!("launch.rs"),
            include_str!("library.rs"),
            include_str!("memory.rs"),
            include_str!("properties.rs"),
            include_str!("registration.rs"),
            include_str!("stream.rs"),
            include_str!("stubs.rs"),
            include_str!("texture.rs"),
            include_str!("volume.rs"),
        ];
        let words: Vec<&str> = sources
            .iter()
            .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'))
            .collect();
        let words: BTreeSet<&str> = words.into_iter().collect();
        let names: Vec<&str> = include_str!("../names.txt").lines().collect();
        assert!(names.len() > 400);
        let missing: Vec<_> = names.iter().filter(|name| !words.contains(*name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
