//! Runs a variant under the tool and compares what comes out with what its file expects.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use super::build::{Builder, Built};
use super::header::{Expect, Marks, Pair};
use super::report::{self, Races};
use super::{Program, Variant};
use crate::command::{self, Finished};

/// Longer than any run may take, on a slow machine too.
const LIMIT: Duration = Duration::from_secs(120);

/// The schedules that a program must come through: round robin, which is 0, and five others.
const SEEDS: std::ops::RangeInclusive<u64> = 0..=5;

/// Builds a variant, runs it and complains about the first thing that is not as expected.
pub fn judge(builder: &Builder, program: &Program, variant: Variant) -> Result<()> {
    let built = builder.build(program, variant)?;
    // How a program ends does not depend on the schedule: one run is enough there.
    let seeds = if program.ends_badly() { 0..=0 } else { SEEDS };
    for seed in seeds {
        let folder = tempfile::tempdir()?;
        let (finished, races) = run(&builder.dist.tool(), program, &built, seed, folder.path())?;
        if let Err(complaint) = compare(program, variant, &finished, races.as_ref()) {
            bail!(
                "seed {seed}: {complaint}\n--- standard output\n{}\n--- standard error\n{}",
                shorten(&finished.stdout),
                shorten(&finished.stderr)
            );
        }
    }
    Ok(())
}

/// One run under the tool, and the races of its report when there is one.
pub fn run(
    tool: &Path,
    program: &Program,
    built: &Built,
    seed: u64,
    folder: &Path,
) -> Result<(Finished, Option<Races>)> {
    let report = folder.join("report.json");
    let mut command = Command::new(tool);
    command.arg("--seed").arg(seed.to_string());
    command
        .args(["--format", "text", "--format"])
        .arg(format!("json:{}", report.display()));
    command
        .arg("--")
        .arg(&built.program)
        .args(&built.arguments)
        .current_dir(folder);
    let finished = command::finish_within(&mut command, LIMIT)?;
    let races = if report.exists() {
        Some(report::read(&report, &program.file_names())?)
    } else {
        None
    };
    Ok((finished, races))
}

fn compare(
    program: &Program,
    variant: Variant,
    finished: &Finished,
    races: Option<&Races>,
) -> Result<()> {
    if finished.stderr.contains("panicked at") {
        bail!("the tool panicked");
    }
    let expect = program.expect(variant)?;
    match (expect, races) {
        (Expect::NotChecked, None) => {}
        (_, None) => bail!("no report (exit code {})", finished.code),
        (_, Some(races)) => compare_races(expect, &program.marks, races)?,
    }
    let exit = program.exit(variant)?;
    if finished.code != exit {
        bail!("exit code {} instead of {exit}", finished.code);
    }
    for text in program.values("says", variant) {
        if !finished.stderr.contains(text) {
            bail!("nowhere in standard error: {text}");
        }
    }
    for text in program.values("stdout", variant) {
        if !finished.stdout.contains(text) {
            bail!("nowhere in standard output: {text}");
        }
    }
    Ok(())
}

/// The heart of it: the reported pairs of lines against the marked ones.
fn compare_races(expect: Expect, marks: &Marks, races: &Races) -> Result<()> {
    let none = Marks::default();
    let marks = if expect == Expect::Race { marks } else { &none };
    let missing: Vec<&Pair> = marks.must.difference(&races.certain).collect();
    let allowed: BTreeSet<Pair> = marks.must.union(&marks.may).cloned().collect();
    let extra: Vec<&Pair> = races.certain.difference(&allowed).collect();
    let undecided: Vec<&Pair> = match expect {
        Expect::NotDecided => Vec::new(),
        Expect::NoRace | Expect::NotChecked | Expect::Race => races.possible.iter().collect(),
    };
    let mut complaints = Vec::new();
    for (what, pairs) in [
        ("missed race", missing),
        ("race without a mark", extra),
        ("possible race without need", undecided),
    ] {
        complaints.extend(
            pairs
                .into_iter()
                .map(|pair| format!("{what} between {}", show(pair))),
        );
    }
    if !complaints.is_empty() {
        bail!("{}", complaints.join("; "));
    }
    Ok(())
}

fn show(((file, line), (other_file, other_line)): &Pair) -> String {
    format!("{file}:{line} and {other_file}:{other_line}")
}

/// The end of a long text: what a flood ends in is what one wants to see.
fn shorten(text: &str) -> &str {
    let start = text.len().saturating_sub(6000);
    let start = (start..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(lines: &[(u32, u32)]) -> BTreeSet<Pair> {
        lines
            .iter()
            .map(|(a, b)| (("x.cu".to_owned(), *a), ("x.cu".to_owned(), *b)))
            .collect()
    }

    fn complaint(expect: Expect, certain: &[(u32, u32)], possible: &[(u32, u32)]) -> String {
        let marks = Marks {
            must: pairs(&[(1, 2)]),
            may: pairs(&[(2, 2)]),
        };
        let races = Races {
            certain: pairs(certain),
            possible: pairs(possible),
        };
        compare_races(expect, &marks, &races)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn marked_races_must_be_there_and_no_others() {
        assert_eq!(complaint(Expect::Race, &[(1, 2)], &[]), "");
        assert_eq!(complaint(Expect::Race, &[(1, 2), (2, 2)], &[]), "");
        assert_eq!(
            complaint(Expect::Race, &[(2, 2)], &[]),
            "missed race between x.cu:1 and x.cu:2"
        );
        assert_eq!(
            complaint(Expect::Race, &[(1, 2), (1, 3)], &[]),
            "race without a mark between x.cu:1 and x.cu:3"
        );
        assert_eq!(
            complaint(Expect::Race, &[(1, 2)], &[(4, 5)]),
            "possible race without need between x.cu:4 and x.cu:5"
        );
    }

    #[test]
    fn a_clean_program_may_at_most_be_undecided_and_only_where_it_says_so() {
        assert_eq!(complaint(Expect::NoRace, &[], &[]), "");
        assert_eq!(complaint(Expect::NotDecided, &[], &[(1, 2)]), "");
        assert!(complaint(Expect::NotDecided, &[(1, 2)], &[]).contains("race without a mark"));
        assert!(complaint(Expect::NoRace, &[], &[(1, 2)]).contains("possible race"));
    }
}
