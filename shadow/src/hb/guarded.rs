//! Conflicts of strong accesses of which one reads under a version ([`super::versions`]).

use alloc::vec::Vec;
use events::Gap;

use super::strong::Unordered;
use super::thread::Shape;
use super::versions::{Guard, Versions};
use super::{Cause, Predicted, Race};

/// Conflicts at a scalar that are kept.
const MOST: usize = 1024;

/// A conflict with what is read under a version.
#[derive(Clone, Debug)]
pub(crate) struct Guarded {
    pub(crate) race: Race,
    /// The later access is the one that reads.
    pub(crate) reads_later: bool,
    /// Nothing orders them, whatever the version was.
    pub(crate) unordered: bool,
    /// Nothing orders them in this run.
    pub(crate) unseen: bool,
    /// The versions that were written after the reader's first look and ahead of the writer's release fence.
    pub(crate) changed: Vec<u64>,
}

/// Those at one scalar.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conflicts(Vec<Guarded>);

impl Conflicts {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps one conflict for each pair of sites and reader: the last of those with the greatest weight.
    pub(crate) fn keep(&mut self, new: Guarded) {
        let reader = |of: &Guarded| [of.race.earlier, of.race.later][usize::from(of.reads_later)];
        let sites = |of: &Guarded| (of.race.earlier.site, of.race.later.site, reader(of));
        let same = self.0.iter().position(|old| sites(old) == sites(&new));
        match same {
            Some(at) if self.0[at].weight() > new.weight() => {}
            Some(at) => self.0[at] = new,
            None if self.0.len() < MOST => self.0.push(new),
            None => {}
        }
    }

    /// What is to be reported of them; those that the version leaves open are counted.
    pub(crate) fn judge(
        self,
        shape: &Shape,
        versions: Option<&Versions>,
        key: u64,
        open: &mut u64,
    ) -> impl Iterator<Item = Unordered> {
        let all = self.0.into_iter();
        all.filter_map(move |of| of.judge(shape, versions, key, open))
    }
}

impl Guarded {
    /// How much speaks for a report: that nothing orders the accesses, in this run or in any, and that no version had
    /// changed.
    fn weight(&self) -> u8 {
        match (self.unordered, self.unseen) {
            (true, true) => 2 + u8::from(self.changed.is_empty()),
            (unordered, _) => u8::from(unordered),
        }
    }

    /// What is to be reported of it.
    fn judge(
        self,
        shape: &Shape,
        versions: Option<&Versions>,
        key: u64,
        open: &mut u64,
    ) -> Option<Unordered> {
        let Race { earlier, later, .. } = self.race;
        let (reader, writer) = match self.reads_later {
            true => (later, earlier),
            false => (earlier, later),
        };
        let guard = versions.map_or(Guard::None, |versions| {
            versions.guard(shape, key, reader, writer)
        });
        // The fences ahead of second looks at changed versions.
        let exits = versions.into_iter().flat_map(|versions| {
            let changed = self.changed.iter();
            changed.filter_map(|&version| versions.exit(key, reader, version))
        });
        let exit = exits.max();
        let cause = match (guard, exit) {
            (Guard::Whole, _) => return None,
            (Guard::Open, _) => {
                *open += 1;
                return None;
            }
            (Guard::Lacks(gap), _) => Some(Cause::Version(gap)),
            (Guard::Apart, _) if !self.unordered => return None,
            (Guard::None, _) if !(self.unordered && self.unseen) => return None,
            (_, None) => None,
            (_, Some(exit)) => {
                let wide = |scope| shape.includes(scope, reader.thread, writer.thread);
                if exit.is_some_and(wide) {
                    return None;
                }
                Some(Cause::Version(Gap::SecondLook))
            }
        };
        Some(Unordered {
            predicted: Predicted {
                race: self.race,
                locks: Default::default(),
            },
            cause,
            flag: None,
            count: 1,
            ordered: false,
        })
    }
}
