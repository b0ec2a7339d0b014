//! Runs a kernel on the simulated device and holds its summary's forms and proofs against what every thread does.

use std::collections::BTreeMap;

use events::{AccessKind, Executing, Observer};
use prove::assume::{Assumed, Assumption, Wrong};
use prove::interval::Interval;
use prove::problem::{Effect, Linear, Problem, Space, SymbolKind, Term};
use prove::{Argument, Effort, Launch, Posed, Proof, Summary};
use simt::{Device, DeviceConfig, ModuleId, Strays};

/// Most accesses of a launch that are held against the forms.
const DESCRIBED: usize = 1_000;

/// A kernel of a module that is loaded, and its summary.
pub(crate) struct Machine {
    pub(crate) device: Device,
    module: ModuleId,
    pub(crate) summary: Summary,
    /// By byte offset of an instruction: the access of the summary.
    sites: BTreeMap<u32, usize>,
    /// By access of the summary: its line in the PTX.
    pub(crate) lines: Vec<u32>,
}

/// A launch of the kernel `k`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) parameters: Vec<u8>,
    pub(crate) dynamic_shared: u32,
}

impl Run {
    pub(crate) fn new(grid: u32, block: u32) -> Self {
        Self {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            ..Self::default()
        }
    }

    pub(crate) fn word(mut self, value: u32) -> Self {
        let start = self.parameters.len().next_multiple_of(4);
        self.parameters.resize(start, 0);
        self.parameters.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn long(mut self, value: u64) -> Self {
        let start = self.parameters.len().next_multiple_of(8);
        self.parameters.resize(start, 0);
        self.parameters.extend(value.to_le_bytes());
        self
    }
}

/// An access of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) site: usize,
    pub(crate) cta: u64,
    pub(crate) thread: u32,
    /// Barriers that the thread has passed.
    pub(crate) interval: u32,
    pub(crate) shared: bool,
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) kind: AccessKind,
}

/// What the threads of a launch did.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) events: Vec<Event>,
    sites: BTreeMap<u32, usize>,
    passed: BTreeMap<(u64, u32), u32>,
}

impl Observer for Trace {
    fn access(
        &mut self,
        threads: Executing,
        kind: AccessKind,
        space: ptx::ast::Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        let shared = match space {
            ptx::ast::Space::Global => false,
            ptx::ast::Space::Shared => true,
            _ => return,
        };
        let Some(&site) = self.sites.get(&threads.offset) else {
            panic!(
                "an access that is not in the summary, at byte {}",
                threads.offset
            );
        };
        for lane in (0..32).filter(|lane| threads.lanes >> lane & 1 == 1) {
            let thread = threads.warp * 32 + lane;
            let interval = self
                .passed
                .get(&(threads.cta, thread))
                .copied()
                .unwrap_or(0);
            let address = addresses[lane as usize];
            let (cta, site) = (threads.cta, site);
            self.events.push(Event {
                site,
                cta,
                thread,
                interval,
                shared,
                address,
                bytes,
                kind,
            });
        }
    }

    fn arrive(&mut self, threads: Executing, _: u32, _: bool) {
        for lane in (0..32).filter(|lane| threads.lanes >> lane & 1 == 1) {
            *self
                .passed
                .entry((threads.cta, threads.warp * 32 + lane))
                .or_default() += 1;
        }
    }
}

impl Machine {
    /// Loads a module with a kernel `k`.
    pub(crate) fn new(text: &str) -> Self {
        let text = match text.contains(".version") {
            true => text.to_owned(),
            false => format!(".version 8.0\n.target sm_90\n.address_size 64\n{text}"),
        };
        let (module, diagnostics) = ptx::parse(&text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
        let config = DeviceConfig {
            memory: 1 << 24,
            ..DeviceConfig::default()
        };
        let mut device = Device::new(config).expect("a device");
        let loaded = device
            .load(&module)
            .unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        let kernel = module.function("k").expect("a kernel k");
        let summary = Summary::new(&module, kernel);
        let body = kernel.body.as_ref().expect("a body");
        let sites = summary.accesses.iter().enumerate();
        let sites = sites
            .map(|(index, access)| (body.statements[access.statement].span().start, index))
            .collect();
        let lines = summary
            .accesses
            .iter()
            .map(|access| access.ptx_line)
            .collect();
        Self {
            device,
            module: loaded,
            summary,
            sites,
            lines,
        }
    }

    /// A buffer of so many bytes.
    pub(crate) fn buffer(&mut self, bytes: u64) -> u64 {
        self.device.memory_mut().alloc(bytes).expect("memory")
    }

    fn with_launch<T>(&self, run: &Run, then: impl FnOnce(&Launch<'_>) -> T) -> T {
        let memory = self.device.memory();
        let allocation = |address| memory.containing(address);
        let variable = |name: &str| self.device.global(self.module, name);
        then(&Launch {
            grid: run.grid,
            block: run.block,
            cluster: [0; 3],
            parameters: &run.parameters,
            dynamic_shared: run.dynamic_shared,
            allocation: &allocation,
            variable: &variable,
        })
    }

    pub(crate) fn prove(&self, run: &Run) -> Proof {
        self.with_launch(run, |launch| self.summary.prove(launch))
    }

    pub(crate) fn prove_by_bits(&self, run: &Run) -> Proof {
        self.with_launch(run, |launch| {
            self.summary.prove_by_bits(launch, &mut Effort::default())
        })
    }

    pub(crate) fn pose(&self, run: &Run) -> Option<Posed> {
        self.with_launch(run, |launch| self.summary.pose(launch))
    }

    /// The assumptions of a text each, about the kernel.
    pub(crate) fn assumed(&self, texts: &[&str]) -> Vec<Assumed> {
        let about = |text: &&str| Assumption::parse(text)?.about(&self.summary.names);
        let all: Result<_, Wrong> = texts.iter().map(about).collect();
        all.unwrap_or_else(|wrong| panic!("{wrong}: {texts:?}"))
    }

    /// Proves the launches like one, under assumptions.
    pub(crate) fn family(&self, like: &Run, assumed: &[Assumed]) -> Result<Vec<String>, String> {
        self.with_launch(like, |like| {
            let proved = self.summary.prove_family(like, assumed);
            proved.map_err(|reason| reason.text)
        })
    }

    /// Whether a launch runs: an error if its accesses conflict, which a proof of it as a whole excludes.
    pub(crate) fn is_free(&mut self, run: &Run) -> Result<bool, String> {
        let Some(trace) = self.trace(run) else {
            return Ok(false);
        };
        let proof = Proof {
            accesses: vec![Ok(Argument::Private); self.lines.len()],
            whole: true,
            ..Proof::default()
        };
        self.referee(&proof, &trace)?;
        Ok(true)
    }

    /// Runs a launch. None if it fails.
    pub(crate) fn trace(&mut self, run: &Run) -> Option<Trace> {
        let mut trace = Trace {
            sites: self.sites.clone(),
            ..Trace::default()
        };
        let mut launch = simt::Launch::new(run.grid, run.block, run.parameters.clone());
        launch.dynamic_shared = run.dynamic_shared;
        launch.strays = Some(Strays::default());
        launch.limits.max_warp_instructions = Some(200_000);
        let ran = self
            .device
            .launch_observed(self.module, "k", &launch, &mut trace);
        ran.is_ok().then_some(trace)
    }

    /// Checks a launch: forms, then proofs. Returns the proof and how many accesses were executed; none if the launch
    /// fails.
    pub(crate) fn check(
        &mut self,
        run: &Run,
        by_bits: bool,
    ) -> Result<Option<(Proof, usize)>, String> {
        let posed = self.pose(run);
        let proof = match by_bits {
            true => self.prove_by_bits(run),
            false => self.prove(run),
        };
        let Some(trace) = self.trace(run) else {
            return Ok(None);
        };
        if let Some(posed) = &posed {
            // Nothing is said of launches in which an index leads out of the allocation of its pointer.
            let strays = |event: &Event| {
                let mut assumed = posed.assumed.iter();
                let address = match event.shared {
                    // The problem has the only static variable there.
                    true => event.address + (1 << 24),
                    false => event.address,
                };
                assumed.any(|&(site, start, end)| {
                    let inside = start <= address && address + u64::from(event.bytes) <= end;
                    site == event.site && !inside
                })
            };
            if trace.events.iter().any(strays) {
                return Ok(None);
            }
            // Each thread's accesses at one place once, and not all of many.
            let mut seen = std::collections::BTreeSet::new();
            let distinct = trace
                .events
                .iter()
                .filter(|event| seen.insert((event.site, event.cta, event.thread, event.address)));
            for event in distinct.take(DESCRIBED) {
                is_described(posed, event, run).map_err(|error| {
                    format!("line {}: {error}: {event:?}", self.lines[event.site])
                })?;
            }
        }
        self.referee(&proof, &trace)?;
        Ok(Some((proof, trace.events.len())))
    }

    /// No access that is proved is part of a conflict.
    fn referee(&self, proof: &Proof, trace: &Trace) -> Result<(), String> {
        let mut bytes: BTreeMap<(bool, u64, u64), Vec<&Event>> = BTreeMap::new();
        for event in &trace.events {
            for byte in 0..u64::from(event.bytes) {
                let block = if event.shared { event.cta } else { 0 };
                let place = (event.shared, block, event.address + byte);
                let all = bytes.entry(place).or_default();
                let known = |known: &&&Event| {
                    (known.site, known.cta, known.thread, known.interval)
                        == (event.site, event.cta, event.thread, event.interval)
                };
                if all.iter().find(known).is_none() {
                    all.push(event);
                }
            }
        }
        for events in bytes.values() {
            for (n, a) in events.iter().enumerate() {
                for b in &events[n + 1..] {
                    let same = (a.cta, a.thread) == (b.cta, b.thread);
                    let ordered = a.cta == b.cta && a.interval != b.interval;
                    let both = |kind| a.kind == kind && b.kind == kind;
                    if same || ordered || both(AccessKind::Load) || both(AccessKind::Rmw) {
                        continue;
                    }
                    for event in [a, b] {
                        if let Ok(argument) = &proof.accesses[event.site] {
                            let lines = (self.lines[a.site], self.lines[b.site]);
                            return Err(format!(
                                "{argument:?} is wrong: lines {lines:?} conflict: {a:?} {b:?}"
                            ));
                        }
                    }
                    if proof.whole {
                        return Err("a launch with a race is proved as a whole".to_owned());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a problem allows an access.
fn is_described(posed: &Posed, event: &Event, run: &Run) -> Result<(), String> {
    let problem = &posed.problem;
    let space = if event.shared {
        Space::Shared
    } else {
        Space::Global
    };
    let mut found = false;
    for (index, access) in problem.accesses.iter().enumerate() {
        if posed.site[index] != event.site || access.space != space {
            continue;
        }
        found = true;
        let kind = match access.effect {
            Effect::Load => event.kind == AccessKind::Load,
            Effect::Store => event.kind != AccessKind::Load,
            Effect::Atomic { .. } => event.kind == AccessKind::Rmw,
        };
        if !kind || access.bytes != event.bytes {
            return Err("another effect or size".to_owned());
        }
        if access.alternatives.is_empty() {
            return Ok(());
        }
        // The problem has the only static variable at 1 << 24, and dynamic memory at 0.
        let candidates: Vec<i128> = match event.shared {
            true => vec![
                i128::from(event.address),
                i128::from(event.address) + (1 << 24),
            ],
            false => vec![i128::from(event.address)],
        };
        for alternative in &access.alternatives {
            for &address in &candidates {
                let mut equal = alternative.address.clone();
                equal.constant -= address;
                let negated = Linear {
                    terms: equal.terms.iter().map(opposite).collect(),
                    constant: -equal.constant,
                };
                let mut rows = vec![equal, negated];
                rows.extend(alternative.when.iter().cloned());
                rows.extend(access.path.iter().cloned());
                if is_possible(problem, &rows, event, run) {
                    return Ok(());
                }
            }
        }
    }
    let what = if found {
        "no form describes it"
    } else {
        "it is said never to be executed"
    };
    Err(format!("{what}; {posed:?}"))
}

/// Whether some values of the symbols, with the thread's own coordinates, satisfy rows: bounds are narrowed, then a
/// symbol is enumerated.
fn is_possible(problem: &Problem, rows: &[Linear], event: &Event, run: &Run) -> bool {
    let [x, y, _] = run.block.map(u64::from);
    let [gx, gy, _] = run.grid.map(u64::from);
    let thread = u64::from(event.thread);
    let mut ranges: Vec<(i128, i128)> = Vec::new();
    for symbol in &problem.symbols {
        use prove::problem::Axis::{X, Y, Z};
        let fixed = match symbol.kind {
            SymbolKind::Thread(X) => Some(thread % x),
            SymbolKind::Thread(Y) => Some(thread / x % y),
            SymbolKind::Thread(Z) => Some(thread / x / y),
            SymbolKind::Block(X) => Some(event.cta % gx),
            SymbolKind::Block(Y) => Some(event.cta / gx % gy),
            SymbolKind::Block(Z) => Some(event.cta / gx / gy),
            _ => None,
        };
        let Interval { low, high } = symbol.range;
        match fixed {
            Some(value) if i128::from(value) > high.into() => return false,
            Some(value) => ranges.push((value.into(), value.into())),
            None => ranges.push((low.into(), high.into())),
        }
    }
    let mut all = rows.to_vec();
    for equation in &problem.equations {
        all.push(equation.clone());
        all.push(Linear {
            terms: equation.terms.iter().map(opposite).collect(),
            constant: -equation.constant,
        });
    }
    search(&all, ranges, &mut 200)
}

fn opposite(term: &Term) -> Term {
    Term::new(term.variable, -term.coefficient)
}

fn search(rows: &[Linear], mut ranges: Vec<(i128, i128)>, budget: &mut u32) -> bool {
    // Narrow.
    let mut changed = true;
    let mut rounds = 0;
    while changed && rounds < 50 {
        changed = false;
        rounds += 1;
        for row in rows {
            let most = |term: &Term| {
                let (low, high) = ranges[term.variable as usize];
                let by = i128::from(term.coefficient);
                (by * low).max(by * high)
            };
            let total: i128 = row.constant + row.terms.iter().map(most).sum::<i128>();
            if total < 0 {
                return false;
            }
            for term in &row.terms {
                let by = i128::from(term.coefficient);
                // by * value >= -(total - most(term)).
                let least = -(total - most(term));
                let (low, high) = ranges[term.variable as usize];
                let (mut new_low, mut new_high) = (low, high);
                if by > 0 {
                    new_low = new_low.max(-((-least).div_euclid(by)));
                } else {
                    new_high = new_high.min((-least).div_euclid(-by));
                }
                if new_low > new_high {
                    return false;
                }
                if (new_low, new_high) != (low, high) {
                    ranges[term.variable as usize] = (new_low, new_high);
                    changed = true;
                    break;
                }
            }
        }
    }
    if *budget == 0 {
        // Too large to say: taken for described.
        return true;
    }
    *budget -= 1;
    let in_rows = |symbol: usize| {
        rows.iter().any(|row| {
            row.terms
                .iter()
                .any(|term| term.variable as usize == symbol)
        })
    };
    let open = (0..ranges.len()).filter(|&of| ranges[of].0 < ranges[of].1 && in_rows(of));
    let Some(symbol) = open.min_by_key(|&of| ranges[of].1 - ranges[of].0) else {
        return true;
    };
    let (low, high) = ranges[symbol];
    let middle = low + (high - low) / 2;
    for half in [(low, middle), (middle + 1, high)] {
        let mut part = ranges.clone();
        part[symbol] = half;
        if search(rows, part, budget) {
            return true;
        }
    }
    false
}
