//! Every `.ptx` in the tree: `print(parse(t)) == t` and `erase(rewrite(m)) == m`.

use anyhow::{Result, ensure};

/// Parses, prints, rewrites and erases one text.
pub fn round_trip(text: &str) -> Result<()> {
    let (module, _) = ptx::parse(text);
    ensure!(
        module.text == text,
        "printing the parsed module changes its text"
    );
    let rewritten = rewrite::rewrite(&module, &rewrite::Config::default());
    ensure!(
        rewrite::erase(&rewritten.text) == text,
        "erasing the checks does not give the original text back"
    );
    let (again, _) = ptx::parse(&rewritten.text);
    ensure!(
        ptx::print::module(&again) == rewritten.text,
        "printing the rewritten module changes its text"
    );
    Ok(())
}
