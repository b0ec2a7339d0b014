//! Critical sections: what a thread does between taking a lock and giving it back.

use std::collections::{BTreeMap, BTreeSet};

use shadow::hb::{FenceKind, Location, MemoryOrder, Scope};

use super::order::Run;
use super::{Launch, Thread, What, byte, writes};

/// A critical section.
#[derive(Debug)]
struct Section {
    word: Location,
    /// The nodes that take the lock and give it back.
    nodes: (usize, usize),
    /// The scope of what took it.
    scope: Scope,
    /// What acquires, and its scope.
    entry: Vec<(usize, Scope)>,
    /// What releases, and its scope.
    exit: Vec<(usize, Scope)>,
}

/// The critical sections of a run.
#[derive(Default)]
pub(super) struct Locks {
    words: BTreeSet<Location>,
    sections: BTreeMap<Thread, Vec<Section>>,
    /// Attempts to take a lock that nothing gives back: whether they have succeeded only values say.
    unfinished: BTreeMap<Thread, usize>,
    threads: Vec<Thread>,
    /// Something else than taking it and giving it back has written to the word of a lock.
    pub(super) doubtful: bool,
}

impl Locks {
    /// Of a run.
    pub(super) fn of(launch: &Launch<'_>, run: &Run) -> Self {
        let mut locks = Self {
            threads: run.nodes.iter().map(|node| node.thread).collect(),
            ..Self::default()
        };
        let mut open: BTreeMap<(Thread, Location), Section> = BTreeMap::new();
        let of_lock = |line| launch.takes.contains(&line) || launch.gives.contains(&line);
        for (number, node) in run.nodes.iter().enumerate() {
            let mine = (node.thread, Location::Global(0))
                ..=(
                    node.thread,
                    Location::Shared {
                        cta: u64::MAX,
                        offset: u32::MAX,
                    },
                );
            match node.what {
                What::Access(access, at) if of_lock(node.line) => {
                    locks.words.insert(at);
                    let Some(scope) = access.order.scope() else {
                        locks.doubtful = true;
                        continue;
                    };
                    let acquires = matches!(
                        access.order,
                        MemoryOrder::Acquire(_) | MemoryOrder::AcqRel(_)
                    );
                    let releases = matches!(
                        access.order,
                        MemoryOrder::Release(_) | MemoryOrder::AcqRel(_)
                    );
                    if launch.takes.contains(&node.line) {
                        // One that has failed is followed by another, or by nothing under the lock.
                        let section = Section {
                            word: at,
                            nodes: (number, number),
                            scope,
                            entry: acquires.then_some((number, scope)).into_iter().collect(),
                            exit: Vec::new(),
                        };
                        open.insert((node.thread, at), section);
                    } else if let Some(mut section) = open.remove(&(node.thread, at)) {
                        section.exit.extend(releases.then_some((number, scope)));
                        section.nodes.1 = number;
                        locks.sections.entry(node.thread).or_default().push(section);
                    }
                }
                What::Fence(kind, scope) => {
                    for (_, section) in open.range_mut(mine) {
                        if kind != FenceKind::Release {
                            section.entry.push((number, scope));
                        }
                        if kind != FenceKind::Acquire {
                            section.exit.push((number, scope));
                        }
                    }
                }
                What::Access(..) | What::Point => {}
            }
        }
        for ((thread, _), section) in open {
            let first = locks.unfinished.entry(thread).or_insert(usize::MAX);
            *first = section.nodes.0.min(*first);
        }
        locks.doubtful |= run.nodes.iter().any(|node| match node.what {
            What::Access(access, at) if writes(access.kind) && !of_lock(node.line) => {
                let bytes = (0..access.bytes).map(|behind| byte(at, behind));
                bytes
                    .into_iter()
                    .any(|at| locks.words.iter().any(|&word| overlaps(word, at)))
            }
            _ => false,
        });
        locks
    }

    /// Whether a place is the word of a lock.
    pub(super) fn is_lock(&self, at: Location) -> bool {
        self.words.contains(&at)
    }

    /// Whether two accesses are under a lock that both critical sections have fences for; nothing if they are
    /// under no common lock.
    pub(super) fn fenced(&self, launch: &Launch<'_>, a: usize, b: usize) -> Option<bool> {
        let (mine, theirs) = (self.threads[a], self.threads[b]);
        let wide = |scope: Scope| launch.includes(scope, mine, theirs);
        let whole = |section: &Section, node: usize| {
            let entry = section.entry.iter();
            wide(section.scope)
                && entry.clone().any(|&(at, scope)| at < node && wide(scope))
                && section
                    .exit
                    .iter()
                    .any(|&(at, scope)| node < at && wide(scope))
        };
        let mut common = None;
        for section in self.around(a) {
            let other = self.around(b).find(|other| other.word == section.word);
            if let Some(other) = other {
                let fenced = whole(section, a) && whole(other, b);
                common = Some(common.unwrap_or(false) || fenced);
            }
        }
        common
    }

    /// Whether an access may be under a lock that nothing gives back.
    pub(super) fn is_doubtful(&self, node: usize) -> bool {
        let first = self.unfinished.get(&self.threads[node]);
        first.is_some_and(|&first| first < node)
    }

    /// The critical sections that an access is part of.
    fn around(&self, node: usize) -> impl Iterator<Item = &Section> {
        let all = self.sections.get(&self.threads[node]).into_iter().flatten();
        all.filter(move |section| section.nodes.0 < node && node < section.nodes.1)
    }
}

/// Whether a byte belongs to a word of 4 bytes.
fn overlaps(word: Location, at: Location) -> bool {
    (0..4).any(|behind| byte(word, behind) == at)
}
