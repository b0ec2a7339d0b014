//! What device memory holds: the pages that are not zero.

use std::fmt;
use std::io::{self, Read, Write};

use driver::DeviceError;
use report::hash;
use simt::{Device, Memory, State};

/// Bytes that are looked at together.
const PAGE: usize = 4096;

/// What memory holds, zeroes left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Address and length of each run of bytes, ascending.
    runs: Vec<(u64, usize)>,
    /// Their bytes, one after the other.
    bytes: Vec<u8>,
}

/// Memory holds more than is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// How many bytes may be kept.
    pub limit: u64,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "device memory holds more than {} bytes that are not zero, which is the limit of --record",
            self.limit
        )
    }
}

impl Contents {
    /// Takes what memory holds now. Room that `self` has is used again.
    pub(crate) fn refill(mut self, memory: &Memory, limit: u64) -> Result<Self, TooLarge> {
        self.runs.clear();
        self.bytes.clear();
        each(
            memory,
            |_| true,
            |address, page| {
                match self.runs.last_mut() {
                    Some((start, length)) if *start + *length as u64 == address => {
                        *length += page.len();
                    }
                    _ => self.runs.push((address, page.len())),
                }
                self.bytes.extend_from_slice(page);
                self.bytes.len() as u64 <= limit
            },
        );
        match self.len() <= limit {
            true => Ok(self),
            false => Err(TooLarge { limit }),
        }
    }

    /// A device in this state, with memory that holds this.
    pub(crate) fn restore(&self, state: &State) -> Result<Device, DeviceError> {
        let mut device = Device::restore(state)?;
        let memory = device.memory_mut();
        for (mut address, mut bytes) in self.runs() {
            // One run may lie in several allocations.
            while !bytes.is_empty() {
                let end = memory.containing(address).map(|(start, size)| start + size);
                let room = end.map_or(bytes.len() as u64, |end| end - address);
                let (now, later) = bytes.split_at(bytes.len().min(room as usize));
                memory.write(address, now)?;
                (address, bytes) = (address + now.len() as u64, later);
            }
        }
        Ok(device)
    }

    /// Bytes that are kept.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Whether all memory is zero.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The runs of bytes with their addresses.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = &self.bytes[..];
        self.runs.iter().map(move |&(address, length)| {
            let (run, behind) = rest.split_at(length);
            rest = behind;
            (address, run)
        })
    }

    /// Writes address, length and bytes of each run.
    pub(crate) fn write(&self, mut to: impl Write) -> io::Result<()> {
        for (address, bytes) in self.runs() {
            to.write_all(&address.to_le_bytes())?;
            to.write_all(&(bytes.len() as u64).to_le_bytes())?;
            to.write_all(bytes)?;
        }
        Ok(())
    }

    /// Reads what [`Self::write`] has written.
    pub(crate) fn read(mut from: impl Read) -> io::Result<Self> {
        let mut contents = Self::default();
        loop {
            let mut head = Vec::new();
            from.by_ref().take(16).read_to_end(&mut head)?;
            let (words, []) = head.as_chunks::<8>() else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let [address, length] = match words {
                [] => return Ok(contents),
                &[address, length] => [address, length].map(u64::from_le_bytes),
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            let read = from
                .by_ref()
                .take(length)
                .read_to_end(&mut contents.bytes)?;
            if read as u64 != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            contents.runs.push((address, read));
        }
    }
}

/// A digest of the memory that only the device reaches.
pub(crate) fn digest(memory: &Memory) -> u64 {
    let mut hash = hash::EMPTY;
    each(
        memory,
        |region| region.own,
        |address, page| {
            hash = hash::add(hash, address);
            for word in page.chunks(8) {
                let mut bytes = [0; 8];
                bytes[..word.len()].copy_from_slice(word);
                hash = hash::add(hash, u64::from_le_bytes(bytes)).rotate_left(5);
            }
            true
        },
    );
    hash
}

/// Calls `see` with the pages that are not zero of some regions, until it says that it has seen enough.
fn each(
    memory: &Memory,
    wanted: impl Fn(&simt::Region) -> bool,
    mut see: impl FnMut(u64, &[u8]) -> bool,
) {
    let mut page = [0; PAGE];
    for region in memory.regions().filter(wanted) {
        let mut done = 0;
        while done < region.bytes {
            let length = (region.bytes - done).min(PAGE as u64) as usize;
            let page = &mut page[..length];
            let address = region.address + done;
            // The region is there, and this long.
            let zero = memory.read(address, page).is_err() || page.iter().all(|byte| *byte == 0);
            if !zero && !see(address, page) {
                return;
            }
            done += length as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(runs: &[(u64, &[u8])]) -> Contents {
        Contents {
            runs: runs.iter().map(|(at, bytes)| (*at, bytes.len())).collect(),
            bytes: runs.iter().flat_map(|(_, bytes)| bytes.to_vec()).collect(),
        }
    }

    #[test]
    fn contents_are_read_as_they_were_written() {
        let all: [&[(u64, &[u8])]; 3] = [&[], &[(512, b"abc")], &[(0, b"abc"), (1 << 44, b"d")]];
        for runs in all {
            let written = contents(runs);
            let mut bytes = Vec::new();
            written.write(&mut bytes).unwrap();
            assert_eq!(Contents::read(&bytes[..]).unwrap(), written);
            for cut in (1..bytes.len()).filter(|cut| *cut != 19) {
                assert!(Contents::read(&bytes[..cut]).is_err(), "{cut}");
            }
        }
    }
}
