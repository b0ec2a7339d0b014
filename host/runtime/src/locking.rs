//! Findings about locks: which of its findings stand once all locks are known, and the
//! locks in the log's terms.

use std::collections::{HashMap, HashSet};

use shadow::hb::{Cause, Held, Location, LockOrder};

use crate::allocations::Allocations;
use crate::instructions::Instructions;
use crate::log;
use crate::options::Model;
use crate::pairs::{Class, Found};

/// Leaves what can be reported at the end of a launch: words that turned out to be no locks are left
/// out, and what is a data race besides is that.
pub(crate) fn sort_out(
    mut found: Vec<Found>,
    lock_order: &LockOrder,
    instructions: &Instructions,
    model: Option<Model>,
) -> Vec<Found> {
    for found in &mut found {
        for side in &mut found.locks {
            side.retain(|held| lock_order.is_lock(held.lock));
        }
    }
    let sites = |of: &Found| {
        let (a, b) = (of.race.earlier.site, of.race.later.site);
        (a.min(b), a.max(b))
    };
    let races = found.iter().filter(|found| found.class == Class::Race);
    let races: HashSet<(u32, u32)> = races.map(sites).collect();
    let of_locks = |of: &&Found| of.class == Class::LockOrder && is_lock_order(of, lock_order);
    let predicted: HashSet<(u32, u32)> = found.iter().filter(of_locks).map(sites).collect();
    found.retain(|found| {
        let may_report = model != Some(Model::Ptx) && !races.contains(&sites(found));
        match found.class {
            Class::Race => true,
            Class::Strong => may_report && is_reported(found, instructions, model),
            Class::LockOrder => may_report && is_lock_order(found, lock_order),
            Class::Fences | Class::Counted => may_report && !predicted.contains(&sites(found)),
        }
    });
    found
}

/// True when an order by locks is one, now that all locks are known.
fn is_lock_order(found: &Found, lock_order: &LockOrder) -> bool {
    !lock_order.is_spoiled() && found.locks.iter().any(|held| !held.is_empty())
}

/// True when an unordered strong conflict is reported under a model: by default that of volatile data,
/// of which C++ says that it is a race, and what is handed over by too narrow a scope or under a lock
/// without its fences; what is written as relaxed is meant to be so, and so is a look beside atomics.
fn is_reported(found: &Found, instructions: &Instructions, model: Option<Model>) -> bool {
    let sites = [found.race.earlier.site, found.race.later.site];
    let sites = sites.map(|site| instructions.site(site));
    let all = |is: fn(&log::Site) -> bool| sites.iter().all(|site| site.is_some_and(is));
    let narrow = matches!(
        found.cause,
        Some(Cause::NarrowRelease { .. } | Cause::NarrowAcquire { .. } | Cause::Version(_))
    );
    match model {
        Some(Model::Ptx) => false,
        Some(Model::Scoped) => true,
        None if !all(|site| site.op != log::Op::Atomic) => false,
        None => {
            all(|site| site.sem == log::Semantics::Volatile)
                || narrow
                || common(&found.locks).is_some()
        }
    }
}

/// A lock that both sides held, one of them alone, as each of them did.
pub(crate) fn common(locks: &[Vec<Held>; 2]) -> Option<[&Held; 2]> {
    let [before, now] = locks;
    let other = |held: &Held| now.iter().find(|other| other.excludes(held));
    before.iter().find_map(|held| Some([held, other(held)?]))
}

/// The instructions of a lock.
pub(crate) fn sites(held: &Held) -> impl Iterator<Item = u32> {
    [Some(held.taken), held.released].into_iter().flatten()
}

/// A lock in the log's terms.
pub(crate) fn held(held: &Held, named: &HashMap<u32, u32>, allocations: &Allocations) -> log::Lock {
    let site = |number: u32| named.get(&number).copied().unwrap_or(0);
    let (space, address, allocation) = match held.lock {
        Location::Global(address) => {
            let allocation = allocations.find(address).cloned();
            (log::Space::Global, address, allocation)
        }
        Location::Shared { offset, .. } => (log::Space::Shared, u64::from(offset), None),
    };
    log::Lock {
        space,
        address,
        allocation,
        taken: site(held.taken),
        released: held.released.map(site),
        scope: held.scope,
        shared: held.shared,
        entry: held.entry,
        exit: held.exit,
    }
}
