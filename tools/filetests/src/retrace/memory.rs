//! Global and shared memory, byte by byte.

use hashbrown::HashMap;

use shadow::hb::{Place, Span};

use super::{Objection, Result};

/// What is known of memory.
pub(super) struct Memory {
    bytes: HashMap<Place, u8>,
    /// What the words of shared memory hold before something is stored there.
    shared_content: u32,
}

/// The place so many bytes behind another.
pub(super) fn behind(place: Place, bytes: u64) -> Place {
    match place {
        Place::Global(address) => Place::Global(address + bytes),
        Place::Shared { cta, offset } => Place::Shared {
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
            let place = Place::Global(address + behind as u64);
            self.bytes.insert(place, byte);
        }
    }

    fn byte(&self, place: Place) -> Result<u8> {
        match (self.bytes.get(&place), place) {
            (Some(&byte), _) => Ok(byte),
            (None, Place::Shared { offset, .. }) => {
                Ok(self.shared_content.to_le_bytes()[offset as usize % 4])
            }
            (None, Place::Global(address)) => {
                Err(Objection::unknown(format!("memory at {address:#x}")))
            }
        }
    }

    /// A value of up to 8 bytes.
    pub(super) fn load(&self, place: Place, bytes: u32) -> Result<u64> {
        let mut value = 0;
        for number in (0..u64::from(bytes)).rev() {
            value = value << 8 | u64::from(self.byte(behind(place, number))?);
        }
        Ok(value)
    }

    /// Likewise.
    pub(super) fn store(&mut self, place: Place, bytes: u32, value: u64) {
        for number in 0..u64::from(bytes) {
            let byte = (value >> (8 * number)) as u8;
            self.bytes.insert(behind(place, number), byte);
        }
    }

    /// Copies bytes from one place to another, zeros behind the first so many.
    pub(super) fn copy(&mut self, from: Span, to: Span) -> Result<()> {
        for number in 0..to.bytes {
            let byte = match number < from.bytes {
                true => self.byte(behind(from.place, number.into()))?,
                false => 0,
            };
            self.bytes.insert(behind(to.place, number.into()), byte);
        }
        Ok(())
    }
}
