//! Cells of shared memory: how many slots of them, and whose they are.

use driver::Device;
use shadow::layout::{CELL_BYTES, LaunchBlock};
use shadow::plan::{Shape, Widths};

use super::area::release;
use super::{Refused, ShadowMemory, allocate, cell_mask};
use crate::options::ShadowSize;

/// Slots for shared memory get this part of the cells that global memory has.
const SHARED_PART: u64 = 4;
/// As many cells, but no more, has shared memory at least in exact mode.
const MAX_SHARED_CELLS: u64 = 1 << 26;

/// The shared memory of a launch.
#[derive(Clone, Copy, Debug)]
pub struct SharedShape {
    /// Bytes of a CTA, from the beginning of its window.
    pub bytes: u64,
    /// log2 of the granule's bytes: 0, 1 or 2.
    pub granule_log2: u32,
    /// CTAs of a cluster reach each other's.
    pub clusters: bool,
}

/// How the cells of shared memory are divided.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slots {
    /// log2 of the cells in a slot.
    pub(super) index_bits: u32,
    /// log2 of the number of slots.
    pub(super) slot_bits: u32,
}

impl Slots {
    /// Completes the block of shared memory.
    pub(super) fn divide(
        self,
        block: LaunchBlock,
        shared: Option<SharedShape>,
        widths: &Widths,
        ctas: u64,
    ) -> LaunchBlock {
        match shared {
            // All of it is one slot.
            Some(SharedShape {
                clusters: true,
                granule_log2,
                ..
            }) => {
                let owner_shift = self.index_bits + granule_log2;
                let index_bits = self.index_bits + self.slot_bits;
                LaunchBlock {
                    window_bytes: ctas << owner_shift,
                    cell_mask: cell_mask(index_bits),
                    index_bits,
                    tag_shift: widths.cluster_shifts().tag,
                    slot_mask: 0,
                    row: CELL_BYTES << index_bits,
                    owner_shift: u64::from(owner_shift),
                    ..block
                }
            }
            _ => LaunchBlock {
                window_bytes: shared.map_or(0, |shared| shared.bytes),
                cell_mask: cell_mask(self.index_bits),
                index_bits: self.index_bits,
                tag_shift: widths.shared_shifts().tag,
                slot_mask: (1 << self.slot_bits) - 1,
                row: CELL_BYTES << (self.index_bits + self.slot_bits),
                over_bits: widths.over_bits(ctas <= 1 << self.slot_bits),
                ..block
            },
        }
    }
}

impl ShadowMemory {
    /// Makes sure that there are cells for shared memory: a slot per CTA, or as many as may be.
    pub(super) fn reserve_slots(
        &mut self,
        device: &mut dyn Device,
        shape: &Shape,
        shared: SharedShape,
    ) -> Result<Slots, Refused> {
        let granules = shared.bytes.max(1).div_ceil(1 << shared.granule_log2);
        let index_bits = granules.next_power_of_two().trailing_zeros();
        let part = (1 << self.index_bits) / SHARED_PART;
        let most = match self.size {
            ShadowSize::Exact => MAX_SHARED_CELLS.max(part),
            ShadowSize::Fraction(_) | ShadowSize::Bytes(_) => part,
        };
        let mut slot_bits = shape.ctas.max(1).next_power_of_two().trailing_zeros();
        slot_bits = slot_bits.min(most.max(1).ilog2().saturating_sub(index_bits));
        loop {
            let cells = 1 << (index_bits + slot_bits);
            if cells <= self.shared.1 {
                break;
            }
            if self.is_busy() {
                return Err(Refused::Busy);
            }
            self.release_slots(device);
            match allocate(device, cells) {
                Ok((at, witnesses)) => {
                    (self.shared, self.shared_witnesses) = ((at, cells), witnesses);
                    break;
                }
                Err(error) if slot_bits == 0 => {
                    let why = format!("no shadow memory for shared memory: {error}");
                    return Err(Refused::Cannot(why));
                }
                Err(_) => slot_bits -= 1,
            }
        }
        Ok(Slots {
            index_bits,
            slot_bits,
        })
    }

    pub(super) fn release_slots(&mut self, device: &mut dyn Device) {
        release(device, [self.shared.0, self.shared_witnesses]);
        (self.shared, self.shared_witnesses) = ((0, 0), 0);
    }
}
