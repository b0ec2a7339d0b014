//! What NVIDIA's own race detector costs on the programs that are measured, to stand beside our figures.
//!
//! compute-sanitizer's racecheck sees shared memory only, and it is taken from the toolkit that is there.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::apps::{Settings, builder, programs};
use crate::apps::build::{Builder, Built};
use crate::apps::{MEASURED, Variant};
use crate::command;

/// What racecheck is asked to exit with when it has found something.
const FOUND: i32 = 66;
/// The longest that a program may take.
const MOST: Duration = Duration::from_secs(8);

/// What a program takes without and with racecheck.
#[derive(Debug, Default, Serialize)]
struct Figures {
    program: String,
    /// Seconds of the whole process, by itself.
    alone_seconds: Option<f64>,
    /// Seconds of the whole process under racecheck.
    racecheck_seconds: Option<f64>,
    /// It has found a hazard.
    found: Option<bool>,
    /// Why something is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Runs each measured program that has been compiled, alone and under racecheck, and writes `racecheck.json`; false
/// when one of them fails. Without compute-sanitizer nothing is measured, which is no failure.
///
/// # Errors
/// When there is no nvcc, or a file cannot be read or written.
pub fn run(settings: &Settings) -> Result<bool> {
    let builder = builder(settings)?;
    let Some(sanitizer) = sanitizer(&builder) else {
        println!("no compute-sanitizer, so nothing was measured");
        return Ok(true);
    };
    run_with(settings, &builder, &sanitizer)
}

/// Where the toolkit has it, if anywhere.
fn sanitizer(builder: &Builder) -> Option<PathBuf> {
    let places = ["bin", "compute-sanitizer"];
    let under = places.map(|place| builder.toolkit.root.join(place).join("compute-sanitizer"));
    let found = under
        .into_iter()
        .find(|path| ::toolkit::is_executable(path));
    ::toolkit::on_path("compute-sanitizer").or(found)
}

fn run_with(settings: &Settings, builder: &Builder, sanitizer: &PathBuf) -> Result<bool> {
    let mut all = Vec::new();
    for program in programs(settings, MEASURED)? {
        let mut figures = Figures {
            program: program.name.clone(),
            ..Figures::default()
        };
        match builder.find(&program, Variant::Clean)? {
            None => figures.why = Some("it has not been compiled".to_owned()),
            Some(built) => {
                if let Err(error) = measure(&mut figures, settings, sanitizer, &built) {
                    figures.why = Some(format!("{error:#}"));
                }
            }
        }
        let shown = |seconds: Option<f64>| match seconds {
            Some(seconds) => format!("{seconds:.2} s"),
            None => "not measured".to_owned(),
        };
        println!(
            "{:<16} alone {:<14} racecheck {:<14} {}",
            figures.program,
            shown(figures.alone_seconds),
            shown(figures.racecheck_seconds),
            figures.why.as_deref().unwrap_or_default()
        );
        all.push(figures);
    }
    let path = settings.results.join("racecheck.json");
    std::fs::write(&path, serde_json::to_string_pretty(&all)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(all.iter().all(|figures| figures.why.is_none()))
}

fn measure(
    figures: &mut Figures,
    settings: &Settings,
    sanitizer: &PathBuf,
    built: &Built,
) -> Result<()> {
    let left = || {
        let left = settings.deadline.saturating_duration_since(Instant::now());
        anyhow::ensure!(!left.is_zero(), "there was no time left");
        Ok(left.min(MOST))
    };
    let mut alone = Command::new(&built.program);
    let ended = command::finish_within(alone.arg(&settings.size), left()?)?;
    anyhow::ensure!(ended.code == 0, "it exits with {} by itself", ended.code);
    figures.alone_seconds = Some(ended.took.as_secs_f64());
    let mut checked = Command::new(sanitizer);
    checked.args(["--tool", "racecheck", "--print-limit", "1"]);
    checked.args(["--error-exitcode", &FOUND.to_string()]);
    checked.arg(&built.program).arg(&settings.size);
    let ended = command::finish_within(&mut checked, left()?)?;
    let last = ended.stdout.lines().last().unwrap_or_default();
    anyhow::ensure!(
        [0, FOUND].contains(&ended.code),
        "racecheck exits with {}: {last}",
        ended.code
    );
    figures.racecheck_seconds = Some(ended.took.as_secs_f64());
    figures.found = Some(ended.code == FOUND);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::dist::Dist;
    use crate::toolkit::Toolkit;

    #[test]
    fn programs_run_alone_and_under_racecheck() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let put = |name: &str, text: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
            std::fs::set_permissions(at(name), PermissionsExt::from_mode(0o755)).unwrap();
        };
        // Stand-ins: programs are scripts, and the one for racecheck runs what it is given.
        put(
            "compute-sanitizer",
            "#!/bin/sh\nwhile [ \"${1#--}\" != \"$1\" ]; do shift 2; done\n\"$@\" || exit $?\n\
             case $1 in */hazard) exit 66 ;; esac\n",
        );
        put(
            "nvcc",
            "#!/bin/sh\nfor word; do case $was in -o) out=$word ;; esac; was=$word; done\n\
             case $out in */fails) code=3 ;; *) code=0 ;; esac\n\
             printf '#!/bin/sh\\n[ $# = 1 ] || exit 4\\nexit %s\\n' $code >\"$out\"; chmod +x \"$out\"\n",
        );
        for name in ["fails", "fine", "hazard"] {
            let text = "//@ variants: clean\n//@ expect: no-race\n";
            put(&format!("bench-rodinia/programs/{name}.cu"), text);
        }
        std::fs::create_dir(at("results")).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let settings = Settings {
            kit: at(""),
            results: at("results"),
            arch: "sm_90".to_owned(),
            deadline,
            jobs: 1,
            size: "small".to_owned(),
            filters: Vec::new(),
        };
        let builder = Builder {
            toolkit: Toolkit {
                root: at(""),
                nvcc: at("nvcc"),
                found: String::new(),
            },
            dist: Dist { root: at("") },
            folder: at("built"),
            arch: settings.arch.clone(),
            until: None,
        };
        for program in programs(&settings, MEASURED).unwrap() {
            builder.build(&program, Variant::Clean).unwrap();
        }
        assert!(!run_with(&settings, &builder, &at("compute-sanitizer")).unwrap());
        let results = std::fs::read_to_string(at("results/racecheck.json")).unwrap();
        let results: serde_json::Value = serde_json::from_str(&results).unwrap();
        assert_eq!(results[0]["why"], "it exits with 3 by itself");
        assert!(results[0]["racecheck_seconds"].is_null());
        for (index, found) in [(1, false), (2, true)] {
            assert!(results[index]["alone_seconds"].is_number(), "{results}");
            assert!(results[index]["racecheck_seconds"].is_number(), "{results}");
            assert_eq!(results[index]["found"], found, "{results}");
        }
    }
}
