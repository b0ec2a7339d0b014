//! `cargo xtask names`: the list of every function that NVIDIA's `libcuda.so.1` exports, from the headers of CUDA 13.0.
//!
//! A name is a fact; nothing but names is taken from the headers.
//! It is exported when a header declares it, or when a header's macro renames another one to it: `cuMemAlloc` to
//! `cuMemAlloc_v2`, and by `__CUDA_API_PTSZ` and `__CUDA_API_PTDS` to what programs import that were built with a
//! per-thread default stream.
//! With them come the versions of CUDA from which on `cuGetProcAddress` has another function for a name.
//! For `cuda.h` the names are exactly what a preprocessor finds with and without `CUDA_API_PER_THREAD_DEFAULT_STREAM`.
//! Departure: functions for Windows are left out.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::toolkit::{self, Toolkit};
use crate::workspace::Workspace;

/// The generated file.
const FILE: &str = "host/driver/src/sys/names.rs";

/// Headers that declare functions of the driver.
const HEADERS: [&str; 4] = ["cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"];

/// `cudaProfiler.h` is not among the wheels; its functions are known by the types of their pointers.
const TYPEDEFS: [&str; 2] = ["cudaTypedefs.h", "cudaProfilerTypedefs.h"];

/// The toolkit of the list: a newer one has more names than the table of entry points knows.
const VERSION: &str = "#define CUDA_VERSION 13000";

/// Writes the list; with `check`, only says whether that would change it.
pub fn run(workspace: &Workspace, check: bool) -> Result<bool> {
    let text = generate(&toolkit::ensure()?)?;
    let committed = workspace.root.join(FILE);
    let current = std::fs::read_to_string(&committed).is_ok_and(|old| old == text);
    match (current, check) {
        (true, _) => println!("{FILE} is current"),
        (false, true) => println!("{FILE} is stale: run `cargo xtask names`"),
        (false, false) => {
            std::fs::write(&committed, text)
                .with_context(|| format!("cannot write {}", committed.display()))?;
            println!("{FILE} written");
        }
    }
    Ok(current || !check)
}

/// The text of the file by this toolkit's headers.
pub fn generate(toolkit: &Toolkit) -> Result<String> {
    let folder = toolkit.root.join("include");
    let mut names = BTreeSet::new();
    for header in HEADERS {
        let text = read(&folder, header)?;
        if header == "cuda.h" && !text.contains(VERSION) {
            bail!("{}: not of CUDA 13.0", folder.join(header).display());
        }
        names.extend(declared(&text));
    }
    let mut versions = BTreeSet::new();
    for header in TYPEDEFS {
        versions.extend(pointed_to(&read(&folder, header)?));
    }
    names.extend(versions.iter().map(|of| of.name.clone()));
    Ok(render(&names, &versions))
}

fn read(folder: &Path, header: &str) -> Result<String> {
    let path = folder.join(header);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(without_comments(&text))
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        kept.push_str(before);
        kept.push(' ');
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    kept + rest
}

/// The functions that a header declares, and those that its macros rename others to.
fn declared(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for after in text.split("CUDAAPI").skip(1) {
        let (name, rest) = identifier(after.trim_start());
        if is_function(name) && rest.trim_start().starts_with('(') {
            names.insert(name.to_owned());
        }
    }
    for line in text.lines() {
        let Some(macro_text) = line.trim_start().strip_prefix("#define cu") else {
            continue;
        };
        let target = macro_text.split_whitespace().nth(1).unwrap_or_default();
        let (first, rest) = identifier(target);
        let suffix = match first {
            "__CUDA_API_PTSZ" => "_ptsz",
            "__CUDA_API_PTDS" => "_ptds",
            _ => "",
        };
        let name = if suffix.is_empty() {
            first
        } else {
            identifier(rest.trim_start_matches('(')).0
        };
        if is_function(name) {
            names.insert(name.to_owned());
            names.insert(format!("{name}{suffix}"));
        }
    }
    names
}

/// A version of CUDA that has brought another signature of a function.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Versioned {
    name: String,
    version: u32,
}

/// The functions that a header has types of pointers for, such as `PFN_cuInit_v2000`, with their versions.
///
/// Variants for a per-thread default stream have versions of their own, but the signature of the others.
fn pointed_to(text: &str) -> BTreeSet<Versioned> {
    let types = text.split("CUDAAPI *PFN_").skip(1);
    let parts = types.filter_map(|after| identifier(after).0.rsplit_once("_v"));
    let versions = parts.filter_map(|(name, version)| Some((name, version.parse().ok()?)));
    versions
        .filter(|(name, _)| is_function(name))
        .map(|(name, version)| Versioned {
            name: name.to_owned(),
            version,
        })
        .collect()
}

fn is_function(name: &str) -> bool {
    let after = name.strip_prefix("cu").and_then(|rest| rest.chars().next());
    after.is_some_and(|first| first.is_ascii_uppercase()) && !name.starts_with("cuWGL")
}

/// The identifier that `text` begins with, and what follows.
fn identifier(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    text.split_at(end.unwrap_or(text.len()))
}

fn render(names: &BTreeSet<String>, versions: &BTreeSet<Versioned>) -> String {
    let from = [&HEADERS[..], &TYPEDEFS[..]].concat().join(", ");
    let versions: Vec<String> = versions
        .iter()
        .map(|of| format!("{} {},", of.name, of.version))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    format!(
        "//! Every function of the driver API, by name. Generated by `cargo xtask names`; do not edit.\n\
         //!\n\
         //! Source: the names in {from} of CUDA 13.0.\n\
         \n{}\n{}",
        list(
            "function_names",
            &format!("the {} names, in alphabetical order", names.len()),
            &names
        ),
        list(
            "function_versions",
            &format!(
                "{} pairs of a name that `cuGetProcAddress` knows and a version of CUDA that has\n\
                 /// brought another signature for it, 1000 * major + 10 * minor",
                versions.len()
            ),
            &versions
        ),
    )
}

/// A macro that passes words on to another one.
fn list(name: &str, what: &str, words: &[&str]) -> String {
    /// As rustfmt has it elsewhere.
    const WIDTH: usize = 100;
    let mut text = format!(
        "/// Calls the macro `$callback` with {what}.\n\
         #[macro_export]\n\
         macro_rules! {name} {{\n\
         \x20   ($callback:ident) => {{ $callback! {{"
    );
    let mut column = WIDTH;
    for word in words {
        if column + 1 + word.len() > WIDTH {
            text.push_str("\n        ");
            column = 8;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text + "\n    } };\n}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_and_renamings_give_names() {
        let header = "\
#define __CUDA_API_PTSZ(api) api ## _ptsz
#define cuA  cuA_v2
    #define cuB   __CUDA_API_PTSZ(cuB_v2)
#define cuC __CUDA_API_PTDS(cuC)
/* CUresult CUDAAPI cuComment(int); */
CUresult CUDAAPI cuA(int a);
CUresult CUDAAPI
  cuD (void);
typedef void (CUDAAPI *CUhostFn)(void *data);
CUresult CUDAAPI cuWGLGetDevice(int x);
";
        let names: Vec<String> = declared(&without_comments(header)).into_iter().collect();
        assert_eq!(
            names,
            [
                "cuA",
                "cuA_v2",
                "cuB_v2",
                "cuB_v2_ptsz",
                "cuC",
                "cuC_ptds",
                "cuD"
            ]
        );
        let types = "\
typedef CUresult (CUDAAPI *PFN_cuE_v2000)(int);
typedef CUresult (CUDAAPI *PFN_cuE_v7000_ptsz)(int);
#define PFN_cuF PFN_cuF_v4000
";
        let versions = BTreeSet::from([Versioned {
            name: "cuE".to_owned(),
            version: 2000,
        }]);
        assert_eq!(pointed_to(types), versions);
    }

    #[test]
    fn the_committed_list_is_current() {
        let toolkit = toolkit::find().expect("nvcc: run `cargo xtask toolkit`");
        let workspace = Workspace::locate().expect("cargo metadata works where cargo test does");
        let committed = std::fs::read_to_string(workspace.root.join(FILE)).expect("a list");
        if toolkit.release().expect("nvcc says its release") != (13, 0) {
            eprintln!("skipped: the list is of CUDA 13.0, and nvcc of another release");
            return;
        }
        let text = generate(&toolkit).expect("the headers of CUDA 13.0");
        assert!(text == committed, "run `cargo xtask names`");
    }
}
