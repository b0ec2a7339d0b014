//! Which parameters of a kernel, and which variables of its module, its accesses go through.
//!
//! A load through a parameter whose allocation the launch never writes cannot race within the launch, and neither can
//! one of a variable that it never writes, such as a table.
//! Which allocation that is, is known at the launch; here we find out what may be known before.
//!
//! Every 64-bit register has the set of 64-bit parameter values and variables that it may be computed from,
//! whatever the flow of control: a fixed point over all instructions that write it. Integers of 32
//! bits have none, loaded ones included, and so do values computed from them; 64 bits from memory, and what instructions
//! give that are not known to compute addresses, are unknown, and so is an address computed from no
//! parameter. Unknown bits times a constant that is no power of two are an index, and no address.
//! A kernel that calls, or writes through what is unknown, is left aside as a whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ptx::ast::{AddressBase, Function, Instruction, Operand, Space, Statement};
use ptx::isa::{self, MemoryKind, MemoryOp};
use ptx::scope::{Register, Scopes};

use crate::access::{Access, Checked};
use crate::names::{Meaning, Names};

/// What the loads and writes of a kernel's global memory go through. Sets are masks over `offsets`, and from
/// [`Pointers::FIRST_VARIABLE`] on over `variables`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointers {
    /// Where in the kernel's parameters the 64-bit values lie, in bytes.
    pub offsets: Vec<u32>,
    /// Variables of the module in global memory.
    pub variables: Vec<String>,
    /// Each load goes through one of these sets, or is not in question.
    pub loads: Vec<u64>,
    /// Each write goes through one of these.
    pub writes: Vec<u64>,
    /// Each access of one word that may be checked as one granule goes through one of these.
    pub words: Vec<u64>,
    /// Each access to less than a word goes through one of these.
    pub parts: Vec<u64>,
}

/// What the accesses of a kernel may be spared, by statement.
#[derive(Debug, Default)]
pub(crate) struct Spared {
    /// Loads that may need no check: their places in [`Pointers::loads`].
    pub loads: BTreeMap<usize, usize>,
    /// Accesses of one word that may be checked as one granule though the kernel's granules are smaller.
    pub words: BTreeSet<usize>,
}

impl Pointers {
    /// The bit of the first variable in a set.
    pub const FIRST_VARIABLE: u32 = 40;
}

/// Bytes of the largest granule.
const WORD: u32 = 4;

/// Most sets of loads, one bit each in [`shadow::layout::LaunchBlock::unwritten`].
const MOST_LOADS: usize = 16;
/// Parameters that a set has room for.
const MOST_OFFSETS: usize = Pointers::FIRST_VARIABLE as usize;
/// Variables that a set has room for; those beyond are unknown.
const MOST_VARIABLES: usize = 62 - MOST_OFFSETS;

/// In a set: an address of shared or local memory.
const PRIVATE: u64 = 1 << 62;
/// In a set: something else.
const UNKNOWN: u64 = 1 << 63;

/// Reads a kernel. None where there is nothing to gain.
pub(crate) fn read(function: &Function, names: Option<&Names<'_>>) -> Option<(Pointers, Spared)> {
    let names = names.filter(|_| function.entry)?;
    let body = names.body();
    let mut values = Values {
        names,
        function,
        scopes: Scopes::new(body),
        offsets: Vec::new(),
        variables: Vec::new(),
        of: HashMap::new(),
    };
    let mut accesses = Vec::new();
    for (at, statement) in body.statements.iter().enumerate() {
        let instruction = match statement {
            Statement::Instruction(instruction) => instruction,
            Statement::Unknown(_) => return None,
            _ => continue,
        };
        if instruction.opcode == "call" || isa::lookup(&instruction.opcode).is_none() {
            return None;
        }
        match names.checked(at) {
            Checked::NotUnderstood | Checked::Copy(_) => return None,
            Checked::Yes(Access {
                op, address_space, ..
            }) if address_space.may_be_global() => {
                accesses.push((at, op, instruction.operands.get(op.address)));
            }
            _ => {}
        }
    }
    let mut settled = false;
    while !settled {
        settled = true;
        for (at, instruction) in body.instructions() {
            settled &= !values.note(at, instruction)?;
        }
    }
    let mut through = |operand: Option<&Operand>, at| match operand {
        Some(Operand::Address {
            base: AddressBase::Name(name),
            ..
        }) => match names.meaning(at, name) {
            Meaning::Register(8) => match values.of_register(at, name) {
                0 => UNKNOWN,
                set => set,
            },
            Meaning::Variable(Space::Global) => values.variable(name),
            _ => UNKNOWN,
        },
        _ => UNKNOWN,
    };
    let is_load = |op: &MemoryOp| op.kind == MemoryKind::Load;
    let accesses: Vec<(usize, MemoryOp, u64)> = accesses
        .into_iter()
        .map(|(at, op, operand)| (at, op, through(operand, at)))
        .collect();
    let mut pointers = Pointers::default();
    for &(_, _, set) in accesses.iter().filter(|(_, op, _)| !is_load(op)) {
        if set & UNKNOWN != 0 {
            return None;
        }
        if set != PRIVATE && !pointers.writes.contains(&(set & !PRIVATE)) {
            pointers.writes.push(set & !PRIVATE);
        }
    }
    let written = pointers.writes.iter().fold(0, |all, set| all | set);
    let mut spared = Spared::default();
    for &(at, _, set) in accesses.iter().filter(|(_, op, _)| is_load(op)) {
        if set & (UNKNOWN | PRIVATE | written) != 0 {
            continue;
        }
        let known = pointers.loads.iter().position(|load| *load == set);
        let index = known.unwrap_or(pointers.loads.len());
        if known.is_none() && index < MOST_LOADS {
            pointers.loads.push(set);
        }
        if index < MOST_LOADS {
            spared.loads.insert(at, index);
        }
    }
    let is_part = |op: &MemoryOp| op.bytes_per_element < WORD;
    for &(_, _, set) in accesses.iter().filter(|(_, op, _)| is_part(op)) {
        if !pointers.parts.contains(&set) {
            pointers.parts.push(set);
        }
    }
    let parts = pointers.parts.iter().fold(0, |all, set| all | set);
    if parts != 0 && parts & (UNKNOWN | PRIVATE) == 0 {
        for &(at, op, set) in &accesses {
            let one = op.bytes_per_element == WORD && op.bytes() == WORD;
            if !one || set & (UNKNOWN | PRIVATE | parts) != 0 {
                continue;
            }
            spared.words.insert(at);
            if !pointers.words.contains(&set) {
                pointers.words.push(set);
            }
        }
    }
    (pointers.offsets, pointers.variables) = (values.offsets, values.variables);
    let gains = !spared.loads.is_empty() || !spared.words.is_empty();
    gains.then_some((pointers, spared))
}

/// What the registers may be computed from.
struct Values<'a> {
    names: &'a Names<'a>,
    function: &'a Function,
    scopes: Scopes<'a>,
    offsets: Vec<u32>,
    variables: Vec<String>,
    of: HashMap<Register, u64>,
}

impl Values<'_> {
    fn of_register(&self, at: usize, name: &str) -> u64 {
        let register = self.scopes.register(at, name);
        register
            .and_then(|of| self.of.get(&of))
            .map_or(0, |set| *set)
    }

    /// Adds what an instruction writes; true if that is news. None when there are too many
    /// parameters.
    fn note(&mut self, at: usize, instruction: &Instruction) -> Option<bool> {
        let mut written = Vec::new();
        isa::register_writes(instruction, |name| written.push(name));
        let mut news = false;
        for (n, name) in written.into_iter().enumerate() {
            let Some(register) = self.scopes.register(at, name) else {
                continue;
            };
            let bytes = self
                .scopes
                .register_type(register)
                .map(|(ty, _)| ty.bytes());
            let set = match bytes {
                Some(8) => self.computed(at, instruction, n)?,
                Some(..8) => continue,
                _ => UNKNOWN,
            };
            let known = self.of.entry(register).or_default();
            news |= set & !*known != 0;
            *known |= set;
        }
        Some(news)
    }

    /// What the `n`th register that an instruction writes is computed from.
    fn computed(&mut self, at: usize, instruction: &Instruction, n: usize) -> Option<u64> {
        match instruction.opcode.as_str() {
            "ld" => return self.loaded(at, instruction, n),
            // By less, a pointer keeps its place; by more, one may be put together.
            "shl" => match instruction.operands.get(2) {
                Some(Operand::Int(0..32)) => {}
                _ => return Some(UNKNOWN),
            },
            "mul" | "mad" => {
                let (factors, sum) = instruction.operands.get(1..)?.split_at_checked(2)?;
                return Some(self.product(at, factors) | self.any(at, sum.iter()));
            }
            "mov" | "cvta" | "cvt" | "add" | "addc" | "sub" | "subc" | "and" | "or" | "xor"
            | "not" | "neg" | "abs" | "min" | "max" | "selp" | "shr" | "div" | "rem" => {}
            _ => return Some(UNKNOWN),
        }
        Some(self.any(at, isa::reads(instruction)))
    }

    /// What one of several operands is computed from.
    fn any<'o>(&mut self, at: usize, operands: impl Iterator<Item = &'o Operand>) -> u64 {
        operands.fold(0, |set, operand| set | self.read(at, operand))
    }

    /// What a product is computed from. A power of two may move the bits of an address that were put aside; any
    /// other factor leaves nothing of one, so that unknown bits were an index.
    fn product(&mut self, at: usize, factors: &[Operand]) -> u64 {
        let scales = |operand: &Operand| match operand {
            Operand::Int(factor) => !factor.unsigned_abs().is_power_of_two() && *factor != 0,
            _ => false,
        };
        let set = self.any(at, factors.iter());
        match factors.iter().any(scales) {
            true => set & !UNKNOWN,
            false => set,
        }
    }

    /// The set of a variable in global memory.
    fn variable(&mut self, name: &str) -> u64 {
        let known = self.variables.iter().position(|known| known == name);
        let index = known.unwrap_or(self.variables.len());
        if index >= MOST_VARIABLES {
            return UNKNOWN;
        }
        if known.is_none() {
            self.variables.push(name.to_owned());
        }
        1 << (Pointers::FIRST_VARIABLE as usize + index)
    }

    /// What an operand is computed from.
    fn read(&mut self, at: usize, operand: &Operand) -> u64 {
        let Operand::Name { name, .. } = operand else {
            return match operand {
                Operand::Int(_) => 0,
                _ => UNKNOWN,
            };
        };
        match self.names.meaning(at, name) {
            Meaning::Register(8) => self.of_register(at, name),
            Meaning::Register(..8) => 0,
            Meaning::Variable(Space::Shared | Space::Local) => PRIVATE,
            Meaning::Variable(Space::Global) => self.variable(name),
            _ => UNKNOWN,
        }
    }

    fn loaded(&mut self, at: usize, instruction: &Instruction, n: usize) -> Option<u64> {
        let Some(op) = isa::memory(instruction) else {
            return Some(UNKNOWN);
        };
        // Extended to 64 bits, as it is from a register of 32 bits: an integer, and no address.
        if op.bytes_per_element < 8 {
            return Some(0);
        }
        let Some(Operand::Address {
            base: AddressBase::Name(name),
            offset,
        }) = instruction.operands.get(op.address)
        else {
            return Some(UNKNOWN);
        };
        let parameter = match self.names.meaning(at, name) {
            Meaning::Variable(Space::Param) if op.space == Space::Param => {
                let params = &self.function.params;
                params.iter().position(|param| param.name == *name)
            }
            _ => None,
        };
        let Some(parameter) = parameter else {
            return Some(UNKNOWN);
        };
        if op.bytes_per_element != 8 {
            return Some(UNKNOWN);
        }
        let (layout, _) = ptx::param_layout(&self.function.params);
        let start = i64::from(layout.get(parameter)?.offset);
        let field_offset = u32::try_from(start + offset + 8 * i64::try_from(n).ok()?).ok()?;
        let known = self.offsets.iter().position(|known| *known == field_offset);
        let index = known.unwrap_or(self.offsets.len());
        if known.is_none() {
            self.offsets.push(field_offset);
        }
        (index < MOST_OFFSETS).then_some(1 << index)
    }
}
