//! What lanes of a warp do together: shuffles, votes, matches, reductions, `bar.warp.sync`.
//!
//! Lanes wait until every lane of their member mask that has not exited is at an operation of the
//! same kind; it need not be the same instruction.

use super::address::lanes;
use super::cta::CtaId;
use super::machine::Machine;
use super::warp::{Split, State, Warp};
use crate::code::{Exchange, ExchangeKind, Kind};
use crate::lanes::{Lanes, WARP};
use crate::observer::{Misuse, Observer};

/// What the lanes bring along.
struct Inputs {
    a: Lanes,
    b: Lanes,
    c: Lanes,
    members: Lanes,
    lanes: u32,
}

impl<O: Observer> Machine<'_, O> {
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
        };
        self.gather(warp, split, exchange, &mut inputs);
        self.look_for_strangers(cta, warp, split, &inputs);
        if exchange.kind == ExchangeKind::Barrier {
            self.announce(cta, warp, split.pc, &inputs);
        }
        let (d, p) = compute(exchange.kind, &inputs);
        self.scatter(warp, split, exchange, &d, p);
    }

    /// Tells of lanes that take part without being members.
    fn look_for_strangers(&mut self, cta: &CtaId, warp: &Warp, split: &Split, inputs: &Inputs) {
        let strange = lanes(split.mask).filter(|&lane| inputs.members[lane] >> lane & 1 == 0);
        let mask = strange.fold(0, |all, lane| all | 1 << lane);
        if mask != 0 {
            let who = self.who(cta, warp.index, split.pc, mask);
            self.observer.misuse(who, Misuse::NotMember, who.offset);
        }
    }

    /// Tells of a `bar.warp.sync`: lanes that name the same members meet.
    fn announce(&mut self, cta: &CtaId, warp: &Warp, pc: u32, inputs: &Inputs) {
        let mut left = inputs.lanes;
        while left != 0 {
            let members = inputs.members[left.trailing_zeros() as usize];
            let same = lanes(left).filter(|&lane| inputs.members[lane] == members);
            let meet = same.fold(0, |all, lane| all | 1 << lane);
            let who = self.who(cta, warp.index, pc, meet);
            self.observer.warp_barrier(who);
            left &= !meet;
        }
    }

    /// Executes the operations of waiting splits that are complete together.
    pub(crate) fn exchange_waiting(&mut self, cta: &CtaId, warp: &mut Warp) {
        let program = self.setup.program;
        let exchange_of = |split: &Split| match &program.ops[split.pc as usize].kind {
            Kind::Exchange(exchange) if split.state == State::Warp => Some(exchange),
            _ => None,
        };
        for start in 0..warp.splits.len() {
            let Some(first) = exchange_of(&warp.splits[start]) else {
                continue;
            };
            let mut group = vec![start];
            let mut there = warp.splits[start].mask;
            let members = self.wanted(warp, &warp.splits[start], first);
            let mut wanted = members & warp.live;
            while wanted & !there != 0 {
                let next = (0..warp.splits.len()).find(|&index| {
                    let split = &warp.splits[index];
                    // A barrier is met by those who name the same members.
                    let same = exchange_of(split).is_some_and(|other| {
                        other.kind == first.kind
                            && (other.kind != ExchangeKind::Barrier
                                || self.wanted(warp, split, other) == members)
                    });
                    same && split.mask & wanted & !there != 0
                });
                let Some(next) = next else { break };
                there |= warp.splits[next].mask;
                if let Some(exchange) = exchange_of(&warp.splits[next]) {
                    wanted |= self.wanted(warp, &warp.splits[next], exchange) & warp.live;
                }
                group.push(next);
            }
            if wanted & !there != 0 {
                continue;
            }
            let mut inputs = Inputs {
                a: [0; WARP],
                b: [0; WARP],
                c: [0; WARP],
                members: [0; WARP],
                lanes: 0,
            };
            for &index in &group {
                if let Some(exchange) = exchange_of(&warp.splits[index]) {
                    let split = warp.splits[index].clone();
                    self.gather(warp, &split, exchange, &mut inputs);
                    self.look_for_strangers(cta, warp, &split, &inputs);
                }
            }
            if first.kind == ExchangeKind::Barrier {
                self.announce(cta, warp, warp.splits[start].pc, &inputs);
            }
            let (d, p) = compute(first.kind, &inputs);
            for &index in &group {
                if let Some(exchange) = exchange_of(&warp.splits[index]) {
                    let split = warp.splits[index].clone();
                    self.scatter(warp, &split, exchange, &d, p);
                }
                let clock = warp.clock;
                let split = &mut warp.splits[index];
                split.state = State::Ready;
                split.turn = clock;
                split.pc += 1;
            }
        }
        warp.join();
    }

    fn gather(&self, warp: &Warp, split: &Split, exchange: &Exchange, inputs: &mut Inputs) {
        let consts = &self.setup.program.consts;
        let votes = matches!(
            exchange.kind,
            ExchangeKind::VoteAll
                | ExchangeKind::VoteAny
                | ExchangeKind::VoteUni
                | ExchangeKind::Ballot
        );
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

    fn scatter(&self, warp: &mut Warp, split: &Split, exchange: &Exchange, d: &Lanes, p: u32) {
        let mut rows = warp.rows(&split.frame, &self.setup.program.consts);
        if let Some(row) = exchange.d {
            rows.put(row, split.mask, d);
        }
        if let Some(pred) = exchange.p {
            rows.put_pred(pred, split.mask, p);
        }
    }
}

/// The results for every lane.
fn compute(kind: ExchangeKind, inputs: &Inputs) -> (Lanes, u32) {
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
            ExchangeKind::Barrier => (0, false),
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
    (d, p)
}

/// The lane a shuffle reads from, and whether it lies in the segment; its own lane otherwise.
/// Source: PTX ISA, `shfl.sync`.
fn source(kind: ExchangeKind, lane: usize, b: u64, c: u64) -> (usize, bool) {
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
