//! Finding a function of the interposer in its own tables: the loader's functions are not for an audit
//! library's use on other namespaces.

use std::ffi::{CStr, c_char};

use crate::LinkMap;

/// `DT_STRTAB`
const STRINGS: i64 = 5;
/// `DT_SYMTAB`
const SYMBOLS: i64 = 6;
/// `DT_GNU_HASH`
const GNU_HASH: i64 = 0x6fff_fef5;

/// An entry of a file's dynamic section.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dynamic {
    tag: i64,
    value: usize,
}

/// The beginning of a GNU hash table: buckets, the first symbol that has a hash, and the filter before them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Hash {
    buckets: u32,
    first: u32,
    filter_words: u32,
    filter_shift: u32,
}

/// The address of an exported function.
///
/// # Safety
/// The map is that of a loaded file, which stays loaded.
pub(crate) unsafe fn find(map: &LinkMap, name: &CStr) -> Option<usize> {
    // SAFETY: a dynamic section ends with an entry of zeroes. glibc has turned what it holds into addresses;
    // other loaders have not.
    let table = |tag: i64| unsafe {
        let mut entry = map.dynamic;
        loop {
            match (*entry).tag {
                0 => return None,
                found if found == tag => break,
                _ => entry = entry.add(1),
            }
        }
        let value = (*entry).value;
        Some(match value < map.address {
            true => value + map.address,
            false => value,
        })
    };
    let strings: *const c_char = std::ptr::with_exposed_provenance(table(STRINGS)?);
    let symbols: *const libc::Elf64_Sym = std::ptr::with_exposed_provenance(table(SYMBOLS)?);
    let head: *const Hash = std::ptr::with_exposed_provenance(table(GNU_HASH)?);
    let wanted = hash(name);
    // SAFETY: the tables are laid out as the format says: the head, 64-bit words of the filter, a bucket per
    // remainder, and a hash per symbol from the first one on. The last hash of a chain is odd.
    unsafe {
        let Hash {
            buckets,
            first,
            filter_words,
            ..
        } = *head;
        if buckets == 0 {
            return None;
        }
        let all: *const u32 = head.add(1).cast::<u64>().add(filter_words as usize).cast();
        let chain = all.add(buckets as usize);
        let mut index = *all.add((wanted % buckets) as usize);
        if index < first {
            return None;
        }
        loop {
            let other = *chain.add((index - first) as usize);
            let symbol = &*symbols.add(index as usize);
            let same = other | 1 == wanted | 1;
            if same && CStr::from_ptr(strings.add(symbol.st_name as usize)) == name {
                return Some(map.address + symbol.st_value as usize);
            }
            if other & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }
}

/// The hash of a name in such a table.
fn hash(name: &CStr) -> u32 {
    let bytes = name.to_bytes().iter();
    bytes.fold(5381, |hash, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hashed_as_linkers_do() {
        for (name, value) in [
            (c"", 0x1505),
            (c"printf", 0x156b_2bb8),
            (c"exit", 0x7c96_7e3f),
        ] {
            assert_eq!(hash(name), value, "{name:?}");
        }
    }
}
