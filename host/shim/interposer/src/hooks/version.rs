//! PTX of a toolkit that is newer than the driver.

use std::ffi::CString;
use std::fmt;

use driver::sys::*;
use ptx::ast::{Item, Module};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    fn new(major: u32, minor: u32) -> Version {
        Version { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// PTX that says that it is older than it is, for a driver that does not take its version.
pub(super) struct Lowered {
    pub(super) text: CString,
    from: Version,
    to: Version,
    cuda: Version,
}

impl Lowered {
    /// The text of a module with the newest version that the driver takes; none if that is not known, or no older.
    pub(super) fn new(real: &Api, module: &Module) -> Option<Lowered> {
        let mut number = 0;
        // SAFETY: there is room for the result.
        unsafe { real.cuDriverGetVersion(&mut number) }
            .result()
            .ok()?;
        let number = u32::try_from(number).ok()?;
        let cuda = Version::new(number / 1000, number % 1000 / 10);
        let to = newest(cuda)?;
        let from = module
            .version
            .map(|(major, minor)| Version::new(major, minor));
        let from = from.filter(|from| *from > to)?;
        let at = module.items.iter().find_map(|item| match item {
            Item::Directive(span) if module.slice(*span).starts_with(".version") => Some(*span),
            _ => None,
        })?;
        let (before, rest) = module.text.split_at_checked(at.start as usize)?;
        let after = rest.get((at.end - at.start) as usize..)?;
        Some(Lowered {
            text: CString::new(format!("{before}.version {to}{after}")).ok()?,
            from,
            to,
            cuda,
        })
    }

    /// What is reported to the user when the driver takes it.
    pub(super) fn taken(&self, origin: &str) -> String {
        let Lowered { from, to, cuda, .. } = self;
        format!(
            "{origin}: its PTX is of version {from}, and a driver of CUDA {cuda} takes {to} at most; it is checked as if it were of version {to}"
        )
    }

    /// What helps when it does not.
    pub(super) fn remedy(&self) -> String {
        let Lowered { from, to, cuda, .. } = self;
        format!(
            "; its PTX is of version {from}, and a driver of CUDA {cuda} takes {to} at most: compile it with the nvcc of CUDA {cuda}, or install a newer driver"
        )
    }
}

/// The newest PTX that comes with a CUDA, and so with its driver. Source: PTX ISA, "PTX Release History".
fn newest(Version { major, minor }: Version) -> Option<Version> {
    let (major, minor) = match (major, minor) {
        (11, minor) => (7, minor),
        (12, ..=5) => (8, minor),
        (12, minor) => (8, minor - 1),
        // So far; CUDA 13.4 has PTX 9.4.
        (13, minor) => (9, minor),
        _ => return None,
    };
    Some(Version::new(major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_takes_the_ptx_of_its_cuda() {
        for (cuda, ptx) in [
            ((10, 2), None),
            ((11, 8), Some((7, 8))),
            ((12, 0), Some((8, 0))),
            ((12, 4), Some((8, 4))),
            ((12, 5), Some((8, 5))),
            ((12, 6), Some((8, 5))),
            ((12, 7), Some((8, 6))),
            ((12, 8), Some((8, 7))),
            ((12, 9), Some((8, 8))),
            ((13, 0), Some((9, 0))),
            ((13, 1), Some((9, 1))),
            ((13, 2), Some((9, 2))),
            ((14, 0), None),
        ] {
            let version = |(major, minor)| Version::new(major, minor);
            assert_eq!(newest(version(cuda)), ptx.map(version), "{cuda:?}");
        }
    }
}
