//! Kernels written anew from what papers say of theirs, and what `verify` answers for them.
//!
//! `published: TABLE NAME, RACES` names the table of a paper, the kernel in it, and how many races it has by the paper.
//! Of a table that counts kernels by group, it is `published: TABLE GROUP: NAME`, and the name is ours.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use report::log::Answer;

use super::Entry;
use crate::header::{Case, Class};
use crate::race::{self, Verdict};

/// The groups of the ILA paper's table of small kernels, and how many kernels each has.
const GROUPS: [(&str, usize); 7] = [
    ("atomic", 6),
    ("base ld/st", 10),
    ("barrier", 6),
    ("branch", 6),
    ("sync block", 5),
    ("intra warp", 4),
    ("lock", 20),
];

/// What a revision stands for: the words behind the name of this table.
fn published<'a>(case: &'a Case, table: &str) -> Option<&'a str> {
    let (of, rest) = case.get("published")?.split_once(' ')?;
    (of == table).then_some(rest)
}

/// The name of a kernel, and how many races it has by the paper.
fn named(text: &str) -> Result<(&str, usize)> {
    let parts = text.rsplit_once(", ");
    let (name, races) = parts.context("expected `published: TABLE NAME, RACES`")?;
    let races = races.parse().context("`published`: no number of races")?;
    Ok((name, races))
}

/// Pairs of accesses that are marked as races, which `verify` must report.
fn marked(case: &Case) -> Result<usize> {
    let labels = race::labels(case)?;
    let races = labels.keys().filter(|(class, _)| *class == Class::Race);
    Ok(races.count())
}

/// What `verify` answers, which the file must state.
fn answer(case: &Case) -> Result<Answer> {
    race::answer(case)?.context("`published` needs `verify`")
}

/// The answer in words, with the reason that the file gives.
fn words(case: &Case) -> Result<String> {
    let reason = case.get("verify").and_then(|line| line.split_once(", "));
    let reason = reason.map_or(String::new(), |(_, reason)| format!(": {reason}"));
    Ok(match answer(case)? {
        Answer::Race => match marked(case)? {
            1 => "1 race".to_owned(),
            races => format!("{races} races"),
        },
        Answer::Unknown => format!("unknown{reason}"),
        Answer::ThisData => format!("proved, this data{reason}"),
        Answer::AllData => "proved, all data".to_owned(),
    })
}

/// One row for each kernel of a table: the paper's races, our answer, the fact that it needs, and the answer for the other
/// revision of the file.
pub(super) fn kernels(entries: &[Entry], table: &str) -> Result<String> {
    let mut text = String::from(
        "| kernel | races, the paper | answer | what the launch tells | otherwise |\n|---|---:|---|---|---|\n",
    );
    let (mut kernels, mut races, mut proved) = (0, 0, 0);
    for entry in entries {
        let case = &entry.case;
        let in_file = || entry.file.clone();
        let Some(stated) = published(case, table) else {
            continue;
        };
        let (name, published) = named(stated).with_context(in_file)?;
        let found = marked(case)?;
        ensure!(
            found == published,
            "{}: {found} races, and {published} by the paper",
            entry.file
        );
        let mut others = entries
            .iter()
            .filter(|other| other.file == entry.file && other.case.revision != case.revision);
        let other = others.next().map(|other| words(&other.case));
        let other = other.transpose().with_context(in_file)?;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            name,
            published,
            words(case).with_context(in_file)?,
            case.get("fact").unwrap_or_default(),
            other.unwrap_or_default(),
        );
        kernels += 1;
        races += found;
        proved += usize::from(matches!(answer(case)?, Answer::AllData));
    }
    let _ = writeln!(
        text,
        "| **{kernels} kernels** | {races} | {races} races, no false alarm, {proved} proved | | |"
    );
    Ok(text)
}

/// How many kernels get which answer.
#[derive(Clone, Copy, Default)]
struct Count {
    right: usize,
    unknown: usize,
    wrong: usize,
}

/// The tables of the ILA paper's small kernels: by group, and each kernel with its truth and our answer. A wrong answer or a
/// missing kernel is an error.
pub(super) fn ila(entries: &[Entry]) -> Result<String> {
    let mut rows = String::from("| group | kernel | is | answer |\n|---|---|---|---|\n");
    let mut sums = String::from(
        "| group | kernels, the paper | right | unknown | wrong |\n|---|---:|---:|---:|---:|\n",
    );
    let mut all = Count::default();
    for (group, published_kernels) in GROUPS {
        let mut count = Count::default();
        for entry in entries {
            let case = &entry.case;
            let of = published(case, "ila").and_then(|text| text.split_once(": "));
            let Some((_, name)) = of.filter(|of| of.0 == group) else {
                continue;
            };
            let in_file = || entry.file.clone();
            let truth = race::expected(case).with_context(in_file)?;
            let of = match (truth, answer(case).with_context(in_file)?) {
                (_, Answer::Unknown) => &mut count.unknown,
                (Verdict::Race, Answer::Race)
                | (Verdict::NoRace, Answer::ThisData | Answer::AllData) => &mut count.right,
                _ => &mut count.wrong,
            };
            *of += 1;
            let is = match truth {
                Verdict::Race => "racy",
                _ => "clean",
            };
            let answer = words(case).with_context(in_file)?;
            let _ = writeln!(rows, "| {group} | {name} | {is} | {answer} |");
        }
        let Count {
            right,
            unknown,
            wrong,
        } = count;
        let kernels = right + unknown + wrong;
        ensure!(
            kernels == published_kernels && wrong == 0,
            "{group}: {kernels} kernels, {wrong} wrong; {published_kernels} by the paper"
        );
        let _ = writeln!(
            sums,
            "| {group} | {kernels} | {right} | {unknown} | {wrong} |"
        );
        all.right += right;
        all.unknown += unknown;
        all.wrong += wrong;
    }
    let kernels = all.right + all.unknown + all.wrong;
    let stated = entries.iter().filter_map(|of| published(&of.case, "ila"));
    let stated = stated.count();
    ensure!(
        stated == kernels,
        "{stated} kernels, of which {kernels} are in a group of the paper"
    );
    let _ = writeln!(
        sums,
        "| **all** | {kernels} | {} | {} | {} |",
        all.right, all.unknown, all.wrong
    );
    Ok(format!("{sums}\n{rows}"))
}
