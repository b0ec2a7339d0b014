//! The source tree keeps its own rules (`cargo xtask tidy`).

use xtask::workspace::Workspace;
use xtask::{api_table, tidy};

#[test]
fn the_tree_is_tidy() {
    let workspace = Workspace::locate().expect("cargo metadata works where cargo test does");
    let problems = tidy::check(&workspace).expect("the tree can be read");
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn the_tables_of_functions_are_current() {
    let workspace = Workspace::locate().expect("cargo metadata works where cargo test does");
    let current = api_table::run(&workspace, true).expect("every function is found");
    assert!(current, "run `cargo xtask api-table`");
}
