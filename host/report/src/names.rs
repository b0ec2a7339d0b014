//! Names of functions as a person wrote them, and without what varies between instantiations.

use std::ops::Range;

/// What stands before the name of a variable where others say which call has made memory.
pub const VARIABLE: &str = "variable ";

/// What numba makes of `<locals>.` in the name of a function that is defined in another.
const LOCALS: &str = "_3clocals_3e::";

/// A name as a person wrote it; the mangled one when it cannot be demangled.
pub fn demangle(name: &str) -> String {
    // Without the prefix a short name would pass for a type: `m` for `unsigned long`.
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(text) = symbol.demangle(&cpp_demangle::DemangleOptions::default())
    {
        return without_tags(text).replace(LOCALS, "");
    }
    rustc_demangle::try_demangle(name).map_or_else(|_| name.to_owned(), |name| format!("{name:#}"))
}

/// A name without ABI tags, which compilers add: numba writes versions and options of the compilation there.
fn without_tags(mut name: String) -> String {
    const TAG: &str = "[abi:";
    while let Some(start) = name.find(TAG) {
        let end = start + group(&name[start..], ['[', ']']);
        name.replace_range(start..end, "");
    }
    name
}

/// What made memory, as logs have it, with the name of a variable as a person wrote it.
pub(crate) fn made(api: &str) -> String {
    match api.strip_prefix(VARIABLE) {
        Some(symbol) => format!("{VARIABLE}{}", demangle(symbol)),
        None => api.to_owned(),
    }
}

/// A variable's name as its own function, or the whole program, has it.
pub fn variable(symbol: &str) -> String {
    let name = demangle(symbol);
    match symbol.starts_with("_ZZ") {
        true => name.rsplit("::").next().unwrap_or(&name).to_owned(),
        false => name,
    }
}

/// A text that may name functions as compilers do, with the names as a person wrote them.
pub fn readable(text: &str) -> String {
    let mut readable = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        readable += &demangle(&rest[..end]);
        rest = &rest[end..];
        let next = rest.find(is_part).unwrap_or(rest.len());
        readable += &rest[..next];
        rest = &rest[next..];
    }
    readable
}

/// Whether `name` names the function of which the mangled name is known: as that, or in one of its [`forms`].
pub fn is_called(mangled: &str, name: &str) -> bool {
    mangled == name || forms(&demangle(mangled)).contains(&name)
}

/// The demangled name of a function, and what it is also called: without parameters, return type, template arguments
/// and what it is declared in.
pub(crate) fn forms(demangled: &str) -> [&str; 6] {
    let Range { start, end } = base_range(demangled);
    let arguments = demangled[end..].starts_with('<');
    let instance = end
        + if arguments {
            group(&demangled[end..], ['<', '>'])
        } else {
            0
        };
    // Namespaces, classes and functions that it is declared in.
    let inner = start
        + demangled[start..end]
            .rfind("::")
            .map_or(0, |at| at + "::".len());
    let parts = [
        0..demangled.len(),
        0..instance,
        start..instance,
        start..end,
        inner..instance,
        inner..end,
    ];
    parts.map(|part| &demangled[part])
}

/// The name without parameters, template arguments and return type: `void f<int>(int*)` is `f`.
pub fn base(demangled: &str) -> &str {
    &demangled[base_range(demangled)]
}

/// Where that stands.
fn base_range(demangled: &str) -> Range<usize> {
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
                skip_to = at + group(&demangled[at..], ['(', ')']);
            }
            '(' if depth == 0 => {
                end.get_or_insert(at);
                break;
            }
            _ => {}
        }
    }
    let all = 0..demangled.len();
    let name = start..end.unwrap_or(all.end);
    if name.is_empty() { all } else { name }
}

/// Length of the brackets that a text begins with, and of what is between them.
fn group(text: &str, [open, close]: [char; 2]) -> usize {
    let mut depth = 0u32;
    for (at, c) in text.char_indices() {
        depth += u32::from(c == open);
        if c == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + c.len_utf8();
            }
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_called_by_more_than_their_symbols() {
        let symbol = "_Z9transposeIfLi16EEvPKT_PS0_i";
        for name in [
            symbol,
            "void transpose<float, 16>(float const*, float*, int)",
            "void transpose<float, 16>",
            "transpose<float, 16>",
            "transpose",
        ] {
            assert!(is_called(symbol, name), "{name}");
        }
        for name in ["trans", "float", "transpose<float, 8>", "", "void"] {
            assert!(!is_called(symbol, name), "{name}");
        }
        assert!(is_called("_Z1ii", "i") && !is_called("_Z1ii", "void"));
        assert!(is_called("_Z1iIiEvT_", "i<int>") && is_called("_Z1iIiEvT_", "i"));
        assert!(is_called("k", "k") && !is_called("k", "kk"));
        for name in ["ns::k", "ns::k()", "k"] {
            assert!(is_called("_ZN2ns1kEv", name), "{name}");
        }
        assert!(!is_called("_ZN2ns1kEv", "ns") && !is_called("_ZN2ns1kEv", "::k"));
    }

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
    fn names_within_texts_are_demangled() {
        for (text, shown) in [
            (
                "k.ptx: _Z5otherPi is defined nowhere; link it",
                "k.ptx: other(int*) is defined nowhere; link it",
            ),
            ("`_Z1kPi`, _Z1kPi.", "`k(int*)`, k(int*)."),
            ("a call of vprintf, line 3", "a call of vprintf, line 3"),
            ("é _Z ü", "é _Z ü"),
            ("", ""),
        ] {
            assert_eq!(readable(text), shown);
        }
    }

    #[test]
    fn only_mangled_names_are_demangled() {
        for (name, text) in [
            ("_Z1kPi", "k(int*)"),
            ("m", "m"),
            ("Pi", "Pi"),
            ("_RNvC1a1k", "a::k"),
            (
                "_ZN8__main__5shiftB2v1B3c51E5ArrayIfLi1EE",
                "__main__::shift(Array<float, 1>)",
            ),
            (
                "_ZN8__main__4make12_3clocals_3e5shiftB2v1B3c51E5ArrayIfLi1EE",
                "__main__::make::shift(Array<float, 1>)",
            ),
            ("_Zk", "_Zk"),
        ] {
            assert_eq!(demangle(name), text);
        }
    }
}
