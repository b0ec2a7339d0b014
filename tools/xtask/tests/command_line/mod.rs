//! What a user may get wrong on the command line: each has its exit code and one clear message.

mod gpu;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use xtask::apps::{Expect, Program, Variant, build::Builder, judge};
use xtask::command;

type Check = fn(&Builder, &[Program], &Path) -> Result<()>;

const CHECKS: [(&str, Check); 11] = [
    ("program_not_found", program_not_found),
    ("program_not_executable", program_not_executable),
    ("program_without_cuda", program_without_cuda),
    (
        "program_of_another_architecture",
        program_of_another_architecture,
    ),
    ("report_folder_not_writable", report_folder_not_writable),
    ("two_checked_programs_at_once", two_checked_programs_at_once),
    ("installed_elsewhere", installed_elsewhere),
    ("cubin_inspected", cubin_inspected),
    ("gpu::same_output", gpu::same_output),
    ("gpu::choice_of_the_device", gpu::choice_of_the_device),
    ("gpu::static_runtime", gpu::static_runtime),
];

/// One test per check; ignored without a builder.
pub(crate) fn trials(builder: Option<&Builder>, programs: &[Program]) -> Vec<Trial> {
    let trial = |(name, check): (&str, Check)| {
        let (builder, programs) = (builder.cloned(), programs.to_vec());
        let ignored = builder.is_none();
        let run = move || match builder {
            Some(builder) => {
                let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
                Ok(check(&builder, &programs, folder.path())
                    .map_err(|error| format!("{error:#}"))?)
            }
            None => Ok(()),
        };
        Trial::test(format!("command_line::{name}"), run).with_ignored_flag(ignored)
    };
    CHECKS.into_iter().map(trial).collect()
}

/// Runs the tool and wants this exit code and these words on standard error, without a panic.
fn expect(builder: &Builder, arguments: &[&str], code: i32, words: &[&str]) -> Result<()> {
    let mut tool = Command::new(builder.dist.tool());
    let finished = command::finish_within(tool.args(arguments), Duration::from_secs(60))?;
    let said = &finished.stderr;
    ensure!(!said.contains("panicked at"), "the tool panicked:\n{said}");
    ensure!(
        finished.code == code,
        "exit code {} instead of {code}:\n{said}",
        finished.code
    );
    for word in words {
        ensure!(
            said.contains(word),
            "nowhere in standard error: {word}\n{said}"
        );
    }
    Ok(())
}

fn program_not_found(builder: &Builder, _: &[Program], folder: &Path) -> Result<()> {
    let missing = folder.join("no-such-program").display().to_string();
    expect(builder, &[&missing], 127, &["no-such-program", "not found"])
}

fn program_not_executable(builder: &Builder, _: &[Program], folder: &Path) -> Result<()> {
    let path = folder.join("notes.txt");
    std::fs::write(&path, "not a program\n")?;
    expect(
        builder,
        &[&path.display().to_string()],
        126,
        &["notes.txt", "not executable"],
    )
}

fn program_without_cuda(builder: &Builder, _: &[Program], _: &Path) -> Result<()> {
    expect(builder, &["true"], 75, &["CUDA"])
}

fn program_of_another_architecture(
    builder: &Builder,
    programs: &[Program],
    folder: &Path,
) -> Result<()> {
    let mut bytes = std::fs::read(first_racy(builder, programs)?)?;
    // The machine's number in the ELF header: SPARC V9, which none of our machines is.
    bytes[18..20].copy_from_slice(&[43, 0]);
    let path = folder.join("foreign");
    std::fs::write(&path, bytes)?;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
    expect(
        builder,
        &[&path.display().to_string()],
        126,
        &["architecture"],
    )
}

/// The run's verdict still stands, and the message names the file that could not be written.
fn report_folder_not_writable(
    builder: &Builder,
    programs: &[Program],
    folder: &Path,
) -> Result<()> {
    let program = first_racy(builder, programs)?.display().to_string();
    // A file in place of the folder: permissions would not stop root.
    std::fs::write(folder.join("file"), "")?;
    let report = folder.join("file/report.json").display().to_string();
    expect(
        builder,
        &["--format", &format!("json:{report}"), &program],
        70,
        &[&report],
    )
}

fn two_checked_programs_at_once(
    builder: &Builder,
    programs: &[Program],
    folder: &Path,
) -> Result<()> {
    let racy: Vec<&Program> = programs
        .iter()
        .filter(|program| is_racy(program))
        .take(2)
        .collect();
    let run = |program: &Program| -> Result<()> {
        let built = builder.build(program, Variant::Racy)?;
        let own = folder.join(&program.name);
        std::fs::create_dir(&own)?;
        let (_, races) = judge::run(builder, program, &built, judge::Way::Simulated(1), &own)?;
        let found = races.map(|races| races.certain).unwrap_or_default();
        ensure!(
            found.is_superset(&program.marks.must),
            "{} found only {found:?}",
            program.name
        );
        Ok(())
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = racy
            .iter()
            .map(|program| scope.spawn(|| run(program)))
            .collect();
        runs.into_iter().try_for_each(|run| {
            run.join()
                .unwrap_or_else(|_| anyhow::bail!("a thread of the test panicked"))
        })
    })
}

/// The folder that `dist` makes works in another place, with spaces in its path, through a link.
fn installed_elsewhere(builder: &Builder, programs: &[Program], folder: &Path) -> Result<()> {
    let program = first_racy(builder, programs)?;
    let there = folder.join("a folder with spaces");
    let mut copy = Command::new("cp");
    command::run(copy.arg("-a").arg(&builder.dist.root).arg(&there))?;
    let link = folder.join("link");
    std::os::unix::fs::symlink(there.join("bin/cudarun-check"), &link)?;
    let mut tool = Command::new(&link);
    let finished = command::finish_within(tool.arg(program), Duration::from_secs(60))?;
    let said = &finished.stderr;
    ensure!(finished.code == 66, "exit code {}:\n{said}", finished.code);
    ensure!(said.contains("SUMMARY: cudarun-check: "), "{said}");
    Ok(())
}

/// A cubin with line information carries the PTX that would be checked; one without has nothing.
fn cubin_inspected(builder: &Builder, _: &[Program], folder: &Path) -> Result<()> {
    let source = folder.join("kernel.cu");
    std::fs::write(&source, "__global__ void stores(int *p) { *p = 1; }\n")?;
    for (option, words) in [
        ("-lineinfo", "cubin, with the PTX that it was compiled from"),
        ("-O2", "machine code only"),
    ] {
        let cubin = folder.join("kernel.cubin");
        let mut nvcc = Command::new(&builder.toolkit.nvcc);
        builder.toolkit.prepare(&mut nvcc);
        nvcc.args(["-arch=sm_90", "-cubin", option, "-o"]);
        command::output(nvcc.arg(&cubin).arg(&source))?;
        let mut tool = Command::new(builder.dist.tool());
        let said = command::output(tool.arg("inspect").arg(&cubin))?;
        ensure!(said.contains(words), "{option}: {said}");
        ensure!(said.contains("stores(int*)"), "{option}: {said}");
    }
    Ok(())
}

fn is_racy(program: &Program) -> bool {
    !program.ends_badly()
        && program.variants().contains(&Variant::Racy)
        && program
            .expect(Variant::Racy)
            .is_ok_and(|expect| expect == Expect::Race)
}

fn first_racy(builder: &Builder, programs: &[Program]) -> Result<PathBuf> {
    let program = programs.iter().find(|program| is_racy(program));
    let program = program.ok_or_else(|| anyhow::anyhow!("no racy program under tests/apps"))?;
    Ok(builder.build(program, Variant::Racy)?.program)
}
