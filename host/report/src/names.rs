//! Names of functions as a person wrote them, and without what varies between instantiations.

use std::borrow::Cow;
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
    mangled == name || forms(&demangle(mangled)).iter().any(|form| form == name)
}

/// The demangled name of a function, and what it is also called: without parameters, return type and template arguments,
/// and without some or all of what it is declared in.
pub(crate) fn forms(demangled: &str) -> Vec<Cow<'_, str>> {
    let Range { start, end } = name_range(demangled);
    let mut forms = vec![demangled.into(), demangled[..end].into()];
    for name in [demangled[start..end].into(), base(demangled)] {
        // Behind namespaces, classes and functions that it is declared in.
        let inner = parts(&name).filter_map(|(at, part)| match part {
            Part::Scope => Some(at + "::".len()),
            _ => None,
        });
        let inner: Vec<Cow<'_, str>> = inner.map(|at| name[at..].to_owned().into()).collect();
        forms.push(name);
        forms.extend(inner);
    }
    forms
}

/// The name without parameters, template arguments and return type: `void A<int>::f<int>(int*)` is `A::f`.
pub fn base(demangled: &str) -> Cow<'_, str> {
    let name = &demangled[name_range(demangled)];
    let arguments = parts(name).filter_map(|(at, part)| match part {
        Part::Arguments(length) => Some(at..at + length),
        _ => None,
    });
    let mut left = Cow::Borrowed(name);
    for range in arguments.collect::<Vec<_>>().into_iter().rev() {
        left.to_mut().replace_range(range, "");
    }
    if left.is_empty() {
        return demangled.into();
    }
    left
}

/// Where the name of a function stands, with template arguments, but without return type and parameters.
fn name_range(demangled: &str) -> Range<usize> {
    let mut start = 0;
    let mut end = demangled.len();
    for (at, part) in parts(demangled) {
        match part {
            // What stood before it was the return type.
            Part::Space => start = at + 1,
            Part::Parameters => {
                end = at;
                break;
            }
            Part::Scope | Part::Arguments(_) => {}
        }
    }
    if start < end {
        start..end
    } else {
        0..demangled.len()
    }
}

/// What a demangled name has outside of brackets.
#[derive(Clone, Copy)]
enum Part {
    /// `::`
    Scope,
    Space,
    /// Template arguments of this length, with their brackets.
    Arguments(usize),
    /// Where parameters begin.
    Parameters,
}

/// The parts of a name, and where they stand.
fn parts(name: &str) -> impl Iterator<Item = (usize, Part)> {
    const UNNAMED: &str = "(anonymous namespace)";
    const OPERATOR: &str = "operator";
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &name[at..];
            let c = rest.chars().next()?;
            let found = at;
            let before = &name[..at];
            let begins = before.is_empty() || before.ends_with([' ', ':']);
            let part = match c {
                _ if rest.starts_with(UNNAMED) => {
                    at += UNNAMED.len();
                    continue;
                }
                // Whatever an operator is called is no bracket.
                'o' if begins && rest.starts_with(OPERATOR) => {
                    let symbol = &rest[OPERATOR.len()..];
                    at += OPERATOR.len();
                    at += match symbol.strip_prefix("()") {
                        Some(_) => "()".len(),
                        None => symbol.find(['(', ' ']).unwrap_or(symbol.len()),
                    };
                    continue;
                }
                '{' => {
                    at += group(rest, ['{', '}']);
                    continue;
                }
                // A return type that is an expression.
                '(' if before.ends_with("decltype ") => {
                    at += group(rest, ['(', ')']);
                    continue;
                }
                ':' if rest.starts_with("::") => Part::Scope,
                ' ' => Part::Space,
                '<' => Part::Arguments(group(rest, ['<', '>'])),
                '(' => Part::Parameters,
                c => {
                    at += c.len_utf8();
                    continue;
                }
            };
            at += match part {
                Part::Scope => "::".len(),
                Part::Space | Part::Parameters => 1,
                Part::Arguments(length) => length,
            };
            return Some((found, part));
        }
    })
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
        for name in ["a::b::k", "b::k", "k"] {
            assert!(is_called("_ZN1a1b1kEv", name), "{name}");
        }
        assert!(!is_called("_ZN1a1b1kEv", "a::k"));
        for name in [
            "void ns::A<int>::f<float>(float*)",
            "ns::A<int>::f<float>",
            "A<int>::f<float>",
            "f<float>",
            "ns::A::f",
            "A::f",
            "f",
        ] {
            assert!(is_called("_ZN2ns1AIiE1fIfEEvPT_", name), "{name}");
        }
        for name in ["ns::A", "A", "A<int>", "ns::A<int>::f"] {
            assert!(!is_called("_ZN2ns1AIiE1fIfEEvPT_", name), "{name}");
        }
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
            (
                "BlockScan<long, 128, Plus>::inclusive(long)",
                "BlockScan::inclusive",
            ),
            ("void ns::A<int>::f<b<c> >(float*)", "ns::A::f"),
            ("ns::A<int>::operator()(int*)", "ns::A::operator()"),
            ("bool ns::A<int>::operator<(int) const", "ns::A::operator<"),
            (
                "main::{lambda(int*, a<b>)#1}::operator()(int*) const",
                "main::{lambda(int*, a<b>)#1}::operator()",
            ),
            ("f(int) const", "f"),
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
