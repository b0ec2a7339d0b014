//! A name for a race that other edits do not move: no line numbers, no addresses, no names of variables.
//!
//! Hashed are the state space and both accesses, in an order that does not depend on the run. The rule is not: it says
//! what would order the two, of which some modes know more than others. An access is what it does, the function without
//! template arguments that it stands in, the name of the file, and the text of its line, in which variables are numbered
//! and blanks and comments are left out; without line information, or where the source is not found, the opcode alone.
//! Positions that have all of that in common are numbered, in the order in which they stand in their function.
//! An operation of a stream is its kernel, or the call of the host; an access by the host is the call behind it, with the
//! text of its line.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::hash;
use crate::log::{self, Op};
use crate::model::Space;
use crate::names;
use crate::side::{self, LoggedSite};
use crate::source::Sources;
use crate::words::put_in;

/// Words of a line that are no names of variables, besides functions and members.
const WORDS: &str = "alignas alignof asm auto bool break case catch char class const const_cast constexpr continue \
    decltype default delete do double dynamic_cast else enum explicit extern false float for friend goto if inline int \
    long mutable namespace new noexcept nullptr operator private protected public register reinterpret_cast return short \
    signed sizeof static static_assert static_cast struct switch template this throw true try typedef typename union \
    unsigned using virtual void volatile while size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t \
    threadIdx blockIdx blockDim gridDim warpSize __shared__ __restrict__ __device__ __constant__";

/// What a race is called.
pub(crate) struct Named {
    /// A short name, for people.
    pub(crate) id: String,
    /// The name by which runs are compared.
    pub(crate) fingerprint: String,
}

/// What an access is, wherever its line has moved to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Shape {
    op: Op,
    function: String,
    file: String,
    text: String,
}

/// Where an access stands: file, line and column of the source, or module, function and line of PTX.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    Source(String, u32, u32),
    Ptx(String, String, u32),
}

/// The positions of a log's accesses by what they are.
#[derive(Default)]
pub(crate) struct Positions {
    of: HashMap<Shape, BTreeSet<Position>>,
    seen: usize,
    names: HashMap<String, String>,
    folders: HashMap<String, bool>,
}

impl Positions {
    /// The names of a race of two sites. `all` are the sites of its log.
    pub(crate) fn fingerprint<'a>(
        &mut self,
        space: Space,
        sites: [LoggedSite<'_>; 2],
        all: impl ExactSizeIterator<Item = LoggedSite<'a>>,
        sources: &Sources,
    ) -> Named {
        // Copies through the async proxy and the like are named when they race.
        if self.seen != all.len() {
            self.seen = all.len();
            for site in all {
                let (shape, position) = self.look(site, sources);
                self.of.entry(shape).or_default().insert(position);
            }
        }
        let sides = sites.map(|site| {
            let (shape, position) = self.look(site, sources);
            let before = self.of.get(&shape).map_or(0, |positions| {
                let before = positions.range(..&position);
                match &position {
                    Position::Source(..) => before.count(),
                    // The same function of another module, or with other template arguments, is another one.
                    Position::Ptx(module, function, _) => before
                        .filter(|other| {
                            matches!(other, Position::Ptx(of, named, _) if (of, named) == (module, function))
                        })
                        .count(),
                }
            });
            let Shape {
                op,
                function,
                file,
                text,
            } = shape;
            format!("{function}\n{file}\n{text}\n{op}\n{before}")
        });
        hash(space, sides)
    }

    fn look(
        &mut self,
        LoggedSite { site, origin }: LoggedSite<'_>,
        sources: &Sources,
    ) -> (Shape, Position) {
        let op = site.op;
        let shown = site
            .frames
            .iter()
            .find(|frame| !self.in_library(&frame.file));
        let Some(frame) = shown.or(site.frames.first()) else {
            let shape = Shape {
                op,
                function: self.base(&site.function),
                file: String::new(),
                text: opcode(&site.text).to_owned(),
            };
            let position = Position::Ptx(origin.to_owned(), site.function.clone(), site.ptx_line);
            return (shape, position);
        };
        let line = sources.line(&frame.file, frame.line);
        let shape = Shape {
            op,
            function: self.base(frame.function.as_deref().unwrap_or(&site.function)),
            // Files that are gone may have had names for one run only, as those of Python packages that compile.
            file: line
                .as_ref()
                .map_or("", |_| base_name(&frame.file))
                .to_owned(),
            text: line.map_or_else(|| opcode(&site.text).to_owned(), |line| normal(&line)),
        };
        (
            shape,
            Position::Source(frame.file.clone(), frame.line, frame.column),
        )
    }

    fn base(&mut self, mangled: &str) -> String {
        if let Some(known) = self.names.get(mangled) {
            return known.clone();
        }
        let base = base(mangled);
        self.names.insert(mangled.to_owned(), base.clone());
        base
    }

    fn in_library(&mut self, file: &str) -> bool {
        let folder = file.rfind('/').map_or("", |at| &file[..at]);
        if let Some(&known) = self.folders.get(folder) {
            return known;
        }
        let inside = side::in_library(Path::new(file));
        self.folders.insert(folder.to_owned(), inside);
        inside
    }
}

/// A file without its folder.
fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or_default()
}

/// A function without template arguments; of functions that are no templates also the parameters.
fn base(mangled: &str) -> String {
    let name = names::demangle(mangled);
    let base = names::base(&name);
    match name.contains('<') {
        true => base.into_owned(),
        false => name,
    }
}

/// The names of a race of two operations of streams.
pub(crate) fn of_operations(space: Space, operations: &[String; 2]) -> Named {
    let sides = operations.each_ref().map(|name| base(name));
    hash(space, sides)
}

/// The names of a race of an operation of a stream with the host, ahead of calls at these places.
pub(crate) fn of_host(
    space: Space,
    [work, host]: &[String; 2],
    calls: &[log::HostFrame],
    sources: &Sources,
) -> Named {
    let mut side = host.clone();
    for call in calls {
        let text = sources
            .line(&call.file, call.line)
            .map(|line| normal(&line));
        let (function, file) = (base(&call.function), base_name(&call.file));
        put_in(
            &mut side,
            format_args!("\n{function}\n{file}\n{}", text.unwrap_or_default()),
        );
    }
    hash(space, [base(work), side])
}

fn hash(space: Space, mut sides: [String; 2]) -> Named {
    sides.sort();
    let text = format!("{space}\n{}\n{}", sides[0], sides[1]);
    let hash = hash::add_bytes(hash::EMPTY, text.as_bytes());
    Named {
        id: format!("CR-{:08x}", hash >> 32),
        fingerprint: format!("fnv1a:{hash:016x}"),
    }
}

fn opcode(text: &str) -> &str {
    let mut words = text.split_whitespace();
    words
        .find(|word| !word.starts_with('@'))
        .unwrap_or_default()
}

/// A line without blanks and comments, in which variables are numbered.
fn normal(line: &str) -> String {
    let mut text = String::new();
    let mut variables: Vec<&str> = Vec::new();
    let mut rest = line.trim_start();
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        if rest.starts_with("//") {
            break;
        } else if rest.starts_with("/*") {
            length = rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if c.is_alphabetic() || c == '_' {
            length = word(rest);
            let name = &rest[..length];
            let behind = rest[length..].trim_start();
            let member = text.ends_with('.') || text.ends_with("->") || text.ends_with("::");
            let function = behind.starts_with('(') || behind.starts_with("::");
            if member || function || WORDS.split_whitespace().any(|word| word == name) {
                text.push_str(name);
                text.push(' ');
            } else {
                let known = variables.iter().position(|known| *known == name);
                let number = known.unwrap_or_else(|| {
                    variables.push(name);
                    variables.len() - 1
                });
                text.push_str(&format!("${number} "));
            }
        } else if c.is_ascii_digit() {
            // With its suffix.
            length = word(rest);
            text.push_str(&rest[..length]);
            text.push(' ');
        } else {
            text.push(c);
        }
        rest = rest[length..].trim_start();
    }
    text
}

/// Length of the letters, digits and underscores that a text begins with.
fn word(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_differ_by_more_than_names_blanks_and_comments() {
        for (one, other, same) in [
            ("  x[i] += y[i];", "sum[k]+=in [k] ;  // why", true),
            ("x[i] = y[j];", "x[i] = y[i];", false),
            ("x[i] = 1;", "x[i] = 2;", false),
            ("x[i] = 1u;", "x[i] = 1;", false),
            ("x[i] = 0;", "x[i] += 0;", false),
            ("f(x[i]);", "g(x[i]);", false),
            ("p->a = 1;", "q->a = 1;", true),
            ("p->a = 1;", "p->b = 1;", false),
            ("n::f(x)", "m::f(x)", false),
            ("x[threadIdx.x] = 1;", "x[blockIdx.x] = 1;", false),
            ("int v = x[i];", "float v = x[i];", false),
            ("a /* the sum */ = b;", "a = b;", true),
            ("return x;", "y x;", false),
            ("é = x;", "ü = x;", true),
        ] {
            assert_eq!(normal(one) == normal(other), same, "{one} and {other}");
        }
    }
}
