//! Texture fetches: a row of texels by all lanes at once, everything else lane by lane.

use std::sync::atomic::Ordering::Relaxed;

use events::{AccessKind, Executing};
use ptx::ast::Space;

use super::address::{fetch, lanes};
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code;
use crate::lanes::{Lanes, WARP};
use crate::texture::{Coordinate, Fetch, Texture, gather, sample, unfold, value};

impl<O: Listener + ?Sized> Machine<'_, O> {
    pub(crate) fn texture(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        op: &code::Texture,
        exec: u32,
    ) -> Result<(), Box<Fault>> {
        let consts = &self.setup.program.consts;
        let read = |row: &u32| warp.read(&split.frame, *row, consts);
        let (handles, layers) = (read(&op.texel.handle), op.texel.layer.as_ref().map(read));
        let at: Vec<_> = op.texel.at.iter().map(read).collect();
        let mut out = [[0; WARP]; 4];
        let plain = op.texels && op.gather.is_none() && layers.is_none();
        let row = self.row_of(&handles, exec).filter(|_| plain);
        let one_by_one = match (row, &at[..]) {
            (Some(texture), [at]) => {
                let threads = self.executing(cta, warp.index, split.pc, exec);
                out = self.row(threads, &texture, at)?;
                0
            }
            _ => exec,
        };
        for lane in lanes(one_by_one) {
            let handle = handles[lane];
            let Some(&(mut texture)) = self.setup.textures.get(handle) else {
                let kind = FaultKind::BadTexture { handle };
                return Err(Fault::new(lane as u32, kind));
            };
            let coordinate = |axis: usize| match at.get(axis) {
                Some(row) if op.texels => Coordinate::Texel(row[lane] as i32),
                Some(row) => Coordinate::Point(f32::from_bits(row[lane] as u32)),
                None => Coordinate::Missing,
            };
            let layer = layers.map(|row| row[lane] as u32);
            let mut place = Fetch {
                at: [0, 1, 2].map(coordinate),
                layer,
            };
            if op.cube {
                let along = |axis| match place.at[axis] {
                    Coordinate::Point(at) => at,
                    Coordinate::Texel(_) | Coordinate::Missing => 0.0,
                };
                (texture, place) = unfold(&texture, [0, 1, 2].map(along), layer);
            }
            let threads = self.executing(cta, warp.index, split.pc, 1 << lane);
            let load = |address| self.texel(threads, &texture, address);
            let texel = match op.gather {
                None => sample(&texture, &place, load)?,
                Some(channel) => gather(&texture, &place, channel, load)?,
            };
            for (row, bits) in out.iter_mut().zip(texel) {
                row[lane] = u64::from(bits);
            }
        }
        let mut rows = warp.rows(&split.frame, consts);
        for (&row, value) in op.rows.iter().zip(&out) {
            rows.put(row, exec, value);
        }
        if let Some(resident) = op.resident {
            rows.put_pred(resident, exec, exec);
        }
        Ok(())
    }

    /// The texture of all lanes, if it is one row of texels.
    fn row_of(&self, handles: &Lanes, exec: u32) -> Option<Texture> {
        let handle = handles[exec.trailing_zeros() as usize % WARP];
        let same = lanes(exec).all(|lane| handles[lane] == handle);
        let texture = self.setup.textures.get(handle).copied();
        texture.filter(|texture| same && texture.image.extent[1..] == [1, 1])
    }

    /// What lanes read of a row of texels, channel by channel: 0 outside of it.
    fn row(
        &mut self,
        threads: Executing,
        texture: &Texture,
        at: &Lanes,
    ) -> Result<[Lanes; 4], Box<Fault>> {
        let (bytes, image) = (texture.texel_bytes(), &texture.image);
        let mut out = [[0; WARP]; 4];
        let (mut inside, mut addresses) = (0, [0; WARP]);
        for lane in lanes(threads.lanes) {
            let texel = u32::try_from(at[lane] as i32).ok();
            if let Some(texel) = texel.filter(|&texel| texel < image.extent[0]) {
                let offset = u64::from(texel) * u64::from(bytes);
                addresses[lane] = image.address.wrapping_add(offset);
                inside |= 1 << lane;
            }
        }
        if inside == 0 {
            return Ok(out);
        }
        let (kind, space) = (AccessKind::Load, Space::Global);
        let threads = Executing {
            lanes: inside,
            ..threads
        };
        self.observer
            .access(threads, kind, space, &addresses, bytes);
        for lane in lanes(inside) {
            let raw = self.channels(lane as u32, texture, addresses[lane])?;
            let channels = out.iter_mut().zip(raw);
            for (row, raw) in channels.take(texture.channels.into()) {
                row[lane] = u64::from(value(texture, raw));
            }
        }
        Ok(out)
    }

    /// The channels of the texel at an address, as they lie in memory.
    fn texel(
        &mut self,
        threads: Executing,
        texture: &Texture,
        address: u64,
    ) -> Result<[u32; 4], Box<Fault>> {
        let lane = threads.lanes.trailing_zeros();
        let (space, addresses) = (Space::Global, [address; WARP]);
        let kind = AccessKind::Load;
        self.observer
            .access(threads, kind, space, &addresses, texture.texel_bytes());
        self.channels(lane, texture, address)
    }

    /// The same for one lane, without an observer.
    fn channels(
        &mut self,
        lane: u32,
        texture: &Texture,
        address: u64,
    ) -> Result<[u32; 4], Box<Fault>> {
        let bytes = texture.format.bytes();
        let window = self.locate(lane, address, texture.texel_bytes(), false)?;
        let words = self.memory.words(window.mapping);
        let mut channels = [0; 4];
        for (index, channel) in (0..).zip(channels.iter_mut().take(texture.channels.into())) {
            let offset = address - window.origin + u64::from(index * bytes);
            *channel = fetch(bytes, offset, |word| words[word].load(Relaxed)) as u32;
        }
        Ok(channels)
    }
}
