//! Atomics and reductions, each lane on a location of its own.

use super::super::{Form, Output, Source, Want};
use super::opcode;
use crate::reference::width;

/// Operations with their types.
const OPERATIONS: [(&str, &[&str]); 9] = [
    ("and", &["b32", "b64"]),
    ("or", &["b32", "b64"]),
    ("xor", &["b32", "b64"]),
    ("exch", &["b32", "b64"]),
    ("cas", &["b16", "b32", "b64"]),
    ("add", &["u32", "s32", "u64", "f32", "f64"]),
    ("min", &["u32", "s32", "u64", "s64"]),
    ("max", &["u32", "s32", "u64", "s64"]),
    ("inc", &["u32"]),
];

const HALVES: [&str; 4] = ["f16", "f16x2", "bf16", "bf16x2"];

pub(super) fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for space in ["global", "shared"] {
        for name in ["atom", "red"] {
            let dec = ("dec", &["u32"][..]);
            for (operation, types) in OPERATIONS.into_iter().chain([dec]) {
                if name == "red" && matches!(operation, "exch" | "cas") {
                    continue;
                }
                for ty in types {
                    forms.push(form(&opcode(name, &[space, operation, ty]), ty, 1));
                }
            }
            for ty in HALVES {
                forms.push(form(&opcode(name, &[space, "add", "noftz", ty]), ty, 1));
            }
        }
    }
    // Generic addresses, which are global here, and strong ones.
    for (opcode, ty) in [
        ("atom.add.f32", "f32"),
        ("atom.add.f64", "f64"),
        ("atom.add.noftz.f16", "f16"),
        ("atom.inc.u32", "u32"),
        ("red.max.s64", "s64"),
        ("red.add.noftz.bf16x2", "bf16x2"),
        ("atom.acq_rel.cta.shared.add.u32", "u32"),
        ("atom.acquire.sys.global.or.b32", "b32"),
        ("atom.shared::cluster.add.u32", "u32"),
        ("red.release.gpu.global.min.s32", "s32"),
    ] {
        forms.push(form(opcode, ty, 1));
    }
    for name in ["atom", "red"] {
        for (vector, count) in [("v2", 2), ("v4", 4), ("v8", 8)] {
            for ty in HALVES {
                if count * width(ty).unwrap_or(64) as usize > 128 {
                    continue;
                }
                for operation in ["add", "min", "max"] {
                    let opcode = opcode(name, &["global", vector, ty, operation, "noftz"]);
                    forms.push(form(&opcode, ty, count));
                }
            }
            if count < 8 {
                let opcode = opcode(name, &["global", vector, "f32", "add"]);
                forms.push(form(&opcode, "f32", count));
            }
        }
    }
    forms
}

/// Registers of this name from a number on, in braces if there are several.
fn registers(name: &str, first: usize, count: usize) -> String {
    let names: Vec<_> = (first..first + count)
        .map(|n| format!("%{name}{n}"))
        .collect();
    match &names[..] {
        [one] => one.clone(),
        several => format!("{{{}}}", several.join(", ")),
    }
}

/// An atomic on `count` elements: what stood there goes into the first results, and what stands there
/// afterwards into the last ones.
fn form(opcode: &str, ty: &'static str, count: usize) -> Form {
    let returns = opcode.starts_with("atom");
    let shared = opcode.contains(".shared");
    let cas = opcode.contains(".cas.");
    let bits = width(ty).unwrap_or(64);
    let (space, place, mut text) = match shared {
        // A location per lane of the CTA.
        true => (
            "shared",
            "%c",
            ".shared .align 8 .b64 cell[32];
mov.u32 %one, %tid.x;
mov.u32 %c, cell;
mad.lo.u32 %c, %one, 8, %c;
"
            .to_owned(),
        ),
        // The row of the results, before they are stored.
        false => ("global", "%out", String::new()),
    };
    let at = |n: usize| format!("[{place}+{}]", n * bits as usize / 8);
    for n in 0..count {
        text += &format!("st.{space}.b{bits} {}, %a{n};\n", at(n));
    }
    let given = registers("a", count, count);
    let given = if cas { given + ", %a2" } else { given };
    let old = match returns {
        true => registers("d", 0, count) + ", ",
        false => String::new(),
    };
    text += &format!("{opcode} {old}[{place}], {given};\n");
    let first = if returns { count } else { 0 };
    for n in 0..count {
        text += &format!("ld.{space}.b{bits} %d{}, {};\n", first + n, at(n));
    }
    let sources = if cas { 3 } else { 2 * count };
    let old = (0..first).map(|n| Output::new(ty, Want::Operand(n)));
    let new = (0..count).map(|n| {
        let operands = if cas {
            vec![0, 1, 2]
        } else {
            vec![n, count + n]
        };
        let opcode = opcode.to_owned();
        Output::new(ty, Want::Of { opcode, operands })
    });
    Form {
        outputs: old.chain(new).collect(),
        text,
        opcodes: vec![opcode.to_owned()],
        sources: vec![Source::new(ty); sources],
        constants: Vec::new(),
    }
}
