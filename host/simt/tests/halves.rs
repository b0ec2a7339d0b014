//! Arithmetic in half precision and bfloat16, single and in pairs, with random operands, against sums
//! and products in integers, rounded here.

use crate::common::{self, elements::decode};
use proptest::prelude::*;
use random::Random;

/// Bits of exponent and fraction, and the power of two that all finite values used are multiples of.
#[derive(Clone, Copy)]
struct Format {
    name: &'static str,
    exponent: u32,
    fraction: u32,
    unit: i32,
}

const FORMATS: [Format; 2] = [
    Format {
        name: "f16",
        exponent: 5,
        fraction: 10,
        unit: -24,
    },
    Format {
        name: "bf16",
        exponent: 8,
        fraction: 7,
        unit: -27,
    },
];

const NAN: u32 = 0x7fff;

impl Format {
    fn value(self, bits: u32) -> f64 {
        decode(bits.into(), self.exponent, self.fraction)
    }

    /// A finite value in units.
    fn units(self, bits: u32) -> i128 {
        (self.value(bits) * 2f64.powi(-self.unit)) as i128
    }

    /// An operand: anything, but bfloat16 has so wide a range that most are near one.
    fn operand(self, random: u32) -> u32 {
        // Zeros, infinities, NaN, and, where the unit is small enough, subnormals.
        const BFLOAT: [u32; 4] = [0, 0x8000, 0x7f80, 0xffc1];
        const HALF: [u32; 8] = [0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 1, 0x83ff, 0x7bff];
        if random.is_multiple_of(8) {
            let special = if self.name == "bf16" {
                &BFLOAT[..]
            } else {
                &HALF
            };
            return special[(random >> 8) as usize % special.len()];
        }
        let bits = random >> 16;
        match self.name {
            "bf16" => bits & 0x807f | (107 + (bits >> 7 & 0xff) % 40) << 7,
            _ => bits,
        }
    }

    /// The bits of so many units, to nearest, ties to even.
    fn round(self, value: i128, unit: i32) -> u32 {
        let sign = if value < 0 { 0x8000 } else { 0 };
        let value = value.unsigned_abs();
        let bias = (1 << (self.exponent - 1)) - 1;
        let top = 127 - value.leading_zeros() as i32;
        // Weight of the last bit that is kept.
        let last = (top + unit).max(1 - bias) - self.fraction as i32;
        let cut = last - unit;
        let kept = if cut <= 0 {
            value << -cut
        } else {
            let (whole, rest, half) = (value >> cut, value & ((1 << cut) - 1), 1u128 << (cut - 1));
            whole + u128::from(rest > half || rest == half && whole & 1 == 1)
        };
        let biased = last + self.fraction as i32 + bias;
        let bits = if kept < 1 << self.fraction {
            kept as u32
        } else {
            ((biased as u32) << self.fraction) + (kept as u32 - (1 << self.fraction))
        };
        let infinity = ((1 << self.exponent) - 1) << self.fraction;
        sign | bits.min(infinity)
    }

    /// `a * b + c`
    fn fused(self, a: u32, b: u32, c: u32) -> u32 {
        let [x, y, z] = [a, b, c].map(|bits| self.value(bits));
        let near = x.mul_add(y, z);
        if near.is_nan() {
            return NAN;
        }
        if [x, y, z].iter().any(|x| x.is_infinite()) {
            let infinity = ((1u32 << self.exponent) - 1) << self.fraction;
            return if near < 0.0 {
                infinity | 0x8000
            } else {
                infinity
            };
        }
        let exact = self.units(a) * self.units(b) + (self.units(c) << -self.unit);
        if exact == 0 {
            return if near.is_sign_negative() { 0x8000 } else { 0 };
        }
        self.round(exact, 2 * self.unit)
    }

    fn one(self) -> u32 {
        ((1 << (self.exponent - 1)) - 1) << self.fraction
    }

    /// `min` or `max`, with `.NaN` or without
    fn extreme(self, name: &str, a: u32, b: u32) -> u32 {
        let (max, nan) = (name.starts_with("max"), name.ends_with(".NaN"));
        let (x, y) = (self.value(a), self.value(b));
        match (x.is_nan(), y.is_nan()) {
            (true, true) => NAN,
            (true, _) | (_, true) if nan => NAN,
            (true, _) => b,
            (_, true) => a,
            // Of two zeros the negative one is the smaller.
            _ if x == y => {
                if max == (a & 0x8000 == 0) {
                    a
                } else {
                    b
                }
            }
            _ => {
                if (x > y) == max {
                    a
                } else {
                    b
                }
            }
        }
    }

    /// What an instruction gives.
    fn expect(self, op: &str, [a, b, c]: [u32; 3]) -> u32 {
        let minus = |x: u32| x ^ 0x8000;
        match op {
            // A negative zero as third operand changes nothing.
            "add" => self.fused(a, self.one(), b),
            "sub" => self.fused(b, minus(self.one()), a),
            "mul" => self.fused(a, b, if (a ^ b) & 0x8000 != 0 { 0x8000 } else { 0 }),
            "fma.rn" => self.fused(a, b, c),
            "fma.rn.relu" => match self.fused(a, b, c) {
                NAN => NAN,
                negative if negative & 0x8000 != 0 => 0,
                positive => positive,
            },
            "fma.rn.sat" => match self.fused(a, b, c) {
                NAN => 0,
                negative if negative & 0x8000 != 0 => 0,
                positive => positive.min(self.one()),
            },
            "min" | "max" | "min.NaN" | "max.NaN" => self.extreme(op, a, b),
            "abs" => a & 0x7fff,
            _ => minus(a),
        }
    }
}

const OPERATIONS: [(&str, usize); 12] = [
    ("add", 2),
    ("sub", 2),
    ("mul", 2),
    ("fma.rn", 3),
    ("fma.rn.relu", 3),
    ("fma.rn.sat", 3),
    ("min", 2),
    ("max", 2),
    ("min.NaN", 2),
    ("max.NaN", 2),
    ("abs", 1),
    ("neg", 1),
];

const THREADS: usize = 256;

/// The operands of all threads, pairs of values.
fn operands(format: Format, seed: u64) -> Vec<[u32; 3]> {
    let mut random = Random::new(seed);
    let mut draw = || (random.number() >> 32) as u32;
    let mut pair = || format.operand(draw()) | format.operand(draw()) << 16;
    (0..THREADS).map(|_| [pair(), pair(), pair()]).collect()
}

/// A kernel that computes every operation on each thread's operands, which stand in a table.
fn results(format: Format, rows: &[[u32; 3]]) -> Vec<u64> {
    let table: Vec<String> = rows.iter().flatten().map(ToString::to_string).collect();
    let mut body = "mov.u64 %d1, table; mul.wide.u32 %d2, %t, 12; add.u64 %d1, %d1, %d2;
        ld.global.u32 %r1, [%d1]; ld.global.u32 %r2, [%d1+4]; ld.global.u32 %r3, [%d1+8];
        mov.b32 {%h1, %h4}, %r1; mov.b32 {%h2, %h4}, %r2; mov.b32 {%h3, %h4}, %r3;\n"
        .to_owned();
    for (n, (op, count)) in OPERATIONS.iter().enumerate() {
        if *op == "fma.rn.sat" && format.name == "bf16" {
            continue;
        }
        let list = |name: &str| {
            let names: Vec<_> = (0..=*count).map(|n| format!("%{name}{n}")).collect();
            names.join(", ")
        };
        let at = 8 * THREADS * n;
        body += &format!(
            "{op}.{0}x2 {1}; st.global.u32 [%mine+{at}], %r0;
             {op}.{0} {2}; cvt.u32.u16 %r0, %h0; st.global.u32 [%mine+{3}], %r0;\n",
            format.name,
            list("r"),
            list("h"),
            at + 4
        );
    }
    let text = format!(
        ".global .align 4 .u32 table[{}] = {{{}}};\n{}",
        table.len(),
        table.join(", "),
        common::kernel(&body)
    );
    common::load(&text)
        .run(1, THREADS as u32, THREADS * OPERATIONS.len())
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn halves_are_rounded_once(seed: u64) {
        for format in FORMATS {
            let rows = operands(format, seed);
            let words = results(format, &rows);
            for (n, (op, _)) in OPERATIONS.iter().enumerate() {
                if *op == "fma.rn.sat" && format.name == "bf16" {
                    continue;
                }
                for (thread, row) in rows.iter().enumerate() {
                    let low = format.expect(op, row.map(|x| x & 0xffff));
                    let high = format.expect(op, row.map(|x| x >> 16));
                    let have = words[THREADS * n + thread];
                    let want = u64::from(low) << 32 | u64::from(high) << 16 | u64::from(low);
                    prop_assert_eq!(have, want, "{} {} of {:x?}", op, format.name, row);
                }
            }
        }
    }
}
