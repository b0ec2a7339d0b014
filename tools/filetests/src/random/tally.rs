//! What has been counted over many kernels.

use std::fmt;
use std::ops::AddAssign;

macro_rules! tally {
    ($($(#[doc = $text:literal])* $name:ident: $title:literal,)*) => {
        /// Sums over kernels and schedules.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tally { $($(#[doc = $text])* pub $name: u64,)* }

        impl AddAssign for Tally {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }

        impl fmt::Display for Tally {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                writeln!(f, "| what | count |\n|---|---:|")?;
                $(writeln!(f, "| {} | {} |", $title, grouped(self.$name))?;)*
                Ok(())
            }
        }
    };
}

tally! {
    /// Different kernels.
    kernels: "kernels",
    /// Launches judged.
    runs: "runs, each of the program as it was written and of that with checks",
    /// Runs of kernels whose races are known without running.
    known: "runs of kernels whose races are known without running them",
    /// Runs that a second interpreter has confirmed.
    retraced: "runs whose events a second interpreter confirms, one by one",
    /// The events there.
    events: "events",
    /// Runs that it does not understand.
    not_retraced: "runs that it does not understand",
    /// Kernels of which some schedules report something and others nothing.
    depends: "kernels reported under some schedules only (`--orders`)",
    /// Reports of those kernels.
    reports: "reports over all schedules (`--orders`)",
    /// Those that only some schedules make.
    partial: "reports that only some schedules make",
    /// Runs judged by definition.
    defined: "runs whose racy bytes are those by definition",
    /// Runs of them with asynchronous copies or mbarriers.
    defined_asynchronous: "runs of them with asynchronous copies or mbarriers",
    /// Runs judged by definition under the scoped model.
    scoped: "runs under the scoped model, whose strong conflicts are those by definition",
    /// Runs with unordered strong conflicts, by definition.
    strong: "runs of them with unordered strong conflicts",
    /// Runs in which happens-before found a race.
    racy_runs: "runs with a race",
    /// Kernels that one run proves for all schedules.
    proved: "kernels that `verify` proves for all schedules",
    /// Those that it proves for all contents of memory too.
    proved_for_all_data: "those of them that it proves for all data",
    /// Racy granules of shared memory.
    shared: "racy words of shared memory",
    /// Pairs of sites that precise mode reported.
    pairs: "pairs of lines reported by happens-before",
    /// Runs that are left to the cells.
    cells: "**as on a GPU**, by cells: runs",
    /// Racy granules there.
    cells_racy: "racy granules",
    /// Reported ones.
    cells_found: "reported",
    /// Not reported, but the run counts undecided conflicts or evictions.
    cells_counted: "missed, with a count that says so",
    /// Runs of kernels that keep a journal.
    journals: "**as on a GPU**, from a journal: runs",
    /// Racy bytes there.
    journal_racy: "racy bytes",
    /// Runs of kernels that should keep a journal and do not.
    no_journal: "runs without one",
    /// Runs in which it does not record the order of a store and an atomic.
    journal_unsure: "runs with something undecided",
    /// Racy bytes that the journal does not record, but the run counts evictions or undecided conflicts.
    journal_counted: "missed, with a count that says so",
    /// Runs in which the cells are not asked about everything.
    unchecked: "**fast**, runs that are not judged, because of shared memory without checks",
    /// Racy granules in all runs, shared memory too.
    fast_racy: "**fast**, all runs: racy granules of global and shared memory",
    /// Reported as races.
    fast_found: "reported as races",
    /// Reported as possible.
    fast_possible: "reported as possible",
    /// Not reported, with a count.
    fast_counted: "missed, with a count that says so",
    /// Conflicts that the fence rule has taken for ordered.
    fast_ordered: "conflicts taken for ordered",
    /// Not reported at all; none of them an ordinary race.
    fast_missed: "missed silently: races by size, or of read-only data, alone",
    /// Reported as races without being any.
    fast_false: "false alarms",
    /// Reported as possible without being any.
    fast_doubtful: "possible ones that are no races",
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
