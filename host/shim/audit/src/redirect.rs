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

/// `DT_RELA`
const RELOCATIONS: i64 = 7;
/// `DT_RELASZ`
const RELOCATION_BYTES: i64 = 8;
/// `R_X86_64_GLOB_DAT`: the address of a symbol.
#[cfg(target_arch = "x86_64")]
const GLOBAL_DATA: u64 = 6;
/// `R_AARCH64_GLOB_DAT`
#[cfg(target_arch = "aarch64")]
const GLOBAL_DATA: u64 = 1025;

/// A relocation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

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

/// What an entry of a file's dynamic section says.
///
/// # Safety
/// As for [`find`].
unsafe fn value(map: &LinkMap, tag: i64) -> Option<usize> {
    let mut entry = map.dynamic;
    // SAFETY: a dynamic section ends with an entry of zeroes.
    unsafe {
        loop {
            match (*entry).tag {
                0 => return None,
                found if found == tag => return Some((*entry).value),
                _ => entry = entry.add(1),
            }
        }
    }
}

/// The address of a table: glibc has turned what the dynamic section holds into addresses; other loaders have not.
fn address(map: &LinkMap, value: usize) -> usize {
    match value < map.address {
        true => value + map.address,
        false => value,
    }
}

/// The address of an exported function.
///
/// # Safety
/// The map is that of a loaded file, which stays loaded.
pub(crate) unsafe fn find(map: &LinkMap, name: &CStr) -> Option<usize> {
    // SAFETY: the caller's condition.
    let table = |tag: i64| unsafe { value(map, tag) }.map(|value| address(map, value));
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

/// Calls a function for each place of a file that holds the address of something in another file, with its name.
///
/// # Safety
/// As for [`find`].
pub(crate) unsafe fn each_slot(map: &LinkMap, mut put: impl FnMut(&CStr, *mut usize)) {
    // SAFETY: the caller's condition; the tables are laid out as the format says.
    unsafe {
        let all = [STRINGS, SYMBOLS, RELOCATIONS, RELOCATION_BYTES].map(|tag| value(map, tag));
        let [Some(strings), Some(symbols), Some(relocations), Some(bytes)] = all else {
            return;
        };
        let strings: *const c_char = std::ptr::with_exposed_provenance(address(map, strings));
        let symbols: *const libc::Elf64_Sym =
            std::ptr::with_exposed_provenance(address(map, symbols));
        let first: *const Relocation = std::ptr::with_exposed_provenance(address(map, relocations));
        for index in 0..bytes / size_of::<Relocation>() {
            let Relocation { offset, info, .. } = *first.add(index);
            if info & 0xffff_ffff != GLOBAL_DATA {
                continue;
            }
            let symbol = &*symbols.add((info >> 32) as usize);
            if symbol.st_shndx == 0 {
                let name = CStr::from_ptr(strings.add(symbol.st_name as usize));
                put(
                    name,
                    std::ptr::with_exposed_provenance_mut(map.address + offset),
                );
            }
        }
    }
}

/// Overwrites a place that the loader has made read-only. A failure leaves it as it is.
pub(crate) fn overwrite(slot: *mut usize, with: usize) {
    // SAFETY: the slot lies in one page, which is the program's own; no other thread runs yet. Behind the call the page
    // is as the loader leaves such pages.
    unsafe {
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
        let start = slot.map_addr(|address| address & !(page - 1)).cast();
        if libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) == 0 {
            slot.write(with);
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
