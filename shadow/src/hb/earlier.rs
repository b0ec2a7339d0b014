//! Accesses that are received after they were made.

use super::clock::Time;
use super::entry::{Class, Entry};
use super::history::WORD;
use super::made::Made;
use super::observed::Observed;
use super::thread::{Id, Thread};
use super::{Access, Engine, Location, OpKind};

impl Engine {
    /// A weak access that `me` made in the past: at `time`, one more than the last `now` at which
    /// anything was received of it before (see [`Engine::at`]), and 1 if nothing was.
    ///
    /// It is not checked itself: the caller must know that no other thread had accessed the bytes before it.
    /// Later accesses are checked against it.
    pub fn earlier(&mut self, me: Thread, time: Time, access: &Access, location: Location) {
        let key = location.key();
        let history = self.memory.of(location);
        let end = key + u64::from(access.bytes * access.elements);
        for word in key / WORD..=(end - 1) / WORD {
            let first = key.saturating_sub(word * WORD).min(WORD) as u32;
            let past = (end - word * WORD).min(WORD) as u32;
            let entry = Entry {
                warp: Id::of(me.warp()),
                lanes: 1 << me.lane,
                time,
                class: Class {
                    writes: access.kind != OpKind::Load,
                    strength: access.order.strength(),
                    start: (key % 16) as u8,
                    bytes: access.bytes.min(255) as u8,
                },
                mask: ((1 << past) - (1 << first)) as u8,
                site: access.site,
                copy: 0,
                made: Made::default(),
                order: Observed::default(),
            };
            history.enter(word, entry);
        }
    }
}
