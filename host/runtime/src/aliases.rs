//! Memory that is mapped at several addresses (`cuMemMap`). Each byte is known by the address that was mapped first.

use std::collections::BTreeMap;

use events::{AccessKind, Bytes, Decides, Exchange, Executing, Misuse, Observer, Sources, Updated};
use ptx::ast::Space;

use crate::streams::CallRange;

/// Mappings begin and end at multiples of this.
const PAGE: u64 = 2 << 20;

/// Memory that is mapped at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub base: u64,
    /// How many bytes are mapped.
    pub bytes: u64,
    /// The number of the memory. Mappings of one memory share bytes where their offsets overlap.
    pub memory: u64,
    /// The offset of the first byte in that memory.
    pub offset: u64,
}

impl Mapping {
    fn has(&self, offset: u64) -> bool {
        offset >= self.offset && offset - self.offset < self.bytes
    }

    fn shares(&self, other: &Mapping) -> bool {
        self.has(other.offset) || other.has(self.offset)
    }
}

/// The mappings that the program has made.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    mappings: BTreeMap<u64, Mapping>,
    /// The addresses of each memory, in the order of mapping.
    of_memory: BTreeMap<u64, Vec<u64>>,
    /// Pairs of mappings that share bytes.
    pairs: usize,
}

impl Aliases {
    /// Whether some bytes have several addresses.
    pub(crate) fn exist(&self) -> bool {
        self.pairs > 0
    }

    pub(crate) fn map(&mut self, mapping: Mapping) {
        self.unmap(mapping.base, mapping.bytes);
        self.pairs += self.sharing(&mapping);
        let all = self.of_memory.entry(mapping.memory).or_default();
        all.push(mapping.base);
        self.mappings.insert(mapping.base, mapping);
    }

    /// Removes the mappings that begin in a range.
    pub(crate) fn unmap(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        while let Some((&at, _)) = self.mappings.range(base..end).next() {
            self.remove(at);
        }
    }

    fn remove(&mut self, base: u64) {
        let Some(gone) = self.mappings.remove(&base) else {
            return;
        };
        if let Some(all) = self.of_memory.get_mut(&gone.memory) {
            all.retain(|&at| at != base);
            if all.is_empty() {
                self.of_memory.remove(&gone.memory);
            }
        }
        self.pairs -= self.sharing(&gone);
    }

    /// The mapping at an address.
    pub(crate) fn at(&self, address: u64) -> Option<&Mapping> {
        let (base, of) = self.mappings.range(..=address).next_back()?;
        (address - base < of.bytes).then_some(of)
    }

    fn of(&self, memory: u64) -> impl Iterator<Item = &Mapping> {
        let bases = self.of_memory.get(&memory).into_iter().flatten();
        bases.filter_map(|base| self.mappings.get(base))
    }

    /// The number of mappings that share bytes with one.
    fn sharing(&self, one: &Mapping) -> usize {
        self.of(one.memory).filter(|of| of.shares(one)).count()
    }

    /// Of the addresses that the byte at an address has, the one that was mapped first.
    fn first(&self, address: u64) -> u64 {
        let Some(here) = self.at(address) else {
            return address;
        };
        let offset = here.offset + (address - here.base);
        let first = self.of(here.memory).find(|of| of.has(offset));
        first.map_or(address, |of| of.base + (offset - of.offset))
    }

    /// The ranges that a call on the host accesses, by their first addresses.
    pub fn touched(
        &self,
        ranges: impl IntoIterator<Item = CallRange>,
    ) -> impl Iterator<Item = CallRange> {
        ranges
            .into_iter()
            .flat_map(move |CallRange { base, bytes, call }| {
                let end = base.saturating_add(bytes);
                let mut at = base;
                std::iter::from_fn(move || {
                    let next = (at / PAGE + 1).saturating_mul(PAGE).min(end);
                    let piece = (at < next).then(|| CallRange {
                        base: self.first(at),
                        bytes: next - at,
                        call,
                    });
                    at = next;
                    piece
                })
            })
    }
}

/// Passes the events of a launch to an observer, with the first address of each byte.
pub struct AtFirst<'a> {
    /// The mappings.
    pub aliases: &'a Aliases,
    /// The observer.
    pub observer: &'a mut dyn Observer,
}

impl AtFirst<'_> {
    fn one(&self, space: Space, address: u64) -> u64 {
        match space {
            Space::Global => self.aliases.first(address),
            _ => address,
        }
    }

    fn all(&self, space: Space, addresses: &[u64; 32]) -> [u64; 32] {
        addresses.map(|address| self.one(space, address))
    }

    fn bytes(&self, of: Bytes) -> Bytes {
        let address = self.one(of.space, of.address);
        Bytes { address, ..of }
    }
}

macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => { $(
        fn $name(&mut self, $($argument: $type),*) {
            self.observer.$name($($argument),*);
        }
    )* };
}

impl Observer for AtFirst<'_> {
    fn follows_values(&self) -> bool {
        self.observer.follows_values()
    }

    fn follows(&self, space: Space) -> bool {
        self.observer.follows(space)
    }

    fn access(
        &mut self,
        threads: Executing,
        kind: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        let addresses = self.all(space, addresses);
        self.observer
            .access(threads, kind, space, &addresses, bytes);
    }

    fn exchanged(
        &mut self,
        threads: Executing,
        space: Space,
        addresses: &[u64; 32],
        exchange: Exchange<'_>,
    ) {
        let addresses = self.all(space, addresses);
        self.observer
            .exchanged(threads, space, &addresses, exchange);
    }

    fn updated(
        &mut self,
        threads: Executing,
        space: Space,
        addresses: &[u64; 32],
        updated: Updated<'_>,
    ) {
        let addresses = self.all(space, addresses);
        self.observer.updated(threads, space, &addresses, updated);
    }

    fn changes(&mut self, threads: Executing, lane: u32, space: Space, address: u64, before: u32) {
        let address = self.one(space, address);
        self.observer.changes(threads, lane, space, address, before);
    }

    fn copy(&mut self, threads: Executing, from: Bytes, to: Bytes, mbarrier: Option<u64>) {
        let (from, to) = (self.bytes(from), self.bytes(to));
        self.observer.copy(threads, from, to, mbarrier);
    }

    events::events_without_addresses!(forward);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Call;

    fn mapping(base: u64, pages: u64, offset: u64) -> Mapping {
        Mapping {
            base: base * PAGE,
            bytes: pages * PAGE,
            memory: 7,
            offset: offset * PAGE,
        }
    }

    #[test]
    fn the_address_that_was_mapped_first_stands_for_a_byte() {
        let mut aliases = Aliases::default();
        aliases.map(mapping(50, 2, 1));
        aliases.map(mapping(80, 1, 0));
        assert!(!aliases.exist(), "different bytes of one memory");
        aliases.map(mapping(20, 4, 0));
        assert!(aliases.exist());
        let first = |page: u64| (aliases.first(page * PAGE + 9) - 9) / PAGE;
        assert_eq!([20, 21, 22, 23].map(first), [80, 50, 51, 23]);
        assert_eq!([19, 24, 50, 80].map(first), [19, 24, 50, 80]);
        let touched = aliases.touched([CallRange {
            base: 20 * PAGE + 8,
            bytes: 2 * PAGE,
            call: Call::CopyTo,
        }]);
        let touched: Vec<_> = touched.map(|of| (of.base, of.bytes)).collect();
        assert_eq!(
            touched,
            [(80 * PAGE + 8, PAGE - 8), (50 * PAGE, PAGE), (51 * PAGE, 8)]
        );
        aliases.unmap(80 * PAGE, PAGE);
        assert!(aliases.exist());
        assert_eq!(aliases.first(20 * PAGE), 20 * PAGE);
        aliases.unmap(19 * PAGE, 5 * PAGE);
        assert!(!aliases.exist());
    }
}
