//! What lanes of a warp do together: shuffles, votes, matches, reductions, `bar.warp.sync`.
//!
//! Lanes wait until every lane of their member mask that has not exited is at an operation of the
//! same kind with the same mask; it need not be the same instruction. Lanes that are together but
//! name others go on on their own: a warp's groups do not wait for each other.
//!
//! Where the masks differ, which the PTX ISA leaves undefined, lanes go on when they are together,
//! or when everybody they name, and those name, waits.

use events::Misuse;

use super::address::lanes;
use super::cta::CtaId;
use super::listener::Listener;
use super::machine::Machine;
use super::taint::Taint;
use super::warp::{Split, State, Warp};
use crate::code::{Exchange, ExchangeKind, Kind};
use crate::lanes::{Lanes, WARP};

/// What the lanes bring along.
pub(super) struct Inputs {
    a: Lanes,
    /// Of a shuffle, each lane's lane.
    pub(super) b: Lanes,
    /// Of a shuffle, each lane's clamp.
    pub(super) c: Lanes,
    members: Lanes,
    lanes: u32,
    pub(super) taint: Taint,
}

/// What they get: a row and a predicate.
struct Results {
    d: Lanes,
    p: u32,
}

/// Lanes that wait, and whom each names.
struct Waiters {
    lanes: u32,
    members: [u32; WARP],
}

impl Waiters {
    /// Lanes that have no reason to wait any longer; `live` are those that have not exited.
    fn complete(&self, kind: ExchangeKind, live: u32) -> Option<u32> {
        let mut left = self.lanes;
        while left != 0 {
            let members = self.members[left.trailing_zeros() as usize];
            let same = lanes(left).filter(|&lane| self.members[lane] == members);
            let same = same.fold(0, |all, lane| all | 1 << lane);
            if members & live & !same == 0 {
                return Some(same);
            }
            left &= !same;
        }
        // A barrier is met by those who name the same members only.
        if kind == ExchangeKind::Barrier {
            return None;
        }
        lanes(self.lanes).find_map(|lane| self.circle(lane, live))
    }

    /// A lane, those it names, those these name, and so on, if all of them wait.
    fn circle(&self, lane: usize, live: u32) -> Option<u32> {
        let mut circle = 1 << lane;
        loop {
            let named = lanes(circle).fold(0, |all, lane| all | self.members[lane] & live);
            if named & !self.lanes != 0 {
                return None;
            }
            if named & !circle == 0 {
                return Some(circle);
            }
            circle |= named;
        }
    }
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// The lanes that a lane of the split wants to be there.
    fn wanted(&self, warp: &Warp, split: &Split, exchange: &Exchange) -> u32 {
        match exchange.members {
            None => split.mask,
            Some(row) => {
                let members = warp.read(&split.frame, row, &self.setup.program.consts);
                lanes(split.mask).fold(0, |all, lane| all | members[lane] as u32)
            }
        }
    }

    /// True when all the lanes that take part are in the split.
    pub(crate) fn is_complete(&self, warp: &Warp, split: &Split, exchange: &Exchange) -> bool {
        self.wanted(warp, split, exchange) & warp.live & !split.mask == 0
    }

    /// Executes the operation for a split that is complete.
    pub(crate) fn exchange_alone(
        &mut self,
        cta: &CtaId,
        warp: &mut Warp,
        split: &Split,
        exchange: &Exchange,
    ) {
        let mut inputs = Inputs {
            a: [0; WARP],
            b: [0; WARP],
            c: [0; WARP],
            members: [0; WARP],
            lanes: 0,
            taint: Taint::default(),
        };
        self.gather(warp, split, exchange, &mut inputs);
        self.look_for_strangers(cta, warp, split, &inputs);
        if exchange.kind == ExchangeKind::Barrier {
            self.announce(cta, warp, split.pc, &inputs);
        }
        let results = compute(exchange.kind, &inputs);
        self.scatter(warp, split, exchange, &results, &inputs);
    }

    /// Reports lanes that take part without being members.
    fn look_for_strangers(&mut self, cta: &CtaId, warp: &Warp, split: &Split, inputs: &Inputs) {
        let strange = lanes(split.mask).filter(|&lane| inputs.members[lane] >> lane & 1 == 0);
        let mask = strange.fold(0, |all, lane| all | 1 << lane);
        if mask != 0 {
            let threads = self.executing(cta, warp.index, split.pc, mask);
            self.observer
                .misuse(threads, Misuse::NotMember, threads.offset);
        }
    }

    /// Passes on a `bar.warp.sync`: lanes that name the same members meet.
    fn announce(&mut self, cta: &CtaId, warp: &Warp, pc: u32, inputs: &Inputs) {
        let mut left = inputs.lanes;
        while left != 0 {
            let members = inputs.members[left.trailing_zeros() as usize];
            let same = lanes(left).filter(|&lane| inputs.members[lane] == members);
            let meet = same.fold(0, |all, lane| all | 1 << lane);
            let threads = self.executing(cta, warp.index, pc, meet);
            self.observer.warp_barrier(threads);
            left &= !meet;
        }
    }

    /// Executes the operations of waiting lanes that are complete together.
    pub(crate) fn exchange_waiting(&mut self, cta: &CtaId, warp: &mut Warp) {
        let mut met = false;
        while let Some((kind, group)) = self.complete(warp) {
            self.exchange_together(cta, warp, kind, group);
            met = true;
        }
        if met {
            warp.join();
        }
    }

    /// The exchange that a split waits for.
    fn awaited(&self, split: &Split) -> Option<&Exchange> {
        match &self.setup.program.ops[split.pc as usize].kind {
            Kind::Exchange(exchange) if split.state == State::Warp => Some(exchange),
            _ => None,
        }
    }

    /// Waiting lanes that can go on together, and what they wait for.
    fn complete(&self, warp: &Warp) -> Option<(ExchangeKind, u32)> {
        let splits = warp.splits.iter();
        let mut kinds = splits.filter_map(|split| Some(self.awaited(split)?.kind));
        kinds.find_map(|kind| Some((kind, self.waiters(warp, kind).complete(kind, warp.live)?)))
    }

    /// The lanes that wait at operations of one kind.
    fn waiters(&self, warp: &Warp, kind: ExchangeKind) -> Waiters {
        let mut waiters = Waiters {
            lanes: 0,
            members: [0; WARP],
        };
        for split in &warp.splits {
            let Some(exchange) = self.awaited(split).filter(|other| other.kind == kind) else {
                continue;
            };
            let members = match exchange.members {
                Some(row) => warp.read(&split.frame, row, &self.setup.program.consts),
                None => [u64::from(split.mask); WARP],
            };
            for lane in lanes(split.mask) {
                waiters.members[lane] = members[lane] as u32;
            }
            waiters.lanes |= split.mask;
        }
        waiters
    }

    /// Executes the operations of a group of lanes, and lets these go on.
    fn exchange_together(&mut self, cta: &CtaId, warp: &mut Warp, kind: ExchangeKind, group: u32) {
        let mut parts = Vec::new();
        for index in 0..warp.splits.len() {
            let split = &warp.splits[index];
            let Some(exchange) = self.awaited(split).filter(|other| other.kind == kind) else {
                continue;
            };
            let mask = split.mask & group;
            if mask == 0 {
                continue;
            }
            parts.push((index, exchange.clone()));
            if mask != split.mask {
                let mut others = split.clone();
                others.mask &= !group;
                warp.splits[index].mask = mask;
                warp.splits.push(others);
            }
        }
        let mut inputs = Inputs {
            a: [0; WARP],
            b: [0; WARP],
            c: [0; WARP],
            members: [0; WARP],
            lanes: 0,
            taint: Taint::default(),
        };
        for (index, exchange) in &parts {
            let split = warp.splits[*index].clone();
            self.gather(warp, &split, exchange, &mut inputs);
            self.look_for_strangers(cta, warp, &split, &inputs);
        }
        if let (ExchangeKind::Barrier, Some(&(first, _))) = (kind, parts.first()) {
            self.announce(cta, warp, warp.splits[first].pc, &inputs);
        }
        let results = compute(kind, &inputs);
        for (index, exchange) in &parts {
            let split = warp.splits[*index].clone();
            self.scatter(warp, &split, exchange, &results, &inputs);
            let clock = warp.clock;
            let split = &mut warp.splits[*index];
            split.state = State::Ready;
            split.turn = clock;
            split.pc += 1;
        }
    }

    fn gather(&self, warp: &Warp, split: &Split, exchange: &Exchange, inputs: &mut Inputs) {
        let consts = &self.setup.program.consts;
        let votes = exchange.kind.votes();
        if self.follows_values() {
            let brought = self.follow_brought(warp, split, exchange);
            inputs.taint = inputs.taint.with(brought);
        }
        let members = match exchange.members {
            Some(row) => warp.read(&split.frame, row, consts),
            None => [u64::from(split.mask); WARP],
        };
        let pred = if votes {
            warp.pred(&split.frame, exchange.a)
        } else {
            0
        };
        let row = |row: u32| {
            if votes {
                [0; WARP]
            } else {
                warp.read(&split.frame, row, consts)
            }
        };
        let (a, b, c) = (row(exchange.a), row(exchange.b), row(exchange.c));
        for lane in lanes(split.mask) {
            inputs.a[lane] = if votes {
                u64::from(pred >> lane & 1)
            } else {
                a[lane]
            };
            (inputs.b[lane], inputs.c[lane]) = (b[lane], c[lane]);
            inputs.members[lane] = members[lane];
        }
        inputs.lanes |= split.mask;
    }

    fn scatter(
        &self,
        warp: &mut Warp,
        split: &Split,
        exchange: &Exchange,
        results: &Results,
        inputs: &Inputs,
    ) {
        if self.follows_values() {
            self.follow_exchange(warp, split, exchange, inputs);
        }
        let mut rows = warp.rows(&split.frame, &self.setup.program.consts);
        if let Some(row) = exchange.d {
            rows.put(row, split.mask, &results.d);
        }
        if let Some(pred) = exchange.p {
            rows.put_pred(pred, split.mask, results.p);
        }
    }
}

/// The results for every lane.
fn compute(kind: ExchangeKind, inputs: &Inputs) -> Results {
    let (mut d, mut p) = ([0; WARP], 0);
    for lane in lanes(inputs.lanes) {
        let members = inputs.members[lane] as u32 & inputs.lanes;
        let values = || lanes(members).map(|other| inputs.a[other] as u32);
        let holds = |wide: bool| {
            let value = |lane: usize| {
                if wide {
                    inputs.a[lane]
                } else {
                    inputs.a[lane] & 0xffff_ffff
                }
            };
            let same = lanes(members).filter(|&other| value(other) == value(lane));
            same.fold(0u32, |mask, other| mask | 1 << other)
        };
        let (value, flag) = match kind {
            ExchangeKind::Barrier | ExchangeKind::Together => (0, false),
            ExchangeKind::ShflUp
            | ExchangeKind::ShflDown
            | ExchangeKind::ShflBfly
            | ExchangeKind::ShflIdx => {
                let (source, inside) = source(kind, lane, inputs.b[lane], inputs.c[lane]);
                (inputs.a[source], inside)
            }
            ExchangeKind::VoteAll => (0, values().all(|value| value == 1)),
            ExchangeKind::VoteAny => (0, values().any(|value| value == 1)),
            ExchangeKind::VoteUni => (
                0,
                values().all(|value| value == 1) || values().all(|value| value == 0),
            ),
            ExchangeKind::Ballot => {
                let set = lanes(members).filter(|&other| inputs.a[other] == 1);
                (set.fold(0, |mask, other| mask | 1 << other), false)
            }
            ExchangeKind::MatchAny { wide } => (u64::from(holds(wide)), true),
            ExchangeKind::MatchAll { wide } => {
                let all = holds(wide) == members;
                (if all { u64::from(members) } else { 0 }, all)
            }
            ExchangeKind::ReduxAdd => (u64::from(values().fold(0, u32::wrapping_add)), false),
            ExchangeKind::ReduxMinU => (u64::from(values().min().unwrap_or(0)), false),
            ExchangeKind::ReduxMaxU => (u64::from(values().max().unwrap_or(0)), false),
            ExchangeKind::ReduxMinS => {
                let least = values().map(|value| value as i32).min().unwrap_or(0);
                (u64::from(least as u32), false)
            }
            ExchangeKind::ReduxMaxS => {
                let most = values().map(|value| value as i32).max().unwrap_or(0);
                (u64::from(most as u32), false)
            }
            ExchangeKind::ReduxAnd => (u64::from(values().fold(u32::MAX, |a, b| a & b)), false),
            ExchangeKind::ReduxOr => (u64::from(values().fold(0, |a, b| a | b)), false),
            ExchangeKind::ReduxXor => (u64::from(values().fold(0, |a, b| a ^ b)), false),
            ExchangeKind::Elect => {
                let leader = members.trailing_zeros() & 31;
                (u64::from(leader), leader as usize == lane)
            }
        };
        d[lane] = value;
        p |= u32::from(flag) << lane;
    }
    Results { d, p }
}

/// The lane a shuffle reads from, and whether it lies in the segment; its own lane otherwise.
/// Source: PTX ISA, `shfl.sync`.
pub(super) fn source(kind: ExchangeKind, lane: usize, b: u64, c: u64) -> (usize, bool) {
    let lane = lane as i64;
    let (b, clamp, segment) = ((b & 31) as i64, (c & 31) as i64, (c >> 8 & 31) as i64);
    let most = lane & segment | clamp & !segment & 31;
    let least = lane & segment;
    let (from, inside) = match kind {
        ExchangeKind::ShflUp => (lane - b, lane - b >= most),
        ExchangeKind::ShflDown => (lane + b, lane + b <= most),
        ExchangeKind::ShflBfly => (lane ^ b, (lane ^ b) <= most),
        _ => {
            let from = least | b & !segment & 31;
            (from, from <= most)
        }
    };
    (
        if inside {
            from as usize & 31
        } else {
            lane as usize
        },
        inside,
    )
}
