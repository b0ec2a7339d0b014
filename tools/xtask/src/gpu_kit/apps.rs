//! The programs of a kit: compiled there, and judged on the GPU.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::apps::build::{Builder, Built};
use crate::apps::header::Expect;
use crate::apps::judge::{self, Way};
use crate::apps::{self, Program, Variant};
use crate::command;
use crate::dist::Dist;
use crate::toolkit::{self, Toolkit};

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
pub(super) struct Outcome {
    pub(super) program: String,
    variant: String,
    /// `right`, `wrong`, `skipped`, `not run` or `by itself`.
    pub(super) outcome: &'static str,
    /// The complaint, or why it is skipped.
    pub(super) why: String,
    /// How long it took.
    seconds: f64,
}

/// How long a program may run without the tool.
const ALONE: Duration = Duration::from_secs(10);

/// How long after [`Settings::deadline`] a compiler or a program may still be at work.
const LAST: Duration = Duration::from_secs(10);

/// Compiles everything that the later steps need, what is measured first; false when something does not compile.
///
/// # Errors
/// When there is no nvcc, or a file cannot be read or written.
pub fn build(settings: &Settings) -> Result<bool> {
    build_with(settings, &builder(settings)?)
}

fn build_with(settings: &Settings, builder: &Builder) -> Result<bool> {
    let measured = programs(settings, apps::MEASURED)?;
    let tested = programs(settings, "tests/apps")?;
    let mut all: Vec<Run<'_>> = measured.iter().map(Run::clean).collect();
    all.extend(variants(&tested));
    let outcomes = each(settings, &all, |program, variant| {
        builder.build(program, variant).map(|_| Done::Right)
    });
    let mut there = Vec::new();
    for program in &measured {
        // What is not there has been said.
        if let Some(built) = builder.find(program, Variant::Clean)? {
            there.push(serde_json::json!({
                "name": program.name, "program": built.program, "arguments": [settings.size],
            }));
        }
    }
    if !measured.is_empty() {
        let manifest = serde_json::json!({ "tool": builder.dist.tool(), "programs": there });
        let path = settings.results.join("manifest.json");
        std::fs::write(&path, serde_json::to_string_pretty(&manifest)?)?;
    }
    report(settings, "build.json", &outcomes)
}

/// Judges those variants of the programs of `tests/apps` that have been compiled; false when one is not as
/// expected, or not there.
///
/// # Errors
/// When there is no nvcc, or a file cannot be read or written.
pub fn run(settings: &Settings) -> Result<bool> {
    let builder = builder(settings)?;
    let way = match std::env::var_os("CUDARUN_CHECK_DRIVER_SIMULATED") {
        Some(value) if value == "1" => Way::AsOnGpu,
        _ => Way::Gpu,
    };
    run_with(settings, &builder, way)
}

fn run_with(settings: &Settings, builder: &Builder, way: Way) -> Result<bool> {
    let over = || builder.until.is_some_and(|until| Instant::now() >= until);
    let tested = programs(settings, "tests/apps")?;
    let outcomes = each(settings, &variants(&tested), |program, variant| {
        let kept_away = ["not-as-on-gpu", "not-on-gpu"];
        let mut why = kept_away
            .iter()
            .flat_map(|key| program.values(key, variant));
        if let Some(why) = why.next() {
            return Ok(Done::Skipped(why));
        }
        if program.expect(variant)? == Expect::Advised {
            return Ok(Done::Skipped("advice is judged on the simulated device"));
        }
        match builder.find(program, variant)? {
            None => Ok(Done::NotRun("it has not been compiled")),
            Some(built) => match judge::judge_once(builder, program, variant, &built, way) {
                Ok(()) => Ok(Done::Right),
                Err(_) if over() => Ok(Done::NotRun("it had not ended when the time was up")),
                Err(error) => match by_itself(&builder.toolkit, program, variant, &built)? {
                    Some(how) => Ok(Done::ByItself(format!("{how}; under the tool: {error:#}"))),
                    None => Err(error),
                },
            },
        }
    });
    report(settings, "apps.json", &outcomes)
}

/// Runs a program without the tool. If it does not end as its file expects, returns how it ends: then the tool is not the
/// cause.
fn by_itself(
    toolkit: &Toolkit,
    program: &Program,
    variant: Variant,
    built: &Built,
) -> Result<Option<String>> {
    // If the file expects races, its exit code is the tool's and says nothing of the program.
    if program.expect(variant)? != Expect::NoRace {
        return Ok(None);
    }
    let expected = program.exit(variant)?;
    let mut command = Command::new(&built.program);
    command.args(&built.arguments);
    command.env("LD_LIBRARY_PATH", toolkit.library_path());
    Ok(match command::finish_within(&mut command, ALONE) {
        Ok(ended) if ended.code == expected => None,
        Ok(ended) => Some(format!("it exits with {} without the tool", ended.code)),
        Err(error) => Some(format!("without the tool: {error:#}")),
    })
}

pub(super) fn builder(settings: &Settings) -> Result<Builder> {
    Ok(Builder {
        toolkit: toolkit::find().context("no nvcc of CUDA 12 or later on PATH or in CUDA_HOME")?,
        dist: Dist {
            root: settings.kit.canonicalize()?,
        },
        folder: std::path::absolute(&settings.results)?.join("built"),
        arch: settings.arch.clone(),
        until: Some(settings.deadline + LAST),
    })
}

/// A variant of a program to run.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) program: &'a Program,
    pub(super) variant: Variant,
}

impl<'a> Run<'a> {
    pub(super) fn clean(program: &'a Program) -> Self {
        Self {
            program,
            variant: Variant::Clean,
        }
    }
}

/// What has become of a variant for which nothing has failed.
pub(super) enum Done<'a> {
    Right,
    /// It is not to be run, and why.
    Skipped(&'a str),
    /// It could not be run, and why.
    NotRun(&'static str),
    /// It does not do what its file expects without the tool either. Says how it ends.
    ByItself(String),
}

pub(super) fn programs(settings: &Settings, folder: &str) -> Result<Vec<Program>> {
    let mut all = apps::discover(&settings.kit.join(folder))?;
    let wanted = |name: &str| {
        let mut parts = settings.filters.iter();
        settings.filters.is_empty() || parts.any(|part| name.contains(part.as_str()))
    };
    all.retain(|program| wanted(&program.name));
    Ok(all)
}

fn variants(programs: &[Program]) -> Vec<Run<'_>> {
    let of = |program| {
        Program::variants(program)
            .into_iter()
            .map(move |variant| Run { program, variant })
    };
    programs.iter().flat_map(of).collect()
}

/// Does something with each variant, several at a time.
pub(super) fn each<'a>(
    settings: &Settings,
    all: &[Run<'a>],
    act: impl Fn(&'a Program, Variant) -> Result<Done<'a>> + Sync,
) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut outcomes = Vec::new();
        while let Some(&Run { program, variant }) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let (outcome, why) = match Instant::now() < settings.deadline {
                false => ("not run", "there was no time left".to_owned()),
                true => match act(program, variant) {
                    Ok(Done::Right) => ("right", String::new()),
                    Ok(Done::Skipped(why)) => ("skipped", why.to_owned()),
                    Ok(Done::NotRun(why)) => ("not run", why.to_owned()),
                    Ok(Done::ByItself(how)) => ("by itself", how),
                    Err(error) => ("wrong", format!("{error:#}")),
                },
            };
            outcomes.push(Outcome {
                program: program.name.clone(),
                variant: variant.to_string(),
                outcome,
                why,
                seconds: start.elapsed().as_secs_f64(),
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
        good &= ["skipped", "by itself"].contains(&outcome.outcome);
        let Outcome {
            program,
            variant,
            outcome,
            why,
            ..
        } = outcome;
        println!("{program} ({variant}): {outcome}: {why}");
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolkit::Toolkit;

    /// A kit whose compiler and tool are shell scripts, in a folder.
    struct Kit(tempfile::TempDir);

    impl Kit {
        fn of(nvcc: &str, tool: &str, programs: &[&str]) -> Kit {
            let kit = Kit(tempfile::tempdir().unwrap());
            kit.put("nvcc", nvcc);
            kit.put("bin/cudarun-check", tool);
            for name in programs {
                kit.put(
                    name,
                    "// A program.\n//@ variants: clean\n//@ expect: no-race\n",
                );
            }
            std::fs::create_dir(kit.at("results")).unwrap();
            kit
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn put(&self, name: &str, text: &str) {
            // Copied by another process: a file that a fork of ours still has open cannot be run.
            std::fs::write(self.at("text"), text).unwrap();
            let mut install = std::process::Command::new("install");
            install
                .args(["-D", "-m", "755"])
                .arg(self.at("text"))
                .arg(self.at(name));
            crate::command::run(&mut install).unwrap();
        }

        fn settings(&self) -> Settings {
            Settings {
                kit: self.at(""),
                results: self.at("results"),
                arch: "sm_90".to_owned(),
                deadline: Instant::now() + Duration::from_secs(30),
                jobs: 2,
                size: "small".to_owned(),
                filters: Vec::new(),
            }
        }

        fn builder(&self, until: Option<Instant>) -> Builder {
            Builder {
                toolkit: Toolkit {
                    root: self.at(""),
                    nvcc: self.at("nvcc"),
                    found: String::new(),
                },
                dist: Dist { root: self.at("") },
                folder: self.at("built"),
                arch: "sm_90".to_owned(),
                until,
            }
        }

        /// What is written down of each program: what became of it, and why.
        fn outcomes(&self, file: &str) -> Vec<(String, String)> {
            let results = std::fs::read_to_string(self.at("results").join(file)).unwrap();
            let results: serde_json::Value = serde_json::from_str(&results).unwrap();
            let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap().to_owned();
            let all = results.as_array().unwrap().iter();
            all.map(|one| (text(one, "outcome"), text(one, "why")))
                .collect()
        }
    }

    /// Before the file comes `-o` and the place of the result.
    const NVCC: &str = "#!/bin/sh\nfor word; do case $was in -o) out=$word ;; esac; was=$word; done\n\
         case \"$*\" in *tardy*) sleep 60 ;; esac\n: >\"$out\"\n";

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(2))
    }

    #[test]
    fn a_compiler_that_takes_too_long_costs_only_its_program() {
        let programs = [
            "bench-rodinia/programs/tardy.cu",
            "bench-rodinia/programs/quick.cu",
            "tests/apps/other.cu",
        ];
        let kit = Kit::of(NVCC, "", &programs);
        assert!(!build_with(&kit.settings(), &kit.builder(soon())).unwrap());
        let outcomes = kit.outcomes("build.json");
        let right = ("right".to_owned(), String::new());
        assert_eq!(outcomes[..2], [right.clone(), right]);
        let (outcome, why) = &outcomes[2];
        assert!(outcome == "wrong" && why.contains("did not end"), "{why}");
        let manifest = std::fs::read_to_string(kit.at("results/manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let programs = manifest["programs"].as_array().unwrap();
        assert_eq!(programs.len(), 1, "{manifest}");
        assert_eq!(programs[0]["name"], "quick");
    }

    #[test]
    fn where_nothing_is_to_be_measured_there_is_no_manifest() {
        let kit = Kit::of(
            NVCC,
            "",
            &["bench-rodinia/programs/quick.cu", "tests/apps/other.cu"],
        );
        let settings = Settings {
            filters: vec!["other".to_owned()],
            ..kit.settings()
        };
        assert!(build_with(&settings, &kit.builder(None)).unwrap());
        assert_eq!(kit.outcomes("build.json").len(), 1);
        assert!(!kit.at("results/manifest.json").exists());
    }

    #[test]
    fn what_fails_without_the_tool_too_is_not_the_tools_fault() {
        // The program called `broken` fails by itself; under the tool both fail.
        let nvcc = "#!/bin/sh\nfor word; do case $was in -o) out=$word ;; esac; was=$word; done\n\
             printf '#!/bin/sh\\ncase $0 in *broken) exit 3 ;; esac\\n' >\"$out\"; chmod +x \"$out\"\n";
        let tool = "#!/bin/sh\nfor word; do case $word in json:*) report=${word#json:} ;; esac; done\n\
             echo '{\"schema_version\": \"1.0\", \"tool\": {\"name\": \"cudarun-check\"}}' >\"$report\"; exit 3\n";
        let kit = Kit::of(nvcc, tool, &["tests/apps/broken.cu", "tests/apps/sound.cu"]);
        let settings = kit.settings();
        for program in programs(&settings, "tests/apps").unwrap() {
            kit.builder(None).build(&program, Variant::Clean).unwrap();
        }
        let until = Some(Instant::now() + Duration::from_secs(60));
        assert!(!run_with(&settings, &kit.builder(until), Way::Gpu).unwrap());
        let [(broken, why), (sound, _)] = &kit.outcomes("apps.json")[..] else {
            panic!("two programs")
        };
        assert_eq!((broken.as_str(), sound.as_str()), ("by itself", "wrong"));
        assert!(why.starts_with("it exits with 3 without the tool"), "{why}");
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_before_the_step_is() {
        // Writes a report without races, where it gets how much of a GPU's memory it may have.
        let tool = "#!/bin/sh\nfor word; do case $word in json:*) report=${word#json:} ;; esac; done\n\
             case $* in *slow*) sleep 6 ;; esac\n\
             case $* in *'--device gpu --shadow-mem '*) echo '{\"schema_version\": \"1.0\", \"tool\": {\"name\": \"cudarun-check\"}}' >\"$report\" ;; esac\n";
        let kit = Kit::of(NVCC, tool, &["tests/apps/quick.cu", "tests/apps/slow.cu"]);
        let settings = kit.settings();
        for program in programs(&settings, "tests/apps").unwrap() {
            kit.builder(None).build(&program, Variant::Clean).unwrap();
        }
        assert!(!run_with(&settings, &kit.builder(soon()), Way::Gpu).unwrap());
        let [(quick, _), (slow, why)] = &kit.outcomes("apps.json")[..] else {
            panic!("two programs")
        };
        assert_eq!((quick.as_str(), slow.as_str()), ("right", "not run"));
        assert_eq!(why, "it had not ended when the time was up");
    }
}
