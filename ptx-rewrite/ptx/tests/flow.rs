//! Blocks, dominators, definitions and calls of `samples/control.ptx`, and of small bodies.

use std::collections::BTreeSet;

use ptx::ast::{Body, Module, Statement};
use ptx::callgraph::CallGraph;
use ptx::cfg::{BlockId, Cfg};
use ptx::dataflow::Dataflow;
use ptx::scope::Scopes;
use random::Random;

fn read(text: &str) -> Module {
    let (module, diagnostics) = ptx::parse(text);
    assert_eq!(diagnostics, [], "in:\n{text}");
    module
}

fn body<'a>(module: &'a Module, name: &str) -> &'a Body {
    module.function(name).unwrap().body.as_ref().unwrap()
}

fn function(statements: &str) -> Module {
    read(&format!(
        ".func f () {{ .reg .pred %p<4>; .reg .b32 %r<9>; {statements} }}"
    ))
}

/// Block of the label; of the first one of that name.
fn at(cfg: &Cfg, body: &Body, label: &str) -> BlockId {
    let is_it = |s: &Statement| matches!(s, Statement::Label { name, .. } if name == label);
    cfg.block_of(body.statements.iter().position(is_it).unwrap())
}

fn control() -> Module {
    read(include_str!("samples/control.ptx"))
}

#[test]
fn every_statement_lies_in_one_block() {
    let module = control();
    let body = body(&module, "kernel");
    let cfg = Cfg::new(body);
    let mut next = 0;
    for (id, block) in cfg.blocks.iter().enumerate() {
        assert_eq!(block.start, next);
        assert!((block.start..block.end).all(|statement| cfg.block_of(statement) == id));
        next = block.end;
        for &to in &block.successors {
            assert!(cfg.blocks[to].predecessors.contains(&id));
        }
    }
    assert_eq!(next, body.statements.len());
}

#[test]
fn edges_of_the_sample() {
    let module = control();
    let body = body(&module, "kernel");
    let cfg = Cfg::new(body);
    let [choose, zero, one, two, join] =
        ["choose", "zero", "one", "two", "join"].map(|label| at(&cfg, body, label));
    assert_eq!(cfg.blocks[0].successors, [choose]);
    assert!(cfg.blocks[0].exits, "a guarded exit leaves or goes on");
    assert_eq!(cfg.blocks[choose].successors, [zero, one, two]);
    assert!(!cfg.blocks[choose].exits);
    assert_eq!(cfg.blocks[zero].successors, [join]);
    assert_eq!(cfg.blocks[one].successors, [two, join]);
    assert_eq!(cfg.blocks[two].successors, [join]);
    assert_eq!(cfg.immediate_dominator(join), Some(choose));
    assert_eq!(cfg.immediate_post_dominator(choose), Some(join));
    assert_eq!(
        cfg.immediate_post_dominator(0),
        None,
        "some lanes leave at once"
    );
    assert!(cfg.dominates(0, join) && cfg.dominates(join, join));
    assert!(!cfg.dominates(two, join));
    assert!(cfg.post_dominates(join, zero) && !cfg.post_dominates(two, one));
    assert_eq!(cfg.reverse_post_order()[0], 0);
}

#[test]
fn labels_of_different_blocks_are_different() {
    let module = control();
    let body = body(&module, "kernel");
    let cfg = Cfg::new(body);
    let is_it = |s: &&Statement| matches!(s, Statement::Label { name, .. } if name == "WAIT");
    assert_eq!(body.statements.iter().filter(is_it).count(), 2);
    // Each spins on itself, not on the other.
    let spinning = (0..cfg.blocks.len()).filter(|id| cfg.blocks[*id].successors.contains(id));
    assert_eq!(spinning.count(), 2);
}

#[test]
fn names_mean_the_innermost_declaration() {
    let module = control();
    let body = body(&module, "kernel");
    let scopes = Scopes::new(body);
    let find = |text: &str| {
        let mut all = body.instructions();
        all.find(|(_, one)| one.to_string() == text).unwrap().0
    };
    let inner = find("mov.u32 %r2, 7;");
    let outer = find("mov.u32 %r2, 2;");
    assert_ne!(scopes.register(inner, "%r2"), scopes.register(outer, "%r2"));
    assert_eq!(scopes.register(inner, "%r5"), scopes.register(outer, "%r5"));
    assert_eq!(scopes.register(outer, "%r6"), None, "only six are declared");
    assert_eq!(
        scopes.register(outer, "%r05"),
        None,
        "not a way to write %r5"
    );
    assert_eq!(scopes.register(outer, "%tid"), None);
    assert_eq!((scopes.depth(inner), scopes.depth(outer)), (1, 0));
    assert!(scopes.variable(inner, "param0").is_some());
    assert!(scopes.variable(outer, "param0").is_none());
}

#[test]
fn a_name_is_not_the_range_of_that_name() {
    let module = read(".func f () { .reg .b32 %a<2>; .reg .b64 %a; mov.u64 %a, 0; }");
    let body = body(&module, "f");
    let scopes = Scopes::new(body);
    let at = body.instructions().next().unwrap().0;
    let bytes = |name| {
        let register = scopes.register(at, name).unwrap();
        scopes.register_type(register).unwrap().0.bytes()
    };
    assert_eq!((bytes("%a1"), bytes("%a")), (4, 8));
}

#[test]
fn a_number_belongs_to_the_range_that_declares_it() {
    let module = read(
        ".func f () { .reg .b32 %r<5>, %r1<30>, %r7; mov.u32 %r12, 0; mov.u32 %r4, 0; \
         mov.u32 %r7, 0; mov.u32 %r131, 0; }",
    );
    let body = body(&module, "f");
    let scopes = Scopes::new(body);
    let meant: Vec<_> = body
        .instructions()
        .map(|(at, one)| {
            let name = one.to_string()[8..].split(',').next().unwrap().to_owned();
            scopes
                .register(at, &name)
                .map(|register| (register.name, register.index))
        })
        .collect();
    assert_eq!(meant, [Some((1, 2)), Some((0, 4)), Some((2, 0)), None]);
}

#[test]
fn a_call_that_does_not_return_ends_its_block() {
    let text = ".extern .func stop () .noreturn; .func f () { .reg .pred %p; .reg .b64 %rd; \
                proto: .callprototype _ () .noreturn; @%p call stop; call %rd, proto; ret; }";
    let module = read(text);
    let function = module.function("f").unwrap();
    let cfg = Cfg::of(&module, function).unwrap();
    assert_eq!(cfg.blocks.len(), 3);
    assert_eq!(cfg.blocks[0].successors, [1]);
    assert!(cfg.blocks[0].exits && cfg.blocks[1].exits);
    assert_eq!(
        cfg.blocks[1].successors,
        [],
        "no guard: control never comes back"
    );
    assert!(!cfg.is_reachable(2));
    let all_return = Cfg::new(function.body.as_ref().unwrap());
    assert_eq!(all_return.blocks.len(), 1);
}

#[test]
fn loops_without_end_have_no_post_dominator() {
    let module = function("@%p0 bra out; again: bra again; out: ret;");
    let body = body(&module, "f");
    let cfg = Cfg::new(body);
    let (again, out) = (at(&cfg, body, "again"), at(&cfg, body, "out"));
    assert_eq!(cfg.immediate_post_dominator(again), None);
    assert_eq!(cfg.immediate_post_dominator(0), Some(out), "the way out");
    assert_eq!(cfg.immediate_dominator(again), Some(0));
}

#[test]
fn a_jump_to_nowhere_leaves() {
    let module = function("bra nowhere; brx.idx %r0, nothing; ret;");
    let cfg = Cfg::new(body(&module, "f"));
    assert!(
        cfg.blocks
            .iter()
            .all(|block| block.exits && block.successors.is_empty())
    );
}

#[test]
fn an_empty_body_is_one_block() {
    let module = read(".func f () { }");
    let cfg = Cfg::new(body(&module, "f"));
    assert_eq!(cfg.blocks.len(), 1);
    assert!(cfg.blocks[0].exits && cfg.is_reachable(0));
}

/// Dominators by their definition: `by` dominates `block` if `block` cannot be reached around it.
#[test]
fn dominators_agree_with_their_definition() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        let mut text = String::new();
        let count = 2 + random.below(7);
        for label in 0..count {
            text += &format!("L{label}: ");
            text += &match random.below(5) {
                0 => format!("bra L{};", random.below(count)),
                1 | 2 => format!("@%p0 bra L{};", random.below(count)),
                3 => "@%p1 ret;".to_owned(),
                _ => "add.s32 %r0, %r0, 1;".to_owned(),
            };
        }
        let module = function(&text);
        let cfg = Cfg::new(body(&module, "f"));
        let blocks = cfg.blocks.len();
        let reached = |from: usize, without: usize, backward: bool| {
            let mut seen = BTreeSet::new();
            let mut work = vec![from];
            while let Some(block) = work.pop() {
                if block == without || !seen.insert(block) {
                    continue;
                }
                let block = &cfg.blocks[block];
                work.extend(if backward {
                    &block.predecessors
                } else {
                    &block.successors
                });
            }
            seen
        };
        let live = reached(0, usize::MAX, false);
        for block in 0..blocks {
            assert_eq!(cfg.is_reachable(block), live.contains(&block), "{text}");
            for by in 0..blocks {
                let expected = live.contains(&block)
                    && (by == block || !reached(0, by, false).contains(&block));
                assert_eq!(cfg.dominates(by, block), expected, "{by} {block} {text}");
                let leaves = |without| {
                    let from = reached(block, without, false);
                    from.iter().any(|&id| cfg.blocks[id].exits)
                };
                let expected = by == block || leaves(usize::MAX) && !leaves(by);
                assert_eq!(
                    cfg.post_dominates(by, block),
                    expected,
                    "{by} {block} {text}"
                );
            }
        }
    }
}

#[test]
fn definitions_that_reach_a_read() {
    let module = function(
        "mov.u32 %r0, 1; @%p0 mov.u32 %r0, 2; @%p1 bra skip; mov.u32 %r0, 3; \
         skip: add.u32 %r1, %r0, %r2; add.u32 %r0, %r0, 1; @%p2 bra skip; mov.u32 %r3, %r0; ret;",
    );
    let body = body(&module, "f");
    let flow = Dataflow::new(body);
    let cfg = Cfg::new(body);
    let text = |at: usize| module.slice(body.statements[at].span()).to_owned();
    let find = |wanted: &str| {
        (0..body.statements.len())
            .find(|&at| text(at) == wanted)
            .unwrap()
    };
    let seen = |at: usize, name: &str| {
        let register = flow.register(at, name).unwrap();
        let (writes, undefined) = flow.reaching(&cfg, register, at);
        (writes.into_iter().map(text).collect::<Vec<_>>(), undefined)
    };
    let read = find("add.u32 %r1, %r0, %r2;");
    let (writes, undefined) = seen(read, "%r0");
    assert_eq!(
        writes,
        [
            "mov.u32 %r0, 1;",
            "@%p0 mov.u32 %r0, 2;",
            "mov.u32 %r0, 3;",
            "add.u32 %r0, %r0, 1;"
        ]
    );
    assert!(!undefined);
    assert_eq!(seen(read, "%r2"), (vec![], true));
    let last = find("mov.u32 %r3, %r0;");
    assert_eq!(seen(last, "%r0").0, ["add.u32 %r0, %r0, 1;"]);

    let register = flow.register(last, "%r0").unwrap();
    let write = find("mov.u32 %r0, 3;");
    let reads: Vec<_> = flow
        .reached(&cfg, register, write)
        .into_iter()
        .map(text)
        .collect();
    assert_eq!(reads, ["add.u32 %r1, %r0, %r2;", "add.u32 %r0, %r0, 1;"]);
    assert_eq!(flow.writes(register).len(), 4);
    let (at, only) = flow.only_write(last, "%r1").unwrap();
    assert_eq!((at, only.opcode.as_str()), (read, "add"));
    assert!(flow.only_write(last, "%r0").is_none());
}

#[test]
fn calls_of_the_sample() {
    let module = control();
    let graph = CallGraph::new(&module);
    let kernel = graph.calls("kernel").unwrap();
    assert_eq!(kernel.direct, BTreeSet::from(["leaf"]));
    assert_eq!(
        (kernel.sites.len(), kernel.indirect.len(), kernel.open),
        (1, 1, true)
    );
    // One by the table, one by a mov.
    assert_eq!(
        *graph.address_taken(),
        BTreeSet::from(["leaf", "loop_back"])
    );
    assert_eq!(
        graph.reachable("kernel"),
        BTreeSet::from(["kernel", "leaf", "loop_back"])
    );
    assert_eq!(
        graph.directly_reachable("kernel"),
        BTreeSet::from(["kernel", "leaf"])
    );
    assert_eq!(graph.reachable("leaf"), BTreeSet::from(["leaf"]));
    assert!(graph.is_recursive("loop_back") && !graph.is_recursive("kernel"));
    assert!(graph.reachable("nobody").is_empty());
}

#[test]
fn listed_targets_and_aliases() {
    let module = read(
        ".func a () { ret; } .func b () { ret; } .func c () { ret; } .alias other, b; \
         .func f () { .reg .b64 %rd; mov.u64 %rd, a; mov.u64 %rd, c; \
         list: .calltargets a, other; call %rd, list; call other; ret; }",
    );
    let graph = CallGraph::new(&module);
    let calls = graph.calls("f").unwrap();
    assert!(!calls.open);
    assert_eq!(calls.listed, BTreeSet::from(["a", "b"]));
    assert_eq!(calls.direct, BTreeSet::from(["b"]));
    assert_eq!(
        graph.reachable("f"),
        BTreeSet::from(["a", "b", "f"]),
        "c is not in the list"
    );
    assert!(graph.is_address_taken("c"));
}
