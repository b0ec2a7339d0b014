//! `mma` with random elements, against sums made here.
//!
//! The places of the elements are written down once more, shape by shape as the PTX ISA's figures
//! give them, and share nothing with the device's own.

use proptest::prelude::*;
use random::Random;

use crate::common::elements::{bits, keep, list, run_over, value};

type Position = fn(usize, usize) -> (usize, usize);

/// A form of `mma`.
struct Form {
    text: &'static str,
    /// Types of d, a, b and c.
    types: [&'static str; 4],
    /// m, n and k.
    shape: [usize; 3],
    a: Position,
    b: Position,
    c: Position,
}

/// `c` of all shapes with 16 rows and 8 columns.
fn c16(lane: usize, i: usize) -> (usize, usize) {
    let row = if i < 2 { lane / 4 } else { lane / 4 + 8 };
    (row, lane % 4 * 2 + (i & 1))
}

/// `c` of all shapes with 8 rows and 8 columns.
fn c8(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4, lane % 4 * 2 + i)
}

/// `a` of 16 by 16 halves.
fn a_half_16(lane: usize, i: usize) -> (usize, usize) {
    let upper = matches!(i, 0 | 1 | 4 | 5);
    let row = if upper { lane / 4 } else { lane / 4 + 8 };
    let column = lane % 4 * 2 + (i & 1);
    (row, if i < 4 { column } else { column + 8 })
}

fn b_half_16(lane: usize, i: usize) -> (usize, usize) {
    let row = lane % 4 * 2 + (i & 1);
    (if i < 2 { row } else { row + 8 }, lane / 4)
}

fn a_half_8(lane: usize, i: usize) -> (usize, usize) {
    let row = if i < 2 { lane / 4 } else { lane / 4 + 8 };
    (row, lane % 4 * 2 + (i & 1))
}

fn b_half_8(lane: usize, i: usize) -> (usize, usize) {
    (lane % 4 * 2 + i, lane / 4)
}

fn a_single_8(lane: usize, i: usize) -> (usize, usize) {
    let row = if i.is_multiple_of(2) {
        lane / 4
    } else {
        lane / 4 + 8
    };
    (row, if i < 2 { lane % 4 } else { lane % 4 + 4 })
}

fn b_single_8(lane: usize, i: usize) -> (usize, usize) {
    (if i == 0 { lane % 4 } else { lane % 4 + 4 }, lane / 4)
}

fn a_single_4(lane: usize, i: usize) -> (usize, usize) {
    (if i == 0 { lane / 4 } else { lane / 4 + 8 }, lane % 4)
}

fn b_single_4(lane: usize, _: usize) -> (usize, usize) {
    (lane % 4, lane / 4)
}

fn a_double_16(lane: usize, i: usize) -> (usize, usize) {
    let even = i.is_multiple_of(2);
    let row = if even { lane / 4 } else { lane / 4 + 8 };
    (row, if even { i * 2 } else { i * 2 - 2 } + lane % 4)
}

fn b_double_16(lane: usize, i: usize) -> (usize, usize) {
    (i * 4 + lane % 4, lane / 4)
}

fn a_byte_32(lane: usize, i: usize) -> (usize, usize) {
    let upper = matches!(i, 0..4 | 8..12);
    let row = if upper { lane / 4 } else { lane / 4 + 8 };
    let column = lane % 4 * 4 + (i & 3);
    (row, if i < 8 { column } else { column + 16 })
}

fn b_byte_32(lane: usize, i: usize) -> (usize, usize) {
    let row = lane % 4 * 4 + (i & 3);
    (if i < 4 { row } else { row + 16 }, lane / 4)
}

fn a_byte_8(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4, lane % 4 * 4 + i)
}

fn b_byte_8(lane: usize, i: usize) -> (usize, usize) {
    (lane % 4 * 4 + i, lane / 4)
}

fn a_nibble_64(lane: usize, i: usize) -> (usize, usize) {
    let upper = matches!(i, 0..8 | 16..24);
    let row = if upper { lane / 4 } else { lane / 4 + 8 };
    let column = lane % 4 * 8 + (i & 7);
    (row, if i < 16 { column } else { column + 32 })
}

fn b_nibble_64(lane: usize, i: usize) -> (usize, usize) {
    let row = lane % 4 * 8 + (i & 7);
    (if i < 8 { row } else { row + 32 }, lane / 4)
}

fn a_bit_256(lane: usize, i: usize) -> (usize, usize) {
    let upper = matches!(i, 0..32 | 64..96);
    let row = if upper { lane / 4 } else { lane / 4 + 8 };
    let column = lane % 4 * 32 + (i & 31);
    (row, if i < 64 { column } else { column + 128 })
}

fn b_bit_256(lane: usize, i: usize) -> (usize, usize) {
    let row = lane % 4 * 32 + (i & 31);
    (if i < 32 { row } else { row + 128 }, lane / 4)
}

const FORMS: &[Form] = &[
    form(
        "m16n8k16.row.col.f32.f16.f16.f32",
        ["f32", "f16", "f16", "f32"],
        [16, 8, 16],
        [a_half_16, b_half_16, c16],
    ),
    form(
        "m16n8k16.row.col.f16.f16.f16.f16",
        ["f16", "f16", "f16", "f16"],
        [16, 8, 16],
        [a_half_16, b_half_16, c16],
    ),
    form(
        "m16n8k16.row.col.f32.bf16.bf16.f32",
        ["f32", "bf16", "bf16", "f32"],
        [16, 8, 16],
        [a_half_16, b_half_16, c16],
    ),
    form(
        "m16n8k8.row.col.f32.f16.f16.f32",
        ["f32", "f16", "f16", "f32"],
        [16, 8, 8],
        [a_half_8, b_half_8, c16],
    ),
    form(
        "m16n8k8.row.col.f32.tf32.tf32.f32",
        ["f32", "tf32", "tf32", "f32"],
        [16, 8, 8],
        [a_single_8, b_single_8, c16],
    ),
    form(
        "m16n8k4.row.col.f32.tf32.tf32.f32",
        ["f32", "tf32", "tf32", "f32"],
        [16, 8, 4],
        [a_single_4, b_single_4, c16],
    ),
    form(
        "m16n8k32.row.col.f32.e4m3.e5m2.f32",
        ["f32", "e4m3", "e5m2", "f32"],
        [16, 8, 32],
        [a_byte_32, b_byte_32, c16],
    ),
    form(
        "m8n8k4.row.col.f64.f64.f64.f64",
        ["f64", "f64", "f64", "f64"],
        [8, 8, 4],
        [|l, _| (l / 4, l % 4), b_single_4, c8],
    ),
    form(
        "m16n8k16.row.col.f64.f64.f64.f64",
        ["f64", "f64", "f64", "f64"],
        [16, 8, 16],
        [a_double_16, b_double_16, c16],
    ),
    form(
        "m16n8k32.row.col.s32.s8.u8.s32",
        ["s32", "s8", "u8", "s32"],
        [16, 8, 32],
        [a_byte_32, b_byte_32, c16],
    ),
    form(
        "m16n8k32.row.col.satfinite.s32.u8.s8.s32",
        ["s32", "u8", "s8", "s32"],
        [16, 8, 32],
        [a_byte_32, b_byte_32, c16],
    ),
    form(
        "m8n8k16.row.col.s32.u8.s8.s32",
        ["s32", "u8", "s8", "s32"],
        [8, 8, 16],
        [a_byte_8, b_byte_8, c8],
    ),
    form(
        "m16n8k64.row.col.s32.s4.u4.s32",
        ["s32", "s4", "u4", "s32"],
        [16, 8, 64],
        [a_nibble_64, b_nibble_64, c16],
    ),
    form(
        "m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
        ["s32", "b1", "b1", "s32"],
        [16, 8, 256],
        [a_bit_256, b_bit_256, c16],
    ),
    form(
        "m16n8k256.row.col.s32.b1.b1.s32.and.popc",
        ["s32", "b1", "b1", "s32"],
        [16, 8, 256],
        [a_bit_256, b_bit_256, c16],
    ),
];

const fn form(
    text: &'static str,
    types: [&'static str; 4],
    shape: [usize; 3],
    [a, b, c]: [Position; 3],
) -> Form {
    Form {
        text,
        types,
        shape,
        a,
        b,
        c,
    }
}

/// Registers of 32 lanes, 64-bit slots, lane after lane.
fn fragments(
    ty: &str,
    position: Position,
    count: usize,
    at: &dyn Fn(usize, usize) -> u64,
) -> Vec<u64> {
    let packed = (32 / bits(ty)).max(1);
    let mut registers = vec![0; 32 * count / packed];
    for lane in 0..32 {
        for i in 0..count {
            let (row, column) = position(lane, i);
            let register = lane * (count / packed) + i / packed;
            registers[register] |= (at(row, column) & keep(ty)) << (bits(ty) * (i % packed));
        }
    }
    registers
}

/// A kernel that loads a, b and c of an `mma` lane by lane, and stores d behind them.
fn kernel(form: &Form, counts: [usize; 4]) -> String {
    let mut body = String::new();
    let mut offset = 0;
    let mut first = 0;
    let mut operands = Vec::new();
    for (n, ty) in [
        (1, form.types[1]),
        (2, form.types[2]),
        (3, form.types[3]),
        (0, form.types[0]),
    ] {
        let name = match ty {
            "f32" => "f",
            "f64" => "e",
            _ => "r",
        };
        let count = counts[n];
        let (memory, step) = if ty == "f64" { ("b64", 8) } else { ("b32", 8) };
        body += &format!("mad.lo.u64 %at, %lane, {}, %out;\n", step * count);
        for register in 0..count {
            let at = offset + step * register;
            let name = format!("%{name}{}", first + register);
            if n == 0 {
                body += &format!("st.global.{memory} [%at+{at}], {name};\n");
            } else {
                body += &format!("ld.global.{memory} {name}, [%at+{at}];\n");
            }
        }
        operands.push((n, list(name, first, count)));
        if n == 3 {
            let of = |n: usize| {
                operands
                    .iter()
                    .find(|o| o.0 == n)
                    .map(|o| o.1.clone())
                    .unwrap()
            };
            let d = list(
                match form.types[0] {
                    "f32" => "f",
                    "f64" => "e",
                    _ => "r",
                },
                first + count,
                counts[0],
            );
            body += &format!(
                "mma.sync.aligned.{} {d}, {}, {}, {};\n",
                form.text,
                of(1),
                of(2),
                of(3)
            );
        }
        offset += 32 * step * count;
        first += count;
    }
    format!(
        ".visible .entry k(.param .u64 out) {{
            .reg .b32 %r<64>, %t; .reg .b64 %out, %at, %lane; .reg .f32 %f<64>; .reg .f64 %e<64>;
            ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; cvt.u64.u32 %lane, %t;
            {body} ret;
        }}"
    )
}

fn check(form: &Form, seed: u64) {
    let [m, n, k] = form.shape;
    let mut random = Random::new(seed);
    let mut draw = || random.number() >> 8;
    let mut matrix = |ty: &str, rows: usize, columns: usize| -> Vec<u64> {
        let element = |x: u64| match ty {
            // Doubles whose sums are exact, so that their order does not matter here.
            "f64" => (((x >> 8) % 1000) as f64 - 500.0).to_bits(),
            // Mostly of one size, so that sums do not drown; every 64th anything at all.
            "f16" if !x.is_multiple_of(64) => 0x3000 | x >> 9 & 0x8fff,
            "bf16" if !x.is_multiple_of(64) => 0x3f00 | x >> 9 & 0x80ff,
            "f32" | "tf32" if !x.is_multiple_of(64) => 0x3f00_0000 | x >> 9 & 0x80ff_ffff,
            "e4m3" | "e5m2" if !x.is_multiple_of(64) => x >> 9 & 0xbf,
            _ => x >> 9,
        };
        (0..rows * columns)
            .map(|_| element(draw()) & keep(ty))
            .collect()
    };
    let [dt, at, bt, ct] = form.types;
    let (a, b, c) = (matrix(at, m, k), matrix(bt, k, n), matrix(ct, m, n));
    let registers = |ty: &str, elements: usize| elements / 32 / (32 / bits(ty)).max(1);
    let counts = [
        registers(dt, m * n),
        registers(at, m * k),
        registers(bt, k * n),
        registers(ct, m * n),
    ];
    let mut data = fragments(at, form.a, m * k / 32, &|r, q| a[r * k + q]);
    data.extend(fragments(bt, form.b, k * n / 32, &|r, q| b[r * n + q]));
    data.extend(fragments(ct, form.c, m * n / 32, &|r, q| c[r * n + q]));
    let start = data.len();
    data.resize(start + 32 * counts[0], 0);
    let data = run_over(&kernel(form, counts), &data);
    let want = |row: usize, column: usize| -> u64 {
        let pair = |q: usize| (a[row * k + q], b[q * n + column]);
        let c = c[row * n + column];
        match dt {
            "s32" => {
                let term = |(x, y): (u64, u64)| match at {
                    "b1" if form.text.contains("and") => (x & y) as i64,
                    "b1" => (x ^ y) as i64,
                    _ => (value(at, x) * value(bt, y)) as i64,
                };
                let sum = (0..k).map(|q| term(pair(q))).sum::<i64>() + i64::from(c as i32);
                if form.text.contains("satfinite") {
                    u64::from(sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32)
                } else {
                    u64::from(sum as u32)
                }
            }
            "f64" => {
                let terms = (0..k)
                    .map(pair)
                    .map(|(x, y)| f64::from_bits(x) * f64::from_bits(y));
                (terms.sum::<f64>() + f64::from_bits(c)).to_bits()
            }
            _ => {
                let sum = (0..k).map(pair).fold(value(ct, c) as f32, |sum, (x, y)| {
                    (value(at, x) as f32).mul_add(value(bt, y) as f32, sum)
                });
                u64::from(sum.to_bits())
            }
        }
    };
    let packed = (32 / bits(dt)).max(1);
    for lane in 0..32 {
        for i in 0..m * n / 32 {
            let (row, column) = (form.c)(lane, i);
            let register = data[start + lane * counts[0] + i / packed];
            let have = register >> (bits(dt) * (i % packed)) & keep(dt);
            let want = want(row, column);
            if dt == "f16" {
                // Rounded once more: one of the two halves next to the sum, and the nearer one.
                let (have, want) = (value("f16", have), f64::from(f32::from_bits(want as u32)));
                let near = (have - want).abs() <= (want.abs() / 2048.0).max(2f64.powi(-25));
                let large = want.abs() >= 65520.0 && have == want.signum() * f64::INFINITY;
                assert!(
                    near || large || have.is_nan() && want.is_nan(),
                    "{}: {have} {want}",
                    form.text
                );
            } else {
                let nan =
                    dt == "f32" && f32::from_bits(want as u32).is_nan() && have == 0x7fff_ffff;
                assert!(
                    have == want || nan,
                    "{} at {row}, {column}: {have:#x} {want:#x}",
                    form.text
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn products_are_sums_of_products(seed: u64) {
        for form in FORMS {
            check(form, seed);
        }
    }
}

/// The half with the value of a small number.
fn half(n: usize) -> u64 {
    match n.checked_ilog2() {
        None => 0,
        Some(log) => u64::from(15 + log) << 10 | (n << 10 >> log) as u64 & 0x3ff,
    }
}

/// `mma.m8n8k4` with halves: four products at once, each by eight lanes.
#[test]
fn quarters_have_products_of_their_own() {
    let upper = |lane: usize| if lane < 16 { 0 } else { 4 };
    // Elements of the quarters' matrices.
    let a = |quarter: usize, row: usize, k: usize| (3 * row + 5 * k + quarter) % 7;
    let b = |quarter: usize, k: usize, column: usize| (2 * column + 3 * k + 2 * quarter) % 5;
    let c = |quarter: usize, row: usize, column: usize| 8 * row + column + quarter;
    for (text, a_columns, b_columns) in [
        ("m8n8k4.row.col.f32.f16.f16.f32", false, true),
        ("m8n8k4.row.row.f32.f16.f16.f32", false, false),
        ("m8n8k4.col.col.f32.f16.f16.f32", true, true),
        ("m8n8k4.col.row.f32.f16.f16.f32", true, false),
    ] {
        let form = form(text, ["f32", "f16", "f16", "f32"], [8, 8, 4], [c8, c8, c8]);
        let position = |lane: usize, i: usize| {
            let row = (lane & 1) + (i & 2) + upper(lane);
            (row, (i & 4) + (lane & 2) + (i & 1))
        };
        let (mut left, mut right, mut start) = (Vec::new(), Vec::new(), Vec::new());
        for lane in 0..32 {
            let quarter = lane % 16 / 4;
            let element_a = |i: usize| match a_columns {
                false => half(a(quarter, lane % 4 + upper(lane), i)),
                true => half(a(quarter, i + upper(lane), lane % 4)),
            };
            let element_b = |i: usize| match b_columns {
                false => half(b(quarter, lane % 4, i + upper(lane))),
                true => half(b(quarter, i, lane % 4 + upper(lane))),
            };
            left.extend([0, 2].map(|i| element_a(i) | element_a(i + 1) << 16));
            right.extend([0, 2].map(|i| element_b(i) | element_b(i + 1) << 16));
            start.extend((0..8).map(|i| {
                let (row, column) = position(lane, i);
                u64::from((c(quarter, row, column) as f32).to_bits())
            }));
        }
        let mut data = [left, right, start].concat();
        let first = data.len();
        data.resize(first + 32 * 8, 0);
        let data = run_over(&kernel(&form, [8, 2, 2, 8]), &data);
        for lane in 0..32 {
            for i in 0..8 {
                let (quarter, (row, column)) = (lane % 16 / 4, position(lane, i));
                let sum: usize = (0..4)
                    .map(|k| a(quarter, row, k) * b(quarter, k, column))
                    .sum();
                let want = (sum + c(quarter, row, column)) as f32;
                let have = f32::from_bits(data[first + 8 * lane + i] as u32);
                assert_eq!(have, want, "{text}: lane {lane}, {i}");
            }
        }
    }
}
