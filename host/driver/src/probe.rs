//! Does a driver work? For the command line, which asks in a process of its own: a driver that is
//! broken may end the process that tries it.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;

use crate::sys::{Api, CUresult};

/// A driver that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// The CUDA version that it is for: 1000 * major + 10 * minor.
    pub version: i32,
    /// How many devices a program sees; at least one.
    pub devices: i32,
    /// Name of the first one.
    pub name: String,
}

/// Loads the driver that the environment names, or the one that is installed, and initialises it.
///
/// # Errors
/// Why there is none, or what the driver answered.
pub fn probe() -> Result<Found, String> {
    let api = Api::open_behind().map_err(|error| error.to_string())?;
    let answered = |call: &str, result: CUresult| match result {
        CUresult::SUCCESS => Ok(()),
        code => Err(format!(
            "{} of {} says {code:?}",
            call,
            api.path().display()
        )),
    };
    let (mut version, mut devices) = (0, 0);
    let mut name = [0u8; 256];
    // SAFETY: the places for answers outlive the calls, and the name has the length given.
    unsafe {
        answered("cuInit", api.cuInit(0))?;
        answered("cuDriverGetVersion", api.cuDriverGetVersion(&mut version))?;
        answered("cuDeviceGetCount", api.cuDeviceGetCount(&mut devices))?;
        if devices < 1 {
            return Err(format!("{} has no device", api.path().display()));
        }
        let (to, length) = (name.as_mut_ptr().cast::<c_char>(), 255);
        answered("cuDeviceGetName", api.cuDeviceGetName(to, length, 0))?;
    }
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    Ok(Found {
        path: api.path().to_owned(),
        version,
        devices,
        name: name.to_string_lossy().into_owned(),
    })
}
