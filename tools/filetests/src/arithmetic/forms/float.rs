//! Floating-point arithmetic in all precisions.

use super::super::Form;
use super::{ROUNDINGS, opcode};

/// The types of half precision and bfloat16, single and in pairs.
const HALVES: [&str; 4] = ["f16", "f16x2", "bf16", "bf16x2"];

pub(super) fn forms() -> Vec<Form> {
    [
        singles(),
        doubles(),
        halves(),
        approximate(),
        extremes(),
        tests(),
        constants(),
    ]
    .concat()
}

fn constants() -> Vec<Form> {
    let (half, tiny) = (0.5_f32.to_bits().into(), 1);
    let tenth = 0.1_f64.to_bits();
    vec![
        Form::new("mul.f32", "f32", &["f32"; 2]).with("0f3F000000", half),
        Form::new("mul.rn.f32", "f32", &["f32"; 2]).with("0.5", half),
        Form::new("fma.rz.ftz.f32", "f32", &["f32"; 3]).with("0f00000001", tiny),
        Form::new("add.f64", "f64", &["f64"; 2]).with("0d3FB999999999999A", tenth),
        Form::new("div.rn.f64", "f64", &["f64"; 2]).with("0.1", tenth),
    ]
}

/// With and without a suffix.
fn maybe(suffix: &str) -> [&str; 2] {
    ["", suffix]
}

fn singles() -> Vec<Form> {
    let ty = "f32";
    let mut forms = Vec::new();
    for ftz in maybe("ftz") {
        for round in ["", "rn", "rz", "rm", "rp"] {
            for sat in maybe("sat") {
                for name in ["add", "sub", "mul"] {
                    forms.push(Form::new(
                        opcode(name, &[round, ftz, sat, ty]),
                        ty,
                        &[ty; 2],
                    ));
                }
            }
        }
        for round in ROUNDINGS {
            for sat in maybe("sat") {
                for name in ["fma", "mad"] {
                    forms.push(Form::new(
                        opcode(name, &[round, ftz, sat, ty]),
                        ty,
                        &[ty; 3],
                    ));
                }
            }
            forms.push(Form::new(opcode("div", &[round, ftz, ty]), ty, &[ty; 2]));
            for name in ["rcp", "sqrt"] {
                forms.push(Form::new(opcode(name, &[round, ftz, ty]), ty, &[ty]));
            }
        }
        for name in ["abs", "neg"] {
            forms.push(Form::new(opcode(name, &[ftz, ty]), ty, &[ty]));
        }
    }
    forms.push(Form::new("copysign.f32", ty, &[ty; 2]));
    forms
}

fn doubles() -> Vec<Form> {
    let ty = "f64";
    let mut forms = Vec::new();
    for name in ["add", "sub", "mul"] {
        forms.push(Form::new(opcode(name, &[ty]), ty, &[ty; 2]));
    }
    for round in ROUNDINGS {
        for name in ["add", "sub", "mul", "div"] {
            forms.push(Form::new(opcode(name, &[round, ty]), ty, &[ty; 2]));
        }
        for name in ["fma", "mad"] {
            forms.push(Form::new(opcode(name, &[round, ty]), ty, &[ty; 3]));
        }
        for name in ["rcp", "sqrt"] {
            forms.push(Form::new(opcode(name, &[round, ty]), ty, &[ty]));
        }
    }
    for name in ["abs", "neg"] {
        forms.push(Form::new(opcode(name, &[ty]), ty, &[ty]));
    }
    forms.push(Form::new("copysign.f64", ty, &[ty; 2]));
    forms
}

fn halves() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in HALVES {
        let brain = ty.starts_with('b');
        let flushes = if brain { &[""][..] } else { &["", "ftz"] };
        let limits = if brain { &[""][..] } else { &["", "sat"] };
        for ftz in flushes {
            for round in maybe("rn") {
                for sat in limits {
                    for name in ["add", "sub", "mul"] {
                        forms.push(Form::new(
                            opcode(name, &[round, ftz, sat, ty]),
                            ty,
                            &[ty; 2],
                        ));
                    }
                }
            }
            for limit in limits.iter().chain(&["relu"]) {
                forms.push(Form::new(
                    opcode("fma", &["rn", ftz, limit, ty]),
                    ty,
                    &[ty; 3],
                ));
            }
            for name in ["abs", "neg"] {
                forms.push(Form::new(opcode(name, &[ftz, ty]), ty, &[ty]));
            }
        }
    }
    forms
}

fn extremes() -> Vec<Form> {
    let mut forms = Vec::new();
    for name in ["min", "max"] {
        forms.push(Form::new(opcode(name, &["f64"]), "f64", &["f64"; 2]));
        for ty in ["f32"].into_iter().chain(HALVES) {
            let flushes = if ty.starts_with('b') {
                &[""][..]
            } else {
                &["", "ftz"]
            };
            for ftz in flushes {
                for nan in maybe("NaN") {
                    for sign in maybe("xorsign.abs") {
                        forms.push(Form::new(opcode(name, &[ftz, nan, sign, ty]), ty, &[ty; 2]));
                    }
                }
            }
        }
    }
    forms
}

fn approximate() -> Vec<Form> {
    let mut forms = Vec::new();
    for ftz in maybe("ftz") {
        for name in ["rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"] {
            forms.push(Form::new(
                opcode(name, &["approx", ftz, "f32"]),
                "f32",
                &["f32"],
            ));
        }
        for kind in ["approx", "full"] {
            forms.push(Form::new(
                opcode("div", &[kind, ftz, "f32"]),
                "f32",
                &["f32"; 2],
            ));
        }
    }
    for text in [
        "rcp.approx.ftz.f64",
        "rsqrt.approx.f64",
        "rsqrt.approx.ftz.f64",
    ] {
        forms.push(Form::new(text, "f64", &["f64"]));
    }
    forms.push(Form::new("tanh.approx.f32", "f32", &["f32"]));
    for ty in HALVES {
        forms.push(Form::new(opcode("tanh", &["approx", ty]), ty, &[ty]));
        let ftz = if ty.starts_with('b') { "ftz" } else { "" };
        forms.push(Form::new(opcode("ex2", &["approx", ftz, ty]), ty, &[ty]));
    }
    forms
}

fn tests() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in ["f32", "f64"] {
        for class in [
            "finite",
            "infinite",
            "number",
            "notanumber",
            "normal",
            "subnormal",
        ] {
            forms.push(Form::new(opcode("testp", &[class, ty]), "pred", &[ty]));
        }
    }
    forms
}
