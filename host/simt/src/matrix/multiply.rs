//! Products of matrices.
//!
//! The ISA leaves order and precision of the sums open, within bounds. Here every element of `c`
//! takes the products in ascending order of `k`, each added exactly and rounded to single precision
//! (`f64`: to double precision); a half-precision result is rounded once more, at the end.

use super::{Bits, Element, Layout, Multiply};
use crate::decode::fma32;
use crate::lanes::{Lanes, WARP};
use crate::values::mods::{Arith, arith};
use crate::values::narrow::{E4M3, E5M2};
use crate::values::soft::{F16, F32, F64, Round, convert};

/// The bits of elements, row by row.
struct Elements {
    bits: Vec<u64>,
    columns: usize,
}

impl Elements {
    fn at(&self, row: usize, column: usize) -> u64 {
        self.bits[row * self.columns + column]
    }
}

/// Collects one of the products' matrices; what no lane of `lanes` holds is zero.
fn gather(layout: Layout, registers: &[Lanes], lanes: u32, product: usize) -> Elements {
    let (rows, columns) = layout.size();
    let mut bits = vec![0; rows * columns];
    let packed = layout.element.per_register();
    let width = layout.element.bits();
    let keep = u64::MAX >> (64 - width);
    for lane in (0..WARP).filter(|lane| lanes >> lane & 1 == 1) {
        if layout.product(lane) != product {
            continue;
        }
        for index in 0..layout.count() {
            let Some(register) = registers.get(index / packed) else {
                break;
            };
            let shift = width * (index % packed) as u32;
            let (row, column) = layout.place(lane, index);
            bits[row * columns + column] = register[lane] >> shift & keep;
        }
    }
    Elements { bits, columns }
}

/// Hands a product's elements to the lanes.
fn scatter(layout: Layout, elements: &Elements, product: usize, registers: &mut [Lanes]) {
    let packed = layout.element.per_register();
    let width = layout.element.bits();
    for lane in (0..WARP).filter(|&lane| layout.product(lane) == product) {
        for index in 0..layout.count() {
            if let Some(register) = registers.get_mut(index / packed) {
                let (row, column) = layout.place(lane, index);
                let shift = width * (index % packed) as u32;
                register[lane] |= elements.at(row, column) << shift;
            }
        }
    }
}

/// The value of an element of up to 32 bits.
fn single(element: Element, bits: u64) -> f32 {
    match element {
        Element::F16 => half(bits as u32),
        Element::Bf16 => f32::from_bits((bits as u32) << 16),
        // The lower bits of a single that is taken for one do not count.
        Element::Tf32 => f32::from_bits(bits as u32 & 0xffff_e000),
        Element::E4m3 => E4M3.value(bits as u32) as f32,
        Element::E5m2 => E5M2.value(bits as u32) as f32,
        _ => f32::from_bits(bits as u32),
    }
}

fn half(bits: u32) -> f32 {
    let sign = (bits & 0x8000) << 16;
    let magnitude = bits & 0x7fff;
    let value = match magnitude {
        // Subnormals are multiples of 2^-24.
        0..0x0400 => return f32::from_bits((magnitude as f32 / 16_777_216.0).to_bits() | sign),
        0x7c00.. => magnitude << 13 | 0x7f80_0000,
        _ => (magnitude << 13) + ((127 - 15) << 23),
    };
    f32::from_bits(value | sign)
}

/// The value of an integer element.
fn integer(element: Element, bits: u64) -> i64 {
    match element {
        Element::S4 => i64::from((bits as i8) << 4 >> 4),
        Element::S8 => i64::from(bits as i8),
        Element::S32 => i64::from(bits as i32),
        _ => bits as i64,
    }
}

/// The bits of a result.
fn finish(element: Element, value: f32) -> u64 {
    let bits = if value.is_nan() {
        F32.nan()
    } else {
        u64::from(value.to_bits())
    };
    match element {
        Element::F16 => convert(bits, F32, F16, Round::Nearest),
        _ => bits,
    }
}

impl Multiply {
    /// The registers of `d`, for all lanes; `lanes` are those that take part.
    pub(crate) fn compute(&self, a: &[Lanes], b: &[Lanes], c: &[Lanes], lanes: u32) -> Vec<Lanes> {
        let mut d = vec![[0; WARP]; self.d.registers()];
        let products = if self.d.quarters.is_some() { 4 } else { 1 };
        for product in 0..products {
            let of = |layout, registers| gather(layout, registers, lanes, product);
            let (a, b, c) = (of(self.a, a), of(self.b, b), of(self.c, c));
            let sums = match self.a.element {
                Element::B1
                | Element::S4
                | Element::U4
                | Element::S8
                | Element::U8
                | Element::S32 => self.integers(&a, &b, &c),
                Element::F64 => self.doubles(&a, &b, &c),
                _ => self.singles(&a, &b, &c),
            };
            scatter(self.d, &sums, product, &mut d);
        }
        d
    }

    fn singles(&self, a: &Elements, b: &Elements, c: &Elements) -> Elements {
        let columns = b.columns;
        let factors: Vec<f32> = b.bits.iter().map(|&x| single(self.b.element, x)).collect();
        let mut bits = Vec::with_capacity(c.bits.len());
        for (left, start) in a.bits.chunks(a.columns).zip(c.bits.chunks(columns)) {
            let mut sums: Vec<f32> = start.iter().map(|&x| single(self.c.element, x)).collect();
            for (&x, right) in left.iter().zip(factors.chunks(columns)) {
                let x = single(self.a.element, x);
                for (sum, &y) in sums.iter_mut().zip(right) {
                    *sum = fma32(x, y, *sum);
                }
            }
            bits.extend(sums.into_iter().map(|sum| finish(self.d.element, sum)));
        }
        Elements { bits, columns }
    }

    fn doubles(&self, a: &Elements, b: &Elements, c: &Elements) -> Elements {
        let columns = b.columns;
        let mut bits = c.bits.clone();
        for (row, sums) in bits.chunks_mut(columns).enumerate() {
            for (column, sum) in sums.iter_mut().enumerate() {
                for k in 0..a.columns {
                    let (x, y) = (a.at(row, k), b.at(k, column));
                    *sum = match self.round {
                        Round::Nearest => {
                            let [x, y, z] = [x, y, *sum].map(f64::from_bits);
                            x.mul_add(y, z).to_bits()
                        }
                        round => arith(Arith::Fma, F64, round as u32, x, y, *sum),
                    };
                }
            }
        }
        Elements { bits, columns }
    }

    fn integers(&self, a: &Elements, b: &Elements, c: &Elements) -> Elements {
        let columns = b.columns;
        let mut bits = Vec::with_capacity(c.bits.len());
        for (left, start) in a.bits.chunks(a.columns).zip(c.bits.chunks(columns)) {
            for (column, &start) in start.iter().enumerate() {
                let mut sum = integer(Element::S32, start);
                for (k, &x) in left.iter().enumerate() {
                    let y = b.at(k, column);
                    sum += match (self.a.element, self.bits) {
                        (Element::B1, Bits::Xor) => (x ^ y) as i64,
                        (Element::B1, Bits::And) => (x & y) as i64,
                        _ => integer(self.a.element, x) * integer(self.b.element, y),
                    };
                }
                if self.saturate {
                    sum = sum.clamp(i32::MIN.into(), i32::MAX.into());
                }
                bits.push(u64::from(sum as u32));
            }
        }
        Elements { bits, columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Part, Shape};
    use proptest::prelude::*;
    use random::Random;

    fn multiply(shape: &str, a: Element, b: Element, c: Element, d: Element) -> Multiply {
        let shape = Shape::from_suffix(shape).unwrap();
        let layout = |part, element| Layout {
            part,
            shape,
            element,
            quarters: None,
        };
        Multiply {
            a: layout(Part::A, a),
            b: layout(Part::B, b),
            c: layout(Part::C, c),
            d: layout(Part::C, d),
            saturate: false,
            bits: Bits::Xor,
            round: Round::Nearest,
        }
    }

    /// The registers of a matrix whose elements have these bits.
    fn registers(layout: Layout, at: impl Fn(usize, usize) -> u64) -> Vec<Lanes> {
        let (rows, columns) = layout.size();
        let bits = (0..rows * columns).map(|n| at(n / columns, n % columns));
        let elements = Elements {
            bits: bits.collect(),
            columns,
        };
        let mut registers = vec![[0; WARP]; layout.registers()];
        scatter(layout, &elements, 0, &mut registers);
        registers
    }

    fn element(layout: Layout, registers: &[Lanes], row: usize, column: usize) -> u64 {
        gather(layout, registers, u32::MAX, 0).at(row, column)
    }

    proptest! {
        #[test]
        fn halves_have_their_values(bits in 0u64..0x1_0000) {
            let want = f32::from_bits(convert(bits, F16, F32, Round::Nearest) as u32);
            let have = half(bits as u32);
            prop_assert!(have.to_bits() == want.to_bits() || have.is_nan() && want.is_nan());
        }

        #[test]
        fn bytes_are_multiplied_by_the_book(seed: u64, saturate: bool) {
            use Element::{S8, S32, U8};
            let random = |n: usize| Random::new(seed ^ n as u64).number();
            for (shape, left, right) in [("m16n8k32", S8, U8), ("m8n8k16", U8, S8), ("m16n8k16", S8, S8)] {
                let mut m = multiply(shape, left, right, S32, S32);
                m.saturate = saturate;
                let a = |r: usize, c: usize| random(64 * r + c) & 255;
                let b = |r: usize, c: usize| random(5000 + 64 * r + c) & 255;
                let c = |r: usize, c: usize| {
                    if saturate { 0x7fff_fff0 } else { random(9000 + 64 * r + c) & 0xffff_ffff }
                };
                let d = m.compute(&registers(m.a, a), &registers(m.b, b), &registers(m.c, c), u32::MAX);
                let value = |e, x: u64| if e == S8 { i64::from(x as u8 as i8) } else { x as i64 };
                for (row, column) in [(0, 0), (m.d.shape.m - 1, 7), (3, 5)] {
                    let sum: i64 = (0..m.a.shape.k)
                        .map(|k| value(left, a(row, k)) * value(right, b(k, column)))
                        .sum::<i64>() + i64::from(c(row, column) as i32);
                    let want = if saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                    prop_assert_eq!(element(m.d, &d, row, column), u64::from(want as u32));
                }
            }
        }

        #[test]
        fn small_integers_are_exact_in_every_float(seed: u64) {
            use Element::{Bf16, E4m3, E5m2, F16 as Half, F32 as Single, Tf32};
            let random = |n: usize| Random::new(seed ^ n as u64).number();
            for (shape, ty, c) in [
                ("m16n8k8", Half, Single), ("m16n8k16", Half, Half), ("m16n8k16", Bf16, Single),
                ("m16n8k4", Tf32, Single), ("m16n8k8", Tf32, Single),
                ("m16n8k32", E4m3, Single), ("m16n8k16", E5m2, Single),
                ("m16n16k16", Half, Single), ("m32n8k16", Bf16, Single), ("m8n32k16", Half, Half),
            ] {
                // Values of a few bits, so that every sum is exact in each of the formats.
                let small = |n: usize| (random(n) % 4) as f32 - 2.0;
                let bits = |ty, x: f32| {
                    let single = u64::from(x.to_bits());
                    match ty {
                        Half => convert(single, F32, F16, Round::Nearest),
                        Bf16 => single >> 16,
                        E4m3 => E4M3.nearest(x.into()).into(),
                        E5m2 => E5M2.nearest(x.into()).into(),
                        _ => single,
                    }
                };
                let m = multiply(shape, ty, ty, c, c);
                let (a, b) = (|r, c| small(64 * r + c), |r, c| small(5000 + 64 * r + c));
                let start = |r, c| small(9000 + 64 * r + c);
                let d = m.compute(
                    &registers(m.a, |r, k| bits(ty, a(r, k))),
                    &registers(m.b, |k, n| bits(ty, b(k, n))),
                    &registers(m.c, |r, n| bits(c, start(r, n))),
                    u32::MAX,
                );
                for (row, column) in [(0, 0), (m.d.shape.m - 1, m.d.shape.n - 1), (3, 5)] {
                    let sum: f32 = (0..m.a.shape.k).map(|k| a(row, k) * b(k, column)).sum();
                    let want = bits(c, sum + start(row, column));
                    let have = element(m.d, &d, row, column);
                    prop_assert!(have == want || single(c, have) == single(c, want));
                }
            }
        }
    }

    #[test]
    fn double_precision_keeps_its_rounding_mode() {
        let mut m = multiply(
            "m8n8k4",
            Element::F64,
            Element::F64,
            Element::F64,
            Element::F64,
        );
        let one = |_, _| 1f64.to_bits();
        let tiny = |_, _| 1e-30f64.to_bits();
        let run = |m: &Multiply| {
            let d = m.compute(
                &registers(m.a, one),
                &registers(m.b, tiny),
                &registers(m.c, one),
                u32::MAX,
            );
            f64::from_bits(element(m.d, &d, 2, 3))
        };
        assert_eq!(run(&m), 1.0);
        m.round = Round::Up;
        assert_eq!(run(&m), 1.0 + 4.0 * f64::EPSILON);
    }

    #[test]
    fn bits_are_counted() {
        let mut m = multiply(
            "m16n8k256",
            Element::B1,
            Element::B1,
            Element::S32,
            Element::S32,
        );
        let (a, b) = (
            |_: usize, k: usize| u64::from(k.is_multiple_of(3)),
            |k: usize, _: usize| u64::from(k.is_multiple_of(2)),
        );
        let run = |m: &Multiply| {
            let d = m.compute(
                &registers(m.a, a),
                &registers(m.b, b),
                &registers(m.c, |_, _| 5),
                u32::MAX,
            );
            element(m.d, &d, 9, 4)
        };
        let count =
            |f: fn(bool, bool) -> bool| (0..256).filter(|k| f(k % 3 == 0, k % 2 == 0)).count();
        assert_eq!(run(&m), 5 + count(|x, y| x != y) as u64);
        m.bits = Bits::And;
        assert_eq!(run(&m), 5 + count(|x, y| x && y) as u64);
    }
}
