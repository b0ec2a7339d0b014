//! Merges the logs of all processes and schedules into one report.

mod seen;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::SystemTime;

use crate::advice::advise;
use crate::baseline::Baseline;
use crate::causes::{Entry, add_places, behind_scopes, join};
use crate::entries::{Pair, Written, distinguish, is_unknown, order, pair};
use crate::fingerprint::{self, Named, Positions};
use crate::language::{self, Language};
use crate::latency::Latencies;
use crate::log::{self, Event, Rank};
use crate::model::{
    Address, Allocation, Certainty, DeviceKind, ExitStatus, Kernel, KernelLaunch, Level, PtxSource,
    Race, RaceKind, Report, Role, RunOutcome, SCHEMA_VERSION, Space,
};
use crate::names::{demangle, made, readable};
use crate::side::{self, LoggedSite, access, came};
use crate::source::Sources;
use crate::suppressions::{List, View};
use crate::{choice, incomplete, known, locks, misuse, nested, streams, time, value, verified};

/// The log of one process in one schedule.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// What it says, in order.
    pub events: Vec<Event>,
    /// What it lacks.
    pub lost: Option<log::Lost>,
    /// Its process, if that still ran when it was read.
    pub running: Option<u32>,
}

/// What the command line knows besides the logs.
#[derive(Debug, Default)]
pub struct Context {
    /// Version of the tool.
    pub version: String,
    /// The command line of the program.
    pub argv: Vec<String>,
    /// How it ended; of several schedules, the first that did not end well.
    pub exit: ExitStatus,
    /// Why the program was not started at all.
    pub not_run: Option<String>,
    /// A signal has kept schedules from being run to their end.
    pub interrupted: bool,
    /// The time of `--timeout` was over.
    pub timed_out: bool,
    /// When it started.
    pub start: Option<SystemTime>,
    /// Wall time of all schedules.
    pub seconds: f64,
    /// Seed of the first schedule.
    pub seed: u64,
    /// How many schedules were run.
    pub schedules: u32,
    /// One word of memory of so many was checked; 0 counts as 1.
    pub sample: u32,
    /// Races in this memory only are reported; both for none.
    pub space: Option<log::Space>,
    /// The kernels ran on a GPU.
    pub gpu: bool,
    /// Kernels, mangled, that the program carries without PTX.
    pub without_ptx: Vec<String>,
    /// Warnings count as well as errors.
    pub warnings_fail: bool,
    /// Nothing that is found counts.
    pub findings_pass: bool,
    /// The program ran as it is, with `--check off`.
    pub unchecked: bool,
    /// A run is incomplete too when less than this share of its launches was checked, in percent.
    pub require_coverage: Option<f64>,
    /// A run is incomplete too when records were dropped, operations not understood, or kernels without PTX launched.
    pub strict: bool,
    /// Nothing that a run is incomplete for fails it.
    pub allow_incomplete: bool,
    /// `verify` takes lanes of a warp to go on together.
    pub warp_synchronous: bool,
    /// Lanes of a warp are taken to run in lockstep: their races by two instructions are warnings.
    pub assume_lockstep: bool,
    /// Strong conflicts that the program means to order are errors, see docs/memory-model.md.
    pub scoped: bool,
    /// Races that do not count, as the user says.
    pub suppressions: Vec<List>,
    /// Races that are known, and do not count.
    pub baseline: Option<Baseline>,
}

impl Report {
    /// Builds the report of a run.
    pub fn build(logs: &[Log], context: &Context, sources: &Sources) -> Self {
        let mut builder = Builder::new(sources, context);
        for log in logs {
            builder.log(log);
        }
        builder.finish(context)
    }
}

struct Builder<'a> {
    sources: &'a Sources,
    assume_lockstep: bool,
    scoped: bool,
    report: Report,
    kernels: BTreeMap<String, Kernel>,
    latencies: Latencies,
    /// A signal has interrupted a launch.
    interrupted: bool,
    /// Index of the race, and the rank of its witness.
    races: HashMap<Pair, (usize, Rank)>,
    /// What is known of each race besides.
    witnesses: Vec<Witness>,
}

/// How a race was seen.
struct Witness {
    /// As the report shows it, with all places that need barriers.
    race: log::Race,
    /// The places are of several.
    several: bool,
    /// Of the kernel.
    language: Language,
    /// The launches that had it, with the place of their process among those of its schedule.
    launches: BTreeSet<(usize, u64)>,
    /// All ways.
    views: Vec<View>,
}

/// What one log has said so far.
#[derive(Default)]
pub(crate) struct LogIndex<'a> {
    modules: HashMap<u32, &'a log::Module>,
    /// Each with the number of its module.
    sites: HashMap<u32, (&'a log::Site, u32)>,
    pub(crate) launches: HashMap<u64, &'a log::Launch>,
    seed: u64,
    /// Its process, as an index of those of the report.
    process: Option<usize>,
    /// How many processes of its schedule have come before.
    peer: usize,
    /// Events of the log are lost.
    lacks: bool,
    places: RefCell<Positions>,
}

impl LogIndex<'_> {
    /// Where a site stands, for people.
    fn place(&self, id: u32, sources: &Sources) -> String {
        let Some(site) = self.site(id) else {
            return "an unknown place".to_owned();
        };
        let access = access(site);
        match access.shown() {
            Some(frame) => format!("{}:{}", sources.shown(&frame.file), frame.line),
            None => format!("{}:{}", access.ptx.module, access.ptx.line),
        }
    }

    /// Whether an instruction names device scope or a wider one. Volatile accesses name none.
    fn is_of_device(&self, id: u32) -> bool {
        let site = self.sites.get(&id).map(|(site, _)| site);
        site.is_some_and(|site| {
            site.sem != log::Semantics::Volatile && site.scope >= Some(log::Scope::Gpu)
        })
    }

    fn origin(&self, module: u32) -> &str {
        self.modules.get(&module).map_or("", |m| &m.origin)
    }

    fn site(&self, id: u32) -> Option<LoggedSite<'_>> {
        let &(site, module) = self.sites.get(&id)?;
        let origin = self.origin(module);
        Some(LoggedSite { site, origin })
    }
}

impl<'a> Builder<'a> {
    fn new(sources: &'a Sources, context: &Context) -> Self {
        Self {
            sources,
            assume_lockstep: context.assume_lockstep,
            scoped: context.scoped,
            report: Report::default(),
            kernels: BTreeMap::new(),
            latencies: Latencies::default(),
            interrupted: false,
            races: HashMap::new(),
            witnesses: Vec::new(),
        }
    }

    fn log(&mut self, log: &Log) {
        let mut log_index = LogIndex {
            lacks: log.lost.is_some(),
            ..LogIndex::default()
        };
        self.lost(log);
        for event in &log.events {
            match event {
                Event::Module(module) => {
                    log_index.modules.insert(module.module, module);
                }
                Event::Sites { module, sites } => {
                    log_index
                        .sites
                        .extend(sites.iter().map(|site| (site.id, (site, *module))));
                }
                // A race is written before the launch that had it.
                Event::Launch(launch) => {
                    log_index.launches.insert(launch.launch, launch);
                }
                Event::Start { seed, .. } => log_index.seed = seed.unwrap_or(0),
                Event::Pending(_)
                | Event::HostCalls { .. }
                | Event::Race(_)
                | Event::Forgotten { .. }
                | Event::Assumed(_)
                | Event::Unfollowed(_)
                | Event::Uncompared {}
                | Event::HostUnwatched {}
                | Event::HostUndecided { .. }
                | Event::Unordered { .. }
                | Event::WithoutPtx { .. }
                | Event::Missed { .. }
                | Event::ToolError { .. }
                | Event::Note { .. } => {}
            }
        }
        for event in &log.events {
            match event {
                Event::Start {
                    pid, argv, device, ..
                } => {
                    let known = &self.report.run.processes;
                    log_index.process = Some(known.len());
                    let peers = known.iter().filter(|of| of.seed == log_index.seed);
                    log_index.peer = peers.count();
                    self.start(*pid, argv, log_index.seed);
                    self.device(device);
                }
                Event::Module(module) => self.module(module),
                Event::Pending(pending) => self.pending(pending, &log_index),
                Event::Launch(launch) => self.launch(launch),
                Event::Race(race) => self.race(race, &log_index),
                Event::Sites { .. } | Event::HostCalls { .. } => {}
                Event::Forgotten { pieces } => self.report.coverage.forgotten += pieces,
                Event::Assumed(pair) | Event::Unfollowed(pair) => {
                    let name = |of| Some(demangle(&log_index.launches.get(&of?)?.kernel));
                    let coverage = &mut self.report.coverage;
                    let pairs = match event {
                        Event::Assumed(_) => &mut coverage.host_threads,
                        _ => &mut coverage.unfollowed,
                    };
                    pairs.add(pair.launches.map(name));
                }
                Event::Uncompared {} => self.report.coverage.uncompared = true,
                Event::HostUnwatched {} => self.report.coverage.host_unwatched = true,
                Event::HostUndecided { pages } => self.report.coverage.host_undecided += pages,
                Event::Unordered { pieces } => self.report.coverage.unordered += pieces,
                Event::WithoutPtx {
                    kernel,
                    why,
                    launches,
                } => self.without_ptx(kernel, why, *launches),
                Event::Missed { text } => self.missed(readable(text)),
                Event::ToolError { text } => {
                    let errors = &mut self.report.tool.errors;
                    let text = readable(text);
                    if !errors.contains(&text) {
                        errors.push(text);
                    }
                }
                Event::Note { text } => {
                    let text = readable(text);
                    if !self.report.notes.contains(&text) {
                        self.report.notes.push(text);
                    }
                }
            }
        }
    }

    fn missed(&mut self, text: String) {
        let missed = &mut self.report.coverage.missed;
        if !missed.contains(&text) {
            missed.push(text);
        }
    }

    /// A race whose record names one access only is no entry, but the run is incomplete.
    fn one_sided(&mut self, race: &log::Race, log_index: &LogIndex<'_>) {
        let mut ids = [race.site, race.previous_site].into_iter();
        let known = ids.find(|id| log_index.sites.contains_key(id));
        let access = known.map_or_else(
            || "an access".to_owned(),
            |id| format!("the access at {}", log_index.place(id, self.sources)),
        );
        self.missed(format!(
            "{access} races with another access, which is not known"
        ));
    }

    fn race(&mut self, race: &log::Race, log_index: &LogIndex<'_>) {
        self.report.coverage.records.emitted += 1;
        let sides = [race.previous_site, race.site].map(|id| log_index.site(id));
        let [Some(first), Some(second)] = sides else {
            self.one_sided(race, log_index);
            return;
        };
        let race = &*self.placed(race, log_index);
        let key = pair(race, [first, second], log_index);
        let known = self.races.get(&key).copied();
        let written = Written::of(race, [first.site, second.site]);
        let rank = race.rank();
        let view = self.view(race, [first, second], log_index);
        let symbols = [first, second].map(|of| of.site.function.as_str());
        let language = language::of(symbols, &view.accesses, self.sources);
        let index = match known {
            None => {
                self.races.insert(key, (self.report.races.len(), rank));
                let made = self.make(race, [first, second], log_index, language);
                self.report.races.push(made);
                self.witnesses.push(Witness {
                    race: race.clone(),
                    several: false,
                    language,
                    launches: BTreeSet::new(),
                    views: Vec::new(),
                });
                self.report.races.len() - 1
            }
            Some((index, best)) => {
                let Witness {
                    race: witness,
                    several,
                    ..
                } = &mut self.witnesses[index];
                // One of the program's own run is preferred.
                let is_own = race.schedule.is_none() && witness.schedule.is_some();
                if rank > best || rank == best && is_own {
                    // This witness says more: what orders threads that are further apart orders
                    // the others too, and values that differ show what is wrong.
                    self.races.insert(key, (index, rank));
                    let before = std::mem::replace(witness, race.clone());
                    *several |= add_places(witness, &before);
                    let mut made = self.make(race, [first, second], log_index, language);
                    let old = &mut self.report.races[index];
                    (made.count, made.at_least) = (old.count, old.at_least);
                    made.launches = std::mem::take(&mut old.launches);
                    made.processes = std::mem::take(&mut old.processes);
                    if rank.is_certain == best.is_certain {
                        made.seeds = std::mem::take(&mut old.seeds);
                        made.explored = std::mem::take(&mut old.explored);
                    }
                    made.same_value = old.same_value;
                    made.values_unknown = old.values_unknown;
                    *old = made;
                } else {
                    *several |= add_places(witness, race);
                }
                index
            }
        };
        let views = &mut self.witnesses[index].views;
        if !views.contains(&view) {
            views.push(view);
        }
        let report = &mut self.report.races[index];
        report.count += race.count;
        report.at_least |= race.at_least;
        let written = written.max(Written::so_far(report));
        report.same_value = written == Written::Same;
        report.values_unknown = written == Written::Unknown;
        // A launch of a schedule is that of the others.
        let launches = &mut self.witnesses[index].launches;
        if launches.insert((log_index.peer, race.launch)) {
            report.launches.push(race.launch);
        }
        if let Some(process) = log_index.process
            && !report.processes.contains(&process)
        {
            report.processes.push(process);
        }
        let (seeds, seed) = match race.schedule {
            None => (&mut report.seeds, log_index.seed),
            Some(seed) => (&mut report.explored, seed),
        };
        // A schedule that leaves it open does not have it.
        let is_shown = race.decided || !self.witnesses[index].race.decided;
        if is_shown && !seeds.contains(&seed) {
            seeds.push(seed);
        }
    }

    /// What suppressions look at.
    fn view(&self, race: &log::Race, sites: [LoggedSite<'_>; 2], log_index: &LogIndex<'_>) -> View {
        let kernel = |number: u64| Some(log_index.launches.get(&number)?.kernel.clone());
        View {
            accesses: sites.map(access),
            kernels: match &race.work[..] {
                [] => {
                    let kernel = kernel(race.launch);
                    let kernel = kernel.unwrap_or_else(|| sites[1].site.function.clone());
                    [Some(kernel), None]
                }
                work => [0, 1].map(|n: usize| kernel(work.get(n)?.launch?)),
            },
            allocation: match (race.elsewhere, &race.allocation) {
                (false, Some(of)) => Some(of.api.clone()),
                // No pattern is for all of it.
                _ => None,
            },
            later_block: race.later_block,
        }
    }

    /// A race whose flag has its places named.
    fn placed<'r>(&self, race: &'r log::Race, log_index: &LogIndex<'_>) -> Cow<'r, log::Race> {
        let mut race = Cow::Borrowed(race);
        if race.flag.is_some()
            && let Some(flag) = &mut race.to_mut().flag
        {
            let place = |id| log_index.place(id, self.sources);
            flag.places = flag.sites.map(|site| site.map(place));
            flag.is_of_device = flag.space == log::Space::Global
                && flag
                    .sites
                    .iter()
                    .flatten()
                    .any(|id| log_index.is_of_device(*id));
        }
        race
    }

    fn make(
        &self,
        race: &log::Race,
        sites: [LoggedSite<'_>; 2],
        log_index: &LogIndex<'_>,
        language: Language,
    ) -> Race {
        let launch = log_index.launches.get(&race.launch).copied();
        let kernel = launch.map_or_else(|| sites[1].site.function.clone(), |l| l.kernel.clone());
        let misused = matches!(race.why, log::Why::Misuse(_));
        let mut accesses = sites.map(if misused { came } else { access });
        accesses[1].role = Role::Second;
        let previous = race.previous_thread;
        accesses[0].thread = previous.map(|at| at.thread);
        accesses[0].block = previous.map(|at| at.block).or(match race.level {
            log::Level::Grid => race.previous_block,
            log::Level::Cta | log::Level::Warp => Some(race.thread.block),
        });
        if !accesses[1].is_call() {
            accesses[1].thread = Some(race.thread.thread);
            accesses[1].block = Some(race.thread.block);
        }
        for (access, held) in accesses.iter_mut().zip(&race.locks) {
            let held = held.iter();
            let place = |id| log_index.place(id, self.sources);
            let stores = |id| {
                let site = log_index.sites.get(&id);
                site.is_some_and(|(of, _)| {
                    of.op == log::Op::Store && of.sem == log::Semantics::Weak
                })
            };
            let held = held.map(|held| locks::held(held, place, stores));
            access.locks = held.collect();
        }
        for (access, around) in accesses.iter_mut().zip(&race.around) {
            access.barriers = side::barriers(around, &access.function, self.sources);
        }
        let values = [race.previous_value, race.value];
        for ((access, of), value) in accesses.iter_mut().zip(sites).zip(values) {
            access.value = value::known(of.site, value);
        }
        let mut advice = advise(race, &accesses, self.sources, language);
        // One instruction cannot be ordered with itself by lockstep.
        let lockstep = self.assume_lockstep
            && race.level == log::Level::Warp
            && race.site != race.previous_site;
        if lockstep {
            advice.message += ", but by the lockstep that --assume-lockstep assumes";
        }
        let work = streams::work(race, &accesses, |number| {
            let launch = log_index.launches.get(&number)?;
            Some(launched(launch, log_index.process))
        });
        let space = match (race.why, race.space) {
            (log::Why::Misuse(_), _) => Space::Barrier,
            (_, space) => space.into(),
        };
        let Named { id, fingerprint } = match pair(race, sites, log_index) {
            Pair::Operations(operations) => fingerprint::of_operations(space, &operations),
            Pair::Host(operations, calls) => {
                fingerprint::of_host(space, &operations, &calls, self.sources)
            }
            Pair::Places(..) => {
                let all = log_index.sites.values().map(|&(site, module)| LoggedSite {
                    site,
                    origin: log_index.origin(module),
                });
                let mut places = log_index.places.borrow_mut();
                places.fingerprint(space, sites, all, self.sources)
            }
        };
        let release_sites = launch
            .and_then(|l| log_index.modules.get(&l.module))
            .and_then(|m| m.kernels.iter().find(|k| k.name == kernel))
            .map(|k| k.release_sites.iter().map(|text| readable(text)).collect());
        Race {
            kernels: Vec::new(),
            id,
            fingerprint,
            rule: advice.rule,
            level: match race.why {
                log::Why::Misuse(misuse) if misuse::is_harmless(misuse) => Level::Warning,
                log::Why::Unordered | log::Why::Strong if lockstep => Level::Warning,
                log::Why::Strong if !self.scoped => Level::Warning,
                log::Why::Fences | log::Why::Counted if self.scoped => Level::Error,
                _ if race.decided => Level::Error,
                _ => Level::Warning,
            },
            same_value: race.same_value,
            values_unknown: is_unknown(race, sites.map(|of| of.site)),
            kind: advice.kind,
            space,
            certainty: match race.decided {
                true => Certainty::Certain,
                false => Certainty::Possible,
            },
            message: advice.message,
            help: advice.help,
            count: 0,
            at_least: false,
            launches: Vec::new(),
            processes: Vec::new(),
            seeds: Vec::new(),
            explored: Vec::new(),
            kernel: match launch {
                // The recording is of the program's own run.
                Some(launch) if race.schedule.is_some() => KernelLaunch {
                    recorded: None,
                    ..launched(launch, log_index.process)
                },
                Some(launch) => launched(launch, log_index.process),
                None => KernelLaunch {
                    name: demangle(&kernel),
                    mangled: kernel,
                    launch: race.launch,
                    process: log_index.process,
                    ..KernelLaunch::default()
                },
            },
            accesses,
            address: address(race.address, race.allocation.as_ref()),
            suppressed_by: None,
            baseline: None,
            may_order: match race.decided
                || matches!(
                    race.why,
                    log::Why::LockOrder | log::Why::Fences | log::Why::Counted
                ) {
                true => Vec::new(),
                false => release_sites.unwrap_or_default(),
            },
            work,
            related: Vec::new(),
        }
    }

    fn finish(mut self, context: &Context) -> Report {
        for name in &context.without_ptx {
            let known = self.kernels.entry(name.clone()).or_default();
            if known.ptx_source == PtxSource::Unknown {
                known.ptx_source = PtxSource::None;
                known.why_not = Some("the program has no PTX for it".to_owned());
            }
        }
        let kernels = self.kernels.into_iter().map(|(mangled, kernel)| Kernel {
            name: demangle(&mangled),
            mangled,
            ..kernel
        });
        let mut report = self.report;
        report.stats.latencies = self.latencies.finish();
        report.coverage.kernels = kernels.collect();
        for race in report.races.iter_mut().filter(|race| race.same_value) {
            race.level = Level::Warning;
            race.values_unknown = false;
            race.message += ", but have always written the same value";
        }
        let witnessed = report.races.iter_mut().zip(&self.witnesses);
        let causes = witnessed.map(|(race, witness)| {
            let advice = advise(
                &witness.race,
                &race.accesses,
                self.sources,
                witness.language,
            );
            if witness.several {
                race.help = advice.help;
            }
            advice.cause
        });
        let mut causes: Vec<_> = causes.collect();
        let races = self.witnesses.iter().map(|witness| {
            let processes = witness.launches.iter().map(|&(process, _)| process);
            streams::Encounter {
                race: &witness.race,
                processes: processes.collect(),
            }
        });
        streams::share_events(races, &mut causes);
        let views: Vec<_> = self.witnesses.into_iter().map(|of| of.views).collect();
        for (race, views) in report.races.iter_mut().zip(&views) {
            race.kernels = known::kernels(views);
        }
        let undecided = known::mark(&mut report.races, &views);
        report.coverage.missed.extend(undecided);
        let now = time::rfc3339(context.start.unwrap_or_else(SystemTime::now));
        let date = now.split('T').next().unwrap_or_default();
        let lists = &context.suppressions;
        let kernels = &report.coverage.kernels;
        report.suppressions = known::suppress(&mut report.races, &views, lists, kernels, date);
        if let Some(baseline) = &context.baseline {
            baseline.mark(&mut report.races);
        }
        let races = std::mem::take(&mut report.races).into_iter();
        let entries = races.zip(causes);
        let mut entries: Vec<_> = entries.map(|(race, cause)| Entry { race, cause }).collect();
        // Those that count first, then certain ones, then the one to repair first, then what was seen first.
        entries.sort_by_key(|Entry { race, .. }| {
            (race.is_in_baseline(), race.level, order(race.rule))
        });
        behind_scopes(&mut entries);
        report.races = join(entries);
        distinguish(&mut report.races);
        report.schema_version = SCHEMA_VERSION.to_owned();
        report.tool.name = "cudarun-check".to_owned();
        report.tool.version.clone_from(&context.version);
        report.tool.device = match context.gpu {
            true => DeviceKind::Gpu,
            false => DeviceKind::Sim,
        };
        report.tool.seed = context.seed;
        report.tool.schedules = context.schedules;
        report.tool.sample = context.sample.max(1);
        report.coverage.spaces = choice::spaces(context.space);
        for of in &mut report.verified {
            of.allowed = context.allow_incomplete;
            of.warp_synchronous = context.warp_synchronous;
        }
        report.run.argv.clone_from(&context.argv);
        report.run.exit = context.exit;
        report.run.interrupted = context.interrupted || self.interrupted;
        report.run.timed_out = context.timed_out;
        report.run.host = host();
        report.run.start = context.start.map(time::rfc3339).unwrap_or_default();
        report.run.seconds = context.seconds;
        report.count();
        // What `verify` has refuted fails, though the values were the same in this run. Threads that have exited before a
        // barrier are no race.
        let refuted = report.verified.iter().any(|of| of.launches.race > 0) && { report.counted() }
            .any(|race| !matches!(race.kind, RaceKind::Misuse(_)));
        report.summary.warnings_fail = context.warnings_fail || refuted;
        report.summary.findings_pass = context.findings_pass;
        report.summary.suppressions_fail =
            context.strict && report.idle_suppressions().next().is_some();
        let summary = &report.summary;
        let counting = if summary.warnings_fail {
            summary.races
        } else {
            summary.errors
        };
        let deadlock = report.failures.iter().any(|failure| failure.deadlock);
        let strayed = !report.out_of_bounds.is_empty();
        let ended_well = context.exit.code == Some(0) || context.not_run.is_some();
        let mut incomplete = incomplete::reasons(&report.coverage, &report.failures, context);
        incomplete.extend(verified::incomplete(&report));
        report.summary.outcome = match () {
            () if !report.tool.errors.is_empty() => RunOutcome::ToolError,
            () if counting > 0 || deadlock || strayed => RunOutcome::Races,
            () if !ended_well => RunOutcome::AppFailed,
            () if !incomplete.is_empty() => RunOutcome::Incomplete,
            () => RunOutcome::Clean,
        };
        report.coverage.incomplete_because = incomplete;
        report
    }
}

/// A launch of a process as reports name it.
fn launched(launch: &log::Launch, process: Option<usize>) -> KernelLaunch {
    KernelLaunch {
        name: demangle(&launch.kernel),
        mangled: launch.kernel.clone(),
        launch: launch.launch,
        process,
        grid: launch.grid,
        block: launch.block,
        launched_by: launch.launched_by.as_ref().map(nested::launcher),
        recorded: launch.recorded.clone(),
        host_stack: launch.host_stack.clone(),
    }
}

/// An address with what lies there.
pub(crate) fn address(address: u64, allocation: Option<&log::Allocation>) -> Address {
    Address {
        value: format!("{address:#x}"),
        allocation: allocation.map(|a| Allocation {
            id: a.id,
            base: format!("{:#x}", a.base),
            size: a.bytes,
            offset: address.saturating_sub(a.base),
            api: made(&a.api),
        }),
        element: allocation.and_then(|a| a.place.clone()),
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| String::new(), |name| name.trim().to_owned())
}
