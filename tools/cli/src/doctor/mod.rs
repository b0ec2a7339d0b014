//! `doctor`: is everything there, and does the checker find a race?

use std::path::Path;
use std::process::{Command, Stdio};

use report::log::{Event, Writer};
use runtime::{Checker, Options, ShadowSize};
use simt::{Device, DeviceConfig, Launch};
use simulated::CheckedSim;

use crate::args::DoctorArgs;
use crate::console;
use crate::exit::{INTERNAL, Stop};
use crate::{app, device, nvidia};

/// A racy and a clean kernel.
const SELF_TEST: &str = include_str!("racy.ptx");
/// What programs look for, and what guides them to it.
const LIBRARIES: [&str; 7] = [
    "libcuda.so.1",
    "libcuda.so",
    "libcudart.so.12",
    "libcudart.so.13",
    "audit.so",
    "gpu/libcuda.so.1",
    "gpu/libcuda.so",
];

pub(crate) fn run(_: &DoctorArgs) -> Result<u8, Stop> {
    let mut well = true;
    let mut line = |good: Option<bool>, what: &str, found: String| {
        let mark = match good {
            Some(true) => "ok  ",
            Some(false) => "FAIL",
            None => "    ",
        };
        well &= good != Some(false);
        console::out(format_args!("{mark} {what:<18} {found}"));
    };
    line(None, "version", env!("CUDARUN_CHECK_VERSION").to_owned());
    line(None, "NVIDIA driver", driver());
    match Device::new(DeviceConfig::default()) {
        Ok(device) => {
            let config = device.config();
            let text = format!(
                "{}, {} multiprocessors, {} GiB",
                config.name,
                config.sm_count,
                config.memory >> 30
            );
            line(Some(true), "simulated device", text);
        }
        Err(error) => line(Some(false), "simulated device", error.to_string()),
    }
    for tool in ["nvcc", "ptxas"] {
        match toolkit::find(tool) {
            Some(path) => line(None, tool, path.display().to_string()),
            None => line(
                None,
                tool,
                "not found; needed only to build programs, and for `rewrite --stats`".to_owned(),
            ),
        }
    }
    match libraries() {
        Ok(text) => line(Some(true), "libraries", text),
        Err(text) => line(Some(false), "libraries", text),
    }
    match injection() {
        Ok(text) => line(Some(true), "injection", text),
        Err(text) => line(Some(false), "injection", text),
    }
    for (kernel, racy) in [("self_test_racy", true), ("self_test_clean", false)] {
        let what = if racy { "racy kernel" } else { "clean kernel" };
        match races(kernel) {
            Ok(0) if racy => line(Some(false), what, "its race was not found".to_owned()),
            Ok(0) => line(Some(true), what, "no race reported".to_owned()),
            Ok(found) if racy => line(
                Some(true),
                what,
                format!("its race was found, in {found} pairs of accesses"),
            ),
            Ok(found) => line(
                Some(false),
                what,
                format!("{found} pairs of accesses reported that are no race"),
            ),
            Err(error) => line(Some(false), what, error),
        }
    }
    Ok(if well { 0 } else { INTERNAL })
}

fn libraries() -> Result<String, String> {
    let folder = app::libraries().map_err(|stop| stop.message)?;
    let missing: Vec<&str> = LIBRARIES
        .into_iter()
        .filter(|name| !folder.join(name).exists())
        .collect();
    match missing[..] {
        [] => Ok(folder.display().to_string()),
        _ => Err(format!(
            "{} is without {}",
            folder.display(),
            missing.join(", ")
        )),
    }
}

/// The driver of a GPU, or why programs run on the simulated device.
fn driver() -> String {
    match device::find() {
        Ok(found) => format!(
            "{} for CUDA {}.{}, {} device{}: {}",
            found.path.display(),
            found.version / 1000,
            found.version % 1000 / 10,
            found.devices,
            if found.devices == 1 { "" } else { "s" },
            found.name
        ),
        Err(why) => {
            let loaded = nvidia::driver()
                .map(|version| format!(" (version {version} is loaded into the kernel)"));
            format!(
                "{why}{}; programs run on the simulated device",
                loaded.unwrap_or_default()
            )
        }
    }
}

/// Starts programs with our drivers put before them, which the loader refuses if they do not fit.
fn injection() -> Result<String, String> {
    let folder = app::libraries().map_err(|stop| stop.message)?;
    let gpu = folder.join(app::GPU);
    for own in [&folder, &gpu] {
        loads(&folder, own)?;
    }
    Ok("our libcuda.so.1, simulated and for a GPU, loads into a program".to_owned())
}

/// Starts a program with our libraries in front, the driver being that of the folder `own`; the loader says what it does
/// not like.
fn loads(folder: &Path, own: &Path) -> Result<(), String> {
    let output = Command::new("true")
        // Found by its folder: a path may hold spaces, which part the names here.
        .env("LD_PRELOAD", app::DRIVER)
        .env("LD_AUDIT", folder.join(app::AUDIT))
        .env(app::GIVEN_VARIABLE, own)
        .env("LD_LIBRARY_PATH", own)
        .env("LD_BIND_NOW", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start a program: {error}"))?;
    let message = String::from_utf8_lossy(&output.stderr);
    // The loader only warns about a library that it cannot load first.
    match output.status.success() && !message.contains("cannot be") {
        true => Ok(()),
        false => Err(format!(
            "{} does not load: {}",
            own.join(app::DRIVER).display(),
            message.trim()
        )),
    }
}

/// Pairs of accesses that the checker reports for one of our kernels.
fn races(kernel: &str) -> Result<usize, String> {
    let device = Device::new(DeviceConfig::default()).map_err(|error| error.to_string())?;
    let options = Options {
        shadow: ShadowSize::Bytes(1 << 20),
        ..Options::default()
    };
    let checker = Checker::new(options, Writer::Memory(Vec::new()));
    let mut sim = CheckedSim::new(device, Some(checker));
    let module = sim
        .load(SELF_TEST, "self test")
        .map_err(|error| error.to_string())?;
    let counter = sim
        .device_mut()
        .memory_mut()
        .alloc(4)
        .map_err(|error| error.to_string())?;
    if let Some(checker) = sim.checker_mut() {
        checker.allocated(counter, 4, "self test");
    }
    let launch = Launch::new([2, 1, 1], [32, 1, 1], counter.to_le_bytes().to_vec());
    sim.launch(module, kernel, &launch)
        .map_err(|error| error.to_string())?;
    let events = sim.checker().map(Checker::events).unwrap_or_default();
    Ok(events
        .iter()
        .filter(|event| matches!(event, Event::Race(_)))
        .count())
}
