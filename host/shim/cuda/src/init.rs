//! Initialisation, errors in words, and the tables we do not have.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use driver::sys::{CUDA_VERSION, CUresult, CUuuid};

use crate::Answer;
use crate::caller;
use crate::device::{self, Visible};
use crate::engine::Engine;
use crate::missing::ignored;
use crate::pointer::Ptr;
use crate::pool::Pool;
use crate::state::{self, Primary, State};
use crate::table::Table;

pub(crate) fn cuInit(flags: c_uint) -> Answer {
    if flags != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    state::initialise(|| {
        let list = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        let devices = device::visible(list.as_deref(), &device::present()?);
        match devices.is_empty() {
            true => Err(CUresult::NO_DEVICE),
            false => make(devices),
        }
    })
}

fn make(devices: Vec<Visible>) -> Result<State, CUresult> {
    let bad = CUresult::INVALID_HANDLE;
    let mut pools = Table::new(9, CUresult::INVALID_VALUE);
    let default_pool = pools.insert(Pool::default());
    Ok(State {
        engine: Engine::new()?,
        blocking: std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value == "1"),
        primary: devices.iter().map(|_| Primary::default()).collect(),
        devices,
        contexts: Table::new(1, CUresult::INVALID_CONTEXT),
        images: Table::new(2, bad),
        modules: Table::new(3, bad),
        libraries: Table::new(4, bad),
        functions: Table::new(5, bad),
        links: Table::new(6, bad),
        memory: Default::default(),
        marks: 0,
        allocations: 0,
        virtual_memory: Default::default(),
        pools,
        default_pool,
        current_pool: default_pool,
        streams: Table::new(10, bad),
        events: Table::new(11, bad),
        captures: Table::new(12, bad),
        arrays: Table::new(16, bad),
        textures: Default::default(),
        surfaces: Default::default(),
        graphs: Table::new(13, CUresult::INVALID_VALUE),
        nodes: Table::new(15, CUresult::INVALID_VALUE),
        execs: Table::new(14, CUresult::INVALID_VALUE),
        conditions: BTreeMap::new(),
        objects: Table::new(18, CUresult::INVALID_VALUE),
        dropped: Vec::new(),
    })
}

pub(crate) fn cuDriverGetVersion(version: Ptr<c_int>) -> Answer {
    version.set(CUDA_VERSION)
}

pub(crate) fn cuGetErrorName(error: CUresult, text: Ptr<*const c_char>) -> Answer {
    answer(error.name(), text)
}

pub(crate) fn cuGetErrorString(error: CUresult, text: Ptr<*const c_char>) -> Answer {
    answer(error.text(), text)
}

fn answer(found: Option<&'static CStr>, text: Ptr<*const c_char>) -> Answer {
    text.set(found.map_or(std::ptr::null(), CStr::as_ptr))?;
    found.map(drop).ok_or(CUresult::INVALID_VALUE)
}

/// The table that NVIDIA's runtime asks for first, and without which it fails. Its compilers ask for another one, and do
/// without.
const RUNTIME_TABLE: [u8; 16] = [
    0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9,
];

/// NVIDIA's libraries ask for internal tables here. We have none and do not imitate any.
pub(crate) fn cuGetExportTable(table: Ptr<*const c_void>, id: Ptr<CUuuid>) -> Answer {
    table.set_if(std::ptr::null());
    if id.cast::<u8>().bytes(RUNTIME_TABLE.len())? == RUNTIME_TABLE {
        let caller = caller::file().unwrap_or_else(|| "the program".to_owned());
        // Asked for before there is a device, it is asked for again.
        let _ = state::with(|state| {
            state.engine.missed(format!(
                "{caller} has NVIDIA's CUDA runtime inside, which works with NVIDIA's driver only: its calls of \
                 CUDA failed and were not checked; build it with `nvcc -cudart shared` to run it on the simulated device"
            ));
            Ok(())
        });
    }
    Err(CUresult::NOT_FOUND)
}

pub(crate) fn cuProfilerStart() -> Answer {
    ignored("there is no profiler");
    state::with_context(|_, _| Ok(()))
}

pub(crate) fn cuProfilerStop() -> Answer {
    ignored("there is no profiler");
    state::with_context(|_, _| Ok(()))
}
