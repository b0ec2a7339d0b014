//! `inspect`: which kernels a file has, and what would be checked of them.

use std::path::Path;

use comfy_table::{Table, presets};
use image::elf::{self, ElfError, Runtime};
use image::fatbin::{self, Entry, EntryKind, Fatbin};
use ptx::Parsed;
use report::names::{demangle, is_called, readable};
use rewrite::Config;

use crate::args::InspectArgs;
use crate::console;
use crate::exit::{BAD_INPUT, NOT_FOUND, Stop, USAGE};

/// The architecture that the simulated device compiles PTX for.
const SM: u32 = 90;

pub(crate) fn run(args: &InspectArgs) -> Result<u8, Stop> {
    let path = &args.file;
    let bytes = std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Stop::new(NOT_FOUND, format!("{}: not found", path.display()))
        }
        _ => Stop::new(
            BAD_INPUT,
            format!("cannot read {}: {error}", path.display()),
        ),
    })?;
    if bytes.starts_with(&fatbin::MAGIC.to_le_bytes()) {
        let fatbin = Fatbin::read(&bytes).map_err(|error| bad(path, &error))?;
        console::out(format_args!("{}: fat binary", path.display()));
        let named = show_fatbin(args, &fatbin, 1);
        return ended(args, path, named);
    }
    let mut named = false;
    match elf::scan(&bytes) {
        Ok(found) if found.machine == elf::EM_CUDA => {
            show_cubin(args, &bytes);
        }
        Ok(found) => {
            let runtime = match found.runtime {
                Runtime::None => "no CUDA runtime",
                Runtime::Shared => "shared CUDA runtime",
                Runtime::Static => {
                    "static CUDA runtime (needs NVIDIA's driver; rebuild with `nvcc -cudart shared`)"
                }
            };
            let driver = if found.driver { ", driver API" } else { "" };
            console::out(format_args!(
                "{}: program or library, {runtime}{driver}",
                path.display()
            ));
            if !found.needed.is_empty() {
                console::out(format_args!("  libraries: {}", found.needed.join(", ")));
            }
            let mut number = 0;
            for fatbin in &found.fatbins {
                match fatbin {
                    // nvcc leaves empty ones behind.
                    Ok(fatbin) if fatbin.entries.is_empty() => {}
                    Ok(fatbin) => {
                        number += 1;
                        named |= show_fatbin(args, fatbin, number);
                    }
                    Err(error) => {
                        console::out(format_args!("  a fat binary cannot be read: {error}"))
                    }
                }
            }
            if number == 0 {
                console::out(format_args!("  no device code"));
            }
        }
        Err(ElfError::NotElf) => {
            let parsed = crate::kernel::read(path)?;
            console::out(format_args!("{}: PTX", path.display()));
            named = show_ptx(args, &parsed);
        }
        Err(error) => return Err(bad(path, &error)),
    }
    ended(args, path, named)
}

/// An error if the kernel that is asked for was not there.
fn ended(args: &InspectArgs, path: &Path, named: bool) -> Result<u8, Stop> {
    match &args.kernel {
        Some(kernel) if !named => {
            let file = path.display();
            let text = format!(
                "{file} has no kernel {kernel} with PTX; `cudarun-check inspect {file}` lists its kernels"
            );
            Err(Stop::new(USAGE, text))
        }
        _ => Ok(0),
    }
}

fn bad(path: &Path, error: &dyn std::fmt::Display) -> Stop {
    Stop::new(BAD_INPUT, format!("{}: {error}", path.display()))
}

/// Whether the kernel that is asked for was there.
fn show_fatbin(args: &InspectArgs, fatbin: &Fatbin<'_>, number: usize) -> bool {
    let images: Vec<String> = fatbin.entries.iter().map(image).collect();
    console::out(format_args!("  module {number}: {}", images.join(", ")));
    if let Some(entry) = fatbin.best_ptx(SM) {
        return match entry.text() {
            Ok(text) => show_ptx(args, &Parsed::new(&text)),
            Err(error) => {
                console::out(format_args!("    its PTX cannot be read: {error}"));
                false
            }
        };
    }
    let cubins = || fatbin.entries.iter().filter(|e| e.kind == EntryKind::Elf);
    // As in a load: the one that the device would run comes first.
    let mut code = fatbin.best_elf(SM).into_iter().chain(cubins());
    if let Some(text) = code.find_map(|entry| elf::embedded_ptx(&entry.bytes().ok()?)) {
        console::out(format_args!("    the PTX that machine code carries:"));
        return show_ptx(args, &Parsed::new(&text));
    }
    let mut names: Vec<String> = Vec::new();
    for entry in cubins() {
        let bytes = entry.bytes().map_err(|error| error.to_string());
        match bytes.and_then(|bytes| elf::kernels(&bytes).map_err(|error| error.to_string())) {
            Ok(found) => names.extend(found),
            Err(error) => {
                console::out(format_args!("    its machine code cannot be read: {error}"))
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    match names[..] {
        [] => console::out(format_args!("    no kernels")),
        _ => console::out(format_args!(
            "    no PTX for sm_{SM}: these kernels cannot be checked"
        )),
    }
    for name in names {
        console::out(format_args!("    {}", demangle(&name)));
    }
    false
}

fn image(entry: &Entry<'_>) -> String {
    let sm = entry.sm;
    match entry.kind {
        EntryKind::Ptx => format!(
            "PTX for compute_{sm} ({:?}, {} bytes)",
            entry.packing,
            entry.payload.len()
        )
        .to_lowercase()
        .replacen("ptx", "PTX", 1),
        EntryKind::Elf => format!("machine code for sm_{sm}"),
        EntryKind::LtoIr => format!("LTO code for sm_{sm}"),
        EntryKind::Other(kind) => format!("image of kind {kind} for sm_{sm}"),
    }
}

/// A cubin with line information carries its PTX, which is what runs.
fn show_cubin(args: &InspectArgs, cubin: &[u8]) {
    let path = &args.file;
    if let Some(text) = elf::embedded_ptx(cubin) {
        console::out(format_args!(
            "{}: cubin, with the PTX that it was compiled from",
            path.display()
        ));
        show_ptx(args, &Parsed::new(&text));
        return;
    }
    console::out(format_args!("{}: cubin", path.display()));
    match elf::kernels(cubin) {
        Ok(names) if names.is_empty() => console::out(format_args!("    no kernels")),
        Ok(names) => names.iter().for_each(|name| {
            console::out(format_args!("    {} (machine code only)", demangle(name)))
        }),
        Err(error) => console::out(format_args!("    {error}")),
    }
}

/// Whether the kernel that is asked for was there.
fn show_ptx(args: &InspectArgs, parsed: &Parsed) -> bool {
    let (module, diagnostics) = (&parsed.module, &parsed.diagnostics);
    for diagnostic in diagnostics.iter().take(10) {
        let (line, column) = module.line_column(diagnostic.span.start);
        console::out(format_args!(
            "    PTX {line}:{column}: {}",
            diagnostic.message
        ));
    }
    if args.summary {
        return summaries(args, module);
    }
    let rewritten = rewrite::rewrite(
        module,
        &Config {
            first_site: 1,
            ..Config::default()
        },
    );
    if rewritten.kernels.is_empty() {
        console::out(format_args!("    no kernels"));
        return false;
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "   kernel",
        "global",
        "checked",
        "shared",
        "barriers",
        "may order otherwise",
        "remarks",
    ]);
    for kernel in &rewritten.kernels {
        let mut remarks: Vec<String> = kernel.why_not.iter().cloned().collect();
        if !kernel.not_understood.is_empty() {
            remarks.push(format!(
                "not understood: {}",
                kernel.not_understood.join("; ")
            ));
        }
        table.add_row([
            format!("   {}", demangle(&kernel.name)),
            kernel.accesses.to_string(),
            if kernel.instrumented {
                kernel.checked
            } else {
                0
            }
            .to_string(),
            kernel.shared_accesses.to_string(),
            barriers(kernel),
            readable(kernel.release_sites.first().map_or("", String::as_str)),
            readable(&remarks.join("; ")),
        ]);
    }
    console::out(format_args!("{table}"));
    for (name, why) in &rewritten.unchecked_functions {
        let why = readable(why);
        console::out(format_args!("    {} is left alone: {why}", demangle(name)));
    }
    true
}

/// What is known of each kernel before a launch, from which the launch's arguments prove that accesses cannot race.
/// Whether there are any that are asked for.
fn summaries(args: &InspectArgs, module: &ptx::ast::Module) -> bool {
    let wanted = |name: &str| {
        let kernel = args.kernel.as_deref();
        kernel.is_none_or(|kernel| is_called(name, kernel))
    };
    let kernels = module.functions().filter(|function| function.entry);
    let mut found = false;
    for kernel in kernels.filter(|kernel| wanted(&kernel.name)) {
        found = true;
        console::out(format_args!("  {}", demangle(&kernel.name)));
        for line in prove::Summary::new(module, kernel).describe() {
            console::out(format_args!("    {}", readable(&line)));
        }
    }
    found
}

/// Whose barriers the kernel executes, the largest group first.
fn barriers(kernel: &rewrite::KernelInfo) -> String {
    let groups = [
        (kernel.grid_barriers, "grid"),
        (kernel.barriers, "block"),
        (kernel.warp_barriers, "warp"),
    ];
    let found: Vec<&str> = groups.iter().filter(|g| g.0).map(|g| g.1).collect();
    match found.as_slice() {
        [] => "none".to_owned(),
        found => found.join(", "),
    }
}
