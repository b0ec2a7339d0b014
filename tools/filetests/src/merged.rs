//! Several texts as one module, which an assembler reads in one go: starting it takes longer than a small text.

use std::collections::HashSet;

use ptx::ast::{Item, Linkage, Module, Span};
use ptx::lexer::{self, TokenKind};

/// The texts in as few modules as their heads (`.version`, `.target`) allow, each text once. What a text defines gets a
/// name of its own, which differs from the text's by a number at its end.
pub fn modules<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut modules: Vec<(String, String)> = Vec::new();
    for (number, text) in texts.into_iter().enumerate() {
        if !seen.insert(text) {
            continue;
        }
        let (module, _) = ptx::parse(text);
        let Some((head, rest)) = parted(&module) else {
            modules.push((text.to_owned(), String::new()));
            continue;
        };
        let rest = renamed(rest, &defined(&module), number);
        match modules.iter_mut().find(|(known, _)| known == head) {
            Some((_, together)) => together.push_str(&rest),
            None => modules.push((head.to_owned(), rest)),
        }
    }
    modules
        .into_iter()
        .map(|(head, rest)| head + &rest)
        .collect()
}

/// The text up to the last directive, without comments before the first, and what comes behind it; none if directives
/// stand between functions, or something that has numbers or names of its own.
fn parted(module: &Module) -> Option<(&str, &str)> {
    let is_directive = |item: &Item| matches!(item, Item::Directive(_));
    let count = module
        .items
        .iter()
        .take_while(|item| is_directive(item))
        .count();
    let (head, rest) = module.items.split_at(count);
    let known = |item: &Item| matches!(item, Item::Function(_) | Item::Variable(_));
    let (Item::Directive(first), Item::Directive(last)) = (head.first()?, head.last()?) else {
        return None;
    };
    let plain = rest.iter().all(known) && module.files.is_empty();
    let (start, end) = (first.start, last.end);
    plain.then(|| {
        let head = module.slice(Span { start, end });
        (head, &module.text[end as usize..])
    })
}

/// The names of functions and variables, apart from external functions.
fn defined(module: &Module) -> HashSet<&str> {
    let names = module.items.iter().filter_map(|item| match item {
        Item::Function(function) if function.linkage != Linkage::Extern => Some(&function.name),
        Item::Variable(variable) => Some(&variable.name),
        _ => None,
    });
    names.map(|name| name.as_str()).collect()
}

fn renamed(text: &str, names: &HashSet<&str>, number: usize) -> String {
    let mut out = String::new();
    for token in lexer::tokens(text) {
        let word = &text[token.start as usize..token.end as usize];
        out.push_str(word);
        if token.kind == TokenKind::Name && names.contains(word) {
            out.push_str(&format!("_{number}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64";

    #[test]
    fn what_texts_define_gets_names_of_its_own() {
        let of = |rest: &str| format!("// comment\n{HEAD}\n{rest}");
        let texts = [
            of(".global .u32 g;\n.entry k() { .reg .u64 %k; mov.u64 %k, g; ret; }\n"),
            of(".extern .func f();\n.entry k() { call.uni f; ret; }\n"),
            of(".entry other() { ret; }\n").replace("sm_90", "sm_80"),
        ];
        let twice = texts.iter().chain(&texts).map(String::as_str);
        let expected = [
            format!(
                "{HEAD}\n.global .u32 g_0;\n.entry k_0() {{ .reg .u64 %k; mov.u64 %k, g_0; ret; }}\n\n\
                 .extern .func f();\n.entry k_1() {{ call.uni f; ret; }}\n"
            ),
            format!("{HEAD}\n.entry other_2() {{ ret; }}\n").replace("sm_90", "sm_80"),
        ];
        assert_eq!(modules(twice), expected);
    }

    #[test]
    fn a_text_with_numbered_files_stands_alone() {
        let text = format!("{HEAD}\n.entry k() {{ .loc 1 2 3 ret; }}\n.file 1 \"a.cu\"\n");
        assert_eq!(modules([text.as_str()]), [text.as_str()]);
    }
}
