//! What kind of race it is, and what would order the two accesses.

use super::model::Access;
use super::source::{Sources, extent};
use super::words;
use super::{locks, misuse, nested, remedy, streams};
use crate::log::{self, Cause, Level, Space, Why};

/// Rule, kind and texts of a race.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Advice {
    pub(super) rule: &'static str,
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) help: String,
}

/// Describes a race between two accesses.
pub(super) fn advise(race: &log::Race, accesses: &[Access; 2], sources: &Sources) -> Advice {
    match race.why {
        Why::Misuse(misuse) => return misuse::describe(misuse),
        Why::Streams => return streams::describe(race, accesses),
        Why::Child | Why::Siblings => return nested::describe(race, accesses),
        _ => {}
    }
    let [first, second] = accesses;
    let (level, why) = (race.level, race.why);
    let strong = first.sem != "weak" && second.sem != "weak";
    let fault = match why {
        Why::Unordered | Why::Strong | Why::Luck => locks::fault(race, accesses),
        _ => None,
    };
    let rule = match (why, level) {
        (Why::Overlap, _) => "CR008",
        (Why::ReadOnly, _) => "CR009",
        (Why::Asynchronous, _) => "CR010",
        (Why::Proxy, _) => "CR013",
        // Described above.
        (Why::Misuse(_) | Why::Streams | Why::Child | Why::Siblings, _) => "",
        (Why::Strong, _) => locks::STRONG,
        (Why::Luck | Why::Fences, _) => locks::LUCK,
        (Why::Unordered, _) if strong => "CR005",
        (Why::Unordered, _) if let Some(fault) = &fault => fault.rule,
        (Why::Unordered, _) if race.cause.is_some() => match race.cause {
            Some(
                Cause::NarrowRelease { .. }
                | Cause::NarrowAcquire { .. }
                | Cause::NarrowArrival { .. }
                | Cause::NarrowWait { .. },
            ) => "CR005",
            _ => "CR006",
        },
        (Why::Unordered, Level::Warp) => "CR001",
        (Why::Unordered, Level::Cta) => "CR002",
        (Why::Unordered, Level::Grid) => "CR003",
    };
    let reach = match level {
        Level::Warp => "intra-warp",
        Level::Cta => "intra-block",
        Level::Grid => "inter-block",
    };
    let memory = match race.space {
        Space::Global => "global memory",
        Space::Shared => "shared memory",
    };
    let (one, other) = (verb(first), verb(second));
    let what = match why {
        Why::Overlap => format!("{one} and {other} overlap in part, which no strength repairs"),
        Why::ReadOnly => {
            "data read through the read-only path is written in the same launch".to_owned()
        }
        Why::Asynchronous => {
            format!(
                "{one} and {other} meet, and nobody has waited for the asynchronous copy in between"
            )
        }
        Why::Proxy => {
            "a bulk copy reads what was written without a fence between the proxies".to_owned()
        }
        Why::Misuse(_) | Why::Streams | Why::Child | Why::Siblings => String::new(),
        Why::Strong if one == other => {
            format!("nothing orders two {} to the same address", plural(one))
        }
        Why::Strong => format!("nothing orders {one} and {other} of the same address"),
        Why::Luck if fault.is_some() => format!(
            "{one} and {other} of the same address are ordered only because their lock was taken in this order, and another run may turn them around"
        ),
        Why::Luck => locks::luck(accesses),
        Why::Fences => format!(
            "{one} and {other} of the same address are ordered only by the order of `fence.sc` (`__threadfence()`) in this run, and another run may turn them around"
        ),
        Why::Unordered if strong => {
            format!("the scope of {one} does not include the other side's thread")
        }
        Why::Unordered if one == other => {
            format!("two {} to the same address are not ordered", plural(one))
        }
        Why::Unordered => format!("{one} and {other} of the same address are not ordered"),
    };
    let what = match (&fault, &race.cause) {
        (Some(fault), _) => format!("{what}: {}", fault.what),
        (None, Some(cause)) => format!("{what}: {}", lacking(cause)),
        (None, None) => what,
    };
    let message = match race.decided {
        _ if why == Why::Strong => {
            format!("{reach} unordered strong conflict on {memory}: {what}")
        }
        _ if matches!(why, Why::Luck | Why::Fences) => {
            format!("{reach} order by luck on {memory}: {what}")
        }
        true => format!("{reach} race on {memory}: {what}"),
        false => format!(
            "possible {reach} race on {memory}, not decided: {what} by what the checks can follow"
        ),
    };
    Advice {
        rule,
        kind: kind(accesses),
        message,
        help: match fault {
            Some(fault) => fault.help,
            None => help(race, strong, accesses, sources),
        },
    }
}

/// What is not right about what would have ordered the two sides.
fn lacking(cause: &Cause) -> String {
    let block = |by: &log::Thread| {
        let [x, y, z] = by.block;
        format!("block ({x},{y},{z})")
    };
    match cause {
        Cause::NarrowRelease { by, scope } => format!(
            "the release by {}, which the second side has observed, is of {} scope",
            block(by),
            words::scope(scope)
        ),
        Cause::NarrowAcquire { by, scope } => format!(
            "the second side has observed a release by {}, and acquired it at {} scope only",
            block(by),
            words::scope(scope)
        ),
        Cause::NarrowArrival { by, scope } => format!(
            "the second side has waited for an mbarrier at which {} arrived, and that release is of {} scope",
            block(by),
            words::scope(scope)
        ),
        Cause::NarrowWait { by, scope } => format!(
            "the second side has waited for an mbarrier at which {} arrived, and acquired at {} scope only",
            block(by),
            words::scope(scope)
        ),
        Cause::NoAcquire { by } => format!(
            "the second side has observed a release by {}, but has not acquired",
            block(by)
        ),
        Cause::NoRelease => {
            "the second side has observed a flag of the first, which was written without a release"
                .to_owned()
        }
    }
}

/// What makes an order of it.
fn completion(cause: &Cause) -> &'static str {
    match cause {
        Cause::NarrowRelease { .. } => {
            "release at a scope that has both sides: `__threadfence()` in place of `__threadfence_block()`, `thread_scope_device`, `.gpu`"
        }
        Cause::NarrowAcquire { .. } => {
            "acquire at a scope that has both sides: `__threadfence()` in place of `__threadfence_block()`, `thread_scope_device`, `.gpu`"
        }
        Cause::NarrowArrival { .. } => {
            "arrive in a scope that has both sides: `mbarrier.arrive.release.cluster`, `cuda::ptx::mbarrier_arrive` with `scope_cluster`; before a relaxed arrival, a fence of that scope"
        }
        Cause::NarrowWait { .. } => {
            "wait in a scope that has both sides: `mbarrier.try_wait.acquire.cluster`, `cuda::ptx::mbarrier_try_wait` with `scope_cluster`; behind a relaxed wait, a fence of that scope"
        }
        Cause::NoAcquire { .. } => {
            "acquire before the second access: read the flag with `ld.acquire` or `cuda::memory_order_acquire`, or put `__threadfence()` behind the read that saw it"
        }
        Cause::NoRelease => {
            "release after the first access: put `__threadfence()` before the write of the flag, or write it with `st.release` or `cuda::memory_order_release`"
        }
    }
}

/// What the two sides do, in the order of this run.
pub(super) fn kind([first, second]: &[Access; 2]) -> String {
    format!("{}-{}", noun(first), noun(second))
}

pub(super) fn verb(access: &Access) -> &'static str {
    match (access.atomic, access.op.as_str()) {
        (true, _) => "an atomic",
        (_, "st") => "a write",
        (_, "cp") => "an asynchronous copy",
        _ => "a read",
    }
}

fn plural(verb: &str) -> &'static str {
    match verb {
        "an atomic" => "atomics",
        "a write" => "writes",
        "an asynchronous copy" => "asynchronous copies",
        _ => "accesses",
    }
}

fn noun(access: &Access) -> &'static str {
    match verb(access) {
        "an atomic" => "atomic",
        "a write" => "write",
        "an asynchronous copy" => "copy",
        _ => "read",
    }
}

fn help(race: &log::Race, strong: bool, accesses: &[Access; 2], sources: &Sources) -> String {
    let level = race.level;
    let place = match level {
        Level::Grid => "blocks are not ordered within a launch",
        Level::Cta => "warps of a block are ordered by barriers only",
        Level::Warp => {
            "lanes of a warp are threads of their own, and running together does not order them"
        }
    };
    match race.why {
        Why::Luck => return locks::remedy(accesses),
        Why::Unordered
        | Why::Strong
        | Why::Fences
        | Why::Misuse(_)
        | Why::Streams
        | Why::Child
        | Why::Siblings => {
            if let Some(cause) = &race.cause {
                return completion(cause).to_owned();
            }
        }
        Why::Overlap => {
            return "access the data with one size and alignment on both sides".to_owned();
        }
        Why::ReadOnly => {
            return "barriers do not repair this: read with an ordinary load (no `__ldg`, no `const __restrict__` on data that the kernel writes), or write in another launch".to_owned();
        }
        Why::Proxy => {
            return "put `fence.proxy.async` (`cuda::ptx::fence_proxy_async`) between: each writing thread before the barrier, or the thread that issues the copy after it".to_owned();
        }
        Why::Asynchronous => {
            return "wait for the copy first (`cp.async.wait_all`, `__pipeline_wait_prior`, `cuda::pipeline::consumer_wait`), and then put a barrier before other threads touch the data; where the copy ends with an mbarrier (`cuda::barrier`), whoever touches the data must wait for that".to_owned();
        }
    }
    let initialises = |access: &Access| access.ptx.text.contains("mbarrier.init");
    if accesses.iter().any(initialises) {
        return "initialise the barrier before anybody uses it: put `__syncthreads()`, or `cluster.sync()` where other blocks of the cluster use it, between `init` and its first use".to_owned();
    }
    if level == Level::Grid
        && let Some(repair) = &race.repair
        && let Some(frames) = &repair.relaxed_arrival
    {
        let at = frames.last().map_or_else(String::new, |frame| {
            format!(" at {}:{}", sources.shown(&frame.file), frame.line)
        });
        let of_one = match race.space {
            Space::Shared => "",
            Space::Global => "if the two blocks belong to one cluster, ",
        };
        return format!(
            "{of_one}the arrival at the cluster's barrier{at} is `.relaxed` and releases nothing: arrive with `barrier.cluster.arrive.release` (`cluster.sync()`, `cluster.barrier_arrive()`), or put `fence.acq_rel.cluster` ahead of it"
        );
    }
    if level == Level::Grid && race.space == Space::Shared {
        return "blocks of a cluster are ordered by the cluster's barrier (`cluster.sync()`, `barrier.cluster`) or by scopes that have both; put one between the two accesses".to_owned();
    }
    if race.why == Why::Fences {
        return "a fence orders others through a flag or a counter only: set it behind the fence of the first side, and read it in front of a fence of the second".to_owned();
    }
    if !race.decided {
        return "the kernel has operations that may order the two; the checks could not follow them, so look whether they do".to_owned();
    }
    if race.why == Why::Strong {
        let between = match level {
            Level::Warp => "put `__syncwarp()` between the two accesses",
            Level::Cta => {
                "put `__syncthreads()` between the two accesses, or hand the data over by a flag with `__threadfence_block()` before it is set"
            }
            Level::Grid => {
                "hand the data over by a flag or a counter, with `__threadfence()` between the first access and the write of the flag"
            }
        };
        return format!("`volatile` and relaxed accesses order nothing: {between}");
    }
    if strong {
        return "widen the scope: an atomic of block scope (`atomicAdd_block`, `thread_scope_block`) orders nothing between blocks; use the form without `_block`, or `thread_scope_device`".to_owned();
    }
    let written = update(accesses, sources).or_else(|| {
        let target = written_back(accesses, sources)?;
        let name = race.repair.as_ref()?.update.as_ref()?;
        Some(format!("{name}({}, …)", address(&target)))
    });
    let remedy = remedy::choose(race, accesses, sources, written);
    format!("{place}; {}", remedy.text())
}

/// The atomic call that does what a statement like `x[i] += y;` wants, when both sides stand in it.
fn update(accesses: &[Access; 2], sources: &Sources) -> Option<String> {
    let [first, second] = accesses.each_ref().map(Access::shown);
    let (first, second) = (first?, second?);
    if (&first.file, first.line) != (&second.file, second.line) {
        return None;
    }
    let line = sources.line(&first.file, first.line)?;
    let statement = line.split("//").next().unwrap_or_default();
    let statement = statement
        .rsplit(['{', '}'])
        .find(|part| !part.trim().is_empty())?;
    let statement = statement.trim().trim_end_matches(';').trim_end();
    let statement = match statement.strip_prefix("if") {
        // `if (c) x++` has its update behind the condition.
        Some(rest) if rest.trim_start().starts_with('(') => behind_parentheses(rest.trim_start())?,
        _ => statement,
    };
    for (operator, function) in [
        ("+=", "atomicAdd"),
        ("-=", "atomicSub"),
        ("|=", "atomicOr"),
        ("&=", "atomicAnd"),
        ("^=", "atomicXor"),
    ] {
        if let Some((target, value)) = statement.split_once(operator) {
            let value = value.trim();
            // Longer text is more likely several statements than a value.
            let simple = is_simple(target) && !value.contains([';', '=', '?', '{']);
            return simple.then(|| format!("{function}({}, {value})", address(target)));
        }
    }
    let stepped = |sign: &str| {
        statement
            .strip_suffix(sign)
            .or_else(|| statement.strip_prefix(sign))
            .filter(|target| is_simple(target))
    };
    if let Some(target) = stepped("++") {
        return Some(format!("atomicAdd({}, 1)", address(target)));
    }
    stepped("--").map(|target| format!("atomicSub({}, 1)", address(target)))
}

/// Whether a text is one expression that names memory, and nothing besides.
fn is_simple(target: &str) -> bool {
    let target = target.trim();
    extent(target, 1, 1, false).is_some_and(|range| range == (0..target.len()))
}

/// What an expression's address is called.
fn address(target: &str) -> String {
    let target = target.trim();
    target
        .strip_prefix('*')
        .map_or_else(|| format!("&{target}"), str::to_owned)
}

/// The expression that one side writes, when the other side reads it by the same words in another
/// statement.
fn written_back(accesses: &[Access; 2], sources: &Sources) -> Option<String> {
    let side = |op: &str| accesses.iter().find(|access| access.op == op);
    let (read, write) = (side("ld")?.shown()?, side("st")?.shown()?);
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

/// What follows the balanced parentheses at the beginning.
fn behind_parentheses(text: &str) -> Option<&str> {
    let mut depth = 0u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(text[at + 1..].trim()),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::model::FrameAt;
    use super::*;

    fn access(op: &str, sem: &str, line: u32) -> Access {
        Access {
            op: op.into(),
            atomic: op == "atom",
            sem: sem.into(),
            frames: vec![FrameAt {
                file: "x.cu".into(),
                line,
                ..FrameAt::default()
            }],
            ..Access::default()
        }
    }

    fn sources(text: &str) -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.cu"), text).unwrap();
        let sources = Sources::new(vec![folder.path().to_owned()]);
        (folder, sources)
    }

    #[test]
    fn an_update_in_one_statement_names_the_atomic() {
        let statements = [
            ("  x[i]++;", Some("atomicAdd(&x[i], 1)")),
            ("  --*p;", Some("atomicSub(p, 1)")),
            (
                "  *total += a[0] * 2;  // sum",
                Some("atomicAdd(total, a[0] * 2)"),
            ),
            ("  if (f(i)) flags[i] |= 4;", Some("atomicOr(&flags[i], 4)")),
            ("  for (;;) { h[k] += 1; }", Some("atomicAdd(&h[k], 1)")),
            ("  x[i] = y[i];", None),
        ];
        let text: Vec<&str> = statements.iter().map(|(line, _)| *line).collect();
        let (_folder, sources) = sources(&text.join("\n"));
        for (line, (statement, expected)) in (1..).zip(statements) {
            let sides = [access("ld", "weak", line), access("st", "weak", line)];
            assert_eq!(update(&sides, &sources).as_deref(), expected, "{statement}");
        }
        let apart = [access("ld", "weak", 1), access("st", "weak", 2)];
        assert_eq!(update(&apart, &sources), None);
    }

    #[test]
    fn a_value_that_is_read_and_written_back_is_named() {
        let (_folder, sources) = sources("int c = x[i];\nx[i] = c + 1;\nx[j] = c;\n");
        let help = |line| {
            let sides = [access("ld", "weak", 1), access("st", "weak", line)];
            written_back(
                &sides.map(|mut side| {
                    side.frames[0].column = 1;
                    side
                }),
                &sources,
            )
        };
        assert_eq!(help(2).as_deref(), Some("x[i]"));
        assert_eq!(help(3), None);
    }

    #[test]
    fn each_level_has_its_rule_and_remedy() {
        let (_folder, sources) = sources("");
        let of = |level, op, sem| {
            let sides = [access("st", sem, 1), access(op, sem, 2)];
            let race = log::Race {
                level,
                decided: true,
                ..log::Race::default()
            };
            let advice = advise(&race, &sides, &sources);
            (advice.rule, advice.kind, advice.help)
        };
        let (rule, kind, help) = of(Level::Warp, "ld", "weak");
        assert_eq!((rule, kind.as_str()), ("CR001", "write-read"));
        assert!(help.contains("__syncwarp()"));
        assert!(
            of(Level::Cta, "st", "weak")
                .2
                .contains("put `__syncthreads()`")
        );
        assert!(
            of(Level::Grid, "ld", "weak")
                .2
                .contains("does not reach other blocks")
        );
        assert!(
            of(Level::Grid, "atom", "weak")
                .2
                .contains("make the other atomic too")
        );
        assert_eq!(of(Level::Grid, "atom", "relaxed").0, "CR005");
        let undecided = advise(
            &log::Race::default(),
            &[access("st", "weak", 1), access("ld", "weak", 2)],
            &sources,
        );
        assert!(
            undecided.message.starts_with("possible") && undecided.message.contains("not decided")
        );
    }
}
