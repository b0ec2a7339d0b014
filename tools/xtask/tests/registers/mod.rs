//! ptxas takes the PTX that every program carries, as each mode loads it, the instructions that are run on
//! random operands, and the files of `tests/exec` and `tests/race`.
//!
//! Files are assembled for their own target, everything else for one; `cargo xtask ptxas-table` covers all targets.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bench_rodinia::registers::{Accepted, accepts, embedded, serves, target_of};
use filetests::header::{self, Case};
use filetests::{arithmetic, files, merged};
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

/// A test per file of `tests/exec` and `tests/race`: it is PTX, in every revision.
fn cases(builder: Option<&Builder>) -> Vec<Trial> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let newest = newest_of(builder);
    let trial = |path: PathBuf| {
        let inside = path.strip_prefix(&tests).unwrap_or(&path);
        let inside = inside.with_extension("");
        let name = inside.display().to_string().replace('/', "::");
        let asked = builder.map(|of| (of.toolkit.clone(), of.folder.with_file_name(TAKEN)));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let old = unknown_to(newest, &text);
        let ignored = asked.is_none() || old.is_some();
        let run = move || match asked {
            Some((toolkit, taken)) => Ok(assemble_cases(&toolkit, &path, &taken.join(&inside))
                .map_err(|error| format!("{error:#}"))?),
            None => Ok(()),
        };
        Trial::test(format!("ptxas::{name}"), run)
            .with_ignored_flag(ignored)
            .with_kind(old.unwrap_or_default())
    };
    let all = ["exec", "race"].map(|folder| files::below(&tests.join(folder), "ptx"));
    match all.into_iter().collect::<Result<Vec<_>>>() {
        Ok(paths) => paths.into_iter().flatten().map(trial).collect(),
        Err(error) => {
            let error = format!("{error:#}");
            vec![Trial::test("ptxas::cases", move || Err(error.into()))]
        }
    }
}

/// The folder in the target folder that remembers which test files ptxas has accepted: a file for each, with the
/// fingerprint of its contents. Assembling all of them takes minutes of processor time.
const TAKEN: &str = "ptxas-taken";

/// The oldest architecture that ptxas of CUDA 13 knows. Files for an older one are assembled for this.
const OLDEST: &str = "sm_75";

fn assemble_cases(toolkit: &Toolkit, path: &Path, taken: &Path) -> Result<()> {
    let ptxas = ptxas(toolkit)?;
    let cases = header::cases(&std::fs::read_to_string(path)?)?;
    let key = key_of(&ptxas, &cases)?;
    if std::fs::read_to_string(taken).is_ok_and(|was| was == key) {
        return Ok(());
    }
    let texts = || cases.iter().map(|case| case.text.as_str());
    let together = merged::modules(texts());
    let all = together.iter().try_for_each(|text| takes(&ptxas, text));
    if all.is_err() {
        // Now with the name of the revision, and with its own lines.
        for case in &cases {
            takes(&ptxas, &case.text).with_context(|| format!("[{}]", case.revision))?;
        }
    }
    all.context("all revisions in one module")?;
    std::fs::create_dir_all(taken.parent().context("no folder")?)?;
    std::fs::write(taken, key)?;
    Ok(())
}

/// Fails unless ptxas takes a text, for an old target if it is for that.
fn takes(ptxas: &Path, text: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("case.ptx");
    std::fs::write(&file, text)?;
    let own = target_of(text).context("no `.target`")?;
    let target = match serves(text, OLDEST) {
        true => OLDEST,
        false => own,
    };
    let output = Command::new(ptxas)
        .args(["-O0", "-arch", target, "-o"])
        .arg(folder.path().join("case.cubin"))
        .arg(&file)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(())
}

/// A fingerprint of the cases of a file and of the ptxas that assembles them.
fn key_of(ptxas: &Path, cases: &[Case]) -> Result<String> {
    let of = ptxas.metadata()?;
    let mut hasher = DefaultHasher::new();
    (ptxas, of.len(), of.modified()?).hash(&mut hasher);
    cases.iter().for_each(|case| case.text.hash(&mut hasher));
    Ok(format!("{:016x}\n", hasher.finish()))
}

/// The checks' functions are the same in nearly all programs.
static ACCEPTED: Accepted = Accepted::new();

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
        accepts(&ACCEPTED, &ptxas, text, &target).map_err(anyhow::Error::msg)?;
    }
    Ok(())
}
