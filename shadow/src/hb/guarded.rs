//! Conflicts of strong accesses of which one reads under a version ([`super::versions`]).

use alloc::vec::Vec;

use super::place::Shape;
use super::strong::Unordered;
use super::versions::{Guard, Versions};
use super::{Cause, Predicted, Race};

/// Conflicts at a scalar that are kept.
const MOST: usize = 1024;

/// A conflict with what is read under a version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guarded {
    pub(crate) race: Race,
    /// The later access is the one that reads.
    pub(crate) reads_later: bool,
    /// Nothing orders them, whatever the version was.
    pub(crate) unordered: bool,
    /// Nothing orders them in this run.
    pub(crate) unseen: bool,
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

    /// Keeps a conflict, once per pair of sites and reader; rather one in no order.
    pub(crate) fn keep(&mut self, new: Guarded) {
        let reader = |of: &Guarded| [of.race.earlier, of.race.later][usize::from(of.reads_later)];
        let sites = |of: &Guarded| (of.race.earlier.site, of.race.later.site, reader(of));
        let same = self.0.iter().position(|old| sites(old) == sites(&new));
        match same {
            Some(at) if self.0[at].unordered && self.0[at].unseen => {}
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
        let cause = match guard {
            Guard::Whole => return None,
            Guard::Open => {
                *open += 1;
                return None;
            }
            Guard::Lacks(gap) => Some(Cause::Version(gap)),
            Guard::Apart if self.unordered => None,
            Guard::None if self.unordered && self.unseen => None,
            Guard::Apart | Guard::None => return None,
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
