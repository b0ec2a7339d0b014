//! Device memory that is reserved when it is first needed, and grows.

use driver::Device;

/// Memory that only some launches need: its address, and its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Area(pub(super) u64, u64);

impl Area {
    /// Makes sure that there are so many bytes, and gives the address.
    pub(super) fn reserve(&mut self, device: &mut dyn Device, bytes: u64) -> Result<u64, String> {
        if !self.has(bytes) {
            self.give_back(device);
            let at = device.alloc(bytes);
            *self = Self(
                at.map_err(|error| format!("no shadow memory: {error}"))?,
                bytes,
            );
        }
        Ok(self.0)
    }

    /// The same, all zero for the next launch.
    pub(super) fn reserve_zeroed(
        &mut self,
        device: &mut dyn Device,
        bytes: u64,
    ) -> Result<u64, String> {
        let at = self.reserve(device, bytes)?;
        let filled = device.wipe(at, bytes);
        filled.map_err(|error| error.to_string())?;
        Ok(at)
    }

    /// Gives it back.
    pub(super) fn give_back(&mut self, device: &mut dyn Device) {
        release(device, [self.0]);
        *self = Self::default();
    }

    /// How many bytes it has.
    pub(super) fn bytes(&self) -> u64 {
        self.1
    }

    /// Whether it has so many bytes already.
    pub(super) fn has(&self, bytes: u64) -> bool {
        self.1 >= bytes
    }
}

/// Gives memory back.
pub(super) fn release<const N: usize>(device: &mut dyn Device, addresses: [u64; N]) {
    for address in addresses.into_iter().filter(|&a| a != 0) {
        // A failing free costs memory, not correctness.
        let _ = device.free(address);
    }
}
