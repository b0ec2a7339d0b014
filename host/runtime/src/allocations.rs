//! Which device memory belongs to what.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use report::names::VARIABLE;
use rewrite::Pointers;
use serde::{Deserialize, Serialize};
use shadow::layout::UNWRITTEN_WORDS;

use crate::log::Allocation;

/// Live allocations by base address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocations {
    live: BTreeMap<u64, Allocation>,
    made: u64,
}

/// What has made memory that the driver has reported, and no call that was seen.
const FOUND: &str = "a call that was not seen";

/// Memory further apart than this is not covered by one window.
const GAP: u64 = 1 << 40;
/// The most windows of global memory in which a launch is checked.
pub const WINDOWS: usize = 3;

/// Allocations on either side that are joined with one that they touch, at most.
const MOST_TOUCHING: usize = 64;

/// Where a pointer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// To no memory that is known: the value may be a number.
    Nothing,
    /// To memory, but it is not known to which.
    Unknown,
    /// First byte and number of bytes.
    Memory(u64, u64),
}

fn end(of: &Allocation) -> u64 {
    of.base.saturating_add(of.bytes)
}

/// Whether two allocations without a gap between them may be one buffer. Variables are not: code names each by its own
/// name.
fn may_be_one(a: &Allocation, b: &Allocation) -> bool {
    ![a, b].iter().any(|of| of.api.starts_with(VARIABLE))
}

impl Allocations {
    /// Remembers an allocation made by `api`.
    pub fn insert(&mut self, base: u64, bytes: u64, api: &str) {
        // What was there has been freed, without a call that says so: the end of a graph, for example.
        let end = base.saturating_add(bytes);
        while let Some((&at, of)) = self.live.range(..end).next_back()
            && at.saturating_add(of.bytes) > base
        {
            self.live.remove(&at);
        }
        self.made += 1;
        let allocation = Allocation {
            id: self.made,
            base,
            bytes,
            api: api.to_owned(),
            place: None,
        };
        self.live.insert(base, allocation);
    }

    /// Remembers memory that the driver has reported, unless some of it is known.
    pub fn insert_found(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        let before = self.live.range(..end).next_back();
        if bytes > 0 && before.is_none_or(|(at, of)| at + of.bytes <= base) {
            self.insert(base, bytes, FOUND);
        }
    }

    /// Forgets the allocation at `base`, and gives what was known of it.
    pub fn remove(&mut self, base: u64) -> Option<Allocation> {
        self.live.remove(&base)
    }

    /// Forgets the allocations that start in a range.
    pub fn remove_within(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        self.live.retain(|at, _| !(base..end).contains(at));
    }

    /// The allocation that contains `address`.
    pub fn find(&self, address: u64) -> Option<&Allocation> {
        let (_, allocation) = self.live.range(..=address).next_back()?;
        (address - allocation.base < allocation.bytes).then_some(allocation)
    }

    /// Whether something has made memory from the first address to the last that `maker` has not.
    pub(crate) fn made_by_others(&self, [first, last]: [u64; 2], maker: Option<&str>) -> bool {
        let before = self.find(first).map_or(first, |of| of.base);
        let mut all = self.live.range(before..=last.max(before));
        all.any(|(_, of)| Some(of.api.as_str()) != maker)
    }

    /// First byte and number of bytes of the memory that a pointer with the value `address` leads to, if that is known.
    pub fn range(&self, address: u64) -> Option<(u64, u64)> {
        match self.leads_to(address) {
            Target::Memory(base, bytes) => Some((base, bytes)),
            Target::Nothing | Target::Unknown => None,
        }
    }

    /// The memory that a pointer with the value `address` leads to: the allocation that contains the address, or ends there,
    /// and those that touch it without a gap. A pointer to the end of one has the value of one to the start of the next, and
    /// mapped or registered memory may be one buffer in several pieces.
    fn leads_to(&self, address: u64) -> Target {
        let before = self.live.range(..address).next_back().map(|(_, of)| of);
        let ends = before.filter(|of| end(of) == address);
        let (mut first, mut last) = match (self.find(address), ends) {
            (None, None) => return Target::Nothing,
            (Some(of), Some(ends)) if !may_be_one(ends, of) => return Target::Unknown,
            (Some(of), _) | (None, Some(of)) => (of, of),
        };
        for _ in 0..MOST_TOUCHING {
            let left = self.live.range(..first.base).next_back();
            let left = left.filter(|(_, of)| end(of) == first.base && may_be_one(of, first));
            let right = self.live.get(&end(last));
            let right = right.filter(|of| may_be_one(last, of));
            if left.is_none() && right.is_none() {
                return Target::Memory(first.base, end(last) - first.base);
            }
            first = left.map_or(first, |(_, of)| of);
            last = right.unwrap_or(last);
        }
        Target::Unknown
    }

    /// First byte and number of bytes of the variable with a name, if no other module has one of that name.
    pub fn only_variable(&self, name: &str) -> Option<(u64, u64)> {
        let named = |of: &&Allocation| of.api.strip_prefix(VARIABLE) == Some(name);
        let mut all = self.live.values().filter(named);
        let found = all.next()?;
        all.next().is_none().then_some((found.base, found.bytes))
    }

    /// The allocation whose bytes are nearest to `address`.
    pub fn nearest(&self, address: u64) -> Option<&Allocation> {
        let before = self.live.range(..=address).next_back();
        let behind = self.live.range(address..).next();
        let far = |of: &Allocation| match of.base > address {
            true => of.base - address,
            false => address.saturating_sub(of.base.saturating_add(of.bytes)),
        };
        let both = before.into_iter().chain(behind);
        both.map(|(_, of)| of).min_by_key(|of| far(of))
    }

    /// Which loads of a kernel load what a launch with these parameters never writes: a bit for each of
    /// [`Pointers::loads`]; and [`UNWRITTEN_WORDS`].
    ///
    /// A value that is no address of an allocation is taken for a number. Variables are known when their memory was
    /// [inserted](Self::insert) as [`VARIABLE`] with their names; where several modules have one of a name, it is
    /// each of them.
    pub fn unwritten(&self, pointers: &Pointers, parameters: &[u8]) -> u64 {
        let target = |offset: &u32| {
            let rest = parameters.get(*offset as usize..);
            let bytes = rest.and_then(|rest| rest.first_chunk::<8>());
            bytes.map_or(Target::Nothing, |bytes| {
                self.leads_to(u64::from_le_bytes(*bytes))
            })
        };
        let targets: Vec<Target> = pointers.offsets.iter().map(target).collect();
        if targets.contains(&Target::Unknown) {
            return 0;
        }
        let variables = self.variables(&pointers.variables);
        // None where it is not known.
        let through = |set: u64| {
            let within = |n: usize| set >> n & 1 != 0;
            let through = targets.iter().enumerate().filter(|(n, _)| within(*n));
            let base = |(_, target): (usize, &Target)| match *target {
                Target::Memory(base, _) => Some(base),
                Target::Nothing | Target::Unknown => None,
            };
            let mut all: Vec<u64> = through.filter_map(base).collect();
            for (n, bases) in variables.iter().enumerate() {
                if within(Pointers::FIRST_VARIABLE as usize + n) {
                    if bases.is_empty() {
                        return None;
                    }
                    all.extend(bases);
                }
            }
            Some(all).filter(|all| !all.is_empty())
        };
        let all = |sets: &[u64]| -> Option<BTreeSet<u64>> {
            let each: Option<Vec<Vec<u64>>> = sets.iter().map(|set| through(*set)).collect();
            Some(each?.into_iter().flatten().collect())
        };
        let words = match (all(&pointers.words), all(&pointers.parts)) {
            (Some(words), Some(parts)) if !words.is_empty() && words.is_disjoint(&parts) => {
                UNWRITTEN_WORDS
            }
            _ => 0,
        };
        let Some(written) = all(&pointers.writes) else {
            return words;
        };
        let free = |set: &u64| {
            through(*set).is_some_and(|bases| bases.iter().all(|base| !written.contains(base)))
        };
        let loads = pointers.loads.iter().enumerate();
        loads.fold(words, |bits, (n, set)| bits | u64::from(free(set)) << n)
    }

    /// Where the variables of these names lie.
    fn variables(&self, names: &[String]) -> Vec<Vec<u64>> {
        if names.is_empty() {
            return Vec::new();
        }
        let mut bases = vec![Vec::new(); names.len()];
        for allocation in self.live.values() {
            let variable = allocation.api.strip_prefix(VARIABLE);
            if let Some(index) = variable.and_then(|name| names.iter().position(|n| n == name)) {
                bases[index].push(allocation.base);
            }
        }
        bases
    }

    /// Bytes of everything that is live.
    pub fn bytes(&self) -> u64 {
        self.live.values().map(|allocation| allocation.bytes).sum()
    }

    /// Base and length of the windows in which a launch with these parameters is checked. One window covers all memory, unless
    /// allocations are more than [`GAP`] apart, as those of host, device and pools may be. Then each part has a window.
    /// Parts that the parameters point into come first, then those with most bytes.
    pub fn windows(&self, parameters: &[u8]) -> [(u64, u64); WINDOWS] {
        let mut parts: Vec<Part> = Vec::new();
        for allocation in self.live.values() {
            let end = allocation.base + allocation.bytes;
            match parts.last_mut() {
                Some(part) if allocation.base.saturating_sub(part.end) < GAP => {
                    part.end = end.max(part.end);
                    part.bytes += allocation.bytes;
                }
                _ => parts.push(Part {
                    base: allocation.base,
                    end,
                    bytes: allocation.bytes,
                    named: false,
                }),
            }
        }
        if parts.len() > 1 {
            let (values, _) = parameters.as_chunks::<8>();
            for value in values {
                let value = u64::from_le_bytes(*value);
                let holds = |part: &&mut Part| (part.base..part.end).contains(&value);
                if let (Some(part), Some(_)) = (parts.iter_mut().find(holds), self.find(value)) {
                    part.named = true;
                }
            }
        }
        parts.sort_by_key(|part| Reverse((part.named, part.bytes)));
        let mut windows = [(0, 0); WINDOWS];
        for (window, part) in windows.iter_mut().zip(&parts) {
            // Whole granules of any size, because those of the next window follow.
            let (base, end) = (part.base & !255, part.end.next_multiple_of(256));
            *window = (base, end - base);
        }
        windows
    }
}

/// A range of addresses with memory in it.
#[derive(Debug)]
struct Part {
    base: u64,
    end: u64,
    /// Bytes of the memory.
    bytes: u64,
    /// A parameter points into it.
    named: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_find_their_allocation() {
        let mut all = Allocations::default();
        all.insert(0x1000, 16, "cudaMalloc");
        all.insert(0x2000, 32, "cudaMallocManaged");
        assert_eq!(all.find(0x100f).unwrap().id, 1);
        assert!(all.find(0x1010).is_none() && all.find(0xfff).is_none());
        let (none, near) = ((0, 0), (0x1000, 0x1100));
        assert_eq!((all.windows(&[]), all.bytes()), ([near, none, none], 48));
        all.insert(1 << 46, 1 << 20, "cudaHostAlloc");
        let far = (1 << 46, 1 << 20);
        assert_eq!(all.windows(&[]), [far, near, none]);
        // Where the parameters point; no address, and one of nothing, point nowhere.
        let windows = |values: [u64; 2]| all.windows(&values.map(u64::to_le_bytes).concat());
        assert_eq!(windows([7, 0x2008]), [near, far, none]);
        assert_eq!(windows([7, 0x1800]), [far, near, none]);
        assert_eq!(windows([(1 << 46) + 64, 0x2008]), [far, near, none]);
        all.remove(0x2000);
        assert!(all.find(0x2000).is_none());
    }

    #[test]
    fn a_pointer_leads_to_all_that_touches_and_to_what_ends_there() {
        let mut all = Allocations::default();
        all.insert(0x1000, 0x100, "cudaMalloc");
        all.insert(0x2000, 0x1000, "cuMemMap");
        all.insert(0x3000, 0x1000, "cuMemMap");
        assert_eq!(all.range(0x1100), Some((0x1000, 0x100)));
        assert_eq!(all.range(0x1101), None);
        for inside in [0x2000, 0x2fff, 0x3000, 0x4000] {
            assert_eq!(all.range(inside), Some((0x2000, 0x2000)), "{inside:#x}");
        }
        // A variable is no part of what it touches, and a pointer in between may lead to either.
        all.insert(0x4000, 0x10, &format!("{VARIABLE}x"));
        assert_eq!(all.leads_to(0x4000), Target::Unknown);
        assert_eq!(all.range(0x4001), Some((0x4000, 0x10)));
        assert_eq!(all.range(0x3fff), Some((0x2000, 0x2000)));
        // Of very many pieces nothing is known.
        for piece in 0..1000 {
            all.insert(0x10_0000 + 0x100 * piece, 0x100, "cudaMalloc");
        }
        let pointers = Pointers {
            offsets: vec![0, 8],
            loads: vec![0b01],
            writes: vec![0b10],
            ..Pointers::default()
        };
        assert_eq!(all.leads_to(0x10_8000), Target::Unknown);
        let parameters = [0x10_8000u64, 0x1000].map(u64::to_le_bytes).concat();
        assert_eq!(all.unwritten(&pointers, &parameters), 0);
    }

    #[test]
    fn an_allocation_replaces_what_it_overlaps() {
        let mut all = Allocations::default();
        all.insert(0x2000, 0x1000, "cudaMalloc");
        all.insert_found(0x1000, 0x1001);
        assert!(all.find(0x1000).is_none());
        all.insert_found(0x1000, 0x1000);
        all.insert_found(0x4000, 0x1000);
        assert_eq!(all.find(0x1fff).unwrap().api, FOUND);
        all.insert(0x1800, 0x100, "cudaMalloc");
        assert!(all.find(0x1000).is_none());
        // Memory of a graph that has been destroyed.
        all.insert(0x8000, 0x1000, "cuGraphAddMemAllocNode");
        all.insert(0x7000, 0x3000, "cudaMalloc");
        assert_eq!(all.find(0x8800).unwrap().api, "cudaMalloc");
        assert!(all.find(0x1800).is_some() && all.find(0x4000).is_some());
    }

    #[test]
    fn loads_are_free_where_their_allocation_is_not_written() {
        let mut all = Allocations::default();
        all.insert(0x1000, 0x100, "cudaMalloc");
        all.insert(0x2000, 0x100, "cudaMalloc");
        // Two loads, through the first parameter, and through the first or the third; one write.
        let pointers = Pointers {
            offsets: vec![0, 8, 16],
            variables: Vec::new(),
            loads: vec![0b001, 0b101],
            writes: vec![0b010],
            ..Pointers::default()
        };
        let unwritten = |values: [u64; 3]| {
            let parameters = values.map(u64::to_le_bytes).concat();
            all.unwritten(&pointers, &parameters)
        };
        assert_eq!(unwritten([0x1000, 0x2000, 7]), 0b11);
        assert_eq!(unwritten([0x1000, 0x2000, 0x20ff]), 0b01);
        // Two parts of one allocation.
        assert_eq!(unwritten([0x1080, 0x1000, 7]), 0);
        // Nobody knows what is written, or loaded.
        assert_eq!(unwritten([0x1000, 0x3000, 7]), 0);
        assert_eq!(unwritten([0x3000, 0x2000, 7]), 0);
        assert_eq!(all.unwritten(&pointers, &[0; 12]), 0);
    }

    #[test]
    fn words_are_one_granule_where_no_part_of_them_is_accessed() {
        let mut all = Allocations::default();
        all.insert(0x1000, 0x100, "cudaMalloc");
        all.insert(0x2000, 0x100, "cudaMalloc");
        let pointers = Pointers {
            offsets: vec![0, 8, 16],
            words: vec![0b001, 0b100],
            parts: vec![0b010],
            ..Pointers::default()
        };
        let words = |values: [u64; 3]| {
            let parameters = values.map(u64::to_le_bytes).concat();
            all.unwritten(&pointers, &parameters)
        };
        assert_eq!(words([0x1000, 0x2000, 0x1080]), UNWRITTEN_WORDS);
        // The words, or some of them, lie where the parts do.
        assert_eq!(words([0x1000, 0x1000, 0x1080]), 0);
        assert_eq!(words([0x1000, 0x2000, 0x20ff]), 0);
        // Nobody knows where words or parts lie.
        assert_eq!(words([0x1000, 0x2000, 7]), 0);
        assert_eq!(words([0x1000, 0x3000, 0x1080]), 0);
    }

    #[test]
    fn variables_are_free_where_nothing_of_their_name_is_written() {
        let mut all = Allocations::default();
        all.insert(0x1000, 0x100, "cudaMalloc");
        all.insert(0x2000, 0x100, "variable table");
        let (table, count) = (1 << Pointers::FIRST_VARIABLE, 2 << Pointers::FIRST_VARIABLE);
        let unwritten = |all: &Allocations, writes: &[u64], value: u64| {
            let pointers = Pointers {
                offsets: vec![0],
                variables: vec!["table".to_owned(), "count".to_owned()],
                loads: vec![table, count],
                writes: writes.to_vec(),
                ..Pointers::default()
            };
            all.unwritten(&pointers, &value.to_le_bytes())
        };
        // Of a variable that is not known nothing is known.
        assert_eq!(unwritten(&all, &[1], 0x1000), 0b01);
        assert_eq!(unwritten(&all, &[1, count], 0x1000), 0);
        all.insert(0x3000, 4, "variable count");
        assert_eq!(unwritten(&all, &[1], 0x1000), 0b11);
        assert_eq!(unwritten(&all, &[1, count], 0x1000), 0b01);
        // The parameter is the variable's address.
        assert_eq!(unwritten(&all, &[1], 0x2010), 0b10);
        // Another module's variable of that name may be the one.
        all.insert(0x4000, 16, "variable table");
        assert_eq!(unwritten(&all, &[1], 0x4000), 0b10);
    }
}
