//! Where the kernels of a program run: on a GPU, behind its driver, or on the simulated device.

use std::fmt;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use driver::probe::{self, Found};
use driver::sys::{DRIVER_VARIABLE, LoadError, candidates};
use serde::{Deserialize, Serialize};

use crate::args::DeviceChoice;
use crate::console;
use crate::exit::{NO_DEVICE, Stop};
use crate::nvidia;

/// The subcommand that tries the driver in a process of its own.
pub(crate) const PROBE: &str = "__probe-driver";
/// How long a driver may take to answer; a cold one with many GPUs takes seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Where kernels run.
#[derive(Clone, Debug)]
pub(crate) enum Device {
    /// On a GPU.
    Gpu(Found),
    /// On the simulated device, and why, if it has not been asked for.
    Simulated { why: Option<String> },
}

impl Device {
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Device::Simulated { .. })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Gpu(found) => write!(
                f,
                "{}, with a driver for CUDA {}.{}",
                found.name,
                found.version / 1000,
                found.version % 1000 / 10
            ),
            Device::Simulated { why: None } => f.write_str("the simulated sm_90 device"),
            Device::Simulated { why: Some(why) } => {
                write!(f, "the simulated sm_90 device, {why}")
            }
        }
    }
}

/// Finds the device for a choice.
pub(crate) fn choose(choice: DeviceChoice) -> Result<Device, Stop> {
    match choice {
        DeviceChoice::Sim => Ok(Device::Simulated {
            why: match nvidia::driver() {
                Some(_) => None,
                None => Some(LoadError::NotFound.to_string()),
            },
        }),
        DeviceChoice::Auto => Ok(match find() {
            Ok(found) => Device::Gpu(found),
            Err(why) => Device::Simulated { why: Some(why) },
        }),
        DeviceChoice::Gpu => match find() {
            Ok(found) => Ok(Device::Gpu(found)),
            Err(why) => Err(Stop::new(
                NO_DEVICE,
                format!("--device gpu: {why}; use --device sim"),
            )),
        },
    }
}

/// A driver that works, by the word of another process, which it may end.
pub(crate) fn find() -> Result<Found, String> {
    if std::env::var_os(DRIVER_VARIABLE).is_none() && candidates().is_empty() {
        return Err(LoadError::NotFound.to_string());
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command
        .arg(PROBE)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = command.spawn();
    let child = child.map_err(|error| format!("cannot try the NVIDIA driver: {error}"))?;
    let said = answer(child, TIMEOUT)?;
    // A driver may print lines of its own.
    match serde_json::from_str(said.lines().last().unwrap_or_default()) {
        Ok(Answer::Works {
            path,
            version,
            devices,
            name,
        }) => Ok(Found {
            path: path.into(),
            version,
            devices,
            name,
        }),
        Ok(Answer::Fails(why)) => Err(why),
        Err(_) => Err("the NVIDIA driver ended the process that tried it".to_owned()),
    }
}

/// What the process prints that has tried a driver.
#[derive(Serialize, Deserialize)]
enum Answer {
    Works {
        path: String,
        version: i32,
        devices: i32,
        name: String,
    },
    Fails(String),
}

/// The subcommand: prints what it finds; 0 if that is a driver that works.
pub(crate) fn probe() -> Result<u8, Stop> {
    let (code, answer) = match probe::probe() {
        Ok(found) => match found.path.to_str() {
            Some(path) => (
                0,
                Answer::Works {
                    path: path.to_owned(),
                    version: found.version,
                    devices: found.devices,
                    name: found.name,
                },
            ),
            None => (
                NO_DEVICE,
                Answer::Fails("the path of the driver is not UTF-8".to_owned()),
            ),
        },
        Err(why) => (NO_DEVICE, Answer::Fails(why)),
    };
    // Strings and numbers always serialise.
    console::out(format_args!(
        "{}",
        serde_json::to_string(&answer).unwrap_or_default()
    ));
    Ok(code)
}

/// What a process prints until it ends, which it is made to when it takes too long.
fn answer(mut child: Child, timeout: Duration) -> Result<String, String> {
    let start = Instant::now();
    let cannot = |error: std::io::Error| format!("cannot try the NVIDIA driver: {error}");
    while child.try_wait().map_err(cannot)?.is_none() {
        if start.elapsed() > timeout {
            // It may have ended by now, which is as well.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!(
                "the NVIDIA driver does not answer within {timeout:?}"
            ));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut said = String::new();
    match child.stdout.take() {
        // A line fits into the pipe, so the process has not waited for us.
        Some(mut stream) => stream.read_to_string(&mut said).map_err(cannot)?,
        None => 0,
    };
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_hangs_is_given_up() {
        let mut sleep = Command::new("sleep");
        let child = sleep.arg("60").stdout(Stdio::piped()).spawn().unwrap();
        let why = answer(child, Duration::from_millis(20)).unwrap_err();
        assert!(why.contains("does not answer"), "{why}");
        let mut echo = Command::new("echo");
        let child = echo.arg("x").stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(answer(child, TIMEOUT).unwrap(), "x\n");
    }

    #[test]
    fn devices_in_words() {
        let found = Found {
            path: "/x/libcuda.so.1".into(),
            version: 12080,
            devices: 1,
            name: "NVIDIA H100".to_owned(),
        };
        let text = Device::Gpu(found).to_string();
        assert_eq!(text, "NVIDIA H100, with a driver for CUDA 12.8");
    }
}
