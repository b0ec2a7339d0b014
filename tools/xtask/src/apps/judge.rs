//! Runs a variant under the tool and compares what comes out with what its file expects.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ::report::Report;
use ::report::log::Answer;
use anyhow::{Context, Result, bail};

use super::build::{Builder, Built};
use super::header::{Expect, Marks, Pair};
use super::report::{self, Races};
use super::{Program, Variant};
use crate::command::{self, Finished};

/// Names of files of a run.
const REPORT: &str = "report.json";
const RECORDING: &str = "run.crr";
/// The exit code of a race that was replayed.
const RACES: i32 = 66;
/// The exit code of `verify` where a launch is not proved.
const NOT_PROVED: i32 = 75;

/// The key of races that `fast` mode misses; its value is what the tool says of that.
const UNSEEN_IN_FAST: &str = "unseen-in-fast";

/// Longer than any run may take, on a slow machine too.
const LIMIT: Duration = Duration::from_secs(120);

/// Likewise, on a GPU, whose driver takes a while over the code of big modules.
const GPU_LIMIT: Duration = Duration::from_secs(60);

/// Memory for the cells on a GPU, where several programs run at a time: as much as the simulated device gives them.
const GPU_SHADOW: &str = "2GiB";

/// The last schedule whose races are recorded and replayed.
const LAST_RECORDED: u64 = 1;

/// The schedules that a program must come through: round robin, which is 0, and five others.
const SEEDS: RangeInclusive<u64> = 0..=5;
/// Those of a program that is there to be measured.
const MEASURED_SEEDS: RangeInclusive<u64> = 0..=1;

/// Builds a variant, runs it and complains about the first thing that is not as expected.
pub fn judge(builder: &Builder, program: &Program, variant: Variant) -> Result<()> {
    let built = builder.build(program, variant)?;
    let advised = program.expect(variant)? == Expect::Advised;
    let seeds = match () {
        // How a program ends does not depend on the schedule: one run is enough there.
        () if program.ends_badly() || advised => 0..=0,
        () if program.is_measured() => MEASURED_SEEDS,
        () => SEEDS,
    };
    // The last schedule, or one more run where there is one alone, holds the proofs against what happens.
    let last = *seeds.end();
    let mut ways: Vec<Way> = seeds
        .filter(|&seed| seed == 0 || seed != last)
        .map(Way::Simulated)
        .collect();
    ways.push(Way::Audited(last));
    if program.values("not-as-on-gpu", variant).next().is_none() && !advised {
        ways.push(Way::AsOnGpu);
    }
    if program.values(UNSEEN_IN_FAST, variant).next().is_some() {
        ways.push(Way::Fast);
    }
    ways.into_iter()
        .try_for_each(|way| judge_once(builder, program, variant, &built, way))?;
    match program.verify(variant)? {
        Some(answer) => verify(builder, program, &built, answer),
        None => agrees(builder, &built, program.exit(variant)?),
    }
    .context("verify")
}

/// Asks `verify` about a program that ends with `exit` when it is run, and complains if one of the two finds a race and
/// the other does not.
fn agrees(builder: &Builder, built: &Built, exit: i32) -> Result<()> {
    // As in a run, volatile accesses are no plain ones.
    let (finished, _) = ask(builder, built, &["--volatile", "strong"])?;
    if (finished.code == RACES) != (exit == RACES) {
        bail!(
            "exit code {}, and {exit} of a run\n{}",
            finished.code,
            shorten(&finished.stderr)
        );
    }
    Ok(())
}

/// Runs `verify` with a program; how it has ended, and the report.
fn ask(builder: &Builder, built: &Built, options: &[&str]) -> Result<(Finished, String)> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join(REPORT);
    let mut command = Command::new(builder.dist.tool());
    command.arg("verify").args(options).args(&built.options);
    let format = format!("json:{}", report.display());
    command.args(["--format", &format, "--"]);
    command.arg(&built.program).args(&built.arguments);
    let finished = command::finish_within(command.current_dir(folder.path()), LIMIT)?;
    let text = std::fs::read_to_string(&report);
    let text = text.with_context(|| format!("no report\n{}", shorten(&finished.stderr)))?;
    Ok((finished, text))
}

/// Asks `verify` about a program, and complains about another answer.
fn verify(builder: &Builder, program: &Program, built: &Built, expected: Answer) -> Result<()> {
    let (finished, text) = ask(builder, built, &[])?;
    let verified = Report::from_json(&text)?.verified;
    let weakest = verified.iter().min_by_key(|of| of.answer);
    let weakest = weakest.with_context(|| format!("{} has no launch", program.name))?;
    if weakest.answer != expected {
        bail!(
            "{:?} instead of {expected:?}: {}, {:?}",
            weakest.answer,
            weakest.kernel,
            weakest.because
        );
    }
    let exit = match expected {
        Answer::Race => RACES,
        Answer::Unknown => NOT_PROVED,
        Answer::ThisData | Answer::AllData => 0,
    };
    if finished.code != exit {
        bail!("exit code {} instead of {exit}", finished.code);
    }
    Ok(())
}

/// Runs a variant that has been built in one way, and complains about the first thing that is not as expected.
pub fn judge_once(
    builder: &Builder,
    program: &Program,
    variant: Variant,
    built: &Built,
    way: Way,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (finished, races) = run(builder, program, built, way, folder.path())?;
    let result = match way {
        Way::Fast => compare_fast(program, variant, &finished, races.as_ref()),
        _ => compare(program, variant, &finished, races.as_ref()),
    };
    if let Err(complaint) = result {
        bail!(
            "{way:?}: {complaint}\n--- standard output\n{}\n--- standard error\n{}",
            shorten(&finished.stdout),
            shorten(&finished.stderr)
        );
    }
    if records(way) {
        replay(builder, folder.path()).with_context(|| format!("{way:?}, replayed"))?;
    }
    Ok(())
}

/// Whether launches with races are recorded, to be replayed.
fn records(way: Way) -> bool {
    matches!(way, Way::Simulated(seed) if seed <= LAST_RECORDED)
}

/// Replays all races that a run has recorded.
fn replay(builder: &Builder, folder: &Path) -> Result<()> {
    let Ok(text) = std::fs::read_to_string(folder.join(REPORT)) else {
        return Ok(());
    };
    let report = Report::from_json(&text)?;
    let recorded = report.races.iter();
    for race in recorded.filter(|race| race.kernel.recorded.is_some()) {
        let mut command = Command::new(builder.dist.tool());
        command.arg("replay").arg(folder.join(RECORDING));
        command.args(["--id", &race.id]).current_dir(folder);
        let finished = command::finish_within(&mut command, LIMIT)?;
        if finished.code != RACES {
            let said = shorten(&finished.stderr);
            bail!("{}: exit code {}\n{said}", race.id, finished.code);
        }
    }
    Ok(())
}

/// How the tool comes to a device.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// The simulated one, under the schedule of a seed.
    Simulated(u64),
    /// The same, where everything is checked and no proof may be wrong.
    Audited(u64),
    /// The simulated one, in `fast` mode, where the races are known to be missed.
    Fast,
    /// As to a GPU: our library stands in front of a driver, which is the simulated one.
    AsOnGpu,
    /// To the GPU of this machine.
    Gpu,
}

/// One run under the tool, until the builder's time is up at most, and the races of its report when there is one.
pub fn run(
    Builder {
        dist,
        toolkit,
        until,
        ..
    }: &Builder,
    program: &Program,
    built: &Built,
    way: Way,
    folder: &Path,
) -> Result<(Finished, Option<Races>)> {
    let report = folder.join(REPORT);
    let mut command = Command::new(dist.tool());
    match way {
        Way::Simulated(seed) | Way::Audited(seed) => {
            command.args(["--device", "sim", "--seed"]);
            command.arg(seed.to_string());
            if let Way::Audited(_) = way {
                command.args(["--prove", "audit"]);
            }
            // The first run is as a user's; the others are other schedules themselves.
            if seed != 0 && !built.options.iter().any(|of| of == "--explore") {
                command.args(["--explore", "0"]);
            }
            if records(way) {
                command
                    .arg("--record")
                    .arg("--save")
                    .arg(folder.join(RECORDING));
            }
        }
        Way::Fast => {
            command.args(["--device", "sim", "--mode", "fast"]);
        }
        Way::AsOnGpu => {
            let libraries = dist.libraries();
            command.args(["--device", "gpu"]);
            command.env("CUDARUN_CHECK_DRIVER", libraries.join("libcuda.so.1"));
            command.env("CUDARUN_CHECK_DRIVER_SIMULATED", "1");
            // NVIDIA's runtime library would not run on the simulated driver.
            command.env("LD_LIBRARY_PATH", libraries);
        }
        Way::Gpu => {
            command.args(["--device", "gpu", "--shadow-mem", GPU_SHADOW]);
            command.env("LD_LIBRARY_PATH", toolkit.library_path());
        }
    }
    // A GPU needs less, and a run there has less time.
    let limit = match way {
        Way::Gpu => GPU_LIMIT,
        Way::Simulated(_) | Way::Audited(_) | Way::Fast | Way::AsOnGpu => LIMIT,
    };
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let limit = left.map_or(limit, |left| left.min(limit));
    // Paths are shown as below that folder, wherever the tree lies.
    if let Some(folder) = program.path.parent() {
        command.arg("--source-root").arg(folder);
    }
    command
        .args(&built.options)
        .args(["--format", "text", "--format"])
        .arg(format!("json:{}", report.display()));
    command
        .arg("--")
        .arg(&built.program)
        .args(&built.arguments)
        .current_dir(folder);
    let finished = command::finish_within(&mut command, limit)?;
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
    has_texts(finished, program.values("says", variant))?;
    for text in program.values("stdout", variant) {
        if !finished.stdout.contains(text) {
            bail!("nowhere in standard output: {text}");
        }
    }
    Ok(())
}

/// No race, and a word about what was not looked for, which may make the run incomplete.
fn compare_fast(
    program: &Program,
    variant: Variant,
    finished: &Finished,
    races: Option<&Races>,
) -> Result<()> {
    let races = races.context("no report")?;
    compare_races(Expect::NoRace, &Marks::default(), races)?;
    let incomplete = finished.code == 75 && finished.stderr.contains("; incomplete: ");
    if finished.code != 0 && !incomplete {
        bail!("exit code {} instead of 0", finished.code);
    }
    has_texts(finished, program.values(UNSEEN_IN_FAST, variant))
}

/// Complains about the first text that the tool has not said.
fn has_texts<'a>(finished: &Finished, mut texts: impl Iterator<Item = &'a str>) -> Result<()> {
    match texts.find(|text| !finished.stderr.contains(text)) {
        Some(text) => bail!("nowhere in standard error: {text}"),
        None => Ok(()),
    }
}

/// The heart of it: the reported pairs of lines against the marked ones.
fn compare_races(expect: Expect, marks: &Marks, races: &Races) -> Result<()> {
    let none = Marks::default();
    let marks = if expect == Expect::Race { marks } else { &none };
    let seen: BTreeSet<Pair> = races.certain.union(&races.possible).cloned().collect();
    let mut missing: Vec<&Pair> = marks.must.difference(&races.certain).collect();
    missing.extend(marks.same_value.difference(&seen));
    let allowed = marks.must.union(&marks.may).chain(&marks.same_value);
    let allowed: BTreeSet<Pair> = allowed.cloned().collect();
    let extra: Vec<&Pair> = races.certain.difference(&allowed).collect();
    let undecided: Vec<&Pair> = match expect {
        Expect::NotDecided => Vec::new(),
        Expect::Advised => return Ok(()),
        Expect::NoRace | Expect::NotChecked | Expect::Race => {
            races.possible.difference(&marks.same_value).collect()
        }
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

fn show([first, second]: &Pair) -> String {
    format!("{first} and {second}")
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
    use super::super::header::SourceLine;
    use super::*;

    fn pairs(lines: &[(u32, u32)]) -> BTreeSet<Pair> {
        lines
            .iter()
            .map(|&(a, b)| {
                [a, b].map(|line| SourceLine {
                    file: "x.cu".to_owned(),
                    line,
                })
            })
            .collect()
    }

    fn complaint(expect: Expect, certain: &[(u32, u32)], possible: &[(u32, u32)]) -> String {
        let marks = Marks {
            must: pairs(&[(1, 2)]),
            may: pairs(&[(2, 2)]),
            same_value: pairs(&[(3, 3)]),
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
        let race = |certain: &[(u32, u32)]| complaint(Expect::Race, certain, &[(3, 3)]);
        assert_eq!(race(&[(1, 2)]), "");
        assert_eq!(race(&[(1, 2), (2, 2)]), "");
        assert_eq!(race(&[(2, 2)]), "missed race between x.cu:1 and x.cu:2");
        assert_eq!(complaint(Expect::Race, &[(1, 2), (3, 3)], &[]), "");
        assert_eq!(
            complaint(Expect::Race, &[(1, 2)], &[]),
            "missed race between x.cu:3 and x.cu:3"
        );
        assert_eq!(
            race(&[(1, 2), (1, 3)]),
            "race without a mark between x.cu:1 and x.cu:3"
        );
        assert_eq!(
            complaint(Expect::Race, &[(1, 2)], &[(3, 3), (4, 5)]),
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
