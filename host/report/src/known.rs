//! Races that are known and do not count.
//!
//! The list is data (`known.toml`), shipped with the tool: races inside NVIDIA's headers. Its entries have the shape of
//! suppressions that users write, so that both can be one mechanism.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::model::{Access, Level, Race, Report};
use crate::source::Sources;
use crate::words::counted;

const SHIPPED: &str = include_str!("known.toml");

/// What the header of an entry in a list is.
const ENTRY: &str = "[[suppress]]";

/// An entry: what it holds for, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suppression {
    rule: Option<String>,
    id: Option<String>,
    kernel: Option<String>,
    function: Option<String>,
    file: Option<String>,
    reason: String,
    /// By what the program orders its threads there, if it does.
    orders: Option<String>,
    /// What a program can order them by so that the order is decided.
    instead: Option<String>,
}

/// An entry of a list of races that do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuppressedBy {
    /// The list: `shipped` with the tool.
    pub source: String,
    /// The file that both accesses are made in.
    pub file: Option<String>,
    /// Why.
    pub reason: String,
}

/// Marks races that are known. What only they may order becomes possible; gives what of that could not be decided.
pub(crate) fn mark(races: &mut [Race]) -> Option<String> {
    // A test reads the list, so it makes sense.
    let shipped = parse(SHIPPED).unwrap_or_default();
    let mut orders: Vec<(&str, Option<&str>, HashSet<u64>)> = Vec::new();
    for race in &mut *races {
        let Some(entry) = shipped.iter().find(|entry| entry.holds_for(race)) else {
            continue;
        };
        race.suppressed_by = Some(SuppressedBy {
            source: "shipped".to_owned(),
            file: entry.file.clone(),
            reason: entry.reason.clone(),
        });
        if let Some(by) = &entry.orders {
            let instead = entry.instead.as_deref();
            orders.push((by, instead, race.launches.iter().copied().collect()));
        }
    }
    let mut undecided = (0, "");
    let unordered = ["CR001", "CR002", "CR003", "CR005", "CR006"];
    for race in races.iter_mut().filter(|race| race.suppressed_by.is_none()) {
        let mut theirs = orders
            .iter()
            .filter(|(.., launches)| race.launches.iter().all(|launch| launches.contains(launch)));
        if unordered.contains(&race.rule.as_str())
            && let Some((by, instead, _)) = theirs.next()
        {
            race.level = Level::Warning;
            race.certainty = "possible".to_owned();
            race.may_order.insert(0, (*by).to_owned());
            if let Some(instead) = instead {
                race.help = format!(
                    "{instead}, so that the checker can decide; if the pair is still reported then: {}",
                    race.help
                );
            }
            undecided = (undecided.0 + 1, *by);
        }
    }
    let (count, by) = undecided;
    (count > 0).then(|| {
        format!(
            "{} of accesses not decided: {by} may order the threads",
            counted(count, "pair")
        )
    })
}

/// One line for each reason, however many races it holds for.
pub(crate) fn lines(report: &Report, sources: &Sources) -> Vec<String> {
    let races = || report.races.iter();
    let mut reasons: Vec<&SuppressedBy> = Vec::new();
    for by in races().filter_map(|race| race.suppressed_by.as_ref()) {
        if !reasons.contains(&by) {
            reasons.push(by);
        }
    }
    let line = |by: &SuppressedBy| {
        let mut theirs = races().filter(|race| race.suppressed_by.as_ref() == Some(by));
        let pairs = counted(theirs.clone().count() as u64, "pair");
        let place = theirs.next().and_then(|race| {
            let frame = race.accesses[0].shown()?;
            let shown = sources.shown(&frame.file);
            Some(format!(", reached from {shown}:{}", frame.line))
        });
        let inside = by.file.as_ref().map_or(String::new(), |file| {
            format!("inside NVIDIA's {file}, not in your code: ")
        });
        format!(
            "info: known: {inside}{} ({pairs} of accesses{}; not counted)",
            by.reason,
            place.unwrap_or_default()
        )
    };
    reasons.into_iter().map(line).collect()
}

/// Reads a list.
///
/// # Errors
/// The line that makes no sense.
pub(crate) fn parse(text: &str) -> Result<Vec<Suppression>, String> {
    let mut all: Vec<Suppression> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == ENTRY {
            all.push(Suppression::default());
            continue;
        }
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| wrong("expected key = \"value\""))?;
        let value = value
            .trim()
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        let value = value.filter(|value| !value.contains(['"', '\\']));
        let value = value
            .ok_or_else(|| wrong("expected a text in quotes"))?
            .to_owned();
        let entry = all
            .last_mut()
            .ok_or_else(|| wrong("expected [[suppress]]"))?;
        match key.trim() {
            "rule" => entry.rule = Some(value),
            "id" => entry.id = Some(value),
            "kernel" => entry.kernel = Some(value),
            "function" => entry.function = Some(value),
            "file" => entry.file = Some(value),
            "reason" => entry.reason = value,
            "orders" => entry.orders = Some(value),
            "instead" => entry.instead = Some(value),
            other => return Err(wrong(&format!("unknown key {other}"))),
        }
    }
    match all.iter().position(|entry| entry.reason.is_empty()) {
        Some(index) => Err(format!("entry {}: the reason is missing", index + 1)),
        None => Ok(all),
    }
}

impl Suppression {
    fn holds_for(&self, race: &Race) -> bool {
        let fits = |pattern: &Option<String>, text: &str| {
            pattern
                .as_ref()
                .is_none_or(|pattern| matches(pattern, text))
        };
        fits(&self.rule, &race.rule)
            && fits(&self.id, &race.id)
            && fits(&self.kernel, &race.kernel.name)
            && race.accesses.iter().all(|access| self.holds_at(access))
    }

    /// Whether an access is made by the function in the file, and not by code that the program has handed to it.
    fn holds_at(&self, access: &Access) -> bool {
        let function = |name: &str| {
            let pattern = self.function.as_ref();
            pattern.is_none_or(|pattern| matches(pattern, name))
        };
        let Some(file) = &self.file else {
            return access.frames.iter().any(|frame| function(&frame.function));
        };
        let frames = access.frames.iter().enumerate();
        let mut there = frames.filter_map(|(index, frame)| {
            let folder = before(file, &frame.file).filter(|_| function(&frame.function))?;
            Some((index, folder))
        });
        there.any(|(index, folder)| {
            let inner = &access.frames[..index];
            inner.iter().all(|frame| frame.file.starts_with(folder))
        })
    }
}

/// What stands before the part of a path that a pattern matches, which is one from its end on.
fn before<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let starts = path.match_indices('/').map(|(at, _)| at + 1);
    let mut starts = std::iter::once(0).chain(starts);
    let start = starts.find(|&start| matches(pattern, &path[start..]))?;
    Some(&path[..start])
}

/// Whether a text is what a pattern says, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FrameAt;

    fn access(frames: &[(&str, &str)]) -> Access {
        let frames = frames.iter().map(|(file, function)| FrameAt {
            file: (*file).to_owned(),
            function: (*function).to_owned(),
            ..FrameAt::default()
        });
        Access {
            frames: frames.collect(),
            ..Access::default()
        }
    }

    fn race(first: &[(&str, &str)], second: &[(&str, &str)]) -> Race {
        Race {
            rule: "CR002".to_owned(),
            launches: vec![1],
            accesses: [access(first), access(second)],
            ..Race::default()
        }
    }

    #[test]
    fn the_shipped_list_makes_sense() {
        let all = parse(SHIPPED).unwrap();
        assert!(all.len() > 1);
        assert!(all.iter().all(|entry| entry.file.is_some()), "{all:?}");
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        for (text, said) in [
            ("rule = \"CR001\"", "line 1: expected [[suppress]]"),
            ("[[suppress]]\nrule: x", "line 2: expected key"),
            (
                "[[suppress]]\nrule = CR001",
                "line 2: expected a text in quotes",
            ),
            ("[[suppress]]\nrules = \"x\"", "line 2: unknown key rules"),
            (
                "[[suppress]]\nrule = \"x\"",
                "entry 1: the reason is missing",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("ab", "ab", true),
            ("ab", "abc", false),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2", false),
            ("*<*char,*", "f<unsigned char, x>", true),
            ("ab*b", "ab", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
        assert_eq!(before("b/c.h", "/a/b/c.h"), Some("/a/"));
        assert_eq!(before("b/c.h", "/a/xb/c.h"), None);
    }

    #[test]
    fn what_only_a_known_race_may_order_is_possible_and_said_to_be_undecided() {
        let header = "/usr/include/cuda/std/__atomic/functions/cuda_ptx_derived.h";
        let inside = [(
            header,
            "void cuda::std::__cuda_atomic_store<unsigned char, x>()",
        )];
        let known = Race {
            rule: "CR008".to_owned(),
            ..race(&inside, &inside)
        };
        let of = |launch| Race {
            level: Level::Error,
            launches: vec![launch],
            ..race(&[("/my.cu", "k()")], &[("/my.cu", "k()")])
        };
        let mut races = [known, of(1), of(2)];
        let said = mark(&mut races).unwrap_or_default();
        assert!(said.starts_with("1 pair of accesses not decided"), "{said}");
        assert!(races[0].suppressed_by.is_some());
        let levels = races.each_ref().map(|race| race.level);
        assert_eq!(levels[1..], [Level::Warning, Level::Error]);
        let help =
            "order the threads by atomics of 32 bits instead of 8, so that the checker can decide";
        assert!(races[1].help.starts_with(help), "{}", races[1].help);
        assert_eq!(mark(&mut races[2..]), None);
    }

    #[test]
    fn both_sides_must_be_inside() {
        let list = "[[suppress]]\nfile = \"lib.h\"\nfunction = \"lib::f*\"\nreason = \"x\"";
        let [entry] = &parse(list).unwrap()[..] else {
            panic!("one entry")
        };
        let inside = [
            ("/i/lib/deep.h", "lib::g()"),
            ("/i/lib.h", "lib::f()"),
            ("/my.cu", "k()"),
        ];
        let handed_in = [
            ("/my.cu", "op()"),
            ("/i/lib.h", "lib::f()"),
            ("/my.cu", "k()"),
        ];
        let beside = [("/my.cu", "k()")];
        let other = [("/i/lib.h", "lib::h()"), ("/my.cu", "k()")];
        assert!(entry.holds_for(&race(&inside, &inside)));
        for wrong in [&handed_in[..], &beside, &other] {
            assert!(!entry.holds_for(&race(&inside, wrong)), "{wrong:?}");
            assert!(!entry.holds_for(&race(wrong, &inside)), "{wrong:?}");
        }
    }
}
