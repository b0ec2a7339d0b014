//! Dominators of a graph.
//!
//! Source: Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (1979),
//! the simple version with path compression: near-linear, which the shorter algorithms are not
//! for a long chain of blocks that all jump to one error exit.
//! Nodes are renamed to their number in a depth-first walk while the algorithm runs.

/// Nodes that can be reached from `root`, in post-order.
pub fn post_order<'a>(
    count: usize,
    root: usize,
    successors: impl Fn(usize) -> &'a [usize],
) -> Vec<usize> {
    let mut order = Vec::with_capacity(count);
    walk(count, root, successors, |_, _| {}, |node| order.push(node));
    order
}

/// The immediate dominator of each node; none for `root` and for what it cannot reach.
pub fn immediate<'a>(
    count: usize,
    root: usize,
    successors: impl Fn(usize) -> &'a [usize],
    predecessors: impl Fn(usize) -> &'a [usize],
) -> Vec<Option<usize>> {
    let mut number = vec![usize::MAX; count];
    let mut node = Vec::with_capacity(count);
    let mut parent = Vec::with_capacity(count);
    let enter = |entered: usize, from: usize| {
        number[entered] = node.len();
        node.push(entered);
        parent.push(from);
    };
    walk(count, root, successors, enter, |_| {});
    // From nodes to numbers: a node is entered after its parent.
    for from in &mut parent {
        *from = number[*from];
    }
    let reached = node.len();
    let mut forest = Forest::new(reached);
    let mut dominator = vec![0; reached];
    let mut waiting = vec![Vec::new(); reached];
    for this in (1..reached).rev() {
        for &from in predecessors(node[this]) {
            if number[from] != usize::MAX {
                let best = forest.best(number[from]);
                forest.semi[this] = forest.semi[this].min(forest.semi[best]);
            }
        }
        waiting[forest.semi[this]].push(this);
        let above = parent[this];
        forest.link(above, this);
        for below in std::mem::take(&mut waiting[above]) {
            let best = forest.best(below);
            let closer = forest.semi[best] < forest.semi[below];
            dominator[below] = if closer { best } else { above };
        }
    }
    let mut result = vec![None; count];
    for this in 1..reached {
        if dominator[this] != forest.semi[this] {
            dominator[this] = dominator[dominator[this]];
        }
        result[node[this]] = Some(node[dominator[this]]);
    }
    result
}

/// Depth-first walk. `enter` gets a node and the one it was first reached from (the root itself
/// for the root), `leave` a node all of whose successors are done.
fn walk<'a>(
    count: usize,
    root: usize,
    successors: impl Fn(usize) -> &'a [usize],
    mut enter: impl FnMut(usize, usize),
    mut leave: impl FnMut(usize),
) {
    let mut seen = vec![false; count];
    // A node and how many of its successors have been looked at.
    let mut stack = vec![(root, 0)];
    seen[root] = true;
    enter(root, root);
    while let Some((node, done)) = stack.last_mut() {
        let from = *node;
        match successors(from).get(*done) {
            Some(&next) => {
                *done += 1;
                if !seen[next] {
                    seen[next] = true;
                    enter(next, from);
                    stack.push((next, 0));
                }
            }
            None => {
                leave(from);
                stack.pop();
            }
        }
    }
}

/// The forest of nodes already dealt with, with path compression.
struct Forest {
    /// Number of the semidominator.
    semi: Vec<usize>,
    ancestor: Vec<Option<usize>>,
    /// Of the nodes on the compressed path, the one with the smallest semidominator.
    label: Vec<usize>,
}

impl Forest {
    fn new(count: usize) -> Self {
        let numbers: Vec<usize> = (0..count).collect();
        Self {
            semi: numbers.clone(),
            ancestor: vec![None; count],
            label: numbers,
        }
    }

    fn link(&mut self, above: usize, below: usize) {
        self.ancestor[below] = Some(above);
    }

    /// The node with the smallest semidominator on the way up from `from`, the root of its tree
    /// left out.
    fn best(&mut self, from: usize) -> usize {
        let mut path = Vec::new();
        let mut at = from;
        while let Some(above) = self.ancestor[at] {
            path.push(at);
            at = above;
        }
        // The topmost node's ancestor is the root, whose label does not count.
        let root = at;
        path.pop();
        for &node in path.iter().rev() {
            let Some(above) = self.ancestor[node] else {
                continue;
            };
            if self.semi[self.label[above]] < self.semi[self.label[node]] {
                self.label[node] = self.label[above];
            }
            self.ancestor[node] = Some(root);
        }
        self.label[from]
    }
}
