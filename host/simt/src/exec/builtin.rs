//! Functions that the device brings along: `vprintf`, `malloc`, `free`, `__assertfail`.

use ptx::ast::Space;

use super::access::lanes;
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::machine::Machine;
use super::printf;
use super::warp::{Split, Warp};
use crate::code::{Call, Callee};
use crate::lanes::WARP;
use crate::observer::Observer;
use crate::windows;

/// Longest string a device may print or assert with.
const MAX_STRING: usize = 1 << 16;

impl<O: Observer> Machine<'_, O> {
    pub(crate) fn builtin(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        call: &Call,
        callee: &Callee,
    ) -> Result<(), Box<Fault>> {
        let first = self.argument(warp, split, call.arguments.first());
        let second = self.argument(warp, split, call.arguments.get(1));
        let mut result = [0; WARP];
        match callee {
            Callee::Vprintf => {
                for lane in lanes(split.mask) {
                    let format = self.string(cta, warp, lane, first[lane])?;
                    let mut text = Vec::new();
                    let mut read = |what| match what {
                        printf::Read::Argument { offset, bytes } => {
                            let address = second[lane].wrapping_add(offset);
                            self.peek_generic(cta, warp, lane, address, bytes)
                        }
                        printf::Read::String(address) => Ok(Err(address)),
                    };
                    let mut strings = Vec::new();
                    let count = printf::format(&format, &mut |what| match what {
                        printf::Read::Argument { .. } => match read(what)? {
                            Ok(value) => Ok(value),
                            Err(_) => Ok(0),
                        },
                        printf::Read::String(_) => Ok(0),
                    }, &mut |address| { strings.push(address); Vec::new() }, &mut text);
                    let _ = count;
                    result[lane] = 0;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
