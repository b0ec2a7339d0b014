//! What is missing between two accesses that race: the nearest thing to an order that was there.

use super::history::WORD;
use super::place::{Epoch, Party, Thread};
use super::{Engine, Place, Race, Rule};

/// What would have ordered the accesses of a race, had it been right.
pub type Cause = events::Cause<Thread>;

/// A word by which one thread has told another one to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Where it is.
    pub place: Place,
    /// Site of the write by the thread that released, if it is remembered.
    pub written: Option<u32>,
    /// Site of the read by the other one, if it is remembered.
    pub read: Option<u32>,
}

impl Engine {
    /// What is missing between the accesses of a race that was found just now; none when nothing
    /// comes near.
    pub fn cause(&self, race: &Race) -> Option<Cause> {
        self.nearest(race).map(|(cause, _)| cause)
    }

    /// The flag or counter that comes nearest to ordering them, in the same way.
    pub fn flag(&self, race: &Race) -> Option<Flag> {
        let (cause, place) = self.nearest(race)?;
        Some(self.named(race, cause, place?))
    }

    /// A word as the flag of a race, with who has written and read it as far as this engine remembers.
    pub(crate) fn named(&self, race: &Race, cause: Cause, place: Place) -> Flag {
        let writer = match cause {
            Cause::NarrowRelease { by, .. }
            | Cause::NarrowAcquire { by, .. }
            | Cause::NarrowArrival { by, .. }
            | Cause::NarrowWait { by, .. }
            | Cause::NoAcquire { by } => by,
            Cause::NoRelease | Cause::NoWait | Cause::NoArrival | Cause::Version(_) => {
                race.earlier.thread
            }
        };
        let history = self.memory.known(place);
        let sites =
            history.map(|history| history.flag(place.key() / WORD, writer, race.later.thread));
        let [written, read] = sites.unwrap_or_default();
        Flag {
            place,
            written,
            read,
        }
    }

    pub(crate) fn nearest(&self, race: &Race) -> Option<(Cause, Option<Place>)> {
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
            let cause = match seen.tried {
                _ if !self.shape.includes(scope, by, me) => Cause::NarrowRelease { by, scope },
                Some(scope) => Cause::NarrowAcquire { by, scope },
                None => Cause::NoAcquire { by },
            };
            return Some((cause, Some(Place::of(seen.address))));
        }
        if let Some(lack) = cta.waits.lack(&self.shape, me, earlier) {
            return Some((lack, None));
        }
        let heard = cta.heard.get(&(me.warp, me.lane));
        let heard = heard.filter(|(writer, _)| writer.thread == them && writer.time >= race.time);
        if let Some((_, key)) = heard {
            return Some((Cause::NoRelease, Some(Place::of(*key))));
        }
        let (cause, at) = self.unused_mbarrier(race)?;
        Some((cause, Some(at)))
    }
}
