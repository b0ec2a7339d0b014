//! Arithmetic in half precision and bfloat16, single and packed in pairs.

use ptx::ast::{Instruction, Type};

use super::Result;
use super::context::{Decoder, Unsupported};
use crate::lanes::{AluFn, alu};
use crate::values::approx::{Function, double};
use crate::values::mods::{Arith, arith, extreme, input, output};
use crate::values::soft::{BF16, F16, F64, Format, Round, convert};

/// Modifiers above those of `mods`: the format, and whether values come in pairs.
const BFLOAT: u32 = 1 << 30;
const PAIR: u32 = 1 << 31;

fn format(m: u32) -> Format {
    if m & BFLOAT != 0 { BF16 } else { F16 }
}

/// Applies `f` to the value, or to both.
fn each(m: u32, a: u64, b: u64, c: u64, f: impl Fn(u64, u64, u64) -> u64) -> u64 {
    let low = f(a & 0xffff, b & 0xffff, c & 0xffff);
    if m & PAIR == 0 {
        return low;
    }
    let high = |x: u64| x >> 16 & 0xffff;
    low | f(high(a), high(b), high(c)) << 16
}

macro_rules! binary {
    ($op:expr) => {
        alu!(imm m, |a: u64, b: u64| -> u64 {
            each(m, a, b, 0, |a, b, _| arith($op, format(m), m, a, b, 0))
        })
    };
}

macro_rules! function {
    ($f:expr) => {
        alu!(imm m, |a: u64| -> u64 {
            each(m, a, 0, 0, |a, _, _| {
                let a = input(a, format(m), m);
                let x = f64::from_bits(convert(a, format(m), F64, Round::Nearest));
                let value = convert(double($f, x).to_bits(), F64, format(m), Round::Nearest);
                output(value, format(m), m)
            })
        })
    };
}

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction, ty: Type, m: u32) -> Result<()> {
    let mut m = m;
    m |= if matches!(ty, Type::BF16 | Type::BF16x2) {
        BFLOAT
    } else {
        0
    };
    m |= if matches!(ty, Type::F16x2 | Type::BF16x2) {
        PAIR
    } else {
        0
    };
    let (count, f): (usize, AluFn) = match i.opcode.as_str() {
        "add" => (2, binary!(Arith::Add)),
        "sub" => (2, binary!(Arith::Sub)),
        "mul" => (2, binary!(Arith::Mul)),
        "fma" | "mad" => (
            3,
            alu!(imm m, |a: u64, b: u64, c: u64| -> u64 {
                each(m, a, b, c, |a, b, c| arith(Arith::Fma, format(m), m, a, b, c))
            }),
        ),
        "min" => (
            2,
            alu!(imm m, |a: u64, b: u64| -> u64 {
                each(m, a, b, 0, |a, b, _| extreme(false, format(m), m, a, b))
            }),
        ),
        "max" => (
            2,
            alu!(imm m, |a: u64, b: u64| -> u64 {
                each(m, a, b, 0, |a, b, _| extreme(true, format(m), m, a, b))
            }),
        ),
        "abs" => (
            1,
            alu!(imm m, |a: u64| -> u64 { each(m, a, 0, 0, |a, _, _| input(a, format(m), m) & 0x7fff) }),
        ),
        "neg" => (
            1,
            alu!(imm m, |a: u64| -> u64 { each(m, a, 0, 0, |a, _, _| input(a, format(m), m) ^ 0x8000) }),
        ),
        "ex2" => (1, function!(Function::Ex2)),
        "tanh" => (1, function!(Function::Tanh)),
        _ => return Unsupported::because("this instruction"),
    };
    cx.compute(i, &[ty; 3][..count], f, m)
}
