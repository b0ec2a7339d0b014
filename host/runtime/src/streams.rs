//! Work of different streams: what the tool remembers of it to compare it with what comes later.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

pub use shadow::streams::{Footprint, Fork, Kind, Order, Stream, Turn};
use shadow::streams::{Meeting, Touch};

use crate::instructions::Instructions;
use crate::log::{self, Call};

/// Pieces of work that are remembered: each new one is compared with all of them.
const PIECES: usize = 1 << 16;
/// As many go on being remembered although nothing is known of them, and all streams that there are
/// have them behind them.
const UNKNOWN: usize = 64;
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
    /// The place of a graph's node. `stream` is what a person calls the stream that the graph is launched
    /// into; `may_overlap` tells whether there may be work that nothing orders with this.
    pub fn of_node(turn: Turn, stream: &str, may_overlap: bool) -> Self {
        Self {
            turn,
            early: None,
            stream: format!("a graph in {stream}"),
            may_overlap,
            steps: Arc::default(),
            host_stream: None,
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
    /// None where nobody has listened.
    pub(crate) touched: Option<Touched>,
}

/// What a piece of work has done, for those that may run beside it.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// All the global memory that it has touched.
    pub(crate) all: Footprint,
    /// That which it has touched before it has waited for the launch ahead of it, where it may begin
    /// before that has ended.
    pub(crate) early: Footprint,
    /// It has let the launch behind it begin (`griddepcontrol.launch_dependents`).
    pub(crate) lets_others_begin: bool,
}

impl Touched {
    fn len(&self) -> usize {
        self.all.len() + self.early.len()
    }
}

impl Piece {
    pub(crate) fn new(at: At, maker: Maker, mut touched: Option<Touched>) -> Self {
        if let Some(touched) = &mut touched {
            touched.all.settle();
            touched.early.settle();
        }
        Self { at, maker, touched }
    }

    /// Whether it may have let the launch behind it begin; nobody listens to a launch that cannot.
    fn lets_others_begin(&self) -> bool {
        match (&self.touched, &self.maker) {
            (Some(touched), _) => touched.lets_others_begin,
            (None, Maker::Launch(_, None)) => true,
            (None, Maker::Launch(_, Some(_)) | Maker::Call) => false,
        }
    }

    /// What of a later piece nothing orders with this one: all, what it does early, or nothing.
    fn beside(&self, later: &Piece) -> Beside {
        if self.at.is_related(&later.at) {
            return match self.at.is_ordered(&later.at) {
                true => Beside::Nothing,
                false => Beside::All,
            };
        }
        if !later.at.turn.follows(&self.at.turn) {
            return Beside::All;
        }
        let early = later.at.early.as_ref();
        match early.is_some_and(|early| !early.follows(&self.at.turn)) && self.lets_others_begin() {
            true => Beside::Early,
            false => Beside::Nothing,
        }
    }
}

/// The part of a piece of work that nothing orders with an earlier one.
enum Beside {
    All,
    Early,
    Nothing,
}

/// The streams of a process, and their work that may not be over.
#[derive(Debug, Default)]
pub struct Streams {
    order: Order,
    pieces: VecDeque<Piece>,
    /// Pieces that one of the host's threads has waited for, and that another one does not know of by itself.
    behind: VecDeque<Piece>,
    /// Pieces that nothing orders were not compared.
    pub(crate) uncompared: bool,
    /// Pieces that were forgotten, for want of room, since this was last asked.
    pub(crate) forgotten: u64,
}

impl Streams {
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
    pub fn order(&mut self) -> &mut Order {
        &mut self.order
    }

    /// The place of a launch that is given to a stream now. `name` is what a person calls the stream;
    /// a `programmatic` launch may begin before the one ahead of it has ended.
    pub fn launch(&mut self, stream: &Stream, name: &str, programmatic: bool) -> At {
        let may_overlap = self.order.may_overlap(stream);
        let (turn, early) = self.order.launch(stream, programmatic);
        At {
            may_overlap: may_overlap || early.is_some(),
            turn,
            early,
            stream: name.to_owned(),
            steps: Arc::default(),
            host_stream: None,
        }
    }

    /// The place of a call on the host that is given to a stream now.
    pub fn call(&mut self, stream: &Stream, name: &str) -> At {
        At {
            may_overlap: self.order.may_overlap(stream),
            turn: self.order.enter(stream),
            early: None,
            stream: name.to_owned(),
            steps: Arc::default(),
            host_stream: None,
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

    /// A launch by the host has ended with all that its grids have asked for: only work of the host may run beside that
    /// now.
    pub(crate) fn family_over(&mut self, at: &At) {
        if !at.may_overlap {
            let related = |piece: &Piece| piece.at.is_nested() && at.is_related(&piece.at);
            self.pieces.retain(|piece| !related(piece));
        }
    }

    /// Memory is given back.
    pub(crate) fn forget(&mut self, base: u64, bytes: u64) {
        let pieces = self.pieces.iter_mut().chain(&mut self.behind);
        for touched in pieces.filter_map(|piece| piece.touched.as_mut()) {
            touched.all.forget(base, bytes);
            touched.early.forget(base, bytes);
        }
        let empty = |touched: &Touched| touched.len() == 0;
        for pieces in [&mut self.pieces, &mut self.behind] {
            pieces.retain(|piece| !piece.touched.as_ref().is_some_and(empty));
        }
    }

    /// Compares a piece of work that has just run with those before it, and remembers it. The race of
    /// two pieces is told with the earlier one.
    pub(crate) fn ran(&mut self, piece: Piece, found: impl FnMut(&Piece, &Piece, Meeting)) {
        self.uncompared |= self.compare(&piece, found);
        self.leave_to(&piece);
        self.pieces.push_back(piece);
        self.limit();
    }

    /// Compares a piece of work with those before it; whether of one that nothing orders with it nothing is known.
    pub(crate) fn compare(
        &self,
        piece: &Piece,
        mut found: impl FnMut(&Piece, &Piece, Meeting),
    ) -> bool {
        let mut unknown = false;
        for earlier in &self.pieces {
            let beside = earlier.beside(piece);
            let (Some(before), Some(now)) = (&earlier.touched, &piece.touched) else {
                unknown |= !matches!(beside, Beside::Nothing);
                continue;
            };
            let now = match beside {
                Beside::All => &now.all,
                Beside::Early => &now.early,
                Beside::Nothing => continue,
            };
            before
                .all
                .meet(now, |meeting| found(earlier, piece, meeting));
        }
        unknown
    }

    /// Pieces that a piece of work conflicts with and is ordered behind only if threads of the host tell each other what
    /// they have waited for.
    pub(crate) fn assumed<'a>(&'a self, piece: &'a Piece) -> impl Iterator<Item = &'a Piece> {
        let now = piece.touched.as_ref();
        self.behind.iter().filter(move |earlier| {
            let (Some(before), Some(now)) = (&earlier.touched, now) else {
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
        let Some(now) = &piece.touched else {
            return;
        };
        self.pieces.retain_mut(|earlier| {
            // A launch behind one that lets it begin early may be ordered with this piece and not with that one.
            let whole = piece.at.turn.follows(&earlier.at.turn) && !earlier.lets_others_begin();
            match &mut earlier.touched {
                Some(before) if whole && before.early.is_empty() => {
                    before.all.leave_to(&now.all);
                    !before.all.is_empty()
                }
                _ => true,
            }
        });
    }

    /// Forgets what everything follows from now on.
    fn tidy(&mut self) {
        let order = &self.order;
        let known = |piece: &Piece| order.host_knows(&piece.at.turn);
        if self.pieces.iter().any(known) {
            let all = std::mem::take(&mut self.pieces).into_iter();
            let (over, on): (Vec<Piece>, Vec<Piece>) = all.partition(known);
            self.pieces = on.into();
            let over = over
                .into_iter()
                .filter(|piece| piece.touched.is_some() && !order.threads_know(&piece.at.turn));
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
        let lanes: BTreeSet<u64> = all.map(|of| of.at.turn.lane()).collect();
        self.order.keep(&lanes);
    }

    /// Keeps the memory that this takes in bounds.
    fn limit(&mut self) {
        let order = &self.order;
        if self.pieces.len() > UNKNOWN {
            let over = |piece: &Piece| order.streams_know(&piece.at.turn);
            self.pieces
                .retain(|piece| piece.touched.is_some() || !over(piece));
        }
        let runs = |piece: &Piece| piece.touched.as_ref().map_or(0, Touched::len);
        let mut all: usize = self.pieces.iter().map(runs).sum();
        if self.pieces.len() <= PIECES && all <= RUNS {
            return;
        }
        // What follows only on streams that do not exist yet goes first.
        self.pieces
            .retain(|piece| !order.streams_know(&piece.at.turn));
        all = self.pieces.iter().map(runs).sum();
        while self.pieces.len() > PIECES || all > RUNS {
            let Some(gone) = self.pieces.pop_front() else {
                break;
            };
            all -= runs(&gone);
            self.uncompared = true;
            self.forgotten += 1;
        }
        self.keep_lanes();
    }
}

/// Remembers a piece that the host has waited for, as far as there is room.
fn stand_behind(behind: &mut VecDeque<Piece>, piece: Piece) {
    let runs = |piece: &Piece| piece.touched.as_ref().map_or(0, Touched::len);
    // A loop of launches takes the room of one.
    behind.retain_mut(|earlier| {
        let follows = piece.at.turn.surely_follows(&earlier.at.turn);
        match (&mut earlier.touched, &piece.touched) {
            (Some(before), Some(now)) if follows => {
                before.all.leave_to(&now.all);
                !before.all.is_empty()
            }
            _ => true,
        }
    });
    behind.push_back(piece);
    let mut all: usize = behind.iter().map(runs).sum();
    while behind.len() > BEHIND || all > BEHIND_RUNS {
        let Some(gone) = behind.pop_front() else {
            break;
        };
        all -= runs(&gone);
    }
}

/// The footprint of a call on the host that touches ranges of memory: first bytes, lengths, and how.
pub fn footprint(ranges: impl IntoIterator<Item = (u64, u64, Call)>) -> Footprint {
    let mut print = Footprint::default();
    for (base, bytes, call) in ranges {
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
