//! Which declaration a name in a body means.
//!
//! Blocks in braces have their own registers, variables and labels, and inner ones hide outer
//! ones: nvcc wraps every call in a block that declares `param0` anew, and inline assembly repeats
//! its labels. [`Scopes`] resolves names the way the PTX ISA says, innermost block first.
//! Labels are visible in their whole block and the blocks inside; so, here, are registers and
//! variables (the ISA wants them declared before use, which a valid module does anyway).

use hashbrown::HashMap;

use crate::ast::{Body, Statement, Type};

/// Identity of a register: which declared name, and which one of a `%r<N>` range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register {
    /// Statement index of the `.reg`.
    pub statement: u32,
    /// Which name of the statement.
    pub name: u32,
    /// Which register of the name's range; 0 for a plain name.
    pub index: u32,
}

/// A name of registers in a block: `%a` is not among `%a<2>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Declared<'a> {
    block: u32,
    name: &'a str,
    /// It stands for a range.
    range: bool,
}

/// Where registers are declared.
#[derive(Clone, Copy, Debug)]
struct Declaration {
    statement: u32,
    /// Position in the statement.
    name: u32,
    /// How many registers a range has.
    count: Option<u32>,
}

/// The names of a body and the blocks they are declared in.
#[derive(Clone, Debug)]
pub struct Scopes<'a> {
    body: &'a Body,
    /// Block of each statement. Block 0 is the body.
    block: Vec<u32>,
    /// Enclosing block of each block; block 0 encloses itself.
    parent: Vec<u32>,
    labels: HashMap<(u32, &'a str), u32>,
    variables: HashMap<(u32, &'a str), u32>,
    registers: HashMap<Declared<'a>, Declaration>,
}

impl<'a> Scopes<'a> {
    /// Reads the declarations of `body`. Linear in its length.
    pub fn new(body: &'a Body) -> Self {
        let mut scopes = Self {
            body,
            block: Vec::with_capacity(body.statements.len()),
            parent: vec![0],
            labels: HashMap::new(),
            variables: HashMap::new(),
            registers: HashMap::new(),
        };
        let mut block = 0u32;
        for (index, statement) in body.statements.iter().enumerate() {
            let index = index as u32;
            match statement {
                Statement::BlockOpen(_) => {
                    scopes.parent.push(block);
                    block = scopes.parent.len() as u32 - 1;
                }
                Statement::BlockClose(_) => {
                    scopes.block.push(block);
                    block = scopes.parent[block as usize];
                    continue;
                }
                Statement::Label { name, .. }
                | Statement::BranchTargets { name, .. }
                | Statement::CallPrototype { name, .. } => {
                    scopes.labels.insert((block, name), index);
                }
                Statement::Variable(variable) => {
                    scopes.variables.insert((block, &variable.name), index);
                }
                Statement::Registers(registers) => {
                    for (position, (name, count)) in registers.names.iter().enumerate() {
                        let declared = Declared {
                            block,
                            name,
                            range: count.is_some(),
                        };
                        let declaration = Declaration {
                            statement: index,
                            name: position as u32,
                            count: *count,
                        };
                        scopes.registers.insert(declared, declaration);
                    }
                }
                Statement::Instruction(_)
                | Statement::Loc(_)
                | Statement::Pragma(_)
                | Statement::Unknown(_) => {}
            }
            scopes.block.push(block);
        }
        scopes
    }

    /// The statement index of the label, target list or prototype that `name` means at statement
    /// `at`.
    pub fn label(&self, at: usize, name: &str) -> Option<usize> {
        self.blocks(at)
            .find_map(|block| self.labels.get(&(block, name)))
            .map(|&index| index as usize)
    }

    /// The statement index of the variable of this body that `name` means at statement `at`.
    /// Function parameters and module-scope variables are not among them.
    pub fn variable(&self, at: usize, name: &str) -> Option<usize> {
        self.blocks(at)
            .find_map(|block| self.variables.get(&(block, name)))
            .map(|&index| index as usize)
    }

    /// The register that `name` means at statement `at`. None for special registers, symbols and
    /// register parameters.
    pub fn register(&self, at: usize, name: &str) -> Option<Register> {
        self.blocks(at)
            .find_map(|block| self.register_in(block, name))
    }

    /// Type and vector width of a register.
    pub fn register_type(&self, register: Register) -> Option<(Type, u8)> {
        match self.body.statements.get(register.statement as usize) {
            Some(Statement::Registers(declaration)) => Some((declaration.ty, declaration.vector)),
            _ => None,
        }
    }

    /// How many blocks statement `at` lies in, 0 for the body itself.
    pub fn depth(&self, at: usize) -> usize {
        self.blocks(at).count() - 1
    }

    /// The block of a statement and those around it, innermost first.
    fn blocks(&self, at: usize) -> impl Iterator<Item = u32> + '_ {
        let first = self.block.get(at).copied().unwrap_or(0);
        std::iter::successors(Some(first), |&block| {
            (block != 0).then(|| self.parent[block as usize])
        })
    }

    fn register_in(&self, block: u32, name: &str) -> Option<Register> {
        let declared = |name, range| {
            let of = Declared { block, name, range };
            self.registers.get(&of).copied()
        };
        if let Some(of) = declared(name, false) {
            return Some(Register {
                statement: of.statement,
                name: of.name,
                index: 0,
            });
        }
        // `%r12` is number 12 of `%r<N>` or number 2 of `%r1<N>`.
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // No range has more registers than ten digits can count.
        (1..=digits.min(10)).rev().find_map(|digits| {
            let (base, number) = name.split_at(name.len() - digits);
            if digits > 1 && number.starts_with('0') {
                return None;
            }
            let index = number.parse().ok()?;
            let of = declared(base, true)?;
            of.count.filter(|&count| index < count)?;
            Some(Register {
                statement: of.statement,
                name: of.name,
                index,
            })
        })
    }
}
