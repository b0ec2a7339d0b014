//! Baselines: the races that a program is known to have, so that a run fails for new ones only.

use serde::{Deserialize, Serialize};

use crate::model::{Level, Pair, Race, Report, Standing};
use crate::names::base;
use crate::rules::RuleId;

/// The version of the file; another one is not read.
const VERSION: u32 = 1;

/// The races that are known, by their fingerprints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    races: Vec<Known>,
}

/// A race that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// As reports have it.
    pub fingerprint: String,
    /// As reports have it; for people.
    pub id: String,
    /// As reports have it; for people.
    pub rule: RuleId,
    /// A race that is worse than this is new.
    pub level: Level,
    /// The kernels that had it, as reports have them; of another kernel it is new. None in files of older versions,
    /// which then hold for all kernels.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// Where it is; for people.
    pub what: String,
}

impl Default for Baseline {
    fn default() -> Self {
        Self {
            version: VERSION,
            races: Vec::new(),
        }
    }
}

impl Baseline {
    /// Reads a file.
    ///
    /// # Errors
    /// When the text is no baseline, or one of another version.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let baseline: Self = serde_json::from_str(text)?;
        match baseline.version {
            VERSION => Ok(baseline),
            other => Err(serde::de::Error::custom(format!(
                "a baseline of version {other}, and {VERSION} is read"
            ))),
        }
    }

    /// The file, ending in a newline.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists always serialise.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The races, by their fingerprints.
    pub fn races(&self) -> &[Known] {
        &self.races
    }

    /// Adds the races of a report that no suppression hides; how many are new, or new in a kernel.
    pub fn add(&mut self, report: &Report) -> usize {
        let mut added = 0;
        let races = report.races.iter();
        let races = races.filter(|race| race.suppressed_by.is_none());
        for pair in races.flat_map(Race::pairs) {
            let mut known = self.races.iter();
            let at = known.position(|known| known.fingerprint == pair.fingerprint);
            if let Some(known) = at.map(|at| &mut self.races[at]) {
                known.level = known.level.min(pair.level);
                let new = unknown(pair.kernels, &known.kernels);
                added += usize::from(!new.is_empty());
                known.kernels.extend(new);
                known.kernels.sort_unstable();
            } else {
                added += 1;
                self.races.push(Known {
                    fingerprint: pair.fingerprint.to_owned(),
                    id: pair.id.to_owned(),
                    rule: pair.rule,
                    level: pair.level,
                    kernels: pair.kernels.to_vec(),
                    what: pair.place(),
                });
            }
        }
        // A file that is under version control changes only where its races do.
        self.races.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
        added
    }

    /// Removes the races that a report does not have; those. Races of kernels of which the report has no checked launch
    /// stay, unless `unchecked` are removed as well.
    pub fn prune(&mut self, report: &Report, unchecked: bool) -> Vec<Known> {
        let stays = |known: &Known| is_seen(known, report) || !unchecked && !ran(known, report);
        let races = std::mem::take(&mut self.races);
        let (kept, gone) = races.into_iter().partition(stays);
        self.races = kept;
        gone
    }

    /// The races that a report does not have and says nothing about: it has no checked launch of their kernels.
    pub fn unchecked(&self, report: &Report) -> usize {
        let races = self.races.iter();
        let races = races.filter(|known| !is_seen(known, report) && !ran(known, report));
        races.count()
    }

    /// Says of each race whether it is known. A warning that has become an error is new, and so is a race of a function
    /// in a kernel that did not have it.
    pub(crate) fn mark(&self, races: &mut [Race]) {
        for race in races {
            let mut known = self.races.iter();
            let known = known
                .find(|known| known.fingerprint == race.fingerprint && known.level <= race.level);
            let new = known.map(|known| unknown(&race.kernels, &known.kernels));
            race.baseline = Some(match new {
                Some(new) if new.is_empty() => Standing::Known,
                Some(new) => {
                    let new = new.join(", ");
                    race.message +=
                        &format!("; new in {new}: the baseline has it in other kernels");
                    Standing::New
                }
                None => Standing::New,
            });
        }
    }
}

fn is_seen(known: &Known, report: &Report) -> bool {
    let mut pairs = report.races.iter().flat_map(Race::pairs);
    pairs.any(|pair| pair.fingerprint == known.fingerprint)
}

/// Whether a report has a checked launch of each kernel of a race.
fn ran(known: &Known, report: &Report) -> bool {
    let kernels = report.coverage.kernels.iter();
    let checked = kernels.filter(|kernel| kernel.launches > kernel.skipped);
    let checked: Vec<_> = checked.map(|kernel| base(&kernel.name)).collect();
    let mut kernels = known.kernels.iter();
    kernels.all(|kernel| checked.iter().any(|name| name == kernel))
}

/// The kernels that are not among those that are known; none where nobody knows which had a race.
fn unknown(kernels: &[String], known: &[String]) -> Vec<String> {
    let new = kernels.iter().filter(|_| !known.is_empty());
    new.filter(|kernel| !known.contains(kernel))
        .cloned()
        .collect()
}

/// What is different between two reports, in races as reports count them: pairs of accesses of one cause are one race.
/// As with a baseline, pairs of one cause that are new and such that are known are two.
#[derive(Debug)]
pub struct Difference<'a> {
    /// Races that count in the second one, and that the first one does not have, or has as warnings where they are errors,
    /// or in other kernels only.
    pub new: Vec<Vec<Pair<'a>>>,
    /// Races that count in the first one, and that the second one does not have.
    pub gone: Vec<Vec<Pair<'a>>>,
    /// Races of both that count in the second one.
    pub same: Vec<Vec<Pair<'a>>>,
    /// How many the first and the second one have that do not count, as they are suppressed or in a baseline.
    pub left_out: [usize; 2],
}

impl<'a> Difference<'a> {
    /// Compares two reports.
    pub fn of(old: &'a Report, new: &'a Report) -> Self {
        let pairs = |report: &'a Report| report.races.iter().flat_map(Race::pairs);
        let known = |pair: &Pair<'_>| {
            pairs(old).any(|of| {
                let same = of.fingerprint == pair.fingerprint && of.level <= pair.level;
                same && unknown(pair.kernels, of.kernels).is_empty()
            })
        };
        let lost = |pair: &Pair<'_>| pairs(new).all(|of| of.fingerprint != pair.fingerprint);
        Self {
            new: races(new, |pair| !known(pair)),
            gone: races(old, lost),
            same: races(new, known),
            left_out: [old, new].map(|report| report.races.len() - report.counted().count()),
        }
    }
}

/// The races of a report that count, each with those of its pairs that are wanted, if there are any.
fn races<'a>(report: &'a Report, wanted: impl Fn(&Pair<'a>) -> bool) -> Vec<Vec<Pair<'a>>> {
    let races = report.counted();
    let races = races.map(|race| race.pairs().filter(&wanted).collect());
    races.filter(|pairs: &Vec<_>| !pairs.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Related, SuppressedBy};

    fn race(fingerprint: &str, level: Level) -> Race {
        Race {
            fingerprint: fingerprint.to_owned(),
            level,
            ..Race::default()
        }
    }

    fn report(races: &[(&str, Level)]) -> Report {
        let races = races
            .iter()
            .map(|&(fingerprint, level)| race(fingerprint, level));
        Report {
            races: races.collect(),
            ..Report::default()
        }
    }

    fn names(baseline: &Baseline) -> String {
        let names = baseline
            .races
            .iter()
            .map(|known| known.fingerprint.as_str());
        names.collect()
    }

    #[test]
    fn races_are_added_and_pruned_with_all_pairs_of_their_cause() {
        let mut seen = report(&[
            ("c", Level::Error),
            ("a", Level::Error),
            ("s", Level::Error),
        ]);
        seen.races[0].related.push(Related {
            fingerprint: "b".to_owned(),
            ..Related::default()
        });
        seen.races[2].suppressed_by = Some(SuppressedBy::default());
        let mut baseline = Baseline::default();
        assert_eq!(baseline.add(&seen), 3);
        assert_eq!(names(&baseline), "abc");
        assert_eq!(baseline.add(&seen), 0);
        let gone = baseline.prune(&report(&[("c", Level::Error)]), false);
        assert_eq!((names(&baseline).as_str(), gone.len()), ("c", 2));
        assert_eq!(Baseline::from_json(&baseline.to_json()).unwrap(), baseline);
        let newer = baseline
            .to_json()
            .replace("\"version\": 1", "\"version\": 2");
        let error = Baseline::from_json(&newer).unwrap_err().to_string();
        assert!(
            error.contains("a baseline of version 2, and 1 is read"),
            "{error}"
        );
    }

    #[test]
    fn a_race_stays_until_each_of_its_kernels_has_been_checked() {
        let mut old = report(&[("a", Level::Error)]);
        old.races[0].kernels = vec!["k".to_owned(), "m".to_owned()];
        let mut baseline = Baseline::default();
        baseline.add(&old);
        let mut clean = report(&[]);
        let kernel = |name: &str, skipped| crate::model::Kernel {
            name: name.to_owned(),
            launches: 2,
            skipped,
            ..Default::default()
        };
        clean.coverage.kernels = vec![kernel("k<int>(int*)", 0), kernel("m(int*)", 2)];
        assert_eq!(baseline.unchecked(&clean), 1);
        assert!(baseline.prune(&clean, false).is_empty());
        assert_eq!(baseline.clone().prune(&clean, true).len(), 1);
        clean.coverage.kernels[1].skipped = 1;
        assert_eq!(baseline.unchecked(&clean), 0);
        assert_eq!(baseline.prune(&clean, false).len(), 1);
    }

    #[test]
    fn a_warning_that_becomes_an_error_is_new() {
        for (was, is, standing) in [
            (Level::Error, Level::Error, Standing::Known),
            (Level::Error, Level::Warning, Standing::Known),
            (Level::Warning, Level::Warning, Standing::Known),
            (Level::Warning, Level::Error, Standing::New),
        ] {
            let mut baseline = Baseline::default();
            baseline.add(&report(&[("a", was)]));
            let mut races = [race("a", is), race("b", is)];
            baseline.mark(&mut races);
            assert_eq!(races[0].baseline, Some(standing), "{was:?} {is:?}");
            assert_eq!(races[1].baseline, Some(Standing::New));
            assert_eq!(races[0].counts(), standing == Standing::New);
            let (old, new) = (report(&[("a", was)]), report(&[("a", is)]));
            let difference = Difference::of(&old, &new);
            assert_eq!(difference.new.is_empty(), standing == Standing::Known);
            assert!(difference.gone.is_empty());
            // Once it is added as an error, it is known.
            baseline.add(&report(&[("a", is)]));
            baseline.mark(&mut races);
            assert_eq!(races[0].baseline, Some(Standing::Known));
        }
    }

    #[test]
    fn a_race_of_a_helper_is_new_in_another_kernel() {
        let of = |kernels: &[&str]| {
            let mut report = report(&[("a", Level::Error)]);
            report.races[0].kernels = kernels.iter().map(|name| (*name).to_owned()).collect();
            report
        };
        let (old, mut new) = (of(&["k"]), of(&["k", "m"]));
        let mut baseline = Baseline::default();
        baseline.add(&old);
        baseline.mark(&mut new.races);
        assert_eq!(new.races[0].baseline, Some(Standing::New));
        assert!(new.races[0].message.contains("new in m"), "{:?}", new.races);
        assert_eq!(Difference::of(&old, &new).new.len(), 1);
        assert_eq!(baseline.add(&new), 1);
        assert_eq!(baseline.add(&new), 0);
        for kernels in [&["k"][..], &["m"], &["k", "m"]] {
            let mut again = of(kernels);
            baseline.mark(&mut again.races);
            assert_eq!(
                again.races[0].baseline,
                Some(Standing::Known),
                "{kernels:?}"
            );
        }
        // A file, or a report, that names no kernels holds for all.
        baseline.races[0].kernels.clear();
        baseline.mark(&mut new.races);
        assert_eq!(new.races[0].baseline, Some(Standing::Known));
        assert!(Difference::of(&of(&[]), &new).new.is_empty());
    }

    #[test]
    fn a_race_that_is_suppressed_later_is_neither_new_nor_gone() {
        let old = report(&[("a", Level::Error), ("b", Level::Error)]);
        let mut new = report(&[("a", Level::Error), ("c", Level::Error)]);
        new.races[0].suppressed_by = Some(SuppressedBy::default());
        let Difference {
            new,
            gone,
            same,
            left_out,
        } = Difference::of(&old, &new);
        assert_eq!(left_out, [0, 1]);
        assert_eq!(
            [names_of(&new), names_of(&gone), names_of(&same)],
            ["c", "b", ""]
        );
    }

    #[test]
    fn pairs_of_one_cause_are_one_race() {
        let with = |related: &[&str]| {
            let mut report = report(&[("a", Level::Error), ("x", Level::Error)]);
            let related = related.iter().map(|fingerprint| Related {
                fingerprint: (*fingerprint).to_owned(),
                ..Related::default()
            });
            report.races[0].related = related.collect();
            report
        };
        let (old, new) = (with(&["b", "c", "d"]), with(&["c", "e", "f"]));
        let Difference {
            new, gone, same, ..
        } = Difference::of(&old, &new);
        assert_eq!(
            [names_of(&new), names_of(&gone), names_of(&same)],
            ["ef", "bd", "ac x"]
        );
    }

    /// The fingerprints of races, with a space between two races.
    fn names_of(races: &[Vec<Pair<'_>>]) -> String {
        let names = |pairs: &Vec<Pair<'_>>| pairs.iter().map(|of| of.fingerprint).collect();
        races.iter().map(names).collect::<Vec<String>>().join(" ")
    }
}
