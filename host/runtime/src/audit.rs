//! What the cells and happens-before say of one and the same launch, side by side.
//!
//! For tests of the tool itself, and nothing else: no option of the user's asks for it (`--prove audit` is something
//! else, and takes no part in this). A rewritten program interleaves in another way than the original
//! under the same seed, so two runs cannot be compared; here one run is judged twice.

use driver::Device;

use crate::checker::{self, Checker, PendingLaunch};
use crate::happens_before::HappensBefore;
use crate::log;
use crate::traced::TraceEvent;

/// Both verdicts of a launch.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// The cells judge the launch, because only barriers order its threads.
    pub cells_decide: bool,
    /// Why not: something orders threads in ways that the cells do not follow.
    pub release_capable: bool,
    /// Bytes of a granule of global, and of shared memory.
    pub granules: (u32, u32),
    /// What the cells recorded: the first conflict of every pair of witnesses.
    pub cells: Vec<AuditedRace>,
    /// Records that found no room, and what else the cells could not say.
    pub counters: log::Counters,
    /// Every race that happens-before over all accesses has found.
    pub happens_before: Vec<AuditedRace>,
    /// Every race that happens-before has found in the journal, if the kernel has kept one.
    pub journal: Option<Vec<AuditedRace>>,
    /// What happens-before has received, in the order of the launch.
    pub traced: Vec<TraceEvent>,
}

/// Two accesses of which the later one raced, by their lines in the program's own PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditedRace {
    /// Line of the later access.
    pub line: u32,
    /// Line of the earlier access.
    pub earlier: u32,
    /// Linear thread of the later access in its CTA.
    pub thread: u32,
    /// Linear thread of the earlier access in its CTA, as far as it is known.
    pub earlier_thread: Option<u32>,
    /// The CTA whose shared memory it is; none for global memory.
    pub shared: Option<u64>,
    /// First byte of the granule, or of the engine's word.
    pub address: u64,
    /// The cells cannot say whether it is a race.
    pub possible: bool,
    /// The rule that makes it a race, as far as it is known.
    pub why: log::Why,
}

impl Audit {
    /// Adds what the cells say, before the next launch wipes it.
    pub fn fill(
        &mut self,
        checker: &mut Checker,
        device: &dyn Device,
        pending: &PendingLaunch,
        [watched, journal]: [Option<&HappensBefore>; 2],
    ) {
        self.journal = journal.map(HappensBefore::every_race);
        self.cells_decide = pending.cells_decide();
        self.release_capable = pending.is_release_capable();
        self.granules = checker.granules(pending);
        let sites = checker.lines();
        let line = |site: u32| sites.get(&site).copied().unwrap_or(0);
        let (records, counters) = checker.recorded(device, pending);
        self.counters = counters;
        self.counters.undecided += journal.map_or(0, HappensBefore::undecided);
        self.cells.extend(records.iter().map(|record| {
            let (owner, address) = match checker::is_shared(record) {
                true => {
                    let at = pending.in_shared(u64::from(record.cta), record.address);
                    (Some(at.owner), at.offset)
                }
                false => (None, record.address),
            };
            AuditedRace {
                line: line(record.site),
                earlier: line(record.previous_site),
                thread: record.thread,
                earlier_thread: (record.previous_thread != shadow::layout::UNKNOWN)
                    .then_some(record.previous_thread),
                shared: owner,
                address,
                possible: !pending.is_decided(record),
                why: log::Why::Unordered,
            }
        }));
        if let Some(watched) = watched {
            self.happens_before = watched.every_race();
        }
    }
}
