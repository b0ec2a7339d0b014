//! Kernels written anew from what papers say of theirs, and what `verify` answers for them.
//!
//! `published: TABLE NAME, RACES` names the table of a paper, the kernel in it, and how many races it has by the paper.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use report::log::Answer;

use super::Entry;
use crate::header::{Case, Class};
use crate::race;

/// What a revision stands for.
struct Published<'a> {
    name: &'a str,
    races: usize,
}

fn published<'a>(case: &'a Case, table: &str) -> Result<Option<Published<'a>>> {
    let Some(line) = case.get("published") else {
        return Ok(None);
    };
    let parts = line.split_once(' ').zip(line.split_once(", "));
    let ((of, _), (_, races)) = parts.context("expected `published: TABLE NAME, RACES`")?;
    if of != table {
        return Ok(None);
    }
    let name = &line[of.len() + 1..line.len() - races.len() - 2];
    let races = races.parse().context("`published`: no number of races")?;
    Ok(Some(Published { name, races }))
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
        let Some(of) = published(case, table).with_context(in_file)? else {
            continue;
        };
        let found = marked(case)?;
        ensure!(
            found == of.races,
            "{}: {found} races, and {} by the paper",
            entry.file,
            of.races
        );
        let mut others = entries
            .iter()
            .filter(|other| other.file == entry.file && other.case.revision != case.revision);
        let other = others.next().map(|other| words(&other.case));
        let other = other.transpose().with_context(in_file)?;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            of.name,
            of.races,
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
