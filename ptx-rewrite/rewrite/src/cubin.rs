//! Code sizes out of a cubin: a little-endian ELF64 file with one `.text.NAME` section per kernel.
//!
//! Whatever does not lie within the file is passed over.

/// Bytes of code per function, by mangled name.
pub(crate) fn code_sizes(file: &[u8]) -> Vec<(String, u64)> {
    let number = |at: usize, bytes: usize| {
        let field = file.get(at..at.checked_add(bytes)?)?;
        Some(
            field
                .iter()
                .rev()
                .fold(0u64, |all, &byte| all << 8 | u64::from(byte)),
        )
    };
    let field = |at: usize, bytes: usize| usize::try_from(number(at, bytes)?).ok();
    let headers = || {
        let (table, size, count) = (field(0x28, 8)?, field(0x3a, 2)?, field(0x3c, 2)?);
        let names = table.checked_add(field(0x3e, 2)?.checked_mul(size)?)?;
        let names = field(names.checked_add(0x18)?, 8)?;
        Some((table, size, count, names))
    };
    let Some((table, size, count, names)) = headers() else {
        return Vec::new();
    };
    let section = |index: usize| {
        let header = table.checked_add(index.checked_mul(size)?)?;
        let name = file.get(names.checked_add(field(header, 4)?)?..)?;
        let name = name.split(|&byte| byte == 0).next()?;
        let name = std::str::from_utf8(name).ok()?.strip_prefix(".text.")?;
        Some((name.to_owned(), number(header.checked_add(0x20)?, 8)?))
    };
    (0..count).filter_map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_sections_are_found_and_garbage_is_not_believed() {
        let mut file = vec![0u8; 64 + 3 * 64];
        let names = file.len();
        file.extend(b"\0.text.k\0.data\0");
        let mut put = |at: usize, value: u64, bytes: usize| {
            file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        };
        put(0x28, 64, 8);
        put(0x3a, 64, 2);
        put(0x3c, 3, 2);
        put(0x3e, 2, 2);
        put(64, 1, 4);
        put(64 + 0x20, 384, 8);
        put(128, 9, 4);
        put(192 + 0x18, names as u64, 8);
        assert_eq!(code_sizes(&file), [("k".to_owned(), 384)]);
        for end in 0..file.len() {
            code_sizes(&file[..end]);
        }
        file.fill(0xff);
        assert!(code_sizes(&file).is_empty());
    }
}
