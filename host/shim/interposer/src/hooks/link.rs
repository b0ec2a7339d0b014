//! The driver's linker. What it is given it links as the program asked; a copy of the PTX is kept, and
//! whoever loads the image gets that, linked by us and with checks ([`super::load`]).

use std::ffi::{c_char, c_uint, c_void};

use driver::load::{self, Image, Source};
use driver::pointer::Ptr;
use driver::sys::*;

use super::load::{architecture, fingerprint};
use crate::state::{Link, with, with_started};

/// `CU_JIT_INPUT_PTX`
const PTX: CUjitInputType = 1;
/// `CU_JIT_INPUT_FATBINARY`
const FATBINARY: CUjitInputType = 2;
/// `CU_JIT_INPUT_LIBRARY`
const LIBRARY: CUjitInputType = 4;

/// Remembers an input that the driver has taken.
fn remember(real: &Api, link: u64, kind: CUjitInputType, name: String, bytes: Option<Vec<u8>>) {
    let unit = match (kind, bytes) {
        (PTX, Some(bytes)) => text(&bytes).map(|text| Source {
            text: text.into(),
            origin: name.clone(),
            outdone: None,
        }),
        (FATBINARY, Some(bytes)) => match load::read_bytes(&bytes, &name, architecture(real)) {
            Ok(Image::Text(source) | Image::Module(source)) => Some(source),
            _ => None,
        },
        // What of it is needed shows when the others are linked without it.
        (LIBRARY, _) => return,
        _ => None,
    };
    with(|state| {
        let link = state.links.entry(link).or_default();
        match unit {
            Some(unit) => link.units.push(unit),
            None => link.other = Some(name),
        }
    });
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) unsafe fn cuLinkAddData(
    real: &'static Api,
    link_state: CUlinkState,
    kind: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: *const c_char,
    num_options: c_uint,
    options: *mut CUjit_option,
    option_values: *mut *mut c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe {
        real.cuLinkAddData(
            link_state,
            kind,
            data,
            size,
            name,
            num_options,
            options,
            option_values,
        )
    };
    if result == CUresult::SUCCESS {
        // SAFETY: as above.
        let (bytes, name) = unsafe { (Ptr::new(data).cast::<u8>().bytes(size), Ptr::new(name)) };
        let name = name.text().unwrap_or_else(|_| "linked code".to_owned());
        let link = link_state.expose_provenance() as u64;
        remember(real, link, kind, name, bytes.ok());
    }
    result
}

pub(crate) unsafe fn cuLinkAddFile(
    real: &'static Api,
    link_state: CUlinkState,
    kind: CUjitInputType,
    path: *const c_char,
    num_options: c_uint,
    options: *mut CUjit_option,
    option_values: *mut *mut c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result =
        unsafe { real.cuLinkAddFile(link_state, kind, path, num_options, options, option_values) };
    if result == CUresult::SUCCESS {
        // SAFETY: as above.
        let name = unsafe { Ptr::new(path) }.text().unwrap_or_default();
        let bytes = std::fs::read(&name).ok();
        remember(
            real,
            link_state.expose_provenance() as u64,
            kind,
            name,
            bytes,
        );
    }
    result
}

/// Text up to its zero byte, if it is text.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&byte| byte == 0);
    let bytes = &bytes[..end.unwrap_or(bytes.len())];
    String::from_utf8(bytes.to_vec()).ok()
}

pub(crate) unsafe fn cuLinkComplete(
    real: &'static Api,
    link_state: CUlinkState,
    cubin_out: *mut *mut c_void,
    size_out: *mut usize,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuLinkComplete(link_state, cubin_out, size_out) };
    if result == CUresult::SUCCESS {
        // SAFETY: the driver has written the address of an image.
        let contents = unsafe { load::contents(Ptr::new(*cubin_out)) };
        with_started(|state| {
            let link = state.links.get(&(link_state.expose_provenance() as u64));
            if let (Some(link), Some(contents)) = (link, contents) {
                let link: Link = link.clone();
                state.linked.insert(fingerprint(&contents), link);
            }
        });
    }
    result
}

pub(crate) unsafe fn cuLinkDestroy(real: &'static Api, link_state: CUlinkState) -> CUresult {
    with_started(|state| state.links.remove(&(link_state.expose_provenance() as u64)));
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuLinkDestroy(link_state) }
}
