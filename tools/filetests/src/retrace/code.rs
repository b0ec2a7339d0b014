//! Functions as lists of instructions, and where variables lie.

use std::collections::{BTreeMap, HashMap};

use ptx::ast::{Body, Function, Init, Instruction, Module, Statement, Variable};

use super::{Launch, Objection, Result, layout};

/// Functions are numbered from here: no address that a program could compute by itself.
const FUNCTIONS: u64 = 1 << 61;

/// One function.
pub(super) struct Routine<'a> {
    pub(super) function: &'a Function,
    /// The instructions with their lines.
    pub(super) ops: Vec<(&'a Instruction, u32)>,
    labels: HashMap<&'a str, usize>,
}

/// The program.
pub(super) struct Code<'a> {
    pub(super) routines: Vec<Routine<'a>>,
    by_name: HashMap<&'a str, usize>,
    /// Variables in shared memory, by offset.
    shared: HashMap<&'a str, u64>,
    globals: &'a BTreeMap<String, u64>,
}

impl<'a> Code<'a> {
    /// Reads the functions of a module.
    pub(super) fn new(launch: &Launch<'a>) -> Self {
        let module = launch.module;
        let mut code = Self {
            routines: Vec::new(),
            by_name: HashMap::new(),
            shared: layout::shared(module, launch.entry),
            globals: launch.variables,
        };
        for function in module.functions() {
            let Some(body) = &function.body else {
                continue;
            };
            code.by_name.insert(&function.name, code.routines.len());
            code.routines.push(Routine::new(module, function, body));
        }
        code
    }

    /// A function's number.
    pub(super) fn routine(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The function at an address.
    pub(super) fn at(&self, address: u64) -> Option<usize> {
        let number = address.checked_sub(FUNCTIONS)? as usize;
        (number < self.routines.len()).then_some(number)
    }

    /// The address of a variable or function; one in shared memory is an offset there.
    pub(super) fn address(&self, name: &str) -> Option<u64> {
        let function = || self.routine(name).map(|number| FUNCTIONS + number as u64);
        let global = || self.globals.get(name).copied();
        let shared = self.shared.get(name).copied();
        shared.or_else(global).or_else(function)
    }

    /// The bytes that a module's variable begins with.
    pub(super) fn initial(&self, variable: &Variable) -> Result<Vec<u8>> {
        let element = element(variable) as usize;
        let mut all = Vec::new();
        for init in variable.init.iter().flatten() {
            let value = match init {
                Init::Int(bits) => *bits,
                Init::Symbol {
                    name,
                    offset: 0,
                    mask: None,
                    ..
                } => self
                    .address(name)
                    .ok_or_else(|| Objection::unknown(format!("the address of {name}")))?,
                _ => return Err(Objection::unknown("an initialiser")),
            };
            all.extend(&value.to_le_bytes()[..element.min(8)]);
        }
        all.resize(bytes(variable) as usize, 0);
        Ok(all)
    }
}

impl<'a> Routine<'a> {
    fn new(module: &'a Module, function: &'a Function, body: &'a Body) -> Self {
        let (mut ops, mut labels) = (Vec::new(), HashMap::new());
        for statement in &body.statements {
            match statement {
                Statement::Label { name, .. } => drop(labels.insert(name.as_str(), ops.len())),
                Statement::Instruction(instruction) => {
                    let line = module.line_column(instruction.span.start).0;
                    ops.push((instruction, line));
                }
                _ => {}
            }
        }
        Self {
            function,
            ops,
            labels,
        }
    }

    /// Where a label stands.
    pub(super) fn label(&self, name: &str) -> Result<usize> {
        let at = self.labels.get(name).copied();
        at.ok_or_else(|| Objection::unknown(format!("label {name}")))
    }
}

fn element(variable: &Variable) -> u64 {
    u64::from(variable.ty.bytes()) * u64::from(variable.vector.max(1))
}

/// All bytes of a variable.
pub(super) fn bytes(variable: &Variable) -> u64 {
    element(variable) * variable.elements()
}

/// The alignment of a variable in bytes.
pub(super) fn align(variable: &Variable) -> u32 {
    variable.align.unwrap_or(0).max(element(variable) as u32)
}
