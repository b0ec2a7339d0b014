//! Who has accessed each byte of one word, as far as a later access may race with it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::clock::Time;
use super::copy::Part;
use super::crowd::List;
use super::entry::{Accessor, Class, Entry, Rule, Strength};
use super::made::Made;
use super::observed::{Observed, Seen};
use super::thread::{Epoch, Id, Party, Shape, Thread};
use super::{Enough, Race};

/// Accesses by different instructions that a word remembers although a later one says all that a
/// race is decided by: a report wants to name them.
pub(crate) const NAMED: usize = 12;

/// Accesses that a strong write looks at for one that it stands for.
const RECENT: usize = 4;

/// The last strong write of a word.
#[derive(Clone, Copy, Debug)]
struct Last {
    order: Observed,
    start: u8,
    bytes: u8,
    writer: Party,
    time: Time,
}

/// What strong writes leave behind in a word.
#[derive(Clone, Debug, Default)]
struct Strong {
    /// The last strong writes of its scalars, which do not overlap.
    last: Vec<Last>,
    /// Who has observed which.
    seen: Vec<Seen>,
    /// Records of `seen` at which to look for those that nobody needs.
    crowd: u32,
    /// First byte in the line, and bytes, of the accesses of `wide`.
    at: (u8, u8),
    /// Loads, and writes, of gpu scope or wider to one location: none of them race with one another.
    wide: [List; 2],
}

/// The accesses of a word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    /// Loads, and writes, but for those kept with `strong`.
    lists: [List; 2],
    strong: Option<Box<Strong>>,
}

/// A race of a lane with an earlier access by another one.
pub(crate) struct Hit<'a> {
    pub(crate) rule: Rule,
    pub(crate) earlier: &'a Entry,
    /// At least one.
    pub(crate) earlier_lanes: u32,
    pub(crate) lane: u32,
    /// The bytes of the word that both access, one bit each.
    pub(crate) bytes: u8,
    /// See [`Race::of_many`](super::Race::of_many).
    pub(crate) of_many: bool,
}

/// How an access reads strong writes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reads {
    /// It reads what it observes in all its words.
    pub(crate) continues: bool,
    /// Its thread gets to see what it observes.
    pub(crate) sees: bool,
}

/// An earlier access to the same bytes.
#[derive(Clone, Copy)]
struct Earlier<'a> {
    entry: &'a Entry,
    /// Those of its lanes that are not ordered before the later access.
    lanes: u32,
    /// See [`Race::of_many`].
    of_many: bool,
}

/// Called for races.
pub(crate) type Found<'a> = dyn FnMut(Hit<'_>) -> Enough + 'a;

/// An access of lanes meets a copy that nobody has waited for, or one of the two reads read-only data.
fn unwaited(
    accessor: &Accessor<'_>,
    access: &Entry,
    Earlier { entry, of_many, .. }: Earlier<'_>,
    found: &mut Found<'_>,
) -> Enough {
    let read_only = access.meets_read_only(entry);
    let mut enough = Enough::OfSite;
    for lane in super::each(access.lanes) {
        let own = entry.copy == access.copy && entry.warp.warp() == accessor.warp;
        let others = entry.lanes & !(u32::from(own) << lane);
        let (rule, by) = match read_only {
            true => (Rule::ReadOnly, entry.lanes),
            false => (Rule::Asynchronous, others),
        };
        enough = match by {
            0 => Enough::Never,
            _ => enough.min(found(Hit {
                rule,
                earlier: entry,
                earlier_lanes: by,
                lane,
                bytes: entry.mask & access.mask,
                of_many,
            })),
        };
    }
    enough
}

/// What became of an access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// It has put an end to a strong write that could be observed.
    pub(crate) displaced: bool,
}

impl Word {
    /// An access of lanes to bytes of the word: checked against what is known, then remembered.
    /// Only loads may be of several lanes.
    pub(crate) fn access(
        &mut self,
        accessor: &Accessor<'_>,
        mut access: Entry,
        reads: Reads,
        chains: &mut u32,
        found: &mut Found<'_>,
    ) -> Outcome {
        let wide = self.is_wide(&access.class);
        let many = self.check(accessor, &access, wide, found);
        let me = accessor.warp.lane(access.lanes.trailing_zeros());
        let class = access.class;
        let before = self
            .observed(accessor.shape, me, &class)
            .filter(|_| reads.continues);
        let mut outcome = Outcome::default();
        let mut observed = before;
        if class.writes {
            outcome.displaced = self.displace(&class);
            observed = self.write(me, &access, before, chains);
            access.order = observed.unwrap_or_default();
        }
        if let Some(order) = observed.filter(|_| reads.sees) {
            self.see(accessor, access.lanes, access.time, order);
        }
        if class.writes && access.copy == 0 && !many {
            access.made = self.replace(accessor, &access, wide);
        }
        if let Some(maker) = accessor.maker {
            (access.warp, access.time) = (Id::of(maker.thread.warp()), maker.time);
        }
        self.lists(wide)[usize::from(class.writes)].push(access, accessor.crowd);
        outcome
    }

    /// True when the access is one of those that are kept with `strong`.
    fn is_wide(&mut self, class: &Class) -> bool {
        if !class.is_wide() {
            return false;
        }
        let strong = self.strong.get_or_insert_default();
        if strong.wide.iter().all(|list| list.is_empty()) {
            strong.at = (class.start, class.bytes);
        }
        strong.at == (class.start, class.bytes)
    }

    /// Finds what an access races with, calling `found` for each earlier access and lane. True if some
    /// of them were left out; see [`List::look`].
    fn check(
        &self,
        accessor: &Accessor<'_>,
        access: &Entry,
        wide: bool,
        found: &mut Found<'_>,
    ) -> bool {
        let strong = self.strong.iter().filter(|_| !wide);
        let kept = [&self.lists]
            .into_iter()
            .chain(strong.map(|strong| &strong.wide));
        // Loads do not conflict with loads.
        let first = usize::from(!access.class.writes);
        let lists = kept.flat_map(|[loads, writes]| {
            let lists = [writes, loads];
            lists.into_iter().take(2 - first)
        });
        let mut left_out = false;
        for list in lists {
            left_out |= list.look(|entry, of_many| {
                if entry.mask & access.mask == 0 {
                    return Enough::Never;
                }
                let earlier = |lanes| Earlier {
                    entry,
                    lanes,
                    of_many,
                };
                if access.meets_read_only(entry) || entry.copy != 0 {
                    return unwaited(accessor, access, earlier(entry.lanes), found);
                }
                match entry.unordered(accessor) {
                    0 => Enough::Never,
                    lanes => self.judge(accessor, access, earlier(lanes), found),
                }
            });
        }
        left_out
    }

    /// Finds what an access of another launch races with, whatever it is to this one: data that this
    /// launch reads as read-only may be written by what is ordered behind it.
    pub(crate) fn concurrent(
        &self,
        accessor: &Accessor<'_>,
        access: &Entry,
        found: &mut Found<'_>,
    ) {
        let strong = self.strong.iter().map(|strong| &strong.wide);
        let kept = [&self.lists].into_iter().chain(strong);
        let conflicting = kept.flat_map(|[loads, writes]| {
            let loads = Some(loads).filter(|_| access.class.writes);
            [Some(writes), loads].into_iter().flatten()
        });
        for entry in conflicting.flat_map(List::iter) {
            let lanes = match entry.copy {
                0 => entry.unordered(accessor),
                // It has never been waited for.
                _ => entry.lanes,
            };
            if entry.mask & access.mask != 0 && lanes != 0 {
                let of_many = false;
                let earlier = Earlier {
                    entry,
                    lanes,
                    of_many,
                };
                self.judge(accessor, access, earlier, found);
            }
        }
    }

    /// Decides about an earlier access that is not ordered before `access`. Enough is known of its
    /// like if it is for each lane of `access`.
    fn judge(
        &self,
        accessor: &Accessor<'_>,
        access: &Entry,
        earlier: Earlier<'_>,
        found: &mut Found<'_>,
    ) -> Enough {
        let Earlier { entry, of_many, .. } = earlier;
        let mut enough = Enough::OfSite;
        for lane in super::each(access.lanes) {
            let me = accessor.warp.lane(lane);
            let own = u32::from(entry.warp.warp() == accessor.warp);
            let others = earlier.lanes & !(own << lane);
            if others == 0 {
                enough = Enough::Never;
                continue;
            }
            let other = others.trailing_zeros();
            let them = accessor.copies.issuer(entry.warp.warp().lane(other));
            let Some(mut rule) = access.class.against(me, &entry.class, them, accessor.shape)
            else {
                enough = Enough::Never;
                continue;
            };
            if entry.warp.makes_copies() {
                rule = Rule::Asynchronous;
            }
            let unseen = match entry.order.chain {
                0 => others,
                chain => entry.beyond(others, self.has_seen(me, accessor, chain)),
            };
            enough = match unseen {
                0 => Enough::Never,
                _ => enough.min(found(Hit {
                    rule,
                    earlier: entry,
                    earlier_lanes: unseen,
                    lane,
                    bytes: entry.mask & access.mask,
                    of_many,
                })),
            };
        }
        enough
    }

    /// How far a thread has observed a chain of writes, or comes after a thread that has.
    ///
    /// PTX ISA, "Causality Order": what comes, in base causality order, after an operation that has
    /// observed a write comes after that write.
    fn has_seen(&self, me: Thread, accessor: &Accessor<'_>, chain: u32) -> u32 {
        let seen = self.strong.iter().flat_map(|strong| &strong.seen);
        let before = |seen: &&Seen| {
            let (warp, lane) = (seen.thread.warp(), 1 << seen.thread.lane);
            seen.thread == me
                || accessor
                    .times
                    .unordered(accessor.warp, warp, lane, seen.time)
                    == 0
        };
        let mine = seen.filter(|seen| seen.order.chain == chain).filter(before);
        mine.map(|seen| seen.order.index).max().unwrap_or(0)
    }

    /// Those of some lanes, which have made the earlier write of a race, whose write nobody has observed of whom `knows`
    /// says that they come before.
    pub(crate) fn unseen(
        &self,
        race: &Race,
        lanes: u32,
        knows: &dyn Fn(Thread, Time) -> bool,
    ) -> u32 {
        let Race { time, order, .. } = *race;
        if order.chain == 0 {
            return lanes;
        }
        let warp = Id::of(race.by);
        let same = |entry: &&Entry| (entry.warp, entry.time, entry.order) == (warp, time, order);
        let Some(entry) = self.writes().find(same) else {
            return lanes;
        };
        let seen = self.strong.iter().flat_map(|strong| &strong.seen);
        let seen = seen.filter(|seen| seen.order.chain == order.chain);
        let position = seen.filter(|seen| knows(seen.thread, seen.time));
        let position = position.map(|seen| seen.order.index).max().unwrap_or(0);
        lanes & !entry.lanes | entry.beyond(lanes & entry.lanes, position)
    }

    fn see(&mut self, accessor: &Accessor<'_>, lanes: u32, time: Time, order: Observed) {
        let strong = self.strong.get_or_insert_default();
        for lane in super::each(lanes) {
            let thread = accessor.warp.lane(lane);
            let same = |old: &&mut Seen| {
                (old.thread, old.time, old.order.chain) == (thread, time, order.chain)
            };
            match strong.seen.iter_mut().rev().take(4).find(same) {
                Some(old) => old.order = old.order.max(order),
                None => strong.seen.push(Seen {
                    thread,
                    time,
                    order,
                }),
            }
        }
        if strong.seen.len() as u32 > strong.crowd.max(accessor.crowd) {
            let last = strong.last.iter().map(|last| last.order);
            let lists = [&self.lists[1], &strong.wide[1]];
            let entries = lists.into_iter().flat_map(List::iter);
            let mut chains: Vec<u32> = entries
                .map(|entry| entry.order)
                .chain(last)
                .map(|order| order.chain)
                .collect();
            chains.sort_unstable();
            let alive = |chain: u32| chains.binary_search(&chain).is_ok();
            Seen::compact(&mut strong.seen, alive, accessor.met);
            let left = strong.seen.len() as u32;
            strong.crowd = left + left.max(2 * accessor.crowd);
        }
    }

    /// All lists of accesses.
    fn all(&mut self) -> impl Iterator<Item = &mut List> {
        let strong = self.strong.iter_mut().flat_map(|strong| &mut strong.wide);
        self.lists.iter_mut().chain(strong)
    }

    /// Drops what a write stands for. Gives when that was made, if it was the same.
    fn replace(&mut self, accessor: &Accessor<'_>, access: &Entry, wide: bool) -> Made {
        let mut made = access.made;
        let many = self.len() > NAMED;
        let mut gone = |entry: &Entry| {
            let own = match entry.warp == access.warp {
                true => access.lanes,
                false => 0,
            };
            let gone = entry.copy == 0
                && entry.mask & !access.mask == 0
                && (many || entry.site == access.site)
                && (access
                    .class
                    .covers(accessor.warp, &entry.class, entry.warp.warp()))
                && (access.class.strength == Strength::Weak
                    || entry.order.chain == access.order.chain)
                && entry.unordered(accessor) & !own == 0;
            if gone && entry.repeats(access) {
                made = made.and(entry.made);
            }
            gone
        };
        if access.class.strength == Strength::Weak {
            self.all()
                .for_each(|list| list.retain(|entry| !gone(entry)));
        } else {
            // It stands for few others, if any, and those are recent.
            let [_, writes] = self.lists(wide);
            if let Some(at) = writes.last(RECENT, gone) {
                writes.remove(at);
            }
        }
        made
    }

    /// The lists that accesses go to which are kept with `strong`, or not.
    fn lists(&mut self, wide: bool) -> &mut [List; 2] {
        match &mut self.strong {
            Some(strong) if wide => &mut strong.wide,
            _ => &mut self.lists,
        }
    }

    /// What threads have observed.
    pub(crate) fn seen(&self) -> &[Seen] {
        self.strong.as_ref().map_or(&[], |strong| &strong.seen)
    }

    /// The writes.
    pub(crate) fn writes(&self) -> impl Iterator<Item = &Entry> {
        let strong = self.strong.iter().map(|strong| &strong.wide[1]);
        let lists = core::iter::once(&self.lists[1]).chain(strong);
        lists.flat_map(List::iter)
    }

    /// The sites of the last strong write by one thread and of the last strong read by another, as far as they are
    /// remembered.
    pub(crate) fn flag(&self, writer: Thread, reader: Thread) -> [Option<u32>; 2] {
        let strong = |writes: usize| {
            let wide = self.strong.iter().map(move |strong| &strong.wide[writes]);
            let lists = core::iter::once(&self.lists[writes]).chain(wide);
            let entries = lists.flat_map(List::iter);
            entries.filter(|entry| matches!(entry.class.strength, Strength::Strong(_)))
        };
        let by = |thread: Thread| {
            move |entry: &&Entry| {
                entry.warp == Id::of(thread.warp()) && entry.lanes >> thread.lane & 1 == 1
            }
        };
        let site = |entry: &Entry| entry.site;
        let written = strong(1).filter(by(writer)).last().map(site);
        let read = strong(0).filter(by(reader)).last();
        // An atomic reads too.
        let read = read.or_else(|| strong(1).filter(by(reader)).last());
        [written, read.map(site)]
    }

    /// Takes in an access that has been checked elsewhere.
    pub(crate) fn enter(&mut self, access: Entry) {
        self.lists[usize::from(access.class.writes)].push(access, u32::MAX);
    }

    /// See [`History::complete`](super::history::History::complete).
    pub(crate) fn complete(&mut self, part: Part, by: Epoch) {
        self.lists[usize::from(part.writes)].complete(part, by);
    }

    /// Accesses kept.
    pub(crate) fn len(&self) -> usize {
        let strong = self.strong.iter().flat_map(|strong| &strong.wide);
        let lists = self.lists.iter().chain(strong);
        lists.map(List::len).sum()
    }

    /// The strong write that an access observes.
    fn observed(&self, shape: &Shape, me: Thread, class: &Class) -> Option<Observed> {
        self.last(shape, me, class).map(|last| last.order)
    }

    /// Whose strong write an access observes, and that thread's own time then.
    pub(crate) fn writer(&self, shape: &Shape, me: Thread, class: &Class) -> Option<Epoch> {
        let last = self.last(shape, me, class)?;
        Some(Epoch {
            thread: last.writer.thread,
            time: last.time,
        })
    }

    fn last(&self, shape: &Shape, me: Thread, class: &Class) -> Option<&Last> {
        let Strength::Strong(scope) = class.strength else {
            return None;
        };
        let reader = Party { thread: me, scope };
        self.strong.as_ref()?.last.iter().find(|last| {
            (last.start, last.bytes) == (class.start, class.bytes)
                && (last.writer.thread == me || shape.mutual(last.writer, reader))
        })
    }

    /// True when an access observes a strong write.
    pub(crate) fn observes(&self, shape: &Shape, me: Thread, class: &Class) -> bool {
        self.observed(shape, me, class).is_some()
    }

    /// What a write overlaps can no longer be observed. True if it could.
    fn displace(&mut self, class: &Class) -> bool {
        let Some(strong) = &mut self.strong else {
            return false;
        };
        let end = |start: u8, bytes: u8| u32::from(start) + u32::from(bytes);
        let count = strong.last.len();
        strong.last.retain(|last| {
            end(last.start, last.bytes) <= u32::from(class.start)
                || end(class.start, class.bytes) <= u32::from(last.start)
        });
        strong.last.len() < count
    }

    /// Where a write that follows `before`, if any, stands in the observation order.
    fn write(
        &mut self,
        me: Thread,
        access: &Entry,
        before: Option<Observed>,
        chains: &mut u32,
    ) -> Option<Observed> {
        let class = access.class;
        let Strength::Strong(scope) = class.strength else {
            return None;
        };
        let order = match before {
            Some(Observed { chain, index }) => Observed {
                chain,
                index: index + 1,
            },
            _ => {
                *chains += 1;
                Observed {
                    chain: *chains,
                    index: 1,
                }
            }
        };
        self.strong.get_or_insert_default().last.push(Last {
            order,
            start: class.start,
            bytes: class.bytes,
            writer: Party { thread: me, scope },
            time: access.time,
        });
        Some(order)
    }
}
