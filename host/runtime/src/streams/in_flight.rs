//! Work that touches memory which the host can access too, and that the host has not waited for: until it has, it must not
//! access the same bytes.
//!
//! Of the host it is known which pages it has touched, and which bytes have changed. So a race is certain where a byte has
//! changed that the work touches, or where a page was touched of which the work writes every byte. Other pages that were
//! touched, and that the work writes in part, are counted as undecided.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use shadow::streams::{Footprint, Touch};

use super::{Followed, Piece};
use crate::log::Call;

/// How much of the footprints is kept: 64 MiB.
const RUNS: usize = 1 << 21;
/// Pieces that are kept.
const PIECES: usize = 1 << 10;

/// What the host has done to a page of its memory while work was in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTouch {
    /// The bytes of the page that belong to the program.
    pub page: Range<u64>,
    /// Those of them that have another value than before.
    pub changed: Vec<Range<u64>>,
}

/// Such work.
#[derive(Debug, Default)]
pub struct InFlight {
    /// The device's own memory, if accesses of the host to other memory are watched.
    device: Option<Range<u64>>,
    /// With what each touches outside of the device's own memory.
    pieces: VecDeque<Piece>,
    news: News,
}

/// What has happened since this was last asked.
#[derive(Debug, Default)]
pub struct News {
    /// The memory of the host that new work has touched.
    pub touched: Vec<Range<u64>>,
    /// Work that is not followed may have changed any memory.
    pub unknown: bool,
    /// Work is over, or is not judged any more.
    pub over: bool,
    /// Some is not judged: for want of room, or because it may have signalled the host.
    pub unjudged: bool,
}

impl InFlight {
    /// Accesses of the host are watched. This is the device's own memory, which the host cannot access.
    pub fn watch(&mut self, device: Range<u64>) {
        self.device = Some(device);
    }

    /// The device's own memory, if accesses of the host to other memory are watched.
    pub fn device(&self) -> Option<Range<u64>> {
        self.device.clone()
    }

    /// Whether there is any such work.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// What has happened since this was last asked.
    pub fn news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// The memory of the host that the work touches.
    pub fn memory(&self) -> Vec<Range<u64>> {
        self.pieces.iter().flat_map(ranges).collect()
    }

    /// The host may know of all that there is, in a way that cannot be seen: a thread of the device, or a stream, has
    /// written to memory that the host can read to wait for that.
    pub fn host_may_know(&mut self) {
        self.news.unjudged |= !self.pieces.is_empty();
        self.pieces.clear();
        self.news.over = true;
    }

    /// Work has run of which it is not known what it has changed.
    pub(crate) fn unknown_ran(&mut self) {
        self.news.unknown |= self.device.is_some();
    }

    /// What a call has touched outside of the device's own memory, if anything and if the host is watched.
    pub(crate) fn outside(&self, all: &Footprint) -> Option<Footprint> {
        let device = self.device.as_ref().filter(|device| !all.lies_in(device))?;
        let mut print = all.clone();
        print.forget(device.start, device.end - device.start);
        (!print.is_empty()).then_some(print)
    }

    /// Takes what a launch has touched outside of the device's own memory, if anything; all work up to it is not judged if it
    /// may signal the host.
    pub(crate) fn take(&mut self, followed: &mut Followed) -> Option<Footprint> {
        self.device.as_ref()?;
        let host = std::mem::take(&mut followed.host);
        if followed.signals_host {
            self.host_may_know();
            self.news.unjudged |= !host.is_empty();
            return None;
        }
        (!host.is_empty()).then_some(host)
    }

    /// A piece of work is in flight that has touched memory of the host, and nothing else.
    pub(crate) fn add(&mut self, piece: Piece) {
        self.news.touched.extend(ranges(&piece));
        self.pieces.push_back(piece);
        let runs = |of: &VecDeque<Piece>| of.iter().map(|piece| piece.touched.len()).sum::<usize>();
        let mut all = runs(&self.pieces);
        while self.pieces.len() > PIECES || all > RUNS {
            let gone = self.pieces.pop_front();
            self.news.unjudged = true;
            all -= gone.map_or(0, |piece| piece.touched.len());
        }
    }

    /// Some of the work is over.
    pub(super) fn over(&mut self, is_over: impl Fn(&Piece) -> bool) {
        let before = self.pieces.len();
        self.pieces.retain(|piece| !is_over(piece));
        self.news.over |= self.pieces.len() < before;
    }

    pub(super) fn forget(&mut self, base: u64, bytes: u64) {
        self.pieces
            .retain_mut(|piece| !piece.touched.forget(base, bytes));
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter()
    }

    /// How many of the pages that the host has touched some work writes in part, so that it is not known whether they race.
    pub(crate) fn undecided(&self, touches: &[HostTouch]) -> u64 {
        let is_undecided = |touch: &&HostTouch| {
            let mut prints = self.pieces.iter().filter_map(footprint);
            let writes = prints.any(|print| touch.is_written_by(print));
            let mut prints = self.pieces.iter().filter_map(footprint);
            writes && prints.all(|print| touch.against(print).is_empty())
        };
        touches.iter().filter(is_undecided).count() as u64
    }

    /// The pieces that race with what the host has done, each with a footprint of that. Of the work of a stream, the latest
    /// stands for what is ahead of it.
    pub(crate) fn races(&self, touches: &[HostTouch]) -> Vec<(&Piece, Footprint)> {
        let mut found: BTreeMap<usize, Footprint> = BTreeMap::new();
        for touch in touches {
            let mut lanes = BTreeSet::new();
            for (n, piece) in self.pieces.iter().enumerate().rev() {
                let (Some(print), false) =
                    (footprint(piece), lanes.contains(&piece.at.turn.lane()))
                else {
                    continue;
                };
                let host = touch.against(print);
                if !host.is_empty() {
                    lanes.insert(piece.at.turn.lane());
                    let of = found.entry(n).or_default();
                    host.into_iter().for_each(|(range, call)| {
                        let (how, bytes) = (how(call), range.end - range.start);
                        of.touch(how, 0, range.start, bytes);
                    });
                }
            }
        }
        let found = found.into_iter().filter_map(|(n, mut print)| {
            print.settle();
            Some((self.pieces.get(n)?, print))
        });
        found.collect()
    }
}

impl HostTouch {
    /// Whether work that has left a footprint writes some bytes of the page.
    fn is_written_by(&self, print: &Footprint) -> bool {
        let mut writes = false;
        print.parts(|touch, start, end, _| {
            writes |= touch.writes && start < self.page.end && self.page.start < end;
        });
        writes
    }

    /// What of this races with work that has left a footprint.
    fn against(&self, print: &Footprint) -> Vec<(Range<u64>, Call)> {
        if self.changed.is_empty() {
            let all = print.writes_all(self.page.start, self.page.end);
            return match all {
                true => vec![(self.page.clone(), Call::HostAccess)],
                false => Vec::new(),
            };
        }
        let mut found = Vec::new();
        for changed in &self.changed {
            let mut meets = false;
            print.parts(|_, start, end, _| meets |= start < changed.end && changed.start < end);
            if meets {
                found.push((changed.clone(), Call::HostWrite));
            }
        }
        found
    }
}

fn ranges(piece: &Piece) -> Vec<Range<u64>> {
    let mut all = Vec::new();
    if let Some(print) = footprint(piece) {
        print.parts(|_, start, end, _| all.push(start..end));
    }
    all
}

fn footprint(piece: &Piece) -> Option<&Footprint> {
    piece.touched.followed().map(|followed| &followed.all)
}

/// How the host touches memory.
fn how(call: Call) -> Touch {
    Touch {
        // An access may be a read.
        writes: call == Call::HostWrite,
        wide: false,
        bytes: u32::MAX,
        site: call as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Maker, Stream, StreamKind, Streams};

    const PAGE: u64 = 4096;

    const READ: Touch = Touch {
        writes: false,
        wide: false,
        bytes: 4,
        site: 1,
    };
    const WRITE: Touch = Touch {
        writes: true,
        ..READ
    };

    /// Streams with work in flight, each in a stream of its own, that has touched a range or may have set a flag.
    fn after(all: &[Option<(Touch, Range<u64>)>]) -> Streams {
        let mut streams = Streams::default();
        streams.in_flight.watch(0..1000 * PAGE);
        for (id, work) in (1..).zip(all) {
            let Some((touch, range)) = work else {
                let mut followed = Followed {
                    signals_host: true,
                    ..Followed::default()
                };
                assert!(streams.in_flight.take(&mut followed).is_none());
                continue;
            };
            let mut all = Footprint::default();
            all.touch(*touch, 0, range.start, range.end - range.start);
            if let Some(host) = streams.in_flight.outside(&all) {
                let stream = Stream {
                    id,
                    context: 0,
                    kind: StreamKind::NonBlocking,
                };
                let at = streams.launch(&stream, "", false);
                let piece = Piece::new(at, Maker::Call, Followed::from(host).into());
                streams.in_flight.add(piece);
            }
        }
        streams
    }

    fn found(streams: &Streams, page: u64, changed: Option<Range<u64>>) -> usize {
        let touch = HostTouch {
            page: page * PAGE..(page + 1) * PAGE,
            changed: changed.into_iter().collect(),
        };
        let races = streams.in_flight.races(std::slice::from_ref(&touch)).len();
        assert!(races == 0 || streams.in_flight.undecided(&[touch]) == 0);
        races
    }

    fn undecided(streams: &Streams, page: u64, changed: Option<Range<u64>>) -> u64 {
        let touch = HostTouch {
            page: page * PAGE..(page + 1) * PAGE,
            changed: changed.into_iter().collect(),
        };
        streams.in_flight.undecided(&[touch])
    }

    #[test]
    fn only_what_is_certain_races() {
        let (first, half) = (2000 * PAGE, PAGE / 2);
        let writes = after(&[Some((WRITE, first..first + PAGE + half))]);
        // The first page is written as a whole, the second one in part.
        assert_eq!(found(&writes, 2000, None), 1);
        assert_eq!(found(&writes, 2001, None), 0);
        let second = first + PAGE;
        let changes = |range: Range<u64>| found(&writes, 2001, Some(range));
        assert_eq!(changes(second + half - 4..second + half), 1);
        assert_eq!(changes(second + half..second + half + 4), 0);
        // The host may have read what is written of the second page, also where it has changed other bytes.
        assert_eq!(undecided(&writes, 2001, None), 1);
        let other = second + half..second + half + 4;
        assert_eq!(undecided(&writes, 2001, Some(other)), 1);
        assert_eq!(undecided(&writes, 2002, None), 0);
        // What is only read may be read.
        let reads = after(&[Some((READ, first..first + PAGE))]);
        assert_eq!(found(&reads, 2000, None), 0);
        assert_eq!(undecided(&reads, 2000, None), 0);
        assert_eq!(found(&reads, 2000, Some(first..first + 1)), 1);
        // The host cannot access the device's own memory.
        let own = after(&[Some((WRITE, 0..PAGE))]);
        assert!(own.in_flight.is_empty());
    }

    #[test]
    fn work_that_may_signal_the_host_is_not_judged_nor_what_is_before_it() {
        let data = 2000 * PAGE;
        let work = || Some((WRITE, data..data + PAGE));
        let mut streams = after(&[work(), None]);
        assert!(streams.in_flight.is_empty());
        let news = streams.in_flight.news();
        assert!(news.over && news.unjudged);
        streams = after(&[None]);
        assert!(!streams.in_flight.news().unjudged);
        streams = after(&[None, work()]);
        assert_eq!(found(&streams, 2000, None), 1);
        let memory = streams.in_flight.memory();
        assert_eq!(memory.first(), Some(&(data..data + PAGE)));
        assert_eq!(streams.in_flight.news().touched, memory);
        assert_eq!(streams.in_flight.news().touched, []);
    }
}
