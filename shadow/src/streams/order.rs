//! The order of a program's streams, by vector clocks.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How a stream goes with the legacy default stream of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// It is that stream: its work comes after all that was given to blocking streams before, and
    /// before all that is given to them later.
    Legacy,
    /// As above, seen from the other side.
    Blocking,
    /// It does not care (`cudaStreamNonBlocking`).
    NonBlocking,
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Which one: unique among all streams that there ever are.
    pub id: u64,
    /// The context whose default stream it goes with.
    pub context: u64,
    /// How it does.
    pub kind: StreamKind,
}

impl Stream {
    /// Whether their work is ordered as it is given: one is the legacy default stream of the other.
    fn goes_with(&self, other: &Stream) -> bool {
        let kinds = matches!(
            (self.kind, other.kind),
            (StreamKind::Legacy, StreamKind::Blocking) | (StreamKind::Blocking, StreamKind::Legacy)
        );
        kinds && self.context == other.context
    }
}

/// Pieces of work of a lane that have come before a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    /// If all threads of the host know what one of them has waited for.
    taken: u64,
    /// If each knows what it has waited for itself, the oldest one what others that have ended knew, and each what any thread
    /// knew when it began.
    sure: u64,
}

/// What has come before a point, by lane. A lane is a stream, or the node of a graph in one of its launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Clock(BTreeMap<u64, Times>);

impl Clock {
    fn join(&mut self, other: &Clock) {
        for (&lane, times) in &other.0 {
            let mine = self.0.entry(lane).or_default();
            mine.taken = times.taken.max(mine.taken);
            mine.sure = times.sure.max(mine.sure);
        }
    }

    fn joined(mut self, other: &Clock) -> Clock {
        self.join(other);
        self
    }

    /// What a thread of the host knows when it has waited for this.
    fn join_sure(&mut self, sure: &BTreeMap<u64, u64>) {
        for (&lane, &time) in sure {
            let mine = self.0.entry(lane).or_default();
            mine.sure = time.max(mine.sure);
        }
    }

    fn knows(&self, turn: &Turn) -> bool {
        let times = self.0.get(&turn.lane);
        times.is_some_and(|times| times.taken >= turn.time)
    }

    fn surely_knows(&self, turn: &Turn) -> bool {
        let times = self.0.get(&turn.lane);
        times.is_some_and(|times| times.sure >= turn.time)
    }
}

/// The place of a piece of work in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    lane: u64,
    time: u64,
    after: Clock,
}

impl Turn {
    /// Whether this piece starts when the other has ended. Of two pieces of which neither follows the
    /// other, either may run first, or both at once.
    pub fn follows(&self, other: &Turn) -> bool {
        self.after.knows(other)
    }

    /// Whether that is so even if a thread of the host knows only what it has waited for itself.
    pub fn surely_follows(&self, other: &Turn) -> bool {
        self.after.surely_knows(other)
    }

    /// Whether both are the place of one piece of work.
    pub fn is(&self, other: &Turn) -> bool {
        (self.lane, self.time) == (other.lane, other.time)
    }

    /// The lane that it is in.
    pub fn lane(&self) -> u64 {
        self.lane
    }

    /// What has come before when it has ended.
    fn end(&self) -> Clock {
        let mut end = self.after.clone();
        let (taken, sure) = (self.time, self.time);
        end.0.insert(self.lane, Times { taken, sure });
        end
    }
}

/// A graph being launched.
#[derive(Debug)]
pub struct Fork {
    stream: Stream,
    start: Clock,
    /// What has come before when a node has ended.
    ends: Vec<Clock>,
    /// The last node of each of its lanes, by lane, and the time of it there.
    last: BTreeMap<u64, (usize, u64)>,
    /// The lane of each node.
    lanes: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Lane {
    stream: Stream,
    lane: u64,
    /// Pieces of work so far.
    time: u64,
    clock: Clock,
    /// What has come before whatever the last launch has let begin early, if a launch is the last thing that it was
    /// given.
    launched_after: Option<Clock>,
}

impl Lane {
    /// It has got to a point, by something that is no work.
    fn passes(&mut self, point: &Clock) {
        self.clock.join(point);
        self.launched_after = None;
    }
}

/// What the host asks about without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Polled {
    Stream(u64),
    Mark(u64),
}

/// What the host has found unfinished.
#[derive(Clone, Debug, Default)]
struct Busy {
    /// Pieces of work, by lane.
    times: BTreeMap<u64, u64>,
    /// How often in a row.
    asked: u32,
}

/// So many questions in a row find work unfinished at most: a program may give more until the answer is another one.
const QUESTIONS: u32 = 16;

/// What orders the pieces of work of a process: stream order, events, the host and graphs.
///
/// The host is taken for one thread: what one of its threads has waited for, all have. Whether that is needed for an order,
/// [`Turn::surely_follows`] says. There a thread has waited for what it has waited for itself; for what younger
/// threads that have ended had waited for, if it is the oldest one, which is taken to join them; and for all that others
/// had waited for before its first call.
#[derive(Clone, Debug, Default)]
pub struct StreamOrder {
    streams: BTreeMap<u64, Lane>,
    /// Points in streams, by name.
    marks: BTreeMap<u64, Clock>,
    /// What the host has waited for; nothing of it is sure.
    host: Clock,
    /// What each of its threads has for sure, and the one that calls now.
    threads: BTreeMap<u64, BTreeMap<u64, u64>>,
    thread: u64,
    /// What the host has found unfinished when it last asked.
    busy: BTreeMap<Polled, Busy>,
    /// Work of streams that are gone.
    left: Clock,
    lanes: u64,
}

impl StreamOrder {
    /// The calls that follow are those of a thread of the host, which has a number.
    pub fn by(&mut self, thread: u64) {
        self.thread = thread;
        if !self.threads.contains_key(&thread) {
            let taken = self.host.0.iter().map(|(&lane, times)| (lane, times.taken));
            self.threads.insert(thread, taken.collect());
        }
    }

    /// A thread of the host has ended. The oldest thread, which has the smallest number, is taken to have created and
    /// joined it. Other threads that are older may run at the same time and know nothing of it.
    pub fn ended(&mut self, thread: u64) {
        let gone = self.threads.remove(&thread).unwrap_or_default();
        if let Some((_, oldest)) = self.threads.range_mut(..thread).next() {
            for (&lane, &time) in &gone {
                let sure = oldest.entry(lane).or_default();
                *sure = time.max(*sure);
            }
        }
    }

    /// A stream is there: it may be waited for by the legacy default stream.
    pub fn created(&mut self, stream: Stream) {
        self.lane(&stream);
    }

    /// A stream is gone; its work goes on.
    pub fn destroyed(&mut self, stream: u64) {
        self.busy.remove(&Polled::Stream(stream));
        if let Some(gone) = self.streams.remove(&stream) {
            self.left.join(&gone.clock);
        }
    }

    /// Whether work that is given to a stream now may run at the same time as work of another stream. The other stream
    /// may exist already or be created later. For the legacy default stream only streams that exist are looked at.
    pub fn may_overlap(&self, stream: &Stream) -> bool {
        let mut others = self.streams.values().map(|lane| &lane.stream);
        stream.kind != StreamKind::Legacy
            || others.any(|other| other.id != stream.id && !stream.goes_with(other))
    }

    /// Work that is given to a stream now.
    pub fn enter(&mut self, stream: &Stream) -> Turn {
        let after = self.point(stream);
        let lane = self.lane(stream);
        lane.launched_after = None;
        lane.time += 1;
        let turn = Turn {
            lane: lane.lane,
            time: lane.time,
            after,
        };
        lane.clock = turn.end();
        turn
    }

    /// A launch that is given to a stream now, and what that has to follow before it waits for the launch
    /// ahead of it, if it may begin before that has ended: `programmatic` (PTX ISA, `griddepcontrol`).
    pub fn launch(&mut self, stream: &Stream, programmatic: bool) -> (Turn, Option<Turn>) {
        let lane = self.lane(stream);
        let before = lane.launched_after.clone().filter(|_| programmatic);
        let early = before.map(|before| self.before_by_others(stream).joined(&before));
        let turn = self.enter(stream);
        let lane = self.lane(stream);
        lane.launched_after = Some(turn.after.clone());
        let early = early.map(|after| Turn {
            after,
            ..turn.clone()
        });
        (turn, early)
    }

    /// A launch that may begin early, and has been given to its stream last, lets the launch behind it begin before
    /// it waits itself. `early` is what it has followed until then: that one follows no more.
    pub fn passes_on(&mut self, early: &Turn) {
        let mut lanes = self.streams.values_mut();
        let last = lanes.find(|lane| (lane.lane, lane.time) == (early.lane, early.time));
        if let Some(after) = last.and_then(|lane| lane.launched_after.as_mut()) {
            *after = early.after.clone();
        }
    }

    /// Names the point that a stream has come to: an event is recorded.
    pub fn mark(&mut self, mark: u64, stream: &Stream) {
        let clock = self.point(stream);
        self.lane(stream).passes(&clock);
        self.marks.insert(mark, clock);
    }

    /// A point has no name any more.
    pub fn unmark(&mut self, mark: u64) {
        self.busy.remove(&Polled::Mark(mark));
        self.marks.remove(&mark);
    }

    /// A stream waits for a point; for one that has never been marked it does not wait.
    pub fn wait(&mut self, stream: &Stream, mark: u64) {
        if let Some(clock) = self.marks.get(&mark).cloned() {
            let clock = self.point(stream).joined(&clock);
            self.lane(stream).passes(&clock);
        }
    }

    /// Whether a stream has a point behind it: all that comes before the point comes before what the stream is given now.
    pub fn is_past(&mut self, stream: &Stream, mark: u64) -> bool {
        let here = self.point(stream);
        let clock = self.marks.get(&mark);
        clock.is_some_and(|clock| {
            let mut times = clock.0.iter();
            times.all(|(lane, times)| here.0.get(lane).map(|of| of.taken) >= Some(times.taken))
        })
    }

    /// A stream waits for something that any stream may have done.
    pub fn wait_for_all(&mut self, stream: &Stream) {
        let clock = self.all();
        self.lane(stream).passes(&clock);
    }

    /// The host waits for a stream: for what has been given to it, and where that is the legacy default
    /// stream, to the blocking ones too.
    pub fn host_waits(&mut self, stream: &Stream) {
        let clock = self.given(stream);
        self.waited(&clock);
    }

    /// The host asks whether a stream has done all that has been given to it. It has if the host has waited for that.
    /// Otherwise the stream is busy when it is asked first, and has done the same work when it is asked again: then the
    /// host has waited. If it gets more work each time, it has done all of it at the 17th question.
    pub fn is_done(&mut self, stream: &Stream) -> bool {
        let clock = self.given(stream);
        self.asks(Polled::Stream(stream.id), &clock)
    }

    /// The host asks whether a point has been reached, in the same way. One that has never been marked has.
    pub fn is_reached(&mut self, mark: u64) -> bool {
        let clock = self.marks.get(&mark).cloned();
        clock.is_none_or(|clock| self.asks(Polled::Mark(mark), &clock))
    }

    /// The host waits for a point.
    pub fn host_waits_for(&mut self, mark: u64) {
        if let Some(clock) = self.marks.get(&mark).cloned() {
            self.waited(&clock);
        }
    }

    /// The host waits for everything.
    pub fn host_waits_for_all(&mut self) {
        let clock = self.all();
        self.waited(&clock);
    }

    /// The place of what the host does at once, by itself: behind what it has waited for.
    pub fn host_turn(&self) -> Turn {
        Turn {
            // No lane of work.
            lane: 0,
            time: 0,
            after: self.here(),
        }
    }

    /// A graph is launched into a stream.
    pub fn fork(&mut self, stream: &Stream) -> Fork {
        Fork {
            stream: *stream,
            start: self.point(stream),
            ends: Vec::new(),
            last: BTreeMap::new(),
            lanes: Vec::new(),
        }
    }

    /// The next node of a graph, which waits for some of those before it.
    pub fn node(&mut self, fork: &mut Fork, dependencies: &[usize]) -> Turn {
        let ends = dependencies.iter().filter_map(|&node| fork.ends.get(node));
        let after = ends.fold(fork.start.clone(), Clock::joined);
        // It goes on in the lane of a node that it waits for, where no other one does: a long chain is one lane.
        let lane = |node: &usize| {
            let lane = *fork.lanes.get(*node)?;
            let (last, time) = fork.last.get(&lane)?;
            (last == node).then_some((lane, time + 1))
        };
        let (lane, time) = dependencies.iter().find_map(lane).unwrap_or_else(|| {
            self.lanes += 1;
            (self.lanes, 1)
        });
        let turn = Turn { lane, time, after };
        fork.last.insert(lane, (fork.ends.len(), time));
        fork.lanes.push(lane);
        fork.ends.push(turn.end());
        turn
    }

    /// Names the point that the last node of a graph has come to: a node records an event.
    pub fn mark_node(&mut self, mark: u64, fork: &Fork) {
        if let Some(end) = fork.ends.last() {
            self.marks.insert(mark, end.clone());
        }
    }

    /// The host waits for the last node of a graph.
    pub fn host_waits_for_node(&mut self, fork: &Fork) {
        if let Some(end) = fork.ends.last() {
            self.waited(end);
        }
    }

    /// The last node of a graph waits for a point that was named before.
    pub fn node_waits(&self, fork: &mut Fork, mark: u64) {
        if let (Some(end), Some(clock)) = (fork.ends.last_mut(), self.marks.get(&mark)) {
            end.join(clock);
        }
    }

    /// All nodes of a graph have been given.
    pub fn join(&mut self, fork: Fork) {
        let end = fork.ends.iter().fold(fork.start, Clock::joined);
        self.lane(&fork.stream).passes(&end);
    }

    /// Whether the host has waited for a piece of work, so that all that is given from now on follows it.
    pub fn host_knows(&self, turn: &Turn) -> bool {
        self.host.knows(turn)
    }

    /// Whether each of its threads has, and all that are to come.
    pub fn threads_know(&self, turn: &Turn) -> bool {
        let knows =
            |sure: &BTreeMap<u64, u64>| sure.get(&turn.lane).is_some_and(|&time| time >= turn.time);
        self.host_knows(turn) && self.threads.values().all(knows)
    }

    /// Whether all that is given to the streams that there are follows a piece of work.
    pub fn streams_know(&self, turn: &Turn) -> bool {
        let mut lanes = self.streams.values();
        self.host.knows(turn) || lanes.all(|lane| lane.clock.knows(turn))
    }

    /// Forgets about lanes in which there is nothing that is still asked for.
    pub fn keep(&mut self, lanes: &BTreeSet<u64>) {
        let streams = self.streams.values_mut();
        let streams = streams.flat_map(|lane| {
            [&mut lane.clock]
                .into_iter()
                .chain(&mut lane.launched_after)
        });
        let all = streams.chain(self.marks.values_mut());
        for clock in all.chain([&mut self.host, &mut self.left]) {
            clock.0.retain(|lane, _| lanes.contains(lane));
        }
        let busy = self.busy.values_mut().map(|busy| &mut busy.times);
        for times in self.threads.values_mut().chain(busy) {
            times.retain(|lane, _| lanes.contains(lane));
        }
    }

    /// What has been given to a stream.
    fn given(&mut self, stream: &Stream) -> Clock {
        match stream.kind {
            StreamKind::Legacy => self.point(stream),
            StreamKind::Blocking | StreamKind::NonBlocking => self.lane(stream).clock.clone(),
        }
    }

    fn asks(&mut self, asked: Polled, clock: &Clock) -> bool {
        let busy = self.busy.remove(&asked).unwrap_or_default();
        let mut times = clock.0.iter();
        let is_done = times.all(|(lane, times)| {
            let host = self.host.0.get(lane).map(|host| host.taken);
            host.max(busy.times.get(lane).copied()) >= Some(times.taken)
        });
        let is_done = is_done || busy.asked == QUESTIONS;
        match is_done {
            true => self.waited(clock),
            false => {
                let times = clock.0.iter().map(|(&lane, times)| (lane, times.taken));
                let busy = Busy {
                    times: times.collect(),
                    asked: busy.asked + 1,
                };
                self.busy.insert(asked, busy);
            }
        }
        is_done
    }

    /// What comes before work that is given to a stream now.
    fn point(&mut self, stream: &Stream) -> Clock {
        let own = self.lane(stream).clock.clone();
        own.joined(&self.before_by_others(stream))
    }

    /// What the host and other streams put before it.
    fn before_by_others(&self, stream: &Stream) -> Clock {
        let others = self.streams.values();
        let others = others.filter(|other| stream.goes_with(&other.stream));
        others.fold(self.here(), |all, other| all.joined(&other.clock))
    }

    /// What the calling thread has waited for.
    fn here(&self) -> Clock {
        let mut here = self.host.clone();
        if let Some(own) = self.threads.get(&self.thread) {
            here.join_sure(own);
        }
        here
    }

    /// The calling thread has waited for a point.
    fn waited(&mut self, point: &Clock) {
        let own = self.threads.entry(self.thread).or_default();
        for (&lane, times) in &point.0 {
            let taken = self.host.0.entry(lane).or_default();
            taken.taken = times.taken.max(taken.taken);
            let sure = own.entry(lane).or_default();
            *sure = times.sure.max(*sure);
        }
    }

    fn all(&self) -> Clock {
        let streams = self.streams.values();
        streams.fold(self.left.clone(), |all, lane| all.joined(&lane.clock))
    }

    fn lane(&mut self, stream: &Stream) -> &mut Lane {
        let lanes = &mut self.lanes;
        self.streams.entry(stream.id).or_insert_with(|| {
            *lanes += 1;
            Lane {
                stream: *stream,
                lane: *lanes,
                time: 0,
                clock: Clock::default(),
                launched_after: None,
            }
        })
    }
}
