//! Findings of the happens-before engine in the log's terms.

use std::collections::HashMap;

use shadow::hb::{LANES, Location, Rule, Thread};

use crate::allocations::Allocations;
use crate::checker;
use crate::findings::Misused;
use crate::locking;
use crate::log;
use crate::pairs::{Class, Found};

/// A race in the log's terms; `named` are the log's numbers of the sites.
pub(crate) fn race(
    launch: &log::Launch,
    found: &Found,
    named: &HashMap<u32, u32>,
    allocations: &Allocations,
) -> log::Race {
    let Found {
        race,
        count,
        span,
        cause,
        flag,
        ..
    } = *found;
    let [previous_value, value] = found.compared.values;
    let (now, before) = (race.later.thread, race.earlier.thread);
    let site = |number: u32| named.get(&number).copied().unwrap_or(0);
    let indices = |of: Thread| {
        let cta = u32::try_from(of.cta).unwrap_or(u32::MAX);
        checker::thread(launch, cta, of.warp * LANES + of.lane)
    };
    let at = |location| match location {
        Location::Global(address) => (log::Space::Global, address),
        Location::Shared { offset, .. } => (log::Space::Shared, u64::from(offset)),
    };
    let allocation = |space, address| match space {
        log::Space::Global => allocations.find(address).cloned(),
        log::Space::Shared => None,
    };
    let (space, address) = at(race.location);
    log::Race {
        launch: launch.launch,
        schedule: None,
        decided: !matches!(
            found.class,
            Class::LockOrder | Class::Fences | Class::Counted
        ),
        level: match () {
            () if now.cta != before.cta => log::Level::Grid,
            () if now.warp != before.warp => log::Level::Cta,
            () => log::Level::Warp,
        },
        space,
        why: why(found.class, race.rule),
        cause: cause.map(|cause| cause.map(indices)),
        precedes_issue: found.precedes_issue,
        flag: flag.map(|flag| {
            let (space, address) = at(flag.location);
            log::Word {
                space,
                address,
                allocation: allocation(space, address),
                sites: [flag.written, flag.read].map(|number| number.map(site)),
                places: [None, None],
                is_of_device: false,
            }
        }),
        repair: None,
        around: Vec::new(),
        locks: match found.locks.iter().all(Vec::is_empty) {
            true => Vec::new(),
            false => {
                let lock = |held| locking::held(held, named, allocations);
                let sides = found.locks.iter();
                sides.map(|side| side.iter().map(lock).collect()).collect()
            }
        },
        site: site(race.later.site),
        previous_site: site(race.earlier.site),
        count,
        at_least: found.at_least,
        address,
        span,
        allocation: allocation(space, address),
        thread: indices(now),
        previous_thread: Some(indices(before)),
        previous_block: Some(indices(before).block),
        elsewhere: false,
        same_value: found.compared.same_value(count),
        later_block: false,
        value,
        previous_value,
        work: Vec::new(),
        apart: log::Apart::default(),
    }
}

/// What is wrong with two accesses in the log's terms.
pub(crate) fn why(class: Class, rule: Rule) -> log::Why {
    match (class, rule) {
        (Class::LockOrder, _) => log::Why::LockOrder,
        (Class::Fences, _) => log::Why::Fences,
        (Class::Counted, _) => log::Why::Counted,
        (Class::Strong, _) | (_, Rule::Strong) => log::Why::Strong,
        (Class::Race, Rule::Unordered | Rule::Scope) => log::Why::Unordered,
        (Class::Race, Rule::Overlap) => log::Why::Overlap,
        (Class::Race, Rule::ReadOnly) => log::Why::ReadOnly,
        (Class::Race, Rule::Asynchronous) => log::Why::Asynchronous,
        (Class::Race, Rule::Proxy) => log::Why::Proxy,
    }
}

/// A misuse in the log's terms.
pub(crate) fn misuse(
    launch: &log::Launch,
    Misused {
        misuse,
        before,
        now,
    }: Misused,
    accessor: Thread,
    count: u64,
    named: &HashMap<u32, u32>,
) -> log::Race {
    let site = |number: u32| named.get(&number).copied().unwrap_or(0);
    let cta = u32::try_from(accessor.cta).unwrap_or(u32::MAX);
    let thread = checker::thread(launch, cta, accessor.warp * LANES + accessor.lane);
    log::Race {
        launch: launch.launch,
        decided: true,
        level: log::Level::Cta,
        why: log::Why::Misuse(misuse),
        site: site(now),
        previous_site: site(before),
        count,
        thread,
        previous_block: Some(thread.block),
        ..log::Race::default()
    }
}
