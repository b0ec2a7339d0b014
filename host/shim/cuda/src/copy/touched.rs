//! The memory that copies and fills touch, and for which of them the host waits.

use report::log::Call;
use runtime::streams::CallRange;

use super::{Copy, Fill, Side};
use crate::memory::MemoryKind;
use crate::state::State;

impl Copy {
    /// Calls `row` with the first byte and the length of each row of a side.
    fn rows(&self, side: &Side, mut row: impl FnMut(u64, u64)) {
        // Rows that lie close are one, and so are slices.
        let close = |step: u64, bytes: u64, count: u64| count == 1 || step == bytes;
        let (mut width, mut height, mut depth) = (self.width, self.height, self.depth);
        if close(side.pitch, width, height) {
            (width, height) = (width.saturating_mul(height), 1);
            if close(side.slice, width, depth) {
                (width, depth) = (width.saturating_mul(depth), 1);
            }
        }
        for slice in 0..depth {
            let lines = (0..height).filter_map(|line| side.at(line, slice));
            lines.for_each(|start| row(start, width));
        }
    }
}

impl Fill {
    /// The memory that it changes.
    pub(crate) fn touched(&self) -> Vec<CallRange> {
        let bytes = self.width * self.element;
        let range = |base, bytes| CallRange {
            base,
            bytes,
            call: Call::Fill,
        };
        match self.height == 1 || self.pitch == bytes {
            true => vec![range(self.address, bytes * self.height)],
            false => (0..self.height)
                .map(|row| range(self.address + row * self.pitch, bytes))
                .collect(),
        }
    }
}

impl State {
    /// The memory that a copy touches, but for the program's own that the driver does not know: the
    /// host may use that for something else before the copy is over.
    pub(crate) fn touched(&self, copy: &Copy) -> Vec<CallRange> {
        let mut ranges = Vec::new();
        for (side, call) in [(&copy.from, Call::CopyFrom), (&copy.to, Call::CopyTo)] {
            if self.knows(side) {
                copy.rows(side, |base, bytes| {
                    ranges.push(CallRange { base, bytes, call })
                });
            }
        }
        ranges
    }

    /// Whether an asynchronous copy is waited for even so: one to memory of the host that is not
    /// page-locked is, and one within the memory of the host (CUDA Runtime API, "API synchronization behavior").
    pub(crate) fn is_awaited(&self, copy: &Copy) -> bool {
        !self.knows(&copy.to) || (self.is_of_host(&copy.from) && self.is_of_host(&copy.to))
    }

    /// Whether the memory of a side is the host's, page-locked or not.
    fn is_of_host(&self, side: &Side) -> bool {
        match self.allocation(side.address) {
            Some((_, found)) => matches!(found.kind, MemoryKind::Host | MemoryKind::Registered),
            None => !self.knows(side),
        }
    }

    /// Whether both sides are in the device's own memory; the host does not wait for such a copy.
    pub(crate) fn is_within_device(&self, copy: &Copy) -> bool {
        let memory = self.engine.memory();
        memory.is_arena(copy.from.address) && memory.is_arena(copy.to.address)
    }

    /// Whether the driver knows the memory of a side: the device's, managed or page-locked.
    fn knows(&self, side: &Side) -> bool {
        let memory = self.engine.memory();
        memory.is_arena(side.address) || memory.containing(side.address).is_some()
    }
}
