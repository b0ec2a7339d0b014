//! Loads and stores through surface objects, lane by lane.

use events::{AccessKind, Bytes};
use ptx::ast::Space;

use super::address::{Group, Pattern, each_aligned, lanes};
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::outside::Reach;
use super::warp::{Split, Warp};
use crate::code::{self, Beyond};
use crate::lanes::WARP;
use crate::texture::Surface;

impl<O: Listener + ?Sized> Machine<'_, O> {
    pub(crate) fn surface(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        op: &code::Surface,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let consts = &self.setup.program.consts;
        let read = |row: &u32| warp.read(&split.frame, *row, consts);
        let (handles, layers) = (read(&op.texel.handle), op.texel.layer.as_ref().map(read));
        let places: Vec<_> = op.texel.at.iter().map(read).collect();
        let mut values: Vec<_> = match op.store {
            true => op.rows.iter().map(read).collect(),
            false => vec![[0; WARP]; op.rows.len()],
        };
        let bytes = op.bytes * op.rows.len() as u32;
        let (mut at, mut mask) = ([0; WARP], 0);
        for lane in lanes(exec) {
            let handle = handles[lane];
            let Some(surface) = self.setup.textures.surface(handle) else {
                let kind = FaultKind::BadSurface { handle };
                return Err(Fault::new(lane as u32, kind));
            };
            let place = [0, 1, 2].map(|axis| match (axis, &layers) {
                (2, Some(layers)) => layers[lane] as i32,
                _ => places.get(axis).map_or(0, |row| row[lane] as i32),
            });
            match address(surface, place, bytes, op.beyond) {
                Some(address) => {
                    at[lane] = address;
                    mask |= 1 << lane;
                }
                None if op.beyond == Beyond::Zero => {}
                None => {
                    let kind = FaultKind::BeyondSurface { place };
                    return Err(Fault::new(lane as u32, kind));
                }
            }
        }
        if mask != 0 {
            let group = Group {
                space: Space::Global,
                mask,
                pattern: Pattern::Any,
            };
            let reach = Reach {
                group: &group,
                at: &at,
                bytes: bytes.into(),
                kind: match op.store {
                    true => AccessKind::Store,
                    false => AccessKind::Load,
                },
            };
            self.surface_bytes(cta, warp, split, op, reach, &mut values)?;
        }
        if !op.store {
            let mut rows = warp.rows(&split.frame, &self.setup.program.consts);
            for (&row, value) in op.rows.iter().zip(&values) {
                rows.put(row, exec, value);
            }
        }
        Ok(())
    }

    /// Makes the accesses of the lanes that are inside.
    fn surface_bytes(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        op: &code::Surface,
        reach: Reach<'_>,
        values: &mut [[u64; WARP]],
    ) -> Result<(), Box<Fault>> {
        let Reach {
            group, at, kind, ..
        } = reach;
        let (space, mask) = (group.space, group.mask);
        let bytes = op.bytes * values.len() as u32;
        each_aligned(at, mask, bytes)?;
        let threads = self.executing(cta, warp.index, split.pc, mask);
        self.observer.access(threads, kind, space, at, bytes);
        for lane in lanes(mask) {
            let spot = self.spot(cta, warp, lane, group.bytes(lane, at, bytes), op.store)?;
            for (step, value) in (0..).step_by(op.bytes as usize).zip(values.iter_mut()) {
                let spot = spot.plus(step);
                let element = Bytes {
                    space,
                    address: at[lane] + step,
                    count: op.bytes,
                };
                if op.store {
                    let new = value[lane] & (u64::MAX >> (64 - 8 * op.bytes));
                    self.changes(threads, warp, lane, element, spot, new);
                    self.poke(warp, spot, op.bytes, new);
                } else {
                    value[lane] = self.peek(warp, spot, op.bytes);
                }
            }
        }
        self.accessed(cta, space);
        Ok(())
    }
}

/// Where `bytes` bytes at x (in bytes), y and z of a surface are; none outside.
fn address(surface: &Surface, at: [i32; 3], bytes: u32, beyond: Beyond) -> Option<u64> {
    let image = &surface.image;
    let row = u64::from(image.extent[0]) * u64::from(surface.texel_bytes);
    let last = [
        row.checked_sub(u64::from(bytes))?,
        u64::from(image.extent[1]).checked_sub(1)?,
        u64::from(image.extent[2]).checked_sub(1)?,
    ];
    let mut inside = [0; 3];
    for (axis, (&at, &last)) in at.iter().zip(&last).enumerate() {
        inside[axis] = match (u64::try_from(at), beyond) {
            (Ok(at), _) if at <= last => at,
            (Ok(_), Beyond::Clamp) => last,
            (Err(_), Beyond::Clamp) => 0,
            _ => return None,
        };
    }
    let [x, y, z] = inside;
    Some(image.address + x + y * image.pitch + z * image.slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texture::Image;

    #[test]
    fn beyond_the_edge() {
        let image = Image {
            address: 1000,
            extent: [10, 4, 3],
            pitch: 40,
            slice: 160,
        };
        let surface = Surface {
            image,
            texel_bytes: 4,
        };
        let of = |at, beyond| address(&surface, at, 4, beyond);
        assert_eq!(of([36, 3, 2], Beyond::Trap), Some(1000 + 36 + 120 + 320));
        for at in [[40, 0, 0], [37, 0, 0], [0, 4, 0], [0, 0, 3], [-4, 0, 0]] {
            assert_eq!(of(at, Beyond::Trap), None);
            assert_eq!(of(at, Beyond::Zero), None);
        }
        assert_eq!(of([99, 9, -1], Beyond::Clamp), Some(1000 + 36 + 120));
        assert_eq!(address(&surface, [0; 3], 64, Beyond::Clamp), None);
    }
}
