//! Accesses whose checks a launch may spare, because it proves that they cannot race.
//!
//! A launch has one word of bits for all accesses of its kernel. Where a kernel has more of them than bits, neighbours
//! in the text share one, and need their checks unless all of them are proved.

use std::collections::{BTreeMap, BTreeSet};

use ptx::ast::Module;
use shadow::layout::{LaunchBlock, UNWRITTEN_WORDS};

use crate::Provable;
use crate::access::Checked;
use crate::analysis::Plan;
use crate::names::Bodies;
use crate::own;

/// Bits that a launch has for the accesses of its kernel.
pub const BITS: usize = UNWRITTEN_WORDS.trailing_zeros() as usize;

/// An access that a launch may prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// Its statement in the kernel's body.
    pub statement: usize,
    /// Its set in [`Pointers::loads`](crate::Pointers::loads), if it is a load of what a launch may know to be never
    /// written.
    pub unwritten: Option<usize>,
}

/// Adds to the plan of a module what launches of its kernels may prove: `provable` gives accesses by statement.
pub(crate) fn plan(module: &Module, bodies: &Bodies<'_>, plan: &mut Plan, provable: Provable) {
    for index in 0..plan.kernels.len() {
        let info = &plan.kernels[index];
        let function = module
            .functions()
            .find(|f| f.entry && f.body.is_some() && f.name == info.name);
        let known = function.and_then(|of| Some((of, bodies.of(of)?)));
        let Some((function, names)) = known else {
            continue;
        };
        if !info.instrumented || !own::is_possible(module, plan, function) {
            continue;
        }
        let Some(accesses) = provable(&info.name) else {
            continue;
        };
        let accesses: BTreeSet<usize> = accesses.into_iter().collect();
        let unwritten = plan.unwritten.get(&info.name);
        let grouped = names.body().instructions().filter(|(at, _)| {
            let known = accesses.contains(at) || unwritten.is_some_and(|of| of.contains_key(at));
            known && matches!(names.checked(*at), Checked::Yes { .. })
        });
        let grouped = grouped.map(|(statement, _)| Grouped {
            statement,
            unwritten: unwritten.and_then(|of| of.get(&statement)).copied(),
        });
        let groups = groups(grouped.collect());
        let skips = groups.iter().enumerate();
        let skips = skips.flat_map(|(n, group)| group.iter().map(move |of| (of.statement, n)));
        let skips: BTreeMap<usize, usize> = skips.collect();
        // The bits of the groups say it.
        if let Some(loads) = plan.unwritten.get_mut(&plan.kernels[index].name) {
            loads.clear();
        }
        let info = &mut plan.kernels[index];
        plan.skips.insert(info.name.clone(), skips);
        (info.own, info.groups) = (true, groups);
    }
}

/// A bit for each access, if there are so many. Else loads of one set share one, and so do neighbours of the others.
fn groups(accesses: Vec<Grouped>) -> Vec<Vec<Grouped>> {
    if accesses.len() <= BITS {
        return accesses.into_iter().map(|of| vec![of]).collect();
    }
    let (loads, others): (Vec<_>, Vec<_>) =
        accesses.into_iter().partition(|of| of.unwritten.is_some());
    let mut groups: BTreeMap<Option<usize>, Vec<Grouped>> = BTreeMap::new();
    for load in loads {
        groups.entry(load.unwritten).or_default().push(load);
    }
    let mut groups: Vec<Vec<Grouped>> = groups.into_values().collect();
    let share = others.len().div_ceil(BITS - groups.len()).max(1);
    groups.extend(others.chunks(share).map(<[_]>::to_vec));
    groups
}

/// Where the bit of an access is known that says that it needs no check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Free {
    /// In the predicate of its set of loads.
    Set(usize),
    /// In the word of the launch.
    Bit(usize),
}

/// Reads the word of the launch.
pub(crate) fn read() -> String {
    let offset = std::mem::offset_of!(LaunchBlock, unwritten);
    format!(".reg .b64 %crc_skip;\nld.global.u64 %crc_skip, [%crc_launch+{offset}];\n")
}

impl Free {
    /// Goes to `skip` if the access needs no check.
    pub(crate) fn unless(self, skip: &str) -> String {
        match self {
            Self::Set(set) => format!("@%crc_free_{set} bra {skip};\n"),
            Self::Bit(bit) => format!(
                "and.b64 %crc_address, %crc_skip, {};\nsetp.ne.u64 %crc_guard, %crc_address, 0;\n\
                 @%crc_guard bra {skip};\n",
                1u64 << bit
            ),
        }
    }
}
