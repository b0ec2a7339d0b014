//! Unpacking payloads without believing what their headers say about sizes.

use std::io::Read;

use super::FatbinError;

/// No image we know of is larger; a header that says so is broken.
const LIMIT: u64 = 1 << 32;

/// Unpacks one LZ4 block.
pub(super) fn lz4(packed: &[u8], bytes: u64) -> Result<Vec<u8>, FatbinError> {
    let corrupt = FatbinError::Corrupt("LZ4");
    // The format expands a byte to at most 255, so a larger claim is false.
    let most = packed.len().saturating_mul(255).saturating_add(64);
    let size = usize::try_from(bytes)
        .ok()
        .filter(|&size| size <= most)
        .ok_or(corrupt.clone())?;
    let mut unpacked = vec![0; size];
    match lz4_flex::block::decompress_into(packed, &mut unpacked) {
        Ok(length) if length == size => Ok(unpacked),
        _ => Err(corrupt),
    }
}

/// Unpacks one zstd frame.
pub(super) fn zstd(packed: &[u8], bytes: u64) -> Result<Vec<u8>, FatbinError> {
    let corrupt = FatbinError::Corrupt("zstd");
    // A block takes four bytes at least and gives 128 KiB at most, so a larger claim is false.
    let most = (packed.len() as u64).saturating_mul(1 << 15);
    if bytes > LIMIT.min(most) {
        return Err(corrupt);
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|_| corrupt.clone())?;
    let mut unpacked = Vec::new();
    // One byte more than promised is enough to see that the promise is broken.
    decoder
        .take(bytes + 1)
        .read_to_end(&mut unpacked)
        .map_err(|_| corrupt.clone())?;
    if unpacked.len() as u64 != bytes {
        return Err(corrupt);
    }
    Ok(unpacked)
}
