//! What can be told of a program before it is started: which CUDA libraries it wants, and what
//! device code it carries.
//!
//! Source: the ELF format through `object`; `.nv_fatbin` and `.nvFatBinSegment` as nvcc makes them.

use std::fmt;

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Object, ObjectSection, ObjectSymbol, SymbolFlags};

use crate::fatbin::{self, Fatbin, FatbinError, Wrapper};

/// Why a file could not be looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// Not an ELF file; a script, for example.
    NotElf,
    /// An ELF file of another class or byte order.
    NotElf64,
    /// An ELF file whose tables contradict its length.
    Broken(String),
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NotElf => f.write_str("not an ELF file"),
            ElfError::NotElf64 => f.write_str("not a 64-bit little-endian ELF file"),
            ElfError::Broken(why) => write!(f, "broken ELF file: {why}"),
        }
    }
}

impl std::error::Error for ElfError {}

/// How a file uses the CUDA runtime library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Not at all.
    None,
    /// Through `libcudart.so`, which can be replaced.
    Shared,
    /// Linked in, which is nvcc's default: NVIDIA's runtime talks to NVIDIA's driver only.
    Static,
}

/// A file that may be a CUDA program or library.
#[derive(Clone, Debug)]
pub struct Executable<'a> {
    /// `e_machine`: 62 is x86-64, 183 is AArch64, 190 is a cubin.
    pub machine: u16,
    /// Whether a dynamic loader starts it; without one nothing can be put before its libraries.
    pub dynamic: bool,
    /// DT_NEEDED, in order.
    pub needed: Vec<String>,
    /// DT_RPATH, which beats LD_LIBRARY_PATH.
    pub rpath: Option<String>,
    /// DT_RUNPATH, which does not.
    pub runpath: Option<String>,
    /// How the runtime library is used.
    pub runtime: Runtime,
    /// Whether the driver library is linked (or, without a dynamic section, asked for by name).
    pub driver: bool,
    /// Fat binaries of relocatable device code (`-rdc=true`): their PTX may need linking.
    pub relocatable: usize,
    /// The device code found, in the order of the file.
    pub fatbins: Vec<Result<Fatbin<'a>, FatbinError>>,
}

/// `e_machine` of a cubin.
pub const EM_CUDA: u16 = 190;

/// Looks into a file.
pub fn scan(bytes: &[u8]) -> Result<Executable<'_>, ElfError> {
    let file = open(bytes)?;
    let header = file.elf_header();
    let mut found = Executable {
        machine: header.e_machine(file.endian()),
        dynamic: false,
        needed: Vec::new(),
        rpath: None,
        runpath: None,
        runtime: Runtime::None,
        driver: false,
        relocatable: 0,
        fatbins: Vec::new(),
    };
    dynamic(&file, &mut found)?;
    let mut wrappers = false;
    for section in file.sections() {
        let data = section.data().unwrap_or(&[]);
        match section.name() {
            Ok(".nv_fatbin") => found.fatbins.extend(fatbin::scan(data)),
            // An ordinary build has a wrapper of version 2 as well, but an empty one.
            Ok("__nv_relfatbin") => {
                let relocatable = fatbin::scan(data);
                found.relocatable += relocatable.len();
                found.fatbins.extend(relocatable);
            }
            Ok(".nvFatBinSegment") => wrappers |= Wrapper::read(data).is_some(),
            _ => {}
        }
    }
    found.runtime = runtime(&file, &found, wrappers);
    Ok(found)
}

/// Names of the kernels in a cubin, mangled.
pub fn kernels(cubin: &[u8]) -> Result<Vec<String>, ElfError> {
    /// `STO_CUDA_ENTRY`: the symbol can be launched.
    const ENTRY: u8 = 0x10;
    let file = open(cubin)?;
    let mut names: Vec<String> = file
        .symbols()
        .filter(|symbol| match symbol.flags() {
            SymbolFlags::Elf { st_other, st_info } => {
                st_other & ENTRY != 0 && st_info & 0xf == elf::STT_FUNC
            }
            _ => false,
        })
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Bytes of code of each function in a cubin, by mangled name.
pub fn code_sizes(cubin: &[u8]) -> Result<Vec<(String, u64)>, ElfError> {
    let file = open(cubin)?;
    let sizes = file.sections().filter_map(|section| {
        let name = section.name().ok()?.strip_prefix(".text.")?;
        Some((name.to_owned(), section.size()))
    });
    Ok(sizes.collect())
}

/// Whether a kernel of this mangled name is one of NVIDIA's `libcudadevrt.a`, which `-rdc=true` links into programs.
///
/// nvcc writes the file that a name is local to into the name; this library is made from one file.
pub fn is_of_device_runtime(kernel: &str) -> bool {
    kernel.starts_with("__nv_static_") && kernel.contains("_cuda_device_runtime_")
}

/// The PTX text that ptxas leaves in a cubin built with line information, if it is there.
///
/// Its `.loc` lines are blanked, so reports on it know PTX lines only.
pub fn embedded_ptx(cubin: &[u8]) -> Option<String> {
    let file = open(cubin).ok()?;
    let section = file.section_by_name(".nv_debug_ptx_txt")?;
    // Lines end in a zero byte instead of a line feed.
    let text: Vec<u8> = section
        .data()
        .ok()?
        .iter()
        .map(|&byte| if byte == 0 { b'\n' } else { byte })
        .collect();
    String::from_utf8(text)
        .ok()
        .filter(|text| text.contains(".version"))
}

/// Length of the ELF file that starts with these 64 bytes, as far as its section table reaches.
///
/// For a reader that has only a pointer. The table ends the files that ptxas writes.
pub fn length(header: &[u8; 64]) -> Option<u64> {
    let table = u64::from_le_bytes(*header[40..].first_chunk()?);
    let entry = u16::from_le_bytes([header[58], header[59]]);
    let count = u16::from_le_bytes([header[60], header[61]]);
    let known = header.starts_with(&elf::ELFMAG) && table >= 64 && entry == 64;
    table
        .checked_add(64 * u64::from(count))
        .filter(|_| known && count > 0)
}

fn open(bytes: &[u8]) -> Result<ElfFile64<'_, object::Endianness>, ElfError> {
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(ElfError::NotElf);
    }
    if bytes.get(4..6) != Some(&[elf::ELFCLASS64, elf::ELFDATA2LSB]) {
        return Err(ElfError::NotElf64);
    }
    ElfFile64::parse(bytes).map_err(|why| ElfError::Broken(why.to_string()))
}

fn dynamic<'a>(
    file: &ElfFile64<'a, object::Endianness>,
    found: &mut Executable<'a>,
) -> Result<(), ElfError> {
    let broken = |why: object::read::Error| ElfError::Broken(why.to_string());
    let endian = file.endian();
    let sections = file.elf_section_table();
    let Some((entries, strings)) = sections.dynamic(endian, file.data()).map_err(broken)? else {
        return Ok(());
    };
    found.dynamic = true;
    let strings = sections
        .strings(endian, file.data(), strings)
        .map_err(broken)?;
    for entry in entries {
        let text = || {
            let bytes = entry.string(endian, strings).ok()?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        match u32::try_from(entry.d_tag(endian)) {
            Ok(elf::DT_NEEDED) => found.needed.extend(text()),
            Ok(elf::DT_RPATH) => found.rpath = text(),
            Ok(elf::DT_RUNPATH) => found.runpath = text(),
            Ok(elf::DT_NULL) => break,
            _ => {}
        }
    }
    found.driver = found
        .needed
        .iter()
        .any(|name| name.starts_with("libcuda.so"));
    Ok(())
}

/// Tells a shared from a static runtime.
///
/// Registration code (`.nvFatBinSegment`) calls `__cudaRegisterFatBinary`: if that comes from
/// another library the runtime is shared, else it must be inside.
fn runtime(
    file: &ElfFile64<'_, object::Endianness>,
    found: &Executable<'_>,
    wrappers: bool,
) -> Runtime {
    let is_runtime = |name: &str| {
        name.starts_with("__cudaRegisterFatBinary")
            || name == "cudaMalloc"
            || name == "cudaLaunchKernel"
    };
    let imported = file.dynamic_symbols().any(|symbol| {
        symbol.is_undefined()
            && symbol
                .name()
                .is_ok_and(|name| name.starts_with("cuda") || is_runtime(name))
    });
    let shared = found
        .needed
        .iter()
        .any(|name| name.starts_with("libcudart.so"));
    let inside = || {
        file.symbols()
            .any(|symbol| symbol.is_definition() && symbol.name().is_ok_and(is_runtime))
    };
    match () {
        () if imported || shared => Runtime::Shared,
        () if wrappers || inside() => Runtime::Static,
        () => Runtime::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_sections_are_found_and_garbage_is_not_believed() {
        let header = size_of::<elf::FileHeader64<object::Endianness>>();
        let mut file = vec![0u8; header + 3 * 64];
        let names = file.len();
        file.extend(b"\0.text.k\0");
        let length = file.len() - names;
        file[..4].copy_from_slice(&elf::ELFMAG);
        file[4..7].copy_from_slice(&[elf::ELFCLASS64, elf::ELFDATA2LSB, elf::EV_CURRENT]);
        let mut put = |at: usize, value: u64, bytes: usize| {
            file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        };
        put(0x12, u64::from(EM_CUDA), 2);
        put(0x28, header as u64, 8);
        put(0x3a, 64, 2);
        put(0x3c, 3, 2);
        put(0x3e, 2, 2);
        // The first section is none.
        put(header + 64, 1, 4);
        put(header + 64 + 0x20, 384, 8);
        put(header + 2 * 64 + 0x04, u64::from(elf::SHT_STRTAB), 4);
        put(header + 2 * 64 + 0x18, names as u64, 8);
        put(header + 2 * 64 + 0x20, length as u64, 8);
        assert_eq!(code_sizes(&file), Ok(vec![("k".to_owned(), 384)]));
        for end in 0..file.len() {
            drop(code_sizes(&file[..end]));
        }
        file[16..].fill(0xff);
        assert!(code_sizes(&file).map_or(true, |sizes| sizes.is_empty()));
    }

    #[test]
    fn kernels_of_the_device_runtime_are_known_by_their_file() {
        let of_runtime =
            "__nv_static_52__f4510a67_22_cuda_device_runtime_cu_3ecce0c0_2317245_cpy_kernel32";
        assert!(is_of_device_runtime(of_runtime));
        let of_program = "__nv_static_37__3e1b7a05_7_main_cu_0d9c2b11_2317245__Z1kPi";
        for name in [
            of_program,
            "_Z19cuda_device_runtimePi",
            "cuda_device_runtime_",
        ] {
            assert!(!is_of_device_runtime(name), "{name}");
        }
    }
}
