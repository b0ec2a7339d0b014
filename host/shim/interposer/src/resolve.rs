//! Loading the real driver, and filling the slots of the trampolines.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Once, OnceLock};

use driver::sys::{Api, CUresult, ENTRY_POINTS, FUNCTION_NAMES};

use crate::hooked;
use crate::trampoline::{self, Slot};
use runtime::progress;

/// The driver behind us.
pub(crate) struct Real {
    /// Its functions as most programs call them.
    pub(crate) api: Api,
    /// Its functions as a program calls them that has a default stream per thread.
    pub(crate) per_thread: Api,
    /// Its functions that are hooked, by symbol.
    pub(crate) hooked: Vec<Hooked>,
    /// Addresses of all the functions that it exports, as far as we know their names.
    functions: BTreeMap<&'static str, usize>,
}

/// A symbol of the real driver that we have a hook for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hooked {
    pub(crate) symbol: &'static str,
    /// What `cuGetProcAddress` calls it.
    pub(crate) base: &'static str,
    /// Address of the real function.
    pub(crate) real: usize,
    /// Address of ours.
    pub(crate) ours: usize,
}

static REAL: OnceLock<Option<Real>> = OnceLock::new();

thread_local! {
    /// This thread is loading the driver. Constant and without destructor, for calls at exit.
    static LOADING: Cell<bool> = const { Cell::new(false) };
}

/// The driver behind us, if there is one; known before any of our hooks can be reached.
pub(crate) fn real() -> Option<&'static Real> {
    REAL.get().and_then(Option::as_ref)
}

/// Where a function that was called through `slot` is, for the first call of all.
pub(crate) fn target(slot: &'static Slot) -> *const c_void {
    static FILLED: Once = Once::new();
    // A driver that calls itself by name while it is loaded comes back here.
    if LOADING.replace(true) {
        return not_ready as *const c_void;
    }
    FILLED.call_once(|| {
        let real = REAL.get_or_init(|| catch_unwind(load).unwrap_or(None));
        let filled = catch_unwind(AssertUnwindSafe(|| fill(real.as_ref())));
        // An empty slot would bring its function back here for ever.
        if filled.is_err() {
            fill(None);
        }
    });
    LOADING.set(false);
    slot.load(Ordering::Acquire)
}

/// Loads the driver.
fn load() -> Option<Real> {
    match Api::open_behind() {
        Ok(api) => Some(describe(api)),
        Err(error) => {
            progress::say_missed(&format!("{error}; CUDA does not work in this program"));
            None
        }
    }
}

/// Points every trampoline to its function.
fn fill(real: Option<&Real>) {
    for (name, slot) in trampoline::slots() {
        let to = match real {
            Some(real) => real.function(name).unwrap_or(missing as *const c_void),
            None => not_ready as *const c_void,
        };
        slot.store(to.cast_mut(), Ordering::Release);
    }
}

fn describe(api: Api) -> Real {
    let names = FUNCTION_NAMES.iter().copied();
    let functions: BTreeMap<&str, usize> = names
        .filter_map(|name| Some((name, api.symbol(name)?.expose_provenance())))
        .collect();
    let rows = ENTRY_POINTS
        .iter()
        .filter(|row| hooked::NAMES.contains(&row.name));
    let symbols = rows.flat_map(|row| row.symbols.iter().map(|symbol| (row.base, *symbol)));
    let hooked = symbols.filter_map(|(base, symbol)| {
        Some(Hooked {
            symbol,
            base,
            real: *functions.get(symbol)?,
            ours: hooked::address(symbol)?.expose_provenance(),
        })
    });
    Real {
        hooked: hooked.collect(),
        functions,
        per_thread: api.with_per_thread_stream(),
        api,
    }
}

impl Real {
    /// Whether the driver exports a function at this address.
    pub(crate) fn exports(&self, address: usize) -> bool {
        self.functions.values().any(|known| *known == address)
    }

    /// Where a call of `name` goes: to our hook, else to the driver, if it has such a function.
    fn function(&self, name: &str) -> Option<*const c_void> {
        let theirs = *self.functions.get(name)?;
        let ours = self.hooked.iter().find(|hooked| hooked.symbol == name);
        let address = ours.map_or(theirs, |hooked| hooked.ours);
        Some(std::ptr::with_exposed_provenance(address))
    }
}

/// In place of a function that the real driver has not got.
extern "C" fn missing() -> CUresult {
    CUresult::NOT_FOUND
}

/// In place of every function when there is no driver.
extern "C" fn not_ready() -> CUresult {
    CUresult::SYSTEM_NOT_READY
}
