//! How values change from one iteration of a loop to the next, what ends loops, and the order in which a launch
//! computes everything.

use crate::graph::{Addend, Advance, Comparison, Graph, LoopFacts, Node, NodeId, Op, Origin, Test};
use crate::interval::Interval;
use crate::loops::Loops;
use crate::problem::LoopId;
use crate::ssa::{Builder, full_range};
use crate::value::centered;

/// Most values on the way from a loop's next value back to this one.
const CHAIN: usize = 64;

/// Values of joins, starts of loops and ends of loops that are the same as another one become copies.
pub(crate) fn simplify(graph: &mut Graph) {
    let mut settled = false;
    while !settled {
        settled = true;
        for node in 0..graph.items.len() as NodeId {
            let same = match &graph.items[node as usize].node {
                Node::Header { first, next, .. } => {
                    let inputs = first.iter().chain(next);
                    only(graph, node, inputs.copied())
                }
                Node::Join { inputs, .. } => {
                    only(graph, node, inputs.iter().map(|&(input, _)| input))
                }
                &Node::Out { value, of } => {
                    let value = graph.resolve(value);
                    let home = graph.items[value as usize].home;
                    (!graph.is_inside(home, of)).then_some(value)
                }
                _ => None,
            };
            if let Some(same) = same {
                graph.items[node as usize].node = Node::Copy(same);
                settled = false;
            }
        }
    }
}

/// The one value among the inputs besides the value itself.
fn only(graph: &Graph, node: NodeId, inputs: impl Iterator<Item = NodeId>) -> Option<NodeId> {
    let mut found = None;
    for input in inputs {
        let input = graph.resolve(input);
        if input != node && *found.get_or_insert(input) != input {
            return None;
        }
    }
    found
}

/// Sets up [`Graph::loops`]; [`tests`] completes them.
pub(crate) fn loops(builder: &mut Builder<'_>) {
    let all: &Loops = builder.loops;
    for (index, of) in all.loops.iter().enumerate() {
        let at = builder.cfg.blocks[of.header].start;
        let counter = builder.add(at, 64, Node::Counter(index as LoopId));
        let blocks = of.contains.iter().enumerate();
        let blocks: Vec<usize> = blocks
            .filter(|(_, inside)| **inside)
            .map(|(block, _)| block)
            .collect();
        let branches = builder.decisions(&blocks);
        let outside = of.parent;
        let mut entry = builder.graph.holds[of.header].clone();
        let items = &builder.graph.items;
        entry.retain(|(condition, _)| {
            let home = items[*condition as usize].home;
            home.is_none_or(|home| all.is_inside(outside, home))
        });
        builder.graph.loops.push(LoopFacts {
            parent: of.parent,
            counter,
            tests: Vec::new(),
            single: false,
            branches,
            entry,
        });
    }
}

/// Says of each value at the start of a loop how it advances.
pub(crate) fn headers(graph: &mut Graph) {
    for node in 0..graph.items.len() as NodeId {
        let Node::Header { of, next, .. } = &graph.items[node as usize].node else {
            continue;
        };
        let (of, next) = (*of, next.clone());
        let mut ends: Vec<NodeId> = next.iter().map(|&next| graph.resolve(next)).collect();
        ends.sort_unstable();
        ends.dedup();
        let kind = match ends[..] {
            [next] => match addends(graph, next, of) {
                Some((header, addends)) if header == node => Advance::By(addends),
                _ if shrinks(graph, next, node) => Advance::Shrinks,
                _ => among_numbers(graph, node, &ends),
            },
            _ => among_numbers(graph, node, &ends),
        };
        let mut leaves = Vec::new();
        let mut seen = Vec::new();
        let steady = ends.len() == 1 && gather(graph, ends[0], node, of, &mut leaves, &mut seen);
        let found = steady.then_some(leaves);
        if let Node::Header {
            kind: known,
            leaves,
            ..
        } = &mut graph.items[node as usize].node
        {
            *known = kind;
            *leaves = found;
        }
    }
}

/// A value as the sum of a value at the start of a loop and of others that stay the same during the loop.
fn addends(graph: &Graph, from: NodeId, of: LoopId) -> Option<(NodeId, Vec<Addend>)> {
    let mut addends = Vec::new();
    let mut at = graph.resolve(from);
    for _ in 0..CHAIN {
        match &graph.items[at as usize].node {
            Node::Header { of: header, .. } if *header == of => return Some((at, addends)),
            &Node::Operation {
                op: op @ (Op::Add | Op::Sub),
                inputs: [left, right, _],
                ..
            } => {
                let (left, right) = (graph.resolve(left), graph.resolve(right));
                if stays(graph, right, of, 0) {
                    addends.push(Addend {
                        node: right,
                        negated: op == Op::Sub,
                    });
                    at = left;
                } else if op == Op::Add && stays(graph, left, of, 0) {
                    addends.push(Addend {
                        node: left,
                        negated: false,
                    });
                    at = right;
                } else {
                    return None;
                }
            }
            _ => return None,
        }
    }
    None
}

/// Whether a value is the same in all iterations of a loop.
fn stays(graph: &Graph, node: NodeId, of: LoopId, depth: usize) -> bool {
    let node = graph.resolve(node);
    let item = &graph.items[node as usize];
    if !graph.is_inside(item.home, of) {
        return true;
    }
    if depth > 8 {
        return false;
    }
    match &item.node {
        Node::Number(_)
        | Node::Thread(_)
        | Node::Block(_)
        | Node::Threads(_)
        | Node::Blocks(_)
        | Node::Parameter { .. }
        | Node::Global(_)
        | Node::Shared(_) => true,
        Node::Operation { .. } | Node::Select { .. } | Node::Compare { .. } => {
            let mut all = true;
            graph.inputs(node, |input| {
                all = all && stays(graph, input, of, depth + 1)
            });
            all
        }
        _ => false,
    }
}

/// Whether a value is a part of another one that is not negative.
fn shrinks(graph: &Graph, next: NodeId, header: NodeId) -> bool {
    match &graph.items[next as usize].node {
        Node::Operation {
            op: Op::Shr | Op::Div,
            inputs: [value, by, _],
            ..
        } => {
            let number = matches!(graph.items[graph.resolve(*by) as usize].node, Node::Number(by) if by > 0 && by < 1 << 31);
            number && graph.resolve(*value) == header
        }
        _ => false,
    }
}

/// How a value advances that becomes one of some others.
fn among_numbers(graph: &Graph, header: NodeId, next: &[NodeId]) -> Advance {
    let mut seen = vec![header];
    let mut all: Option<Interval<i64>> = None;
    for &next in next {
        let Some(range) = numbers(graph, next, &mut seen) else {
            return Advance::Unknown;
        };
        all = hull(all, range);
    }
    all.map_or(Advance::Unknown, |Interval { low, high }| {
        Advance::Numbers(low, high)
    })
}

/// A range of two.
fn hull(left: Option<Interval<i64>>, right: Option<Interval<i64>>) -> Option<Interval<i64>> {
    match (left, right) {
        (Some(a), Some(b)) => Some(a.hull(b)),
        (one, other) => one.or(other),
    }
}

/// What a value is between, modulo two to the number of its bits, if it is not computed from a pointer. Values that have
/// been seen add nothing.
fn numbers(graph: &Graph, node: NodeId, seen: &mut Vec<NodeId>) -> Option<Option<Interval<i64>>> {
    let node = graph.resolve(node);
    if seen.contains(&node) {
        return Some(None);
    }
    if seen.len() > CHAIN {
        return None;
    }
    seen.push(node);
    let item = &graph.items[node as usize];
    let full = full_range(item.bits);
    match &item.node {
        Node::Join { .. } | Node::Select { .. } | Node::Out { .. } | Node::Header { .. } => {
            let mut all = Some(None);
            one_of(graph, node, |input| {
                all = all.and_then(|all| Some(hull(all, numbers(graph, input, seen)?)));
            });
            all
        }
        _ if !is_number(graph, node, &mut Vec::new()) => None,
        Node::Opaque { range, .. } => Some(Some(*range)),
        &Node::Number(value) => {
            let value = i64::try_from(centered(value, item.bits)).ok();
            Some(Some(value.map_or(full, Interval::only)))
        }
        &Node::Operation { op, signed, .. } => {
            let of_type = |bits: u32, signed: bool| match signed {
                true if bits < 64 => Interval::new(-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
                _ => full_range(bits),
            };
            Some(Some(match op {
                Op::Convert { from, to, .. } if to == item.bits && from < to => {
                    of_type(from, signed)
                }
                Op::Convert { to, to_signed, .. } if to < item.bits => of_type(to, to_signed),
                _ => full,
            }))
        }
        _ => Some(Some(full)),
    }
}

/// Calls `note` with the values of which a value is one.
fn one_of(graph: &Graph, node: NodeId, mut note: impl FnMut(NodeId)) {
    match &graph.items[node as usize].node {
        Node::Join { inputs, .. } => inputs.iter().for_each(|&(input, _)| note(input)),
        &Node::Select { yes, no, .. } => [yes, no].into_iter().for_each(note),
        &Node::Out { value, .. } => note(value),
        Node::Header { first, next, .. } => first.iter().chain(next).copied().for_each(note),
        _ => {}
    }
}

/// Whether a value is not computed from a pointer.
fn is_number(graph: &Graph, node: NodeId, seen: &mut Vec<NodeId>) -> bool {
    let node = graph.resolve(node);
    if seen.contains(&node) {
        return true;
    }
    if seen.len() > CHAIN {
        return false;
    }
    seen.push(node);
    let mut all = true;
    match &graph.items[node as usize].node {
        Node::Number(_)
        | Node::Thread(_)
        | Node::Block(_)
        | Node::Threads(_)
        | Node::Blocks(_)
        | Node::Parameter { bytes: ..8, .. } => {}
        Node::Join { .. } | Node::Select { .. } | Node::Out { .. } | Node::Header { .. } => {
            one_of(graph, node, |input| {
                all = all && is_number(graph, input, seen);
            });
        }
        Node::Opaque {
            origin: Origin::Number,
            ..
        }
        | Node::Operation { .. } => {
            graph.inputs(node, |input| all = all && is_number(graph, input, seen));
        }
        _ => all = false,
    }
    all
}

/// Whether a value is a function of a loop's value and of what stays the same during the loop, which are gathered.
fn gather(
    graph: &Graph,
    node: NodeId,
    header: NodeId,
    of: LoopId,
    leaves: &mut Vec<NodeId>,
    seen: &mut Vec<NodeId>,
) -> bool {
    let node = graph.resolve(node);
    if node == header || seen.contains(&node) {
        return true;
    }
    seen.push(node);
    if seen.len() > CHAIN {
        return false;
    }
    if stays(graph, node, of, 0) {
        leaves.push(node);
        return true;
    }
    match &graph.items[node as usize].node {
        Node::Operation { .. }
        | Node::Select { .. }
        | Node::Compare { .. }
        | Node::All(..)
        | Node::Any(..)
        | Node::Opposite(_) => {
            let mut inputs = Vec::new();
            graph.inputs(node, |input| inputs.push(input));
            inputs
                .into_iter()
                .all(|input| gather(graph, input, header, of, leaves, seen))
        }
        _ => false,
    }
}

/// Finds the tests that every iteration of a loop must pass for another one to follow.
pub(crate) fn tests(builder: &mut Builder<'_>) {
    let all: &Loops = builder.loops;
    for (index, of) in all.loops.iter().enumerate() {
        let id = index as LoopId;
        let (mut tests, mut alone) = (Vec::new(), true);
        for &(from, to) in &of.exits {
            let each = of
                .latches
                .iter()
                .all(|&latch| builder.cfg.dominates(from, latch));
            if !each || all.of[from] != Some(id) {
                continue;
            }
            let stays = builder.cfg.blocks[from].successors.iter();
            let stays: Vec<usize> = stays.copied().filter(|&to| of.contains[to]).collect();
            let [stay] = stays[..] else { continue };
            let condition = match to {
                Some(to) => builder.edge(from, to).map(|(on, yes)| (on, !yes)),
                None => builder.edge(from, stay),
            };
            if let Some((on, yes)) = condition {
                alone &= is_alone(&builder.graph, on);
                conjuncts(&builder.graph, on, yes, id, &mut tests, 0);
            }
        }
        let single = alone && of.exits.len() == 1 && tests.len() == 1;
        let facts = &mut builder.graph.loops[index];
        facts.tests = tests;
        facts.single = single;
    }
}

/// The comparisons that hold where a condition does.
fn conjuncts(graph: &Graph, on: NodeId, yes: bool, of: LoopId, into: &mut Vec<Test>, depth: u32) {
    if depth > 8 {
        return;
    }
    match (&graph.items[graph.resolve(on) as usize].node, yes) {
        (&Node::Opposite(inner), _) => conjuncts(graph, inner, !yes, of, into, depth + 1),
        (&Node::All(left, right), true) | (&Node::Any(left, right), false) => {
            conjuncts(graph, left, yes, of, into, depth + 1);
            conjuncts(graph, right, yes, of, into, depth + 1);
        }
        (
            &Node::Compare {
                comparison,
                signed,
                bits,
                left,
                right,
            },
            _,
        ) => {
            let comparison = if yes {
                comparison
            } else {
                comparison.negated()
            };
            for (value, bound, comparison) in [
                (left, right, comparison),
                (right, left, comparison.swapped()),
            ] {
                if let Some((header, addends)) = addends(graph, value, of)
                    && stays(graph, bound, of, 0)
                    && graph.items[header as usize].bits == bits
                {
                    into.push(Test {
                        comparison,
                        signed,
                        bits,
                        header,
                        addends,
                        bound: graph.resolve(bound),
                    });
                    return;
                }
            }
        }
        _ => {}
    }
}

/// Whether a test's comparison alone decides: there is no other condition beside it.
fn is_alone(graph: &Graph, mut on: NodeId) -> bool {
    for _ in 0..8 {
        match graph.items[graph.resolve(on) as usize].node {
            Node::Opposite(inner) => on = inner,
            Node::Compare { .. } => return true,
            _ => return false,
        }
    }
    false
}

/// The order in which all that is needed for some values can be computed: each after what it is computed from.
pub(crate) fn order(graph: &Graph, roots: &[NodeId]) -> Vec<NodeId> {
    let mut state = vec![0u8; graph.items.len()];
    let mut order = Vec::new();
    let mut work: Vec<(NodeId, bool)> = roots.iter().rev().map(|&root| (root, false)).collect();
    while let Some((node, done)) = work.pop() {
        if done {
            if state[node as usize] == 1 {
                state[node as usize] = 2;
                order.push(node);
            }
            continue;
        }
        if state[node as usize] != 0 {
            continue;
        }
        state[node as usize] = 1;
        work.push((node, true));
        let mut inputs = Vec::new();
        graph.inputs(node, |input| inputs.push(input));
        work.extend(inputs.into_iter().rev().map(|input| (input, false)));
    }
    order
}

/// Whether a comparison can bound a loop whose value advances by a positive or a negative number.
pub(crate) fn bounds(comparison: Comparison, positive: bool) -> bool {
    matches!(
        (comparison, positive),
        (Comparison::Less | Comparison::LessEqual, true)
            | (Comparison::Greater | Comparison::GreaterEqual, false)
    )
}
