//! Modules of a given body, rewritten.

use rewrite::{Config, Rewritten, rewrite};

pub(crate) const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

pub(crate) fn rewritten(body: &str) -> Rewritten {
    rewritten_with(body, &Config::default())
}

pub(crate) fn rewritten_with(body: &str, config: &Config) -> Rewritten {
    let text = format!("{HEADER}{body}");
    let (module, diagnostics) = ptx::parse(&text);
    assert!(diagnostics.iter().all(|d| d.unknown), "{diagnostics:?}");
    let rewritten = rewrite(&module, config);
    assert_eq!(rewrite::erase(&rewritten.text), text);
    rewritten
}
