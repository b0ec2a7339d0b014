//! `run`: a program, or a kernel of a `.ptx` file, under one or several schedules.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use os::interrupts;
use report::model::{ExitStatus, PtxSource, RunOutcome, Suppression};
use report::source::Sources;
use report::suppressions::List;
use report::words::counted;
use report::{Context, Log, Report};
use runtime::options::{Outside, Prove};
use runtime::{Choice, Mode, Model, Options, ShadowSize, Show, progress};

use crate::args::{
    ChoiceArgs, DeviceChoice, ExitPolicy, FailOn, ModeChoice, ModelChoice, NoPtx, OutsideChoice,
    ProveChoice, RunArgs, Switch, is_ptx,
};
use crate::console;
use crate::device::Device;
use crate::exit::{self, BAD_INPUT, INCOMPLETE, NO_DEVICE, Stop, USAGE};
use crate::logs::{Folders, Schedule};
use crate::output::{Outputs, Stream};
use crate::stdin::Input;
use crate::{app, archive, baseline, device, host_lines, kernel, output, program, suppress};

/// Runs and reports; the exit code.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Stop> {
    if args.as_gpu && args.mode == ModeChoice::Full {
        let text =
            "--mode full never checks as on a GPU: leave out --as-gpu, or use --mode precise";
        return Err(Stop::new(USAGE, text.to_owned()));
    }
    may_sample(args)?;
    may_verify(args)?;
    may_repeat(args)?;
    if args.output.new_only && args.baseline.is_none() {
        return Err(Stop::new(USAGE, "--new-only needs --baseline FILE"));
    }
    let read = args.baseline.iter().chain(&args.suppressions);
    Outputs::may_overwrite(
        &args.output,
        read.chain(args.app.first().map(PathBuf::from).iter()),
    )?;
    let known = Context {
        suppressions: suppress::read(&args.suppressions)?,
        baseline: args.baseline.as_deref().map(baseline::read).transpose()?,
        ..context(args)
    };
    may_take(args)?;
    let mut targets = Targets::open(args)?;
    targets.begin(args);
    let ran = match is_ptx(&args.app[0]) {
        true => ran_kernel(args, known, &targets),
        false => ran_program(args, known, &mut targets),
    };
    match ran {
        Ok(ran) => finish(args, ran, targets),
        Err(stop) => not_run(args, stop, targets),
    }
}

/// How often somebody looks for races while a program runs.
const LOOK: Duration = Duration::from_millis(100);

/// What the schedules brought.
struct Ran {
    logs: Vec<Log>,
    context: Context,
    /// Where recorded launches are, if launches are recorded.
    recorded: Option<Recorded>,
}

/// Folders with recorded launches, one for each schedule.
struct Recorded {
    /// Removes them when it goes.
    _folders: Folders,
    schedules: Vec<PathBuf>,
}

/// Where the report goes.
struct Targets {
    outputs: Outputs,
    /// The file of `--save`, where that takes recorded launches.
    recording: Option<archive::Target>,
}

impl Targets {
    fn open(args: &RunArgs) -> Result<Self, Stop> {
        let mut wanted = args.output.clone();
        let path = wanted.save.take_if(|_| args.record.is_some());
        let outputs = Outputs::open(&wanted, Stream::Error)?;
        let path = path.as_deref().map(output::expand).transpose()?;
        Ok(Self {
            outputs,
            recording: path.map(archive::Target::open).transpose()?,
        })
    }

    /// Writes that the run has not ended, where this process may be killed before it can write more.
    fn begin(&mut self, args: &RunArgs) {
        let sources = sources(args);
        let why = "the report was not written: cudarun-check was killed, or is still running";
        let report = unfinished(args, why, &sources);
        self.outputs.begin(&report, &sources);
        if let Some(target) = &self.recording {
            target.begin(&report);
        }
    }

    /// Writes the report everywhere, and the recorded launches.
    fn write(
        &mut self,
        report: &Report,
        sources: &Sources,
        recorded: Option<&Recorded>,
    ) -> Result<(), Stop> {
        let written = self.outputs.write(report, sources);
        let Some(target) = &self.recording else {
            return written;
        };
        let folders = recorded.map_or(&[][..], |of| &of.schedules);
        let recorded = target.write(report, sources, folders);
        if let Err(stop) = &recorded {
            console::say(format_args!("cudarun-check: {}", stop.message));
        }
        written.and(recorded)
    }
}

/// Which flags and words are for programs, and which for kernels.
fn may_take(args: &RunArgs) -> Result<(), Stop> {
    let app = args.app[0].to_string_lossy();
    let wrong = match (is_ptx(&args.app[0]), args.kernel.given(), &args.app[1..]) {
        (false, Some(flag), _) => {
            let file = args.settings.as_ref();
            let file = file.map(|path| format!("; look into {} too", path.display()));
            let file = file.unwrap_or_default();
            format!("{flag} is for a .ptx file, and {app} is none{file}")
        }
        (true, _, [extra, ..]) => {
            let extra = extra.to_string_lossy();
            format!("unexpected `{extra}` after the .ptx file")
        }
        _ => return Ok(()),
    };
    Err(Stop::new(USAGE, wrong))
}

/// Only cells can leave words out.
fn may_sample(args: &RunArgs) -> Result<(), Stop> {
    match args.sample > 1 && args.mode != ModeChoice::Fast {
        true => Err(Stop::new(USAGE, "--sample needs --mode fast")),
        false => Ok(()),
    }
}

/// Only happens-before over every access can prove something.
fn may_verify(args: &RunArgs) -> Result<(), Stop> {
    let other = [
        (args.as_gpu, "--as-gpu"),
        (args.mode == ModeChoice::Fast, "--mode fast"),
        (args.check == Switch::Off, "--check off"),
        (args.prove == Some(ProveChoice::Audit), "--prove audit"),
        (args.model.is_some(), "--model"),
        (args.choice.only().is_some(), "--space"),
    ];
    let other = other.iter().find(|(given, _)| *given);
    match other.filter(|_| args.verify.is_some()) {
        Some((_, flag)) => Err(Stop::new(USAGE, format!("verify does not go with {flag}"))),
        None => Ok(()),
    }
}

/// Launches are recorded, and run again, where happens-before listens to the simulated device.
fn may_repeat(args: &RunArgs) -> Result<(), Stop> {
    let asked = [
        (args.record.is_some(), "records no launches", "--record"),
        (
            args.explore.is_some_and(|n| n > 0),
            "runs no launch again",
            "--explore",
        ),
    ];
    let Some((_, lacks, given)) = asked.iter().find(|(given, ..)| *given) else {
        return Ok(());
    };
    let unfit = [
        (args.mode == ModeChoice::Fast, "--mode fast"),
        (args.as_gpu, "--as-gpu"),
        (args.check == Switch::Off, "--check off"),
    ];
    let flag = unfit.iter().find_map(|(given, flag)| given.then_some(flag));
    match flag {
        Some(flag) => Err(Stop::new(
            USAGE,
            format!("{flag} {lacks}: leave out {given}"),
        )),
        None => Ok(()),
    }
}

/// The device; flags that only the simulated one understands choose it.
fn choose_device(args: &RunArgs) -> Result<Device, Stop> {
    let simulated = [
        (args.schedules > 1, "--schedules"),
        (args.seed != 0, "--seed"),
        (args.as_gpu, "--as-gpu"),
        (args.verify.is_some(), "verify"),
        (args.mode == ModeChoice::Full, "--mode full"),
        (args.sim_threads > 1, "--sim-threads"),
        (args.oob == OutsideChoice::Continue, "--oob continue"),
        (args.record.is_some(), "--record"),
        (args.explore.is_some_and(|n| n > 0), "--explore"),
    ];
    let flag = simulated
        .iter()
        .find_map(|(given, flag)| given.then_some(*flag));
    match (args.device(), flag) {
        (DeviceChoice::Gpu, Some(flag)) => {
            let text = format!("{flag} is for the simulated device: use --device sim");
            Err(Stop::new(USAGE, text))
        }
        (DeviceChoice::Auto, Some(_)) => device::choose(DeviceChoice::Sim),
        (choice, _) => device::choose(choice),
    }
}

/// The options of one schedule of what is reported in a context.
fn options(args: &RunArgs, context: &Context, schedule: u32) -> Options {
    let seed = args.seed.wrapping_add(u64::from(schedule));
    Options {
        check: args.check == Switch::On,
        mode: match args.mode {
            ModeChoice::Precise | ModeChoice::Full => Mode::Precise,
            ModeChoice::Fast => Mode::Fast,
        },
        model: args.model.map(|model| match model {
            ModelChoice::Ptx => Model::Ptx,
            ModelChoice::Scoped => Model::Scoped,
        }),
        shadow: if args.exact {
            ShadowSize::Exact
        } else {
            args.shadow_mem
        },
        seed: (seed != 0).then_some(seed),
        as_gpu: args.as_gpu,
        choice: choice(&args.choice),
        sample: args.sample,
        progress: match (args.progress, args.no_progress || args.output.quiet) {
            (true, _) => Show::Always,
            (false, true) => Show::Never,
            (false, false) => Show::Terminal,
        },
        sim_threads: args.sim_threads,
        outside: match args.oob {
            OutsideChoice::Stop => Outside::Stop,
            OutsideChoice::Continue => Outside::Continue,
        },
        prove: match args.prove {
            None if args.mode == ModeChoice::Full => Prove::Off,
            None | Some(ProveChoice::On) => Prove::On,
            Some(ProveChoice::Off) => Prove::Off,
            Some(ProveChoice::Audit) => Prove::Audit,
        },
        look_again: context.suppressions.iter().any(List::names_memory),
        verify: args.verify,
        assumptions: args.assume.clone(),
        record: args.record,
        explore: args.explored(),
        ..Options::default()
    }
}

fn choice(args: &ChoiceArgs) -> Choice {
    Choice {
        kernels: args.kernel_name.clone(),
        excluded: args.exclude_kernel.clone(),
        ranges: args.nvtx_include.clone(),
        excluded_ranges: args.nvtx_exclude.clone(),
        skip: args.launch_skip,
        count: args.launch_count,
        sample: args.launch_sample,
        space: args.only(),
        budget: args.time_budget.map(|budget| budget.as_secs_f64()),
    }
}

fn context(args: &RunArgs) -> Context {
    Context {
        assume_lockstep: args.assume_lockstep,
        scoped: args.model == Some(ModelChoice::Scoped),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        argv: args
            .app
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        exit: ExitStatus {
            code: Some(0),
            signal: None,
        },
        start: Some(SystemTime::now()),
        seed: args.seed,
        schedules: args.schedules,
        sample: args.sample,
        space: args.choice.only(),
        warnings_fail: args.fail_on == FailOn::Warning,
        findings_pass: args.fail_on == FailOn::Never,
        unchecked: args.check == Switch::Off,
        require_coverage: args.require_coverage,
        strict: args.strict,
        allow_incomplete: args.allow_incomplete,
        warp_synchronous: args.verify.is_some_and(|of| of.warp_synchronous),
        ..Context::default()
    }
}

/// Says what is about to happen.
fn announce(args: &RunArgs, outputs: &Outputs, device: &Device) {
    if !args.output.quiet && !outputs.is_for_programs() {
        let options = match &args.settings {
            Some(file) => format!(", with the options of {}", file.display()),
            None => String::new(),
        };
        console::say(format_args!(
            "cudarun-check {} on {device}{options}",
            env!("CARGO_PKG_VERSION")
        ));
    }
}

fn ran_program(args: &RunArgs, mut context: Context, targets: &mut Targets) -> Result<Ran, Stop> {
    let device = choose_device(args)?;
    let program = program::examine(&args.app[0], device.is_simulated())?;
    let libraries = app::libraries()?;
    let folders = Folders::create()?;
    let mut schedules = Vec::new();
    let input = Input::of_runs(args.schedules);
    announce(args, &targets.outputs, &device);
    context.gpu = !device.is_simulated();
    if args.no_ptx != NoPtx::Ignore {
        context.without_ptx.clone_from(&program.without_ptx);
    }
    let mut ran = Ran {
        logs: Vec::new(),
        context,
        recorded: None,
    };
    let start = Instant::now();
    let mut live = Live::new(args, &libraries);
    for schedule in 0..args.schedules {
        let left = args
            .timeout
            .map(|limit| limit.saturating_sub(start.elapsed()));
        if schedule > 0 && left == Some(Duration::ZERO) {
            ran.context.timed_out = true;
            break;
        }
        let logs = folders.schedule(schedule)?;
        schedules.push(logs.main.clone());
        let options = Options {
            host_calls: true,
            ..options(args, &ran.context, schedule)
        };
        let start = app::Start {
            program: &program,
            arguments: &args.app[1..],
            device: &device,
            libraries: &libraries,
            logs: &logs,
            input: &input,
            options: &options,
            timeout: left,
        };
        let ended = app::run(&start, &mut || {
            live.look(&mut ran, &mut targets.outputs, &logs)
        })?;
        progress::wipe(&logs.main);
        let mut left_behind = logs.read(&libraries, !ended.timed_out)?;
        host_lines::fill(&mut left_behind, &libraries);
        ran.logs.append(&mut left_behind);
        if ran.context.exit.code == Some(0) {
            ran.context.exit = ended.exit;
        }
        ran.context.timed_out |= ended.timed_out;
        let left = schedule + 1 < args.schedules;
        ran.context.interrupted |= ended.by_signal() || ended.interrupted && left;
        if ended.interrupted || ended.timed_out {
            break;
        }
    }
    ran.context.seconds = start.elapsed().as_secs_f64();
    ran.recorded = Some(Recorded {
        _folders: folders,
        schedules,
    });
    if !program.cuda && ran.logs.is_empty() && !targets.outputs.is_for_programs() {
        console::say(format_args!(
            "cudarun-check: {} does not use CUDA, as far as can be seen",
            program.path.display()
        ));
    }
    Ok(ran)
}

fn ran_kernel(args: &RunArgs, context: Context, targets: &Targets) -> Result<Ran, Stop> {
    if args.device() == DeviceChoice::Gpu {
        let text = "--device gpu: a .ptx file runs on the simulated device; use --device sim";
        return Err(Stop::new(NO_DEVICE, text));
    }
    let job = kernel::Job::prepare(Path::new(&args.app[0]), &args.kernel)?;
    job.may_assume(&args.assume)?;
    let recorded = targets.recording.as_ref().map(|_| {
        let folders = Folders::create()?;
        Ok(Recorded {
            schedules: vec![folders.schedule(0)?.main],
            _folders: folders,
        })
    });
    let recorded = recorded.transpose()?;
    let folder = recorded.as_ref().map(|of| of.schedules[0].clone());
    announce(args, &targets.outputs, &device::choose(DeviceChoice::Sim)?);
    let mut ran = Ran {
        logs: Vec::new(),
        context,
        recorded,
    };
    let start = Instant::now();
    // What the schedules before have found is to be reported too.
    let _held = interrupts::hold();
    for schedule in 0..args.schedules {
        let mut options = options(args, &ran.context, schedule);
        let left = args
            .timeout
            .map(|limit| limit.saturating_sub(start.elapsed()));
        options.timeout = left.map(|left| left.as_secs_f64());
        progress::enable(options.progress, None);
        let done = job.run(options, folder.as_deref(), schedule == 0)?;
        ran.logs.push(Log {
            events: done.events,
            ..Log::default()
        });
        if done.failed && ran.context.exit.code == Some(0) {
            ran.context.exit.code = Some(1);
        }
        ran.context.timed_out |= done.timed_out;
        if done.signal.is_some() {
            ran.context.interrupted = true;
            ran.context.exit = ExitStatus {
                code: None,
                signal: done.signal,
            };
            break;
        }
        if ran.context.timed_out {
            break;
        }
    }
    ran.context.seconds = start.elapsed().as_secs_f64();
    Ok(ran)
}

/// Where sources may be.
fn sources(args: &RunArgs) -> Sources {
    let mut roots = args.output.source_root.clone();
    roots.extend(std::env::current_dir());
    // Beside the program is where sources of small programs are.
    let beside = Path::new(&args.app[0]).parent().map(Path::to_owned);
    roots.extend(beside.filter(|folder| folder.is_dir()));
    Sources::new(roots)
}

/// Reports races while a program runs.
struct Live<'a> {
    sources: Sources,
    libraries: &'a Path,
    /// When to look again, and how much there was to read the last time.
    next: Instant,
    bytes: u64,
}

impl<'a> Live<'a> {
    fn new(args: &RunArgs, libraries: &'a Path) -> Self {
        Self {
            sources: sources(args),
            libraries,
            next: Instant::now(),
            bytes: 0,
        }
    }

    /// Looks for races, at intervals, if they are to be reported.
    fn look(&mut self, ran: &mut Ran, outputs: &mut Outputs, logs: &Schedule) {
        let now = Instant::now();
        if !outputs.is_live() || now < self.next {
            return;
        }
        let bytes = logs.bytes();
        if bytes != std::mem::replace(&mut self.bytes, bytes) {
            let mut new = logs.so_far();
            host_lines::fill(&mut new, self.libraries);
            let before = ran.logs.len();
            ran.logs.append(&mut new);
            let report = Report::build(&ran.logs, &ran.context, &self.sources);
            ran.logs.truncate(before);
            outputs.report_live(&report);
        }
        // The more there is to read, the less often.
        self.next = Instant::now() + LOOK.max(now.elapsed() * 9);
    }
}

/// The report of a run of which nothing is known but why.
fn unfinished(args: &RunArgs, why: &str, sources: &Sources) -> Report {
    let context = Context {
        exit: ExitStatus::default(),
        not_run: Some(why.to_owned()),
        ..context(args)
    };
    Report::build(&[], &context, sources)
}

/// A run that could not begin: the formats that programs read, and files, say so too.
fn not_run(args: &RunArgs, stop: Stop, mut targets: Targets) -> Result<u8, Stop> {
    let sources = sources(args);
    let report = unfinished(args, &stop.message, &sources);
    let said = targets.outputs.is_for_programs();
    targets.outputs.leave_out_text();
    targets.write(&report, &sources, None)?;
    match said {
        true => Ok(stop.code),
        false => Err(stop),
    }
}

fn finish(args: &RunArgs, ran: Ran, mut targets: Targets) -> Result<u8, Stop> {
    let sources = sources(args);
    let report = Report::build(&ran.logs, &ran.context, &sources);
    let written = targets.write(&report, &sources, ran.recorded.as_ref());
    let (outcome, races) = match args.fail_on {
        FailOn::Never => (without_races(&report), 0),
        _ => (report.summary.outcome, args.error_exitcode),
    };
    let app_first = args.exit_policy == ExitPolicy::AppFirst;
    let outcome = match outcome {
        RunOutcome::Incomplete if args.allow_incomplete => RunOutcome::Clean,
        RunOutcome::Races if app_first && report.run.exit.code != Some(0) => RunOutcome::AppFailed,
        other => other,
    };
    let races = exit::of_run(outcome, &report.run, races);
    let missing = report
        .coverage
        .kernels
        .iter()
        .any(|kernel| kernel.ptx_source == PtxSource::None);
    let idle_fail = report.summary.suppressions_fail;
    if idle_fail && !targets.outputs.is_for_programs() {
        let idle = counted(report.idle_suppressions().count() as u64, "suppression");
        console::say(format_args!(
            "cudarun-check: --strict: {idle} unused or expired"
        ));
        // A text says which, or with -q, which have expired.
        let has_text = targets.outputs.has_text();
        let unused = report.suppressions.iter();
        let unused = unused.filter(|of| !has_text || args.output.quiet && !of.expired);
        for warning in unused.filter_map(Suppression::warning) {
            console::say(format_args!("warning: {warning}"));
        }
    }
    match (races, written) {
        // It is said already why.
        (code, Err(stop)) if code != args.error_exitcode => Ok(stop.code),
        (0, _) if args.no_ptx == NoPtx::Fail && missing => Ok(INCOMPLETE),
        (0, _) if idle_fail => Ok(BAD_INPUT),
        (code, _) => Ok(code),
    }
}

/// The outcome as if no races had been found.
pub(crate) fn without_races(report: &Report) -> RunOutcome {
    let complete = report.coverage.incomplete_because.is_empty();
    match report.summary.outcome {
        RunOutcome::Races if report.run.exit.code != Some(0) => RunOutcome::AppFailed,
        RunOutcome::Races if !complete => RunOutcome::Incomplete,
        RunOutcome::Races => RunOutcome::Clean,
        other => other,
    }
}
