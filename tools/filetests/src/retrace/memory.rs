//! Global and shared memory, byte by byte.

use hashbrown::HashMap;

use shadow::hb::{Location, Span};

use super::{Objection, Result};

/// What is known of memory.
pub(super) struct Memory {
    bytes: HashMap<Location, u8>,
    /// What the words of shared memory hold before something is stored there.
    shared_content: u32,
}

/// The place so many bytes behind another.
pub(super) fn behind(location: Location, bytes: u64) -> Location {
    match location {
        Location::Global(address) => Location::Global(address + bytes),
        Location::Shared { cta, offset } => Location::Shared {
            cta,
            offset: offset + bytes as u32,
        },
    }
}

impl Memory {
    pub(super) fn new(shared_content: u32) -> Self {
        Self {
            bytes: HashMap::default(),
            shared_content,
        }
    }

    /// Global memory from an address on.
    pub(super) fn fill(&mut self, address: u64, bytes: &[u8]) {
        for (behind, &byte) in bytes.iter().enumerate() {
            let location = Location::Global(address + behind as u64);
            self.bytes.insert(location, byte);
        }
    }

    fn byte(&self, location: Location) -> Result<u8> {
        match (self.bytes.get(&location), location) {
            (Some(&byte), _) => Ok(byte),
            (None, Location::Shared { offset, .. }) => {
                Ok(self.shared_content.to_le_bytes()[offset as usize % 4])
            }
            (None, Location::Global(address)) => {
                Err(Objection::unknown(format!("memory at {address:#x}")))
            }
        }
    }

    /// A value of up to 8 bytes.
    pub(super) fn load(&self, location: Location, bytes: u32) -> Result<u64> {
        let mut value = 0;
        for number in (0..u64::from(bytes)).rev() {
            value = value << 8 | u64::from(self.byte(behind(location, number))?);
        }
        Ok(value)
    }

    /// Likewise.
    pub(super) fn store(&mut self, location: Location, bytes: u32, value: u64) {
        for number in 0..u64::from(bytes) {
            let byte = (value >> (8 * number)) as u8;
            self.bytes.insert(behind(location, number), byte);
        }
    }

    /// Copies bytes from one place to another, zeros behind the first so many.
    pub(super) fn copy(&mut self, from: Span, to: Span) -> Result<()> {
        for number in 0..to.bytes {
            let byte = match number < from.bytes {
                true => self.byte(behind(from.location, number.into()))?,
                false => 0,
            };
            self.bytes.insert(behind(to.location, number.into()), byte);
        }
        Ok(())
    }
}
