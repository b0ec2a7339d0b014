//! Integer arithmetic, logic, shifts and bit fields.

use super::super::{Form, Output, Source, Want};
use super::{INTEGERS, opcode};

pub(super) fn forms() -> Vec<Form> {
    let mut forms = arithmetic();
    forms.extend(bits());
    forms.extend(fields());
    forms.extend(logic3());
    forms.extend(chains());
    forms.extend(constants());
    forms
}

/// The type twice as wide, as far as products give it.
fn wide(ty: &str) -> Option<&'static str> {
    Some(match ty {
        "u16" => "u32",
        "s16" => "s32",
        "u32" => "u64",
        "s32" => "s64",
        _ => return None,
    })
}

fn arithmetic() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in INTEGERS {
        for name in ["add", "sub", "div", "rem", "min", "max"] {
            forms.push(Form::new(opcode(name, &[ty]), ty, &[ty; 2]));
        }
        forms.push(Form::new(opcode("sad", &[ty]), ty, &[ty; 3]));
        for part in ["lo", "hi"] {
            forms.push(Form::new(opcode("mul", &[part, ty]), ty, &[ty; 2]));
            forms.push(Form::new(opcode("mad", &[part, ty]), ty, &[ty; 3]));
        }
        if let Some(wide) = wide(ty) {
            forms.push(Form::new(opcode("mul", &["wide", ty]), wide, &[ty; 2]));
            forms.push(Form::new(
                opcode("mad", &["wide", ty]),
                wide,
                &[ty, ty, wide],
            ));
        }
        if ty.starts_with('s') {
            forms.push(Form::new(opcode("abs", &[ty]), ty, &[ty]));
            forms.push(Form::new(opcode("neg", &[ty]), ty, &[ty]));
        }
    }
    for ty in ["u16x2", "s16x2"] {
        for name in ["add", "min", "max"] {
            forms.push(Form::new(opcode(name, &[ty]), ty, &[ty; 2]));
        }
    }
    for ty in ["s32", "s16x2"] {
        for name in ["min", "max"] {
            // ptxas takes the suffixes in both orders.
            for suffixes in [["relu", ty], [ty, "relu"]] {
                forms.push(Form::new(opcode(name, &suffixes), ty, &[ty; 2]));
            }
        }
    }
    for text in ["add.sat.s32", "sub.sat.s32"] {
        forms.push(Form::new(text, "s32", &["s32"; 2]));
    }
    forms.push(Form::new("mad.hi.sat.s32", "s32", &["s32"; 3]));
    for ty in ["u32", "s32"] {
        for part in ["lo", "hi"] {
            forms.push(Form::new(opcode("mul24", &[part, ty]), ty, &[ty; 2]));
            forms.push(Form::new(opcode("mad24", &[part, ty]), ty, &[ty; 3]));
        }
    }
    forms.push(Form::new("mad24.hi.sat.s32", "s32", &["s32"; 3]));
    for a in ["u32", "s32"] {
        for b in ["u32", "s32"] {
            let c = if [a, b].contains(&"s32") {
                "s32"
            } else {
                "u32"
            };
            let sources = [a, b, c];
            forms.push(Form::new(opcode("dp4a", &[a, b]), c, &sources));
            for part in ["lo", "hi"] {
                forms.push(Form::new(opcode("dp2a", &[part, a, b]), c, &sources));
            }
        }
    }
    forms
}

/// Constants of every width and sign.
fn constants() -> Vec<Form> {
    let form =
        |opcode: &str, to, from: &[_], text, value| Form::new(opcode, to, from).with(text, value);
    vec![
        form("add.s16", "s16", &["s16"; 2], "-5", (-5_i64) as u64),
        form("mul.wide.s16", "s32", &["s16"; 2], "-3", (-3_i64) as u64),
        form("mad.lo.u16", "u16", &["u16"; 3], "65535", 0xffff),
        form("sub.u64", "u64", &["u64"; 2], "1", 1),
        form("div.s64", "s64", &["s64"; 2], "-7", (-7_i64) as u64),
        form(
            "and.b64",
            "b64",
            &["b64"; 2],
            "0xffffffff00000000",
            0xffff_ffff << 32,
        ),
        form("xor.b32", "b32", &["b32"; 2], "-1", (-1_i64) as u64),
        form("shr.s32", "s32", &["s32", "shift"], "40", 40),
        form("shl.b64", "b64", &["b64", "shift"], "33", 33),
        form("min.u32", "u32", &["u32"; 2], "0x80000000", 0x8000_0000),
    ]
}

/// Logic, shifts and counts.
fn bits() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in ["pred", "b16", "b32", "b64"] {
        for name in ["and", "or", "xor"] {
            forms.push(Form::new(opcode(name, &[ty]), ty, &[ty; 2]));
        }
        forms.push(Form::new(opcode("not", &[ty]), ty, &[ty]));
        if ty != "pred" {
            forms.push(Form::new(opcode("cnot", &[ty]), ty, &[ty]));
            forms.push(Form::new(opcode("shl", &[ty]), ty, &[ty, "shift"]));
            forms.push(Form::new(opcode("shr", &[ty]), ty, &[ty, "shift"]));
        }
    }
    for ty in INTEGERS {
        forms.push(Form::new(opcode("shr", &[ty]), ty, &[ty, "shift"]));
    }
    for direction in ["l", "r"] {
        for mode in ["clamp", "wrap"] {
            forms.push(Form::new(
                opcode("shf", &[direction, mode, "b32"]),
                "b32",
                &["b32", "b32", "shift"],
            ));
        }
    }
    for ty in ["b32", "b64"] {
        forms.push(Form::new(opcode("popc", &[ty]), "u32", &[ty]));
        forms.push(Form::new(opcode("clz", &[ty]), "u32", &[ty]));
        forms.push(Form::new(opcode("brev", &[ty]), ty, &[ty]));
    }
    for ty in ["u32", "u64", "s32", "s64"] {
        forms.push(Form::new(opcode("bfind", &[ty]), "u32", &[ty]));
        forms.push(Form::new(opcode("bfind", &["shiftamt", ty]), "u32", &[ty]));
    }
    for mode in ["", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"] {
        forms.push(Form::new(
            opcode("prmt", &["b32", mode]),
            "b32",
            &["b32"; 3],
        ));
    }
    forms
}

fn fields() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in ["u32", "u64", "s32", "s64"] {
        forms.push(Form::new(opcode("bfe", &[ty]), ty, &[ty, "shift", "shift"]));
    }
    for ty in ["b32", "b64"] {
        forms.push(Form::new(
            opcode("bfi", &[ty]),
            ty,
            &[ty, ty, "shift", "shift"],
        ));
    }
    for mode in ["clamp", "wrap"] {
        forms.push(Form::new(
            opcode("bmsk", &[mode, "b32"]),
            "b32",
            &["shift"; 2],
        ));
        for ty in ["u32", "s32"] {
            forms.push(Form::new(opcode("szext", &[mode, ty]), ty, &[ty, "shift"]));
        }
    }
    forms.push(Form::new("fns.b32", "u32", &["b32", "lane", "offset"]));
    forms
}

/// Any function of three bits, given by its table.
fn logic3() -> Vec<Form> {
    let mut forms = Vec::new();
    for table in [0x00_u64, 0x01, 0x1b, 0x80, 0x96, 0xca, 0xe8, 0xfe, 0xff] {
        let mut form = Form::new("lop3.b32", "b32", &["b32"; 3]);
        form.text = format!("lop3.b32 %d0, %a0, %a1, %a2, {table};");
        form.constants = vec![table];
        forms.push(form);
    }
    for name in ["or", "and"] {
        let opcode = opcode("lop3", &[name, "b32"]);
        let mut form = Form::new(opcode.clone(), "b32", &["b32", "b32", "b32", "pred"]);
        form.text = format!("{opcode} %d0|%d1, %a0, %a1, %a2, 0x80, %a3;");
        form.constants = vec![0x80];
        // The result is that of the plain form.
        form.outputs = vec![
            Output::new("b32", Want::Value("lop3.b32".to_owned())),
            Output::new("pred", Want::Value(opcode)),
        ];
        forms.push(form);
    }
    forms
}

/// Sums, differences and products that hand a carry on, and the flag that they leave.
fn chains() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in ["u32", "s32", "u64", "s64"] {
        for (first, second) in [("add", "addc"), ("sub", "subc"), ("sub", "addc")] {
            // What reads the flag alone comes last.
            let last = if second == "subc" { "subc" } else { "addc" };
            forms.push(chain(
                ty,
                &[
                    opcode(first, &["cc", ty]),
                    opcode(second, &["cc", ty]),
                    opcode(second, &[ty]),
                    opcode(last, &[ty]),
                ],
            ));
        }
        forms.push(chain(
            ty,
            &[
                opcode("mad", &["lo", "cc", ty]),
                opcode("madc", &["hi", "cc", ty]),
                opcode("addc", &[ty]),
            ],
        ));
        forms.push(chain(
            ty,
            &[
                opcode("mad", &["hi", "cc", ty]),
                opcode("madc", &["lo", "cc", ty]),
                opcode("madc", &["hi", ty]),
                opcode("madc", &["lo", ty]),
            ],
        ));
    }
    forms
}

fn chain(ty: &'static str, opcodes: &[String]) -> Form {
    let mut form = Form::new(opcodes[0].clone(), ty, &[]);
    let mut count = 0;
    let mut text = String::new();
    form.outputs.clear();
    for (step, opcode) in opcodes.iter().enumerate() {
        let operands = if opcode.starts_with('m') { 3 } else { 2 };
        let names: Vec<_> = (count..count + operands)
            .map(|n| format!("%a{n}"))
            .collect();
        text += &format!("{opcode} %d{step}, {};\n", names.join(", "));
        count += operands;
        form.outputs.push(Output::new(ty, Want::Step(step)));
    }
    form.sources = vec![Source::new(ty); count];
    form.text = text;
    form.opcodes = opcodes.to_vec();
    form
}
