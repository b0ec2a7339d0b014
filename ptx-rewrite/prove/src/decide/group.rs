//! Accesses in groups that are decided together: one shape, effect and size, in overlapping ranges.

use super::integer::admissible;
use super::shape::{Index, Shape};
use crate::interval::Interval;
use crate::problem::{Effect, Linear, LoopId, Problem, Space, Term};
use std::collections::HashMap;

/// The accesses of a problem in groups.
pub(super) struct Groups<'a> {
    pub(super) shapes: Vec<Shape<'a>>,
    /// In ascending order of space and range.
    pub(super) groups: Vec<Group>,
    /// By access: the bytes that it can reach.
    pub(super) ranges: Vec<Option<Interval<i128>>>,
}

/// Alternatives of accesses with one shape, effect and size, whose ranges overlap each other.
pub(super) struct Group {
    pub(super) shape: usize,
    pub(super) space: Space,
    pub(super) effect: Effect,
    pub(super) bytes: u32,
    /// The address's constant and the access, in ascending order.
    pub(super) members: Vec<(i128, usize)>,
    /// The bytes that they can reach: first, and past the last.
    pub(super) range: Interval<i128>,
}

/// An address of which nothing is known.
static ANYWHERE: Linear = Linear {
    terms: Vec::new(),
    constant: 0,
};

/// What makes a shape.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    terms: &'a [Term],
    path: &'a [Linear],
    when: &'a [Linear],
    loops: &'a [LoopId],
    large: bool,
}

impl<'a> Groups<'a> {
    /// Sorts the alternatives of all accesses into groups.
    pub(super) fn new(problem: &'a Problem) -> Self {
        let index = Index::new(problem);
        let mut shapes: Vec<Shape> = Vec::new();
        let mut known: HashMap<Key, usize> = HashMap::new();
        // What makes a group, the constant, and the access.
        let mut alternatives = Vec::with_capacity(problem.accesses.len());
        let mut ranges: Vec<Option<Interval<i128>>> = vec![None; problem.accesses.len()];
        for (number, access) in problem.accesses.iter().enumerate() {
            let ways = (access.alternatives.iter()).map(|way| (&way.address, way.when.as_slice()));
            let unknown = (access.alternatives.is_empty()).then_some((&ANYWHERE, [].as_slice()));
            for (address, when) in ways.chain(unknown) {
                let large = unknown.is_some() || !admissible(address, problem.symbols.len());
                let key = Key {
                    terms: &address.terms,
                    path: &access.path,
                    when,
                    loops: &access.loops,
                    large,
                };
                let shape = *known.entry(key).or_insert_with(|| {
                    let conditions = access.path.iter().chain(when);
                    shapes.push(index.shape(&address.terms, conditions, &access.loops, large));
                    shapes.len() - 1
                });
                let Some(Interval { low, high }) = shapes[shape].range else {
                    continue;
                };
                let constant = if large { 0 } else { address.constant };
                let range =
                    Interval::new(low + constant, high + constant + i128::from(access.bytes));
                let whole = ranges[number].get_or_insert(range);
                *whole = whole.hull(range);
                let group = (access.space, access.effect, access.bytes, shape);
                alternatives.push((group, constant, number));
            }
        }
        alternatives.sort_unstable();
        let mut groups = Vec::new();
        for same in alternatives.chunk_by(|a, b| a.0 == b.0) {
            let (space, effect, bytes, shape) = same[0].0;
            let Some(Interval { low, high }) = shapes[shape].range else {
                continue;
            };
            let high = high + i128::from(bytes);
            for members in same.chunk_by(|a, b| b.1 - a.1 < high - low) {
                groups.push(Group {
                    shape,
                    space,
                    effect,
                    bytes,
                    range: Interval::new(low + members[0].1, high + members[members.len() - 1].1),
                    members: members.iter().map(|member| (member.1, member.2)).collect(),
                });
            }
        }
        groups.sort_by_key(|group| (group.space, group.range, group.members[0].1, group.shape));
        Self {
            shapes,
            groups,
            ranges,
        }
    }
}
