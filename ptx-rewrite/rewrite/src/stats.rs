//! What `ptxas` makes of a module: registers, spills and code size per kernel, and whether it accepts it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use image::elf;
use ptx::ast::{self, Span};

/// One kernel as `ptxas -v` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Mangled name.
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of local memory per thread for spills and arrays.
    pub stack: u32,
    /// Bytes of spill stores.
    pub spill_stores: u32,
    /// Bytes of spill loads.
    pub spill_loads: u32,
    /// Bytes of code, called functions left aside.
    pub code_bytes: u64,
}

/// Assembles `text` for `arch` (`sm_90`) with the `ptxas` at `assembler`.
///
/// # Errors
/// The assembler's own words when it rejects the text, or why it could not be run.
pub fn assemble(assembler: &Path, text: &str, arch: &str) -> Result<Vec<Stats>, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("cudarun-check-{}-{number}.cubin", std::process::id());
    let cubin = std::env::temp_dir().join(name);
    let said = run(
        assembler,
        text,
        arch,
        &["-v".as_ref(), "-o".as_ref(), cubin.as_os_str()],
    );
    let code = std::fs::read(&cubin)
        .ok()
        .and_then(|file| elf::code_sizes(&file).ok());
    // It is not there when the assembler failed.
    drop(std::fs::remove_file(&cubin));
    let mut kernels = parse(&said?);
    for (name, bytes) in code.unwrap_or_default() {
        for kernel in kernels.iter_mut().filter(|kernel| kernel.name == name) {
            kernel.code_bytes = bytes;
        }
    }
    Ok(kernels)
}

/// Asks `ptxas` whether it accepts texts. It does not optimise, so it takes less time than [`assemble`].
///
/// Nearly all of a small module's text are functions that the rewriter puts into every module. Once a function has been
/// accepted for an architecture, later texts with the same one are given its declaration.
#[derive(Debug, Default)]
pub struct Accepted(Mutex<BTreeSet<Function>>);

/// A function that has been accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    architecture: String,
    text: String,
}

impl Accepted {
    /// None yet.
    pub const fn new() -> Accepted {
        Accepted(Mutex::new(BTreeSet::new()))
    }

    /// How many functions have been accepted, counted for each architecture.
    pub fn functions(&self) -> usize {
        self.known().len()
    }

    /// Whether the `ptxas` at `assembler` accepts `text` for `arch`.
    ///
    /// # Errors
    /// As [`assemble`].
    pub fn accepts(&self, assembler: &Path, text: &str, arch: &str) -> Result<(), String> {
        let (text, defined) = self.shortened(text, arch);
        let options = ["-O0", "-o", "/dev/null"].map(OsStr::new);
        run(assembler, &text, arch, &options)?;
        self.known().extend(defined);
        Ok(())
    }

    /// The set is only ever added to, so it is right even if another thread has panicked with the lock.
    fn known(&self) -> MutexGuard<'_, BTreeSet<Function>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text with declarations in place of known functions, and its other functions of the rewriter.
    fn shortened(&self, text: &str, arch: &str) -> (String, Vec<Function>) {
        let (module, _) = ptx::parse(text);
        // An entry with this prefix is a copy of one of the program's.
        let is_ours = |function: &&ast::Function| {
            !function.entry && function.name.starts_with(device::PREFIX)
        };
        let ours = || module.functions().filter(is_ours);
        let defined = ours().filter(|function| function.body.is_some());
        let named = defined.map(|function| {
            let accepted = Function {
                architecture: arch.to_owned(),
                text: module.slice(function.span).to_owned(),
            };
            (function.name.as_str(), accepted)
        });
        let known = self.known();
        let (declared, others): (Vec<_>, Vec<_>) =
            named.partition(|(_, function)| known.contains(function));
        drop(known);
        let (mut short, mut done) = (String::new(), 0);
        for function in ours() {
            if !declared.iter().any(|(name, _)| *name == function.name) {
                continue;
            }
            let Span { start, end } = function.span;
            let body = function.body.as_ref().map(|body| body.span.start);
            let slice = |start, end| module.slice(Span { start, end });
            short.extend([
                slice(done, start),
                ".extern ",
                slice(start, body.unwrap_or(end)),
            ]);
            short.extend(body.map(|_| ";"));
            done = end;
        }
        short.push_str(&text[done as usize..]);
        (
            short,
            others.into_iter().map(|(_, function)| function).collect(),
        )
    }
}

/// What the assembler says.
fn run(assembler: &Path, text: &str, arch: &str, options: &[&OsStr]) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot run {}: {error}", assembler.display());
    let mut child = Command::new(assembler)
        .args(["-c", "-arch", arch])
        .args(options)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let input = child.stdin.take();
    let text = text.to_owned();
    let feeder = std::thread::spawn(move || {
        // A broken pipe means the assembler gave up; its exit status says it.
        input.map(|mut input| input.write_all(text.as_bytes()))
    });
    let result = child.wait_with_output().map_err(cannot)?;
    drop(feeder.join());
    let said = String::from_utf8_lossy(&result.stderr).into_owned();
    if result.status.success() {
        Ok(said)
    } else {
        Err(said)
    }
}

/// Reads the `-v` remarks.
fn parse(text: &str) -> Vec<Stats> {
    let mut kernels: Vec<Stats> = Vec::new();
    let mut entry = false;
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("Compiling entry function '") {
            let name = name.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(Stats {
                name,
                ..Stats::default()
            });
        } else if line.contains("Function properties for ") {
            // Properties of device functions follow too; only the kernel's own count.
            let of = line.rsplit(' ').next().unwrap_or_default();
            entry = kernels.last().is_some_and(|kernel| kernel.name == of);
        } else if let Some(kernel) = kernels.last_mut() {
            if line.contains("bytes stack frame") && entry {
                kernel.stack = number_before(line, " bytes stack frame");
                kernel.spill_stores = number_before(line, " bytes spill stores");
                kernel.spill_loads = number_before(line, " bytes spill loads");
            } else if line.contains("Used ") {
                kernel.registers = number_before(line, " registers");
            }
        }
    }
    kernels
}

fn number_before(line: &str, what: &str) -> u32 {
    let before = line.split(what).next().unwrap_or_default();
    before
        .rsplit([' ', ','])
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_functions_of_the_rewriter_are_declared() {
        let ours = ".func (.param .b64 r) __cudarun_f(\n\t.param .b64 a\n)\n{\n\tret;\n}";
        let program = "\n.func p(.param .u64 __cudarun_launch)\n{\n\tret;\n}\n\
                       .visible .entry __cudarun_own_p()\n{\n\tret;\n}\n";
        let text = format!("/*+crc*/.func __cudarun_f(\n)\n;\n{ours}{program}");
        let accepted = Accepted::new();
        let function = |text: &str| Function {
            architecture: "sm_90".to_owned(),
            text: text.to_owned(),
        };
        let (whole, defined) = accepted.shortened(&text, "sm_90");
        assert_eq!((whole, defined), (text.clone(), vec![function(ours)]));
        let copy = ".visible .entry __cudarun_own_p()\n{\n\tret;\n}";
        accepted.known().extend([ours, copy].map(function));
        let short = format!(
            "/*+crc*/.extern .func __cudarun_f(\n)\n;\n\
             .extern .func (.param .b64 r) __cudarun_f(\n\t.param .b64 a\n)\n;{program}"
        );
        assert_eq!(accepted.shortened(&text, "sm_90"), (short, Vec::new()));
        assert_eq!(accepted.shortened(&text, "sm_80").0, text);
    }

    #[test]
    fn remarks_are_read() {
        let text = "ptxas info    : Compiling entry function 'k' for 'sm_90'\n\
                    ptxas info    : Function properties for k\n    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n\
                    ptxas info    : Used 26 registers, used 0 barriers, 360 bytes cmem[0]\n\
                    ptxas info    : Function properties for f\n    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
        let k = Stats {
            name: "k".into(),
            registers: 26,
            stack: 8,
            spill_stores: 4,
            spill_loads: 12,
            code_bytes: 0,
        };
        assert_eq!(parse(text), [k]);
    }
}
