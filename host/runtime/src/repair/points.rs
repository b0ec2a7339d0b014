//! Points for barriers that order the races of a function: few of them, so that races which one barrier repairs get the
//! same.

use super::Found;
use super::flow::{Candidate, Flow, RequiredOrder};
use crate::log::{Level, Point};

/// Ways between accesses that are looked at together.
const TOGETHER: usize = 32;
/// Ways whose ends are looked at for points.
const WAYS: usize = 256;

/// What has been found to order races of a function so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen(Vec<(RequiredOrder, Candidate)>);

/// What orders two accesses.
#[derive(Debug, Default)]
pub(super) struct OrderingPoints {
    /// One for each direction that control flow can take and that has one.
    pub(super) points: Vec<Point>,
    /// They are for barriers of a warp.
    pub(super) of_warps: bool,
    /// Lines in front of which waits for asynchronous copies are missing.
    pub(super) waits: Vec<u32>,
}

impl Chosen {
    /// What orders each of several pairs, with what has been chosen before and, where that does not, with more.
    pub(super) fn order(&mut self, flow: &Flow<'_>, pairs: &[Found]) -> Vec<OrderingPoints> {
        let of_level = |level, order| {
            let wanted = move |of: &&Found| of.pair.level == level && of.pair.order() == order;
            let of_level = pairs.iter().filter(wanted);
            of_level.map(|of| of.sites)
        };
        self.choose(
            flow,
            RequiredOrder::Block,
            of_level(Level::Cta, RequiredOrder::Block),
        );
        self.choose(
            flow,
            RequiredOrder::Cluster,
            of_level(Level::Grid, RequiredOrder::Cluster),
        );
        self.choose(
            flow,
            RequiredOrder::Grid,
            of_level(Level::Grid, RequiredOrder::Grid),
        );
        // Where a kernel has phases of the whole block, the next phase begins for all of it.
        let mut of_warps = Vec::new();
        for sites in of_level(Level::Warp, RequiredOrder::Block) {
            let mut with = self.clone();
            with.choose(flow, RequiredOrder::Block, [sites].into_iter());
            match flow.has_barriers() && with.orders(flow, sites) {
                true => *self = with,
                false => of_warps.push(sites),
            }
        }
        self.choose(flow, RequiredOrder::Warp, of_warps.iter().copied());
        for order in [false, true].map(|bulk| RequiredOrder::Wait { bulk }) {
            self.choose(flow, order, pairs.iter().map(|of| of.sites));
        }
        let ordering_points = pairs.iter().map(|&Found { pair, sites }| {
            let of_warps = pair.level == Level::Warp && of_warps.contains(&sites);
            let order = match of_warps {
                true => RequiredOrder::Warp,
                false => pair.order(),
            };
            OrderingPoints {
                points: self.points(flow, order, sites),
                of_warps,
                waits: self.waits(flow, sites),
            }
        });
        ordering_points.collect()
    }

    /// Adds what orders as many of the pairs as can be.
    fn choose(
        &mut self,
        flow: &Flow<'_>,
        order: RequiredOrder,
        pairs: impl Iterator<Item = [usize; 2]>,
    ) {
        let mut ways: Vec<_> = pairs.flat_map(|sites| open(flow, order, sites)).collect();
        ways.retain(|&way| self.closing(flow, order, way).is_none());
        let mut all: Vec<Candidate> = Vec::new();
        for candidate in ways
            .iter()
            .take(WAYS)
            .flat_map(|&way| flow.candidates(way, order))
        {
            // Copies of one point, as unrolling makes them, are one.
            let known = all
                .iter_mut()
                .find(|known| is_one_point(&known.point, &candidate.point));
            match known {
                Some(known) => known.before.extend(candidate.before),
                None => all.push(candidate),
            }
        }
        for ways in ways.chunks(TOGETHER) {
            let mut left = ways.to_vec();
            left.retain(|&way| self.closing(flow, order, way).is_none());
            while !left.is_empty() {
                let closed = |of: &Candidate| {
                    let closed = left.iter().filter(|&&way| closes(flow, order, way, of));
                    closed.count()
                };
                let mut best: Option<(usize, &Candidate)> = None;
                for candidate in &all {
                    let count = closed(candidate);
                    if count > best.map_or(0, |(most, _)| most) {
                        best = Some((count, candidate));
                    }
                }
                let Some((_, best)) = best else { break };
                left.retain(|&way| !closes(flow, order, way, best));
                self.0.push((order, best.clone()));
            }
        }
    }

    /// The first of those chosen that closes a way.
    fn closing(
        &self,
        flow: &Flow<'_>,
        order: RequiredOrder,
        way: [usize; 2],
    ) -> Option<&Candidate> {
        let mut of_order = self.0.iter().filter(|(of, _)| *of == order);
        let found = of_order.find(|(_, candidate)| closes(flow, order, way, candidate));
        found.map(|(_, candidate)| candidate)
    }

    /// Whether barriers of the block order two accesses, whichever way control flow takes.
    fn orders(&self, flow: &Flow<'_>, sites: [usize; 2]) -> bool {
        let ways = open(flow, RequiredOrder::Block, sites);
        !ways.is_empty()
            && ways
                .iter()
                .all(|&way| self.closing(flow, RequiredOrder::Block, way).is_some())
    }

    /// The lines in front of which waits for the asynchronous copies among two accesses are missing. If a wait follows a
    /// copy, but not for it, because the copy is in no committed group, the line of that wait.
    fn waits(&self, flow: &Flow<'_>, sites: [usize; 2]) -> Vec<u32> {
        let copies = sites.iter().filter_map(|&at| Some((at, flow.awaited(at)?)));
        let mut waits: Vec<u32> = copies
            .flat_map(|(copy, order)| {
                let points = self.points(flow, order, sites);
                match points.is_empty() {
                    true => vec![flow.line_of_wait(copy)],
                    false => points.iter().map(|point| point.place).collect(),
                }
            })
            .collect();
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    fn points(&self, flow: &Flow<'_>, order: RequiredOrder, sites: [usize; 2]) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for way in open(flow, order, sites) {
            let found = self.closing(flow, order, way);
            let new = found.filter(|of| points.iter().all(|known| known.place != of.point.place));
            points.extend(new.map(|candidate| candidate.point.clone()));
        }
        points
    }
}

/// The ways that control flow can take from one of two accesses to the other without what would order them.
fn open(flow: &Flow<'_>, order: RequiredOrder, [one, other]: [usize; 2]) -> Vec<[usize; 2]> {
    let mut ways = vec![[one, other]];
    if one != other {
        ways.push([other, one]);
    }
    let of_copy = |[from, _]: [usize; 2]| match order {
        RequiredOrder::Wait { .. } => flow.awaited(from) == Some(order),
        _ => true,
    };
    ways.retain(|&way| of_copy(way) && flow.reaches(way, &[], order));
    ways
}

/// Whether two points are one in the source.
fn is_one_point(one: &Point, other: &Point) -> bool {
    let key = |of: &Point| (of.after, of.op, of.frames.clone(), of.outside.clone());
    match one.frames.is_empty() {
        true => one.place == other.place,
        false => key(one) == key(other),
    }
}

fn closes(flow: &Flow<'_>, order: RequiredOrder, way: [usize; 2], candidate: &Candidate) -> bool {
    !flow.reaches(way, &candidate.before, order)
}
