//! Functions that the device brings along: `vprintf`, `malloc`, `free`, `__assertfail`.

use events::Bytes;

use super::address::{illegal, lanes};
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::launching::Caller;
use super::listener::Listener;
use super::machine::Machine;
use super::printf;
use super::warp::{Split, Warp};
use crate::code::{Call, Callee};
use crate::lanes::WARP;
use crate::memory::Window;
use crate::windows;

/// Longest string a device may print or assert with.
const MAX_STRING: u64 = 1 << 16;

/// The memory that a lane's `printf` reads its arguments from.
struct Arguments<'m, 'a, O: ?Sized> {
    machine: &'m mut Machine<'a, O>,
    cta: &'m CtaId,
    warp: &'m Warp,
    lane: usize,
    buffer: u64,
}

impl<O: Listener + ?Sized> printf::Source for Arguments<'_, '_, O> {
    type Error = Box<Fault>;

    fn argument(&mut self, offset: u64, bytes: u32) -> Result<u64, Self::Error> {
        let address = self.buffer.wrapping_add(offset);
        self.machine
            .peek_generic(self.cta, self.warp, self.lane, address, bytes)
    }

    fn string(&mut self, address: u64) -> Result<Vec<u8>, Self::Error> {
        self.machine.string(self.cta, self.warp, self.lane, address)
    }
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// Calls a function that is no PTX.
    pub(crate) fn builtin(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        call: &Call,
        callee: &Callee,
    ) -> Result<(), Box<Fault>> {
        let first = self.argument(warp, split, call.arguments.first());
        let lane = split.mask.trailing_zeros() as usize;
        let mut result = [0; WARP];
        match callee {
            Callee::Vprintf => {
                let buffers = self.argument(warp, split, call.arguments.get(1));
                for lane in lanes(split.mask) {
                    let format = self.string(cta, warp, lane, first[lane])?;
                    let buffer = buffers[lane];
                    let mut source = Arguments {
                        machine: self,
                        cta,
                        warp,
                        lane,
                        buffer,
                    };
                    let (text, count) = printf::format(&format, &mut source)?;
                    self.setup.launch.printf.write(&text);
                    result[lane] = u64::from(count);
                }
            }
            Callee::Malloc => {
                for lane in lanes(split.mask) {
                    result[lane] = self.device_malloc(first[lane]);
                    if result[lane] != 0 {
                        self.observer.allocated(result[lane], first[lane]);
                    }
                }
            }
            Callee::Free => {
                for lane in lanes(split.mask).filter(|&lane| first[lane] != 0) {
                    let address = first[lane];
                    let heap = self.memory.alone();
                    if heap.and_then(|heap| heap.free_heap(address)).is_none() {
                        return Err(illegal(lane, address, 0, ptx::ast::Space::Global, true));
                    }
                    self.window = Window::NONE;
                }
            }
            Callee::AssertFail => {
                let mut text = |argument: usize| {
                    let address = self.argument(warp, split, call.arguments.get(argument))[lane];
                    let bytes = self.string(cta, warp, lane, address);
                    bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                };
                let (message, file, function) = (text(0)?, text(1)?, text(3)?);
                let line = self.argument(warp, split, call.arguments.get(2))[lane] as u32;
                let kind = FaultKind::Assert {
                    message,
                    file,
                    line,
                    function,
                };
                return Err(Fault::new(lane as u32, kind));
            }
            Callee::Device {
                call: which,
                own_stream,
            } => {
                for lane in lanes(split.mask) {
                    let mut caller = Caller {
                        machine: &mut *self,
                        cta,
                        warp: &mut *warp,
                        split,
                        lane,
                        call,
                        own_stream: *own_stream,
                    };
                    result[lane] = caller.run(*which)?;
                }
            }
            Callee::Missing(name) if ptx::link::is_device_runtime(name) => {
                let what = format!(
                    "a call of {name}, which the simulated device's device runtime does not have,"
                );
                return Err(Fault::new(lane as u32, FaultKind::Unsupported(what)));
            }
            Callee::Missing(name) => {
                let what = format!("a call of {name}, which is defined nowhere,");
                return Err(Fault::new(lane as u32, FaultKind::Unsupported(what)));
            }
            Callee::Function(_) | Callee::Indirect(_) => {}
        }
        self.set_result(warp, split, call.returns.first(), &result);
        Ok(())
    }

    /// Memory for the device's own malloc; null when the heap is used up.
    pub(super) fn device_malloc(&mut self, bytes: u64) -> u64 {
        let Some(heap) = self.memory.alone() else {
            return 0;
        };
        let used = heap.heap_used();
        if used
            .checked_add(bytes)
            .is_none_or(|used| used > self.setup.config.malloc_heap)
        {
            return 0;
        }
        heap.alloc_heap(bytes).unwrap_or(0)
    }

    /// Reads a value at a generic address.
    fn peek_generic(
        &mut self,
        cta: &CtaId,
        warp: &Warp,
        lane: usize,
        address: u64,
        bytes: u32,
    ) -> Result<u64, Box<Fault>> {
        let space = windows::space(address);
        let inside = address - windows::base(space);
        let at = Bytes {
            space,
            address: inside,
            count: bytes,
        };
        let spot = self.spot(cta, warp, lane, at, false)?;
        Ok(self.peek(warp, spot, bytes))
    }

    /// Reads a string that ends in NUL.
    fn string(
        &mut self,
        cta: &CtaId,
        warp: &Warp,
        lane: usize,
        address: u64,
    ) -> Result<Vec<u8>, Box<Fault>> {
        let mut bytes = Vec::new();
        for offset in 0..MAX_STRING {
            match self.peek_generic(cta, warp, lane, address.wrapping_add(offset), 1)? {
                0 => break,
                byte => bytes.push(byte as u8),
            }
        }
        Ok(bytes)
    }
}
