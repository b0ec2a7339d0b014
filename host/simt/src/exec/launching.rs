//! The device runtime, which launches kernels for kernels.
//!
//! Source: CUDA C++ Programming Guide 13.0, "CUDA Dynamic Parallelism"; `cuda_device_runtime_api.h`.
//! What is asked for waits in [`Requests`]. The results are errors of the runtime, which each thread has
//! its last one of.

use events::Bytes;

use super::address::illegal;
use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::warp::{Split, Warp};
use crate::code::{Argument, Call};
use crate::config::Launch;
use crate::device_call::DeviceCall;
use crate::lanes::WARP;
use crate::requests::{Child, Request, Requests, Wanted};
use crate::{validate, windows};

/// Errors of the runtime: `cudaErrorInvalidValue` and so on.
const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const INVALID_CONFIGURATION: u32 = 9;
const TOO_DEEP: u32 = 65;
const INVALID_FUNCTION: u32 = 98;

/// What goes wrong: the launch, or the call with an error of the runtime.
enum Wrong {
    Launch(Box<Fault>),
    Call(u32),
}

impl From<Box<Fault>> for Wrong {
    fn from(fault: Box<Fault>) -> Self {
        Self::Launch(fault)
    }
}

/// A lane that calls a function of the device runtime.
pub(super) struct Caller<'m, 'a, O: ?Sized> {
    pub(super) machine: &'m mut Machine<'a, O>,
    pub(super) cta: &'m CtaId,
    pub(super) warp: &'m mut Warp,
    pub(super) split: &'m Split,
    pub(super) lane: usize,
    pub(super) call: &'m Call,
    /// Stream 0 is the thread's own.
    pub(super) own_stream: bool,
}

impl<O: Listener + ?Sized> Caller<'_, '_, O> {
    /// Does what is called; what it returns.
    pub(super) fn run(&mut self, which: DeviceCall) -> Result<u64, Box<Fault>> {
        let me = (self.cta.linear, self.thread());
        let error = match self.does(which) {
            Ok(result) => return Ok(result),
            Err(Wrong::Launch(fault)) => return Err(fault),
            Err(Wrong::Call(error)) => error,
        };
        let requests = &self.machine.setup.launch.requests;
        requests.with(|kept| kept.errors.insert(me, error));
        Ok(match which {
            // A buffer that is not there is the null pointer.
            DeviceCall::Buffer | DeviceCall::BufferV2 => 0,
            _ => error.into(),
        })
    }

    fn does(&mut self, which: DeviceCall) -> Result<u64, Wrong> {
        let me = (self.cta.linear, self.thread());
        let requests = self.machine.setup.launch.requests.clone();
        match which {
            DeviceCall::Buffer => {
                let bytes = u32::try_from(self.argument(1));
                let bytes = bytes.map_err(|_| Wrong::Call(INVALID_VALUE))?;
                return self.buffer(Child::default(), bytes);
            }
            DeviceCall::BufferV2 => {
                let (child, bytes) = self.child(self.argument(0), [1, 2, 3])?;
                return self.buffer(child, bytes);
            }
            DeviceCall::Launch => {
                let (child, _) = self.child(self.argument(0), [2, 3, 4])?;
                self.launch(self.argument(1), Some(child), self.stream(5))?;
            }
            DeviceCall::LaunchV2 => self.launch(self.argument(0), None, self.stream(1))?,
            DeviceCall::Copy => {
                let (to, from, bytes) = (self.argument(0), self.argument(1), self.argument(2));
                self.request(self.stream(4), Wanted::Copy { from, to, bytes })?;
            }
            DeviceCall::Fill => {
                let (address, bytes) = (self.argument(0), self.argument(2));
                let value = self.argument(1) as u8;
                let fill = Wanted::Fill {
                    address,
                    value,
                    bytes,
                };
                self.request(self.stream(3), fill)?;
            }
            // Streams of the device do not wait for its NULL streams, and events take no time.
            DeviceCall::StreamCreate | DeviceCall::EventCreate => {
                let wanted = if which == DeviceCall::StreamCreate {
                    1
                } else {
                    2
                };
                if self.argument(1) as u32 != wanted {
                    return Err(Wrong::Call(INVALID_VALUE));
                }
                let handle = requests.with(|kept| {
                    kept.handles += 1;
                    // Unlike any stream that has a name.
                    kept.handles << 8
                });
                self.give(0, handle.unwrap_or_default(), 8)?;
            }
            DeviceCall::StreamWait => {
                let event = self.argument(1);
                self.request(self.stream(0), Wanted::Wait(event))?;
            }
            DeviceCall::EventRecord => {
                let event = self.argument(0);
                self.request(self.stream(1), Wanted::Record(event))?;
            }
            DeviceCall::StreamDestroy | DeviceCall::EventDestroy => {}
            DeviceCall::LastError => {
                let last = requests.with(|kept| kept.errors.remove(&me)).flatten();
                return Ok(last.unwrap_or(0).into());
            }
            DeviceCall::PeekError => {
                let last = requests
                    .with(|kept| kept.errors.get(&me).copied())
                    .flatten();
                return Ok(last.unwrap_or(0).into());
            }
            // The handle is the address of the value.
            DeviceCall::SetConditional => {
                let value = self.argument(1);
                self.give(0, value, 4)?;
            }
            DeviceCall::Device => self.give(0, 0, 4)?,
            DeviceCall::DeviceCount => self.give(0, 1, 4)?,
            DeviceCall::Attribute => self.attribute()?,
            DeviceCall::Malloc => {
                let bytes = self.argument(1);
                let address = self.machine.device_malloc(bytes);
                self.give(0, address, 8)?;
                if address == 0 {
                    return Err(Wrong::Call(OUT_OF_MEMORY));
                }
                self.machine.observer.allocated(address, bytes);
            }
            DeviceCall::Free => {
                let address = self.argument(0);
                if address != 0 {
                    self.free(address)?;
                }
            }
        }
        Ok(0)
    }

    /// What a kernel asks about the device, which CUDA calls 0.
    fn attribute(&mut self) -> Result<(), Wrong> {
        let shared = self.machine.setup.config.shared_per_cta;
        // `cudaDeviceAttr` of CUDA 13.0; cuda-facts: "Simulated sm_90".
        let value = match (self.argument(1) as u32, self.argument(2) as u32) {
            (_, 1..) => return Err(Wrong::Call(101)),
            (1..=3, _) => 1024,
            (4, _) => 64,
            (5, _) => i32::MAX as u32,
            (6 | 7, _) => 65535,
            (8, _) => 49152,
            (10, _) => WARP as u32,
            (16, _) => self.machine.setup.config.sm_count,
            (39, _) => 2048,
            (75, _) => 9,
            (76, _) => 0,
            (97, _) => shared,
            (106, _) => 32,
            (attribute, _) => {
                let what = format!("cudaDeviceGetAttribute of {attribute} in device code");
                return Err(Fault::new(self.lane as u32, FaultKind::Unsupported(what)).into());
            }
        };
        self.give(0, value.into(), 4)
    }

    /// Memory for the parameters of a launch; its address.
    fn buffer(&mut self, child: Child, bytes: u32) -> Result<u64, Wrong> {
        let heap = self.machine.memory.alone();
        let address = heap.and_then(|heap| heap.alloc_heap(u64::from(bytes.max(1))));
        let address = address.ok_or(Wrong::Call(OUT_OF_MEMORY))?;
        self.machine.observer.allocated(address, bytes.into());
        let requests = &self.machine.setup.launch.requests;
        let kept = requests.with(|kept| kept.buffers.insert(address, (child, bytes)));
        match kept {
            Some(_) => Ok(address),
            None => {
                let what = "a launch by a kernel outside of the simulated device".to_owned();
                Err(Fault::new(self.lane as u32, FaultKind::Unsupported(what)).into())
            }
        }
    }

    /// The launch of a kernel, without its parameters, and how many bytes these have. `shape` are the
    /// arguments with the grid, the block and the dynamic shared memory.
    fn child(&self, kernel: u64, shape: [usize; 3]) -> Result<(Child, u32), Wrong> {
        let setup = self.machine.setup;
        if setup.launch.requests.is_deepest() {
            return Err(Wrong::Call(TOO_DEEP));
        }
        let found = setup.loaded.kernel_at(kernel);
        let (kernel, bytes) = found.ok_or(Wrong::Call(INVALID_FUNCTION))?;
        let (grid, block) = (self.three(shape[0]), self.three(shape[1]));
        let child = Child {
            kernel: kernel.to_owned(),
            grid,
            block,
            dynamic_shared: self.argument(shape[2]) as u32,
            params: Vec::new(),
        };
        let mut launch = Launch::new(grid, block, vec![0; bytes as usize]);
        launch.dynamic_shared = child.dynamic_shared;
        let program = setup.loaded.program(kernel);
        let program = program.ok_or(Wrong::Call(INVALID_FUNCTION))?;
        match validate::launch(setup.config, &program, &launch) {
            Ok(_) => Ok((child, bytes)),
            Err(_) => Err(Wrong::Call(INVALID_CONFIGURATION)),
        }
    }

    /// Launches what has its parameters at an address.
    fn launch(&mut self, buffer: u64, named: Option<Child>, stream: u64) -> Result<(), Wrong> {
        let requests = self.machine.setup.launch.requests.clone();
        let kept = requests.with(|kept| kept.buffers.remove(&buffer)).flatten();
        let (child, bytes) = kept.ok_or(Wrong::Call(INVALID_VALUE))?;
        let mut child = named.unwrap_or(child);
        child.params = vec![0; bytes as usize];
        let read = self.machine.memory.read(buffer, &mut child.params);
        self.free(buffer)?;
        self.machine.observer.released(buffer, bytes.into());
        if read.is_err() || child.kernel.is_empty() {
            return Err(Wrong::Call(INVALID_VALUE));
        }
        self.request(stream, Wanted::Launch(child))
    }

    fn free(&mut self, address: u64) -> Result<(), Wrong> {
        let heap = self.machine.memory.alone();
        let freed = heap.and_then(|heap| heap.free_heap(address));
        self.machine.window = crate::memory::Window::NONE;
        match freed {
            Some(()) => Ok(()),
            None => {
                let space = ptx::ast::Space::Global;
                Err(illegal(self.lane, address, 0, space, true).into())
            }
        }
    }

    fn request(&mut self, stream: u64, wanted: Wanted) -> Result<(), Wrong> {
        if stream == Requests::TAIL && matches!(wanted, Wanted::Record(_) | Wanted::Wait(_)) {
            return Err(Wrong::Call(INVALID_VALUE));
        }
        let (warp, pc) = (self.warp.index, self.split.pc);
        let threads = self.machine.executing(self.cta, warp, pc, 1 << self.lane);
        let request = Request {
            cta: threads.cta,
            thread: self.thread(),
            offset: threads.offset,
            stream,
            wanted,
        };
        let requests = &self.machine.setup.launch.requests;
        let number = requests.with(|kept| {
            kept.requests.push(request);
            kept.requests.len() - 1
        });
        if let Some(number) = number {
            self.machine.observer.requested(threads, number);
        }
        Ok(())
    }

    fn thread(&self) -> u32 {
        self.warp.index * WARP as u32 + self.lane as u32
    }

    /// The stream that an argument names.
    fn stream(&self, argument: usize) -> u64 {
        match self.argument(argument) {
            0 if self.own_stream => Requests::THREAD,
            // `cudaStreamLegacy` is the block's too.
            0 | 1 => 0,
            stream => stream,
        }
    }

    fn argument(&self, index: usize) -> u64 {
        let argument = self.call.arguments.get(index);
        self.machine.argument(self.warp, self.split, argument)[self.lane]
    }

    /// The components of a `dim3`.
    fn three(&self, index: usize) -> [u32; 3] {
        match self.call.arguments.get(index) {
            Some(&Argument::Frame { offset, .. }) => [0, 4, 8].map(|behind| {
                let part = Argument::Frame {
                    offset: offset + behind,
                    bytes: 4,
                };
                self.machine.argument(self.warp, self.split, Some(&part))[self.lane] as u32
            }),
            _ => [0; 3],
        }
    }

    /// Writes a result to where an argument points.
    fn give(&mut self, argument: usize, value: u64, bytes: u32) -> Result<(), Wrong> {
        let address = self.argument(argument);
        let space = windows::space(address);
        let inside = address - windows::base(space);
        let at = Bytes {
            space,
            address: inside,
            count: bytes,
        };
        let spot = (self.machine).spot(self.cta, self.warp, self.lane, at, true)?;
        self.machine.poke(self.warp, spot, bytes, value);
        Ok(())
    }
}
