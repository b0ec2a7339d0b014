//! Contexts: the primary one, those a program makes, and each thread's stack of them.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint};

use driver::sys::{
    CUcontext, CUctx_st, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUfunc_cache, CUlimit,
    CUresult, CUsharedconfig, device_attribute, limit,
};

use crate::Answer;
use crate::device::{attribute, check};
use crate::memory::MemoryKind;
use crate::missing::{ignored, remark};
use crate::pointer::Ptr;
use crate::state::{self, State, current, with, with_context, with_this_context};
use crate::stream::Capture;
use crate::table::{pointer, set};

/// Flags that a context may be made with: `CU_CTX_FLAGS_MASK`.
const FLAGS: c_uint = 0xff;
/// Default limits of an sm_90, by `CUlimit`.
const LIMITS: [usize; 7] = [1024, 1 << 20, 8 << 20, 0, 2048, 64, 0];

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) primary: bool,
    /// The number of its device.
    pub(crate) device: i32,
    /// Contexts whose memory it may access.
    peers: BTreeSet<u64>,
    flags: u32,
    /// The fault that ended it, which every later call returns.
    pub(crate) fault: Option<CUresult>,
    limits: [usize; 7],
    cache: CUfunc_cache,
    shared: CUsharedconfig,
    identity: u64,
    /// How often it has to be detached from until it is destroyed.
    uses: u32,
}

impl Context {
    fn new(primary: bool, device: i32, flags: u32, identity: u64) -> Context {
        Context {
            primary,
            device,
            peers: BTreeSet::new(),
            flags,
            fault: None,
            limits: LIMITS,
            cache: 0,
            shared: 0,
            identity,
            uses: 1,
        }
    }
}

impl State {
    fn make_context(&mut self, primary: bool, device: i32, flags: u32) -> u64 {
        let identity = self
            .contexts
            .iter()
            .map(|(_, context)| context.identity)
            .max();
        self.contexts.insert(Context::new(
            primary,
            device,
            flags,
            identity.unwrap_or(0) + 1,
        ))
    }

    /// Frees all that belongs to a context and forgets its fault.
    fn clear(&mut self, context: u64) {
        self.host_waits_for_all();
        let streams = self.streams.iter();
        let gone = streams.filter(|(_, stream)| stream.context == context);
        let gone: Vec<u64> = gone.map(|(handle, _)| handle).collect();
        for stream in gone {
            self.stream_gone(stream);
        }
        self.streams.take(|stream| stream.context == context);
        self.events.take(|event| event.context == context);
        self.captures.take(|capture| capture.context == context);
        let modules: Vec<u64> = self
            .modules
            .iter()
            .filter(|(_, module)| module.context == context)
            .map(|(handle, _)| handle)
            .collect();
        for module in modules {
            let _ = self.unload(module);
        }
        let primary = self
            .contexts
            .get(context)
            .is_ok_and(|context| context.primary);
        if primary {
            // Libraries outlive contexts; their variables start over in the next one.
            self.forget_images(self.device_of(context));
        }
        let addresses: Vec<u64> = self
            .memory
            .iter()
            .filter(|(_, of)| of.context == context && of.kind != MemoryKind::Mapped)
            .map(|(&address, _)| address)
            .collect();
        for address in addresses {
            let _ = self.release(address);
        }
        self.clear_textures(context);
        for array in self.arrays.take(|array| array.context == context) {
            let _ = self.release_array(&array);
        }
        if let Ok(context) = self.contexts.get_mut(context) {
            *context = Context::new(
                context.primary,
                context.device,
                context.flags,
                context.identity,
            );
        }
    }
}

pub(crate) fn cuDevicePrimaryCtxRetain(out: Ptr<CUcontext>, dev: CUdevice) -> Answer {
    check(dev)?;
    let context = with(|state| {
        let known = state.primary(dev)?;
        known.references += 1;
        let flags = known.flags;
        match known.context {
            Some(context) => Ok(context),
            None => {
                let context = state.make_context(true, dev, flags);
                Ok(*state.primary(dev)?.context.insert(context))
            }
        }
    })?;
    set(out, context)
}

pub(crate) fn cuDevicePrimaryCtxRelease(dev: CUdevice) -> Answer {
    check(dev)?;
    with(|state| {
        let primary = state.primary(dev)?;
        let context = primary.context.ok_or(CUresult::INVALID_CONTEXT)?;
        let left = primary
            .references
            .checked_sub(1)
            .ok_or(CUresult::INVALID_CONTEXT)?;
        primary.references = left;
        if left == 0 {
            state.clear(context);
        }
        Ok(())
    })
}

pub(crate) fn cuDevicePrimaryCtxReset(dev: CUdevice) -> Answer {
    check(dev)?;
    with(|state| {
        if let Some(context) = state.primary(dev)?.context {
            state.clear(context);
        }
        Ok(())
    })
}

pub(crate) fn cuDevicePrimaryCtxSetFlags(dev: CUdevice, flags: c_uint) -> Answer {
    check(dev)?;
    if flags & !FLAGS != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    with(|state| {
        let primary = state.primary(dev)?;
        primary.flags = flags;
        if let Some(context) = primary.context {
            state.contexts.get_mut(context)?.flags = flags;
        }
        Ok(())
    })
}

pub(crate) fn cuDevicePrimaryCtxGetState(
    dev: CUdevice,
    flags: Ptr<c_uint>,
    active: Ptr<c_int>,
) -> Answer {
    check(dev)?;
    let (now, used) = with(|state| {
        let primary = state.primary(dev)?;
        Ok((primary.flags, primary.references > 0))
    })?;
    flags.set(now)?;
    active.set(c_int::from(used))
}

pub(crate) fn cuCtxCreate_v2(out: Ptr<CUcontext>, flags: c_uint, dev: CUdevice) -> Answer {
    check(dev)?;
    if flags & !FLAGS != 0 || out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    let context = with(|state| Ok(state.make_context(false, dev, flags)))?;
    state::push(context)?;
    set(out, context)
}

pub(crate) fn cuCtxCreate_v3(
    out: Ptr<CUcontext>,
    _affinity: Ptr<CUexecAffinityParam>,
    count: c_int,
    flags: c_uint,
    dev: CUdevice,
) -> Answer {
    match count {
        0 => cuCtxCreate_v2(out, flags, dev),
        _ => Err(CUresult::UNSUPPORTED_EXEC_AFFINITY),
    }
}

pub(crate) fn cuCtxCreate_v4(
    out: Ptr<CUcontext>,
    params: Ptr<CUctxCreateParams>,
    flags: c_uint,
    dev: CUdevice,
) -> Answer {
    if !params.is_null() && params.get()?.num_exec_affinity_params != 0 {
        return Err(CUresult::UNSUPPORTED_EXEC_AFFINITY);
    }
    cuCtxCreate_v2(out, flags, dev)
}

pub(crate) fn cuCtxDestroy(ctx: Ptr<CUctx_st>) -> Answer {
    let context = ctx.address();
    with(|state| {
        if state.contexts.get(context)?.primary {
            return Err(CUresult::INVALID_CONTEXT);
        }
        state.clear(context);
        state.contexts.remove(context).map(drop)
    })?;
    if current() == Some(context) {
        state::pop();
    }
    Ok(())
}

pub(crate) fn cuCtxAttach(out: Ptr<CUcontext>, flags: c_uint) -> Answer {
    if flags != 0 || out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    let context = with_context(|state, context| {
        state.contexts.get_mut(context)?.uses += 1;
        Ok(context)
    })?;
    set(out, context)
}

/// The context has to be the current one; it is destroyed when nobody has attached to it any more.
pub(crate) fn cuCtxDetach(ctx: Ptr<CUctx_st>) -> Answer {
    let left = with_context(|state, context| {
        let found = state.contexts.get_mut(context)?;
        if context != ctx.address() || found.primary {
            return Err(CUresult::INVALID_CONTEXT);
        }
        found.uses -= 1;
        Ok(found.uses)
    })?;
    match left {
        0 => cuCtxDestroy(ctx),
        _ => Ok(()),
    }
}

pub(crate) fn cuCtxPushCurrent(ctx: Ptr<CUctx_st>) -> Answer {
    with(|state| state.contexts.get(ctx.address()).map(drop))?;
    state::push(ctx.address())
}

pub(crate) fn cuCtxPopCurrent(out: Ptr<CUcontext>) -> Answer {
    with(|_| Ok(()))?;
    let context = state::pop().ok_or(CUresult::INVALID_CONTEXT)?;
    out.set_if(pointer(context));
    Ok(())
}

pub(crate) fn cuCtxSetCurrent(ctx: Ptr<CUctx_st>) -> Answer {
    let context = ctx.address();
    with(|state| match context {
        0 => Ok(()),
        _ => state.contexts.get(context).map(drop),
    })?;
    state::set_current(context)
}

pub(crate) fn cuCtxGetCurrent(out: Ptr<CUcontext>) -> Answer {
    with(|_| Ok(()))?;
    set(out, current().unwrap_or(0))
}

pub(crate) fn cuCtxGetDevice(device: Ptr<CUdevice>) -> Answer {
    device.set(with(|state| {
        current().ok_or(CUresult::INVALID_CONTEXT)?;
        Ok(state.device())
    })?)
}

pub(crate) fn cuCtxGetFlags(flags: Ptr<c_uint>) -> Answer {
    flags.set(with_context(|state, context| {
        Ok(state.contexts.get(context)?.flags)
    })?)
}

pub(crate) fn cuCtxSetFlags(flags: c_uint) -> Answer {
    if flags & !FLAGS != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    with_context(|state, context| {
        state.contexts.get_mut(context)?.flags = flags;
        Ok(())
    })
}

pub(crate) fn cuCtxGetId(ctx: Ptr<CUctx_st>, id: Ptr<u64>) -> Answer {
    let context = match ctx.address() {
        0 => current().ok_or(CUresult::INVALID_CONTEXT)?,
        context => context,
    };
    id.set(with(|state| Ok(state.contexts.get(context)?.identity))?)
}

/// Work is done when it is submitted, so there is only its outcome to report.
pub(crate) fn cuCtxSynchronize() -> Answer {
    with_context(synchronize)
}

pub(crate) fn cuCtxSynchronize_v2(ctx: Ptr<CUctx_st>) -> Answer {
    with_this_context(ctx.address(), synchronize)
}

fn synchronize(state: &mut State, context: u64) -> Answer {
    let captured = |(_, capture): (u64, &Capture)| capture.context == context;
    if state.captures.iter().any(captured) {
        return Err(CUresult::STREAM_CAPTURE_UNSUPPORTED);
    }
    state.host_waits_for_all();
    Ok(())
}

fn limit_index(limit: CUlimit) -> Result<usize, CUresult> {
    usize::try_from(limit)
        .ok()
        .filter(|&index| index < LIMITS.len())
        .ok_or(CUresult::UNSUPPORTED_LIMIT)
}

/// Limits are stored and returned; how much of the L2 cache may persist, as far as the device has it, which changes nothing else. The heap's holds for kernels from now on; the stack is as large as it can be on an sm_90
/// whatever is asked for. The buffer of `printf` has no end: on a device older output is overwritten when it is full (CUDA C++
/// Programming Guide, "Formatted Output"), which helps nobody who looks for an error.
pub(crate) fn cuCtxSetLimit(limit: CUlimit, value: usize) -> Answer {
    remark("a thread has 512 KiB of stack, and printf loses nothing, whatever is asked for");
    let index = limit_index(limit)?;
    if limit == limit::DEV_RUNTIME_SYNC_DEPTH {
        return Err(CUresult::UNSUPPORTED_LIMIT);
    }
    let value = match limit {
        limit::PERSISTING_L2_CACHE_SIZE => {
            value.min(attribute(device_attribute::MAX_PERSISTING_L2_CACHE_SIZE) as usize)
        }
        _ => value,
    };
    with_context(|state, context| {
        state.contexts.get_mut(context)?.limits[index] = value;
        if limit == limit::MALLOC_HEAP_SIZE {
            state.engine.limit_heap(value as u64);
        }
        Ok(())
    })
}

pub(crate) fn cuCtxGetLimit(value: Ptr<usize>, limit: CUlimit) -> Answer {
    let index = limit_index(limit)?;
    value.set(with_context(|state, context| {
        Ok(state.contexts.get(context)?.limits[index])
    })?)
}

pub(crate) fn cuCtxGetCacheConfig(config: Ptr<CUfunc_cache>) -> Answer {
    config.set(with_context(|state, context| {
        Ok(state.contexts.get(context)?.cache)
    })?)
}

pub(crate) fn cuCtxSetCacheConfig(config: CUfunc_cache) -> Answer {
    ignored("stored and returned; there is no cache");
    with_context(|state, context| {
        state.contexts.get_mut(context)?.cache = config;
        Ok(())
    })
}

pub(crate) fn cuCtxGetSharedMemConfig(config: Ptr<CUsharedconfig>) -> Answer {
    config.set(with_context(|state, context| {
        Ok(state.contexts.get(context)?.shared)
    })?)
}

pub(crate) fn cuCtxSetSharedMemConfig(config: CUsharedconfig) -> Answer {
    ignored("stored and returned; banks cost nothing");
    with_context(|state, context| {
        state.contexts.get_mut(context)?.shared = config;
        Ok(())
    })
}

pub(crate) fn cuCtxGetApiVersion(_ctx: Ptr<CUctx_st>, version: Ptr<c_uint>) -> Answer {
    with(|_| Ok(()))?;
    version.set(3020)
}

pub(crate) fn cuCtxGetStreamPriorityRange(least: Ptr<c_int>, greatest: Ptr<c_int>) -> Answer {
    with_context(|_, _| Ok(()))?;
    least.set_if(0);
    greatest.set_if(crate::stream::GREATEST_PRIORITY);
    Ok(())
}

pub(crate) fn cuCtxResetPersistingL2Cache() -> Answer {
    ignored("there is no cache");
    with_context(|_, _| Ok(()))
}

/// Access is stored and returned; all devices reach the same memory without it, too.
pub(crate) fn cuCtxEnablePeerAccess(peer: Ptr<CUctx_st>, flags: c_uint) -> Answer {
    with_context(|state, context| {
        let device = state.contexts.get(peer.address())?.device;
        if device == state.device_of(context) {
            return Err(CUresult::PEER_ACCESS_UNSUPPORTED);
        }
        if flags != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        match state
            .contexts
            .get_mut(context)?
            .peers
            .insert(peer.address())
        {
            true => Ok(()),
            false => Err(CUresult::PEER_ACCESS_ALREADY_ENABLED),
        }
    })
}

pub(crate) fn cuCtxDisablePeerAccess(peer: Ptr<CUctx_st>) -> Answer {
    with_context(|state, context| {
        let peers = &mut state.contexts.get_mut(context)?.peers;
        match peers.remove(&peer.address()) {
            true => Ok(()),
            false => Err(CUresult::PEER_ACCESS_NOT_ENABLED),
        }
    })
}
