//! What a program hands to a load: PTX text, a fat binary, or a wrapper around one.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use driver::elf;
use driver::fatbin::{self, Fatbin, Wrapper};
use driver::sys::{CUresult, jit_option};
use ptx::ast::{Item, Span};
use simt::ModuleId;

use crate::engine::{Refusal, unresolved};
use crate::pointer::Ptr;

/// The architecture the device compiles for.
const SM: u32 = 90;

/// PTX that belongs to a module.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) source: Source,
    /// Its identity on the device; none between the reset of a context and the next use.
    pub(crate) loaded: Option<ModuleId>,
}

/// PTX text and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) text: Arc<str>,
    pub(crate) origin: String,
}

/// Reads an image of unknown kind.
pub(crate) fn read(image: Ptr<c_void>) -> Result<Vec<Source>, Refusal> {
    let bytes = image.cast::<u8>();
    if image.is_null() {
        return Err(refuse(
            CUresult::INVALID_VALUE,
            "the image is a null pointer",
        ));
    }
    if starts_with(bytes, &fatbin::WRAPPER_MAGIC.to_le_bytes())? {
        return wrapper(bytes);
    }
    if starts_with(bytes, &fatbin::MAGIC.to_le_bytes())? {
        return fat(bytes).map(|source| vec![source]);
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
        return from_cubin(&cubin, "cubin").map(|source| vec![source]);
    }
    let text = bytes
        .cast::<c_char>()
        .text()
        .map_err(|code| refuse(code, "no text"))?;
    from_text(text, "ptx text").map(|source| vec![source])
}

/// Reads an image whose length is known, such as a file.
pub(crate) fn read_bytes(bytes: &[u8], origin: &str) -> Result<Vec<Source>, Refusal> {
    if bytes.starts_with(&fatbin::MAGIC.to_le_bytes()) {
        return from_fatbin(bytes).map(|source| vec![source]);
    }
    if bytes.starts_with(b"\x7fELF") {
        let why = format!("{origin} is a cubin; the simulated device runs PTX only");
        return Err(Refusal {
            code: CUresult::NO_BINARY_FOR_GPU,
            message: why,
        });
    }
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    from_text(text, origin).map(|source| vec![source])
}

fn from_text(text: String, origin: &str) -> Result<Source, Refusal> {
    if !text.contains(".version") {
        return Err(refuse(
            CUresult::INVALID_IMAGE,
            "the image is neither PTX nor a fat binary",
        ));
    }
    // An unknown directive is kept and may do no harm, but a function that cannot be read at all is
    // refused, as a real driver's compiler would.
    let (module, diagnostics) = ptx::parse(&text);
    let unread = |span: Span| {
        let text = module.slice(span);
        text.contains(".entry") || text.contains(".func")
    };
    let broken = module.items.iter().find_map(|item| match item {
        Item::Unknown(span) if unread(*span) => Some(*span),
        _ => None,
    });
    if let Some(span) = broken {
        let wrong = diagnostics.iter().find(|d| span.contains(d.span.start));
        let (line, column) = module.line_column(wrong.map_or(span.start, |d| d.span.start));
        let what = wrong.map_or("a function that cannot be read", |d| &d.message);
        let why = format!("{origin}:{line}:{column}: {what}");
        return Err(refuse(CUresult::INVALID_PTX, &why));
    }
    Ok(Source {
        text: text.into(),
        origin: origin.to_owned(),
    })
}

/// A cubin can run if it was built with line information: then it carries its PTX.
fn from_cubin(cubin: &[u8], origin: &str) -> Result<Source, Refusal> {
    let Some(text) = elf::embedded_ptx(cubin) else {
        let names = elf::kernels(cubin).unwrap_or_default().join(", ");
        let why = format!(
            "{origin}: a cubin without PTX, and the simulated device runs PTX only; \
             kernels that cannot run: {names}"
        );
        return Err(Refusal {
            code: CUresult::NO_BINARY_FOR_GPU,
            message: why,
        });
    };
    Ok(Source {
        text: text.into(),
        origin: origin.to_owned(),
    })
}

fn wrapper(bytes: Ptr<u8>) -> Result<Vec<Source>, Refusal> {
    let short = |code| refuse(code, "the wrapper cannot be read");
    let wrapper = Wrapper::read(&bytes.bytes(Wrapper::BYTES).map_err(short)?);
    let wrapper = wrapper.ok_or_else(|| short(CUresult::INVALID_IMAGE))?;
    // The two addresses in a wrapper stand at bytes 8 and 16.
    let inner = |at| bytes.at(at).cast::<*mut u8>().follow().map_err(short);
    if wrapper.version != 2 {
        return fat(inner(8)?).map(|source| vec![source]);
    }
    // Relocatable device code: one fat binary for each translation unit, which may refer to
    // each other. Those that stand on their own need no linker.
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
        sources.push(fat(unit)?);
    }
    for source in &sources {
        let names = unresolved(&source.text);
        if let Some(name) = names.first() {
            return Err(Refusal {
                code: CUresult::NOT_SUPPORTED,
                message: format!(
                    "{}: {name} is defined in another translation unit, and device code is not \
                     linked by the simulated device; build without -rdc=true",
                    source.origin
                ),
            });
        }
    }
    Ok(sources)
}

fn fat(bytes: Ptr<u8>) -> Result<Source, Refusal> {
    let broken = |code| refuse(code, "the fat binary cannot be read");
    let head = bytes.bytes(fatbin::HEADER_BYTES).map_err(broken)?;
    let (header, size) = fatbin::header(&head).map_err(|why| invalid(&why))?;
    let all = usize::try_from(size)
        .ok()
        .and_then(|size| size.checked_add(header));
    let all = all.ok_or_else(|| broken(CUresult::INVALID_IMAGE))?;
    from_fatbin(&bytes.bytes(all).map_err(broken)?)
}

fn from_fatbin(bytes: &[u8]) -> Result<Source, Refusal> {
    let fatbin = Fatbin::read(bytes).map_err(|why| invalid(&why))?;
    let Some(entry) = fatbin.best_ptx(SM) else {
        let cubins = fatbin
            .entries
            .iter()
            .filter(|entry| entry.kind == fatbin::Kind::Elf);
        for entry in fatbin.best_elf(SM).into_iter().chain(cubins) {
            let found = entry
                .bytes()
                .ok()
                .and_then(|cubin| elf::embedded_ptx(&cubin));
            if let Some(text) = found {
                let origin = format!("embedded sm_{} code", entry.sm);
                return Ok(Source {
                    text: text.into(),
                    origin,
                });
            }
        }
        return Err(Refusal {
            code: CUresult::NO_BINARY_FOR_GPU,
            message: no_ptx(&fatbin),
        });
    };
    let origin = match entry.identifier.as_deref() {
        Some(name) => name.to_owned(),
        None => format!("embedded compute_{} code", entry.sm),
    };
    let text = entry.text().map_err(|why| invalid(&why))?;
    Ok(Source {
        text: text.into(),
        origin,
    })
}

/// Says what is there instead of PTX, so that the user knows which kernels cannot be checked.
fn no_ptx(fatbin: &Fatbin<'_>) -> String {
    let kernels: Vec<String> = fatbin
        .best_elf(SM)
        .or(fatbin
            .entries
            .iter()
            .find(|entry| entry.kind == fatbin::Kind::Elf))
        .and_then(|entry| elf::kernels(&entry.bytes().ok()?).ok())
        .unwrap_or_default();
    let found: Vec<String> = fatbin
        .entries
        .iter()
        .map(|entry| match entry.kind {
            fatbin::Kind::Ptx => format!("compute_{}", entry.sm),
            _ => format!("sm_{}", entry.sm),
        })
        .collect();
    format!(
        "no PTX for sm_{SM} in the fat binary (found: {}); kernels that cannot run: {}; \
         build with -gencode arch=compute_{SM},code=compute_{SM}",
        found.join(", "),
        if kernels.is_empty() {
            "unknown".to_owned()
        } else {
            kernels.join(", ")
        },
    )
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

fn refuse(code: CUresult, message: &str) -> Refusal {
    Refusal {
        code,
        message: message.to_owned(),
    }
}

fn invalid(why: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        code: CUresult::INVALID_IMAGE,
        message: why.to_string(),
    }
}

/// The buffer in which a program wants to read why its PTX was refused.
pub(crate) struct ErrorLog {
    buffer: Option<Ptr<c_char>>,
    room: usize,
}

impl ErrorLog {
    /// Finds it among the options of a load.
    pub(crate) fn new(
        count: usize,
        options: Ptr<c_int>,
        values: Ptr<*mut c_void>,
    ) -> Result<ErrorLog, CUresult> {
        let mut log = ErrorLog {
            buffer: None,
            room: 0,
        };
        if values.is_null() {
            return Ok(log);
        }
        for index in 0..count {
            let value = values.at(index).follow()?;
            match options.at(index).get()? {
                jit_option::ERROR_LOG_BUFFER => log.buffer = Some(value.cast()),
                // The value of this option is not a pointer to the size but the size itself.
                jit_option::ERROR_LOG_BUFFER_SIZE_BYTES => {
                    log.room = value.address() as u32 as usize;
                }
                _ => {}
            }
        }
        Ok(log)
    }

    /// Writes the reason down, as far as there is room.
    pub(crate) fn write(&self, message: &str) {
        if let Some(buffer) = self
            .buffer
            .filter(|buffer| self.room > 0 && !buffer.is_null())
        {
            let _ = buffer.set_text(message, self.room);
        }
    }
}
