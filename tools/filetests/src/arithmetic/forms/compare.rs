//! Comparisons and selections.

use super::super::{Form, Output, Want};
use super::{INTEGERS, opcode};

const EQUAL: [&str; 2] = ["eq", "ne"];
const ORDER: [&str; 4] = ["lt", "le", "gt", "ge"];
const UNSIGNED: [&str; 4] = ["lo", "ls", "hi", "hs"];
const FLOAT: [&str; 8] = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];
const COMBINED: [&str; 4] = ["", "and", "or", "xor"];

/// The types that are compared, with `.ftz` or without.
fn compared() -> Vec<(&'static str, &'static str)> {
    let integers = INTEGERS
        .iter()
        .chain(&["b16", "b32", "b64", "f64", "bf16", "bf16x2"]);
    let mut types: Vec<_> = integers.map(|&ty| (ty, "")).collect();
    for ty in ["f32", "f16", "f16x2"] {
        types.extend([(ty, ""), (ty, "ftz")]);
    }
    types
}

/// The comparisons of a type.
fn comparisons(ty: &str) -> Vec<&'static str> {
    let further = match ty {
        "b16" | "b32" | "b64" => return EQUAL.to_vec(),
        ty if ty.starts_with('u') => &UNSIGNED[..],
        ty if ty.starts_with('s') => &[],
        _ => &FLOAT,
    };
    [&EQUAL[..], &ORDER, further].concat()
}

pub(super) fn forms() -> Vec<Form> {
    [setp(), set(), select()].concat()
}

fn setp() -> Vec<Form> {
    let mut forms = Vec::new();
    for (ty, ftz) in compared() {
        for comparison in comparisons(ty) {
            for combined in COMBINED {
                let opcode = opcode("setp", &[comparison, combined, ftz, ty]);
                let sources = [ty, ty, "pred"];
                let count = if combined.is_empty() { 2 } else { 3 };
                let mut form = Form::new(opcode.clone(), "pred", &sources[..count]);
                // Halves alone have one predicate only.
                if !matches!(ty, "f16" | "bf16") {
                    form.text = form.text.replacen("%d0", "%d0|%d1", 1);
                    form.outputs.push(Output::new("pred", Want::Second(opcode)));
                }
                forms.push(form);
            }
        }
    }
    // One predicate alone.
    forms.push(Form::new("setp.lt.s32", "pred", &["s32"; 2]));
    forms.push(Form::new(
        "setp.eq.and.f32",
        "pred",
        &["f32", "f32", "pred"],
    ));
    forms
}

fn set() -> Vec<Form> {
    let mut forms = Vec::new();
    for (ty, ftz) in compared() {
        let results = match ty {
            "f16x2" => &["f16x2", "u32", "s32"][..],
            "bf16x2" => &["bf16x2", "u32", "s32"],
            "f16" => &["f16", "bf16", "u16", "s16", "u32", "s32"],
            "bf16" => &["bf16", "u16", "s16", "u32", "s32"],
            _ => &["u32", "s32", "f32", "f16"],
        };
        for comparison in comparisons(ty) {
            let flushed = |to: &&&str| !(ftz == "ftz" && **to == "bf16");
            for &to in results.iter().filter(|to| flushed(to)) {
                forms.push(Form::new(
                    opcode("set", &[comparison, ftz, to, ty]),
                    to,
                    &[ty; 2],
                ));
            }
            for combined in &COMBINED[1..] {
                let to = results[0];
                forms.push(Form::new(
                    opcode("set", &[comparison, combined, ftz, to, ty]),
                    to,
                    &[ty, ty, "pred"],
                ));
            }
        }
    }
    forms
}

fn select() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in INTEGERS
        .into_iter()
        .chain(["b16", "b32", "b64", "f32", "f64"])
    {
        forms.push(Form::new(opcode("selp", &[ty]), ty, &[ty, ty, "pred"]));
        for (ftz, by) in [("", "s32"), ("", "f32"), ("ftz", "f32")] {
            forms.push(Form::new(opcode("slct", &[ftz, ty, by]), ty, &[ty, ty, by]));
        }
    }
    forms
}
