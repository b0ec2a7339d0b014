//! Streams. Work runs when it is submitted, so a stream is a name with flags, and a place where
//! work can be captured into a graph.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

use driver::sys::{
    CUcontext, CUctx_st, CUdevice, CUevent_st, CUhostFn, CUresult, CUstream, CUstream_st,
    CUstreamAttrID, CUstreamAttrValue, CUstreamCallback,
};

use crate::Answer;
use crate::missing::ignored;
use crate::order::Awaited;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::set;
use crate::work::{Call, Work, submit};

/// The most urgent priority; 0 is the least.
pub(crate) const GREATEST_PRIORITY: c_int = -5;
/// `CU_EVENT_WAIT_EXTERNAL`: the wait itself becomes a node of a graph.
const EXTERNAL: c_uint = 1;
/// `CU_STREAM_PER_THREAD`
pub(crate) const PER_THREAD: u64 = 2;
/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: c_uint = 1;

/// A stream that a program made.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) context: u64,
    flags: u32,
    priority: c_int,
    pub(crate) capture: Option<u64>,
    /// The nodes that the next captured work depends on.
    pub(crate) tail: Vec<u64>,
    /// Attributes that the program has set.
    attributes: BTreeMap<CUstreamAttrID, CUstreamAttrValue>,
}

impl Stream {
    /// Whether it goes with the legacy default stream.
    pub(crate) fn is_blocking(&self) -> bool {
        self.flags & NON_BLOCKING == 0
    }
}

/// Work that is being captured instead of done: it becomes nodes of a graph at once.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) context: u64,
    /// The stream that has to end it.
    pub(crate) origin: u64,
    pub(crate) graph: u64,
    /// The graph was made for this capture, and goes with it if it fails.
    pub(crate) own: bool,
    pub(crate) identity: u64,
    /// The dependencies that the program has been told of; they stay where they are.
    pub(crate) shown: Vec<u64>,
    /// The thread that has begun it, and in which mode.
    pub(crate) thread: u64,
    pub(crate) mode: c_int,
    /// Something has happened that it forbids.
    pub(crate) invalid: bool,
    /// The nodes that were last in streams that have been destroyed since: the capture has to lead from them to its
    /// end, as if the streams were still there.
    pub(crate) left: Vec<u64>,
}

/// The default streams: null, legacy and per-thread.
fn is_default(stream: u64) -> bool {
    stream <= PER_THREAD
}

impl State {
    /// Whether there is such a stream.
    pub(crate) fn check_stream(&self, stream: u64) -> Answer {
        match is_default(stream) {
            true => Ok(()),
            false => self.streams.get(stream).map(drop),
        }
    }

    /// The capture that work submitted to a stream goes to.
    pub(crate) fn capture_of(&self, stream: u64) -> Result<Option<u64>, CUresult> {
        match is_default(stream) {
            true => Ok(None),
            false => Ok(self.streams.get(stream)?.capture),
        }
    }

    /// Refuses a call that a capture cannot hold.
    pub(crate) fn not_capturing(&self, stream: u64) -> Answer {
        match self.capture_of(stream)? {
            Some(_) => Err(CUresult::STREAM_CAPTURE_UNSUPPORTED),
            None => Ok(()),
        }
    }
}

pub(crate) fn cuStreamCreate(out: Ptr<CUstream>, flags: c_uint) -> Answer {
    cuStreamCreateWithPriority(out, flags, 0)
}

pub(crate) fn cuStreamCreateWithPriority(
    out: Ptr<CUstream>,
    flags: c_uint,
    priority: c_int,
) -> Answer {
    if flags & !NON_BLOCKING != 0 || out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    let priority = priority.clamp(GREATEST_PRIORITY, 0);
    let stream = with_context(|state, context| {
        let stream = state.streams.insert(Stream {
            context,
            flags,
            priority,
            capture: None,
            tail: Vec::new(),
            attributes: BTreeMap::new(),
        });
        state.stream_made(context, stream)?;
        Ok(stream)
    })?;
    set(out, stream)
}

pub(crate) fn cuStreamGetPriority(stream: Ptr<CUstream_st>, priority: Ptr<c_int>) -> Answer {
    priority.set(with_context(|state, _| {
        match is_default(stream.address()) {
            true => Ok(0),
            false => Ok(state.streams.get(stream.address())?.priority),
        }
    })?)
}

pub(crate) fn cuStreamGetFlags(stream: Ptr<CUstream_st>, flags: Ptr<c_uint>) -> Answer {
    flags.set(with_context(|state, _| {
        match is_default(stream.address()) {
            true => Ok(0),
            false => Ok(state.streams.get(stream.address())?.flags),
        }
    })?)
}

pub(crate) fn cuStreamGetDevice(stream: Ptr<CUstream_st>, device: Ptr<CUdevice>) -> Answer {
    device.set(with_context(|state, current| {
        state.check_stream(stream.address())?;
        let context = match is_default(stream.address()) {
            true => current,
            false => state.streams.get(stream.address())?.context,
        };
        Ok(state.device_of(context))
    })?)
}

pub(crate) fn cuStreamGetId(stream: Ptr<CUstream_st>, id: Ptr<u64>) -> Answer {
    with_context(|state, _| state.check_stream(stream.address()))?;
    // Null and the legacy stream by name are one stream.
    id.set(stream.address().max(1))
}

pub(crate) fn cuStreamGetCtx(stream: Ptr<CUstream_st>, out: Ptr<CUcontext>) -> Answer {
    let context = match is_default(stream.address()) {
        true => with_context(|_, current| Ok(current))?,
        false => with(|state| Ok(state.streams.get(stream.address())?.context))?,
    };
    set::<CUctx_st>(out, context)
}

pub(crate) fn cuStreamWaitEvent(
    stream: Ptr<CUstream_st>,
    event: Ptr<CUevent_st>,
    flags: c_uint,
) -> Answer {
    let stream = stream.address();
    with_context(|state, context| {
        let waits = state.capture_of(stream)?;
        let found = state.events.get(event.address())?;
        let (recorded, tail) = (found.capture, found.tail.clone());
        let recorded = recorded.filter(|&capture| state.captures.get(capture).is_ok());
        if let (Some(capture), true) = (waits, flags & EXTERNAL != 0) {
            return state.captured(stream, capture, Work::Wait(event.address()));
        }
        match (waits, recorded) {
            (None, None) => state.stream_waits(context, stream, event.address()),
            (None, Some(_)) if is_default(stream) => Err(CUresult::STREAM_CAPTURE_IMPLICIT),
            // A stream joins a capture by waiting for one of its events.
            (None, Some(capture)) => {
                let stream = state.streams.get_mut(stream)?;
                (stream.capture, stream.tail) = (Some(capture), tail);
                Ok(())
            }
            (Some(one), Some(other)) if one == other => {
                let stream = state.streams.get_mut(stream)?;
                stream.tail.retain(|node| !tail.contains(node));
                stream.tail.extend(tail);
                Ok(())
            }
            (Some(_), Some(_)) => Err(CUresult::STREAM_CAPTURE_MERGE),
            (Some(_), None) => Err(CUresult::STREAM_CAPTURE_ISOLATION),
        }
    })
}

pub(crate) fn cuStreamAddCallback(
    stream: Ptr<CUstream_st>,
    callback: CUstreamCallback,
    user_data: Ptr<c_void>,
    flags: c_uint,
) -> Answer {
    let callback = callback
        .filter(|_| flags == 0)
        .ok_or(CUresult::INVALID_VALUE)?;
    with_context(|state, _| state.not_capturing(stream.address()))?;
    let call = Call::Stream(callback, stream.address(), user_data.address());
    submit(stream.address(), Work::Host(call))
}

pub(crate) fn cuLaunchHostFunc(
    stream: Ptr<CUstream_st>,
    callback: CUhostFn,
    user_data: Ptr<c_void>,
) -> Answer {
    let callback = callback.ok_or(CUresult::INVALID_VALUE)?;
    submit(
        stream.address(),
        Work::Host(Call::Plain(callback, user_data.address())),
    )
}

pub(crate) fn cuStreamQuery(stream: Ptr<CUstream_st>) -> Answer {
    with_context(|state, context| {
        state.not_capturing(stream.address())?;
        match state.is_done(context, stream.address())? {
            true => Ok(()),
            false => Err(CUresult::NOT_READY),
        }
    })
}

pub(crate) fn cuStreamSynchronize(stream: Ptr<CUstream_st>) -> Answer {
    with_context(|state, context| {
        state.not_capturing(stream.address())?;
        state.host_waits(context, stream.address())
    })
}

pub(crate) fn cuStreamDestroy(stream: Ptr<CUstream_st>) -> Answer {
    with(|state| {
        let gone = state.streams.remove(stream.address())?;
        state.stream_gone(stream.address());
        let Some(handle) = gone.capture else {
            return Ok(());
        };
        let capture = state.captures.get_mut(handle)?;
        // Nobody can end it any more.
        if capture.origin == stream.address() {
            return state.drop_capture(handle);
        }
        capture.left.extend(gone.tail);
        Ok(())
    })
}

pub(crate) fn cuStreamGetAttribute(
    stream: Ptr<CUstream_st>,
    attribute: CUstreamAttrID,
    value: Ptr<CUstreamAttrValue>,
) -> Answer {
    value.set(with_context(|state, _| {
        state.check_stream(stream.address())?;
        let found = state.streams.get(stream.address()).ok();
        let found = found.and_then(|found| found.attributes.get(&attribute));
        Ok(found.copied().unwrap_or_default())
    })?)
}

/// Attributes of streams are about speed.
pub(crate) fn cuStreamSetAttribute(
    stream: Ptr<CUstream_st>,
    attribute: CUstreamAttrID,
    value: Ptr<CUstreamAttrValue>,
) -> Answer {
    ignored("stored and returned, but for default streams; attributes of streams are about speed");
    let value = value.get()?;
    with_context(|state, _| {
        state.check_stream(stream.address())?;
        if let Ok(found) = state.streams.get_mut(stream.address()) {
            found.attributes.insert(attribute, value);
        }
        Ok(())
    })
}

pub(crate) fn cuStreamCopyAttributes(dst: Ptr<CUstream_st>, src: Ptr<CUstream_st>) -> Answer {
    ignored("attributes of streams are about speed");
    with_context(|state, _| {
        state.check_stream(dst.address())?;
        state.check_stream(src.address())?;
        let from = state.streams.get(src.address()).ok();
        let attributes = from.map(|from| from.attributes.clone());
        if let (Ok(to), Some(attributes)) = (state.streams.get_mut(dst.address()), attributes) {
            to.attributes = attributes;
        }
        Ok(())
    })
}

/// Waits for nothing: the value is there already, or nobody is left to write it.
fn wait_value(stream: u64, address: u64, bytes: usize, value: u64, flags: c_uint) -> Answer {
    let is_met = |memory: &[u8]| {
        let mut whole = [0; 8];
        whole[..memory.len()].copy_from_slice(memory);
        let now = u64::from_le_bytes(whole);
        let sign = 64 - 8 * memory.len() as u32;
        match flags & 3 {
            // A cyclic comparison: not behind by more than half of the range.
            0 => ((now.wrapping_sub(value) << sign) as i64) >= 0,
            1 => now == value,
            2 => now & value != 0,
            _ => !(now | value) << sign != 0,
        }
    };
    with_context(|state, context| {
        state.not_capturing(stream)?;
        let now = word(state, address, bytes)?;
        let now = &now[..bytes];
        state.stream_waits_for_memory(context, stream, Awaited { address, now }, is_met)?;
        match is_met(now) {
            true => Ok(()),
            false => Err(CUresult::NOT_SUPPORTED),
        }
    })
}

fn write_value(stream: u64, address: u64, bytes: &[u8]) -> Answer {
    with_context(|state, context| {
        state.not_capturing(stream)?;
        let before = word(state, address, bytes.len())?;
        let written = state.engine.memory_mut().write(address, bytes);
        written.map_err(|_| CUresult::INVALID_VALUE)?;
        if let (false, Some(streams)) = (
            state.engine.memory().is_arena(address),
            state.engine.streams(),
        ) {
            // The host may wait for these bytes.
            streams.in_flight().host_may_know();
        }
        state.stream_writes(context, stream, address, [&before[..bytes.len()], bytes])
    })
}

/// The bytes at an address, 8 at most, with zeros behind them.
fn word(state: &State, address: u64, bytes: usize) -> Result<[u8; 8], CUresult> {
    let mut memory = [0; 8];
    let read = state.engine.memory().read(address, &mut memory[..bytes]);
    read.map_err(|_| CUresult::INVALID_VALUE)?;
    Ok(memory)
}

pub(crate) fn cuStreamWaitValue32(
    stream: Ptr<CUstream_st>,
    address: u64,
    value: u32,
    flags: c_uint,
) -> Answer {
    wait_value(stream.address(), address, 4, u64::from(value), flags)
}

pub(crate) fn cuStreamWaitValue64(
    stream: Ptr<CUstream_st>,
    address: u64,
    value: u64,
    flags: c_uint,
) -> Answer {
    wait_value(stream.address(), address, 8, value, flags)
}

pub(crate) fn cuStreamWriteValue32(
    stream: Ptr<CUstream_st>,
    address: u64,
    value: u32,
    _flags: c_uint,
) -> Answer {
    write_value(stream.address(), address, &value.to_le_bytes())
}

pub(crate) fn cuStreamWriteValue64(
    stream: Ptr<CUstream_st>,
    address: u64,
    value: u64,
    _flags: c_uint,
) -> Answer {
    write_value(stream.address(), address, &value.to_le_bytes())
}
