//! Conversions.

use super::super::Form;
use super::{ROUNDINGS, opcode};
use crate::reference::width;

const INTEGERS: [&str; 8] = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];
const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];
/// Rounding to integers.
const INTEGRAL: [&str; 4] = ["rni", "rzi", "rmi", "rpi"];

pub(super) fn forms() -> Vec<Form> {
    [
        integers(),
        from_integers(),
        to_integers(),
        floats(),
        pairs(),
        narrow(),
        packed_integers(),
    ]
    .concat()
}

fn bits(ty: &str) -> u32 {
    width(ty).unwrap_or(64)
}

/// Whether every value of one integer type is one of the other.
fn holds(to: &str, from: &str) -> bool {
    let signed = |ty: &str| ty.starts_with('s');
    match (signed(to), signed(from)) {
        (false, true) => false,
        (true, false) => bits(to) > bits(from),
        _ => bits(to) >= bits(from),
    }
}

/// Between integers, in registers that are wider than the types too.
fn integers() -> Vec<Form> {
    let mut forms = Vec::new();
    let fits = |ty: &str| {
        let bits = bits(ty);
        [16, 32, 64].into_iter().filter(move |&wide| wide >= bits)
    };
    for to in INTEGERS {
        for from in INTEGERS {
            let sat = if holds(to, from) {
                &[""][..]
            } else {
                &["", "sat"]
            };
            for sat in sat {
                let form = Form::new(opcode("cvt", &[sat, to, from]), to, &[from]);
                for a in fits(from) {
                    for d in fits(to) {
                        forms.push(form.clone().in_registers(a, d));
                    }
                }
            }
        }
    }
    forms
}

fn from_integers() -> Vec<Form> {
    let mut forms = Vec::new();
    for to in FLOATS {
        for from in INTEGERS {
            for round in ROUNDINGS {
                let form = Form::new(opcode("cvt", &[round, to, from]), to, &[from]);
                // Beside bfloat16 no register may be wider than its type.
                forms.push(match to {
                    "bf16" => form.in_registers(bits(from), bits(to)),
                    _ => form,
                });
            }
            if to != "bf16" {
                forms.push(Form::new(
                    opcode("cvt", &["rn", "sat", to, from]),
                    to,
                    &[from],
                ));
            }
        }
    }
    forms
}

fn to_integers() -> Vec<Form> {
    let mut forms = Vec::new();
    for to in INTEGERS {
        for from in FLOATS {
            let ftz = if from == "f32" {
                &["", "ftz"][..]
            } else {
                &[""]
            };
            for round in INTEGRAL {
                for ftz in ftz {
                    let form = Form::new(opcode("cvt", &[round, ftz, to, from]), to, &[from]);
                    if from == "bf16" {
                        forms.push(form.in_registers(bits(from), bits(to)));
                        continue;
                    }
                    if bits(to) < 32 {
                        forms.push(form.clone().in_registers(bits(from), 32));
                    }
                    forms.push(form);
                }
            }
            if from != "bf16" {
                forms.push(Form::new(
                    opcode("cvt", &["rzi", "sat", to, from]),
                    to,
                    &[from],
                ));
            }
        }
    }
    forms
}

/// Between floats: to fewer bits with a rounding, to more without, and to integral values.
fn floats() -> Vec<Form> {
    let mut forms = Vec::new();
    let mut add = |round: &str, ftz: &str, sat: &str, to: &'static str, from: &'static str| {
        forms.push(Form::new(
            opcode("cvt", &[round, ftz, sat, to, from]),
            to,
            &[from],
        ));
    };
    for to in FLOATS {
        for from in FLOATS {
            let ftz = if [to, from].contains(&"f32") {
                &["", "ftz"][..]
            } else {
                &[""]
            };
            let sat = if [to, from].contains(&"bf16") {
                &[""][..]
            } else {
                &["", "sat"]
            };
            let rounds = match bits(to) {
                _ if to == from => [&[""][..], &INTEGRAL].concat(),
                wide if wide > bits(from) => vec![""],
                _ => ROUNDINGS.to_vec(),
            };
            for round in rounds {
                for ftz in ftz {
                    for sat in sat {
                        add(round, ftz, sat, to, from);
                    }
                }
            }
        }
    }
    forms
}

/// From single precision to halves and `tf32`, with the limits that these have.
fn pairs() -> Vec<Form> {
    let mut forms = Vec::new();
    for to in ["f16", "bf16", "f16x2", "bf16x2"] {
        let count = if to.ends_with("x2") { 2 } else { 1 };
        for round in ["rn", "rz"] {
            for relu in ["", "relu"] {
                for satfinite in ["", "satfinite"] {
                    // A single value without a limit is in `floats`.
                    if count == 1 && relu.is_empty() && satfinite.is_empty() {
                        continue;
                    }
                    forms.push(Form::new(
                        opcode("cvt", &[round, relu, satfinite, to, "f32"]),
                        to,
                        &["f32"; 2][..count],
                    ));
                }
            }
        }
    }
    for text in [
        "cvt.rna.tf32.f32",
        "cvt.rna.satfinite.tf32.f32",
        "cvt.rn.tf32.f32",
        "cvt.rz.tf32.f32",
        "cvt.rn.relu.tf32.f32",
        "cvt.rz.relu.tf32.f32",
    ] {
        forms.push(Form::new(text, "tf32", &["f32"]));
    }
    forms
}

/// Pairs of 8-bit floats.
fn narrow() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in ["e4m3x2", "e5m2x2"] {
        for relu in ["", "relu"] {
            let to = ["rn", "satfinite", relu, ty];
            forms.push(Form::new(
                opcode("cvt", &[&to[..], &["f32"]].concat()),
                ty,
                &["f32"; 2],
            ));
            forms.push(Form::new(
                opcode("cvt", &[&to[..], &["f16x2"]].concat()),
                ty,
                &["f16x2"],
            ));
            forms.push(Form::new(
                opcode("cvt", &["rn", relu, "f16x2", ty]),
                "f16x2",
                &[ty],
            ));
        }
    }
    forms
}

fn packed_integers() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in ["u16", "s16"] {
        let text = opcode("cvt", &["pack", "sat", ty, "s32"]);
        forms.push(Form::new(text, "b32", &["s32"; 2]));
    }
    for ty in ["u8", "s8", "u4", "s4", "u2", "s2"] {
        let text = opcode("cvt", &["pack", "sat", ty, "s32", "b32"]);
        forms.push(Form::new(text, "b32", &["s32", "s32", "b32"]));
    }
    forms
}
