//! Modules for targets that the device code does not know: below sm_70, `nvcc` 12's default among them.
//!
//! PTX for an old target is PTX for a newer one (PTX ISA 11.1.2, ".target"), but for `shfl` and `vote`
//! without `.sync`, which no target from sm_70 on takes.
//! So a module with checks is for sm_70 instead. Its warps then do not run in step, as a driver lets those
//! of older targets do; code that relies on that has races by the memory model that PTX has had since.

use ptx::architecture;
use ptx::ast::{Item, Module, Span};

use crate::edit::Edits;

/// Lowest target that takes the checks.
const LOWEST: u32 = 70;

/// Whether a module's target takes checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As it is.
    Far,
    /// When the directive at that place says sm_70 instead.
    Raised(Span),
    /// Not, for that reason.
    Refused(String),
}

/// Decides for a module.
pub(crate) fn reach(module: &Module) -> Reach {
    let Some(sm) = module.architecture() else {
        return Reach::Refused("it names no target; build for compute_70 or later".into());
    };
    if sm >= LOWEST {
        return Reach::Far;
    }
    let bodies = module.functions().filter_map(|f| f.body.as_ref());
    let mut instructions = bodies.flat_map(|body| body.instructions());
    let old =
        instructions.find(|(_, i)| matches!(i.opcode.as_str(), "shfl" | "vote") && !i.has("sync"));
    if let Some((_, old)) = old {
        let why = "the target is below sm_70, and it uses";
        let remedy = "without .sync; build for compute_70 or later";
        return Reach::Refused(format!("{why} {} {remedy}", old.opcode));
    }
    match directive(module) {
        Some(span) => Reach::Raised(span),
        None => Reach::Refused("the target is below sm_70; build for compute_70 or later".into()),
    }
}

/// Lets the module be for the lowest target that takes checks, and gives the old one, if it was another; its
/// directive becomes a comment.
pub(crate) fn raise(module: &Module, edits: &mut Edits) -> Option<String> {
    let Reach::Raised(span) = reach(module) else {
        return None;
    };
    let names = module.target.iter().map(|name| match architecture(name) {
        Some(_) => format!("sm_{LOWEST}"),
        None => name.to_string(),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    edits.insert(span.start, format!("\n.target {names}\n//"));
    let old = module
        .target
        .iter()
        .find(|name| architecture(name).is_some());
    old.map(ToString::to_string)
}

/// The only `.target`, if its line ends where it does.
fn directive(module: &Module) -> Option<Span> {
    let mut all = module.items.iter().filter_map(|item| match item {
        Item::Directive(span) if module.slice(*span).starts_with(".target") => Some(*span),
        _ => None,
    });
    let span = all.next()?;
    let line = module.text[span.range().end..].lines().next()?.trim();
    let alone = line.is_empty() || line.starts_with("//");
    (alone && all.next().is_none() && !module.slice(span).contains('\n')).then_some(span)
}
