//! Accesses whose checks a launch may spare, because it proves that they cannot race.
//!
//! A launch has one word of bits for all accesses of its kernel. Where a kernel has more of them than bits, neighbours
//! in the text share one, and need their checks unless all of them are proved.
//!
//! Asking for a bit takes three instructions. Accesses of a kind that most launches prove as a whole are asked for by
//! one predicate first, in one instruction ([`Kind`]).

use std::collections::{BTreeMap, BTreeSet};

use ptx::ast::Module;
use ptx::isa::MemoryKind;
use shadow::layout::{LaunchBlock, UNWRITTEN_WORDS};

use crate::Provable;
use crate::access::{Access, AddressSpace, Checked};
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

/// Accesses that most launches prove all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Loads of global memory that a launch may know to be never written.
    Unwritten,
    /// Loads of shared memory.
    Shared,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Unwritten, Self::Shared];

    /// The predicate that says of a launch that all accesses of a kind need no check.
    fn predicate(self) -> &'static str {
        match self {
            Self::Unwritten => "%crc_spares_unwritten",
            Self::Shared => "%crc_spares_shared",
        }
    }
}

/// Where a launch says of an access that it needs no check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skip {
    /// Its bit: its place in [`KernelInfo::groups`](crate::KernelInfo::groups).
    bit: usize,
    kind: Option<Kind>,
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
        let mut kinds: BTreeMap<usize, Kind> = BTreeMap::new();
        let mut grouped = Vec::new();
        for (statement, _) in names.body().instructions() {
            let unwritten = unwritten.and_then(|of| of.get(&statement)).copied();
            if !accesses.contains(&statement) && unwritten.is_none() {
                continue;
            }
            let Checked::Yes(Access {
                op, address_space, ..
            }) = names.checked(statement)
            else {
                continue;
            };
            if unwritten.is_some() {
                kinds.insert(statement, Kind::Unwritten);
            } else if op.kind == MemoryKind::Load && address_space == AddressSpace::Shared {
                kinds.insert(statement, Kind::Shared);
            }
            grouped.push(Grouped {
                statement,
                unwritten,
            });
        }
        // One alone has its bit.
        for kind in Kind::ALL {
            if kinds.values().filter(|of| **of == kind).count() < 2 {
                kinds.retain(|_, of| *of != kind);
            }
        }
        let groups = groups(grouped);
        let mut skips = BTreeMap::new();
        for (bit, group) in groups.iter().enumerate() {
            for &Grouped { statement, .. } in group {
                let kind = kinds.get(&statement).copied();
                skips.insert(statement, Skip { bit, kind });
            }
        }
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
    Bit(Skip),
}

/// Reads the word of the launch, and fills the predicates of the kinds that the kernel has.
pub(crate) fn read(skips: &BTreeMap<usize, Skip>) -> String {
    let offset = std::mem::offset_of!(LaunchBlock, unwritten);
    let mut text = format!(
        ".reg .b64 %crc_skip, %crc_spares;\nld.global.u64 %crc_skip, [%crc_launch+{offset}];\n"
    );
    for kind in Kind::ALL {
        let of_kind = skips.values().filter(|skip| skip.kind == Some(kind));
        let bits = of_kind.fold(0u64, |bits, skip| bits | 1 << skip.bit);
        if bits != 0 {
            let predicate = kind.predicate();
            text.push_str(&format!(
                ".reg .pred {predicate};\nand.b64 %crc_spares, %crc_skip, {bits};\n\
                 setp.eq.u64 {predicate}, %crc_spares, {bits};\n"
            ));
        }
    }
    text
}

impl Free {
    /// The access's bit, if it has one.
    pub(crate) fn bit(self) -> Option<u64> {
        match self {
            Self::Set(_) => None,
            Self::Bit(Skip { bit, .. }) => Some(1 << bit),
        }
    }

    /// Goes to `skip` if the access needs no check.
    pub(crate) fn unless(self, skip: &str) -> String {
        match self {
            Self::Set(set) => format!("@%crc_free_{set} bra {skip};\n"),
            Self::Bit(Skip { bit, kind }) => {
                let all = kind.map(|kind| format!("@{} bra {skip};\n", kind.predicate()));
                format!(
                    "{}and.b64 %crc_address, %crc_skip, {};\nsetp.ne.u64 %crc_guard, %crc_address, 0;\n\
                     @%crc_guard bra {skip};\n",
                    all.unwrap_or_default(),
                    1u64 << bit
                )
            }
        }
    }
}
