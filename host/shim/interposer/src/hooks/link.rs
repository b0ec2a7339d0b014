//! The driver's linker. Of what it is given, the first PTX that needs nothing from the rest gets its
//! checks: those of two inputs would clash, and a function that is called from outside cannot take
//! parameters of ours.

use std::ffi::{CString, c_char, c_uint, c_void};

use driver::image::Source;
use driver::pointer::Ptr;
use driver::sys::*;
use ptx::ast::{Item, Linkage};

use crate::watch::{Link, with, with_begun};

/// `CU_JIT_INPUT_PTX`
const PTX: CUjitInputType = 1;

/// Whether no other input can refer to this one, but for its kernels, nor this one to another.
fn stands_alone(text: &str) -> bool {
    let (module, _) = ptx::parse(text);
    module.items.iter().all(|item| match item {
        Item::Function(function) => {
            function.entry || (function.body.is_some() && function.linkage == Linkage::Local)
        }
        Item::Variable(variable) => variable.linkage != Linkage::Extern,
        _ => true,
    })
}

/// The PTX with its checks, if this input of the link is to have any.
fn check(link: u64, text: String, origin: &str) -> Option<CString> {
    if with(|watch| watch.links.contains_key(&link))? || !stands_alone(&text) {
        let why = "linked device code is checked in part only";
        with(|watch| watch.session.checker().note(format!("{origin}: {why}")));
        return None;
    }
    let source = Source {
        text: text.into(),
        origin: origin.to_owned(),
    };
    with(|watch| {
        let checked = watch.prepare(source, false);
        let text = checked.text();
        let module = checked.module;
        watch.links.insert(
            link,
            Link {
                module,
                image: None,
            },
        );
        text
    })?
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) unsafe fn cuLinkAddData(
    real: &'static Api,
    state: CUlinkState,
    kind: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: *const c_char,
    num_options: c_uint,
    options: *mut CUjit_option,
    option_values: *mut *mut c_void,
) -> CUresult {
    let link = state.expose_provenance() as u64;
    let add = |kind, data, size| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe {
            real.cuLinkAddData(
                state,
                kind,
                data,
                size,
                name,
                num_options,
                options,
                option_values,
            )
        }
    };
    // SAFETY: as above.
    let bytes = unsafe { Ptr::new(data) }.bytes(size);
    let text = match (kind, bytes) {
        (PTX, Ok(bytes)) => text(&bytes),
        _ => None,
    };
    // SAFETY: as above.
    let origin = unsafe { Ptr::new(name) }.text();
    let origin = origin.unwrap_or_else(|_| "linked ptx".to_owned());
    let Some(checked) = text.and_then(|text| check(link, text, &origin)) else {
        return add(kind, data, size);
    };
    let bytes = checked.as_bytes_with_nul();
    let result = add(PTX, bytes.as_ptr().cast_mut().cast(), bytes.len());
    if result == CUresult::SUCCESS {
        return result;
    }
    with_begun(|watch| watch.links.remove(&link));
    add(kind, data, size)
}

pub(crate) unsafe fn cuLinkAddFile(
    real: &'static Api,
    state: CUlinkState,
    kind: CUjitInputType,
    path: *const c_char,
    num_options: c_uint,
    options: *mut CUjit_option,
    option_values: *mut *mut c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let file = unsafe { Ptr::new(path) }.text().ok();
    let bytes = file.filter(|_| kind == PTX).map(std::fs::read);
    // SAFETY: as above; a text in memory is as good as a file.
    unsafe {
        match bytes {
            Some(Ok(mut bytes)) => {
                bytes.push(0);
                let (data, size) = (bytes.as_mut_ptr().cast(), bytes.len());
                cuLinkAddData(
                    real,
                    state,
                    kind,
                    data,
                    size,
                    path,
                    num_options,
                    options,
                    option_values,
                )
            }
            _ => real.cuLinkAddFile(state, kind, path, num_options, options, option_values),
        }
    }
}

/// Text up to its zero byte, if it is text.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&byte| byte == 0);
    let bytes = &bytes[..end.unwrap_or(bytes.len())];
    String::from_utf8(bytes.to_vec()).ok()
}

pub(crate) unsafe fn cuLinkComplete(
    real: &'static Api,
    state: CUlinkState,
    cubin_out: *mut *mut c_void,
    size_out: *mut usize,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuLinkComplete(state, cubin_out, size_out) };
    if result == CUresult::SUCCESS {
        // SAFETY: the driver has written the address.
        let image = unsafe { *cubin_out }.addr() as u64;
        with_begun(|watch| {
            if let Some(link) = watch.links.get_mut(&(state.expose_provenance() as u64)) {
                link.image = Some(image);
            }
        });
    }
    result
}

pub(crate) unsafe fn cuLinkDestroy(real: &'static Api, state: CUlinkState) -> CUresult {
    with_begun(|watch| watch.links.remove(&(state.expose_provenance() as u64)));
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuLinkDestroy(state) }
}
