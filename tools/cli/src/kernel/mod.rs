//! A kernel of a `.ptx` file on the simulated device, without a host program.

pub(crate) mod spec;

use std::io::Write;
use std::path::Path;

use os::interrupts;
use ptx::Parsed;
use ptx::ast::{Function, Item, Module, Statement};
use report::log::{Event, Writer};
use report::names::{demangle, is_called};
use runtime::{Checker, Options, progress};
use simt::{Device, DeviceConfig, Launch, LaunchError, Sink};
use simulated::CheckedSim;

use crate::args::KernelArgs;
use crate::console;
use crate::exit::{BAD_INPUT, INTERNAL, Stop, USAGE};
use spec::ArgSpec;

/// A kernel that is ready to run, any number of times.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    parsed: Parsed,
    origin: String,
    kernel: String,
    flags: &'a KernelArgs,
}

/// What one run brought.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) events: Vec<Event>,
    pub(crate) failed: bool,
    pub(crate) timed_out: bool,
    /// The signal that has come while it ran.
    pub(crate) signal: Option<i32>,
}

impl<'a> Job<'a> {
    /// Reads the file and compares the flags with the kernel.
    pub(crate) fn prepare(path: &Path, flags: &'a KernelArgs) -> Result<Self, Stop> {
        let origin = path.display().to_string();
        let parsed = read(path)?;
        let module = &parsed.module;
        let function = choose(module, &origin, flags.kernel.as_deref())?;
        if let Some(why) = broken(module, function) {
            return Err(Stop::new(BAD_INPUT, format!("{origin}:{why}")));
        }
        for (name, missing) in [
            ("--grid", flags.grid.is_none()),
            ("--block", flags.block.is_none()),
        ] {
            if missing {
                return Err(Stop::new(
                    USAGE,
                    format!(
                        "{name} is missing: how many {} does {} need?",
                        if name == "--grid" {
                            "blocks"
                        } else {
                            "threads per block"
                        },
                        demangle(&function.name)
                    ),
                ));
            }
        }
        compare(function, &flags.arg)?;
        if let Some(dump) = flags
            .dump
            .iter()
            .find(|&&dump| !matches!(flags.arg.get(dump), Some(ArgSpec::Buffer(_))))
        {
            return Err(Stop::new(
                USAGE,
                format!("--dump {dump}: argument {dump} is not a buffer; arguments count from 0"),
            ));
        }
        Ok(Self {
            kernel: function.name.to_string(),
            parsed,
            origin,
            flags,
        })
    }

    /// Whether assumptions are about the kernel.
    pub(crate) fn may_assume(&self, texts: &[String]) -> Result<(), Stop> {
        let Some(kernel) = self.parsed.module.function(&self.kernel) else {
            return Ok(());
        };
        let names = prove::assume::Names::of(kernel);
        for text in texts {
            let about = prove::assume::Assumption::parse(text).and_then(|of| of.about(&names));
            about.map_err(|wrong| Stop::new(USAGE, format!("--assume '{text}': {wrong}")))?;
        }
        Ok(())
    }

    /// Runs it once, while the caller [holds](interrupts::hold) signals; `record` is the folder for recorded launches.
    /// Prints the dumped buffers when `show`.
    pub(crate) fn run(
        &self,
        options: Options,
        record: Option<&Path>,
        show: bool,
    ) -> Result<Done, Stop> {
        let internal = |what: String| Stop::new(INTERNAL, what);
        let device =
            Device::new(DeviceConfig::default()).map_err(|error| internal(error.to_string()))?;
        let checker = Checker::new(options, Writer::Memory(Vec::new()));
        let mut sim = CheckedSim::new(device, Some(checker));
        if let Some(folder) = record {
            sim.record_into(folder);
        }
        let id = sim
            .load(self.parsed.clone(), &self.origin)
            .map_err(|error| Stop::new(BAD_INPUT, format!("{}: {error}", self.origin)))?;
        let info = sim
            .kernel(id, &self.kernel)
            .ok_or_else(|| internal(format!("the device lost {}", self.kernel)))?;
        let mut params = vec![0; info.param_bytes as usize];
        let mut buffers = Vec::new();
        for (number, (arg, layout)) in self.flags.arg.iter().zip(&info.params).enumerate() {
            let value = match arg {
                ArgSpec::Scalar(values) => values.bytes.clone(),
                ArgSpec::Buffer(values) => {
                    let bytes = values.bytes.len() as u64;
                    let memory = sim.device_mut().memory_mut();
                    let at = memory
                        .alloc(bytes)
                        .map_err(|error| internal(format!("--arg {number}: {error}")))?;
                    memory
                        .write(at, &values.bytes)
                        .map_err(|error| internal(error.to_string()))?;
                    if let Some(checker) = sim.checker_mut() {
                        checker.allocated(at, bytes, &format!("--arg {number}"));
                    }
                    buffers.push((number, at, values));
                    at.to_le_bytes().to_vec()
                }
            };
            let start = layout.offset as usize;
            params[start..start + value.len()].copy_from_slice(&value);
        }
        let [grid, block] = [self.flags.grid, self.flags.block].map(|dims| dims.unwrap_or([1; 3]));
        let mut launch = Launch::new(grid, block, params);
        launch.dynamic_shared = self.flags.shared.unwrap_or(0);
        launch.cooperative = self.flags.cooperative;
        // A closed standard output is the reader's choice.
        launch.printf = Sink::new(|text| {
            progress::erase();
            drop(std::io::stdout().write_all(text));
        });
        launch.limits.go_on = Some(simulated::go_on);
        let result = sim.launch(id, &self.kernel, &launch);
        for (number, at, values) in buffers {
            if show && self.flags.dump.contains(&number) {
                let mut bytes = vec![0; values.bytes.len()];
                sim.device()
                    .memory()
                    .read(at, &mut bytes)
                    .map_err(|error| internal(error.to_string()))?;
                console::out_as_is(&format!("arg {number}: {}\n", values.with(bytes)));
            }
        }
        Ok(Done {
            events: sim
                .checker()
                .map(|checker| checker.events().to_vec())
                .unwrap_or_default(),
            signal: interrupts::caught(),
            timed_out: matches!(result, Err(LaunchError::Timeout { .. })),
            // What the device lacks is no failure of the kernel.
            failed: result.is_err_and(|error| !matches!(error, LaunchError::Unsupported { .. })),
        })
    }
}

/// Reads a `.ptx` file.
pub(crate) fn read(path: &Path) -> Result<Parsed, Stop> {
    let origin = path.display();
    let bytes = std::fs::read(path).map_err(|error| {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => crate::exit::NOT_FOUND,
            _ => BAD_INPUT,
        };
        match error.kind() {
            std::io::ErrorKind::NotFound => Stop::new(code, format!("{origin}: not found")),
            _ => Stop::new(code, format!("cannot read {origin}: {error}")),
        }
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Stop::new(BAD_INPUT, format!("{origin}: not PTX: not text")))?;
    let parsed = Parsed::new(&text);
    let (module, diagnostics) = (&parsed.module, &parsed.diagnostics);
    if module.version.is_none() {
        let why = diagnostics.first().map_or_else(
            || "no .version directive".to_owned(),
            |first| {
                let (line, column) = module.line_column(first.span.start);
                format!("{line}:{column}: {}", first.message)
            },
        );
        return Err(Stop::new(BAD_INPUT, format!("{origin}: not PTX: {why}")));
    }
    let lost = module.items.iter().find_map(|item| match item {
        Item::Unknown(span) => Some(*span),
        _ => None,
    });
    if let Some(span) = lost {
        let remark = diagnostics
            .iter()
            .find(|d| d.span.start >= span.start && d.span.start <= span.end);
        let (line, column) = module.line_column(remark.map_or(span, |d| d.span).start);
        let what = remark.map_or("not understood", |d| &d.message);
        return Err(Stop::new(
            BAD_INPUT,
            format!("{origin}:{line}:{column}: {what}"),
        ));
    }
    Ok(parsed)
}

fn choose<'m>(module: &'m Module, origin: &str, name: Option<&str>) -> Result<&'m Function, Stop> {
    let kernels: Vec<&Function> = module
        .functions()
        .filter(|f| f.entry && f.body.is_some())
        .collect();
    let list = || {
        kernels
            .iter()
            .map(|k| demangle(&k.name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let usage = |what: String| Err(Stop::new(USAGE, what));
    match (name, &kernels[..]) {
        (_, []) => Err(Stop::new(
            BAD_INPUT,
            format!("{origin} has no kernel (.entry)"),
        )),
        (None, [only]) => Ok(only),
        (None, _) => usage(format!(
            "{origin} has several kernels, choose one with --kernel: {}",
            list()
        )),
        (Some(name), _) => {
            let exact = |k: &&Function| k.name == name || demangle(&k.name) == name;
            if let Some(kernel) = kernels.iter().copied().find(exact) {
                return Ok(kernel);
            }
            let mut called = kernels.iter().filter(|k| is_called(&k.name, name));
            match (called.next(), called.next()) {
                (Some(only), None) => Ok(only),
                (None, _) => usage(format!("{origin} has no kernel {name}; it has {}", list())),
                (Some(_), Some(_)) => usage(format!(
                    "{origin} has several kernels called {name}, choose one by its whole name: {}",
                    list()
                )),
            }
        }
    }
}

/// The first statement of the kernel that is not PTX.
fn broken(module: &Module, function: &Function) -> Option<String> {
    let body = function.body.as_ref()?;
    body.statements
        .iter()
        .find_map(|statement| match statement {
            Statement::Unknown(span) => {
                let (line, column) = module.line_column(span.start);
                Some(format!(
                    "{line}:{column}: not PTX: {}",
                    module.slice(*span).trim()
                ))
            }
            _ => None,
        })
}

/// Numbers and sizes of parameters.
fn compare(function: &Function, args: &[ArgSpec]) -> Result<(), Stop> {
    let (layout, _) = ptx::param_layout(&function.params);
    let name = demangle(&function.name);
    if layout.len() != args.len() {
        let text = format!(
            "{name} takes {} parameters, and --arg was given {} times",
            layout.len(),
            args.len()
        );
        return Err(Stop::new(USAGE, text));
    }
    for (number, (param, arg)) in layout.iter().zip(args).enumerate() {
        let (what, given) = match arg {
            ArgSpec::Scalar(values) => ("the value", values.bytes.len()),
            ArgSpec::Buffer(_) => ("the address of a buffer", 8),
        };
        if given != param.bytes as usize {
            let text = format!(
                "--arg {number}: {what} has {given} bytes, and the parameter {}",
                param.bytes
            );
            return Err(Stop::new(USAGE, text));
        }
    }
    Ok(())
}
