//! What a stream does: plain data that can be done now, or captured and done later, many times.

use std::ffi::c_void;
use std::time::Instant;

use driver::sys::{CUresult, CUstream};
use runtime::streams::{At, CallRange};
use simt::{Launch, LaunchError};

use crate::Answer;
use crate::copy::{Copy, Fill};
use crate::order::{self, Launching};
use crate::state::{State, with_context};
use crate::table::pointer;

/// A piece of work.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A kernel and how to run it.
    Launch(u64, Box<Launch>),
    Copy(Copy),
    Fill(Fill),
    /// A call on the host.
    Host(Call),
    /// An event.
    Record(u64),
    /// What waits for an event from outside of the graph; events are reached when they are recorded.
    Wait(u64),
    /// Memory of a graph that the program has from here on.
    Alloc(u64),
    /// Memory of a graph that the program has no longer.
    Free(u64),
    /// A node that only orders others.
    Empty,
}

/// A host function with its argument; addresses, because work outlives the call that made it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Plain(unsafe extern "C" fn(*mut c_void), u64),
    Stream(
        unsafe extern "C" fn(CUstream, CUresult, *mut c_void),
        u64,
        u64,
    ),
}

impl Call {
    pub(crate) fn run(self) {
        let data = |address: u64| std::ptr::with_exposed_provenance_mut(address as usize);
        match self {
            // SAFETY: the program gave us the function and its argument for this very call.
            Call::Plain(function, argument) => unsafe { function(data(argument)) },
            // SAFETY: as above.
            Call::Stream(function, stream, argument) => unsafe {
                function(pointer(stream), CUresult::SUCCESS, data(argument));
            },
        }
    }
}

/// Hands work to a stream: it is done now, unless the stream is being captured.
pub(crate) fn submit(stream: u64, work: Work) -> Answer {
    let now = with_context(|state, _| match state.capture_of(stream)? {
        Some(capture) => {
            state.captured(stream, capture, work)?;
            Ok(None)
        }
        None => Ok(Some(work)),
    })?;
    match now {
        // The function may notify other threads of the host, which then know what came before it.
        Some(Work::Host(call)) => order::wait(stream).map(|()| call.run()),
        Some(work) => with_context(|state, context| {
            let at = state.position(context, stream, &work)?;
            state.perform(context, at, &work)?;
            match &work {
                Work::Copy(copy) if state.is_awaited(copy) => state.host_waits(context, stream),
                _ => Ok(()),
            }
        }),
        None => Ok(()),
    }
}

/// Hands work to the default stream and waits for it, as far as the driver does.
pub(crate) fn submit_and_wait(copy: Copy) -> Answer {
    submit(0, Work::Copy(copy))?;
    with_context(|state, context| match state.is_within_device(&copy) {
        true => Ok(()),
        false => state.host_waits(context, 0),
    })
}

/// The same for a fill, which the host waits for where the memory is its own, too (CUDA Runtime API, "API synchronization
/// behavior").
pub(crate) fn fill_and_wait(fill: Fill) -> Answer {
    let address = fill.address;
    submit(0, Work::Fill(fill))?;
    with_context(
        |state, context| match state.engine.memory().is_arena(address) {
            true => Ok(()),
            false => state.host_waits(context, 0),
        },
    )
}

/// Does the work of a graph's next node, which comes after some of those before it. Host functions run
/// unlocked: they may call the driver. Gives the number of the node.
pub(crate) fn run(
    launching: &mut Launching,
    after: &[usize],
    work: &Work,
) -> Result<usize, CUresult> {
    let (number, at) = launching.node(after)?;
    match work {
        Work::Host(call) => {
            launching.calls()?;
            call.run();
            return Ok(number);
        }
        Work::Record(event) => launching.records(*event)?,
        Work::Wait(event) => launching.waits(*event)?,
        _ => {}
    }
    with_context(|state, context| state.perform(context, at, work))?;
    Ok(number)
}

impl State {
    fn perform(&mut self, context: u64, at: Option<At>, work: &Work) -> Answer {
        match work {
            Work::Launch(function, launch) => self.run_kernel(context, at, *function, launch),
            Work::Copy(copy) => {
                self.copy(copy)?;
                let touched = self.touched(copy);
                self.overwritten(&touched);
                self.engine.called(at, touched);
                Ok(())
            }
            Work::Fill(fill) => {
                self.fill(fill)?;
                let touched = fill.touched();
                self.overwritten(&touched);
                self.engine.called(at, touched);
                Ok(())
            }
            Work::Record(event) => {
                self.events.get_mut(*event)?.recorded = Some(Instant::now());
                Ok(())
            }
            Work::Alloc(address) => {
                self.hold_graph_memory(*address)?;
                self.took(at, *address, report::log::Call::Alloc);
                Ok(())
            }
            Work::Free(address) => {
                self.took(at, *address, report::log::Call::Free);
                self.drop_graph_memory(*address)
            }
            Work::Host(_) | Work::Wait(_) | Work::Empty => Ok(()),
        }
    }

    /// Notifies the checker of an allocation that begins or ends at a place among all work.
    pub(crate) fn took(&mut self, at: Option<At>, address: u64, call: report::log::Call) {
        if let Some(allocation) = self.memory.get(&address) {
            let range = CallRange {
                base: address,
                bytes: allocation.bytes,
                call,
            };
            self.engine.called(at, [range]);
        }
    }

    fn run_kernel(
        &mut self,
        context: u64,
        at: Option<At>,
        function: u64,
        launch: &Launch,
    ) -> Answer {
        let found = self.functions.get(function)?;
        let (image, name) = (found.image, found.name.to_string_lossy().into_owned());
        let module = self.on_device(image)?;
        let Err(error) = self.engine.launch(module, &name, launch.clone(), at) else {
            return Ok(());
        };
        let (code, fault) = verdict(&error);
        if !fault {
            return Err(code);
        }
        self.contexts.get_mut(context)?.fault = Some(code);
        // From now on every call fails, those that wait too: none of the work runs any more.
        if let Some(streams) = self.engine.streams() {
            streams.in_flight().host_may_know();
        }
        // A real launch is over before its kernel faults, unless it was asked to wait.
        if self.blocking { Err(code) } else { Ok(()) }
    }
}

/// The code of a failed launch, and whether it ends the context.
fn verdict(error: &LaunchError) -> (CUresult, bool) {
    match error {
        LaunchError::IllegalAddress { .. }
        | LaunchError::InvalidTexture { .. }
        | LaunchError::InvalidSurface { .. } => (CUresult::ILLEGAL_ADDRESS, true),
        LaunchError::OutsideSurface { .. } => (CUresult::LAUNCH_FAILED, true),
        LaunchError::Misaligned { .. } => (CUresult::MISALIGNED_ADDRESS, true),
        LaunchError::InvalidProgramCounter { .. } => (CUresult::INVALID_PC, true),
        LaunchError::StackOverflow { .. } => (CUresult::HARDWARE_STACK_ERROR, true),
        LaunchError::Trap { .. } => (CUresult::LAUNCH_FAILED, true),
        LaunchError::Assert { .. } => (CUresult::ASSERT, true),
        LaunchError::Deadlock { .. } | LaunchError::Timeout { .. } => {
            (CUresult::LAUNCH_TIMEOUT, true)
        }
        // The process is about to end.
        LaunchError::Interrupted { .. } => (CUresult::LAUNCH_FAILED, true),
        // Nothing has run, so the program may go on without this kernel.
        LaunchError::Unsupported { .. } => (CUresult::NOT_SUPPORTED, false),
        LaunchError::UnknownModule | LaunchError::UnknownKernel(_) => {
            (CUresult::INVALID_HANDLE, false)
        }
        LaunchError::InvalidConfiguration(_) => (CUresult::INVALID_VALUE, false),
        LaunchError::OutOfResources(_) => (CUresult::LAUNCH_OUT_OF_RESOURCES, false),
        LaunchError::CooperativeTooLarge(_) => (CUresult::COOPERATIVE_LAUNCH_TOO_LARGE, false),
    }
}
