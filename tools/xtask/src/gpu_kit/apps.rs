//! The programs of a kit: compiled there, and judged on the GPU.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::apps::judge::{self, Way};
use crate::apps::{self, Program, Variant, build::Builder};
use crate::dist::Dist;
use crate::toolkit;

/// What to do, and where.
#[derive(Debug)]
pub struct Settings {
    /// The kit's folder.
    pub kit: PathBuf,
    /// The folder of the results.
    pub results: PathBuf,
    /// The GPU's architecture, sm_NN.
    pub arch: String,
    /// What has not begun by then is not run.
    pub deadline: Instant,
    /// Compilers or programs at a time.
    pub jobs: usize,
    /// Size of the programs that are measured.
    pub size: String,
    /// Parts of names; all programs when empty.
    pub filters: Vec<String>,
}

/// What became of a variant of a program.
#[derive(Debug, Serialize)]
struct Outcome {
    program: String,
    variant: String,
    /// `right`, `wrong`, `skipped` or `not run`.
    outcome: &'static str,
    /// The complaint, or why it is skipped.
    why: String,
}

/// Compiles everything that the later steps need; false when something does not compile.
///
/// # Errors
/// When there is no nvcc, or a file cannot be read or written.
pub fn build(settings: &Settings) -> Result<bool> {
    let builder = builder(settings)?;
    let tested = programs(settings, "tests/apps")?;
    let measured = programs(settings, apps::MEASURED)?;
    let mut all = variants(&tested);
    all.extend(measured.iter().map(|program| (program, Variant::Clean)));
    let outcomes = each(settings, &all, |program, variant| {
        builder.build(program, variant).map(|_| "")
    });
    for program in &measured {
        // What did not compile has been said; its measurement says so again.
        if let Ok(built) = builder.build(program, Variant::Clean) {
            let manifest = serde_json::json!({
                "tool": builder.dist.tool(),
                "programs": [{ "name": program.name, "program": built.program, "arguments": [settings.size] }],
            });
            let path = settings
                .results
                .join(format!("manifest-{}.json", program.name));
            std::fs::write(&path, serde_json::to_string_pretty(&manifest)?)?;
        }
    }
    report(settings, "build.json", &outcomes)
}

/// Judges the variants of the programs of `tests/apps`; false when one is not as expected.
///
/// # Errors
/// When there is no nvcc, or a file cannot be read or written.
pub fn run(settings: &Settings) -> Result<bool> {
    let builder = builder(settings)?;
    let way = match std::env::var_os("CUDARUN_CHECK_DRIVER_SIMULATED") {
        Some(value) if value == "1" => Way::AsOnGpu,
        _ => Way::Gpu,
    };
    let tested = programs(settings, "tests/apps")?;
    let outcomes = each(settings, &variants(&tested), |program, variant| {
        if let Some(why) = program.values("not-as-on-gpu", variant).next() {
            return Ok(why);
        }
        let built = builder.build(program, variant)?;
        judge::judge_once(&builder, program, variant, &built, way).map(|()| "")
    });
    report(settings, "apps.json", &outcomes)
}

fn builder(settings: &Settings) -> Result<Builder> {
    Ok(Builder {
        toolkit: toolkit::find().context("no nvcc of CUDA 12 or later on PATH or in CUDA_HOME")?,
        dist: Dist {
            root: settings.kit.canonicalize()?,
        },
        folder: std::path::absolute(&settings.results)?.join("built"),
        arch: settings.arch.clone(),
    })
}

fn programs(settings: &Settings, folder: &str) -> Result<Vec<Program>> {
    let mut all = apps::discover(&settings.kit.join(folder))?;
    let wanted = |name: &str| {
        let mut parts = settings.filters.iter();
        settings.filters.is_empty() || parts.any(|part| name.contains(part.as_str()))
    };
    all.retain(|program| wanted(&program.name));
    Ok(all)
}

fn variants(programs: &[Program]) -> Vec<(&Program, Variant)> {
    let of = |program| {
        Program::variants(program)
            .into_iter()
            .map(move |one| (program, one))
    };
    programs.iter().flat_map(of).collect()
}

/// Does something with each variant, several at a time; a text that it gives says why nothing was done.
fn each<'a>(
    settings: &Settings,
    all: &[(&'a Program, Variant)],
    act: impl Fn(&'a Program, Variant) -> Result<&'a str> + Sync,
) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut outcomes = Vec::new();
        while let Some((program, variant)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (outcome, why) = match Instant::now() < settings.deadline {
                false => ("not run", String::new()),
                true => match act(program, *variant) {
                    Ok("") => ("right", String::new()),
                    Ok(why) => ("skipped", why.to_owned()),
                    Err(error) => ("wrong", format!("{error:#}")),
                },
            };
            outcomes.push(Outcome {
                program: program.name.clone(),
                variant: variant.to_string(),
                outcome,
                why,
            });
        }
        outcomes
    };
    let mut outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.jobs.max(1))
            .map(|_| scope.spawn(take))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join())
            .flatten()
            .collect()
    });
    outcomes.sort_by(|a, b| (&a.program, &a.variant).cmp(&(&b.program, &b.variant)));
    outcomes
}

/// Writes down what became of everything, and prints what was not right; true when nothing was wrong.
fn report(settings: &Settings, file: &str, outcomes: &[Outcome]) -> Result<bool> {
    ensure!(!outcomes.is_empty(), "no program has such a name");
    let path = settings.results.join(file);
    std::fs::write(&path, serde_json::to_string_pretty(outcomes)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    let mut good = true;
    for outcome in outcomes.iter().filter(|one| one.outcome != "right") {
        good &= outcome.outcome == "skipped";
        let Outcome {
            program,
            variant,
            outcome,
            why,
        } = outcome;
        println!("{program} ({variant}): {outcome}: {why}");
    }
    Ok(good)
}
