//! The cudarun-check command.
fn main() {}
