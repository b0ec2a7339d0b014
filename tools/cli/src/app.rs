//! Starts a program with our libraries in front of the system's, and waits for it.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus as Status};
use std::time::{Duration, Instant};

use driver::nvtx::INJECTION_VARIABLE;
use driver::sys::{DRIVER_VARIABLE, SIMULATED_VARIABLE};
use os::signals;
use report::model::ExitStatus;
use runtime::Options;
use runtime::options::{DIRECTORY_VARIABLE, OPTIONS_VARIABLE, SPARE_VARIABLE};

use crate::device::Device;
use crate::exit::{INTERNAL, NOT_EXECUTABLE, NOT_FOUND, Stop};
use crate::logs::Schedule;
use crate::program::Program;
use crate::stdin::Input;

/// Names the folder of our libraries, for installations of another shape.
const LIBRARY_VARIABLE: &str = "CUDARUN_CHECK_LIB";
/// What makes a folder the one.
pub(crate) const DRIVER: &str = "libcuda.so.1";
/// The folder of what stands in front of a GPU's driver, in the folder of our libraries.
pub(crate) const GPU: &str = "gpu";
/// The loader's guide to our libraries, in their folder.
pub(crate) const AUDIT: &str = "audit.so";
/// Tells the audit library from which folder programs get what they look for.
pub(crate) const GIVEN_VARIABLE: &str = "CUDARUN_CHECK_LIBRARIES";
/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);
/// Stands in for ptxas where a program compiles PTX itself: gives the PTX on, in the folder of our libraries.
const PTXAS: &str = "ptxas";
/// What names the ptxas that Triton runs.
const TRITON_PTXAS: [&str; 2] = ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"];
/// Makes CuPy compile its kernels to PTX instead of machine code.
const CUPY_PTX: &str = "CUPY_COMPILE_WITH_PTX";
/// Names the folder of the driver that Triton links to.
const TRITON_DRIVER: &str = "TRITON_LIBCUDA_PATH";
/// SIGHUP, SIGINT, SIGKILL and SIGTERM have these numbers on every Linux.
const HANG_UP: i32 = 1;
const INTERRUPT: i32 = 2;
const KILL: i32 = 9;
const TERMINATE: i32 = 15;

/// Finds the folder with our `libcuda.so.1` and `libcudart.so.*`.
pub(crate) fn libraries() -> Result<PathBuf, Stop> {
    if let Some(folder) = std::env::var_os(LIBRARY_VARIABLE) {
        let folder = PathBuf::from(folder);
        return match folder.join(DRIVER).exists() {
            // The program may change its working folder.
            true => Ok(std::path::absolute(&folder).unwrap_or(folder)),
            false => Err(Stop::new(
                INTERNAL,
                format!(
                    "{LIBRARY_VARIABLE} is {}, which has no {DRIVER}",
                    folder.display()
                ),
            )),
        };
    }
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(Path::new("."));
    let candidates = [
        folder.join("../lib/cudarun-check"),
        folder.join("lib/cudarun-check"),
    ];
    let found = candidates
        .iter()
        .find(|folder| folder.join(DRIVER).exists());
    match found {
        Some(folder) => Ok(folder.canonicalize().unwrap_or(folder.clone())),
        None => Err(Stop::new(
            INTERNAL,
            format!(
                "{DRIVER} of cudarun-check is not in {}; run `cargo xtask dist` and use its bin/cudarun-check, or set {LIBRARY_VARIABLE}",
                candidates[0].display()
            ),
        )),
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) exit: ExitStatus,
    pub(crate) timed_out: bool,
    /// We were asked to stop while it ran.
    pub(crate) interrupted: bool,
}

impl Ended {
    /// The program was ended by a signal that asks programs to end.
    pub(crate) fn by_signal(&self) -> bool {
        let asking = [HANG_UP, INTERRUPT, TERMINATE];
        self.exit
            .signal
            .is_some_and(|signal| asking.contains(&signal))
    }
}

/// What is started, and with what.
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Program,
    pub(crate) arguments: &'a [OsString],
    pub(crate) device: &'a Device,
    pub(crate) libraries: &'a Path,
    pub(crate) logs: &'a Schedule,
    pub(crate) input: &'a Input,
    pub(crate) options: &'a Options,
    pub(crate) timeout: Option<Duration>,
}

/// Starts the program and waits for its end; calls `meanwhile` again and again.
pub(crate) fn run(start: &Start<'_>, meanwhile: &mut dyn FnMut()) -> Result<Ended, Stop> {
    let Start {
        program,
        arguments,
        device,
        libraries,
        logs,
        input,
        options,
        timeout,
    } = *start;
    let mut command = Command::new(&program.path);
    command.args(arguments);
    match device {
        Device::Gpu(found) => in_front_of(&mut command, &found.path, libraries)?,
        Device::Simulated { .. } => in_place_of(&mut command, libraries)?,
    }
    let choice = &options.choice;
    let of_ranges = !choice.ranges.is_empty() || !choice.excluded_ranges.is_empty();
    // The library that checks is the one to know ranges, and the names of the streams that it compares. For the names
    // alone it does not take the place of a library that the user has named.
    let listener = match device {
        Device::Gpu(_) => of_ranges.then(|| libraries.join(GPU)),
        Device::Simulated { .. } => {
            let free = std::env::var_os(INJECTION_VARIABLE).is_none();
            (of_ranges || free).then(|| libraries.to_owned())
        }
    };
    if let Some(folder) = listener {
        command.env(INJECTION_VARIABLE, folder.join(DRIVER));
    }
    command.env(DIRECTORY_VARIABLE, &logs.main);
    match &logs.spare {
        Some(spare) => command.env(SPARE_VARIABLE, spare),
        None => command.env_remove(SPARE_VARIABLE),
    };
    let cannot = |error| {
        let text = format!("cannot read the standard input again: {error}");
        Stop::new(INTERNAL, text)
    };
    command.stdin(input.next().map_err(cannot)?);
    // Numbers and strings always serialise.
    command.env(
        OPTIONS_VARIABLE,
        serde_json::to_string(options).unwrap_or_default(),
    );
    signals::hold();
    let mut child = command.spawn().map_err(|error| {
        let code = match error.kind() {
            ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        };
        let what = match error.kind() {
            // The file is there, so it is its interpreter that is missing.
            ErrorKind::NotFound => "its interpreter or loader is not found".to_owned(),
            _ => format!("cannot be executed: {error}"),
        };
        Stop::new(code, format!("{}: {what}", program.path.display()))
    })?;
    input.feed(child.stdin.take());
    wait(child, timeout, meanwhile)
}

/// Puts the interposer before the driver of a GPU, in every way in which a program may look for it.
fn in_front_of(command: &mut Command, driver: &Path, libraries: &Path) -> Result<(), Stop> {
    let folder = libraries.join(GPU);
    let interposer = folder.join(DRIVER);
    // The loader knows no way to quote a separator.
    give(command, &folder, libraries, b" :;\t\n$")?;
    command.env(
        "LD_PRELOAD",
        in_front("LD_PRELOAD", &[interposer.into()], ":"),
    );
    command.env(DRIVER_VARIABLE, driver);
    Ok(())
}

/// Puts the simulated driver, and the runtime library over it, in place of those of a GPU.
fn in_place_of(command: &mut Command, libraries: &Path) -> Result<(), Stop> {
    // Nothing stands in front of it, so it is the one that checks.
    command.env_remove(SIMULATED_VARIABLE);
    command.env(TRITON_DRIVER, libraries);
    give(command, libraries, libraries, b":;$")
}

/// Lets the loader give programs the libraries of `folder`, unless `separators` are in its name.
fn give(
    command: &mut Command,
    folder: &Path,
    libraries: &Path,
    separators: &[u8],
) -> Result<(), Stop> {
    let audit = libraries.join(AUDIT);
    if let Some(missing) = [&folder.join(DRIVER), &audit]
        .into_iter()
        .find(|path| !path.exists())
    {
        let text = format!("{} is missing: run `cargo xtask dist`", missing.display());
        return Err(Stop::new(INTERNAL, text));
    }
    let name = folder.as_os_str().as_bytes();
    if let Some(&found) = name.iter().find(|byte| separators.contains(byte)) {
        let text = format!(
            "{}: the dynamic loader cannot take libraries from a folder with {:?} in its name",
            folder.display(),
            char::from(found)
        );
        return Err(Stop::new(INTERNAL, text));
    }
    for (variable, path) in [("LD_LIBRARY_PATH", folder), ("LD_AUDIT", &audit)] {
        command.env(variable, in_front(variable, &[path.into()], ":"));
    }
    command.env(GIVEN_VARIABLE, folder);
    // Kernels of CuPy and Triton can be checked only as PTX.
    command.env(CUPY_PTX, "1");
    let ptxas = libraries.join(PTXAS);
    if ptxas.exists() {
        for variable in TRITON_PTXAS {
            command.env(variable, &ptxas);
        }
    }
    Ok(())
}

/// `new` parts before what the variable holds.
fn in_front(variable: &str, new: &[OsString], separator: &str) -> OsString {
    let old = std::env::var_os(variable).filter(|value| !value.is_empty());
    let parts: Vec<OsString> = new.iter().cloned().chain(old).collect();
    parts.join(OsStr::new(separator))
}

fn wait(
    mut child: Child,
    timeout: Option<Duration>,
    meanwhile: &mut dyn FnMut(),
) -> Result<Ended, Stop> {
    let cannot = |error: std::io::Error| {
        Stop::new(INTERNAL, format!("cannot wait for the program: {error}"))
    };
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    let mut timed_out = false;
    let mut interrupted = false;
    loop {
        if let Some(status) = child.try_wait().map_err(cannot)? {
            // A signal that came with the program's end still asks us to stop.
            interrupted |= signals::take().is_some();
            return Ok(Ended {
                exit: exit(status),
                timed_out,
                interrupted,
            });
        }
        if let Some(caught) = signals::take() {
            interrupted = true;
            // What came from the terminal has reached the program too.
            if !caught.from_terminal {
                signals::send(child.id(), caught.signal);
            }
        }
        let over = timeout.and_then(|limit| start.elapsed().checked_sub(limit));
        if let Some(over) = over {
            let signal = if over < GRACE { TERMINATE } else { KILL };
            if !timed_out || signal == KILL {
                signals::send(child.id(), signal);
            }
            timed_out = true;
        }
        meanwhile();
        std::thread::sleep(pause);
        // Short programs are not kept waiting, long ones cost nothing.
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn exit(status: Status) -> ExitStatus {
    ExitStatus {
        code: status.code(),
        signal: status.signal(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_folder_comes_first() {
        let joined = in_front("CUDARUN_CHECK_NO_SUCH", &["/a".into(), "/b".into()], ":");
        assert_eq!(joined, "/a:/b");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let ended = wait(child, Some(Duration::from_millis(50)), &mut || ()).unwrap();
        assert!(ended.timed_out);
        assert_eq!(ended.exit.signal, Some(TERMINATE));
    }

    #[test]
    fn codes_and_signals_are_told_apart() {
        let of = |script: &str| {
            let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            let exit = wait(child, None, &mut || ()).unwrap().exit;
            (exit.code, exit.signal)
        };
        assert_eq!(of("exit 7"), (Some(7), None));
        assert_eq!(of("kill -9 $$"), (None, Some(9)));
    }
}
