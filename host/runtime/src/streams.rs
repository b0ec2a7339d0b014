//! Work of different streams: what the tool remembers of it to compare it with what comes later.

mod in_flight;
mod touched;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

pub use shadow::streams::{Footprint, Fork, Stream, StreamKind, StreamOrder, Turn};
use shadow::streams::{Meeting, Touch};

pub use self::in_flight::{HostTouch, InFlight, News};
pub(crate) use self::touched::{Followed, Touched};
use crate::instructions::Instructions;
use crate::log::{self, Apart, Call};

/// Pieces of work that are remembered: each new one is compared with all of them.
const PIECES: usize = 1 << 16;
/// Pieces of which only bounds are known, before those that are ordered become one.
const BOUNDED: usize = 64;
/// How much of their footprints is, in all: 1 GiB.
const RUNS: usize = 1 << 25;

/// Pieces that are remembered although the host has waited for them, because not all its threads have themselves: to count
/// what only that orders.
const BEHIND: usize = 256;
/// How much of their footprints is: 32 MiB.
const BEHIND_RUNS: usize = 1 << 20;

/// What the user should know where work was not compared.
pub(crate) const UNCOMPARED: &str = "races between launches of different streams were not looked for everywhere; `precise` mode does so on the simulated device, as long as what was touched fits 1 GiB";

/// The place of a piece of work among those of its and other streams.
#[derive(Clone, Debug)]
pub struct At {
    pub(crate) turn: Turn,
    /// What it has to follow before it waits for the launch ahead of it.
    early: Option<Turn>,
    /// What a person calls the stream.
    pub(crate) stream: String,
    /// There may be work that it is not ordered with.
    pub(crate) may_overlap: bool,
    /// Which of a grid's requests it is part of, and so on; none for work of the host.
    steps: Arc<[Step]>,
    /// What a person calls the stream that the host has given it all to, where that is another one.
    host_stream: Option<String>,
    /// The context of that stream; none for what the host does itself.
    context: Option<u64>,
    /// It is a node of a graph.
    of_graph: bool,
}

/// A request of a grid to the device runtime.
#[derive(Clone, Debug)]
struct Step {
    /// Its number in the process.
    request: u64,
    /// Its place among those of the grid.
    turn: Turn,
    /// It is in the stream behind all others (`cudaStreamTailLaunch`).
    tail: bool,
}

impl At {
    /// The place of a graph's node. `stream` is what a person calls the stream of a context that the graph is launched
    /// into; `may_overlap` says whether there may be work that nothing orders with this.
    pub fn of_node(turn: Turn, stream: &str, context: u64, may_overlap: bool) -> Self {
        Self {
            turn,
            early: None,
            stream: format!("{}{stream}", log::OF_GRAPH),
            may_overlap,
            steps: Arc::default(),
            host_stream: None,
            context: Some(context),
            of_graph: true,
        }
    }

    /// The place of a request that a grid at this place makes: the `request`th of the process, which has its
    /// turn among those of the grid, in a stream that a person calls `stream`.
    pub fn of_request(&self, request: u64, turn: Turn, tail: bool, stream: String) -> Self {
        let step = Step {
            request,
            turn,
            tail,
        };
        Self {
            turn: self.turn.clone(),
            early: None,
            stream,
            may_overlap: self.may_overlap,
            steps: self.steps.iter().cloned().chain([step]).collect(),
            host_stream: Some(self.host_stream().to_owned()),
            context: self.context,
            of_graph: self.of_graph,
        }
    }

    /// What a person calls the stream of the host that it is in.
    pub(crate) fn host_stream(&self) -> &str {
        self.host_stream.as_deref().unwrap_or(&self.stream)
    }

    /// Whether a grid has asked for it.
    pub(crate) fn is_nested(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Whether it and `later` belong to one launch by the host. That and all that follows from it is one piece of
    /// work to others.
    pub(crate) fn is_related(&self, later: &At) -> bool {
        self.turn.is(&later.turn)
    }

    /// Whether related work starts when this has ended. What a grid has asked for is compared with the grid by what
    /// came before the request.
    fn is_ordered(&self, later: &At) -> bool {
        let mut steps = self.steps.iter().zip(later.steps.iter());
        let parted = steps.find(|(one, other)| one.request != other.request);
        parted.is_none_or(|(one, other)| other.tail && !one.tail || other.turn.follows(&one.turn))
    }

    /// Whether the launch may begin before the one ahead of it has ended.
    pub(crate) fn is_early(&self) -> bool {
        self.early.is_some()
    }
}

/// Who has made a footprint.
#[derive(Clone, Debug)]
pub(crate) enum Maker {
    /// A launch of which number, module, grid and block are known, with what its instructions mean.
    Launch(Box<log::Launch>, Option<Arc<Instructions>>),
    /// A [`Call`] on the host.
    Call,
}

/// A piece of work that has been given to a stream, and that the host has not waited for.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) at: At,
    pub(crate) maker: Maker,
    pub(crate) touched: Touched,
    /// Its place among all pieces, in the order in which they were compared.
    pub(crate) number: u64,
    /// The list of calls that a call on the host is made in; 0 where that is not known.
    pub(crate) host_calls: u32,
    /// The places of pieces that have read what this one has released.
    acquired_by: Vec<Turn>,
}

/// What two pieces of work have to do with each other that nothing orders.
pub(crate) enum Encounter {
    /// They race.
    Race(Meeting),
    /// They may touch the same memory: of one of them, it is not known exactly what it has touched.
    Possible,
}

impl Piece {
    pub(crate) fn new(at: At, maker: Maker, touched: Touched) -> Self {
        Self {
            at,
            maker,
            touched,
            number: 0,
            host_calls: 0,
            acquired_by: Vec::new(),
        }
    }

    /// The same, made in a list of calls on the host.
    pub(crate) fn called_in(self, host_calls: u32) -> Self {
        Self { host_calls, ..self }
    }

    /// Whether a later piece has read what this one has released.
    fn releases_to(&self, later: &Piece) -> bool {
        match (self.touched.followed(), later.touched.followed()) {
            (Some(before), Some(now)) => now.acquires_from(before),
            _ => false,
        }
    }

    /// Whether a later piece follows one that has.
    fn is_heard_ahead_of(&self, later: &Piece) -> bool {
        self.acquired_by.iter().any(|by| later.at.turn.follows(by))
    }

    /// Whether it may have let the launch behind it begin.
    fn lets_others_begin(&self) -> bool {
        match (&self.touched, &self.maker) {
            (Touched::Followed(followed), _) => followed.lets_others_begin,
            (_, Maker::Launch(_, Some(instructions))) => instructions.lets_others_begin,
            (_, Maker::Launch(_, None)) => true,
            (_, Maker::Call) => false,
        }
    }

    /// What it has followed when it has let the launch behind it begin, if all its CTAs have done so before they have
    /// waited for the launch ahead of it (PTX ISA, `griddepcontrol`): then that may still run.
    fn passes_on(&self) -> Option<&Turn> {
        let (Touched::Followed(followed), Maker::Launch(launch, _)) = (&self.touched, &self.maker)
        else {
            return None;
        };
        let ctas = launch.grid.iter().map(|&n| u64::from(n)).product::<u64>();
        let early = self.at.early.as_ref();
        early.filter(|_| followed.passing_on == ctas)
    }

    /// Whether what nothing orders with an earlier piece is not ordered with this one either.
    fn stands_for(&self, earlier: &Piece) -> bool {
        let (now, before) = (&self.at.turn, &earlier.at.turn);
        // A launch that begins before the one ahead of it has ended follows what is ahead of that one, unless that one has
        // passed on what it has not waited for: then it follows neither. One directly behind the earlier one may be in
        // another lane.
        now.follows(before) && (now.lane() == before.lane() || !earlier.lets_others_begin())
    }

    /// Why nothing orders a later piece with this one.
    pub(crate) fn apart(&self, later: &Piece) -> Apart {
        let (one, other) = (&self.at, &later.at);
        let contexts = one.context.zip(other.context);
        match self.concurrent(later) {
            Concurrent::Early => Apart::Early,
            _ if contexts.is_some_and(|(one, other)| one != other) => Apart::Devices,
            _ if one.of_graph && other.of_graph && one.stream == other.stream => Apart::Nodes,
            _ => Apart::Streams,
        }
    }

    /// What of a later piece nothing orders with this one: all, what it does early, or nothing.
    fn concurrent(&self, later: &Piece) -> Concurrent {
        if self.at.is_related(&later.at) {
            return match self.at.is_ordered(&later.at) {
                true => Concurrent::Nothing,
                false => Concurrent::All,
            };
        }
        if !later.at.turn.follows(&self.at.turn) {
            return Concurrent::All;
        }
        let early = later.at.early.as_ref();
        match early.is_some_and(|early| !early.follows(&self.at.turn)) && self.lets_others_begin() {
            true => Concurrent::Early,
            false => Concurrent::Nothing,
        }
    }
}

/// The part of a piece of work that nothing orders with an earlier one.
enum Concurrent {
    All,
    Early,
    Nothing,
}

/// The streams of a process, and their work that may not be over.
#[derive(Debug, Default)]
pub struct Streams {
    order: StreamOrder,
    pieces: VecDeque<Piece>,
    /// All work is followed, whether there is anything yet that may run beside it or not.
    follows_all: bool,
    /// Pieces that one of the host's threads has waited for, and that another one does not know of by itself.
    behind: VecDeque<Piece>,
    /// Those that touch memory of the host.
    pub(crate) in_flight: InFlight,
    /// Pieces that have been compared.
    compared: u64,
    /// Pieces that were forgotten, for want of room, since this was last asked.
    pub(crate) forgotten: u64,
}

impl Streams {
    /// Streams of which all work is followed, or only that which other work may run beside.
    pub(crate) fn new(follows_all: bool) -> Self {
        Self {
            follows_all,
            ..Self::default()
        }
    }

    /// The calls that follow are those of a thread of the host.
    pub fn by(&mut self, thread: u64) {
        self.order.by(thread);
    }

    /// A thread of the host has ended.
    pub fn thread_ended(&mut self, thread: u64) {
        self.order.ended(thread);
        self.tidy();
    }

    /// What orders the streams. The calls by which the host waits are those of [`Streams`].
    pub fn order(&mut self) -> &mut StreamOrder {
        &mut self.order
    }

    /// The work that touches memory of the host, and that the host has not waited for.
    pub fn in_flight(&mut self) -> &mut InFlight {
        &mut self.in_flight
    }

    /// The place of a launch that is given to a stream now. `name` is what a person calls the stream;
    /// a `programmatic` launch may begin before the one ahead of it has ended.
    pub fn launch(&mut self, stream: &Stream, name: &str, programmatic: bool) -> At {
        let may_overlap = self.may_overlap(stream);
        let (turn, early) = self.order.launch(stream, programmatic);
        At {
            may_overlap: may_overlap || early.is_some(),
            turn,
            early,
            stream: name.to_owned(),
            steps: Arc::default(),
            host_stream: None,
            context: Some(stream.context),
            of_graph: false,
        }
    }

    /// Whether work that is given to a stream now is followed, because other work may run beside it.
    pub fn may_overlap(&self, stream: &Stream) -> bool {
        self.follows_all || self.order.may_overlap(stream)
    }

    /// The place of a call on the host that is given to a stream now.
    pub fn call(&mut self, stream: &Stream, name: &str) -> At {
        At {
            may_overlap: self.may_overlap(stream),
            turn: self.order.enter(stream),
            early: None,
            stream: name.to_owned(),
            steps: Arc::default(),
            host_stream: None,
            context: Some(stream.context),
            of_graph: false,
        }
    }

    /// The place of a call by which the host itself does something, in no stream.
    pub(crate) fn on_host(&self) -> At {
        At {
            turn: self.order.host_turn(),
            early: None,
            stream: log::HOST.to_owned(),
            may_overlap: true,
            steps: Arc::default(),
            host_stream: None,
            context: None,
            of_graph: false,
        }
    }

    /// The host waits for a stream.
    pub fn host_waits(&mut self, stream: &Stream) {
        self.order.host_waits(stream);
        self.tidy();
    }

    /// The host waits for a point that has a name.
    pub fn host_waits_for(&mut self, mark: u64) {
        self.order.host_waits_for(mark);
        self.tidy();
    }

    /// The host asks whether a stream has done its work; see [`StreamOrder::is_done`].
    pub fn is_done(&mut self, stream: &Stream) -> bool {
        let is_done = self.order.is_done(stream);
        self.tidy();
        is_done
    }

    /// The host asks whether a point has been reached; see [`StreamOrder::is_reached`].
    pub fn is_reached(&mut self, mark: u64) -> bool {
        let is_reached = self.order.is_reached(mark);
        self.tidy();
        is_reached
    }

    /// The host waits for everything.
    pub fn host_waits_for_all(&mut self) {
        self.order.host_waits_for_all();
        self.tidy();
    }

    /// The host waits for the last node of a graph so far.
    pub fn host_waits_for_node(&mut self, fork: &Fork) {
        self.order.host_waits_for_node(fork);
        self.tidy();
    }

    /// A launch by the host has ended with all that its grids have asked for. Where no other stream can have work that
    /// runs beside it, what they have touched is remembered as one piece.
    pub(crate) fn family_over(&mut self, at: &At) {
        if at.may_overlap {
            return;
        }
        let mut family: Option<Piece> = None;
        let all = std::mem::take(&mut self.pieces);
        for piece in all {
            let of_it = piece.at.is_nested() && at.is_related(&piece.at);
            match &mut family {
                _ if !of_it => self.pieces.push_back(piece),
                Some(family) => family.touched.cover(&piece.touched),
                None => {
                    let mut touched = Touched::Within(Arc::default());
                    touched.cover(&piece.touched);
                    family = Some(Piece::new(at.clone(), piece.maker, touched));
                }
            }
        }
        if let Some(family) = family {
            self.leave_to(&family);
            self.pieces.push_back(family);
        }
    }

    /// Memory is given back.
    pub(crate) fn forget(&mut self, base: u64, bytes: u64) {
        for pieces in [&mut self.pieces, &mut self.behind] {
            pieces.retain_mut(|piece| !piece.touched.forget(base, bytes));
        }
        self.in_flight.forget(base, bytes);
    }

    /// Compares a piece of work that has just run with those before it, and remembers it. The race of
    /// two pieces is reported with the earlier one.
    pub(crate) fn ran(&mut self, mut piece: Piece, found: impl FnMut(&Piece, &Piece, Encounter)) {
        self.compare(&mut piece, found);
        for earlier in &mut self.pieces {
            let concurrent = matches!(earlier.concurrent(&piece), Concurrent::All);
            if concurrent && !earlier.is_heard_ahead_of(&piece) && earlier.releases_to(&piece) {
                earlier.acquired_by.push(piece.at.turn.clone());
            }
        }
        if let Some(early) = piece.passes_on() {
            self.order.passes_on(early);
        }
        self.leave_to(&piece);
        self.join_bounded(&mut piece);
        self.pieces.push_back(piece);
        self.limit();
    }

    /// Compares a piece of work with those before it, and gives it its number.
    pub(crate) fn compare(
        &mut self,
        piece: &mut Piece,
        mut found: impl FnMut(&Piece, &Piece, Encounter),
    ) {
        self.compared += 1;
        piece.number = self.compared;
        let piece = &*piece;
        for earlier in &self.pieces {
            let concurrent = earlier.concurrent(piece);
            if matches!(concurrent, Concurrent::Nothing) {
                continue;
            }
            let exact = earlier.touched.followed().is_some() && piece.touched.followed().is_some();
            let mut possible = false;
            match (earlier.touched.bounds(), piece.touched.bounds()) {
                (Some((before, _)), Some((all, early))) => {
                    let now = match concurrent {
                        Concurrent::Early => early,
                        Concurrent::All | Concurrent::Nothing => all,
                    };
                    // What may come after a flag of the earlier piece is not decided.
                    let heard = earlier.is_heard_ahead_of(piece);
                    let acquired = heard || earlier.releases_to(piece);
                    let unacquired = piece
                        .touched
                        .followed()
                        .and_then(|of| of.unacquired.as_ref());
                    let mut sure = Vec::new();
                    if let (Some(unacquired), true, false, Concurrent::All) =
                        (unacquired, acquired, heard, &concurrent)
                    {
                        before.meet(unacquired, |meeting| {
                            sure.push([meeting.one, meeting.other]);
                            found(earlier, piece, Encounter::Race(meeting));
                        });
                    }
                    before.meet(now, |meeting| {
                        if exact && !acquired {
                            found(earlier, piece, Encounter::Race(meeting));
                        } else {
                            possible |= !sure.contains(&[meeting.one, meeting.other]);
                        }
                    });
                }
                _ => possible = true,
            }
            if possible {
                found(earlier, piece, Encounter::Possible);
            }
        }
    }

    /// Pieces that a piece of work conflicts with and is ordered behind only if threads of the host pass on to each other what
    /// they have waited for.
    pub(crate) fn assumed<'a>(&'a self, piece: &'a Piece) -> impl Iterator<Item = &'a Piece> {
        let now = piece.touched.followed();
        self.behind.iter().filter(move |earlier| {
            let (Some(before), Some(now)) = (earlier.touched.followed(), now) else {
                return false;
            };
            let mut meets = false;
            if !piece.at.turn.surely_follows(&earlier.at.turn) {
                before.all.meet(&now.all, |_| meets = true);
            }
            meets
        })
    }

    /// Forgets what earlier pieces have touched like this one, which follows them: whatever races with them there
    /// races with this one. So a loop of launches takes the room of one.
    fn leave_to(&mut self, piece: &Piece) {
        self.pieces.retain_mut(|earlier| {
            if !piece.stands_for(earlier) {
                return true;
            }
            match (&mut earlier.touched, &piece.touched) {
                (Touched::Followed(before), Touched::Followed(now)) if before.early.is_empty() => {
                    before.all.leave_to(&now.all);
                    !before.all.is_empty()
                }
                (Touched::Within(before), Touched::Within(now)) => !Arc::ptr_eq(before, now),
                (Touched::Unknown, Touched::Unknown) => false,
                _ => true,
            }
        });
    }

    /// Lets a piece of which bounds are known stand for earlier ones that it follows, if there are many.
    fn join_bounded(&mut self, piece: &mut Piece) {
        let bounded = |piece: &Piece| matches!(piece.touched, Touched::Within(_));
        if !bounded(piece) || self.pieces.iter().filter(|of| bounded(of)).count() < BOUNDED {
            return;
        }
        let mut touched = std::mem::take(&mut piece.touched);
        self.pieces.retain(|earlier| {
            let joins = bounded(earlier) && piece.stands_for(earlier);
            if joins {
                touched.cover(&earlier.touched);
            }
            !joins
        });
        piece.touched = touched;
    }

    /// Forgets what everything follows from now on.
    fn tidy(&mut self) {
        let order = &self.order;
        let known = |piece: &Piece| order.host_knows(&piece.at.turn);
        self.in_flight.over(known);
        if self.pieces.iter().any(known) {
            let all = std::mem::take(&mut self.pieces).into_iter();
            let (over, on): (Vec<Piece>, Vec<Piece>) = all.partition(known);
            self.pieces = on.into();
            let over = over.into_iter().filter(|piece| {
                piece.touched.followed().is_some() && !order.threads_know(&piece.at.turn)
            });
            for piece in over {
                stand_behind(&mut self.behind, piece);
            }
        }
        self.behind
            .retain(|piece| !order.threads_know(&piece.at.turn));
        self.keep_lanes();
    }

    fn keep_lanes(&mut self) {
        let all = self.pieces.iter().chain(&self.behind);
        let all = all.chain(self.in_flight.pieces());
        let lanes: BTreeSet<u64> = all.map(|of| of.at.turn.lane()).collect();
        self.order.keep(&lanes);
    }

    /// Keeps the memory that this takes in bounds.
    fn limit(&mut self) {
        let order = &self.order;
        let mut all: usize = self.pieces.iter().map(|piece| piece.touched.len()).sum();
        if self.pieces.len() <= PIECES && all <= RUNS {
            return;
        }
        // What follows only on streams that do not exist yet goes first: of each lane, the last piece stays and stands
        // for those before it.
        let mut last = BTreeSet::new();
        let mut kept = VecDeque::new();
        while let Some(mut piece) = self.pieces.pop_back() {
            if order.streams_know(&piece.at.turn) {
                if !last.insert(piece.at.turn.lane()) {
                    continue;
                }
                piece.touched = Touched::Unknown;
            }
            kept.push_front(piece);
        }
        self.pieces = kept;
        all = self.pieces.iter().map(|piece| piece.touched.len()).sum();
        while self.pieces.len() > PIECES || all > RUNS {
            let Some(gone) = self.pieces.pop_front() else {
                break;
            };
            all -= gone.touched.len();
            self.forgotten += 1;
        }
        self.keep_lanes();
    }
}

/// Remembers a piece that the host has waited for, as far as there is room.
fn stand_behind(behind: &mut VecDeque<Piece>, piece: Piece) {
    // A loop of launches takes the room of one.
    behind.retain_mut(|earlier| {
        let follows = piece.at.turn.surely_follows(&earlier.at.turn);
        match (&mut earlier.touched, &piece.touched) {
            (Touched::Followed(before), Touched::Followed(now)) if follows => {
                before.all.leave_to(&now.all);
                !before.all.is_empty()
            }
            _ => true,
        }
    });
    behind.push_back(piece);
    let mut all: usize = behind.iter().map(|piece| piece.touched.len()).sum();
    while behind.len() > BEHIND || all > BEHIND_RUNS {
        let Some(gone) = behind.pop_front() else {
            break;
        };
        all -= gone.touched.len();
    }
}

/// A range of memory that a call on the host, or a request of a grid, touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRange {
    /// The first address.
    pub base: u64,
    /// How many bytes.
    pub bytes: u64,
    /// What is done there.
    pub call: Call,
}

/// The footprint of a call that touches ranges of memory.
pub fn footprint(ranges: impl IntoIterator<Item = CallRange>) -> Footprint {
    let mut print = Footprint::default();
    for CallRange { base, bytes, call } in ranges {
        let touch = Touch {
            writes: call != Call::CopyFrom,
            wide: false,
            // One thread, however far it gets.
            bytes: u32::MAX,
            site: call as u32,
        };
        print.touch(touch, 0, base, bytes);
    }
    print
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;

    const STREAMS: [(u64, StreamKind); 4] = [
        (0, StreamKind::Legacy),
        (1, StreamKind::Blocking),
        (2, StreamKind::NonBlocking),
        (3, StreamKind::NonBlocking),
    ];

    fn stream(random: &mut Random) -> Stream {
        let (id, kind) = STREAMS[random.below(4) as usize];
        Stream {
            id,
            context: 0,
            kind,
        }
    }

    fn range(random: &mut Random) -> Footprint {
        let mut print = Footprint::default();
        for _ in 0..1 + random.below(2) {
            let touch = Touch {
                writes: random.below(2) == 0,
                wide: random.below(4) == 0,
                bytes: 4,
                site: 0,
            };
            let start = u64::from(4 * random.below(60));
            print.touch(touch, 0, start, u64::from(4 * (1 + random.below(4))));
        }
        print.settle();
        print
    }

    fn touched(writes: bool, site: u32, range: std::ops::Range<u64>) -> Footprint {
        let touch = Touch {
            writes,
            wide: false,
            bytes: 4,
            site,
        };
        let mut print = Footprint::default();
        print.touch(touch, 0, range.start, range.end - range.start);
        print
    }

    #[test]
    fn what_may_come_behind_a_flag_is_not_decided() {
        let writer = || Followed {
            all: touched(true, 1, 0..16),
            released_flags: touched(true, 2, 100..104),
            ..Followed::default()
        };
        // By a thread that knows of no flag, by one that has seen one; by whom the flag was read.
        let reader = |unacquired: Option<Footprint>, flag| Followed {
            all: touched(false, 3, 0..16),
            unacquired,
            read_flags: touched(false, 4, flag..flag + 4),
            ..Followed::default()
        };
        let nothing = || Some(Footprint::default());
        for (reader, races, possible, later) in [
            // No flag is read, or another one than the writer has set.
            (reader(None, 100), 1, 0, 1),
            (reader(nothing(), 96), 1, 0, 1),
            (reader(nothing(), 100), 0, 1, 0),
            // The same instruction has read before the flag was seen, or another one has.
            (reader(Some(touched(false, 3, 4..8)), 100), 1, 0, 0),
            (reader(Some(touched(false, 5, 4..8)), 100), 1, 1, 0),
        ] {
            let mut streams = Streams::new(true);
            let mut found = [0, 0];
            let of = |id| Stream {
                id,
                context: 0,
                kind: StreamKind::NonBlocking,
            };
            let mut ran = |stream, followed: Followed| {
                let at = streams.launch(&of(stream), "", false);
                let piece = Piece::new(at, Maker::Call, followed.into());
                let before = found;
                streams.ran(piece, |_, _, encounter| match encounter {
                    Encounter::Race(_) => found[0] += 1,
                    Encounter::Possible => found[1] += 1,
                });
                [found[0] - before[0], found[1] - before[1]]
            };
            assert_eq!(ran(2, writer()), [0, 0]);
            assert_eq!(ran(3, reader), [races, possible]);
            // What follows the reader may come behind the flag too.
            let behind = Followed {
                all: touched(false, 6, 0..16),
                ..Followed::default()
            };
            assert_eq!(ran(3, behind), [later, 1 - later]);
        }
    }

    /// All work, each piece with its footprint if one is known, and never forgotten.
    type All = Vec<(Turn, Option<Footprint>)>;

    fn meets(all: &All, turn: &Turn, print: Option<&Footprint>) -> bool {
        all.iter().any(|(earlier, before)| {
            let mut meets = false;
            match (before, print) {
                _ if turn.follows(earlier) => return false,
                (Some(before), Some(print)) => before.meet(print, |_| meets = true),
                _ => meets = true,
            }
            meets
        })
    }

    #[test]
    fn pieces_that_stand_for_others_meet_what_those_would_have_met() {
        let mut met = [0, 0];
        let mut joined = false;
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut streams = Streams::default();
            // The same calls, of which nothing is forgotten.
            let mut order = StreamOrder::default();
            let mut all = All::new();
            let unknown = random.below(3) == 0;
            for _ in 0..200 {
                let of = stream(&mut random);
                let mark = random.below(2).into();
                match random.below(60) {
                    0 => {
                        streams.host_waits_for_all();
                        order.host_waits_for_all();
                    }
                    1..=3 => {
                        streams.host_waits(&of);
                        order.host_waits(&of);
                    }
                    4..=9 => {
                        streams.order().mark(mark, &of);
                        order.mark(mark, &of);
                    }
                    10..=15 => {
                        streams.order().wait(&of, mark);
                        order.wait(&of, mark);
                    }
                    _ => {
                        let at = streams.launch(&of, "", false);
                        let (turn, _) = order.launch(&of, false);
                        let print = range(&mut random);
                        let touched = match random.below(8) {
                            0 if unknown => Touched::Unknown,
                            1 => Touched::from(Followed {
                                all: print.clone(),
                                ..Followed::default()
                            }),
                            _ => Touched::Within(Arc::new(print.clone())),
                        };
                        let print = match touched {
                            Touched::Unknown => None,
                            _ => Some(print),
                        };
                        let expected = meets(&all, &turn, print.as_ref());
                        let mut found = false;
                        let instructions = Arc::new(Instructions::default());
                        let maker = Maker::Launch(Box::default(), Some(instructions));
                        let before = streams.pieces.len();
                        streams.ran(Piece::new(at, maker, touched), |_, _, _| found = true);
                        assert!(found || !expected, "seed {seed}, piece {}", all.len());
                        // One piece that stands for many has less order than they had.
                        let exact = all.len() <= BOUNDED;
                        assert!(
                            found == expected || !exact,
                            "seed {seed}, piece {}",
                            all.len()
                        );
                        met[usize::from(found)] += 1;
                        all.push((turn, print));
                        joined |= before >= BOUNDED && streams.pieces.len() < before;
                    }
                }
            }
        }
        assert!(met[0] > 1000 && met[1] > 1000, "{met:?}");
        assert!(joined);
    }

    #[test]
    fn a_family_is_remembered_as_one_piece() {
        let mut streams = Streams::default();
        let [(legacy, kind), _, (other, other_kind), _] = STREAMS;
        let of = |id, kind| Stream {
            id,
            context: 0,
            kind,
        };
        let at = streams.launch(&of(legacy, kind), "", false);
        let own = Touched::Within(Arc::new(Footprint::default()));
        let maker = |()| Maker::Launch(Box::default(), Some(Arc::new(Instructions::default())));
        streams.ran(Piece::new(at.clone(), maker(()), own), |_, _, _| {});
        let touch = Touch {
            writes: true,
            wide: false,
            bytes: 4,
            site: 7,
        };
        let print = |start| {
            let mut print = Footprint::default();
            print.touch(touch, 0, start, 8);
            Followed {
                all: print,
                ..Followed::default()
            }
        };
        for request in 0..2 {
            let turn = at.turn.clone();
            let nested = at.of_request(request, turn, false, String::new());
            let touched = print(100 * request).into();
            streams.ran(Piece::new(nested, maker(()), touched), |_, _, _| {});
        }
        streams.family_over(&at);
        assert_eq!(streams.pieces.len(), 2);
        let at = streams.launch(&of(other, other_kind), "", false);
        for (start, expected) in [(50, false), (100, true), (0, true), (108, false)] {
            let mut found = false;
            let mut piece = Piece::new(at.clone(), maker(()), print(start).into());
            streams.compare(&mut piece, |_, _, encounter| {
                found |= matches!(encounter, Encounter::Possible);
            });
            assert_eq!(found, expected, "{start}");
        }
    }
}
