//! The command line: one row per flag.

use std::ffi::{OsStr, OsString};
use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use report::log::Space;
use runtime::choice::{Pattern, RangePattern, parse_share};
use runtime::options::{Verify, Volatile};
use runtime::{ShadowSize, parse_sample};

use crate::device;
use crate::exit::{BAD_INPUT, RACES, Stop};
use crate::kernel::spec::ArgSpec;
use crate::output::{Formats, Wanted};
use crate::settings::{self, Settings};

/// Find data races in CUDA programs.
#[derive(Debug, Parser)]
#[command(
    name = "cudarun-check",
    version = env!("CUDARUN_CHECK_VERSION"),
    after_help = "All options: cudarun-check run --help\n\nExit codes: the program's own (128+N for signal N); 66 races found; 75 incomplete: something was not checked, did not finish, or could not be saved; \
                  64 usage; 65 bad input file; 69 no such device; 70 internal error; 124 timeout; 126 cannot execute; 127 not found.",
    override_usage = "cudarun-check [OPTIONS] [--] APP [ARGS]...\n       cudarun-check [OPTIONS] x.ptx --grid N --block N [--arg SPEC]...\n       cudarun-check verify [OPTIONS] APP [ARGS]...\n       cudarun-check report|replay|suppress|baseline|diff|explain|rewrite|inspect|doctor ..."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program, or a kernel of a .ptx file, and report its races (the default)
    Run(Box<RunArgs>),
    /// Prove that the launches of a program, or of a kernel of a .ptx file, race under no schedule, or say why that
    /// cannot be proved
    Verify(Box<VerifyArgs>),
    /// Show saved reports again, in any format; several are merged into one
    Report(ReportArgs),
    /// Run the recorded launch of a race again and show what its two threads did between their accesses
    Replay(ReplayArgs),
    /// Print suppressions of the races of saved reports, for `--suppressions FILE`
    Suppress(SuppressArgs),
    /// Make and change a list of known races, for `--baseline FILE`
    #[command(subcommand)]
    Baseline(BaselineCommand),
    /// Compare two saved reports: list new, gone and common races, and exit with 66 if there are new ones
    Diff(DiffArgs),
    /// Insert the race checks into PTX and write the result
    Rewrite(RewriteArgs),
    /// Show the modules and kernels of a program, library, cubin or .ptx file
    Inspect(InspectArgs),
    /// Explain a rule such as CR003, with an example; without RULE, explain all rules
    Explain(ExplainArgs),
    /// Check the installation
    Doctor(DoctorArgs),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Manual {
        /// The folder
        folder: PathBuf,
    },
    /// Initialise the NVIDIA driver and print what it is
    #[command(name = device::PROBE, hide = true)]
    Probe,
}

/// Headings of the options in `--help`. clap gives a heading to all options that follow it, so each option that stands
/// behind options of another group names its own.
mod heading {
    pub(super) const RUNNING: &str = "Running the program";
    pub(super) const CHOICE: &str = "Choosing what is checked";
    pub(super) const CHECKING: &str = "Checking";
    pub(super) const COUNTING: &str = "Known races, coverage and exit codes";
    pub(super) const OUTPUT: &str = "Report and output";
    pub(super) const KERNEL: &str = "For a .ptx file";
    pub(super) const FILE: &str = "Options in a file";
}

/// `explain`
#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The rule, as reports show it in brackets
    #[arg(value_name = "RULE")]
    pub(crate) rule: Option<String>,
}

/// `run`
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Where kernels run
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto, help_heading = heading::RUNNING)]
    pub(crate) device: DeviceChoice,
    /// The same as --device gpu
    #[arg(long, conflicts_with = "device", help_heading = heading::RUNNING)]
    pub(crate) require_gpu: bool,
    /// Schedule of the simulated device: 0 is round robin, any other number a random schedule
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = number::<u64>, value_name = "N", help_heading = heading::RUNNING)]
    pub(crate) seed: u64,
    /// Run the program under N schedules, with seeds counted up from --seed, and merge the reports
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true, value_parser = between::<1, 100_000>, help_heading = heading::RUNNING)]
    pub(crate) schedules: u32,
    /// Run launches with flags, locks or atomics again under N other schedules, from a copy of their memory, and report
    /// the races that only these show. This is done for the first launches of each kernel, within a limit
    /// [default: 8, or 0 with --schedules]; simulated device only, and not with --mode fast
    /// or --as-gpu
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = between::<0, 1000>, help_heading = heading::CHECKING)]
    pub(crate) explore: Option<u32>,
    /// On the simulated device, run the blocks of a launch on up to N threads, where the order of
    /// blocks cannot change the result: in --mode fast, with --as-gpu or --check off, in kernels
    /// without atomics that return a value, flags, clocks or printf. Only races can make results
    /// depend on N. Which of several racing threads a report names, and how often, may differ from
    /// run to run
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true, value_parser = between::<1, 256>, help_heading = heading::RUNNING)]
    pub(crate) sim_threads: u32,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// `off` runs the program unchecked, for comparison
    #[arg(long, value_enum, default_value_t = Switch::On, help_heading = heading::CHECKING)]
    pub(crate) check: Switch,
    /// How races are found: precise is exact; fast may miss races, and COVERAGE counts where
    #[arg(long, value_enum, default_value_t = ModeChoice::Precise, help_heading = heading::CHECKING)]
    pub(crate) mode: ModeChoice,
    /// Check on the simulated device exactly as on a GPU: kernels check their own accesses, and those
    /// that use fences, flags or locks keep a journal (slower)
    #[arg(long, help_heading = heading::CHECKING)]
    pub(crate) as_gpu: bool,
    /// Which conflicts are reported. ptx: data races only. scoped: also volatile, relaxed and atomic
    /// accesses that nothing orders; a missing acquire is accepted [default: data races are errors,
    /// unordered volatile accesses are warnings]
    #[arg(long, value_enum, help_heading = heading::CHECKING)]
    pub(crate) model: Option<ModelChoice>,
    /// Check only one of N words of memory; N is a power of two; needs --mode fast
    #[arg(long, value_parser = parse_sample, default_value = "1/1", value_name = "1/N", help_heading = heading::CHECKING)]
    pub(crate) sample: u32,
    /// Size of the shadow memory: 12.5%, 512MiB, or bytes
    #[arg(long, value_parser = ShadowSize::parse, default_value = "12.5%", value_name = "SIZE", help_heading = heading::CHECKING)]
    pub(crate) shadow_mem: ShadowSize,
    /// Give every granule (1 to 4 bytes) its own shadow cell, so that no access is forgotten; needs more memory
    #[arg(long, help_heading = heading::CHECKING)]
    pub(crate) exact: bool,
    /// Assume that the lanes of a warp run in lockstep, as before Volta: races that lockstep would
    /// prevent are warnings
    #[arg(long, help_heading = heading::CHECKING)]
    pub(crate) assume_lockstep: bool,
    /// Stop the program after this time (90, 90s, 30m, 2h), write the report, and exit with 124
    #[arg(long, value_parser = duration, value_name = "TIME", help_heading = heading::RUNNING)]
    pub(crate) timeout: Option<Duration>,
    /// What to do when a launch accesses memory out of bounds; simulated device only
    #[arg(long, value_enum, default_value_t = OutsideChoice::Stop, help_heading = heading::RUNNING)]
    pub(crate) oob: OutsideChoice,
    /// Record launches that have races into the file of --save, for `cudarun-check replay`, until the recordings hold
    /// SIZE [default: 1GiB]; simulated device only, and not with --mode fast or --as-gpu
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "1GiB", value_parser = size, requires = "save", help_heading = heading::CHECKING)]
    pub(crate) record: Option<u64>,
    /// `on` does not check accesses that a launch's own arguments prove to be free of races; `off`
    /// checks them; `audit` checks them and compares the proofs with the races found
    /// [default: on; off with --mode full]
    #[arg(long, value_enum, help_heading = heading::CHECKING)]
    pub(crate) prove: Option<ProveChoice>,
    /// What to do about kernels without PTX, which cannot be checked: exit with 75 (fail), name them in the report
    /// (warn), or do nothing (ignore)
    #[arg(long, value_enum, default_value_t = NoPtx::Warn, help_heading = heading::COUNTING)]
    pub(crate) no_ptx: NoPtx,
    /// Exit with 75 if less than this share of all launches was checked, such as 95%
    #[arg(long, value_parser = percent, value_name = "PERCENT", help_heading = heading::COUNTING)]
    pub(crate) require_coverage: Option<f64>,
    /// Exit with 75 also if kernels without PTX ran, instructions were not understood, the checks forgot accesses,
    /// conflicts are undecided or assumed to be ordered, or launches of different streams were not compared
    #[arg(long, help_heading = heading::COUNTING)]
    pub(crate) strict: bool,
    /// File of races that do not count: TOML, or ThreadSanitizer's `race:PATTERN` lines; repeatable. `cudarun-check
    /// suppress` prints the text. Unused and expired entries are warnings; with --strict, the exit code is 65
    #[arg(long, value_name = "FILE", help_heading = heading::COUNTING)]
    pub(crate) suppressions: Vec<PathBuf>,
    /// File of known races, which do not count and do not fail the run. `cudarun-check baseline create` makes it
    #[arg(long, value_name = "FILE", help_heading = heading::COUNTING)]
    pub(crate) baseline: Option<PathBuf>,
    /// Do not exit with 75 when a run is incomplete; the report still says that it is
    #[arg(long, alias = "allow-unknown", conflicts_with_all = ["strict", "require_coverage"], help_heading = heading::COUNTING)]
    pub(crate) allow_incomplete: bool,
    /// Exit code when races are found
    #[arg(long, default_value_t = RACES, value_name = "N", allow_negative_numbers = true, value_parser = number::<u8>, help_heading = heading::COUNTING)]
    pub(crate) error_exitcode: u8,
    /// Which exit code to use when races were found and the program also failed
    #[arg(long, value_enum, default_value_t = ExitPolicy::RacesFirst, help_heading = heading::COUNTING)]
    pub(crate) exit_policy: ExitPolicy,
    /// Use the exit code for races if there are errors, if there are errors or warnings, or never
    #[arg(long, value_enum, default_value_t = FailOn::Error, help_heading = heading::COUNTING)]
    pub(crate) fail_on: FailOn,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Show the progress of long launches, even if standard error is no terminal, or with --quiet
    #[arg(long, overrides_with = "no_progress", help_heading = heading::OUTPUT)]
    pub(crate) progress: bool,
    /// Do not show the progress of launches [default: shown on a terminal, unless --quiet]
    #[arg(long, overrides_with = "progress", help_heading = heading::OUTPUT)]
    pub(crate) no_progress: bool,
    /// For command lines of compute-sanitizer: this tool is its `racecheck`
    #[arg(long, hide = true, value_parser = tool, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Set by `verify`
    #[arg(skip)]
    pub(crate) verify: Option<Verify>,
    /// Set by `verify`
    #[arg(skip)]
    pub(crate) assume: Vec<String>,
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// Read options from this file [default: cudarun-check.toml in the working folder or a folder above it]
    #[arg(long, overrides_with = "no_config", value_name = "FILE", help_heading = heading::FILE)]
    pub(crate) config: Option<PathBuf>,
    /// Read no options from a file
    #[arg(long, overrides_with = "config", help_heading = heading::FILE)]
    pub(crate) no_config: bool,
    /// The file that options were taken from
    #[arg(skip)]
    pub(crate) settings: Option<PathBuf>,
    /// The program and its arguments, or a .ptx file
    #[arg(required = true, trailing_var_arg = true, value_name = "APP", help_heading = None::<&'static str>)]
    pub(crate) app: Vec<OsString>,
}

/// Other schedules of a launch whose order of threads matters.
const EXPLORED: u32 = 8;

impl RunArgs {
    /// Under how many other schedules a launch is run again.
    pub(crate) fn explored(&self) -> u32 {
        match self.explore {
            Some(given) => given,
            None if self.schedules > 1 => 0,
            None => EXPLORED,
        }
    }

    /// Where kernels run, by either option.
    pub(crate) fn device(&self) -> DeviceChoice {
        match self.require_gpu {
            true => DeviceChoice::Gpu,
            false => self.device,
        }
    }
}

/// `verify`
#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArgs {
    /// How to treat volatile loads and stores: as plain ones, which race and order nothing, or as strong ones, as in the
    /// PTX ISA
    #[arg(long, value_enum, default_value_t = VolatileChoice::Plain)]
    pub(crate) volatile: VolatileChoice,
    /// Assume that lanes that execute an access together stay together, for code that was written for lockstep, as
    /// before Volta
    #[arg(long)]
    pub(crate) warp_synchronous: bool,
    /// Prove all launches for which this comparison holds, and name launches for which it does not, such as
    /// 'rows == cols' or 'n <= 1000'. It compares sums, products and remainders of numbers, parameters (by name, or
    /// arg0, arg1, ...), gridDim.x and blockDim.x; repeatable
    #[arg(long = "assume", id = "assumption", value_name = "COMPARISON", value_parser = assumption)]
    pub(crate) assume: Vec<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Reads an assumption, which stays a text until the kernel is known.
fn assumption(text: &str) -> Result<String, String> {
    match prove::assume::Assumption::parse(text) {
        Ok(of) => Ok(of.text().to_owned()),
        Err(wrong) => Err(wrong.to_string()),
    }
}

/// `--volatile`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VolatileChoice {
    Plain,
    Strong,
}

impl VerifyArgs {
    /// The run that proves something.
    pub(crate) fn run(&self) -> RunArgs {
        RunArgs {
            verify: Some(Verify {
                volatile: match self.volatile {
                    VolatileChoice::Plain => Volatile::Plain,
                    VolatileChoice::Strong => Volatile::Strong,
                },
                warp_synchronous: self.warp_synchronous,
            }),
            assume: self.assume.clone(),
            ..self.run.clone()
        }
    }
}

/// Which launches are checked; all others run as they are, and are counted in COVERAGE.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = heading::CHOICE)]
pub(crate) struct ChoiceArgs {
    /// Check only kernels whose mangled or demangled name contains NAME; kne=NAME for the whole name, or
    /// regex:EXPRESSION; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel_name: Vec<Pattern>,
    /// Do not check kernels whose name contains NAME, kne=NAME or regex:EXPRESSION; repeatable
    #[arg(long, visible_alias = "kernel-name-exclude", value_name = "NAME")]
    pub(crate) exclude_kernel: Vec<Pattern>,
    /// Check only launches in this NVTX range (RANGE, DOMAIN@RANGE, regex:EXPRESSION); repeatable
    #[arg(long, value_name = "RANGE")]
    pub(crate) nvtx_include: Vec<RangePattern>,
    /// Do not check launches in this NVTX range; repeatable
    #[arg(long, value_name = "RANGE")]
    pub(crate) nvtx_exclude: Vec<RangePattern>,
    /// Skip the first N launches of the chosen kernels
    #[arg(short = 's', long, default_value_t = 0, allow_negative_numbers = true, value_parser = number::<u64>, value_name = "N")]
    pub(crate) launch_skip: u64,
    /// Check at most N launches
    #[arg(short = 'c', long, allow_negative_numbers = true, value_parser = number::<u64>, value_name = "N")]
    pub(crate) launch_count: Option<u64>,
    /// Check the first of every N launches
    #[arg(long, value_parser = parse_share, default_value = "1/1", value_name = "1/N")]
    pub(crate) launch_sample: u64,
    /// Report only races in this memory; accesses to the other memory still order threads
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "global,shared",
        value_name = "SPACE"
    )]
    pub(crate) space: Vec<SpaceChoice>,
    /// Check no further launches once the checked launches have taken this time (90, 90s, 30m, 2h)
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) time_budget: Option<Duration>,
}

impl ChoiceArgs {
    /// The memory whose races are reported, if not all.
    pub(crate) fn only(&self) -> Option<Space> {
        let has = |space| self.space.contains(&space);
        match (has(SpaceChoice::Global), has(SpaceChoice::Shared)) {
            (true, false) => Some(Space::Global),
            (false, true) => Some(Space::Shared),
            _ => None,
        }
    }
}

/// A memory that threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpaceChoice {
    Global,
    Shared,
}

/// Where reports go, and how they look.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = heading::OUTPUT)]
pub(crate) struct OutputArgs {
    /// Write the report in this format, to FILE if it is given (%p, %h, %q{NAME} and %% as in --log-file); repeatable.
    /// jsonl writes a line for each race when it is found; sanitizer prints what compute-sanitizer's racecheck prints
    /// [default: text, and github in a job of GitHub Actions]
    #[arg(long, value_parser = Formats, value_name = "FORMAT[:FILE]")]
    pub(crate) format: Vec<Wanted>,
    /// Write the report here. Without it, `report` writes to standard output, and other commands to standard error (%p is
    /// the process id, %h the host, %q{NAME} a variable of the environment, %% a percent sign)
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Also save the report here, as JSON, for `cudarun-check report` (%p, %h, %q{NAME} and %% as in --log-file)
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Print at most N races; 0 for all
    #[arg(long, allow_negative_numbers = true, value_parser = number::<usize>, value_name = "N")]
    pub(crate) print_limit: Option<usize>,
    /// Print only races of this level or worse, in the formats text and sanitizer; the others still count
    #[arg(long, value_enum, default_value_t = PrintLevel::Warning)]
    pub(crate) print_level: PrintLevel,
    /// Also look for source files below this folder; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) source_root: Vec<PathBuf>,
    /// Print only races that the baseline does not have
    #[arg(long)]
    pub(crate) new_only: bool,
    /// Write counts for Prometheus here, as well as the other formats; the same as --format prometheus:FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Colours in the report
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Print nothing but races, SUMMARY and COVERAGE
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `report`
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Reports that `--save` or `--format json:FILE` has written
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Exit code when a report has races
    #[arg(long, default_value_t = RACES, value_name = "N", allow_negative_numbers = true, value_parser = number::<u8>, help_heading = heading::COUNTING)]
    pub(crate) error_exitcode: u8,
    /// Use the exit code for races if there are errors, if there are errors or warnings, or never [default: as in the
    /// runs, but `error` if a run had `never`]
    #[arg(long, value_enum, help_heading = heading::COUNTING)]
    pub(crate) fail_on: Option<FailOn>,
    /// Do not exit with 75 when a run was incomplete
    #[arg(long, help_heading = heading::COUNTING)]
    pub(crate) allow_incomplete: bool,
}

/// `replay`
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A file that `--record --save FILE` has written
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The id of a race, or the beginning of the id [default: the first race]
    #[arg(long, value_name = "CR-…")]
    pub(crate) id: Option<String>,
    /// List all accesses by all threads to the word that races
    #[arg(long)]
    pub(crate) trace: bool,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = ReplayFormat::Text)]
    pub(crate) format: ReplayFormat,
    /// Also look for source files below this folder; repeatable. The saved file holds the sources of its races
    #[arg(long, value_name = "DIR")]
    pub(crate) source_root: Vec<PathBuf>,
    /// Colours in the output
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Exit code when the race is seen again
    #[arg(long, default_value_t = RACES, value_name = "N", allow_negative_numbers = true, value_parser = number::<u8>)]
    pub(crate) error_exitcode: u8,
}

/// `replay --format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFormat {
    /// Readable text
    Text,
    /// JSON
    Json,
}

/// `baseline`
#[derive(Debug, Subcommand)]
pub(crate) enum BaselineCommand {
    /// Make a baseline from saved reports
    Create(BaselineArgs),
    /// Add the races of saved reports
    Update(BaselineArgs),
    /// Remove the races that saved reports do not have
    Prune(PruneArgs),
    /// Print the baseline
    Show(BaselineFile),
}

/// `baseline create`, `update` and `prune`
#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// Reports that `--save` or `--format json:FILE` has written
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) file: BaselineFile,
}

/// `baseline prune`
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    pub(crate) of: BaselineArgs,
    /// Also remove races if a run did not finish or was not checked completely
    #[arg(long)]
    pub(crate) allow_incomplete: bool,
}

/// Where a baseline is.
#[derive(Debug, Args)]
pub(crate) struct BaselineFile {
    /// The file of the baseline
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "cudarun-baseline.json"
    )]
    pub(crate) baseline: PathBuf,
}

/// `diff`
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The earlier saved report
    pub(crate) old: PathBuf,
    /// The later saved report
    pub(crate) new: PathBuf,
}

/// `suppress`
#[derive(Debug, Args)]
pub(crate) struct SuppressArgs {
    /// Reports that `--save` or `--format json:FILE` has written
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// The id of a race, as reports, baselines and `diff` show it, or the beginning of the id; repeatable [default: all
    /// races]
    #[arg(long, value_name = "CR-…")]
    pub(crate) id: Vec<String>,
    /// Why the race does not count [default: a description of the race, which you should replace]
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// How races are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeChoice {
    /// Happens-before over every access of the simulated device. On a GPU: checks in the kernels if
    /// only barriers order threads, otherwise happens-before over a journal that the kernel writes
    Precise,
    /// Checks in the kernels only; their rule for fences misses some races
    Fast,
    /// Same as precise with --prove off; always the simulated device
    Full,
}

/// What becomes of accesses that are proved to be free of races.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProveChoice {
    On,
    Off,
    Audit,
}

/// What becomes of a launch that accesses what is outside of all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutsideChoice {
    /// The launch fails at the first such access
    Stop,
    /// Such accesses are reported as errors and the launch continues: loads give zero, stores are dropped
    Continue,
}

/// Which conflicts count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelChoice {
    /// Data races by the PTX memory model only
    Ptx,
    /// Strong loads and stores that nothing orders are errors too, relaxed ones included; a thread
    /// that observes a release need not acquire
    Scoped,
}

/// How to run a kernel of a `.ptx` file.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = heading::KERNEL)]
pub(crate) struct KernelArgs {
    /// Which kernel, if the file has several
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Blocks: X, X,Y or X,Y,Z
    #[arg(long, value_parser = dimensions, value_name = "X[,Y,Z]")]
    pub(crate) grid: Option<[u32; 3]>,
    /// Threads of a block: X, X,Y or X,Y,Z
    #[arg(long, value_parser = dimensions, value_name = "X[,Y,Z]")]
    pub(crate) block: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes
    #[arg(long, allow_negative_numbers = true, value_parser = number::<u32>, value_name = "BYTES")]
    pub(crate) shared: Option<u32>,
    /// Cooperative launch: all blocks are resident at once
    #[arg(long)]
    pub(crate) cooperative: bool,
    /// One parameter, in order: u32:5, f32:1.5, u32[4]:1,2,3,4, u32[64] (zeroed), buf:1024 (zeroed bytes), buf:FILE
    #[arg(long, value_parser = ArgSpec::parse, value_name = "SPEC")]
    pub(crate) arg: Vec<ArgSpec>,
    /// After the launch, print the buffer that this argument (counted from 0) points to; repeatable
    #[arg(long, allow_negative_numbers = true, value_parser = number::<usize>, value_name = "ARG")]
    pub(crate) dump: Vec<usize>,
}

impl KernelArgs {
    /// The first flag that was given, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            (self.kernel.is_some(), "--kernel"),
            (self.grid.is_some(), "--grid"),
            (self.block.is_some(), "--block"),
            (self.shared.is_some(), "--shared"),
            (self.cooperative, "--cooperative"),
            (!self.arg.is_empty(), "--arg"),
            (!self.dump.is_empty(), "--dump"),
        ]
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
    }
}

/// `rewrite`
#[derive(Debug, Args)]
pub(crate) struct RewriteArgs {
    /// The PTX file
    pub(crate) input: PathBuf,
    /// Where to write the result; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Write the checked accesses and their source lines here, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    /// Assemble the PTX with and without checks by ptxas, and show registers and spills
    #[arg(long)]
    pub(crate) stats: bool,
    /// Architecture for --stats
    #[arg(long, default_value = "sm_90", value_name = "SM")]
    pub(crate) arch: String,
}

/// `inspect`
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The program, library, cubin or .ptx file
    pub(crate) file: PathBuf,
    /// Show each access's address, conditions and loops, from which launches are proved free of races
    #[arg(long)]
    pub(crate) summary: bool,
    /// Show only this kernel
    #[arg(long, value_name = "NAME", requires = "summary")]
    pub(crate) kernel: Option<String>,
}

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {}

/// `--device`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceChoice {
    /// On an NVIDIA GPU if a driver works, otherwise on the simulated device
    Auto,
    /// On an NVIDIA GPU; fail if there is none
    Gpu,
    /// On the simulated device
    Sim,
}

/// `--check`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// `--no-ptx`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NoPtx {
    Fail,
    Warn,
    Ignore,
}

/// `--fail-on`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Never,
}

/// `--exit-policy`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExitPolicy {
    /// The exit code for races
    RacesFirst,
    /// The program's exit code
    AppFirst,
}

/// `--print-level`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrintLevel {
    /// Errors only
    #[value(alias = "fatal")]
    Error,
    /// Errors and warnings
    #[value(alias = "warn", alias = "info")]
    Warning,
}

/// `--color`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// Why the options make no sense.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// The command line is wrong, or asks for help.
    Usage(clap::Error),
    /// The environment or a file is.
    Settings(Stop),
}

impl From<clap::Error> for Wrong {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

/// Reads the command line, and what the environment and a file add to it.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Wrong> {
    let mut arguments = with_command(arguments.into_iter().collect());
    let mut command = Cli::command();
    // A command that has parsed once is not to be changed any more.
    let mut given = command.clone().try_get_matches_from(&arguments)?;
    let app = |given: &ArgMatches| {
        let (name, given) = given.subcommand()?;
        let name = ["run", "verify"].into_iter().find(|of| *of == name)?;
        let app = given.get_raw("app")?.next()?;
        Some((name, app.to_owned()))
    };
    let Some((name, app)) = app(&given) else {
        return Ok(Cli::from_arg_matches(&given)?);
    };
    if is_ptx(&app) {
        // What follows a program belongs to it; what follows a .ptx file are our own flags.
        command = Cli::command().mut_subcommand(name, |command| {
            command.mut_arg("app", |app| app.trailing_var_arg(false))
        });
        given = command.clone().try_get_matches_from(&arguments)?;
    }
    let run = command.find_subcommand(name);
    let settings = match run.zip(given.subcommand_matches(name)) {
        Some((run, given)) => settings::read(run, given).map_err(Wrong::Settings)?,
        None => Settings::default(),
    };
    arguments.splice(2..2, settings.words);
    // The command line alone was right, and each option of the file.
    let together = command.try_get_matches_from(arguments);
    let together = together.map_err(|error| match &settings.file {
        Some(file) => {
            let text = format!("{}: {}", file.display(), settings::message(&error));
            Wrong::Settings(Stop::new(BAD_INPUT, text))
        }
        None => Wrong::Usage(error),
    });
    let mut cli = Cli::from_arg_matches(&together?)?;
    match &mut cli.command {
        Command::Run(run) => run.settings = settings.file,
        Command::Verify(verify) => verify.run.settings = settings.file,
        _ => {}
    }
    Ok(cli)
}

/// Whether a word names a PTX file.
pub(crate) fn is_ptx(word: &OsStr) -> bool {
    std::path::Path::new(word).extension() == Some(OsStr::new("ptx"))
}

/// Puts `run` where no command is given.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    const COMMANDS: [&str; 19] = [
        "run",
        "verify",
        "baseline",
        "diff",
        "report",
        "replay",
        "suppress",
        "explain",
        "rewrite",
        "inspect",
        "doctor",
        "completions",
        "manual",
        device::PROBE,
        "help",
        "-h",
        "--help",
        "-V",
        "--version",
    ];
    let first = arguments.get(1).and_then(|word| word.to_str());
    if arguments.len() > 1 && !first.is_some_and(|word| COMMANDS.contains(&word)) {
        arguments.insert(1, "run".into());
    }
    arguments
}

/// Reads `90`, `1.5s`, `30m` or `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is not a time such as 90s, 30m or 2h");
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let seconds = match unit {
        "m" => 60.0,
        "h" => 3600.0,
        _ => 1.0,
    };
    let number: f64 = number.parse().map_err(|_| bad())?;
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(bad)
}

/// Reads `512MiB`, `1GiB` or a number of bytes.
fn size(text: &str) -> Result<u64, String> {
    match ShadowSize::parse(text) {
        Ok(ShadowSize::Bytes(bytes)) => Ok(bytes),
        _ => Err(format!("`{text}` is not a size such as 512MiB or 1GiB")),
    }
}

/// Reads `95` or `95%`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse();
    let share = number.ok().filter(|share| (0.0..=100.0).contains(share));
    match share {
        Some(share) if share > 0.0 && share <= 1.0 && !text.ends_with('%') => Err(format!(
            "`{text}` may be meant as {}% or as {share}%: write the percent sign",
            share * 100.0
        )),
        Some(share) => Ok(share),
        None => Err(format!(
            "`{text}` is not a share of 0 to 100 percent, such as 95%"
        )),
    }
}

/// Reads a whole number.
fn number<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => "the number is too large".to_owned(),
            _ => format!("`{text}` is not a whole number such as 3"),
        })
}

/// Reads a whole number from 1 to `MOST`.
fn between<const LEAST: u32, const MOST: u32>(text: &str) -> Result<u32, String> {
    let found = text.parse().ok().filter(|n| (LEAST..=MOST).contains(n));
    found.ok_or_else(|| format!("`{text}` is not a whole number from {LEAST} to {MOST}"))
}

/// Reads a tool of compute-sanitizer.
fn tool(text: &str) -> Result<String, String> {
    match text {
        "racecheck" => Ok(text.to_owned()),
        _ => Err("cudarun-check is what compute-sanitizer's `racecheck` is; its other tools are not here".to_owned()),
    }
}

/// Reads `X`, `X,Y` or `X,Y,Z`.
fn dimensions(text: &str) -> Result<[u32; 3], String> {
    let bad = || format!("`{text}` is not X, X,Y or X,Y,Z with numbers above 0");
    let parts: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    let parts = parts.map_err(|_| bad())?;
    let mut all = [1; 3];
    if parts.is_empty() || parts.len() > 3 || parts.contains(&0) {
        return Err(bad());
    }
    all[..parts.len()].copy_from_slice(&parts);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str]) -> RunArgs {
        let words = ["cudarun-check"].iter().chain(words).map(OsString::from);
        match parse(words).unwrap().command {
            Command::Run(run) => *run,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_is_implied_and_the_program_keeps_its_flags() {
        let args = run(&["--seed", "3", "./app", "--seed", "4", "-q"]);
        assert_eq!((args.seed, args.output.quiet), (3, false));
        assert_eq!(args.app, ["./app", "--seed", "4", "-q"]);
        assert_eq!(run(&["--", "doctor", "-x"]).app, ["doctor", "-x"]);
        assert_eq!(run(&["./doctor"]).app, ["./doctor"]);
    }

    #[test]
    fn flags_may_follow_a_ptx_file() {
        let args = run(&[
            "-q", "x.ptx", "--grid", "2,3", "--block", "32", "--arg", "u32:5", "--seed", "7",
        ]);
        assert_eq!((args.app, args.seed), (vec![OsString::from("x.ptx")], 7));
        assert_eq!(args.kernel.grid, Some([2, 3, 1]));
        assert_eq!(args.kernel.arg.len(), 1);
        let words = ["cudarun-check", "x.ptx", "--gird", "1"];
        assert!(parse(words.map(OsString::from)).is_err());
    }

    #[test]
    fn the_last_word_on_progress_counts() {
        let of = |words: &[&str]| {
            let args = run(words);
            (args.progress, args.no_progress)
        };
        assert_eq!(of(&["./app"]), (false, false));
        assert_eq!(of(&["--no-progress", "--progress", "./app"]), (true, false));
        assert_eq!(of(&["--progress", "--no-progress", "./app"]), (false, true));
    }

    #[test]
    fn times_and_dimensions() {
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("30m"), Ok(Duration::from_secs(1800)));
        for bad in ["", "0", "-1s", "5d", "x"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(dimensions("4"), Ok([4, 1, 1]));
        for bad in ["", "0", "1,2,3,4", "1,,2", "-1"] {
            assert!(dimensions(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_and_numbers() {
        assert_eq!(percent("95"), Ok(95.0));
        assert_eq!(percent("0.95%"), Ok(0.95));
        assert_eq!(percent("0"), Ok(0.0));
        let said = percent("0.95").unwrap_err();
        assert!(said.contains("95% or as 0.95%"), "{said}");
        for bad in ["", "x", "101", "-1", "1"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        assert_eq!((number::<u8>("7"), between::<1, 9>("9")), (Ok(7), Ok(9)));
        for bad in ["", "x", "-1", "256", "1.5"] {
            assert!(
                number::<u8>(bad).is_err() && between::<1, 9>(bad).is_err(),
                "{bad}"
            );
        }
    }
}
