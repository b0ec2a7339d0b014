//! The tables of docs/verdicts.md and docs/verify.md are what the files of `tests/race` state, which their own tests hold.

use std::path::Path;

use filetests::table::{self, Section};

#[test]
fn the_tables_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in table::pages(&root.join("tests/race")).unwrap() {
        let text = std::fs::read_to_string(root.join(page.path)).unwrap();
        let current = table::put_in(&text, &page.sections).unwrap();
        let differs = text.lines().zip(current.lines()).find(|(a, b)| a != b);
        assert!(
            text == current,
            "{}: run `cargo xtask verdicts`: {differs:?}",
            page.path
        );
    }
}

#[test]
fn a_page_without_a_section_is_refused() {
    let section = [Section {
        name: "verdicts",
        text: "text\n".to_owned(),
    }];
    assert!(table::put_in("no markers", &section).is_err());
    let page = "a\n<!-- verdicts: cargo xtask verdicts -->\nold\n<!-- end of verdicts -->\nb\n";
    let put = table::put_in(page, &section).unwrap();
    assert_eq!(put, page.replace("old", "text"));
}
