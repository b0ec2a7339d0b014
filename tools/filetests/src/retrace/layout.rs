//! Where variables in shared memory lie.
//!
//! PTX leaves it open. The device gives them room in the order in which the kernel's text and the functions
//! that it calls mention them, and those of dynamic size behind them all.

use std::collections::{HashMap, HashSet};

use ptx::ast::{AddressBase, Function, Linkage, Module, Operand, Space, Statement, Variable};

use super::code::{align, bytes};

/// The alignment of dynamic shared memory, at least.
const DYNAMIC: u64 = 16;

/// The offsets of a kernel's variables.
pub(super) fn shared<'a>(module: &'a Module, entry: &str) -> HashMap<&'a str, u64> {
    let mut variables: HashMap<&str, &'a Variable> = HashMap::new();
    for variable in module.variables() {
        variables.insert(&variable.name, variable);
    }
    let mut functions: HashMap<&str, &'a Function> = HashMap::new();
    for function in module
        .functions()
        .filter(|function| function.body.is_some())
    {
        functions.insert(&function.name, function);
    }
    let (mut at, mut end) = (HashMap::new(), 0);
    let mut dynamic: Vec<&'a Variable> = Vec::new();
    let (mut seen, mut queue) = (HashSet::from([entry]), Vec::from([entry]));
    let mut next = 0;
    while let Some(name) = queue.get(next).copied() {
        next += 1;
        let Some(function) = functions.get(name) else {
            continue;
        };
        for statement in function.body.iter().flat_map(|body| &body.statements) {
            match statement {
                Statement::Variable(variable) => drop(variables.insert(&variable.name, variable)),
                Statement::Instruction(instruction) => {
                    let mut names = Vec::new();
                    instruction
                        .operands
                        .iter()
                        .for_each(|of| mentioned(of, &mut names));
                    for name in names {
                        if let Some((&name, _)) = functions.get_key_value(name)
                            && seen.insert(name)
                        {
                            queue.push(name);
                        }
                        let Some((&name, &variable)) = variables.get_key_value(name) else {
                            continue;
                        };
                        if variable.space != Space::Shared || at.contains_key(name) {
                            continue;
                        }
                        if variable.linkage == Linkage::Extern {
                            dynamic.push(variable);
                            continue;
                        }
                        let first = up(end, u64::from(align(variable)));
                        at.insert(name, first);
                        end = first + bytes(variable);
                    }
                }
                _ => {}
            }
        }
    }
    let aligned = dynamic.iter().map(|variable| u64::from(align(variable)));
    let start = up(end, aligned.fold(DYNAMIC, u64::max));
    for variable in dynamic {
        at.insert(&variable.name, start);
    }
    at
}

fn up(to: u64, align: u64) -> u64 {
    to.div_ceil(align.max(1)) * align.max(1)
}

/// The names that an operand mentions.
fn mentioned<'a>(operand: &'a Operand, into: &mut Vec<&'a str>) {
    match operand {
        Operand::Name { name, .. } => into.push(name),
        Operand::Address {
            base: AddressBase::Name(name),
            ..
        } => into.push(name),
        Operand::Vector(all) | Operand::Paren(all) | Operand::Bracket(all) => {
            all.iter().for_each(|of| mentioned(of, into));
        }
        Operand::Pair(one, other) => {
            mentioned(one, into);
            mentioned(other, into);
        }
        Operand::Not(of) => mentioned(of, into),
        _ => {}
    }
}
