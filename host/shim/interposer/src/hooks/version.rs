//! PTX of a toolkit that is newer than the driver.

use std::ffi::CString;

use driver::sys::*;
use ptx::ast::Item;

/// Major and minor number.
type Version = (u32, u32);

/// PTX that says that it is older than it is, for a driver that does not take its version.
pub(super) struct Lowered {
    pub(super) text: CString,
    from: Version,
    to: Version,
    cuda: Version,
}

impl Lowered {
    /// The text with the newest version that the driver takes; none if that is not known, or no older.
    pub(super) fn new(real: &Api, text: &str) -> Option<Lowered> {
        let mut number = 0;
        // SAFETY: there is room for the result.
        unsafe { real.cuDriverGetVersion(&mut number) }
            .result()
            .ok()?;
        let number = u32::try_from(number).ok()?;
        let cuda = (number / 1000, number % 1000 / 10);
        let to = newest(cuda)?;
        let (module, _) = ptx::parse(text);
        let from = module.version.filter(|from| *from > to)?;
        let at = module.items.iter().find_map(|item| match item {
            Item::Directive(span) if module.slice(*span).starts_with(".version") => Some(*span),
            _ => None,
        })?;
        let (before, rest) = text.split_at_checked(at.start as usize)?;
        let after = rest.get((at.end - at.start) as usize..)?;
        let (major, minor) = to;
        Some(Lowered {
            text: CString::new(format!("{before}.version {major}.{minor}{after}")).ok()?,
            from,
            to,
            cuda,
        })
    }

    /// What the user is told when the driver takes it.
    pub(super) fn taken(&self, origin: &str) -> String {
        let [from, to, cuda] = [self.from, self.to, self.cuda].map(shown);
        format!(
            "{origin}: its PTX is of version {from}, and a driver of CUDA {cuda} takes {to} at most; it is checked as if it were of version {to}"
        )
    }

    /// What helps when it does not.
    pub(super) fn remedy(&self) -> String {
        let [from, to, cuda] = [self.from, self.to, self.cuda].map(shown);
        format!(
            "; its PTX is of version {from}, and a driver of CUDA {cuda} takes {to} at most: compile it with the nvcc of CUDA {cuda}, or install a newer driver"
        )
    }
}

fn shown((major, minor): Version) -> String {
    format!("{major}.{minor}")
}

/// The newest PTX that comes with a CUDA, and so with its driver. Source: PTX ISA, "PTX Release History".
fn newest((major, minor): Version) -> Option<Version> {
    match (major, minor) {
        (11, minor) => Some((7, minor)),
        (12, ..=5) => Some((8, minor)),
        (12, minor) => Some((8, minor - 1)),
        // So far; CUDA 13.4 has PTX 9.4.
        (13, minor) => Some((9, minor)),
        _ => None,
    }
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
            assert_eq!(newest(cuda), ptx, "{cuda:?}");
        }
    }
}
