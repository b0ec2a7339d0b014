//! Translation units as one module.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ptx::ast::{AddressBase, Linkage, Operand};
use ptx::link::{LinkError, Unit, link};

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

fn linked(units: &[(&str, &str)]) -> Result<String, Vec<LinkError>> {
    let texts: Vec<String> = units
        .iter()
        .map(|(_, text)| format!("{HEAD}{text}"))
        .collect();
    let units: Vec<Unit<'_>> = units
        .iter()
        .zip(&texts)
        .map(|((name, _), text)| Unit { name, text })
        .collect();
    link(&units, &["vprintf"])
}

/// The linked module, which has to be read without complaints.
fn module(units: &[(&str, &str)]) -> ptx::ast::Module {
    let text = linked(units).unwrap();
    let (module, diagnostics) = ptx::parse(&text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
    module
}

/// What the only load of a function loads from.
fn loaded_from(module: &ptx::ast::Module, function: &str) -> String {
    let body = module.function(function).unwrap().body.as_ref().unwrap();
    let mut loads = body.instructions().filter(|(_, i)| i.opcode == "ld");
    match &loads.next().unwrap().1.operands[1] {
        Operand::Address {
            base: AddressBase::Name(name),
            ..
        } => name.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn declarations_find_their_definitions() {
    let module = module(&[
        (
            "a.cu",
            ".extern .global .u32 v;\n.extern .func f (.param .b32 p);\n.extern .func vprintf ();\n\
             .visible .entry k() { .reg .u32 %r<2>; ld.global.u32 %r1, [v]; call.uni f, (%r1); ret; }",
        ),
        (
            "b.cu",
            ".visible .global .u32 v = 5;\n.visible .func f (.param .b32 p) { ret; }",
        ),
    ]);
    let variables: Vec<Linkage> = module.variables().map(|v| v.linkage).collect();
    assert_eq!(variables, [Linkage::Visible]);
    let functions: Vec<(&str, Linkage, bool)> = module
        .functions()
        .map(|f| (f.name.as_str(), f.linkage, f.body.is_some()))
        .collect();
    assert_eq!(
        functions,
        [
            ("f", Linkage::Visible, false),
            ("vprintf", Linkage::Extern, false),
            ("k", Linkage::Visible, true),
            ("f", Linkage::Visible, true),
        ]
    );
    assert_eq!(module.version, Some((8, 0)));
    assert_eq!(module.target, ["sm_90"]);
}

#[test]
fn local_names_stay_apart_and_their_uses_follow() {
    let unit = ".global .u32 s;\n.func g () { .reg .u32 %r<2>; ld.global.u32 %r1, [s]; ret; }\n";
    let module = module(&[("a.cu", unit), ("b.cu", unit)]);
    let names: BTreeSet<&str> = module.variables().map(|v| v.name.as_str()).collect();
    assert_eq!(names.len(), 2);
    let functions: BTreeSet<&str> = module.functions().map(|f| f.name.as_str()).collect();
    assert_eq!(functions.len(), 2);
    let read: BTreeSet<String> = functions.iter().map(|f| loaded_from(&module, f)).collect();
    assert_eq!(
        read.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        names
    );
}

#[test]
fn a_local_name_hides_no_other_units_visible_one() {
    let module = module(&[
        (
            "a.cu",
            ".global .u32 v = 1;\n.visible .entry k() { .reg .u32 %r<2>; ld.global.u32 %r1, [v]; ret; }",
        ),
        (
            "b.cu",
            ".visible .global .u32 v = 2;\n.visible .entry l() { .reg .u32 %r<2>; ld.global.u32 %r1, [v]; ret; }",
        ),
    ]);
    assert_eq!(loaded_from(&module, "l"), "v");
    assert_ne!(loaded_from(&module, "k"), "v");
}

#[test]
fn of_weak_and_common_ones_one_is_kept() {
    let module = module(&[
        (
            "a.cu",
            ".weak .func f () { ret; }\n.common .global .b8 c[4];\n.weak .global .u32 w = 1;",
        ),
        (
            "b.cu",
            ".weak .func f () { ret; }\n.common .global .b8 c[16];\n.visible .global .u32 w = 2;",
        ),
        (
            "c.cu",
            ".visible .func f () { trap; }\n.common .global .b8 c[8];\n.weak .global .u32 w = 3;",
        ),
    ]);
    let kept: Vec<(&str, Linkage, u64)> = module
        .variables()
        .map(|v| (v.name.as_str(), v.linkage, v.bytes()))
        .collect();
    assert_eq!(
        kept,
        [("c", Linkage::Common, 16), ("w", Linkage::Visible, 4)]
    );
    let functions: Vec<Linkage> = module.functions().map(|f| f.linkage).collect();
    assert_eq!(functions, [Linkage::Visible]);
}

#[test]
fn what_is_missing_twice_or_different_is_named() {
    let errors = linked(&[
        (
            "a.cu",
            ".visible .global .u32 v;\n.extern .func f ();\n.extern .global .u32 g;",
        ),
        (
            "b.cu",
            ".visible .global .u32 v;\n.visible .func g () { ret; }",
        ),
    ])
    .unwrap_err();
    let duplicate = LinkError::Duplicate {
        symbol: "v".into(),
        first: "a.cu".into(),
        second: "b.cu".into(),
    };
    let different = LinkError::Different {
        symbol: "g".into(),
        first: "a.cu".into(),
        second: "b.cu".into(),
    };
    let missing = |symbol: &str| LinkError::Missing {
        symbol: symbol.into(),
        unit: "a.cu".into(),
    };
    assert_eq!(errors, [duplicate, different, missing("f"), missing("g")]);
}

#[test]
fn dynamic_shared_memory_is_one() {
    let unit = |k: &str| {
        format!(
            ".extern .shared .align 16 .b8 s[];\n.visible .entry {k}() {{ .reg .u32 %r<2>; \
             ld.shared.u32 %r1, [s]; ret; }}"
        )
    };
    let (one, two) = (unit("k"), unit("l"));
    let module = module(&[("a.cu", &one), ("b.cu", &two)]);
    assert_eq!(module.variables().count(), 1);
    assert_eq!(loaded_from(&module, "l"), "s");
}

#[test]
fn files_and_inlined_functions_keep_their_units() {
    let unit = |file: &str, name: &str, k: &str| {
        let bytes: Vec<String> = name.bytes().chain([0]).map(|b| b.to_string()).collect();
        format!(
            ".file 1 \"{file}\"\n.visible .entry {k}() {{\n.loc 1 7 3, function_name $L__info_string0, \
             inlined_at 1 9 5\nret;\n}}\n.section .debug_str\n{{\n$L__info_string0:\n.b8 {}\n}}\n",
            bytes.join(",")
        )
    };
    let (one, two) = (unit("a.cu", "inner_a", "k"), unit("b.cu", "inner_b", "l"));
    let module = module(&[("a.cu", &one), ("b.cu", &two)]);
    for (kernel, file, inner) in [("k", "a.cu", "inner_a"), ("l", "b.cu", "inner_b")] {
        let body = module.function(kernel).unwrap().body.as_ref().unwrap();
        let (_, ret) = body.instructions().next().unwrap();
        let frames = module.inline_frames(body, ret.loc.unwrap());
        let places: Vec<(&str, u32)> = frames.iter().map(|f| (f.file.as_str(), f.line)).collect();
        assert_eq!(places, [(file, 7), (file, 9)]);
        assert_eq!(frames[0].function.as_deref(), Some(inner));
    }
}

/// Each unit has some of few names, each as one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Local,
    Extern,
    Visible,
    Weak,
}

fn has() -> impl Strategy<Value = Has> {
    prop_oneof![
        Just(Has::Local),
        Just(Has::Extern),
        Just(Has::Visible),
        Just(Has::Weak)
    ]
}

proptest! {
    /// Names that look like each other, and like those that the linker makes.
    #[test]
    fn every_use_reaches_the_right_definition(
        units in prop::collection::vec(prop::collection::btree_map(0usize..4, has(), 0..4), 1..5)
    ) {
        const NAMES: [&str; 4] = ["v", "v$unit1", "v$unit0", "v$unit1$"];
        let texts: Vec<String> = units.iter().enumerate().map(|(unit, names)| {
            let mut text = String::new();
            for (&name, has) in names {
                let linkage = match has {
                    Has::Local => "",
                    Has::Extern => ".extern ",
                    Has::Visible => ".visible ",
                    Has::Weak => ".weak ",
                };
                // The value says which unit's it is.
                let init = if *has == Has::Extern { String::new() } else { format!(" = {unit}") };
                text += &format!("{linkage}.global .u32 {}{init};\n", NAMES[name]);
                text += &format!(
                    ".visible .func use_{unit}_{name} () {{ .reg .u32 %r<2>; \
                     ld.global.u32 %r1, [{}]; ret; }}\n",
                    NAMES[name]
                );
            }
            text
        }).collect();
        let labels: Vec<String> = (0..units.len()).map(|unit| unit.to_string()).collect();
        let given: Vec<(&str, &str)> =
            labels.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
        // Which unit's definition each shared name means.
        let mut owner: BTreeMap<usize, usize> = BTreeMap::new();
        let mut wrong = false;
        for name in 0..NAMES.len() {
            let of = |has: Has| {
                let all = 0..units.len();
                all.filter(|&unit| units[unit].get(&name) == Some(&has)).collect::<Vec<_>>()
            };
            let (strong, weak, needed) = (of(Has::Visible), of(Has::Weak), of(Has::Extern));
            wrong |= strong.len() > 1;
            match strong.first().or(weak.first()) {
                Some(&unit) => drop(owner.insert(name, unit)),
                None => wrong |= !needed.is_empty(),
            }
        }
        match linked(&given) {
            Err(_) => prop_assert!(wrong),
            Ok(text) => {
                prop_assert!(!wrong, "{text}");
                let (module, diagnostics) = ptx::parse(&text);
                prop_assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
                let defined: Vec<&str> = module.variables().map(|v| v.name.as_str()).collect();
                let once: BTreeSet<&str> = defined.iter().copied().collect();
                prop_assert_eq!(defined.len(), once.len(), "{}", text);
                for (unit, names) in units.iter().enumerate() {
                    for (name, has) in names {
                        let read = loaded_from(&module, &format!("use_{unit}_{name}"));
                        let variable = module.variables().find(|v| v.name == read).unwrap();
                        let value = variable.init.as_ref().unwrap()[0].bits().unwrap() as usize;
                        let right = if *has == Has::Local { unit } else { owner[name] };
                        prop_assert_eq!(value, right, "{}", text);
                    }
                }
            }
        }
    }
}

#[test]
fn the_device_runtime_is_known_by_what_it_defines() {
    let user = ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n\
                .visible .entry k() { ret; }";
    let library =
        ".visible .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b) { ret; }";
    assert!(!ptx::link::defines_device_runtime(user));
    assert!(ptx::link::defines_device_runtime(library));
    for name in ["__cuda_syscall_cnpv2Launch", "cnpEventCreate"] {
        assert!(ptx::link::is_device_runtime(name));
    }
    assert!(!ptx::link::is_device_runtime("cnps"));
}

#[test]
fn many_errors_are_counted() {
    let calls: Vec<String> = (0..9)
        .map(|i| format!(".extern .func f{i} ();\n"))
        .collect();
    let errors = linked(&[("a.cu", &calls.concat())]).unwrap_err();
    let line = ptx::link::in_one_line(&errors);
    assert!(
        line.contains("f2") && !line.contains("f3") && line.ends_with("6 more names"),
        "{line}"
    );
}
