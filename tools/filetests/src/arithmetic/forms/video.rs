//! Video instructions. Which parts of registers they take changes from form to form.

use super::super::{Form, Output, Source, Want};
use super::opcode;

const TYPES: [&str; 2] = ["u32", "s32"];
const PARTS: [&str; 7] = ["", ".b0", ".h1", ".b3", ".h0", ".b1", ".b2"];
const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
/// What follows the operation: nothing, another one, or a merge into the last operand.
const THEN: [&str; 5] = ["", "add", "min", "max", "merge"];

pub(super) fn forms() -> Vec<Form> {
    [scalar(), products(), simd()].concat()
}

/// All of these.
fn types<const N: usize>() -> Vec<[&'static str; N]> {
    let pick = |n: usize| std::array::from_fn(|at| TYPES[n >> at & 1]);
    (0..1 << N).map(pick).collect()
}

fn form(opcode: &str, operands: &str, count: usize) -> Form {
    Form {
        text: format!("{opcode} {operands};"),
        opcodes: vec![opcode.to_owned()],
        sources: vec![Source::new("b32"); count],
        constants: Vec::new(),
        outputs: vec![Output::new("b32", Want::Video)],
    }
}

/// The number-th of the ways to select parts.
fn part(number: usize) -> &'static str {
    PARTS[number % PARTS.len()]
}

fn scalar() -> Vec<Form> {
    let mut names = Vec::new();
    for [to, a, b] in types() {
        for sat in ["", "sat"] {
            for name in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"] {
                names.push(opcode(name, &[to, a, b, sat]));
            }
        }
    }
    for [to, a] in types() {
        for sat in ["", "sat"] {
            for mode in ["clamp", "wrap"] {
                for name in ["vshl", "vshr"] {
                    names.push(opcode(name, &[to, a, "u32", sat, mode]));
                }
            }
        }
    }
    for [a, b] in types() {
        for comparison in COMPARISONS {
            names.push(opcode("vset", &[a, b, comparison]));
        }
    }
    let mut forms = Vec::new();
    for name in names {
        for then in THEN {
            let number = forms.len();
            let (a, b) = (part(number), part(number / PARTS.len() + 2 * number));
            forms.push(match then {
                "" => form(&name, &format!("%d0, %a0{a}, %a1{b}"), 2),
                "merge" => {
                    let d = PARTS[1 + number / THEN.len() % (PARTS.len() - 1)];
                    form(&name, &format!("%d0{d}, %a0{a}, %a1{b}, %a2"), 3)
                }
                then => {
                    let name = format!("{name}.{then}");
                    form(&name, &format!("%d0, %a0{a}, %a1{b}, %a2"), 3)
                }
            });
        }
    }
    forms
}

fn products() -> Vec<Form> {
    let mut forms = Vec::new();
    for [a, b] in types() {
        for signs in [["", "", ""], ["-", "", ""], ["", "-", ""], ["", "", "-"]] {
            for po in ["", "po"] {
                let negated = signs.contains(&"-");
                if negated && po == "po" {
                    continue;
                }
                for sat in ["", "sat"] {
                    for scale in ["", "shr7", "shr15"] {
                        let signed = negated || [a, b].contains(&"s32");
                        let to = TYPES[usize::from(signed)];
                        let name = opcode("vmad", &[to, a, b, po, sat, scale]);
                        let number = forms.len();
                        let [x, y, z] = signs;
                        let (p, q) = (part(number), part(number / PARTS.len() + 3 * number));
                        let operands = format!("%d0, {x}%a0{p}, {y}%a1{q}, {z}%a2");
                        forms.push(form(&name, &operands, 3));
                    }
                }
            }
        }
    }
    forms
}

fn simd() -> Vec<Form> {
    // Selectors of result and operands.
    const HALVES: [[&str; 3]; 4] = [
        ["", "", ""],
        [".h0", ".h13", ".h20"],
        [".h1", ".h01", ".h32"],
        [".h10", ".h33", ""],
    ];
    const BYTES: [[&str; 3]; 4] = [
        ["", "", ""],
        [".b20", ".b7210", ".b0123"],
        [".b3", ".b5555", ".b1357"],
        [".b321", "", ".b6420"],
    ];
    let mut forms = Vec::new();
    for (width, selectors) in [("2", HALVES), ("4", BYTES)] {
        let mut names = Vec::new();
        for [to, a, b] in types() {
            for name in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"] {
                for then in ["", "sat", "add"] {
                    names.push(opcode(&format!("{name}{width}"), &[to, a, b, then]));
                }
            }
        }
        for [a, b] in types() {
            for comparison in COMPARISONS {
                for then in ["", "add"] {
                    names.push(opcode(&format!("vset{width}"), &[a, b, comparison, then]));
                }
            }
        }
        for name in names {
            let [d, a, b] = selectors[forms.len() % selectors.len()];
            let operands = format!("%d0{d}, %a0{a}, %a1{b}, %a2");
            forms.push(form(&name, &operands, 3));
        }
    }
    forms
}
