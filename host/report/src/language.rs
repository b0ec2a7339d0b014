//! Translates help from CUDA C++ to numba or Triton, for kernels in Python.

use crate::model::Access;
use crate::source::Sources;

/// What a kernel is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Language {
    /// CUDA C++, or anything that is not known.
    #[default]
    Cuda,
    /// Python, compiled by numba.
    Numba,
    /// Python, compiled by Triton.
    Triton,
}

/// The language of two accesses, in functions with these mangled names.
pub(crate) fn of(symbols: [&str; 2], accesses: &[Access; 2], sources: &Sources) -> Language {
    if symbols.into_iter().any(is_tagged) {
        return Language::Numba;
    }
    let imports = |access: &Access| {
        let frame = access.shown().filter(|frame| frame.file.ends_with(".py"));
        let text = frame.and_then(|frame| sources.text(&frame.file));
        text.is_some_and(|text| {
            let mut lines = text.lines().map(str::trim_start);
            lines.any(|line| line.starts_with("import triton") || line.starts_with("from triton"))
        })
    };
    match accesses.iter().any(imports) {
        true => Language::Triton,
        false => Language::Cuda,
    }
}

/// Whether a mangled name has the tags that numba appends (`B2v1B…`): the number of the compilation, and the options.
fn is_tagged(symbol: &str) -> bool {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let tags = symbol.split('B').skip(1).map(|part| &part[digits(part)..]);
    // What is split off ends where the next tag begins.
    let mut versions = tags.filter_map(|part| part.strip_prefix('v'));
    versions.any(|rest| !rest.is_empty() && digits(rest) == rest.len())
}

/// Phrases of help in CUDA C++, and in Python compiled by numba. Longer ones come first.
const NUMBA: &[(&str, &str)] = &[
    (
        "`cooperative_groups::this_grid().sync()`, in a cooperative launch",
        "`cuda.cg.this_grid().sync()`",
    ),
    (
        ", or read it with `ld.acquire` (`cuda::memory_order_acquire`)",
        "",
    ),
    (
        ", or write it with `st.release` (`cuda::memory_order_release`)",
        "",
    ),
    (
        ", with `cuda::memory_order_release` for the write and `cuda::memory_order_acquire` for the read",
        ", and put `cuda.threadfence()` before the write and after the read",
    ),
    (
        "`cuda::atomic_ref` of block scope",
        "`cuda.atomic.exch` for a write, `cuda.atomic.add` of 0 for a read",
    ),
    (
        "`cuda::atomic_ref` of device scope",
        "`cuda.atomic.exch` for a write, `cuda.atomic.add` of 0 for a read",
    ),
    (
        ", by a loop with `atomicCAS`: there is no minimum or maximum of floating-point numbers",
        ", `cuda.atomic.min` or `cuda.atomic.max`",
    ),
    (
        ", or write it with `st.release` and read it with `ld.acquire` (`cuda::memory_order_release`, `cuda::memory_order_acquire`)",
        "",
    ),
    ("`__syncthreads()`", "`cuda.syncthreads()`"),
    ("`__syncwarp()`", "`cuda.syncwarp()`"),
    ("`__threadfence()`", "`cuda.threadfence()`"),
    ("`__threadfence_block()`", "`cuda.threadfence_block()`"),
];

/// Likewise in Python compiled by Triton, which has no fences.
const TRITON: &[(&str, &str)] = &[
    (
        "`st.release` and read it with `ld.acquire` (`cuda::memory_order_release`, `cuda::memory_order_acquire`)",
        "`tl.atomic_xchg` and `sem=\"release\"`, and read it with `tl.atomic_add` of 0 and `sem=\"acquire\"`",
    ),
    (
        "`ld.acquire` (`cuda::memory_order_acquire`)",
        "`tl.atomic_add` of 0 and `sem=\"acquire\"`",
    ),
    (
        "`st.release` (`cuda::memory_order_release`)",
        "`tl.atomic_xchg` and `sem=\"release\"`",
    ),
    (
        ", with `cuda::memory_order_release` for the write and `cuda::memory_order_acquire` for the read",
        "",
    ),
    (
        "`cuda::atomic_ref` of block scope",
        "`tl.atomic_xchg` for a write, `tl.atomic_add` of 0 for a read",
    ),
    (
        "`cuda::atomic_ref` of device scope",
        "`tl.atomic_xchg` for a write, `tl.atomic_add` of 0 for a read",
    ),
    (
        ", by a loop with `atomicCAS`: there is no minimum or maximum of floating-point numbers",
        ", `tl.atomic_min` or `tl.atomic_max`",
    ),
    (
        "`__syncthreads()` does not order blocks",
        "`tl.debug_barrier()` does not order programs",
    ),
    ("`__syncthreads()`", "`tl.debug_barrier()`"),
    ("`__syncwarp()`", "`tl.debug_barrier()`"),
];

/// Atomics by name: in CUDA C++, in numba, in Triton.
const ATOMICS: [[&str; 3]; 9] = [
    ["atomicAdd", "cuda.atomic.add", "tl.atomic_add"],
    ["atomicSub", "cuda.atomic.sub", "tl.atomic_add"],
    ["atomicAnd", "cuda.atomic.and_", "tl.atomic_and"],
    ["atomicOr", "cuda.atomic.or_", "tl.atomic_or"],
    ["atomicXor", "cuda.atomic.xor", "tl.atomic_xor"],
    ["atomicMin", "cuda.atomic.min", "tl.atomic_min"],
    ["atomicMax", "cuda.atomic.max", "tl.atomic_max"],
    ["atomicExch", "cuda.atomic.exch", "tl.atomic_xchg"],
    ["atomicCAS", "cuda.atomic.cas", "tl.atomic_cas"],
];

/// A help in the words of a language.
pub(crate) fn words(help: &str, language: Language) -> String {
    let (phrases, column) = match language {
        Language::Cuda => return help.to_owned(),
        Language::Numba => (NUMBA, 1),
        Language::Triton => (TRITON, 2),
    };
    let mut text = match language {
        Language::Triton => without_fences(&without_grid_barrier(help)),
        _ => help.to_owned(),
    };
    for (cuda, python) in phrases {
        text = text.replace(cuda, python);
    }
    for names in ATOMICS {
        let (cuda, python) = (names[0], names[column]);
        text = calls(&text, cuda, python, language);
        text = text.replace(&format!("`{cuda}`"), &format!("`{python}`"));
    }
    text
}

/// A launch of Triton has no barrier of the grid.
fn without_grid_barrier(help: &str) -> String {
    let parts = help.split_once("put a barrier of the grid ").and_then(|(before, rest)| {
        let (places, rest) = rest.split_once(" (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there and go on in another launch")?;
        Some((before, places, rest))
    });
    match parts {
        Some((before, places, rest)) => {
            format!("{before}end the kernel {places}, and go on in another launch{rest}")
        }
        None => help.to_owned(),
    }
}

/// Keeps the ordered access where the help offers a fence or an ordered access of a flag.
fn without_fences(help: &str) -> String {
    for access in ["write", "read"] {
        for place in ["before", "after"] {
            let fence = format!("put `__threadfence()` {place} the {access} of ");
            let or = format!(", or {access} it with ");
            if let Some((before, rest)) = help.split_once(&fence)
                && let Some((flag, rest)) = rest.split_once(&or)
            {
                let flag = flag.split(", and after the read").next().unwrap_or(flag);
                return format!("{before}{access} {flag} with {rest}");
            }
        }
    }
    help.to_owned()
}

/// Translates a call of an atomic. numba's take the array and the index of the element.
fn calls(text: &str, cuda: &str, python: &str, language: Language) -> String {
    let begin = format!("`{cuda}(");
    let Some((before, rest)) = text.split_once(&begin) else {
        return text.to_owned();
    };
    let rest = rest.strip_prefix("(unsigned long long *)").unwrap_or(rest);
    let element = rest.strip_prefix('&').and_then(|rest| {
        let (array, rest) = rest.split_once('[')?;
        let (index, rest) = rest.split_once("], ")?;
        Some((array, index, rest))
    });
    match (element, language) {
        (Some((array, index, rest)), Language::Numba) => {
            format!("{before}`{python}({array}, {index}, {rest}")
        }
        // Triton's take pointers, which the C++ text does not have: the name alone.
        _ => match rest.split_once('`') {
            Some((_, rest)) => format!("{before}`{python}`{rest}"),
            None => text.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_speaks_the_language_of_the_kernel() {
        for (help, numba, triton) in [
            (
                "put `__syncthreads()` after the read at k.py:3",
                "put `cuda.syncthreads()` after the read at k.py:3",
                "put `tl.debug_barrier()` after the read at k.py:3",
            ),
            (
                "put a barrier of the grid after the read at k.py:3 (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there and go on in another launch: `__syncthreads()` does not order blocks",
                "put a barrier of the grid after the read at k.py:3 (`cuda.cg.this_grid().sync()`), or end the kernel there and go on in another launch: `cuda.syncthreads()` does not order blocks",
                "end the kernel after the read at k.py:3, and go on in another launch: `tl.debug_barrier()` does not order programs",
            ),
            (
                "release after the first access: put `__threadfence()` before the write of the flag at k.py:3 (offset 0 in allocation #2), or write it with `st.release` (`cuda::memory_order_release`)",
                "release after the first access: put `cuda.threadfence()` before the write of the flag at k.py:3 (offset 0 in allocation #2)",
                "release after the first access: write the flag at k.py:3 (offset 0 in allocation #2) with `tl.atomic_xchg` and `sem=\"release\"`",
            ),
            (
                "acquire before the second access: put `__threadfence()` after the read of the flag at k.py:3, or read it with `ld.acquire` (`cuda::memory_order_acquire`)",
                "acquire before the second access: put `cuda.threadfence()` after the read of the flag at k.py:3",
                "acquire before the second access: read the flag at k.py:3 with `tl.atomic_add` of 0 and `sem=\"acquire\"`",
            ),
            (
                "put `__threadfence()` before the write of the flag at k.py:3, and after the read of the flag at k.py:9, or write it with `st.release` and read it with `ld.acquire` (`cuda::memory_order_release`, `cuda::memory_order_acquire`)",
                "put `cuda.threadfence()` before the write of the flag at k.py:3, and after the read of the flag at k.py:9",
                "write the flag at k.py:3 with `tl.atomic_xchg` and `sem=\"release\"`, and read it with `tl.atomic_add` of 0 and `sem=\"acquire\"`",
            ),
            (
                "make the update at k.py:3 one atomic operation: `atomicAdd(&sum[i % 4], data[i])`",
                "make the update at k.py:3 one atomic operation: `cuda.atomic.add(sum, i % 4, data[i])`",
                "make the update at k.py:3 one atomic operation: `tl.atomic_add`",
            ),
            (
                "the loop at k.py:3 waits for the plain write at k.py:9: make both atomic, by `cuda::atomic_ref` of block scope, with `cuda::memory_order_release` for the write and `cuda::memory_order_acquire` for the read",
                "the loop at k.py:3 waits for the plain write at k.py:9: make both atomic, by `cuda.atomic.exch` for a write, `cuda.atomic.add` of 0 for a read, and put `cuda.threadfence()` before the write and after the read",
                "the loop at k.py:3 waits for the plain write at k.py:9: make both atomic, by `tl.atomic_xchg` for a write, `tl.atomic_add` of 0 for a read",
            ),
            (
                "make the update at k.py:3 one atomic operation, `atomicMax`",
                "make the update at k.py:3 one atomic operation, `cuda.atomic.max`",
                "make the update at k.py:3 one atomic operation, `tl.atomic_max`",
            ),
        ] {
            assert_eq!(words(help, Language::Cuda), help);
            assert_eq!(words(help, Language::Numba), numba);
            assert_eq!(words(help, Language::Triton), triton);
        }
    }

    #[test]
    fn the_language_is_that_of_the_names_or_of_the_source() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                "triton.py",
                "import os\n  from triton import language as tl\n",
            ),
            ("cuda.py", "from cuda.bindings import nvrtc\n"),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let sources = Sources::new(vec![folder.path().to_owned()]);
        let access = |file: &str| Access {
            frames: vec![crate::model::FrameAt {
                file: file.to_owned(),
                line: 1,
                ..Default::default()
            }],
            ..Access::default()
        };
        for (symbol, file, language) in [
            ("_ZN8__main__1kB2v1B4cw51E", "gone.py", Language::Numba),
            ("_ZN8__main__1kB3v12B4cw51E", "gone.py", Language::Numba),
            ("_Z1kB5cxx11v", "k.cu", Language::Cuda),
            ("k", "triton.py", Language::Triton),
            ("k", "cuda.py", Language::Cuda),
            ("k", "k.cu", Language::Cuda),
        ] {
            let both = [access(file), access(file)];
            assert_eq!(
                of([symbol; 2], &both, &sources),
                language,
                "{symbol} {file}"
            );
        }
    }
}
