//! The race rule for the GPU: Rust source compiled to PTX, and its symbols.
