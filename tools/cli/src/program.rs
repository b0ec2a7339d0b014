//! What can be said of a program before it is started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use image::elf::{self, ElfError, Executable, Runtime};
use image::fatbin::EntryKind;

use crate::exit::{INCOMPLETE, NOT_EXECUTABLE, NOT_FOUND, Stop};

/// The architecture that the simulated device compiles PTX for.
const SM: u32 = 90;

/// A program that can be started.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Kernels, mangled, of which it has machine code only.
    pub(crate) without_ptx: Vec<String>,
    /// Whether anything says that it uses CUDA.
    pub(crate) cuda: bool,
}

/// Finds a program and looks into it; the simulated device refuses some that a GPU runs.
pub(crate) fn examine(name: &OsStr, simulated: bool) -> Result<Program, Stop> {
    let path = find(name)?;
    let refuse = |what: String| {
        Err(Stop::new(
            NOT_EXECUTABLE,
            format!("{}: {what}", path.display()),
        ))
    };
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        // It may be started without being readable; then nothing is known of it.
        Err(_) => {
            return Ok(Program {
                path,
                ..Program::default()
            });
        }
    };
    let found = match elf::scan(&bytes) {
        Ok(found) => found,
        // A script may start a CUDA program.
        Err(ElfError::NotElf) => {
            return Ok(Program {
                path,
                ..Program::default()
            });
        }
        Err(ElfError::NotElf64) => {
            return refuse(
                "not executable: built for another architecture (not 64-bit)".to_owned(),
            );
        }
        Err(error @ ElfError::Broken(_)) => return refuse(format!("not executable: {error}")),
    };
    if found.machine == elf::EM_CUDA {
        return refuse(
            "not executable: this is a cubin, device code without a host program".to_owned(),
        );
    }
    if let Some(own) = own_machine()
        && found.machine != own
    {
        return refuse(format!(
            "not executable: built for another architecture ({}, this machine is {})",
            machine(found.machine),
            std::env::consts::ARCH
        ));
    }
    if simulated && found.runtime == Runtime::Static {
        return Err(static_runtime(&path));
    }
    Ok(describe(path, &found))
}

fn describe(path: PathBuf, found: &Executable<'_>) -> Program {
    Program {
        without_ptx: without_ptx(found),
        cuda: found.driver || found.runtime != Runtime::None || !found.fatbins.is_empty(),
        path,
    }
}

/// Whether a file is a program that uses CUDA, as far as can be seen.
pub(crate) fn uses_cuda(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    let found = elf::scan(&bytes);
    found.is_ok_and(|found| describe(path.to_owned(), &found).cuda)
}

/// Kernels whose fat binary has no PTX for our device, without those of NVIDIA's device runtime: what a program
/// launches of it has been asked for by a kernel of its own.
fn without_ptx(found: &Executable<'_>) -> Vec<String> {
    let mut names: Vec<String> = found
        .fatbins
        .iter()
        .flatten()
        .filter(|fatbin| fatbin.best_ptx(SM).is_none())
        .flat_map(|fatbin| {
            fatbin
                .entries
                .iter()
                .filter(|entry| entry.kind == EntryKind::Elf)
        })
        .filter_map(|entry| elf::kernels(&entry.bytes().ok()?).ok())
        .flatten()
        .filter(|name| !elf::is_of_device_runtime(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn static_runtime(path: &Path) -> Stop {
    let text = format!(
        "{} has the CUDA runtime linked statically, which works with NVIDIA's driver only: \
         rebuild it with `nvcc -cudart shared` to run it on the simulated device; nothing was checked",
        path.display()
    );
    Stop::new(INCOMPLETE, text)
}

/// Finds a program as a shell does.
fn find(name: &OsStr) -> Result<PathBuf, Stop> {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(Stop::new(NOT_FOUND, format!("{shown}: not found")))
            }
            Err(error) => Err(Stop::new(NOT_EXECUTABLE, format!("{shown}: {error}"))),
            Ok(about) if about.is_dir() => Err(Stop::new(
                NOT_EXECUTABLE,
                format!("{shown}: not executable: it is a folder"),
            )),
            Ok(about) if about.permissions().mode() & 0o111 == 0 => Err(Stop::new(
                NOT_EXECUTABLE,
                format!("{shown}: not executable: chmod +x {shown}"),
            )),
            Ok(_) => Ok(path),
        };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let runs = |path: &PathBuf| {
        std::fs::metadata(path)
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    match candidates.into_iter().find(runs) {
        Some(path) => Ok(path),
        None => {
            let here = match Path::new(name).exists() {
                true => format!("; did you mean ./{shown}?"),
                false => String::new(),
            };
            Err(Stop::new(
                NOT_FOUND,
                format!("{shown}: not found on PATH{here}"),
            ))
        }
    }
}

/// `e_machine` of programs that run here.
fn own_machine() -> Option<u16> {
    match std::env::consts::ARCH {
        "x86_64" => Some(62),
        "aarch64" => Some(183),
        _ => None,
    }
}

fn machine(number: u16) -> String {
    match number {
        3 => "x86".to_owned(),
        40 => "arm".to_owned(),
        62 => "x86_64".to_owned(),
        183 => "aarch64".to_owned(),
        243 => "riscv".to_owned(),
        other => format!("ELF machine {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        std::fs::write(&file, "x").unwrap();
        let code = |name: &OsStr| examine(name, true).err().map(|stop| stop.code);
        assert_eq!(code(file.as_os_str()), Some(NOT_EXECUTABLE));
        assert_eq!(code(folder.path().as_os_str()), Some(NOT_EXECUTABLE));
        assert_eq!(
            code(folder.path().join("none").as_os_str()),
            Some(NOT_FOUND)
        );
        assert_eq!(
            code(OsStr::new("no-program-has-this-name")),
            Some(NOT_FOUND)
        );
        let sh = examine(OsStr::new("sh"), true).unwrap();
        assert!(sh.path.is_absolute() && !sh.cuda);
    }

    #[test]
    fn files_that_only_look_like_programs_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let with = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
            let path = folder.path().join(name);
            let mut bytes = own[..own.len().min(1 << 16)].to_vec();
            change(&mut bytes);
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            examine(path.as_os_str(), true)
                .err()
                .map(|stop| stop.message)
                .unwrap_or_default()
        };
        // The class, the section table's offset, and the whole program cut short.
        assert!(with("class", &|bytes| bytes[4] = 1).contains("architecture"));
        assert!(with("broken", &|bytes| bytes[40..48].fill(0xff)).contains("not executable"));
        // Scripts are left to the system.
        let script = with("script", &|bytes| *bytes = b"#!/bin/sh\n".to_vec());
        assert_eq!(script, "");
    }
}
