//! Project automation: toolkit, dist, demo, test, tidy, codegen.
fn main() {}
