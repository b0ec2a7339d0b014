//! Rewrites the PTX on standard input.
use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let (module, _) = ptx::parse(&text);
    let rewritten = rewrite::rewrite(&module, &rewrite::Config::default());
    std::io::stdout().write_all(rewritten.text.as_bytes())
}
