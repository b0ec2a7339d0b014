//! The sixteen barriers of a CTA.
//!
//! Threads arrive one by one, so lanes of a warp may come to a barrier separately. A barrier
//! without a count completes when every thread that has not exited has arrived. One with a count
//! completes when that many threads have; a warp whose remaining lanes are all there counts as 32,
//! as the ISA's counting in whole warps wants.

use std::collections::VecDeque;

use events::Misuse;

/// Barriers of a CTA.
pub(crate) const COUNT: usize = 16;
/// Results of reductions that are kept for threads which have not picked them up.
const KEPT: usize = 64;

/// What a reduction over the threads of a barrier found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reduction {
    pub(crate) holds: u32,
    pub(crate) threads: u32,
}

#[derive(Clone, Debug, Default)]
struct Barrier {
    /// Lanes that have arrived, per warp.
    arrived: Vec<u32>,
    any: bool,
    /// Arrivals of threads that had arrived already.
    again: u32,
    /// Threads that are waited for; none for all.
    expected: Option<u32>,
    /// The first arrival, and by which instruction each warp came.
    first: Option<Arrival>,
    arrivals_at: Vec<(u32, u32)>,
    /// See [`Barriers::lacked_threads`].
    lacked: Option<Arrival>,
    generation: u64,
    reduction: Reduction,
    results: VecDeque<(u64, Reduction)>,
}

/// A way by which threads exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Where their last jump went.
    pub(crate) came: u32,
    /// The op that they exit by.
    pub(crate) pc: u32,
}

/// All barriers of a CTA, and who is left of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barriers {
    barriers: Vec<Barrier>,
    /// Lanes that have not exited, per warp.
    live: Vec<u32>,
    threads: u32,
    /// Ways by which threads have exited: where their last jump went, and the op they exited by.
    exits: Vec<Exit>,
}

/// An arrival at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) id: u8,
    pub(crate) warp: u32,
    pub(crate) lanes: u32,
    /// Threads waited for; none for all.
    pub(crate) count: Option<u32>,
    /// Lanes whose predicate holds.
    pub(crate) holds: u32,
    /// The op by which they come, if all lanes of their warp must come by the same.
    pub(crate) aligned_at: Option<u32>,
    /// The op by which they come.
    pub(crate) at: u32,
}

impl Barriers {
    #[cfg(test)]
    fn new(live: Vec<u32>) -> Self {
        let mut barriers = Self::default();
        barriers.start(&live);
        barriers
    }

    /// Makes them those of a new CTA, with the lanes of each warp.
    pub(crate) fn start(&mut self, live: &[u32]) {
        self.live.clear();
        self.exits.clear();
        self.live.extend_from_slice(live);
        self.threads = live.iter().map(|mask| mask.count_ones()).sum();
        self.barriers.resize_with(COUNT, Barrier::default);
        for barrier in &mut self.barriers {
            // Most have never been used.
            let used = barrier.any || barrier.generation > 0;
            if used || barrier.arrived.len() != live.len() {
                let mut arrived = std::mem::take(&mut barrier.arrived);
                arrived.clear();
                arrived.resize(live.len(), 0);
                *barrier = Barrier {
                    arrived,
                    ..Barrier::default()
                };
            }
        }
    }

    /// The generation that arrivals at a barrier belong to.
    pub(crate) fn generation(&self, id: u8) -> u64 {
        self.barriers[usize::from(id)].generation
    }

    /// True when a generation is over.
    pub(crate) fn is_over(&self, id: u8, generation: u64) -> bool {
        self.generation(id) > generation
    }

    /// What a generation's reduction found.
    pub(crate) fn result(&self, id: u8, generation: u64) -> Reduction {
        let results = &self.barriers[usize::from(id)].results;
        let found = results.iter().find(|(of, _)| *of == generation);
        found.map_or(Reduction::default(), |&(_, reduction)| reduction)
    }

    /// How many threads have come to a barrier, and how many it waits for.
    pub(crate) fn arrived(&self, id: u8) -> (u32, u32) {
        let barrier = &self.barriers[usize::from(id)];
        let arrived: u32 = barrier.arrived.iter().map(|mask| mask.count_ones()).sum();
        let all = self.threads_left();
        (arrived + barrier.again, barrier.expected.unwrap_or(all))
    }

    /// Threads that have exited.
    pub(crate) fn threads_gone(&self) -> u32 {
        self.threads - self.threads_left()
    }

    /// Threads that have not exited.
    pub(crate) fn threads_left(&self) -> u32 {
        self.live.iter().map(|mask| mask.count_ones()).sum()
    }

    /// What is wrong with an arrival that is about to be made, and the op by which the others came.
    pub(crate) fn misuse(&self, arrival: &Arrival) -> Option<(Misuse, u32)> {
        let barrier = &self.barriers[usize::from(arrival.id)];
        if arrival.count.is_some_and(|count| count % 32 != 0) {
            return Some((Misuse::PartOfWarp, arrival.at));
        }
        if barrier.arrived[arrival.warp as usize] & arrival.lanes != 0 {
            return Some((Misuse::Again, arrival.at));
        }
        let mut arrivals_at = barrier.arrivals_at.iter();
        let other = arrivals_at.find(|&&(warp, at)| warp == arrival.warp && at != arrival.at);
        if let (Some(_), Some(&(_, at))) = (arrival.aligned_at, other) {
            return Some((Misuse::Divergent, at));
        }
        match barrier.first {
            Some(first) if first.count != arrival.count => Some((Misuse::Counts, first.at)),
            _ => None,
        }
    }

    /// The first arrival at a barrier of all threads, if some had exited when it completed last.
    pub(crate) fn lacked_threads(&self, id: u8) -> Option<Arrival> {
        self.barriers[usize::from(id)].lacked
    }

    /// Lanes arrive. True when that completes the barrier.
    pub(crate) fn arrive(&mut self, arrival: Arrival) -> bool {
        let barrier = &mut self.barriers[usize::from(arrival.id)];
        barrier.any = true;
        barrier.first.get_or_insert(arrival);
        if let Some(at) = arrival.aligned_at
            && !barrier.arrivals_at.contains(&(arrival.warp, at))
        {
            barrier.arrivals_at.push((arrival.warp, at));
        }
        // A count is not lowered when threads exit, unlike the number of all threads.
        barrier.expected = arrival.count;
        let arrived = &mut barrier.arrived[arrival.warp as usize];
        barrier.again += (*arrived & arrival.lanes).count_ones();
        *arrived |= arrival.lanes;
        barrier.reduction.threads += arrival.lanes.count_ones();
        barrier.reduction.holds += (arrival.lanes & arrival.holds).count_ones();
        self.settle(arrival.id)
    }

    /// Ways by which threads have exited.
    pub(crate) fn exits(&self) -> &[Exit] {
        &self.exits
    }

    /// Lanes exit, by some way. Returns the barriers that this completes.
    pub(crate) fn exit(&mut self, warp: u32, lanes: u32, way: Exit) -> Vec<u8> {
        if !self.exits.contains(&way) {
            self.exits.push(way);
        }
        self.live[warp as usize] &= !lanes;
        (0..COUNT as u8).filter(|&id| self.settle(id)).collect()
    }

    /// Completes a barrier if everyone is there.
    fn settle(&mut self, id: u8) -> bool {
        let barrier = &mut self.barriers[usize::from(id)];
        if !barrier.any {
            return false;
        }
        let warps = barrier.arrived.iter().zip(&self.live);
        let done = match barrier.expected {
            None => warps.clone().all(|(arrived, live)| live & !arrived == 0),
            Some(count) => {
                let there = warps.map(|(&arrived, live)| match arrived {
                    0 => 0,
                    _ if live & !arrived == 0 => 32,
                    _ => arrived.count_ones(),
                });
                there.sum::<u32>() + barrier.again >= count
            }
        };
        if done {
            let live: u32 = self.live.iter().map(|mask| mask.count_ones()).sum();
            let first = barrier.first.filter(|first| first.count.is_none());
            barrier.lacked = first.filter(|_| live < self.threads);
            barrier.arrived.fill(0);
            barrier.any = false;
            barrier.first = None;
            barrier.arrivals_at.clear();
            barrier.again = 0;
            if barrier.results.len() == KEPT {
                barrier.results.pop_front();
            }
            barrier
                .results
                .push_back((barrier.generation, barrier.reduction));
            barrier.reduction = Reduction::default();
            barrier.generation += 1;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(id: u8, warp: u32, lanes: u32, count: Option<u32>) -> Arrival {
        Arrival {
            id,
            warp,
            lanes,
            count,
            holds: 0b101,
            aligned_at: Some(7),
            at: 7,
        }
    }

    #[test]
    fn exited_threads_are_not_waited_for() {
        let mut barriers = Barriers::new(vec![u32::MAX, 0xffff]);
        assert!(!barriers.arrive(at(0, 0, 0xffff, None)));
        assert!(!barriers.arrive(at(0, 1, 0xffff, None)));
        assert_eq!(barriers.exit(0, 0xffff_0000, Exit::default()), [0]);
        assert!(barriers.is_over(0, 0) && !barriers.is_over(1, 0));
        assert_eq!(
            barriers.result(0, 0),
            Reduction {
                holds: 4,
                threads: 32
            }
        );
    }

    #[test]
    fn counts_are_in_whole_warps() {
        let mut barriers = Barriers::new(vec![u32::MAX, 0xff, u32::MAX]);
        assert!(!barriers.arrive(at(3, 0, 0xffff, Some(64))));
        assert!(!barriers.arrive(at(3, 1, 0xff, Some(64))));
        assert!(barriers.arrive(at(3, 0, 0xffff_0000, Some(64))));
    }
}
