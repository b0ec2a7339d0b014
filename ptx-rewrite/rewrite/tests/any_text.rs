//! Damaged modules: rewriting never panics, and what it inserts comes out again.
//!
//! `FUZZ_ROUNDS` says how many modules to damage, 512 without it.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rewrite::{Config, erase, rewrite};

/// The golden inputs in one text each.
fn modules() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folders = fs::read_dir(root).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    let inputs = paths.filter(|path| !path.to_string_lossy().ends_with(".out.ptx"));
    inputs
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// What is cut out, and what is put there instead.
fn damage() -> impl Strategy<Value = (f64, usize, &'static str)> {
    let pieces = prop::sample::select(vec![
        "",
        "(",
        ")",
        "{",
        "}",
        ";",
        ",",
        "[",
        "@",
        "@!%p ",
        ".param",
        ".func f",
        "call f",
        "bar.sync 0;",
        "%value",
        "/*",
        "//",
        "\"",
        "é",
        "st.global.u8 [%data], 1;",
        "ret",
        "1",
        "<3>",
        ":",
        "\0",
    ]);
    (0.0..1.0, 0usize..12, pieces)
}

fn rounds() -> u32 {
    let rounds = std::env::var("FUZZ_ROUNDS").ok();
    rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(512)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rewriting_survives_damage(which in any::<prop::sample::Index>(), wounds in prop::collection::vec(damage(), 1..5)) {
        let modules = modules();
        let mut text = which.get(&modules).clone();
        for (place, cut, piece) in wounds {
            let near = |at: usize, text: &str| (at..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap();
            let start = near((place * text.len() as f64) as usize, &text);
            let end = near((start + cut).min(text.len()), &text);
            text.replace_range(start..end, piece);
        }
        let (module, _) = ptx::parse(&text);
        for journal in [false, true] {
            let config = Config { journal, ..Config::default() };
            prop_assert!(erase(&rewrite(&module, &config).text) == text);
        }
    }
}
