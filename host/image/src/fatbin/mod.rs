//! Fat binaries: what nvcc embeds for the driver to choose from, PTX and cubins.
//!
//! Source: observed with nvcc 12 and 13 (plain, LZ4 and zstd entries); nothing is documented.
//! Departure: payloads are read on demand, and whatever does not fit its container is an error,
//! never a panic: the bytes come from programs we did not make.

mod unpack;

use std::borrow::Cow;
use std::fmt;

/// First word of a wrapper, which points to a fat binary.
pub const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// First word of a fat binary.
pub const MAGIC: u32 = 0xba55_ed50;
/// Bytes of the header, before the first entry.
pub const HEADER_BYTES: usize = 16;
/// Bytes of an entry's header that are always there.
const ENTRY_BYTES: usize = 64;

/// Why bytes could not be read as a fat binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FatbinError {
    /// The first word is not [`MAGIC`].
    NotAFatbin,
    /// A header says more than there is: at this offset.
    Truncated(usize),
    /// A compressed payload does not unpack.
    Corrupt(&'static str),
    /// The payload is not text.
    NotText,
}

impl fmt::Display for FatbinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FatbinError::NotAFatbin => f.write_str("no fat binary: the magic number is missing"),
            FatbinError::Truncated(at) => write!(f, "fat binary truncated at byte {at}"),
            FatbinError::Corrupt(what) => write!(f, "a {what} payload does not unpack"),
            FatbinError::NotText => f.write_str("a PTX payload is not text"),
        }
    }
}

impl std::error::Error for FatbinError {}

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// PTX text.
    Ptx,
    /// A cubin: machine code for one architecture.
    Elf,
    /// Intermediate code for link-time optimisation.
    LtoIr,
    /// Something newer.
    Other(u16),
}

/// How a payload is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// As it is.
    Plain,
    /// One LZ4 block.
    Lz4,
    /// One zstd frame.
    Zstd,
}

/// One image of a fat binary.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// What it holds.
    pub kind: EntryKind,
    /// How it is packed.
    pub packing: Packing,
    /// Architecture: 90 for sm_90 or compute_90.
    pub sm: u32,
    /// PTX ISA version of a PTX entry, as (major, minor).
    pub version: (u16, u16),
    /// Flags as found; bits that we know decide `packing` and `specific`.
    pub flags: u64,
    /// Source file name that nvcc recorded, if any.
    pub identifier: Option<Cow<'a, str>>,
    /// Options for the assembler, such as `-g`.
    pub options: Option<Cow<'a, str>>,
    /// The payload as stored, without padding where its length is known.
    pub payload: &'a [u8],
    /// Length of the payload once unpacked; 0 for plain entries.
    pub unpacked_bytes: u64,
}

/// Flag bits of an entry.
pub mod flag {
    /// The code is for 64-bit addresses.
    pub const ADDRESS64: u64 = 0x1;
    /// Packed as an LZ4 block.
    pub const LZ4: u64 = 0x2000;
    /// Packed as a zstd frame.
    pub const ZSTD: u64 = 0x8000;
    /// For exactly one architecture, as sm_90a.
    pub const ARCHITECTURE: u64 = 0x10_0000;
    /// For one family of architectures, as sm_100f.
    pub const FAMILY: u64 = 0x20_0000;
}

impl Entry<'_> {
    /// Whether the code runs on one architecture or family only (`a` and `f` targets).
    pub fn specific(&self) -> bool {
        self.flags & (flag::ARCHITECTURE | flag::FAMILY) != 0
    }

    /// The payload, unpacked.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, FatbinError> {
        match self.packing {
            Packing::Plain => Ok(Cow::Borrowed(self.payload)),
            Packing::Lz4 => unpack::lz4(self.payload, self.unpacked_bytes).map(Cow::Owned),
            Packing::Zstd => unpack::zstd(self.payload, self.unpacked_bytes).map(Cow::Owned),
        }
    }

    /// The payload as text, without the zero bytes that end it.
    pub fn text(&self) -> Result<String, FatbinError> {
        let bytes = self.bytes()?;
        let end = bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(bytes.len());
        String::from_utf8(bytes[..end].to_vec()).map_err(|_| FatbinError::NotText)
    }
}

/// A fat binary: its entries in the order found.
#[derive(Clone, Debug)]
pub struct Fatbin<'a> {
    /// The images.
    pub entries: Vec<Entry<'a>>,
    /// Length of the whole, header included.
    pub bytes: usize,
}

impl<'a> Fatbin<'a> {
    /// Reads the fat binary that starts at the first byte.
    ///
    /// Bytes behind its end are ignored.
    pub fn read(bytes: &'a [u8]) -> Result<Fatbin<'a>, FatbinError> {
        let (header, size) = header(bytes)?;
        let end = usize::try_from(size)
            .ok()
            .and_then(|size| header.checked_add(size))
            .filter(|&end| end <= bytes.len())
            .ok_or(FatbinError::Truncated(bytes.len()))?;
        let mut entries = Vec::new();
        let mut at = header;
        while at < end {
            // Alignment may leave a few bytes that hold no header.
            if end - at < ENTRY_BYTES && bytes[at..end].iter().all(|&byte| byte == 0) {
                break;
            }
            let (entry, next) = entry(&bytes[..end], at)?;
            entries.push(entry);
            at = next;
        }
        Ok(Fatbin {
            entries,
            bytes: end,
        })
    }

    /// The PTX entry a device of architecture `sm` would compile: the newest not above it.
    ///
    /// `a` and `f` targets count only when they are for exactly this architecture.
    pub fn best_ptx(&self, sm: u32) -> Option<&Entry<'a>> {
        self.entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Ptx && entry.sm <= sm)
            .filter(|entry| !entry.specific() || entry.sm == sm)
            .max_by_key(|entry| (entry.sm, !entry.specific()))
    }

    /// The cubin a device of architecture `sm` would run: same major, newest minor not above.
    pub fn best_elf(&self, sm: u32) -> Option<&Entry<'a>> {
        self.entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Elf)
            .filter(|entry| entry.sm / 10 == sm / 10 && entry.sm <= sm)
            .filter(|entry| !entry.specific() || entry.sm == sm)
            .max_by_key(|entry| entry.sm)
    }
}

/// Length of the header and of all entries, from the first bytes of a fat binary.
///
/// For a reader that has only a pointer and must know how far it may go.
pub fn header(bytes: &[u8]) -> Result<(usize, u64), FatbinError> {
    if u32_at(bytes, 0)? != MAGIC {
        return Err(FatbinError::NotAFatbin);
    }
    let header = usize::from(u16_at(bytes, 6)?);
    if header < HEADER_BYTES {
        return Err(FatbinError::Truncated(6));
    }
    Ok((header, u64_at(bytes, 8)?))
}

/// Finds the fat binaries in a section such as `.nv_fatbin`.
///
/// What lies between them is skipped; one that is broken is reported and skipped too.
pub fn scan(section: &[u8]) -> Vec<Result<Fatbin<'_>, FatbinError>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + HEADER_BYTES <= section.len() {
        match Fatbin::read(&section[at..]) {
            Ok(fatbin) => {
                at += fatbin.bytes.next_multiple_of(8);
                found.push(Ok(fatbin));
            }
            Err(FatbinError::NotAFatbin) => at += 8,
            Err(why) => {
                at += 8;
                found.push(Err(why));
            }
        }
    }
    found
}

/// The 24 bytes of `.nvFatBinSegment` that a program hands to the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// 1: plain; 2: relocatable device code, linked.
    pub version: u32,
    /// Address of the fat binary.
    pub data: u64,
    /// Version 1: address of a file name or 0. Version 2: of a list of fat binaries, ended by 0.
    pub second: u64,
}

impl Wrapper {
    /// Bytes of a wrapper.
    pub const BYTES: usize = 24;

    /// Reads a wrapper, or `None` when the bytes are something else.
    pub fn read(bytes: &[u8]) -> Option<Wrapper> {
        if u32_at(bytes, 0).ok()? != WRAPPER_MAGIC {
            return None;
        }
        Some(Wrapper {
            version: u32_at(bytes, 4).ok()?,
            data: u64_at(bytes, 8).ok()?,
            second: u64_at(bytes, 16).ok()?,
        })
    }
}

fn entry(bytes: &[u8], at: usize) -> Result<(Entry<'_>, usize), FatbinError> {
    let truncated = FatbinError::Truncated(at);
    let head = bytes
        .get(at..)
        .filter(|rest| rest.len() >= ENTRY_BYTES)
        .ok_or(truncated.clone())?;
    let kind = match u16_at(head, 0)? {
        1 => EntryKind::Ptx,
        2 => EntryKind::Elf,
        8 => EntryKind::LtoIr,
        other => EntryKind::Other(other),
    };
    let header_bytes = u32_at(head, 4)? as usize;
    let padded = usize::try_from(u64_at(head, 8)?).map_err(|_| truncated.clone())?;
    let stored = u32_at(head, 16)? as usize;
    let next = header_bytes.checked_add(padded).ok_or(truncated.clone())?;
    if header_bytes < ENTRY_BYTES || next > head.len() {
        return Err(truncated);
    }
    let payload = &head[header_bytes..next];
    let flags = u64_at(head, 40)?;
    let packing = match flags {
        flags if flags & flag::ZSTD != 0 => Packing::Zstd,
        flags if flags & flag::LZ4 != 0 => Packing::Lz4,
        _ => Packing::Plain,
    };
    // A plain entry leaves the field of the packed length 0 and is as long as its padded length.
    let length = if packing == Packing::Plain || stored == 0 {
        padded
    } else {
        stored
    };
    let text = |offset: usize, length: usize| {
        let text = head[..header_bytes].get(offset..offset.checked_add(length)?)?;
        let end = text
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(text.len());
        (end > 0).then(|| String::from_utf8_lossy(&text[..end]))
    };
    let block = u32_at(head, 20)? as usize;
    let options = match (block, head.get(block..)) {
        (0, _) | (_, None) => None,
        (_, Some(block)) => match (u32_at(block, 0), u32_at(block, 4)) {
            (Ok(offset), Ok(length)) => text(offset as usize, length as usize),
            _ => None,
        },
    };
    let entry = Entry {
        kind,
        packing,
        sm: u32_at(head, 28)?,
        version: (u16_at(head, 26)?, u16_at(head, 24)?),
        flags,
        identifier: text(u32_at(head, 32)? as usize, u32_at(head, 36)? as usize),
        options,
        payload: payload.get(..length).ok_or(truncated)?,
        unpacked_bytes: u64_at(head, 56)?,
    };
    Ok((entry, at + next))
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], FatbinError> {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or(FatbinError::Truncated(at))
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, FatbinError> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, FatbinError> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, FatbinError> {
    array_at(bytes, at).map(u64::from_le_bytes)
}
