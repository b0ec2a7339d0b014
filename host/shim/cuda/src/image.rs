//! PTX that a program hands to a load, and what the simulated device refuses of it.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};

use driver::image::{self, Image as Found};
pub(crate) use driver::image::{Refusal, Source};
use driver::sys::{CUresult, jit_option};
use ptx::ast::{Item, Span};
use ptx::link::{SYSTEM_CALLS, Unit, defines_device_runtime, in_one_line, is_device_runtime};
use simt::ModuleId;

use crate::engine::unresolved;
use crate::pointer::Ptr;

/// The architecture the device compiles for.
const SM: u32 = 90;

/// PTX that belongs to a module.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) source: Source,
    /// It is a library's: each device gets it when it is first used there.
    pub(crate) library: bool,
    /// Nothing of it is optimised.
    pub(crate) plainly: bool,
    /// Its identity by device; none between the reset of a context and the next use.
    pub(crate) loaded: BTreeMap<i32, ModuleId>,
}

/// Reads an image of unknown kind.
pub(crate) fn read(image: Ptr<c_void>) -> Result<Vec<Source>, Refusal> {
    sources(image::read(image, SM)?)
}

/// Reads an image whose length is known, such as a file.
pub(crate) fn read_bytes(bytes: &[u8], origin: &str) -> Result<Vec<Source>, Refusal> {
    sources(image::read_bytes(bytes, origin, SM)?)
}

/// What of an image can be loaded.
fn sources(found: Found) -> Result<Vec<Source>, Refusal> {
    Ok(match found {
        Found::Text(source) => {
            readable(&source)?;
            vec![source]
        }
        Found::Module(source) => vec![source],
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

/// Units without those that define the device runtime: the device has its own.
pub(crate) fn without_device_runtime<'a>(units: impl Iterator<Item = Unit<'a>>) -> Vec<Unit<'a>> {
    units
        .filter(|unit| !defines_device_runtime(unit.text))
        .collect()
}

/// One module of translation units.
fn linked(units: &[Source]) -> Result<Source, Refusal> {
    let named = without_device_runtime(units.iter().map(|unit| Unit {
        name: &unit.origin,
        text: &unit.text,
    }));
    let text = ptx::link::link(&named, &provided(&named)).map_err(|errors| Refusal {
        code: CUresult::INVALID_PTX,
        message: in_one_line(&errors),
    })?;
    let names: Vec<&str> = units.iter().map(|unit| unit.origin.as_str()).collect();
    let source = Source {
        text: text.into(),
        origin: names.join(" + "),
        outdone: None,
    };
    readable(&source)?;
    alone(&source)?;
    Ok(source)
}

/// Refuses a module that needs what is not in it.
fn alone(source: &Source) -> Result<(), Refusal> {
    match unresolved(&source.text).first() {
        None => Ok(()),
        Some(name) => Err(Refusal {
            code: CUresult::NOT_SUPPORTED,
            message: format!(
                "{}: {name} is defined nowhere; link the file that defines it, built with PTX in it",
                source.origin
            ),
        }),
    }
}

/// Refuses a function that cannot be read at all, as a real driver's compiler would. An unknown
/// directive is kept and may do no harm.
fn readable(source: &Source) -> Result<(), Refusal> {
    let (module, diagnostics) = ptx::parse(&source.text);
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
        let why = format!("{}:{line}:{column}: {what}", source.origin);
        return Err(Refusal {
            code: CUresult::INVALID_PTX,
            message: why,
        });
    }
    Ok(())
}

/// Options whose values the driver writes.
const RESULTS: [c_int; 3] = [
    jit_option::WALL_TIME,
    jit_option::INFO_LOG_BUFFER_SIZE_BYTES,
    jit_option::ERROR_LOG_BUFFER_SIZE_BYTES,
];

/// What a load is asked for besides the module.
pub(crate) struct Options {
    /// Where the program wants to read how much there is to read, or how long it took.
    results: Vec<(c_int, Ptr<*mut c_void>)>,
    /// The buffer in which a program wants to read why its PTX was refused.
    buffer: Option<Ptr<c_char>>,
    room: usize,
    /// Registers that a thread may have at most.
    max_registers: Option<u32>,
    /// Nothing is to be optimised.
    plainly: bool,
}

/// What the options of a load make of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiled {
    /// Threads that a block may have.
    pub(crate) most_threads: u32,
    /// Nothing is optimised.
    pub(crate) plainly: bool,
}

impl Options {
    /// What the load makes of its module.
    ///
    /// `CUDARUN_SIM_REGISTERS` says how many registers each thread needs unless the load says less; without it,
    /// there are always enough. A block has 65,536.
    pub(crate) fn compiled(&self) -> Compiled {
        let needed = std::env::var("CUDARUN_SIM_REGISTERS").ok();
        let needed = needed.and_then(|text| text.parse::<u32>().ok());
        let needed = needed.map(|n| n.min(self.max_registers.unwrap_or(n)).max(1));
        Compiled {
            most_threads: needed.map_or(u32::MAX, |n| (1 << 16) / n / 32 * 32),
            plainly: self.plainly,
        }
    }

    /// Nothing is asked for.
    pub(crate) fn none() -> Options {
        Options {
            results: Vec::new(),
            buffer: None,
            room: 0,
            max_registers: None,
            plainly: false,
        }
    }

    /// Reads the options of a load. As long as there is nothing to tell, sizes of logs are 0.
    pub(crate) fn new(
        count: usize,
        options: Ptr<c_int>,
        values: Ptr<*mut c_void>,
    ) -> Result<Options, CUresult> {
        let mut log = Options::none();
        if count > 0 && (options.is_null() || values.is_null()) {
            return Err(CUresult::INVALID_VALUE);
        }
        for index in 0..count {
            let value = values.at(index).follow()?;
            let option = options.at(index).get()?;
            if RESULTS.contains(&option) {
                log.results.push((option, values.at(index)));
            }
            match option {
                jit_option::MAX_REGISTERS => log.max_registers = Some(value.address() as u32),
                jit_option::OPTIMIZATION_LEVEL => log.plainly = value.address() as u32 == 0,
                jit_option::ERROR_LOG_BUFFER => log.buffer = Some(value.cast()),
                // The value of this option is not a pointer to the size but the size itself.
                jit_option::ERROR_LOG_BUFFER_SIZE_BYTES => {
                    log.room = value.address() as u32 as usize;
                }
                _ => {}
            }
        }
        log.answer(0);
        Ok(log)
    }

    /// Writes results into the array of values, where an option has them: the values are no pointers.
    fn answer(&self, errors: usize) {
        for (option, place) in &self.results {
            let value = match *option {
                jit_option::ERROR_LOG_BUFFER_SIZE_BYTES => errors,
                jit_option::WALL_TIME => 0.25f32.to_bits() as usize,
                _ => 0,
            };
            place.set_if(std::ptr::without_provenance_mut(value));
        }
    }

    /// Writes the reason down, as far as there is room.
    pub(crate) fn write(&self, message: &str) {
        self.answer(message.len().min(self.room.saturating_sub(1)));
        if let Some(buffer) = self
            .buffer
            .filter(|buffer| self.room > 0 && !buffer.is_null())
        {
            let _ = buffer.set_text(message, self.room);
        }
    }
}
