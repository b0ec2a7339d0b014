//! The linker as a program uses it to compile one PTX text.
//!
//! Departure: "linking" keeps the one PTX input and gives its text back as the finished image,
//! which a load accepts; several inputs, cubins and libraries are refused.

use std::ffi::{c_char, c_int, c_uint, c_void};

use driver::sys::{CUlinkState, CUlinkState_st, CUresult};

use crate::Answer;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::set;

/// A link in progress.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// The text with its zero byte. It stays where it is while the link lives.
    text: Option<Vec<u8>>,
}

/// `CUjitInputType`: PTX text.
const PTX: c_int = 1;

pub(crate) fn cuLinkCreate(
    _count: c_uint,
    _options: Ptr<c_int>,
    _values: Ptr<*mut c_void>,
    out: Ptr<CUlinkState>,
) -> Answer {
    set(
        out,
        with_context(|state, _| Ok(state.links.insert(Link::default())))?,
    )
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) fn cuLinkAddData(
    link: Ptr<CUlinkState_st>,
    kind: c_int,
    data: Ptr<c_void>,
    size: usize,
    _name: Ptr<c_char>,
    _count: c_uint,
    _options: Ptr<c_int>,
    _values: Ptr<*mut c_void>,
) -> Answer {
    let bytes = data.bytes(size)?;
    with(|state| add(state, link.address(), kind, bytes))
}

pub(crate) fn cuLinkAddFile(
    link: Ptr<CUlinkState_st>,
    kind: c_int,
    path: Ptr<c_char>,
    _count: c_uint,
    _options: Ptr<c_int>,
    _values: Ptr<*mut c_void>,
) -> Answer {
    let bytes = std::fs::read(path.text()?).map_err(|_| CUresult::FILE_NOT_FOUND)?;
    with(|state| add(state, link.address(), kind, bytes))
}

fn add(state: &mut State, link: u64, kind: c_int, mut bytes: Vec<u8>) -> Answer {
    let link = state.links.get_mut(link)?;
    if kind != PTX || link.text.is_some() {
        state
            .engine
            .note("device code is not linked by the simulated device");
        return Err(CUresult::NOT_SUPPORTED);
    }
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes.push(0);
    link.text = Some(bytes);
    Ok(())
}

pub(crate) fn cuLinkComplete(
    link: Ptr<CUlinkState_st>,
    image: Ptr<*mut c_void>,
    size: Ptr<usize>,
) -> Answer {
    with(|state| {
        let text = state.links.get_mut(link.address())?.text.as_mut();
        let text = text.ok_or(CUresult::INVALID_VALUE)?;
        image.set(text.as_mut_ptr().cast())?;
        size.set_if(text.len());
        Ok(())
    })
}

pub(crate) fn cuLinkDestroy(link: Ptr<CUlinkState_st>) -> Answer {
    with(|state| state.links.remove(link.address()).map(drop))
}
