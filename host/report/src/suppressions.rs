//! Lists of races that do not count: what users write, in TOML or in the lines of ThreadSanitizer, and what is shipped
//! with the tool, in the same TOML.

use std::ops::Range;

use regex::Regex;
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;
use toml::value::Datetime;

use crate::model::{Access, Race};
use crate::names::{VARIABLE, demangle, forms, variable};

/// The kinds of lines that ThreadSanitizer knows besides `race:`; they say nothing of races on a device.
const OTHERS: [&str; 5] = ["thread", "mutex", "signal", "deadlock", "called_from_lib"];

/// The entries of a file.
#[derive(Clone, Debug)]
pub struct List {
    /// The name of the file.
    pub(crate) source: String,
    pub(crate) entries: Vec<Entry>,
}

/// What is wrong with a file, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The line, from 1.
    pub line: usize,
    /// One line for people.
    pub what: String,
}

/// An entry: which races it is for, and why.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Where it stands in its file, from 1.
    pub(crate) line: usize,
    /// The entry in its own words.
    pub(crate) what: String,
    fits: Fits,
    pub(crate) reason: String,
    /// The last day on which it holds.
    pub(crate) expires: Option<String>,
    /// Of a shipped entry: by what the program orders its threads there, if it does.
    pub(crate) orders: Option<String>,
    /// Of a shipped entry: what a program can order them by so that the order is decided.
    pub(crate) instead: Option<String>,
}

#[derive(Clone, Debug)]
enum Fits {
    /// All keys that are there.
    Keys(Box<Keys>),
    /// A line of ThreadSanitizer; `top` looks only at the function and file that access memory.
    Line { pattern: Regex, top: bool },
}

/// The keys of an entry in TOML.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Keys {
    id: Option<Pattern>,
    rule: Option<Pattern>,
    kernel: Option<Pattern>,
    function: Option<Pattern>,
    file: Option<Pattern>,
    allocation: Option<Pattern>,
    reason: Option<String>,
    expires: Option<toml::Value>,
    orders: Option<String>,
    instead: Option<String>,
    /// Of a shipped entry: whether both accesses must have stored the same value whenever they raced.
    same_value: Option<bool>,
    /// Only in the shipped list: whether the read always came first and a later block of the grid made the write.
    later_block: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    suppress: Vec<Spanned<Keys>>,
}

/// A text in which `*` stands for anything and `?` for one character, or behind `re:` a regular expression.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Pattern {
    text: String,
    regex: Regex,
    glob: bool,
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let expression = text.strip_prefix("re:");
        let regex = match expression {
            Some(expression) => Regex::new(expression),
            None => Regex::new(&format!("(?s)^{}$", wildcards(&text))),
        };
        let glob = expression.is_none();
        match regex {
            Ok(regex) => Ok(Self { text, regex, glob }),
            Err(error) => Err(unreadable(&text, &error)),
        }
    }
}

impl Pattern {
    fn fits(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Whether a function or kernel is meant, by one of its [`forms`].
    fn names(&self, demangled: &str) -> bool {
        forms(demangled).iter().any(|form| self.fits(form))
    }

    /// The folder that a file, which is matched from its end, lies in.
    fn folder_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        if !self.glob {
            let file = path.rfind('/').map_or(0, |at| at + 1);
            return self.fits(path).then(|| &path[..file]);
        }
        let starts = path.match_indices('/').map(|(at, _)| at + 1);
        let mut starts = std::iter::once(0).chain(starts);
        let start = starts.find(|&start| self.fits(&path[start..]))?;
        Some(&path[..start])
    }
}

/// A regular expression for a text with wildcards.
fn wildcards(text: &str) -> String {
    regex::escape(text).replace(r"\*", ".*").replace(r"\?", ".")
}

fn unreadable(text: &str, error: &regex::Error) -> String {
    // The last line says what is wrong; those before show where.
    let error = error.to_string();
    let why = error.lines().last().unwrap_or_default();
    let why = why.strip_prefix("error: ").unwrap_or(why);
    format!("`{text}` is no regular expression: {why}")
}

/// One way in which an entry of the report was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    pub(crate) accesses: [Access; 2],
    /// The kernels of both sides, mangled; none for a call of the host.
    pub(crate) kernels: [Option<String>; 2],
    /// What made the memory, as [`crate::model::Allocation::api`].
    pub(crate) allocation: Option<String>,
    /// The read always came first, and a later block of the grid made the write.
    pub(crate) later_block: bool,
}

impl View {
    /// What fits the kernels there are.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &String> {
        self.kernels.iter().flatten()
    }
}

impl List {
    /// Whether an entry distinguishes the memory of races.
    pub fn names_memory(&self) -> bool {
        let named =
            |entry: &Entry| matches!(&entry.fits, Fits::Keys(keys) if keys.allocation.is_some());
        self.entries.iter().any(named)
    }

    /// Reads a file of suppressions: TOML, or lines of ThreadSanitizer.
    ///
    /// # Errors
    /// What is wrong in the file.
    pub fn parse(source: &str, text: &str) -> Result<Self, Wrong> {
        let all = Self::parse_all(source, text)?;
        match all.entries.iter().find(|entry| entry.is_for_shipped()) {
            Some(entry) => Err(Wrong {
                line: entry.line,
                what: "`orders`, `instead`, `same_value` and `later_block` are for the shipped list; remove them"
                    .to_owned(),
            }),
            None => Ok(all),
        }
    }

    /// The same with the keys of shipped entries.
    pub(crate) fn parse_all(source: &str, text: &str) -> Result<Self, Wrong> {
        let entries = match text.lines().find_map(line_of_sanitizer) {
            Some(_) => sanitizer(text)?,
            None => toml(text)?,
        };
        Ok(Self {
            source: source.to_owned(),
            entries,
        })
    }
}

/// Kind and pattern of a line of ThreadSanitizer. A key of TOML cannot have a colon.
fn line_of_sanitizer(line: &str) -> Option<(&str, &str)> {
    let (kind, pattern) = line.trim().split_once(':')?;
    let word = |c: char| c.is_ascii_lowercase() || c == '_';
    (!kind.is_empty() && kind.chars().all(word)).then_some((kind, pattern))
}

fn sanitizer(text: &str) -> Result<Vec<Entry>, Wrong> {
    let mut entries = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |what: String| Wrong {
            line: number + 1,
            what,
        };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let top = match line_of_sanitizer(line) {
            Some(("race", _)) => false,
            Some(("race_top", _)) => true,
            Some((kind, _)) if OTHERS.contains(&kind) => continue,
            _ => {
                let what = format!("`{line}` is not understood; write `race:PATTERN`");
                return Err(wrong(what));
            }
        };
        let (_, pattern) = line.split_once(':').unwrap_or_default();
        if pattern.is_empty() {
            let what =
                "the pattern is missing: write a function, file, kernel or variable behind `race:`";
            return Err(wrong(what.to_owned()));
        }
        // A part of the text is enough, unless `^` and `$` say where it begins and ends.
        let (begin, inner) = match pattern.strip_prefix('^') {
            Some(inner) => ("^", inner),
            None => ("", pattern),
        };
        let (inner, end) = match inner.strip_suffix('$') {
            Some(inner) => (inner, "$"),
            None => (inner, ""),
        };
        let inner = regex::escape(inner).replace(r"\*", ".*");
        let pattern = Regex::new(&format!("(?s){begin}{inner}{end}"))
            .map_err(|error| wrong(unreadable(pattern, &error)))?;
        entries.push(Entry {
            line: number + 1,
            what: line.to_owned(),
            fits: Fits::Line { pattern, top },
            reason: line.to_owned(),
            expires: None,
            orders: None,
            instead: None,
        });
    }
    Ok(entries)
}

fn toml(text: &str) -> Result<Vec<Entry>, Wrong> {
    let line = |span: &Range<usize>| {
        let before = text.get(..span.start).unwrap_or_default();
        before.matches('\n').count() + 1
    };
    let file: File = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let there = text.get(span.clone()).unwrap_or_default();
        let is_toml = DeTable::parse(text).is_ok();
        let what = remedied(error.message(), there, is_toml);
        Wrong {
            line: line(&span),
            what,
        }
    })?;
    let entry = |spanned: Spanned<Keys>| {
        let at = line(&spanned.span());
        let keys = spanned.into_inner();
        let wrong = |what: &str| Wrong {
            line: at,
            what: what.to_owned(),
        };
        let what = keys.text();
        if what.is_empty() {
            return Err(wrong(
                "the entry fits every race; add at least one of id, rule, kernel, function, file and allocation",
            ));
        }
        let reason = keys.reason.clone().unwrap_or_default();
        if reason.trim().is_empty() {
            return Err(wrong(
                "the reason is missing; add `reason = \"why the race does not count\"`",
            ));
        }
        let expires = keys.expires.as_ref().map(|value| {
            date(value).ok_or_else(|| {
                wrong("`expires` is no date; write one such as `expires = 2027-03-01`")
            })
        });
        Ok(Entry {
            line: at,
            what,
            reason,
            expires: expires.transpose()?,
            orders: keys.orders.clone(),
            instead: keys.instead.clone(),
            fits: Fits::Keys(Box::new(keys)),
        })
    };
    file.suppress.into_iter().map(entry).collect()
}

/// What TOML says of a text that is none, or of an entry that has another shape, with what to write; `there` is where.
fn remedied(message: &str, there: &str, is_toml: bool) -> String {
    if message.starts_with("unknown field") {
        return format!(
            "unknown key `{there}`; keys are id, rule, kernel, function, file, allocation, reason and expires, \
             behind a line `[[suppress]]`"
        );
    }
    if message.contains("expected a sequence") {
        return "write `[[suppress]]`, with two brackets on each side, before each entry"
            .to_owned();
    }
    if message.starts_with("invalid type") {
        return format!("`{there}` is no text; put it into quotation marks");
    }
    let message = message.replace('\n', ", ");
    match is_toml {
        true => message,
        false => format!(
            "neither TOML ({message}) nor a line such as `race:PATTERN`; put texts into quotation marks"
        ),
    }
}

/// The day that a value names, as a date or as a text.
fn date(value: &toml::Value) -> Option<String> {
    let stamp = match value {
        toml::Value::Datetime(stamp) => *stamp,
        toml::Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    match stamp {
        Datetime {
            date: Some(date),
            time: None,
            ..
        } => Some(date.to_string()),
        _ => None,
    }
}

/// The names of the variable that memory is, if it is one.
fn names_of_variable(allocation: &str) -> Option<[String; 3]> {
    let name = allocation.strip_prefix(VARIABLE)?;
    Some([name.to_owned(), demangle(name), variable(name)])
}

impl Keys {
    /// The keys that say which races are meant.
    fn text(&self) -> String {
        let keys = [
            ("id", &self.id),
            ("rule", &self.rule),
            ("kernel", &self.kernel),
            ("function", &self.function),
            ("file", &self.file),
            ("allocation", &self.allocation),
        ];
        let there = keys.into_iter().filter_map(|(key, pattern)| {
            let text = &pattern.as_ref()?.text;
            Some(format!("{key} = {}", toml_text(text)))
        });
        there.collect::<Vec<_>>().join(", ")
    }

    fn hold_for(&self, race: &Race, view: &View) -> bool {
        let fits = |pattern: &Option<Pattern>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.fits(text))
        };
        fits(&self.id, &race.id)
            && fits(&self.rule, race.rule.as_str())
            && self.same_value.is_none_or(|same| same == race.same_value)
            && self
                .later_block
                .is_none_or(|later| later == view.later_block)
            && self.kernel.as_ref().is_none_or(|pattern| {
                let named = |name: &String| pattern.fits(name) || pattern.names(&demangle(name));
                view.kernels().count() > 0 && view.kernels().all(named)
            })
            && self.allocation.as_ref().is_none_or(|pattern| {
                let made = view.allocation.as_deref();
                made.is_some_and(|made| match names_of_variable(made) {
                    Some(names) => names.iter().any(|name| pattern.fits(name)),
                    None => pattern.fits(made),
                })
            })
            && view.accesses.iter().all(|access| self.hold_at(access))
    }

    /// Whether an access is made by the function in the file, and not by code that the program has handed to it.
    fn hold_at(&self, access: &Access) -> bool {
        if self.function.is_none() && self.file.is_none() {
            return true;
        }
        let function = |name: &str| {
            let pattern = self.function.as_ref();
            pattern.is_none_or(|pattern| pattern.names(name))
        };
        let frames = access.frames.iter().enumerate();
        let Some(file) = &self.file else {
            return function(&access.function)
                || access.frames.iter().any(|frame| function(&frame.function));
        };
        if access.frames.is_empty() {
            return file.folder_of(&access.ptx.module).is_some() && function(&access.function);
        }
        let mut there = frames.filter_map(|(index, frame)| {
            let folder = file.folder_of(&frame.file);
            let folder = folder.filter(|_| function(&frame.function))?;
            Some((index, folder))
        });
        there.any(|(index, folder)| {
            let inner = &access.frames[..index];
            inner.iter().all(|frame| frame.file.starts_with(folder))
        })
    }
}

impl Entry {
    /// The pattern of its file.
    pub(crate) fn file(&self) -> Option<&str> {
        match &self.fits {
            Fits::Keys(keys) => Some(&keys.file.as_ref()?.text),
            Fits::Line { .. } => None,
        }
    }

    /// Whether it has keys that only the shipped list may have.
    fn is_for_shipped(&self) -> bool {
        let own = |keys: &Keys| keys.same_value.is_some() || keys.later_block.is_some();
        let own = matches!(&self.fits, Fits::Keys(keys) if own(keys));
        self.orders.is_some() || self.instead.is_some() || own
    }

    /// Whether it is for an entry of the report: for each way in which that was seen.
    pub(crate) fn holds_for(&self, race: &Race, views: &[View]) -> bool {
        let holds = |view: &View| match &self.fits {
            Fits::Keys(keys) => keys.hold_for(race, view),
            Fits::Line { pattern, top } => {
                let kernel =
                    |name: &String| pattern.is_match(name) || pattern.is_match(&demangle(name));
                let at = |access: &Access| {
                    let frames = &access.frames[..];
                    let shown = if *top {
                        frames.len().min(1)
                    } else {
                        frames.len()
                    };
                    let there = frames[..shown].iter();
                    let mut there = there.flat_map(|frame| [&frame.function, &frame.file]);
                    let outer = !*top || frames.is_empty();
                    there.any(|text| pattern.is_match(text))
                        || outer && pattern.is_match(&access.function)
                        || frames.is_empty() && pattern.is_match(&access.ptx.module)
                };
                let of_variable = || {
                    let made = view.allocation.as_deref().and_then(names_of_variable);
                    let mut names = made.iter().flatten();
                    names.any(|name| pattern.is_match(name))
                };
                let wide = || view.kernels().any(kernel) || of_variable();
                view.accesses.iter().any(at) || !*top && wide()
            }
        };
        !views.is_empty() && views.iter().all(holds)
    }

    /// Whether it may be for one of these kernels, by their demangled names.
    pub(crate) fn is_for_kernel(&self, kernels: &[&str]) -> bool {
        match &self.fits {
            Fits::Keys(keys) => {
                { keys.kernel.as_ref() }.is_none_or(|of| kernels.iter().any(|name| of.names(name)))
            }
            Fits::Line { .. } => true,
        }
    }
}

/// A text as TOML has it.
pub fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// The line of an entry that is for kernels, by their names; nothing without any.
pub fn kernel_line(names: &[String]) -> String {
    let pattern = match names {
        [] => return String::new(),
        [name] => name.clone(),
        names => {
            let names: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
            format!("re:^({})$", names.join("|"))
        }
    };
    format!("kernel = {}\n", toml_text(&pattern))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::FrameAt;
    use crate::rules::RuleId;

    /// An access whose frames are in these files and functions.
    pub(crate) fn access(frames: &[(&str, &str)]) -> Access {
        let frames = frames.iter().map(|(file, function)| FrameAt {
            file: (*file).to_owned(),
            function: (*function).to_owned(),
            ..FrameAt::default()
        });
        Access {
            function: "k(int*)".to_owned(),
            frames: frames.collect(),
            ..Access::default()
        }
    }

    fn view(first: &[(&str, &str)], second: &[(&str, &str)]) -> View {
        View {
            accesses: [access(first), access(second)],
            kernels: [Some("_Z1kPi".to_owned()), None],
            allocation: Some("variable _ZN1a4tileE".to_owned()),
            later_block: false,
        }
    }

    fn race() -> Race {
        Race {
            id: "CR-0123abcd".to_owned(),
            rule: RuleId::IntraBlock,
            ..Race::default()
        }
    }

    fn holds(text: &str, views: &[View]) -> bool {
        let list = List::parse("s", text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        let [entry] = &list.entries[..] else {
            panic!("one entry: {text}")
        };
        entry.holds_for(&race(), views)
    }

    /// One entry in TOML.
    fn entry(keys: &str) -> String {
        format!("# why\n[[suppress]]\n{keys}\nreason = 'x'\n")
    }

    const DEEP: [(&str, &str); 3] = [
        ("/i/lib/deep.h", "lib::g()"),
        ("/i/lib.h", "void lib::f<int>(int*)"),
        ("/my.cu", "k(int*)"),
    ];

    #[test]
    fn every_key_is_a_glob_or_an_expression_and_all_must_hold() {
        let views = [view(&DEEP, &DEEP)];
        for (keys, fits) in [
            ("id = 'CR-0123abcd'", true),
            ("id = 'CR-0123*'", true),
            ("id = 'CR-0123'", false),
            ("rule = 'CR00?'", true),
            ("rule = 're:^CR00[13]$'", false),
            ("rule = 're:^CR00[123]$'", true),
            ("rule = 'CR00[123]'", false),
            ("kernel = 'k'", true),
            ("kernel = 'k(int*)'", true),
            ("kernel = '_Z1kPi'", true),
            ("kernel = 'K'", false),
            ("function = 'lib::f'", true),
            ("function = 'k'", true),
            ("function = 'f'", true),
            ("function = 'f<int>'", true),
            ("function = 'lib'", false),
            ("function = 're:^f$'", true),
            ("function = '*f<int>*'", true),
            ("file = 'lib.h'", true),
            ("file = '/i/lib.h'", true),
            ("file = 'ib.h'", false),
            ("file = 'lib/*.h'", true),
            ("file = 're:lib.h$'", true),
            ("file = 're:^lib.h$'", false),
            ("file = 'lib.h'\nfunction = 'lib::f'", true),
            ("file = 'lib.h'\nfunction = 'k'", false),
            ("allocation = 'a::tile'", true),
            ("allocation = 'tile'", false),
            ("rule = 'CR002'\nkernel = 'other'", false),
        ] {
            assert_eq!(holds(&entry(keys), &views), fits, "{keys}");
        }
        // A variable of a function has the name that the report shows.
        let of_function = View {
            allocation: Some("variable _ZZ4tilePfE1t".to_owned()),
            ..view(&DEEP, &DEEP)
        };
        for (keys, fits) in [
            ("allocation = 't'", true),
            ("allocation = 'tile(float*)::t'", true),
            ("allocation = 'tile'", false),
        ] {
            assert_eq!(
                holds(&entry(keys), std::slice::from_ref(&of_function)),
                fits,
                "{keys}"
            );
        }
        assert!(!holds(&entry("rule = 'CR002'"), &[]));
    }

    #[test]
    fn every_way_in_which_a_race_was_seen_must_fit() {
        let one = view(&DEEP, &DEEP);
        for (keys, other) in [
            (
                "kernel = 'k'",
                View {
                    kernels: [Some("_Z1mPi".to_owned()), None],
                    ..one.clone()
                },
            ),
            (
                "allocation = 'a::tile'",
                View {
                    allocation: None,
                    ..one.clone()
                },
            ),
            ("function = 'lib::f'", view(&DEEP, &[("/my.cu", "k(int*)")])),
            ("file = 'lib.h'", view(&[("/my.cu", "k(int*)")], &DEEP)),
        ] {
            let text = entry(keys);
            assert!(holds(&text, std::slice::from_ref(&one)), "{keys}");
            assert!(!holds(&text, &[one.clone(), other.clone()]), "{keys}");
            assert!(!holds(&text, &[other, one.clone()]), "{keys}");
        }
    }

    #[test]
    fn code_that_was_handed_to_a_file_is_not_inside() {
        let handed_in = [
            ("/my.cu", "op()"),
            ("/i/lib.h", "void lib::f<int>(int*)"),
            ("/my.cu", "k(int*)"),
        ];
        let text = entry("file = 'lib.h'");
        assert!(holds(&text, &[view(&DEEP, &DEEP)]));
        assert!(!holds(&text, &[view(&DEEP, &handed_in)]));
        assert!(!holds(&text, &[view(&handed_in, &DEEP)]));
    }

    #[test]
    fn lines_of_thread_sanitizer_fit_either_side() {
        let own = [("/src/my.cu", "k(int*)")];
        let views = [view(&DEEP, &own)];
        for (line, fits) in [
            ("race:lib::f", true),
            ("race:my.cu", true),
            ("race:^lib::g", true),
            ("race:^ib", false),
            ("race:deep.h$", true),
            ("race:deep$", false),
            ("race:src/*.cu", true),
            ("race:_Z1kPi", true),
            ("race:k(", true),
            ("race:other", false),
            ("race:^a::tile$", true),
            ("race_top:tile", false),
            ("race_top:lib::g", true),
            ("race_top:lib::f", false),
        ] {
            let text = format!("# from another tool\nmutex:x\n  {line}\n\n");
            assert_eq!(holds(&text, &views), fits, "{line}");
        }
        // A race that is seen elsewhere too counts.
        let elsewhere = view(&own, &own);
        assert!(!holds("race:lib::f", &[views[0].clone(), elsewhere]));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_line_and_a_remedy() {
        for (text, line, said) in [
            (
                "\n[[suppress]]\nrule = 'CR001'\n",
                2,
                "the reason is missing; add `reason = \"",
            ),
            (
                "[[suppress]]\nreason = ' '\nid = 'x'",
                1,
                "the reason is missing",
            ),
            (
                "[[suppress]]\nreason = 'x'",
                1,
                "fits every race; add at least one of id",
            ),
            (
                "[[suppress]]\nreason = 'x'\nrules = 'x'",
                3,
                "unknown key `rules`; keys are id,",
            ),
            (
                "[[suppress]]\nreason = 'x'\nrule = 're:('",
                3,
                "`re:(` is no regular expression: unclosed group",
            ),
            (
                "[[suppress]]\nreason = 'x'\nrule = 1",
                3,
                "`1` is no text; put it into quotation marks",
            ),
            (
                "[[suppress]]\nreason = 'x'\nrule = CR001",
                3,
                "put texts into quotation marks",
            ),
            (
                "[suppress]\nreason = 'x'\nrule = 'x'",
                1,
                "write `[[suppress]]`, with two brackets",
            ),
            ("race bump", 1, "nor a line such as `race:PATTERN`"),
            (
                "[[suppress]]\nreason = 'x'\nrule = 'x'\nexpires = 2027-03-01T00:00:00Z",
                1,
                "write one such as `expires = 2027-03-01`",
            ),
            (
                "[[suppress]]\nreason = 'x'\nrule = 'x'\nexpires = 'soon'",
                1,
                "write one such as `expires = 2027-03-01`",
            ),
            (
                "[[suppressions]]\nreason = 'x'",
                1,
                "behind a line `[[suppress]]`",
            ),
            (
                "[[suppress]]\nreason = 'x'\nrule = 'x'\norders = 'y'",
                1,
                "for the shipped list",
            ),
            (
                "[[suppress]]\nreason = 'x'\nrule = 'x'\nsame_value = true",
                1,
                "for the shipped list",
            ),
            (
                "race:a\nraces:b",
                2,
                "`races:b` is not understood; write `race:PATTERN`",
            ),
            ("race:", 1, "the pattern is missing"),
            ("race:a\nhello", 2, "`hello` is not understood"),
        ] {
            let wrong = List::parse("s", text).unwrap_err();
            assert_eq!(wrong.line, line, "{text}: {}", wrong.what);
            assert!(wrong.what.contains(said), "{text}: {}", wrong.what);
            assert!(!wrong.what.contains('\n'), "{}", wrong.what);
        }
        assert!(List::parse("s", "# nothing yet\n").is_ok());
    }

    #[test]
    fn the_line_for_kernels_fits_them_alone() {
        let names = ["ns::k".to_owned(), "operator+".to_owned()];
        for (names, others) in [(&names[..1], "k2"), (&names[..], "operatorr")] {
            let text = format!("[[suppress]]\n{}reason = \"x\"\n", kernel_line(names));
            let list = List::parse("my.toml", &text).unwrap();
            let fits = |name: &str| list.entries[0].is_for_kernel(&[name]);
            assert!(names.iter().all(|name| fits(name)), "{text}");
            assert!(!fits(others) && !fits("ns::k::m"), "{text}");
        }
        assert_eq!(kernel_line(&[]), "");
    }
}
