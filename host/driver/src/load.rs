//! What a program hands to a load: PTX text, a fat binary, or a wrapper around one.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::Arc;

use image::elf;
use image::fatbin::{self, Fatbin, Wrapper};

use crate::pointer::Ptr;
use crate::sys::CUresult;

/// In the names of the kernels of NVIDIA's `libcudadevrt.a`.
const DEVICE_RUNTIME: &str = "cuda_device_runtime";

/// What was found in an image.
#[derive(Clone, Debug)]
pub enum Image {
    /// A text of its own.
    Text(Source),
    /// A module out of a fat binary or a cubin.
    Module(Source),
    /// Translation units of relocatable device code, which may refer to each other.
    Units(Vec<Source>),
}

/// Why there is no PTX.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// What a driver that needs PTX answers.
    pub code: CUresult,
    /// Why, in one line.
    pub why: String,
    /// The mangled names of the image's kernels, as far as they are known.
    pub kernels: Vec<String>,
}

impl Refusal {
    /// A refusal that names no kernels.
    pub fn new(code: CUresult, why: impl Into<String>) -> Refusal {
        Refusal {
            code,
            why: why.into(),
            kernels: Vec::new(),
        }
    }
}

/// How many kernels a message names.
const NAMED: usize = 5;

impl fmt::Display for Refusal {
    /// The reason and the first kernels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        let Some((first, others)) = self.kernels.split_first() else {
            return Ok(());
        };
        write!(f, "; kernels in it: {first}")?;
        for name in others.iter().take(NAMED - 1) {
            write!(f, ", {name}")?;
        }
        match self.kernels.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// PTX text and where it came from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text.
    pub text: Arc<str>,
    /// What a person calls it.
    pub origin: String,
    /// The architectures that it is for and of machine code beside it, where a device would run that and it is for
    /// a newer one: it may have been compiled otherwise.
    pub outdone: Option<(u32, u32)>,
}

/// Whether there is machine code in an image that a device of architecture `sm` runs.
pub fn runs_on(image: Ptr<c_void>, sm: u32) -> bool {
    let mut bytes = image.cast::<u8>();
    if let Ok(true) = starts_with(bytes, &fatbin::WRAPPER_MAGIC.to_le_bytes()) {
        // Of relocatable device code, that is what has been linked.
        match bytes.at(8).cast::<*mut u8>().follow() {
            Ok(inner) => bytes = inner,
            Err(_) => return false,
        }
    }
    if !matches!(starts_with(bytes, &fatbin::MAGIC.to_le_bytes()), Ok(true)) {
        return false;
    }
    whole_fatbin(bytes).is_ok_and(|whole| bytes_run_on(&whole, sm))
}

/// The same of an image whose length is known, such as a file.
pub fn bytes_run_on(bytes: &[u8], sm: u32) -> bool {
    Fatbin::read(bytes).is_ok_and(|fatbin| fatbin.best_elf(sm).is_some())
}

/// Reads an image of unknown kind for a device of architecture `sm`, such as 90.
///
/// # Errors
/// When there is no PTX in it, or it makes no sense.
pub fn read(image: Ptr<c_void>, sm: u32) -> Result<Image, Refusal> {
    let bytes = image.cast::<u8>();
    if image.is_null() {
        return Err(refuse(
            CUresult::INVALID_VALUE,
            "the image is a null pointer",
        ));
    }
    if starts_with(bytes, &fatbin::WRAPPER_MAGIC.to_le_bytes())? {
        return wrapper(bytes, sm);
    }
    if starts_with(bytes, &fatbin::MAGIC.to_le_bytes())? {
        return fat(bytes, sm).map(Image::Module);
    }
    if starts_with(bytes, b"\x7fELF")? {
        let unknown = || {
            refuse(
                CUresult::NO_BINARY_FOR_GPU,
                "the image is a cubin without PTX",
            )
        };
        let mut head = [0; 64];
        bytes.read(&mut head).map_err(|_| unknown())?;
        if u16::from_le_bytes([head[18], head[19]]) != elf::EM_CUDA {
            return Err(unknown());
        }
        let length = elf::length(&head).and_then(|length| usize::try_from(length).ok());
        let cubin = bytes
            .bytes(length.ok_or_else(unknown)?)
            .map_err(|_| unknown())?;
        return from_cubin(&cubin, "cubin").map(Image::Module);
    }
    let text = bytes
        .cast::<c_char>()
        .text()
        .map_err(|code| refuse(code, "no text"))?;
    from_text(text, "ptx text").map(Image::Text)
}

/// Reads an image whose length is known, such as a file.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8], origin: &str, sm: u32) -> Result<Image, Refusal> {
    if bytes.starts_with(&fatbin::MAGIC.to_le_bytes()) {
        return from_fatbin(bytes, sm).map(Image::Module);
    }
    if bytes.starts_with(b"\x7fELF") {
        return Err(Refusal {
            code: CUresult::NO_BINARY_FOR_GPU,
            why: format!("{origin} is a cubin, and PTX is needed"),
            kernels: elf::kernels(bytes).unwrap_or_default(),
        });
    }
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    from_text(text, origin).map(Image::Text)
}

/// A copy of an image of any kind, which a load takes in place of the image. Of relocatable device code it is what has
/// been linked.
pub fn copy(image: Ptr<c_void>) -> Option<Vec<u8>> {
    let mut bytes = image.cast::<u8>();
    if let Ok(true) = starts_with(bytes, &fatbin::WRAPPER_MAGIC.to_le_bytes()) {
        bytes = bytes.at(8).cast::<*mut u8>().follow().ok()?;
    }
    if let Ok(true) = starts_with(bytes, &fatbin::MAGIC.to_le_bytes()) {
        return whole_fatbin(bytes).ok();
    }
    let mut copy = contents(image)?;
    // The end of a text.
    copy.push(0);
    Some(copy)
}

/// The bytes of a cubin or of a text, which say themselves where they end.
pub fn contents(image: Ptr<c_void>) -> Option<Vec<u8>> {
    let bytes = image.cast::<u8>();
    if !starts_with(bytes, b"\x7fELF").ok()? {
        let fat = [fatbin::WRAPPER_MAGIC, fatbin::MAGIC];
        let fat = fat.map(|magic| starts_with(bytes, &magic.to_le_bytes()));
        return match fat {
            [Ok(false), Ok(false)] => Some(image.cast::<c_char>().text().ok()?.into_bytes()),
            _ => None,
        };
    }
    let mut head = [0; 64];
    bytes.read(&mut head).ok()?;
    bytes.bytes(usize::try_from(elf::length(&head)?).ok()?).ok()
}

/// The same of an image whose length is known, such as a file.
pub fn contents_of(bytes: &[u8]) -> Option<&[u8]> {
    let end = match bytes.starts_with(b"\x7fELF") {
        true => usize::try_from(elf::length(bytes.first_chunk()?)?).ok()?,
        false => bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(bytes.len()),
    };
    bytes.get(..end)
}

fn from_text(text: String, origin: &str) -> Result<Source, Refusal> {
    if !text.contains(".version") {
        return Err(refuse(
            CUresult::INVALID_IMAGE,
            "the image is neither PTX nor a fat binary",
        ));
    }
    Ok(Source {
        text: text.into(),
        origin: origin.to_owned(),
        outdone: None,
    })
}

/// A cubin can run if it was built with line information: then it carries its PTX.
fn from_cubin(cubin: &[u8], origin: &str) -> Result<Source, Refusal> {
    let Some(text) = elf::embedded_ptx(cubin) else {
        return Err(Refusal {
            code: CUresult::NO_BINARY_FOR_GPU,
            why: format!("{origin}: a cubin without PTX"),
            kernels: elf::kernels(cubin).unwrap_or_default(),
        });
    };
    Ok(Source {
        text: text.into(),
        origin: origin.to_owned(),
        outdone: None,
    })
}

fn wrapper(bytes: Ptr<u8>, sm: u32) -> Result<Image, Refusal> {
    let short = |code| refuse(code, "the wrapper cannot be read");
    let wrapper = Wrapper::read(&bytes.bytes(Wrapper::BYTES).map_err(short)?);
    let wrapper = wrapper.ok_or_else(|| short(CUresult::INVALID_IMAGE))?;
    // The two addresses in a wrapper stand at bytes 8 and 16.
    let inner = |at| bytes.at(at).cast::<*mut u8>().follow().map_err(short);
    if wrapper.version != 2 {
        return fat(inner(8)?, sm).map(Image::Module);
    }
    // Relocatable device code: one fat binary for each translation unit, which may refer to
    // each other.
    let list = inner(16)?.cast::<*mut u8>();
    let mut sources = Vec::new();
    for index in 0.. {
        let unit = match list.is_null() {
            true => break,
            false => list.at(index).follow().map_err(short)?,
        };
        if unit.is_null() {
            break;
        }
        match fat(unit, sm) {
            Ok(source) => sources.push(source),
            // NVIDIA's library for kernels that launch kernels is machine code only. What needs it
            // is found out when the others are linked.
            Err(refusal) if is_device_runtime(&refusal) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(Image::Units(sources))
}

fn is_device_runtime(refusal: &Refusal) -> bool {
    let mut kernels = refusal.kernels.iter();
    kernels.any(|kernel| kernel.contains(DEVICE_RUNTIME))
}

/// Whether the bytes of a file are NVIDIA's `libcudadevrt.a`.
pub fn is_device_runtime_library(bytes: &[u8]) -> bool {
    let name = DEVICE_RUNTIME.as_bytes();
    bytes.starts_with(b"!<arch>\n") && bytes.windows(name.len()).any(|window| window == name)
}

fn fat(bytes: Ptr<u8>, sm: u32) -> Result<Source, Refusal> {
    from_fatbin(&whole_fatbin(bytes)?, sm)
}

/// A fat binary, which says itself how long it is.
fn whole_fatbin(bytes: Ptr<u8>) -> Result<Vec<u8>, Refusal> {
    let broken = |code| refuse(code, "the fat binary cannot be read");
    let head = bytes.bytes(fatbin::HEADER_BYTES).map_err(broken)?;
    let (header, size) = fatbin::header(&head).map_err(|why| invalid(&why))?;
    let all = usize::try_from(size)
        .ok()
        .and_then(|size| size.checked_add(header));
    let all = all.ok_or_else(|| broken(CUresult::INVALID_IMAGE))?;
    bytes.bytes(all).map_err(broken)
}

fn from_fatbin(bytes: &[u8], sm: u32) -> Result<Source, Refusal> {
    let fatbin = Fatbin::read(bytes).map_err(|why| invalid(&why))?;
    let Some(entry) = fatbin.best_ptx(sm) else {
        let cubins = fatbin
            .entries
            .iter()
            .filter(|entry| entry.kind == fatbin::EntryKind::Elf);
        for entry in fatbin.best_elf(sm).into_iter().chain(cubins) {
            let found = entry
                .bytes()
                .ok()
                .and_then(|cubin| elf::embedded_ptx(&cubin));
            if let Some(text) = found {
                let origin = format!("embedded sm_{} code", entry.sm);
                return Ok(Source {
                    text: text.into(),
                    origin,
                    outdone: None,
                });
            }
        }
        return Err(no_ptx(&fatbin, sm));
    };
    let origin = match entry.identifier.as_deref() {
        Some(name) => name.to_owned(),
        None => format!("embedded compute_{} code", entry.sm),
    };
    let text = entry.text().map_err(|why| invalid(&why))?;
    let code = fatbin.best_elf(sm).map(|code| (entry.sm, code.sm));
    Ok(Source {
        text: text.into(),
        origin,
        outdone: code.filter(|(ptx, code)| code > ptx),
    })
}

/// Says what is there instead of PTX, so that the user knows which kernels cannot be checked.
fn no_ptx(fatbin: &Fatbin<'_>, sm: u32) -> Refusal {
    let mut entries = fatbin.entries.iter();
    let code = fatbin.best_elf(sm);
    let code = code.or_else(|| entries.find(|entry| entry.kind == fatbin::EntryKind::Elf));
    let kernels = code.and_then(|entry| elf::kernels(&entry.bytes().ok()?).ok());
    let found = fatbin.entries.iter().map(|entry| match entry.kind {
        fatbin::EntryKind::Ptx => format!("compute_{}", entry.sm),
        _ => format!("sm_{}", entry.sm),
    });
    let found = found.collect::<Vec<_>>().join(", ");
    Refusal {
        code: CUresult::NO_BINARY_FOR_GPU,
        why: format!(
            "no PTX for sm_{sm} in the fat binary (found: {found}); build with \
             -gencode arch=compute_{sm},code=compute_{sm}"
        ),
        kernels: kernels.unwrap_or_default(),
    }
}

fn starts_with(bytes: Ptr<u8>, magic: &[u8]) -> Result<bool, Refusal> {
    for (index, expected) in magic.iter().enumerate() {
        // One at a time: a text may be shorter than the magic number.
        let byte = bytes
            .at(index)
            .get()
            .map_err(|code| refuse(code, "no image"))?;
        if byte != *expected {
            return Ok(false);
        }
    }
    Ok(true)
}

fn refuse(code: CUresult, why: &str) -> Refusal {
    Refusal::new(code, why)
}

fn invalid(why: &dyn fmt::Display) -> Refusal {
    Refusal::new(CUresult::INVALID_IMAGE, why.to_string())
}
