//! The linker as a program uses it: PTX texts become one.
//!
//! Departure: the finished image is PTX, which a load accepts; cubins, objects and libraries other than the device
//! runtime, for which the device has its own, are refused.

use std::ffi::{c_char, c_int, c_uint, c_void};

use driver::load::is_device_runtime_library;
use driver::sys::{CUlinkState, CUlinkState_st, CUresult};
use ptx::link::{Unit, in_one_line};

use crate::Answer;
use crate::image::{Refusal, Source, is_ptx, provided, readable, with_own_runtime};
use crate::jit::Options;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::set;

/// A link in progress.
#[derive(Debug)]
pub(crate) struct Link {
    options: Options,
    /// What has been added.
    units: Vec<Source>,
    /// The finished text with its zero byte. It stays where it is while the link lives.
    text: Option<Vec<u8>>,
}

/// `CUjitInputType`: PTX text, and an archive of objects.
const PTX: c_int = 1;
const LIBRARY: c_int = 4;

pub(crate) fn cuLinkCreate(
    count: c_uint,
    options: Ptr<c_int>,
    values: Ptr<*mut c_void>,
    out: Ptr<CUlinkState>,
) -> Answer {
    let link = with_context(|state, _| {
        Ok(state.links.insert(Link {
            options: Options::new(count as usize, options, values)?,
            units: Vec::new(),
            text: None,
        }))
    })?;
    set(out, link)
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) fn cuLinkAddData(
    link: Ptr<CUlinkState_st>,
    kind: c_int,
    data: Ptr<c_void>,
    size: usize,
    name: Ptr<c_char>,
    count: c_uint,
    options: Ptr<c_int>,
    values: Ptr<*mut c_void>,
) -> Answer {
    let options = Options::new(count as usize, options, values)?;
    let bytes = data.bytes(size)?;
    let name = match name.is_null() {
        true => "linked data".to_owned(),
        false => name.text()?,
    };
    with(|state| add(state, link.address(), kind, name, &bytes, &options))
}

pub(crate) fn cuLinkAddFile(
    link: Ptr<CUlinkState_st>,
    kind: c_int,
    path: Ptr<c_char>,
    count: c_uint,
    options: Ptr<c_int>,
    values: Ptr<*mut c_void>,
) -> Answer {
    let options = Options::new(count as usize, options, values)?;
    let path = path.text()?;
    let bytes = std::fs::read(&path).map_err(|_| CUresult::FILE_NOT_FOUND)?;
    with(|state| add(state, link.address(), kind, path, &bytes, &options))
}

/// Adds a text, or tells the program why not: by the options of the link and by its own.
fn add(
    state: &mut State,
    link: u64,
    kind: c_int,
    name: String,
    bytes: &[u8],
    own: &Options,
) -> Answer {
    let done = state.links.get(link)?.text.is_some();
    if kind == LIBRARY && !done && is_device_runtime_library(bytes) {
        state.links.get_mut(link)?.options.write_logs("");
        return Ok(());
    }
    let end = bytes.iter().position(|&byte| byte == 0);
    let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes);
    let source = Source {
        text: String::from_utf8_lossy(text).into(),
        origin: name,
        outdone: None,
    };
    let refused = match kind == PTX && !done {
        true => check(&source),
        false => Err(Refusal::new(
            CUresult::NOT_SUPPORTED,
            "only PTX is linked by the simulated device, and only before the link is complete",
        )),
    };
    let found = state.links.get_mut(link)?;
    let Err(refusal) = refused else {
        found.units.push(source);
        found.options.write_logs("");
        return Ok(());
    };
    found.options.write_logs(&refusal.to_string());
    Err(state.refused(&refusal, own))
}

/// Refuses what no load would take.
fn check(source: &Source) -> Result<(), Refusal> {
    let ptx = source.clone().into();
    is_ptx(&ptx)?;
    readable(&ptx)
}

/// The text of all units.
fn linked(link: &Link) -> Result<String, String> {
    let units = link.units.iter().map(|unit| Unit {
        name: &unit.origin,
        text: &unit.text,
    });
    let units = with_own_runtime(units);
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
                    let refusal = Refusal::new(CUresult::INVALID_PTX, why);
                    let options = found.options.clone();
                    return Err(state.refused(&refusal, &options));
                }
            };
            text.push(0);
            found.text = Some(text);
        }
        found.options.write_logs("");
        let text = found.text.as_mut().ok_or(CUresult::INVALID_VALUE)?;
        image.set(text.as_mut_ptr().cast())?;
        size.set_if(text.len());
        Ok(())
    })
}

pub(crate) fn cuLinkDestroy(link: Ptr<CUlinkState_st>) -> Answer {
    with(|state| state.links.remove(link.address()).map(drop))
}
