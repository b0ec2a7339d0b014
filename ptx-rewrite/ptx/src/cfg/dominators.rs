//! Dominators of a graph.
//!
//! Source: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001): fixed point
//! over the blocks in reverse post-order, sets kept as the tree itself.

/// Nodes that can be reached from `root`, in post-order.
pub fn post_order<'a>(
    count: usize,
    root: usize,
    successors: impl Fn(usize) -> &'a [usize] + 'a,
) -> Vec<usize> {
    let mut order = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    // A node and how many of its successors have been entered.
    let mut stack = vec![(root, 0)];
    seen[root] = true;
    while let Some((node, done)) = stack.last_mut() {
        match successors(*node).get(*done) {
            Some(&next) => {
                *done += 1;
                if !seen[next] {
                    seen[next] = true;
                    stack.push((next, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order
}

/// The immediate dominator of each node; none for `root` and for what it cannot reach.
pub fn immediate<'a>(
    count: usize,
    root: usize,
    successors: impl Fn(usize) -> &'a [usize] + 'a,
    predecessors: impl Fn(usize) -> &'a [usize],
) -> Vec<Option<usize>> {
    let order = post_order(count, root, successors);
    let mut number = vec![usize::MAX; count];
    for (position, &node) in order.iter().enumerate() {
        number[node] = position;
    }
    let mut parent: Vec<Option<usize>> = vec![None; count];
    parent[root] = Some(root);
    let mut changed = true;
    while changed {
        changed = false;
        for &node in order.iter().rev().filter(|&&node| node != root) {
            let known = predecessors(node)
                .iter()
                .copied()
                .filter(|&from| parent[from].is_some());
            let meeting = known.reduce(|left, right| meet(left, right, &parent, &number));
            if parent[node] != meeting {
                parent[node] = meeting;
                changed = true;
            }
        }
    }
    parent[root] = None;
    parent
}

/// The lowest common ancestor of two nodes in the tree so far.
fn meet(mut left: usize, mut right: usize, parent: &[Option<usize>], number: &[usize]) -> usize {
    // Every node on the way has a parent, and the root has the highest number, so both walks stop.
    while left != right {
        while number[left] < number[right] {
            left = parent[left].unwrap_or(right);
        }
        while number[right] < number[left] {
            right = parent[right].unwrap_or(left);
        }
    }
    left
}
