//! Times of any threads, as a tree that joins at the cost of what differs.
//!
//! Clocks that were joined share what they have in common, so most of a join meets the same memory
//! on both sides and stops there. After Okasaki and Gill, "Fast Mergeable Integer Maps" (ML
//! Workshop 1998), with 8 branches for two and threads for integers: a tree over CTAs, and for
//! each CTA the times of the whole, of warps, and of single lanes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::clock::Time;
use super::thread::{Thread, Warp};

/// Branches of a node, and the bits of a CTA that choose one.
const FAN: usize = 8;
const BITS: u32 = 3;

/// A warp of the CTA as a whole, or one of its lanes; the whole comes first.
type Part = u32;

fn whole(warp: u32) -> Part {
    warp << 6
}

fn single(warp: u32, lane: u32) -> Part {
    warp << 6 | (lane + 1)
}

/// Times of a CTA. Equal knowledge is equal: no part says what a larger one says already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cta {
    all: Time,
    parts: Parts,
}

/// The time up to which a part of a CTA is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct PartTime {
    part: Part,
    time: Time,
}

/// Times of parts of a CTA, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Parts {
    #[default]
    None,
    /// Releases of one thread per CTA are the most common.
    One([PartTime; 1]),
    Many(Arc<Vec<PartTime>>),
}

impl Parts {
    fn as_slice(&self) -> &[PartTime] {
        match self {
            Self::None => &[],
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }

    fn of(parts: Vec<PartTime>) -> Self {
        match parts[..] {
            [] => Self::None,
            [one] => Self::One([one]),
            _ => Self::Many(Arc::new(parts)),
        }
    }
}

impl Cta {
    fn part(&self, part: Part) -> Time {
        self.found(part).unwrap_or(0)
    }

    fn found(&self, part: Part) -> Option<Time> {
        let parts = self.parts.as_slice();
        let first = parts.first()?.part;
        if part < first {
            return None;
        }
        // Where all lanes of the warps in between are known one by one, as where all wait for all.
        let (warps, lanes) = (
            (part >> 6) - (first >> 6),
            (part & 63) as i64 - (first & 63) as i64,
        );
        let guess = usize::try_from(32 * i64::from(warps) + lanes).ok();
        if let Some(&PartTime { part: of, time }) = guess.and_then(|guess| parts.get(guess))
            && of == part
        {
            return Some(time);
        }
        let found = parts.binary_search_by_key(&part, |of| of.part);
        found.ok().map(|at| parts[at].time)
    }

    /// The time up to which all lanes of a warp are known.
    fn warp(&self, warp: u32) -> Time {
        self.all.max(self.part(whole(warp)))
    }

    /// What is known of a part, be it by way of a larger one.
    fn get(&self, part: Part) -> Time {
        // No part says what a larger one says already.
        match self.found(part) {
            Some(time) => time,
            None => self.warp(part >> 6),
        }
    }

    fn knows(&self, other: &Self) -> bool {
        if self.all < other.all {
            return false;
        }
        let mut mine = self.parts.as_slice().iter().peekable();
        let (mut of_warp, mut here) = (PartTime::default(), PartTime::default());
        other
            .parts
            .as_slice()
            .iter()
            .all(|&PartTime { part, time }| {
                while let Some(&known) = mine.next_if(|known| known.part <= part) {
                    here = known;
                    if known.part == whole(known.part >> 6) {
                        of_warp = known;
                    }
                }
                let warp = of_warp.part == whole(part >> 6) && of_warp.time >= time;
                self.all >= time || warp || here.part == part && here.time >= time
            })
    }

    /// Which of the two knows what the other does: greater if this one, equal if both, none if neither.
    fn compare(&self, other: &Self) -> Option<Ordering> {
        let order = |knows, is_known| match (knows, is_known) {
            (true, true) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Greater),
            (false, true) => Some(Ordering::Less),
            (false, false) => None,
        };
        let (mine, theirs) = (self.parts.as_slice(), other.parts.as_slice());
        let all = (self.all >= other.all, self.all <= other.all);
        if core::ptr::eq(mine, theirs) {
            return order(all.0, all.1);
        }
        if mine.len() != theirs.len() || mine.is_empty() {
            return order(self.knows(other), other.knows(self));
        }
        let (mut same, mut more, mut less) = (true, true, true);
        for (a, b) in mine.iter().zip(theirs) {
            same &= a.part == b.part;
            more &= a.time >= b.time;
            less &= a.time <= b.time;
        }
        match same {
            // What is known of a part is known by no larger one.
            true => order(all.0 && more, all.1 && less),
            false => order(self.knows(other), other.knows(self)),
        }
    }

    fn joined(&self, other: &Self) -> Self {
        let all = self.all.max(other.all);
        let (mut mine, mut theirs) = (self.parts.as_slice(), other.parts.as_slice());
        let mut parts = Vec::with_capacity(mine.len() + theirs.len());
        let mut of_warp = (0, 0);
        loop {
            let PartTime { part, time } = match (mine, theirs) {
                ([], []) => break,
                ([a, rest @ ..], [b, ..]) if a.part < b.part => {
                    mine = rest;
                    *a
                }
                ([a, mine_left @ ..], [b, theirs_left @ ..]) if a.part == b.part => {
                    (mine, theirs) = (mine_left, theirs_left);
                    *a.max(b)
                }
                (_, [b, rest @ ..]) => {
                    theirs = rest;
                    *b
                }
                ([a, rest @ ..], []) => {
                    mine = rest;
                    *a
                }
            };
            let warp = part >> 6;
            let known = match part == whole(warp) {
                true => all,
                false if of_warp.0 == warp => all.max(of_warp.1),
                false => all,
            };
            if part == whole(warp) {
                of_warp = (warp, time);
            }
            if time > known {
                parts.push(PartTime { part, time });
            }
        }
        Self {
            all,
            parts: Parts::of(parts),
        }
    }

    /// A lane is known up to a time that neither its own part nor a larger one has passed on.
    fn raise(&mut self, part: Part, time: Time) {
        match &mut self.parts {
            Parts::None => self.parts = Parts::One([PartTime { part, time }]),
            Parts::One([one]) if one.part == part => one.time = time,
            Parts::One([one]) => {
                let mut both = alloc::vec![*one, PartTime { part, time }];
                both.sort_unstable();
                self.parts = Parts::Many(Arc::new(both));
            }
            Parts::Many(many) => {
                let many = Arc::make_mut(many);
                match many.binary_search_by_key(&part, |of| of.part) {
                    Ok(at) => many[at].time = time,
                    Err(at) => many.insert(at, PartTime { part, time }),
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.all == 0 && self.parts == Parts::None
    }
}

/// A node of the tree, over the CTAs that differ from `first` in their lowest `level + 1` digits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    first: u64,
    level: u32,
    below: Below,
}

/// What is below a node, of which something is there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Below {
    /// At level 0.
    Ctas([Cta; FAN]),
    /// At least two.
    Nodes([Option<Arc<Node>>; FAN]),
}

/// A join at one place of two nodes.
struct JoinedPlace<T> {
    joined: Joined<T>,
    /// Both sides knew the same.
    same: bool,
}

impl<T> JoinedPlace<T> {
    /// Both sides knew the same.
    const SAME: Self = Self {
        joined: Joined::Right,
        same: true,
    };

    fn different(joined: Joined<T>) -> Self {
        Self {
            joined,
            same: false,
        }
    }
}

/// Where the result of a join is.
enum Joined<T> {
    /// Both sides knew the same, or the right one knew more.
    Right,
    /// The left one knew more.
    Left,
    /// Neither knew all.
    New(T),
}

/// How far one side of a join knows all, while it is looked at.
#[derive(Clone, Copy)]
struct Knows {
    left: bool,
    right: bool,
}

fn digit(cta: u64, level: u32) -> usize {
    (cta >> (BITS * level)) as usize % FAN
}

impl Node {
    /// True when a CTA is, or would be, below the node.
    fn spans(&self, cta: u64) -> bool {
        let differ = cta ^ self.first;
        differ.checked_shr(BITS * (self.level + 1)).unwrap_or(0) == 0
    }

    fn leaf(cta: u64) -> Self {
        Self {
            first: cta & !(FAN as u64 - 1),
            level: 0,
            below: Below::Ctas(Default::default()),
        }
    }

    /// The node above two that span different CTAs.
    fn fork(a: Arc<Self>, b: Arc<Self>) -> Self {
        let level = (63 - (a.first ^ b.first).leading_zeros()) / BITS;
        let bits = BITS * (level + 1);
        let first = a.first.checked_shr(bits).unwrap_or(0);
        let first = first.checked_shl(bits).unwrap_or(0);
        let mut nodes: [Option<Arc<Self>>; FAN] = Default::default();
        let digits = (digit(a.first, level), digit(b.first, level));
        nodes[digits.0] = Some(a);
        nodes[digits.1] = Some(b);
        Self {
            first,
            level,
            below: Below::Nodes(nodes),
        }
    }

    fn get(&self, cta: u64) -> Option<&Cta> {
        let mut node = self;
        loop {
            if !node.spans(cta) {
                return None;
            }
            match &node.below {
                Below::Ctas(ctas) => return Some(&ctas[digit(cta, 0)]),
                Below::Nodes(nodes) => node = nodes[digit(cta, node.level)].as_ref()?,
            }
        }
    }

    fn any(&self, wanted: &impl Fn(u64) -> bool) -> bool {
        match &self.below {
            Below::Ctas(ctas) => {
                let mut ctas = (self.first..).zip(ctas);
                ctas.any(|(cta, times)| !times.is_empty() && wanted(cta))
            }
            Below::Nodes(nodes) => nodes.iter().flatten().any(|node| node.any(wanted)),
        }
    }

    /// The times of a CTA, to be changed.
    fn change(at: &mut Arc<Self>, cta: u64) -> &mut Cta {
        if !at.spans(cta) {
            let old = Arc::clone(at);
            *at = Arc::new(Self::fork(old, Arc::new(Self::leaf(cta))));
        }
        let node = Arc::make_mut(at);
        match &mut node.below {
            Below::Ctas(ctas) => &mut ctas[digit(cta, 0)],
            Below::Nodes(nodes) => {
                let below = &mut nodes[digit(cta, node.level)];
                Self::change(below.get_or_insert_with(|| Arc::new(Self::leaf(cta))), cta)
            }
        }
    }

    /// The node without a CTA that it knows of.
    fn without(&self, cta: u64) -> Option<Arc<Self>> {
        let mut node = self.clone();
        let left = match &mut node.below {
            Below::Ctas(ctas) => {
                ctas[digit(cta, 0)] = Cta::default();
                ctas.iter().filter(|cta| !cta.is_empty()).count()
            }
            Below::Nodes(nodes) => {
                let below = &mut nodes[digit(cta, self.level)];
                *below = below.as_ref().and_then(|below| below.without(cta));
                let mut left = nodes.iter().flatten();
                if let (Some(only), None) = (left.next(), left.next()) {
                    return Some(Arc::clone(only));
                }
                2
            }
        };
        (left > 0).then(|| Arc::new(node))
    }

    fn join(left: &Arc<Self>, right: &Arc<Self>) -> Joined<Arc<Self>> {
        if Arc::ptr_eq(left, right) {
            return Joined::Right;
        }
        match left.level.cmp(&right.level) {
            Ordering::Equal if left.first == right.first => left.join_alike(right),
            Ordering::Greater if left.spans(right.first) => {
                let below = left.below(right.first);
                let joined = below.map_or(Joined::Right, |below| Self::join(below, right));
                match joined {
                    Joined::Left => Joined::Left,
                    Joined::Right => Joined::New(left.with(Arc::clone(right))),
                    Joined::New(new) => Joined::New(left.with(new)),
                }
            }
            Ordering::Less if right.spans(left.first) => {
                let below = right.below(left.first);
                let joined = below.map_or(Joined::Left, |below| Self::join(left, below));
                match joined {
                    Joined::Right => Joined::Right,
                    Joined::Left => Joined::New(right.with(Arc::clone(left))),
                    Joined::New(new) => Joined::New(right.with(new)),
                }
            }
            _ => Joined::New(Arc::new(Self::fork(Arc::clone(left), Arc::clone(right)))),
        }
    }

    fn below(&self, cta: u64) -> Option<&Arc<Self>> {
        match &self.below {
            Below::Ctas(_) => None,
            Below::Nodes(nodes) => nodes[digit(cta, self.level)].as_ref(),
        }
    }

    /// The node with another one where that belongs below it.
    fn with(&self, other: Arc<Self>) -> Arc<Self> {
        let mut node = self.clone();
        if let Below::Nodes(nodes) = &mut node.below {
            let at = digit(other.first, self.level);
            nodes[at] = Some(other);
        }
        Arc::new(node)
    }

    /// Joins nodes that span the same CTAs.
    fn join_alike(&self, other: &Self) -> Joined<Arc<Self>> {
        let mut knows = Knows {
            left: true,
            right: true,
        };
        let below = match (&self.below, &other.below) {
            (Below::Ctas(a), Below::Ctas(b)) => {
                join_all(a, b, &mut knows, |a, b| match a.compare(b) {
                    Some(Ordering::Equal) => JoinedPlace::SAME,
                    Some(Ordering::Less) => JoinedPlace::different(Joined::Right),
                    Some(Ordering::Greater) => JoinedPlace::different(Joined::Left),
                    None => JoinedPlace::different(Joined::New(a.joined(b))),
                })
                .map(Below::Ctas)
            }
            (Below::Nodes(a), Below::Nodes(b)) => join_all(a, b, &mut knows, |a, b| match (a, b) {
                (None, None) => JoinedPlace::SAME,
                (None, Some(_)) => JoinedPlace::different(Joined::Right),
                (Some(_), None) => JoinedPlace::different(Joined::Left),
                (Some(a), Some(b)) if Arc::ptr_eq(a, b) => JoinedPlace::SAME,
                (Some(a), Some(b)) => JoinedPlace::different(match Self::join(a, b) {
                    Joined::Right => Joined::Right,
                    Joined::Left => Joined::Left,
                    Joined::New(new) => Joined::New(Some(new)),
                }),
            })
            .map(Below::Nodes),
            _ => None,
        };
        match below {
            None if knows.right => Joined::Right,
            None => Joined::Left,
            Some(below) => Joined::New(Arc::new(Self { below, ..*self })),
        }
    }
}

/// Joins place by place; nothing where one side knows all.
fn join_all<T: Clone>(
    a: &[T; FAN],
    b: &[T; FAN],
    knows: &mut Knows,
    join: impl Fn(&T, &T) -> JoinedPlace<T>,
) -> Option<[T; FAN]> {
    let joined: [Joined<T>; FAN] = core::array::from_fn(|at| {
        let JoinedPlace { joined, same } = join(&a[at], &b[at]);
        knows.left &= same || matches!(joined, Joined::Left);
        knows.right &= matches!(joined, Joined::Right);
        joined
    });
    if knows.left || knows.right {
        return None;
    }
    let mut at = 0;
    Some(joined.map(|joined| {
        at += 1;
        match joined {
            Joined::Left => a[at - 1].clone(),
            Joined::Right => b[at - 1].clone(),
            Joined::New(new) => new,
        }
    }))
}

/// Times of any threads. Cheap to clone; clones share what they do not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sparse(Option<Arc<Node>>);

impl Sparse {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn of(&self, cta: u64) -> Option<&Cta> {
        self.0.as_ref()?.get(cta)
    }

    pub(crate) fn get(&self, of: Thread) -> Time {
        let times = self.of(of.cta);
        times.map_or(0, |times| times.get(single(of.warp, of.lane)))
    }

    /// The lanes of a warp that are not known up to `time`.
    pub(crate) fn behind(&self, of: Warp, lanes: u32, time: Time) -> u32 {
        let Some(times) = self.of(of.cta) else {
            return lanes;
        };
        if lanes.is_power_of_two() {
            let known = times.get(single(of.warp, lanes.trailing_zeros()));
            return if known >= time { 0 } else { lanes };
        }
        if times.warp(of.warp) >= time {
            return 0;
        }
        let parts = times.parts.as_slice();
        let first = parts.partition_point(|of_part| of_part.part <= whole(of.warp));
        let own = parts[first..]
            .iter()
            .take_while(|of_lane| of_lane.part >> 6 == of.warp);
        let known = own.filter(|of_lane| of_lane.time >= time);
        lanes & !known.fold(0, |all, of_lane| all | 1 << ((of_lane.part & 63) - 1))
    }

    /// The time up to which all lanes of a warp are known.
    pub(crate) fn of_warp(&self, cta: u64, warp: u32) -> Time {
        self.of(cta).map_or(0, |times| times.warp(warp))
    }

    fn add(&mut self, cta: u64, times: &Cta) {
        let tree = self.0.get_or_insert_with(|| Arc::new(Node::leaf(cta)));
        let known = Node::change(tree, cta);
        *known = known.joined(times);
    }

    /// All threads of a CTA are known up to `time`.
    pub(crate) fn raise_cta(&mut self, cta: u64, time: Time) {
        if time > self.of(cta).map_or(0, |times| times.all) {
            let parts = Parts::None;
            self.add(cta, &Cta { all: time, parts });
        }
    }

    /// All lanes of a warp are known up to `time`.
    pub(crate) fn raise_warp(&mut self, cta: u64, warp: u32, time: Time) {
        if time > self.of_warp(cta, warp) {
            let part = whole(warp);
            let parts = Parts::One([PartTime { part, time }]);
            self.add(cta, &Cta { all: 0, parts });
        }
    }

    /// One thread is known up to `time`.
    pub(crate) fn raise(&mut self, of: Thread, time: Time) {
        if time > self.get(of) {
            let tree = self.0.get_or_insert_with(|| Arc::new(Node::leaf(of.cta)));
            Node::change(tree, of.cta).raise(single(of.warp, of.lane), time);
        }
    }

    /// Some lanes of a warp are known up to `time`.
    pub(crate) fn raise_lanes(&mut self, cta: u64, warp: u32, lanes: u32, time: Time) {
        let known = |part| self.of(cta).map_or(0, |times| times.get(part));
        let parts = super::each(lanes).map(|lane| PartTime {
            part: single(warp, lane),
            time,
        });
        let parts: Vec<PartTime> = parts.filter(|of| of.time > known(of.part)).collect();
        match parts[..] {
            [] => {}
            [PartTime { part, time }] => {
                let tree = self.0.get_or_insert_with(|| Arc::new(Node::leaf(cta)));
                Node::change(tree, cta).raise(part, time);
            }
            _ => {
                let parts = Parts::of(parts);
                self.add(cta, &Cta { all: 0, parts });
            }
        }
    }

    /// Knows what `other` knows as well.
    pub(crate) fn join(&mut self, other: &Self) {
        let Some(theirs) = &other.0 else {
            return;
        };
        let joined = match &self.0 {
            None => Joined::Right,
            Some(mine) => Node::join(mine, theirs),
        };
        match joined {
            Joined::Left => {}
            Joined::Right => self.0 = Some(Arc::clone(theirs)),
            Joined::New(new) => self.0 = Some(new),
        }
    }

    /// Both joined; none if `other` adds nothing.
    pub(crate) fn joined(&self, other: &Self) -> Option<Self> {
        let mut all = self.clone();
        all.join(other);
        let same = match (&self.0, &all.0) {
            (Some(mine), Some(all)) => Arc::ptr_eq(mine, all),
            (None, None) => true,
            _ => false,
        };
        (!same).then_some(all)
    }

    /// Whether something is known of a CTA.
    pub(crate) fn knows(&self, cta: u64) -> bool {
        // A leaf also has places for neighbours of which nothing is known.
        self.of(cta).is_some_and(|times| !times.is_empty())
    }

    /// Whether something is known of a CTA for which `wanted` holds.
    pub(crate) fn knows_any(&self, wanted: impl Fn(u64) -> bool) -> bool {
        self.0.as_ref().is_some_and(|tree| tree.any(&wanted))
    }

    /// Forgets a CTA, of which its owner keeps track otherwise.
    pub(crate) fn forget(&mut self, cta: u64) {
        if self.knows(cta) {
            self.0 = self.0.as_ref().and_then(|tree| tree.without(cta));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_neighbours_of_a_known_cta_nothing_is_known() {
        let mut times = Sparse::default();
        times.raise(Warp { cta: 3, warp: 0 }.lane(1), 5);
        for cta in 0..20 {
            assert_eq!(times.knows(cta), cta == 3, "{cta}");
            assert_eq!(times.knows_any(|known| known == cta), cta == 3, "{cta}");
        }
    }
}
