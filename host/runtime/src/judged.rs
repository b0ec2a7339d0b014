//! What happens-before has found in a launch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shadow::hb::{Engine, Launched, Order, Race, Stats, Thread};

use crate::instructions::Instructions;
use crate::locking;
use crate::log::{self, Misuse};
use crate::pairs::Found;
use crate::streams::Touched;

/// Sites of weak stores of which it is not known whether they came before strong accesses to the same
/// bytes; see [`shadow::layout::ENTRY_OVERTAKEN`].
#[derive(Debug, Default)]
pub(crate) struct Overtaken(pub(crate) BTreeSet<u32>);

impl Overtaken {
    /// Whether a race is one in whatever order those were made. They race with each other in any
    /// case.
    pub(crate) fn is_sure(&self, instructions: &Instructions, race: &Race) -> bool {
        let strong = |site| {
            let order = instructions.access(site).map(|access| access.order);
            order.and_then(Order::scope).is_some()
        };
        let [a, b] = [race.earlier.site, race.later.site];
        self.0.is_empty()
            || (self.0.contains(&a) && strong(b))
            || (self.0.contains(&b) && strong(a))
    }
}

/// What the oracle has to say about a launch.
#[derive(Debug)]
pub struct Judged {
    pub(crate) instructions: Arc<Instructions>,
    /// Pairs of sites that raced.
    pub(crate) found: Vec<Found>,
    /// Pairs that found no room.
    pub(crate) dropped: u64,
    /// What barriers were misused by two sites, by whom first, and how often.
    pub(crate) misuses: BTreeMap<(Misuse, u32, u32), (Thread, u64)>,
    pub(crate) overtaken: Overtaken,
    /// What the engine has counted, if there was one.
    pub(crate) stats: Option<Stats>,
    /// What the launch has done for those that may run beside it, if that was followed.
    pub(crate) touched: Option<Touched>,
    /// What the engine knows, and what comes before each request to the device runtime, if there are any.
    pub(crate) launcher: Option<(Box<Engine>, Vec<Launched>)>,
}

impl Judged {
    /// A launch without races, which has touched some memory.
    pub(crate) fn nothing(instructions: Arc<Instructions>, touched: Touched) -> Self {
        Self {
            instructions,
            found: Vec::new(),
            dropped: 0,
            misuses: BTreeMap::new(),
            overtaken: Overtaken::default(),
            stats: None,
            touched: Some(touched),
            launcher: None,
        }
    }

    /// The line of a site in the program's own PTX.
    pub(crate) fn line(&self, site: u32) -> u32 {
        self.instructions.site(site).map_or(0, |site| site.ptx_line)
    }

    /// False where the order of some accesses is not known, and what was found may hang on it.
    pub(crate) fn is_sure(&self, found: &Found) -> bool {
        self.overtaken.is_sure(&self.instructions, &found.race)
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

    /// The sites of everything that is to be told, with their numbers.
    pub(crate) fn sites(&self) -> impl Iterator<Item = (u32, Option<&log::Site>)> {
        let races = self.found.iter().map(|found| &found.race);
        let pairs = races.map(|race| [race.earlier.site, race.later.site]);
        let misused = self.misuses.keys().map(|&(_, a, b)| [a, b]);
        let held = self.found.iter().flat_map(|found| found.locks.iter());
        let locked = held.flatten().flat_map(locking::sites);
        let flags = self.found.iter().filter_map(|found| found.flag);
        let flags = flags.flat_map(|flag| flag.written.into_iter().chain(flag.read));
        pairs
            .chain(misused)
            .flatten()
            .chain(locked)
            .chain(flags)
            .map(|number| (number, self.instructions.site(number)))
    }
}

/// Bytes of memory that the process has had resident at most; 0 when the system does not tell.
fn peak_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = peak.and_then(|peak| peak.trim().strip_suffix("kB"));
    1024 * number.map_or(0, |number| number.trim().parse().unwrap_or(0))
}
