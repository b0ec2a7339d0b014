//! Updates that an atomic call would make: the call in the words of the source, where the source is a simple statement.

use crate::log;
use crate::model::{Access, Op};
use crate::source::{Sources, extent};
use crate::words::joined;
use crate::{remedy, side, statement};

/// An update as its statement has it.
#[derive(Debug, PartialEq)]
struct Written {
    /// The atomic that does it, such as `atomicAdd`.
    name: String,
    /// The updated expression.
    target: String,
    /// With what; none if it stands elsewhere.
    value: Option<String>,
    /// The statement uses the value from after the update.
    after: bool,
}

/// What replaces updates; of accesses in different functions, of which nothing is known, by what the source says.
pub(crate) fn advice(
    known: Option<&log::Update>,
    accesses: &[Access; 2],
    sources: &Sources,
) -> Option<String> {
    let name = known.map(|update| update.call.as_str());
    let written = written(name, accesses, sources);
    let name = name.or(written.as_ref().map(|written| written.name.as_str()))?;
    let store = accesses.iter().find(|access| access.op == Op::St);
    let store = store.unwrap_or(&accesses[1]);
    let stores = match known {
        Some(known) => known
            .stores
            .iter()
            .map(|frames| side::frames(frames, ""))
            .collect(),
        None => vec![store.frames.clone()],
    };
    let shown = stores.iter().filter_map(|frames| side::shown(frames));
    let mut places: Vec<String> = shown
        .map(|frame| format!("{}:{}", sources.shown(&frame.file), frame.line))
        .collect();
    places.dedup();
    let update = match &places[..] {
        [] => "the update".to_owned(),
        [at] => format!("the update at {at}"),
        [_, ..] => format!("each update, at {},", joined(&places)),
    };
    if let Some(known) = known.filter(|known| !known.with.is_empty()) {
        let mut with: Vec<String> = Vec::new();
        for at in known.with.iter().map(|place| remedy::at(place, sources)) {
            if !with.contains(&at) {
                with.push(at);
            }
        }
        return Some(format!(
            "make {update} and the write at {} one atomic step: pack both values into one 64-bit word, the compared value in its upper half, and update that word with `{name}`; or hold a lock around the comparison and the writes",
            joined(&with)
        ));
    }
    if name == "atomicCAS" {
        return Some(format!(
            "make {update} one atomic operation, by a loop with `atomicCAS`: no other atomic does what it does"
        ));
    }
    if name == "atomicExch" {
        return Some(format!(
            "make the read of the old value and {} one atomic operation, `atomicExch`, which returns the old value",
            update.replacen("update", "write", 1)
        ));
    }
    let float = is_float(store);
    if store.width < 4 && store.width > 0 {
        return Some(format!(
            "make {update} one atomic operation, `{name}`, of an element that is 32 bits wide: there is none for {} bits",
            8 * store.width
        ));
    }
    if float && matches!(name, "atomicMin" | "atomicMax") {
        return Some(format!(
            "make {update} one atomic operation, by a loop with `atomicCAS`: there is no minimum or maximum of floating-point numbers"
        ));
    }
    let call = written.as_ref().filter(|_| places.len() < 2);
    let call = call.and_then(|written| call_of(written, store.width, float));
    Some(match call {
        Some(call) => format!("make {update} one atomic operation: `{call}`"),
        None => format!("make {update} one atomic operation, `{name}`"),
    })
}

/// The call of a simple statement.
fn call_of(written: &Written, width: u32, float: bool) -> Option<String> {
    let target = written.target.trim();
    let address = match target.strip_prefix('*') {
        Some(pointer) => pointer.to_owned(),
        None => format!("&{target}"),
    };
    // Of integers of 64 bits there are sums of `unsigned long long` only.
    let wide = width == 8 && !float;
    let (name, negated) = match written.name.as_str() {
        "atomicMin" | "atomicMax" if wide => return None,
        "atomicSub" if wide || float => ("atomicAdd", true),
        name => (name, false),
    };
    let address = match wide {
        true => format!("(unsigned long long *){address}"),
        false => address,
    };
    let value = match &written.value {
        None => "…".to_owned(),
        Some(value) if !negated => value.clone(),
        Some(value)
            if value
                .chars()
                .all(|c| c.is_alphanumeric() || "_.".contains(c)) =>
        {
            format!("-{value}")
        }
        Some(value) => format!("-({value})"),
    };
    let again = match (written.after, &written.value) {
        (false, _) => String::new(),
        (true, Some(value)) => format!(
            " {} {value}",
            if written.name == "atomicSub" {
                '-'
            } else {
                '+'
            }
        ),
        (true, None) => return None,
    };
    Some(format!("{name}({address}, {value}){again}"))
}

fn is_float(access: &Access) -> bool {
    let opcode = access
        .ptx
        .text
        .split_whitespace()
        .find(|word| !word.starts_with('@'));
    let mut suffixes = opcode.unwrap_or_default().split('.');
    suffixes.any(|suffix| matches!(suffix, "f32" | "f64"))
}

/// What the source says, if it is one simple statement and does not say something else than `name`.
fn written(name: Option<&str>, accesses: &[Access; 2], sources: &Sources) -> Option<Written> {
    let [first, second] = accesses.each_ref().map(Access::shown);
    let (first, second) = (first?, second?);
    if (&first.file, first.line) != (&second.file, second.line) {
        return Some(Written {
            name: name?.to_owned(),
            target: written_back(accesses, sources)?,
            value: None,
            after: false,
        });
    }
    let line = sources.line(&first.file, first.line)?;
    let written = of_line(&line, name)?;
    name.is_none_or(|name| name == written.name)
        .then_some(written)
}

/// What one line says, if there is one simple statement on it. `name` tells comparisons from other assignments.
fn of_line(line: &str, name: Option<&str>) -> Option<Written> {
    let text = line.split("//").next().unwrap_or_default();
    let mut parts = text.rsplit(['{', '}']);
    let text = parts.find(|part| !part.trim().is_empty())?.trim();
    let text = text.strip_suffix(';')?.trim_end();
    let (text, compared) = behind_control(text)?;
    if text.contains([';', '?', '"']) {
        return None;
    }
    let of = |name: &str, target: &str, value: &str| Written {
        name: name.to_owned(),
        target: target.trim().to_owned(),
        value: Some(value.trim().to_owned()),
        after: false,
    };
    for (operator, name) in [
        ("+=", "atomicAdd"),
        ("-=", "atomicSub"),
        ("|=", "atomicOr"),
        ("&=", "atomicAnd"),
        ("^=", "atomicXor"),
    ] {
        if let Some((target, value)) = text.split_once(operator) {
            let simple = is_simple(target) && !value.contains('=') && !has_step(text);
            return simple.then(|| of(name, target, value));
        }
    }
    if let Some(step) = stepped(text) {
        return Some(step);
    }
    let (target, value) = text.split_once('=').filter(|_| !has_step(text))?;
    let (target, value) = (target.trim(), value.trim());
    if !is_simple(target) || value.contains('=') {
        return None;
    }
    if let Some(name) = name.filter(|name| matches!(*name, "atomicMin" | "atomicMax")) {
        let other = other_bound(name, target, value);
        if let Some(value) = other.or((compared && !value.contains(target)).then_some(value)) {
            return Some(of(name, target, value));
        }
        return None;
    }
    let more = value.strip_prefix(target)?.trim_start();
    let sum = |more: &str| !more.contains(['+', '-', '<', '>', '&', '|', '^', '%', '?']);
    match more.split_at_checked(1)? {
        ("+", more) if sum(more) => Some(of("atomicAdd", target, more)),
        ("-", more) if sum(more) => Some(of("atomicSub", target, more)),
        _ => None,
    }
}

/// What the target is compared with in `min(target, value)` or `max(value, target)`.
fn other_bound<'a>(name: &str, target: &str, value: &'a str) -> Option<&'a str> {
    let called = match name {
        "atomicMin" => "min",
        _ => "max",
    };
    let value = value.strip_prefix("std::").unwrap_or(value);
    let values = value.strip_prefix(called)?.trim_start();
    let inside = values.strip_prefix('(')?.strip_suffix(')')?;
    // The parenthesis at the end is that of the call.
    if statement::balanced(values)? != values.len() {
        return None;
    }
    let target = target.trim();
    let behind = { inside.trim_start().strip_prefix(target) }
        .and_then(|of| of.trim_start().strip_prefix(','));
    let before =
        { inside.trim_end().strip_suffix(target) }.and_then(|of| of.trim_end().strip_suffix(','));
    let value = behind.or(before)?.trim();
    (!value.contains(target)).then_some(value)
}

fn has_step(text: &str) -> bool {
    text.contains("++") || text.contains("--")
}

/// An update by one step, alone or inside of an expression that uses its value.
fn stepped(text: &str) -> Option<Written> {
    let at = text.find("++").or_else(|| text.find("--"))?;
    let (before, behind) = (&text[..at], &text[at + 2..]);
    if has_step(before) || has_step(behind) {
        return None;
    }
    let name = match text[at..].starts_with('+') {
        true => "atomicAdd",
        false => "atomicSub",
    };
    // `*p++` steps the pointer.
    let ends = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || "_.>])*".contains(c));
    let begins = |text: &str| text.starts_with(|c: char| c.is_alphanumeric() || "_(".contains(c));
    let mut starts = before.char_indices().map(|(start, _)| start);
    let postfix = starts.find(|&start| {
        let target = &before[start..];
        ends(before[..start].chars().next_back()) && begins(target) && is_simple(target)
    });
    let (target, prefix) = match postfix {
        Some(start) => (&before[start..], false),
        None => {
            let begin = behind.len() - behind.trim_start().len();
            let range = extent(&behind[begin..], 1, 1, false)?;
            (&behind[begin..][range], true)
        }
    };
    // An assignment of the sum itself is another update.
    if let Some((to, from)) = text.split_once('=')
        && !to.contains(target)
        && from.contains(to.split_whitespace().next_back()?)
    {
        return None;
    }
    let alone = before.trim().len() + behind.trim().len() == target.trim().len();
    Some(Written {
        name: name.to_owned(),
        target: target.trim().to_owned(),
        value: Some("1".to_owned()),
        after: prefix && !alone,
    })
}

/// What stands behind `if (…)`, `else`, `for (…)` and `while (…)` on a line, and whether a comparison is among them.
fn behind_control(mut text: &str) -> Option<(&str, bool)> {
    let mut compared = false;
    loop {
        let word: String = text.chars().take_while(|c| c.is_alphanumeric()).collect();
        let rest = text[word.len()..].trim_start();
        text = match word.as_str() {
            "if" | "for" | "while" => {
                compared |= word == "if";
                rest[statement::balanced(rest)?..].trim_start()
            }
            "else" => rest,
            _ => return Some((text, compared)),
        };
    }
}

/// Whether a text is one expression that names memory, and nothing besides.
fn is_simple(target: &str) -> bool {
    let target = target.trim();
    let begins = target.starts_with(|c: char| c.is_alphanumeric() || "_(*".contains(c));
    begins && extent(target, 1, 1, false).is_some_and(|range| range == (0..target.len()))
}

/// The expression that one side writes, when the other side reads it by the same words in another
/// statement.
fn written_back(accesses: &[Access; 2], sources: &Sources) -> Option<String> {
    let side = |op: Op| accesses.iter().find(|access| access.op == op);
    let (read, write) = (side(Op::Ld)?.shown()?, side(Op::St)?.shown()?);
    if read.file != write.file || read.line == write.line {
        return None;
    }
    let text = sources.text(&write.file)?;
    let target = &text[extent(&text, write.line, write.column, false)?];
    let reads = &text[extent(&text, read.line, read.column, true)?];
    // A plain name is too likely to be another variable's, or a local one's.
    let memory = target.contains(['[', '.']) || target.contains("->") || target.starts_with('*');
    (memory && reads.contains(target)).then(|| target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::model::{FrameAt, PtxLine};
    use super::*;

    fn access(op: Op, ty: &str, line: u32) -> Access {
        Access {
            op,
            width: ty[1..].parse::<u32>().unwrap() / 8,
            ptx: PtxLine {
                text: format!("{op}.global.{ty} [%rd1], %r1;"),
                ..PtxLine::default()
            },
            frames: vec![FrameAt {
                file: "x.cu".into(),
                line,
                column: 1,
                ..FrameAt::default()
            }],
            ..Access::default()
        }
    }

    fn of(line: &str, name: &str, ty: &str) -> String {
        let (_folder, sources) = Sources::of_text(line);
        let sides = [access(Op::Ld, ty, 1), access(Op::St, ty, 1)];
        let update = log::Update {
            call: name.to_owned(),
            ..log::Update::default()
        };
        advice(Some(&update), &sides, &sources).unwrap()
    }

    #[test]
    fn a_simple_statement_names_the_call() {
        for (line, name, ty, call) in [
            ("  x[i]++;", "atomicAdd", "u32", "atomicAdd(&x[i], 1)"),
            ("  --*p;", "atomicSub", "u32", "atomicSub(p, 1)"),
            (
                "  *total += a[0] * 2;  // sum",
                "atomicAdd",
                "f32",
                "atomicAdd(total, a[0] * 2)",
            ),
            (
                "  if (f(i)) flags[i] |= 4;",
                "atomicOr",
                "u32",
                "atomicOr(&flags[i], 4)",
            ),
            (
                "  for (;;) { h[k] += 1; }",
                "atomicAdd",
                "u32",
                "atomicAdd(&h[k], 1)",
            ),
            (
                "for (int i = 0; i < n; i++) s += a[i];",
                "atomicAdd",
                "u32",
                "atomicAdd(&s, a[i])",
            ),
            (
                "else x.y->z[1] ^= m;",
                "atomicXor",
                "u32",
                "atomicXor(&x.y->z[1], m)",
            ),
            ("int at = n++;", "atomicAdd", "u32", "atomicAdd(&n, 1)"),
            ("out[n++] = v;", "atomicAdd", "u32", "atomicAdd(&n, 1)"),
            ("int at = ++n;", "atomicAdd", "u32", "atomicAdd(&n, 1) + 1"),
            ("x = x + y * 2;", "atomicAdd", "u32", "atomicAdd(&x, y * 2)"),
            ("x -= y;", "atomicSub", "f32", "atomicAdd(&x, -y)"),
            (
                "x -= y + 1;",
                "atomicSub",
                "u64",
                "atomicAdd((unsigned long long *)&x, -(y + 1))",
            ),
            (
                "if (v[i] > m) m = v[i];",
                "atomicMax",
                "s32",
                "atomicMax(&m, v[i])",
            ),
        ] {
            let expected = format!("make the update one atomic operation: `{call}`");
            assert_eq!(of(line, name, ty), expected, "{line}");
        }
    }

    #[test]
    fn other_statements_are_not_repeated() {
        for line in [
            "x[i] = y[i];",
            "for (u32 x=T<gridDim.x?1:2; x < 3; ++x) if (a) b += 1; else c += 2;",
            "a += 1; b += 2;",
            "x += c ? 1 : 2;",
            "a[i++] += b;",
            "x = x + i++;",
            "x = x - a + b;",
            "INCREASE(x)",
            "x = y = x + 1;",
            "x +=",
            "(a ? x : y) += 1;",
            "auto &r = x; r++; s++;",
            "x -= 1;",
            "x = *p++;",
        ] {
            let said = of(line, "atomicAdd", "u32");
            assert_eq!(
                said, "make the update one atomic operation, `atomicAdd`",
                "{line}"
            );
        }
    }

    #[test]
    fn what_no_atomic_does_is_said() {
        assert!(of("x++;", "atomicAdd", "u8").contains("that is 32 bits wide"));
        for line in [
            "if (i < n) *m = min(*m, in[f(i, 2)]);",
            "*m = std::min(in[f(i, 2)], *m);",
        ] {
            let call = "make the update one atomic operation: `atomicMin(m, in[f(i, 2)])`";
            assert_eq!(of(line, "atomicMin", "u32").replace(" at x.cu:1", ""), call);
        }
        for line in [
            "if (i < n) *m = min(*m, min(*m, in[i]));",
            "if (i < n) *m = limit(*m, in[i]);",
        ] {
            let text = of(line, "atomicMin", "u32").replace(" at x.cu:1", "");
            assert_eq!(text, "make the update one atomic operation, `atomicMin`");
        }
        assert!(of("if (v > m) m = v;", "atomicMax", "f32").contains("`atomicCAS`"));
        let wide = of("if (v > m) m = v;", "atomicMax", "u64");
        assert_eq!(wide, "make the update one atomic operation, `atomicMax`");
    }

    #[test]
    fn a_value_that_is_read_and_written_back_is_named() {
        let (_folder, sources) = Sources::of_text("int c = x[i];\nx[i] = c + 1;\nx[j] = c;\n");
        let target = |line| {
            written_back(
                &[access(Op::Ld, "u32", 1), access(Op::St, "u32", line)],
                &sources,
            )
        };
        assert_eq!(target(2).as_deref(), Some("x[i]"));
        assert_eq!(target(3), None);
    }
}
