//! What one checked launch needs of a device, simulated or real.

use std::fmt;

/// Memory that the runtime may use on a device.
///
/// Addresses are device addresses. A transfer is complete when the call returns.
pub trait Device {
    /// Reserves zeroed memory, aligned to 256 bytes.
    fn alloc(&mut self, bytes: u64) -> Result<u64, DeviceError>;
    /// Likewise, of memory that can still be read when the device has failed.
    fn alloc_visible(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        self.alloc(bytes)
    }
    /// Releases what [`Device::alloc`] or [`Device::alloc_visible`] returned.
    fn free(&mut self, address: u64) -> Result<(), DeviceError>;
    /// Copies from the device.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError>;
    /// Copies to the device.
    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), DeviceError>;
    /// Sets `bytes` bytes to `value`.
    fn fill(&mut self, address: u64, value: u8, bytes: u64) -> Result<(), DeviceError>;
    /// Copies what the next launch finds from memory of [`Device::alloc_visible`]. Where launches are
    /// queued, the copy is queued before that launch, and `from` has to stay until it has ended.
    fn send(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), DeviceError> {
        self.copy(to, from, bytes)
    }
    /// Copies what the last launch has left to memory of [`Device::alloc_visible`], likewise.
    fn fetch(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), DeviceError> {
        self.copy(to, from, bytes)
    }
    /// Sets bytes that the next launch finds to zero, likewise.
    fn wipe(&mut self, address: u64, bytes: u64) -> Result<(), DeviceError> {
        self.fill(address, 0, bytes)
    }
    /// Copies within the device's memory, at once.
    fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), DeviceError> {
        let size = usize::try_from(bytes).map_err(|_| DeviceError::OutOfMemory { bytes })?;
        let mut copied = vec![0; size];
        self.read(from, &mut copied)?;
        self.write(to, &copied)
    }
    /// Bytes of device memory, used or not.
    fn total_memory(&self) -> u64;
    /// Those that nobody uses yet, as far as that is known.
    fn free_memory(&self) -> u64 {
        self.total_memory()
    }
    /// Tells its memory from that of other devices and contexts.
    fn memory_id(&self) -> u64 {
        0
    }
    /// What a person calls the device.
    fn name(&self) -> String;
}

/// Why a device did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// So many bytes were not to be had.
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// The range is not wholly inside one allocation.
    InvalidRange {
        /// Where the range starts.
        address: u64,
        /// Its length.
        bytes: u64,
    },
    /// The device said something else.
    Other(String),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::OutOfMemory { bytes } => {
                write!(f, "the device has no {bytes} bytes of memory left")
            }
            DeviceError::InvalidRange { address, bytes } => {
                write!(f, "{bytes} bytes at {address:#x} are not device memory")
            }
            DeviceError::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for DeviceError {}
