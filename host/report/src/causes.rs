//! Causes: what one barrier, one atomic or one fence repairs is one entry of the report, which lists the other pairs of
//! accesses.

use std::collections::BTreeSet;

use crate::entries::order;
use crate::log::{self, Point};
use crate::model::{Access, Misused, Race, RaceKind, Related};
use crate::rules::RuleId;
use crate::{blocks, known};

/// What a help repairs. Of two entries one of which has all places of the other, that one repairs both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// What is missing.
    pub(crate) what: String,
    /// Where, in terms of the module or of the source.
    pub(crate) places: BTreeSet<String>,
}

/// A race that is to be an entry of the report, or a part of one.
pub(crate) struct Entry {
    pub(crate) race: Race,
    /// What its help repairs, if that is known.
    pub(crate) cause: Option<Cause>,
}

impl Cause {
    fn repairs(&self, other: &Self) -> bool {
        self.what == other.what && self.places.is_superset(&other.places)
    }
}

/// Adds the places that another witness of an entry needs a barrier or a wait at. True if there are new ones.
pub(crate) fn add_places(to: &mut log::Race, from: &log::Race) -> bool {
    let (Some(to), Some(from)) = (&mut to.repair, &from.repair) else {
        return false;
    };
    if to.of_warps != from.of_warps {
        return false;
    }
    let known: BTreeSet<u32> = to.points.iter().map(|point| point.place).collect();
    let new = |point: &&Point| !known.contains(&point.place);
    let before = to.points.len();
    to.points.extend(from.points.iter().filter(new).cloned());
    let waits: BTreeSet<u32> = to.waits.iter().copied().collect();
    let unknown = from.waits.iter().filter(|line| !waits.contains(line));
    to.waits.extend(unknown);
    to.points.len() > before || to.waits.len() > waits.len()
}

/// What is ordered by a flag or a lock of too narrow a scope is not seen to be: where a kernel has such a scope, the help of
/// entries that nothing orders says to repair that first.
pub(crate) fn behind_scopes(entries: &mut [Entry]) {
    let narrow: BTreeSet<String> = entries
        .iter()
        .map(|entry| &entry.race)
        .filter(|race| race.rule == RuleId::NarrowScope && race.counts())
        .map(|race| race.kernel.mangled.clone())
        .collect();
    for Entry { race, .. } in entries {
        let behind = matches!(race.rule, RuleId::InterBlock | RuleId::Predictive);
        if behind && narrow.contains(&race.kernel.mangled) {
            race.help = format!(
                "first repair the scope that CR005 names, which may order these accesses too; otherwise {}",
                race.help
            );
        }
    }
}

/// Whether what orders the sides of a race ends a misuse too: that of an mbarrier whose initialisation races with the use,
/// or an access to memory of a block that may not have started, if it races with what comes ahead of it in the code.
fn follows(misuse: &Race, race: &Race) -> bool {
    let place = |access: &Access| (access.ptx.module.clone(), access.ptx.line);
    let [_, used] = &misuse.accesses;
    let [first, second] = &race.accesses;
    let is_used = |access: &Access| place(access) == place(used);
    let ends = match misuse.kind {
        RaceKind::Misuse(Misused::NotABarrier | Misused::ExcessArrival) => {
            race.accesses.iter().any(blocks::is_initialisation) && race.accesses.iter().any(is_used)
        }
        RaceKind::Misuse(Misused::UnstartedBlock) => {
            let ahead = |access: &Access| {
                access.ptx.module == used.ptx.module && access.ptx.line < used.ptx.line
            };
            let behind = ahead(first) && is_used(second) || ahead(second) && is_used(first);
            first.block != second.block && behind
        }
        _ => false,
    };
    ends && !matches!(race.kind, RaceKind::Misuse(_)) && race.level <= misuse.level
}

/// Joins entries of one cause, in the order they come in. What is known and does not count is no part of what does, nor
/// the other way round.
pub(crate) fn join(entries: Vec<Entry>) -> Vec<Race> {
    let places = |n: usize| {
        let cause = &entries[n].cause;
        cause.as_ref().map_or(0, |cause| cause.places.len())
    };
    let mut by_places: Vec<usize> = (0..entries.len()).collect();
    by_places.sort_by_key(|&n| std::cmp::Reverse(places(n)));
    // The entry that each belongs to.
    let mut heads: Vec<usize> = (0..entries.len()).collect();
    let mut known: Vec<usize> = Vec::new();
    let alike = |race: &Race, other: &Race| {
        let standing = |race: &Race| (race.suppressed_by.is_none(), race.baseline);
        let apart = known::is_shipped(race) || known::is_shipped(other);
        !apart && standing(other) == standing(race)
    };
    let roots: Vec<Option<usize>> = entries
        .iter()
        .map(|Entry { race, .. }| {
            let mut others = entries.iter().map(|entry| &entry.race);
            others.position(|other| follows(race, other) && alike(race, other))
        })
        .collect();
    by_places.retain(|&n| roots[n].is_none());
    for n in by_places {
        let Entry { race, cause } = &entries[n];
        let head = known.iter().copied().find(|&head| {
            let Entry {
                race: other,
                cause: repair,
            } = &entries[head];
            let same = repair.as_ref().zip(cause.as_ref());
            let same = same.filter(|_| alike(race, other));
            // A warning does not hide an error, nor what comes later what comes first.
            let rank = |race: &Race| (race.level, order(race.rule));
            same.is_some_and(|(repair, cause)| repair.repairs(cause)) && rank(other) <= rank(race)
        });
        match head {
            Some(head) => heads[n] = head,
            None => known.push(n),
        }
    }
    for (n, root) in roots.into_iter().enumerate() {
        if let Some(root) = root {
            heads[n] = heads[root];
        }
    }
    // Entries come where their first pair was.
    let mut groups: Vec<Group> = Vec::new();
    for (n, (Entry { race, .. }, head)) in entries.into_iter().zip(heads).enumerate() {
        let known = groups.iter().position(|group| group.head == head);
        let at = known.unwrap_or_else(|| {
            groups.push(Group {
                head,
                race: None,
                related: Vec::new(),
            });
            groups.len() - 1
        });
        match n == head {
            true => groups[at].race = Some(race),
            false => groups[at].related.push(related(race)),
        }
    }
    let joined = groups.into_iter().filter_map(|group| {
        let related = group.related;
        group.race.map(|race| Race { related, ..race })
    });
    joined.collect()
}

/// An entry of the report with the races that are repaired with it.
struct Group {
    /// The number of its race among all.
    head: usize,
    /// That race, once it has come.
    race: Option<Race>,
    related: Vec<Related>,
}

fn related(race: Race) -> Related {
    Related {
        id: race.id,
        fingerprint: race.fingerprint,
        rule: race.rule,
        level: race.level,
        same_value: race.same_value,
        kind: race.kind,
        count: race.count,
        kernels: race.kernels,
        accesses: race.accesses,
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Level, SuppressedBy};
    use super::*;

    fn entry(id: &str, level: Level, places: &[&str]) -> Entry {
        let race = Race {
            id: id.into(),
            rule: RuleId::IntraBlock,
            level,
            ..Race::default()
        };
        let cause = Cause {
            what: "__syncthreads()".into(),
            places: places.iter().map(|&place| place.to_owned()).collect(),
        };
        let cause = (!places.is_empty()).then_some(cause);
        Entry { race, cause }
    }

    fn without_cause(race: Race) -> Entry {
        Entry { race, cause: None }
    }

    #[test]
    fn what_one_repair_covers_is_one_entry() {
        let entries = vec![
            entry("a", Level::Error, &["1"]),
            entry("b", Level::Error, &["1", "2"]),
            entry("c", Level::Error, &["3"]),
            entry("d", Level::Error, &["2"]),
            entry("e", Level::Error, &[]),
            entry("f", Level::Warning, &["4", "3"]),
            entry("g", Level::Warning, &["3"]),
        ];
        let joined = join(entries).into_iter().map(|race| {
            let related: Vec<String> = race.related.into_iter().map(|race| race.id).collect();
            (race.id, related.concat())
        });
        let joined: Vec<_> = joined.collect();
        let expected = [("b", "ad"), ("c", ""), ("e", ""), ("f", "g")];
        assert_eq!(
            joined,
            expected.map(|(id, all)| (id.to_owned(), all.to_owned()))
        );
    }

    #[test]
    fn what_orders_the_initialisation_repairs_the_misuse() {
        let at = |line, text: &str| {
            let mut access = Access::default();
            access.ptx.line = line;
            access.ptx.text = text.to_owned();
            access
        };
        let misuse = |line, misused| Race {
            rule: RuleId::Synchronisation,
            kind: RaceKind::Misuse(misused),
            accesses: [at(line, "st.async"), at(line, "st.async")],
            ..Race::default()
        };
        let of = |lines: [u32; 2], first: &str| Race {
            rule: RuleId::Asynchronous,
            accesses: [at(lines[0], first), at(lines[1], "st.async")],
            ..Race::default()
        };
        let init = "mbarrier.init.shared.b64 [gate], 1;";
        let between = |blocks: [u32; 2], lines| {
            let mut race = of(lines, "st.shared.u32");
            let sides = race.accesses.iter_mut().zip(blocks);
            sides.for_each(|(side, block)| side.block = Some([block, 0, 0]));
            race
        };
        let unstarted = || misuse(9, Misused::UnstartedBlock);
        for (misuse, race, joined) in [
            (misuse(9, Misused::NotABarrier), of([2, 9], init), true),
            (misuse(9, Misused::ExcessArrival), of([2, 9], init), true),
            // Another use, another misuse, or no initialisation.
            (misuse(8, Misused::NotABarrier), of([2, 9], init), false),
            (misuse(9, Misused::SkippedBarrier), of([2, 9], init), false),
            (misuse(9, Misused::NotABarrier), of([2, 9], "st"), false),
            (unstarted(), between([0, 1], [2, 9]), true),
            (unstarted(), between([0, 1], [9, 2]), true),
            // Threads of one block, what comes behind in the code, or two uses.
            (unstarted(), between([1, 1], [2, 9]), false),
            (unstarted(), between([0, 1], [9, 12]), false),
            (unstarted(), between([0, 1], [9, 9]), false),
        ] {
            let all = join([misuse, race].map(without_cause).into());
            assert_eq!(all.len() == 1, joined, "{all:?}");
            if joined {
                assert_eq!(all[0].rule, RuleId::Asynchronous);
                assert_eq!(all[0].related[0].rule, RuleId::Synchronisation);
            }
        }
    }

    #[test]
    fn what_is_known_is_not_joined_with_what_counts() {
        let known = |id, places: &[&str]| {
            let mut known = entry(id, Level::Error, places);
            known.race.suppressed_by = Some(SuppressedBy {
                source: known::SHIPPED.to_owned(),
                ..SuppressedBy::default()
            });
            known
        };
        let entries = vec![
            known("a", &["1", "2", "3"]),
            entry("b", Level::Error, &["1", "2"]),
            known("c", &["2"]),
            entry("d", Level::Error, &["1"]),
        ];
        let joined = join(entries).into_iter().map(|race| {
            let related: Vec<String> = race.related.into_iter().map(|race| race.id).collect();
            (race.id, related.concat(), race.suppressed_by.is_some())
        });
        let joined: Vec<_> = joined.collect();
        let expected = [("a", "", true), ("b", "d", false), ("c", "", true)];
        assert_eq!(
            joined,
            expected.map(|(id, all, known)| (id.to_owned(), all.to_owned(), known))
        );
    }

    #[test]
    fn a_known_scope_is_not_what_to_repair_first() {
        let race = |rule: RuleId, known: bool| Race {
            rule,
            help: "order them".into(),
            suppressed_by: known.then(SuppressedBy::default),
            ..Race::default()
        };
        for (known, first) in [(true, false), (false, true)] {
            let mut entries = [
                race(RuleId::NarrowScope, known),
                race(RuleId::InterBlock, false),
            ]
            .map(without_cause);
            behind_scopes(&mut entries);
            assert_eq!(entries[1].race.help.starts_with("first repair"), first);
        }
    }
}
