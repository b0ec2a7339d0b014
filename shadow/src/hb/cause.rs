//! What is missing between two accesses that race: the nearest thing to an order that was there.

use alloc::vec::Vec;

use events::{Acquire, Scope};

use super::clock::Time;
use super::cta::Heard;
use super::history::WORD;
use super::release::Fence;
use super::thread::{Epoch, Id, Party, Thread};
use super::{Access, Engine, Location, MemoryOrder, Race, Rule};

/// What would have ordered the accesses of a race, had it been right.
pub type Cause = events::Cause<Thread>;

/// A word by which one thread has signalled another one to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Where it is.
    pub location: Location,
    /// The thread that has written it.
    pub writer: Thread,
    /// Site of that write, if it is remembered.
    pub written: Option<u32>,
    /// Site of the read by the other one, if it is remembered.
    pub read: Option<u32>,
}

/// Flags of which it is known what their last writers knew.
const STRONG_STORES: usize = 4096;

/// A strong store, or an atomic that writes what a loop waits for, and what its thread knew of its own CTA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StrongStore {
    writer: Epoch,
    /// Of the other lanes of the warp, and of the other threads.
    warp: Time,
    cta: Time,
    /// The writer's own time at the release that goes with the store; 0 if there is none.
    released: Time,
    /// The same of one of gpu scope or wider.
    published: Time,
    /// The number of earlier strong stores to the location.
    number: u32,
}

/// A strong store of a thread to a location.
#[derive(Clone, Copy, Debug)]
struct OwnStore {
    store: StrongStore,
    /// The store itself is a release.
    releases: bool,
    site: u32,
}

/// The last two strong stores of a thread to a location. At the counter of a barrier that is used again, the thread may have
/// arrived once more when others go on from its first arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnStores {
    last: OwnStore,
    before: Option<OwnStore>,
}

impl OwnStores {
    fn all(&self) -> impl Iterator<Item = &OwnStore> {
        self.before.iter().chain([&self.last])
    }
}

/// A flag that a thread has written, as others may have observed it.
#[derive(Clone, Copy, Debug)]
struct WrittenFlag {
    key: u64,
    writer: Thread,
    /// See [`StrongStore`].
    published: Time,
}

/// The later access of a race, when it was made.
#[derive(Clone, Copy, Debug)]
pub struct LaterAccess {
    /// The time of its thread.
    pub time: Time,
    /// Some thread of its CTA knew of the earlier access.
    pub earlier_known: bool,
}

impl StrongStore {
    /// The thread knew what another thread of its CTA had done at a time.
    fn knew(&self, of: Thread, time: Time) -> bool {
        let me = self.writer.thread;
        of == me && time <= self.writer.time
            || of.cta == me.cta && (time <= self.cta || of.warp == me.warp && time <= self.warp)
    }

    /// What the thread knew so of another one goes with the store, for all threads of the device.
    fn publishes(&self, of: Thread, time: Time) -> bool {
        match of == self.writer.thread {
            true => time <= self.published,
            false if time <= self.cta => self.cta < self.published,
            false => self.warp < self.published,
        }
    }
}

/// What comes near to an order: the writer and the reader of the flag are not always the racing threads.
struct Nearest {
    cause: Cause,
    location: Option<Location>,
    writer: Thread,
    reader: Thread,
    /// Site of the write, where that is no longer the last one of the location.
    written: Option<u32>,
}

impl Engine {
    /// What is missing between the accesses of a race that was found just now; none when nothing
    /// comes near.
    pub fn cause(&self, race: &Race) -> Option<Cause> {
        self.close(race).map(|of| of.cause)
    }

    /// For a race that was found just now: the earlier access is an asynchronous copy by another thread, and the later one
    /// is not even ordered behind the instruction that started it. Always false for copies that end with an mbarrier.
    pub fn precedes_issue(&self, race: &Race) -> bool {
        let lane = 1 << race.earlier.thread.lane;
        race.rule == Rule::Asynchronous
            && race.earlier.thread != race.later.thread
            && !Id::of(race.by).makes_copies()
            && self.unordered(race.later.thread, race.by, lane, race.time) != 0
    }

    /// The flag or counter that comes nearest to ordering them, in the same way.
    pub fn flag(&self, race: &Race) -> Option<Flag> {
        let Nearest {
            location,
            writer,
            reader,
            written,
            ..
        } = self.close(race)?;
        let flag = self.between(location?, writer, reader);
        Some(Flag {
            written: written.or(flag.written),
            ..flag
        })
    }

    /// A word as the flag of a race, with who has written and read it as far as this engine remembers.
    pub(crate) fn named(&self, race: &Race, cause: Cause, location: Location) -> Flag {
        self.between(location, writer(race, cause), race.later.thread)
    }

    fn between(&self, location: Location, writer: Thread, reader: Thread) -> Flag {
        let history = self.memory.known(location);
        let sites = history.map(|history| history.flag(location.key() / WORD, writer, reader));
        let [written, read] = sites.unwrap_or_default();
        Flag {
            location,
            writer,
            written,
            read,
        }
    }

    /// A thread has made a strong store, or an atomic that counts or writes what a loop waits for.
    pub(crate) fn stored(&mut self, me: Thread, key: u64, access: &Access) {
        let clocks = self.ctas.get(&me.cta).and_then(|cta| cta.known(me.warp));
        let Some(view) = clocks.map(|clocks| clocks.view(me.lane)) else {
            return;
        };
        let times = &view.times;
        let releases = matches!(
            access.order,
            MemoryOrder::Release(_) | MemoryOrder::AcqRel(_)
        );
        let wide = access.order.scope() >= Some(Scope::Gpu);
        let fences = || view.fences.iter();
        let last = |fences: &mut dyn Iterator<Item = &Fence>| {
            fences.map(|fence| fence.times.own).max().unwrap_or(0)
        };
        let before = self.strong_stores.get(&key);
        let number = before.map_or(0, |store| store.number.saturating_add(1));
        let time = times.own;
        let store = StrongStore {
            writer: Epoch { thread: me, time },
            warp: times.warp,
            cta: times.cta,
            released: match releases {
                true => time,
                false => last(&mut fences()),
            },
            published: match releases && wide {
                true => time,
                false => last(&mut fences().filter(|fence| fence.scope >= Scope::Gpu)),
            },
            number,
        };
        let own = self.own_stores.get(&(me, key));
        if self.own_stores.len() < STRONG_STORES || own.is_some() {
            let last = OwnStore {
                store,
                releases,
                site: access.site,
            };
            let before = own.map(|own| own.last);
            self.own_stores
                .insert((me, key), OwnStores { last, before });
        }
        if self.strong_stores.len() < STRONG_STORES || self.strong_stores.contains_key(&key) {
            self.strong_stores.insert(key, store);
        }
    }

    /// The strong store that a thread has read last, if it is still the last store to the location.
    fn heard_store(&self, heard: &Heard) -> Option<&StrongStore> {
        let store = self.strong_stores.get(&heard.key)?;
        let Epoch { thread, time } = store.writer;
        (thread == heard.writer.thread && time == heard.writer.time).then_some(store)
    }

    /// Whether the thread of an access has itself stored to the flag without a release: its strong store there is no release,
    /// no fence or barrier is between the access and that store, and it is `store` or an earlier one. Other threads may have
    /// handed the flag on since.
    fn stored_without_release(&self, access: Epoch, key: u64, store: &StrongStore) -> bool {
        let own = self.own_stores.get(&(access.thread, key));
        own.is_some_and(|OwnStores { last: own, .. }| {
            !own.releases
                && own.store.writer.time == access.time
                && own.store.number <= store.number
        })
    }

    /// The first thread of the CTA of an access that knew of the access when it stored to a counter, without a
    /// release of gpu scope, and the site of that store: the one with a number or an earlier one.
    fn counted_without_release(
        &self,
        access: Epoch,
        key: u64,
        number: u32,
    ) -> Option<(Thread, u32)> {
        let of_counter = self.own_stores.iter().filter(|((_, of), _)| *of == key);
        let stores = of_counter.filter_map(|((thread, _), own)| {
            let unreleased = own.all().find(|own| {
                own.store.number <= number
                    && own.store.knew(access.thread, access.time)
                    && !own.store.publishes(access.thread, access.time)
            })?;
            Some((*thread, unreleased.site))
        });
        stores.min_by_key(|(thread, _)| (thread.warp, thread.lane))
    }

    /// The same of a counter that the writer of a flag has counted on later, before it released the flag: the barriers of
    /// the grid that programs write by hand do so. Also gives the key of the counter.
    fn counted_before(&self, access: Epoch, flag: &WrittenFlag) -> Option<(u64, Thread, u32)> {
        let counters = self.own_stores.iter().filter(|((thread, key), _)| {
            *thread == flag.writer && *key != flag.key && thread.cta != access.thread.cta
        });
        let counted = counters.filter_map(|((_, key), own)| {
            let mut counts = { own.all() }.filter(|own| own.store.writer.time <= flag.published);
            let (thread, site) = counts
                .find_map(|own| self.counted_without_release(access, *key, own.store.number))?;
            Some((*key, thread, site))
        });
        counted.min_by_key(|(key, ..)| *key)
    }

    fn close(&self, race: &Race) -> Option<Nearest> {
        if let Some((cause, location)) = self.nearest(race) {
            return Some(Nearest {
                cause,
                location,
                writer: writer(race, cause),
                reader: race.later.thread,
                written: None,
            });
        }
        self.across(race)
    }

    /// A flag between two CTAs whose writer or reader is another thread than the one that races, if barriers of the CTA
    /// stand between, or which was written before the access.
    fn across(&self, race: &Race) -> Option<Nearest> {
        let (me, them) = (race.later.thread, race.earlier.thread);
        if me.cta == them.cta || race.rule == Rule::Asynchronous {
            return None;
        }
        let cta = self.ctas.get(&me.cta)?;
        let view = |warp: u32, lane| match cta.known(warp) {
            Some(lanes) => lanes.view(lane),
            None => &cta.base,
        };
        let times = &view(me.warp, me.lane).times;
        let earlier = Epoch {
            thread: them,
            time: race.time,
        };
        let mut all: Vec<(Thread, Heard)> = { cta.heard.iter() }
            .filter(|(_, heard)| !is_own_word(heard, race))
            .map(|(&(warp, lane), &heard)| {
                let cta = me.cta;
                (Thread { cta, warp, lane }, heard)
            })
            .collect();
        all.sort_by_key(|(reader, _)| (reader.warp, reader.lane));
        let ahead = |(reader, heard): &(Thread, Heard)| times.get(me, *reader) >= heard.at;
        let readers: Vec<(Thread, Heard)> = all.iter().copied().filter(ahead).collect();
        for &(reader, heard) in &readers {
            let location = Some(Location::of(heard.key));
            let pending = &view(reader.warp, reader.lane).pending;
            for seen in pending.iter().filter(|seen| seen.address == heard.key) {
                let order = self.releases.would_order(seen, earlier);
                if let Some(Party { thread: by, scope }) = order {
                    return Some(Nearest {
                        cause: self.unused(seen.tried, by, scope, reader),
                        location,
                        writer: by,
                        reader,
                        written: None,
                    });
                }
            }
        }
        let stored = |&(reader, heard): &(Thread, Heard)| {
            let store = self.heard_store(&heard)?;
            let of_them = store.writer.thread.cta == them.cta;
            of_them.then_some((reader, heard, store))
        };
        // One that says that the access was made, before one that says that it was to come.
        let mut early = None;
        for (reader, heard, store) in readers.iter().filter_map(stored) {
            let nearest = |cause| Nearest {
                cause,
                location: Some(Location::of(heard.key)),
                writer: heard.writer.thread,
                reader,
                written: None,
            };
            if store.knew(them, race.time) {
                return Some(nearest(Cause::NoRelease));
            }
            if race.time > heard.writer.time {
                early.get_or_insert_with(|| nearest(Cause::Early));
            }
        }
        let global = matches!(race.location, Location::Global(_));
        // The last thread that has counted, in this CTA or in another one, has released a flag.
        let read = readers.iter().filter_map(|(_, heard)| {
            let store = self.heard_store(heard)?;
            let flag = WrittenFlag {
                key: heard.key,
                writer: store.writer.thread,
                published: store.published,
            };
            Some(flag)
        });
        let written = self.own_stores.iter().filter_map(|(&(thread, key), own)| {
            let StrongStore {
                writer, published, ..
            } = own.last.store;
            let ahead = thread.cta == me.cta && times.get(me, thread) >= writer.time;
            let flag = WrittenFlag {
                key,
                writer: thread,
                published,
            };
            ahead.then_some(flag)
        });
        let counted = read.chain(written).filter_map(|flag| {
            let (key, writer, site) = self.counted_before(earlier, &flag)?;
            Some((key, writer, flag.writer, site))
        });
        let thread = |of: &Thread| (of.cta, of.warp, of.lane);
        let first =
            counted.min_by_key(|(key, writer, last, ..)| (*key, thread(writer), thread(last)));
        if global && let Some((key, writer, last, site)) = first {
            return Some(Nearest {
                cause: Cause::NoRelease,
                location: Some(Location::of(key)),
                writer,
                reader: last,
                written: Some(site),
            });
        }
        if early.is_some() || !global {
            return early;
        }
        // A counter that threads of other CTAs have counted on since.
        let counted = |&(reader, heard): &(Thread, Heard)| {
            let store = self.heard_store(&heard)?;
            let (writer, site) = self.counted_without_release(earlier, heard.key, store.number)?;
            Some(Nearest {
                cause: Cause::NoRelease,
                location: Some(Location::of(heard.key)),
                writer,
                reader,
                written: Some(site),
            })
        };
        if let Some(found) = readers.iter().find_map(counted) {
            return Some(found);
        }
        all.iter()
            .filter_map(stored)
            .find_map(|(reader, heard, store)| {
                let before = !store.knew(them, race.time);
                let after = times.get(me, reader) < heard.at;
                if before && !after && self.stored_without_release(earlier, heard.key, store) {
                    return Some(Nearest {
                        cause: Cause::NoRelease,
                        location: Some(Location::of(heard.key)),
                        writer: them,
                        reader,
                        written: None,
                    });
                }
                let early = race.time > heard.writer.time;
                // The reader has acquired the release that goes with the flag, or has observed it and may still do so.
                let view = view(reader.warp, reader.lane);
                let knows = view.times.get(reader, heard.writer.thread) >= store.released;
                let may_know = || view.pending.iter().any(|seen| seen.address == heard.key);
                let whole = store.released > 0 && (knows || before && may_know());
                (whole && !(before && early) && (before || after)).then(|| Nearest {
                    cause: Cause::NoBarrier { before, after },
                    location: Some(Location::of(heard.key)),
                    writer: heard.writer.thread,
                    reader,
                    written: None,
                })
            })
    }

    /// When the later access of a race was made that was found just now, for [`Self::flag_read_late`]; none of a race that no
    /// flag between CTAs would order.
    pub fn made(&self, race: &Race) -> Option<LaterAccess> {
        let (me, them) = (race.later.thread, race.earlier.thread);
        let global =
            matches!(race.location, Location::Global(_)) && race.rule != Rule::Asynchronous;
        if !global || me.cta == them.cta {
            return None;
        }
        let cta = self.ctas.get(&me.cta)?;
        Some(LaterAccess {
            time: cta.known(me.warp)?.view(me.lane).times.own,
            earlier_known: cta.knows(them) >= race.time,
        })
    }

    /// For a race that nothing orders which came before it, except a flag that was written too early: whether `reader`, another
    /// thread of one side's CTA, has read just now a flag that would have handed over what the other side has done, had the
    /// first side waited for it.
    pub fn flag_read_late(
        &self,
        race: &Race,
        made: LaterAccess,
        reader: Thread,
    ) -> Option<(Cause, Flag)> {
        let sides = [
            (race.earlier.thread, race.time),
            (race.later.thread, made.time),
        ];
        let overtaken = reader.cta == race.earlier.thread.cta;
        let [(them, their_time), (me, time)] = match overtaken {
            true => sides,
            false => [sides[1], sides[0]],
        };
        let cta = self.ctas.get(&reader.cta)?;
        let view = cta.known(reader.warp)?.view(reader.lane);
        let heard = cta.heard.get(&(reader.warp, reader.lane))?;
        let store = self.heard_store(heard)?;
        let writer = store.writer.thread;
        // The reader has waited for the access before it has read the flag.
        let parted = view.times.get(reader, them) >= their_time;
        if parted || reader.cta != them.cta || reader == them || is_own_word(heard, race) {
            return None;
        }
        // The writer may be of a third CTA that has acquired what this has done.
        let access = Epoch { thread: me, time };
        let acquired = (overtaken || !made.earlier_known) && view.times.get(reader, me) >= time;
        let may_acquire = || {
            let mut seen = { view.pending.iter() }.filter(|seen| seen.address == heard.key);
            seen.any(|seen| self.releases.would_order(seen, access).is_some())
        };
        let hands_over = acquired || may_acquire();
        let before = !hands_over && !store.knew(me, time);
        // The writer's own access came behind the flag.
        let early = before && writer == me;
        if !hands_over && (early || writer.cta != me.cta || store.released == 0) {
            return None;
        }
        let flag = self.between(Location::of(heard.key), writer, reader);
        let after = true;
        let cause = match overtaken {
            true => Cause::Overtaken { before },
            false => Cause::NoBarrier { before, after },
        };
        Some((cause, flag))
    }

    /// Why a release that a thread has observed does not order it.
    fn unused(&self, tried: Option<Scope>, by: Thread, scope: Scope, reader: Thread) -> Cause {
        match tried {
            _ if !self.shape.includes(scope, by, reader) => Cause::NarrowRelease {
                by,
                scope,
                acquire: match tried {
                    None => Acquire::Missing,
                    Some(scope) if self.shape.includes(scope, reader, by) => Acquire::Wide,
                    Some(_) => Acquire::Narrow,
                },
            },
            Some(scope) => Cause::NarrowAcquire { by, scope },
            None => Cause::NoAcquire { by },
        }
    }

    pub(crate) fn nearest(&self, race: &Race) -> Option<(Cause, Option<Location>)> {
        if race.rule == Rule::Asynchronous {
            return None;
        }
        let (me, them) = (race.later.thread, race.earlier.thread);
        let cta = self.ctas.get(&me.cta)?;
        let view = match cta.known(me.warp) {
            Some(lanes) => lanes.view(me.lane),
            None => &cta.base,
        };
        let earlier = Epoch {
            thread: them,
            time: race.time,
        };
        for seen in &view.pending {
            let order = self.releases.would_order(seen, earlier);
            let Some(Party { thread: by, scope }) = order else {
                continue;
            };
            let cause = self.unused(seen.tried, by, scope, me);
            return Some((cause, Some(Location::of(seen.address))));
        }
        if let Some(lack) = cta.waits.lack(&self.shape, me, earlier) {
            return Some((lack, None));
        }
        let heard = cta.heard.get(&(me.warp, me.lane));
        let heard = heard.filter(|of| {
            if is_own_word(of, race) {
                return false;
            }
            let theirs = of.writer.thread == them && of.writer.time >= race.time;
            let store = self.heard_store(of);
            theirs || store.is_some_and(|store| self.stored_without_release(earlier, of.key, store))
        });
        if let Some(heard) = heard {
            return Some((Cause::NoRelease, Some(Location::of(heard.key))));
        }
        let (cause, at) = self.unused_mbarrier(race)?;
        Some((cause, Some(at)))
    }
}

/// What was read is the word of the race itself, which is no flag that hands it over.
fn is_own_word(heard: &Heard, race: &Race) -> bool {
    heard.key / WORD == race.location.key() / WORD
}

/// Who has written the flag that comes nearest to ordering the racing threads.
fn writer(race: &Race, cause: Cause) -> Thread {
    match cause {
        Cause::NarrowRelease { by, .. }
        | Cause::NarrowAcquire { by, .. }
        | Cause::NarrowArrival { by, .. }
        | Cause::NarrowWait { by, .. }
        | Cause::NoAcquire { by } => by,
        Cause::NoRelease
        | Cause::Early
        | Cause::NoBarrier { .. }
        | Cause::Overtaken { .. }
        | Cause::NoWait
        | Cause::NoArrival
        | Cause::Version(_) => race.earlier.thread,
    }
}
