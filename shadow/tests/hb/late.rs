//! What a thread alone has accessed is sent when a second one comes, as a device's journal does.

use std::collections::{HashMap, HashSet};

use shadow::hb::{Access, Engine, Location, MemoryOrder, OpKind, Thread, Time};

/// Bytes that every access covers or leaves alone.
const GRANULE: u64 = 2;

/// The last accesses of a granule's only thread.
#[derive(Clone, Copy, Default)]
struct Own {
    load: Option<(Time, Access)>,
    store: Option<(Time, Access)>,
}

/// What has not been sent.
pub(crate) struct Late {
    owned: HashMap<u64, (Thread, Own)>,
    sent: HashSet<u64>,
    /// The last time at which something of each thread was sent.
    last: Vec<Time>,
}

impl Late {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            owned: HashMap::new(),
            sent: HashSet::new(),
            last: vec![0; threads],
        }
    }

    /// Something of these threads is sent.
    pub(crate) fn sent(&mut self, threads: &[usize], now: Time) {
        threads.iter().for_each(|&thread| self.last[thread] = now);
    }

    /// True if the access has to be sent now; what was there before it has been.
    pub(crate) fn access(
        &mut self,
        engine: &mut Engine,
        me: Thread,
        access: &Access,
        at: u64,
    ) -> bool {
        let end = at + u64::from(access.bytes * access.elements);
        let weak = access.order == MemoryOrder::Weak;
        let mut send = false;
        for granule in at / GRANULE..end.div_ceil(GRANULE) {
            send |= self.sent.contains(&granule);
            if self.sent.contains(&granule) {
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
                    OpKind::Load => own.load = Some(now),
                    _ => own.store = Some(now),
                }
                continue;
            }
            for (time, part) in own.store.into_iter().chain(own.load) {
                engine.earlier(*owner, time, &part, Location::Global(granule * GRANULE));
            }
            self.sent.insert(granule);
            send = true;
        }
        send
    }
}
