//! The linker as a program uses it: PTX texts become one.
//!
//! Departure: the finished image is PTX, which a load accepts; cubins, objects and libraries are
//! refused.

use std::ffi::{c_char, c_int, c_uint, c_void};

use driver::sys::{CUlinkState, CUlinkState_st, CUresult};
use ptx::link::{Unit, in_one_line};

use crate::Answer;
use crate::image::{provided, without_device_runtime};
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::set;

/// A link in progress.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Names and texts of what has been added.
    units: Vec<(String, String)>,
    /// The finished text with its zero byte. It stays where it is while the link lives.
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
    name: Ptr<c_char>,
    _count: c_uint,
    _options: Ptr<c_int>,
    _values: Ptr<*mut c_void>,
) -> Answer {
    let bytes = data.bytes(size)?;
    let name = match name.is_null() {
        true => "linked data".to_owned(),
        false => name.text()?,
    };
    with(|state| add(state, link.address(), kind, name, &bytes))
}

pub(crate) fn cuLinkAddFile(
    link: Ptr<CUlinkState_st>,
    kind: c_int,
    path: Ptr<c_char>,
    _count: c_uint,
    _options: Ptr<c_int>,
    _values: Ptr<*mut c_void>,
) -> Answer {
    let path = path.text()?;
    let bytes = std::fs::read(&path).map_err(|_| CUresult::FILE_NOT_FOUND)?;
    with(|state| add(state, link.address(), kind, path, &bytes))
}

fn add(state: &mut State, link: u64, kind: c_int, name: String, bytes: &[u8]) -> Answer {
    let link = state.links.get_mut(link)?;
    if kind != PTX || link.text.is_some() {
        state.engine.note(
            "only PTX is linked by the simulated device, and only before the link is complete",
        );
        return Err(CUresult::NOT_SUPPORTED);
    }
    let end = bytes.iter().position(|&byte| byte == 0);
    let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes);
    link.units
        .push((name, String::from_utf8_lossy(text).into_owned()));
    Ok(())
}

/// The text of all units.
fn linked(link: &Link) -> Result<String, String> {
    let units = link.units.iter().map(|(name, text)| Unit { name, text });
    let units = without_device_runtime(units);
    match units.as_slice() {
        // A load may have options that make one text complete.
        [only] => Ok(only.text.to_owned()),
        several => {
            ptx::link::link(several, &provided(several)).map_err(|errors| in_one_line(&errors))
        }
    }
}

pub(crate) fn cuLinkComplete(
    link: Ptr<CUlinkState_st>,
    image: Ptr<*mut c_void>,
    size: Ptr<usize>,
) -> Answer {
    with(|state| {
        let found = state.links.get_mut(link.address())?;
        if found.units.is_empty() {
            return Err(CUresult::INVALID_VALUE);
        }
        if found.text.is_none() {
            let mut text = match linked(found) {
                Ok(text) => text.into_bytes(),
                Err(why) => {
                    state.engine.note(&why);
                    return Err(CUresult::INVALID_PTX);
                }
            };
            text.push(0);
            found.text = Some(text);
        }
        let text = found.text.as_mut().ok_or(CUresult::INVALID_VALUE)?;
        image.set(text.as_mut_ptr().cast())?;
        size.set_if(text.len());
        Ok(())
    })
}

pub(crate) fn cuLinkDestroy(link: Ptr<CUlinkState_st>) -> Answer {
    with(|state| state.links.remove(link.address()).map(drop))
}
