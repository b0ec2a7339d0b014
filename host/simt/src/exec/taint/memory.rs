//! What the bytes of memory depend on.

use std::collections::HashMap;

use events::Sources;

use crate::code::Rmw;
use crate::exec::atomic::Spot;

/// The launch has written the byte.
const WRITTEN: u8 = 1;
const INPUT: u8 = 2;
const SCHEDULE: u8 = 4;
/// Bytes of global memory that are kept together.
const PAGE: u64 = 4096;

/// What global memory and the shared memory of the resident CTAs depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memories {
    /// By slot, and by byte.
    shared: Vec<Vec<u8>>,
    /// By mapping and page.
    global: HashMap<(u32, u64), Vec<u8>>,
    /// What all bytes of a region depend on: where a store went that depends on more than arguments.
    regions: HashMap<(u32, u64), u8>,
    /// The same of a slot's shared memory.
    slots: Vec<u8>,
    /// What results of barriers of the CTA in a slot depend on.
    barriers: Vec<u8>,
    /// The operation of all atomics so far.
    computes: Option<Rmw>,
    /// Something that the launch has written depends on the order of its threads.
    ordered: bool,
}

impl Memories {
    /// A CTA begins in a slot.
    pub(crate) fn start(&mut self, slot: usize) {
        for per_slot in [&mut self.slots, &mut self.barriers] {
            if let Some(known) = per_slot.get_mut(slot) {
                *known = 0;
            }
        }
        if let Some(bytes) = self.shared.get_mut(slot) {
            bytes.clear();
        }
    }

    /// What bytes depend on, in a region that begins at an address.
    pub(crate) fn read(&self, spot: Spot, region: u64, bytes: u64) -> Sources {
        let mut all = match spot {
            Spot::Shared { slot, .. } => self.slots.get(slot).copied().unwrap_or(0),
            Spot::Global { mapping, .. } => *self.regions.get(&(mapping, region)).unwrap_or(&0),
            Spot::Local { .. } => 0,
        };
        let (memory, start) = self.bytes(spot);
        for at in start..start + bytes {
            let byte = memory(at);
            all |= byte & (INPUT | SCHEDULE);
            if byte & WRITTEN == 0 {
                all |= INPUT;
            }
        }
        sources(all)
    }

    /// Whether the launch has written one of some bytes.
    pub(crate) fn is_written(&self, spot: Spot, bytes: u64) -> bool {
        let (memory, start) = self.bytes(spot);
        (start..start + bytes).any(|at| memory(at) & WRITTEN != 0)
    }

    fn bytes(&self, spot: Spot) -> (Box<dyn Fn(u64) -> u8 + '_>, u64) {
        match spot {
            Spot::Shared { slot, offset } => {
                let bytes = self.shared.get(slot).map_or(&[][..], |bytes| &bytes[..]);
                let at = move |at: u64| bytes.get(at as usize).copied().unwrap_or(0);
                (Box::new(at), offset)
            }
            Spot::Global { mapping, offset } => {
                let at = move |at: u64| {
                    let page = self.global.get(&(mapping, at / PAGE));
                    page.map_or(0, |page| page[(at % PAGE) as usize])
                };
                (Box::new(at), offset)
            }
            Spot::Local { offset, .. } => (Box::new(|_| WRITTEN), offset),
        }
    }

    /// What any memory may depend on, be it in an image.
    pub(crate) fn anywhere(&self) -> Sources {
        Sources {
            input: true,
            schedule: self.ordered,
        }
    }

    /// Something is written to an image.
    pub(crate) fn write_image(&mut self, on: Sources) {
        self.ordered |= on.schedule;
    }

    /// Bytes are written.
    pub(crate) fn write(&mut self, spot: Spot, bytes: u64, on: Sources) {
        let new = WRITTEN | flags(on);
        self.ordered |= on.schedule;
        match spot {
            Spot::Shared { slot, offset } => {
                if self.shared.len() <= slot {
                    self.shared.resize(slot + 1, Vec::new());
                }
                let memory = &mut self.shared[slot];
                let (start, end) = (offset as usize, (offset + bytes) as usize);
                if memory.len() < end {
                    memory.resize(end, 0);
                }
                memory[start..end].fill(new);
            }
            Spot::Global { mapping, offset } => {
                let (mut at, end) = (offset, offset + bytes);
                while at < end {
                    let page = self.global.entry((mapping, at / PAGE));
                    let page = page.or_insert_with(|| vec![0; PAGE as usize]);
                    let inside = at % PAGE;
                    let count = (PAGE - inside).min(end - at);
                    page[inside as usize..(inside + count) as usize].fill(new);
                    at += count;
                }
            }
            Spot::Local { .. } => {}
        }
    }

    /// Something is written that depends on more than arguments, and so does where, or whether.
    pub(crate) fn write_anywhere(&mut self, spot: Spot, region: u64, on: Sources) {
        self.ordered |= on.schedule;
        match spot {
            Spot::Shared { slot, .. } => per_slot(&mut self.slots, slot, on),
            Spot::Global { mapping, .. } => {
                *self.regions.entry((mapping, region)).or_default() |= flags(on);
            }
            Spot::Local { .. } => {}
        }
    }

    /// An atomic is made: whether what it leaves depends on which came first.
    pub(crate) fn depends_on_order(&mut self, op: Rmw) -> bool {
        let commutes = matches!(
            op,
            Rmw::And
                | Rmw::Or
                | Rmw::Xor
                | Rmw::Add
                | Rmw::MinU
                | Rmw::MaxU
                | Rmw::MinS
                | Rmw::MaxS
        );
        !commutes || *self.computes.get_or_insert(op) != op
    }

    /// A thread of the CTA in a slot brings a predicate to a barrier.
    pub(crate) fn bring(&mut self, slot: usize, on: Sources) {
        per_slot(&mut self.barriers, slot, on);
    }

    /// What the result of a barrier of the CTA in a slot depends on.
    pub(crate) fn brought(&self, slot: usize) -> Sources {
        sources(self.barriers.get(slot).copied().unwrap_or(0))
    }
}

fn per_slot(all: &mut Vec<u8>, slot: usize, on: Sources) {
    if all.len() <= slot {
        all.resize(slot + 1, 0);
    }
    all[slot] |= flags(on);
}

fn flags(on: Sources) -> u8 {
    (INPUT * u8::from(on.input)) | (SCHEDULE * u8::from(on.schedule))
}

fn sources(flags: u8) -> Sources {
    Sources {
        input: flags & INPUT != 0,
        schedule: flags & SCHEDULE != 0,
    }
}
