//! From an instruction to the value that it writes to a register.

use ptx::ast::{AddressBase, Instruction, Operand, Space, Statement, Type, Variable};
use ptx::isa::{self, Effect, MemoryKind};
use ptx::scope::Register;

use crate::graph::{Compared, Comparison, Node, NodeId, Op, Origin};
use crate::interval::Interval;
use crate::machine::mask;
use crate::problem::Axis;
use crate::ssa::{Builder, SharedVariable, full_range};

const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

/// What a name that is no register stands for.
enum Symbol<'a> {
    Shared(&'a Variable, Option<usize>),
    Global(&'a Variable),
    /// A parameter of the kernel, by index.
    Parameter(usize),
    /// Memory of the thread.
    Private,
    None,
}

impl<'a> Builder<'a> {
    /// What an instruction writes to one register, its guard aside.
    pub(crate) fn translate(
        &mut self,
        at: usize,
        instruction: &'a Instruction,
        register: Register,
        bits: u32,
    ) -> NodeId {
        let position = self.position(at, instruction, register);
        let known = match position {
            Some(position) => self.known(at, instruction, position, bits),
            None => None,
        };
        if let Some(node) = known
            && self.graph.items[node as usize].bits == bits
        {
            return node;
        }
        self.other(at, instruction, bits)
    }

    /// A value of an instruction that is not followed.
    fn other(&mut self, at: usize, instruction: &'a Instruction, bits: u32) -> NodeId {
        let pure = isa::lookup(&instruction.opcode).is_some_and(|row| row.effect == Effect::None);
        if !pure || instruction.opcode == "call" {
            return self.loaded(at, instruction, bits);
        }
        let mut inputs = Vec::new();
        for operand in isa::reads(instruction) {
            self.all_inputs(at, operand, &mut inputs);
        }
        self.unknown(at, bits, Some(inputs))
    }

    fn all_inputs(&mut self, at: usize, operand: &'a Operand, into: &mut Vec<NodeId>) {
        match operand {
            Operand::Vector(all) | Operand::Paren(all) | Operand::Bracket(all) => {
                for operand in all {
                    self.all_inputs(at, operand, into);
                }
            }
            Operand::Pair(first, second) => {
                self.all_inputs(at, first, into);
                self.all_inputs(at, second, into);
            }
            Operand::Not(inner) => self.all_inputs(at, inner, into),
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) | Operand::Sink => {}
            Operand::Name { name, .. } => {
                let value = match self.scopes.register(at, name) {
                    Some(register) => self.read(register, at),
                    None => self.operand(at, operand, 64),
                };
                into.push(value);
            }
            Operand::Address { .. } | Operand::Unknown(_) => into.push(self.unknown(at, 64, None)),
        }
    }

    /// A value from memory or elsewhere, in the range of its type.
    fn loaded(&mut self, at: usize, instruction: &'a Instruction, bits: u32) -> NodeId {
        let op = isa::memory(instruction);
        let Some(op) = op.filter(|op| op.kind == MemoryKind::Load && op.ty.is_integer()) else {
            return self.unknown(at, bits, None);
        };
        let narrow = op.bytes_per_element * 8;
        if narrow == 0 || narrow > bits || narrow > 32 || bits == 1 {
            return self.unknown(at, bits, None);
        }
        let range = match op.ty.is_signed() {
            true => Interval::new(-(1i64 << (narrow - 1)), (1i64 << (narrow - 1)) - 1),
            false => full_range(narrow),
        };
        let (inputs, pure) = match (op.space, instruction.operands.get(op.address)) {
            (
                Space::Const,
                Some(Operand::Address {
                    base: AddressBase::Name(name),
                    ..
                }),
            ) => match self.scopes.register(at, name) {
                Some(register) => (vec![self.read(register, at)], true),
                None => (Vec::new(), true),
            },
            _ => (Vec::new(), false),
        };
        let origin = Origin::Number;
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

    /// Which of an instruction's results a register is.
    fn position(&self, at: usize, instruction: &Instruction, register: Register) -> Option<usize> {
        let is = |operand: &Operand| match operand {
            Operand::Name {
                name,
                component: None,
                ..
            } => self.scopes.register(at, name) == Some(register),
            _ => false,
        };
        match instruction.operands.first()? {
            operand if is(operand) => Some(0),
            Operand::Pair(first, _) if is(first) => Some(0),
            Operand::Pair(_, second) if is(second) => Some(1),
            Operand::Vector(all) => all.iter().position(is),
            _ => None,
        }
    }

    fn symbol(&self, at: usize, name: &str) -> Symbol<'a> {
        if let Some(statement) = self.scopes.variable(at, name) {
            return match &self.body.statements[statement] {
                Statement::Variable(variable) => match variable.space {
                    Space::Shared => Symbol::Shared(variable, Some(statement)),
                    Space::Global | Space::Const => Symbol::None,
                    _ => Symbol::Private,
                },
                _ => Symbol::None,
            };
        }
        let params = &self.function.params;
        if let Some(index) = params.iter().position(|param| param.name == name) {
            return Symbol::Parameter(index);
        }
        match self
            .module
            .variables()
            .find(|variable| variable.name == name)
        {
            Some(variable) => match variable.space {
                Space::Shared => Symbol::Shared(variable, None),
                Space::Global | Space::Const => Symbol::Global(variable),
                _ => Symbol::None,
            },
            None => Symbol::None,
        }
    }

    /// Where a name's memory begins, as a value.
    fn address_of(&mut self, at: usize, name: &str, bits: u32) -> Option<NodeId> {
        Some(match self.symbol(at, name) {
            Symbol::Shared(variable, statement) => {
                let index = self.shared_variable(variable, statement);
                self.add(at, bits, Node::Shared(index))
            }
            Symbol::Global(variable) if bits == 64 => {
                let known = self
                    .globals
                    .iter()
                    .position(|known| *known == variable.name);
                let index = known.unwrap_or(self.globals.len());
                if known.is_none() {
                    self.globals.push(variable.name.to_string());
                }
                self.add(at, bits, Node::Global(index as u32))
            }
            Symbol::Private | Symbol::Parameter(_) => {
                let (inputs, origin) = (Vec::new(), Origin::Private);
                let range = full_range(bits);
                self.add(
                    at,
                    bits,
                    Node::Opaque {
                        inputs,
                        range,
                        origin,
                        pure: false,
                    },
                )
            }
            _ => return None,
        })
    }

    /// The index of a variable in shared memory.
    pub(crate) fn shared_variable(&mut self, variable: &Variable, statement: Option<usize>) -> u32 {
        let known = self
            .shared
            .iter()
            .position(|known| known.name == variable.name.as_str() && known.statement == statement);
        known.unwrap_or_else(|| {
            let open = variable
                .dims
                .as_ref()
                .is_some_and(|dims| dims.first() == Some(&0));
            let dynamic = open && variable.init.is_none();
            self.shared.push(SharedVariable {
                name: variable.name.to_string(),
                statement,
                bytes: (!dynamic).then(|| variable.bytes()),
                align: variable.alignment(),
            });
            self.shared.len() - 1
        }) as u32
    }

    /// The value of an operand in so many bits.
    pub(crate) fn operand(&mut self, at: usize, operand: &'a Operand, bits: u32) -> NodeId {
        match operand {
            Operand::Int(value) => self.number(at, bits, *value),
            Operand::Not(inner) if bits == 1 => {
                let inner = self.operand(at, inner, 1);
                self.add(at, 1, Node::Opposite(inner))
            }
            Operand::Name {
                name,
                component,
                offset,
            } => {
                if let Some(register) = self.scopes.register(at, name) {
                    if component.is_some() || *offset != 0 {
                        return self.unknown(at, bits, None);
                    }
                    let value = self.read(register, at);
                    let have = self.graph.items[value as usize].bits;
                    return match have {
                        _ if have == bits => value,
                        // The low bits of a wider register.
                        _ if have > bits && bits > 1 && have <= 64 => {
                            let op = Op::Convert {
                                from: have,
                                to: bits,
                                to_signed: false,
                            };
                            self.operation(at, bits, op, false, &[value])
                        }
                        _ => self.unknown(at, bits, Some(vec![value])),
                    };
                }
                self.special(at, name, *component, bits)
                    .or_else(|| {
                        let base = self.address_of(at, name, bits)?;
                        Some(self.offset(at, base, *offset))
                    })
                    .unwrap_or_else(|| self.unknown(at, bits, None))
            }
            Operand::F32(_) | Operand::F64(_) => self.unknown(at, bits, Some(Vec::new())),
            _ => self.unknown(at, bits, None),
        }
    }

    fn number(&mut self, at: usize, bits: u32, value: i128) -> NodeId {
        let mask = if bits >= 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        };
        self.add(at, bits, Node::Number(value as u64 & mask))
    }

    fn offset(&mut self, at: usize, base: NodeId, offset: i64) -> NodeId {
        if offset == 0 {
            return base;
        }
        let bits = self.graph.items[base as usize].bits;
        let by = self.number(at, bits, i128::from(offset));
        self.operation(at, bits, Op::Add, false, &[base, by])
    }

    fn special(
        &mut self,
        at: usize,
        name: &str,
        component: Option<u16>,
        bits: u32,
    ) -> Option<NodeId> {
        let axis = component.and_then(|component| AXES.get(usize::from(component)).copied());
        let node = match (name, axis) {
            ("%tid", Some(axis)) => Node::Thread(axis),
            ("%ctaid", Some(axis)) => Node::Block(axis),
            ("%ntid", Some(axis)) => Node::Threads(axis),
            ("%nctaid", Some(axis)) => Node::Blocks(axis),
            ("WARP_SZ", None) => Node::Number(32),
            ("%laneid", None) => Node::Opaque {
                inputs: Vec::new(),
                range: Interval::new(0, 31),
                origin: Origin::Number,
                pure: false,
            },
            _ => return None,
        };
        // As narrow registers they have fewer bits than the counts may need.
        (bits >= 32).then(|| self.add(at, bits, node))
    }

    /// The address that an access computes, and whether it is one in its thread's own memory.
    pub(crate) fn address(&mut self, at: usize, operand: &'a Operand) -> Option<NodeId> {
        let Operand::Address { base, offset } = operand else {
            return None;
        };
        match base {
            AddressBase::Name(name) => {
                let base = match self.scopes.register(at, name) {
                    Some(register) => match self.bits_of(register) {
                        32 | 64 => self.read(register, at),
                        _ => return None,
                    },
                    None => self.address_of(at, name, 64)?,
                };
                Some(self.offset(at, base, *offset))
            }
            AddressBase::Absolute(_) => None,
        }
    }

    pub(crate) fn operation(
        &mut self,
        at: usize,
        bits: u32,
        op: Op,
        signed: bool,
        inputs: &[NodeId],
    ) -> NodeId {
        let mut all = [inputs[0]; 3];
        all[..inputs.len()].copy_from_slice(inputs);
        self.add(
            at,
            bits,
            Node::Operation {
                op,
                signed,
                inputs: all,
            },
        )
    }

    /// What is written by instructions that are followed. None for others, floating point among them.
    fn known(
        &mut self,
        at: usize,
        instruction: &'a Instruction,
        position: usize,
        bits: u32,
    ) -> Option<NodeId> {
        let types = instruction.types();
        let ty = types.last().copied();
        let operands = &instruction.operands;
        let simple = position == 0 && !matches!(operands[0], Operand::Vector(_));
        let opcode = instruction.opcode.as_str();
        match opcode {
            "ld" => return self.parameter(at, instruction, position, bits),
            "setp" => return self.compare(at, instruction, position),
            "mov" if simple => {
                let source = operands.get(1)?;
                let integer = ty.is_none_or(|ty| ty.is_integer() || ty == Type::Pred);
                return (integer && !matches!(source, Operand::Vector(_)))
                    .then(|| self.operand(at, source, bits));
            }
            "cvta" if simple => return self.generic(at, instruction, bits),
            _ => {}
        }
        if !simple {
            return None;
        }
        if ty == Some(Type::Pred) {
            let left = self.operand(at, operands.get(1)?, 1);
            let node = match opcode {
                "not" => Node::Opposite(left),
                "and" => Node::All(left, self.operand(at, operands.get(2)?, 1)),
                "or" => Node::Any(left, self.operand(at, operands.get(2)?, 1)),
                _ => return None,
            };
            return Some(self.add(at, 1, node));
        }
        let ty = ty.filter(|ty| ty.is_integer())?;
        let width = ty.bytes() * 8;
        if !matches!(width, 8 | 16 | 32 | 64) || bits == 1 {
            return None;
        }
        let modified = ["sat", "relu", "cc", "shiftamt"];
        let signed = ty.is_signed();
        if opcode == "cvt" {
            return self.convert(at, instruction, bits);
        }
        if modified[..2].iter().any(|suffix| instruction.has(suffix)) {
            return None;
        }
        let op = match opcode {
            "add" => Op::Add,
            "sub" => Op::Sub,
            "mul" | "mad" if instruction.has("wide") => Op::MulWide,
            "mul" | "mad" if instruction.has("lo") => Op::Mul,
            "mul" if instruction.has("hi") => Op::MulHigh,
            "div" => Op::Div,
            "rem" => Op::Rem,
            "shl" => Op::Shl,
            "shr" => Op::Shr,
            "and" => Op::And,
            "or" => Op::Or,
            "xor" => Op::Xor,
            "not" => Op::Not,
            "neg" => Op::Neg,
            "abs" => Op::Abs,
            "min" => Op::Min,
            "max" => Op::Max,
            "bfe" => Op::Field,
            "bfi" if width == bits => return self.insert(at, operands, bits),
            "selp" => {
                let yes = self.operand(at, operands.get(1)?, bits);
                let no = self.operand(at, operands.get(2)?, bits);
                let on = self.operand(at, operands.get(3)?, 1);
                return (width == bits).then(|| self.add(at, bits, Node::Select { on, yes, no }));
            }
            _ => return None,
        };
        let result = if op == Op::MulWide { width * 2 } else { width };
        if result != bits {
            return None;
        }
        let first = self.operand(at, operands.get(1)?, width);
        let value = match op {
            Op::Not | Op::Neg | Op::Abs => self.operation(at, bits, op, signed, &[first]),
            Op::Shl | Op::Shr => {
                let by = self.operand(at, operands.get(2)?, 32);
                self.operation(at, bits, op, signed, &[first, by])
            }
            Op::Field => {
                let from = self.operand(at, operands.get(2)?, 32);
                let count = self.operand(at, operands.get(3)?, 32);
                self.operation(at, bits, op, signed, &[first, from, count])
            }
            _ => {
                let second = self.operand(at, operands.get(2)?, width);
                self.operation(at, bits, op, signed, &[first, second])
            }
        };
        match opcode {
            "mad" => {
                let sum = self.operand(at, operands.get(3)?, bits);
                Some(self.operation(at, bits, Op::Add, signed, &[value, sum]))
            }
            _ => Some(value),
        }
    }

    /// `bfi`: the low bits of a value in the place of bits of another one, where both are known by number. nvcc makes it
    /// of `row * 16 + (column & 15)`.
    fn insert(&mut self, at: usize, operands: &'a [Operand], bits: u32) -> Option<NodeId> {
        let [_, field, base, Operand::Int(from), Operand::Int(count)] = operands else {
            return None;
        };
        let (from, count) = (u32::try_from(*from).ok()?, u32::try_from(*count).ok()?);
        let end = from.checked_add(count).filter(|&end| end <= bits)?;
        if count == 0 {
            return Some(self.operand(at, base, bits));
        }
        let low = |count: u32| (1i128 << count) - 1;
        let field = self.operand(at, field, bits);
        let base = self.operand(at, base, bits);
        // The shift drops what stands above.
        let field = match end == bits {
            true => field,
            false => {
                let mask = self.number(at, bits, low(count));
                self.operation(at, bits, Op::And, false, &[field, mask])
            }
        };
        let by = self.number(at, 32, from.into());
        let field = self.operation(at, bits, Op::Shl, false, &[field, by]);
        let mask = self.number(at, bits, low(bits) & !(low(count) << from));
        let base = self.operation(at, bits, Op::And, false, &[base, mask]);
        // No bit is set in both.
        Some(self.operation(at, bits, Op::Add, false, &[field, base]))
    }

    fn convert(&mut self, at: usize, instruction: &'a Instruction, bits: u32) -> Option<NodeId> {
        let types = instruction.types();
        let (&to, &from) = (types.first()?, types.last()?);
        let plain = types.len() == 2 && instruction.suffixes.len() == 2;
        if !plain || !to.is_integer() || !from.is_integer() || from.bytes() > 8 || to.bytes() > 8 {
            return None;
        }
        let operand = instruction.operands.get(1)?;
        let width = from.bytes() * 8;
        let value = match operand {
            Operand::Name { name, .. } => match self.scopes.register(at, name) {
                Some(register) => {
                    // A register wider than the type holds it in its low bits.
                    let have = self.bits_of(register);
                    let value = self.read(register, at);
                    match have {
                        8..=64 if have >= width => value,
                        _ => return None,
                    }
                }
                None => self.operand(at, operand, width),
            },
            _ => self.operand(at, operand, width),
        };
        let to_bits = to.bytes() * 8;
        if to_bits > bits {
            return None;
        }
        let op = Op::Convert {
            from: width,
            to: to_bits,
            to_signed: to.is_signed(),
        };
        Some(self.operation(at, bits, op, from.is_signed(), &[value]))
    }

    fn generic(&mut self, at: usize, instruction: &'a Instruction, bits: u32) -> Option<NodeId> {
        let operand = instruction.operands.get(1)?;
        let value = self.operand(at, operand, bits);
        match (instruction.space(), instruction.has("to")) {
            (Space::Global, _) => Some(self.add(at, bits, Node::Copy(value))),
            (Space::Shared, to) if bits == 64 => {
                let op = if to { Op::FromGeneric } else { Op::Generic };
                Some(self.operation(at, bits, op, false, &[value]))
            }
            (Space::Local | Space::Param, _) => {
                let (inputs, origin) = (Vec::new(), Origin::Private);
                let range = full_range(bits);
                Some(self.add(
                    at,
                    bits,
                    Node::Opaque {
                        inputs,
                        range,
                        origin,
                        pure: false,
                    },
                ))
            }
            _ => Some(self.unknown(at, bits, None)),
        }
    }

    /// A load of a parameter.
    fn parameter(
        &mut self,
        at: usize,
        instruction: &'a Instruction,
        position: usize,
        bits: u32,
    ) -> Option<NodeId> {
        let op = isa::memory(instruction)?;
        let Some(Operand::Address {
            base: AddressBase::Name(name),
            offset,
        }) = instruction.operands.get(op.address)
        else {
            return None;
        };
        if op.space != Space::Param || self.scopes.register(at, name).is_some() || bits == 1 {
            return None;
        }
        let Symbol::Parameter(index) = self.symbol(at, name) else {
            return None;
        };
        if !op.ty.is_integer() || op.bytes_per_element * 8 > bits {
            return None;
        }
        let (layout, _) = ptx::param_layout(&self.function.params);
        let layout = layout.get(index)?;
        let inside = u32::try_from(*offset).ok()?;
        let inside = inside.checked_add(op.bytes_per_element * u32::try_from(position).ok()?)?;
        if inside.checked_add(op.bytes_per_element)? > layout.bytes {
            return None;
        }
        let node = Node::Parameter {
            offset: layout.offset + inside,
            bytes: op.bytes_per_element,
            signed: op.ty.is_signed(),
        };
        Some(self.add(at, bits, node))
    }

    /// A comparison. One with a minimum, a maximum or the sign of a conjunction or disjunction is one with all operands
    /// of it, or with any.
    fn comparison(
        &mut self,
        at: usize,
        how: Compared,
        left: NodeId,
        right: NodeId,
        depth: u32,
    ) -> NodeId {
        let Compared {
            comparison,
            signed,
            bits,
        } = how;
        use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        let of = |node: NodeId| {
            let node = self.graph.resolve(node);
            let item = &self.graph.items[node as usize];
            match item.node {
                Node::Operation {
                    op,
                    signed,
                    inputs: [a, b, _],
                } if item.bits == bits => Some((op, signed, a, b)),
                _ => None,
            }
        };
        let number = |node: NodeId| match self.graph.items[self.graph.resolve(node) as usize].node {
            Node::Number(value) => Some(value),
            _ => None,
        };
        // Whether all operands are so compared, or any of them.
        let all = |op: Op, of: bool, comparison: Comparison, with: Option<u64>| {
            let sign = match (comparison, with) {
                (Less, Some(0)) => Some(true),
                (GreaterEqual, Some(0)) => Some(false),
                (LessEqual, Some(ones)) if ones == mask(bits) => Some(true),
                (Greater, Some(ones)) if ones == mask(bits) => Some(false),
                _ => None,
            };
            match (op, comparison) {
                (Op::Or, Equal) if with == Some(0) => Some(true),
                (Op::Or, NotEqual) if with == Some(0) => Some(false),
                (Op::Or, _) if signed => sign.map(|negative| !negative),
                (Op::And, _) if signed => sign,
                (Op::Max, Less | LessEqual) | (Op::Min, Greater | GreaterEqual) if of == signed => {
                    Some(true)
                }
                (Op::Max, Greater | GreaterEqual) | (Op::Min, Less | LessEqual) if of == signed => {
                    Some(false)
                }
                _ => None,
            }
        };
        let swapped = comparison.swapped();
        for (whole, other, comparison) in [(left, right, comparison), (right, left, swapped)] {
            let Some((op, of, a, b)) = of(whole).filter(|_| depth < 8) else {
                continue;
            };
            let Some(all) = all(op, of, comparison, number(other)) else {
                continue;
            };
            let how = Compared { comparison, ..how };
            let [a, b] = [a, b].map(|part| self.comparison(at, how, part, other, depth + 1));
            let node = if all {
                Node::All(a, b)
            } else {
                Node::Any(a, b)
            };
            return self.add(at, 1, node);
        }
        let node = Node::Compare {
            comparison,
            signed,
            bits,
            left,
            right,
        };
        self.add(at, 1, node)
    }

    /// `setp` with its Boolean operation.
    fn compare(
        &mut self,
        at: usize,
        instruction: &'a Instruction,
        position: usize,
    ) -> Option<NodeId> {
        let ty = instruction.types().pop()?;
        let operands = &instruction.operands;
        let comparison = instruction.suffixes.first()?;
        let (comparison, unsigned) = match comparison.as_str() {
            "lt" => (Comparison::Less, false),
            "le" => (Comparison::LessEqual, false),
            "gt" => (Comparison::Greater, false),
            "ge" => (Comparison::GreaterEqual, false),
            "eq" => (Comparison::Equal, false),
            "ne" => (Comparison::NotEqual, false),
            "lo" => (Comparison::Less, true),
            "ls" => (Comparison::LessEqual, true),
            "hi" => (Comparison::Greater, true),
            "hs" => (Comparison::GreaterEqual, true),
            _ => return None,
        };
        if !ty.is_integer() || ty.bytes() > 8 {
            return None;
        }
        let bits = ty.bytes() * 8;
        let signed = ty.is_signed() && !unsigned;
        let left = self.operand(at, operands.get(1)?, bits);
        let right = self.operand(at, operands.get(2)?, bits);
        let how = Compared {
            comparison,
            signed,
            bits,
        };
        let mut value = self.comparison(at, how, left, right, 0);
        if position == 1 {
            value = self.add(at, 1, Node::Opposite(value));
        }
        let combined = |suffix| instruction.has(suffix);
        match operands.get(3) {
            None => Some(value),
            Some(other) => {
                let other = self.operand(at, other, 1);
                match () {
                    () if combined("and") => Some(self.add(at, 1, Node::All(value, other))),
                    () if combined("or") => Some(self.add(at, 1, Node::Any(value, other))),
                    () => None,
                }
            }
        }
    }
}
