//! `cargo xtask ptxas-table`: compiles every program to PTX, and has `bench-rodinia` write docs/registers.md
//! and, into the target folder, a table of all kernels.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::apps::{self, Program, Variant};
use crate::command;
use crate::toolkit::{self, Toolkit};
use crate::workspace::Workspace;

/// What nvcc is asked for, the oldest first.
const ARCHITECTURES: [&str; 3] = ["compute_75", "compute_80", "compute_90"];

/// Command line of `cargo xtask ptxas-table`.
#[derive(Args)]
pub struct Options {
    /// What to assemble for.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "sm_75,sm_80,sm_86,sm_90,sm_100"
    )]
    targets: Vec<String>,
    /// Where to write the page [default: docs/registers.md].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Only programs whose name contains one of these.
    filter: Vec<String>,
}

/// Writes the table; false when ptxas refuses a rewritten module.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let toolkit = toolkit::ensure()?;
    let folder = workspace.target.join("ptx");
    std::fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    for suite in ["tests/apps", apps::MEASURED] {
        for program in apps::discover(&workspace.root.join(suite))? {
            let mut parts = options.filter.iter();
            let wanted =
                options.filter.is_empty() || parts.any(|part| program.name.contains(part.as_str()));
            if wanted && program.is_assembled() {
                files.extend(compile(&toolkit, &program, suite, &folder)?);
            }
        }
    }
    let mut cargo = workspace.cargo(&[
        "run",
        "--quiet",
        "--release",
        "--package",
        "bench-rodinia",
        "--bin",
        "registers",
        "--",
        "--ptxas",
    ]);
    cargo.arg(ptxas(&toolkit)?);
    cargo.arg("--out").arg(match &options.out {
        Some(path) => std::path::absolute(path)?,
        None => workspace.root.join("docs/registers.md"),
    });
    cargo
        .arg("--csv")
        .arg(workspace.target.join("ptxas-table.csv"));
    for target in &options.targets {
        cargo.arg("--target").arg(target);
    }
    command::succeeds(cargo.args(files))
}

/// The assembler beside nvcc.
pub fn ptxas(toolkit: &Toolkit) -> Result<PathBuf> {
    let program = toolkit.nvcc.with_file_name("ptxas");
    match ::toolkit::is_executable(&program) {
        true => Ok(program),
        false => bail!("no {}", program.display()),
    }
}

/// PTX of each file of a program, for the oldest architecture that it can be for.
fn compile(
    toolkit: &Toolkit,
    program: &Program,
    suite: &str,
    folder: &Path,
) -> Result<Vec<PathBuf>> {
    let mut further = program.words("ptx", Variant::Clean);
    let own = program.words("nvcc", Variant::Clean);
    // Without this, nvcc refuses kernels that launch kernels.
    further.extend(own.into_iter().filter(|&option| option == "-rdc=true"));
    let mut texts = Vec::new();
    for file in program.files() {
        // Both suites have programs of the same name.
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let suite = suite.rsplit('/').next().unwrap_or_default();
        let output = folder.join(format!("{suite}-{stem}.ptx"));
        let mut last = Ok(());
        for architecture in ARCHITECTURES {
            last = compile_for(architecture, toolkit, &further, &file, &output);
            if last.is_ok() {
                break;
            }
        }
        last.with_context(|| format!("{} compiles for no target", file.display()))?;
        texts.push(output);
    }
    Ok(texts)
}

/// PTX that the assembler takes: nvcc hands on instructions in `asm` that an architecture does not have.
fn compile_for(
    architecture: &str,
    toolkit: &Toolkit,
    further: &[&str],
    file: &Path,
    output: &Path,
) -> Result<()> {
    let mut nvcc = Command::new(&toolkit.nvcc);
    toolkit.prepare(&mut nvcc);
    nvcc.args(["-ptx", "-O2", "-lineinfo", "-arch", architecture])
        .args(further)
        .arg("-o")
        .arg(output)
        .arg(file);
    command::output(&mut nvcc)?;
    let cubin = output.with_extension("cubin");
    let mut assembler = Command::new(ptxas(toolkit)?);
    // Nobody looks at the code, so it need not be good. Other files may have what this one declares.
    assembler
        .args(["-O0", "-c", "-arch"])
        .arg(architecture.replace("compute_", "sm_"))
        .arg("-o")
        .arg(&cubin)
        .arg(output);
    let taken = command::output(&mut assembler).map(drop);
    // It is not there when the assembler has refused.
    drop(std::fs::remove_file(&cubin));
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_compiled_for_the_oldest_architecture_that_the_assembler_takes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // Copied by another process: a file that a fork of ours still has open cannot be run.
        let put = |name: &str, text: &str| {
            std::fs::write(at("text"), text).unwrap();
            let mut install = Command::new("install");
            install.args(["-m", "755"]).arg(at("text")).arg(at(name));
            command::run(&mut install).unwrap();
        };
        // The compiler takes everything, and writes down what for; the assembler knows when the source was new.
        put(
            "nvcc",
            "#!/bin/sh\nfor word; do case $was in -arch) arch=$word ;; -o) out=$word ;; esac; was=$word; done\n\
             echo \"$arch $(sed -n 's/.*since //p' \"$word\")\" >\"$out\"\n",
        );
        put(
            "ptxas",
            "#!/bin/sh\nfor word; do case $was in -arch) arch=${word#sm_} ;; -o) : >\"$word\" ;; esac; was=$word; done\n\
             read own since <\"$word\"\n[ $own = compute_$arch ] && [ $arch -ge $since ] || { echo too old >&2; exit 1; }\n",
        );
        let toolkit = Toolkit {
            root: at(""),
            nvcc: at("nvcc"),
            found: String::new(),
        };
        let compiled = |since: &str| {
            let text = format!("//@ variants: clean\n//@ expect: no-race\n// since {since}\n");
            std::fs::write(at("a.cu"), text).unwrap();
            let program = Program::read(&at("a.cu")).unwrap();
            compile(&toolkit, &program, "tests/apps", folder.path())
        };
        for (since, architecture) in [
            ("70", "compute_75"),
            ("80", "compute_80"),
            ("90", "compute_90"),
        ] {
            let outputs = compiled(since).unwrap();
            assert_eq!(outputs, [at("apps-a.ptx")]);
            let text = std::fs::read_to_string(&outputs[0]).unwrap();
            assert_eq!(text.split(' ').next(), Some(architecture), "since {since}");
        }
        let refused = format!("{:#}", compiled("100").unwrap_err());
        assert!(
            refused.contains("compiles for no target") && refused.contains("too old"),
            "{refused}"
        );
        assert!(!at("apps-a.cubin").exists());
    }
}
