//! PTX that a program hands to a load, and what the simulated device refuses of it.

use std::collections::BTreeMap;
use std::ffi::c_void;

use driver::load::{self, Image as Found};
pub(crate) use driver::load::{Refusal, Source};
use driver::sys::CUresult;
use ptx::Parsed;
use ptx::ast::{Item, Span};
use ptx::link::{SYSTEM_CALLS, Unit, defines_device_runtime, in_one_line, is_device_runtime};
use simt::ModuleId;

use crate::engine::unresolved;
use crate::pointer::Ptr;

/// The architecture the device compiles for.
const SM: u32 = 90;

/// PTX as a program hands it to a load.
#[derive(Clone, Debug)]
pub(crate) struct Ptx {
    /// What a person calls it.
    pub(crate) origin: String,
    pub(crate) parsed: Parsed,
}

impl From<Source> for Ptx {
    fn from(source: Source) -> Self {
        Self {
            parsed: Parsed::new(&source.text),
            origin: source.origin,
        }
    }
}

/// PTX that belongs to a module.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) ptx: Ptx,
    /// It is a library's: each device gets it when it is first used there.
    pub(crate) library: bool,
    /// Nothing of it is optimised.
    pub(crate) plainly: bool,
    /// Its identity by device; none between the reset of a context and the next use.
    pub(crate) loaded: BTreeMap<i32, ModuleId>,
}

/// Reads an image of unknown kind.
pub(crate) fn read(image: Ptr<c_void>) -> Result<Vec<Ptx>, Refusal> {
    sources(load::read(image, SM)?)
}

/// Reads an image whose length is known, such as a file.
pub(crate) fn read_bytes(bytes: &[u8], origin: &str) -> Result<Vec<Ptx>, Refusal> {
    sources(load::read_bytes(bytes, origin, SM)?)
}

/// What of an image can be loaded.
fn sources(found: Found) -> Result<Vec<Ptx>, Refusal> {
    Ok(match found {
        Found::Text(source) => {
            let ptx = source.into();
            readable(&ptx)?;
            vec![ptx]
        }
        Found::Module(source) => vec![source.into()],
        Found::Units(units) => vec![linked(&units)?],
    })
}

/// What units need not define, because the device has it: system calls, and the device runtime, as far
/// as they name it.
pub(crate) fn provided<'a>(units: &[Unit<'a>]) -> Vec<&'a str> {
    let mut all = SYSTEM_CALLS.to_vec();
    let part = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$');
    for unit in units {
        let names = unit.text.split(part).filter(|name| is_device_runtime(name));
        all.extend(names);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Units with the device's own device runtime in the place of NVIDIA's.
pub(crate) fn with_own_runtime<'a>(units: impl Iterator<Item = Unit<'a>>) -> Vec<Unit<'a>> {
    let own = units.filter(|unit| !defines_device_runtime(unit.text));
    let mut units: Vec<Unit<'a>> = own.collect();
    if units.iter().any(|unit| unit.text.contains(GRID_BARRIER)) {
        units.push(Unit {
            name: "the barrier of a grid",
            text: include_str!("grid_barrier.ptx"),
        });
    }
    units
}

/// What the names of the device runtime's functions for cooperative groups begin with.
const GRID_BARRIER: &str = "cudaCG";

/// One module of translation units.
fn linked(units: &[Source]) -> Result<Ptx, Refusal> {
    let named = with_own_runtime(units.iter().map(|unit| Unit {
        name: &unit.origin,
        text: &unit.text,
    }));
    let text = ptx::link::link(&named, &provided(&named))
        .map_err(|errors| Refusal::new(CUresult::INVALID_PTX, in_one_line(&errors)))?;
    let names: Vec<&str> = units.iter().map(|unit| unit.origin.as_str()).collect();
    let ptx = Ptx {
        parsed: Parsed::new(&text),
        origin: names.join(" + "),
    };
    readable(&ptx)?;
    alone(&ptx)?;
    Ok(ptx)
}

/// Refuses a module that needs what is not in it.
fn alone(ptx: &Ptx) -> Result<(), Refusal> {
    match unresolved(&ptx.parsed.module).first() {
        None => Ok(()),
        Some(name) => Err(Refusal::new(
            CUresult::NOT_SUPPORTED,
            format!(
                "{}: {name} is defined nowhere; link the file that defines it, built with PTX in it",
                ptx.origin
            ),
        )),
    }
}

/// Refuses what a real driver's compiler would not take for PTX.
pub(crate) fn is_ptx(ptx: &Ptx) -> Result<(), Refusal> {
    let Ptx { origin, parsed } = ptx;
    let (module, diagnostics) = (&parsed.module, &parsed.diagnostics);
    let refuse = |why| Err(Refusal::new(CUresult::INVALID_PTX, why));
    if module.version.is_none() {
        let why = diagnostics
            .first()
            .map_or("no .version directive", |first| &first.message);
        return refuse(format!("{origin}: not PTX: {why}"));
    }
    // What is merely not known passes, and fails the launch that needs it; a text of which nothing
    // is understood would not load on a real driver either.
    let declares = |item: &Item| matches!(item, Item::Function(_) | Item::Variable(_));
    let understood = module.items.iter().any(declares);
    if let (false, Some(first)) = (understood, diagnostics.first()) {
        let (line, column) = module.line_column(first.span.start);
        return refuse(format!("{origin}:{line}:{column}: {}", first.message));
    }
    Ok(())
}

/// Refuses a function that cannot be read at all, as a real driver's compiler would. An unknown
/// directive is kept and may do no harm.
pub(crate) fn readable(ptx: &Ptx) -> Result<(), Refusal> {
    let Ptx { origin, parsed } = ptx;
    let (module, diagnostics) = (&parsed.module, &parsed.diagnostics);
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
        return Err(Refusal::new(CUresult::INVALID_PTX, why));
    }
    Ok(())
}
