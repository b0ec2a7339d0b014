//! The functions of `check.ptx`: which of them a module needs, and their lines.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{PREFIX, PTX};

/// Every function of the text.
static ALL: LazyLock<Functions> = LazyLock::new(Functions::read);

#[derive(Default)]
struct Functions {
    /// Declarations and definitions in the order of the text, without their linkage.
    parts: Vec<Part>,
    /// The lines of each definition.
    bodies: HashMap<&'static str, Vec<&'static str>>,
}

struct Part {
    name: &'static str,
    text: String,
    /// Functions that a definition calls.
    calls: Vec<&'static str>,
}

impl Functions {
    fn read() -> Self {
        let mut all = Self::default();
        let parts = PTX
            .split("\t// .globl")
            .flat_map(|part| part.split_inclusive("\n}\n"))
            .flat_map(|part| part.split_inclusive("\n;\n"));
        for part in parts {
            let Some((_, part)) = part.split_once(".visible ") else {
                continue;
            };
            let mut names = names(part);
            let Some(name) = names.next() else {
                continue;
            };
            let mut calls = Vec::new();
            if let Some((_, body)) = part.split_once("\n{\n") {
                calls.extend(names.filter(|other| *other != name));
                all.bodies
                    .insert(name, body.lines().map(str::trim).collect());
            }
            all.parts.push(Part {
                name,
                text: part.to_owned(),
                calls,
            });
        }
        // Names of parameters begin with that of their function.
        for part in &mut all.parts {
            part.calls.retain(|name| all.bodies.contains_key(name));
        }
        all
    }
}

/// The names with our prefix in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let other = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$';
    text.match_indices(PREFIX).map(move |(at, _)| {
        let name = &text[at..];
        &name[..name.find(other).unwrap_or(name.len())]
    })
}

/// The functions that pieces of code call, and those that these call, ready to stand in any module of sm_70 or later.
///
/// Linkage is dropped, so that modules can be linked together.
pub fn functions<'a>(callers: impl IntoIterator<Item = &'a str>) -> String {
    let called = |name| ALL.bodies.get_key_value(name).map(|(name, _)| *name);
    let mut wanted: Vec<&str> = Vec::new();
    for caller in callers {
        for name in names(caller).filter_map(called) {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
    }
    let mut done = 0;
    while let Some(&name) = wanted.get(done) {
        done += 1;
        for part in ALL.parts.iter().filter(|part| part.name == name) {
            for callee in &part.calls {
                if !wanted.contains(callee) {
                    wanted.push(callee);
                }
            }
        }
    }
    let parts = ALL.parts.iter();
    parts
        .filter(|part| wanted.contains(&part.name))
        .map(|part| part.text.as_str())
        .collect()
}

/// The lines of a function, without space around them.
pub(crate) fn body(name: &str) -> impl Iterator<Item = &'static str> {
    ALL.bodies.get(name).into_iter().flatten().copied()
}

/// Called functions for modules below PTX 6.3, which lack `nanosleep`: those who wait do not sleep.
pub fn without_sleep(functions: &str) -> String {
    let lines = functions.split_inclusive('\n');
    lines.filter(|line| !line.contains("nanosleep")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions that the text of `functions` defines.
    fn defined(text: &str) -> Vec<&str> {
        let heads = text.split(".func").skip(1);
        let mut found: Vec<&str> = heads.filter_map(|head| names(head).next()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn what_is_called_is_there_and_nothing_else() {
        let text = functions(["call __cudarun_load, (a);", "mov.u64 %a, __cudarun_me;"]);
        assert_eq!(
            defined(&text),
            [
                "__cudarun_await_witness",
                "__cudarun_further",
                "__cudarun_load",
                "__cudarun_slow"
            ]
        );
        assert!(!text.contains(".visible"));
        assert_eq!(functions(["no call"]), "");
        // A name that begins like another is another.
        let text = functions(["__cudarun_journal_barrier_made"]);
        assert_eq!(defined(&text), ["__cudarun_journal_barrier_made"]);
    }

    /// In the order of the text, where what is called is declared before.
    #[test]
    fn what_calls_need_is_declared_before_them() {
        let every: Vec<&str> = ALL.bodies.keys().copied().collect();
        assert!(every.len() > 20, "{every:?}");
        for name in every {
            let text = functions([name]);
            for (at, _) in text.match_indices("\tcall") {
                let callee = names(&text[at..]).next().unwrap_or_default();
                assert!(defined(&text[..at]).contains(&callee), "{name}: {callee}");
            }
        }
    }

    #[test]
    fn who_waits_sleeps_where_there_is_an_instruction_for_it() {
        let text = functions(["__cudarun_journal_lock"]);
        let without = without_sleep(&text);
        let lines = |text: &str| text.lines().count();
        let sleeps = text.matches("nanosleep.u32").count();
        assert!(sleeps > 0);
        assert_eq!(lines(&without) + sleeps, lines(&text));
        assert!(!without.contains("nanosleep"));
    }
}
