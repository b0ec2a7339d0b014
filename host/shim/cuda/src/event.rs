//! Events: when a stream got to a point, which is when they were recorded.

use std::ffi::c_uint;
use std::time::Instant;

use driver::sys::creation_flag as flag;
use driver::sys::{CUevent, CUevent_st, CUresult, CUstream_st};

use crate::Answer;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::set;
use crate::work::Work;

/// `CU_EVENT_RECORD_EXTERNAL`: the record itself becomes a node of a graph.
const EXTERNAL: c_uint = 1;

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: u64,
    flags: u32,
    pub(crate) recorded: Option<Instant>,
    /// The capture it was last recorded in.
    pub(crate) capture: Option<u64>,
    /// The nodes that were last in its stream then.
    pub(crate) tail: Vec<u64>,
}

impl State {
    /// Fails for an event that only exists in a capture.
    fn real_event(&self, event: u64) -> Result<&Event, CUresult> {
        let event = self.events.get(event)?;
        match event
            .capture
            .is_some_and(|capture| self.captures.get(capture).is_ok())
        {
            true => Err(CUresult::CAPTURED_EVENT),
            false => Ok(event),
        }
    }
}

pub(crate) fn cuEventCreate(out: Ptr<CUevent>, flags: c_uint) -> Answer {
    let known = flag::EVENT_BLOCKING_SYNC | flag::EVENT_DISABLE_TIMING | flag::EVENT_INTERPROCESS;
    if flags & !known != 0 || out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    let event = with_context(|state, context| {
        Ok(state.events.insert(Event {
            context,
            flags,
            recorded: None,
            capture: None,
            tail: Vec::new(),
        }))
    })?;
    set(out, event)
}

pub(crate) fn cuEventRecord(event: Ptr<CUevent_st>, stream: Ptr<CUstream_st>) -> Answer {
    cuEventRecordWithFlags(event, stream, 0)
}

pub(crate) fn cuEventRecordWithFlags(
    event: Ptr<CUevent_st>,
    stream: Ptr<CUstream_st>,
    flags: c_uint,
) -> Answer {
    let handle = event.address();
    with_context(|state, context| {
        let capture = state.capture_of(stream.address())?;
        let tail = match capture {
            Some(_) => state.streams.get(stream.address())?.tail.clone(),
            None => Vec::new(),
        };
        let of = match state.streams.get(stream.address()) {
            Ok(stream) => stream.context,
            Err(_) => context,
        };
        let event = state.events.get_mut(handle)?;
        if event.context != of {
            return Err(CUresult::INVALID_HANDLE);
        }
        match capture {
            Some(capture) if flags & EXTERNAL != 0 => {
                state.captured(stream.address(), capture, Work::Record(handle))?;
            }
            Some(_) => (event.capture, event.tail) = (capture, tail),
            None => {
                event.capture = None;
                event.recorded = Some(Instant::now());
                state.mark(context, handle, stream.address())?;
            }
        }
        Ok(())
    })
}

/// An event that was never recorded counts as reached.
pub(crate) fn cuEventQuery(event: Ptr<CUevent_st>) -> Answer {
    with_context(|state, _| {
        state.real_event(event.address())?;
        match state.is_reached(event.address()) {
            true => Ok(()),
            false => Err(CUresult::NOT_READY),
        }
    })
}

pub(crate) fn cuEventSynchronize(event: Ptr<CUevent_st>) -> Answer {
    with_context(|state, _| {
        state.real_event(event.address())?;
        state.host_waits_for(event.address());
        Ok(())
    })
}

pub(crate) fn cuEventDestroy(event: Ptr<CUevent_st>) -> Answer {
    with(|state| {
        state.events.remove(event.address())?;
        state.event_gone(event.address());
        Ok(())
    })
}

pub(crate) fn cuEventElapsedTime(
    milliseconds: Ptr<f32>,
    start: Ptr<CUevent_st>,
    end: Ptr<CUevent_st>,
) -> Answer {
    let time = |state: &State, event: u64| {
        let event = state.real_event(event)?;
        let timed = event.flags & flag::EVENT_DISABLE_TIMING == 0;
        event
            .recorded
            .filter(|_| timed)
            .ok_or(CUresult::INVALID_HANDLE)
    };
    let (start, end) = with_context(|state, _| {
        let times = (time(state, start.address())?, time(state, end.address())?);
        // An answer says that both have been reached.
        for event in [start, end] {
            state.host_waits_for(event.address());
        }
        Ok(times)
    })?;
    let elapsed = end.saturating_duration_since(start).as_secs_f64()
        - start.saturating_duration_since(end).as_secs_f64();
    milliseconds.set((elapsed * 1e3) as f32)
}

pub(crate) fn cuEventElapsedTime_v1(
    milliseconds: Ptr<f32>,
    start: Ptr<CUevent_st>,
    end: Ptr<CUevent_st>,
) -> Answer {
    cuEventElapsedTime(milliseconds, start, end)
}
