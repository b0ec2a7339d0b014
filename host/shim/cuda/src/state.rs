//! The state of the process, behind one mutex.
//!
//! A child made by `fork` gets errors: the real driver does not survive it either, and another
//! thread of the parent may have held the mutex.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use driver::sys::CUresult;

use crate::array::Array;
use crate::conditional::Condition;
use crate::context::Context;
use crate::device::Visible;
use crate::engine::Engine;
use crate::event::Event;
use crate::function::Function;
use crate::graph::Graph;
use crate::graph_exec::Exec;
use crate::image::Image;
use crate::link::Link;
use crate::memory::Allocation;
use crate::module::{Library, Module};
use crate::node::Node;
use crate::pool::Pool;
use crate::stream::{Capture, Stream};
use crate::table::Table;
use crate::texture::{SurfaceObject, TextureObject};
use crate::user_object::UserObject;
use crate::virtual_memory::VirtualMemory;
use crate::work::Call;

/// Everything there is.
pub(crate) struct State {
    /// The device and who checks it.
    pub(crate) engine: Engine,
    /// The devices that CUDA_VISIBLE_DEVICES leaves, by the program's numbers.
    pub(crate) devices: Vec<Visible>,
    /// CUDA_LAUNCH_BLOCKING: a launch returns the error of its kernel.
    pub(crate) blocking: bool,
    /// By device.
    pub(crate) primary: Vec<Primary>,
    pub(crate) contexts: Table<Context>,
    pub(crate) images: Table<Image>,
    pub(crate) modules: Table<Module>,
    pub(crate) libraries: Table<Library>,
    pub(crate) functions: Table<Function>,
    pub(crate) links: Table<Link>,
    /// Allocations and registered ranges by their first address.
    pub(crate) memory: BTreeMap<u64, Allocation>,
    /// How many writes of streams to memory there have been.
    pub(crate) marks: u64,
    /// How many allocations there have been; their identity for the program.
    pub(crate) allocations: u64,
    pub(crate) virtual_memory: VirtualMemory,
    pub(crate) pools: Table<Pool>,
    pub(crate) default_pool: u64,
    pub(crate) current_pool: u64,
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    pub(crate) captures: Table<Capture>,
    pub(crate) arrays: Table<Array>,
    /// Texture objects by their handles, which are the device's.
    pub(crate) textures: BTreeMap<u64, TextureObject>,
    /// Surface objects likewise.
    pub(crate) surfaces: BTreeMap<u64, SurfaceObject>,
    /// Graphs under construction, and instantiated ones.
    pub(crate) graphs: Table<Graph>,
    pub(crate) nodes: Table<Node>,
    pub(crate) execs: Table<Exec>,
    /// Values that conditional nodes go by, by the address of their word.
    pub(crate) conditions: BTreeMap<u64, Condition>,
    /// What graphs keep alive, and the destructors of what they no longer do.
    pub(crate) objects: Table<UserObject>,
    pub(crate) dropped: Vec<Call>,
}

/// The context that the runtime library shares with everybody.
#[derive(Debug, Default)]
pub(crate) struct Primary {
    /// Its handle once it has been made; the handle stays the same for the process.
    pub(crate) context: Option<u64>,
    pub(crate) references: u32,
    pub(crate) flags: u32,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Threads of the program that wait for it.
static WAITING: AtomicU32 = AtomicU32::new(0);

fn lock() -> MutexGuard<'static, Option<State>> {
    WAITING.fetch_add(1, Ordering::Relaxed);
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    state
}

/// Whether another thread of the program wants something of the device while a launch runs.
pub(crate) fn others_wait() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}
/// The process that initialised the driver; 0 before.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Makes the state, once; later calls only say whether it is there.
pub(crate) fn initialise(make: impl FnOnce() -> Result<State, CUresult>) -> crate::Answer {
    let process = std::process::id();
    let first = PROCESS.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire);
    if first.is_err_and(|owner| owner != process) {
        return Err(CUresult::NOT_INITIALIZED);
    }
    let mut state = lock();
    if state.is_none() {
        *state = Some(make()?);
    }
    Ok(())
}

/// The program has come to its end: reports what it has touched since its last call.
extern "C" fn at_exit() {
    if PROCESS.load(Ordering::Acquire) != std::process::id() {
        return;
    }
    let look = || {
        // A thread that is in a call keeps the state, and looks by itself.
        if let Ok(mut state) = STATE.try_lock()
            && let Some(state) = state.as_mut()
        {
            state.engine.look_at_host();
        }
    };
    // Nothing is left to report a panic to.
    let _ = std::panic::catch_unwind(look);
}

/// From now on the end of the program is noticed.
pub(crate) fn notice_end() {
    static ONCE: Once = Once::new();
    // SAFETY: the function may be called at any time, and never unwinds.
    ONCE.call_once(|| unsafe {
        libc::atexit(at_exit);
    });
}

/// Does something with the state, whatever the state of the current context.
pub(crate) fn with<T>(f: impl FnOnce(&mut State) -> Result<T, CUresult>) -> Result<T, CUresult> {
    if PROCESS.load(Ordering::Acquire) != std::process::id() {
        return Err(CUresult::NOT_INITIALIZED);
    }
    let mut state = lock();
    let state = state.as_mut().ok_or(CUresult::NOT_INITIALIZED)?;
    state.engine.look_at_host();
    let answer = f(state);
    state.engine.watch_host();
    answer
}

impl State {
    /// The device of a context; the first one where there is no such context.
    pub(crate) fn device_of(&self, context: u64) -> i32 {
        self.contexts.get(context).map_or(0, |found| found.device)
    }

    /// The device of the calling thread's current context.
    pub(crate) fn device(&self) -> i32 {
        self.device_of(current().unwrap_or(0))
    }

    /// The primary context of a device that exists.
    pub(crate) fn primary(&mut self, device: i32) -> Result<&mut Primary, CUresult> {
        let index = usize::try_from(device).ok();
        let found = index.and_then(|index| self.primary.get_mut(index));
        found.ok_or(CUresult::INVALID_DEVICE)
    }
}

/// Does something in the current context, unless a fault has ended it.
pub(crate) fn with_context<T>(
    f: impl FnOnce(&mut State, u64) -> Result<T, CUresult>,
) -> Result<T, CUresult> {
    with(|state| {
        let current = current().ok_or(CUresult::INVALID_CONTEXT)?;
        within(state, current, f)
    })
}

/// The same in a given context instead of the current one.
pub(crate) fn with_this_context<T>(
    context: u64,
    f: impl FnOnce(&mut State, u64) -> Result<T, CUresult>,
) -> Result<T, CUresult> {
    with(|state| within(state, context, f))
}

fn within<T>(
    state: &mut State,
    context: u64,
    f: impl FnOnce(&mut State, u64) -> Result<T, CUresult>,
) -> Result<T, CUresult> {
    match state.contexts.get(context)?.fault {
        Some(fault) => Err(fault),
        None => {
            // The checker gets to know the thread as early as may be.
            let _ = state.engine.streams();
            f(state, context)
        }
    }
}

/// Contexts a thread may stack.
const DEPTH: usize = 32;

thread_local! {
    // Constant and without destructor: the program may call us while its thread ends.
    static STACK: Cell<([u64; DEPTH], usize)> = const { Cell::new(([0; DEPTH], 0)) };
}

fn stack<T>(f: impl FnOnce(&mut [u64; DEPTH], &mut usize) -> T) -> T {
    STACK.with(|cell| {
        let (mut stack, mut depth) = cell.get();
        let result = f(&mut stack, &mut depth);
        cell.set((stack, depth));
        result
    })
}

/// The calling thread's current context.
pub(crate) fn current() -> Option<u64> {
    stack(|stack, depth| depth.checked_sub(1).map(|top| stack[top])).filter(|&top| top != 0)
}

/// Replaces the top of the calling thread's stack; 0 removes it.
pub(crate) fn set_current(context: u64) -> crate::Answer {
    match (context, stack(|_, depth| *depth)) {
        (0, _) => {
            pop();
            Ok(())
        }
        (_, 0) => push(context),
        (_, depth) => {
            stack(|stack, _| stack[depth - 1] = context);
            Ok(())
        }
    }
}

/// Puts a context on the calling thread's stack.
pub(crate) fn push(context: u64) -> crate::Answer {
    stack(|stack, depth| {
        let slot = stack.get_mut(*depth).ok_or(CUresult::OUT_OF_MEMORY)?;
        *slot = context;
        *depth += 1;
        Ok(())
    })
}

/// Takes the top from the calling thread's stack.
pub(crate) fn pop() -> Option<u64> {
    stack(|stack, depth| {
        *depth = depth.checked_sub(1)?;
        Some(stack[*depth])
    })
}
