//! The memory that a piece of work has touched.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// One way in which a piece of work touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Touch {
    /// It writes.
    pub writes: bool,
    /// Strong, and its scope includes threads of other pieces of work on the device.
    pub wide: bool,
    /// Bytes of one element; those of strong accesses are aligned.
    pub bytes: u32,
    /// What does it.
    pub site: u32,
}

impl Touch {
    /// Whether accesses to the same bytes race when nothing orders them: one writes, and they are not
    /// both strong, wide enough and of one size.
    pub fn conflicts(&self, other: &Touch) -> bool {
        let strong = self.wide && other.wide && self.bytes == other.bytes;
        (self.writes || other.writes) && !strong
    }
}

/// Adjoining bytes, touched by threads that follow one another.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    /// The first byte that `thread` has touched: at `start`, or before it where that part has gone.
    first: u64,
    thread: u64,
}

impl Run {
    fn thread_at(&self, address: u64, bytes: u32) -> u64 {
        self.thread + (address - self.first) / u64::from(bytes.max(1))
    }
}

/// Runs by one touch.
#[derive(Clone, Debug, Default)]
struct Runs {
    /// In order and apart, up to `sorted`.
    runs: Vec<Run>,
    sorted: usize,
}

/// Runs that are put in order at once.
const BATCH: usize = 1 << 12;

impl Runs {
    fn push(&mut self, run: Run) {
        self.runs.push(run);
        if self.runs.len() >= BATCH.max(2 * self.sorted) {
            self.sort();
        }
    }

    /// Puts the runs in order, each byte in the first that has it.
    fn sort(&mut self) {
        if self.sorted == self.runs.len() {
            return;
        }
        // Stable: of runs that start together, the first one's threads stay.
        self.runs.sort_by_key(|run| run.start);
        let mut end = 0;
        self.runs.retain_mut(|run| {
            run.start = run.start.max(end);
            end = end.max(run.end);
            run.start < run.end
        });
        self.sorted = self.runs.len();
    }

    /// The bytes that both have, as ranges, each with the two runs.
    fn meet(&self, other: &Runs, mut found: impl FnMut(u64, u64, &Run, &Run)) {
        let (mut mine, mut theirs) = (self.runs.iter().peekable(), other.runs.iter().peekable());
        while let (Some(&a), Some(&b)) = (mine.peek(), theirs.peek()) {
            let (start, end) = (a.start.max(b.start), a.end.min(b.end));
            if start < end {
                found(start, end, a, b);
            }
            match a.end <= b.end {
                true => mine.next(),
                false => theirs.next(),
            };
        }
    }

    /// Takes away the bytes that the other has. Both are in order.
    fn subtract(&mut self, other: &Runs) {
        let (Some(mine), Some(theirs)) = (self.range(), other.range()) else {
            return;
        };
        if mine.1 <= theirs.0 || theirs.1 <= mine.0 {
            return;
        }
        let mut kept = Vec::new();
        let mut from = 0;
        for run in &self.runs {
            from += other.runs[from..].partition_point(|their| their.end <= run.start);
            let mut start = run.start;
            for their in other.runs[from..]
                .iter()
                .take_while(|their| their.start < run.end)
            {
                if start < their.start {
                    let end = their.start;
                    kept.push(Run { start, end, ..*run });
                }
                start = start.max(their.end);
            }
            if start < run.end {
                kept.push(Run { start, ..*run });
            }
        }
        self.sorted = kept.len();
        self.runs = kept;
    }

    /// First and last byte of all.
    fn range(&self) -> Option<(u64, u64)> {
        Some((self.runs.first()?.start, self.runs.last()?.end))
    }
}

/// Two pieces of work have touched the same bytes, in ways that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// What the one has done.
    pub one: Touch,
    /// What the other has done.
    pub other: Touch,
    /// One such byte.
    pub address: u64,
    /// The first and the last of them.
    pub span: [u64; 2],
    /// How many bytes there are.
    pub bytes: u64,
    /// What touched that byte in `one`, as it was passed to [`Footprint::touch`].
    pub by_one: u64,
    /// What touched it in `other`.
    pub by_other: u64,
}

/// The memory that a piece of work has touched, to the byte, by each of its accesses.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    touches: BTreeMap<Touch, Runs>,
    /// Memory that it has got while it ran.
    fresh: Vec<(u64, u64)>,
}

impl Footprint {
    /// Consecutive threads from `thread` on touch consecutive elements, `bytes` bytes in all.
    pub fn touch(&mut self, touch: Touch, thread: u64, address: u64, bytes: u64) {
        let run = Run {
            start: address,
            end: address.saturating_add(bytes),
            first: address,
            thread,
        };
        if run.start < run.end {
            self.touches.entry(touch).or_default().push(run);
        }
    }

    /// Lanes touch memory, each one element at its address; `thread` is lane 0.
    pub fn touch_lanes(
        &mut self,
        touch: Touch,
        thread: u64,
        lanes: u32,
        address: impl Fn(u32) -> u64,
    ) {
        let bytes = u64::from(touch.bytes);
        // The run so far: its first lane, and what it spans.
        let mut open: Option<(u32, u64, u64)> = None;
        for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
            let at = address(lane);
            open = match open {
                // Lanes that are left out would leave the others' numbers wrong.
                Some((first, start, end))
                    if at == end && at == start + u64::from(lane - first) * bytes =>
                {
                    Some((first, start, end.saturating_add(bytes)))
                }
                Some((_, start, end)) if at >= start && at.saturating_add(bytes) <= end => open,
                before => {
                    if let Some((first, start, end)) = before {
                        self.touch(touch, thread + u64::from(first), start, end - start);
                    }
                    Some((lane, at, at.saturating_add(bytes)))
                }
            };
        }
        if let Some((first, start, end)) = open {
            self.touch(touch, thread + u64::from(first), start, end - start);
        }
    }

    /// The work has got memory that others had before it: what it has to do with that is ordered.
    pub fn got(&mut self, address: u64, bytes: u64) {
        if bytes > 0 {
            self.fresh.push((address, address.saturating_add(bytes)));
        }
    }

    /// Memory is given back: nobody who gets it later has to do with this work.
    pub fn forget(&mut self, address: u64, bytes: u64) {
        let gone = (address, address.saturating_add(bytes));
        for runs in self.touches.values_mut() {
            runs.sort();
            let mut kept = Vec::new();
            for run in &runs.runs {
                for (start, end) in [
                    (run.start, run.end.min(gone.0)),
                    (run.start.max(gone.1), run.end),
                ] {
                    if start < end {
                        kept.push(Run { start, end, ..*run });
                    }
                }
            }
            runs.sorted = kept.len();
            runs.runs = kept;
        }
        self.touches.retain(|_, runs| !runs.runs.is_empty());
    }

    /// Whether every byte of a range was written. It is settled.
    pub fn writes_all(&self, start: u64, end: u64) -> bool {
        let mut written = Vec::new();
        self.parts(|touch, first, behind, _| {
            if touch.writes && first < end && start < behind {
                written.push((first, behind));
            }
        });
        written.sort_unstable();
        let mut reached = start;
        for (first, behind) in written {
            if first > reached {
                break;
            }
            reached = reached.max(behind);
        }
        reached >= end
    }

    /// Whether nothing outside of a range was touched.
    pub fn lies_in(&self, range: &core::ops::Range<u64>) -> bool {
        let inside = |run: &Run| range.start <= run.start && run.end <= range.end;
        self.touches.values().all(|of| of.runs.iter().all(inside))
    }

    /// How much there is to remember; one is 32 bytes.
    pub fn len(&self) -> usize {
        self.touches.values().map(|runs| runs.runs.len()).sum()
    }

    /// Whether nothing was touched.
    pub fn is_empty(&self) -> bool {
        self.touches.is_empty()
    }

    /// Forgets the bytes that a later piece of work, which follows this one, has touched in the same way. What is not
    /// ordered with this work is not ordered with that one either, and races with it there. Both are settled.
    pub fn leave_to(&mut self, later: &Footprint) {
        // Of memory that it got while it ran, a piece says nothing about who had it before.
        if !later.fresh.is_empty() {
            return;
        }
        for (touch, mine) in &mut self.touches {
            if let Some(theirs) = later.touches.get(touch) {
                mine.subtract(theirs);
            }
        }
        self.touches.retain(|_, runs| !runs.runs.is_empty());
    }

    /// Covers what another footprint has too, as bytes alone: who touched them, and at which site, is forgotten. It is
    /// settled then.
    pub fn cover(&mut self, other: &Footprint) {
        let all = core::mem::take(&mut self.touches);
        for (touch, runs) in all.into_iter().chain(other.touches.clone()) {
            let of = self.touches.entry(Touch { site: 0, ..touch }).or_default();
            of.runs.extend(runs.runs);
        }
        for runs in self.touches.values_mut() {
            runs.runs.sort_unstable_by_key(|run| run.start);
            runs.runs.dedup_by(|next, run| {
                let adjoins = next.start <= run.end;
                if adjoins {
                    run.end = run.end.max(next.end);
                }
                adjoins
            });
            runs.sorted = runs.runs.len();
        }
    }

    /// Puts everything in order, to be compared.
    pub fn settle(&mut self) {
        self.touches.values_mut().for_each(Runs::sort);
        self.fresh.sort_unstable();
        self.fresh.dedup();
    }

    /// The parts of a range that the work has not got while it ran.
    fn old(&self, start: u64, end: u64, mut part: impl FnMut(u64, u64)) {
        let mut from = start;
        for &(low, high) in self.fresh.iter().filter(|of| of.0 < end && start < of.1) {
            if from < low {
                part(from, low);
            }
            from = from.max(high);
        }
        if from < end {
            part(from, end);
        }
    }

    /// Calls `part` for each range of bytes that one touch has touched, but for memory that the work got
    /// while it ran, with the first byte, the last byte's successor, and the thread at the first one. It is
    /// settled.
    pub fn parts(&self, mut part: impl FnMut(&Touch, u64, u64, u64)) {
        for (touch, runs) in &self.touches {
            for run in &runs.runs {
                self.old(run.start, run.end, |start, end| {
                    part(touch, start, end, run.thread_at(start, touch.bytes));
                });
            }
        }
    }

    /// Where this work, which has run first, and work that nothing orders with it race: one meeting
    /// for each pair of touches. Both are settled.
    pub fn meet(&self, other: &Footprint, mut found: impl FnMut(Meeting)) {
        for (one, mine) in &self.touches {
            let Some((low, high)) = mine.range() else {
                continue;
            };
            for (second, theirs) in &other.touches {
                let apart = theirs
                    .range()
                    .is_none_or(|(start, end)| end <= low || high <= start);
                if apart || !one.conflicts(second) {
                    continue;
                }
                let mut meeting: Option<Meeting> = None;
                mine.meet(theirs, |start, end, a, b| {
                    other.old(start, end, |start, end| {
                        let first = meeting.get_or_insert_with(|| Meeting {
                            one: *one,
                            other: *second,
                            address: start,
                            span: [start; 2],
                            bytes: 0,
                            by_one: a.thread_at(start, one.bytes),
                            by_other: b.thread_at(start, second.bytes),
                        });
                        first.bytes += end - start;
                        first.span[1] = end - 1;
                    });
                });
                meeting.into_iter().for_each(&mut found);
            }
        }
    }
}
