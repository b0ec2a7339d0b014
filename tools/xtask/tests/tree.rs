//! The source tree keeps its own rules (`cargo xtask tidy`).

use xtask::tidy;
use xtask::workspace::Workspace;

#[test]
fn the_tree_is_tidy() {
    let workspace = Workspace::locate().expect("cargo metadata works where cargo test does");
    let problems = tidy::check(&workspace).expect("the tree can be read");
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
