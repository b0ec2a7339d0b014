//! Slowdown, memory and races per program.
fn main() {}
