//! ptxas takes the PTX that every program carries, as each mode loads it, the instructions that are run on
//! random operands, and the files of `tests/exec`.
//!
//! For one target; `cargo xtask ptxas-table` asks for the others.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bench_rodinia::registers::{accepts, embedded, serves, target_of};
use filetests::{arithmetic, files, header};
use libtest_mimic::Trial;
use xtask::apps::{Program, Variant, build::Builder};
use xtask::registers::ptxas;
use xtask::toolkit::{Toolkit, parse_release};

use super::too_old;

/// The architecture that programs are built for.
const SM: u32 = 90;

/// A test per program; ignored without a builder.
pub(crate) fn trials<'a>(
    builder: Option<&Builder>,
    programs: impl Iterator<Item = &'a Program>,
) -> Vec<Trial> {
    let trial = |program: &Program| {
        let (program, builder) = (program.clone(), builder.cloned());
        let suite = if program.is_measured() {
            "bench"
        } else {
            "apps"
        };
        let name = format!("ptxas::{suite}::{}", program.name);
        let old = too_old(program.oldest_cuda(), builder.as_ref());
        let ignored = builder.is_none() || old.is_some();
        let run = move || match builder {
            Some(builder) => Ok(judge(&builder, &program).map_err(|error| format!("{error:#}"))?),
            None => Ok(()),
        };
        Trial::test(name, run)
            .with_ignored_flag(ignored)
            .with_kind(old.unwrap_or_default())
    };
    let good = programs.filter(|program| program.is_assembled());
    good.map(trial)
        .chain([forms(builder)])
        .chain(cases(builder))
        .collect()
}

/// The forms of instructions that are run on random operands are PTX.
fn forms(builder: Option<&Builder>) -> Trial {
    let toolkit = builder.map(|builder| builder.toolkit.clone());
    let text = arithmetic::module(&arithmetic::forms::all());
    let old = unknown_to(newest_of(builder), &text);
    let ignored = toolkit.is_none() || old.is_some();
    let run = move || match toolkit {
        Some(toolkit) => Ok(assemble_forms(&toolkit, &text).map_err(|error| format!("{error:#}"))?),
        None => Ok(()),
    };
    Trial::test("ptxas::arithmetic", run)
        .with_ignored_flag(ignored)
        .with_kind(old.unwrap_or_default())
}

/// The newest version of PTX that the toolkit's ptxas takes, as it says when it is given a newer one.
fn newest_of(builder: Option<&Builder>) -> Option<(u32, u32)> {
    let ptxas = ptxas(&builder?.toolkit).ok()?;
    let folder = tempfile::tempdir().ok()?;
    let file = folder.path().join("newest.ptx");
    std::fs::write(&file, ".version 99.0\n.target sm_90\n.address_size 64\n").ok()?;
    let output = Command::new(ptxas).arg(&file).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    parse_release(
        said.split("current version is '")
            .nth(1)?
            .split('\'')
            .next()?,
    )
}

/// Why an older ptxas is not asked about PTX.
fn unknown_to(newest: Option<(u32, u32)>, text: &str) -> Option<String> {
    let version = text.lines().find_map(|line| line.strip_prefix(".version "));
    let version = parse_release(version?.trim())?;
    (newest? < version).then(|| format!("needs PTX {}.{}", version.0, version.1))
}

fn assemble_forms(toolkit: &Toolkit, text: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("forms.ptx");
    std::fs::write(&file, text)?;
    let mut command = Command::new(ptxas(toolkit)?);
    // Thousands of kernels, of which nobody looks at the code.
    command
        .args(["-O0", "-arch", &format!("sm_{SM}")])
        .arg(&file);
    let output = command
        .arg("-o")
        .arg(folder.path().join("forms.cubin"))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<_> = said.lines().take(20).collect();
    ensure!(output.status.success(), "{}", first.join("\n"));
    Ok(())
}

/// A test per file of `tests/exec`: it is PTX, in every revision.
fn cases(builder: Option<&Builder>) -> Vec<Trial> {
    let exec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/exec");
    let toolkit = builder.map(|builder| builder.toolkit.clone());
    let newest = newest_of(builder);
    let trial = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default().display().to_string();
        let toolkit = toolkit.clone();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let old = unknown_to(newest, &text);
        let ignored = toolkit.is_none() || old.is_some();
        let run = move || match toolkit {
            Some(toolkit) => Ok(assemble_cases(&toolkit, &path).map_err(|e| format!("{e:#}"))?),
            None => Ok(()),
        };
        Trial::test(format!("ptxas::exec::{name}"), run)
            .with_ignored_flag(ignored)
            .with_kind(old.unwrap_or_default())
    };
    match files::below(&exec, "ptx") {
        Ok(paths) => paths.into_iter().map(trial).collect(),
        Err(error) => {
            let error = format!("{error:#}");
            vec![Trial::test("ptxas::exec", move || Err(error.into()))]
        }
    }
}

fn assemble_cases(toolkit: &Toolkit, path: &Path) -> Result<()> {
    let ptxas = ptxas(toolkit)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("case.ptx");
    for case in header::cases(&std::fs::read_to_string(path)?)? {
        std::fs::write(&file, &case.text)?;
        let own = target_of(&case.text).context("no `.target`")?;
        // ptxas knows no device as old as some files are written for.
        let target = match serves(&case.text, &format!("sm_{SM}")) {
            true => format!("sm_{SM}"),
            false => own.to_owned(),
        };
        let output = Command::new(&ptxas)
            .args(["-O0", "-arch", &target, "-o"])
            .arg(folder.path().join("case.cubin"))
            .arg(&file)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "[{}] {said}", case.revision);
    }
    Ok(())
}

fn judge(builder: &Builder, program: &Program) -> Result<()> {
    let ptxas = ptxas(&builder.toolkit)?;
    let built = builder.build(program, Variant::Clean)?;
    // Some load their PTX from a file.
    let files = built.arguments.iter().filter(|word| word.ends_with(".ptx"));
    let files = files.map(|path| std::fs::read_to_string(path).context(path.clone()));
    let mut texts = files.collect::<Result<Vec<_>>>()?;
    let bytes = std::fs::read(&built.program)?;
    texts.extend(embedded(&bytes, SM).map_err(anyhow::Error::msg)?);
    ensure!(!texts.is_empty(), "the program carries no PTX");
    let target = format!("sm_{SM}");
    for text in &texts {
        ensure!(serves(text, &target), "its PTX is not for {target}");
        accepts(&ptxas, text, &target).map_err(anyhow::Error::msg)?;
    }
    Ok(())
}
