//! Locks: what is wrong with one that both sides held, and what to say of sides that held none or
//! different ones.

use events::Scope;

use crate::build;
use crate::log::{self, Level};
use crate::model::{Access, HeldLock, Op};
use crate::rules::RuleId;
use crate::source::Sources;
use crate::{advice, remedy, words};

/// What keeps a lock from ordering those who held it.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) rule: RuleId,
    pub(crate) what: String,
    pub(crate) help: String,
    /// Where the lock is taken by an atomic of too narrow a scope, if that is it.
    pub(crate) narrow: Option<String>,
}

/// A lock in the report's terms. `place` says where a site is, and `stores` whether it is a plain store.
pub(crate) fn held(
    held: &log::Lock,
    place: impl Fn(u32) -> String,
    stores: impl Fn(u32) -> bool,
) -> HeldLock {
    HeldLock {
        space: held.space,
        address: build::address(held.address, held.allocation.as_ref()),
        scope: held.scope,
        taken: place(held.taken),
        shared: held.shared,
        entry: held.entry,
        released: held.released.map(place),
        plain: held.released.is_some_and(stores),
        exit: held.exit,
    }
}

/// A lock that a thread of the race has released by a plain store.
fn plainly_released(accesses: &[Access; 2]) -> Option<Fault> {
    let mut held = accesses.iter().flat_map(|access| &access.locks);
    let held = held.find(|held| held.plain)?;
    let released = held.released.as_ref()?;
    Some(Fault {
        rule: RuleId::ReleaseAcquire,
        what: format!(
            "the lock taken at {} is released by a plain write at {released}",
            held.taken
        ),
        help: format!(
            "release the lock by an atomic in place of the plain write at {released}: `__threadfence()` and then `atomicExch(&lock, 0)`, or a store by `cuda::atomic_ref` of device scope with `cuda::memory_order_release`"
        ),
        narrow: None,
    })
}

/// What is wrong with a lock of the two threads: one releases it by a plain store, or both hold it and it does not order
/// them.
pub(crate) fn fault(race: &log::Race, accesses: &[Access; 2]) -> Option<Fault> {
    let [first, second] = accesses;
    let released = plainly_released(accesses);
    if released.is_some() {
        return released;
    }
    let (before, now) = first.locks.iter().find_map(|before| {
        let excludes = |now: &&HeldLock| is_same(before, now) && !(before.shared && now.shared);
        Some((before, second.locks.iter().find(excludes)?))
    })?;
    let given_back = before.released.as_ref()?;
    let narrow = |scope: Scope| race.level == Level::Grid && scope == Scope::Cta;
    for side in [before, now] {
        if narrow(side.scope) {
            return Some(Fault {
                rule: RuleId::NarrowScope,
                what: format!(
                    "both threads hold the lock taken at {}, but by an atomic of {} scope",
                    side.taken,
                    words::scope(side.scope)
                ),
                help: "take and release the lock by atomics of device scope: `atomicCAS` in place of `atomicCAS_block`, `thread_scope_device` in place of `thread_scope_block`".to_owned(),
                narrow: Some(side.taken.clone()),
            });
        }
    }
    let mut missing = Vec::new();
    let mut wanted = Vec::new();
    let mut narrowed = false;
    // Whoever leaves first and enters next: in this run, and in one that has them the other way around.
    let this = [
        (now.entry, Some(enter(&now.taken))),
        (before.exit, Some(leave(given_back))),
    ];
    let other = [
        (before.entry, Some(enter(&before.taken))),
        (now.exit, now.released.as_deref().map(leave)),
    ];
    let places = match race.why {
        log::Why::LockOrder => Vec::from(other),
        log::Why::Strong => this.into_iter().chain(other).collect(),
        _ => Vec::from(this),
    };
    let places = places.into_iter();
    for (fence, place) in places.filter_map(|(fence, place)| Some((fence, place?))) {
        if wanted.contains(&place) {
            continue;
        }
        match fence {
            None => missing.push(format!("there is no fence {place}")),
            Some(scope) if narrow(scope) => {
                narrowed = true;
                missing.push(format!(
                    "the fence {place} is of {} scope",
                    words::scope(scope)
                ));
            }
            Some(_) => continue,
        }
        wanted.push(place);
    }
    if missing.is_empty() {
        return None;
    }
    Some(Fault {
        rule: if narrowed {
            RuleId::NarrowScope
        } else {
            RuleId::ReleaseAcquire
        },
        what: format!(
            "both threads hold the same lock, but {}",
            missing.join(", and ")
        ),
        help: put_fence(race.level, &wanted),
        narrow: None,
    })
}

/// What all accesses need that one lock is to order.
const SAME: &str = "hold the same lock around both accesses";

fn enter(taken: &str) -> String {
    format!("after the lock is taken at {taken}")
}

fn leave(released: &str) -> String {
    format!("before the lock is released at {released}")
}

/// The fences that are missing for threads as far apart as the level says.
fn put_fence(level: Level, places: &[String]) -> String {
    let fence = match level {
        Level::Grid => "__threadfence()",
        Level::Cta | Level::Warp => "__threadfence_block()",
    };
    format!("put `{fence}` {}", places.join(", and "))
}

fn is_same(a: &HeldLock, b: &HeldLock) -> bool {
    (&a.space, &a.address) == (&b.space, &b.address)
}

/// A lock that both sides held as readers.
fn read(accesses: &[Access; 2]) -> Option<&HeldLock> {
    let [first, second] = accesses;
    first.locks.iter().find(|held| {
        let both = |other: &&HeldLock| is_same(held, other) && other.shared;
        held.shared && second.locks.iter().any(|other| both(&other))
    })
}

/// Why only the order of taking locks has ordered two accesses.
pub(crate) fn lock_order(accesses: &[Access; 2]) -> String {
    if let Some(held) = read(accesses) {
        return format!(
            "both threads hold the lock taken at {} for reading, which several threads may do at once; only the order in which they took it in this run orders the accesses",
            held.taken
        );
    }
    let [first, second] = accesses.each_ref().map(|access| {
        let taken: Vec<String> = access
            .locks
            .iter()
            .map(|held| format!("the lock taken at {}", held.taken))
            .collect();
        match taken.is_empty() {
            true => "no lock".to_owned(),
            false => words::listed(&taken),
        }
    });
    let locks = match first == second {
        // One instruction has taken different locks.
        true => format!("both threads hold {first}, but not the same one"),
        false => format!("the first thread holds {first}, the second {second}"),
    };
    format!("{locks}; only the order in which these were taken in this run orders the accesses")
}

/// Both threads hold locks, and no lock in common.
pub(crate) fn differ([first, second]: &[Access; 2]) -> bool {
    let common = |held: &HeldLock| second.locks.iter().any(|other| is_same(held, other));
    let none = first.locks.is_empty() || second.locks.is_empty();
    !none && !first.locks.iter().any(common)
}

/// Which of two accesses is made without a lock, and a lock that the other thread holds.
fn one_sided([first, second]: &[Access; 2]) -> Option<(usize, &HeldLock)> {
    match (&first.locks[..], &second.locks[..]) {
        ([], [held, ..]) => Some((0, held)),
        ([held, ..], []) => Some((1, held)),
        _ => None,
    }
}

/// What would order two accesses of which one is made under a lock, or both under different ones.
pub(crate) fn unguarded(accesses: &[Access; 2], sources: &Sources) -> Option<String> {
    let Some((bare, lock)) = one_sided(accesses) else {
        return differ(accesses).then(|| remedy(accesses));
    };
    (!lock.shared).then(|| hold(&lock.taken, &accesses[bare], sources))
}

/// What orders an access under no lock with those under the lock that is taken at a place.
fn hold(taken: &str, bare: &Access, sources: &Sources) -> String {
    let harmless = match bare.op {
        Op::Ld => {
            "; if an old value does no harm there, make both accesses atomic instead (`cuda::atomic_ref` of device scope)"
        }
        _ => "",
    };
    let place = advice::place(bare, sources);
    format!("hold the lock taken at {taken} around the {place} too{harmless}")
}

/// The same of volatile or relaxed accesses, by the locks that the text of the function shows: runs on a GPU show no others.
pub(crate) fn by_text(
    race: &log::Race,
    accesses: &[Access; 2],
    sources: &Sources,
) -> Option<String> {
    let [first, second] = &race.repair.as_ref()?.locked;
    if race.why != log::Why::Strong || accesses.iter().any(|access| !access.locks.is_empty()) {
        return None;
    }
    let at = |place: &log::CodeLocation| remedy::at(place, sources);
    let (one, other) = match (first, second) {
        (None, None) => return None,
        (None, Some(held)) => return Some(hold(&at(&held.taken), &accesses[0], sources)),
        (Some(held), None) => return Some(hold(&at(&held.taken), &accesses[1], sources)),
        (Some(one), Some(other)) => (one, other),
    };
    let mut missing = Vec::new();
    for held in [one, other] {
        missing.extend(held.no_entry_fence.then(|| enter(&at(&held.taken))));
        missing.extend(held.no_exit_fence.then(|| leave(&at(&held.released))));
    }
    let mut places: Vec<String> = Vec::new();
    for place in missing {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Some(match places.is_empty() {
        true => SAME.to_owned(),
        false => put_fence(race.level, &places),
    })
}

/// What would order both sides in every run.
pub(crate) fn remedy(accesses: &[Access; 2]) -> String {
    if let Some(held) = read(accesses) {
        return format!(
            "take the lock at {} for writing where the address is written",
            held.taken
        );
    }
    let Some((bare, guarded)) = one_sided(accesses) else {
        return SAME.to_owned();
    };
    let bare = ["first", "second"][bare];
    format!(
        "hold the lock taken at {} around the {bare} access too, or order the two accesses by a barrier or a flag",
        guarded.taken
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(address: u64, entry: Option<Scope>, exit: Option<Scope>) -> HeldLock {
        HeldLock {
            space: log::Space::Global,
            address: build::address(address, None),
            scope: Scope::Gpu,
            taken: "x.cu:3".into(),
            shared: false,
            entry,
            released: Some("x.cu:9".into()),
            plain: false,
            exit,
        }
    }

    fn sides(first: Vec<HeldLock>, second: Vec<HeldLock>) -> [Access; 2] {
        [first, second].map(|locks| Access {
            locks,
            ..Access::default()
        })
    }

    #[test]
    fn a_fault_names_the_fences_that_are_missing() {
        let race = log::Race::default();
        let of = |first: Option<Scope>, second: Option<Scope>| {
            let both = [
                vec![lock(64, Some(Scope::Gpu), first)],
                vec![lock(64, second, None)],
            ];
            let [first, second] = both;
            fault(&race, &sides(first, second)).map(|fault| (fault.rule, fault.what))
        };
        assert_eq!(of(Some(Scope::Gpu), Some(Scope::Gpu)), None);
        let (rule, what) = of(None, Some(Scope::Gpu)).unwrap();
        assert!(
            rule == RuleId::ReleaseAcquire
                && what.contains("before the lock is released at x.cu:9"),
            "{what}"
        );
        let (rule, what) = of(Some(Scope::Gpu), None).unwrap();
        assert!(
            rule == RuleId::ReleaseAcquire && what.contains("after the lock is taken at x.cu:3"),
            "{what}"
        );
        let (rule, what) = of(Some(Scope::Cta), Some(Scope::Gpu)).unwrap();
        assert!(
            rule == RuleId::NarrowScope && what.contains("of block scope"),
            "{what}"
        );
        let narrow = HeldLock {
            scope: Scope::Cta,
            ..lock(64, Some(Scope::Gpu), Some(Scope::Gpu))
        };
        let both = sides(
            vec![lock(64, Some(Scope::Gpu), Some(Scope::Gpu))],
            vec![narrow],
        );
        let of_block = fault(&race, &both).unwrap();
        assert!(
            of_block.rule == RuleId::NarrowScope
                && of_block.what.contains("by an atomic of block scope"),
            "{of_block:?}"
        );
        assert_eq!(of_block.narrow.as_deref(), Some("x.cu:3"));
        let apart = sides(vec![lock(64, None, None)], vec![lock(68, None, None)]);
        assert_eq!(fault(&race, &apart), None);
    }

    #[test]
    fn a_lock_order_names_the_locks_and_the_side_that_has_none() {
        let held = || vec![lock(64, None, None)];
        let one = sides(Vec::new(), held());
        assert!(
            lock_order(&one)
                .starts_with("the first thread holds no lock, the second the lock taken")
        );
        assert!(remedy(&one).contains("x.cu:3 around the first access"));
        assert!(remedy(&sides(held(), Vec::new())).contains("around the second access"));
        let reader = || HeldLock {
            shared: true,
            ..lock(64, None, None)
        };
        let readers = sides(vec![reader()], vec![reader()]);
        assert!(lock_order(&readers).contains("for reading"));
        assert!(remedy(&readers).contains("for writing"));
        assert_eq!(fault(&log::Race::default(), &readers), None);
        let writer = sides(vec![reader()], held());
        assert!(fault(&log::Race::default(), &writer).is_some());
        let two = sides(held(), vec![lock(68, None, None)]);
        assert!(lock_order(&two).contains("not the same one"));
        assert!(remedy(&two).contains("the same lock"));
    }

    #[test]
    fn the_text_shows_locks_that_a_run_does_not() {
        let (_folder, sources) = Sources::of_text("");
        let locked = |fenced: bool| {
            Some(log::Locked {
                taken: log::CodeLocation {
                    line: 3,
                    ..log::CodeLocation::default()
                },
                released: log::CodeLocation {
                    line: 9,
                    ..log::CodeLocation::default()
                },
                no_entry_fence: !fenced,
                no_exit_fence: !fenced,
            })
        };
        let of = |locked, accesses: [Access; 2]| {
            let race = log::Race {
                why: log::Why::Strong,
                level: Level::Grid,
                repair: Some(log::Repair {
                    locked,
                    ..log::Repair::default()
                }),
                ..log::Race::default()
            };
            by_text(&race, &accesses, &sources)
        };
        let bare = || sides(Vec::new(), Vec::new());
        assert_eq!(of([None, None], bare()), None);
        let one = of([locked(true), None], bare()).unwrap();
        assert!(
            one.contains("taken at line 3 of the PTX around the"),
            "{one}"
        );
        assert_eq!(
            of([locked(false), locked(true)], bare()).unwrap(),
            "put `__threadfence()` after the lock is taken at line 3 of the PTX, and before the lock is released at line 9 of the PTX"
        );
        assert_eq!(of([locked(true), locked(true)], bare()).unwrap(), SAME);
        let known = sides(vec![lock(64, None, None)], Vec::new());
        assert_eq!(of([locked(true), None], known), None);
    }
}
