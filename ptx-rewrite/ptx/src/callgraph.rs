//! Who calls whom.
//!
//! Calls are direct (`call f`) or through a register. What a register may hold is not followed:
//! an indirect call may reach every function whose address is taken anywhere in the module, by an
//! instruction or by an initialiser such as a virtual table, unless it names its targets in a
//! `.calltargets` list.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::ast::{Body, Init, Instruction, Item, Module, Operand, Statement};
use crate::isa;
use crate::scope::Scopes;

/// The calls of one function.
#[derive(Clone, Debug, Default)]
pub struct Calls<'a> {
    /// Functions called by name, without repetition, aliases resolved. Some may only be declared.
    pub direct: BTreeSet<&'a str>,
    /// Statement index of each direct call, and the function.
    pub sites: Vec<(usize, &'a str)>,
    /// Statement indices of the calls through a register.
    pub indirect: Vec<usize>,
    /// Targets listed for indirect calls by `.calltargets`. Meaningful if `open` is false.
    pub listed: BTreeSet<&'a str>,
    /// True when an indirect call lists no targets.
    pub open: bool,
}

/// The call graph of a module.
#[derive(Clone, Debug, Default)]
pub struct CallGraph<'a> {
    calls: HashMap<&'a str, Calls<'a>>,
    address_taken: BTreeSet<&'a str>,
}

impl<'a> CallGraph<'a> {
    /// Reads the calls of every function. Linear in the size of the module.
    pub fn new(module: &'a Module) -> Self {
        let functions: HashSet<&str> = module.functions().map(|f| f.name.as_str()).collect();
        let aliases: HashMap<&str, &str> = module
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Alias { name, aliasee, .. } => Some((name.as_str(), aliasee.as_str())),
                _ => None,
            })
            .collect();
        let names = Names { functions, aliases };
        let mut graph = Self::default();
        for variable in module.variables() {
            for element in variable.init.iter().flatten() {
                if let Init::Symbol { name, .. } = element {
                    graph.address_taken.extend(names.resolve(name));
                }
            }
        }
        for function in module.functions() {
            let calls = graph.calls.entry(function.name.as_str()).or_default();
            if let Some(body) = &function.body {
                read(body, &names, calls, &mut graph.address_taken);
            }
        }
        graph
    }

    /// The calls of a function; none for a name that is no function of the module.
    pub fn calls(&self, function: &str) -> Option<&Calls<'a>> {
        self.calls.get(function)
    }

    /// The functions whose address is taken anywhere in the module.
    pub fn address_taken(&self) -> &BTreeSet<&'a str> {
        &self.address_taken
    }

    /// True when the function may be called through a pointer.
    pub fn is_address_taken(&self, function: &str) -> bool {
        self.address_taken.contains(function)
    }

    /// The functions control may come to from `entry`, itself included, over direct and indirect
    /// calls. Empty for a name that is no function of the module.
    pub fn reachable(&self, entry: &str) -> BTreeSet<&'a str> {
        self.closure(entry, true)
    }

    /// As [`reachable`](Self::reachable), over direct calls alone.
    pub fn directly_reachable(&self, entry: &str) -> BTreeSet<&'a str> {
        self.closure(entry, false)
    }

    /// True when the function can come to call itself, indirect calls included.
    pub fn is_recursive(&self, function: &str) -> bool {
        let Some(calls) = self.calls.get(function) else {
            return false;
        };
        let mut reached = BTreeSet::new();
        for callee in self.callees(calls, true) {
            self.collect(callee, true, &mut reached);
        }
        reached.contains(function)
    }

    fn closure(&self, entry: &str, indirect: bool) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        self.collect(entry, indirect, &mut reached);
        reached
    }

    fn collect(&self, from: &str, indirect: bool, reached: &mut BTreeSet<&'a str>) {
        let Some((&from, _)) = self.calls.get_key_value(from) else {
            return;
        };
        let mut work = vec![from];
        while let Some(function) = work.pop() {
            if !reached.insert(function) {
                continue;
            }
            if let Some(calls) = self.calls.get(function) {
                let new = self
                    .callees(calls, indirect)
                    .filter(|name| !reached.contains(name));
                work.extend(new);
            }
        }
    }

    fn callees<'s>(
        &'s self,
        calls: &'s Calls<'a>,
        indirect: bool,
    ) -> impl Iterator<Item = &'a str> + 's {
        let listed = calls.listed.iter().filter(move |_| indirect);
        let taken = self
            .address_taken
            .iter()
            .filter(move |_| indirect && calls.open);
        calls.direct.iter().chain(listed).chain(taken).copied()
    }
}

/// The names that mean functions.
struct Names<'a> {
    functions: HashSet<&'a str>,
    aliases: HashMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    /// The function a name means, if it means one.
    fn resolve(&self, name: &str) -> Option<&'a str> {
        let name = self.aliases.get(name).copied().unwrap_or(name);
        self.functions.get(name).copied()
    }
}

fn read<'a>(
    body: &'a Body,
    names: &Names<'a>,
    calls: &mut Calls<'a>,
    address_taken: &mut BTreeSet<&'a str>,
) {
    let scopes = Scopes::new(body);
    for (at, instruction) in body.instructions() {
        let call = instruction.opcode == "call";
        if call {
            let callee = isa::callee(instruction);
            match callee.filter(|name| scopes.register(at, name).is_none()) {
                Some(name) => {
                    let name = names.resolve(name).unwrap_or(name);
                    calls.direct.insert(name);
                    calls.sites.push((at, name));
                }
                None => {
                    calls.indirect.push(at);
                    match listed(body, &scopes, at, instruction) {
                        Some(targets) => {
                            calls
                                .listed
                                .extend(targets.filter_map(|name| names.resolve(name)));
                        }
                        None => calls.open = true,
                    }
                }
            }
        }
        for operand in &instruction.operands {
            let callee = call && matches!(operand, Operand::Name { .. });
            if !callee {
                taken(operand, &mut |name| {
                    address_taken.extend(names.resolve(name))
                });
            }
        }
    }
}

/// The targets an indirect call lists, if it does.
fn listed<'a>(
    body: &'a Body,
    scopes: &Scopes<'_>,
    at: usize,
    call: &Instruction,
) -> Option<impl Iterator<Item = &'a str>> {
    let Some(Operand::Name { name, .. }) = call.operands.last() else {
        return None;
    };
    match &body.statements[scopes.label(at, name)?] {
        Statement::BranchTargets { targets, .. } => Some(targets.iter().map(|name| name.as_str())),
        _ => None,
    }
}

/// Calls `note` with the names an operand holds as values.
fn taken(operand: &Operand, note: &mut impl FnMut(&str)) {
    match operand {
        Operand::Name { name, .. } => note(name),
        Operand::Vector(all) | Operand::Paren(all) | Operand::Bracket(all) => {
            for operand in all {
                taken(operand, note);
            }
        }
        Operand::Pair(first, second) => {
            taken(first, note);
            taken(second, note);
        }
        Operand::Not(inner) => taken(inner, note),
        Operand::Address { .. }
        | Operand::Int(_)
        | Operand::F32(_)
        | Operand::F64(_)
        | Operand::Sink
        | Operand::Unknown(_) => {}
    }
}
