//! Whatever the text: no panic, and the tree gives the text back.
//!
//! `FUZZ_ROUNDS` says how many texts of each kind to try, 1500 without it.

use proptest::prelude::*;
use proptest::sample::Index;

const SAMPLES: [&str; 3] = [
    include_str!("samples/module.ptx"),
    include_str!("samples/control.ptx"),
    include_str!("samples/instructions.ptx"),
];

/// Reads `text` and asks everything of the result that works on any module.
fn check(text: &str) {
    let (module, diagnostics) = ptx::parse(text);
    assert_eq!(ptx::print::module(&module), text);
    for diagnostic in &diagnostics {
        let span = diagnostic.span;
        assert!(span.start <= span.end && span.end as usize <= text.len());
        assert!(text.is_char_boundary(span.start as usize), "{diagnostic:?}");
        assert!(module.line_column(span.start).0 >= 1);
    }
    let graph = ptx::callgraph::CallGraph::new(&module);
    for function in module.functions() {
        graph.reachable(&function.name);
        ptx::param_layout(&function.params);
        let Some(body) = &function.body else { continue };
        let mut end = body.span.start;
        for statement in &body.statements {
            assert!(statement.span().start >= end, "statements overlap");
            end = statement.span().end;
        }
        assert!(end <= body.span.end && body.span.end <= function.span.end);
        let cfg = ptx::cfg::Cfg::of(&module, function).unwrap();
        let flow = ptx::dataflow::Dataflow::new(body);
        for (at, instruction) in body.instructions() {
            let _ = (ptx::isa::memory(instruction), ptx::isa::sync(instruction));
            let _ = ptx::isa::sync::release_capable(instruction);
            if let Some(loc) = instruction.loc {
                let frames = module.inline_frames(body, loc);
                assert!(frames.iter().all(|frame| frame.line > 0));
            }
            ptx::isa::register_reads(instruction, |name| {
                if let Some(register) = flow.register(at, name) {
                    flow.reaching(&cfg, register, at);
                }
            });
        }
    }
}

/// Pieces to put into a text: words of the language, unbalanced brackets, and rubbish.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    ":",
    "|",
    "!",
    "@",
    "-",
    "+",
    "~",
    "=",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    "\\",
    "\u{e9}",
    "\0",
    "%",
    "%r1",
    "_",
    "0",
    "0x",
    "0f3F80",
    "1.",
    "1e",
    "99999999999999999999",
    ".",
    ".entry k",
    ".func",
    ".visible",
    ".loc 1 2 3",
    ".loc 1 2 3, ",
    ".section .debug_str {",
    ".reg .b32 %r<4294967295>;",
    ".global .b8 a<9>,",
    ".align",
    ".b32",
    "call",
    "ret;",
    "bra $L;",
    "$L:",
    "x: .branchtargets",
    "x: .callprototype",
    "= {{",
    "generic(",
    "inlined_at 1 2 3",
    "WARP_SZ",
    ".v4",
    "1 << 99",
    "(1/0)",
    ".file 1",
    ".pragma",
    "@@DWARF",
    "#",
];

#[derive(Clone, Debug)]
enum Edit {
    DeleteTokens(Index, u8),
    DuplicateTokens(Index, u8, Index),
    DeleteBytes(Index, u8),
    Insert(Index, &'static str),
    Truncate(Index),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        4 => (any::<Index>(), 1..6u8).prop_map(|(at, count)| Edit::DeleteTokens(at, count)),
        3 => (any::<Index>(), 1..40u8, any::<Index>())
            .prop_map(|(at, count, to)| Edit::DuplicateTokens(at, count, to)),
        2 => (any::<Index>(), 1..9u8).prop_map(|(at, count)| Edit::DeleteBytes(at, count)),
        4 => (any::<Index>(), prop::sample::select(PIECES))
            .prop_map(|(at, piece)| Edit::Insert(at, piece)),
        1 => any::<Index>().prop_map(Edit::Truncate),
    ];
    prop::collection::vec(edit, 1..8)
}

fn apply(text: &mut String, edit: &Edit) {
    let tokens: Vec<_> = ptx::lexer::tokens(text).collect();
    if tokens.is_empty() {
        return;
    }
    let range = |at: &Index, count: u8| {
        let first = at.index(tokens.len());
        let last = (first + usize::from(count) - 1).min(tokens.len() - 1);
        tokens[first].start as usize..tokens[last].end as usize
    };
    let place = |text: &str, at: &Index| {
        let place = at.index(text.len() + 1);
        (place..=text.len())
            .find(|&place| text.is_char_boundary(place))
            .unwrap()
    };
    match edit {
        Edit::DeleteTokens(at, count) => text.replace_range(range(at, *count), ""),
        Edit::DuplicateTokens(at, count, to) => {
            let copy = text[range(at, *count)].to_owned();
            text.insert_str(tokens[to.index(tokens.len())].start as usize, &copy);
        }
        Edit::DeleteBytes(at, count) => {
            let start = place(text, at);
            let end = text[start..].char_indices().nth(usize::from(*count));
            let end = end.map_or(text.len(), |(offset, _)| start + offset);
            text.replace_range(start..end, "");
        }
        Edit::Insert(at, piece) => text.insert_str(place(text, at), piece),
        Edit::Truncate(at) => text.truncate(place(text, at)),
    }
}

fn rounds() -> u32 {
    let rounds = std::env::var("FUZZ_ROUNDS").ok();
    rounds
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(1500)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(rounds()) })]

    #[test]
    fn damaged_samples(sample in prop::sample::select(&SAMPLES[..]), edits in edits()) {
        let mut text = sample.to_owned();
        for edit in &edits {
            apply(&mut text, edit);
        }
        check(&text);
    }

    #[test]
    fn pieces_in_any_order(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        check(&pieces.concat());
        check(&pieces.join(" "));
        check(&format!(".func f () {{ {} }}", pieces.join(" ")));
    }

    #[test]
    fn any_characters(text in any::<String>()) {
        check(&text);
        check(&format!(".func f () {{ {text} }}"));
    }
}

#[test]
fn every_prefix_of_a_sample() {
    for sample in SAMPLES {
        for end in (0..sample.len()).filter(|&end| sample.is_char_boundary(end)) {
            let (module, _) = ptx::parse(&sample[..end]);
            assert_eq!(ptx::print::module(&module), sample[..end]);
        }
    }
}

/// Texts that would exhaust the stack, the memory or the patience of a careless reader. A
/// quadratic reader would need minutes for them.
#[test]
fn hostile_texts() {
    let many = |piece: &str| piece.repeat(50_000);
    let body = |inside: &str| format!(".func f () {{ {inside} }}");
    for text in [
        many("{"),
        many("}"),
        many("("),
        many("/*"),
        many("\"\\"),
        many("\\\""),
        many(".global .b32 a = {"),
        format!(".global .b32 a = {}", many("{")),
        format!(".global .b32 a[9][99999999] = {{ {} }};", many("{1},")),
        format!(".global .b32 {};", many("a<4000000000>,")),
        many(".entry a ("),
        many(".entry a {"),
        body(&many("{")),
        body(&many("}")),
        body(&many("{ .reg .b32 %r<4>;")),
        body(&format!("mov.u32 a, {}1;", many("("))),
        body(&format!("mov.u32 a, {}1;", many("-"))),
        body(&format!("mov.u32 a, {};", many("{"))),
        body(&format!("mov.u32 a, {};", many("["))),
        body(&format!("mov.u32 a, 1{};", many("+1"))),
        body(&format!("mov.u32 a, 1{};", many("?1:1"))),
        body(&many("@p ")),
        body(&many("x: ")),
        body(&many("bra x; ")),
        body(&many("@p bra x; x: ")),
        body(&many(".loc 1 2 3, function_name f, inlined_at 1 2 3 ")),
        body(&many("mov.u32 %r1")),
    ] {
        let (module, _) = ptx::parse(&text);
        assert_eq!(ptx::print::module(&module), text);
        for function in module
            .functions()
            .filter(|function| !function.is_declaration())
        {
            let _ = ptx::cfg::Cfg::of(&module, function);
            let _ = ptx::dataflow::Dataflow::new(function.body.as_ref().unwrap());
        }
    }
}
