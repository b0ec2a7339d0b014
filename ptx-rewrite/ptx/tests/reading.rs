//! What the tree says about the samples, which ptxas 13.0 assembles.

use ptx::ast::{AddressBase, Init, Linkage, Module, Operand, Space, Statement, Type};

fn read(text: &str) -> Module {
    let (module, diagnostics) = ptx::parse(text);
    assert_eq!(diagnostics, [], "in:\n{text}");
    assert_eq!(ptx::print::module(&module), text);
    module
}

fn sample() -> Module {
    read(include_str!("samples/module.ptx"))
}

/// The one instruction of `text`.
fn instruction(text: &str) -> ptx::ast::Instruction {
    let module = read(&format!(".func f () {{ {text} }}"));
    let body = module.function("f").unwrap().body.as_ref().unwrap();
    let mut all = body.instructions();
    let first = all.next().unwrap().1.clone();
    assert!(all.next().is_none(), "{text}");
    first
}

fn name(name: &str) -> Operand {
    Operand::Name {
        name: name.into(),
        component: None,
        offset: 0,
    }
}

#[test]
fn the_head_of_a_module() {
    let module = sample();
    assert_eq!(module.version, Some((8, 0)));
    assert_eq!(module.target, ["sm_90", "debug"]);
    assert_eq!(module.address_size, Some(64));
    assert_eq!(module.file(1), Some("one.cu"));
    assert_eq!(module.file(2), Some("two.cu"));
    assert_eq!(module.file(3), None);
}

#[test]
fn variables_and_their_initialisers() {
    let module = sample();
    let find = |name: &str| {
        module
            .variables()
            .find(|variable| variable.name == name)
            .unwrap()
    };
    let counter = find("counter");
    assert_eq!(
        (counter.space, counter.ty, counter.align),
        (Space::Global, Type::U32, Some(4))
    );
    assert_eq!(counter.init, Some(vec![Init::Int(5)]));
    assert!(find("shared_with_host").managed);
    let bytes = find("bytes");
    assert_eq!(bytes.linkage, Linkage::Visible);
    assert_eq!((bytes.bytes(), bytes.alignment()), (5, 16));
    let values = [1, 2, 3, 4, u64::MAX].map(Init::Int);
    assert_eq!(bytes.init.as_deref(), Some(&values[..]));
    let symbol = |name: &str, offset, generic| Init::Symbol {
        name: name.into(),
        offset,
        generic,
        mask: None,
    };
    let pointers = [
        symbol("counter", 0, true),
        symbol("bytes", 2, false),
        symbol("twice", 0, false),
        symbol("bytes", 8, true),
    ];
    assert_eq!(find("pointers").init.as_deref(), Some(&pointers[..]));
    let floats = [1.0f32, 2.5, -1.0].map(|value| Init::F32(value.to_bits()));
    assert_eq!(find("floats").init.as_deref(), Some(&floats[..]));
    let doubles = [1.0f64, 1e3].map(|value| Init::F64(value.to_bits()));
    assert_eq!(find("doubles").init.as_deref(), Some(&doubles[..]));
    assert_eq!(
        find("doubles").bytes(),
        16,
        "the open dimension comes from the initialiser"
    );
    let nested = [1, 2, 0, 3, 0, 0].map(Init::Int);
    let given = find("nested").init.clone().unwrap();
    assert_eq!(given, nested, "inner lists are padded to their dimension");
    assert_eq!(find("sum").init, Some(vec![Init::Int(21)]));
    assert_eq!((find("vector").vector, find("vector").bytes()), (4, 16));
    assert_eq!(find("dynamic").linkage, Linkage::Extern);
    assert_eq!(
        (find("dynamic").dims.as_deref(), find("dynamic").bytes()),
        (Some(&[0][..]), 0)
    );
    assert_eq!(find("two").dims.as_deref(), Some(&[4][..]));
    let text = module.slice(find("two").span);
    assert_eq!(
        text, "two[4];",
        "the directives belong to the first of a list"
    );
}

#[test]
fn functions_and_their_parameters() {
    let module = sample();
    let kernel = module.function("kernel").unwrap();
    assert!(kernel.entry);
    assert_eq!(module.slice(kernel.name_span), "kernel");
    assert_eq!(kernel.params[0].ptr, Some(Some(Space::Global)));
    assert_eq!(
        kernel.params[0].alignment(),
        8,
        "not that of what it points to"
    );
    let (layout, bytes) = ptx::param_layout(&kernel.params);
    let offsets: Vec<u32> = layout.iter().map(|param| param.offset).collect();
    assert_eq!((offsets.as_slice(), bytes), (&[0, 8, 32][..], 36));
    assert_eq!(kernel.directive("maxntid"), Some(&[128, 2][..]));
    assert_eq!(kernel.directive("minnctapersm"), Some(&[2][..]));
    let params = module.slice(kernel.params_span.unwrap());
    assert!(
        params.starts_with('(') && params.ends_with("factor\n)"),
        "{params}"
    );
    assert!(module.slice(kernel.span).starts_with(".visible .entry"));

    let bare = module.function("bare").unwrap();
    assert_eq!((bare.params.len(), bare.params_span), (0, None));
    let twice = module.function("twice").unwrap();
    assert!(
        twice.body.is_some(),
        "the definition wins over the declaration"
    );
    assert!(module.function("vprintf").unwrap().is_declaration());
    assert!(
        module
            .function("stop")
            .unwrap()
            .directive("noreturn")
            .is_some()
    );
    assert_eq!(
        module.functions().filter(|function| function.entry).count(),
        2
    );
}

#[test]
fn source_positions_and_inlining() {
    let module = sample();
    let body = module.function("kernel").unwrap().body.as_ref().unwrap();
    let frames_of = |index: usize| {
        let (_, instruction) = body.instructions().nth(index).unwrap();
        let frames = module.inline_frames(body, instruction.loc.unwrap());
        let frames = frames.into_iter();
        frames
            .map(|frame| {
                let function = frame
                    .function
                    .map_or(String::new(), |name| name.to_string());
                format!("{}:{}:{} {function}", frame.file, frame.line, frame.column)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(frames_of(0), ["one.cu:10:3 "]);
    assert_eq!(frames_of(2), ["two.cu:5:7 _Z3fooi", "one.cu:12:5 "]);
    assert_eq!(
        frames_of(3),
        ["two.cu:8:9 bar", "two.cu:5:7 _Z3fooi", "one.cu:12:5 "]
    );
    // For line 0 the frames are those of the nearest earlier line.
    assert_eq!(frames_of(4), frames_of(3));

    let at = |needle: &str| module.line_column(module.text.find(needle).unwrap() as u32);
    assert_eq!(at("// What"), (1, 1));
    assert_eq!(at(".version"), (2, 1));
    assert_eq!(at("st.global.u32 [%rd1+8]"), (47, 5));
    assert_eq!(
        module.line_column(module.text.len() as u32).1,
        1,
        "behind the last line end"
    );
}

#[test]
fn line_0_is_no_line() {
    let module = read(
        ".file 1 \"a.cu\" .func f () { .loc 1 0 0 add.s32 %r, %r, 1; .loc 1 7 3 add.s32 %r, %r, 2; \
         .loc 1 0 0 add.s32 %r, %r, 3; .loc 1 4 1, function_name $f, inlined_at 1 0 0 add.s32 %r, %r, 4; } \
         .section .debug_str { $f: .b8 102, 0 }",
    );
    let body = module.function("f").unwrap().body.as_ref().unwrap();
    let lines = body.instructions().map(|(_, instruction)| {
        let frames = module.inline_frames(body, instruction.loc.unwrap());
        frames.iter().map(|frame| frame.line).collect()
    });
    let lines: Vec<Vec<u32>> = lines.collect();
    assert_eq!(lines, [vec![], vec![7], vec![7], vec![4]]);
}

#[test]
fn a_function_inlined_into_itself_does_not_nest_without_end() {
    let twice = ".loc 1 5 3, function_name $f, inlined_at 1 5 3 add.s32 %r, %r, 1;";
    let module = read(&format!(
        ".file 1 \"a.cu\" .func f () {{ .loc 1 9 1 .loc 1 5 3, function_name $f, inlined_at 1 9 1 \
         {twice} .loc 1 6 3 {twice} {twice} }} .section .debug_str {{ $f: .b8 102, 0 }}"
    ));
    let body = module.function("f").unwrap().body.as_ref().unwrap();
    for (_, instruction) in body.instructions() {
        let frames = module.inline_frames(body, instruction.loc.unwrap());
        let lines: Vec<u32> = frames.iter().map(|frame| frame.line).collect();
        assert_eq!(lines, [5, 5, 9]);
    }
}

#[test]
fn operands() {
    let read = |text: &str| instruction(text).operands;
    assert_eq!(
        read("ld.global.v2.u32 {%r1, _}, [%rd1+-8];"),
        [
            Operand::Vector(vec![name("%r1"), Operand::Sink]),
            Operand::Address {
                base: AddressBase::Name("%rd1".into()),
                offset: -8
            },
        ]
    );
    assert_eq!(
        read("ld.shared.u32 %r1, [tile+4*2-1];")[1],
        Operand::Address {
            base: AddressBase::Name("tile".into()),
            offset: 7
        }
    );
    assert_eq!(
        read("st.u8 [16], 1;")[0],
        Operand::Address {
            base: AddressBase::Absolute(16),
            offset: 0
        }
    );
    assert_eq!(
        read("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;"),
        [
            Operand::Pair(Box::new(name("%r1")), Box::new(name("%p1"))),
            name("%r2"),
            Operand::Int(1),
            Operand::Int(31),
            Operand::Int(-1),
        ]
    );
    assert_eq!(
        read("mov.u32 %r1, %tid.x;")[1],
        Operand::Name {
            name: "%tid".into(),
            component: Some(0),
            offset: 0
        }
    );
    assert_eq!(
        read("call (ret), %rd1, (a, 4), proto;"),
        [
            Operand::Paren(vec![name("ret")]),
            name("%rd1"),
            Operand::Paren(vec![name("a"), Operand::Int(4)]),
            name("proto"),
        ]
    );
    assert_eq!(
        read("tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [t, {%f4, %f5}];")[1],
        Operand::Bracket(vec![
            name("t"),
            Operand::Vector(vec![name("%f4"), name("%f5")])
        ])
    );
    assert_eq!(
        read("selp.b32 %r1, (1 << 4) | 3, ~0, !%p1;")[1..],
        [
            Operand::Int(19),
            Operand::Int(-1),
            Operand::Not(Box::new(name("%p1")))
        ]
    );
    assert_eq!(
        read("mov.f32 %f1, -1.5;")[1],
        Operand::F64((-1.5f64).to_bits())
    );
    assert_eq!(
        read("mov.f32 %f1, 0f3F800000;")[1],
        Operand::F32(0x3F80_0000)
    );
    let simd = read("vsub4.s32.s32.s32 %r1.b20, %r2.b0123, %r3.h32, %r4;");
    let printed: Vec<_> = simd.iter().map(ToString::to_string).collect();
    assert_eq!(printed, ["%r1.b20", "%r2.b0123", "%r3.h32", "%r4"]);
    assert_eq!(
        read("vadd.u32.u32.u32 %r1, %r2.b3, %r3.h1;")[1..],
        [
            Operand::Name {
                name: "%r2".into(),
                component: Some(7),
                offset: 0
            },
            Operand::Name {
                name: "%r3".into(),
                component: Some(9),
                offset: 0
            },
        ]
    );
}

#[test]
fn guards_suffixes_and_types() {
    let setp = instruction("@!%p1 setp.lt.and.s32 %p0, %r1, %r2, %p2;");
    let guard = setp.guard.clone().unwrap();
    assert!(guard.negated);
    assert_eq!(guard.predicate, "%p1");
    assert_eq!(
        (setp.opcode.as_str(), setp.types()),
        ("setp", vec![Type::S32])
    );
    let cvt = instruction("cvt.rn.f32.s8 %f1, %r1;");
    assert_eq!(cvt.types(), [Type::F32, Type::S8]);
    assert!(cvt.has("rn") && !cvt.has("sat"));
    assert_eq!(instruction("ld.u32 %r1, [%rd1];").space(), Space::Generic);
    assert_eq!(
        instruction("ld.shared::cta.u32 %r1, [%r2];").space(),
        Space::Shared
    );
}

#[test]
fn the_normal_form_reads_back_the_same() {
    for text in [
        include_str!("samples/module.ptx"),
        include_str!("samples/control.ptx"),
        include_str!("samples/instructions.ptx"),
    ] {
        let module = read(text);
        for body in module
            .functions()
            .filter_map(|function| function.body.as_ref())
        {
            for (_, one) in body.instructions() {
                let back = instruction(&one.to_string());
                assert_eq!(one.to_string(), back.to_string());
                assert_eq!(one.operands, back.operands);
                assert_eq!((&one.opcode, &one.suffixes), (&back.opcode, &back.suffixes));
                assert_eq!(one.guard, back.guard);
            }
        }
    }
}

/// What is said of a body, with its lines.
fn said_of(body: &str) -> Vec<String> {
    let text = format!(".version 8.0\n.entry k() {{\n{body}\n}}\n");
    let (module, diagnostics) = ptx::parse(&text);
    assert!(diagnostics.iter().all(|one| !one.unknown));
    let line = |offset| module.line_column(offset).0 - 2;
    let said = diagnostics.iter();
    said.map(|one| format!("{}: {}", line(one.span.start), one.message))
        .collect()
}

#[test]
fn a_label_has_a_name_of_its_own_in_its_block() {
    assert_eq!(
        said_of("again:\nret;\nagain:\nret;"),
        ["3: `again` is defined twice in a block"]
    );
    assert_eq!(
        said_of(".shared .b32 flag;\nflag:\nret;"),
        ["2: `flag` is defined twice in a block"]
    );
    assert_eq!(
        said_of("flag:\nret;\n.shared .b32 flag;"),
        ["3: `flag` is defined twice in a block"]
    );
    // Inner blocks hide the names of outer ones.
    let hidden = "{\nagain:\n}\n{\n.shared .b32 again;\n}\nagain:\nret;";
    assert_eq!(said_of(hidden), Vec::<String>::new());
}

#[test]
fn a_negative_offset_is_added() {
    let said = ["1: an offset is added, also a negative one: expected `+` before `-`"];
    assert_eq!(said_of("ld.u32 %r1, [%rd1-4];"), said);
    assert_eq!(said_of("ld.u32 %r1, [buf-4];"), said);
    assert_eq!(said_of("ld.u32 %r1, [%rd1+-4];"), Vec::<String>::new());
}

#[test]
fn what_is_not_understood_survives_with_a_diagnostic() {
    let text = ".version 7.0\n.frobnicate 3;\n.visible .entry k () {\n  frob.b32 %r1, 2;\n  \
                ld.u32 %r1 [%rd1];\n  .strange thing;\n  ret;\n}\n.entry last { ret; }\n";
    let (module, diagnostics) = ptx::parse(text);
    assert_eq!(ptx::print::module(&module), text);
    let said: Vec<_> = diagnostics
        .iter()
        .map(|one| format!("{}: {}", module.line_column(one.span.start).0, one.message))
        .collect();
    assert_eq!(
        said,
        [
            "2: unknown directive .frobnicate",
            "4: unknown instruction frob",
            "5: expected `,` or `;` after an operand, found `[`",
            "6: unknown directive: expected a statement, found `.strange`",
        ]
    );
    assert!(diagnostics.iter().all(|one| one.unknown));
    let body = module.function("k").unwrap().body.as_ref().unwrap();
    let opcodes: Vec<_> = body
        .instructions()
        .map(|(_, one)| one.opcode.as_str())
        .collect();
    assert_eq!(opcodes, ["frob", "ret"]);
    let unknown: Vec<_> = body
        .statements
        .iter()
        .filter(|statement| matches!(statement, Statement::Unknown(_)))
        .map(|statement| module.slice(statement.span()))
        .collect();
    assert_eq!(unknown, ["ld.u32 %r1 [%rd1];", ".strange thing;"]);
    assert!(module.function("last").is_some());
}
