//! Races that are known and do not count.
//!
//! The list of those inside NVIDIA's headers and Triton's library is data (`known.toml`), shipped with the tool. Its
//! entries have the shape of the suppressions that users write ([`crate::suppressions`]).

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::model::{Certainty, Kernel, Level, Race, Report};
use crate::names::{base, demangle};
use crate::rules::RuleId;
use crate::source::Sources;
use crate::suppressions::{Entry, List, View};
use crate::words::counted;

const LIST: &str = include_str!("known.toml");

/// What the list that is shipped is called.
pub(crate) const SHIPPED: &str = "shipped";

/// An entry of a list of races that do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuppressedBy {
    /// The list: `shipped` with the tool, or the name of a file.
    pub source: String,
    /// The line of that file.
    pub line: Option<usize>,
    /// Of a shipped entry: the file that both accesses are made in.
    pub file: Option<String>,
    /// Why.
    pub reason: String,
}

/// An entry of a list that the user gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Suppression {
    /// The name of the file.
    pub source: String,
    /// The line of that file.
    pub line: usize,
    /// Which races it is for, in its own words.
    pub what: String,
    /// Why they do not count.
    pub reason: String,
    /// The last day on which it holds.
    pub expires: Option<String>,
    /// That day is over: it suppresses nothing.
    pub expired: bool,
    /// Pairs of accesses that it fits.
    pub pairs: u64,
    /// It is for kernels of other programs: the run has launched none that its key `kernel` fits.
    pub other_kernels: bool,
}

/// Whether the list that is shipped has a race.
pub(crate) fn is_shipped(race: &Race) -> bool {
    let by = race.suppressed_by.as_ref();
    by.is_some_and(|by| by.source == SHIPPED)
}

/// The kernels that a race was seen in, without parameters and template arguments, sorted.
pub(crate) fn kernels(views: &[View]) -> Vec<String> {
    let mangled = views.iter().flat_map(View::kernels);
    let mut names: Vec<String> = mangled
        .map(|name| base(&demangle(name)).into_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Marks races that are known. What only they may order becomes possible; gives what of that could not be decided.
///
/// `views` are the ways in which each was seen.
pub(crate) fn mark(races: &mut [Race], views: &[Vec<View>]) -> Option<String> {
    // A test reads the list, so it makes sense.
    let shipped = List::parse_all(SHIPPED, LIST).map_or_else(|_| Vec::new(), |list| list.entries);
    let mut orders: Vec<(&str, Option<&str>, HashSet<u64>)> = Vec::new();
    for (race, views) in races.iter_mut().zip(views) {
        let holds = |entry: &&Entry| entry.holds_for(race, views);
        let Some(entry) = shipped.iter().find(holds) else {
            continue;
        };
        race.suppressed_by = Some(SuppressedBy {
            source: SHIPPED.to_owned(),
            line: None,
            file: entry.file().map(str::to_owned),
            reason: entry.reason.clone(),
        });
        if let Some(by) = &entry.orders {
            let instead = entry.instead.as_deref();
            orders.push((by, instead, race.launches.iter().copied().collect()));
        }
    }
    let mut undecided = (0, "");
    let unordered = [
        RuleId::IntraWarp,
        RuleId::IntraBlock,
        RuleId::InterBlock,
        RuleId::NarrowScope,
        RuleId::ReleaseAcquire,
    ];
    for race in races.iter_mut().filter(|race| race.suppressed_by.is_none()) {
        let mut theirs = orders
            .iter()
            .filter(|(.., launches)| race.launches.iter().all(|launch| launches.contains(launch)));
        if unordered.contains(&race.rule)
            && let Some((by, instead, _)) = theirs.next()
        {
            race.level = Level::Warning;
            race.certainty = Certainty::Possible;
            race.may_order.insert(0, (*by).to_owned());
            if let Some(instead) = instead {
                race.help = format!(
                    "{instead}, so that the checker can decide; if the pair is still reported then: {}",
                    race.help
                );
            }
            undecided = (undecided.0 + 1, *by);
        }
    }
    let (count, by) = undecided;
    (count > 0).then(|| {
        format!(
            "{} of accesses not decided: {by} may order the threads",
            counted(count, "pair")
        )
    })
}

/// Marks races that the user's lists are for; gives what became of their entries. `kernels` are those that the run knows,
/// `date` is its day (ISO 8601).
pub(crate) fn suppress(
    races: &mut [Race],
    views: &[Vec<View>],
    lists: &[List],
    kernels: &[Kernel],
    date: &str,
) -> Vec<Suppression> {
    let launched = kernels.iter().filter(|kernel| kernel.launches > 0);
    let launched: Vec<&str> = launched.map(|kernel| kernel.name.as_str()).collect();
    let mut all = Vec::new();
    for list in lists {
        for entry in &list.entries {
            let expired = entry.expires.as_deref().is_some_and(|last| last < date);
            let mut fits = 0;
            for (race, views) in races.iter_mut().zip(views) {
                if !entry.holds_for(race, views) {
                    continue;
                }
                fits += 1;
                if !expired && race.suppressed_by.is_none() {
                    race.suppressed_by = Some(SuppressedBy {
                        source: list.source.clone(),
                        line: Some(entry.line),
                        file: None,
                        reason: entry.reason.clone(),
                    });
                }
            }
            all.push(Suppression {
                source: list.source.clone(),
                line: entry.line,
                what: entry.what.clone(),
                reason: entry.reason.clone(),
                expires: entry.expires.clone(),
                expired,
                pairs: fits,
                other_kernels: fits == 0 && !entry.is_for_kernel(&launched),
            });
        }
    }
    all
}

impl Report {
    /// What is wrong with the suppressions that are unused or have expired, for people.
    pub fn idle_suppressions(&self) -> impl Iterator<Item = String> {
        self.suppressions.iter().filter_map(Suppression::warning)
    }
}

impl Suppression {
    /// What is wrong with it after a run, for people; nothing if it has suppressed something, or is for other programs.
    pub fn warning(&self) -> Option<String> {
        let Self {
            source,
            line,
            what,
            expires,
            expired,
            pairs,
            other_kernels,
            ..
        } = self;
        let wrong = match (expired, pairs) {
            (true, pairs) => {
                let last = expires.as_deref().unwrap_or_default();
                let again = match pairs {
                    0 => "no race fits it: remove it".to_owned(),
                    1 => {
                        "1 pair of accesses that it fits counts again: repair it, or set a new date"
                            .to_owned()
                    }
                    pairs => format!(
                        "{} of accesses that it fits count again: repair them, or set a new date",
                        counted(*pairs, "pair")
                    ),
                };
                format!("has expired on {last}; {again}")
            }
            (false, 0) if *other_kernels => return None,
            (false, 0) => "is unused: no race of this run fits it".to_owned(),
            (false, _) => return None,
        };
        Some(format!("{source}:{line}: the suppression `{what}` {wrong}"))
    }
}

/// One line for each shipped reason, however many races it holds for.
pub(crate) fn lines(report: &Report, sources: &Sources) -> Vec<String> {
    let races = || report.races.iter();
    let mut reasons: Vec<&SuppressedBy> = Vec::new();
    for by in races().filter_map(|race| race.suppressed_by.as_ref()) {
        if by.source == SHIPPED && !reasons.contains(&by) {
            reasons.push(by);
        }
    }
    let line = |by: &SuppressedBy| {
        let mut theirs = races().filter(|race| race.suppressed_by.as_ref() == Some(by));
        let pairs = counted(theirs.clone().count() as u64, "pair");
        let place = theirs.next().and_then(|race| {
            let frame = race.accesses[0].shown()?;
            let shown = sources.shown(&frame.file);
            Some(format!(", reached from {shown}:{}", frame.line))
        });
        let inside = by.file.as_ref().map_or(String::new(), |file| {
            format!("inside {file}, not in your code: ")
        });
        format!(
            "info: known: {inside}{} ({pairs} of accesses{}; not counted)",
            by.reason,
            place.unwrap_or_default()
        )
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suppressions::tests::access;

    fn race(launch: u64, rule: RuleId, frames: &[(&str, &str)]) -> (Race, Vec<View>) {
        let accesses = [access(frames), access(frames)];
        let race = Race {
            rule,
            launches: vec![launch],
            accesses: accesses.clone(),
            ..Race::default()
        };
        let view = View {
            accesses,
            ..View::default()
        };
        (race, vec![view])
    }

    #[test]
    fn the_shipped_list_makes_sense() {
        let all = List::parse_all(SHIPPED, LIST).unwrap().entries;
        assert!(all.len() > 1);
        assert!(all.iter().all(|entry| entry.file().is_some()), "{all:?}");
    }

    #[test]
    fn reductions_of_triton_store_one_value_and_nothing_else() {
        let library = "/usr/lib/python3/site-packages/triton/language/standard.py";
        let inside = [(library, "k"), ("/my.py", "k")];
        let own = [("/my.py", "k")];
        let known = |frames: &[(&str, &str)], same_value| {
            let (mut race, views) = race(1, RuleId::IntraWarp, frames);
            race.same_value = same_value;
            let mut races = [race];
            mark(&mut races, &[views]);
            is_shipped(&races[0])
        };
        assert!(known(&inside, true));
        assert!(!known(&inside, false) && !known(&own, true));
        let (race, _) = race(1, RuleId::IntraWarp, &inside);
        let shown = race.accesses[0].shown().map(|frame| &frame.file[..]);
        assert_eq!(shown, Some("/my.py"));
    }

    #[test]
    fn selection_in_place_of_cub_is_known_where_a_later_block_stores_to_what_was_read() {
        let agent = "/usr/local/cuda/include/cccl/cub/agent/agent_select_if.cuh";
        let consumes = "int cub::detail::select::AgentSelectIf<policy, true>::ConsumeTile<true>()";
        let load = "/usr/local/cuda/include/cccl/cub/thread/thread_load.cuh";
        let inside = [(load, "cub::ThreadLoad"), (agent, consumes)];
        let own = [("/my.cu", "Iterator::operator[](int)"), (agent, consumes)];
        let known = |later_block: &[bool], frames: &[(&str, &str)]| {
            let (race, views) = race(1, RuleId::ReleaseAcquire, frames);
            let with = |&later_block: &bool| View {
                later_block,
                ..views[0].clone()
            };
            let mut races = [race];
            mark(&mut races, &[later_block.iter().map(with).collect()]);
            is_shipped(&races[0])
        };
        assert!(known(&[true], &inside));
        assert!(!known(&[false], &inside));
        // One launch of two is enough for it to count.
        assert!(!known(&[true, false], &inside));
        assert!(!known(&[true], &own));
        let other = "/usr/local/cuda/include/cccl/cub/agent/agent_adjacent_difference.cuh";
        let differs = "void cub::detail::adjacent_difference::AgentDifference<p>::consume_tile()";
        assert!(!known(
            &[true],
            &[(load, "cub::ThreadLoad"), (other, differs)]
        ));
    }

    #[test]
    fn what_only_a_known_race_may_order_is_possible_and_said_to_be_undecided() {
        let header = "/usr/include/cuda/std/__atomic/functions/cuda_ptx_derived.h";
        let inside = [(
            header,
            "void cuda::std::__cuda_atomic_store<unsigned char, x>()",
        )];
        let own = [("/my.cu", "k()")];
        let all = [
            race(1, RuleId::MixedSize, &inside),
            race(1, RuleId::IntraBlock, &own),
            race(2, RuleId::IntraBlock, &own),
        ];
        let (mut races, views): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let said = mark(&mut races, &views).unwrap_or_default();
        assert!(said.starts_with("1 pair of accesses not decided"), "{said}");
        assert!(races[0].suppressed_by.is_some());
        assert_eq!(races[1].level, Level::Warning);
        assert_eq!(races[2].level, Level::Error);
        let help =
            "order the threads by atomics of 32 bits instead of 8, so that the checker can decide";
        assert!(races[1].help.starts_with(help), "{}", races[1].help);
        assert_eq!(mark(&mut races[2..], &views[2..]), None);
    }

    #[test]
    fn entries_of_the_user_suppress_until_they_expire() {
        let list = List::parse(
            "my.toml",
            "[[suppress]]\nrule = \"CR002\"\nreason = \"x\"\nexpires = 2027-03-01\n\
             [[suppress]]\nrule = \"CR001\"\nreason = \"y\"\n",
        );
        let lists = [list.unwrap()];
        let warned = |date: &str| {
            let own = [("/my.cu", "k()")];
            let (race, views) = race(1, RuleId::IntraBlock, &own);
            let mut races = [race];
            let used = suppress(&mut races, &[views], &lists, &[], date);
            let warnings: Vec<_> = used.iter().filter_map(Suppression::warning).collect();
            let by = races[0].suppressed_by.as_ref();
            let by = by.map(|by| format!("{}:{:?} {}", by.source, by.line, by.reason));
            (by, warnings.join("\n"))
        };
        let unused =
            "my.toml:5: the suppression `rule = \"CR001\"` is unused: no race of this run fits it";
        let by = Some("my.toml:Some(1) x".to_owned());
        assert_eq!(warned("2027-03-01"), (by, unused.to_owned()));
        let (by, warnings) = warned("2027-03-02");
        assert_eq!(by, None);
        let expired = "my.toml:1: the suppression `rule = \"CR002\"` has expired on 2027-03-01; \
             1 pair of accesses that it fits counts again: repair it, or set a new date";
        assert_eq!(warnings, format!("{expired}\n{unused}"));
    }

    #[test]
    fn an_entry_for_kernels_of_other_programs_is_not_unused() {
        let list = List::parse(
            "my.toml",
            "[[suppress]]\nkernel = \"k\"\nid = \"CR-1\"\nreason = \"x\"\n\
             [[suppress]]\nid = \"CR-1\"\nreason = \"y\"\n",
        );
        let lists = [list.unwrap()];
        let warned = |kernel: &str, launches: u64| {
            let kernel = Kernel {
                name: kernel.to_owned(),
                launches,
                ..Kernel::default()
            };
            let used = suppress(&mut [], &[], &lists, &[kernel], "2027-03-01");
            let warned = used.iter().filter(|of| of.warning().is_some());
            warned.map(|of| of.line).collect::<Vec<_>>()
        };
        assert_eq!(warned("void a::k<int>(int*)", 1), [1, 5]);
        assert_eq!(warned("void a::k<int>(int*)", 0), [5]);
        assert_eq!(warned("kk(int*)", 1), [5]);
    }
}
