//! Calls through pointers.
//!
//! A function that is called through a pointer takes two more parameters, as one that is called by name does, and so
//! does the prototype (`.callprototype`) of each such call. So the module must hold all of it: the functions whose
//! address is taken, what takes it, and the calls. A pointer that is handed to another module, or comes from one, would
//! be called without these parameters.

use std::collections::BTreeSet;

use ptx::ast::{Body, Function, Instruction, Module, Operand, Space, Statement, Variable};
use ptx::callgraph::CallGraph;
use ptx::lexer::{self, TokenKind};
use ptx::scope::Scopes;

use crate::edit::Edits;

/// Functions without a body that a module may declare: they call nothing of the module. The last two stand in virtual
/// tables for functions that must not be called.
const ELSEWHERE: [&str; 6] = [
    "vprintf",
    "__assertfail",
    "malloc",
    "free",
    "__cxa_pure_virtual",
    "__cxa_deleted_virtual",
];

/// The calls through pointers of a module, by the offsets of their first bytes; none if not all of them can be given the
/// parameters. `is_fixed` says which functions keep their signature.
pub(crate) fn calls(
    module: &Module,
    graph: &CallGraph<'_>,
    is_fixed: impl Fn(&str) -> bool,
) -> Option<BTreeSet<u32>> {
    let defined: BTreeSet<&str> = bodies(module).map(|(of, _)| of.name.as_str()).collect();
    let known = |name: &str| defined.contains(name) || ELSEWHERE.contains(&name);
    // Nobody calls a kernel.
    let callable = |of: &Function| !of.entry || !graph.is_address_taken(&of.name);
    let followed = { module.functions() }.all(|of| known(&of.name) && callable(of))
        && !graph.address_taken().is_empty()
        && graph.address_taken().iter().all(|name| !is_fixed(name));
    if !followed {
        return None;
    }
    let mut all = BTreeSet::new();
    for (function, body) in bodies(module) {
        let calls = graph.calls(&function.name);
        let indirect = calls.map_or(&[][..], |calls| &calls.indirect);
        if indirect.is_empty() {
            continue;
        }
        let scopes = Scopes::new(body);
        for &at in indirect {
            let Statement::Instruction(call) = body.statements.get(at)? else {
                return None;
            };
            has_prototype(body, &scopes, at, call).then_some(())?;
            all.insert(call.span.start);
        }
    }
    (!all.is_empty()).then_some(all)
}

fn bodies(module: &Module) -> impl Iterator<Item = (&Function, &Body)> {
    let functions = module.functions();
    functions.filter_map(|function| Some((function, function.body.as_ref()?)))
}

/// Whether a call has a prototype to which parameters can be added.
fn has_prototype(body: &Body, scopes: &Scopes<'_>, at: usize, call: &Instruction) -> bool {
    let Some(Operand::Name { name, .. }) = call.operands.last() else {
        return false;
    };
    let fixed = |formal: &Variable| {
        let variable = formal.dims.as_deref().is_some_and(|of| of.contains(&0));
        formal.space == Space::Reg || variable
    };
    let prototype = scopes
        .label(at, name)
        .and_then(|at| body.statements.get(at));
    match prototype {
        Some(Statement::CallPrototype {
            returns, params, ..
        }) => !params.iter().chain(returns).any(fixed),
        _ => false,
    }
}

/// Adds the parameters to every prototype of a function.
pub(crate) fn extend_prototypes(module: &Module, body: &Body, edits: &mut Edits) {
    const MORE: &str = ".param .b64 _, .param .b64 _";
    for statement in &body.statements {
        let Statement::CallPrototype { params, span, .. } = statement else {
            continue;
        };
        let Some((at, brackets)) = parameters(module.slice(*span)) else {
            continue;
        };
        let text = match (brackets, params.is_empty()) {
            (true, true) => MORE.to_owned(),
            (true, false) => format!(", {MORE}"),
            (false, _) => format!(" ({MORE})"),
        };
        edits.insert(span.start + at, text);
    }
}

/// Where the parameters of a prototype end, before their bracket if there is one.
/// `label: .callprototype (results) name (parameters) .noreturn;`
fn parameters(prototype: &str) -> Option<(u32, bool)> {
    let space = [
        TokenKind::Blank,
        TokenKind::LineComment,
        TokenKind::BlockComment,
        TokenKind::Hash,
    ];
    let tokens = lexer::tokens(prototype).filter(|token| !space.contains(&token.kind));
    // Behind the label, its colon and the directive.
    let mut tokens = tokens.skip(3).peekable();
    if tokens
        .next_if(|token| token.kind == TokenKind::OpenParen)
        .is_some()
    {
        tokens.find(|token| token.kind == TokenKind::CloseParen)?;
    }
    let name = tokens.next_if(|token| token.kind == TokenKind::Name)?;
    match tokens.next_if(|token| token.kind == TokenKind::OpenParen) {
        Some(_) => {
            let end = tokens.find(|token| token.kind == TokenKind::CloseParen)?;
            Some((end.start, true))
        }
        None => Some((name.end, false)),
    }
}
