//! What the names of a function mean, and what becomes of its instructions: found out once per function.

use std::collections::{BTreeMap, HashMap};

use ptx::ast::{Body, Function, Module, Space, Statement, Type};
use ptx::scope::Scopes;

use crate::access::{self, Checked};

/// A register or a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A register of so many bytes.
    Register(u32),
    /// A variable or parameter of that state space.
    Variable(Space),
    /// Declared nowhere.
    Unknown,
}

/// The names visible in a body.
pub(crate) struct Names<'a> {
    module: &'a Module,
    function: &'a Function,
    body: &'a Body,
    scopes: Scopes<'a>,
    narrow: BTreeMap<usize, ptx::Narrow>,
    /// What becomes of each statement.
    checked: Vec<Checked>,
}

/// The functions of a module that have a body, by where they begin.
pub(crate) struct Bodies<'a>(HashMap<u32, Names<'a>>);

impl<'a> Bodies<'a> {
    /// Reads all functions of a module.
    pub(crate) fn new(module: &'a Module) -> Self {
        let names = |function: &'a Function| {
            let body = function.body.as_ref()?;
            Some((function.span.start, Names::new(module, function, body)))
        };
        Self(module.functions().filter_map(names).collect())
    }

    /// What is known of a function, if it has a body.
    pub(crate) fn of(&self, function: &Function) -> Option<&Names<'a>> {
        self.0.get(&function.span.start)
    }
}

impl<'a> Names<'a> {
    fn new(module: &'a Module, function: &'a Function, body: &'a Body) -> Self {
        let mut names = Self {
            module,
            function,
            body,
            scopes: Scopes::new(body),
            narrow: ptx::narrow(module, function),
            checked: Vec::new(),
        };
        let statements = body.statements.iter().enumerate();
        let classify = |(at, statement): (usize, &Statement)| match statement {
            Statement::Instruction(of) => access::classify(&names, at, of),
            _ => Checked::NoAccess,
        };
        names.checked = statements.map(classify).collect();
        names
    }

    /// The function's body.
    pub(crate) fn body(&self) -> &'a Body {
        self.body
    }

    /// What becomes of a statement.
    pub(crate) fn checked(&self, at: usize) -> Checked {
        self.checked.get(at).copied().unwrap_or(Checked::NoAccess)
    }

    /// What the access of a statement stands for, if that is an element of the word.
    pub(crate) fn narrow(&self, at: usize) -> Option<&ptx::Narrow> {
        self.narrow.get(&at)
    }

    /// Whether `name` is a predicate at a statement.
    pub(crate) fn is_predicate(&self, at: usize, name: &str) -> bool {
        let register = self.scopes.register(at, name);
        let ty = register.and_then(|register| self.scopes.register_type(register));
        ty.is_some_and(|(ty, _)| ty == Type::Pred)
    }

    /// What `name` means at statement `at`, innermost declaration first.
    pub(crate) fn meaning(&self, at: usize, name: &str) -> Meaning {
        if let Some(register) = self.scopes.register(at, name) {
            let ty = self.scopes.register_type(register);
            return ty.map_or(Meaning::Unknown, |(ty, _)| Meaning::Register(ty.bytes()));
        }
        if let Some(index) = self.scopes.variable(at, name)
            && let Some(Statement::Variable(variable)) = self.body.statements.get(index)
        {
            return Meaning::Variable(variable.space);
        }
        let formal = self.function.params.iter().chain(&self.function.returns);
        let global = self.module.variables();
        match formal.chain(global).find(|variable| variable.name == name) {
            Some(variable) if variable.space == Space::Reg => {
                Meaning::Register(variable.ty.bytes())
            }
            Some(variable) => Meaning::Variable(variable.space),
            None => Meaning::Unknown,
        }
    }
}
