//! How a launch uses the cells: widths of the identity fields, tag and index.

use crate::layout::{
    GENERATION_MASK, GENERATION_SHIFT, LANE_MASK, WARP_EPOCH_SHIFT, WARP_SHIFT, WHO_BITS,
};
use crate::rule::Shifts;

/// What decides the widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// CTAs in the grid.
    pub ctas: u64,
    /// Bytes of the checked window.
    pub window_bytes: u64,
    /// log2 of the number of cells.
    pub index_bits: u32,
    /// log2 of the granule's bytes: 0, 1 or 2.
    pub granule_log2: u32,
    /// The kernel executes barriers of the whole CTA.
    pub barriers: bool,
    /// The kernel executes barriers of the whole warp.
    pub warp_barriers: bool,
    /// The kernel executes barriers of the whole grid, and so of the CTA.
    pub grid_barriers: bool,
    /// Bits of the tag that cells of shared memory need, where CTAs reach each other's: those of a
    /// CTA id beyond the number of slots. Otherwise 0.
    pub shared_tag: u32,
}

/// The widths of a launch, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Grid epoch.
    pub grid: u32,
    /// Which granule of those that share a cell.
    pub tag: u32,
    /// CTA id.
    pub cta: u32,
    /// Barrier epoch.
    pub barrier: u32,
    /// Warp epoch.
    pub warp: u32,
}

/// The identity fields do not fit a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Bits that tag and CTA id need, and the fewest useful epochs.
    pub needed: u32,
}

impl core::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "the grid and the memory need {} identity bits of the {WHO_BITS} in a shadow cell; a larger shadow (--shadow-mem) needs fewer",
            self.needed
        )
    }
}

/// Fewest epoch bits worth having: below, a kernel with a loop would soon be undecided.
const MIN_EPOCH: u32 = 4;
/// More warp epochs than this take bits from the barrier epoch.
const MAX_WARP_EPOCH: u32 = 10;
/// More grid epochs than this take bits from the others, which start anew with each.
const MAX_GRID_EPOCH: u32 = 12;

/// Chooses the widths: what the ids need, the rest for epochs.
pub fn widths(shape: &Shape) -> Result<Widths, TooLarge> {
    let granules = shape.window_bytes.max(1).div_ceil(1 << shape.granule_log2);
    let tag = bits(granules).saturating_sub(shape.index_bits);
    let tag = tag.max(shape.shared_tag);
    let cta = bits(shape.ctas);
    let levels = [shape.barriers, shape.warp_barriers, shape.grid_barriers];
    let needed = tag + cta + levels.map(u32::from).iter().sum::<u32>() * MIN_EPOCH;
    let Some(spare) = WHO_BITS.checked_sub(needed) else {
        return Err(TooLarge { needed });
    };
    let grid = match shape.grid_barriers {
        true => (MIN_EPOCH + spare / 2).min(MAX_GRID_EPOCH),
        false => 0,
    };
    let spare = spare - grid.saturating_sub(MIN_EPOCH);
    let (barrier, warp) = match (shape.barriers, shape.warp_barriers) {
        (false, false) => (0, 0),
        (true, false) => (MIN_EPOCH + spare, 0),
        (false, true) => (0, MIN_EPOCH + spare),
        (true, true) => {
            let warp = (MIN_EPOCH + spare / 2).min(MAX_WARP_EPOCH);
            (2 * MIN_EPOCH + spare - warp, warp)
        }
    };
    Ok(Widths {
        grid,
        tag,
        cta,
        barrier,
        warp,
    })
}

/// Bits to tell `count` things apart.
fn bits(count: u64) -> u32 {
    count.max(1).next_power_of_two().trailing_zeros()
}

impl Widths {
    /// Where the fields begin.
    pub fn shifts(&self) -> Shifts {
        let barrier = WARP_EPOCH_SHIFT + self.warp;
        let cta = barrier + self.barrier;
        Shifts {
            barrier,
            cta,
            tag: if self.tag == 0 {
                64 - self.grid
            } else {
                cta + self.cta
            },
            grid: 64 - self.grid,
            in_turn: false,
        }
    }

    /// Likewise for shared memory that other CTAs can access: whose it is, is the tag.
    pub fn cluster_shifts(&self) -> Shifts {
        Shifts {
            in_turn: true,
            ..self.shifts()
        }
    }

    /// Likewise for shared memory, which only its CTA can access.
    pub fn shared_shifts(&self) -> Shifts {
        let shifts = self.shifts();
        Shifts {
            tag: shifts.cta,
            in_turn: true,
            ..shifts
        }
    }

    /// Where the CTA of a cell is the thread's own, the differences between the cell and the thread's
    /// identity with which the cell is of an older barrier epoch: the least, and how many there are. None
    /// in a launch with grid epochs, which may be lost.
    pub fn over(&self) -> (u64, u64) {
        let shifts = self.shifts();
        let from = crate::rule::up(1, shifts.barrier);
        let end = crate::rule::up(1, shifts.cta);
        match self.grid {
            0 => (from, end.wrapping_sub(from)),
            _ => (from, 0),
        }
    }

    /// A mask of cells of shared memory. A cell that differs from a thread's identity in one of these bits no
    /// longer matters to that thread: it is of an older launch or of an older barrier epoch. The bits of the barrier
    /// epoch are in the mask only if each CTA has a slot of its own, since the cell may be another CTA's elsewhere,
    /// and only in a launch without grid epochs, which a cell may lack.
    pub fn over_bits(&self, slot_of_its_own: bool) -> u64 {
        match self.grid == 0 && slot_of_its_own {
            true => GENERATION_MASK | !crate::rule::besides_barrier(&self.shifts()),
            false => GENERATION_MASK,
        }
    }
}

/// The identity of a thread: what a cell stores of it besides classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// 1 to 255.
    pub generation: u32,
    /// Grid barriers passed.
    pub grid_epoch: u64,
    /// Which granule.
    pub tag: u64,
    /// Linear CTA id.
    pub cta: u64,
    /// CTA barriers passed.
    pub barrier_epoch: u64,
    /// Warp barriers passed since.
    pub warp_epoch: u64,
    /// Warp in its CTA, 0 to 31.
    pub warp: u32,
    /// Lane in its warp, 0 to 31.
    pub lane: u32,
}

impl Identity {
    /// Packs the identity; values beyond their width must not occur.
    pub fn pack(&self, widths: &Widths) -> u64 {
        let shifts = widths.shifts();
        let tag = if widths.tag == 0 {
            0
        } else {
            self.tag << shifts.tag
        };
        tag | self.grid_epoch.checked_shl(shifts.grid).unwrap_or(0)
            | self.cta.checked_shl(shifts.cta).unwrap_or(0)
            | self.barrier_epoch.checked_shl(shifts.barrier).unwrap_or(0)
            | self.warp_epoch << WARP_EPOCH_SHIFT
            | u64::from(self.generation) << GENERATION_SHIFT
            | u64::from(self.warp) << WARP_SHIFT
            | u64::from(self.lane)
    }

    /// Reads the identity fields of a cell.
    pub fn unpack(cell: u64, widths: &Widths) -> Self {
        let shifts = widths.shifts();
        let field = |shift: u32, width: u32| match width {
            0 => 0,
            _ => cell >> shift & (!0 >> (64 - width)),
        };
        Self {
            generation: (cell >> GENERATION_SHIFT & 255) as u32,
            grid_epoch: field(shifts.grid, widths.grid),
            tag: field(shifts.tag.min(63), widths.tag),
            cta: field(shifts.cta, widths.cta),
            barrier_epoch: field(shifts.barrier, widths.barrier),
            warp_epoch: field(WARP_EPOCH_SHIFT, widths.warp),
            warp: (cell >> WARP_SHIFT & 31) as u32,
            lane: (cell & LANE_MASK) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        ctas: 1,
        window_bytes: 1 << 34,
        index_bits: 28,
        granule_log2: 2,
        barriers: true,
        warp_barriers: true,
        grid_barriers: false,
        shared_tag: 0,
    };

    #[test]
    fn every_shape_uses_at_most_all_bits_and_never_cuts_an_id() {
        for log_ctas in 0..31 {
            for [barriers, warp_barriers, grid_barriers] in [
                [false, false, false],
                [true, false, false],
                [false, true, false],
                [true, true, false],
                [true, false, true],
                [true, true, true],
            ] {
                for granule_log2 in 0..3 {
                    let ctas = 1u64 << log_ctas;
                    let shape = Shape {
                        ctas,
                        barriers,
                        warp_barriers,
                        grid_barriers,
                        granule_log2,
                        ..SHAPE
                    };
                    let Ok(w) = widths(&shape) else { continue };
                    assert!(w.grid + w.tag + w.cta + w.barrier + w.warp <= WHO_BITS);
                    assert!(ctas <= 1 << w.cta);
                    assert_eq!(w.barrier > 0, barriers);
                    assert_eq!(w.warp > 0, warp_barriers);
                    assert_eq!(w.grid > 0, grid_barriers);
                }
            }
        }
        assert!(
            widths(&Shape {
                ctas: 1 << 30,
                ..SHAPE
            })
            .is_err()
        );
        assert_eq!(
            widths(&SHAPE).unwrap(),
            Widths {
                grid: 0,
                tag: 4,
                cta: 0,
                barrier: 19,
                warp: 10
            }
        );
    }

    #[test]
    fn identities_survive_packing() {
        let w = widths(&Shape {
            ctas: 1000,
            grid_barriers: true,
            index_bits: 30,
            ..SHAPE
        })
        .unwrap();
        let id = Identity {
            generation: 7,
            grid_epoch: 5,
            tag: 3,
            cta: 999,
            barrier_epoch: 5,
            warp_epoch: 3,
            warp: 31,
            lane: 17,
        };
        assert_eq!(Identity::unpack(id.pack(&w), &w), id);
    }
}
