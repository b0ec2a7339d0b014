//! Numbers, nouns and lists in sentences.

use std::fmt::Write;

use events::Scope;

/// Appends to a text.
pub(crate) fn put_in(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}

/// The first few of a list.
pub(crate) fn listed(all: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = all
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if all.len() > SHOWN {
        put_in(&mut text, format_args!("; and {} more", all.len() - SHOWN));
    }
    text
}

/// The first characters of a name. Names of template instances can have thousands.
pub(crate) fn shortened(name: &str) -> String {
    const SHOWN: usize = 100;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// `a`, `a, and b`, `a, b, and c`.
pub(crate) fn joined(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{}, and {last}", most.join(", ")),
    }
}

/// `1 race`, `2 races`, `1,204 launches`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = match (count, noun.ends_with("ch") || noun.ends_with("ss")) {
        (1, _) => "",
        (_, true) => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", number(count))
}

/// With commas between thousands.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The scope in CUDA's words.
pub(crate) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "block",
        Scope::Cluster => "cluster",
        Scope::Gpu => "device",
        Scope::Sys => "system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_nouns() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_204), "1,204");
        assert_eq!(number(10_000_000), "10,000,000");
        assert_eq!(counted(1, "launch"), "1 launch");
        assert_eq!(counted(2, "launch"), "2 launches");
        assert_eq!(counted(0, "race"), "0 races");
        assert_eq!(counted(3, "access"), "3 accesses");
    }
}
