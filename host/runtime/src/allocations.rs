//! Which device memory belongs to what.

use std::collections::BTreeMap;

use crate::log::Allocation;

/// Live allocations by base address.
#[derive(Clone, Debug, Default)]
pub struct Allocations {
    live: BTreeMap<u64, Allocation>,
    made: u64,
}

/// Memory further apart than this is not covered by one window.
const GAP: u64 = 1 << 40;

impl Allocations {
    /// Remembers an allocation made by `api`.
    pub fn insert(&mut self, base: u64, bytes: u64, api: &str) {
        self.made += 1;
        let allocation = Allocation {
            id: self.made,
            base,
            bytes,
            api: api.to_owned(),
        };
        self.live.insert(base, allocation);
    }

    /// Forgets the allocation at `base`.
    pub fn remove(&mut self, base: u64) {
        self.live.remove(&base);
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

    /// Bytes of everything that is live.
    pub fn bytes(&self) -> u64 {
        self.live.values().map(|allocation| allocation.bytes).sum()
    }

    /// Base and length of the smallest range that covers everything, or, where host and device
    /// memory lie far apart, the part with most bytes.
    pub fn window(&self) -> (u64, u64) {
        let mut groups: Vec<(u64, u64, u64)> = Vec::new();
        for allocation in self.live.values() {
            let end = allocation.base + allocation.bytes;
            match groups.last_mut() {
                Some((_, last, bytes)) if allocation.base.saturating_sub(*last) < GAP => {
                    *last = end.max(*last);
                    *bytes += allocation.bytes;
                }
                _ => groups.push((allocation.base, end, allocation.bytes)),
            }
        }
        let largest = groups.into_iter().max_by_key(|(_, _, bytes)| *bytes);
        largest.map_or((0, 0), |(base, end, _)| (base & !255, end - (base & !255)))
    }
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
        assert_eq!((all.window(), all.bytes()), ((0x1000, 0x1020), 48));
        all.insert(1 << 46, 1 << 20, "cudaHostAlloc");
        assert_eq!(all.window(), (1 << 46, 1 << 20));
        all.remove(0x2000);
        assert!(all.find(0x2000).is_none());
    }
}
