//! What happens-before has found in a launch.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use shadow::hb::{Engine, Launched, Location, MemoryOrder, OpKind, Race, Stats, Thread};

use crate::happens_before::Unordered;
use crate::instructions::{Instructions, NumberedSite};
use crate::locking;
use crate::log::{self, Misuse};
use crate::pairs::{Found, is_shared};
use crate::streams::Followed;

/// What a journal leaves open.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Sites of weak stores, and of asynchronous copies, of which it is not known whether they came before strong
    /// accesses to the same bytes; see [`shadow::layout::ENTRY_OVERTAKEN`].
    pub(crate) overtaken: BTreeSet<u32>,
    /// Of asynchronous copies, by site: whether they write to shared memory.
    copies: BTreeMap<u32, bool>,
    /// Those of them that reduce.
    reductions: BTreeSet<u32>,
    /// Whether there have been strong reads of global memory, and of shared memory.
    strong_reads: [bool; 2],
    /// Races with atomics that may have been observed by another thread than the journal says.
    pub(crate) polls: HashSet<([u32; 2], [Thread; 2])>,
    /// Pairs of sites with such races, and with others.
    polled: HashSet<[u32; 2]>,
    plain: HashSet<[u32; 2]>,
    /// Conflicts with such atomics.
    pub(crate) undecided: u64,
}

impl Doubts {
    fn sites(race: &Race) -> [u32; 2] {
        [race.earlier.site, race.later.site]
    }

    fn poll(race: &Race) -> ([u32; 2], [Thread; 2]) {
        let threads = [race.earlier.thread, race.later.thread];
        (Self::sites(race), threads)
    }

    /// A race with an atomic that another thread may have observed.
    pub(crate) fn doubt(&mut self, race: &Race) {
        self.polls.insert(Self::poll(race));
        self.polled.insert(Self::sites(race));
    }

    /// A race was found, and it has been said if it is one with an atomic that another thread may have observed.
    pub(crate) fn found(&mut self, instructions: &Instructions, race: &Race) {
        self.may_be_observed(race);
        self.overtakes(instructions, race);
        if !self.polls.is_empty() && !self.polls.contains(&Self::poll(race)) {
            self.plain.insert(Self::sites(race));
        }
    }

    /// An asynchronous copy writes there, or reduces.
    pub(crate) fn copies(&mut self, site: u32, target: Location, reduces: bool) {
        self.copies.insert(site, is_shared(target));
        if reduces {
            self.reductions.insert(site);
        }
    }

    /// A strong read.
    pub(crate) fn reads_strongly(&mut self, at: Location) {
        self.strong_reads[usize::from(is_shared(at))] = true;
    }

    /// A race with the target of an asynchronous reduction, where threads make strong reads, which do not race with it. A
    /// journal does not record whether they have observed the reduction, which would order it.
    fn may_be_observed(&mut self, race: &Race) {
        let shared = is_shared(race.location);
        let reduces =
            |site| self.reductions.contains(&site) && self.copies.get(&site) == Some(&shared);
        if self.strong_reads[usize::from(shared)] && Self::sites(race).into_iter().any(reduces) {
            self.doubt(race);
            self.undecided += 1;
        }
    }

    /// A race of two accesses, of which one may be a copy. The bytes of a copy may come at any time while it is under
    /// way, so who has made a strong access meanwhile may have observed them or not.
    fn overtakes(&mut self, instructions: &Instructions, race: &Race) {
        let [a, b] = Self::sites(race);
        let written = Some(&is_shared(race.location));
        for (copy, other) in [(a, b), (b, a)] {
            if self.copies.get(&copy) == written && is_strong(instructions, other) {
                self.overtaken.insert(copy);
                self.undecided += 1;
            }
        }
    }

    /// Whether this very race is one, in whatever order accesses were made that a journal does not record.
    pub(crate) fn is_sure(&self, instructions: &Instructions, race: &Race) -> bool {
        !self.polls.contains(&Self::poll(race)) && !self.hangs(instructions, race)
    }

    /// Whether some race of the same pair of sites is one.
    pub(crate) fn is_pair_sure(&self, instructions: &Instructions, race: &Race) -> bool {
        let sites = Self::sites(race);
        let polled = self.polled.contains(&sites) && !self.plain.contains(&sites);
        !polled && !self.hangs(instructions, race)
    }

    /// Whether a race may hang on when weak stores and copies were made. They race with what has overtaken them in any
    /// case.
    fn hangs(&self, instructions: &Instructions, race: &Race) -> bool {
        let [a, b] = Self::sites(race);
        let overtaken =
            |one, other| self.overtaken.contains(&one) && is_strong(instructions, other);
        !self.overtaken.is_empty() && !overtaken(a, b) && !overtaken(b, a)
    }
}

/// Whether an access takes part in the observation order of its location.
fn is_strong(instructions: &Instructions, site: u32) -> bool {
    let order = instructions.access(site).map(|access| access.order);
    order.and_then(MemoryOrder::scope).is_some()
}

/// A misuse of a barrier or of a warp operation, by the sites of both instructions: the same where it takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Misused {
    pub(crate) misuse: Misuse,
    pub(crate) before: u32,
    pub(crate) now: u32,
}

/// What a launch has shown that was run again.
#[derive(Debug)]
pub struct Explored {
    /// The seed of its schedule.
    pub seed: u64,
    /// What was found: once it stands in [`Findings`], what the runs before have not shown.
    pub findings: Findings,
    /// All threads left waited for others.
    pub deadlock: bool,
}

/// What happens-before has found in a launch.
#[derive(Debug)]
pub struct Findings {
    pub(crate) instructions: Arc<Instructions>,
    /// Pairs of sites that raced.
    pub(crate) found: Vec<Found>,
    /// Pairs that found no room.
    pub(crate) dropped: u64,
    /// What barriers were misused by two sites, by whom first, and how often.
    pub(crate) misuses: BTreeMap<Misused, (Thread, u64)>,
    pub(crate) doubts: Doubts,
    /// Pairs of sites that barriers alone do not order, where that is asked for.
    pub(crate) unordered_by_barriers: Unordered,
    /// Strong conflicts that are not judged, since swaps whose values are not known may have written the version.
    pub(crate) under_versions: u64,
    /// What the engine has counted, if there was one.
    pub(crate) stats: Option<Stats>,
    /// What the launch has done for those that may run beside it, if that was followed.
    pub(crate) touched: Option<Followed>,
    /// Other runs of the launch.
    pub(crate) explored: Vec<Explored>,
    /// What the engine knows, and what comes before each request to the device runtime, if there are any.
    pub(crate) launcher: Option<(Box<Engine>, Vec<Launched>)>,
}

impl Findings {
    /// A launch without races, which has touched some memory.
    pub(crate) fn nothing(instructions: Arc<Instructions>, touched: Followed) -> Self {
        Self {
            instructions,
            found: Vec::new(),
            dropped: 0,
            misuses: BTreeMap::new(),
            doubts: Doubts::default(),
            unordered_by_barriers: Unordered::default(),
            under_versions: 0,
            stats: None,
            touched: Some(touched),
            explored: Vec::new(),
            launcher: None,
        }
    }

    /// The launch was run again. What is known already is left out.
    pub(crate) fn explored(&mut self, mut explored: Explored) {
        let findings = &mut explored.findings;
        let before = || {
            let others = self.explored.iter().map(|of| &of.findings);
            std::iter::once(&*self).chain(others)
        };
        let pairs: HashSet<_> = before().flat_map(|of| &of.found).map(Found::key).collect();
        findings.found.retain(|found| !pairs.contains(&found.key()));
        let misused = |of: &Misused| before().any(|before| before.misuses.contains_key(of));
        findings.misuses.retain(|of, _| !misused(of));
        self.explored.push(explored);
    }

    /// The line of a site in the program's own PTX.
    pub(crate) fn line(&self, site: u32) -> u32 {
        self.instructions.site(site).map_or(0, |site| site.ptx_line)
    }

    /// False where the order of some accesses is not known, and what was found may hang on it.
    pub(crate) fn is_sure(&self, found: &Found) -> bool {
        self.doubts.is_pair_sure(&self.instructions, &found.race)
    }

    /// See [`log::Race::later_block`].
    pub(crate) fn is_by_later_block(&self, found: &Found) -> bool {
        let kind = |site| self.instructions.access(site).map(|access| access.kind);
        let [before, now] = [found.race.earlier.site, found.race.later.site].map(kind);
        found.ascending && before == Some(OpKind::Load) && !matches!(now, None | Some(OpKind::Load))
    }

    /// How many accesses of single threads happens-before has received.
    pub fn accesses(&self) -> u64 {
        self.stats.map_or(0, |stats| stats.accesses)
    }

    pub(crate) fn clocks(&self) -> Option<log::Clocks> {
        let stats = self.stats?;
        Some(log::Clocks {
            accesses: stats.accesses,
            synchronisations: stats.synchronisations,
            warps: stats.warps,
            left_converged: stats.left_converged(),
            diverged: stats.diverged,
            nested_diverged: stats.nested_diverged,
            sparse: stats.sparse,
            peak_resident: peak_resident(),
        })
    }

    /// The sites of everything that is to be reported, with their numbers.
    pub(crate) fn sites(&self) -> impl Iterator<Item = NumberedSite<'_>> {
        let races = self.found.iter().map(|found| &found.race);
        let pairs = races.map(|race| [race.earlier.site, race.later.site]);
        let misused = self.misuses.keys().map(|of| [of.before, of.now]);
        let held = self.found.iter().flat_map(|found| found.locks.iter());
        let locked = held.flatten().flat_map(locking::sites);
        let flags = self.found.iter().flat_map(|found| {
            let late = found.read_late.map(|(_, flag)| flag);
            found.flag.into_iter().chain(late)
        });
        let flags = flags.flat_map(|flag| flag.written.into_iter().chain(flag.read));
        pairs
            .chain(misused)
            .flatten()
            .chain(locked)
            .chain(flags)
            .map(|number| self.instructions.numbered(number))
    }
}

/// Bytes of memory that the process has had resident at most; 0 when the system does not report it.
fn peak_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = peak.and_then(|peak| peak.trim().strip_suffix("kB"));
    1024 * number.map_or(0, |number| number.trim().parse().unwrap_or(0))
}
