//! How the simulated device loads, runs and drains, as a backend of checked launches.

use std::sync::Arc;
use std::time::Duration;

use events::Observer;
use report::log;
use runtime::aliases::AtFirst;
use runtime::audit::Audit;
use runtime::backend::{Backend, Text, with_hidden};
use runtime::between::{Steps, Wanted};
use runtime::checker::Invocation;
use runtime::options::Outside;
use runtime::progress;
use runtime::streams::At;
use runtime::variables::SharedVariable;
use runtime::{
    Ancestor, Checker, Extent, FootprintObserver, HappensBefore, LaunchOutcome, ModuleKey,
    Obstacles, PendingLaunch, Used,
};
use simt::{Launch, LaunchError, LaunchStats, LoadError, ModuleId, Schedule, Strays, Tallies};

use crate::exploring::{self, Explorer};
use crate::recorded::{self, Before, Recorded, TooLarge};
use crate::{CheckedSim, Ready, Reserved, errors, strays, stuck};

/// A grid that is to run.
pub struct Grid<'a> {
    /// Its module.
    pub module: ModuleId,
    /// Its kernel, mangled.
    pub kernel: &'a str,
    /// How it is launched.
    pub launch: &'a Launch,
    /// Its position among the work of all streams, where that is known.
    pub at: Option<At>,
    /// The kernel that has launched it, if the host has not.
    pub by: Option<log::Launcher>,
    /// Gets what cells and happens-before say of it. No option of the user's sets this; `CheckedSim::audit` alone
    /// does, for tests of the tool and random kernels. It stands here because both must judge the very launch that the
    /// tool makes: a copy of this path for tests would be tested instead of this one.
    pub audit: Option<&'a mut Audit>,
    /// Two accesses between which everything is of interest.
    pub wanted: Option<Wanted>,
}

impl<'a> Grid<'a> {
    /// A grid that the host launches, with nothing else to be known of it.
    pub fn new(module: ModuleId, kernel: &'a str, launch: &'a Launch) -> Self {
        Self {
            module,
            kernel,
            launch,
            at: None,
            by: None,
            audit: None,
            wanted: None,
        }
    }
}

/// A grid that has run, without what it has asked for.
pub struct Ran {
    /// How it has ended.
    pub result: Result<LaunchStats, LaunchError>,
    /// What others are to know of it, if it has asked for anything.
    pub launcher: Option<Ancestor>,
    /// What happened between the two accesses that were wanted.
    pub steps: Option<Steps>,
}

/// A grid that is armed, or has run.
pub struct Pending {
    /// None without a checker.
    checks: Option<Box<Checks>>,
    result: Result<LaunchStats, LaunchError>,
}

/// How a grid is checked.
struct Checks {
    key: ModuleKey,
    extent: Extent,
    pending: PendingLaunch,
    /// The kernel that runs: with checks, or the program's own code.
    code: String,
    launch: Launch,
    tallies: Tallies,
    engine: Option<HappensBefore>,
    footprints: Option<FootprintObserver>,
    obstacles: Option<Obstacles>,
    /// It is to run again under other schedules.
    explores: bool,
    /// Memory as it was, where the launch is to be recorded, or to run again.
    before: Option<Result<Before, TooLarge>>,
}

impl Backend for CheckedSim {
    type Image<'a> = Ready;
    type Module = ModuleId;
    type Refusal = LoadError;
    type Request<'a> = Grid<'a>;
    type Pending = Pending;
    type Ended = Ran;

    fn with_checker<R>(&mut self, ask: impl FnOnce(&mut Checker) -> R) -> Option<R> {
        self.checker.as_mut().map(ask)
    }

    fn load_text(&mut self, ready: &Ready, text: Text) -> Result<ModuleId, LoadError> {
        match text {
            Text::Own if ready.code.is_rewritten() => {
                let own = simt::Image::new(Arc::clone(ready.code.module()));
                self.device.load_image(&Arc::new(own))
            }
            Text::Own | Text::Checked => self.device.load_image(&ready.image),
        }
    }

    fn arm(&mut self, grid: &mut Grid<'_>) -> Pending {
        let kernel = grid.kernel;
        let hidden = self.hidden(grid.module, kernel);
        let key = self.modules.get(&grid.module).and_then(|loaded| loaded.key);
        let (Some(checker), Some(key)) = (&mut self.checker, key) else {
            return Pending {
                checks: None,
                result: Ok(LaunchStats::default()),
            };
        };
        let mut launch = grid.launch.clone();
        let info = self.device.kernel(grid.module, kernel).unwrap_or_default();
        let cluster = match launch.cluster {
            [1, 1, 1] => info.cluster,
            given => Some(given),
        };
        let extent = Extent {
            cluster: cluster.unwrap_or_default(),
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.dynamic_shared,
            shared: 0,
        };
        let extent = extent.with_static_shared(info.static_shared);
        if !info.shared.is_empty() {
            let variables = info.shared.iter().map(|of| SharedVariable {
                name: of.name.to_string(),
                offset: of.offset.into(),
                bytes: of.bytes.unwrap_or(launch.dynamic_shared).into(),
            });
            checker.set_shared(key, kernel, variables.collect());
        }
        let device = &mut Reserved(&mut self.device);
        let invocation = Invocation {
            key,
            kernel,
            extent,
            parameters: &launch.params,
        };
        let mut pending = checker.begin(device, invocation);
        pending.set_position(grid.at.take());
        pending.set_launcher(grid.by.clone());
        progress::begin(kernel, pending.number(), checker.races());
        if let Some(seed) = checker.options().seed {
            launch.schedule = Schedule::Seeded(seed);
        }
        if let Some(seconds) = checker.options().timeout {
            launch.limits.timeout = Duration::try_from_secs_f64(seconds).ok();
        }
        launch.limits.endless = true;
        if checker.options().outside == Outside::Continue {
            launch.strays = Some(Strays::default());
        }
        let tallies = Tallies::default();
        if checker.options().check {
            launch.tallies = Some(tallies.clone());
        }
        launch.threads.unordered = checker.is_order_free(key, kernel);
        if checker.options().sim_threads > 1 {
            launch.threads.most = checker.options().sim_threads;
        }
        let own = pending.runs_own().then(|| rewrite::own::name(kernel));
        launch.called = own.as_ref().map(|_| kernel.to_owned());
        if let (Some(offset), Some(parameter), None) = (hidden, pending.parameter, &own) {
            launch.params = with_hidden(launch.params, offset, parameter);
        }
        let mut engine = checker.engine_for(key, &pending, extent);
        if let Some(at) = pending.at() {
            let device = checker.streams().in_flight().device();
            engine = engine.map(|engine| engine.at_position(at, device));
        }
        if grid.audit.is_some() {
            let listens = engine.take().or_else(|| checker.engine(key, extent));
            engine = listens.map(HappensBefore::keep_all);
        }
        let footprints = match engine {
            Some(_) => None,
            None => checker.footprints(key, &pending),
        };
        if let Some(wanted) = grid.wanted.take() {
            engine = engine.map(|engine| engine.follow(wanted));
        }
        let explores = grid.audit.is_none() && checker.explores(key, &pending);
        let before = match &mut self.recorder {
            Some(recorder) if engine.is_some() => Some(recorder.before(&self.device)),
            None if explores => exploring::before(&self.device).map(Ok),
            _ => None,
        };
        if let (true, Some(Ok(before))) = (explores, &before) {
            checker.exploring_copies(before.contents.len());
        }
        let checks = Checks {
            key,
            extent,
            code: own.unwrap_or_else(|| kernel.to_owned()),
            pending,
            launch,
            tallies,
            engine,
            footprints,
            obstacles: None,
            explores,
            before,
        };
        Pending {
            checks: Some(Box::new(checks)),
            result: Ok(LaunchStats::default()),
        }
    }

    fn start(&mut self, grid: &mut Grid<'_>, armed: &mut Pending) {
        let (device, id) = (&mut self.device, grid.module);
        let (Some(checker), Some(checks)) = (&self.checker, &mut armed.checks) else {
            armed.result = device.launch(id, grid.kernel, grid.launch);
            return;
        };
        let Checks {
            key,
            pending,
            code,
            launch,
            engine,
            footprints,
            ..
        } = &mut **checks;
        let audits = grid.audit.is_some();
        let journaled = checker.journaled_text(*key, pending).filter(|_| audits);
        let verifies = checker.options().verify.is_some();
        let listened = engine.take_if(|_| verifies && !audits);
        let mut followed = listened.map(|engine| checker.followed(pending, engine));
        let aliases = checker.aliases();
        let mut observe = |observer: &mut dyn Observer| match &aliases {
            Some(aliases) => {
                device.launch_observed(id, code, launch, &mut AtFirst { aliases, observer })
            }
            None => device.launch_observed(id, code, launch, observer),
        };
        armed.result = match (&mut *engine, footprints) {
            _ if let Some(followed) = &mut followed => observe(followed),
            (Some(engine), _) if let Some(loaded) = journaled => {
                let mut used = Used::of(engine, loaded);
                let result = observe(&mut used);
                used.forward();
                result
            }
            (Some(engine), _) => observe(engine),
            (None, Some(footprints)) => observe(footprints),
            (None, None) => device.launch(id, code, launch),
        };
        if let Some((listened, obstacles)) = followed {
            (checks.engine, checks.obstacles) = (Some(listened), Some(obstacles));
        }
    }

    fn drain(&mut self, grid: &mut Grid<'_>, ended: Pending) -> Ran {
        let Pending { checks, mut result } = ended;
        let (Some(checker), Some(checks)) = (&mut self.checker, checks) else {
            return Ran {
                result,
                launcher: None,
                steps: None,
            };
        };
        let Checks {
            key,
            extent,
            mut pending,
            mut launch,
            tallies,
            mut engine,
            footprints,
            obstacles,
            explores,
            before,
            code,
        } = *checks;
        let mut error_frames = Vec::new();
        if let Err(error) = &mut result
            && let Some(line) = errors::translate(error, |line| checker.original_line(key, line))
        {
            error_frames = checker.source(key, line);
        }
        let strays = launch.strays.as_ref();
        let strays = strays.map_or(Vec::new(), |strays| strays::reported(strays, checker, key));
        let stuck = result.as_ref().err();
        let stuck = stuck.and_then(|error| stuck::stuck(error, checker, key));
        let stats = result.as_ref().copied().unwrap_or_default();
        let outcome = LaunchOutcome {
            seconds: None,
            refused: false,
            invalid: matches!(result, Err(LaunchError::InvalidConfiguration(_))),
            warp_instructions: stats.warp_instructions,
            thread_instructions: stats.thread_instructions,
            sectors: stats.global_sectors,
            device_fences: stats.device_fences,
            executed: launch.tallies.take().map(|_| tallies.take()),
            error: result.as_ref().err().map(ToString::to_string),
            unsupported: matches!(result, Err(LaunchError::Unsupported { .. })),
            deadlock: matches!(result, Err(LaunchError::Deadlock { .. })),
            stuck,
            strays,
            interrupted: matches!(result, Err(LaunchError::Interrupted { .. })),
            ended: match &result {
                Err(LaunchError::Interrupted { progress, .. }) => Some(progress.done),
                _ => None,
            },
            error_frames,
            running: false,
        };
        let audits = grid.audit.is_some();
        let journal = checker.journal(&self.device, &pending, key, extent, audits);
        let steps = engine.as_mut().and_then(HappensBefore::followed);
        if let Some(audit) = grid.audit.as_deref_mut() {
            let oracles = [engine.as_ref(), journal.as_ref()];
            audit.fill(checker, &self.device, &pending, oracles);
            audit.traced = engine.as_mut().map_or(Vec::new(), HappensBefore::traced);
        }
        let judge = engine.filter(|_| pending.is_listened()).or(journal);
        let mut findings = judge
            .map(HappensBefore::finish)
            .or_else(|| footprints.map(FootprintObserver::finish));
        let launcher = (!launch.requests.is_empty()).then(|| {
            let at = pending.at().cloned().unwrap_or_else(|| checker.position());
            checker.ancestor(&pending, at, findings.as_mut())
        });
        if let (true, Some(Ok(before))) = (explores, &before)
            && let (Some(findings), Ok(stats)) = (&mut findings, &result)
            && let Some(loaded) = self.modules.get(&grid.module)
        {
            let explorer = Explorer {
                device: &self.device,
                module: grid.module,
                loaded,
                key,
                extent,
                pending: &pending,
                code: &code,
                launch: &launch,
                before,
            };
            explorer.explore(checker, stats, findings);
        }
        if checker.options().verify.is_some() {
            checker.verify(
                &mut pending,
                findings.as_ref(),
                obstacles.as_ref(),
                &outcome,
            );
        }
        let number = pending.number();
        if let (Some(_), Some(before)) = (&self.recorder, &before) {
            let too_large = before.as_ref().map(drop).map_err(ToString::to_string);
            let repeats = too_large.and_then(|()| recorded::ends_by_itself(&result));
            pending.set_recordable(match checker.aliases() {
                Some(_) => Err("memory is mapped at two addresses".to_owned()),
                None => repeats,
            });
        }
        let name = checker.end(&self.device, pending, outcome, findings);
        if let (Some(recorder), Some(Ok(before))) = (&mut self.recorder, before) {
            match (name, self.modules.get(&grid.module)) {
                (Some(name), Some(loaded)) => {
                    let device = &self.device;
                    let recorded =
                        Recorded::of(device, grid.module, loaded, grid.kernel, &launch, before);
                    if let Some(mut recorded) = recorded {
                        recorded.number = number;
                        recorded.launcher = grid.by.take();
                        recorder.keep(device, checker, &name, recorded, &result);
                    }
                }
                _ => recorder.drop(before),
            }
        }
        progress::end();
        Ran {
            result,
            launcher,
            steps,
        }
    }
}
