//! 64-bit FNV-1a: short, and stable over versions of the compiler, machines and runs, unlike the standard library's hash.
//!
//! For fingerprints, names of cached files and digests; it does not withstand inputs made to collide.

/// The hash of nothing.
pub const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds a byte to a hash; or a word, which is another hash than that of its bytes.
pub const fn add(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x0100_0000_01b3)
}

/// Adds bytes to a hash.
pub fn add_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| add(hash, u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of the algorithm's authors.
        assert_eq!(add_bytes(EMPTY, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(add_bytes(EMPTY, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(add_bytes(EMPTY, b"foobar"), 0x8594_4171_f739_67e8);
    }
}
