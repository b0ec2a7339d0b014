//! What orders work: streams, events and the host, as the checker receives them.
//!
//! Work runs when it is submitted, so that the program gets the results of one of the orders that it
//! allows; the checker learns which others it allows too.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use driver::sys::CUresult;
use report::log::{self, Call};
use runtime::streams::{At, CallRange, Fork, Stream, StreamKind, Streams};

use crate::Answer;
use crate::memory::Written;
use crate::state::{State, with, with_context};
use crate::stream::PER_THREAD;
use crate::work::Work;

/// Threads that have called so far.
static THREADS: AtomicU64 = AtomicU64::new(0);

/// Numbers of per-thread streams have this bit, which no handle has.
const THREAD: u64 = 1 << 63;
/// Names of points at which a stream has written to memory have this bit, which no event has.
const MEMORY: u64 = 1 << 63;
/// So many writes of streams to a place are remembered.
const WRITTEN: usize = 64;

thread_local! {
    // Constant and without destructor: the program may call us while its thread ends.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    /// Stream 0 is the thread's own default stream.
    static OWN_DEFAULT: Cell<bool> = const { Cell::new(false) };
    /// Reports the end of a thread that has got a number.
    static ENDS: Ends = const { Ends };
}

/// A thread that ends.
struct Ends;

/// Bytes in memory that a stream waits for.
pub(crate) struct Awaited<'a> {
    pub(crate) address: u64,
    /// What they are when the stream comes to wait.
    pub(crate) now: &'a [u8],
}

impl Drop for Ends {
    fn drop(&mut self) {
        // Whatever else it calls while it ends is another thread's.
        let number = NUMBER.take();
        // SAFETY: the call has no conditions.
        let first = unsafe { libc::gettid() };
        // With the first thread the process ends: a report would come too late.
        if u32::try_from(first) == Ok(std::process::id()) {
            return;
        }
        // A child made by `fork` has no state.
        let _ = with(|state| {
            state.engine.thread_ended(number);
            Ok(())
        });
    }
}

/// Does something with stream 0 being the legacy default stream or, `per_thread`, the thread's own.
pub(crate) fn with_default_stream<T>(per_thread: bool, body: impl FnOnce() -> T) -> T {
    let before = OWN_DEFAULT.replace(per_thread);
    let done = body();
    OWN_DEFAULT.set(before);
    done
}

/// Threads that have called and that the checker does not know yet: it may be busy with the call of another one, whose end
/// they need not have waited for.
static NEW: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// The threads that have called since this was last asked, in that order.
pub(crate) fn new_threads() -> Vec<u64> {
    std::mem::take(&mut *NEW.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The calling thread's number, from 1.
pub(crate) fn thread() -> u64 {
    NUMBER.with(|number| {
        if number.get() == 0 {
            let mut new = NEW.lock().unwrap_or_else(PoisonError::into_inner);
            number.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
            new.push(number.get());
            drop(new);
            // Not while it ends.
            let _ = ENDS.try_with(|_| ());
        }
        number.get()
    })
}

impl State {
    /// A stream and what a person calls it.
    fn known(&self, context: u64, stream: u64) -> Result<(Stream, String), CUresult> {
        let stream = match stream {
            0 if OWN_DEFAULT.get() => PER_THREAD,
            stream => stream,
        };
        let (id, context, kind) = match stream {
            PER_THREAD => {
                let id = THREAD | thread() << 32 | (context & 0xffff_ffff);
                (id, context, StreamKind::Blocking)
            }
            0..PER_THREAD => (context, context, StreamKind::Legacy),
            _ => {
                let found = self.streams.get(stream)?;
                let kind = match found.is_blocking() {
                    true => StreamKind::Blocking,
                    false => StreamKind::NonBlocking,
                };
                (stream, found.context, kind)
            }
        };
        let name = match stream {
            PER_THREAD => "the thread's default stream".to_owned(),
            0..PER_THREAD => log::DEFAULT_STREAM.to_owned(),
            _ => {
                let number = self.streams.ordinal(stream);
                match driver::nvtx::name_of_stream(stream) {
                    Some(name) => format!("stream #{number} \"{name}\""),
                    None => format!("stream #{number}"),
                }
            }
        };
        Ok((Stream { id, context, kind }, name))
    }

    /// Does something with the checker's streams, if the process is checked.
    fn with_streams<T>(
        &mut self,
        context: u64,
        stream: u64,
        f: impl FnOnce(&mut Streams, &Stream, &str) -> T,
    ) -> Result<Option<T>, CUresult> {
        let (known, name) = self.known(context, stream)?;
        let streams = self.engine.streams();
        Ok(streams.map(|streams| f(streams, &known, &name)))
    }

    /// A stream has been made.
    pub(crate) fn stream_made(&mut self, context: u64, stream: u64) -> Answer {
        let answer = self.with_streams(context, stream, |streams, of, _| {
            streams.order().created(*of)
        });
        answer.map(drop)
    }

    /// A stream is gone.
    pub(crate) fn stream_gone(&mut self, stream: u64) {
        if let Some(streams) = self.engine.streams() {
            streams.order().destroyed(stream);
        }
    }

    /// An event is gone.
    pub(crate) fn event_gone(&mut self, event: u64) {
        if let Some(streams) = self.engine.streams() {
            streams.order().unmark(event);
        }
    }

    /// The place of work that is given to a stream now.
    pub(crate) fn position(
        &mut self,
        context: u64,
        stream: u64,
        work: &Work,
    ) -> Result<Option<At>, CUresult> {
        self.with_streams(context, stream, |streams, of, name| match work {
            Work::Launch(_, launch) => streams.launch(of, name, launch.programmatic),
            _ => streams.call(of, name),
        })
    }

    /// A point in a stream gets a name: an event, or an address that the stream writes.
    pub(crate) fn mark(&mut self, context: u64, mark: u64, stream: u64) -> Answer {
        let answer = self.with_streams(context, stream, |streams, of, _| {
            streams.order().mark(mark, of)
        });
        answer.map(drop)
    }

    /// A stream waits for an event.
    pub(crate) fn stream_waits(&mut self, context: u64, stream: u64, event: u64) -> Answer {
        let answer = self.with_streams(context, stream, |streams, of, _| {
            streams.order().wait(of, event)
        });
        answer.map(drop)
    }

    /// A stream writes bytes in the place of others. The point that it has come to gets a name.
    pub(crate) fn stream_writes(
        &mut self,
        context: u64,
        stream: u64,
        address: u64,
        [before, bytes]: [&[u8]; 2],
    ) -> Answer {
        let mark = MEMORY | self.marks;
        let Some(allocation) = self.allocation_mut(address) else {
            return Ok(());
        };
        let written = allocation.written.entry(address).or_default();
        let others = written.last().is_none_or(|last| *last.bytes != *before);
        let gone = match others {
            true => written.len(),
            false => usize::from(written.len() == WRITTEN),
        };
        let gone: Vec<Written> = written.drain(..gone).collect();
        let bytes = bytes.into();
        written.push(Written { bytes, mark });
        self.marks += 1;
        for written in gone {
            self.event_gone(written.mark);
        }
        self.mark(context, mark, stream)
    }

    /// Copies and fills overwrite what streams have written to these ranges.
    pub(crate) fn overwritten(&mut self, ranges: &[CallRange]) {
        let written = ranges.iter().filter(|of| of.call != Call::CopyFrom);
        let mut gone = Vec::new();
        for of in written {
            let Some(allocation) = self.allocation_mut(of.base) else {
                continue;
            };
            let (start, end) = (of.base, of.base.saturating_add(of.bytes));
            allocation.written.retain(|&address, all| {
                let overlaps =
                    |of: &Written| address < end && address + of.bytes.len() as u64 > start;
                let kept = !all.iter().any(overlaps);
                if !kept {
                    gone.extend(all.iter().map(|of| of.mark));
                }
                kept
            });
        }
        gone.into_iter().for_each(|mark| self.event_gone(mark));
    }

    /// A stream waits for bytes in memory that are as it says, where some are now that are. It waits for the first write of
    /// a stream that has brought such bytes, of those that the wait may meet; or, if anything else may have written there
    /// since, for all streams.
    pub(crate) fn stream_waits_for_memory(
        &mut self,
        context: u64,
        stream: u64,
        awaited: Awaited<'_>,
        is_met: impl Fn(&[u8]) -> bool,
    ) -> Answer {
        let Awaited { address, now } = awaited;
        let allocation = self.allocation(address).map(|(_, allocation)| allocation);
        let written = allocation.and_then(|of| of.written.get(&address));
        let written = written.filter(|all| all.last().is_some_and(|last| *last.bytes == *now));
        let written = written.cloned().unwrap_or_default();
        let answer = self.with_streams(context, stream, |streams, of, _| {
            let order = streams.order();
            // What came before the last write that the stream has behind it has been overwritten.
            let last = written.iter().rposition(|one| order.is_past(of, one.mark));
            let mut open = written[last.unwrap_or(0)..].iter();
            match open.find(|one| one.bytes.len() == now.len() && is_met(&one.bytes)) {
                Some(one) => order.wait(of, one.mark),
                None => order.wait_for_all(of),
            }
        });
        answer.map(drop)
    }

    /// The host asks whether a stream has done its work. If nothing is checked it has.
    pub(crate) fn is_done(&mut self, context: u64, stream: u64) -> Result<bool, CUresult> {
        let answer = self.with_streams(context, stream, |streams, of, _| streams.is_done(of))?;
        Ok(answer.unwrap_or(true))
    }

    /// The host asks whether an event has been reached. If nothing is checked it has.
    pub(crate) fn is_reached(&mut self, event: u64) -> bool {
        let streams = self.engine.streams();
        streams.is_none_or(|streams| streams.is_reached(event))
    }

    /// The host waits for a stream.
    pub(crate) fn host_waits(&mut self, context: u64, stream: u64) -> Answer {
        let answer = self.with_streams(context, stream, |streams, of, _| streams.host_waits(of));
        answer.map(drop)
    }

    /// The host waits for an event.
    pub(crate) fn host_waits_for(&mut self, event: u64) {
        if let Some(streams) = self.engine.streams() {
            streams.host_waits_for(event);
        }
    }

    /// The host waits for all work.
    pub(crate) fn host_waits_for_all(&mut self) {
        if let Some(streams) = self.engine.streams() {
            streams.host_waits_for_all();
        }
    }
}

/// The host waits for a stream of the current context.
pub(crate) fn wait(stream: u64) -> Answer {
    with_context(|state, context| state.host_waits(context, stream))
}

/// A graph that is being launched into a stream.
pub(crate) struct Launching {
    fork: Option<Fork>,
    name: String,
    /// The context of the stream.
    context: u64,
    may_overlap: bool,
    nodes: usize,
}

impl Launching {
    /// Begins. `apart`: some of its nodes may run beside others.
    pub(crate) fn begin(stream: u64, apart: bool) -> Result<Self, CUresult> {
        with_context(|state, context| {
            let forked = state.with_streams(context, stream, |streams, of, name| {
                let may_overlap = apart || streams.may_overlap(of);
                (streams.order().fork(of), name.to_owned(), may_overlap)
            })?;
            let (fork, name, may_overlap) = match forked {
                Some((fork, name, may_overlap)) => (Some(fork), name, may_overlap),
                None => (None, String::new(), false),
            };
            Ok(Self {
                fork,
                name,
                context,
                may_overlap,
                nodes: 0,
            })
        })
    }

    /// The next node, behind some of those before it: its number, and its place.
    pub(crate) fn node(&mut self, after: &[usize]) -> Result<(usize, Option<At>), CUresult> {
        let number = self.nodes;
        self.nodes += 1;
        let Some(fork) = &mut self.fork else {
            return Ok((number, None));
        };
        let turn = with(|state| Ok(state.engine.streams().map(|s| s.order().node(fork, after))))?;
        let at = turn.map(|turn| At::of_node(turn, &self.name, self.context, self.may_overlap));
        Ok((number, at))
    }

    /// The last node records an event.
    pub(crate) fn records(&self, event: u64) -> Answer {
        self.forward(|streams, fork| streams.order().mark_node(event, fork))
    }

    /// The last node waits for an event from outside.
    pub(crate) fn waits(&mut self, event: u64) -> Answer {
        let fork = &mut self.fork;
        with(|state| {
            if let (Some(streams), Some(fork)) = (state.engine.streams(), fork) {
                streams.order().node_waits(fork, event);
            }
            Ok(())
        })
    }

    /// The last node calls the host, which may then notify others of what has been done.
    pub(crate) fn calls(&self) -> Answer {
        self.forward(|streams, fork| streams.host_waits_for_node(fork))
    }

    /// All nodes have been given.
    pub(crate) fn end(self) -> Answer {
        let Some(fork) = self.fork else {
            return Ok(());
        };
        with(|state| {
            if let Some(streams) = state.engine.streams() {
                streams.order().join(fork);
            }
            Ok(())
        })
    }

    fn forward(&self, f: impl FnOnce(&mut Streams, &Fork)) -> Answer {
        with(|state| {
            if let (Some(streams), Some(fork)) = (state.engine.streams(), &self.fork) {
                f(streams, fork);
            }
            Ok(())
        })
    }
}
