//! What a kernel computes, as a graph of values without names.

use crate::interval::Interval;
use crate::problem::{Axis, LoopId};

/// Index of a value in [`Graph::items`].
pub(crate) type NodeId = u32;

/// A condition, and whether it holds or does not.
pub(crate) type Condition = (NodeId, bool);

/// A value that is part of a sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addend {
    pub(crate) node: NodeId,
    /// It is subtracted.
    pub(crate) negated: bool,
}

/// A pointer's memory, before the launch is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A number.
    Number,
    /// Memory of one thread, or parameters.
    Private,
    /// Not known.
    Unknown,
}

/// An operation on integers. Operands and result have the item's bits unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    /// The low half of a product.
    Mul,
    /// The high half of a product.
    MulHigh,
    /// The whole product of operands of half as many bits.
    MulWide,
    Div,
    Rem,
    Shl,
    Shr,
    And,
    Or,
    Xor,
    Not,
    Neg,
    Abs,
    Min,
    Max,
    /// The value in another number of bits: read as `from` bits, kept in `to`.
    Convert {
        from: u32,
        to: u32,
        to_signed: bool,
    },
    /// Bits of the first operand, from the second on, as many as the third says.
    Field,
    /// From an address in shared memory to a generic one.
    Generic,
    /// The other way.
    FromGeneric,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// How two integers are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    pub(crate) comparison: Comparison,
    pub(crate) signed: bool,
    /// Their width.
    pub(crate) bits: u32,
}

impl Comparison {
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::GreaterEqual => Self::Less,
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
        }
    }

    /// The same with the operands exchanged.
    pub(crate) fn swapped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Not computed yet; only while the graph is built.
    Pending,
    /// Bits.
    Number(u64),
    /// `%tid`
    Thread(Axis),
    /// `%ctaid`
    Block(Axis),
    /// `%ntid`
    Threads(Axis),
    /// `%nctaid`
    Blocks(Axis),
    /// Bytes of the parameters.
    Parameter {
        offset: u32,
        bytes: u32,
        signed: bool,
    },
    /// The address of a variable in global memory.
    Global(u32),
    /// The address of a variable in shared memory.
    Shared(u32),
    /// Anything in a range. With `pure`, a function of `inputs` alone.
    Opaque {
        inputs: Vec<NodeId>,
        range: Interval<i64>,
        origin: Origin,
        pure: bool,
    },
    Operation {
        op: Op,
        signed: bool,
        inputs: [NodeId; 3],
    },
    /// Predicates.
    Compare {
        comparison: Comparison,
        signed: bool,
        bits: u32,
        left: NodeId,
        right: NodeId,
    },
    All(NodeId, NodeId),
    Any(NodeId, NodeId),
    Opposite(NodeId),
    /// `yes` where a predicate holds, else `no`.
    Select {
        on: NodeId,
        yes: NodeId,
        no: NodeId,
    },
    /// One of several, by the path taken. `control` are the conditions that choose the path.
    Join {
        inputs: Vec<(NodeId, Vec<Condition>)>,
        control: Vec<NodeId>,
    },
    /// A value at the start of each iteration.
    Header {
        of: LoopId,
        first: Vec<NodeId>,
        next: Vec<NodeId>,
        kind: Advance,
        /// If the next value is a function of this one and of what stays the same during the loop: the latter.
        leaves: Option<Vec<NodeId>>,
    },
    /// Iterations of a loop so far.
    Counter(LoopId),
    /// What a value was when its loop was left.
    Out {
        value: NodeId,
        of: LoopId,
    },
    /// The same value.
    Copy(NodeId),
}

/// How a value changes from one iteration to the next.
#[derive(Clone, Debug)]
pub(crate) enum Advance {
    /// In a way that is not followed.
    Unknown,
    /// By the sum of values that stay the same during the loop.
    By(Vec<Addend>),
    /// From a value that is not negative, to one that is not greater and not negative.
    Shrinks,
    /// To a number of a range that is not computed from a pointer.
    Numbers(i64, i64),
}

/// A value, where it is computed and how wide it is.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) node: Node,
    /// Bits; 1 for a predicate.
    pub(crate) bits: u32,
    /// The block.
    pub(crate) block: usize,
    /// The innermost loop around it.
    pub(crate) home: Option<LoopId>,
    /// The statement, for messages.
    pub(crate) statement: usize,
}

/// A condition under which a loop goes on, tested in every iteration.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// The loop goes on where the header's value and the addends are so compared with the bound.
    pub(crate) comparison: Comparison,
    pub(crate) signed: bool,
    pub(crate) bits: u32,
    pub(crate) header: NodeId,
    pub(crate) addends: Vec<Addend>,
    pub(crate) bound: NodeId,
}

/// A loop as the launch needs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopFacts {
    pub(crate) parent: Option<LoopId>,
    pub(crate) counter: NodeId,
    pub(crate) tests: Vec<Test>,
    /// Its one test decides alone when it ends.
    pub(crate) single: bool,
    /// The conditions of all branches in it.
    pub(crate) branches: Vec<NodeId>,
    /// What holds where it is entered.
    pub(crate) entry: Vec<Condition>,
}

/// The values of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) items: Vec<Item>,
    /// What to compute, in this order.
    pub(crate) order: Vec<NodeId>,
    pub(crate) loops: Vec<LoopFacts>,
    /// By block: the conditions that hold there.
    pub(crate) holds: Vec<Vec<Condition>>,
}

impl Graph {
    /// The value that a chain of copies stands for.
    pub(crate) fn resolve(&self, mut node: NodeId) -> NodeId {
        let mut steps = 0;
        while let Node::Copy(of) = self.items[node as usize].node {
            node = of;
            steps += 1;
            if steps > self.items.len() {
                break;
            }
        }
        node
    }

    /// A loop and those around it.
    pub(crate) fn around(&self, of: Option<LoopId>) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(of, |&of| self.loops[of as usize].parent)
    }

    pub(crate) fn is_inside(&self, inner: Option<LoopId>, outer: LoopId) -> bool {
        self.around(inner).any(|of| of == outer)
    }

    /// Calls `note` with the values that one is computed from, those of a loop's next iteration aside.
    pub(crate) fn inputs(&self, node: NodeId, mut note: impl FnMut(NodeId)) {
        match &self.items[node as usize].node {
            Node::Pending
            | Node::Number(_)
            | Node::Thread(_)
            | Node::Block(_)
            | Node::Threads(_)
            | Node::Blocks(_)
            | Node::Parameter { .. }
            | Node::Global(_)
            | Node::Shared(_) => {}
            Node::Opaque { inputs, .. } => inputs.iter().copied().for_each(note),
            Node::Operation { op, inputs, .. } => {
                let count = match op {
                    Op::Not | Op::Neg | Op::Abs | Op::Convert { .. } => 1,
                    Op::Generic | Op::FromGeneric => 1,
                    Op::Field => 3,
                    _ => 2,
                };
                inputs[..count].iter().copied().for_each(note);
            }
            &Node::Compare { left, right, .. } => {
                note(left);
                note(right);
            }
            &Node::All(left, right) | &Node::Any(left, right) => {
                note(left);
                note(right);
            }
            &Node::Opposite(of) | &Node::Copy(of) => note(of),
            &Node::Out { value, of } => {
                note(value);
                self.loops[of as usize]
                    .branches
                    .iter()
                    .copied()
                    .for_each(note);
            }
            &Node::Select { on, yes, no } => {
                note(on);
                note(yes);
                note(no);
            }
            Node::Join { inputs, control } => {
                for (value, conditions) in inputs {
                    note(*value);
                    conditions.iter().for_each(|&(of, _)| note(of));
                }
                control.iter().copied().for_each(note);
            }
            Node::Header {
                of,
                first,
                kind,
                leaves,
                ..
            } => {
                first.iter().copied().for_each(&mut note);
                leaves.iter().flatten().copied().for_each(&mut note);
                if let Advance::By(addends) = kind {
                    addends.iter().for_each(|of| note(of.node));
                }
                note(self.loops[*of as usize].counter);
            }
            &Node::Counter(of) => {
                let of = &self.loops[of as usize];
                of.entry.iter().for_each(|&(of, _)| note(of));
                for test in &of.tests {
                    note(test.bound);
                    if let Node::Header {
                        first,
                        kind: Advance::By(step),
                        ..
                    } = &self.items[test.header as usize].node
                    {
                        first.iter().copied().for_each(&mut note);
                        step.iter().for_each(|of| note(of.node));
                    }
                    test.addends.iter().for_each(|of| note(of.node));
                }
            }
        }
    }
}
