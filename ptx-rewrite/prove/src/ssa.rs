//! From registers to values: which write each read sees, with joins where several reach it.
//!
//! The values that a read sees are found on the way back from it through the control flow, as Braun et al. build SSA
//! form ("Simple and Efficient Construction of Static Single Assignment Form", 2013).

use std::collections::HashMap;

use ptx::ast::{Body, Function, Instruction, Module, Operand, Statement};
use ptx::cfg::{BlockId, Cfg};
use ptx::isa;
use ptx::scope::{Register, Scopes};

use crate::graph::{Advance, Condition, Graph, Item, Node, NodeId, Origin};
use crate::interval::Interval;
use crate::loops::Loops;
use crate::problem::LoopId;

/// How deep values may be nested before one is taken as unknown.
const DEPTH: u32 = 300;

/// Builds the values of a body.
pub(crate) struct Builder<'a> {
    pub(crate) module: &'a Module,
    pub(crate) function: &'a Function,
    pub(crate) body: &'a Body,
    pub(crate) cfg: &'a Cfg,
    pub(crate) loops: &'a Loops,
    pub(crate) scopes: Scopes<'a>,
    pub(crate) graph: Graph,
    /// Variables in global or constant memory whose addresses are taken.
    pub(crate) globals: Vec<String>,
    /// Variables in shared memory: bytes, dynamic ones none.
    pub(crate) shared: Vec<SharedVariable>,
    writes: HashMap<Register, Vec<usize>>,
    defined: HashMap<(usize, Register), NodeId>,
    entering: HashMap<(BlockId, Register), NodeId>,
    left: HashMap<(NodeId, LoopId), NodeId>,
    unfinished: Vec<(NodeId, BlockId, Register)>,
    depth: u32,
}

/// A variable in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedVariable {
    pub(crate) name: String,
    /// The statement that declares it; none at module scope.
    pub(crate) statement: Option<usize>,
    /// None for dynamic shared memory.
    pub(crate) bytes: Option<u64>,
    pub(crate) align: u32,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        module: &'a Module,
        function: &'a Function,
        body: &'a Body,
        cfg: &'a Cfg,
        loops: &'a Loops,
    ) -> Self {
        let scopes = Scopes::new(body);
        let mut writes: HashMap<Register, Vec<usize>> = HashMap::new();
        for (at, instruction) in body.instructions() {
            isa::register_writes(instruction, |name| {
                if let Some(register) = scopes.register(at, name) {
                    let all = writes.entry(register).or_default();
                    if all.last() != Some(&at) {
                        all.push(at);
                    }
                }
            });
        }
        Self {
            module,
            function,
            body,
            cfg,
            loops,
            scopes,
            graph: Graph::default(),
            globals: Vec::new(),
            shared: Vec::new(),
            writes,
            defined: HashMap::new(),
            entering: HashMap::new(),
            left: HashMap::new(),
            unfinished: Vec::new(),
            depth: 0,
        }
    }

    pub(crate) fn instruction(&self, at: usize) -> Option<&'a Instruction> {
        match self.body.statements.get(at) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }

    /// A value computed by a statement.
    pub(crate) fn add(&mut self, at: usize, bits: u32, node: Node) -> NodeId {
        let block = self.cfg.block_of(at);
        self.push(block, at, bits, node)
    }

    fn push(&mut self, block: BlockId, statement: usize, bits: u32, node: Node) -> NodeId {
        self.graph.items.push(Item {
            node,
            bits,
            block,
            home: self.loops.of[block],
            statement,
        });
        (self.graph.items.len() - 1) as NodeId
    }

    /// A value of which nothing is known but its width.
    pub(crate) fn unknown(&mut self, at: usize, bits: u32, inputs: Option<Vec<NodeId>>) -> NodeId {
        let pure = inputs.is_some();
        let origin = match bits {
            64 if !pure => Origin::Unknown,
            _ => Origin::Number,
        };
        let range = full_range(bits);
        let inputs = inputs.unwrap_or_default();
        self.add(
            at,
            bits,
            Node::Opaque {
                inputs,
                range,
                origin,
                pure,
            },
        )
    }

    /// The bits of a register; 1 for a predicate.
    pub(crate) fn bits_of(&self, register: Register) -> u32 {
        match self.scopes.register_type(register) {
            Some((ptx::ast::Type::Pred, _)) => 1,
            Some((ty, 1)) => ty.bytes() * 8,
            _ => 128,
        }
    }

    /// The value of a register before a statement.
    pub(crate) fn read(&mut self, register: Register, at: usize) -> NodeId {
        let block = self.cfg.block_of(at);
        self.before(register, block, at)
    }

    /// The value of a register in a block before a statement of it.
    fn before(&mut self, register: Register, block: BlockId, end: usize) -> NodeId {
        let start = self.cfg.blocks[block].start;
        let writes = self.writes.get(&register).map_or(&[][..], |all| all);
        let last = writes.partition_point(|&write| write < end);
        match last.checked_sub(1).map(|last| writes[last]) {
            Some(write) if write >= start => self.written(register, write),
            _ => self.entering(register, block),
        }
    }

    /// The value that a statement writes to a register.
    fn written(&mut self, register: Register, at: usize) -> NodeId {
        if let Some(&known) = self.defined.get(&(at, register)) {
            return known;
        }
        let bits = self.bits_of(register);
        let Some(instruction) = self.instruction(at) else {
            return self.unknown(at, bits, None);
        };
        if self.depth > DEPTH {
            return self.unknown(at, bits, None);
        }
        self.depth += 1;
        let mut value = self.translate(at, instruction, register, bits);
        if let Some(guard) = &instruction.guard {
            let old = self.before(register, self.cfg.block_of(at), at);
            let on = self.predicate(at, &guard.predicate);
            let (yes, no) = match guard.negated {
                false => (value, old),
                true => (old, value),
            };
            value = self.add(at, bits, Node::Select { on, yes, no });
        }
        self.depth -= 1;
        self.defined.insert((at, register), value);
        value
    }

    /// A predicate register by name.
    pub(crate) fn predicate(&mut self, at: usize, name: &str) -> NodeId {
        match self.scopes.register(at, name) {
            Some(register) if self.bits_of(register) == 1 => self.read(register, at),
            _ => self.unknown(at, 1, None),
        }
    }

    /// The value of a register at the start of a block.
    fn entering(&mut self, register: Register, block: BlockId) -> NodeId {
        if let Some(&known) = self.entering.get(&(block, register)) {
            return known;
        }
        let bits = self.bits_of(register);
        let start = self.cfg.blocks[block].start;
        let from = self.predecessors(block);
        if block == 0 || from.is_empty() || self.depth > DEPTH {
            let origin = match bits {
                64 => Origin::Unknown,
                _ => Origin::Number,
            };
            let range = full_range(bits);
            let node = Node::Opaque {
                inputs: Vec::new(),
                range,
                origin,
                pure: false,
            };
            let value = self.push(block, start, bits, node);
            self.entering.insert((block, register), value);
            return value;
        }
        self.depth += 1;
        let value = match self.header(block) {
            Some(_) => {
                let value = self.push(block, start, bits, Node::Pending);
                self.unfinished.push((value, block, register));
                value
            }
            None if from.len() == 1 => self.across(register, from[0], block),
            None => {
                let value = self.push(block, start, bits, Node::Pending);
                self.entering.insert((block, register), value);
                let inputs: Vec<NodeId> = from
                    .iter()
                    .map(|&from| self.across(register, from, block))
                    .collect();
                self.join(value, block, &from, inputs);
                value
            }
        };
        self.depth -= 1;
        self.entering.insert((block, register), value);
        value
    }

    fn join(&mut self, value: NodeId, block: BlockId, from: &[BlockId], inputs: Vec<NodeId>) {
        let first = self.graph.resolve(inputs[0]);
        let same = |&input: &NodeId| self.graph.resolve(input) == first;
        let node = match inputs.iter().all(same) {
            true => Node::Copy(inputs[0]),
            false => {
                let known = self.graph.holds[block].clone();
                let control = self.between(block);
                let paths = from.iter().map(|&from| {
                    let mut holds = self.graph.holds[from].clone();
                    holds.extend(self.edge(from, block));
                    holds.retain(|condition| {
                        let home = self.graph.items[condition.0 as usize].home;
                        let stays =
                            home.is_none_or(|of| self.loops.is_inside(self.loops.of[block], of));
                        stays && !known.contains(condition)
                    });
                    holds
                });
                let paths: Vec<Vec<Condition>> = paths.collect();
                let inputs = inputs.into_iter().zip(paths).collect();
                Node::Join { inputs, control }
            }
        };
        self.graph.items[value as usize].node = node;
    }

    /// The value of a register at the end of a block, for a block that follows it.
    fn across(&mut self, register: Register, from: BlockId, to: BlockId) -> NodeId {
        let value = self.before(register, from, self.cfg.blocks[from].end);
        self.out_of(value, from, to)
    }

    /// A value as it is seen on the other side of an edge, which may leave loops.
    fn out_of(&mut self, mut value: NodeId, from: BlockId, to: BlockId) -> NodeId {
        let left: Vec<LoopId> = self
            .loops
            .around(self.loops.of[from])
            .filter(|&of| !self.loops.loops[of as usize].contains[to])
            .collect();
        for of in left {
            let item = &self.graph.items[value as usize];
            if !self.loops.is_inside(item.home, of) || matches!(item.node, Node::Number(_)) {
                continue;
            }
            if let Some(&known) = self.left.get(&(value, of)) {
                value = known;
                continue;
            }
            let (bits, statement, block) = (item.bits, item.statement, item.block);
            let out = self.push(block, statement, bits, Node::Out { value, of });
            self.graph.items[out as usize].home = self.loops.loops[of as usize].parent;
            self.left.insert((value, of), out);
            value = out;
        }
        value
    }

    fn header(&self, block: BlockId) -> Option<LoopId> {
        let mut around = self.loops.around(self.loops.of[block]);
        around.find(|&of| self.loops.loops[of as usize].header == block)
    }

    fn predecessors(&self, block: BlockId) -> Vec<BlockId> {
        let from = self.cfg.blocks[block].predecessors.iter().copied();
        from.filter(|&from| self.cfg.is_reachable(from)).collect()
    }

    /// Finishes the values at the starts of loops. Adds others, which may need more of the same.
    pub(crate) fn finish_headers(&mut self) {
        while let Some((value, block, register)) = self.unfinished.pop() {
            let Some(of) = self.header(block) else {
                continue;
            };
            let (mut first, mut next) = (Vec::new(), Vec::new());
            for from in self.predecessors(block) {
                let input = self.across(register, from, block);
                match self.loops.loops[of as usize].contains[from] {
                    true => next.push(input),
                    false => first.push(input),
                }
            }
            let (kind, leaves) = (Advance::Unknown, None);
            self.graph.items[value as usize].node = Node::Header {
                of,
                first,
                next,
                kind,
                leaves,
            };
        }
    }

    /// The predicate that decides where control goes at the end of a block, if one does.
    fn branch(&self, block: BlockId) -> Option<(usize, &'a Instruction)> {
        let at = self.cfg.blocks[block].terminator?;
        let instruction = self.instruction(at)?;
        instruction.guard.is_some().then_some((at, instruction))
    }

    /// The condition under which control goes from a block to another. None if there is none, or more than one way.
    pub(crate) fn edge(&mut self, from: BlockId, to: BlockId) -> Option<Condition> {
        let (at, instruction) = self.branch(from)?;
        let guard = instruction.guard.as_ref()?;
        let jump = match instruction.opcode.as_str() {
            "bra" => {
                let Some(Operand::Name { name, .. }) = instruction.operands.first() else {
                    return None;
                };
                let label = self.scopes.label(at, name)?;
                Some(self.cfg.block_of(label))
            }
            _ => None,
        };
        let next = at + 1;
        let falls = (next < self.body.statements.len()).then(|| self.cfg.block_of(next));
        let on = self.predicate(at, &guard.predicate);
        match (jump == Some(to), falls == Some(to)) {
            (true, false) => Some((on, !guard.negated)),
            (false, true) => Some((on, guard.negated)),
            _ => None,
        }
    }

    /// Finds the conditions that hold in each block. Comes first: the other steps look them up.
    pub(crate) fn conditions(&mut self) {
        self.graph.holds = vec![Vec::new(); self.cfg.blocks.len()];
        for block in self.cfg.reverse_post_order() {
            let Some(above) = self.cfg.immediate_dominator(block) else {
                self.translate_block(block);
                continue;
            };
            let mut holds = self.graph.holds[above].clone();
            // The other edges to the block come from behind it.
            let only = self.predecessors(block);
            let only = only
                .into_iter()
                .all(|from| from == above || self.cfg.dominates(block, from));
            if only && self.cfg.blocks[above].successors.contains(&block) {
                holds.extend(self.edge(above, block));
            }
            // What was the case in a loop that has been left is no longer.
            let of = self.loops.of[block];
            holds.retain(|(condition, _)| {
                let home = self.graph.items[*condition as usize].home;
                home.is_none_or(|home| self.loops.is_inside(of, home))
            });
            self.graph.holds[block] = holds;
            self.translate_block(block);
        }
    }

    /// Computes all that a block writes, so that values are nested no deeper than blocks.
    fn translate_block(&mut self, block: BlockId) {
        for at in self.cfg.blocks[block].start..self.cfg.blocks[block].end {
            let Some(instruction) = self.instruction(at) else {
                continue;
            };
            let mut written = Vec::new();
            isa::register_writes(instruction, |name| {
                written.extend(self.scopes.register(at, name))
            });
            for register in written {
                self.written(register, at);
            }
        }
    }

    /// The conditions of all branches on the way from a block's dominator to it.
    fn between(&mut self, block: BlockId) -> Vec<NodeId> {
        let Some(above) = self.cfg.immediate_dominator(block) else {
            return Vec::new();
        };
        let mut seen = vec![above];
        let mut work = self.predecessors(block);
        while let Some(from) = work.pop() {
            if !seen.contains(&from) {
                seen.push(from);
                work.extend(self.predecessors(from));
            }
        }
        self.decisions(&seen)
    }

    /// The predicates that decide where control goes at the ends of blocks.
    pub(crate) fn decisions(&mut self, blocks: &[BlockId]) -> Vec<NodeId> {
        let mut all = Vec::new();
        for &block in blocks {
            if let Some((at, instruction)) = self.branch(block)
                && let Some(guard) = &instruction.guard
            {
                all.push(self.predicate(at, &guard.predicate));
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// All values of so many bits, as symbols can have them.
pub(crate) fn full_range(bits: u32) -> Interval<i64> {
    match bits {
        1 => Interval::new(0, 1),
        8 | 16 | 32 => Interval::new(0, (1i64 << bits) - 1),
        _ => Interval::new(i64::MIN, i64::MAX),
    }
}
