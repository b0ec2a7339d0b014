//! The `cargo xtask` command.

#![allow(
    clippy::print_stderr,
    reason = "a command-line tool says what went wrong"
)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{
    api_table, apps, bench, browser, demo, device, dist, dist::Profile, gpu_kit, mutants, names,
    oracles, package, python, registers, suite, tidy, toolkit, workspace::Workspace,
};

/// Project automation for cudarun-check.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the tool, compile a racy histogram with nvcc and show what cudarun-check says about it.
    Demo,
    /// Run every check there is.
    Test(suite::Options),
    /// Build the programs of tests/apps and run them under the tool; arguments go to the test runner.
    Apps {
        /// Filters and options of the test runner.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Compile the programs of tests/apps and bench-rodinia until standard input ends; `test` starts this.
    #[command(hide = true)]
    CompileAhead,
    /// Put the command and its libraries together in <target>/dist.
    Dist,
    /// Make packages of that: an archive, a Debian package, a Python wheel (all, without a kind), and try them.
    Package {
        /// Which.
        kinds: Vec<package::PackageKind>,
    },
    /// Run the programs of tests/python under the tool, with packages from PyPI (all, without a package).
    Python {
        /// Which.
        packages: Vec<python::Package>,
    },
    /// Find nvcc and z3, or fetch them from PyPI into a cached folder.
    Toolkit,
    /// Compile the rule for the GPU again and write the committed PTX.
    Device {
        /// Only say whether the committed PTX is current.
        #[arg(long)]
        check: bool,
    },
    /// Write the list of the driver's functions again, from the headers of CUDA 13.0.
    Names {
        /// Only say whether the committed list is current.
        #[arg(long)]
        check: bool,
    },
    /// Write the tables of the API functions that the simulated device has.
    ApiTable {
        /// Only say whether the committed tables are current.
        #[arg(long)]
        check: bool,
    },
    /// Check the layout of the source tree.
    Tidy,
    /// Hold the oracles against each other on random kernels; options go to the fuzzer, whose `--help` lists them.
    #[command(disable_help_flag = true)]
    Fuzz {
        /// Options of the fuzzer; with `--affine`, of the one for kernels with linear addresses.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Take synchronisation away from what is right, one instruction at a time, and print how many such mutants are
    /// reported, how many are proved equivalent, and what is known of each of the others.
    Mutate(mutants::Options),
    /// Write the tables of docs/verdicts.md and docs/verify.md: what every oracle says of the files of tests/race.
    Verdicts,
    /// Write docs/instructions.md again: which instructions are executed, checked and tested.
    Instructions {
        /// Only say whether the committed page is current.
        #[arg(long)]
        check: bool,
    },
    /// Make a folder with all that is to be run on a machine with a GPU, 60 MiB at most.
    GpuKit {
        /// Where; <target>/gpu-kit without it.
        folder: Option<std::path::PathBuf>,
    },
    /// Measure checked against unchecked runs of the programs of bench-rodinia, or of tests/apps.
    Bench(bench::Options),
    /// Try the HTML report in Chromium (Debian's package chromium): filter, keys, narrow and wide, light and dark.
    Browser,
    /// Assemble every program's PTX with and without checks, and write docs/registers.md.
    PtxasTable(registers::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<bool> {
    let workspace = Workspace::locate()?;
    match arguments.command {
        Command::Demo => demo::run(&workspace),
        Command::Test(options) => suite::run(&workspace, &options),
        Command::Apps { arguments } => suite::apps(&workspace, &arguments),
        Command::CompileAhead => apps::ahead::compile(&workspace),
        Command::Dist => dist::build(&workspace, Profile::Release).map(|dist| dist.announce()),
        Command::Package { kinds } => package::run(&workspace, &kinds),
        Command::Python { packages } => dist::build(&workspace, Profile::Release)
            .and_then(|dist| python::run(&workspace, &dist, &packages)),
        Command::Toolkit => toolkit::ensure_all(),
        Command::Device { check } => device::run(&workspace, check),
        Command::Names { check } => names::run(&workspace, check),
        Command::ApiTable { check } => api_table::run(&workspace, check),
        Command::Browser => browser::run(),
        Command::Tidy => tidy::run(&workspace),
        Command::Fuzz { arguments } => oracles::fuzz(&workspace, &arguments),
        Command::Mutate(options) => mutants::run(&workspace, &options),
        Command::Verdicts => oracles::verdicts(&workspace),
        Command::Instructions { check } => oracles::instructions(&workspace, check),
        Command::GpuKit { folder } => gpu_kit::make(&workspace, folder.as_deref()),
        Command::Bench(options) => bench::run(&workspace, &options),
        Command::PtxasTable(options) => registers::run(&workspace, &options),
    }
}
