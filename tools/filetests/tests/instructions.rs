//! docs/instructions.md is what the code says.

use std::path::Path;

#[test]
fn the_page_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = filetests::instructions::page(&root.join("tests/exec")).unwrap();
    let current = std::fs::read_to_string(root.join("docs/instructions.md")).unwrap_or_default();
    let differs = page.lines().zip(current.lines()).find(|(a, b)| a != b);
    assert!(
        page == current,
        "run `cargo xtask instructions`: {differs:?}"
    );
}
