//! Programs made by nvcc, under the tool: those of `tests/apps` and of `bench-rodinia/programs`, and what a user may
//! get wrong on the command line.
//!
//! One test per program and variant.
//! They need the toolkit and the installed tool, so they run under `cargo xtask test` and `cargo xtask apps`; a plain
//! `cargo test` counts them as ignored.

mod command_line;
mod registers;

use libtest_mimic::{Arguments, Failed, Trial};
use os::touches::PageTable;
use xtask::apps::{self, Program, build::Builder, judge};
use xtask::suite::READY;
use xtask::toolkit;
use xtask::workspace::Workspace;

fn main() -> std::process::ExitCode {
    match trials() {
        Ok(trials) => libtest_mimic::run(&Arguments::from_args(), trials).exit_code(),
        Err(error) => {
            let broken = Trial::test("setup", move || Err(Failed::from(format!("{error:#}"))));
            // No filter must hide it.
            let all = Arguments {
                filter: None,
                ..Arguments::from_args()
            };
            libtest_mimic::run(&all, vec![broken]).exit_code()
        }
    }
}

fn trials() -> anyhow::Result<Vec<Trial>> {
    let workspace = Workspace::locate()?;
    let programs = apps::discover(&workspace.root.join("tests/apps"))?;
    let ready = std::env::var_os(READY).is_some();
    let builder = match toolkit::find() {
        Some(toolkit) if ready => Some(Builder::of_tests(&workspace, toolkit)),
        None if ready => anyhow::bail!("no nvcc"),
        _ => None,
    };
    let of_all = |programs: &[Program], folder| -> Vec<Trial> {
        let trials = programs.iter();
        trials
            .flat_map(|program| of_program(program, folder, builder.as_ref()))
            .collect()
    };
    let mut trials = of_all(&programs, "apps");
    let measured = apps::discover(&workspace.root.join(apps::MEASURED))?;
    trials.extend(of_all(&measured, "bench"));
    let all = programs.iter().chain(&measured);
    trials.extend(registers::trials(builder.as_ref(), all));
    trials.extend(command_line::trials(builder.as_ref(), &programs));
    Ok(trials)
}

/// Why a program that wants a newer release of CUDA is ignored.
fn too_old(wanted: Option<(u32, u32)>, builder: Option<&Builder>) -> Option<String> {
    let wanted = wanted?;
    let release = builder?.toolkit.release().ok()?;
    (release < wanted).then(|| format!("needs CUDA {}.{}", wanted.0, wanted.1))
}

/// Why a program that wants to know which pages it touches is ignored.
fn without_page_table(program: &Program) -> Option<String> {
    let is_missing = program.needs_page_table() && PageTable::open().is_none();
    is_missing.then(|| "the system does not tell which pages a process touches".to_owned())
}

/// A test per variant; ignored without a builder, with one that is too old, and on a system that lacks something.
fn of_program(program: &Program, folder: &str, builder: Option<&Builder>) -> Vec<Trial> {
    let folder = if program.ends_badly() {
        "apps/bad"
    } else {
        folder
    };
    let trial = |variant| {
        let (program, builder) = (program.clone(), builder.cloned());
        let name = format!("{folder}::{}::{variant}", program.name);
        let old = too_old(program.oldest_cuda(), builder.as_ref());
        let lacks = old.or_else(|| without_page_table(&program));
        let ignored = builder.is_none() || lacks.is_some();
        let run =
            move || match builder {
                Some(builder) => Ok(judge::judge(&builder, &program, variant)
                    .map_err(|error| format!("{error:#}"))?),
                None => Ok(()),
            };
        Trial::test(name, run)
            .with_ignored_flag(ignored)
            .with_kind(lacks.unwrap_or_default())
    };
    program.variants().into_iter().map(trial).collect()
}
