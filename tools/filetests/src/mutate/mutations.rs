//! What can be taken away from a text, or weakened in it.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use ptx::ast::{Instruction, Module, Operand, Span, Statement};
use ptx::callgraph::CallGraph;

/// A change of one instruction.
#[derive(Clone, Debug)]
pub(super) struct Mutation {
    /// The bytes that change.
    pub(super) range: Range<usize>,
    /// What takes their place: as many lines.
    pub(super) new: String,
    /// Those of the instruction.
    pub(super) instruction: Range<usize>,
    /// Line of the instruction, from 1.
    pub(super) line: u32,
    pub(super) kind: Kind,
    /// What is done, for a person.
    pub(super) what: String,
}

/// What a mutation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Barrier,
    Mask,
    CopyWait,
    PhaseWait,
    Lock,
    Fence,
    Order,
    Scope,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Barrier => "a barrier was removed",
            Self::Mask => "a barrier of a warp lost the upper half of its mask",
            Self::CopyWait => "a wait for copies was removed",
            Self::PhaseWait => "a wait at an mbarrier was removed",
            Self::Lock => "a compare-and-swap was replaced by its success",
            Self::Fence => "a fence was removed",
            Self::Order => "`.acquire`, `.release`, `.acq_rel` or `.sc` was weakened",
            Self::Scope => "a scope was narrowed",
        })
    }
}

/// What a suffix is weakened to.
const WEAKER: [(Kind, &str, &str); 8] = [
    (Kind::Order, ".acquire", ".relaxed"),
    (Kind::Order, ".release", ".relaxed"),
    (Kind::Order, ".acq_rel", ".relaxed"),
    (Kind::Order, ".sc", ".acq_rel"),
    (Kind::Scope, ".gpu", ".cta"),
    (Kind::Scope, ".sys", ".cta"),
    (Kind::Scope, ".cluster", ".cta"),
    (Kind::Scope, ".gl", ".cta"),
];

/// All that can be done to what some kernels may execute, each by itself.
pub(super) fn mutations(module: &Module, kernels: &[String]) -> Vec<Mutation> {
    let graph = CallGraph::new(module);
    let reachable = kernels.iter().flat_map(|kernel| graph.reachable(kernel));
    let reachable: BTreeSet<&str> = reachable.collect();
    let functions = module.functions();
    let functions = functions.filter(|function| reachable.contains(function.name.as_str()));
    let bodies = functions.filter_map(|function| function.body.as_ref());
    let instructions = bodies.flat_map(|body| &body.statements).filter_map(|of| {
        let Statement::Instruction(instruction) = of else {
            return None;
        };
        Some(instruction)
    });
    instructions.flat_map(|of| of_one(module, of)).collect()
}

fn of_one(module: &Module, instruction: &Instruction) -> Vec<Mutation> {
    let range = range(instruction.span);
    let text = module.slice(instruction.span);
    let line = module.line_column(instruction.span.start).0;
    let mut all = Vec::new();
    if let Some((kind, name)) = removable(instruction) {
        let blank = text.chars().map(|c| if c == '\n' { '\n' } else { ' ' });
        all.push(Mutation {
            range: range.clone(),
            new: blank.collect(),
            instruction: range.clone(),
            line,
            kind,
            what: format!("`{name}` removed"),
        });
    }
    if let Some((kind, new, what)) = succeeds(module, instruction) {
        let lines = "\n".repeat(text.matches('\n').count());
        all.push(Mutation {
            range: range.clone(),
            new: new + &lines,
            instruction: range.clone(),
            line,
            kind,
            what,
        });
    }
    let mut within = |kind, from: &str, to: &str| {
        if let Some(at) = text.find(from) {
            let at = range.start + at;
            all.push(Mutation {
                range: at..at + from.len(),
                new: to.to_owned(),
                instruction: range.clone(),
                line,
                kind,
                what: format!("`{}`: `{from}` made `{to}`", name(instruction)),
            });
        }
    };
    for (kind, from, to) in WEAKER {
        // There is no weaker fence than one that acquires and releases.
        let no_fence = kind == Kind::Order && from != ".sc" && instruction.opcode == "fence";
        if instruction.has(&from[1..]) && orders(instruction) && !no_fence {
            within(kind, from, to);
        }
    }
    if is_warp_barrier(instruction) {
        for full in ["0xffffffff", "-1"] {
            within(Kind::Mask, full, "0x0000ffff");
        }
    }
    all
}

/// A text with some mutations made, of which no two change the same bytes.
pub(super) fn apply(text: &str, mutations: &[&Mutation]) -> String {
    let mut ordered = mutations.to_vec();
    ordered.sort_by_key(|of| std::cmp::Reverse(of.range.start));
    let mut text = text.to_owned();
    for of in ordered {
        text.replace_range(of.range.clone(), &of.new);
    }
    text
}

impl Mutation {
    /// Whether both are the same change.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.range == other.range && self.new == other.new
    }

    /// Whether both change the same bytes.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.range.start < other.range.end && other.range.start < self.range.end
    }

    /// A trap in place of the instruction, whatever guards it.
    pub(super) fn stopping(&self, text: &str) -> Self {
        let range = self.instruction.clone();
        let guard = text[range.clone()].trim_start();
        let guard = match guard.starts_with('@') {
            true => guard.split_whitespace().next().unwrap_or_default(),
            false => "",
        };
        let lines = "\n".repeat(text[range.clone()].matches('\n').count());
        Self {
            new: format!("{guard} trap;{lines}"),
            range,
            ..self.clone()
        }
    }
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// The opcode and its first suffixes.
fn name(instruction: &Instruction) -> String {
    let first = instruction.suffixes.iter().take(2);
    first.fold(instruction.opcode.to_string(), |name, suffix| {
        name + "." + suffix
    })
}

/// The name of an instruction that does nothing but order others, and can be taken away.
fn removable(instruction: &Instruction) -> Option<(Kind, String)> {
    let kind = match instruction.opcode.as_str() {
        "bar" | "barrier" if !instruction.has("red") => Kind::Barrier,
        "membar" | "fence" => Kind::Fence,
        "cp" if instruction.has("wait_all") || instruction.has("wait_group") => Kind::CopyWait,
        _ => return None,
    };
    Some((kind, name(instruction)))
}

/// What sets the result of a wait or of a compare-and-swap as if it had succeeded, without having waited.
fn succeeds(module: &Module, instruction: &Instruction) -> Option<(Kind, String, String)> {
    let result = match instruction.operands.first()? {
        Operand::Name { name, .. } => name,
        _ => return None,
    };
    let guard = instruction.guard.as_ref().map(|guard| {
        let not = if guard.negated { "!" } else { "" };
        format!("@{not}{} ", guard.predicate)
    });
    let guard = guard.unwrap_or_default();
    let what = format!("`{}` succeeds at once", name(instruction));
    match instruction.opcode.as_str() {
        "mbarrier" if instruction.has("test_wait") || instruction.has("try_wait") => {
            let new = format!("{guard}setp.eq.u32 {result}, 0, 0;");
            Some((Kind::PhaseWait, new, what))
        }
        "atom" if instruction.has("cas") => {
            let ty = instruction.suffixes.last()?;
            let text = module.slice(instruction.span);
            let compared = text.rsplit_once(']')?.1.split(',').nth(1)?.trim();
            let new = format!("{guard}mov.{ty} {result}, {compared};");
            let known = matches!(ty.as_str(), "b16" | "b32" | "b64");
            known.then_some((Kind::Lock, new, what))
        }
        _ => None,
    }
}

fn is_warp_barrier(instruction: &Instruction) -> bool {
    instruction.opcode == "bar" && instruction.has("warp")
}

/// Whether a suffix of an instruction says how it orders others.
fn orders(instruction: &Instruction) -> bool {
    matches!(
        instruction.opcode.as_str(),
        "ld" | "st" | "atom" | "red" | "fence" | "membar" | "mbarrier"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<3>;
    .reg .b64 %a;
    .reg .pred %q;
    ld.param.u64 %a, [p];
    bar.sync 0;
    bar.warp.sync 0xffffffff;
    @%q atom.acquire.gpu.global.cas.b32 %r0, [%a], 0, 1;
    mbarrier.try_wait.parity.shared.b64 %q, [0], 0;
    fence.sc.gpu;
    st.global.u32 [%a], 1;
    ret;
}
.visible .entry other() {
    bar.sync 0;
    ret;
}
";

    fn made(kernels: &[&str]) -> Vec<(u32, String, String)> {
        let module = ptx::parse(TEXT).0;
        let kernels: Vec<String> = kernels.iter().map(|&name| name.to_owned()).collect();
        let all = mutations(&module, &kernels);
        let of = |mutation: &Mutation| {
            let text = apply(TEXT, &[mutation]);
            let line = text.lines().nth(mutation.line as usize - 1);
            let line = line.unwrap_or_default().trim().to_owned();
            (mutation.line, mutation.what.clone(), line)
        };
        all.iter().map(of).collect()
    }

    #[test]
    fn each_instruction_that_orders_is_weakened_by_itself() {
        let lines: Vec<_> = made(&["k"]).into_iter().map(|of| of.2).collect();
        assert_eq!(
            lines,
            [
                "",
                "",
                "bar.warp.sync 0x0000ffff;",
                "@%q mov.b32 %r0, 0;",
                "@%q atom.relaxed.gpu.global.cas.b32 %r0, [%a], 0, 1;",
                "@%q atom.acquire.cta.global.cas.b32 %r0, [%a], 0, 1;",
                "setp.eq.u32 %q, 0, 0;",
                "",
                "fence.acq_rel.gpu;",
                "fence.sc.cta;",
            ]
        );
        assert_eq!(made(&["k", "other"]).len(), lines.len() + 1);
    }

    #[test]
    fn several_at_once() {
        let module = ptx::parse(TEXT).0;
        let all = mutations(&module, &["k".to_owned()]);
        let [.., removed, weaker, narrower] = &all[..] else {
            panic!("{all:?}");
        };
        assert!(removed.overlaps(weaker) && !weaker.overlaps(narrower));
        let text = apply(TEXT, &[weaker, narrower]);
        assert!(text.contains("fence.acq_rel.cta;"), "{text}");
        assert_eq!(text.lines().count(), TEXT.lines().count());
    }
}
