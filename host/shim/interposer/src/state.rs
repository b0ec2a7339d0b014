//! What is checked in this process: modules, functions, launches.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, bounded, never, select};
use driver::gpu::Gpu;
use driver::load::Source;
use driver::steps::Steps;
use driver::sys::{Api, CUcontext, CUresult, limit};
use os::interrupts::{self, Held};
use report::log::Writer;
use runtime::session::Session;
use runtime::{Checker, ModuleKey, options, progress};

use crate::handles::Handles;
use crate::own::Own;
use crate::resolve;
use crate::without_ptx::{Unlogged, WithoutPtx};

/// Between two looks at what is in flight, unless the program looks itself.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a signal that ends the process waits for those who use the state, and as long again for
/// launches in flight.
const SHORT: Duration = Duration::from_millis(500);
/// How long the end of the process waits for launches that the program has not waited for.
const LAST: Duration = Duration::from_secs(2);

/// Everything that the hooks remember.
pub(crate) struct State {
    pub(crate) session: Session,
    /// Modules and libraries, by handle.
    pub(crate) modules: HashMap<u64, Module>,
    /// Functions and kernels, by handle.
    pub(crate) functions: HashMap<u64, Function>,
    /// The program's own code beside kernels with checks, by the handles of these.
    pub(crate) owns: HashMap<u64, u64>,
    /// Attributes of functions that a launch asks for, by function and context.
    pub(crate) attributes: HashMap<(u64, u64), [u32; 4]>,
    /// What is set for launches in steps, by function.
    pub(crate) steps: HashMap<u64, Steps>,
    /// Primary contexts by device.
    pub(crate) primary: HashMap<i32, u64>,
    /// Contexts of memory that goes with them, by address.
    pub(crate) memory: HashMap<u64, u64>,
    /// What the program knows of the stack of contexts that have more, by context, in bytes per thread.
    pub(crate) stacks: HashMap<u64, usize>,
    /// How often contexts have been attached to.
    pub(crate) attached: HashMap<u64, u32>,
    /// Links in progress, by handle.
    pub(crate) links: HashMap<u64, Link>,
    /// What images were linked of, by their fingerprints: programs copy images, and load them when the link
    /// is gone.
    pub(crate) linked: HashMap<u64, Link>,
    /// Handles of memory that the program maps itself.
    pub(crate) handles: Handles,
    /// Graphs whose kernels are not checked, by handle: those of conditional nodes.
    pub(crate) bodies: HashSet<u64>,
    /// Kernels without PTX, which run unchecked.
    pub(crate) without_ptx: WithoutPtx,
    /// Wakes the thread that drains; it ends when this is dropped.
    wake: Option<Sender<()>>,
    /// There is a thread that ends the process by a signal.
    ends: bool,
    /// Signals that end the process are held, because something is in flight.
    held: Option<Held>,
}

/// A loaded module.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) key: ModuleKey,
    /// Offset and length in bytes of the parameters of each kernel, without the hidden one.
    pub(crate) kernels: HashMap<String, Vec<(u32, u32)>>,
    /// Variables that a kernel may write.
    pub(crate) variables: Vec<String>,
    /// The handle is that of a library.
    pub(crate) library: bool,
    /// Contexts in which the checker knows the variables.
    pub(crate) registered: HashSet<u64>,
    /// The program's own image, if this is not what has been loaded.
    pub(crate) own: Option<Arc<Own>>,
}

/// What a program has given to the driver's linker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    /// PTX, in the order in which it came.
    pub(crate) units: Vec<Source>,
    /// The name of something that is machine code only, if there is any.
    pub(crate) other: Option<String>,
}

/// A function or kernel that can be launched.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Its module or library.
    pub(crate) module: u64,
    pub(crate) key: ModuleKey,
    pub(crate) name: String,
    /// Offset and length of its parameters in bytes, without the hidden one.
    pub(crate) params: Vec<(u32, u32)>,
    /// Offset of the hidden parameter in bytes, if it has one.
    pub(crate) hidden: Option<u32>,
    /// The handle is that of a kernel of a library.
    pub(crate) kernel: bool,
    /// The context that was current when the program asked for it, if it is no kernel of a library.
    pub(crate) context: Option<u64>,
}

static STATE: OnceLock<Option<Mutex<State>>> = OnceLock::new();
/// The process that the state belongs to; a forked child has none.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Uses the state, unless this process is not to be checked.
pub(crate) fn with<R>(ask: impl FnOnce(&mut State) -> R) -> Option<R> {
    let state = STATE.get_or_init(start).as_ref()?;
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return None;
    }
    // A driver that calls itself by name comes back to the hooks, and is not the program.
    if ASKING.replace(true) {
        return None;
    }
    let _asking = Asking;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    Some(ask(&mut state))
}

/// Uses the state once it is free, if it is within a time: the thread that has it may wait for the device.
fn with_soon(timeout: Duration, ask: impl FnOnce(&mut State)) {
    let Some(Some(state)) = STATE.get() else {
        return;
    };
    let started = Instant::now();
    ASKING.set(true);
    let _asking = Asking;
    while started.elapsed() < timeout {
        match state.try_lock() {
            Ok(mut state) => return ask(&mut state),
            Err(TryLockError::Poisoned(state)) => return ask(&mut state.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

thread_local! {
    /// This thread uses the state. Constant and without destructor, for calls at exit.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// The flag is set while this lives.
struct Asking;

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.set(false);
    }
}

/// Likewise, if the program has done anything yet that is watched.
pub(crate) fn with_started<R>(ask: impl FnOnce(&mut State) -> R) -> Option<R> {
    match STATE.get() {
        Some(Some(_)) => with(ask),
        _ => None,
    }
}

fn start() -> Option<Mutex<State>> {
    let asked = options::from_environment();
    let options::RequestedCheck {
        mut options,
        folder,
        spare,
    } = match asked {
        Ok(asked) => asked?,
        Err(why) => {
            progress::say_missed(&format!("{why}; the program is not checked"));
            return None;
        }
    };
    // A GPU reports nothing, so that everything is decided from the cells and from journals.
    options.as_gpu = true;
    let log = match Writer::create(&folder, spare.as_deref()) {
        Ok(log) => log,
        Err(error) => {
            let folder = folder.display();
            progress::say_once(&format!(
                "no log in {folder}: {error}; the program is not checked"
            ));
            return None;
        }
    };
    progress::enable(options.progress, Some(&folder));
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the function may be called at any time, and never unwinds.
    let _ = unsafe { libc::atexit(at_exit) };
    let ends = spawn("cudarun-signals", end_by_signal);
    Some(Mutex::new(State {
        session: Session::new(Checker::new(options, log)),
        modules: HashMap::new(),
        functions: HashMap::new(),
        owns: HashMap::new(),
        attributes: HashMap::new(),
        steps: HashMap::new(),
        primary: HashMap::new(),
        memory: HashMap::new(),
        stacks: HashMap::new(),
        attached: HashMap::new(),
        links: HashMap::new(),
        linked: HashMap::new(),
        handles: Handles::default(),
        bodies: HashSet::new(),
        without_ptx: WithoutPtx::default(),
        wake: None,
        ends,
        held: None,
    }))
}

/// Starts a thread of ours; false if there is none.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    // The program's signals are none of its business. A thread inherits what is blocked.
    // SAFETY: both sets are initialised by the calls.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
    // SAFETY: the set was filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    if let Err(error) = &spawned {
        progress::say_once(&format!(
            "races are reported only when the program waits for the device: {error}"
        ));
    }
    spawned.is_ok()
}

/// Polls from a wake on as long as `poll` says so, at intervals; ends when the sender is dropped.
fn drain(woken: &Receiver<()>, mut poll: impl FnMut() -> bool) {
    let none = never();
    let mut next = None;
    loop {
        select! {
            recv(woken) -> wake => match wake {
                Ok(()) => {
                    next.get_or_insert_with(|| after(PAUSE));
                }
                Err(_) => return,
            },
            // Not by a clock that ticks on meanwhile: a poll that takes long would be followed by the next one at once.
            recv(next.as_ref().unwrap_or(&none)) -> _ => next = poll().then(|| after(PAUSE)),
        }
    }
}

/// Drains what the program does not wait for; whether anything is still in flight.
fn poll() -> bool {
    let busy = with(|state| {
        // The process has come to its end, and the driver may have.
        if state.wake.is_none() {
            return false;
        }
        // A driver may keep us waiting until it has answered, and the state with us.
        if !state.session.is_asking() {
            state.session.poll();
        }
        if progress::is_enabled() {
            state.session.show_progress();
        }
        let idle = state.session.is_idle();
        if idle {
            state.held = None;
        }
        !idle
    });
    busy == Some(true)
}

/// Ends the process by the signal that wants it to end, when what was found is written down.
fn end_by_signal() {
    if !interrupts::wait() {
        return;
    }
    let write = || {
        with_soon(SHORT, |state| {
            state.log_unlogged();
            state.session.interrupt(SHORT);
        });
    };
    // What it has not written by then is missing.
    let _ = std::panic::catch_unwind(write);
    progress::erase();
    if let Some(signal) = interrupts::caught() {
        interrupts::end(signal);
    }
}

/// The calling thread's context, if it has one.
pub(crate) fn current(real: &Api) -> Option<CUcontext> {
    let mut context = std::ptr::null_mut();
    // SAFETY: there is room for the result.
    let result = unsafe { real.cuCtxGetCurrent(&mut context) };
    (result == CUresult::SUCCESS && !context.is_null()).then_some(context)
}

/// Stack for threads with checks, in bytes, that need so much without.
pub(crate) fn stack_with_checks(bytes: usize) -> usize {
    bytes.saturating_mul(3).saturating_add(1024)
}

/// The process ends without having waited for all its launches.
extern "C" fn at_exit() {
    let settle = || {
        with_started(|state| {
            state.wake = None;
            state.log_unlogged();
            state.session.settle(LAST)
        })
    };
    if let Ok(Some(false)) = std::panic::catch_unwind(settle) {
        progress::say_missed(
            "the program has ended before its last kernels, which are not checked",
        );
    }
}

impl State {
    /// Makes sure that the calling thread's context is known, and gives its number.
    pub(crate) fn context(&mut self) -> Option<u64> {
        let context = current(&resolve::real()?.api)?;
        self.attach(context)
    }

    /// Makes sure that a live context is known, and gives its number.
    pub(crate) fn attach(&mut self, context: CUcontext) -> Option<u64> {
        let real = &resolve::real()?.api;
        let number = context.expose_provenance() as u64;
        // SAFETY: the context lives, as the program uses it; hooks report its end.
        let attached = self
            .session
            .attach(number, || unsafe { Gpu::new(real, context) });
        match attached {
            Ok(()) => Some(number),
            Err(error) => {
                progress::say_missed(&format!("a context is not checked: {error}"));
                None
            }
        }
    }

    /// Whether launches can be given their hidden parameter. A library can be loaded before there is a
    /// context; then only its launches report it.
    pub(crate) fn is_ready(&mut self) -> bool {
        if resolve::real()
            .and_then(|real| current(&real.api))
            .is_none()
        {
            return true;
        }
        let context = self.context();
        context.is_some_and(|context| self.session.is_ready(context))
    }

    /// A context is about to be destroyed, or has been reset. A library survives it, and has its variables at
    /// other addresses in the next one, which may be called the same.
    pub(crate) fn leave(&mut self, context: u64) {
        self.session.leave(context);
        self.attached.remove(&context);
        self.stacks.remove(&context);
        for module in self.modules.values_mut() {
            module.registered.remove(&context);
        }
        for (address, _) in self.memory.extract_if(|_, of| *of == context) {
            self.session.checker().freed(address);
        }
        self.attributes.retain(|(_, of), _| *of != context);
    }

    /// Gives the threads of a context more stack, once, where a module with checks has kernels that need it: frames
    /// are larger with checks, and where it is not known how many of them there are, a driver takes the limit.
    pub(crate) fn raise_stack_limit(&mut self, real: &Api, module: u64, context: u64) {
        let Some(key) = self.modules.get(&module).map(|module| module.key) else {
            return;
        };
        if self.stacks.contains_key(&context) || !self.session.checker().has_unknown_stack(key) {
            return;
        }
        let Some(_entered) = self.session.enter(context) else {
            return;
        };
        let mut shown = 0;
        // SAFETY: the context is current, and there is room for the result.
        let known = unsafe { real.cuCtxGetLimit(&mut shown, limit::STACK_SIZE) };
        if known != CUresult::SUCCESS {
            return;
        }
        // SAFETY: as above.
        match unsafe { real.cuCtxSetLimit(limit::STACK_SIZE, stack_with_checks(shown)) } {
            CUresult::SUCCESS => {
                self.stacks.insert(context, shown);
            }
            error => progress::say_once(&format!(
                "kernels that recurse or call through pointers may have too little stack with checks ({shown} bytes): {error}"
            )),
        }
    }

    /// A launch is in flight, or the driver is about to be asked for one.
    pub(crate) fn wake(&mut self) {
        // What is in flight is lost with the process; otherwise there is nothing to wait for.
        if self.ends && self.held.is_none() && !self.session.is_idle() {
            self.held = Some(interrupts::hold());
        }
        let wake = self.wake.take().or_else(|| {
            let (wake, woken) = bounded(1);
            spawn("cudarun-check", move || drain(&woken, poll)).then_some(wake)
        });
        self.wake = wake.inspect(|wake| {
            // Where one wake is on its way, a second one adds nothing.
            let _ = wake.try_send(());
        });
    }

    /// Remembers a function that the program has asked for. Handles are used again when what they named
    /// is gone, and what is not known has them now.
    pub(crate) fn register(&mut self, handle: u64, module: u64, name: &str, kernel: bool) {
        self.functions.remove(&handle);
        self.owns.remove(&handle);
        self.without_ptx.found(handle, module, name);
        let Some(found) = self.modules.get(&module) else {
            return;
        };
        let Some(params) = found.kernels.get(name) else {
            return;
        };
        let context = match kernel {
            true => None,
            false => resolve::real().and_then(|real| current(&real.api)),
        };
        let key = found.key;
        let checker = self.session.checker();
        let hidden = checker.hidden_parameter(key, name);
        let params = params.clone();
        let function = Function {
            module,
            key,
            name: name.to_owned(),
            params,
            hidden,
            kernel,
            context: context.map(|context| context.expose_provenance() as u64),
        };
        self.functions.insert(handle, function);
    }

    /// Remembers the function that a context has of a kernel, under a handle that the driver has given.
    pub(crate) fn register_function(&mut self, handle: u64, kernel: u64) {
        self.functions.remove(&handle);
        self.owns.remove(&handle);
        self.without_ptx.function_of(handle, kernel);
        let Some(found) = self.functions.get(&kernel).cloned() else {
            return;
        };
        let context = resolve::real().and_then(|real| current(&real.api));
        let function = Function {
            kernel: false,
            context: context.map(|context| context.expose_provenance() as u64),
            ..found
        };
        self.functions.insert(handle, function);
    }

    /// Writes launches of kernels without PTX to the log.
    pub(crate) fn log_without_ptx(&mut self, launches: impl IntoIterator<Item = Unlogged>) {
        let checker = self.session.checker();
        for Unlogged {
            kernel,
            why,
            launches,
        } in launches
        {
            if self.without_ptx.is_news(&why) {
                checker.note(format!("kernels run unchecked: {why}"));
            }
            checker.without_ptx(&kernel, &why, launches);
        }
    }

    fn log_unlogged(&mut self) {
        let rest = self.without_ptx.rest();
        self.log_without_ptx(rest);
    }

    /// Notifies the checker where a module's variables are in a context.
    pub(crate) fn register_variables(&mut self, real: &Api, handle: u64, context: u64) {
        let Some(module) = self.modules.get_mut(&handle) else {
            return;
        };
        if !module.registered.insert(context) {
            return;
        }
        self.raise_stack_limit(real, handle, context);
        let Some(module) = self.modules.get(&handle) else {
            return;
        };
        // It is another one's where the launch brings its own with it. A driver may load the library for it.
        let _entered = self.session.enter(context);
        for name in &module.variables {
            let Ok(symbol) = std::ffi::CString::new(name.as_str()) else {
                continue;
            };
            let (mut address, mut bytes) = (0, 0);
            let (to, size, symbol) = (&mut address, &mut bytes, symbol.as_ptr());
            let at = std::ptr::with_exposed_provenance_mut::<c_void>(handle as usize);
            // SAFETY: the handle is that of a live module or library, and there is room for both.
            let mut found = unsafe {
                match module.library {
                    true => real.cuLibraryGetGlobal(to, size, at.cast(), symbol),
                    false => real.cuModuleGetGlobal(to, size, at.cast(), symbol),
                }
            };
            let managed = found != CUresult::SUCCESS && module.library;
            if managed {
                // SAFETY: as above.
                found = unsafe { real.cuLibraryGetManaged(to, size, at.cast(), symbol) };
            }
            if found == CUresult::SUCCESS {
                let checker = self.session.checker();
                checker.allocated_variable(name, address, bytes as u64);
                // All contexts share managed variables.
                if !managed {
                    self.memory.insert(address, context);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_polls_while_something_is_in_flight_and_ends_when_it_is_stopped() {
        let (wake, woken) = bounded(1);
        let (sender, polled) = bounded(8);
        let thread = thread::spawn(move || {
            // Three launches, each seen to its end by its third poll.
            let mut polls = 0;
            drain(&woken, || {
                polls += 1;
                sender.send(polls).unwrap();
                polls % 3 != 0
            });
            polls
        });
        for launch in 0..3 {
            assert!(
                polled.recv_timeout(4 * PAUSE).is_err(),
                "nothing is in flight"
            );
            wake.send(()).unwrap();
            let polls: Vec<u32> = polled.iter().take(3).collect();
            assert_eq!(polls, [1, 2, 3].map(|poll| 3 * launch + poll));
        }
        drop(wake);
        assert_eq!(thread.join().unwrap(), 9);
    }
}
