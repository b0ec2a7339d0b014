//! `rewrite`: PTX in, PTX with checks out.

use std::io::Write;
use std::path::Path;

use comfy_table::{Table, presets};
use report::names::demangle;
use rewrite::{Config, Rewritten, Site, stats};
use serde::Serialize;

use crate::args::RewriteArgs;
use crate::console;
use crate::exit::{BAD_INPUT, INTERNAL, Stop};
use crate::kernel;

/// One checked access in the `--map` file.
#[derive(Serialize)]
struct Mapped<'a> {
    id: u32,
    /// Mangled.
    function: &'a str,
    demangled: String,
    line: u32,
    instruction: &'a str,
    bytes: u32,
    source: Vec<String>,
}

pub(crate) fn run(args: &RewriteArgs) -> Result<u8, Stop> {
    let parsed = kernel::read(&args.input)?;
    let module = &parsed.module;
    if rewrite::edit::is_rewritten(parsed.text()) {
        let what = format!("{} has been rewritten already", args.input.display());
        return Err(Stop::new(BAD_INPUT, what));
    }
    let rewritten = rewrite::rewrite(
        module,
        &Config {
            first_site: 1,
            ..Config::default()
        },
    );
    for diagnostic in &rewritten.diagnostics {
        let (line, column) = module.line_column(diagnostic.span.start);
        console::say(format_args!(
            "{}:{line}:{column}: {}",
            args.input.display(),
            diagnostic.message
        ));
    }
    for kernel in rewritten
        .kernels
        .iter()
        .filter(|kernel| !kernel.instrumented)
    {
        let why = kernel.why_not.as_deref().unwrap_or("unknown reason");
        console::say(format_args!(
            "{} is left alone: {why}",
            demangle(&kernel.name)
        ));
    }
    for (name, why) in &rewritten.unchecked_functions {
        console::say(format_args!("{} is left alone: {why}", demangle(name)));
    }
    if let Some(path) = &args.map {
        let sites: Vec<Mapped<'_>> = rewritten.sites.iter().map(mapped).collect();
        let json = serde_json::to_string_pretty(&sites).unwrap_or_default() + "\n";
        write(path, &json)?;
    }
    // Statistics first: a rejected text is still worth writing, to look at.
    let shown = match args.stats {
        true => Some(compare(parsed.text(), &rewritten, &args.arch)?),
        false => None,
    };
    write(&args.output, &rewritten.text)?;
    if let Some(table) = shown {
        console::say(format_args!("{table}"));
    }
    Ok(0)
}

fn mapped(site: &Site) -> Mapped<'_> {
    Mapped {
        id: site.id,
        function: &site.function,
        demangled: demangle(&site.function),
        line: site.ptx_line,
        instruction: &site.text,
        bytes: site.bytes,
        source: site
            .frames
            .iter()
            .map(|frame| format!("{}:{}:{}", frame.file, frame.line, frame.column))
            .collect(),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Stop> {
    let result = match path == Path::new("-") {
        true => std::io::stdout().write_all(text.as_bytes()),
        false => std::fs::write(path, text),
    };
    match result {
        // A reader that closes the pipe has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Stop::new(
            INTERNAL,
            format!("cannot write {}: {error}", path.display()),
        )),
        Ok(()) => Ok(()),
    }
}

/// Registers and spills of every kernel, before and after.
fn compare(text: &str, rewritten: &Rewritten, arch: &str) -> Result<Table, Stop> {
    let Some(assembler) = toolkit::find("ptxas") else {
        let what = "--stats needs ptxas: put the CUDA toolkit on PATH or run `cargo xtask toolkit`";
        return Err(Stop::new(INTERNAL, what));
    };
    let assemble = |text: &str, what: &str| {
        stats::assemble(&assembler, text, arch).map_err(|error| {
            Stop::new(
                BAD_INPUT,
                format!(
                    "ptxas rejects the {what} text for {arch}:\n{}",
                    error.trim_end()
                ),
            )
        })
    };
    let before = assemble(text, "original")?;
    let after = assemble(&rewritten.text, "rewritten")?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "kernel",
        "checks",
        "registers",
        "stack",
        "spill stores",
        "spill loads",
    ]);
    for old in &before {
        let new = after.iter().find(|kernel| kernel.name == old.name);
        let row = |of: fn(&stats::Stats) -> u32| match new {
            Some(new) => format!("{} -> {}", of(old), of(new)),
            None => of(old).to_string(),
        };
        let info = rewritten
            .kernels
            .iter()
            .find(|kernel| kernel.name == old.name);
        table.add_row([
            demangle(&old.name),
            info.map_or_else(String::new, |info| info.checked.to_string()),
            row(|stats| stats.registers),
            row(|stats| stats.stack),
            row(|stats| stats.spill_stores),
            row(|stats| stats.spill_loads),
        ]);
    }
    Ok(table)
}
