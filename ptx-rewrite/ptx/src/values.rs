//! Which values of a function are equal, whatever they are.
//!
//! Values are numbered on demand: two registers have one number if one pure instruction, or two with
//! equal operands, computes them. What memory or a call returns is equal only to itself, and so is a
//! register with several writes that may have made it. Constants added to an address count as its
//! offset, and `cvta` as no step.

use std::collections::HashMap;

use smol_str::SmolStr;

use crate::ast::{AddressBase, Body, Instruction, Operand, Statement};
use crate::cfg::Cfg;
use crate::dataflow::Dataflow;

/// Number of a value that is no constant, and what is added to it.
pub type Sum = (u32, i128);

/// How a value comes about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    /// A special register, a symbol, a parameter of the kernel.
    Name(SmolStr, Option<u16>),
    Constant,
    /// A literal that is no integer.
    Literal(u64),
    /// By an instruction from other values; its text without operands.
    Computed(String, Vec<Sum>),
    /// By one of these statements, each equal to itself only; which register of several.
    Written(Vec<usize>, SmolStr),
}

/// Numbers for the values of a function. Values of one number are equal if both are computed in the same round of the
/// loops around them.
pub struct Values<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    flow: &'a Dataflow<'a>,
    numbers: HashMap<Value, u32>,
    of_write: HashMap<usize, Option<Sum>>,
}

/// Opcodes whose results depend on their operands alone, and that addresses are computed by.
const PURE: [&str; 21] = [
    "add", "and", "bfe", "bfi", "cvt", "cvta", "mad", "mad24", "mapa", "max", "min", "mov", "mul",
    "mul24", "neg", "not", "or", "shl", "shr", "sub", "xor",
];

impl<'a> Values<'a> {
    /// Of a body.
    pub fn new(body: &'a Body, cfg: &'a Cfg, flow: &'a Dataflow<'a>) -> Self {
        Self {
            body,
            cfg,
            flow,
            numbers: HashMap::new(),
            of_write: HashMap::new(),
        }
    }

    fn number(&mut self, value: Value) -> Sum {
        let next = self.numbers.len() as u32;
        (*self.numbers.entry(value).or_insert(next), 0)
    }

    /// Where an address operand of a statement points to; nothing if that is too hard to say.
    pub fn address(&mut self, at: usize, operand: &Operand) -> Option<Sum> {
        match operand {
            Operand::Address {
                base: AddressBase::Name(name),
                offset,
            } => {
                let (base, added) = self.name(at, name, None)?;
                Some((base, added + i128::from(*offset)))
            }
            _ => None,
        }
    }

    /// What an operand is worth at a statement; nothing if that is too hard to say.
    fn operand(&mut self, at: usize, operand: &Operand) -> Option<Sum> {
        match operand {
            Operand::Int(value) => {
                let (zero, _) = self.number(Value::Constant);
                Some((zero, *value))
            }
            Operand::F32(bits) => Some(self.number(Value::Literal(u64::from(*bits)))),
            Operand::F64(bits) => Some(self.number(Value::Literal(*bits))),
            Operand::Name {
                name,
                component,
                offset,
            } => {
                let (base, added) = self.name(at, name, *component)?;
                Some((base, added + i128::from(*offset)))
            }
            Operand::Address { .. } => self.address(at, operand),
            _ => None,
        }
    }

    fn name(&mut self, at: usize, name: &str, component: Option<u16>) -> Option<Sum> {
        let Some(register) = self.flow.register(at, name) else {
            return Some(self.number(Value::Name(name.into(), component)));
        };
        let (writes, undefined) = self.flow.reaching(self.cfg, register, at);
        if let ([write], false, None) = (&writes[..], undefined, component)
            && let Some(sum) = self.write(*write)
        {
            return Some(sum);
        }
        let written = (!writes.is_empty()).then_some(Value::Written(writes, name.into()))?;
        Some(self.number(written))
    }

    /// What a statement writes, if it is pure and always executed.
    fn write(&mut self, at: usize) -> Option<Sum> {
        if let Some(&known) = self.of_write.get(&at) {
            return known;
        }
        // A value that depends on itself is left alone.
        self.of_write.insert(at, None);
        let sum = match &self.body.statements[at] {
            Statement::Instruction(instruction) => self.compute(at, instruction),
            _ => None,
        };
        self.of_write.insert(at, sum);
        sum
    }

    fn compute(&mut self, at: usize, instruction: &Instruction) -> Option<Sum> {
        let opcode = instruction.opcode.as_str();
        let parameter = opcode == "ld" && instruction.has("param");
        let pure = PURE.contains(&opcode) || parameter;
        let one = matches!(instruction.operands.first(), Some(Operand::Name { .. }));
        if !pure || !one || instruction.guard.is_some() {
            return None;
        }
        let mut operands = Vec::new();
        for operand in &instruction.operands[1..] {
            operands.push(self.operand(at, operand)?);
        }
        let (zero, _) = self.number(Value::Constant);
        let wide = instruction
            .suffixes
            .last()
            .is_some_and(|ty| ty.ends_with("64"));
        match (opcode, &operands[..]) {
            ("mov" | "cvta", &[of]) => return Some(of),
            // Of 32 bits a sum may wrap around.
            ("add", &[(a, x), (b, y)]) if wide && b == zero => return Some((a, x + y)),
            ("add", &[(a, x), (b, y)]) if wide && a == zero => return Some((b, x + y)),
            ("sub", &[(a, x), (b, y)]) if wide && b == zero => return Some((a, x - y)),
            ("add", &[(a, x), (b, y)]) if wide => {
                let (a, b) = (a.min(b), a.max(b));
                let both = Value::Computed("add".to_owned(), vec![(a, 0), (b, 0)]);
                return Some((self.number(both).0, x + y));
            }
            ("add" | "and" | "or" | "xor" | "min" | "max" | "mul", [_, _]) => {
                operands.sort_unstable()
            }
            _ => {}
        }
        // Generic or not, it is the same place.
        let suffixes = match opcode {
            "mapa" => &[][..],
            _ => &instruction.suffixes,
        };
        let text = [&[instruction.opcode.clone()][..], suffixes].concat();
        Some(self.number(Value::Computed(text.join("."), operands)))
    }
}
