//! Compares kernels with and without checks before they run: time of the driver's compiler, registers, local memory, and
//! occupancy.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use driver::client::{Client, Size};
use ptx::Parsed;
use report::log::Writer;
use runtime::{Checker, Mode, Options, backend};
use serde::Serialize;

/// Threads per block for the occupancy.
const THREADS: u32 = 256;

/// A module with and without checks.
#[derive(Debug, Serialize)]
pub struct Module {
    /// The file's name without its extension.
    pub name: String,
    /// The program's own PTX.
    pub own: Text,
    /// The PTX with checks.
    pub checked: Text,
    /// Its kernels.
    pub kernels: Vec<Kernel>,
}

/// One text of a module.
#[derive(Debug, Serialize)]
pub struct Text {
    /// Bytes of PTX.
    pub bytes: usize,
    /// Seconds until the driver had it compiled and loaded.
    pub seconds: f64,
}

/// A kernel with and without checks.
#[derive(Debug, Serialize)]
pub struct Kernel {
    /// Mangled name.
    pub name: String,
    /// Registers of a thread, without checks and with.
    pub registers: [u32; 2],
    /// Bytes of local memory of a thread, likewise.
    pub local_bytes: [u32; 2],
    /// Blocks of 256 threads that fit a multiprocessor, likewise.
    pub blocks: [Option<u32>; 2],
}

/// Compiles files of PTX with and without checks. The driver's cache of compiled code has to be off, as
/// `CUDA_CACHE_DISABLE=1` makes it.
///
/// # Errors
/// When there is no device, or it does not take a text.
pub fn measure(files: &[impl AsRef<Path>]) -> Result<Vec<Module>> {
    let client = Client::open().map_err(|why| anyhow!(why))?;
    let all = files.iter().map(|file| {
        let file = file.as_ref();
        one(&client, file).with_context(|| file.display().to_string())
    });
    all.collect()
}

fn one(client: &Client, file: &Path) -> Result<Module> {
    let text = std::fs::read_to_string(file)?;
    let options = Options {
        mode: Mode::Precise,
        as_gpu: true,
        ..Options::default()
    };
    let mut checker = Checker::new(options, Writer::Memory(Vec::new()));
    let parsed = Parsed::new(&text);
    let prepared = checker.prepare(&parsed, "ptx");
    let entries = parsed.module.functions().filter(|function| function.entry);
    let names: Vec<String> = entries.map(|entry| entry.name.to_string()).collect();
    let limit = backend::register_limit(&parsed.module);
    let (own, own_sizes) = compiled(client, &text, None, &names)?;
    let (checked, checked_sizes) = compiled(client, prepared.code.text(), limit, &names)?;
    let sizes = own_sizes.into_iter().zip(checked_sizes);
    let kernels = names.into_iter().zip(sizes);
    Ok(Module {
        name: file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into(),
        own,
        checked,
        kernels: kernels
            .map(|(name, (own, checked))| kernel(name, [own, checked]))
            .collect(),
    })
}

fn compiled(
    client: &Client,
    text: &str,
    registers: Option<u32>,
    kernels: &[String],
) -> Result<(Text, Vec<Size>)> {
    let started = Instant::now();
    let module = client
        .load_with(text, registers)
        .map_err(|why| anyhow!(why))?;
    let seconds = started.elapsed().as_secs_f64();
    let sizes = kernels.iter().map(|kernel| {
        let function = client.function(&module, kernel)?;
        Ok(client.size(function, THREADS))
    });
    let sizes = sizes.collect::<Result<_>>();
    client.unload(module);
    let bytes = text.len();
    Ok((Text { bytes, seconds }, sizes?))
}

fn kernel(name: String, both: [Size; 2]) -> Kernel {
    Kernel {
        name,
        registers: both.map(|size| size.registers),
        local_bytes: both.map(|size| size.local_bytes),
        blocks: both.map(|size| size.blocks),
    }
}

/// A table for people.
pub fn render(modules: &[Module]) -> String {
    let mut text = String::from(
        "| module | kernel | PTX | checked | compiled in | checked | registers | checked | local bytes | checked | blocks | checked |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for module in modules {
        let Module { own, checked, .. } = module;
        for (index, kernel) in module.kernels.iter().enumerate() {
            let compiled = match index {
                0 => format!(
                    "{} | {} | {:.2} s | {:.2} s",
                    own.bytes, checked.bytes, own.seconds, checked.seconds
                ),
                _ => " | | | ".to_owned(),
            };
            let ([r0, r1], [l0, l1]) = (kernel.registers, kernel.local_bytes);
            let blocks = kernel.blocks.map(|blocks| match blocks {
                Some(blocks) => blocks.to_string(),
                None => "not known".to_owned(),
            });
            let [b0, b1] = blocks;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | {compiled} | {r0} | {r1} | {l0} | {l1} | {b0} | {b1} |",
                module.name, kernel.name
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_reported_once_and_each_of_its_kernels() {
        let size = |registers, blocks| Size {
            registers,
            local_bytes: 0,
            blocks,
        };
        let text = |bytes, seconds| Text { bytes, seconds };
        let sizes = [size(16, Some(8)), size(64, None)];
        let module = Module {
            name: "lud".to_owned(),
            own: text(100, 0.25),
            checked: text(900, 3.0),
            kernels: vec![kernel("a".to_owned(), sizes), kernel("b".to_owned(), sizes)],
        };
        let table = render(&[module]);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| lud | a | 100 | 900 | 0.25 s | 3.00 s | 16 | 64 | 0 | 0 | 8 | not known |",
                "| lud | b |  | | |  | 16 | 64 | 0 | 0 | 8 | not known |",
            ]
        );
    }
}
