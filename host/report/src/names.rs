//! Names of functions as a person wrote them, and without what varies between instantiations.

/// A name as a person wrote it; the mangled one when it cannot be demangled.
pub fn demangle(name: &str) -> String {
    // Without the prefix a short name would pass for a type: `m` for `unsigned long`.
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(text) = symbol.demangle(&cpp_demangle::DemangleOptions::default())
    {
        return text;
    }
    rustc_demangle::try_demangle(name).map_or_else(|_| name.to_owned(), |name| format!("{name:#}"))
}

/// The name without parameters, template arguments and return type: `void f<int>(int*)` is `f`.
pub fn base(demangled: &str) -> &str {
    const UNNAMED: &str = "(anonymous namespace)";
    let mut start = 0;
    let mut depth = 0u32;
    let mut skip_to = 0;
    let mut end = None;
    for (at, c) in demangled.char_indices() {
        if at < skip_to {
            continue;
        }
        match c {
            _ if demangled[at..].starts_with(UNNAMED) => skip_to = at + UNNAMED.len(),
            '<' => {
                if depth == 0 {
                    end.get_or_insert(at);
                }
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            // What stood before a space outside of brackets was the return type.
            ' ' if depth == 0 => (start, end) = (at + 1, None),
            // A return type that is an expression.
            '(' if depth == 0 && demangled[..at].ends_with("decltype ") => {
                skip_to = at + group(&demangled[at..]);
            }
            '(' if depth == 0 => {
                end.get_or_insert(at);
                break;
            }
            _ => {}
        }
    }
    let name = &demangled[start..end.unwrap_or(demangled.len())];
    if name.is_empty() { demangled } else { name }
}

/// Length of the parentheses that a text begins with, and of what is between them.
fn group(text: &str) -> usize {
    let mut depth = 0u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_return_types_go() {
        for (full, name) in [
            ("histogram(int*, int)", "histogram"),
            ("void scale<float, 4>(float*)", "scale"),
            ("unsigned int a::b::f<c<int> >(d<e>)", "a::b::f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("decltype ({parm#2}({parm#1}, 1)) a::f<b>(c)", "a::f"),
            ("decltype (", "("),
            ("mp", "mp"),
            ("", ""),
            ("<", "<"),
        ] {
            assert_eq!(base(full), name, "{full}");
        }
    }

    #[test]
    fn only_mangled_names_are_demangled() {
        for (name, text) in [
            ("_Z1kPi", "k(int*)"),
            ("m", "m"),
            ("Pi", "Pi"),
            ("_RNvC1a1k", "a::k"),
            ("_Zk", "_Zk"),
        ] {
            assert_eq!(demangle(name), text);
        }
    }
}
