//! What is found out about a kernel before its launches.

use ptx::ast::{Function, Instruction, Module, Operand, Space, Statement};
use ptx::callgraph::CallGraph;
use ptx::cfg::Cfg;
use ptx::isa::sync::{is_full_cta_barrier, is_full_warp_barrier};
use ptx::isa::{self, Effect as Does, MemoryKind, Scope, SyncOp};

use crate::assume::Names;
use crate::classify;
use crate::graph::{Condition, Graph, NodeId};
use crate::loops::Loops;
use crate::phases::Phases;
use crate::problem::{Effect, LoopId};
use crate::ssa::{Builder, SharedVariable};
use crate::{Access, Summary};

/// Where an access goes, before its address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressSpace {
    Global,
    Shared,
    /// Its address says.
    Generic,
}

/// An access as a launch needs it.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) address_space: AddressSpace,
    pub(crate) kind: MemoryKind,
    /// The threads that its atomicity includes.
    pub(crate) scope: Scope,
    pub(crate) bytes: u32,
    /// Bytes of the elements that an atomic is atomic for.
    pub(crate) element: u32,
    /// It loads through the read-only path (`ld.global.nc`, `ldu`).
    pub(crate) read_only_path: bool,
    pub(crate) address: Option<NodeId>,
    pub(crate) guard: Option<Condition>,
    pub(crate) block: usize,
    pub(crate) home: Option<LoopId>,
    /// Its segment of [`Phases`].
    pub(crate) segment: usize,
}

impl Site {
    /// What it does in global or in shared memory.
    pub(crate) fn effect(&self, shared: bool) -> Effect {
        let wide = shared || self.scope >= Scope::Gpu;
        match self.kind {
            MemoryKind::Load => Effect::Load,
            MemoryKind::Rmw | MemoryKind::Reduction if wide => Effect::Atomic {
                class: self.element,
            },
            _ => Effect::Store,
        }
    }
}

/// The part of a summary that a launch evaluates.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) graph: Graph,
    pub(crate) globals: Vec<String>,
    pub(crate) shared: Vec<SharedVariable>,
    pub(crate) sites: Vec<Site>,
    pub(crate) phases: Phases,
    /// The conditions that decide which barriers are executed, and when.
    pub(crate) control: Vec<NodeId>,
    /// Why barriers cannot be relied on, if so.
    pub(crate) barriers: Option<String>,
    /// Why a launch can never do without checks, even if all accesses are proved.
    pub(crate) watched: Option<String>,
    /// The conditions that decide which operations of a warp are executed.
    pub(crate) warp_control: Vec<NodeId>,
    /// By statement of a node: the line in the PTX and in the source.
    pub(crate) lines: Vec<(u32, Option<(String, u32)>)>,
}

/// Functions of the CUDA runtime that touch no memory that other threads see.
const HARMLESS: [&str; 2] = ["vprintf", "__assertfail"];

/// Most statements of a kernel that is analysed.
const STATEMENTS: usize = 60_000;

pub(crate) fn summarise(module: &Module, kernel: &Function) -> Summary {
    let refused = |text: String| Summary {
        accesses: accesses(module, kernel),
        refused: Some(text),
        names: Names::of(kernel),
        plan: None,
    };
    match plan(module, kernel) {
        Ok(plan) => Summary {
            accesses: accesses(module, kernel),
            refused: None,
            names: Names::of(kernel),
            plan: Some(plan),
        },
        Err(reason) => refused(reason),
    }
}

/// The statements that access memory which other threads may access.
fn accesses(module: &Module, kernel: &Function) -> Vec<Access> {
    let Some(body) = &kernel.body else {
        return Vec::new();
    };
    let scopes = ptx::scope::Scopes::new(body);
    let mut all = Vec::new();
    for (at, instruction) in body.instructions() {
        if address_space(module, kernel, &scopes, at, instruction)
            .is_some_and(|address_space| address_space.is_ok())
        {
            all.push(Access {
                statement: at,
                ptx_line: module.line_column(instruction.span.start).0,
            });
        }
    }
    all
}

/// Where an instruction accesses memory, if it does; an error if in a way that is not followed.
fn address_space(
    module: &Module,
    kernel: &Function,
    scopes: &ptx::scope::Scopes<'_>,
    at: usize,
    instruction: &Instruction,
) -> Option<Result<AddressSpace, String>> {
    let op = isa::memory(instruction)?;
    let space = match (op.space, instruction.operands.get(op.address)) {
        (
            Space::Generic,
            Some(Operand::Address {
                base: ptx::ast::AddressBase::Name(name),
                ..
            }),
        ) if scopes.register(at, name).is_none() => {
            let body = kernel.body.as_ref()?;
            let local = scopes.variable(at, name).map(|of| &body.statements[of]);
            match local {
                Some(Statement::Variable(variable)) => variable.space,
                _ if kernel.params.iter().any(|param| param.name == *name) => Space::Param,
                _ => match module.variables().find(|variable| variable.name == *name) {
                    Some(variable) => variable.space,
                    None => return Some(Err("accesses a name that is not declared".into())),
                },
            }
        }
        (space, _) => space,
    };
    let address_space = match space {
        Space::Global => AddressSpace::Global,
        Space::Shared => AddressSpace::Shared,
        Space::Generic => AddressSpace::Generic,
        Space::Local | Space::Param | Space::Const if op.is_plain() => return None,
        Space::SharedCluster => {
            return Some(Err("accesses shared memory of other blocks".into()));
        }
        _ => return Some(Err("accesses memory in a way that is not followed".into())),
    };
    if !op.is_plain() || op.bytes() == 0 {
        let text = match op.kind {
            MemoryKind::AsyncCopy | MemoryKind::BulkCopy | MemoryKind::AsyncStore => {
                "copies asynchronously"
            }
            MemoryKind::MatrixLoad | MemoryKind::MatrixStore => {
                "loads or stores a matrix by a warp together"
            }
            MemoryKind::Texture
            | MemoryKind::SurfaceLoad
            | MemoryKind::SurfaceStore
            | MemoryKind::SurfaceReduction => "accesses a texture or a surface",
            _ => "accesses memory in a way that is not followed",
        };
        return Some(Err(text.into()));
    }
    Some(Ok(address_space))
}

fn plan(module: &Module, kernel: &Function) -> Result<Plan, String> {
    let body = kernel
        .body
        .as_ref()
        .ok_or_else(|| format!("{} has no code in this module", kernel.name))?;
    if body.statements.len() > STATEMENTS {
        return Err(format!("more than {STATEMENTS} statements"));
    }
    let line = |at: usize| module.line_column(body.statements[at].span().start).0;
    let with_line = |at: usize, text: &str| format!("line {}: {text}", line(at));
    let mut graph_of_calls = None;
    let mut plan = Plan::default();
    let (mut barriers, mut warps) = (Vec::new(), Vec::new());
    let watch = |plan: &mut Plan, at: usize, text: &str| {
        plan.watched.get_or_insert_with(|| with_line(at, text));
    };
    for (at, statement) in body.statements.iter().enumerate() {
        let instruction = match statement {
            Statement::Instruction(instruction) => instruction,
            Statement::Unknown(_) => return Err(with_line(at, "a statement that is not known")),
            _ => continue,
        };
        let Some(row) = isa::lookup(&instruction.opcode) else {
            return Err(with_line(at, "an instruction that is not known"));
        };
        match instruction.opcode.as_str() {
            "brx" => return Err(with_line(at, "an indirect branch")),
            "mapa" | "getctarank" => {
                return Err(with_line(at, "addresses of shared memory of other blocks"));
            }
            "call" => {
                let calls = graph_of_calls.get_or_insert_with(|| CallGraph::new(module));
                if !is_harmless(module, calls, instruction) {
                    return Err(with_line(at, "a call of a function that may access memory"));
                }
            }
            _ => {}
        }
        match isa::sync(instruction) {
            Some(SyncOp::CtaBarrier { id, .. }) => {
                let constant = matches!(instruction.operands.get(id), Some(Operand::Int(_)));
                let full = is_full_cta_barrier(instruction) && constant;
                if !full || instruction.guard.is_some() {
                    let text = with_line(at, "a barrier of a part of the block");
                    plan.barriers.get_or_insert(text);
                }
                barriers.push(at);
            }
            Some(SyncOp::WarpBarrier { .. }) => {
                if !is_full_warp_barrier(instruction) || instruction.guard.is_some() {
                    watch(&mut plan, at, "a barrier of a part of a warp");
                }
                warps.push(at);
            }
            Some(SyncOp::Fence { .. } | SyncOp::Other) | None => {}
            Some(SyncOp::Mbarrier { .. }) => return Err(with_line(at, "an mbarrier")),
            Some(SyncOp::ClusterBarrier { .. }) => watch(&mut plan, at, "a barrier of a cluster"),
            Some(SyncOp::GridDependency { .. }) => {
                watch(&mut plan, at, "a dependency between launches");
            }
            Some(SyncOp::CommitGroup | SyncOp::WaitGroup) => {
                return Err(with_line(at, "copies asynchronously"));
            }
        }
        if row.effect == Does::Warp && instruction.has("sync") {
            let members = instruction.operands.last();
            let full = matches!(members, Some(Operand::Int(-1 | 0xffff_ffff)));
            if !full || instruction.guard.is_some() {
                watch(&mut plan, at, "an operation of a part of a warp");
            }
            warps.push(at);
        }
    }
    let cfg = Cfg::of(module, kernel).ok_or("no code")?;
    let loops = Loops::new(&cfg).ok_or("a loop with several entries")?;
    let mut builder = Builder::new(module, kernel, body, &cfg, &loops);
    builder.conditions();
    builder.finish_headers();
    let scopes = ptx::scope::Scopes::new(body);
    let mut sites = Vec::new();
    for (at, instruction) in body.instructions() {
        let address_space = match address_space(module, kernel, &scopes, at, instruction) {
            None => continue,
            Some(Err(text)) => return Err(with_line(at, &text)),
            Some(Ok(address_space)) => address_space,
        };
        let Some(op) = isa::memory(instruction) else {
            continue;
        };
        let operand = instruction.operands.get(op.address);
        let address = operand.and_then(|operand| builder.address(at, operand));
        let guard = instruction.guard.as_ref();
        let guard = guard.map(|guard| (builder.predicate(at, &guard.predicate), !guard.negated));
        let block = cfg.block_of(at);
        sites.push(Site {
            address_space,
            kind: op.kind,
            scope: op.scope,
            bytes: op.bytes(),
            element: op.atomic_bytes(),
            read_only_path: op.nc,
            address,
            guard,
            block,
            home: loops.of[block],
            segment: 0,
        });
    }
    classify::loops(&mut builder);
    let everywhere: Vec<usize> = cfg.reverse_post_order();
    let mut decisions = Vec::new();
    for &block in &everywhere {
        decisions.extend(builder.decisions(&[block]));
    }
    plan.control = control(&mut builder, &cfg, barriers.iter().copied())?;
    plan.warp_control = control(&mut builder, &cfg, warps.iter().copied())?;
    builder.finish_headers();
    classify::simplify(&mut builder.graph);
    classify::headers(&mut builder.graph);
    classify::tests(&mut builder);
    builder.finish_headers();
    let whole = cfg.blocks.len() * (barriers.len() + 1) <= 200_000;
    if !whole {
        plan.barriers
            .get_or_insert_with(|| "too many barriers".into());
    }
    let counted = if plan.barriers.is_none() {
        &barriers[..]
    } else {
        &[]
    };
    plan.phases = Phases::new(&cfg, &loops, counted);
    let mut statements = body.instructions();
    for site in &mut sites {
        let at = statements.find(|(at, instruction)| {
            let address_space = address_space(module, kernel, &scopes, *at, instruction);
            address_space.is_some_and(|address_space| address_space.is_ok())
        });
        if let Some((at, _)) = at {
            site.segment = plan.phases.segment(&cfg, at);
        }
    }
    let mut roots = decisions;
    roots.extend(
        sites
            .iter()
            .filter_map(|site| site.guard)
            .map(|(guard, _)| guard),
    );
    roots.extend(sites.iter().filter_map(|site| site.address));
    roots.extend(builder.graph.loops.iter().map(|of| of.counter));
    let mut graph = builder.graph;
    graph.order = classify::order(&graph, &roots);
    plan.lines = body
        .statements
        .iter()
        .map(|statement| {
            let line = module.line_column(statement.span().start).0;
            let source = match statement {
                Statement::Instruction(instruction) => instruction
                    .loc
                    .and_then(|loc| body.loc(loc))
                    .map(|loc| (module.file(loc.file).unwrap_or("").to_string(), loc.line)),
                _ => None,
            };
            (line, source)
        })
        .collect();
    plan.graph = graph;
    plan.globals = builder.globals;
    plan.shared = builder.shared;
    plan.sites = sites;
    Ok(plan)
}

/// The conditions that decide whether some statements are executed, and how often.
fn control(
    builder: &mut Builder<'_>,
    cfg: &Cfg,
    statements: impl Iterator<Item = usize>,
) -> Result<Vec<NodeId>, String> {
    let mut wanted: Vec<usize> = statements.map(|at| cfg.block_of(at)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    // From everywhere the end must be in reach, or the tree of post-dominators says nothing.
    let mut ends = vec![false; cfg.blocks.len()];
    let mut work: Vec<usize> = (0..cfg.blocks.len())
        .filter(|&block| cfg.blocks[block].exits)
        .collect();
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut ends[block], true) {
            work.extend(&cfg.blocks[block].predecessors);
        }
    }
    let reachable = |block: usize| cfg.is_reachable(block);
    if (0..cfg.blocks.len()).any(|block| reachable(block) && !ends[block]) {
        return Err("a loop without an end".into());
    }
    // By block: the branches that decide whether it is executed.
    let mut deciding = vec![Vec::new(); cfg.blocks.len()];
    for from in (0..cfg.blocks.len()).filter(|&from| reachable(from)) {
        let ways = cfg.blocks[from].successors.len() + usize::from(cfg.blocks[from].exits);
        if ways < 2 {
            continue;
        }
        let meet = cfg.immediate_post_dominator(from);
        for &to in &cfg.blocks[from].successors {
            let mut at = Some(to);
            while let Some(block) = at.filter(|_| at != meet) {
                deciding[block].push(from);
                at = cfg.immediate_post_dominator(block);
            }
        }
    }
    let mut seen = vec![false; cfg.blocks.len()];
    let mut blocks = Vec::new();
    while let Some(block) = wanted.pop() {
        for &from in &deciding[block] {
            if !std::mem::replace(&mut seen[from], true) {
                blocks.push(from);
                wanted.push(from);
            }
        }
    }
    Ok(builder.decisions(&blocks))
}

/// Whether a call neither touches memory that other threads see nor waits for them.
fn is_harmless(module: &Module, calls: &CallGraph<'_>, instruction: &Instruction) -> bool {
    let Some(name) = isa::callee(instruction) else {
        return false;
    };
    if HARMLESS.contains(&name) {
        return true;
    }
    if module.function(name).is_none() {
        return false;
    }
    calls.reachable(name).into_iter().all(|name| {
        if HARMLESS.contains(&name) {
            return true;
        }
        let body = module
            .function(name)
            .and_then(|function| function.body.as_ref());
        let open = calls
            .calls(name)
            .is_none_or(|calls| calls.open || !calls.indirect.is_empty());
        let Some(body) = body.filter(|_| !open) else {
            return false;
        };
        body.statements.iter().all(|statement| match statement {
            Statement::Unknown(_) => false,
            Statement::Instruction(instruction) => {
                let row = isa::lookup(&instruction.opcode);
                let private = isa::memory(instruction).is_none_or(|op| {
                    op.is_plain() && matches!(op.space, Space::Local | Space::Param | Space::Const)
                });
                let plain = row.is_some_and(|row| {
                    let ends = matches!(
                        row.control,
                        isa::Control::Exit | isa::Control::BranchIndexed
                    );
                    let warp = row.effect == Does::Warp && instruction.has("sync");
                    !ends && !warp
                });
                private && plain && isa::sync(instruction).is_none() && instruction.opcode != "mapa"
            }
            _ => true,
        })
    })
}
