//! What a thread alone has accessed is told when a second one comes, as a device's journal does.

use std::collections::{HashMap, HashSet};

use shadow::hb::{Access, Engine, Kind, Order, Place, Thread, Time};

/// Bytes that every access covers or leaves alone.
const GRANULE: u64 = 2;

/// The last accesses of a granule's only thread.
#[derive(Clone, Copy, Default)]
struct Own {
    load: Option<(Time, Access)>,
    store: Option<(Time, Access)>,
}

/// What has not been told.
pub(crate) struct Late {
    owned: HashMap<u64, (Thread, Own)>,
    told: HashSet<u64>,
    /// The last time at which something of each thread was told.
    last: Vec<Time>,
}

impl Late {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            owned: HashMap::new(),
            told: HashSet::new(),
            last: vec![0; threads],
        }
    }

    /// Something of these threads is told.
    pub(crate) fn told(&mut self, threads: &[usize], now: Time) {
        threads.iter().for_each(|&thread| self.last[thread] = now);
    }

    /// True if the access has to be told now; what was there before it has been.
    pub(crate) fn access(
        &mut self,
        engine: &mut Engine,
        me: Thread,
        access: &Access,
        at: u64,
    ) -> bool {
        let end = at + u64::from(access.bytes * access.elements);
        let weak = access.order == Order::Weak;
        let mut tell = false;
        for granule in at / GRANULE..end.div_ceil(GRANULE) {
            tell |= self.told.contains(&granule);
            if self.told.contains(&granule) {
                continue;
            }
            let (owner, own) = self.owned.entry(granule).or_insert((me, Own::default()));
            if weak && *owner == me {
                let part = Access {
                    bytes: GRANULE as u32,
                    elements: 1,
                    ..*access
                };
                let now = (self.last[super::index(me)] + 1, part);
                match access.kind {
                    Kind::Load => own.load = Some(now),
                    _ => own.store = Some(now),
                }
                continue;
            }
            for (time, part) in own.store.into_iter().chain(own.load) {
                engine.earlier(*owner, time, &part, Place::Global(granule * GRANULE));
            }
            self.told.insert(granule);
            tell = true;
        }
        tell
    }
}
