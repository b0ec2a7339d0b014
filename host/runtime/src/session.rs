//! Checked launches on a real driver: those in flight, and what becomes of them.
//!
//! A launch is armed when the program asks for it, and drained when an event behind it has been
//! passed: whenever the program waits for the device, when room is needed, and otherwise at a
//! call of [`Session::poll`] now and then. The program never waits for a check, with one exception: where
//! a launch needs what another still uses (the one journal, a record slot in the tables, cells that have to
//! be renewed), it waits for that one, [`TIMEOUT`] at most, and goes on unchecked.

mod contexts;
mod interrupt;

use std::collections::{BTreeMap, HashMap};
use std::thread;
use std::time::{Duration, Instant};

use driver::gpu::{Event, Gpu};
use driver::sys::CUresult;

use crate::checker::{Checker, Extent, Invocation, LaunchOutcome, ModuleKey, PendingLaunch};
use crate::happens_before::HappensBefore;

/// How long a launch waits for others in whose place it wants to be checked.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// What the user should know who checks beside other processes.
const SHARED: &str = "the device is shared by MPS: a kernel that fails ends the kernels of other clients as well, and where MPS limits a client's memory, the shadow memory is smaller";

/// What the driver says of a launch that asks for what it cannot have, checked or not. Others may come of the checks,
/// such as too many registers.
const INVALID: [CUresult; 4] = [
    CUresult::INVALID_VALUE,
    CUresult::INVALID_HANDLE,
    CUresult::INVALID_CONTEXT,
    CUresult::INVALID_CLUSTER_SIZE,
];

/// Why the node of a graph is not checked.
const NO_SLOT: &str = "too many nodes of graphs, or a graph that the device can launch";

/// A kernel and how it is launched: an [`Invocation`] that is kept.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its module.
    pub key: ModuleKey,
    /// Its mangled name.
    pub name: String,
    /// How it is launched.
    pub extent: Extent,
    /// Values of its parameters.
    pub parameters: Vec<u8>,
}

impl Kernel {
    fn invocation(&self) -> Invocation<'_> {
        Invocation {
            key: self.key,
            kernel: &self.name,
            extent: self.extent,
            parameters: &self.parameters,
        }
    }
}

/// A launch that the driver has not been asked for yet.
#[derive(Debug)]
pub struct ArmedLaunch {
    /// Value of the hidden parameter; none when the kernel has none.
    pub parameter: Option<u64>,
    /// It is to run the program's own code, which has no hidden parameter; see [`PendingLaunch::runs_own`].
    pub own: bool,
    /// Its number in flight.
    flight: Option<u64>,
}

/// A launch that has been armed.
#[derive(Debug)]
struct Armed {
    kernel: Kernel,
    pending: PendingLaunch,
}

/// Launches between two events.
#[derive(Debug)]
struct InFlight {
    number: u64,
    context: u64,
    stream: usize,
    launches: Vec<Armed>,
    /// Before them, behind them, and behind what they have found.
    events: [Event; 3],
    /// Why the driver has refused them.
    refused: Option<CUresult>,
}

/// A record slot that the node of a graph has had.
#[derive(Clone, Copy, Debug)]
struct Retired {
    context: u64,
    record_slot: usize,
    /// Launches with smaller numbers may still use it.
    before: u64,
}

/// A kernel in an executable graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// Number of the context that it runs in.
    pub context: u64,
    /// What it launches.
    pub kernel: Kernel,
    /// Value of its hidden parameter; none when the kernel has none.
    pub parameter: Option<u64>,
    /// Handle of its node, behind those of the nodes whose child graph it is in.
    pub path: Vec<u64>,
    /// A launch of the graph runs it.
    pub enabled: bool,
    /// It runs the program's own code, because its arguments have proved that it has no races.
    pub own: bool,
}

/// Everything that is checked in this process.
pub struct Session {
    checker: Checker,
    gpus: BTreeMap<u64, Gpu>,
    flights: Vec<InFlight>,
    /// Those that the driver is being asked for.
    asked: Vec<InFlight>,
    /// The one whose progress is shown.
    shown: Option<u64>,
    /// They have been waited for in vain, and none has ended since.
    stuck: bool,
    /// Record slots of nodes of graphs, by context and value of the hidden parameter.
    record_slots: HashMap<(u64, u64), usize>,
    /// Record slots that no executable graph uses any more, and what has to end before others may.
    retired: Vec<Retired>,
    /// Number of the next flight.
    next: u64,
    /// The last stream that was given a launch; a note reports the first launch into another one.
    last_stream: Option<(u64, usize)>,
    /// The kernels of executable graphs, by handle, in the order in which their graphs give them.
    execs: HashMap<u64, Vec<Node>>,
}

impl Session {
    /// Checks with `checker`.
    pub fn new(checker: Checker) -> Self {
        Self {
            checker,
            gpus: BTreeMap::new(),
            flights: Vec::new(),
            asked: Vec::new(),
            shown: None,
            stuck: false,
            record_slots: HashMap::new(),
            retired: Vec::new(),
            next: 0,
            last_stream: None,
            execs: HashMap::new(),
        }
    }

    /// The checker, to load modules and to record allocations.
    pub fn checker(&mut self) -> &mut Checker {
        &mut self.checker
    }

    /// Whether nothing is in flight, and nothing about to be.
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.asked.is_empty()
    }

    /// Whether the driver is being asked for a launch.
    pub fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Arms a launch into a stream of a context that is known.
    ///
    /// With `early` it may start before what is ahead of it in the stream has ended.
    pub fn begin(
        &mut self,
        context: u64,
        stream: usize,
        kernel: Kernel,
        early: bool,
    ) -> ArmedLaunch {
        self.prepare(context, stream);
        let _entered = self.gpus.get(&context).map(Gpu::enter);
        let mut pending = self.arm(context, &kernel, None);
        if early && let Some(pending) = &mut pending {
            pending.overlaps();
        }
        ArmedLaunch {
            parameter: pending.as_ref().and_then(|pending| pending.parameter),
            own: pending.as_ref().is_some_and(PendingLaunch::runs_own),
            flight: pending
                .and_then(|pending| self.ask(context, stream, vec![Armed { kernel, pending }])),
        }
    }

    /// The driver has been asked for the launch; `error` says why it refused.
    pub fn launched(&mut self, armed: ArmedLaunch, error: Option<CUresult>) {
        let number = armed.flight;
        let mut asked = self.asked.iter();
        let Some(index) = asked.position(|flight| Some(flight.number) == number) else {
            return;
        };
        let flight = self.asked.remove(index);
        let Some(gpu) = self.gpus.get_mut(&flight.context) else {
            return;
        };
        gpu.queue(flight.stream);
        let _entered = gpu.enter();
        let [_, behind, found] = &flight.events;
        let mut followed = gpu.record(behind, flight.stream);
        if error.is_none() && followed.is_ok() {
            for launch in &flight.launches {
                self.checker.fetch(gpu, &launch.pending);
            }
        }
        followed = followed.and_then(|()| gpu.record(found, flight.stream));
        match (error, followed) {
            (refused, Ok(())) => self.flights.push(InFlight { refused, ..flight }),
            // What was sent ahead may not have arrived, but the context is of no use any more.
            (Some(error), Err(_)) => self.complete(
                InFlight {
                    refused: Some(error),
                    ..flight
                },
                None,
            ),
            // The launch has failed already and ended its context.
            (None, Err(error)) if gpu.passed(&flight.events[0]).is_err() => {
                self.complete(flight, Some(error.to_string()));
            }
            // It will not be known when it has ended.
            (None, Err(error)) => {
                let why = format!("the launch cannot be followed: {error}");
                self.abandon(flight.launches, &why);
            }
        }
    }

    /// Makes room for a launch into a stream: looks for launches that have ended before more memory is
    /// taken for this one.
    fn prepare(&mut self, context: u64, stream: usize) {
        let gpu = self.gpus.get(&context);
        if gpu.is_some_and(|gpu| !self.checker.has_slot(gpu)) {
            self.poll();
        }
        let last = self.last_stream.replace((context, stream));
        if last.is_some_and(|last| last != (context, stream)) {
            self.checker.note_uncompared();
        }
        if let Some(gpu) = self.gpus.get_mut(&context) {
            gpu.queue(stream);
        }
    }

    /// The value of the hidden parameter for the node of a graph, the same for each of its launches;
    /// that of launches that are not checked where there is no record slot for it.
    pub fn keep_slot(&mut self, context: u64) -> Option<u64> {
        self.free_slots();
        let gpu = self.gpus.get_mut(&context)?;
        match self.checker.keep_slot(gpu) {
            Ok((record_slot, parameter)) => {
                self.record_slots.insert((context, parameter), record_slot);
                Some(parameter)
            }
            Err(_) => self.checker.idle(gpu),
        }
    }

    /// Lets other nodes have the record slots that nothing uses any more.
    fn free_slots(&mut self) {
        let flights = &self.flights;
        let (gpus, checker) = (&self.gpus, &mut self.checker);
        self.retired.retain(|of| {
            let used = flights.iter().any(|flight| flight.number < of.before);
            if let (false, Some(gpu)) = (used, gpus.get(&of.context)) {
                checker.free_slot(gpu, of.record_slot);
            }
            used
        });
    }

    /// The value of the hidden parameter of launches that are not checked.
    pub fn idle(&mut self, context: u64) -> Option<u64> {
        self.checker.idle(self.gpus.get_mut(&context)?)
    }

    /// Whether a hidden parameter is one that a node keeps.
    pub fn is_kept(&self, context: u64, parameter: u64) -> bool {
        self.record_slots.contains_key(&(context, parameter))
    }

    /// The kernels of an executable graph; those of an unknown one are none.
    pub fn exec(&self, exec: u64) -> &[Node] {
        self.execs.get(&exec).map_or(&[], Vec::as_slice)
    }

    /// Changes the kernels of an executable graph; those of a new one are none. Record slots that no
    /// executable graph uses any more become free. A graph whose node still has such a record slot as its
    /// parameter gets another one when it is made executable.
    pub fn change_exec<R>(&mut self, exec: u64, change: impl FnOnce(&mut Vec<Node>) -> R) -> R {
        let nodes = self.execs.entry(exec).or_default();
        let before: Vec<Node> = nodes.clone();
        let changed = change(nodes);
        self.retire(before);
        changed
    }

    /// An executable graph is gone.
    pub fn forget_exec(&mut self, exec: u64) {
        let gone = self.execs.remove(&exec);
        self.retire(gone.unwrap_or_default());
    }

    /// Gives up those record slots of nodes that no executable graph has.
    fn retire(&mut self, nodes: Vec<Node>) {
        let before = self.number();
        for node in nodes {
            let Some(parameter) = node.parameter else {
                continue;
            };
            let of = (node.context, parameter);
            let mut used = self.execs.values().flatten();
            if used.any(|node| (node.context, node.parameter) == (of.0, Some(of.1))) {
                continue;
            }
            let context = of.0;
            self.retired
                .extend(self.record_slots.remove(&of).map(|record_slot| Retired {
                    context,
                    record_slot,
                    before,
                }));
        }
    }

    /// A number larger than all before.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether the node of a graph can run the program's own code because its arguments prove that it has no races.
    pub fn is_provable(&self, kernel: &Kernel) -> bool {
        self.checker.is_provable(kernel.invocation())
    }

    /// Arms the nodes of an executable graph that is to be launched into a stream.
    pub fn begin_graph(&mut self, context: u64, stream: usize, exec: u64) -> ArmedLaunch {
        self.prepare(context, stream);
        let _entered = self.gpus.get(&context).map(Gpu::enter);
        let nodes = self.exec(exec).iter();
        let nodes = nodes.filter(|of| of.context == context && of.enabled);
        let nodes: Vec<Node> = nodes.cloned().collect();
        if let Some(gpu) = self.gpus.get(&context) {
            let checked = nodes.iter().filter(|node| !node.own).count();
            self.checker.expect(gpu, checked);
        }
        let mut launches = Vec::new();
        for node in nodes {
            let record_slot = |parameter| self.record_slots.get(&(context, parameter)).copied();
            let pending = match node.parameter.map(record_slot) {
                _ if node.own => self.begin_own(context, &node.kernel),
                Some(None) => self.skip(context, &node.kernel, NO_SLOT),
                record_slot => self.arm(context, &node.kernel, record_slot.flatten()),
            };
            let kernel = node.kernel;
            launches.extend(pending.map(|pending| Armed { kernel, pending }));
        }
        let flight = match launches.is_empty() {
            true => None,
            false => self.ask(context, stream, launches),
        };
        ArmedLaunch {
            parameter: None,
            own: false,
            flight,
        }
    }

    /// Drains what has ended. Of a stream's flights, none has ended before the one ahead of it.
    pub fn poll(&mut self) {
        let mut index = 0;
        let mut waiting = Vec::new();
        while index < self.flights.len() {
            let flight = &self.flights[index];
            let at = (flight.context, flight.stream);
            if waiting.contains(&at) {
                index += 1;
                continue;
            }
            let gpu = self.gpus.get(&flight.context);
            let _entered = gpu.map(Gpu::enter);
            let passed = match gpu {
                Some(gpu) => gpu.passed(&flight.events[2]),
                None => Ok(true),
            };
            match passed {
                Ok(false) => {
                    waiting.push(at);
                    index += 1;
                }
                ended => {
                    self.stuck = false;
                    let mut flight = self.flights.remove(index);
                    self.note_overlaps(&mut flight);
                    self.complete(flight, ended.err().map(|error| error.to_string()));
                }
            }
        }
    }

    /// Drains what ends within a time. False if something is in flight then.
    pub fn settle(&mut self, timeout: Duration) -> bool {
        let started = Instant::now();
        self.poll();
        while !self.flights.is_empty() {
            if !self.wait(started, timeout) {
                return false;
            }
        }
        true
    }

    /// A context is about to be destroyed: waits for what is in flight, and lets go of it. What has
    /// not ended by then cannot be read any more.
    pub fn leave(&mut self, context: u64) {
        if !self.gpus.contains_key(&context) {
            return;
        }
        self.settle(TIMEOUT);
        let (gone, left) = std::mem::take(&mut self.flights)
            .into_iter()
            .partition(|flight: &InFlight| flight.context == context);
        self.flights = left;
        for flight in gone {
            let why = "its context was destroyed before it ended";
            self.complete(flight, Some(why.to_owned()));
        }
        self.execs
            .values_mut()
            .for_each(|nodes| nodes.retain(|node| node.context != context));
        self.record_slots.retain(|(of, _), _| *of != context);
        self.retired.retain(|of| of.context != context);
        self.checker.memory_gone(context);
        if let Some(gpu) = self.gpus.remove(&context) {
            gpu.forget();
        }
    }

    /// Gives cells and journal back to a program that has no memory left; true when it should ask again.
    pub fn yield_cells(&mut self, context: u64) -> bool {
        self.settle(TIMEOUT);
        match self.gpus.get_mut(&context) {
            Some(gpu) => self.checker.yield_cells(gpu),
            None => false,
        }
    }

    /// Arms one launch, waiting for others if need be; none if the context is not known.
    fn arm(&mut self, context: u64, kernel: &Kernel, kept: Option<usize>) -> Option<PendingLaunch> {
        let started = Instant::now();
        let mut polled = false;
        loop {
            let gpu = self.gpus.get_mut(&context)?;
            match self.checker.try_begin(gpu, kernel.invocation(), kept) {
                Ok(pending) => return Some(pending),
                Err(_) if !polled => {
                    polled = true;
                    self.poll();
                }
                Err(_) if self.stuck || self.flights.is_empty() => break,
                Err(_) if self.wait(started, TIMEOUT) => {}
                Err(_) => {
                    self.stuck = true;
                    break;
                }
            }
        }
        let why = "it needs what a launch still uses that has not ended";
        match kept {
            None => self.skip(context, kernel, why),
            Some(record_slot) => {
                let gpu = self.gpus.get_mut(&context)?;
                let invocation = kernel.invocation();
                Some(self.checker.skip_kept(gpu, invocation, record_slot, why))
            }
        }
    }

    fn begin_own(&mut self, context: u64, kernel: &Kernel) -> Option<PendingLaunch> {
        let gpu = self.gpus.get_mut(&context)?;
        Some(self.checker.begin_own(gpu, kernel.invocation()))
    }

    fn skip(&mut self, context: u64, kernel: &Kernel, why: &str) -> Option<PendingLaunch> {
        let gpu = self.gpus.get_mut(&context)?;
        let invocation = kernel.invocation();
        Some(self.checker.begin_unchecked(gpu, invocation, why))
    }

    /// Waits a little and drains. False when the time is over.
    fn wait(&mut self, started: Instant, timeout: Duration) -> bool {
        let waited = started.elapsed();
        if waited >= timeout {
            return false;
        }
        // As long again as it has taken, within reason.
        let pause = waited.clamp(Duration::from_micros(20), Duration::from_millis(2));
        thread::sleep(pause);
        self.poll();
        true
    }

    /// Puts the first event before launches that the driver is to be asked for; the number of their
    /// flight.
    fn ask(&mut self, context: u64, stream: usize, launches: Vec<Armed>) -> Option<u64> {
        let flight = self.open(context, stream, launches)?;
        let number = flight.number;
        self.asked.push(flight);
        Some(number)
    }

    /// Puts the first event before launches that are to come.
    fn open(&mut self, context: u64, stream: usize, launches: Vec<Armed>) -> Option<InFlight> {
        let number = self.number();
        let gpu = self.gpus.get_mut(&context)?;
        let events = gpu.event().and_then(|before| {
            let (behind, found) = (gpu.event()?, gpu.event()?);
            gpu.record(&before, stream)?;
            Ok([before, behind, found])
        });
        match events {
            Ok(events) => Some(InFlight {
                number,
                context,
                stream,
                launches,
                events,
                refused: None,
            }),
            Err(error) => {
                let why = format!("the launch cannot be followed: {error}");
                self.abandon(launches, &why);
                None
            }
        }
    }

    /// Says of a flight that has ended, and of those that have not been drained, which overlapped.
    fn note_overlaps(&mut self, ended: &mut InFlight) {
        let Some(gpu) = self.gpus.get(&ended.context) else {
            return;
        };
        let checks = |of: &InFlight| {
            of.launches
                .iter()
                .any(|launch| launch.pending.is_on_device())
        };
        for other in &mut self.flights {
            if !checks(ended) || !checks(other) {
                continue;
            }
            if other.context != ended.context || other.stream == ended.stream {
                continue;
            }
            let passed = |event| matches!(gpu.passed(event), Ok(true));
            let gap = |a, b| gpu.seconds(a, b).unwrap_or(0.0);
            let ([start, end, _], [first, last, _]) = (&other.events, &ended.events);
            let began = passed(start) && gap(start, last) > 0.0;
            if began && !(passed(end) && gap(end, first) >= 0.0) {
                let both = ended.launches.iter_mut().chain(&mut other.launches);
                both.for_each(|launch| launch.pending.overlaps());
            }
        }
    }

    /// It will not be known what launches find.
    fn abandon(&mut self, launches: Vec<Armed>, why: &str) {
        for launch in launches {
            self.checker.abandon(launch.pending, why);
        }
    }

    /// Writes down what launches have found, also when they failed.
    fn complete(&mut self, flight: InFlight, error: Option<String>) {
        let InFlight {
            context,
            launches,
            events: [before, behind, found],
            refused,
            ..
        } = flight;
        let Some(gpu) = self.gpus.get_mut(&context) else {
            self.abandon(launches, "its context is gone");
            return;
        };
        // A graph's kernels get equal parts of its time.
        let is_refused = refused.is_some();
        let is_invalid = refused.is_some_and(|code| INVALID.contains(&code));
        let error = refused.map(|code| code.to_string()).or(error);
        let seconds = match error {
            None => gpu.seconds(&before, &behind),
            Some(_) => None,
        };
        let seconds = seconds.map(|all| all / launches.len() as f64);
        for Armed { kernel, pending } in launches {
            let Kernel { key, extent, .. } = kernel;
            let journal = match is_refused {
                true => None,
                false => self.checker.journal(gpu, &pending, key, extent, false),
            };
            let outcome = LaunchOutcome {
                seconds,
                refused: is_refused,
                invalid: is_invalid,
                error: error.clone(),
                ..LaunchOutcome::default()
            };
            let findings = journal.map(HappensBefore::finish);
            self.checker.end(gpu, pending, outcome, findings);
        }
        let events = [before, behind, found];
        events.into_iter().for_each(|event| gpu.put_back(event));
    }
}
